//! `CartPoleSwingUpHarder`: a cart on a short track has to swing its pole up and keep it there.
//!
//! [`CartPoleSwingUp`] reproduces the task of AttentionNeuron (Tang and Ha, The Sensory Neuron as a
//! Transformer, 2021): the same starts per seed (gym's seeding up to 0.20), the same equations in the
//! same order of operations, the same rewards. States and rewards are bit-identical to the original in Python
//! on platforms that use glibc's `sin`, `cos` and `pow`.
//!
//! *Harder* than other cart-pole tasks: position, angle and both velocities start anywhere in wide ranges, so
//! that many starts cannot be saved at all; returns are near 0 or above 750.

#![allow(clippy::inline_always, reason = "a batch of worlds is compiled for every instruction set")]

mod batch;
mod env;
mod expert;
mod physics;
mod request;
mod view;

pub use batch::CartPoleBatch;
pub use env::{CartPoleConfig, CartPoleSwingUp};
pub use physics::{CartPoleState, HALF_TRACK};
pub use request::DESCRIPTOR;

/// The registered name of this world.
pub const ID: &str = "cartpole-swingup-harder";
