//! `foveate explain`

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use foveate::run::explain::{Progress, UNTRAINED};
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::{Explanation, compare_explanations};

use crate::out;
use crate::weights_arg::WeightsArg;
use crate::world_args::WorldArgs;

/// Report what an agent attends to, and test whether its actions depend on it
#[derive(Debug, Args)]
#[command(after_help = "\
Writes a folder with one self-contained page, index.html: the episode as a video with the attention
overlaid, where and at what the agent looks, and interventions that test whether its actions depend
on that. The folder also holds every figure as SVG, PNG, CSV and JSON. The same seed gives the same
bytes, with any number of workers.

With --compare, decisions are taken again with parts from other episodes: N, how far the action
varies; M, the share of it that comes with what the attention hands on; F, whether what is claimed
to matter more does (0 as chance, 1 as the best order, below 0 misleading).

Examples:
  foveate explain
  foveate explain attention_agent_carracing.safetensors --picture classic --out report
  foveate explain runs/car-racing --variant bar --seed 5 --episodes 5 --decisions 10
  foveate explain runs/mine attention_agent_carracing.safetensors --compare --shift blur:2")]
pub(crate) struct Explain {
    #[command(flatten)]
    weights: WeightsArg,
    /// More agents to compare with
    #[arg(value_name = "MORE", requires = "compare")]
    more: Vec<PathBuf>,
    /// Compare agents: what matters to each, by which path, and whether the order of its claim is right; each --shift is
    /// a row of its own
    #[arg(long)]
    compare: bool,
    /// Untrained agents of each kind that go through the same measurement
    #[arg(long, default_value_t = UNTRAINED, value_name = "N")]
    untrained: usize,
    /// The seed of the world's random stream; its first episode is the one shown
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of episodes
    #[arg(long, default_value_t = 20)]
    episodes: usize,
    /// Tested decisions per episode
    #[arg(long, default_value_t = 30, value_name = "N")]
    decisions: usize,
    /// Truncate episodes after this many steps
    #[arg(long, value_name = "STEPS", alias = "steps")]
    max_steps: Option<usize>,
    /// Threads; 0 for one per core
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// The folder to write; an older report there is replaced
    #[arg(long, value_name = "FOLDER", default_value = "report")]
    out: PathBuf,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    world: WorldArgs,
}

impl Explain {
    /// Several agents side by side.
    fn compare(self) -> anyhow::Result<()> {
        let world = self.world.world();
        let names: Vec<PathBuf> =
            self.weights.name().map(PathBuf::from).into_iter().chain(self.more).collect();
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "jobs");
        let Explain { seed, episodes, decisions, max_steps, workers, ref out, untrained, .. } = self;
        let how = Explanation { seed, episodes, decisions, untrained, max_steps, workers, out };
        let compared = compare_explanations(&names, &world, &how, &stop, &mut |progress| {
            ticker.set(vec![status(progress)]);
        });
        drop(ticker);
        let compared = compared?;
        if self.json {
            return Ok(out::say_json(&serde_json::to_value(&compared).map_err(|error| anyhow!("{error}"))?)?);
        }
        out::say(&compared.to_string())?;
        Ok(out::next(&[&format!("open {} in a browser", self.out.join("index.html").display())])?)
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.compare {
            return self.compare();
        }
        let world = self.world.world();
        let loaded = self.weights.load(&world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "jobs");
        let Explain { seed, episodes, decisions, max_steps, workers, ref out, untrained, .. } = self;
        let how = Explanation { seed, episodes, decisions, untrained, max_steps, workers, out };
        let report = loaded.explain(&world, &how, &stop, &mut |progress| {
            ticker.set(vec![status(progress)]);
        });
        drop(ticker);
        let report = report?;
        if self.json {
            return Ok(out::say_json(&serde_json::to_value(&report).map_err(|error| anyhow!("{error}"))?)?);
        }
        let none = "one episode has no interval";
        out::say(&report.to_string().replace(none, &format!("{none}; raise --episodes")))?;
        Ok(out::next(&[&format!("open {} in a browser", self.out.join("index.html").display())])?)
    }
}

/// The status line: the share that is done, and the current phase.
pub(super) fn status(Progress { what, done }: Progress) -> String {
    format!("{:3.0} %  {what}", 100.0 * done)
}
