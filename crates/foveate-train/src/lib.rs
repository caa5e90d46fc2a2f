//! Training without I/O.
//!
//! * [`Recipe`]: the stages, budgets and choices of a run, as a user writes them in TOML.
//! * [`Training`]: the state machine of a run. Ask it for a [`Task`], have its rollouts driven by anyone, give it the
//!   results, and so on until there is no task.
//! * [`Event`]: what a task led to, a line of the log. [`Curve`]: the numbers of a learning curve.
//! * [`Summary`]: the statistics of a list of returns.
//! * [`JobQueue`]: the order in which workers take the jobs of a batch.
//!
//! **Invariant:** no file, socket, thread, clock or environment variable is touched here, and no world or agent is known
//! by name.

pub mod balance;
mod curve;
mod error;
mod event;
mod job_queue;
mod recipe;
mod summary;
mod training;

pub use curve::Curve;
pub use error::TrainError;
pub use event::Event;
pub use job_queue::JobQueue;
pub use recipe::{
    Fitness, Init, Interval, Patience, Purpose, Recipe, Replay, ReplayJudge, Schedule, Selection, Stage,
    TrackSeeds, track_seed,
};
pub use summary::{NO_INTERVAL, Summary, decimals, interval_text};
pub use training::{FreshWeights, Rules, Task, Training};
