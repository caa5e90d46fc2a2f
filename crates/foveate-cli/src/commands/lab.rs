//! `foveate lab`

use std::io::{IsTerminal, stdout};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;
use foveate::lab::{Lab as LabServer, LabRequest, MAX_SESSIONS, Token, exported_page, lab_setup};
use foveate::run::browser;
use foveate::run::folder::FolderHandle;
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::run::weights::load_named;
use foveate::{LoadedAgent, WorldSpec};

use crate::out;
use crate::weights_arg::WeightsArg;

/// Watch and disturb an agent live in the browser: shift the world, cover the picture, steer it yourself
#[derive(Debug, Args)]
#[command(after_help = "\
This program serves the page, by default to this machine only (--host). The address contains a
token; without it other users cannot connect. Every tab has a session of its own. Ctrl-C closes the
lab. Press ? on the page for its keys.

Examples:
  foveate lab
  foveate lab runs/car-racing
  foveate lab runs/car-racing attention_agent_carracing.safetensors --picture classic
  foveate lab --port 8080 --no-open
  foveate lab --host 0.0.0.0 --port 8080
  foveate lab --export site")]
pub(crate) struct Lab {
    #[command(flatten)]
    weights: WeightsArg,
    /// A second agent for the page, to choose and to compare with
    #[arg(value_name = "WEIGHTS2")]
    other: Option<PathBuf>,
    /// The port; 0 for any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The address to listen at; 0.0.0.0 accepts other machines
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The token that a page needs to connect: auto (random, part of the printed address) or a text
    #[arg(long, default_value = "auto")]
    token: String,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Write the page as one file, FOLDER/index.html, and serve nothing: the bundled agents act in the browser itself
    #[arg(long, value_name = "FOLDER", exclusive = true)]
    export: Option<PathBuf>,
    #[command(flatten)]
    world: WorldSpec,
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(folder) = &self.export {
            FolderHandle::open_or_create(folder)?.write("index.html", exported_page())?;
            let file = folder.join("index.html");
            return Ok(out::say(&format!(
                "{}; open it in a browser, from a disk or any server",
                file.display()
            ))?);
        }
        let LoadedAgent { file, source, world } = self.weights.load(&self.world)?;
        let mut named = vec![(file, source)];
        if let Some(path) = &self.other {
            named.push(load_named(path)?);
        }
        let token = if self.token == "auto" { Token::Auto } else { Token::Text(self.token) };
        let setup = lab_setup(world, named)?;
        let lab = LabServer::open(LabRequest { setup, host: self.host, port: self.port, token })?;
        let stop = stop_on_ctrl_c()?;
        out::say(&format!("{}\nup to {MAX_SESSIONS} pages at once; Ctrl-C closes the lab", lab.url()))?;
        if !self.no_open && stdout().is_terminal() {
            browser::open(&lab.url());
        }
        Ok(lab.serve(&stop)?)
    }
}
