//! Computes the query and the key of every patch from a picture of bytes.

use foveate_core::Threads;

use crate::Level;
use crate::embedded::{Embedded, LIMIT};
use crate::lanes::{Block, Eight, Isa, Lanes, Task, flat};
use crate::threads::share;

/// A linear layer, borrowed: `weight` is `[outputs, inputs]` row-major, `bias` is `[outputs]`.
#[derive(Debug, Clone, Copy)]
pub struct Linear<'a> {
    /// `[outputs, inputs]`, row-major.
    pub weight: &'a [f32],
    /// `[outputs]`.
    pub bias: &'a [f32],
}

/// Factors that queries and keys are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scales {
    /// Factor of every query.
    pub query: f64,
    /// Factor of every key.
    pub key: f64,
}

/// Two linear layers applied to every patch of a picture of bytes, which are divided by 255. A pixel has
/// three channels, or as many as [`Projector::with_channels`] sets.
///
/// A patch is flattened in the order row, pixel, channel.
#[derive(Debug, Clone)]
pub struct Projector {
    width: usize,
    height: usize,
    channels: usize,
    patch: usize,
    stride: usize,
    dim: usize,
    /// `[per_row, patch * patch * channels, 8]`
    taps: Vec<Eight>,
    /// `[per_row, 8]`
    bias: Vec<Eight>,
}

/// Scratch space of [`Projector::project`]: for every thread, the pixel rows covered by one row of patches.
#[derive(Debug, Clone)]
pub struct Strip {
    /// `[threads]`
    parts: Vec<Vec<Block>>,
    threads: Threads,
}

/// Minimum number of products of a pixel with its weights that is worth a thread.
const LEAST: usize = 1 << 19;

impl Projector {
    /// A projector with zero weights for pictures of `width` × `height`, with square patches of side `patch`
    /// every `stride` pixels. Queries and keys have `dim` numbers each.
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
            channels: 3,
            patch,
            stride,
            dim,
            taps: vec![Eight::default(); eights * patch * patch * 3],
            bias: vec![Eight::default(); eights],
        }
    }

    /// The same projector for pixels of `channels` bytes, for example four for colour and depth. Resets the
    /// weights to zero.
    ///
    /// # Panics
    /// When `channels` is zero.
    #[must_use]
    pub fn with_channels(self, channels: usize) -> Self {
        assert!(channels > 0, "a pixel has at least one channel");
        let taps = vec![Eight::default(); self.bias.len() * self.patch * self.patch * channels];
        Projector { channels, taps, ..self }
    }

    /// Allocates the result of [`Projector::project`].
    pub fn embedded(&self) -> Embedded {
        Embedded::new(self.rows() * self.columns(), self.dim)
    }

    /// Allocates the scratch space of [`Projector::project`].
    pub fn strip(&self) -> Strip {
        self.strip_for(&Threads::one())
    }

    /// Scratch space for `threads` threads, which divide the rows of patches among them.
    pub fn strip_for(&self, threads: &Threads) -> Strip {
        let threads = threads.at_most(self.rows());
        Strip { parts: vec![vec![Block::default(); self.patch * self.pitch()]; threads.count()], threads }
    }

    /// Number of blocks per pixel row in the strip.
    const fn pitch(&self) -> usize {
        (self.width * self.channels).div_ceil(16)
    }

    /// Sets the weights, for pixels in 0 ..= 1. Queries and keys are also multiplied by their scales.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, query: Linear<'_>, key: Linear<'_>, scales: Scales) {
        let inputs = self.patch * self.patch * self.channels;
        for (which, layer, scale) in [(0, query, scales.query), (1, key, scales.key)] {
            assert_eq!(layer.weight.len(), self.dim * inputs, "weights of layer {which}");
            assert_eq!(layer.bias.len(), self.dim, "biases of layer {which}");
            for (row, (weights, &bias)) in layer.weight.chunks_exact(inputs).zip(layer.bias).enumerate() {
                let output = which * self.dim + row;
                let (eight, lane) = (output / 8, output % 8);
                self.bias[eight].0[lane] = (f64::from(bias) * scale) as f32;
                for (tap, &w) in self.taps[eight * inputs..].iter_mut().zip(weights) {
                    tap.0[lane] = (f64::from(w) * scale / 255.0) as f32;
                }
            }
        }
    }

    /// Projects `pixels`, `[height, width, channels]`.
    ///
    /// # Panics
    /// When the picture has another size, or `strip` or `out` come from a projector of other sizes.
    pub fn project(&self, level: Level, pixels: &[u8], strip: &mut Strip, out: &mut Embedded) {
        assert_eq!(pixels.len(), self.width * self.height * self.channels, "bytes of the picture");
        assert_eq!(strip.parts[0].len(), self.patch * self.pitch(), "scratch space of another projector");
        assert_eq!(out.patches(), self.rows() * self.columns(), "patches");
        assert_eq!(out.dim(), self.dim, "length of a query");
        let per_line = self.columns() * self.bias.len();
        let least = LEAST.div_ceil(per_line * self.patch * self.patch * self.channels);
        let lines = share(self.rows(), strip.parts.len(), least, 1);
        let parts = out.rows_mut().chunks_mut(lines * per_line).zip(&mut strip.parts).enumerate();
        strip.threads.for_each(parts, |(part, (out, strip))| {
            level.run(Project { with: self, pixels, first: part * lines, strip, out });
        });
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
    pixels: &'a [u8],
    /// The row of patches with which `out` begins.
    first: usize,
    strip: &'a mut [Block],
    out: &'a mut [Eight],
}

impl Task for Project<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        // With a stride known at compile time, addresses of neighbouring patches differ by constants.
        match self.with.stride {
            4 if self.with.channels == 3 => project::<I, 4>(isa, self),
            _ => project::<I, 0>(isa, self),
        }
    }
}

/// `S` is the stride when it is known at compile time, else 0.
#[inline(always)]
fn project<I: Isa, const S: usize>(isa: I, Project { with, pixels, first, strip, out }: Project<'_>) {
    let &Projector { width, patch, stride, .. } = with;
    let (columns, per_row, pitch, line) =
        (with.columns(), with.bias.len(), with.pitch(), width * with.channels);
    let mut converted = 0;
    for (row, out) in out.chunks_exact_mut(columns * per_row).enumerate() {
        // Pixel row y is stored in line y % patch of the strip; rows shared with the patches above are
        // already there.
        let top = (first + row) * stride;
        let end = top + patch;
        for y in top.max(converted)..end {
            let bytes = &pixels[y * line..(y + 1) * line];
            let to = &mut strip[y % patch * pitch..][..pitch];
            // Full groups of sixteen without bounds checks, then the remainder of the line.
            let (whole, rest) = bytes.as_chunks::<16>();
            let (whole_to, rest_to) = to.split_at_mut(whole.len());
            for (to, bytes) in whole_to.iter_mut().zip(whole) {
                *to = Block(bytes.map(f32::from));
            }
            for (to, &byte) in rest_to.iter_mut().flat_map(|to| &mut to.0).zip(rest) {
                *to = f32::from(byte);
            }
        }
        converted = end;
        let strip = flat(strip);
        for eight in 0..per_row {
            let mut column = 0;
            while column < columns {
                // As many patches as fit the registers. The last group repeats some neighbours to its left,
                // which is cheaper than processing its patches one by one.
                let left = columns - column;
                if left > 8 && columns >= 12 {
                    some::<I, 12, S>(isa, with, strip, top, eight, column.min(columns - 12), out);
                    column += 12;
                } else if columns >= 8 {
                    some::<I, 8, S>(isa, with, strip, top, eight, column.min(columns - 8), out);
                    column += 8;
                } else {
                    some::<I, 1, S>(isa, with, strip, top, eight, column, out);
                    column += 1;
                }
            }
        }
    }
}

/// Computes eight outputs of `P` neighbouring patches, the first in `column`, with `top` as their first pixel
/// row. Each sum adds the taps in order, so the result does not depend on how patches are grouped.
#[inline(always)]
fn some<I: Isa, const P: usize, const S: usize>(
    isa: I,
    with: &Projector,
    strip: &[f32],
    top: usize,
    eight: usize,
    column: usize,
    out: &mut [Eight],
) {
    // There are three channels whenever the stride is known, so that distances are constants in that case.
    let (stride, channels) = if S == 0 { (with.stride, with.channels) } else { (S, 3) };
    let (line, taps) = (with.pitch() * 16, with.patch * channels);
    let weights = &with.taps[eight * with.patch * taps..(eight + 1) * with.patch * taps];
    let mut sums = [isa.load8(&with.bias[eight].0); P];
    for (dy, weights) in weights.chunks_exact(taps).enumerate() {
        let window = (top + dy) % with.patch * line + column * stride * channels;
        let window = &strip[window..window + (P - 1) * stride * channels + taps];
        let mut pixels: [&[f32]; P] = [&[]; P];
        for (p, pixels) in pixels.iter_mut().enumerate() {
            *pixels = &window[p * stride * channels..p * stride * channels + taps];
        }
        for t in 0..taps {
            let weight = isa.load8(&weights[t].0);
            for p in 0..P {
                sums[p] = weight.mul_add(isa.splat8(pixels[p][t]), sums[p]);
            }
        }
    }
    for (p, sum) in sums.into_iter().enumerate() {
        let to = &mut out[(column + p) * with.bias.len() + eight];
        sum.min(isa.splat8(LIMIT)).max(isa.splat8(-LIMIT)).store(&mut to.0);
    }
}
