//! An approximation of the softmax votes of [`vote`](crate::vote): within a relative error that the caller
//! chooses, in time that grows almost linearly with the number of patches.
//!
//! Queries and keys have few elements, so 2^(q·k) is a smooth function of few variables. For queries that are
//! close together, their votes for all keys can be interpolated from the values at a small grid of Chebyshev
//! nodes; keys that are close together act like weights on such a grid. So both are divided into cells; each
//! cell is represented by a grid (or by its own points, if these are fewer), and only grids are combined: two
//! products with the matrix 2^(node·node) instead of the N × N one.
//!
//! **The bound is proved**, up to rounding. 2^(x·y) is the product of one exponential per axis, and
//! interpolation on a tensor grid interpolates each of these separately. With n nodes on an axis where |x·y|
//! is at most r in natural units, the relative error is at most e = r^n e^(2 r) / (2^(n − 1) n!). Over all
//! axes and both sides, every entry of the matrix is within a factor 1 ± E of its exact value, with 1 + E = Π
//! (1 + e). Row sums are too, because entries are positive, and so importances are within (1 + E) / (1 − E).
//! Grids are as fine as that requires. Single precision adds about 1e-5.
//!
//! Axes are chosen so that queries and keys have equal spread along each (the eigenvectors of the product of
//! their covariances). All but one or two axes are then usually short, and need two or three nodes.
//!
//! If cells do not pay off (few patches, long vectors, many axes), the exact votes are computed. Results are
//! bit-identical on every instruction set, as in [`vote`](crate::vote).

mod balance;
mod cells;
mod grid;
mod series;

use balance::Axes;
use cells::Side;
use series::Chebyshev;

use foveate_core::Threads;

use crate::distinct::Distinct;
use crate::lanes::{Block, Eight, Isa, Lanes, Task, exp2, exp2_by_table};
use crate::threads::share;
use crate::vote::Votes;
use crate::{Embedded, Level};

/// Possible relative errors: for smaller ones, single precision does not have enough digits.
pub const POSSIBLE: std::ops::RangeInclusive<f64> = 3e-5..=0.1;

/// Maximum number of elements of a query.
const MOST_AXES: usize = 8;

/// For fewer distinct rows than this, the pairwise computation is faster.
const FEWEST: usize = 2000;

/// Number of points that may be examined for each pair in the search for cells. A point takes 15 ns and a
/// pair 0.2 ns, so giving up costs at most a third of the exact computation that follows.
const PATIENCE: f64 = 0.004;

/// Largest binary exponent: products of two powers and sums over 2^20 patches stay finite and normal.
const SAFE: f32 = 40.0;

/// Part of the requested error that is reserved for rounding.
const ROUNDING: f64 = 2e-5;

/// Minimum number of blocks of sixteen targets times blocks of sources that is worth a thread: about 0.2 ms.
const LEAST: usize = 4000;

/// Scratch space for [`NearVotes::compute`]: O(patches · dim).
#[derive(Debug, Clone)]
pub struct NearVotes {
    exact: Votes,
    error: f64,
    rows: Distinct,
    chebyshev: Chebyshev,
    queries: Side,
    keys: Side,
    /// `[distinct]`: first the weight of a key, then that of a query, then importances.
    values: Vec<f32>,
    /// `[distinct]`: 2^(centre of the queries · key).
    factors: Vec<f32>,
    /// `[nodes / 16, 16]`: weights of sources.
    weights: Vec<Block>,
    /// `[nodes / 16, 16]`: sums at targets.
    sums: Vec<Block>,
    last: Method,
    threads: Threads,
}

/// The method used to count the votes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Exactly, pair by pair.
    Exact,
    /// Approximately, over grids with this many nodes.
    Near {
        /// Number of nodes that represent the queries.
        queries: usize,
        /// Number of nodes that represent the keys.
        keys: usize,
    },
}

impl NearVotes {
    /// Scratch space for `patches` patches with queries of `dim` numbers; importances will be within a factor
    /// of 1 ± `error`.
    ///
    /// # Panics
    /// When `dim` is 0, `patches` is 0 or above 2^20, or `error` is outside [`POSSIBLE`].
    pub fn new(patches: usize, dim: usize, error: f64) -> Self {
        assert!(POSSIBLE.contains(&error), "a relative error of {error}, possible is {POSSIBLE:?}");
        let blocks = patches.div_ceil(16) + 1;
        let axes = dim.min(MOST_AXES);
        NearVotes {
            exact: Votes::new(patches, dim),
            error,
            rows: Distinct::new(patches),
            chebyshev: Chebyshev::new(),
            queries: Side::new(patches, axes),
            keys: Side::new(patches, axes),
            values: vec![0.0; patches],
            factors: vec![0.0; patches],
            weights: vec![Block::default(); blocks],
            sums: vec![Block::default(); blocks],
            last: Method::Exact,
            threads: Threads::one(),
        }
    }

    /// Allocates scratch space for `threads`, which share the products of nodes, and the rows where votes are
    /// exact.
    #[must_use]
    pub fn with_threads(self, threads: &Threads) -> Self {
        NearVotes { exact: self.exact.with_threads(threads), threads: threads.clone(), ..self }
    }

    /// The method of the last [`NearVotes::compute`].
    pub const fn method(&self) -> Method {
        self.last
    }

    /// Counts the votes. Queries must be scaled so that a vote is 2^(q·k). `importance` is `[patches]` and
    /// sums to approximately the number of patches.
    ///
    /// # Panics
    /// When `embedded` or `importance` has another number of patches, or queries have another length.
    pub fn compute(&mut self, level: Level, embedded: &Embedded, importance: &mut [f32]) {
        assert_eq!(embedded.patches(), self.values.len(), "patches");
        assert_eq!(importance.len(), self.values.len(), "patches");
        self.last = self.compute_near(level, embedded, importance).unwrap_or(Method::Exact);
        if self.last == Method::Exact {
            self.exact.compute(level, embedded, importance);
        }
    }

    /// `None` if the exact method is better.
    fn compute_near(&mut self, level: Level, embedded: &Embedded, importance: &mut [f32]) -> Option<Method> {
        let dim = embedded.dim();
        level.run(Prepare { votes: self, embedded })?;
        let NearVotes { threads, queries, keys, weights, sums, .. } = self;
        meet(level, threads, queries.grid(), keys.grid(), dim, weights, sums);
        level.run(Turn { votes: self })?;
        let NearVotes { threads, queries, keys, weights, sums, .. } = self;
        meet(level, threads, keys.grid(), queries.grid(), dim, weights, sums);
        level.run(Finish { votes: self, importance });
        Some(Method::Near { queries: self.queries.nodes(), keys: self.keys.nodes() })
    }
}

/// Computes the weights of the keys' nodes from queries and keys.
struct Prepare<'a> {
    votes: &'a mut NearVotes,
    embedded: &'a Embedded,
}

impl Task for Prepare<'_> {
    type Out = Option<()>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Option<()> {
        let Prepare { votes, embedded } = self;
        let (rows, dim) = (embedded.rows(), embedded.dim());
        votes.rows.find(rows, embedded.per_row());
        let distinct = votes.rows.count;
        if dim > MOST_AXES || distinct < FEWEST {
            return None;
        }
        let NearVotes { queries, keys, chebyshev, .. } = votes;
        let number = |row: usize, i: usize| {
            f64::from(rows[votes.rows.first[row] as usize * embedded.per_row() + i / 8].0[i % 8])
        };

        // Axes along which queries and keys have equal spread, with the middle of each as the origin.
        let axes = Axes::balance(dim, distinct, number);
        let middle = queries.place(distinct, |row| axes.query(|i| number(row, i)));
        keys.place(distinct, |row| axes.key(|i| number(row, dim + i)));
        let reach = queries.reach().iter().zip(keys.reach()).map(|(q, k)| q * k).sum::<f32>();
        let aside: f32 = middle.iter().zip(keys.reach()).map(|(q, k)| (*q as f32).abs() * k).sum();
        // Infinity and NaN count as too far.
        if !(reach <= SAFE && aside <= SAFE) {
            return None;
        }

        // The error of an importance is about twice that of an entry, to which each side contributes a part.
        let part = (votes.error - ROUNDING).max(votes.error / 3.0) / 4.2;
        let patience = (PATIENCE * (distinct as f64).powi(2)) as usize;
        let patience = queries.cut(part, keys.reach(), chebyshev, patience)?;
        keys.cut(part, queries.reach(), chebyshev, patience)?;
        let (n, m) = (queries.nodes(), keys.nodes());
        // Two products between nodes and four conversions between points and nodes, against one product over
        // all pairs.
        let work = 2.0 * n as f64 * m as f64 + 0.4 * (queries.work() + keys.work()) + 300.0 * distinct as f64;
        if work > 1.2 * (distinct as f64).powi(2) {
            return None;
        }

        // Moving the origin of the keys multiplies rows, which softmax cancels; moving that of the queries
        // multiplies columns.
        for (row, factor) in votes.factors[..distinct].iter_mut().enumerate() {
            let key = keys.point(row);
            *factor = middle.iter().zip(key).map(|(q, &k)| q * f64::from(k)).sum::<f64>() as f32;
        }
        powers(isa, &mut votes.factors[..distinct]);
        for ((value, &factor), &voters) in
            votes.values.iter_mut().zip(&votes.factors[..distinct]).zip(&votes.rows.multiplicity)
        {
            *value = factor * voters;
        }
        keys.gather(isa, chebyshev, &votes.values, &mut votes.weights);
        Some(())
    }
}

/// Computes the weights of the queries' nodes from the sums at them.
struct Turn<'a> {
    votes: &'a mut NearVotes,
}

impl Task for Turn<'_> {
    type Out = Option<()>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Option<()> {
        let Turn { votes } = self;
        let NearVotes { queries, chebyshev, .. } = votes;
        let distinct = votes.rows.count;
        queries.spread(isa, chebyshev, &votes.sums, &mut votes.values);
        let mut sound = true;
        for (value, &voters) in votes.values[..distinct].iter_mut().zip(&votes.rows.multiplicity) {
            sound &= *value > 1e-30 && *value < 1e30;
            *value = voters / *value;
        }
        if !sound {
            return None;
        }
        queries.gather(isa, chebyshev, &votes.values, &mut votes.weights);
        Some(())
    }
}

/// Computes importances from the sums at the keys' nodes.
struct Finish<'a> {
    votes: &'a mut NearVotes,
    importance: &'a mut [f32],
}

impl Task for Finish<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Finish { votes, importance } = self;
        let NearVotes { keys, chebyshev, .. } = votes;
        let distinct = votes.rows.count;
        keys.spread(isa, chebyshev, &votes.sums, &mut votes.values);
        for (value, &factor) in votes.values.iter_mut().zip(&votes.factors[..distinct]) {
            *value *= factor;
        }
        for (importance, &group) in importance.iter_mut().zip(&votes.rows.group) {
            *importance = votes.values[group as usize];
        }
    }
}

/// Replaces every number x by 2^x.
#[inline(always)]
fn powers<I: Isa>(isa: I, xs: &mut [f32]) {
    for xs in xs.chunks_mut(16) {
        let mut block = Block::default();
        block.0[..xs.len()].copy_from_slice(xs);
        exp2(isa, isa.load16(&block.0)).store(&mut block.0);
        xs.copy_from_slice(&block.0[..xs.len()]);
    }
}

/// Computes `sums` of every target: Σ weight · 2^(target · source). Both are `[nodes / 16, dim, 16]`; threads
/// share the targets.
fn meet(
    level: Level,
    threads: &Threads,
    targets: &[Block],
    sources: &[Block],
    dim: usize,
    weights: &[Block],
    sums: &mut [Block],
) {
    let blocks = targets.len() / dim;
    // Number of blocks of targets that is worth a thread.
    let least = LEAST.div_ceil((sources.len() / dim).max(1));
    let size = share(blocks, threads.count(), least, 1);
    threads.for_each(targets.chunks(size * dim).zip(sums[..blocks].chunks_mut(size)), |(targets, sums)| {
        level.run(Meet { targets, sources, dim, weights, sums });
    });
}

struct Meet<'a> {
    targets: &'a [Block],
    sources: &'a [Block],
    dim: usize,
    weights: &'a [Block],
    sums: &'a mut [Block],
}

impl Task for Meet<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        /// Number of targets processed together.
        const ROWS: usize = 4;
        let Meet { targets, sources, dim, weights, sums } = self;
        for (targets, sums) in targets.chunks_exact(dim).zip(sums) {
            for start in (0..16).step_by(ROWS) {
                let mut totals = [isa.splat16(0.0); ROWS];
                for (source, weight) in sources.chunks_exact(dim).zip(weights) {
                    let weight = isa.load16(&weight.0);
                    for (r, total) in totals.iter_mut().enumerate() {
                        let mut x = isa.splat16(0.0);
                        for (target, source) in targets.iter().zip(source) {
                            x = isa.splat16(target.0[start + r]).mul_add(isa.load16(&source.0), x);
                        }
                        *total = exp2_by_table(isa, x).mul_add(weight, *total);
                    }
                }
                for (r, total) in totals.into_iter().enumerate() {
                    sums.0[start + r] = total.sum();
                }
            }
        }
    }
}

/// The coordinates of a point, in single precision.
type Point = Eight;
