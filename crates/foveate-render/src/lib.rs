//! Draws scenes made of planes, spheres, capsules, ellipsoids, cylinders and boxes as MuJoCo's OpenGL renderer does, without
//! OpenGL.
//!
//! * [`Renderer`]: draws pictures of one size.
//! * [`Scene`]: a camera, [`Light`]s, [`Geom`]s and a sky, refilled in place before every picture.
//! * [`CubeMap`]: the texture of the sky, shared among scenes.
//!
//! The picture is analytic: what lies behind the centre of each pixel is computed, with the fixed-function lights of OpenGL, hard
//! shadows, the mirror images of a reflective plane, a filtered checker on planes and, on edges, four samples per pixel. It
//! differs from software OpenGL by less than 0.5 of 255 in the mean over the tasks of the DeepMind Control suite; a test compares
//! them.
//!
//! Meshes, height fields, skins and textures other than a [`Checker`] on a plane cannot be drawn.
//!
//! **Invariant:** the crate knows no simulator and no task; it turns a scene into bytes, without input or output.
#![allow(
    clippy::inline_always,
    reason = "compiled anew for every instruction set, see `foveate_kernels::plain::Plain`"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "loops over the lanes of several arrays, which become vector instructions"
)]
#![allow(clippy::needless_bitwise_bool, reason = "a lazy operator is a branch, which lanes do not have")]

mod cube_map;
mod edges;
mod error;
mod frame;
mod lanes;
mod layer;
mod light;
mod plane;
mod renderer;
mod rows;
mod scene;
mod sky;
mod solid;
mod view;

pub use cube_map::{CubeMap, SkyGradient, Stars};
pub use error::RenderError;
pub use renderer::{RenderSettings, Renderer};
pub use scene::{Camera, Checker, Geom, Light, LightKind, Scene, ShadowVolume, Shape};
