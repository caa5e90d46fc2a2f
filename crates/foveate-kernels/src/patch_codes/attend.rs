//! Softmax over the distinct patches, messages, and their normalisation, for sixteen codes at a time.

use super::{CodesScratch, EPSILON, PatchCodes};
use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task, exp2_by_table};

/// Largest |logit| that needs no maximum.
const SAFE: f32 = 98.0;

/// Logits below this count as this: the least that a power of two is computed for.
const LEAST: f32 = -123.0;

pub(super) fn attend(level: Level, codes: &PatchCodes, scratch: &mut CodesScratch) {
    level.run(Attend { codes, scratch });
    let CodesScratch { merged, columns, wins_distinct, importance, wins, .. } = scratch;
    for ((place, importance), wins) in merged.places().zip(importance).zip(wins) {
        (*importance, *wins) = match place {
            None => (0.0, 0),
            Some((place, first)) => (columns[place].0[0], if first { wins_distinct[place] } else { 0 }),
        };
    }
}

struct Attend<'a> {
    codes: &'a PatchCodes,
    scratch: &'a mut CodesScratch,
}

impl Task for Attend<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if self.codes.shape.code_dim == 8 {
            attend_for::<I, 8>(isa, self);
        } else {
            attend_for::<I, 0>(isa, self);
        }
    }
}

/// `D` is the length of a query when it is known at compile time, else 0.
#[inline(always)]
fn attend_for<I: Isa, const D: usize>(isa: I, Attend { codes, scratch }: Attend<'_>) {
    let shape = &codes.shape;
    let dim = if D == 0 { shape.code_dim } else { D };
    let distinct = scratch.merged.count();
    let CodesScratch { merged, keys, values, weights, columns, wins_distinct, message, often, line, .. } =
        scratch;
    let keys = &keys[..distinct * (1 + dim)];
    let values = &values[..distinct * shape.message];
    let (weights, columns) = (&mut weights[..distinct], &mut columns[..distinct]);
    let often = &mut often[..distinct];
    for (n, often) in often.iter_mut().enumerate() {
        *often = merged.patch(n).1 as f32;
    }
    let wins = &mut wins_distinct[..distinct];
    columns.fill(Block::default());
    wins.fill(0);
    let small = are_small(codes, keys, dim);
    let zero = isa.splat16(0.0);
    let number = shape.blocks();
    for block in 0..number {
        let table = &codes.table[block * dim..(block + 1) * dim];
        let mut queries = [zero; D];
        for t in 0..D {
            queries[t] = isa.load16(&table[t].0);
        }
        let rows = (&mut *weights, keys, &*often);
        let (sum, winner) = if small {
            powers::<I, D, true>(isa, &queries, table, rows)
        } else {
            powers::<I, D, false>(isa, &queries, table, rows)
        };
        let mut share = Block::default();
        isa.splat16(1.0).div(sum).store(&mut share.0);
        let mut winners = Block::default();
        winner.store(&mut winners.0);
        let valid = 16.min(shape.codes - 16 * block);
        share.0[valid..].fill(0.0);
        for &winner in &winners.0[..valid] {
            wins[winner as usize] += 1;
        }
        let share = isa.load16(&share.0);
        for (column, weight) in columns.iter_mut().zip(&*weights) {
            isa.load16(&weight.0).mul_add(share, isa.load16(&column.0)).store(&mut column.0);
        }
        finish(isa, codes, (weights, values, share), line, (message, block));
    }
    for column in columns {
        column.0[0] = isa.load16(&column.0).sum();
    }
}

/// Returns whether all logits are known to be so small that they need no maximum.
#[inline(always)]
fn are_small(codes: &PatchCodes, keys: &[f32], dim: usize) -> bool {
    // This bounds every logit; what is not known to be small is large.
    let bound = keys
        .chunks_exact(1 + dim)
        .map(|key| key[1..].iter().map(|x| x.abs()).sum::<f32>() * codes.largest + key[0].abs());
    bound.fold(0.0_f32, |most, bound| if bound > most { bound } else { most }) <= SAFE
}

/// The messages of a block of sixteen codes.
#[inline(always)]
fn finish<I: Isa>(
    isa: I,
    codes: &PatchCodes,
    (weights, values, share): (&[Block], &[f32], I::V16),
    line: &mut [Block],
    (message, block): (&mut [Block], usize),
) {
    // As many sums at a time as there are registers for; the grouping does not affect the result.
    if I::ROWS == 4 {
        messages::<I, 16>(isa, weights, values, share, line);
    } else {
        messages::<I, 4>(isa, weights, values, share, line);
    }
    normalise(isa, codes, line);
    for (line, row) in line.iter().zip(message.chunks_exact_mut(codes.shape.blocks())) {
        row[block] = *line;
    }
}

/// Writes the powers of all codes' logits after [`attend`], `[codes, patches]`; those of missing patches are 0.
pub(super) fn write_powers(level: Level, codes: &PatchCodes, scratch: &mut CodesScratch, to: &mut [f32]) {
    level.run(WritePowers { codes, scratch, to });
}

struct WritePowers<'a> {
    codes: &'a PatchCodes,
    scratch: &'a mut CodesScratch,
    to: &'a mut [f32],
}

impl Task for WritePowers<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let WritePowers { codes, scratch, to } = self;
        let (dim, patches) = (codes.shape.code_dim, codes.shape.patches());
        let distinct = scratch.merged.count();
        let CodesScratch { merged, keys, weights, often, .. } = scratch;
        let keys = &keys[..distinct * (1 + dim)];
        let (weights, often) = (&mut weights[..distinct], &often[..distinct]);
        let small = are_small(codes, keys, dim);
        let tables = codes.table.chunks_exact(dim);
        for (table, to) in tables.zip(to.chunks_mut(16 * patches)) {
            let rows = (&mut *weights, keys, often);
            if small {
                powers::<I, 0, true>(isa, &[], table, rows);
            } else {
                powers::<I, 0, false>(isa, &[], table, rows);
            }
            for (patch, place) in merged.places().enumerate() {
                let of_patch = place.map_or(Block::default(), |(place, _)| weights[place]);
                for (to, power) in to[patch..].iter_mut().step_by(patches).zip(of_patch.0) {
                    *to = power;
                }
            }
        }
    }
}

/// The messages of weights `[codes, patches]`, divided by their sums, and of the values of the patches in `scratch.given`.
pub(super) fn give(level: Level, codes: &PatchCodes, given: &[f32], scratch: &mut CodesScratch) {
    level.run(Give { codes, given, scratch });
}

struct Give<'a> {
    codes: &'a PatchCodes,
    given: &'a [f32],
    scratch: &'a mut CodesScratch,
}

impl Task for Give<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Give { codes, given, scratch } = self;
        let CodesScratch { given: patches, values, weights, message, often, line, .. } = scratch;
        let (count, width) = (patches.len(), codes.shape.patches());
        let values = &values[..count * codes.shape.message];
        let (weights, often) = (&mut weights[..count], &often[..count]);
        for (block, given) in given.chunks(16 * width).enumerate() {
            let mut sum = isa.splat16(0.0);
            for ((weight, &patch), &often) in weights.iter_mut().zip(&*patches).zip(often) {
                *weight = Block::default();
                for (weight, &given) in weight.0.iter_mut().zip(given[patch as usize..].iter().step_by(width))
                {
                    *weight = given;
                }
                sum = isa.load16(&weight.0).mul_add(isa.splat16(often), sum);
            }
            // Codes that take nothing get nothing; so do those that pad the last block.
            let zero = isa.splat16(0.0);
            let share = zero.select_lt(sum, isa.splat16(1.0).div(sum), zero);
            finish(isa, codes, (weights, values, share), line, (message, block));
        }
    }
}

/// Writes the powers of sixteen codes' logits, and gives the sum over all patches and the number of the patch with the
/// largest one. Where the logits are not `SMALL`, the largest is subtracted from them first.
#[inline(always)]
fn powers<I: Isa, const D: usize, const SMALL: bool>(
    isa: I,
    queries: &[I::V16; D],
    table: &[Block],
    (weights, keys, often): (&mut [Block], &[f32], &[f32]),
) -> (I::V16, I::V16) {
    let (zero, one) = (isa.splat16(0.0), isa.splat16(1.0));
    let width = 1 + table.len();
    let mut peak = zero;
    if !SMALL {
        peak = isa.splat16(f32::MIN);
        for (weight, key) in weights.iter_mut().zip(keys.chunks_exact(width)) {
            let x = logit::<I, D>(isa, queries, table, key);
            peak = x.max(peak);
            x.store(&mut weight.0);
        }
    }
    let (mut sum, mut number) = (zero, zero);
    let (mut best, mut winner) = (isa.splat16(-1.0), zero);
    for ((weight, key), &often) in weights.iter_mut().zip(keys.chunks_exact(width)).zip(often) {
        let x = if SMALL {
            logit::<I, D>(isa, queries, table, key)
        } else {
            isa.load16(&weight.0).sub(peak).max(isa.splat16(LEAST))
        };
        let power = exp2_by_table(isa, x);
        sum = power.mul_add(isa.splat16(often), sum);
        winner = best.select_lt(power, number, winner);
        best = power.max(best);
        number = number.add(one);
        power.store(&mut weight.0);
    }
    (sum, winner)
}

/// The logits of sixteen codes for one patch.
#[inline(always)]
fn logit<I: Isa, const D: usize>(isa: I, queries: &[I::V16; D], table: &[Block], key: &[f32]) -> I::V16 {
    let (constant, key) = key.split_first().expect("a key has a constant");
    let mut x = isa.splat16(*constant);
    if D > 0 {
        let key = &key[..D];
        for t in 0..D {
            x = queries[t].mul_add(isa.splat16(key[t]), x);
        }
    } else {
        for (query, &k) in table.iter().zip(key) {
            x = isa.load16(&query.0).mul_add(isa.splat16(k), x);
        }
    }
    x
}

/// relu of the weighted values of sixteen codes, `G` numbers of the message at a time.
#[inline(always)]
fn messages<I: Isa, const G: usize>(
    isa: I,
    weights: &[Block],
    values: &[f32],
    share: I::V16,
    line: &mut [Block],
) {
    let (width, zero) = (line.len(), isa.splat16(0.0));
    let mut first = 0;
    while first < width {
        let count = G.min(width - first);
        let mut sums = [zero; G];
        if count == G {
            for (weight, values) in weights.iter().zip(values.chunks_exact(width)) {
                let weight = isa.load16(&weight.0);
                let values = &values[first..first + G];
                for g in 0..G {
                    sums[g] = weight.mul_add(isa.splat16(values[g]), sums[g]);
                }
            }
        } else {
            for (weight, values) in weights.iter().zip(values.chunks_exact(width)) {
                let weight = isa.load16(&weight.0);
                for (sum, &value) in sums.iter_mut().zip(&values[first..first + count]) {
                    *sum = weight.mul_add(isa.splat16(value), *sum);
                }
            }
        }
        for g in 0..count {
            sums[g].mul(share).max(zero).store(&mut line[first + g].0);
        }
        first += count;
    }
}

/// Layer normalisation of the messages of sixteen codes.
#[inline(always)]
fn normalise<I: Isa>(isa: I, codes: &PatchCodes, line: &mut [Block]) {
    let width = isa.splat16(line.len() as f32);
    let mut sum = isa.splat16(0.0);
    for row in &*line {
        sum = sum.add(isa.load16(&row.0));
    }
    let mean = sum.div(width);
    let mut squares = isa.splat16(0.0);
    for row in &*line {
        let x = isa.load16(&row.0).sub(mean);
        squares = x.mul_add(x, squares);
    }
    let deviation = squares.div(width).add(isa.splat16(EPSILON as f32)).sqrt();
    let factor = isa.splat16(1.0).div(deviation);
    let affine = codes.message_weight.iter().zip(&codes.message_bias);
    for (row, (&weight, &bias)) in line.iter_mut().zip(affine) {
        let x = isa.load16(&row.0).sub(mean).mul(factor);
        x.mul_add(isa.splat16(weight), isa.splat16(bias)).store(&mut row.0);
    }
}
