//! `foveate reproduce`

use std::io::{IsTerminal, stdout};

use anyhow::bail;
use clap::Args;
use foveate::jobs;
use foveate::jobs::ReproduceObserver;
use foveate::run::interrupt::stop_on_ctrl_c;
use foveate::run::progress::TrainObserver;
use foveate::run::reproduce::Judged;
use foveate::run::ticker::Ticker;
use foveate::run::workers::Stop;
use serde_json::json;

use super::explain;
use super::train::cluster;
use crate::Clusters;
use crate::out;
use crate::progress::{Reporter, Style};

/// Repeat a published experiment and compare the result with the paper's
#[derive(Debug, Args)]
#[command(after_help = "\
Without a name, lists all experiments: what was published, what was measured for this version, and
what each costs. With a name, says first what is there and what must run, then runs what is missing.
Ctrl-C stops at once; the same command continues, and the result is the same. The folder has
table.md, table.csv, figure.svg and report.json at the end: published beside ours, the difference
with its 95 % interval, and a verdict. --plan runs nothing.

Experiments on published weights look for the authors' files, or for what `foveate import` made of
them, in the folder that --weights names.

Examples:
  foveate reproduce
  foveate reproduce attention-agent/table-1 --weights attention_agent_carracing.npz
  foveate reproduce attention-neuron --plan
  foveate reproduce attention-agent/noise-k --only 'K = 10' --seeds 1 --budget 2h
  foveate reproduce relational/digits --option data=package/data
  foveate reproduce calibration              # explanations of policies whose truth is known
  foveate reproduce --json")]
pub(crate) struct Reproduce {
    #[command(flatten)]
    job: jobs::Reproduce,
    /// Say what is there and what must run; run nothing
    #[arg(long, requires = "experiment")]
    plan: bool,
    /// Run the trainings on a Ray cluster: `local`, or its address (docs/cluster.md)
    #[arg(long, value_name = "ADDRESS", requires = "experiment")]
    cluster: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The name of the calibration of the explanations, which is in no paper; its seeds, and what it must reach.
const CALIBRATION: &str = "calibration";
const CALIBRATION_SEEDS: usize = 10;
const MOST_WRONG: f64 = 0.05;
const LEAST_RIGHT: f64 = 0.8;

impl Reproduce {
    pub(crate) fn run(self, clusters: Option<&Clusters>) -> anyhow::Result<()> {
        if self.job.experiment.is_none() {
            return self.list();
        }
        if self.job.experiment.as_deref() == Some(CALIBRATION) {
            return self.calibrate();
        }
        let jobs = self.job.each()?;
        let several = jobs.len() > 1;
        let mut plans = vec![];
        for job in &jobs {
            let plan = job.plan()?;
            if !self.json {
                out::say(&plan.text())?;
            }
            plans.push(plan);
        }
        if self.plan {
            let lines = plans.iter().map(foveate::jobs::Plan::to_json).collect::<Vec<_>>();
            return if self.json { Ok(out::say_json(&json!({ "experiments": lines }))?) } else { Ok(()) };
        }
        let stop = stop_on_ctrl_c()?;
        let mut shows = Shows { json: self.json, stop: &stop, ticker: None };
        let mut lines = vec![];
        for (job, plan) in jobs.iter().zip(&plans) {
            // Of a whole paper, only what can be run is run.
            if several && plan.pieces.is_empty() {
                continue;
            }
            let make = || self.cluster.as_deref().map(|address| cluster(address, clusters)).transpose();
            let mut make = || make().map_err(|error| foveate::Error::BadRequest { why: error.to_string() });
            let done = job.run_on(&mut make, &mut shows, &stop)?;
            shows.ticker = None;
            let Some(judged) = done.judged else {
                out::note("stopped; the same command continues");
                break;
            };
            if self.json {
                lines.push(judged.line());
            } else {
                out::say(&format!("\n{}", judged.document().trim_end()))?;
                out::next(&[&format!("look at {}", done.folder.join("figure.svg").display())])?;
            }
        }
        if self.json { Ok(out::say_json(&json!({ "experiments": lines }))?) } else { Ok(()) }
    }

    /// The questions of the explanations, asked about policies whose truth is known; an error if too many answers are wrong, or too
    /// few right.
    fn calibrate(self) -> anyhow::Result<()> {
        let jobs::Reproduce { ref experiment, episodes, workers, .. } = self.job;
        let asked = jobs::Reproduce {
            experiment: experiment.clone(),
            episodes,
            workers,
            ..jobs::Reproduce::default()
        };
        if self.job != asked || self.plan || self.cluster.is_some() {
            bail!(
                "calibration takes --episodes, --workers and --json; `foveate explain --calibrate` has --seed and --seeds"
            );
        }
        let episodes = episodes.unwrap_or(jobs::Calibrate::default().episodes);
        let job =
            jobs::Calibrate { seeds: CALIBRATION_SEEDS, episodes, workers, ..jobs::Calibrate::default() };
        let done = explain::calibrated(&job, self.json)?;
        let (wrong, right) = (100.0 * done.share_wrong, 100.0 * done.share_right);
        let said = format!(
            "{wrong:.1} % of the answers are false (at most {:.0} %), {right:.1} % as expected (at least {:.0} %)",
            100.0 * MOST_WRONG,
            100.0 * LEAST_RIGHT
        );
        if done.share_wrong > MOST_WRONG || done.share_right < LEAST_RIGHT {
            bail!("not reproduced: {said}");
        }
        out::note(&format!("reproduced: {said}"));
        Ok(())
    }

    /// The list of all experiments.
    fn list(&self) -> anyhow::Result<()> {
        let all = jobs::Reproduce::catalogue()?;
        if self.json {
            let lines: Vec<_> = all.iter().map(Judged::line).collect();
            return Ok(out::say_json(&json!({ "experiments": lines }))?);
        }
        out::say(jobs::Reproduce::catalogue_text(&all).trim_end())?;
        out::say(
            "\ncalibration: the questions of `foveate explain`, asked about policies whose truth is known",
        )?;
        Ok(out::next(&["foveate reproduce attention-agent/table-1 --plan"])?)
    }
}

/// Shows what an experiment does.
struct Shows<'a> {
    json: bool,
    stop: &'a Stop,
    /// While episodes of an evaluation are counted.
    ticker: Option<Ticker>,
}

impl ReproduceObserver for Shows<'_> {
    fn evaluates(&mut self, what: &str) {
        let ticker = self.ticker.get_or_insert_with(|| {
            let ticker = out::ticker();
            ticker.count(self.stop, "episodes");
            ticker
        });
        ticker.set(vec![what.to_owned()]);
    }

    fn trains(&mut self, what: &str) -> Box<dyn TrainObserver + '_> {
        self.ticker = None;
        if self.json {
            return Box::new(());
        }
        out::note(what);
        let style = if stdout().is_terminal() { Style::Live } else { Style::Plain };
        Box::new(Reporter::new(style))
    }
}
