//! exp(q·k) for every pair, in quadratic time: the kernel that random features estimate.

use std::f32::consts::{LN_2, LOG2_E};

use super::compute::check_weights;
use super::error::{Side, VoteError};
use super::vectors::{Vectors, squares};
use super::{LARGEST, power_of_two};
use foveate_core::Threads;

use crate::distinct::Distinct;
use crate::lanes::{Block, Isa, Lanes, Task, exp2_by_table};
use crate::threads::share;
use crate::{Embedded, Level};

/// Largest |logit| that needs no row maximum: sums over 2^20 patches stay finite.
const SMALL: f32 = 60.0;

/// Logits this far below the maximum of their row contribute practically 0.
const LOWEST: f32 = -123.0;

/// Number of queries processed together.
const ROWS: usize = 4;

/// Scratch space for [`PairVotes::compute`]: O(patches · dim).
#[derive(Debug, Clone)]
pub struct PairVotes {
    patches: usize,
    dim: usize,
    same_length: Option<f32>,
    rows: Distinct,
    /// `[distinct / 16, dim, 16]`, times log2 e, padded with the last query.
    queries: Vec<Block>,
    /// `[distinct / 16, dim, 16]`
    keys: Vec<Block>,
    /// `[distinct / 16, 16]`: total weight of equal keys, padded with 0.
    weights: Vec<Block>,
    /// `[distinct]`: sums, divided by 2^peaks.
    sums: Vec<f32>,
    /// `[distinct]`
    peaks: Vec<f32>,
    exponent: f32,
    vanished: usize,
    threads: Threads,
}

/// Minimum number of queries that is worth a thread.
const LEAST: usize = 512;

impl PairVotes {
    /// Scratch space for `patches` patches with queries of `dim` numbers, all scaled to length `same_length`
    /// if it is set.
    ///
    /// # Panics
    /// When `dim` or `patches` is 0, there are more than 2^20 patches, or the length is not in 0 ..= 1000.
    pub fn new(patches: usize, dim: usize, same_length: Option<f32>) -> Self {
        use crate::vote::MAX_PATCHES;
        assert!((1..=MAX_PATCHES).contains(&patches), "{patches} patches, up to {MAX_PATCHES} are possible");
        assert!(dim > 0, "queries need a length of at least 1");
        assert!(same_length.is_none_or(|tau| (0.0..=1e3).contains(&tau)), "length {same_length:?}");
        let blocks = patches.div_ceil(16);
        PairVotes {
            patches,
            dim,
            same_length,
            rows: Distinct::new(patches),
            queries: vec![Block::default(); blocks * dim],
            keys: vec![Block::default(); blocks * dim],
            weights: vec![Block::default(); blocks],
            sums: vec![0.0; patches],
            peaks: vec![0.0; patches],
            exponent: 0.0,
            vanished: 0,
            threads: Threads::one(),
        }
    }

    /// Allocates scratch space for `threads`, which share the queries.
    #[must_use]
    pub fn with_threads(self, threads: &Threads) -> Self {
        PairVotes { threads: threads.clone(), ..self }
    }

    /// The importances of the last [`PairVotes::compute`] times 2 to this power are the sums of the
    /// definition. It is 0 unless a power of e would overflow.
    pub const fn exponent(&self) -> f32 {
        self.exponent
    }

    /// Number of importances of the last [`PairVotes::compute`] that are 0 because they are more than 2^126
    /// times smaller than the largest.
    pub const fn vanished(&self) -> usize {
        self.vanished
    }

    /// Writes `Σ_j c_j exp(q_i·k_j)` to `importance`, `[patches]`. Without `c`, `[patches]`, every key counts
    /// once. Patches with equal queries and keys are merged first.
    ///
    /// # Errors
    /// When queries and keys are too long for single precision, a weight is not finite, or a result is not.
    ///
    /// # Panics
    /// When `embedded`, `c` or `importance` has another number of patches, or queries have another length.
    pub fn compute(
        &mut self,
        level: Level,
        embedded: &Embedded,
        c: Option<&[f32]>,
        importance: &mut [f32],
    ) -> Result<(), VoteError> {
        assert_eq!(embedded.patches(), self.patches, "patches");
        assert_eq!(embedded.dim(), self.dim, "length of a query");
        assert_eq!(importance.len(), self.patches, "patches");
        check_weights(c, self.patches)?;
        if self.dim == 4 {
            self.compute_for::<4>(level, embedded, c, importance)
        } else {
            self.compute_for::<0>(level, embedded, c, importance)
        }
    }

    fn compute_for<const D: usize>(
        &mut self,
        level: Level,
        embedded: &Embedded,
        c: Option<&[f32]>,
        importance: &mut [f32],
    ) -> Result<(), VoteError> {
        let votes = self;
        let norms = level.run(LayOut::<D> { votes, embedded, c });
        let [(query_norm, query_patch), (key_norm, key_patch)] = norms;
        if query_norm * key_norm * LOG2_E > LARGEST {
            // The error names the longer one; neither can be 0.
            let product = LARGEST * LN_2;
            return Err(if query_norm >= key_norm {
                VoteError::TooLong {
                    side: Side::Query,
                    patch: query_patch,
                    norm: query_norm,
                    limit: product / key_norm,
                }
            } else {
                VoteError::TooLong {
                    side: Side::Key,
                    patch: key_patch,
                    norm: key_norm,
                    limit: product / query_norm,
                }
            });
        }
        let PairVotes { dim, rows, queries, keys, weights, sums, peaks, threads, .. } = votes;
        let distinct = rows.count;
        let (dim, blocks) = (if D == 0 { *dim } else { D }, distinct.div_ceil(16));
        let (keys, weights) = (&keys[..blocks * dim], &weights[..blocks]);
        // Whole blocks, so that no two parts share a block of queries.
        let size = share(distinct, threads.count(), LEAST, 16);
        let (sums, peaks) = (&mut sums[..distinct], &mut peaks[..distinct]);
        let parts = sums.chunks_mut(size).zip(peaks.chunks_mut(size)).zip(queries.chunks(size / 16 * dim));
        threads.for_each(parts, |((sums, peaks), queries)| {
            level.run(Sum::<D> { dim, queries, keys, weights, key_norm, sums, peaks });
        });

        let top = peaks.iter().copied().fold(0.0, f32::max);
        votes.exponent = if top <= SMALL { 0.0 } else { top };
        for (sum, &peak) in sums.iter_mut().zip(&*peaks) {
            // In two steps: a sum without a peak may be large itself.
            let half = ((peak - votes.exponent) / 2.0).floor();
            *sum = *sum * power_of_two(half) * power_of_two(peak - votes.exponent - half);
        }
        votes.vanished = 0;
        for (patch, (importance, &group)) in importance.iter_mut().zip(&votes.rows.group).enumerate() {
            *importance = sums[group as usize];
            votes.vanished += usize::from(*importance == 0.0);
            if !importance.is_finite() {
                return Err(VoteError::Overflow { patch, query_norm, key_norm });
            }
        }
        Ok(())
    }
}

struct LayOut<'a, const D: usize> {
    votes: &'a mut PairVotes,
    embedded: &'a Embedded,
    c: Option<&'a [f32]>,
}

impl<const D: usize> Task for LayOut<'_, D> {
    type Out = [(f32, usize); 2];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Self::Out {
        lay_out::<I, D>(isa, self.votes, self.embedded, self.c)
    }
}

/// Finds the distinct rows and stores them in the kernel's layout; returns the length of the longest query
/// and of the longest key, with their patches.
#[inline(always)]
fn lay_out<I: Isa, const D: usize>(
    isa: I,
    votes: &mut PairVotes,
    embedded: &Embedded,
    c: Option<&[f32]>,
) -> [(f32, usize); 2] {
    let dim = if D == 0 { votes.dim } else { D };
    votes.rows.find(embedded.rows(), embedded.per_row());
    let (distinct, patches) = (votes.rows.count, votes.patches);
    let vectors = Vectors::<D> { embedded: embedded.rows(), patches, dim, same_length: votes.same_length };

    votes.weights.fill(Block::default());
    match c {
        None => {
            let multiplicity = votes.rows.multiplicity[..distinct].chunks(16);
            for (to, from) in votes.weights.iter_mut().zip(multiplicity) {
                to.0[..from.len()].copy_from_slice(from);
            }
        }
        Some(c) => {
            for (&group, &c) in votes.rows.group.iter().zip(c) {
                votes.weights[group as usize / 16].0[group as usize % 16] += c;
            }
        }
    }

    let mut norms = [(0.0_f32, 0); 2];
    for (which, side) in [Side::Query, Side::Key].into_iter().enumerate() {
        let to = if side == Side::Query { &mut votes.queries } else { &mut votes.keys };
        for (block, to) in to.chunks_exact_mut(dim).take(distinct.div_ceil(16)).enumerate() {
            let firsts = &votes.rows.first[block * 16..distinct.min(block * 16 + 16)];
            vectors.gather(isa, side, firsts, to);
            let mut lengths = [0.0; 16];
            squares(isa, to).sqrt().store(&mut lengths);
            for (lane, &length) in lengths.iter().enumerate() {
                if length > norms[which].0 {
                    norms[which] = (length, firsts[lane.min(firsts.len() - 1)] as usize);
                }
            }
            if side == Side::Query {
                for x in to {
                    isa.load16(&x.0).mul(isa.splat16(LOG2_E)).store(&mut x.0);
                }
            }
        }
    }
    norms
}

/// The sums of some of the distinct queries.
struct Sum<'a, const D: usize> {
    dim: usize,
    /// The blocks of these queries, possibly followed by others.
    queries: &'a [Block],
    keys: &'a [Block],
    weights: &'a [Block],
    key_norm: f32,
    sums: &'a mut [f32],
    peaks: &'a mut [f32],
}

impl<const D: usize> Task for Sum<'_, D> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        sum(isa, self);
    }
}

/// Processes a few queries at a time.
#[inline(always)]
fn sum<I: Isa, const D: usize>(isa: I, of: Sum<'_, D>) {
    let Sum { dim, queries: all, keys, weights, key_norm, sums: all_sums, peaks: all_peaks } = of;
    let dim = if D == 0 { dim } else { D };
    let count = all_sums.len();
    let zero = isa.splat16(0.0);
    #[expect(clippy::needless_range_loop, reason = "r and t count several arrays at once")]
    for start in (0..count).step_by(ROWS) {
        let row = |r: usize| (start + r).min(count - 1);
        let mut queries = [(&[] as &[Block], 0); ROWS];
        let mut splats = [[zero; D]; ROWS];
        let mut large = [false; ROWS];
        for r in 0..ROWS {
            queries[r] = (&all[row(r) / 16 * dim..(row(r) / 16 + 1) * dim], row(r) % 16);
            let mut square = 0.0;
            for t in 0..dim {
                let q = queries[r].0[t].0[queries[r].1];
                square += q * q;
                if D > 0 {
                    splats[r][t] = isa.splat16(q);
                }
            }
            large[r] = square * key_norm * key_norm > SMALL * SMALL;
        }
        let mut peaks = [0.0; ROWS];
        let mut sums = [zero; ROWS];
        if large.contains(&true) {
            let mut largest = [isa.splat16(-2.0 * LARGEST); ROWS];
            for (keys, weight) in keys.chunks_exact(dim).zip(weights) {
                // Keys with weight 0 must not be the maximum.
                let counts = isa.load16(&weight.0).copy_sign(isa.splat16(1.0));
                for r in 0..ROWS {
                    let x = zero.select_lt(
                        counts,
                        logit::<I, D>(isa, &splats[r], queries[r], keys),
                        isa.splat16(-2.0 * LARGEST),
                    );
                    largest[r] = x.max(largest[r]);
                }
            }
            for r in 0..ROWS {
                // A row that needs no maximum uses 0, which does not change the result: it must not depend on
                // neighbours.
                peaks[r] = if large[r] { largest[r].largest().ceil() } else { 0.0 };
            }
            for (keys, weight) in keys.chunks_exact(dim).zip(weights) {
                let weight = isa.load16(&weight.0);
                for r in 0..ROWS {
                    let x = logit::<I, D>(isa, &splats[r], queries[r], keys).sub(isa.splat16(peaks[r]));
                    let x = x.min(isa.splat16(SMALL)).max(isa.splat16(LOWEST));
                    sums[r] = exp2_by_table(isa, x).mul_add(weight, sums[r]);
                }
            }
        } else {
            for (keys, weight) in keys.chunks_exact(dim).zip(weights) {
                let weight = isa.load16(&weight.0);
                for r in 0..ROWS {
                    sums[r] = exp2_by_table(isa, logit::<I, D>(isa, &splats[r], queries[r], keys))
                        .mul_add(weight, sums[r]);
                }
            }
        }
        for r in 0..ROWS {
            all_sums[row(r)] = sums[r].sum();
            all_peaks[row(r)] = peaks[r];
        }
    }
}

/// q·k of one query, which is a lane of its block, with sixteen keys.
#[inline(always)]
fn logit<I: Isa, const D: usize>(
    isa: I,
    splats: &[I::V16; D],
    (query, lane): (&[Block], usize),
    keys: &[Block],
) -> I::V16 {
    let mut x = isa.splat16(0.0);
    if D > 0 {
        for t in 0..D {
            x = splats[t].mul_add(isa.load16(&keys[t].0), x);
        }
    } else {
        for (q, key) in query.iter().zip(keys) {
            x = isa.splat16(q.0[lane]).mul_add(isa.load16(&key.0), x);
        }
    }
    x
}
