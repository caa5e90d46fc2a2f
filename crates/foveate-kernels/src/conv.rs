//! A small convolution, without padding.

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task};
use crate::project::Linear;

/// Sizes of a [`Conv`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Channels of the input.
    pub channels: usize,
    /// Height of the input.
    pub height: usize,
    /// Width of the input.
    pub width: usize,
    /// Channels of the output.
    pub filters: usize,
    /// Side of a filter.
    pub size: usize,
    /// Distance between neighbouring applications.
    pub stride: usize,
}

impl ConvShape {
    /// Height and width of the output.
    pub const fn output(&self) -> (usize, usize) {
        ((self.height - self.size) / self.stride + 1, (self.width - self.size) / self.stride + 1)
    }

    /// Numbers in the output.
    pub const fn outputs(&self) -> usize {
        let (height, width) = self.output();
        self.filters * height * width
    }

    /// Numbers in a filter.
    const fn taps(&self) -> usize {
        self.channels * self.size * self.size
    }
}

/// A convolution with packed weights, followed by relu. Each sum adds the taps in the order channel, row,
/// column.
#[derive(Debug, Clone)]
pub struct Conv {
    shape: ConvShape,
    /// `[filters / 16, channels, size, size, 16]`
    weights: Vec<Block>,
    /// `[filters / 16, 16]`
    bias: Vec<Block>,
}

impl Conv {
    /// A convolution with all weights zero.
    ///
    /// # Panics
    /// When a size is zero or the filter does not fit.
    pub fn new(shape: ConvShape) -> Self {
        assert!(shape.channels > 0 && shape.filters > 0 && shape.size > 0 && shape.stride > 0, "{shape:?}");
        assert!(shape.size <= shape.height && shape.size <= shape.width, "a filter that fits: {shape:?}");
        let blocks = shape.filters.div_ceil(16);
        Conv {
            shape,
            weights: vec![Block::default(); blocks * shape.taps()],
            bias: vec![Block::default(); blocks],
        }
    }

    /// Its sizes.
    pub const fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// Sets the weights: `weight` is `[filters, channels, size, size]`.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, layer: Linear<'_>) {
        let taps = self.shape.taps();
        assert_eq!(layer.weight.len(), self.shape.filters * taps, "weights");
        assert_eq!(layer.bias.len(), self.shape.filters, "biases");
        for (filter, (row, &bias)) in layer.weight.chunks_exact(taps).zip(layer.bias).enumerate() {
            let (block, lane) = (filter / 16, filter % 16);
            self.bias[block].0[lane] = bias;
            for (to, &w) in self.weights[block * taps..].iter_mut().zip(row) {
                to.0[lane] = w;
            }
        }
    }

    /// Convolves `x`, `[channels, height, width]`, to `y`, `[filters, output height, output width]`.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn apply(&self, level: Level, x: &[f32], y: &mut [f32]) {
        let ConvShape { channels, height, width, .. } = self.shape;
        assert_eq!(x.len(), channels * height * width, "inputs");
        assert_eq!(y.len(), self.shape.outputs(), "outputs");
        level.run(Apply { conv: self, x, y });
    }
}

struct Apply<'a> {
    conv: &'a Conv,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Task for Apply<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Apply { conv, x, y } = self;
        match conv.shape.size {
            3 => filters_for::<I, 3>(isa, conv, x, y),
            4 => filters_for::<I, 4>(isa, conv, x, y),
            _ => filters_for::<I, 0>(isa, conv, x, y),
        }
    }
}

/// `S` is the side of a filter when it is known at compile time, else 0.
#[inline(always)]
fn filters_for<I: Isa, const S: usize>(isa: I, conv: &Conv, x: &[f32], y: &mut [f32]) {
    let blocks = conv.bias.len();
    let mut first = 0;
    // As many sums as there are registers for; that changes no result.
    while I::ROWS == 4 && first + 4 <= blocks {
        filters::<I, S, 4, 5>(isa, conv, first, x, y);
        first += 4;
    }
    while I::ROWS == 4 && first + 2 <= blocks {
        filters::<I, S, 2, 8>(isa, conv, first, x, y);
        first += 2;
    }
    for block in first..blocks {
        filters::<I, S, 1, 6>(isa, conv, block, x, y);
    }
}

/// `B` blocks of sixteen filters, from block `first` on, at `P` places together.
#[inline(always)]
fn filters<I: Isa, const S: usize, const B: usize, const P: usize>(
    isa: I,
    conv: &Conv,
    first: usize,
    x: &[f32],
    y: &mut [f32],
) {
    let shape = &conv.shape;
    let size = if S == 0 { shape.size } else { S };
    let taps = shape.channels * size * size;
    let (out_height, out_width) = shape.output();
    let places = out_height * out_width;
    let area = shape.height * shape.width;
    for start in (0..places).step_by(P) {
        let mut corners = [0; P];
        for (i, corner) in corners.iter_mut().enumerate() {
            // After the last place, it is computed again.
            let place = (start + i).min(places - 1);
            *corner = place / out_width * shape.stride * shape.width + place % out_width * shape.stride;
        }
        let mut sums = [[isa.splat16(0.0); P]; B];
        let mut weights: [&[Block]; B] = [&[]; B];
        for b in 0..B {
            sums[b] = [isa.load16(&conv.bias[first + b].0); P];
            weights[b] = &conv.weights[(first + b) * taps..(first + b + 1) * taps];
        }
        for row in 0..taps / size {
            let at = row / size * area + row % size * shape.width;
            let mut pixels: [&[f32]; P] = [&[]; P];
            for (pixels, corner) in pixels.iter_mut().zip(&corners) {
                *pixels = &x[corner + at..][..size];
            }
            let mut of_row: [&[Block]; B] = [&[]; B];
            for b in 0..B {
                of_row[b] = &weights[b][row * size..][..size];
            }
            for t in 0..size {
                for b in 0..B {
                    let weight = isa.load16(&of_row[b][t].0);
                    for i in 0..P {
                        sums[b][i] = weight.mul_add(isa.splat16(pixels[i][t]), sums[b][i]);
                    }
                }
            }
        }
        for (b, sums) in sums.into_iter().enumerate() {
            let filter = 16 * (first + b);
            let filters = 16.min(shape.filters - filter);
            for (i, sum) in sums.into_iter().enumerate().take(places - start) {
                let mut all = Block::default();
                sum.max(isa.splat16(0.0)).store(&mut all.0);
                for (n, &value) in all.0[..filters].iter().enumerate() {
                    y[(filter + n) * places + start + i] = value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_definition_on_every_level() {
        for (channels, height, width, filters, size, stride) in
            [(1, 1, 1, 1, 1, 1), (3, 9, 7, 5, 3, 2), (2, 5, 6, 33, 2, 1), (4, 8, 8, 16, 4, 2)]
        {
            let shape = ConvShape { channels, height, width, filters, size, stride };
            let numbers = |n: usize, salt: usize| -> Vec<f32> {
                (0..n).map(|i| (((i + salt) * 7919 % 1009) as f32 - 504.0) / 504.0).collect()
            };
            let (weight, bias) = (numbers(filters * shape.taps(), 1), numbers(filters, 2));
            let x = numbers(channels * height * width, 3);
            let mut conv = Conv::new(shape);
            conv.set(Linear { weight: &weight, bias: &bias });
            let (rows, columns) = shape.output();
            let mut first = None;
            for level in Level::available() {
                let mut y = vec![f32::NAN; shape.outputs()];
                conv.apply(level, &x, &mut y);
                for (at, got) in y.iter().enumerate() {
                    let (filter, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
                    let mut sum = bias[filter];
                    for (tap, w) in
                        weight[filter * shape.taps()..(filter + 1) * shape.taps()].iter().enumerate()
                    {
                        let (channel, dy, dx) = (tap / size / size, tap / size % size, tap % size);
                        sum += w * x[(channel * height + row * stride + dy) * width + column * stride + dx];
                    }
                    assert!((got - sum.max(0.0)).abs() < 1e-4, "{level} {shape:?} {at}: {got}, {sum}");
                }
                assert_eq!(&y, first.get_or_insert(y.clone()), "{level}");
            }
        }
    }
}
