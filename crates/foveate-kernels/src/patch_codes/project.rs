//! Projects the distinct patches to keys and values.

use super::{CodesScratch, CodesShape, EPSILON, LIMIT, PatchCodes};
use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task};

/// Most patches that are projected together.
pub(super) const TOGETHER: usize = 8;

pub(super) fn project(level: Level, codes: &PatchCodes, shared: &[f32], scratch: &mut CodesScratch) {
    level.run(Project { codes, shared, scratch });
}

struct Project<'a> {
    codes: &'a PatchCodes,
    shared: &'a [f32],
    scratch: &'a mut CodesScratch,
}

impl Task for Project<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        // As many as there are registers for; that changes no result.
        if I::ROWS == 4 {
            self.run_for::<I, TOGETHER>(isa);
        } else {
            self.run_for::<I, 4>(isa);
        }
    }
}

impl Project<'_> {
    /// `P` patches together.
    #[inline(always)]
    fn run_for<I: Isa, const P: usize>(self, isa: I) {
        let Project { codes, shared, scratch } = self;
        let CodesScratch { merged, inputs, offset, keys, values, .. } = scratch;
        let shape = &codes.shape;
        let differences = (shape.frames - 1) * shape.area();
        let (wide, deep) = (1 + shape.code_dim, shape.message);
        let blocks = offset.len();
        for (block, offset) in offset.iter_mut().enumerate() {
            let mut sum = isa.load16(&codes.key_shared[shape.shared * blocks + block].0);
            for (i, &x) in shared.iter().enumerate() {
                sum = isa.load16(&codes.key_shared[i * blocks + block].0).mul_add(isa.splat16(x), sum);
            }
            sum.store(&mut offset.0);
        }
        let one = differences + shape.value_inputs();
        let distinct = merged.count();
        for start in (0..distinct).step_by(P) {
            let count = P.min(distinct - start);
            let mut voters = [0.0; P];
            for (i, inputs) in inputs.chunks_exact_mut(one).take(count).enumerate() {
                let (bytes, multiplicity) = merged.patch(start + i);
                voters[i] = multiplicity as f32;
                let (of_key, of_value) = inputs.split_at_mut(differences);
                prepare_any(shape, bytes, of_key, of_value);
            }
            for (block, offset) in offset.iter().enumerate() {
                let weights = &codes.key[block * differences..(block + 1) * differences];
                let rows = sums::<I, P>(isa, weights, offset, inputs, one, 0);
                store(&rows[..count], &mut keys[start * wide..], wide, block, &[1.0; P]);
            }
            project_values::<I, P>(isa, codes, (inputs, one), &voters[..count], &mut values[start * deep..]);
        }
        centre(isa, &mut keys[..distinct * wide], wide);
    }
}

/// The values of some patches, times a factor of each. `inputs` are those of `P` patches, `one` numbers each.
#[inline(always)]
fn project_values<I: Isa, const P: usize>(
    isa: I,
    codes: &PatchCodes,
    (inputs, one): (&[f32], usize),
    factors: &[f32],
    values: &mut [f32],
) {
    let (len, width) = (codes.shape.value_inputs(), codes.shape.message);
    for (block, bias) in codes.value_bias.iter().enumerate() {
        let weights = &codes.value[block * len..(block + 1) * len];
        let rows = sums::<I, P>(isa, weights, bias, inputs, one, one - len);
        store(&rows[..factors.len()], values, width, block, factors);
    }
}

/// Writes the value of one of each of the distinct patches to the scratch space, in place of that of all of them.
pub(super) fn single_values(level: Level, codes: &PatchCodes, scratch: &mut CodesScratch) {
    level.run(SingleValues { codes, scratch });
}

struct SingleValues<'a> {
    codes: &'a PatchCodes,
    scratch: &'a mut CodesScratch,
}

impl Task for SingleValues<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        const P: usize = 4;
        let SingleValues { codes, scratch } = self;
        let CodesScratch { merged, inputs, values, .. } = scratch;
        let shape = &codes.shape;
        let differences = (shape.frames - 1) * shape.area();
        let one = differences + shape.value_inputs();
        let distinct = merged.count();
        for start in (0..distinct).step_by(P) {
            let count = P.min(distinct - start);
            for (i, inputs) in inputs.chunks_exact_mut(one).take(count).enumerate() {
                let (of_key, of_value) = inputs.split_at_mut(differences);
                prepare_any(shape, merged.patch(start + i).0, of_key, of_value);
            }
            let values = &mut values[start * shape.message..];
            project_values::<I, P>(isa, codes, (inputs, one), &[1.0; P][..count], values);
        }
    }
}

/// Moves the keys so that zero is in the middle of their range, number by number. Softmax does not notice a
/// number that is added to all of a code's logits, smaller logits are computed more exactly, and keys that
/// are all equal become zero: then all codes are equal to the bit.
#[inline(always)]
fn centre<I: Isa>(isa: I, keys: &mut [f32], width: usize) {
    for first in (0..width).step_by(8) {
        let count = 8.min(width - first);
        let (mut least, mut most) = (isa.splat8(f32::MAX), isa.splat8(f32::MIN));
        for key in keys.chunks_exact(width) {
            let key = load(isa, &key[first..first + count]);
            (least, most) = (key.min(least), key.max(most));
        }
        let middle = least.add(most).mul(isa.splat8(0.5));
        for key in keys.chunks_exact_mut(width) {
            let key = &mut key[first..first + count];
            let mut moved = [0.0; 8];
            load(isa, key).sub(middle).store(&mut moved);
            key.copy_from_slice(&moved[..count]);
        }
    }
}

/// Up to eight numbers, and zeros.
#[inline(always)]
fn load<I: Isa>(isa: I, numbers: &[f32]) -> I::V8 {
    let mut eight = [0.0; 8];
    eight[..numbers.len()].copy_from_slice(numbers);
    isa.load8(&eight)
}

/// See [`prepare`].
#[inline(always)]
fn prepare_any(shape: &CodesShape, bytes: &[u8], of_key: &mut [f32], of_value: &mut [f32]) {
    if shape.patch == 6 {
        prepare::<36>(shape, bytes, of_key, of_value);
    } else {
        prepare::<0>(shape, bytes, of_key, of_value);
    }
}

/// The differences of neighbouring frames of a patch, and its pixels normalised frame by frame. `A` is the
/// number of pixels when it is known at compile time, else 0.
#[inline(always)]
pub(super) fn prepare<const A: usize>(
    shape: &CodesShape,
    bytes: &[u8],
    of_key: &mut [f32],
    of_value: &mut [f32],
) {
    /// Frames at a time, whose roots and divisions do not wait for each other.
    const FRAMES: usize = 4;
    let area = if A == 0 { shape.area() } else { A };
    for (t, out) in of_key.chunks_exact_mut(area).enumerate() {
        let (before, after) = (&bytes[t * area..][..area], &bytes[(t + 1) * area..][..area]);
        for (out, (&before, &after)) in out.iter_mut().zip(before.iter().zip(after)) {
            *out = f32::from(i16::from(after) - i16::from(before));
        }
    }
    let pixels = area as i32;
    let unit = 255.0 * f64::from(pixels);
    for (outs, frames) in of_value.chunks_mut(FRAMES * area).zip(bytes.chunks(FRAMES * area)) {
        let (mut sums, mut squares) = ([0; FRAMES], [0.0; FRAMES]);
        for (bytes, (sum, squares)) in frames.chunks_exact(area).zip(sums.iter_mut().zip(&mut squares)) {
            // Exact: in units of 1 / (255 · pixels), a deviation from the mean is a whole number.
            *sum = bytes.iter().map(|&byte| i32::from(byte)).sum();
            let deviations = bytes.iter().map(|&byte| pixels * i32::from(byte) - *sum);
            *squares = if A == 36 {
                // 36 · (36 · 255)^2 is below 2^32.
                f64::from(deviations.map(|d| (d * d).cast_unsigned()).sum::<u32>())
            } else {
                deviations.map(|d| i64::from(d).pow(2)).sum::<i64>() as f64
            };
        }
        let mut scales = [0.0; FRAMES];
        for (scale, squares) in scales.iter_mut().zip(squares) {
            *scale = (1.0 / (squares / f64::from(pixels) + EPSILON * unit * unit).sqrt()) as f32;
        }
        let frames = frames.chunks_exact(area).zip(sums.into_iter().zip(scales));
        for (out, (bytes, (sum, scale))) in outs.chunks_exact_mut(area).zip(frames) {
            for (out, &byte) in out.iter_mut().zip(bytes) {
                *out = (pixels * i32::from(byte) - sum) as f32 * scale;
            }
        }
    }
}

/// Sixteen outputs of a layer for each of the patches whose inputs begin at `first` of every `one` numbers.
#[inline(always)]
fn sums<I: Isa, const P: usize>(
    isa: I,
    weights: &[Block],
    bias: &Block,
    inputs: &[f32],
    one: usize,
    first: usize,
) -> [Block; P] {
    let mut sums = [isa.load16(&bias.0); P];
    let mut rows: [&[f32]; P] = [&[]; P];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = &inputs[i * one + first..][..weights.len()];
    }
    for (t, weight) in weights.iter().enumerate() {
        let weight = isa.load16(&weight.0);
        for i in 0..P {
            sums[i] = weight.mul_add(isa.splat16(rows[i][t]), sums[i]);
        }
    }
    let limit = isa.splat16(LIMIT as f32);
    let least = isa.splat16(-LIMIT as f32);
    let mut out = [Block::default(); P];
    for (sum, out) in sums.into_iter().zip(&mut out) {
        sum.min(limit).max(least).store(&mut out.0);
    }
    out
}

/// Writes sixteen outputs per row, times a factor per row, to rows of `width` numbers.
#[inline(always)]
fn store(rows: &[Block], to: &mut [f32], width: usize, block: usize, factors: &[f32]) {
    let count = 16.min(width - 16 * block);
    for ((row, to), factor) in rows.iter().zip(to.chunks_exact_mut(width)).zip(factors) {
        for (to, &x) in to[16 * block..][..count].iter_mut().zip(&row.0) {
            *to = x * factor;
        }
    }
}
