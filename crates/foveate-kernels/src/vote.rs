//! Softmax attention summed over its rows: how many votes each patch gets.
//!
//! Patch i spreads one vote over all patches j in proportion to 2^(qᵢ·kⱼ); the importance of j is the sum over i. The
//! N × N matrix is never stored: rows are worked on a few at a time, and memory is O(N · d).
//!
//! Two things make it fast. Patches with equal queries and keys, bit for bit, are merged first: a merged row casts its
//! votes `multiplicity` times, a merged column counts `multiplicity` times in the row sums, and each of its patches gets the
//! column's votes. And the row maximum is only sought for where |qᵢ| · max |kⱼ| says that a power of two might
//! overflow; elsewhere the softmax needs none.

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task, exp2};

/// Largest |logit|, as a power of two, that needs no row maximum: with 2^20 patches a row sum stays below 2^120, and
/// the reciprocal above 2^-120.
const SAFE: f32 = 100.0;

/// Most patches that [`Votes`] takes.
pub const MAX_PATCHES: usize = 1 << 20;

/// Scratch space for [`Votes::cast`].
#[derive(Debug, Clone)]
pub struct Votes {
    patches: usize,
    dim: usize,
    row_len: usize,
    /// Hash table from a row of queries and keys to its number among the distinct ones, plus one; 0 is empty.
    slots: Vec<u32>,
    /// `[patches]`: which distinct row a patch has.
    group: Vec<u32>,
    /// `[distinct]`: the first patch with this row.
    first: Vec<u32>,
    /// `[distinct]`: patches with this row.
    multiplicity: Vec<f32>,
    /// `[distinct]`: whether the row's logits may be large.
    large: Vec<bool>,
    /// `[distinct / 16, dim, 16]`: keys, the last one repeated to fill up.
    keys: Vec<Block>,
    /// `[distinct / 16, 16]`: multiplicities, zeros to fill up.
    weights: Vec<Block>,
    /// `[distinct / 16, ROWS, 16]`: a few rows of the attention matrix.
    rows: Vec<Block>,
    /// `[distinct / 16, 16]`: votes so far.
    columns: Vec<Block>,
}

/// Most rows of the attention matrix that any instruction set works on together.
const MOST_ROWS: usize = 4;

impl Votes {
    /// Scratch space for `patches` rows of `row_len` numbers that hold a query of `dim`, a key of `dim`, and zeros.
    ///
    /// # Panics
    /// When `row_len` is not a multiple of 8 with room for query and key, or `patches` is 0 or above [`MAX_PATCHES`].
    pub fn new(patches: usize, dim: usize, row_len: usize) -> Self {
        assert!((1..=MAX_PATCHES).contains(&patches), "{patches} patches, up to {MAX_PATCHES} are possible");
        assert!(
            dim > 0 && row_len >= 2 * dim && row_len.is_multiple_of(8),
            "rows of {row_len} for dim {dim}"
        );
        let blocks = patches.div_ceil(16);
        Votes {
            patches,
            dim,
            row_len,
            slots: vec![0; (2 * patches).next_power_of_two()],
            group: vec![0; patches],
            first: Vec::with_capacity(patches),
            multiplicity: Vec::with_capacity(patches),
            large: Vec::with_capacity(patches),
            keys: vec![Block::default(); blocks * dim],
            weights: vec![Block::default(); blocks],
            rows: vec![Block::default(); blocks * MOST_ROWS],
            columns: vec![Block::default(); blocks],
        }
    }

    /// How many different rows the last [`Votes::cast`] found.
    pub const fn distinct(&self) -> usize {
        self.first.len()
    }

    /// Counts the votes: `embedded` is `[patches, row_len]`, finite and within ±1e15 as [`crate::project`] leaves it,
    /// queries pre-multiplied so that a vote is 2^(q·k); `importance` is `[patches]` and sums to the number of patches.
    ///
    /// # Panics
    /// When a slice has the wrong length.
    pub fn cast(&mut self, level: Level, embedded: &[f32], importance: &mut [f32]) {
        assert_eq!(embedded.len(), self.patches * self.row_len, "numbers in the rows");
        assert_eq!(importance.len(), self.patches, "patches");
        if self.dim == 4 {
            level.run(Cast::<4> { votes: self, embedded, importance });
        } else {
            level.run(Cast::<0> { votes: self, embedded, importance });
        }
    }

    /// Finds the distinct rows.
    #[inline(always)]
    fn merge(&mut self, embedded: &[f32]) {
        self.slots.fill(0);
        self.first.clear();
        self.multiplicity.clear();
        let mask = self.slots.len() - 1;
        for (patch, row) in embedded.chunks_exact(self.row_len).enumerate() {
            let eights = row.as_chunks::<8>().0;
            let mut slot = hash(eights) as usize & mask;
            self.group[patch] = loop {
                let Some(known) = self.slots[slot].checked_sub(1) else {
                    let new = self.first.len() as u32;
                    self.slots[slot] = new + 1;
                    self.first.push(patch as u32);
                    self.multiplicity.push(1.0);
                    break new;
                };
                let start = self.first[known as usize] as usize * self.row_len;
                if same(eights, embedded[start..start + self.row_len].as_chunks::<8>().0) {
                    self.multiplicity[known as usize] += 1.0;
                    break known;
                }
                slot = (slot + 1) & mask;
            };
        }
    }

    /// Lays the distinct keys out for the kernel and finds the rows whose logits may be large.
    #[inline(always)]
    fn lay_out(&mut self, embedded: &[f32]) {
        let (dim, distinct) = (self.dim, self.first.len());
        let mut longest = 0.0_f32;
        for place in 0..distinct.next_multiple_of(16) {
            let number = place.min(distinct - 1);
            let (block, lane) = (place / 16, place % 16);
            self.weights[block].0[lane] = if place == number { self.multiplicity[number] } else { 0.0 };
            let key = self.first[number] as usize * self.row_len + dim;
            let key = &embedded[key..key + dim];
            let mut square = 0.0;
            for (keys, &k) in self.keys[block * dim..(block + 1) * dim].iter_mut().zip(key) {
                keys.0[lane] = k;
                square += k * k;
            }
            longest = longest.max(square);
        }
        self.large.clear();
        for &first in &self.first {
            let query = first as usize * self.row_len;
            let square: f32 = embedded[query..query + dim].iter().map(|q| q * q).sum();
            // Not `<=`: an infinite or undefined bound is a large one.
            let small = square * longest <= SAFE * SAFE;
            self.large.push(!small);
        }
    }
}

/// Mixes the bits of a row.
#[inline(always)]
fn hash(row: &[[f32; 8]]) -> u64 {
    // Odd constants with well-mixed bits; the best bits of a product are its highest.
    const K: [u64; 4] =
        [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
    let mut hash = 0_u64;
    for eight in row {
        for (i, &k) in K.iter().enumerate() {
            let word = u64::from(eight[2 * i].to_bits()) | u64::from(eight[2 * i + 1].to_bits()) << 32;
            hash ^= word.wrapping_mul(k);
        }
        hash = (hash ^ hash >> 32).wrapping_mul(K[0]);
    }
    hash >> 32
}

/// Whether two rows are equal to the bit.
#[inline(always)]
fn same(a: &[[f32; 8]], b: &[[f32; 8]]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.map(f32::to_bits) == b.map(f32::to_bits))
}

/// `D` is the dimension when it is known at compile time, else 0.
struct Cast<'a, const D: usize> {
    votes: &'a mut Votes,
    embedded: &'a [f32],
    importance: &'a mut [f32],
}

impl<const D: usize> Task for Cast<'_, D> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let votes = self.votes;
        votes.merge(self.embedded);
        votes.lay_out(self.embedded);
        let blocks = votes.distinct().div_ceil(16);
        votes.columns[..blocks].fill(Block::default());
        if I::ROWS == 4 {
            count::<I, D, 4>(isa, votes, self.embedded);
        } else {
            count::<I, D, 2>(isa, votes, self.embedded);
        }
        let columns = votes.columns.as_slice();
        for (importance, &group) in self.importance.iter_mut().zip(&votes.group) {
            *importance = columns[group as usize / 16].0[group as usize % 16];
        }
    }
}

/// Goes through the distinct rows, `R` at a time. Sums run over columns in blocks of 16 and over rows one after the
/// other, so `R` does not show in the result.
#[inline(always)]
fn count<I: Isa, const D: usize, const R: usize>(isa: I, votes: &mut Votes, embedded: &[f32]) {
    let dim = if D == 0 { votes.dim } else { D };
    let distinct = votes.first.len();
    let blocks = distinct.div_ceil(16);
    let keys = &votes.keys[..blocks * dim];
    let weights = &votes.weights[..blocks];
    let columns = &mut votes.columns[..blocks];
    let matrix = &mut votes.rows.as_chunks_mut::<R>().0[..blocks];
    let zero = isa.splat16(0.0);

    for start in (0..distinct).step_by(R) {
        // Beyond the last row, the last row again, with no vote.
        let number: [usize; R] = std::array::from_fn(|r| (start + r).min(distinct - 1));
        let mut queries: [&[f32]; R] = [&[]; R];
        let mut splats = [[zero; D]; R];
        for r in 0..R {
            let query = votes.first[number[r]] as usize * votes.row_len;
            queries[r] = &embedded[query..query + dim];
            for t in 0..D {
                splats[r][t] = isa.splat16(queries[r][t]);
            }
        }

        let mut sums = [zero; R];
        if number.iter().any(|&n| votes.large[n]) {
            // Logits first, to find their maximum; where the row needs none, it is taken as 0, which changes nothing.
            let mut peaks = [isa.splat16(f32::MIN); R];
            for (keys, out) in keys.chunks_exact(dim).zip(matrix.iter_mut()) {
                for r in 0..R {
                    let x = logit::<I, D>(isa, &splats[r], queries[r], keys);
                    peaks[r] = x.max(peaks[r]);
                    x.store(&mut out[r].0);
                }
            }
            for r in 0..R {
                let peak = if votes.large[number[r]] { peaks[r].largest() } else { 0.0 };
                peaks[r] = isa.splat16(peak);
            }
            for (weights, out) in weights.iter().zip(matrix.iter_mut()) {
                let weights = isa.load16(&weights.0);
                for r in 0..R {
                    let x = isa.load16(&out[r].0).sub(peaks[r]).max(isa.splat16(-126.0));
                    let e = exp2(isa, x);
                    sums[r] = e.mul_add(weights, sums[r]);
                    e.store(&mut out[r].0);
                }
            }
        } else {
            for ((keys, weights), out) in keys.chunks_exact(dim).zip(weights).zip(matrix.iter_mut()) {
                let weights = isa.load16(&weights.0);
                for r in 0..R {
                    let e = exp2(isa, logit::<I, D>(isa, &splats[r], queries[r], keys));
                    sums[r] = e.mul_add(weights, sums[r]);
                    e.store(&mut out[r].0);
                }
            }
        }

        let mut shares = [zero; R];
        for r in 0..R {
            let voters = if start + r < distinct { votes.multiplicity[number[r]] } else { 0.0 };
            shares[r] = isa.splat16(voters / sums[r].sum());
        }
        for (column, rows) in columns.iter_mut().zip(matrix.iter()) {
            let mut sum = isa.load16(&column.0);
            for r in 0..R {
                sum = isa.load16(&rows[r].0).mul_add(shares[r], sum);
            }
            sum.store(&mut column.0);
        }
    }
}

/// q·k of one query with sixteen keys.
#[inline(always)]
fn logit<I: Isa, const D: usize>(isa: I, splats: &[I::V16; D], query: &[f32], keys: &[Block]) -> I::V16 {
    if D > 0 {
        let mut x = splats[0].mul(isa.load16(&keys[0].0));
        for t in 1..D {
            x = splats[t].mul_add(isa.load16(&keys[t].0), x);
        }
        return x;
    }
    let mut x = isa.splat16(query[0]).mul(isa.load16(&keys[0].0));
    for (&q, k) in query.iter().zip(keys).skip(1) {
        x = isa.splat16(q).mul_add(isa.load16(&k.0), x);
    }
    x
}
