//! The integration tests of `foveate-gpu`, in one program: it is linked once.

mod command;
mod host;
mod network;
mod training;
