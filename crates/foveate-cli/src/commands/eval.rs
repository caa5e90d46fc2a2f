//! `foveate eval`

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use foveate_run::evaluate::{EvalRequest, Seeds, run};
use foveate_run::interrupt::stop_on_ctrl_c;
use foveate_run::weights::load_weights_or_run;
use foveate_run::worlds;

use crate::out;
use crate::world_args::{WorldArgs, labels};

/// Drive many episodes and say how well it went
#[derive(Debug, Args)]
#[command(after_help = "\
The digits are the same for any number of workers. --seed N seeds the world once and lets its random stream go on from
episode to episode, as the paper's test did; --seeds 0..20 resets every episode with a seed of its own, 0 to 19.

Examples:
  foveate eval runs/car-racing
  foveate eval attention_agent_carracing.safetensors --picture classic --episodes 100 --seed 1
  foveate eval runs/car-racing --variant bar --seeds 0..20 --json")]
pub(crate) struct Eval {
    /// A weight file, or the folder of a run (its best weights)
    #[arg(value_name = "WEIGHTS|RUN")]
    weights: PathBuf,
    #[command(flatten)]
    world: WorldArgs,
    /// How many episodes
    #[arg(long, default_value_t = 100, conflicts_with = "seeds")]
    episodes: usize,
    /// The seed of the world's random stream
    #[arg(long, default_value_t = 1, conflicts_with = "seeds")]
    seed: u64,
    /// A seed for every episode, as in 0..20
    #[arg(long, value_name = "FROM..TO")]
    seeds: Option<Seeds>,
    /// Threads; 0 for one per core
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// Steps after which an episode is over, if the world lets it go on for so long
    #[arg(long, value_name = "STEPS")]
    max_steps: Option<u64>,
    /// Print one JSON object with the return of every episode
    #[arg(long)]
    json: bool,
}

impl Eval {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (file, path) = load_weights_or_run(&self.weights)?;
        let request = self.world.request(file.world());
        let (env, agent) = (worlds::make(request.clone())?, file.agent()?);
        let stop = stop_on_ctrl_c()?;
        let report = run(
            &EvalRequest {
                env: &*env,
                agent: &*agent,
                labels: labels(&request, path.display().to_string()),
                seeds: self.seeds.unwrap_or(Seeds::Stream { seed: self.seed, episodes: self.episodes }),
                workers: self.workers,
                max_steps: self.max_steps,
            },
            &stop,
        )?;
        if self.json {
            let value = serde_json::to_value(&report).map_err(|error| anyhow!("{error}"))?;
            return Ok(out::say_json(&value)?);
        }
        Ok(out::say(&report.to_string())?)
    }
}
