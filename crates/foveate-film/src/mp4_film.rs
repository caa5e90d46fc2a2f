//! Films as MP4 with H.264: what browsers and phones play.

use foveate_core::Image;

use crate::FilmError;
use crate::h264::{Encoder, Format};
use crate::mp4::Index;

/// Pictures from one that players can jump to, to the next.
const KEY_EVERY: u32 = 250;

/// An MP4 film being made: give it frames, take the bytes.
///
/// The bytes that [`Mp4Film::frame`] gives are the *body* of the file, and [`Mp4Film::finish`] gives the *head* that
/// belongs before it; with the head first, a browser can start to play before all has arrived.
pub struct Mp4Film {
    format: Format,
    encoder: Encoder,
    sizes: Vec<u32>,
    keys: Vec<u32>,
    body: u64,
    unit: Vec<u8>,
}

impl Mp4Film {
    /// A film of `width` × `height` pixels, both even and from 16 to 4096, of `fps` frames a second.
    ///
    /// # Errors
    /// When the size or the rate is out of range.
    pub fn new(width: usize, height: usize, fps: f64) -> Result<Self, FilmError> {
        let format = Format::new(width, height, fps)?;
        let encoder = Encoder::new(format, KEY_EVERY);
        Ok(Mp4Film { format, encoder, sizes: Vec::new(), keys: Vec::new(), body: 0, unit: Vec::new() })
    }

    /// Takes the next frame and appends its part of the body to `out`.
    ///
    /// # Errors
    /// When the frame has not the film's size, or the file would exceed 4 GiB.
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
        // A generous allowance for the head, whose tables take at most eight bytes a frame.
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

    /// Ends the film; gives the head of the file.
    ///
    /// # Errors
    /// When no frame was taken.
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
