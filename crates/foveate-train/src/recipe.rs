//! How a run learns: the numbers of evolution, budget and selection, as a user may write them in TOML.
//!
//! A run is a list of stages, one after the other, each with its own learner, settings and budget of environment
//! steps. A stage with several `starts` is run that many times with other random numbers, and the start that validates
//! best goes on: seeds differ several-fold in how soon they learn to drive, and a few short tries are cheaper than one
//! unlucky run. The budget counts environment steps, never seconds, so a slow machine and a fast one end with the same
//! weights.
//!
//! Tracks for different purposes never mix: those trained on, those that choose (validation and finals), those that
//! only show how the run is doing (evaluation), and those of the final report, which nothing has seen before.

mod schedule;
mod stage;
mod tracks;
mod values;

use foveate_core::episode::EpisodeRules;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::schedule::Schedule;
pub use self::stage::{LearnerConfig, Stage};
pub use self::tracks::track_seed;
pub use self::values::{Fitness, Init, Interval, Patience, Replay, ReplayJudge, TrackSeeds};
use crate::error::TrainError;
use crate::learners::{LEARNERS, LearnsFrom};

/// How a run learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The learner of stages that name none: `rank-es`, `cma-es`, …, see [`LEARNERS`].
    #[serde(default = "rank_es")]
    pub algorithm: String,
    /// Steps after which an episode is over; in training a stage may end it sooner.
    pub max_steps: u64,
    /// The weights that the starts of the first stage begin with.
    #[serde(default)]
    pub init: Init,
    /// How weights are chosen and judged.
    pub selection: Selection,
    /// What happens, in order. The file writes them as `[[…stage]]`.
    #[serde(rename = "stage")]
    pub stages: Vec<Stage>,
}

/// How weights are chosen and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Training between validations; the end of a start is always validated.
    pub every: Interval,
    /// Tracks of a validation, always the same.
    pub tracks: usize,
    /// How many of the best validated weights enter the finals.
    pub finalists: usize,
    /// Tracks of the finals, others than those of validation; the best there is `best`.
    pub final_tracks: usize,
    /// Further rounds of the finals: each time the better half drives as many tracks again, others than before, and the
    /// mean of all of a finalist's tracks counts. 0 for one round.
    #[serde(default)]
    pub reevaluate: usize,
    /// Tracks of the report on `best`, which chose nothing.
    pub report_tracks: usize,
    /// Tracks of an evaluation: a look at how the run is doing on tracks of its own, always the same, that chooses
    /// nothing. 0 for none.
    #[serde(default)]
    pub evaluation_tracks: usize,
    /// Validations from one evaluation to the next; if nothing is said as few as cost at most 5 % of the training steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation_every: Option<u64>,
}

fn rank_es() -> String {
    "rank-es".into()
}

/// More tracks than this are a slip of the finger.
const MOST_TRACKS: usize = 1_000_000;

impl Recipe {
    /// Checks that the numbers make sense together.
    ///
    /// # Errors
    /// When one does not; the message names it, its stage and its range.
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
        for stage in &self.stages {
            stage.check(&self.algorithm, self.max_steps).map_err(|error| error.in_stage(&stage.name))?;
        }
        for pair in self.stages.windows(2) {
            let bounds = |stage: &Stage| stage.learner(&self.algorithm, 0).ok()?.bounds();
            let (before, after) = (bounds(&pair[0]), bounds(&pair[1]));
            // A strategy does not begin outside its bounds, and that should not come out after hours.
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

    /// Writes out every default, so that those of later versions change nothing.
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

    /// Whether a stage learns from the world's expert.
    pub fn imitates(&self) -> bool {
        self.stages.iter().any(|stage| {
            let learner = LEARNERS.get(stage.algorithm.as_deref().unwrap_or(&self.algorithm));
            learner.is_some_and(|learner| learner.learns_from == LearnsFrom::Demonstrations)
        })
    }

    /// Which recipe this is: SHA-256 of all its settings.
    pub fn digest(&self) -> [u64; 4] {
        let text = toml::to_string(self).expect("plain tables of numbers and texts can be written");
        let mut words = Sha256::digest(text)
            .chunks_exact(8)
            .map(|word| word.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
            .collect::<Vec<u64>>()
            .into_iter();
        std::array::from_fn(|_| words.next().unwrap_or(0))
    }

    /// Environment steps of training, all stages and starts together.
    pub fn training_steps(&self) -> u64 {
        let steps = self.stages.iter().map(|s| s.steps.saturating_mul(s.starts as u64));
        steps.fold(0, u64::saturating_add)
    }

    /// What ends an episode that judges.
    pub fn whole_episodes(&self) -> EpisodeRules {
        EpisodeRules { max_steps: self.max_steps, ..EpisodeRules::WHOLE }
    }

    /// Validations from one evaluation to the next; `None` if there is none.
    pub fn evaluation_every(&self) -> Option<u64> {
        let Selection { evaluation_tracks, evaluation_every, .. } = self.selection;
        if evaluation_tracks == 0 {
            return None;
        }
        // An episode that takes its whole time costs most.
        let cost = (evaluation_tracks as u64).saturating_mul(self.max_steps);
        Some(evaluation_every.unwrap_or_else(|| cost.saturating_mul(20).div_ceil(self.interval_steps())))
    }

    /// About how many steps of training there are between validations.
    pub fn interval_steps(&self) -> u64 {
        match self.selection.every {
            Interval::Steps(steps) => steps,
            Interval::Generations(generations) => {
                let rollouts = |stage: &Stage| {
                    let population = stage.learner(&self.algorithm, 0).map_or(2, |learner| learner.rows(1));
                    (population * stage.tracks) as u64
                };
                let fewest = self.stages.iter().map(rollouts).min().unwrap_or(1);
                // Training rollouts are short for a long time.
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
