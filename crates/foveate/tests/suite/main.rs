//! The integration tests of `foveate`, in one program: it is linked once.

mod examples;
mod names;
mod reproduce;
