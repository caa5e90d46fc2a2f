//! CarRacing: a car on a random closed track, seen from above.
//!
//! [`CarRacing`] is Gymnasium's `CarRacing-v3` (and, with [`CarRacingConfig::classic`], gym 0.15.3's `CarRacing-v0`):
//! the same tracks per seed, the same physics, rewards and ends, to the bit on platforms whose `sin`, `cos` and `atan2`
//! are glibc's. A world knows its [`Scene`](scene::Scene); [`picture`] knows how to draw one.
//!
//! One step goes through the modules in this order: `car` (pedals to forces), `contacts` (who touches which tile),
//! `solver` (Box2D's island solver), then the picture, then the rules in `world`.

mod car;
mod config;
mod contacts;
mod driver;
mod env;
pub mod picture;
mod request;
pub mod scene;
pub mod shape;
mod solver;
pub mod track;
pub mod variants;
mod world;

pub use config::{CarRacingConfig, PictureKind, Seeding};
pub use env::CarRacing;
pub use request::DESCRIPTOR;
pub use world::DEFAULT_SEED;

/// The registered name of this world.
pub const ID: &str = "car-racing";
