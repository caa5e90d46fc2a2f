//! All parts of Foveate that use files, clocks, threads and processes.

pub mod atomic;
pub mod bench;
pub mod browser;
mod budget;
pub mod calibrate;
pub mod champion;
pub mod checkpoint;
pub mod clock;
pub mod cluster;
#[cfg(feature = "command")]
pub mod command;
pub mod compare;
pub mod config;
pub mod cost;
pub mod curve;
mod data_files;
pub mod error;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod failure;
pub mod fit;
pub mod folder;
pub mod image_threads;
pub mod import;
pub mod initial;
mod input;
pub mod interrupt;
pub mod job_cost;
pub mod lock;
pub mod npy;
pub mod npz;
pub mod parallel_model;
pub mod pictures;
mod pool;
pub mod progress;
pub mod replay;
pub mod reproduce;
pub mod run_name;
pub mod stress;
pub mod suggest;
mod teacher;
pub mod tensorboard;
pub mod tensors;
pub mod ticker;
pub mod train;
pub mod trust;
pub mod vector;
pub mod watch;
pub mod weights;
pub mod workers;
pub mod worlds;

pub use error::RunError;
pub use foveate_core::one_line;

/// The build: two programs with the same build give the same results. A hash of the sources, see `build.rs`.
pub const BUILD: &str = env!("FOVEATE_BUILD");
/// The version with its build, as in `0.1.0 (build 1a2b3c4d)`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (build ", env!("FOVEATE_BUILD"), ")");
