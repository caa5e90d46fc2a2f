//! The frames of a GIF.

use std::num::NonZeroU64;

use foveate_core::ImageBuf;
use gif::{ColorOutput, DecodeOptions, DisposalMethod, MemoryLimit};

use crate::FilmError;

/// What a film may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilmLimits {
    /// Most frames.
    pub frames: usize,
    /// Longest side, in pixels.
    pub side: usize,
    /// Most bytes of pixels, of all frames together.
    pub bytes: usize,
}

/// Shows all frames of a GIF to `each`, as a player does: what a frame leaves out is as in the one before, and black in the first.
///
/// The memory that it takes is that of four frames at most, however many there are.
///
/// # Errors
/// [`FilmError::Unreadable`] when it is broken, has no frame, or exceeds `limits`; frames before the error were shown.
pub fn gif_frames(
    bytes: &[u8],
    limits: FilmLimits,
    mut each: impl FnMut(&ImageBuf),
) -> Result<(), FilmError> {
    let bad = |why: String| FilmError::Unreadable { why };
    let said =
        |error: gif::DecodingError| bad(error.to_string().lines().next().unwrap_or_default().to_owned());
    let mut options = DecodeOptions::new();
    // Indices take a quarter of the memory of colours.
    options.set_color_output(ColorOutput::Indexed);
    let most = limits.bytes.min(limits.side.saturating_mul(limits.side));
    let most = NonZeroU64::new(most as u64).unwrap_or(NonZeroU64::MIN);
    options.set_memory_limit(MemoryLimit::Bytes(most));
    let mut decoder = options.read_info(bytes).map_err(said)?;
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    if width == 0 || height == 0 || width.max(height) > limits.side {
        return Err(bad(format!("{width}x{height} pixels, 1x1 to {0}x{0} are possible", limits.side)));
    }
    let most = limits.frames.min(limits.bytes / (3 * width * height));
    let of_all = decoder.global_palette().map(<[u8]>::to_vec);
    let mut picture = ImageBuf::black(width, height);
    let mut frames = 0;
    while let Some(frame) = decoder.read_next_frame().map_err(said)? {
        if frames == most {
            return Err(bad(format!("more than {most} frames of {width}x{height} pixels")));
        }
        let before = (frame.dispose == DisposalMethod::Previous).then(|| picture.clone());
        let palette = frame.palette.as_deref().or(of_all.as_deref()).unwrap_or_default();
        let shown = picture.rgb_mut();
        let (left, top) = (usize::from(frame.left).min(width), usize::from(frame.top));
        let (wide, tall) = (usize::from(frame.width), usize::from(frame.height));
        // What lies outside is left out, as players do.
        let inside = wide.min(width - left);
        for (y, row) in
            frame.buffer.chunks_exact(wide.max(1)).take(tall.min(height.saturating_sub(top))).enumerate()
        {
            let at = 3 * ((top + y) * width + left);
            for (pixel, &index) in shown[at..][..3 * inside].chunks_exact_mut(3).zip(row) {
                // As the decoder does: a colour that the palette lacks leaves the pixel as it was.
                let color = palette.get(3 * usize::from(index)..3 * usize::from(index) + 3);
                if let Some(color) = color.filter(|_| frame.transparent != Some(index)) {
                    pixel.copy_from_slice(color);
                }
            }
        }
        each(&picture);
        frames += 1;
        match (frame.dispose, before) {
            (DisposalMethod::Background, _) => {
                let shown = picture.rgb_mut();
                for y in top..(top + tall).min(height) {
                    shown[3 * (y * width + left)..][..3 * inside].fill(0);
                }
            }
            (_, Some(before)) => picture = before,
            _ => {}
        }
    }
    if frames == 0 {
        return Err(bad("it has no frame".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GifFilm;
    use gif::{Encoder, Frame};

    const LIMITS: FilmLimits = FilmLimits { frames: 10, side: 100, bytes: 100_000 };

    /// Frames at a place: left, top, width, height, indices of colours (255 is transparent), and what happens after it.
    fn gif(frames: &[([u16; 4], &[u8], DisposalMethod)]) -> Vec<u8> {
        let mut palette = vec![0; 3 * 256];
        palette[3..9].copy_from_slice(&[200, 0, 0, 0, 0, 200]);
        let mut encoder = Encoder::new(Vec::new(), 3, 2, &palette).expect("memory takes bytes");
        for ([left, top, width, height], indices, dispose) in frames {
            let frame = Frame {
                left: *left,
                top: *top,
                width: *width,
                height: *height,
                buffer: (*indices).into(),
                transparent: Some(255),
                dispose: *dispose,
                ..Frame::default()
            };
            encoder.write_frame(&frame).expect("memory takes bytes");
        }
        encoder.into_inner().expect("memory takes bytes")
    }

    fn read(bytes: &[u8], limits: FilmLimits) -> Result<Vec<ImageBuf>, FilmError> {
        let mut frames = vec![];
        gif_frames(bytes, limits, |frame| frames.push(frame.clone()))?;
        Ok(frames)
    }

    /// The red and the blue of each pixel, in units of 200.
    fn seen(frames: &[ImageBuf]) -> Vec<Vec<[u8; 2]>> {
        frames
            .iter()
            .map(|frame| frame.rgb().chunks(3).map(|rgb| [rgb[0] / 200, rgb[2] / 200]).collect())
            .collect()
    }

    #[test]
    fn frames_are_as_a_player_shows_them() {
        let (keep, clear, back) =
            (DisposalMethod::Keep, DisposalMethod::Background, DisposalMethod::Previous);
        let film = gif(&[
            ([0, 0, 3, 2], &[1, 1, 1, 1, 1, 1], keep),
            ([1, 0, 2, 1], &[2, 255], back),
            ([0, 1, 1, 1], &[2], clear),
            ([2, 1, 1, 1], &[255], keep),
        ]);
        let ([r, b, n], frames) = ([[1, 0], [0, 1], [0, 0]], read(&film, LIMITS).expect("a film"));
        assert_eq!(
            seen(&frames),
            [vec![r; 6], vec![r, b, r, r, r, r], vec![r, r, r, b, r, r], vec![r, r, r, n, r, r]]
        );
    }

    #[test]
    fn our_own_films_are_read() {
        let mut film = GifFilm::new(20, 10, 10.0).expect("a size");
        let mut bytes = Vec::new();
        let pictures: Vec<ImageBuf> =
            (0..5).map(|i| ImageBuf::from_rgb(20, 10, vec![50 * i; 600]).expect("its size")).collect();
        for picture in &pictures {
            film.frame(picture.as_image(), &mut bytes).expect("its size");
        }
        film.finish(&mut bytes).expect("frames");
        let frames = read(&bytes, LIMITS).expect("a film");
        assert_eq!(frames.len(), 5);
        for (frame, picture) in frames.iter().zip(&pictures) {
            let apart = frame.rgb().iter().zip(picture.rgb()).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(apart <= Some(4), "{apart:?}");
        }
    }

    #[test]
    fn hostile_films_are_errors_of_one_line() {
        let good = gif(&[
            ([0, 0, 3, 2], &[1; 6], DisposalMethod::Keep),
            ([0, 0, 3, 2], &[2; 6], DisposalMethod::Keep),
        ]);
        let refused = |bytes: &[u8], limits| read(bytes, limits).expect_err("refused").to_string();
        assert!(refused(&good, FilmLimits { frames: 1, ..LIMITS }).contains("more than 1 frames of 3x2"));
        assert!(refused(&good, FilmLimits { bytes: 35, ..LIMITS }).contains("more than 1 frames"));
        assert!(refused(&good, FilmLimits { side: 2, ..LIMITS }).contains("3x2 pixels"));
        assert!(refused(&good[..13], LIMITS).lines().count() == 1);
        assert!(refused(b"GIF89a", LIMITS).lines().count() == 1);
        // A frame that says it is huge, and lies outside of the film.
        let mut random = foveate_core::Seed::root(1).rng();
        for _ in 0..2000 {
            let mut broken = good.clone();
            for _ in 0..3 {
                let at = random.below(broken.len() as u64) as usize;
                broken[at] = random.below(256) as u8;
            }
            if let Err(error) = read(&broken, LIMITS) {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
        }
    }
}
