//! The backward pass, from the last step to the first.

use super::{CHUNK, Learner, MOST_ROWS, Tape};
use crate::lanes::{Block, Isa, Lanes, flat};

impl Learner {
    /// Computes the gradient of the last forward pass and stores it in the tape's sums.
    #[inline(always)]
    pub(super) fn backward<I: Isa>(&mut self, isa: I, steps: usize) {
        let (units, pulls, told_len) = (self.units(), self.actions.div_ceil(16), self.told());
        let Tape { dh, dc, cell_sums, output_sums, output_bias_sums, .. } = &mut self.tape;
        for sums in [&mut *dh, dc, cell_sums, output_sums, output_bias_sums] {
            sums.fill(Block::default());
        }
        let mut end = steps;
        while end > 0 {
            let start = end.saturating_sub(CHUNK);
            for t in (start..end).rev() {
                self.step_back(isa, t, t - start);
            }
            let Tape { told, pull, dz, all_dz, cell_sums, output_sums, output_bias_sums, .. } =
                &mut self.tape;
            if !all_dz.is_empty() {
                let len = (end - start) * units * 4;
                all_dz[start * units * 4..end * units * 4].copy_from_slice(&dz[..len]);
            }
            let dz = dz[..(end - start) * units * 4].chunks_exact(units * 4);
            let here = told[start * told_len..end * told_len].chunks_exact(told_len);
            // h of a step is stored with the next step.
            let next = told[(start + 1) * told_len..(end + 1) * told_len].chunks_exact(told_len);
            let pull = pull[start * pulls..end * pulls].chunks_exact(pulls);
            if I::ROWS == MOST_ROWS {
                outer::<I, MOST_ROWS, 4>(isa, here.zip(dz), units * 4, cell_sums);
            } else {
                outer::<I, 2, 2>(isa, here.zip(dz), units * 4, cell_sums);
            }
            outer::<I, MOST_ROWS, 1>(isa, pull.clone().zip(next), units, output_sums);
            for pull in pull {
                for (sum, pull) in output_bias_sums.iter_mut().zip(pull) {
                    isa.load16(&sum.0).add(isa.load16(&pull.0)).store(&mut sum.0);
                }
            }
            end = start;
        }
    }

    /// One backward step: from the derivatives with respect to h and c, which later steps computed, to those
    /// with respect to z, and to h and c of the step before. Those with respect to z are stored at place `at`
    /// of the chunk.
    #[inline(always)]
    fn step_back<I: Isa>(&mut self, isa: I, t: usize, at: usize) {
        let (units, pulls) = (self.units(), self.actions.div_ceil(16));
        let Tape { kept, pull, dz, dh, dc, .. } = &mut self.tape;
        let pull = &flat(&pull[t * pulls..(t + 1) * pulls])[..self.actions];
        let dz = &mut dz[at * units * 4..(at + 1) * units * 4];
        let one = isa.splat16(1.0);
        for (block, kept) in kept[t * units..(t + 1) * units].iter().enumerate() {
            let mut pulled = isa.splat16(0.0);
            for (&pull, weights) in pull.iter().zip(self.output_rows.chunks_exact(units)) {
                pulled = isa.load16(&weights[block].0).mul_add(isa.splat16(pull), pulled);
            }
            let pulled = isa.load16(&dh[block].0).add(pulled);
            let [i, f, g, o, c, tanh_c] =
                isa.load_all([&kept.i, &kept.f, &kept.g, &kept.o, &kept.c, &kept.tanh_c]);
            let turned = pulled.mul_add(o.mul(one_less_square(isa, tanh_c)), isa.load16(&dc[block].0));
            turned.mul(f).store(&mut dc[block].0);
            let dz = &mut dz[block * 4..(block + 1) * 4];
            turned.mul(g.mul(i).mul(one.sub(i))).store(&mut dz[0].0);
            turned.mul(c.mul(f).mul(one.sub(f))).store(&mut dz[1].0);
            turned.mul(i.mul(one_less_square(isa, g))).store(&mut dz[2].0);
            pulled.mul(tanh_c.mul(o).mul(one.sub(o))).store(&mut dz[3].0);
        }
        for (dh, back) in dh.iter_mut().zip(self.back.chunks_exact(units * 64)) {
            // Four independent sums, because each addition to a single sum would wait for the one before.
            let mut sums = [isa.splat16(0.0); 4];
            for (dz, back) in flat(dz).as_chunks::<4>().0.iter().zip(back.as_chunks::<4>().0) {
                for n in 0..4 {
                    sums[n] = isa.load16(&back[n].0).mul_add(isa.splat16(dz[n]), sums[n]);
                }
            }
            sums[0].add(sums[1]).add(sums[2].add(sums[3])).store(&mut dh.0);
        }
    }
}

/// 1 − x², as (1 − x) (1 + x).
#[inline(always)]
fn one_less_square<I: Isa>(isa: I, x: I::V16) -> I::V16 {
    let one = isa.splat16(1.0);
    one.sub(x).mul(one.add(x))
}

/// Adds left ⊗ right of every step to `sums`, `[rows, width, 16]`, in the order of the steps.
///
/// The left side of a step has one number per row, zero-padded; the right side has blocks, of which the first
/// `width` count. `R` rows of `W` blocks are summed in registers together; the number of rows is a multiple
/// of R, and `width` of W. The sums depend on neither.
#[allow(clippy::needless_pass_by_value, reason = "an iterator is walked more than once by cloning it")]
#[inline(always)]
fn outer<'a, I: Isa, const R: usize, const W: usize>(
    isa: I,
    steps: impl Iterator<Item = (&'a [Block], &'a [Block])> + Clone,
    width: usize,
    sums: &mut [Block],
) {
    for (tile, sums) in sums.chunks_exact_mut(R * width).enumerate() {
        let row = tile * R;
        for column in (0..width).step_by(W) {
            let mut all = [[isa.splat16(0.0); W]; R];
            for r in 0..R {
                for w in 0..W {
                    all[r][w] = isa.load16(&sums[r * width + column + w].0);
                }
            }
            for (left, right) in steps.clone() {
                let left = &flat(left)[row..row + R];
                let right = &right[column..column + W];
                for w in 0..W {
                    let right = isa.load16(&right[w].0);
                    for r in 0..R {
                        all[r][w] = right.mul_add(isa.splat16(left[r]), all[r][w]);
                    }
                }
            }
            for r in 0..R {
                for w in 0..W {
                    all[r][w].store(&mut sums[r * width + column + w].0);
                }
            }
        }
    }
}
