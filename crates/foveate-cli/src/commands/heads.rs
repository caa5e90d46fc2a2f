//! `foveate heads`

use anyhow::anyhow;
use clap::Args;
use foveate::jobs;
use foveate::run::interrupt::stop_on_ctrl_c;

use super::explain::status;
use crate::out;
use crate::weights_arg::WeightsArg;

/// Analyse the heads of an agent that attends to the cells of its picture
#[derive(Debug, Args)]
#[command(after_help = "\
The analyses of S3TA's paper, each with pictures, numbers with 95 % intervals over episodes, and
what chance alone gives:
  weights     where each head attends: overlays, sums of rows and columns, entropy
  what-where  whether a head asks for contents (red) or for places (blue)
  saliency    perturbation saliency of policy and value beside attention
  inject      an object pasted into the picture, against the same moments without it
  threshold   the score when small weights are set to zero
  planning    attention to where something will be; what an arrival at its place changes
Writes a folder with one page, index.html, figures as SVG, PNG, CSV and JSON, and report.json.

Examples:
  foveate heads weights runs/pong
  foveate heads threshold runs/pong --episodes 15 --out threshold
  foveate heads saliency runs/pong --episodes 5 --decisions 3")]
pub(crate) struct Heads {
    #[command(flatten)]
    job: jobs::Heads,
    #[command(flatten)]
    weights: WeightsArg,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

impl Heads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
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
        out::say(&report.to_string())?;
        Ok(out::next(&[&format!("open {} in a browser", self.job.out.join("index.html").display())])?)
    }
}
