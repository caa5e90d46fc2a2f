//! Gaussian blur.

#![allow(clippy::inline_always, reason = "compiled anew for every instruction set, see `Plain`")]

use foveate_core::{Image, ImageBuf};
use foveate_kernels::Level;
use foveate_kernels::plain::Plain;

/// `image` blurred with a Gaussian of `sigma` pixels, cut off at 4 σ; beyond the edge the picture is mirrored, the edge
/// pixel itself repeated.
pub fn gaussian_blur(image: Image<'_>, sigma: f64) -> ImageBuf {
    let mut out = ImageBuf::black(image.width(), image.height());
    let mut kernel = kernel(sigma);
    // Both neighbours at distance 0 are the pixel itself.
    kernel[0] *= 0.5;
    if !out.rgb().is_empty() {
        Level::best().run_plain(Blur { image, kernel: &kernel, out: out.rgb_mut() });
    }
    out
}

/// A picture to blur with half a kernel, whose first weight counts twice.
struct Blur<'a> {
    image: Image<'a>,
    kernel: &'a [f32],
    out: &'a mut [u8],
}

impl Plain for Blur<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Blur { image, kernel, out } = self;
        let (width, height) = (image.width(), image.height());
        let reach = kernel.len() - 1;
        let mut across = vec![0.0_f32; width * height * 3];
        // A row with what is mirrored at both ends, so that every pixel finds its neighbours without asking.
        let mut wide = vec![0.0_f32; (width + 2 * reach) * 3];
        let columns: Vec<usize> =
            (0..width + 2 * reach).map(|i| mirrored(i as i64 - reach as i64, width) * 3).collect();
        let rows = image.rgb().chunks_exact(width * 3);
        for (sums, row) in across.chunks_exact_mut(width * 3).zip(rows) {
            for (pixel, &at) in wide.as_chunks_mut::<3>().0.iter_mut().zip(&columns) {
                *pixel = [row[at], row[at + 1], row[at + 2]].map(f32::from);
            }
            weigh(sums, kernel, |d| [&wide[(reach - d) * 3..], &wide[(reach + d) * 3..]]);
        }
        let mut sums = vec![0.0_f32; width * 3];
        let row = |y: i64| &across[mirrored(y, height) * width * 3..];
        for (y, bytes) in out.chunks_exact_mut(width * 3).enumerate() {
            weigh(&mut sums, kernel, |d| [row(y as i64 - d as i64), row(y as i64 + d as i64)]);
            for (byte, sum) in bytes.iter_mut().zip(&sums) {
                *byte = rounded(*sum);
            }
        }
    }
}

/// Sets every sum to that of `kernel[d] * (a + b)` over all distances d, where `a` and `b` are what `pair` gives for d. A few
/// sums at a time stay in registers.
#[inline(always)]
fn weigh<'a>(sums: &mut [f32], kernel: &[f32], pair: impl Fn(usize) -> [&'a [f32]; 2]) {
    const TOGETHER: usize = 32;
    let (blocks, rest) = sums.as_chunks_mut::<TOGETHER>();
    let done = blocks.len() * TOGETHER;
    for (block, at) in blocks.iter_mut().zip((0..).step_by(TOGETHER)) {
        let mut together = [0.0; TOGETHER];
        for (d, &weight) in kernel.iter().enumerate() {
            let [a, b] = pair(d).map(|values| &values[at..at + TOGETHER]);
            for i in 0..TOGETHER {
                together[i] += weight * (a[i] + b[i]);
            }
        }
        *block = together;
    }
    for (sum, at) in rest.iter_mut().zip(done..) {
        *sum = 0.0;
        for (d, &weight) in kernel.iter().enumerate() {
            let [a, b] = pair(d);
            *sum += weight * (a[at] + b[at]);
        }
    }
}

/// The nearest byte to a number that is not negative, of two the larger one; unlike [`f32::round`] it calls nothing.
#[inline(always)]
fn rounded(x: f32) -> u8 {
    let whole = x as i32;
    (whole + i32::from(x - whole as f32 >= 0.5)).clamp(0, 255) as u8
}

/// Half a Gaussian, from its middle outwards; the whole sums to 1.
fn kernel(sigma: f64) -> Vec<f32> {
    let reach = (4.0 * sigma).round().max(0.0) as usize;
    let half: Vec<f64> = (0..=reach).map(|d| (-0.5 * (d as f64 / sigma.max(1e-9)).powi(2)).exp()).collect();
    let sum = 2.0 * half.iter().sum::<f64>() - half[0];
    half.iter().map(|w| (w / sum) as f32).collect()
}

/// A position beyond the edges, mirrored into `0..len` with the edge itself repeated.
fn mirrored(at: i64, len: usize) -> usize {
    let len = len as i64;
    let at = at.rem_euclid(2 * len);
    (if at < len { at } else { 2 * len - 1 - at }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(rows: &[&[u8]]) -> ImageBuf {
        let rgb = rows.iter().flat_map(|row| row.iter().flat_map(|&v| [v; 3])).collect();
        ImageBuf::from_rgb(rows[0].len(), rows.len(), rgb).expect("sizes agree")
    }

    #[test]
    fn one_colour_stays_one_colour_and_light_is_kept() {
        let flat = grey(&[&[77; 9][..]; 7]);
        assert_eq!(gaussian_blur(flat.as_image(), 3.0), flat);
        let mut dot = ImageBuf::black(41, 41);
        dot.rgb_mut()[(20 * 41 + 20) * 3..][..3].fill(255);
        let blurred = gaussian_blur(dot.as_image(), 1.0);
        // The continuous Gaussian, normalised: 255 / (2 pi) in the middle.
        for (x, y, expect) in [(20, 20, 40.6), (21, 20, 24.6), (20, 21, 24.6), (21, 21, 14.9), (25, 20, 0.0)]
        {
            let value = f64::from(blurred.as_image().pixel(x, y)[0]);
            assert!((value - expect).abs() <= 1.0, "({x}, {y}): {value} instead of {expect}");
        }
    }

    #[test]
    fn bytes_are_rounded_as_the_standard_library_does() {
        let near = (0..=255_u16).flat_map(|byte| {
            let middle = f32::from(byte) + 0.5;
            [f32::from(byte), middle.next_down(), middle, middle.next_up()]
        });
        for x in near.chain([0.0, 255.00002, 0.5_f32.next_down()]) {
            assert_eq!(rounded(x), x.round().clamp(0.0, 255.0) as u8, "{x}");
        }
    }

    #[test]
    fn the_edge_mirrors() {
        for (at, expect) in [(-1, 0), (-2, 1), (3, 3), (4, 3), (5, 2), (-5, 3), (11, 3)] {
            assert_eq!(mirrored(at, 4), expect, "{at}");
        }
        let edge = gaussian_blur(grey(&[&[200, 0, 0, 0, 0, 0, 0, 0, 0, 0]]).as_image(), 1.0);
        // 0.399 of itself and 0.242 of its mirror image.
        assert_eq!(edge.rgb()[0], 128);
    }
}
