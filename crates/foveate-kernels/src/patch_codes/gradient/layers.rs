//! The layers of keys and values on many patches, and the gradients of their weights.

use crate::lanes::{Block, Isa, Lanes, Task};

/// The inputs of a layer: `[rows, n]`, where row r begins at `r * one + first`.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) all: &'a [f32],
    pub(super) one: usize,
    pub(super) first: usize,
    pub(super) n: usize,
}

impl<'a> Inputs<'a> {
    fn rows(&self) -> usize {
        self.all.len() / self.one
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &'a [f32] {
        &self.all[row * self.one + self.first..][..self.n]
    }
}

/// A layer on all rows: `bias + weights · inputs`, summed in the order of the inputs.
pub(super) struct Forward<'a> {
    pub(super) inputs: Inputs<'a>,
    /// `[outputs / 16, n, 16]`
    pub(super) weights: &'a [Block],
    /// `[outputs / 16, 16]`
    pub(super) bias: &'a [Block],
    /// `[rows, outputs]`
    pub(super) out: &'a mut [f32],
    pub(super) outputs: usize,
}

impl Task for Forward<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if I::ROWS == 4 { self.grouped::<I, 8>(isa) } else { self.grouped::<I, 4>(isa) }
    }
}

impl Forward<'_> {
    /// `G` rows at a time.
    #[inline(always)]
    fn grouped<I: Isa, const G: usize>(self, isa: I) {
        let Forward { inputs, weights, bias, out, outputs } = self;
        for (group, out) in out.chunks_mut(G * outputs).enumerate() {
            let rows = out.len() / outputs;
            let mut x: [&[f32]; G] = [&[]; G];
            for (g, x) in x.iter_mut().enumerate() {
                // Behind the last row the same row again.
                *x = inputs.row(group * G + g.min(rows - 1));
            }
            for (block, (weights, bias)) in weights.chunks_exact(inputs.n).zip(bias).enumerate() {
                let mut sums = [isa.load16(&bias.0); G];
                for (i, weight) in weights.iter().enumerate() {
                    let weight = isa.load16(&weight.0);
                    for g in 0..G {
                        sums[g] = weight.mul_add(isa.splat16(x[g][i]), sums[g]);
                    }
                }
                let count = 16.min(outputs - 16 * block);
                for (sum, out) in sums.into_iter().zip(out.chunks_exact_mut(outputs)) {
                    let mut numbers = Block::default();
                    sum.store(&mut numbers.0);
                    out[16 * block..][..count].copy_from_slice(&numbers.0[..count]);
                }
            }
        }
    }
}

/// Rows whose products are added before the next inputs of a layer have their turn: they fit a cache.
const ROWS: usize = 256;

/// Gradient of the weights: adds `inputsᵀ d` to `sums`, summed in the order of the rows.
pub(super) struct Weights<'a> {
    pub(super) inputs: Inputs<'a>,
    /// `[rows, outputs / 16, 16]`
    pub(super) d: &'a [Block],
    /// `[n, outputs / 16, 16]`
    pub(super) sums: &'a mut [Block],
    /// outputs / 16
    pub(super) blocks: usize,
}

impl Task for Weights<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let (n, rows) = (self.inputs.n, self.inputs.rows());
        for start in (0..rows).step_by(ROWS) {
            let rows = start..rows.min(start + ROWS);
            for block in 0..self.blocks {
                let mut at = 0;
                while at < n {
                    at += if n - at >= 12 {
                        self.tile::<I, 12>(isa, rows.clone(), at, block)
                    } else if n - at >= 4 {
                        self.tile::<I, 4>(isa, rows.clone(), at, block)
                    } else {
                        self.tile::<I, 1>(isa, rows.clone(), at, block)
                    };
                }
            }
        }
    }
}

impl Weights<'_> {
    /// Some rows, `R` inputs from `at` on, and sixteen outputs; returns R.
    #[inline(always)]
    fn tile<I: Isa, const R: usize>(
        &mut self,
        isa: I,
        rows: std::ops::Range<usize>,
        at: usize,
        block: usize,
    ) -> usize {
        let Weights { inputs, d, sums, blocks } = self;
        let mut all = [isa.splat16(0.0); R];
        for (r, sum) in all.iter_mut().enumerate() {
            *sum = isa.load16(&sums[(at + r) * *blocks + block].0);
        }
        for row in rows {
            let x: &[f32; R] = inputs.row(row)[at..].first_chunk().expect("R inputs are left");
            let d = isa.load16(&d[row * *blocks + block].0);
            for r in 0..R {
                all[r] = d.mul_add(isa.splat16(x[r]), all[r]);
            }
        }
        for (r, sum) in all.into_iter().enumerate() {
            sum.store(&mut sums[(at + r) * *blocks + block].0);
        }
        R
    }
}
