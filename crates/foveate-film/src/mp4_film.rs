//! Films as MP4 with H.264, which browsers and phones can play.

use foveate_core::Image;

use crate::FilmError;
use crate::h264::{Encoder, Format};
use crate::mp4::Index;

/// Number of pictures from one seekable picture to the next.
const KEY_EVERY: u32 = 250;

/// An MP4 encoder: takes frames, produces bytes.
///
/// [`Mp4Film::frame`] produces the *body* of the file, and [`Mp4Film::finish`] produces the *head* that must
/// precede it. With the head first, a browser can start to play before it has received the whole file.
pub struct Mp4Film {
    format: Format,
    encoder: Encoder,
    sizes: Vec<u32>,
    keys: Vec<u32>,
    body: u64,
    unit: Vec<u8>,
}

impl Mp4Film {
    /// A film of `width` × `height` pixels, both even and from 16 to 4096, at `fps` frames a second.
    ///
    /// # Errors
    /// When the size or the rate is out of range.
    pub fn new(width: usize, height: usize, fps: f64) -> Result<Self, FilmError> {
        let format = Format::new(width, height, fps)?;
        let encoder = Encoder::new(format, KEY_EVERY);
        Ok(Mp4Film { format, encoder, sizes: Vec::new(), keys: Vec::new(), body: 0, unit: Vec::new() })
    }

    /// Adds the next frame and appends its part of the body to `out`.
    ///
    /// # Errors
    /// When the frame does not have the film's size, or the file would exceed 4 GiB.
    pub fn frame(&mut self, frame: Image<'_>, out: &mut Vec<u8>) -> Result<(), FilmError> {
        let (width, height) = (frame.width(), frame.height());
        let Format { width: film_width, height: film_height, .. } = self.format;
        if (width, height) != (film_width, film_height) {
            return Err(FilmError::FrameSize { width, height, film_width, film_height });
        }
        self.unit.clear();
        let key = self.encoder.encode(frame, &mut self.unit);
        let size = self.unit.len() as u64 + 4;
        self.body += size;
        // An upper bound on the head, whose tables take at most eight bytes per frame.
        if self.body + 8 * self.sizes.len() as u64 + 4096 > u64::from(u32::MAX) {
            return Err(FilmError::TooLong { format: "MP4", frames: self.sizes.len() });
        }
        out.extend((self.unit.len() as u32).to_be_bytes());
        out.extend(&self.unit);
        self.sizes.push(size as u32);
        if key {
            self.keys.push(self.sizes.len() as u32);
        }
        Ok(())
    }

    /// Finishes the film; returns the head of the file.
    ///
    /// # Errors
    /// When the film has no frame.
    pub fn finish(self) -> Result<Vec<u8>, FilmError> {
        if self.sizes.is_empty() {
            return Err(FilmError::Empty);
        }
        let index = Index {
            format: self.format,
            sequence: &self.format.sequence(),
            picture: &Format::picture(crate::h264::QP),
            sizes: &self.sizes,
            keys: &self.keys,
        };
        index.head().ok_or(FilmError::TooLong { format: "MP4", frames: self.sizes.len() })
    }
}

#[cfg(test)]
mod tests;
