//! Draws scenes made of planes, spheres, capsules, ellipsoids, cylinders and boxes, as MuJoCo's OpenGL renderer does, without
//! OpenGL.
//!
//! * [`Scene`]: a camera, [`Light`]s, [`Geom`]s and a sky, refilled in place before every picture.
//! * [`CubeMap`]: the texture of the sky, shared among scenes.
//!
//! **Invariant:** the crate knows no simulator and no task; it turns a scene into bytes, without input or output.

mod cube_map;
mod error;
mod scene;

pub use cube_map::{CubeMap, SkyGradient, Stars};
pub use error::RenderError;
pub use scene::{Camera, Checker, Geom, Light, LightKind, Scene, ShadowVolume, Shape};
