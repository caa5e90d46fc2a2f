//! `foveate eval`

use anyhow::anyhow;
use clap::Args;
use foveate::jobs::Evaluate;
use foveate::run::command;
use foveate::run::evaluate::{EvalReport, Labels, interval_text};
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::training::decimals;
use serde_json::Value;

use crate::out;
use crate::weights_arg::WeightsArg;

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
    #[command(flatten)]
    job: Evaluate,
    #[arg(long, conflicts_with = "variants", help = command::each_variant())]
    each_variant: bool,
    /// Print one JSON object (a list of them with --each-variant) with the return of every episode
    #[arg(long)]
    json: bool,
}

impl Eval {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let player = self.weights.player(&self.job.world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "episodes");
        let status = |labels: &Labels| ticker.set(vec![format!("{}, {}", labels.weights, labels.variant)]);
        if !self.each_variant {
            status(&player.labels());
            let report = self.job.run(&player, &stop)?;
            ticker.clear();
            return if self.json {
                Ok(out::say_json(&as_json(&report)?)?)
            } else {
                Ok(out::say(&report.to_string())?)
            };
        }
        if !self.json {
            out::say(&format!("{}\n{TABLE}", player.source))?;
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
        self.job.run_each_variant(&player, &stop, &mut |labels| status(labels), told)?;
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
