//! The pictures of the world: three for agents, one for people.
//!
//! Each draws a [`Scene`](super::scene::Scene) into a frame; none depends on the physics.

pub mod classic;
pub mod exact;
pub mod fast;
pub mod view;

/// Side of the agents' square picture, in pixels.
pub const SIDE: usize = 96;
/// Size of that picture in bytes: `[96, 96, 3]`, rows from the top, R, G, B.
pub const FRAME_BYTES: usize = SIDE * SIDE * 3;
