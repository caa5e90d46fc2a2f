//! Softmax attention summed over its rows: the number of votes for each patch.
//!
//! Patch i distributes one vote over all patches j in proportion to 2^(qᵢ·kⱼ); the importance of j is the sum
//! over i. The N × N matrix is never stored: rows are processed a few at a time, and memory is O(N · d).
//!
//! Two optimisations make it fast. First, patches with bit-identical queries and keys are merged: a row of m
//! patches casts m votes; a column of m patches counts m times in the row sums (log2 m is added to its
//! logits), and each of its patches gets an m-th of the column's votes. Second, the row maximum is computed
//! only where |qᵢ| · max |kⱼ| indicates that a power of two might overflow; elsewhere the softmax does not
//! need it.
//!
//! Results are bit-identical on every instruction set: a row's sum has sixteen parts, one per lane, added in
//! a fixed tree; a column's sum adds the rows one after the other; so the grouping of rows does not affect
//! the result. If there are more than [`PANEL`] rows, each column has a sum for every panel of rows, and
//! these are added in order. Threads process panels, so the number of threads does not affect the result
//! either.

use std::ops::Range;

use foveate_core::Threads;

use crate::Level;
use crate::distinct::Distinct;
use crate::embedded::Embedded;
use crate::lanes::{Block, Eight, Isa, Lanes, Task, exp2_by_table};
use crate::threads::in_panels;

/// Largest |logit| that needs no row maximum: with 2^20 patches a row sum stays below 2^120, and its
/// reciprocal is a normal number.
const SAFE: f32 = 98.0;

/// Largest number of patches that [`Votes`] supports.
pub const MAX_PATCHES: usize = 1 << 20;

/// Scratch space for [`Votes::compute`].
#[derive(Debug, Clone)]
pub struct Votes {
    patches: usize,
    dim: usize,
    rows: Distinct,
    /// `[distinct / 16, 1 + dim, 16]`: logarithm of the multiplicity and the key, padded with [`ABSENT`] and
    /// zeros.
    keys: Vec<Block>,
    /// Squared length of the longest key.
    longest: f32,
    /// `[threads]`
    scratch: Vec<Scratch>,
    threads: Threads,
    /// `[panels, distinct / 16, 16]` with threads, else `[1, distinct / 16, 16]`: votes of a panel of rows.
    panels: Vec<Block>,
    /// `[distinct / 16, 16]`: all votes.
    columns: Vec<Block>,
}

/// Scratch space of one thread, `[distinct / 16, ROWS, 16]`: a few rows of the attention matrix.
type Scratch = Vec<Block>;

/// Minimum number of rows of a panel.
pub const PANEL: usize = 1024;

/// Maximum number of panels.
const MOST_PANELS: usize = 32;

/// Number of rows of a panel when there are `distinct` rows.
const fn panel(distinct: usize) -> usize {
    let rows = distinct.div_ceil(MOST_PANELS).next_multiple_of(MOST_ROWS);
    if rows > PANEL { rows } else { PANEL }
}

/// Replaces the logarithm of a multiplicity of zero: 2^-123 is negligible against a row sum above 2^-98.
const ABSENT: f32 = -123.0;

/// Largest number of rows of the attention matrix that any instruction set processes together.
const MOST_ROWS: usize = 4;

impl Votes {
    /// Scratch space for `patches` patches with queries of `dim` numbers.
    ///
    /// # Panics
    /// When `dim` is 0, or `patches` is 0 or above [`MAX_PATCHES`].
    pub fn new(patches: usize, dim: usize) -> Self {
        assert!((1..=MAX_PATCHES).contains(&patches), "{patches} patches, up to {MAX_PATCHES} are possible");
        assert!(dim > 0, "queries need a length of at least 1");
        let blocks = patches.div_ceil(16);
        Votes {
            patches,
            dim,
            rows: Distinct::new(patches),
            keys: vec![Block::default(); blocks * (1 + dim)],
            longest: 0.0,
            scratch: vec![vec![Block::default(); blocks * MOST_ROWS]],
            threads: Threads::one(),
            panels: vec![Block::default(); blocks],
            columns: vec![Block::default(); blocks],
        }
    }

    /// Allocates scratch space for `threads`: O(threads · patches) memory in addition to O(patches · dim).
    /// Threads process panels of at least [`PANEL`] rows, so fewer patches than two panels gain nothing.
    #[must_use]
    pub fn with_threads(mut self, threads: &Threads) -> Self {
        let blocks = self.columns.len();
        let panels = self.patches.div_ceil(panel(self.patches));
        self.threads = threads.at_most(panels);
        let count = self.threads.count();
        self.scratch = vec![vec![Block::default(); blocks * MOST_ROWS]; count];
        self.panels = vec![Block::default(); blocks * if count == 1 { 1 } else { panels }];
        self
    }

    /// Number of distinct rows found by the last [`Votes::compute`].
    pub const fn distinct(&self) -> usize {
        self.rows.count
    }

    /// Counts the votes. Queries must be scaled so that a vote is 2^(q·k). `importance` is `[patches]` and
    /// sums to the number of patches.
    ///
    /// # Panics
    /// When `embedded` or `importance` has another number of patches, or queries have another length.
    pub fn compute(&mut self, level: Level, embedded: &Embedded, importance: &mut [f32]) {
        assert_eq!(embedded.patches(), self.patches, "patches");
        assert_eq!(embedded.dim(), self.dim, "length of a query");
        assert_eq!(importance.len(), self.patches, "patches");
        let embedded = embedded.rows();
        if self.dim == 4 {
            self.compute_for::<4>(level, embedded, importance);
        } else {
            self.compute_for::<0>(level, embedded, importance);
        }
    }

    fn compute_for<const D: usize>(&mut self, level: Level, embedded: &[Eight], importance: &mut [f32]) {
        level.run(LayOut::<D> { votes: self, embedded });
        let per_row = self.per_row::<D>();
        let Votes { rows, keys, longest, scratch, threads, panels, columns, dim, .. } = self;
        let distinct = rows.count;
        let blocks = distinct.div_ceil(16);
        let size = panel(distinct);
        let number = distinct.div_ceil(size);
        let table = Table::<D> {
            rows,
            embedded,
            per_row,
            keys: &keys[..blocks * (1 + if D == 0 { *dim } else { D })],
            longest: *longest,
            dim: *dim,
        };
        let columns = &mut columns[..blocks];
        in_panels(threads, number, scratch, panels, columns, |panel, scratch, votes| {
            let rows = panel * size..distinct.min((panel + 1) * size);
            level.run(Count { table, rows, scratch, votes });
        });
        // Each patch of a column gets an equal part. The multiplicities are no longer needed and are
        // overwritten.
        for (number, share) in rows.multiplicity[..distinct].iter_mut().enumerate() {
            *share = columns[number / 16].0[number % 16] / *share;
        }
        for (importance, &group) in importance.iter_mut().zip(&rows.group) {
            *importance = rows.multiplicity[group as usize];
        }
    }

    /// Number of groups of eight numbers per patch.
    #[inline(always)]
    const fn per_row<const D: usize>(&self) -> usize {
        if D == 0 { (2 * self.dim).div_ceil(8) } else { (2 * D).div_ceil(8) }
    }

    /// Stores the distinct keys in the layout of the kernel.
    #[inline(always)]
    fn lay_out<I: Isa, const D: usize>(&mut self, isa: I, embedded: &[Eight]) {
        let dim = if D == 0 { self.dim } else { D };
        let per_row = self.per_row::<D>();
        let distinct = self.rows.count;
        let blocks = distinct.div_ceil(16);
        self.keys[(blocks - 1) * (1 + dim)..blocks * (1 + dim)].fill(Block::default());
        self.keys[(blocks - 1) * (1 + dim)] = Block([ABSENT; 16]);
        let keys = self.keys.as_mut_slice();
        let numbers = self.rows.first[..distinct].iter().zip(&self.rows.multiplicity);
        for (number, (&first, &multiplicity)) in numbers.enumerate() {
            let (block, lane) = (number / 16, number % 16);
            let block = &mut keys[block * (1 + dim)..(block + 1) * (1 + dim)];
            block[0].0[lane] = logarithm(multiplicity as u32);
            let row = &embedded[first as usize * per_row..(first as usize + 1) * per_row];
            for (t, to) in block[1..].iter_mut().enumerate() {
                to.0[lane] = row[(dim + t) / 8].0[(dim + t) % 8];
            }
        }
        let mut longest = isa.splat16(0.0);
        for block in self.keys[..blocks * (1 + dim)].chunks_exact(1 + dim) {
            let mut square = isa.splat16(0.0);
            for k in &block[1..] {
                let k = isa.load16(&k.0);
                square = k.mul_add(k, square);
            }
            longest = square.max(longest);
        }
        self.longest = longest.largest();
    }
}

/// log2 of a whole number, 0 for 0. Most are small: the number of equal patches.
fn logarithm(n: u32) -> f32 {
    const SMALL: usize = 1024;
    static TABLE: [f32; SMALL] = {
        let mut table = [0.0; SMALL];
        let mut n = 0;
        while n < SMALL {
            table[n] = log2(n as u32);
            n += 1;
        }
        table
    };
    TABLE.get(n as usize).copied().unwrap_or_else(|| log2(n))
}

/// The same, computed with the four basic operations: a library's logarithm would differ between machines.
const fn log2(n: u32) -> f32 {
    let Some(whole) = n.checked_ilog2() else { return 0.0 };
    // n = 2^whole · f with f in 1 ..= 2, and ln f = 2 artanh s with s in 0 ..= 1/3.
    let f = n as f64 / (1_u64 << whole) as f64;
    let s = (f - 1.0) / (f + 1.0);
    let (mut power, mut sum) = (s, 0.0);
    let mut odd = 1;
    while odd < 40 {
        sum += power / odd as f64;
        power *= s * s;
        odd += 2;
    }
    (whole as f64 + 2.0 * sum * std::f64::consts::LOG2_E) as f32
}

/// `D` is the dimension when it is known at compile time, else 0.
/// Finds the distinct rows and stores their keys in the kernel's layout.
struct LayOut<'a, const D: usize> {
    votes: &'a mut Votes,
    embedded: &'a [Eight],
}

impl<const D: usize> Task for LayOut<'_, D> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let LayOut { votes, embedded } = self;
        votes.rows.find(embedded, votes.per_row::<D>());
        votes.lay_out::<I, D>(isa, embedded);
    }
}

/// The queries and keys of the votes.
#[derive(Clone, Copy)]
struct Table<'a, const D: usize> {
    rows: &'a Distinct,
    embedded: &'a [Eight],
    per_row: usize,
    /// As in [`Votes`].
    keys: &'a [Block],
    longest: f32,
    dim: usize,
}

/// Counts the votes of a panel of rows.
struct Count<'a, const D: usize> {
    table: Table<'a, D>,
    rows: Range<usize>,
    scratch: &'a mut Scratch,
    votes: &'a mut [Block],
}

impl<const D: usize> Task for Count<'_, D> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Count { table, rows, scratch, votes } = self;
        votes.fill(Block::default());
        if I::ROWS == 4 {
            count::<I, D, 4>(isa, table, rows, scratch, votes);
        } else {
            count::<I, D, 2>(isa, table, rows, scratch, votes);
        }
    }
}

/// Processes some of the distinct rows, `R` at a time. Sums add columns in blocks of 16 and rows one after
/// the other, so the result does not depend on `R`.
#[inline(always)]
fn count<I: Isa, const D: usize, const R: usize>(
    isa: I,
    table: Table<'_, D>,
    rows: Range<usize>,
    scratch: &mut [Block],
    columns: &mut [Block],
) {
    let Table { rows: all, embedded, per_row, keys, longest, dim } = table;
    let dim = if D == 0 { dim } else { D };
    let matrix = &mut scratch.as_chunks_mut::<R>().0[..columns.len()];
    let zero = isa.splat16(0.0);

    let end = rows.end;
    for start in rows.step_by(R) {
        // After the last row, the last row is repeated with no vote.
        let mut queries: [&[Eight]; R] = [&[]; R];
        let mut splats = [[zero; D]; R];
        let mut large = [false; R];
        for r in 0..R {
            let first = all.first[(start + r).min(end - 1)] as usize;
            queries[r] = &embedded[first * per_row..(first + 1) * per_row];
            let mut square = 0.0;
            for t in 0..dim {
                let q = queries[r][t / 8].0[t % 8];
                square += q * q;
                if D > 0 {
                    splats[r][t] = isa.splat16(q);
                }
            }
            // Everything not known to be small counts as large, including an infinite bound.
            let small = square * longest <= SAFE * SAFE;
            large[r] = !small;
        }

        let mut sums = [zero; R];
        if large.contains(&true) {
            // Computes the logits first, to find their maximum. A row that needs none uses 0, which does not
            // change the result.
            let mut peaks = [isa.splat16(f32::MIN); R];
            for (keys, out) in keys.chunks_exact(1 + dim).zip(matrix.iter_mut()) {
                let (bias, keys) = (isa.load16(&keys[0].0), &keys[1..]);
                // Absent columns must not be the maximum. A row that needs no maximum gets the same numbers
                // as on the other path: the result must not depend on which rows share a block.
                let below_all = bias.select_lt(zero, isa.splat16(-1e38), bias);
                for r in 0..R {
                    let bias = if large[r] { below_all } else { bias };
                    let x = logit::<I, D>(isa, &splats[r], queries[r], bias, keys);
                    peaks[r] = x.max(peaks[r]);
                    x.store(&mut out[r].0);
                }
            }
            for r in 0..R {
                peaks[r] = isa.splat16(if large[r] { peaks[r].largest() } else { 0.0 });
            }
            for out in matrix.iter_mut() {
                for r in 0..R {
                    let x = isa.load16(&out[r].0).sub(peaks[r]).max(isa.splat16(ABSENT));
                    let e = exp2_by_table(isa, x);
                    sums[r] = sums[r].add(e);
                    e.store(&mut out[r].0);
                }
            }
        } else {
            for (keys, out) in keys.chunks_exact(1 + dim).zip(matrix.iter_mut()) {
                let (bias, keys) = (isa.load16(&keys[0].0), &keys[1..]);
                for r in 0..R {
                    let e = exp2_by_table(isa, logit::<I, D>(isa, &splats[r], queries[r], bias, keys));
                    sums[r] = sums[r].add(e);
                    e.store(&mut out[r].0);
                }
            }
        }

        let mut shares = [zero; R];
        for r in 0..R {
            let voters = if start + r < end { all.multiplicity[start + r] } else { 0.0 };
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

/// q·k of one query with sixteen keys, plus a bias.
#[inline(always)]
fn logit<I: Isa, const D: usize>(
    isa: I,
    splats: &[I::V16; D],
    query: &[Eight],
    bias: I::V16,
    keys: &[Block],
) -> I::V16 {
    let mut x = bias;
    if D > 0 {
        for t in 0..D {
            x = splats[t].mul_add(isa.load16(&keys[t].0), x);
        }
    } else {
        for (q, k) in query.iter().flat_map(|eight| &eight.0).zip(keys) {
            x = isa.splat16(*q).mul_add(isa.load16(&k.0), x);
        }
    }
    x
}
