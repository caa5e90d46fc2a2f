//! Pictures as runs of equal pixels: flat colours are short, and neither side works long for them.
//!
//! | bytes | what |
//! |---|---|
//! | u16, u16 | width and height in pixels, little endian |
//! | u8 × 4, as often as it takes | red, green, blue, and how many pixels in a row (1 to 255) have them; runs go on across rows |

use foveate_core::{Image, ImageBuf};

/// Bytes of width and height.
const HEAD: usize = 4;
/// Pixels that are compared at once where they are equal.
const STRIDE: usize = 8;

/// `image` as runs.
pub fn pack(image: Image<'_>) -> Vec<u8> {
    let rgb = image.rgb();
    let mut out = Vec::with_capacity(rgb.len() / 16 + HEAD);
    out.extend((image.width() as u16).to_le_bytes());
    out.extend((image.height() as u16).to_le_bytes());
    let mut start = 0;
    while start < rgb.len() {
        let mut end = start + 3;
        // A stretch is all of one colour when it equals itself a pixel later.
        while end + 3 * STRIDE <= rgb.len()
            && rgb[end..end + 3 * STRIDE] == rgb[end - 3..end + 3 * STRIDE - 3]
        {
            end += 3 * STRIDE;
        }
        while end < rgb.len() && rgb[end..end + 3] == rgb[start..start + 3] {
            end += 3;
        }
        let mut pixels = (end - start) / 3;
        while pixels > 0 {
            let run = pixels.min(255);
            out.extend([rgb[start], rgb[start + 1], rgb[start + 2], run as u8]);
            pixels -= run;
        }
        start = end;
    }
    out
}

/// The picture of what [`pack`] made; `None` for anything else, of nothing too.
pub fn unpack(packed: &[u8]) -> Option<ImageBuf> {
    let (head, run_length) = packed.split_at_checked(HEAD)?;
    let width = usize::from(u16::from_le_bytes([head[0], head[1]]));
    let height = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let mut rgb = Vec::with_capacity(3 * width * height);
    for run in run_length.chunks_exact(4) {
        for _ in 0..run[3] {
            rgb.extend(&run[..3]);
        }
    }
    ImageBuf::from_rgb(width, height, rgb)
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    /// Packs a picture of these runs and unpacks it again; returns the bytes it took.
    #[track_caller]
    fn check(width: usize, run_length: &[([u8; 3], usize)]) -> usize {
        let rgb: Vec<u8> = run_length.iter().flat_map(|(color, n)| color.repeat(*n)).collect();
        let image = ImageBuf::from_rgb(width, rgb.len() / 3 / width, rgb).expect("whole rows");
        let packed = pack(image.as_image());
        assert_eq!(unpack(&packed).as_ref(), Some(&image));
        packed.len()
    }

    #[test]
    fn there_and_back() {
        let [a, b] = [[1, 2, 3], [1, 2, 4]];
        assert_eq!(check(1, &[(a, 1)]), 8);
        assert_eq!(check(4, &[(a, 3), (b, 9)]), 12, "run_length go on across rows");
        assert_eq!(check(255, &[(a, 255)]), 8);
        assert_eq!(check(256, &[(a, 256)]), 12, "a run has 255 pixels at most");
        assert_eq!(check(100, &[(a, 600), (b, 200)]), 4 + 4 * 3 + 4);
        // Bytes that repeat without the pixel doing so.
        assert_eq!(check(2, &[([7, 7, 7], 1), ([7, 7, 8], 1)]), 12);
        for n in 1..40 {
            assert_eq!(check(1, &[(a, n), (b, 1), (a, n)]), 16);
        }
    }

    #[test]
    fn any_picture_comes_back() {
        let mut rng = Seed::root(5).rng();
        for colors in [2, 3, 200] {
            let run = |_| ([0, 0, rng.below(colors) as u8], 1 + rng.below(30) as usize);
            check(1, &(0..300).map(run).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_no_picture_is_none() {
        for wrong in
            [&[][..], &[1, 0, 1], &[1, 0, 1, 0], &[1, 0, 1, 0, 9, 9, 9, 2], &[2, 0, 1, 0, 9, 9, 9, 1, 9]]
        {
            assert!(unpack(wrong).is_none(), "{wrong:?}");
        }
    }
}
