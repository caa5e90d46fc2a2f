//! The integration tests of `foveate-registry`, in one program: it is linked once.

mod agents;
mod atari;
mod common;
mod derivatives;
mod names;
mod pong;
mod worlds;
