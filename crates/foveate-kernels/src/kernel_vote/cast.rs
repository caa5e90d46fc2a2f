//! Votes by features: keys are summed up once, then every query is multiplied with the sums.

use std::f32::consts::{LN_2, LOG2_E};

use super::error::{Side, VoteError};
use super::map::{Base, FeatureMap, Positive};
use super::vectors::{Vectors, squares};
use super::{LARGEST, SAFE, power_of_two};
use crate::lanes::{Block, Isa, Lanes, Task};
use crate::{Embedded, Level};

/// A feature map and the scratch space to vote with it: O(M), whatever the number of patches.
#[derive(Debug, Clone)]
pub struct KernelVotes {
    map: FeatureMap,
    /// `[dim, 16]`: queries or keys of sixteen patches.
    vectors: Vec<Block>,
    /// `[base_features, 16]`
    features: Vec<Block>,
    /// `[hyperplanes, 16]`
    sides: Vec<Block>,
    /// `[base_features, 1 + hyperplanes, 16]`: features of the keys summed, alone and times each side.
    sums: Vec<Block>,
    /// `[base_features, 1 + hyperplanes]`: what a query's features are multiplied with.
    totals: Vec<f32>,
    /// For queries and for keys, `[1 + base_features]`: binary exponents factored out; see [`FeatureMap::raise_peaks`].
    constants: [Vec<f32>; 2],
    exponent: f32,
    vanished: usize,
}

impl KernelVotes {
    /// Scratch space to vote by `map`.
    pub fn new(map: &FeatureMap) -> Self {
        let (base, planes) = (map.base_features(), map.hyperplanes());
        KernelVotes {
            vectors: vec![Block::default(); map.dim()],
            features: vec![Block::default(); base],
            sides: vec![Block::default(); planes],
            // The peaks of the exponents are found in the same space.
            sums: vec![Block::default(); (base * (1 + planes)).max(1 + base)],
            totals: vec![0.0; base * (1 + planes)],
            constants: [vec![0.0; 1 + base], vec![0.0; 1 + base]],
            exponent: 0.0,
            vanished: 0,
            map: map.clone(),
        }
    }

    /// The kernel.
    pub const fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// The importances of the last [`KernelVotes::cast`] times 2 to this power are the sums of the definition. 0 unless
    /// queries and keys are so long that powers of e would overflow.
    pub const fn exponent(&self) -> f32 {
        self.exponent
    }

    /// How many importances of the last [`KernelVotes::cast`] are 0 for being more than 2^126 times smaller than the
    /// largest could be. Their order among each other is lost; it is for the caller to say whether it matters.
    pub const fn vanished(&self) -> usize {
        self.vanished
    }

    /// Writes φ(q_i) · Σ_j c_j φ(k_j) to `importance`, `[patches]`. Without `c`, `[patches]`, every key counts once.
    ///
    /// # Errors
    /// When a query or key is too long for single precision, a weight is not finite, or a result is not. `importance`
    /// is then of no use.
    ///
    /// # Panics
    /// When `embedded`, `c` and `importance` are for different numbers of patches, there is no patch, or queries have
    /// another length than the map's.
    pub fn cast(
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
        let votes = self;
        let (dim, same_length) = (votes.map.dim(), votes.map.same_length);
        let embedded = embedded.rows();
        if dim == 4 {
            let vectors = Vectors::<4> { embedded, patches, dim, same_length };
            level.run(Cast { votes, vectors, c, importance })
        } else {
            let vectors = Vectors::<0> { embedded, patches, dim, same_length };
            level.run(Cast { votes, vectors, c, importance })
        }
    }
}

/// That there is a finite weight for each of the patches.
pub(super) fn check_weights(c: Option<&[f32]>, patches: usize) -> Result<(), VoteError> {
    let Some(c) = c else { return Ok(()) };
    assert_eq!(c.len(), patches, "weights");
    match c.iter().position(|value| !value.is_finite()) {
        Some(patch) => Err(VoteError::Weight { patch, value: c[patch] }),
        None => Ok(()),
    }
}

struct Cast<'a, const D: usize> {
    votes: &'a mut KernelVotes,
    vectors: Vectors<'a, D>,
    c: Option<&'a [f32]>,
    importance: &'a mut [f32],
}

impl<const D: usize> Task for Cast<'_, D> {
    type Out = Result<(), VoteError>;

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) -> Self::Out {
        if self.votes.map.exponential() {
            self.find_constants(isa)?;
        }
        self.sum_keys(isa);
        self.weigh_sums();
        self.multiply_queries(isa)
    }
}

impl<const D: usize> Cast<'_, D> {
    /// Blocks of sixteen patches.
    const fn blocks(&self) -> usize {
        self.importance.len().div_ceil(16)
    }

    /// Length of the longest query or key.
    #[inline(always)]
    fn longest<I: Isa>(&mut self, isa: I, side: Side) -> f32 {
        let mut longest = isa.splat16(0.0);
        for block in 0..self.blocks() {
            let z = &mut self.votes.vectors[..self.vectors.dim()];
            self.vectors.load(isa, side, block, z);
            longest = squares(isa, z).max(longest);
        }
        longest.largest().sqrt()
    }

    /// Chooses what to factor out of the features.
    #[inline(always)]
    fn find_constants<I: Isa>(&mut self, isa: I) -> Result<(), VoteError> {
        let direction = self.votes.map.longest();
        let quadratic = matches!(self.votes.map.base, Base::Random { .. });
        // The largest binary exponent of a vector of length x is at most (x direction + x² / 2) log2 e, the square only
        // where there is one.
        let limit = if quadratic {
            (direction * direction + 2.0 * LN_2 * LARGEST).sqrt() - direction
        } else {
            LARGEST * LN_2 / direction
        };
        for (which, side) in [Side::Query, Side::Key].into_iter().enumerate() {
            let norm = self.longest(isa, side);
            if norm > limit {
                return Err(VoteError::TooLong {
                    side,
                    patch: self.patch_of_length(isa, side, norm),
                    norm,
                    limit,
                });
            }
            let square = if quadratic { 0.5 * norm * norm } else { 0.0 };
            self.votes.constants[which].fill(0.0);
            if (direction * norm + square) * LOG2_E <= SAFE {
                continue;
            }
            let peaks = 1 + self.votes.map.base_features();
            self.votes.sums[..peaks].fill(Block([-LARGEST * 2.0; 16]));
            for block in 0..self.blocks() {
                let KernelVotes { map, vectors, sums, .. } = &mut *self.votes;
                let z = &mut vectors[..self.vectors.dim()];
                self.vectors.load(isa, side, block, z);
                map.raise_peaks(isa, z, &mut sums[..peaks]);
            }
            for (constant, peak) in self.votes.constants[which].iter_mut().zip(&self.votes.sums) {
                // Whole, so that dividing by their powers rounds nothing.
                *constant = isa.load16(&peak.0).largest().ceil();
            }
        }
        Ok(())
    }

    /// The first patch whose query or key has this length.
    #[inline(always)]
    fn patch_of_length<I: Isa>(&mut self, isa: I, side: Side, norm: f32) -> usize {
        for block in 0..self.blocks() {
            let z = &mut self.votes.vectors[..self.vectors.dim()];
            self.vectors.load(isa, side, block, z);
            let mut lengths = [0.0; 16];
            squares(isa, z).store(&mut lengths);
            if let Some(lane) = lengths.iter().position(|square| square.sqrt() >= norm) {
                return block * 16 + lane;
            }
        }
        0
    }

    /// Σ_j c_j φ(k_j).
    #[inline(always)]
    fn sum_keys<I: Isa>(&mut self, isa: I) {
        let patches = self.importance.len();
        self.votes.sums.fill(Block::default());
        for block in 0..self.blocks() {
            let weight = weights(isa, self.c, block, patches);
            let KernelVotes { map, vectors, features, sides, sums, constants, .. } = &mut *self.votes;
            let z = &mut vectors[..self.vectors.dim()];
            self.vectors.load(isa, Side::Key, block, z);
            map.write_features(isa, z, &constants[1], features);
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
        for (total, sum) in self.votes.totals.iter_mut().zip(&self.votes.sums) {
            *total = isa.load16(&sum.0).sum();
        }
    }

    /// Gives the totals all constant factors: those under the features' roots, the hybrid's, and the powers of two that
    /// were factored out.
    fn weigh_sums(&mut self) {
        let votes = &mut *self.votes;
        let (base, planes) = (votes.map.base_features(), votes.sides.len());
        let m = votes.map.projections();
        let (waves, under_root) = match votes.map.base {
            Base::Elementwise(_) => (0, if votes.map.omega.is_empty() { 1 } else { m }),
            Base::Random { trigonometric, positive } => {
                let per_power = if positive == Some(Positive::Hyperbolic) { 2 } else { 1 };
                (if trigonometric { 2 * m } else { 0 }, per_power * m)
            }
        };
        // Waves share the constant of the lengths; a power has its own.
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

    /// φ(q_i) times the totals.
    #[inline(always)]
    fn multiply_queries<I: Isa>(&mut self, isa: I) -> Result<(), VoteError> {
        let zero = isa.splat16(0.0);
        let mut broken = zero;
        let planes = self.votes.sides.len();
        for block in 0..self.blocks() {
            let KernelVotes { map, vectors, features, sides, totals, constants, .. } = &mut *self.votes;
            let z = &mut vectors[..self.vectors.dim()];
            self.vectors.load(isa, Side::Query, block, z);
            map.write_features(isa, z, &constants[0], features);
            map.sides(isa, z, sides);
            let mut score = zero;
            for (feature, totals) in features.iter().zip(totals.chunks_exact(1 + planes)) {
                let mut total = isa.splat16(totals[0]);
                for (side, &with_side) in sides.iter().zip(&totals[1..]) {
                    total = isa.load16(&side.0).mul_add(isa.splat16(with_side), total);
                }
                score = isa.load16(&feature.0).mul_add(total, score);
            }
            // 0 times a finite number is 0, anything else becomes NaN and stays so.
            broken = score.mul_add(zero, broken);
            let mut scores = [0.0; 16];
            score.store(&mut scores);
            let to = &mut self.importance[block * 16..];
            let count = to.len().min(16);
            to[..count].copy_from_slice(&scores[..count]);
        }
        if broken.sum().is_nan() {
            let patch = self.importance.iter().position(|value| !value.is_finite()).unwrap_or(0);
            let (query_norm, key_norm) = (self.longest(isa, Side::Query), self.longest(isa, Side::Key));
            return Err(VoteError::Overflow { patch, query_norm, key_norm });
        }
        self.votes.vanished = if self.votes.map.exponential() {
            self.importance.iter().filter(|&&value| value == 0.0).count()
        } else {
            0
        };
        Ok(())
    }
}

/// What the keys of sixteen patches count: 1 or their weight, and 0 beyond the last patch.
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
