//! Small worlds, agents and a student for tests of the code around them, and a counter of allocations.
//!
//! * [`ToyWorld`]: a ball on a line, which an agent pushes to the middle. It may break on request.
//! * [`ToyPolicy`] and [`toy_agent`]: an agent of three parameters.
//! * [`Sparks`] and [`Looker`], [`Gauges`] and [`Listener`]: worlds of pictures and of sensors, and agents whose
//!   attention is true, or false, by construction.
//! * [`ToyStudent`]: a student whose gradient is a formula. It may break on request, too.
//! * [`allocations`]: how often memory is allocated while something runs.
//! * [`needs`]: what tests need from outside, such as a Python with Gymnasium, and the record of those that lack it.
//! * [`test_alone`]: a test that runs again in a process of its own.
//! * [`oracle`]: scripts that run the real reference, beside which numbers are compared.
//!
//! Tests of [`foveate_core`] itself have their own: this crate depends on it.
//!
//! **Invariant:** only tests, examples and benchmarks depend on this crate.

pub mod allocations;
mod alone;
mod gauges;
pub mod needs;
pub mod oracle;
mod policy;
mod sparks;
mod student;
mod world;

pub use alone::test_alone;
pub use gauges::{Gauges, Listener, ListenerMemory, SIZES, SensorClaim};
pub use policy::{ToyAgent, ToyMemory, ToyPolicy, toy_agent};
pub use sparks::{Looker, LookerMemory, PlaceClaim, Sparks};
pub use student::ToyStudent;
pub use world::ToyWorld;
