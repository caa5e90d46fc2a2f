//! `foveate watch`

use clap::Args;
use foveate::jobs;
use foveate::run::interrupt::stop_on_ctrl_c;

use crate::out;
use crate::weights_arg::WeightsArg;

/// Record an episode as a video: the world, the agent's picture and its attention
#[derive(Debug, Args)]
#[command(after_help = "\
The left half is the world as people see it, the right half the agent's picture with the patches
that it attends to: the whiter, the more it attends to them. Frames show what was measured: thick
and orange where the action changes without the patch, thin and grey where not.
Ctrl-C ends the video early; the file is valid.

Examples:
  foveate watch
  foveate watch --variant color --seed 5 --out color.mp4
  foveate watch runs/car-racing --out drive.mp4
  foveate watch attention_agent_carracing.safetensors --picture classic --episode 3 --out drive.gif
  foveate watch runs/car-racing --variant bar --at 250 --out look.png")]
pub(crate) struct Watch {
    #[command(flatten)]
    weights: WeightsArg,
    #[command(flatten)]
    job: jobs::Watch,
}

impl Watch {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let player = self.weights.player(&self.job.world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "episodes");
        let report = self.job.run(&player, &stop, &mut |steps| ticker.set(vec![format!("step {steps}")]));
        drop(ticker);
        Ok(out::say(&format!("{}; {}", report?, player.source))?)
    }
}
