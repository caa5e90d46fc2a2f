//! Votes computed from features: keys are summed once, then every query is multiplied with the sums.

use std::f32::consts::{LN_2, LOG2_E};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{Side, VoteError};
use super::map::{Base, FeatureMap, Positive};
use super::vectors::{Vectors, squares};
use super::{LARGEST, SAFE, power_of_two};
use foveate_core::Threads;

use crate::lanes::{Block, Isa, Lanes, Task};
use crate::threads::{in_panels, share};
use crate::{Embedded, Level};

/// A feature map and its scratch space: O(M), independent of the number of patches.
#[derive(Debug, Clone)]
pub struct KernelVotes {
    map: FeatureMap,
    /// `[threads]`
    scratch: Vec<Scratch>,
    threads: Threads,
    /// `[panels, base_features, 1 + hyperplanes, 16]` with threads, else `[1, …]`: sums of the features of a
    /// panel's keys, alone and multiplied by each hyperplane's sign.
    panels: Vec<Block>,
    /// `[base_features, 1 + hyperplanes, 16]`: the same sums over all keys.
    sums: Vec<Block>,
    /// `[base_features, 1 + hyperplanes]`: factors of a query's features.
    totals: Vec<f32>,
    /// For queries and for keys, `[1 + base_features]`: binary exponents factored out; see
    /// [`FeatureMap::raise_peaks`].
    constants: [Vec<f32>; 2],
    exponent: f32,
    vanished: usize,
}

/// Scratch space of one thread.
#[derive(Debug, Clone)]
struct Scratch {
    /// `[dim, 16]`: queries or keys of sixteen patches.
    vectors: Vec<Block>,
    /// `[base_features, 16]`
    features: Vec<Block>,
    /// `[hyperplanes, 16]`
    sides: Vec<Block>,
}

/// Number of blocks of sixteen keys per panel; more keys than this are summed in several panels.
const PANEL: usize = 2048;

/// Maximum number of panels.
const MOST_PANELS: usize = 64;

/// Number of blocks of a panel when there are `blocks` blocks.
const fn panel(blocks: usize) -> usize {
    let size = blocks.div_ceil(MOST_PANELS);
    if size > PANEL { size } else { PANEL }
}

/// Minimum number of blocks of sixteen queries that is worth a thread.
const LEAST: usize = 1024;

impl KernelVotes {
    /// Scratch space for votes with `map`.
    pub fn new(map: &FeatureMap) -> Self {
        let (base, planes) = (map.base_features(), map.hyperplanes());
        KernelVotes {
            threads: Threads::one(),
            scratch: vec![Scratch {
                vectors: vec![Block::default(); map.dim()],
                features: vec![Block::default(); base],
                sides: vec![Block::default(); planes],
            }],
            panels: vec![Block::default(); base * (1 + planes)],
            // The same space is used to find the peaks of the exponents.
            sums: vec![Block::default(); (base * (1 + planes)).max(1 + base)],
            totals: vec![0.0; base * (1 + planes)],
            constants: [vec![0.0; 1 + base], vec![0.0; 1 + base]],
            exponent: 0.0,
            vanished: 0,
            map: map.clone(),
        }
    }

    /// Allocates scratch space for `threads`, O(threads · M) memory. Threads share the queries, at least
    /// 16,384 each, and keys in panels of 32,768, so several threads help from 32,768 patches on.
    #[must_use]
    pub fn with_threads(mut self, threads: &Threads) -> Self {
        let count = threads.count();
        self.threads = threads.clone();
        self.scratch.truncate(1);
        self.scratch.resize(count, self.scratch[0].clone());
        let panels = if count == 1 { 1 } else { MOST_PANELS };
        self.panels = vec![Block::default(); self.totals.len() * panels];
        self
    }

    /// The feature map.
    pub const fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// The importances of the last [`KernelVotes::compute`] times 2 to this power are the sums of the
    /// definition. It is 0 unless queries and keys are so long that powers of e would overflow.
    pub const fn exponent(&self) -> f32 {
        self.exponent
    }

    /// Number of importances of the last [`KernelVotes::compute`] that are 0 because they are more than 2^126
    /// times smaller than the largest could be. Their order is lost; the caller decides whether this matters.
    pub const fn vanished(&self) -> usize {
        self.vanished
    }

    /// Writes `φ(q_i) · Σ_j c_j φ(k_j)` to `importance`, `[patches]`. Without `c`, `[patches]`, every key
    /// counts once.
    ///
    /// # Errors
    /// When a query or key is too long for single precision, a weight is not finite, or a result is not. The
    /// content of `importance` is then unspecified.
    ///
    /// # Panics
    /// When `embedded`, `c` and `importance` have different numbers of patches, there is no patch, or queries
    /// have another length than the map expects.
    pub fn compute(
        &mut self,
        level: Level,
        embedded: &Embedded,
        c: Option<&[f32]>,
        importance: &mut [f32],
    ) -> Result<(), VoteError> {
        let patches = embedded.patches();
        assert_eq!(embedded.dim(), self.map.dim(), "length of a query");
        assert_eq!(importance.len(), patches, "patches");
        assert!(patches > 0, "votes need a patch");
        check_weights(c, patches)?;
        let (dim, same_length) = (self.map.dim(), self.map.same_length);
        let embedded = embedded.rows();
        if dim == 4 {
            self.compute_for(level, Vectors::<4> { embedded, patches, dim, same_length }, c, importance)
        } else {
            self.compute_for(level, Vectors::<0> { embedded, patches, dim, same_length }, c, importance)
        }
    }

    fn compute_for<const D: usize>(
        &mut self,
        level: Level,
        vectors: Vectors<'_, D>,
        c: Option<&[f32]>,
        importance: &mut [f32],
    ) -> Result<(), VoteError> {
        let blocks = vectors.patches.div_ceil(16);
        if self.map.exponential() {
            level.run(FindConstants { votes: self, vectors })?;
        }
        let KernelVotes { map, scratch, threads, panels, sums, totals, constants, .. } = self;
        let (map, size, length) = (&*map, panel(blocks), totals.len());
        let (number, keys) = (blocks.div_ceil(size), &constants[1]);
        in_panels(threads, number, scratch, panels, &mut sums[..length], |panel, scratch, sums| {
            let blocks = panel * size..blocks.min((panel + 1) * size);
            level.run(SumKeys { map, vectors, c, constants: keys, blocks, scratch, sums });
        });
        level.run(Total { votes: self });
        self.weigh_sums();

        let KernelVotes { map, scratch, threads, totals, constants, .. } = self;
        let (map, totals, queries) = (&*map, &totals[..], &constants[0]);
        let size = share(blocks, scratch.len(), LEAST, 1);
        let sound = AtomicBool::new(true);
        let parts = importance.chunks_mut(size * 16).zip(scratch).enumerate();
        threads.for_each(parts, |(part, (importance, scratch))| {
            let first = part * size;
            let multiply = Multiply { map, vectors, constants: queries, totals, first, scratch, importance };
            if !level.run(multiply) {
                sound.store(false, Ordering::Relaxed);
            }
        });
        if !sound.into_inner() {
            let patch = importance.iter().position(|value| !value.is_finite()).unwrap_or(0);
            let [query_norm, key_norm] = level.run(Longest { vectors, scratch: &mut self.scratch[0] });
            return Err(VoteError::Overflow { patch, query_norm, key_norm });
        }
        self.vanished =
            if self.map.exponential() { importance.iter().filter(|&&value| value == 0.0).count() } else { 0 };
        Ok(())
    }
}

/// Checks that there is one finite weight for each patch.
pub(super) fn check_weights(c: Option<&[f32]>, patches: usize) -> Result<(), VoteError> {
    let Some(c) = c else { return Ok(()) };
    assert_eq!(c.len(), patches, "weights");
    match c.iter().position(|value| !value.is_finite()) {
        Some(patch) => Err(VoteError::Weight { patch, value: c[patch] }),
        None => Ok(()),
    }
}

impl KernelVotes {
    /// Multiplies the totals by all constant factors: the normalisation of the features, the factors of the
    /// hybrid map, and the powers of two that were factored out.
    fn weigh_sums(&mut self) {
        let votes = self;
        let (base, planes) = (votes.map.base_features(), votes.map.hyperplanes());
        let m = votes.map.projections();
        let (waves, under_root) = match votes.map.base {
            Base::Elementwise(_) => (0, if votes.map.omega.is_empty() { 1 } else { m }),
            Base::Random { trigonometric, positive } => {
                let per_power = if positive == Some(Positive::Hyperbolic) { 2 } else { 1 };
                (if trigonometric { 2 * m } else { 0 }, per_power * m)
            }
        };
        // Sines and cosines share the constant of the lengths; each exponential has its own.
        let [queries, keys] = &votes.constants;
        let power = |feature: usize| {
            let i = if feature < waves { 0 } else { 1 + feature - waves };
            queries[i] + keys[i]
        };
        let top = (0..base).map(power).fold(-4.0 * LARGEST, f32::max);
        votes.exponent = if top.abs() <= 1.5 * SAFE { 0.0 } else { top };
        for (feature, totals) in votes.totals.chunks_exact_mut(1 + planes).enumerate() {
            let wave = feature < waves;
            let root = if wave { m } else { under_root } as f32;
            let weight = power_of_two(power(feature) - votes.exponent) / root;
            let (alone, times_side) = totals.split_first_mut().expect("one more than hyperplanes");
            // 1 − λ = 1/2 + s·s / 2n and λ = 1/2 − s·s / 2n, equations 7 to 9.
            *alone *= if planes > 0 { 0.5 * weight } else { weight };
            let sign = if wave { 0.5 } else { -0.5 };
            for total in times_side {
                *total *= sign * weight / planes as f32;
            }
        }
    }
}

/// Chooses the factors to take out of the features.
struct FindConstants<'a, const D: usize> {
    votes: &'a mut KernelVotes,
    vectors: Vectors<'a, D>,
}

impl<const D: usize> Task for FindConstants<'_, D> {
    type Out = Result<(), VoteError>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Self::Out {
        let FindConstants { votes, vectors } = self;
        let direction = votes.map.longest();
        let quadratic = matches!(votes.map.base, Base::Random { .. });
        // The largest binary exponent of a vector of length x is at most (x direction + x² / 2) log2 e; the
        // square is present only for some maps.
        let limit = if quadratic {
            (direction * direction + 2.0 * LN_2 * LARGEST).sqrt() - direction
        } else {
            LARGEST * LN_2 / direction
        };
        let KernelVotes { map, scratch, sums, constants, .. } = votes;
        let z = &mut scratch[0].vectors[..vectors.dim()];
        for (constants, side) in constants.iter_mut().zip([Side::Query, Side::Key]) {
            let norm = longest(isa, &vectors, side, z);
            if norm > limit {
                let patch = patch_of_length(isa, &vectors, side, norm, z);
                return Err(VoteError::TooLong { side, patch, norm, limit });
            }
            let square = if quadratic { 0.5 * norm * norm } else { 0.0 };
            constants.fill(0.0);
            if (direction * norm + square) * LOG2_E <= SAFE {
                continue;
            }
            let peaks = &mut sums[..=map.base_features()];
            peaks.fill(Block([-LARGEST * 2.0; 16]));
            for block in 0..vectors.patches.div_ceil(16) {
                vectors.load(isa, side, block, z);
                map.raise_peaks(isa, z, peaks);
            }
            for (constant, peak) in constants.iter_mut().zip(&*peaks) {
                // Whole numbers, so that dividing by their powers of two rounds nothing.
                *constant = isa.load16(&peak.0).largest().ceil();
            }
        }
        Ok(())
    }
}

/// Length of the longest query or key; `z` is `[dim, 16]`.
#[inline(always)]
fn longest<I: Isa, const D: usize>(isa: I, vectors: &Vectors<'_, D>, side: Side, z: &mut [Block]) -> f32 {
    let mut longest = isa.splat16(0.0);
    for block in 0..vectors.patches.div_ceil(16) {
        vectors.load(isa, side, block, z);
        longest = squares(isa, z).max(longest);
    }
    longest.largest().sqrt()
}

/// The first patch whose query or key has this length; `z` is `[dim, 16]`.
#[inline(always)]
fn patch_of_length<I: Isa, const D: usize>(
    isa: I,
    vectors: &Vectors<'_, D>,
    side: Side,
    norm: f32,
    z: &mut [Block],
) -> usize {
    for block in 0..vectors.patches.div_ceil(16) {
        vectors.load(isa, side, block, z);
        let mut lengths = [0.0; 16];
        squares(isa, z).store(&mut lengths);
        if let Some(lane) = lengths.iter().position(|square| square.sqrt() >= norm) {
            return block * 16 + lane;
        }
    }
    0
}

/// Lengths of the longest query and of the longest key.
struct Longest<'a, const D: usize> {
    vectors: Vectors<'a, D>,
    scratch: &'a mut Scratch,
}

impl<const D: usize> Task for Longest<'_, D> {
    type Out = [f32; 2];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> [f32; 2] {
        let z = &mut self.scratch.vectors[..self.vectors.dim()];
        // Without a closure, which would not get the target features.
        let query = longest(isa, &self.vectors, Side::Query, z);
        [query, longest(isa, &self.vectors, Side::Key, z)]
    }
}

/// Computes `Σ_j c_j φ(k_j)` over some blocks of keys.
struct SumKeys<'a, const D: usize> {
    map: &'a FeatureMap,
    vectors: Vectors<'a, D>,
    c: Option<&'a [f32]>,
    constants: &'a [f32],
    blocks: Range<usize>,
    scratch: &'a mut Scratch,
    sums: &'a mut [Block],
}

impl<const D: usize> Task for SumKeys<'_, D> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let SumKeys { map, vectors, c, constants, blocks, scratch, sums } = self;
        let Scratch { vectors: z, features, sides } = scratch;
        let z = &mut z[..vectors.dim()];
        sums.fill(Block::default());
        for block in blocks {
            let weight = weights(isa, c, block, vectors.patches);
            vectors.load(isa, Side::Key, block, z);
            map.write_features(isa, z, constants, features);
            map.sides(isa, z, sides);
            for (feature, sums) in features.iter().zip(sums.chunks_exact_mut(1 + sides.len())) {
                let feature = isa.load16(&feature.0).mul(weight);
                let (alone, times_side) = sums.split_first_mut().expect("one more than hyperplanes");
                isa.load16(&alone.0).add(feature).store(&mut alone.0);
                for (sum, side) in times_side.iter_mut().zip(sides.iter()) {
                    isa.load16(&side.0).mul_add(feature, isa.load16(&sum.0)).store(&mut sum.0);
                }
            }
        }
    }
}

/// Adds up the lanes.
struct Total<'a> {
    votes: &'a mut KernelVotes,
}

impl Task for Total<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (total, sum) in self.votes.totals.iter_mut().zip(&self.votes.sums) {
            *total = isa.load16(&sum.0).sum();
        }
    }
}

/// Multiplies `φ(q_i)` by the totals, for as many queries as `importance` holds, from block `first` on.
struct Multiply<'a, const D: usize> {
    map: &'a FeatureMap,
    vectors: Vectors<'a, D>,
    constants: &'a [f32],
    totals: &'a [f32],
    first: usize,
    scratch: &'a mut Scratch,
    importance: &'a mut [f32],
}

impl<const D: usize> Task for Multiply<'_, D> {
    /// Whether all results are finite.
    type Out = bool;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> bool {
        let Multiply { map, vectors, constants, totals, first, scratch, importance } = self;
        let Scratch { vectors: z, features, sides } = scratch;
        let z = &mut z[..vectors.dim()];
        let zero = isa.splat16(0.0);
        let mut broken = zero;
        let planes = sides.len();
        for (block, to) in importance.chunks_mut(16).enumerate() {
            vectors.load(isa, Side::Query, first + block, z);
            map.write_features(isa, z, constants, features);
            map.sides(isa, z, sides);
            let mut score = zero;
            for (feature, totals) in features.iter().zip(totals.chunks_exact(1 + planes)) {
                let mut total = isa.splat16(totals[0]);
                for (side, &with_side) in sides.iter().zip(&totals[1..]) {
                    total = isa.load16(&side.0).mul_add(isa.splat16(with_side), total);
                }
                score = isa.load16(&feature.0).mul_add(total, score);
            }
            // 0 times a finite number is 0; everything else becomes NaN and stays NaN.
            broken = score.mul_add(zero, broken);
            let mut scores = [0.0; 16];
            score.store(&mut scores);
            to.copy_from_slice(&scores[..to.len()]);
        }
        !broken.sum().is_nan()
    }
}

/// Weights of the keys of sixteen patches: 1 or the given weight, and 0 after the last patch.
#[inline(always)]
fn weights<I: Isa>(isa: I, c: Option<&[f32]>, block: usize, patches: usize) -> I::V16 {
    let count = (patches - block * 16).min(16);
    match c {
        None if count == 16 => isa.splat16(1.0),
        None => isa.load16(&std::array::from_fn(|lane| if lane < count { 1.0 } else { 0.0 })),
        Some(c) => {
            let c = &c[block * 16..];
            isa.load16(&std::array::from_fn(|lane| if lane < count { c[lane] } else { 0.0 }))
        }
    }
}
