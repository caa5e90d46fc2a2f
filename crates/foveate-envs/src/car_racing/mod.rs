//! CarRacing: a car on a random closed track, seen from above.
//!
//! [`CarRacing`] reproduces Gymnasium's `CarRacing-v3` (and, with [`CarRacingConfig::classic`], gym 0.15.3's
//! `CarRacing-v0`): the same tracks per seed, physics, rewards and episode ends, bit-identical on platforms
//! that use glibc's `sin`, `cos` and `atan2`. A world produces its [`Scene`](scene::Scene); [`picture`] draws
//! it.
//!
//! One step runs these modules in order: `car` (pedals to forces), `contacts` (which wheel touches which
//! tile), `solver` (Box2D's island solver), then the picture, then the rules in `world`.

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
