//! Training without I/O.
//!
//! * [`Recipe`]: the stages, budgets and choices of a run, as a user writes them in TOML.
//! * [`Training`]: the state machine of a run. Ask it for [`Work`](foveate_core::Work), have any
//!   [`Executor`](foveate_core::Executor) run it, give it the [`Experience`](foveate_core::Experience), and so on until
//!   there is no work.
//! * [`LEARNERS`]: every learner by its name. [`EvolutionLearner`] makes one of any evolution strategy; [`imitation`] is
//!   another.
//! * [`Event`]: what a piece of work led to, a line of the log. [`Curve`]: the numbers of a learning curve.
//! * [`Summary`]: the statistics of a list of returns.
//! * [`JobQueue`]: the order in which workers take the jobs of a batch.
//!
//! **Invariant:** no file, socket, thread, clock or environment variable is touched here, and no world or agent is known
//! by name.

pub mod balance;
mod curve;
mod error;
mod event;
mod evolution;
pub mod imitation;
mod job_queue;
mod learners;
mod recipe;
mod summary;
mod training;

pub use curve::Curve;
pub use error::TrainError;
pub use event::Event;
pub use evolution::EvolutionLearner;
pub use job_queue::JobQueue;
pub use learners::{
    JobSize, LEARNERS, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom,
    ParseSettings,
};
pub use recipe::{
    Fitness, Init, Interval, LearnerConfig, Patience, Recipe, Replay, ReplayJudge, Schedule, Selection,
    Stage, TrackSeeds, track_seed,
};
pub use summary::{NO_INTERVAL, Summary, decimals, interval_text};
pub use training::{FreshWeights, Training};
