//! Films as GIF: supported everywhere, 255 colours.

use std::borrow::Cow;

use foveate_core::{Image, ImageBuf};

use crate::FilmError;
use crate::palette::{Histogram, Palette};

/// Number of frames from which the palette is chosen, and the limit of their size in bytes.
const LOOK_AHEAD_FRAMES: usize = 24;
const LOOK_AHEAD_BYTES: usize = 64 << 20;
/// Number of colours in a palette; the 256th index means "unchanged".
const COLORS: usize = 255;
const AS_BEFORE: u8 = 255;

/// A GIF encoder: takes frames, produces bytes.
///
/// One palette is used for the whole film; it is chosen from the first 24 frames. Only the changes between
/// two frames are stored. GIF delays are hundredths of a second, and browsers slow down films with more than
/// 50 frames a second, so a film at 50 frames a second stores every second frame.
pub struct GifFilm {
    width: usize,
    height: usize,
    every: usize,
    /// Hundredths of a second per stored frame.
    pace: f64,
    offered: usize,
    kept: usize,
    waiting: Vec<ImageBuf>,
    running: Option<Running>,
}

struct Running {
    encoder: gif::Encoder<Vec<u8>>,
    palette: Palette,
    shown: Vec<u8>,
    next: Vec<u8>,
}

impl GifFilm {
    /// A film of `width` × `height` pixels that receives `fps` frames a second.
    ///
    /// # Errors
    /// When the size or the rate is out of range.
    pub fn new(width: usize, height: usize, fps: f64) -> Result<Self, FilmError> {
        let limit = usize::from(u16::MAX);
        if width == 0 || height == 0 || width > limit || height > limit {
            return Err(FilmError::Size {
                format: "GIF",
                width,
                height,
                min_width: 1,
                min_height: 1,
                max_width: limit,
                max_height: limit,
            });
        }
        if !(1.0..=240.0).contains(&fps) {
            return Err(FilmError::FrameRate { fps });
        }
        let every = (fps / 25.0).round().max(1.0) as usize;
        let pace = 100.0 * every as f64 / fps;
        Ok(GifFilm { width, height, every, pace, offered: 0, kept: 0, waiting: Vec::new(), running: None })
    }

    /// Adds the next frame and appends the bytes that are ready to `out`.
    ///
    /// # Errors
    /// When the frame does not have the film's size.
    pub fn frame(&mut self, frame: Image<'_>, out: &mut Vec<u8>) -> Result<(), FilmError> {
        let (width, height) = (frame.width(), frame.height());
        if (width, height) != (self.width, self.height) {
            return Err(FilmError::FrameSize {
                width,
                height,
                film_width: self.width,
                film_height: self.height,
            });
        }
        let kept = self.offered.is_multiple_of(self.every);
        self.offered += 1;
        if !kept {
            return Ok(());
        }
        if self.running.is_some() {
            return self.encode(frame, out);
        }
        self.waiting.extend(ImageBuf::from_rgb(width, height, frame.rgb().to_vec()));
        if self.waiting.len() == LOOK_AHEAD_FRAMES
            || self.waiting.len() * frame.rgb().len() >= LOOK_AHEAD_BYTES
        {
            self.start(out)?;
        }
        Ok(())
    }

    /// Finishes the film and appends the remaining bytes to `out`.
    ///
    /// # Errors
    /// When the film has no frame.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), FilmError> {
        if self.running.is_none() {
            self.start(out)?;
        }
        if let Some(running) = self.running {
            let file_end = running.encoder.into_inner()?;
            out.extend(file_end);
        }
        Ok(())
    }

    /// Chooses the palette and encodes the buffered frames.
    fn start(&mut self, out: &mut Vec<u8>) -> Result<(), FilmError> {
        if self.waiting.is_empty() {
            return Err(FilmError::Empty);
        }
        let mut histogram = Histogram::new();
        for frame in &self.waiting {
            histogram.count(frame.as_image());
        }
        let palette = histogram.palette(COLORS);
        let mut encoder = gif::Encoder::new(
            Vec::new(),
            self.width as u16,
            self.height as u16,
            palette.colors.as_flattened(),
        )?;
        encoder.set_repeat(gif::Repeat::Infinite)?;
        let pixels = self.width * self.height;
        self.running =
            Some(Running { encoder, palette, shown: Vec::new(), next: Vec::with_capacity(pixels) });
        for frame in std::mem::take(&mut self.waiting) {
            self.encode(frame.as_image(), out)?;
        }
        Ok(())
    }

    fn encode(&mut self, frame: Image<'_>, out: &mut Vec<u8>) -> Result<(), FilmError> {
        let Some(running) = &mut self.running else { return Ok(()) };
        running.next.clear();
        running.next.extend(frame.rgb().chunks_exact(3).map(|pixel| running.palette.index(pixel)));
        let width = self.width;
        let area = if self.kept == 0 {
            Some((0, 0, width, self.height))
        } else {
            changed(&running.shown, &running.next, width)
        };
        // A frame without a change still needs a delay: it is stored as one unchanged pixel.
        let (left, top, across, down) = area.unwrap_or((0, 0, 1, 1));
        let mut buffer = Vec::with_capacity(across * down);
        for y in top..top + down {
            let row = y * width + left..y * width + left + across;
            if self.kept == 0 {
                buffer.extend_from_slice(&running.next[row]);
            } else {
                let pairs = running.shown[row.clone()].iter().zip(&running.next[row]);
                buffer.extend(pairs.map(|(before, now)| if before == now { AS_BEFORE } else { *now }));
            }
        }
        std::mem::swap(&mut running.shown, &mut running.next);
        // Differences of rounded times do not accumulate rounding errors.
        let due = |frames: usize| (frames as f64 * self.pace).round();
        let delay = (due(self.kept + 1) - due(self.kept)).max(2.0) as u16;
        self.kept += 1;
        running.encoder.write_frame(&gif::Frame {
            delay,
            dispose: gif::DisposalMethod::Keep,
            transparent: Some(AS_BEFORE),
            left: left as u16,
            top: top as u16,
            width: across as u16,
            height: down as u16,
            buffer: Cow::Owned(buffer),
            ..gif::Frame::default()
        })?;
        out.append(running.encoder.get_mut());
        Ok(())
    }
}

/// The smallest rectangle (left, top, width, height) that contains every difference; `None` if there is none.
fn changed(before: &[u8], now: &[u8], width: usize) -> Option<(usize, usize, usize, usize)> {
    let rows = || before.chunks_exact(width).zip(now.chunks_exact(width));
    let top = rows().position(|(a, b)| a != b)?;
    let bottom = rows().rposition(|(a, b)| a != b)?;
    let (mut left, mut right) = (width, 0);
    for (a, b) in rows().take(bottom + 1).skip(top) {
        let differs = |(x, y): (&u8, &u8)| x != y;
        if let Some(first) = a.iter().zip(b).position(differs) {
            left = left.min(first);
            right = right.max(a.iter().zip(b).rposition(differs).unwrap_or(first));
        }
    }
    Some((left, top, right + 1 - left, bottom + 1 - top))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bright square that moves over a dark ground, by `step` pixels a frame.
    fn moving(frames: usize, step: usize) -> Vec<ImageBuf> {
        (0..frames)
            .map(|t| {
                let mut image = ImageBuf::black(40, 24);
                for y in 8..14 {
                    for x in 0..6 {
                        let at = (y * 40 + (x + t * step) % 40) * 3;
                        image.rgb_mut()[at..at + 3].copy_from_slice(&[250, 200, 90]);
                    }
                }
                image
            })
            .collect()
    }

    fn film(frames: &[ImageBuf], fps: f64) -> Vec<u8> {
        let mut film = GifFilm::new(40, 24, fps).expect("a small film");
        let mut file = Vec::new();
        for frame in frames {
            film.frame(frame.as_image(), &mut file).expect("the right size");
        }
        film.finish(&mut file).expect("frames were taken");
        file
    }

    /// Decodes a GIF as a viewer would: every picture shown, with its delay in hundredths of a second.
    fn play(file: &[u8]) -> Vec<(Vec<u8>, u16)> {
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::Indexed);
        let mut decoder = options.read_info(file).expect("a GIF file");
        let palette = decoder.global_palette().expect("one palette for all").to_vec();
        let width = usize::from(decoder.width());
        let mut screen = vec![0; width * usize::from(decoder.height()) * 3];
        let mut shown = Vec::new();
        while let Some(frame) = decoder.read_next_frame().expect("whole frames") {
            for (i, &index) in frame.buffer.iter().enumerate() {
                if frame.transparent != Some(index) {
                    let across = usize::from(frame.width);
                    let (x, y) = (usize::from(frame.left) + i % across, usize::from(frame.top) + i / across);
                    let color = &palette[usize::from(index) * 3..usize::from(index) * 3 + 3];
                    screen[(y * width + x) * 3..(y * width + x) * 3 + 3].copy_from_slice(color);
                }
            }
            shown.push((screen.clone(), frame.delay));
        }
        shown
    }

    #[track_caller]
    fn check(count: usize, step: usize, fps: f64, every: usize, delays: &[u16]) {
        let frames = moving(count, step);
        let shown = play(&film(&frames, fps));
        let expect: Vec<&ImageBuf> = frames.iter().step_by(every).collect();
        assert_eq!(shown.len(), expect.len(), "frames kept at {fps} per second");
        for (i, ((screen, delay), frame)) in shown.iter().zip(expect).enumerate() {
            assert!(screen == frame.rgb(), "frame {i} looks different");
            assert_eq!(*delay, delays[i % delays.len()], "time of frame {i}");
        }
    }

    #[test]
    fn a_viewer_sees_every_kept_frame() {
        check(1, 1, 20.0, 1, &[5]);
        check(40, 1, 20.0, 1, &[5]); // longer than the look-ahead
        check(40, 0, 20.0, 1, &[5]); // no motion
        check(40, 3, 50.0, 2, &[4]);
        check(30, 3, 30.0, 1, &[3, 4, 3]); // rounding of a third of a hundredth is compensated
        check(5, 3, 100.0, 4, &[4]);
    }

    #[test]
    fn only_changes_are_stored() {
        let (still, lively) = (film(&moving(20, 0), 20.0), film(&moving(20, 3), 20.0));
        assert!(still.len() + 500 < lively.len(), "{} against {}", still.len(), lively.len());
    }

    #[test]
    fn wrong_input_is_an_error() {
        assert!(matches!(GifFilm::new(0, 8, 25.0), Err(FilmError::Size { width: 0, .. })));
        assert!(matches!(GifFilm::new(8, 70_000, 25.0), Err(FilmError::Size { height: 70_000, .. })));
        for fps in [0.0, f64::NAN, 1e9] {
            assert!(matches!(GifFilm::new(8, 8, fps), Err(FilmError::FrameRate { .. })));
        }
        let mut film = GifFilm::new(8, 8, 25.0).expect("a small film");
        let wrong = ImageBuf::black(8, 9);
        assert!(matches!(film.frame(wrong.as_image(), &mut Vec::new()), Err(FilmError::FrameSize { .. })));
        assert!(matches!(film.finish(&mut Vec::new()), Err(FilmError::Empty)));
    }
}
