//! Native worlds, one folder per world.
//!
//! **Invariant:** no file, clock or thread is touched here; a world knows nothing of agents.

pub mod car_racing;
pub mod random;
pub mod registry;
pub mod shift;
pub mod take_cover;
pub mod wrap;
