//! From a picture of bytes to the query and the key of every patch.

use crate::Level;
use crate::lanes::{Isa, Lanes, Task};

/// Queries and keys beyond ± this saturate, so that their products stay finite whatever the weights.
pub const LIMIT: f32 = 1e15;

/// Patches whose sums are kept in registers together.
const TOGETHER: usize = 8;

/// A linear layer, borrowed: `weight` is `[outputs, inputs]` row-major, `bias` is `[outputs]`.
#[derive(Debug, Clone, Copy)]
pub struct Linear<'a> {
    /// `[outputs, inputs]`, row-major.
    pub weight: &'a [f32],
    /// `[outputs]`.
    pub bias: &'a [f32],
}

/// Two linear layers over every patch of an RGB picture, the bytes divided by 255 along the way.
///
/// A patch is flattened row by row, pixel by pixel, channel by channel. One row of the result holds the query, the key
/// and zeros up to [`Projector::row_len`].
#[derive(Debug, Clone)]
pub struct Projector {
    width: usize,
    height: usize,
    patch: usize,
    stride: usize,
    dim: usize,
    /// `[row_len / 8, patch * patch * 3, 8]`
    taps: Vec<[f32; 8]>,
    /// `[row_len / 8, 8]`
    bias: Vec<[f32; 8]>,
}

/// Scratch space of [`Projector::project`]: the pixel rows under one row of patches.
#[derive(Debug, Clone)]
pub struct Strip(Vec<f32>);

impl Projector {
    /// A projector with zero weights for pictures of `width` × `height`, patches of side `patch` every `stride`
    /// pixels, to `dim` numbers each for query and key.
    ///
    /// # Panics
    /// When a size is zero or the patch does not fit.
    pub fn new(width: usize, height: usize, patch: usize, stride: usize, dim: usize) -> Self {
        assert!(patch > 0 && stride > 0 && dim > 0, "patch, stride and dim must be at least 1");
        assert!(patch <= width && patch <= height, "patch {patch} does not fit {width}x{height}");
        let eights = (2 * dim).div_ceil(8);
        Projector {
            width,
            height,
            patch,
            stride,
            dim,
            taps: vec![[0.0; 8]; eights * patch * patch * 3],
            bias: vec![[0.0; 8]; eights],
        }
    }

    /// Numbers per patch in the result: query and key, rounded up to a multiple of 8.
    pub const fn row_len(&self) -> usize {
        self.bias.len() * 8
    }

    /// Patches.
    pub const fn patches(&self) -> usize {
        self.rows() * self.columns()
    }

    /// Scratch space for [`Projector::project`].
    pub fn strip(&self) -> Strip {
        Strip(vec![0.0; self.patch * self.width * 3])
    }

    /// Takes new weights for pixels in 0 ..= 1; every query is multiplied by `query_scale` besides.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, query: Linear<'_>, key: Linear<'_>, query_scale: f64) {
        let inputs = self.patch * self.patch * 3;
        for (which, layer, scale) in [(0, query, query_scale), (1, key, 1.0)] {
            assert_eq!(layer.weight.len(), self.dim * inputs, "weights of layer {which}");
            assert_eq!(layer.bias.len(), self.dim, "biases of layer {which}");
            for (row, (weights, &bias)) in layer.weight.chunks_exact(inputs).zip(layer.bias).enumerate() {
                let output = which * self.dim + row;
                let (eight, lane) = (output / 8, output % 8);
                self.bias[eight][lane] = (f64::from(bias) * scale) as f32;
                for (tap, &w) in self.taps[eight * inputs..].iter_mut().zip(weights) {
                    tap[lane] = (f64::from(w) * scale / 255.0) as f32;
                }
            }
        }
    }

    /// Projects `rgb`, `[height, width, 3]`, into `out`, `[patches, row_len]`.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn project(&self, level: Level, rgb: &[u8], strip: &mut Strip, out: &mut [f32]) {
        assert_eq!(rgb.len(), self.width * self.height * 3, "bytes of the picture");
        assert_eq!(strip.0.len(), self.patch * self.width * 3, "scratch space of another projector");
        assert_eq!(out.len(), self.patches() * self.row_len(), "numbers in the result");
        level.run(Project { with: self, rgb, strip: &mut strip.0, out });
    }

    const fn columns(&self) -> usize {
        (self.width - self.patch) / self.stride + 1
    }

    const fn rows(&self) -> usize {
        (self.height - self.patch) / self.stride + 1
    }
}

struct Project<'a> {
    with: &'a Projector,
    rgb: &'a [u8],
    strip: &'a mut [f32],
    out: &'a mut [f32],
}

impl Task for Project<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let &Projector { width, patch, stride, .. } = self.with;
        let (columns, row_len, line) = (self.with.columns(), self.with.row_len(), width * 3);
        for (row, out) in self.out.chunks_exact_mut(columns * row_len).enumerate() {
            // Pixel rows shared with the row of patches above are moved up, the others are converted.
            let kept = if row == 0 { 0 } else { patch.saturating_sub(stride) };
            self.strip.copy_within((patch - kept) * line.., 0);
            let fresh = &self.rgb[(row * stride + kept) * line..(row * stride + patch) * line];
            for (to, &byte) in self.strip[kept * line..].iter_mut().zip(fresh) {
                *to = f32::from(byte);
            }
            for eight in 0..row_len / 8 {
                let mut column = 0;
                while column < columns {
                    if column + TOGETHER <= columns {
                        some::<I, TOGETHER>(isa, self.with, self.strip, eight, column, out);
                        column += TOGETHER;
                    } else if columns >= TOGETHER {
                        // The last few once more with their neighbours to the left: cheaper than one by one.
                        some::<I, TOGETHER>(isa, self.with, self.strip, eight, columns - TOGETHER, out);
                        column = columns;
                    } else {
                        some::<I, 1>(isa, self.with, self.strip, eight, column, out);
                        column += 1;
                    }
                }
            }
        }
    }
}

/// Eight outputs of `P` neighbouring patches, the first in `column`. Each sum runs over the taps in order, so that it
/// does not matter which patches are taken together.
#[inline(always)]
fn some<I: Isa, const P: usize>(
    isa: I,
    with: &Projector,
    strip: &[f32],
    eight: usize,
    column: usize,
    out: &mut [f32],
) {
    let (line, taps, row_len) = (with.width * 3, with.patch * 3, with.row_len());
    let weights = &with.taps[eight * with.patch * taps..(eight + 1) * with.patch * taps];
    let mut sums = [isa.load8(&with.bias[eight]); P];
    for (weights, line) in weights.chunks_exact(taps).zip(strip.chunks_exact(line)) {
        let mut pixels: [&[f32]; P] = [&[]; P];
        for (p, pixels) in pixels.iter_mut().enumerate() {
            let start = (column + p) * with.stride * 3;
            *pixels = &line[start..start + taps];
        }
        for t in 0..taps {
            let weight = isa.load8(&weights[t]);
            for p in 0..P {
                sums[p] = weight.mul_add(isa.splat8(pixels[p][t]), sums[p]);
            }
        }
    }
    for (p, sum) in sums.into_iter().enumerate() {
        let to = (column + p) * row_len + eight * 8;
        let to = out[to..to + 8].first_chunk_mut().expect("a slice of 8");
        sum.min(isa.splat8(LIMIT)).max(isa.splat8(-LIMIT)).store(to);
    }
}
