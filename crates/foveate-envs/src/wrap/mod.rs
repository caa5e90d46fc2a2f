//! Wrappers: what stands between any world and an agent that learns from smaller, fewer or more steady pictures.
//!
//! A [`Wrappers`] says which are on; [`Wrapped`] is a world behind them. They always work in the same order, whatever order
//! they are written in: first those that take a step (`sticky`, `repeat`, `max`, `noop`, `lives`), then those that change
//! the picture (`grey`, `resize`, `stack`), then those that change what is told (`clip`, `limit`).
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
pub use parse::{Resize, Stack, Wrappers, catalogue};
pub use wrapped::Wrapped;
