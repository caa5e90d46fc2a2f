//! Handwritten digits: MNIST (`LeCun` et al. 1998), with pictures turned, shifted and covered with spots.
//!
//! Classification as episodes of one step: the world shows a picture, the agent chooses one of ten classes, and the reward is
//! 1 for the right one. The mean return over episodes is the accuracy. The changes of the pictures are those of *Deep
//! Reinforcement Learning in Action*, chapter 10, for the relational module.
//!
//! * [`idx`]: the data set's files.
//! * [`perturb`]: the changes of a picture.

mod env;
pub mod idx;
pub mod perturb;
mod request;

pub use env::{Digits, DigitsConfig};
pub use request::DESCRIPTOR;

/// Name of the world.
pub const ID: &str = "digits";
/// Width and height of a picture in pixels.
pub const SIDE: usize = 28;
/// Pixels of a picture.
pub const PIXELS: usize = SIDE * SIDE;
/// Number of classes.
pub const CLASSES: usize = 10;
