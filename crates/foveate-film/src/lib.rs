//! Pictures and films, encoded to bytes.
//!
//! * [`FrameComposer`] composes one frame: the world as people see it, beside what the agent sees, with score and action.
//! * [`encode_png`] turns a frame into a PNG file.
//! * [`GifFilm`] and [`Mp4Film`] turn a sequence of frames into a film, frame by frame, holding only a few at a time.
//!
//! Nothing but Rust is needed to build it: the H.264 encoder behind [`Mp4Film`] is its own.
//!
//! **Invariant:** pictures come in, bytes go out; no file and no clock is touched here, and the same frames give the
//! same bytes on every machine.

mod canvas;
mod error;
mod font;
mod frame_composer;
mod gif_film;
mod h264;
mod mp4;
mod mp4_film;
mod palette;
mod png_picture;

pub use canvas::Rect;
pub use error::FilmError;
pub use font::Face;
pub use frame_composer::{AgentView, Dial, FrameComposer, FrameContent, FrameSettings, Mark};
pub use gif_film::GifFilm;
pub use mp4_film::Mp4Film;
pub use png_picture::encode_png;
