//! MuJoCo's physics, by its own library, which is opened at run time: nothing of it is linked, and Python is not needed.
//!
//! * [`Search`] finds the library, [`Library`] opens it and checks its version.
//! * [`Model`] is a compiled model; simulations share it.
//! * [`Data`] is one simulation: state, controls, steps, sensors.
//! * [`SceneView`] turns the state into a [`foveate_render::Scene`].
//!
//! A model of a stranger is compiled in a process of its own, with limits on memory and time: [`compiler`] says how a program starts
//! one.
//!
//! Errors inside of MuJoCo, which end the process by default, are returned as [`MujocoError`], and its warnings are collected
//! instead of printed.
//!
//! **Invariant:** all unsafe code is in `ffi.rs` and `ffi/jump.rs`, each block with its proof. The crate knows no task and no world; it searches for
//! files and reads environment variables only to find the library, and reads a model's file when it is asked to.

pub mod compiler;
mod data;
mod error;
mod ffi;
mod locate;
mod model;
mod scene;
mod versions;

pub use compiler::Limits;
pub use data::Data;
pub use error::MujocoError;
pub use ffi::{Body, Library, Sensor};
pub use locate::{Found, Search, VARIABLE};
pub use model::{Camera, Keyframe, Kind, Model};
pub use scene::SceneView;
