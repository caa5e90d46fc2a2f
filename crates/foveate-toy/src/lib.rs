//! A small world, agent and student for tests of the code around them, and a counter of allocations.
//!
//! * [`ToyWorld`]: a ball on a line, which an agent pushes to the middle. It may break on request.
//! * [`ToyPolicy`] and [`toy_agent`]: an agent of three parameters.
//! * [`ToyStudent`]: a student whose gradient is a formula. It may break on request, too.
//! * [`allocations`]: how often memory is allocated while something runs.
//!
//! Tests of [`foveate_core`] itself have their own: this crate depends on it.
//!
//! **Invariant:** only tests, examples and benchmarks depend on this crate.

pub mod allocations;
mod policy;
mod student;
mod world;

pub use policy::{ToyAgent, ToyMemory, ToyPolicy, toy_agent};
pub use student::ToyStudent;
pub use world::ToyWorld;
