//! Events of a training run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::{Summary, TaskMean};

/// The result of a piece of work: a line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A generation.
    Generation {
        /// Generations of the run so far, all stages and starts together.
        generation: u64,
        /// Training steps of the run so far.
        steps: u64,
        /// The stage's name.
        stage: String,
        /// Which of its starts, from 1.
        start: usize,
        /// Best return of the population.
        best: f64,
        /// Mean return of the population.
        mean: f64,
        /// Mean length of the training rollouts.
        length: f64,
        /// Euclidean length of the mean weights.
        norm: f64,
        /// Standard deviation of the genomes around the mean, averaged over parameters.
        #[serde(default)]
        sigma: f64,
        /// Number of hard tracks that were run again.
        #[serde(default, skip_serializing_if = "is_zero")]
        replayed: usize,
        /// In a world of several tasks: the returns by task.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<TaskMean>,
        /// What the learner measured, by name, see [`Learner::measures`](foveate_core::Learner::measures).
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        measures: BTreeMap<String, f64>,
    },
    /// Nothing changes any more in the search of an evolution strategy, see [`Stagnation`](crate::Stagnation).
    Stagnation {
        /// Generations so far.
        generation: u64,
        /// Training steps so far.
        steps: u64,
        /// The stage's name.
        stage: String,
        /// Which of its starts, from 1.
        start: usize,
        /// What does not change.
        why: String,
    },
    /// The mean weights on the validation tracks, whole episodes.
    Validation {
        /// Generations so far.
        generation: u64,
        /// Training steps so far.
        steps: u64,
        /// The stage's name.
        stage: String,
        /// Which of its starts, from 1.
        start: usize,
        /// Statistics of the returns.
        #[serde(flatten)]
        summary: Summary,
        /// True if this is the best validation so far.
        best: bool,
    },
    /// The mean weights on separate evaluation tracks, whole episodes, to monitor the run; not used for any
    /// selection.
    Evaluation {
        /// Generations so far.
        generation: u64,
        /// Training steps so far.
        steps: u64,
        /// The stage's name.
        stage: String,
        /// Which of its starts, from 1.
        start: usize,
        /// Statistics of the returns.
        #[serde(flatten)]
        summary: Summary,
        /// The world's seeds, the same in every evaluation of the run.
        seeds: Vec<u64>,
        /// Return of every track.
        returns: Vec<f64>,
    },
    /// The start that a stage with several starts continues with.
    Chosen {
        /// The stage's name.
        stage: String,
        /// Generation of the chosen weights.
        generation: u64,
        /// Their mean validation return.
        mean: f64,
    },
    /// A finalist on the tracks of the finals.
    Final {
        /// Generation of the weights.
        generation: u64,
        /// Which round, from 1; each round has its own tracks.
        #[serde(default = "one")]
        round: usize,
        /// Statistics of the returns of this round.
        #[serde(flatten)]
        summary: Summary,
        /// True if this is the best finalist so far, over all rounds.
        best: bool,
    },
    /// The best weights on held-out test tracks.
    Report {
        /// Generation of the weights.
        generation: u64,
        /// Training steps of the run.
        steps: u64,
        /// Environment steps of validation and report.
        judging_steps: u64,
        /// Statistics of the returns.
        #[serde(flatten)]
        summary: Summary,
        /// The world's seeds.
        #[serde(default)]
        seeds: Vec<u64>,
        /// Return of every track.
        returns: Vec<f64>,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_zero(n: &usize) -> bool {
    *n == 0
}

const fn one() -> usize {
    1
}
