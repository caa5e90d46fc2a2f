//! Composes and encodes pictures and films.
//!
//! * [`FrameComposer`] composes one frame: the rendered world beside the agent's observation, with score and
//!   action.
//! * [`encode_png`] encodes a frame as a PNG file.
//! * [`GifFilm`] and [`Mp4Film`] encode a sequence of frames as a film, frame by frame, with only a few
//!   frames in memory.
//! * [`gif_frames`] reads the frames of a GIF.
//!
//! Building needs only Rust: the crate contains its own H.264 encoder for [`Mp4Film`].
//!
//! **Invariant:** the input is pictures, the output is bytes. The crate accesses no file and no clock, and
//! the same frames produce the same bytes on every machine.

mod canvas;
mod error;
mod font;
mod frame_composer;
mod gif_film;
mod gif_frames;
mod h264;
mod mp4;
mod mp4_film;
mod palette;
mod png_picture;

pub use canvas::Rect;
pub use error::FilmError;
pub use font::Face;
pub use frame_composer::{AgentView, Dial, FrameComposer, FrameContent, FrameSettings, Mark, PictureKind};
pub use gif_film::GifFilm;
pub use gif_frames::{FilmLimits, gif_frames};
pub use mp4_film::Mp4Film;
pub use png_picture::encode_png;
