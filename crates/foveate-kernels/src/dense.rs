//! A small linear layer, and tanh.

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task};
use crate::project::Linear;

/// A linear layer with packed weights: y = W x + b; each sum adds the inputs in order.
#[derive(Debug, Clone)]
pub struct Dense {
    inputs: usize,
    outputs: usize,
    /// `[outputs / 16, inputs, 16]`
    weights: Vec<Block>,
    /// `[outputs / 16, 16]`
    bias: Vec<Block>,
}

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
            for (to, &w) in self.weights[block * self.inputs..].iter_mut().zip(row) {
                to.0[lane] = w;
            }
        }
    }

    /// y = W x + b.
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

    /// The same for `B` blocks, from block `first` on.
    #[inline(always)]
    fn sums_of<I: Isa, const B: usize>(&self, isa: I, first: usize, x: &[f32]) -> [I::V16; B] {
        let x = &x[..self.inputs];
        let mut sums = [isa.splat16(0.0); B];
        let mut weights: [&[Block]; B] = [&[]; B];
        for b in 0..B {
            sums[b] = isa.load16(&self.bias[first + b].0);
            weights[b] = &self.weights[(first + b) * self.inputs..][..self.inputs];
        }
        for (i, &x) in x.iter().enumerate() {
            let x = isa.splat16(x);
            for b in 0..B {
                sums[b] = isa.load16(&weights[b][i].0).mul_add(x, sums[b]);
            }
        }
        sums
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
        /// Blocks whose sums are computed together: an addition waits for the one before.
        const TOGETHER: usize = 4;
        let Apply { layer, x, y } = self;
        let mut groups = y.chunks_exact_mut(16 * TOGETHER);
        let mut block = 0;
        for y in &mut groups {
            let sums = layer.sums_of::<I, TOGETHER>(isa, block, x);
            for (sum, y) in sums.into_iter().zip(y.as_chunks_mut::<16>().0) {
                sum.store(y);
            }
            block += TOGETHER;
        }
        for y in groups.into_remainder().chunks_mut(16) {
            let mut all = Block::default();
            layer.sums(isa, block, x).store(&mut all.0);
            y.copy_from_slice(&all.0[..y.len()]);
            block += 1;
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
        for (inputs, outputs) in [(1, 1), (16, 3), (20, 16), (7, 17), (33, 40)] {
            let weight: Vec<f32> =
                (0..inputs * outputs).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
            let bias: Vec<f32> = (0..outputs).map(|i| i as f32 / 8.0).collect();
            let x: Vec<f32> = (0..inputs).map(|i| ((i * 11 % 17) as f32 - 8.0) / 4.0).collect();
            let mut layer = Dense::new(inputs, outputs);
            layer.set(Linear { weight: &weight, bias: &bias });
            // Order and fused rounding differ from the definition by a few units in the last place.
            let truth: Vec<f32> = (0..outputs)
                .map(|o| bias[o] + (0..inputs).map(|i| weight[o * inputs + i] * x[i]).sum::<f32>())
                .collect();
            let mut first: Option<Vec<f32>> = None;
            for level in Level::available() {
                let mut y = vec![f32::NAN; outputs];
                layer.apply(level, &x, &mut y);
                for (y, truth) in y.iter().zip(&truth) {
                    assert!((y - truth).abs() < 1e-4, "{level}: {y} against {truth}");
                }
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
