//! Native worlds: one folder per world.
//!
//! **Invariant:** this crate uses no file, clock or thread; a world does not depend on agents.

mod canvas;
pub mod car_racing;
pub mod cartpole_swingup;
pub mod digits;
pub mod lane;
pub mod levels;
pub mod minigrid;
pub mod random;
pub mod registry;
pub mod shift;
pub mod simple;
pub mod take_cover;
pub mod taught;
pub mod wrap;
