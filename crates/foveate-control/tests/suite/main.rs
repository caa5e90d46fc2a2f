//! The integration tests of `foveate-control`, in one program: it is linked once.

mod model_world;
mod oracle_suite;
mod quadruped;
