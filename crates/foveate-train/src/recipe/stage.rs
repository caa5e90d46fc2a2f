//! A stage: a part of a run with its own strategy and settings.

use foveate_core::{LearnError, Learner, near};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::schedule::Schedule;
use super::values::{Fitness, Patience, Replay, TrackSeeds};
use crate::descriptor::{LearnerDescriptor, LearnerParts, LearnerSettings};
use crate::error::TrainError;
use crate::learners::LEARNERS;

/// A part of a run with its own settings.
///
/// All other keys are settings of the learner, such as `population`, `sigma`, `learning_rate`. Any number
/// among them may be a [`Schedule`] if the learner does not adapt them by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The name in logs.
    pub name: String,
    /// Independent tries; the best continues. In the first stage each start has its own initial weights.
    #[serde(default = "one")]
    pub starts: usize,
    /// Environment steps of each start. The generation that reaches this number is completed.
    pub steps: u64,
    /// Generations after which a start ends, even if steps are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generations: Option<u64>,
    /// Tracks per genome and generation.
    #[serde(default = "one")]
    pub tracks: usize,
    /// Whether all genomes run the same tracks.
    #[serde(default)]
    pub track_seeds: TrackSeeds,
    /// How the returns of a genome's tracks are reduced to a fitness.
    #[serde(default)]
    pub fitness: Fitness,
    /// Negative rewards in a row after which a training rollout is cut off.
    #[serde(default)]
    pub patience: Patience,
    /// Steps after which a training rollout is truncated; by default those of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<Schedule>,
    /// Replay of hard tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// The strategy; by default that of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// The strategy's settings.
    #[serde(flatten)]
    pub options: Table,
}

const fn one() -> usize {
    1
}

/// A learner with its settings at a moment of a stage.
pub struct LearnerConfig {
    descriptor: &'static LearnerDescriptor,
    settings: Box<dyn LearnerSettings>,
    /// All settings, including the defaults.
    table: Table,
}

impl LearnerConfig {
    /// The learner's descriptor in the registry.
    pub const fn descriptor(&self) -> &'static LearnerDescriptor {
        self.descriptor
    }

    /// All settings, including the defaults.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Builds the learner.
    ///
    /// # Errors
    /// As [`LearnerSettings::build`].
    pub fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        self.settings.build(parts)
    }
}

/// The same learner with the same settings.
impl PartialEq for LearnerConfig {
    fn eq(&self, other: &Self) -> bool {
        (self.descriptor.name, &self.table) == (other.descriptor.name, &other.table)
    }
}

impl std::fmt::Debug for LearnerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.descriptor.name, self.table)
    }
}

/// Gives access to the methods of the settings.
impl std::ops::Deref for LearnerConfig {
    type Target = dyn LearnerSettings;

    fn deref(&self) -> &Self::Target {
        &*self.settings
    }
}

/// The keys of a stage, for hints on misspelt keys.
const KEYS: &str =
    "name, starts, steps, generations, tracks, track_seeds, fitness, patience, max_steps, replay, algorithm";

/// Upper limit of genomes or tracks; a larger number is a typing error.
const MOST: usize = 1 << 16;

impl Stage {
    /// A stage with all defaults.
    pub fn new(name: &str, steps: u64) -> Self {
        Stage {
            name: name.to_owned(),
            starts: 1,
            steps,
            generations: None,
            tracks: 1,
            track_seeds: TrackSeeds::Common,
            fitness: Fitness::Mean,
            patience: Patience::default(),
            max_steps: None,
            replay: None,
            algorithm: None,
            options: Table::new(),
        }
    }

    /// The keys of any stage.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        KEYS.split(", ")
    }

    /// Returns whether `key` is one of any stage; all others are settings of the strategy.
    pub fn has_key(key: &str) -> bool {
        Stage::keys().any(|known| known == key)
    }

    /// The same stage with a setting of the strategy.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.options.insert(key.to_owned(), value.into());
        self
    }

    /// The learner with its settings after `done` steps of a start; `default` is its name if the stage names
    /// none.
    ///
    /// # Errors
    /// When there is no such learner, or a setting is unknown or of the wrong kind.
    pub fn learner(&self, default: &str, done: u64) -> Result<LearnerConfig, TrainError> {
        self.parse(default, done).map_err(TrainError::recipe)
    }

    fn parse(&self, default: &str, done: u64) -> Result<LearnerConfig, String> {
        let (descriptor, options) = self.strategy(default, done)?;
        let settings = descriptor.settings(&options).map_err(|said| {
            let algorithm = descriptor.name;
            if let Some((given, known)) = near::unknown_word(&said).filter(|_| said.contains("unknown field"))
            {
                let hint = near::hint_of(given, known.into_iter().chain(KEYS.split(", ")));
                return format!("{said} ({algorithm}); or those of any stage: {KEYS}.{hint}");
            }
            let refused = descriptor.refusal(&options, "");
            refused.unwrap_or_else(|| format!("{said} ({algorithm}); correct it"))
        })?;
        Ok(LearnerConfig { descriptor, table: settings.table(), settings })
    }

    /// The learner and the settings that the stage has for it after `done` steps.
    fn strategy(&self, default: &str, done: u64) -> Result<(&'static LearnerDescriptor, Table), String> {
        let algorithm = self.algorithm.as_deref().unwrap_or(default);
        let descriptor = LEARNERS.find(algorithm).map_err(|error| error.to_string())?;
        let mut options = Table::new();
        for (key, value) in &self.options {
            let now = if Schedule::is_schedule(value) {
                Schedule::from_value(value).map_err(|why| format!("{key}: {why}"))?.value_at(done, self.steps)
            } else {
                value.clone()
            };
            options.insert(key.clone(), now);
        }
        Ok((descriptor, options))
    }

    /// Which of the learner's settings has the wrong form, by its name after `prefix`, and what it wants; `None` when none
    /// has. The learner is `default` if the stage names none.
    pub fn refusal(&self, default: &str, prefix: &str) -> Option<String> {
        let (descriptor, options) = self.strategy(default, 0).ok()?;
        descriptor.refusal(&options, prefix)
    }

    /// Writes out the learner and all of its settings, so that changed defaults of later versions have no
    /// effect.
    pub(super) fn complete(&mut self, default: &str) -> Result<(), TrainError> {
        let algorithm = self.algorithm.clone().unwrap_or_else(|| default.to_owned());
        for (key, value) in self.learner(default, 0)?.table {
            if !self.options.get(&key).is_some_and(Schedule::is_schedule) {
                self.options.insert(key, value);
            }
        }
        self.algorithm = Some(algorithm);
        Ok(())
    }

    /// Checks that the values are valid and fit together; `default` is the strategy if the stage names none,
    /// `max_steps` the length of whole episodes.
    pub(super) fn check(&self, default: &str, max_steps: u64) -> Result<(), TrainError> {
        self.check_numbers(default, max_steps).map_err(TrainError::recipe)
    }

    fn check_numbers(&self, default: &str, max_steps: u64) -> Result<(), String> {
        for (key, value) in [
            ("starts", self.starts as u64),
            ("steps", self.steps),
            ("generations", self.generations.unwrap_or(1)),
            ("tracks", self.tracks as u64),
        ] {
            if value == 0 {
                return Err(format!("{key} = 0; choose 1 or more"));
            }
        }
        if self.tracks > MOST {
            return Err(format!("tracks = {}; choose at most {MOST}", self.tracks));
        }
        match self.fitness {
            Fitness::Cvar(share) if !(share > 0.0 && share <= 1.0) => {
                return Err(format!("fitness: cvar = {share}; choose a share above 0 and at most 1"));
            }
            Fitness::Cvar(_) | Fitness::Median if self.tracks == 1 => {
                return Err(
                    "tracks = 1, and of one track mean, median and cvar are the same; raise tracks or leave \
                            fitness out"
                        .into(),
                );
            }
            _ => {}
        }
        if let Some(length) = &self.max_steps {
            let (least, most) = (length.smallest(), length.largest());
            if least < 1.0 || most > max_steps as f64 {
                let wrong = if least < 1.0 { least } else { most };
                return Err(format!(
                    "max_steps = {wrong}; choose from 1 to {max_steps}, the max_steps of the recipe"
                ));
            }
        }
        if let Some(replay) = &self.replay {
            if !(replay.share > 0.0 && replay.share < 1.0) {
                return Err(format!(
                    "replay: share = {}; choose one above 0 and below 1, or leave replay out",
                    replay.share
                ));
            }
            if replay.keep == 0 || replay.keep > MOST {
                return Err(format!("replay: keep = {}; choose from 1 to {MOST}", replay.keep));
            }
            if self.track_seeds == TrackSeeds::Separate {
                return Err("replay and track_seeds = \"separate\"; only tracks that all genomes drive tell which are \
                            hard: choose \"common\" or leave replay out"
                    .into());
            }
        }
        self.check_strategy(default)
    }

    fn check_strategy(&self, default: &str) -> Result<(), String> {
        let algorithm = self.algorithm.as_deref().unwrap_or(default);
        let fixed = LEARNERS.get(algorithm).is_some_and(|learner| !learner.schedulable);
        let mut corners = vec![0];
        for (key, value) in self.options.iter().filter(|(_, value)| Schedule::is_schedule(value)) {
            if fixed {
                let schedulable = LEARNERS.iter().filter(|learner| learner.schedulable);
                let names: Vec<&str> = schedulable.map(|learner| learner.name).collect();
                return Err(format!(
                    "{key} = {value}, but {algorithm} adapts its settings itself; write one value, or choose from: {}",
                    names.join(", ")
                ));
            }
            if self.options.contains_key("restarts") {
                return Err(format!("{key} = {value} and restarts; choose one of the two"));
            }
            let schedule = Schedule::from_value(value).map_err(|why| format!("{key}: {why}"))?;
            corners.extend(schedule.corners(self.steps));
        }
        for at in corners {
            let learner = self.parse(default, at)?;
            learner.check().map_err(|error| error.to_string())?;
            let population = learner.rows(1);
            if population > MOST {
                return Err(format!("population = {population}; choose at most {MOST}"));
            }
        }
        Ok(())
    }
}
