//! `foveate watch`

use std::path::PathBuf;

use clap::Args;
use foveate::Film;
use foveate::run::interrupt::stop_on_ctrl_c;

use crate::out;
use crate::weights_arg::WeightsArg;
use crate::world_args::WorldArgs;

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
    /// The seed of the world's random stream
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the episode in that stream; 0 is the first
    #[arg(long, default_value_t = 0)]
    episode: usize,
    /// Steps to record [default: the whole episode]
    #[arg(long, alias = "max-steps")]
    steps: Option<usize>,
    /// Width and height in pixels, even
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    size: Option<(usize, usize)>,
    /// The file; `.mp4` and `.gif` are videos, `.png` is a picture of one step
    #[arg(long, value_name = "FILE", default_value = "drive.mp4")]
    out: PathBuf,
    /// For a picture: the step it shows; 0 is the reset [default: 100]
    #[arg(long, value_name = "STEP")]
    at: Option<usize>,
    /// Frame what the agent attends to by its rank, without measuring what changes its actions
    #[arg(long)]
    no_effects: bool,
    #[command(flatten)]
    world: WorldArgs,
}

impl Watch {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let world = self.world.world();
        let loaded = self.weights.load(&world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        let Watch { seed, episode, steps, size, ref out, at, no_effects, .. } = self;
        let film = Film { seed, episode, steps, size, out, at, effects: !no_effects };
        ticker.count(&stop, "episodes");
        let report =
            loaded.watch(&world, &film, &stop, &mut |steps| ticker.set(vec![format!("step {steps}")]));
        drop(ticker);
        Ok(out::say(&format!("{}; {}", report?, loaded.source))?)
    }
}

/// `960x540`
fn size(text: &str) -> Result<(usize, usize), String> {
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    sides.ok_or_else(|| "write it as 960x540".into())
}
