//! Pictures as luma and half-size chroma planes, with a margin for motion vectors that point outside.

use foveate_core::Image;

/// Width of the margin around a luma plane in pixels; that of chroma is half as wide.
pub(crate) const MARGIN: usize = 32;

/// One plane of bytes with a margin on all sides.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) margin: usize,
    pub(crate) stride: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Plane {
    fn new(width: usize, height: usize, margin: usize) -> Self {
        let stride = width + 2 * margin;
        Plane { width, height, margin, stride, bytes: vec![0; stride * (height + 2 * margin)] }
    }

    /// Index of the byte at (x, y), which may be in the margin.
    pub(crate) fn at(&self, x: isize, y: isize) -> usize {
        let margin = self.margin as isize;
        ((y + margin) * self.stride as isize + x + margin) as usize
    }

    /// Returns an N x N block.
    pub(crate) fn block<const N: usize, const NN: usize>(&self, x: usize, y: usize) -> [u8; NN] {
        let mut out = [0; NN];
        for (row, to) in out.chunks_exact_mut(N).enumerate() {
            let from = self.at(x as isize, (y + row) as isize);
            to.copy_from_slice(&self.bytes[from..from + N]);
        }
        out
    }

    /// Writes an N x N block.
    pub(crate) fn set<const N: usize>(&mut self, x: usize, y: usize, block: &[u8]) {
        for (row, from) in block.chunks_exact(N).enumerate() {
            let to = self.at(x as isize, (y + row) as isize);
            self.bytes[to..to + N].copy_from_slice(from);
        }
    }

    /// Repeats the border pixels in the margin.
    pub(crate) fn extend(&mut self) {
        let (width, height, margin) = (self.width as isize, self.height as isize, self.margin);
        for y in 0..height {
            let (first, last) = (self.at(0, y), self.at(width - 1, y));
            let (left, right) = (self.bytes[first], self.bytes[last]);
            self.bytes[first - margin..first].fill(left);
            self.bytes[last + 1..=last + margin].fill(right);
        }
        let start = |y: isize, plane: &Plane| plane.at(-(margin as isize), y);
        let (top, bottom) = (start(0, self), start(height - 1, self));
        for y in 1..=margin as isize {
            let (above, below) = (start(-y, self), start(height - 1 + y, self));
            self.bytes.copy_within(top..top + self.stride, above);
            self.bytes.copy_within(bottom..bottom + self.stride, below);
        }
    }
}

/// A picture of whole macroblocks.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// Luma, blue difference, red difference.
    pub(crate) planes: [Plane; 3],
}

impl Picture {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let chroma = Plane::new(columns * 8, rows * 8, MARGIN / 2);
        Picture { planes: [Plane::new(columns * 16, rows * 16, MARGIN), chroma.clone(), chroma] }
    }

    /// Converts `image` (ITU-R BT.709, black at 16, white at 235; chroma is the mean of four pixels) and
    /// repeats its last column and row up to whole macroblocks.
    pub(crate) fn convert(&mut self, image: Image<'_>) {
        let (width, height) = (image.width(), image.height());
        let [luma, blue, red] = &mut self.planes;
        for pair in 0..height / 2 {
            let rows = [2 * pair, 2 * pair + 1].map(|y| &image.rgb()[y * width * 3..(y + 1) * width * 3]);
            for (i, row) in rows.iter().enumerate() {
                let start = luma.at(0, (2 * pair + i) as isize);
                let out = &mut luma.bytes[start..start + width];
                for (value, pixel) in out.iter_mut().zip(row.chunks_exact(3)) {
                    *value = luma_of(pixel[0], pixel[1], pixel[2]);
                }
            }
            let start = blue.at(0, pair as isize);
            let blues = &mut blue.bytes[start..start + width / 2];
            let reds = &mut red.bytes[start..start + width / 2];
            let quads = rows[0].chunks_exact(6).zip(rows[1].chunks_exact(6));
            for ((b, r), (above, below)) in blues.iter_mut().zip(reds).zip(quads) {
                let sum = |c: usize| {
                    i32::from(above[c])
                        + i32::from(above[c + 3])
                        + i32::from(below[c])
                        + i32::from(below[c + 3])
                };
                (*b, *r) = chroma_of(sum(0), sum(1), sum(2));
            }
        }
        for (plane, (width, height)) in
            self.planes.iter_mut().zip([(width, height), (width / 2, height / 2), (width / 2, height / 2)])
        {
            plane.pad(width, height);
        }
    }
}

impl Plane {
    /// Repeats column `width - 1` and row `height - 1` to the right and down.
    fn pad(&mut self, width: usize, height: usize) {
        for y in 0..height {
            let start = self.at(0, y as isize);
            let last = self.bytes[start + width - 1];
            self.bytes[start + width..start + self.width].fill(last);
        }
        let last = self.at(0, height as isize - 1);
        for y in height..self.height {
            let to = self.at(0, y as isize);
            self.bytes.copy_within(last..last + self.width, to);
        }
    }
}

/// 16 + 219 (0.2126 R + 0.7152 G + 0.0722 B) / 255, in units of 2^-16.
fn luma_of(r: u8, g: u8, b: u8) -> u8 {
    let weighted = 11966 * i32::from(r) + 40254 * i32::from(g) + 4064 * i32::from(b);
    ((weighted + (16 << 16) + (1 << 15)) >> 16) as u8
}

/// Blue and red difference from sums of four pixels: 128 + 224 (B - Y) / 1.8556 / 255 and 128 + 224 (R - Y) /
/// 1.5748 / 255.
fn chroma_of(r: i32, g: i32, b: i32) -> (u8, u8) {
    let blue = -6596 * r - 22189 * g + 28785 * b;
    let red = 28785 * r - 26145 * g - 2640 * b;
    let scale = |v: i32| ((v + (128 << 18) + (1 << 17)) >> 18) as u8;
    (scale(blue), scale(red))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_standard() {
        for (rgb, expect) in [
            ([0, 0, 0], [16, 128, 128]),
            ([255, 255, 255], [235, 128, 128]),
            ([255, 0, 0], [63, 102, 240]),
            ([0, 255, 0], [173, 42, 26]),
            ([0, 0, 255], [32, 240, 118]),
            ([102, 102, 102], [104, 128, 128]),
        ] {
            let pixels = rgb.repeat(18 * 18);
            let mut picture = Picture::new(2, 2);
            picture.convert(Image::new(18, 18, &pixels).expect("sizes agree"));
            for (plane, expect) in picture.planes.iter_mut().zip(expect) {
                plane.extend();
                assert!(
                    plane.bytes.iter().all(|&v| v == expect),
                    "{rgb:?}: {expect} everywhere, margins too"
                );
            }
        }
    }

    #[test]
    fn margins_repeat_the_border() {
        let mut plane = Plane::new(16, 16, 4);
        for y in 0..16 {
            for x in 0..16 {
                let at = plane.at(x, y);
                plane.bytes[at] = (y * 16 + x) as u8;
            }
        }
        plane.extend();
        for (x, y, expect) in [(-4, -4, 0), (19, -1, 15), (-2, 7, 112), (19, 19, 255), (3, 18, 243)] {
            assert_eq!(plane.bytes[plane.at(x, y)], expect, "({x}, {y})");
        }
    }
}
