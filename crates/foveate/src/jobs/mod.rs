//! Jobs: each is one value with everything that a person can say about it, and [`run`](Evaluate::run)s on a
//! [`Player`](crate::Player).
//!
//! Its fields are the arguments of the command (with the Cargo feature `command`), the keywords of the Python function, and its
//! JSON; their documentation is the command's help. What a field does not say has the value of the type's `Default`.

mod calibrate;
mod evaluate;
mod explain;
mod export;
mod heads;
mod reproduce;
mod stress;
mod train;
mod watch;

pub use calibrate::Calibrate;
pub use evaluate::Evaluate;
pub use explain::Explain;
pub use export::Export;
pub use heads::Heads;
pub use reproduce::{MakeCluster, Plan, Planned, Reproduce, ReproduceObserver, Reproduced};
pub use stress::{Stress, world_of};
pub use train::Train;
pub use watch::Watch;
