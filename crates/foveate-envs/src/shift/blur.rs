//! A lens out of focus.

use super::operator::{Moment, Operator, Picture};

/// Gaussian blur, rows then columns; beyond the edge the edge goes on.
#[derive(Debug, Clone)]
pub(super) struct Blur {
    /// The picture after its rows were blurred.
    rows: Vec<u8>,
    /// One row or column with its edges continued.
    line: Vec<u8>,
}

/// The widest kernel reaches so many pixels to each side.
const REACH: usize = 64;

impl Blur {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Blur { rows: vec![0; width * height * 3], line: vec![0; (width.max(height) + 2 * REACH) * 3] }
    }
}

impl Operator for Blur {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let (kernel, reach) = kernel(now.amount * picture.scale());
        let kernel = &kernel[..=reach];
        let Picture { width, height, rgb } = picture;
        let stride = *width * 3;
        for y in 0..*height {
            let row = y * stride..(y + 1) * stride;
            let pixels = rgb[row.clone()].chunks_exact(3).map(|p| [p[0], p[1], p[2]]);
            lay(&mut self.line, pixels, reach);
            smooth(&self.line, kernel, self.rows[row].chunks_exact_mut(3));
        }
        for x in 0..*width {
            let column = self.rows[x * 3..].chunks(stride).map(|rest| [rest[0], rest[1], rest[2]]);
            lay(&mut self.line, column, reach);
            smooth(&self.line, kernel, rgb[x * 3..].chunks_mut(stride));
        }
    }
}

/// Half of a Gaussian kernel, its middle first, in 65,536ths that sum to one over both halves; and how far it reaches.
fn kernel(sigma: f64) -> ([u32; REACH + 1], usize) {
    let reach = ((3.0 * sigma).ceil() as usize).clamp(1, REACH);
    let weight = |i: usize| (-0.5 * (i as f64 / sigma).powi(2)).exp();
    let total = weight(0) + 2.0 * (1..=reach).map(weight).sum::<f64>();
    let mut kernel = [0; REACH + 1];
    for (i, slot) in kernel.iter_mut().enumerate().take(reach + 1).skip(1) {
        *slot = (weight(i) / total * 65536.0).round() as u32;
    }
    // The middle takes what rounding left over, so that a flat picture stays as it is.
    kernel[0] = 65536 - 2 * kernel[1..].iter().sum::<u32>();
    (kernel, reach)
}

/// Puts a line of pixels into `line`, its ends repeated `reach` times.
fn lay(line: &mut [u8], pixels: impl Iterator<Item = [u8; 3]>, reach: usize) {
    let mut at = reach;
    for pixel in pixels {
        line[at * 3..at * 3 + 3].copy_from_slice(&pixel);
        at += 1;
    }
    for i in 0..reach {
        line.copy_within(reach * 3..reach * 3 + 3, i * 3);
        line.copy_within((at - 1) * 3..at * 3, (at + i) * 3);
    }
}

/// Every pixel of `out` as the weighted mean of its neighbours in `line`. Only the first three bytes of each are touched.
fn smooth<'a>(line: &[u8], kernel: &[u32], out: impl Iterator<Item = &'a mut [u8]>) {
    let reach = kernel.len() - 1;
    for (x, pixel) in out.enumerate() {
        for (c, byte) in pixel.iter_mut().take(3).enumerate() {
            let at = |i: usize| u32::from(line[i * 3 + c]);
            let middle = x + reach;
            let mut sum = kernel[0] * at(middle);
            for (i, weight) in kernel.iter().enumerate().skip(1) {
                sum += weight * (at(middle - i) + at(middle + i));
            }
            *byte = ((sum + 32768) >> 16) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_sum_to_one_and_fall() {
        for sigma in [0.1, 0.5, 0.8, 1.2, 1.8, 2.6, 10.0] {
            let (kernel, reach) = kernel(sigma);
            assert_eq!(kernel[0] + 2 * kernel[1..].iter().sum::<u32>(), 65536, "{sigma}");
            assert!(kernel.is_sorted_by(|a, b| a >= b) && reach <= REACH, "{sigma}");
        }
    }
}
