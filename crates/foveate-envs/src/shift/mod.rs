//! Distribution shifts of observations and actions: camera noise, delays, shuffled sensors, unsteady actions, ….
//!
//! A [`Plan`] names the active [operators](SHIFTS), their severities and the steps in which they are active; [`Shifted`]
//! applies a plan to a world. An operator changes the agent's observation or its action, never the world's own physics,
//! rewards or random stream, so episodes with and without a shift have the same track.
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
//! Random numbers come from the seed path `env seed / "shift" n / operator / step`, where `n` is the number of resets since
//! the world was seeded: a step of an episode is shifted the same way in every run, and a higher severity scales the same
//! draws.

mod action;
mod background;
mod background_image;
mod blur;
mod camera;
mod catalogue;
mod color;
mod descriptor;
mod dropout;
mod noise;
mod occlude;
pub mod operator;
mod parse;
mod plan;
mod senses;
mod sensors;
mod sets;
mod shifted;
mod timing;

pub use catalogue::SHIFTS;
pub use descriptor::{Knob, KnobKind, Senses, ShiftDescriptor, Target};
pub use plan::{KnobValue, MAX_SEVERITY, MissingPictures, Plan, Shift};
pub use sets::{SHIFT_SETS, ShiftSet};
pub use shifted::Shifted;

#[cfg(test)]
mod tests;
