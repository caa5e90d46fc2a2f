//! A stage: a part of a run with a strategy and settings of its own.

use foveate_core::{LearnError, Learner, near};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::schedule::Schedule;
use super::values::{Fitness, Patience, Replay, TrackSeeds};
use crate::error::TrainError;
use crate::learners::{LEARNERS, LearnerDescriptor, LearnerParts, LearnerSettings};

/// A part of a run with settings of its own.
///
/// Keys that are none of these are the settings of the learner, such as `population`, `sigma`, `learning_rate`. With a
/// learner that does not adapt them by itself any number among them may be a [`Schedule`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What to call it in logs.
    pub name: String,
    /// Independent tries; the best goes on. In the first stage each begins with weights of its own.
    #[serde(default = "one")]
    pub starts: usize,
    /// Environment steps of each start. The generation that reaches the number is finished.
    pub steps: u64,
    /// Generations after which a start ends in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generations: Option<u64>,
    /// Tracks that every genome drives in a generation.
    #[serde(default = "one")]
    pub tracks: usize,
    /// Whether all genomes drive the same ones.
    #[serde(default)]
    pub track_seeds: TrackSeeds,
    /// What the returns of a genome's tracks come to.
    #[serde(default)]
    pub fitness: Fitness,
    /// Negative rewards in a row that a training rollout survives.
    #[serde(default)]
    pub patience: Patience,
    /// Steps after which a training rollout is over; those of the recipe if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<Schedule>,
    /// Drives hard tracks again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// The strategy; that of the recipe if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// The strategy's settings.
    #[serde(flatten)]
    pub options: Table,
}

const fn one() -> usize {
    1
}

/// A learner with its settings, as a stage has it at some moment.
pub struct LearnerConfig {
    descriptor: &'static LearnerDescriptor,
    settings: Box<dyn LearnerSettings>,
    /// All settings, every default written out.
    table: Table,
}

impl LearnerConfig {
    /// What the registry says of the learner.
    pub const fn descriptor(&self) -> &'static LearnerDescriptor {
        self.descriptor
    }

    /// All settings, every default written out.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// The learner itself.
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

/// Its settings answer for themselves.
impl std::ops::Deref for LearnerConfig {
    type Target = dyn LearnerSettings;

    fn deref(&self) -> &Self::Target {
        &*self.settings
    }
}

/// Its keys, for those who misspell one.
const KEYS: &str =
    "name, starts, steps, generations, tracks, track_seeds, fitness, patience, max_steps, replay, algorithm";

/// More genomes or tracks than this are a slip of the finger.
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

    /// The same with a setting of the strategy.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.options.insert(key.to_owned(), value.into());
        self
    }

    /// The learner with its settings after `done` steps of a start; `default` is its name if the stage names none.
    ///
    /// # Errors
    /// When there is no such learner, or a setting is unknown or of the wrong kind.
    pub fn learner(&self, default: &str, done: u64) -> Result<LearnerConfig, TrainError> {
        self.parse(default, done).map_err(TrainError::recipe)
    }

    fn parse(&self, default: &str, done: u64) -> Result<LearnerConfig, String> {
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
        let settings = descriptor.settings(&options).map_err(|said| {
            if let Some((given, known)) = near::unknown_word(&said) {
                let hint = near::hint_of(given, known.into_iter().chain(KEYS.split(", ")));
                return format!("{said} ({algorithm}); or those of any stage: {KEYS}.{hint}");
            }
            // The message names no key; the one that is wrong is wrong by itself.
            let wrong = options.iter().find(|(key, value)| {
                let alone = Table::from_iter([((*key).clone(), (*value).clone())]);
                descriptor.settings(&alone).is_err()
            });
            let key = wrong.map_or_else(String::new, |(key, value)| format!("{key} = {value}: "));
            format!("{key}{said} ({algorithm}); correct it")
        })?;
        Ok(LearnerConfig { descriptor, table: settings.table(), settings })
    }

    /// Writes out the learner and all of its settings, so that defaults of later versions change nothing.
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

    /// Checks that the numbers make sense together; `default` is the strategy if the stage names none, `max_steps` the
    /// length of whole episodes.
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
