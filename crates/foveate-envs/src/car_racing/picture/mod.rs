//! The pictures of the world: three that an agent may see, one for people.
//!
//! Each takes a [`Scene`](super::scene::Scene) and fills a frame; none knows physics.

pub mod classic;
pub mod exact;
pub mod fast;
pub mod view;

/// Side of the square picture that an agent sees, in pixels.
pub const SIDE: usize = 96;
/// Bytes of that picture: `[96, 96, 3]`, rows from the top, R, G, B.
pub const FRAME_BYTES: usize = SIDE * SIDE * 3;
