//! What a learner says about itself: its [`LearnerDescriptor`], and the contract of its settings.

use foveate_core::forms::{self, Setting};
use foveate_core::{Descriptor, LearnError, Learner, Model, Seed};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::Table;

use crate::recipe::values::Fitness;

/// Reads the settings of the learner of this name; the error is the message of the TOML reader.
pub type ParseSettings = fn(&str, &Table) -> Result<Box<dyn LearnerSettings>, String>;

/// Reads settings of this type; see [`ParseSettings`].
///
/// # Errors
/// As [`ParseSettings`].
pub(crate) fn parse<S: LearnerSettings + DeserializeOwned + 'static>(
    _: &str,
    table: &Table,
) -> Result<Box<dyn LearnerSettings>, String> {
    let settings: Result<S, toml::de::Error> = table.clone().try_into();
    settings
        .map_or_else(|error| Err(error.message().trim().to_owned()), |settings| Ok(Box::new(settings) as _))
}

/// Describes a learner.
#[derive(Debug, Clone, Copy)]
pub struct LearnerDescriptor {
    /// The name that recipes use.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// What data it learns from.
    pub learns_from: LearnsFrom,
    /// True if its settings may change during training, see [`Schedule`](crate::Schedule).
    pub schedulable: bool,
    /// Reads its settings, see [`LearnerDescriptor::settings`]; the first argument is the learner's name.
    pub parse: ParseSettings,
}

impl LearnerDescriptor {
    /// All settings that have a default, with their default values.
    ///
    /// # Panics
    /// When the learner rejects its own defaults, which a test excludes for every learner.
    pub fn defaults(&self) -> Table {
        self.settings(&Table::new()).expect("every setting has a default").table()
    }

    /// Reads the learner's settings; omitted settings have their defaults. Values are not checked, see
    /// [`LearnerSettings::check`].
    ///
    /// # Errors
    /// When a setting is unknown or has the wrong type; the error is the message of the TOML reader.
    pub fn settings(&self, table: &Table) -> Result<Box<dyn LearnerSettings>, String> {
        (self.parse)(self.name, table)
    }

    /// Every setting with its form and its default.
    pub fn forms(&self) -> Vec<Setting> {
        forms::settings(&Value::Object(Map::new()), &|table| self.complete(table))
    }

    /// Which setting of `table` has the wrong form, by its name after `prefix`, and what it wants; `None` when none has.
    pub fn refusal(&self, table: &Table, prefix: &str) -> Option<String> {
        forms::refusal(&serde_json::to_value(table).ok()?, &|table| self.complete(table), prefix)
    }

    fn complete(&self, table: &Value) -> Result<Value, String> {
        let table = Table::deserialize(table).map_err(|error| error.to_string())?;
        serde_json::to_value(self.settings(&table)?.table()).map_err(|error| error.to_string())
    }
}

impl Descriptor for LearnerDescriptor {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// The data that a learner learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnsFrom {
    /// Returns of episodes.
    Returns,
    /// Demonstrations of the world's expert, with a [`Model`] that has a [student](Model::student).
    Demonstrations,
    /// The derivatives of the world's steps, with a [`Model`] that [learns through them](Model::study_world).
    Derivatives,
    /// Transitions: observations, actions and rewards.
    Transitions,
    /// Transitions, with a [`Model`] whose outputs are [values](foveate_core::OutputKind::Values) of actions.
    Values,
    /// Transitions, with a [`Model`] whose outputs are a [policy](foveate_core::OutputKind::Policy).
    Policies,
}

impl LearnsFrom {
    /// Returns whether a learner of this kind needs a [`Model`].
    pub const fn needs_model(self) -> bool {
        matches!(
            self,
            LearnsFrom::Demonstrations | LearnsFrom::Derivatives | LearnsFrom::Values | LearnsFrom::Policies
        )
    }
}

/// The settings of a learner.
pub trait LearnerSettings: Send + Sync {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// When a value is invalid; the message names the setting, its value and its range.
    fn check(&self) -> Result<(), LearnError>;

    /// All settings, including the defaults.
    fn table(&self) -> Table;

    /// Rows of weights in the first work, for `params` parameters; learners by gradients have one.
    fn rows(&self, params: usize) -> usize {
        let _ = params;
        1
    }

    /// The range of all weights of this learner; `None` if they are unbounded.
    fn bounds(&self) -> Option<(f64, f64)> {
        None
    }

    /// Builds the learner.
    ///
    /// # Errors
    /// When a setting is invalid, the weights are empty or not finite, or a part that the learner needs is
    /// missing.
    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError>;

    /// Estimates its memory and the size of its checkpoint.
    fn size(&self, job: &JobSize) -> LearnerSize;
}

/// The inputs of [`LearnerSettings::build`].
pub struct LearnerParts<'a> {
    /// `[n_params]`: the initial weights.
    pub weights: Vec<f64>,
    /// All randomness of the learner derives from this seed.
    pub seed: Seed,
    /// What the agent learns by gradients with, if there is such a part.
    pub model: Option<&'a dyn Model>,
    /// How the returns of the episodes of a row are reduced to a fitness.
    pub fitness: Fitness,
}

/// Sizes of a job, to estimate what a learner needs for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobSize {
    /// Parameters of the agent.
    pub params: u64,
    /// Steps of the longest possible episode.
    pub longest: u64,
    /// Environment steps of the whole stage.
    pub steps: u64,
    /// Episodes of a round for one genome.
    pub tracks: u64,
    /// Bytes of an observation.
    pub observed: u64,
    /// Numbers per step of a demonstration.
    pub demonstrated: u64,
}

/// Memory and checkpoint size of a learner, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnerSize {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes of a checkpoint.
    pub saved: u64,
    /// The largest part, in words.
    pub what: String,
    /// What to change if this is too large.
    pub remedy: &'static str,
}
