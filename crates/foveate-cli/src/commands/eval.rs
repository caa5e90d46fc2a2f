//! `foveate eval`

use anyhow::anyhow;
use clap::Args;
use foveate::Evaluation;
use foveate::run::evaluate::{EvalReport, Labels, Seeds, interval_text};
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::training::decimals;
use serde_json::Value;

use crate::help;
use crate::out;
use crate::weights_arg::WeightsArg;
use crate::world_args::WorldArgs;

/// Evaluate an agent over many episodes
#[derive(Debug, Args)]
#[command(after_help = "\
Results are the same for any number of workers. --seed N seeds the world once, and its random
stream continues from episode to episode, as in the paper's test; --seeds 0..20 resets each episode
with its own seed, 0 to 19.

Examples:
  foveate eval
  foveate eval --each-variant
  foveate eval door-key-16x16
  foveate eval runs/car-racing
  foveate eval attention_agent_carracing.safetensors --picture classic --episodes 100 --seed 1
  foveate eval runs/car-racing --variant bar --seeds 0..20 --json")]
pub(crate) struct Eval {
    #[command(flatten)]
    weights: WeightsArg,
    /// Number of episodes
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
    /// Truncate episodes after this many steps
    #[arg(long, value_name = "STEPS", alias = "steps")]
    max_steps: Option<u64>,
    /// Draw the agent's actions, as in training, instead of taking the most probable ones; agents
    /// whose actions have no probabilities act as before
    #[arg(long)]
    draw_actions: bool,
    #[arg(long, conflicts_with = "variants", help = help::each_variant())]
    each_variant: bool,
    /// Print one JSON object (a list of them with --each-variant) with the return of every episode
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    world: WorldArgs,
}

impl Eval {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let world = self.world.world();
        let loaded = self.weights.load(&world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "episodes");
        let status = |labels: &Labels| ticker.set(vec![format!("{}, {}", labels.weights, labels.variant)]);
        let Eval { workers, max_steps, draw_actions, .. } = self;
        let seeds = self.seeds.clone().unwrap_or(Seeds::Stream { seed: self.seed, episodes: self.episodes });
        let how = Evaluation { seeds, workers, max_steps, draw_actions, stop };
        if !self.each_variant {
            status(&loaded.labels());
            let report = loaded.evaluate(&world, &how)?;
            ticker.clear();
            return if self.json {
                Ok(out::say_json(&as_json(&report)?)?)
            } else {
                Ok(out::say(&report.to_string())?)
            };
        }
        if !self.json {
            out::say(&format!("{}\n{TABLE}", loaded.source))?;
        }
        let mut reports = vec![];
        let told = &mut |report: EvalReport| -> anyhow::Result<()> {
            if !self.json {
                ticker.clear();
                out::say(&row(&report))?;
            }
            reports.push(as_json(&report)?);
            Ok(())
        };
        loaded.evaluate_variants(&world, &how, &mut |labels| status(labels), told)?;
        if self.json { Ok(out::say_json(&reports.into())?) } else { Ok(()) }
    }
}

fn as_json(report: &EvalReport) -> anyhow::Result<Value> {
    serde_json::to_value(report).map_err(|error| anyhow!("{error}"))
}

const TABLE: &str = "\
| picture | variant | episodes | mean ± std | 95 % interval of the mean | median |
|---|---|---:|---:|---:|---:|";

/// A line of the table.
fn row(report: &EvalReport) -> String {
    let EvalReport { picture, variant, summary: s, .. } = report;
    let digits = decimals(s.mean.abs().max(s.median.abs()));
    format!(
        "| {picture} | {variant} | {} | {} | {} | {:.digits$} |",
        s.n,
        s.spread(digits),
        interval_text(s.ci95, digits),
        s.median
    )
}
