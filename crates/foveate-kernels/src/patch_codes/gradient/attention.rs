//! One step: attention of all codes over its patches, relu and normalisation, forwards and backwards.
//!
//! Sixteen codes are in the lanes of a vector, except where sums over codes are needed.

use super::super::EPSILON;
use crate::lanes::{Block, Isa, Lanes, Task, exp};

/// Patches that are computed together.
const TOGETHER: usize = 4;

/// The sizes of a step.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) codes: usize,
    /// Numbers in a key, and in a row of the table.
    pub(super) wide: usize,
    pub(super) message: usize,
}

impl Sizes {
    pub(super) const fn blocks(&self) -> usize {
        self.codes.div_ceil(16)
    }
}

/// What a step's forward pass computes.
pub(super) struct Forward<'a> {
    pub(super) sizes: Sizes,
    /// `[codes / 16, wide, 16]`
    pub(super) table: &'a [Block],
    /// `[n, wide]`
    pub(super) keys: &'a [f32],
    /// `[n, message]`
    pub(super) values: &'a [f32],
    /// `[n]`
    pub(super) log_count: &'a [f32],
    /// `[codes / 16, n, 16]`
    pub(super) weights: &'a mut [Block],
    /// `[codes / 16, message, 16]`: after the relu, and normalised.
    pub(super) before: &'a mut [Block],
    pub(super) normal: &'a mut [Block],
    /// `[codes / 16, 16]`
    pub(super) scale: &'a mut [Block],
    /// `[codes, message]`: normalised.
    pub(super) out: &'a mut [f32],
}

impl Task for Forward<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Forward { sizes, table, keys, values, log_count, weights, before, normal, scale, out } = self;
        let Sizes { codes, wide, message } = sizes;
        let n = log_count.len();
        for block in 0..sizes.blocks() {
            let table = &table[block * wide..(block + 1) * wide];
            let weights = &mut weights[block * n..(block + 1) * n];
            attend(isa, table, keys, log_count, weights);
            let before = &mut before[block * message..(block + 1) * message];
            if I::ROWS == 4 {
                messages::<I, 16>(isa, weights, values, before);
            } else {
                messages::<I, 4>(isa, weights, values, before);
            }
            let normal = &mut normal[block * message..(block + 1) * message];
            normalise(isa, before, normal, &mut scale[block]);
            let out = &mut out[16 * block * message..];
            for lane in 0..16.min(codes - 16 * block) {
                for (to, from) in out[lane * message..(lane + 1) * message].iter_mut().zip(&*normal) {
                    *to = from.0[lane];
                }
            }
        }
    }
}

/// Softmax of sixteen codes over all patches.
#[inline(always)]
fn attend<I: Isa>(isa: I, table: &[Block], keys: &[f32], log_count: &[f32], weights: &mut [Block]) {
    let wide = table.len();
    let last = log_count.len() - 1;
    let mut peak = isa.splat16(f32::MIN);
    for (group, weights) in weights.chunks_mut(TOGETHER).enumerate() {
        let of = |i: usize| (group * TOGETHER + i).min(last);
        let key = |i: usize| &keys[of(i) * wide..][..wide];
        let (a, b, c, d) = (key(0), key(1), key(2), key(3));
        let mut logits = [isa.splat16(0.0); TOGETHER];
        for (t, query) in table.iter().enumerate() {
            let query = isa.load16(&query.0);
            logits[0] = query.mul_add(isa.splat16(a[t]), logits[0]);
            logits[1] = query.mul_add(isa.splat16(b[t]), logits[1]);
            logits[2] = query.mul_add(isa.splat16(c[t]), logits[2]);
            logits[3] = query.mul_add(isa.splat16(d[t]), logits[3]);
        }
        for (i, (logit, weight)) in logits.into_iter().zip(weights).enumerate() {
            let logit = logit.add(isa.splat16(log_count[of(i)]));
            peak = logit.max(peak);
            logit.store(&mut weight.0);
        }
    }
    let mut sum = isa.splat16(0.0);
    for weight in &mut *weights {
        let power = exp(isa, isa.load16(&weight.0).sub(peak));
        sum = sum.add(power);
        power.store(&mut weight.0);
    }
    let share = isa.splat16(1.0).div(sum);
    for weight in weights {
        isa.load16(&weight.0).mul(share).store(&mut weight.0);
    }
}

/// relu of the weighted values of sixteen codes, `G` numbers of the message at a time.
#[inline(always)]
fn messages<I: Isa, const G: usize>(isa: I, weights: &[Block], values: &[f32], message: &mut [Block]) {
    let width = message.len();
    let zero = isa.splat16(0.0);
    for (group, message) in message.chunks_mut(G).enumerate() {
        let first = group * G;
        let mut sums = [zero; G];
        if message.len() == G {
            for (weight, values) in weights.iter().zip(values.chunks_exact(width)) {
                let weight = isa.load16(&weight.0);
                let values: &[f32; G] = values[first..].first_chunk().expect("G numbers are left");
                for g in 0..G {
                    sums[g] = weight.mul_add(isa.splat16(values[g]), sums[g]);
                }
            }
        } else {
            for (weight, values) in weights.iter().zip(values.chunks_exact(width)) {
                let weight = isa.load16(&weight.0);
                for (sum, &value) in sums.iter_mut().zip(&values[first..first + message.len()]) {
                    *sum = weight.mul_add(isa.splat16(value), *sum);
                }
            }
        }
        for (sum, to) in sums.into_iter().zip(message) {
            sum.max(zero).store(&mut to.0);
        }
    }
}

/// Layer normalisation of sixteen codes.
#[inline(always)]
fn normalise<I: Isa>(isa: I, before: &[Block], normal: &mut [Block], scale: &mut Block) {
    let width = isa.splat16(before.len() as f32);
    let mut sum = isa.splat16(0.0);
    for row in before {
        sum = sum.add(isa.load16(&row.0));
    }
    let mean = sum.div(width);
    let mut squares = isa.splat16(0.0);
    for row in before {
        let x = isa.load16(&row.0).sub(mean);
        squares = x.mul_add(x, squares);
    }
    let deviation = squares.div(width).add(isa.splat16(EPSILON as f32)).sqrt();
    let factor = isa.splat16(1.0).div(deviation);
    factor.store(&mut scale.0);
    for (row, normal) in before.iter().zip(normal) {
        isa.load16(&row.0).sub(mean).mul(factor).store(&mut normal.0);
    }
}

/// From the gradient for the codes to those for keys and values.
pub(super) struct Backward<'a> {
    pub(super) sizes: Sizes,
    /// `[codes, message]`: the gradient for the normalised codes.
    pub(super) d: &'a [f32],
    /// `[codes, wide / 16, 16]`: the table.
    pub(super) table_rows: &'a [Block],
    /// As in [`Forward`].
    pub(super) values: &'a [f32],
    pub(super) weights: &'a [Block],
    pub(super) before: &'a [Block],
    pub(super) normal: &'a [Block],
    pub(super) scale: &'a [Block],
    /// `[message, 16]`: scratch.
    pub(super) d_before: &'a mut [Block],
    /// `[16, message / 16, 16]`: the same, one code after the other. Scratch.
    pub(super) d_rows: &'a mut [Block],
    /// `[n, 16]`: scratch.
    pub(super) d_weights: &'a mut [Block],
    /// `[n, wide / 16, 16]`
    pub(super) d_keys: &'a mut [Block],
    /// `[n, message / 16, 16]`
    pub(super) d_values: &'a mut [Block],
}

impl Task for Backward<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Backward {
            sizes,
            d,
            table_rows,
            values,
            weights,
            before,
            normal,
            scale,
            d_before,
            d_rows,
            d_weights,
            d_keys,
            d_values,
        } = self;
        let Sizes { codes, wide, message } = sizes;
        let n = d_weights.len();
        let (deep, broad) = (message.div_ceil(16), wide.div_ceil(16));
        d_keys.fill(Block::default());
        d_values.fill(Block::default());
        for block in 0..sizes.blocks() {
            let valid = 16.min(codes - 16 * block);
            let d = &d[16 * block * message..][..valid * message];
            d_before.fill(Block::default());
            for (lane, row) in d.chunks_exact(message).enumerate() {
                for (to, &d) in d_before.iter_mut().zip(row) {
                    to.0[lane] = d;
                }
            }
            let of = block * message..(block + 1) * message;
            before_norm(isa, &before[of.clone()], &normal[of], &scale[block], d_before);
            for (g, row) in d_before.iter().enumerate() {
                for (lane, &d) in row.0.iter().enumerate() {
                    d_rows[lane * deep + g / 16].0[g % 16] = d;
                }
            }
            let weights = &weights[block * n..(block + 1) * n];
            softmax(isa, d_before, values, weights, d_weights);
            add_sums(isa, weights, &d_rows[..valid * deep], deep, d_values);
            let table = &table_rows[16 * block * broad..][..valid * broad];
            add_sums(isa, d_weights, table, broad, d_keys);
        }
    }
}

/// The gradient before normalisation and relu, in place.
#[inline(always)]
fn before_norm<I: Isa>(isa: I, before: &[Block], normal: &[Block], scale: &Block, d: &mut [Block]) {
    let width = isa.splat16(d.len() as f32);
    let zero = isa.splat16(0.0);
    let (mut sum, mut along) = (zero, zero);
    for (d, normal) in d.iter().zip(normal) {
        let d = isa.load16(&d.0);
        sum = sum.add(d);
        along = d.mul_add(isa.load16(&normal.0), along);
    }
    let (mean, along) = (sum.div(width), along.div(width));
    let scale = isa.load16(&scale.0);
    for ((d, normal), before) in d.iter_mut().zip(normal).zip(before) {
        let moved = isa.load16(&d.0).sub(mean).sub(isa.load16(&normal.0).mul(along)).mul(scale);
        zero.select_lt(isa.load16(&before.0), moved, zero).store(&mut d.0);
    }
}

/// The gradient for the logits of sixteen codes.
#[inline(always)]
fn softmax<I: Isa>(isa: I, d_message: &[Block], values: &[f32], weights: &[Block], d_weights: &mut [Block]) {
    let width = d_message.len();
    let last = weights.len() - 1;
    let mut dot = isa.splat16(0.0);
    for (group, d_weights) in d_weights.chunks_mut(TOGETHER).enumerate() {
        let of = |i: usize| &values[(group * TOGETHER + i).min(last) * width..][..width];
        let (a, b, c, d) = (of(0), of(1), of(2), of(3));
        let mut sums = [isa.splat16(0.0); TOGETHER];
        for (g, row) in d_message.iter().enumerate() {
            let row = isa.load16(&row.0);
            sums[0] = row.mul_add(isa.splat16(a[g]), sums[0]);
            sums[1] = row.mul_add(isa.splat16(b[g]), sums[1]);
            sums[2] = row.mul_add(isa.splat16(c[g]), sums[2]);
            sums[3] = row.mul_add(isa.splat16(d[g]), sums[3]);
        }
        for (i, (sum, to)) in sums.into_iter().zip(d_weights).enumerate() {
            dot = isa.load16(&weights[group * TOGETHER + i].0).mul_add(sum, dot);
            sum.store(&mut to.0);
        }
    }
    for (d, weight) in d_weights.iter_mut().zip(weights) {
        isa.load16(&weight.0).mul(isa.load16(&d.0).sub(dot)).store(&mut d.0);
    }
}

/// Adds the sum over codes of its factor of a patch, `[n, 16]`, times its row, `[codes, blocks, 16]`, to every
/// patch.
#[inline(always)]
fn add_sums<I: Isa>(isa: I, factors: &[Block], rows: &[Block], blocks: usize, out: &mut [Block]) {
    for (factors, out) in factors.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER * blocks)) {
        let last = factors.len() - 1;
        let of = |i: usize| &factors[i.min(last)].0;
        let (a, b, c, d) = (of(0), of(1), of(2), of(3));
        for block in 0..blocks {
            let mut sums = [isa.splat16(0.0); TOGETHER];
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = isa.load16(&out[i.min(last) * blocks + block].0);
            }
            for (code, row) in rows.chunks_exact(blocks).enumerate() {
                let row = isa.load16(&row[block].0);
                sums[0] = row.mul_add(isa.splat16(a[code]), sums[0]);
                sums[1] = row.mul_add(isa.splat16(b[code]), sums[1]);
                sums[2] = row.mul_add(isa.splat16(c[code]), sums[2]);
                sums[3] = row.mul_add(isa.splat16(d[code]), sums[3]);
            }
            for (i, sum) in sums.into_iter().enumerate().take(factors.len()) {
                sum.store(&mut out[i * blocks + block].0);
            }
        }
    }
}
