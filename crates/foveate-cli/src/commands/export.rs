//! `foveate export`

use anyhow::anyhow;
use clap::Args;
use foveate::jobs;
use foveate::run::interrupt::stop_on_ctrl_c;

use crate::out;
use crate::weights_arg::WeightsArg;

/// Write an agent as a model for other programs
#[derive(Debug, Args)]
#[command(after_help = "\
The model takes an observation as the agent's world shows it, and the agent's state, and gives the
action as the world takes it, the agent's attention and the next state. The world and its wrappers
are not in it. Where an agent draws its actions, it gives the scores that they are drawn by.
For a model hub the folder has weights, configuration and a card with the scores of an evaluation;
the folder is taken wherever weights are.

Examples:
  foveate export --to onnx
  foveate export runs/car-racing --to onnx --out driver.onnx
  foveate export runs/car-racing --to torch --out driver
  foveate export runs/car-racing --to hub --out driver --episodes 100
  foveate export pong.safetensors --to onnx --trust-world")]
pub(crate) struct Export {
    #[command(flatten)]
    weights: WeightsArg,
    #[command(flatten)]
    job: jobs::Export,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let player = self.weights.player(&self.job.world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "episodes");
        let written = self.job.run(&player, &stop);
        drop(ticker);
        let written = written?;
        if self.json {
            return Ok(out::say_json(&serde_json::to_value(&written).map_err(|error| anyhow!("{error}"))?)?);
        }
        Ok(out::say(&written.to_string())?)
    }
}
