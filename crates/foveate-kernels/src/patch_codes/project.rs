//! Projects the distinct patches to keys and values.

use super::{CodesScratch, CodesShape, EPSILON, LIMIT, PatchCodes};
use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task};

/// Patches that are projected together.
const TOGETHER: usize = 4;

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
        for start in (0..distinct).step_by(TOGETHER) {
            let count = TOGETHER.min(distinct - start);
            let mut voters = [0.0; TOGETHER];
            for (i, inputs) in inputs.chunks_exact_mut(one).take(count).enumerate() {
                let (bytes, multiplicity) = merged.patch(start + i);
                voters[i] = multiplicity as f32;
                let (of_key, of_value) = inputs.split_at_mut(differences);
                if shape.patch == 6 {
                    prepare::<36>(shape, bytes, of_key, of_value);
                } else {
                    prepare::<0>(shape, bytes, of_key, of_value);
                }
            }
            for (block, offset) in offset.iter().enumerate() {
                let weights = &codes.key[block * differences..(block + 1) * differences];
                let rows = sums(isa, weights, offset, inputs, one, 0);
                store(&rows[..count], &mut keys[start * wide..], wide, block, &[1.0; TOGETHER]);
            }
            for (block, bias) in codes.value_bias.iter().enumerate() {
                let weights = &codes.value[block * shape.value_inputs()..(block + 1) * shape.value_inputs()];
                let rows = sums(isa, weights, bias, inputs, one, differences);
                store(&rows[..count], &mut values[start * deep..], deep, block, &voters);
            }
        }
        centre(isa, &mut keys[..distinct * wide], wide);
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

/// The differences of neighbouring frames of a patch, and its pixels normalised frame by frame. `A` is the
/// number of pixels when it is known at compile time, else 0.
#[inline(always)]
pub(super) fn prepare<const A: usize>(
    shape: &CodesShape,
    bytes: &[u8],
    of_key: &mut [f32],
    of_value: &mut [f32],
) {
    let area = if A == 0 { shape.area() } else { A };
    for (t, out) in of_key.chunks_exact_mut(area).enumerate() {
        let (before, after) = (&bytes[t * area..][..area], &bytes[(t + 1) * area..][..area]);
        for (out, (&before, &after)) in out.iter_mut().zip(before.iter().zip(after)) {
            *out = f32::from(i16::from(after) - i16::from(before));
        }
    }
    let pixels = area as i32;
    for (t, out) in of_value.chunks_exact_mut(area).enumerate() {
        let bytes = &bytes[t * area..][..area];
        // Exact: in units of 1 / (255 · pixels), a deviation from the mean is a whole number.
        let sum: i32 = bytes.iter().map(|&byte| i32::from(byte)).sum();
        let squares: i64 = bytes.iter().map(|&byte| i64::from(pixels * i32::from(byte) - sum).pow(2)).sum();
        let unit = 255.0 * f64::from(pixels);
        let scale = (1.0 / (squares as f64 / f64::from(pixels) + EPSILON * unit * unit).sqrt()) as f32;
        for (out, &byte) in out.iter_mut().zip(bytes) {
            *out = (pixels * i32::from(byte) - sum) as f32 * scale;
        }
    }
}

/// Sixteen outputs of a layer for each of the patches whose inputs begin at `first` of every `one` numbers.
#[inline(always)]
fn sums<I: Isa>(
    isa: I,
    weights: &[Block],
    bias: &Block,
    inputs: &[f32],
    one: usize,
    first: usize,
) -> [Block; TOGETHER] {
    let mut sums = [isa.load16(&bias.0); TOGETHER];
    let of = |i: usize| &inputs[i * one + first..][..weights.len()];
    let (a, b, c, d) = (of(0), of(1), of(2), of(3));
    for (t, weight) in weights.iter().enumerate() {
        let weight = isa.load16(&weight.0);
        sums[0] = weight.mul_add(isa.splat16(a[t]), sums[0]);
        sums[1] = weight.mul_add(isa.splat16(b[t]), sums[1]);
        sums[2] = weight.mul_add(isa.splat16(c[t]), sums[2]);
        sums[3] = weight.mul_add(isa.splat16(d[t]), sums[3]);
    }
    let limit = isa.splat16(LIMIT as f32);
    let least = isa.splat16(-LIMIT as f32);
    let mut out = [Block::default(); TOGETHER];
    for (sum, out) in sums.into_iter().zip(&mut out) {
        sum.min(limit).max(least).store(&mut out.0);
    }
    out
}

/// Writes sixteen outputs per row, times a factor per row, to rows of `width` numbers.
#[inline(always)]
fn store(rows: &[Block], to: &mut [f32], width: usize, block: usize, factors: &[f32; TOGETHER]) {
    let count = 16.min(width - 16 * block);
    for ((row, to), factor) in rows.iter().zip(to.chunks_exact_mut(width)).zip(factors) {
        for (to, &x) in to[16 * block..][..count].iter_mut().zip(&row.0) {
            *to = x * factor;
        }
    }
}
