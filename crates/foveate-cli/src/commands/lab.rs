//! `foveate lab`

use std::io::{IsTerminal, stdout};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;
use foveate_lab::{Lab as LabServer, LabRequest, LabSetup, MAX_SESSIONS, Token};
use foveate_run::browser;
use foveate_run::interrupt::stop_on_ctrl_c;
use foveate_run::weights::load_weights_or_run;

use crate::out;
use crate::weights_arg::WeightsArg;
use crate::world_args::WorldArgs;

/// Drive live in the browser: shift the world, cover the picture, take the wheel
#[derive(Debug, Args)]
#[command(after_help = "\
The page is served by this program alone, to this machine alone unless --host says otherwise. The
address holds a token that a page must know: without it other users cannot drive. Every tab drives
by itself. Ctrl-C closes the lab. Press ? on the page for its keys.

Examples:
  foveate lab
  foveate lab runs/car-racing
  foveate lab runs/car-racing attention_agent_carracing.safetensors --picture classic
  foveate lab --port 8080 --no-open
  foveate lab --host 0.0.0.0 --port 8080")]
pub(crate) struct Lab {
    #[command(flatten)]
    weights: WeightsArg,
    /// Another agent to choose on the page, and to compare with
    #[arg(value_name = "WEIGHTS2")]
    other: Option<PathBuf>,
    /// The port; 0 for any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The address to listen at; 0.0.0.0 lets others in
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// What a page must know to drive: auto (something random, part of the address that is printed), or a text of yours
    #[arg(long, default_value = "auto")]
    token: String,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    world: WorldArgs,
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (file, name) = self.weights.load(&self.world)?;
        let world = self.world.request(file.world(&name))?;
        let mut named = vec![(file, name)];
        if let Some(path) = &self.other {
            let (file, path) = load_weights_or_run(path)?;
            named.push((file, path.display().to_string()));
        }
        let token = if self.token == "auto" { Token::Auto } else { Token::Text(self.token) };
        let setup = LabSetup::new(world, named)?;
        let lab = LabServer::open(LabRequest { setup, host: self.host, port: self.port, token })?;
        let stop = stop_on_ctrl_c()?;
        out::say(&format!("{}\nup to {MAX_SESSIONS} pages at once; Ctrl-C closes the lab", lab.url()))?;
        if !self.no_open && stdout().is_terminal() {
            browser::open(&lab.url());
        }
        Ok(lab.serve(&stop)?)
    }
}
