//! The integration tests of `foveate-gym`, in one program: it is linked once.

mod ant;
mod atari;
mod check;
mod common;
mod failures;
#[cfg(target_os = "linux")]
mod take_cover;
mod worlds;
