//! Wrappers: action repeat, sticky actions, frame stacks, grey and resized pictures, reward clipping and limits, for any world.
//!
//! [`Wrappers`] names the active ones; [`Wrapped`] applies them to a world. The order is fixed, whatever order they are
//! written in: first those of steps (`choices`, `sticky`, `repeat`, `max`, `noop`, `lives`), then those of pictures (`grey`, `resize`,
//! `subtract`, `blank`, `stack`), then those of the outcome (`clip`, `limit`).
//!
//! ```
//! use foveate_core::{Action, Env, ObservationSpace, PixelShape};
//! use foveate_envs::car_racing::{CarRacing, CarRacingConfig};
//! use foveate_envs::wrap::Wrapped;
//!
//! let world = CarRacing::new(CarRacingConfig::default())?;
//! let mut world = Wrapped::new(Box::new(world), "repeat:4+grey+resize:48x48+stack:2".parse()?)?;
//! let shape = PixelShape { frames: 2, height: 48, width: 48, channels: 1 };
//! assert_eq!(world.spec().observation, ObservationSpace::Image(shape));
//! world.reset(Some(7));
//! world.step(Action::Continuous(&[0.0, 0.5, 0.0]))?; // four steps of the world
//! # Ok::<(), foveate_core::EnvError>(())
//! ```

mod area;
mod bilinear;
mod grey;
mod parse;
mod wrapped;

pub use area::Area;
pub use bilinear::Bilinear;
pub use grey::Grey;
pub use parse::{Blank, Resize, Stack, Subtract, Wrappers, catalogue};
pub use wrapped::Wrapped;
