//! `foveate heads`

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use foveate::Explanation;
use foveate::run::explain::{Analysis, HEADS};
use foveate::run::interrupt::stop_on_ctrl_c;

use super::explain::status;
use crate::out;
use crate::weights_arg::WeightsArg;
use crate::world_args::WorldArgs;

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
    /// The analysis
    #[arg(value_enum)]
    analysis: Kind,
    #[command(flatten)]
    weights: WeightsArg,
    /// The seed of the world's random stream; its first episode is the one shown
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of episodes
    #[arg(long, default_value_t = 15)]
    episodes: usize,
    /// Decisions per episode that are perturbed, for saliency
    #[arg(long, default_value_t = 4, value_name = "N")]
    decisions: usize,
    /// Play an Atari game without sticky actions: it is deterministic then [default: they stick with probability 0.25, or as
    /// `--option sticky` or the run says]
    #[arg(long)]
    no_sticky: bool,
    /// Truncate episodes after this many steps
    #[arg(long, value_name = "STEPS", alias = "steps")]
    max_steps: Option<usize>,
    /// Threads; 0 for one per core
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// The folder to write; an older report there is replaced
    #[arg(long, value_name = "FOLDER", default_value = "heads")]
    out: PathBuf,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    world: WorldArgs,
}

/// An analysis on the command line.
#[derive(Debug, Clone, Copy)]
struct Kind(&'static dyn Analysis);

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        const KINDS: [Kind; HEADS.len()] = {
            let mut kinds = [Kind(HEADS[0]); HEADS.len()];
            let mut i = 0;
            while i < kinds.len() {
                kinds[i] = Kind(HEADS[i]);
                i += 1;
            }
            kinds
        };
        &KINDS
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

impl Heads {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let world = self.world.world();
        let loaded = self.weights.load(&world)?;
        let stop = stop_on_ctrl_c()?;
        let ticker = out::ticker();
        ticker.count(&stop, "jobs");
        let Heads { analysis, seed, episodes, decisions, max_steps, workers, no_sticky, ref out, .. } = self;
        let how = Explanation { seed, episodes, decisions, untrained: 0, max_steps, workers, out };
        let report = loaded.heads(&world, analysis.0, !no_sticky, &how, &stop, &mut |progress| {
            ticker.set(vec![status(progress)]);
        });
        drop(ticker);
        let report = report?;
        if self.json {
            return Ok(out::say_json(&serde_json::to_value(&report).map_err(|error| anyhow!("{error}"))?)?);
        }
        out::say(&report.to_string())?;
        Ok(out::next(&[&format!("open {} in a browser", self.out.join("index.html").display())])?)
    }
}
