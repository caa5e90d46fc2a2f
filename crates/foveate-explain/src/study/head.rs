//! What every report says of what was studied.

use std::fmt;
use std::path::PathBuf;

use foveate_core::{Labels, statistics};
use serde::Serialize;

use super::INTERVAL;
use super::words::{count, two, whole};
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
    /// True if the agent sees a picture, which is then named.
    #[serde(skip)]
    pub pictured: bool,
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
    /// Steps of every episode; empty where they were not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<usize>,
    /// Decisions tested.
    pub decisions: usize,
}

impl ReportHead {
    /// The head of a report that is not yet written, on episodes with these scores and steps.
    pub(super) fn new(
        labels: &Labels,
        seed: u64,
        scores: Vec<f64>,
        steps: Vec<usize>,
        decisions: usize,
    ) -> Self {
        let Labels { env, picture, variant, weights } = labels.clone();
        let (folder, mean_score) = (PathBuf::new(), statistics::mean(&scores));
        ReportHead {
            folder,
            bytes: 0,
            pictured: true,
            env,
            picture,
            variant,
            weights,
            seed,
            scores,
            mean_score,
            steps,
            decisions,
        }
    }

    /// The same, of recorded episodes.
    pub(super) fn of<'t>(
        labels: &Labels,
        seed: u64,
        episodes: impl Iterator<Item = &'t Trajectory> + Clone,
        decisions: usize,
    ) -> Self {
        let scores = episodes.clone().map(Trajectory::score).collect();
        Self::new(labels, seed, scores, episodes.map(Trajectory::len).collect(), decisions)
    }

    /// The world, with its picture if there is one.
    pub(super) fn on(&self) -> String {
        if self.pictured { format!("{}, picture {}", self.env, self.picture) } else { self.env.clone() }
    }

    /// The first lines on a terminal.
    pub(super) fn lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.weights)?;
        writeln!(f, "  on            {}, variant {}, seed {}", self.on(), self.variant, self.seed)?;
        let first = short(self.scores.first().copied().unwrap_or(0.0));
        let episodes = count(self.scores.len(), "episode");
        match self.decisions {
            0 => writeln!(f, "  played        {episodes}; the first scores {first}")?,
            decisions => {
                writeln!(f, "  tested        {decisions} decisions in {episodes}; the first scores {first}")?;
            }
        }
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
        let episodes = count(self.scores.len(), "episode");
        match self.decisions {
            0 => format!("seed {} · {episodes}", self.seed),
            decisions => {
                format!("seed {} · {episodes}, {} put to the test", self.seed, count(decisions, "decision"))
            }
        }
    }

    /// The tile of the shown episode's score; small ones with two digits behind the point.
    pub(super) fn score_tile(&self) -> Option<Tile> {
        let small = self.scores.iter().all(|score| score.abs() < 10.0);
        let told = |score: f64| if small { two(score) } else { whole(score) };
        Some(Tile {
            value: told(*self.scores.first()?),
            name: "score of this episode".into(),
            note: format!(
                "{} steps; mean of {} is {}",
                self.steps.first()?,
                count(self.scores.len(), "episode"),
                told(self.mean_score)
            ),
            mood: Mood::Plain,
        })
    }

    /// The note of how the report was made.
    pub(super) fn made_note(&self) -> String {
        format!(
            "Made by foveate explain, seed {}; the same seed gives the same bytes. Every figure is in the folder figures as \
             SVG, PNG, CSV and JSON; report.json has every number of this page, with those that the figures are drawn from.",
            self.seed
        )
    }

    /// The note on intervals.
    pub(super) fn interval_note(&self) -> String {
        if self.scores.len() == 1 {
            return "There are no intervals: they are over episodes, and this is one.".to_owned();
        }
        format!(
            "Intervals hold {} and resample whole episodes; each is for itself, not corrected for their number.",
            percent(INTERVAL)
        )
    }
}
