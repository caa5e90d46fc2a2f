//! Every learner by its name.
//!
//! [`LEARNERS`] is the one list: a descriptor for each evolution strategy, for [imitation](crate::imitation), and for
//! whatever a program registers when it starts. Recipes, help, completions and tests read it; nothing else knows a
//! learner's name. A learner of one's own is a type with its settings ([`LearnerSettings`]) and one descriptor:
//!
//! ```
//! use foveate_core::Seed;
//! use foveate_train::{Fitness, LEARNERS, LearnerParts};
//!
//! let table = "population = 8\nsigma = 0.2".parse().expect("TOML");
//! let settings = LEARNERS.find("rank-es")?.settings(&table)?;
//! let parts = LearnerParts { weights: vec![0.0; 10], seed: Seed::root(1), student: None, fitness: Fitness::Mean };
//! let learner = settings.build(parts)?;
//! assert_eq!((settings.rows(10), learner.weights().len()), (8, 10));
//! assert!(LEARNERS.names().contains(&"imitation"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use foveate_core::{Descriptor, LearnError, Learner, Registry, Seed, Student};
use toml::Table;

use crate::recipe::Fitness;
use crate::{evolution, imitation};

/// All learners: evolution strategies, the default first, then the others.
pub static LEARNERS: Registry<LearnerDescriptor> = Registry::new("strategy", &LIST);

/// Learners that are no evolution strategies; one entry for each.
const OTHERS: [LearnerDescriptor; 1] = [imitation::DESCRIPTOR];

const COUNT: usize = evolution::COUNT + OTHERS.len();

static ALL: [LearnerDescriptor; COUNT] = {
    let mut all = [OTHERS[0]; COUNT];
    let mut i = 0;
    while i < COUNT {
        all[i] = if i < evolution::COUNT { evolution::DESCRIPTORS[i] } else { OTHERS[i - evolution::COUNT] };
        i += 1;
    }
    all
};

static LIST: [&LearnerDescriptor; COUNT] = {
    let mut list = [&ALL[0]; COUNT];
    let mut i = 0;
    while i < COUNT {
        list[i] = &ALL[i];
        i += 1;
    }
    list
};

/// Reads the settings of the learner of this name; an error says what is wrong in the words of the TOML reader.
pub type ParseSettings = fn(&str, &Table) -> Result<Box<dyn LearnerSettings>, String>;

/// Describes a learner.
#[derive(Debug, Clone, Copy)]
pub struct LearnerDescriptor {
    /// The name that recipes use.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// What it learns from.
    pub learns_from: LearnsFrom,
    /// Whether its settings may change while it learns, see [`Schedule`](crate::Schedule).
    pub schedulable: bool,
    /// Reads its settings, see [`LearnerDescriptor::settings`]; it is given the name, too.
    pub parse: ParseSettings,
}

impl LearnerDescriptor {
    /// Every setting that has a default, at its default.
    ///
    /// # Panics
    /// When it does not take its own defaults, which a test of every learner excludes.
    pub fn defaults(&self) -> Table {
        self.settings(&Table::new()).expect("every setting has a default").table()
    }

    /// Reads its settings; what is left out is at its default. Their numbers are not checked, see
    /// [`LearnerSettings::check`].
    ///
    /// # Errors
    /// When a setting is unknown or of the wrong kind, in the words of the TOML reader.
    pub fn settings(&self, table: &Table) -> Result<Box<dyn LearnerSettings>, String> {
        (self.parse)(self.name, table)
    }
}

impl Descriptor for LearnerDescriptor {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// What a learner learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnsFrom {
    /// Returns of episodes.
    Returns,
    /// Demonstrations of the world's expert, with a [`Student`] that computes gradients.
    Demonstrations,
    /// Transitions: observations, actions and rewards.
    Transitions,
}

/// The settings of a learner.
pub trait LearnerSettings: Send + Sync {
    /// Checks that the numbers make sense.
    ///
    /// # Errors
    /// When one does not; the message names the setting, its value and its range.
    fn check(&self) -> Result<(), LearnError>;

    /// All settings, every default written out.
    fn table(&self) -> Table;

    /// Rows of weights in the first work, for `params` parameters.
    fn rows(&self, params: usize) -> usize;

    /// The range that all weights of this learner keep to; `None` for anywhere.
    fn bounds(&self) -> Option<(f64, f64)> {
        None
    }

    /// The learner itself.
    ///
    /// # Errors
    /// When a setting makes no sense, the weights are empty or not finite, or something is missing that it needs.
    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError>;

    /// What it will hold in memory and save in a checkpoint, about.
    fn size(&self, job: &JobSize) -> LearnerSize;
}

/// What a learner is built from.
pub struct LearnerParts<'a> {
    /// `[n_params]`: where it begins.
    pub weights: Vec<f64>,
    /// All of its randomness is below this seed.
    pub seed: Seed,
    /// The part of the agent that computes gradients, if it has one.
    pub student: Option<&'a dyn Student>,
    /// What the returns of the episodes of a row come to.
    pub fitness: Fitness,
}

/// Sizes of a job, to tell what a learner will need for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobSize {
    /// Parameters of the agent.
    pub params: u64,
    /// Steps of the longest episode.
    pub longest: u64,
    /// Environment steps of the whole stage.
    pub steps: u64,
    /// Numbers that a step of a demonstration holds.
    pub demonstrated: u64,
}

/// What a learner will hold and save, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnerSize {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes of a checkpoint.
    pub saved: u64,
    /// What takes the most, in words.
    pub what: String,
    /// What to change if it is too much.
    pub remedy: &'static str,
}
