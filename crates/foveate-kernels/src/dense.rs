//! A small linear layer, and tanh.

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task};
use crate::project::Linear;

/// A linear layer with packed weights: y = W x + b; each sum adds the inputs in order.
#[derive(Debug, Clone)]
pub struct Dense {
    inputs: usize,
    outputs: usize,
    /// `[groups, inputs, blocks of the group, 16]`: an input's weights for [`GROUP`] blocks of outputs lie side by side.
    weights: Vec<Block>,
    /// `[outputs / 16, 16]`
    bias: Vec<Block>,
}

/// Blocks of sixteen outputs in a group; the last group has as many as are left.
const GROUP: usize = 16;

/// From so many inputs on, those that are zero are left out: they add nothing, and behind relu their weights are half of
/// what would be read.
const MANY: usize = 256;

impl Dense {
    /// A layer with all weights zero.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        let blocks = outputs.div_ceil(16);
        Dense {
            inputs,
            outputs,
            weights: vec![Block::default(); blocks * inputs],
            bias: vec![Block::default(); blocks],
        }
    }

    /// Number of outputs.
    pub const fn outputs(&self) -> usize {
        self.outputs
    }

    /// Sets the weights.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn set(&mut self, layer: Linear<'_>) {
        assert_eq!(layer.weight.len(), self.inputs * self.outputs, "weights");
        assert_eq!(layer.bias.len(), self.outputs, "biases");
        for (output, &bias) in layer.bias.iter().enumerate() {
            let (block, lane) = (output / 16, output % 16);
            self.bias[block].0[lane] = bias;
            let row = &layer.weight[output * self.inputs..(output + 1) * self.inputs];
            let (first, pitch) = self.column(block);
            for (to, &w) in self.weights[first..].iter_mut().step_by(pitch).zip(row) {
                to.0[lane] = w;
            }
        }
    }

    /// The place of a block's weights for the first input, and the distance to those for the next.
    const fn column(&self, block: usize) -> (usize, usize) {
        let first = block / GROUP * GROUP;
        let left = self.bias.len() - first;
        (first * self.inputs + block - first, if left < GROUP { left } else { GROUP })
    }

    /// y = W x + b. W is finite.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn apply(&self, level: Level, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), self.inputs, "inputs");
        assert_eq!(y.len(), self.outputs, "outputs");
        level.run(Apply { layer: self, x, y });
    }

    /// Computes sixteen outputs: the bias, then the contribution of each input, in order.
    #[inline(always)]
    pub(crate) fn sums<I: Isa>(&self, isa: I, block: usize, x: &[f32]) -> I::V16 {
        let [sum] = self.sums_of::<I, 1>(isa, block, x);
        sum
    }

    /// The same for `B` blocks of a group, from block `first` on.
    #[inline(always)]
    fn sums_of<I: Isa, const B: usize>(&self, isa: I, first: usize, x: &[f32]) -> [I::V16; B] {
        let x = &x[..self.inputs];
        let mut sums = [isa.splat16(0.0); B];
        for (sum, bias) in sums.iter_mut().zip(&self.bias[first..first + B]) {
            *sum = isa.load16(&bias.0);
        }
        let (start, pitch) = self.column(first);
        let weights = &self.weights[start..];
        if x.len() < MANY {
            for (i, &x) in x.iter().enumerate() {
                let (weights, x) = (&weights[i * pitch..][..B], isa.splat16(x));
                for b in 0..B {
                    sums[b] = isa.load16(&weights[b].0).mul_add(x, sums[b]);
                }
            }
            return sums;
        }
        let mut at = [0_u16; MANY];
        for (chunk, x) in x.chunks(MANY).enumerate() {
            let mut count = 0;
            for (i, &x) in x.iter().enumerate() {
                at[count] = i as u16;
                count += usize::from(x != 0.0);
            }
            let weights = &weights[chunk * MANY * pitch..];
            for &i in &at[..count] {
                let i = usize::from(i);
                let (weights, x) = (&weights[i * pitch..][..B], isa.splat16(x[i]));
                for b in 0..B {
                    sums[b] = isa.load16(&weights[b].0).mul_add(x, sums[b]);
                }
            }
        }
        sums
    }

    /// Computes the outputs of as many groups of `B` blocks as are left from block `first` on, and returns the block
    /// behind them. `B` divides [`GROUP`], and `first` is a multiple of it.
    #[inline(always)]
    fn groups<I: Isa, const B: usize>(&self, isa: I, first: usize, x: &[f32], y: &mut [f32]) -> usize {
        let mut first = first;
        while first + B <= self.outputs / 16 {
            let sums = self.sums_of::<I, B>(isa, first, x);
            let (y, _) = y[16 * first..].as_chunks_mut::<16>();
            for b in 0..B {
                sums[b].store(&mut y[b]);
            }
            first += B;
        }
        first
    }
}

struct Apply<'a> {
    layer: &'a Dense,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Task for Apply<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Apply { layer, x, y } = self;
        // Many sums at a time, since an addition waits for the one before: as many as there are registers for, or as have
        // their weights side by side where reading these takes longest. That changes no result.
        let mut block = 0;
        if I::ROWS == 4 || layer.inputs >= MANY {
            block = layer.groups::<I, GROUP>(isa, block, x, y);
        }
        block = layer.groups::<I, 4>(isa, block, x, y);
        for (b, y) in y[16 * block..].chunks_mut(16).enumerate() {
            let mut all = Block::default();
            layer.sums(isa, block + b, x).store(&mut all.0);
            y.copy_from_slice(&all.0[..y.len()]);
        }
    }
}

/// Replaces every number by its hyperbolic tangent, with a relative error of at most 5e-7.
pub fn tanh(level: Level, xs: &mut [f32]) {
    level.run(Tanh(xs));
}

struct Tanh<'a>(&'a mut [f32]);

impl Task for Tanh<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for xs in self.0.chunks_mut(16) {
            let mut block = Block::default();
            block.0[..xs.len()].copy_from_slice(xs);
            crate::lanes::tanh(isa, isa.load16(&block.0)).store(&mut block.0);
            xs.copy_from_slice(&block.0[..xs.len()]);
        }
    }
}

/// Replaces every number by its logistic function, with an absolute error of at most 2e-7.
pub fn sigmoid(level: Level, xs: &mut [f32]) {
    level.run(Sigmoid(xs));
}

struct Sigmoid<'a>(&'a mut [f32]);

impl Task for Sigmoid<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for xs in self.0.chunks_mut(16) {
            let mut block = Block::default();
            block.0[..xs.len()].copy_from_slice(xs);
            crate::lanes::sigmoid(isa, isa.load16(&block.0)).store(&mut block.0);
            xs.copy_from_slice(&block.0[..xs.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_definition_on_every_level() {
        for (inputs, outputs) in [(1, 1), (16, 3), (20, 16), (7, 17), (33, 40), (3, 500), (600, 330)] {
            let weight: Vec<f32> =
                (0..inputs * outputs).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
            let bias: Vec<f32> = (0..outputs).map(|i| i as f32 / 8.0).collect();
            let x: Vec<f32> = (0..inputs).map(|i| ((i * 11 % 17) as f32 - 8.0) / 4.0).collect();
            let mut layer = Dense::new(inputs, outputs);
            layer.set(Linear { weight: &weight, bias: &bias });
            let sum =
                |o: usize| (0..inputs).fold(bias[o], |sum, i| weight[o * inputs + i].mul_add(x[i], sum));
            let truth: Vec<f32> = (0..outputs).map(sum).collect();
            let mut first: Option<Vec<f32>> = None;
            for level in Level::available() {
                let mut y = vec![f32::NAN; outputs];
                layer.apply(level, &x, &mut y);
                assert_eq!(y, truth, "{level}: {inputs} inputs");
                tanh(level, &mut y);
                for (y, truth) in y.iter().zip(&truth) {
                    assert!((y - truth.tanh()).abs() < 1e-6, "{level}: {y} against tanh {truth}");
                }
                assert_eq!(&y, first.get_or_insert(y.clone()), "{level}");
                let mut z = y.clone();
                sigmoid(level, &mut z);
                let logistic = |y: f32| 1.0 / (1.0 + (-y).exp());
                assert!(z.iter().zip(&y).all(|(z, &y)| (z - logistic(y)).abs() < 1e-6), "{level}");
            }
        }
    }
}
