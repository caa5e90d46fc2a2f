//! Shifts: what a camera, a cable or a loose steering wheel may do to any world that shows a picture.
//!
//! A [`Plan`] says which [operators](SHIFTS) are on, how severe each is, and in which steps; [`Shifted`] is a world
//! to which a plan happens. An operator changes what the agent sees or what becomes of its action, never the world's own
//! physics, rewards or random stream, so an episode with a shift and one without it have the same track.
//!
//! ```
//! use foveate_core::{Action, Env};
//! use foveate_envs::car_racing::{CarRacing, CarRacingConfig};
//! use foveate_envs::shift::{Plan, Shifted};
//!
//! let world = CarRacing::new(CarRacingConfig::default())?;
//! let mut world = Shifted::new(Box::new(world), &"hue:2+noise:4@200".parse()?)?;
//! world.reset(Some(7));
//! world.step(Action::Continuous(&[0.0, 0.5, 0.0]))?;
//! world.set_plan(&"blob:3:x=0.4:y=0.3".parse::<Plan>()?)?; // from the next look on
//! # Ok::<(), foveate_core::EnvError>(())
//! ```
//!
//! What is random is drawn from `env seed / "shift" n / operator / step`, `n` being the number of resets since the world
//! was seeded: the same step of the same episode looks the same whoever plays it, and a higher severity makes the same
//! draws weigh more.

mod action;
mod background;
mod blur;
mod camera;
mod catalogue;
mod color;
mod dropout;
mod noise;
mod occlude;
pub mod operator;
mod parse;
mod plan;
mod shifted;
mod timing;

pub use catalogue::{Kind, Knob, SHIFTS, ShiftDescriptor, Target};
pub use plan::{MAX_SEVERITY, Plan, Setting, Shift};
pub use shifted::Shifted;

#[cfg(test)]
mod tests;
