//! A picture file behind the world, as AttentionNeuron's tests swap CarRacing's grass for one.
//!
//! Pixels of exactly the key's colour (or close to it) show the file instead, which is fixed to the screen. The file
//! is stretched to the picture's size by `OpenCV`'s bilinear resizing, to the byte, which does not smooth.

use std::sync::Arc;

use foveate_core::ImageBuf;

use super::operator::{Moment, Operator, Picture};

/// CarRacing's two shades of grass in picture `classic`.
const GRASS: [[u8; 3]; 2] = [[102, 204, 102], [102, 230, 102]];
/// Binary places of a weight.
const PLACES: u32 = 11;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct BackgroundImage {
    /// `[height, width, 3]`: the file at the picture's size.
    shown: Vec<u8>,
    /// The file that `shown` was made from.
    of: Option<Arc<Vec<ImageBuf>>>,
}

impl BackgroundImage {
    pub(super) fn new(width: usize, height: usize) -> Self {
        BackgroundImage { shown: vec![0; width * height * 3], of: None }
    }
}

impl Operator for BackgroundImage {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let Some(file) = now.picture(2) else { return };
        let Some(image) = file.first() else { return };
        // Once for a file: allocates then alone.
        if self.of.as_ref().is_none_or(|of| !Arc::ptr_eq(of, file)) {
            stretch(image, [picture.width, picture.height], &mut self.shown);
            self.of = Some(Arc::clone(file));
        }
        let named = now.color(0).map(|key| [key; 2]);
        let keys = named.unwrap_or(GRASS);
        let tolerance = now.number(1, 0.0) as u8;
        let alpha = (now.amount * 256.0).round() as u32;
        for (pixel, other) in picture.rgb.chunks_exact_mut(3).zip(self.shown.chunks_exact(3)) {
            let near = |key: &[u8; 3]| pixel.iter().zip(key).all(|(a, &b)| a.abs_diff(b) <= tolerance);
            if !keys.iter().any(near) {
                continue;
            }
            for (byte, &other) in pixel.iter_mut().zip(other) {
                let mixed = u32::from(*byte) * (256 - alpha) + u32::from(other) * alpha;
                *byte = ((mixed + 128) >> 8) as u8;
            }
        }
    }
}

/// For a target pixel: two source pixels and their weights, which sum to 2,048.
struct Pair {
    at: [usize; 2],
    weight: [i64; 2],
}

/// The pairs of one direction. Along a row, pixels beyond an edge have no weight; along a column they are the edge's
/// own, whose two parts are rounded apart.
fn pairs(from: usize, to: usize, along_row: bool) -> Vec<Pair> {
    let scale = from as f64 / to as f64;
    let last = from as i64 - 1;
    (0..to)
        .map(|target| {
            let place = ((target as f64 + 0.5) * scale - 0.5) as f32;
            let mut first = place.floor() as i64;
            let mut share = place - first as f32;
            if along_row && (first < 0 || first >= last) {
                (first, share) = (first.clamp(0, last), 0.0);
            }
            let at = [first, first + 1].map(|at| at.clamp(0, last) as usize);
            let weight = [1.0 - share, share].map(|w| (w * (1 << PLACES) as f32).round_ties_even() as i64);
            Pair { at, weight }
        })
        .collect()
}

/// `OpenCV`'s `resize` with `INTER_LINEAR` of bytes: weights of 11 binary places, rows first.
fn stretch(image: &ImageBuf, [width, height]: [usize; 2], out: &mut [u8]) {
    let (rgb, stride) = (image.rgb(), image.width() * 3);
    let across = pairs(image.width(), width, true);
    let down = pairs(image.height(), height, false);
    for (row, target) in down.iter().zip(out.chunks_exact_mut((width * 3).max(1))) {
        for (column, pixel) in across.iter().zip(target.chunks_exact_mut(3)) {
            for (c, byte) in pixel.iter_mut().enumerate() {
                let sum = |y: usize| {
                    let at = |x: usize| i64::from(rgb[y * stride + x * 3 + c]);
                    at(column.at[0]) * column.weight[0] + at(column.at[1]) * column.weight[1]
                };
                let part = |i: usize| (row.weight[i] * (sum(row.at[i]) >> 4)) >> 16;
                *byte = ((part(0) + part(1) + 2) >> 2).clamp(0, 255) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_changed_as_opencv_does() {
        // cv2.resize of a picture whose bytes are 7 * i * i % 256.
        let image = |width: usize, height: usize| {
            let rgb = (0..width * height * 3).map(|i| (7 * i * i % 256) as u8).collect();
            ImageBuf::from_rgb(width, height, rgb).expect("sizes agree")
        };
        for ((width, height), to, expect) in CASES {
            let mut out = vec![0; to[0] * to[1] * 3];
            stretch(&image(*width, *height), *to, &mut out);
            assert_eq!(out, *expect, "{width}x{height}");
        }
    }

    type Case = ((usize, usize), [usize; 2], &'static [u8]);
    const CASES: &[Case] = &[
        (
            (5, 4),
            [3, 2],
            &[60, 58, 156, 134, 74, 156, 201, 125, 149, 117, 151, 71, 72, 176, 166, 148, 194, 169],
        ),
        (
            (3, 2),
            [5, 4],
            &[
                0, 7, 28, 25, 49, 87, 63, 112, 175, 176, 97, 185, 252, 87, 192, 14, 52, 41, 51, 81, 86, 107,
                124, 154, 162, 88, 183, 199, 65, 202, 41, 143, 66, 103, 144, 85, 196, 147, 113, 134, 72, 178,
                92, 22, 221, 55, 188, 79, 129, 176, 84, 240, 159, 92, 119, 63, 175, 39, 0, 231,
            ],
        ),
        ((1, 1), [2, 2], &[0, 7, 28, 0, 7, 28, 0, 7, 28, 0, 7, 28]),
        (
            (9, 2),
            [4, 3],
            &[
                39, 73, 120, 80, 175, 93, 62, 28, 232, 81, 46, 121, 113, 79, 108, 101, 146, 109, 63, 90, 227,
                46, 120, 128, 187, 86, 95, 123, 116, 124, 64, 152, 223, 11, 194, 135,
            ],
        ),
    ];
}
