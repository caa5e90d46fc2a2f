//! Recipes: the settings of learning, budget and selection, as a user writes them in TOML.
//!
//! A run is a list of stages, one after the other, each with its own learner, settings and budget of
//! environment steps. A stage with several `starts` is run that many times with different random numbers, and
//! the start with the best validation continues: seeds differ several-fold in how soon they learn to drive,
//! and a few short tries are cheaper than one unlucky run. The budget counts environment steps, never
//! seconds, so slow and fast machines end with the same weights.
//!
//! Four sets of tracks never overlap: training tracks, selection tracks (validation and finals), evaluation
//! tracks (which only monitor the run), and held-out tracks of the final report.

mod schedule;
mod stage;
mod tracks;
pub(crate) mod values;

use foveate_core::episode::EpisodeRules;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::schedule::Schedule;
pub use self::stage::{LearnerConfig, Stage};
pub use self::tracks::track_seed;
pub use self::values::{Fitness, Init, Interval, Patience, Replay, ReplayJudge, Teacher, TrackSeeds};
use crate::descriptor::LearnsFrom;
use crate::error::TrainError;
use crate::learners::LEARNERS;

/// The settings of learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The learner of stages that do not name one: `rank-es`, `cma-es`, …, see [`LEARNERS`].
    #[serde(default = "rank_es")]
    pub algorithm: String,
    /// Steps after which an episode is truncated; in training a stage may truncate it earlier.
    pub max_steps: u64,
    /// Initial weights of the starts of the first stage.
    #[serde(default)]
    pub init: Init,
    /// Whom stages that imitate learn from; without one, from the world's expert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher: Option<Teacher>,
    /// How weights are selected and tested.
    pub selection: Selection,
    /// The stages, in order. The file writes them as `[[…stage]]`.
    #[serde(rename = "stage")]
    pub stages: Vec<Stage>,
}

/// How weights are selected and tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Interval between validations; the end of a start is always validated.
    pub every: Interval,
    /// Tracks of a validation, the same in every validation.
    pub tracks: usize,
    /// How many of the best validated weights enter the finals.
    pub finalists: usize,
    /// Tracks of the finals, different from those of validation; the best finalist becomes `best`.
    pub final_tracks: usize,
    /// Further rounds of the finals: in each the better half of the finalists runs the same number of new
    /// tracks, and the mean over all of a finalist's tracks counts. 0 for one round.
    #[serde(default)]
    pub reevaluate: usize,
    /// Held-out tracks of the report on `best`.
    pub report_tracks: usize,
    /// Tracks of an evaluation, which monitors the run on its own fixed tracks and selects nothing. 0 for
    /// none.
    #[serde(default)]
    pub evaluation_tracks: usize,
    /// Validations between two evaluations; by default as many as keep the cost at or below 5 % of the
    /// training steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation_every: Option<u64>,
    /// True if agents that draw their actions in training draw them here, too, in place of taking the most probable ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draw_actions: bool,
}

fn rank_es() -> String {
    "rank-es".into()
}

/// Upper limit of a number of tracks; a larger number is a typing error.
const MOST_TRACKS: usize = 1_000_000;

impl Recipe {
    /// Checks that the values are valid and fit together.
    ///
    /// # Errors
    /// When a value is invalid; the message names it, its stage and its range.
    pub fn check(&self) -> Result<(), TrainError> {
        let refuse = |why: String| Err(TrainError::recipe(why));
        if self.stages.is_empty() {
            return refuse("the recipe has no stage; write at least one".to_owned());
        }
        if self.max_steps == 0 {
            return refuse("max_steps = 0 in the recipe; choose 1 or more".into());
        }
        if let Init::Uniform(bound) = self.init
            && !(bound.is_finite() && bound > 0.0)
        {
            return refuse(format!(
                "init: uniform = {bound} in the recipe; choose a number above 0, or \"zeros\""
            ));
        }
        self.selection.check().map_err(TrainError::recipe)?;
        if self.teacher.is_some() && !self.learns_from(LearnsFrom::Demonstrations) {
            return refuse("teacher in the recipe, but no stage imitates; remove it, or give a stage algorithm = \"imitation\"".into());
        }
        for stage in &self.stages {
            stage.check(&self.algorithm, self.max_steps).map_err(|error| error.in_stage(&stage.name))?;
        }
        for pair in self.stages.windows(2) {
            let bounds = |stage: &Stage| stage.learner(&self.algorithm, 0).ok()?.bounds();
            let (before, after) = (bounds(&pair[0]), bounds(&pair[1]));
            // A strategy does not start outside its bounds; report that now and not after hours of training.
            if let Some((low, high)) = after
                && !before.is_some_and(|before| before.0 >= low && before.1 <= high)
            {
                let why = format!(
                    "bounds from {low} to {high}, and weights from the stage before that may lie outside; give that the \
                     same or narrower ones"
                );
                return Err(TrainError::recipe(why).in_stage(&pair[1].name));
            }
        }
        Ok(())
    }

    /// Writes out every default, so that changed defaults of later versions have no effect.
    ///
    /// # Errors
    /// As [`Recipe::check`].
    pub fn complete(&mut self) -> Result<(), TrainError> {
        self.check()?;
        for stage in &mut self.stages {
            stage.complete(&self.algorithm)?;
        }
        self.selection.evaluation_every = self.evaluation_every();
        Ok(())
    }

    /// Returns whether a stage learns from this kind of data.
    pub fn learns_from(&self, data: LearnsFrom) -> bool {
        self.data().any(|learns_from| learns_from == data)
    }

    /// Returns whether a stage needs a [`Model`](foveate_core::Model).
    pub fn needs_model(&self) -> bool {
        self.data().any(LearnsFrom::needs_model)
    }

    /// What each stage learns from.
    fn data(&self) -> impl Iterator<Item = LearnsFrom> {
        let algorithms =
            self.stages.iter().map(|stage| stage.algorithm.as_deref().unwrap_or(&self.algorithm));
        algorithms.filter_map(|algorithm| Some(LEARNERS.get(algorithm)?.learns_from))
    }

    /// Identifies the recipe: SHA-256 of all its settings.
    pub fn digest(&self) -> [u64; 4] {
        let text = toml::to_string(self).expect("plain tables of numbers and texts can be written");
        let mut words = Sha256::digest(text)
            .chunks_exact(8)
            .map(|word| word.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
            .collect::<Vec<u64>>()
            .into_iter();
        std::array::from_fn(|_| words.next().unwrap_or(0))
    }

    /// Environment steps of training, over all stages and starts.
    pub fn training_steps(&self) -> u64 {
        let steps = self.stages.iter().map(|s| s.steps.saturating_mul(s.starts as u64));
        steps.fold(0, u64::saturating_add)
    }

    /// Sets the [training steps](Self::training_steps); each stage keeps its share of them.
    ///
    /// # Errors
    /// When there are too few steps for a stage.
    pub fn set_training_steps(&mut self, steps: u64) -> Result<(), TrainError> {
        if steps == 0 {
            return Err(TrainError::recipe("0 training steps; choose 1 or more"));
        }
        let before = u128::from(self.training_steps().max(1));
        for stage in &mut self.stages {
            let share = u128::from(stage.steps) * u128::from(steps) / before;
            stage.steps = u64::try_from(share).unwrap_or(u64::MAX).max(1);
        }
        // What rounding left over.
        let rest = steps.saturating_sub(self.training_steps());
        if let Some(last) = self.stages.last_mut() {
            last.steps += rest / last.starts.max(1) as u64;
        }
        self.check()
    }

    /// The rules that end an episode of validation, evaluation, finals and report.
    pub fn whole_episodes(&self) -> EpisodeRules {
        EpisodeRules { max_steps: self.max_steps, ..EpisodeRules::WHOLE }
    }

    /// Validations between two evaluations; `None` without evaluations.
    pub fn evaluation_every(&self) -> Option<u64> {
        let Selection { evaluation_tracks, evaluation_every, .. } = self.selection;
        if evaluation_tracks == 0 {
            return None;
        }
        // An episode of full length costs most.
        let cost = (evaluation_tracks as u64).saturating_mul(self.max_steps);
        Some(evaluation_every.unwrap_or_else(|| cost.saturating_mul(20).div_ceil(self.interval_steps())))
    }

    /// Approximate number of training steps between validations.
    pub fn interval_steps(&self) -> u64 {
        match self.selection.every {
            Interval::Steps(steps) => steps,
            Interval::Generations(generations) => {
                let rollouts = |stage: &Stage| {
                    let population = stage.learner(&self.algorithm, 0).map_or(2, |learner| learner.rows(1));
                    (population * stage.tracks) as u64
                };
                let fewest = self.stages.iter().map(rollouts).min().unwrap_or(1);
                // Training rollouts stay short for a large part of training.
                generations.saturating_mul(fewest).saturating_mul(self.max_steps.div_ceil(10))
            }
        }
        .max(1)
    }
}

impl Selection {
    fn check(&self) -> Result<(), String> {
        let every = match self.every {
            Interval::Steps(n) | Interval::Generations(n) => n,
        };
        for (name, value) in [
            ("every", every),
            ("finalists", self.finalists as u64),
            ("evaluation_every", self.evaluation_every.unwrap_or(1)),
            ("tracks", self.tracks as u64),
            ("final_tracks", self.final_tracks as u64),
            ("report_tracks", self.report_tracks as u64),
        ] {
            if value == 0 {
                return Err(format!("selection.{name} = 0 in the recipe; choose 1 or more"));
            }
        }
        for (name, value, most) in [
            ("tracks", self.tracks, MOST_TRACKS),
            ("final_tracks", self.final_tracks, MOST_TRACKS),
            ("report_tracks", self.report_tracks, MOST_TRACKS),
            ("evaluation_tracks", self.evaluation_tracks, MOST_TRACKS),
            ("finalists", self.finalists, 1000),
            ("reevaluate", self.reevaluate, 10),
        ] {
            if value > most {
                return Err(format!("selection.{name} = {value} in the recipe; choose at most {most}"));
            }
        }
        if self.evaluation_tracks == 0
            && let Some(every) = self.evaluation_every
        {
            return Err(format!(
                "selection.evaluation_every = {every} in the recipe without evaluation_tracks; choose how many tracks, \
                 or leave it out"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
