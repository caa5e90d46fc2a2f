//! `foveate explain`

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use foveate::run::calibrate::CalibrationSummary;
use foveate::run::explain::Progress;
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::{Player, jobs};

use crate::out;
use crate::weights_arg::WeightsArg;

/// Report what an agent attends to, and test whether its actions depend on it
#[derive(Debug, Args)]
#[command(after_help = "\
Writes a folder with one self-contained page, index.html: the episode as a video with the attention
overlaid, where and at what the agent looks, and interventions that test whether its actions depend
on that. The folder also holds every figure as SVG, PNG, CSV and JSON. The same seed gives the same
bytes, with any number of workers.

With --compare, decisions are taken again with parts from other episodes: how far the action varies,
which share of that comes with what the attention hands on, and how much further parts that the
agent names move the action than as many others do (below 0 it misleads).

Examples:
  foveate explain
  foveate explain attention_agent_carracing.safetensors --picture classic --out report
  foveate explain runs/car-racing --variant bar --seed 5 --episodes 5 --decisions 10
  foveate explain policy.onnx --env gym:CartPole-v1
  foveate explain runs/mine attention_agent_carracing.safetensors --compare --shift blur:2
  foveate explain --calibrate")]
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
    #[command(flatten)]
    job: jobs::Explain,
    /// Ask the same questions about policies whose answers are known instead, and print both
    #[arg(long, conflicts_with_all = NO_CALIBRATION)]
    calibrate: bool,
    /// Seeds of a calibration, each of which asks about every policy once [default: 1]
    #[arg(long, value_name = "N", requires = "calibrate")]
    seeds: Option<usize>,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

/// What a calibration does not take: its policies, worlds and decisions are its own.
const NO_CALIBRATION: [&str; 12] = [
    "weights",
    "more",
    "compare",
    "untrained",
    "decisions",
    "max_steps",
    "out",
    "image_threads",
    "env",
    "picture",
    "shifts",
    "variants",
];

impl Explain {
    /// Policies whose truth is known.
    fn calibrate(self) -> anyhow::Result<()> {
        let jobs::Explain { seed, episodes, workers, .. } = self.job;
        let job = jobs::Calibrate { seed, seeds: self.seeds.unwrap_or(1), episodes, workers };
        calibrated(&job, self.json).map(drop)
    }

    /// Several agents side by side.
    fn compare(self) -> anyhow::Result<()> {
        let names: Vec<&Path> =
            self.weights.name().into_iter().chain(self.more.iter().map(|path| &**path)).collect();
        let mut players = Player::load_all(&names, &self.job.world)?;
        if names.is_empty() {
            players[0].name = "champion".into();
        }
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "jobs");
        let compared = self.job.compare(&players, &stop, &mut |progress| ticker.set(vec![status(progress)]));
        drop(ticker);
        let compared = compared?;
        if self.json {
            return Ok(out::say_json(&serde_json::to_value(&compared).map_err(|error| anyhow!("{error}"))?)?);
        }
        out::say(&compared.to_string())?;
        Ok(out::next(&[&format!("open {} in a browser", self.job.out.join("index.html").display())])?)
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.compare {
            return self.compare();
        }
        if self.calibrate {
            return self.calibrate();
        }
        let player = self.weights.player(&self.job.world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "jobs");
        let report = self.job.run(&player, &stop, &mut |progress| ticker.set(vec![status(progress)]));
        drop(ticker);
        let report = report?;
        if self.json {
            return Ok(out::say_json(&serde_json::to_value(&report).map_err(|error| anyhow!("{error}"))?)?);
        }
        let none = "one episode has no interval";
        out::say(&report.to_string().replace(none, &format!("{none}; raise --episodes")))?;
        Ok(out::next(&[&format!("open {} in a browser", self.job.out.join("index.html").display())])?)
    }
}

/// Runs a calibration and prints its results; returns the counts of its answers.
pub(super) fn calibrated(job: &jobs::Calibrate, json: bool) -> anyhow::Result<CalibrationSummary> {
    let stop = stop_on_ctrl_c()?;
    let ticker = out::ticker();
    ticker.count(&stop, "cases");
    let done = job.run(&stop, &mut |progress| ticker.set(vec![status(progress)]));
    drop(ticker);
    let done = done?;
    if json {
        out::say_json(&serde_json::to_value(&done).map_err(|error| anyhow!("{error}"))?)?;
    } else {
        out::say(&done.to_string())?;
    }
    Ok(done.summary)
}

/// The status line: the share that is done, and the current phase.
pub(super) fn status(Progress { what, done }: Progress) -> String {
    format!("{:3.0} %  {what}", 100.0 * done)
}
