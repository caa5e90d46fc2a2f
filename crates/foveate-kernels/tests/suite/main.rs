//! The integration tests of `foveate-kernels`, in one program: it is linked once.

mod common;
mod estimators;
mod kernel_vote;
mod lstm_gradient;
mod matrix;
mod near_vote;
mod project;
mod spawned;
mod threads;
mod vote;
