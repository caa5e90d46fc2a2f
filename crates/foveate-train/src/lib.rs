//! Training without I/O.
//!
//! * [`Recipe`]: the stages, budgets and choices of a run, as a user writes them in TOML.
//! * [`Training`]: the state machine of a run. Request [`Work`](foveate_core::Work), run it with any
//!   [`Executor`](foveate_core::Executor), pass the [`Experience`](foveate_core::Experience) back, and repeat
//!   until there is no work.
//! * [`LEARNERS`]: the registry of learners. [`EvolutionLearner`] makes one of any evolution strategy;
//!   [`imitation`], [`short_horizon`], [`dqn`], [`ppo`] and [`vtrace`] are others.
//! * [`Event`]: the result of a piece of work, a line of the log. [`Curve`]: the numbers of a learning curve.
//! * [`Summary`]: the statistics of a list of returns.
//! * [`JobQueue`]: the order in which workers take the jobs of a batch.
//!
//! **Invariant:** this crate uses no file, socket, thread, clock or environment variable, and knows no world
//! or agent by name.

pub mod balance;
mod curve;
mod descent;
mod descriptor;
pub mod dqn;
mod error;
mod event;
mod evolution;
mod fingerprint;
pub mod imitation;
mod job_queue;
mod learners;
mod learning;
pub mod population;
pub mod ppo;
mod recipe;
pub mod short_horizon;
mod stagnation;
mod sum_tree;
mod summary;
mod training;
pub mod vtrace;

pub use curve::Curve;
pub use descriptor::{
    JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom, ParseSettings,
};
pub use error::TrainError;
pub use event::Event;
pub use evolution::EvolutionLearner;
pub use job_queue::JobQueue;
pub use learners::LEARNERS;
pub use learning::Learning;
pub use recipe::{
    Fitness, Init, Interval, LearnerConfig, Patience, Recipe, Replay, ReplayJudge, Schedule, Selection,
    Stage, Teacher, TrackSeeds, track_seed,
};
pub use stagnation::Stagnation;
pub use summary::{NO_INTERVAL, Summary, TaskMean, by_task, decimals, interval_text};
pub use training::{FreshWeights, Training};
