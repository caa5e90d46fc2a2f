//! The integration tests of `foveate-cli`, in one program: it is linked once.

mod bad_input;
#[path = "common/browser.rs"]
mod browser;
mod commands;
mod common;
mod digits;
mod door_key;
mod export;
mod files_are_data;
#[cfg(target_os = "linux")]
mod full_disk;
mod gym;
mod gym_train;
mod hostile_flags;
#[cfg(unix)]
mod kills;
mod lab;
#[cfg(target_os = "linux")]
mod leftovers;
mod models;
mod newcomer;
mod no_files;
mod onnx;
#[cfg(unix)]
mod s3ta;
mod take_cover;
mod train;
mod trust;
mod voting;
mod worlds;
