//! The 96 × 96 canvas; fills convex polygons, sampled at pixel centres.

use std::ops::Range;

use super::WORLD_ROWS;
use crate::car_racing::picture::SIDE;

/// Pixels from the left, pixels from the top.
pub(super) type Point = [f64; 2];

/// Packs a colour into the canvas format.
pub(super) const fn rgb([r, g, b]: [u8; 3]) -> u32 {
    u32::from_le_bytes([r, g, b, 0])
}

/// The pixels, rows from the top.
#[derive(Debug, Clone)]
pub(super) struct Canvas {
    /// `[96, 96]`, each [`rgb`].
    pixels: Vec<u32>,
    /// First column right of each edge, per row: for the upward and for the downward edges.
    crossings: [[u8; SIDE]; 2],
}

impl Default for Canvas {
    fn default() -> Self {
        Canvas { pixels: vec![0; SIDE * SIDE], crossings: [[0; SIDE]; 2] }
    }
}

impl Canvas {
    /// Paints all rows above the indicators.
    pub(super) fn clear(&mut self, color: u32) {
        self.fill_rows(0..WORLD_ROWS, color);
    }

    /// Paints whole rows.
    pub(super) fn fill_rows(&mut self, rows: Range<usize>, color: u32) {
        self.pixels[rows.start * SIDE..rows.end * SIDE].fill(color);
    }

    /// Fills a convex polygon, above the indicators only.
    pub(super) fn fill(&mut self, polygon: &[Point], color: u32) {
        for row in self.trace(polygon) {
            let (start, end) = self.span(row);
            self.pixels[start..end].fill(color);
        }
    }

    /// Gives each pixel of a convex polygon the colour `color(column, row)`.
    pub(super) fn shade(&mut self, polygon: &[Point], color: impl Fn(usize, usize) -> u32) {
        for row in self.trace(polygon) {
            let (start, end) = self.span(row);
            for (i, pixel) in self.pixels[start..end].iter_mut().enumerate() {
                *pixel = color(start - row * SIDE + i, row);
            }
        }
    }

    /// Fills an axis-aligned rectangle, anywhere.
    pub(super) fn fill_rectangle(&mut self, a: Point, b: Point, color: u32) {
        let [left, right] = [cell(a[0]).min(cell(b[0])), cell(a[0]).max(cell(b[0]))];
        for row in cell(a[1]).min(cell(b[1]))..cell(a[1]).max(cell(b[1])) {
            self.pixels[row * SIDE + left..row * SIDE + right].fill(color);
        }
    }

    /// Paints one pixel.
    pub(super) fn set(&mut self, column: usize, row: usize, color: u32) {
        self.pixels[row * SIDE + column] = color;
    }

    /// Stores where the edges of a convex polygon cross the centres of the rows; returns the rows it touches.
    ///
    /// An edge is always traced from its upper end, so that two polygons with a common edge agree on every
    /// pixel.
    fn trace(&mut self, polygon: &[Point]) -> Range<usize> {
        let (mut first, mut last) = (WORLD_ROWS, 0);
        let Some(&(mut a)) = polygon.last() else { return 0..0 };
        for &b in polygon {
            let (upper, lower, crossings) =
                if a[1] <= b[1] { (a, b, &mut self.crossings[0]) } else { (b, a, &mut self.crossings[1]) };
            a = b;
            let (start, end) = (cell(upper[1]).min(WORLD_ROWS), cell(lower[1]).min(WORLD_ROWS));
            if start >= end {
                continue;
            }
            (first, last) = (first.min(start), last.max(end));
            let slope = (lower[0] - upper[0]) / (lower[1] - upper[1]);
            for (row, crossing) in crossings[..end].iter_mut().enumerate().skip(start) {
                *crossing = cell(upper[0] + (row as f64 + 0.5 - upper[1]) * slope) as u8;
            }
        }
        first..last
    }

    /// The pixels of `row` between the crossings of the last polygon.
    fn span(&self, row: usize) -> (usize, usize) {
        let [a, b] = [usize::from(self.crossings[0][row]), usize::from(self.crossings[1][row])];
        (row * SIDE + a.min(b), row * SIDE + a.max(b))
    }

    /// Copies the canvas into `frame`, `[96, 96, 3]` bytes.
    pub(super) fn write(&self, frame: &mut [u8]) {
        // Eight pixels of three bytes fit three words.
        for (pixels, bytes) in self.pixels.chunks_exact(8).zip(frame.chunks_exact_mut(24)) {
            let p = |i: usize| u64::from(pixels[i]);
            bytes[..8].copy_from_slice(&(p(0) | p(1) << 24 | p(2) << 48).to_le_bytes());
            bytes[8..16].copy_from_slice(&(p(2) >> 16 | p(3) << 8 | p(4) << 32 | p(5) << 56).to_le_bytes());
            bytes[16..].copy_from_slice(&(p(5) >> 8 | p(6) << 16 | p(7) << 40).to_le_bytes());
        }
    }
}

/// The first of the 96 columns (or rows) whose centre is at or beyond `x`; 96 when there is none.
fn cell(x: f64) -> usize {
    // Adding 1.5 * 2^52 leaves the nearest integer in the low bits. A centre exactly on the line counts as
    // beyond, because of the small shift; it is far below the accuracy of the corners.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    const TIE: f64 = 1e-12;
    // Written so that NaN becomes 0.
    let x = if x > 0.0 { x } else { 0.0 };
    let x = if x < SIDE as f64 { x } else { SIDE as f64 };
    (((x - TIE) + WHOLE).to_bits() & 0x7f) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_begin_at_their_centre() {
        for (x, expected) in [
            (0.0, 0),
            (0.5, 0),
            (0.500_001, 1),
            (1.5, 1),
            (2.5, 2),
            (2.499, 2),
            (94.6, 95),
            (95.5, 95),
            (95.6, 96),
            (96.0, 96),
            (1e30, 96),
            (-1e30, 0),
            (f64::NAN, 0),
            (f64::INFINITY, 96),
            (f64::NEG_INFINITY, 0),
        ] {
            assert_eq!(cell(x), expected, "{x}");
        }
    }
}
