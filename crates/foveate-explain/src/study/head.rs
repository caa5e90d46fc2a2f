//! What both kinds of report say of what was studied.

use std::fmt;
use std::path::PathBuf;

use foveate_core::{Labels, statistics};
use serde::Serialize;

use super::report_page::{count, whole};
use crate::charts::percent;
use crate::figure::short;
use crate::page::{Mood, Tile};
use crate::trajectory::Trajectory;

/// What was studied: world, agent and episodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportHead {
    /// The folder that the report was written to.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Bytes of the page.
    #[serde(skip)]
    pub bytes: usize,
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Its variants.
    pub variant: String,
    /// Where the weights came from.
    pub weights: String,
    /// The seed of the stream.
    pub seed: u64,
    /// Score of every episode; the first one is shown.
    pub scores: Vec<f64>,
    /// Mean of the scores.
    pub mean_score: f64,
    /// Steps of every episode.
    pub steps: Vec<usize>,
    /// Decisions tested.
    pub decisions: usize,
}

impl ReportHead {
    /// The head of a report on these episodes, not yet written.
    pub(super) fn new<'t>(
        labels: Labels,
        seed: u64,
        episodes: impl Iterator<Item = &'t Trajectory> + Clone,
        decisions: usize,
    ) -> Self {
        let scores: Vec<f64> = episodes.clone().map(Trajectory::score).collect();
        ReportHead {
            folder: PathBuf::new(),
            bytes: 0,
            env: labels.env,
            picture: labels.picture,
            variant: labels.variant,
            weights: labels.weights,
            seed,
            mean_score: statistics::mean(&scores),
            scores,
            steps: episodes.map(Trajectory::len).collect(),
            decisions,
        }
    }

    /// The first lines on a terminal: `on` is the world with what matters of it.
    pub(super) fn lines(&self, f: &mut fmt::Formatter<'_>, on: &str) -> fmt::Result {
        writeln!(f, "{}", self.weights)?;
        writeln!(f, "  on            {on}, variant {}, seed {}", self.variant, self.seed)?;
        let first = short(self.scores.first().copied().unwrap_or(0.0));
        let episodes = count(self.scores.len(), "episode");
        writeln!(f, "  tested        {} decisions in {episodes}; the first scores {first}", self.decisions)?;
        if self.scores.len() == 1 {
            writeln!(f, "  intervals     none: one episode has no interval")?;
        }
        Ok(())
    }

    /// The last line on a terminal.
    pub(super) fn place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:.1} MB", self.folder.join("index.html").display(), self.bytes as f64 / 1e6)
    }

    /// The last part of the page's subtitle.
    pub(super) fn extent(&self) -> String {
        format!(
            "seed {} · {}, {} put to the test",
            self.seed,
            count(self.scores.len(), "episode"),
            count(self.decisions, "decision")
        )
    }

    /// The tile of the shown episode's score.
    pub(super) fn score_tile(&self) -> Tile {
        Tile {
            value: whole(self.scores[0]),
            name: "score of this episode".into(),
            note: format!(
                "{} steps; mean of {} is {}",
                self.steps[0],
                count(self.scores.len(), "episode"),
                whole(self.mean_score)
            ),
            mood: Mood::Plain,
        }
    }

    /// The note of how the report was made.
    pub(super) fn made_note(&self) -> String {
        format!(
            "Made by foveate explain, seed {}; the same seed gives the same bytes. Every figure is in the folder figures as \
             SVG, PNG, CSV and JSON; report.json has every number of this page, with those that the figures are drawn from.",
            self.seed
        )
    }

    /// The note on intervals, which are at this confidence level.
    pub(super) fn interval_note(&self, level: f64) -> String {
        if self.scores.len() == 1 {
            return "There are no intervals: they are over episodes, and this is one.".to_owned();
        }
        format!(
            "Intervals hold {} and resample whole episodes; each is for itself, not corrected for their number.",
            percent(level)
        )
    }
}
