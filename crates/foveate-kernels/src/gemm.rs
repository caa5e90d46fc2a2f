//! Matrix products in single precision, for layers and their gradients.
//!
//! An element of the product is a chain of fused multiply-adds over `k` in ascending order, which starts at zero
//! or at the element's old value. Blocking for caches and registers changes only where the chain is stored in
//! between, so the bits are the same on every instruction set, for every size of a cache and wherever a matrix
//! lies in memory.
//!
//! ```
//! use foveate_kernels::Level;
//! use foveate_kernels::gemm::{Gemm, View};
//!
//! let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 1.0]);
//! let mut c = [0.0; 2];
//! let (a, b) = (View::new(&a, 2, 3), View::new(&b, 3, 1));
//! Gemm::default().product(Level::best(), a, b, &mut c);
//! assert_eq!(c, [4.0, 10.0]);
//! ```

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task};

/// A matrix for reading, `[rows, cols]`, in any layout.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Element `(i, j)` is at `i * row_stride + j * col_stride`, which is below `data.len()` for all elements.
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// The row-major matrix `[rows, cols]` in `data`.
    ///
    /// # Panics
    /// When `data` has another length.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(Some(data.len()), rows.checked_mul(cols), "numbers of a matrix [{rows}, {cols}]");
        View { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The matrix `[rows, cols]` whose row `i` begins at `data[i * stride]`.
    ///
    /// # Panics
    /// When `stride` is below `cols`, or `data` is too short.
    pub fn with_stride(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(stride >= cols, "rows of {cols} numbers begin every {stride}");
        let extent = if rows == 0 { 0 } else { (rows - 1) * stride + cols };
        assert!(data.len() >= extent, "{} numbers for a matrix that takes {extent}", data.len());
        View { data, rows, cols, row_stride: stride, col_stride: 1 }
    }

    /// Its transpose.
    #[must_use]
    pub const fn transposed(self) -> Self {
        let View { data, rows, cols, row_stride, col_stride } = self;
        View { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub const fn cols(&self) -> usize {
        self.cols
    }
}

/// Terms of a chain that are added before the chain is stored.
const DEPTH: usize = 256;

/// Rows of the left matrix that are packed together; a multiple of every tile's rows.
const HEIGHT: usize = 192;

/// Columns of the right matrix that are packed together; a multiple of every tile's columns.
const WIDTH: usize = 2048;

/// Scratch space for products: packed copies of parts of both matrices. It grows to the largest product.
#[derive(Debug, Clone, Default)]
pub struct Gemm {
    /// `[rows / R, depth, R]`: tiles of R rows.
    left: Vec<f32>,
    /// `[cols / 16 W, depth, W, 16]`: tiles of W blocks of columns.
    right: Vec<Block>,
}

impl Gemm {
    /// `c = a b`, with `c` row-major, `[a.rows(), b.cols()]`.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn product(&mut self, level: Level, a: View<'_>, b: View<'_>, c: &mut [f32]) {
        c.fill(0.0);
        self.add_product(level, a, b, c);
    }

    /// `c += a b`, with `c` row-major, `[a.rows(), b.cols()]`.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn add_product(&mut self, level: Level, a: View<'_>, b: View<'_>, c: &mut [f32]) {
        let stride = b.cols;
        self.add_product_strided(level, a, b, c, stride);
    }

    /// `c += a b`, where row `i` of `c` begins at `c[i * stride]`.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn add_product_strided(
        &mut self,
        level: Level,
        a: View<'_>,
        b: View<'_>,
        c: &mut [f32],
        stride: usize,
    ) {
        assert_eq!(a.cols, b.rows, "columns of the left matrix and rows of the right one");
        assert!(stride >= b.cols, "rows of {} numbers begin every {stride}", b.cols);
        if a.rows == 0 || b.cols == 0 {
            return;
        }
        let extent = (a.rows - 1) * stride + b.cols;
        assert!(c.len() >= extent, "{} numbers for a product that takes {extent}", c.len());
        let (depth, height, width) = (a.cols.min(DEPTH), a.rows.min(HEIGHT), b.cols.min(WIDTH));
        // Room for the last tile, which may be wider than what is left.
        let left = (height + MOST_ROWS) * depth;
        let right = (width.div_ceil(16) + MOST_BLOCKS) * depth;
        if self.left.len() < left {
            self.left.resize(left, 0.0);
        }
        if self.right.len() < right {
            self.right.resize(right, Block::default());
        }
        level.run(Product { gemm: self, a, b, c, stride });
    }
}

/// The tile with the most rows.
const MOST_ROWS: usize = 12;
/// The tile with the most blocks of columns.
const MOST_BLOCKS: usize = 2;

struct Product<'a> {
    gemm: &'a mut Gemm,
    a: View<'a>,
    b: View<'a>,
    c: &'a mut [f32],
    stride: usize,
}

impl Task for Product<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        // As many sums as the registers hold: 24 of 32, or 12 of 16.
        if I::ROWS == 4 {
            self.blocked::<I, 12, 2>(isa);
        } else {
            self.blocked::<I, 6, 1>(isa);
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn blocked<I: Isa, const R: usize, const W: usize>(self, isa: I) {
        let Product { gemm: Gemm { left, right }, a, b, c, stride } = self;
        for col in (0..b.cols).step_by(WIDTH) {
            let cols = WIDTH.min(b.cols - col);
            for at in (0..a.cols).step_by(DEPTH) {
                let depth = DEPTH.min(a.cols - at);
                // Whole tiles of columns, then one that may be narrower.
                let rest = cols % (16 * W);
                let narrow = W > 1 && rest > 0 && rest <= 16;
                let whole = if narrow { cols - rest } else { cols };
                let (tiles, last) = right.split_at_mut(whole.div_ceil(16 * W) * W * depth);
                pack_right::<W>(b, (at, depth), (col, whole), tiles);
                if narrow {
                    pack_right::<1>(b, (at, depth), (col + whole, rest), last);
                }
                for row in (0..a.rows).step_by(HEIGHT) {
                    let rows = HEIGHT.min(a.rows - row);
                    pack_left::<R>(a, (row, rows), (at, depth), left);
                    let left = &left[..rows.div_ceil(R) * R * depth];
                    for (j, right) in tiles.chunks_exact(depth * W).enumerate() {
                        let columns = (col + j * 16 * W, (whole - j * 16 * W).min(16 * W));
                        column::<I, R, W>(isa, left, right, c, stride, (row, rows), columns);
                    }
                    if narrow {
                        let columns = (col + whole, rest);
                        column::<I, R, 1>(isa, left, &last[..depth], c, stride, (row, rows), columns);
                    }
                }
            }
        }
    }
}

/// Adds the products of all tiles of rows with one tile of columns.
#[inline(always)]
fn column<I: Isa, const R: usize, const W: usize>(
    isa: I,
    left: &[f32],
    right: &[Block],
    c: &mut [f32],
    stride: usize,
    (row, rows): (usize, usize),
    (first, wide): (usize, usize),
) {
    let depth = right.len() / W;
    for (i, left) in left.chunks_exact(depth * R).enumerate() {
        let (top, high) = (row + i * R, (rows - i * R).min(R));
        let c = &mut c[top * stride + first..];
        if (high, wide) == (R, 16 * W) {
            tile::<I, R, W>(isa, left, right, c, stride);
        } else {
            edge::<I, R, W>(isa, left, right, c, stride, (high, wide));
        }
    }
}

/// Adds the product of packed tiles to `[R, 16 W]` numbers of `c`.
#[inline(always)]
fn tile<I: Isa, const R: usize, const W: usize>(
    isa: I,
    left: &[f32],
    right: &[Block],
    c: &mut [f32],
    stride: usize,
) {
    let mut sums = [[isa.splat16(0.0); W]; R];
    for (r, sums) in sums.iter_mut().enumerate() {
        let row = c[r * stride..][..16 * W].as_chunks::<16>().0;
        for (sum, row) in sums.iter_mut().zip(row) {
            *sum = isa.load16(row);
        }
    }
    let (left, right) = (left.as_chunks::<R>().0, right.as_chunks::<W>().0);
    for (left, right) in left.iter().zip(right) {
        let mut blocks = [isa.splat16(0.0); W];
        for w in 0..W {
            blocks[w] = isa.load16(&right[w].0);
        }
        for r in 0..R {
            let x = isa.splat16(left[r]);
            for w in 0..W {
                sums[r][w] = x.mul_add(blocks[w], sums[r][w]);
            }
        }
    }
    for (r, sums) in sums.into_iter().enumerate() {
        let row = c[r * stride..][..16 * W].as_chunks_mut::<16>().0;
        for (sum, row) in sums.into_iter().zip(row) {
            sum.store(row);
        }
    }
}

/// As [`tile`], for a tile of which only `high` rows and `wide` columns exist.
#[inline(always)]
fn edge<I: Isa, const R: usize, const W: usize>(
    isa: I,
    left: &[f32],
    right: &[Block],
    c: &mut [f32],
    stride: usize,
    (high, wide): (usize, usize),
) {
    let mut whole = [0.0; MOST_ROWS * MOST_BLOCKS * 16];
    for r in 0..high {
        whole[r * 16 * W..][..wide].copy_from_slice(&c[r * stride..][..wide]);
    }
    tile::<I, R, W>(isa, left, right, &mut whole, 16 * W);
    for r in 0..high {
        c[r * stride..][..wide].copy_from_slice(&whole[r * 16 * W..][..wide]);
    }
}

/// Copies `rows` rows from `row` on to tiles of R rows, zeros below the last one.
#[inline(always)]
fn pack_left<const R: usize>(
    a: View<'_>,
    (row, rows): (usize, usize),
    (at, depth): (usize, usize),
    to: &mut [f32],
) {
    for (i, tile) in to.chunks_exact_mut(depth * R).take(rows.div_ceil(R)).enumerate() {
        let (top, high) = (row + i * R, (rows - i * R).min(R));
        let tile = tile.as_chunks_mut::<R>().0;
        if high < R {
            tile.fill([0.0; R]);
        }
        if a.row_stride == 1 {
            for (k, to) in tile.iter_mut().enumerate() {
                let from = (at + k) * a.col_stride + top;
                to[..high].copy_from_slice(&a.data[from..from + high]);
            }
        } else {
            for r in 0..high {
                let from =
                    a.data[(top + r) * a.row_stride + at * a.col_stride..].iter().step_by(a.col_stride);
                for (to, &x) in tile.iter_mut().zip(from) {
                    to[r] = x;
                }
            }
        }
    }
}

/// Copies `cols` columns from `col` on to tiles of W blocks of 16 columns, zeros right of the last one.
#[inline(always)]
fn pack_right<const W: usize>(
    b: View<'_>,
    (at, depth): (usize, usize),
    (col, cols): (usize, usize),
    to: &mut [Block],
) {
    for (j, tile) in to.chunks_exact_mut(depth * W).take(cols.div_ceil(16 * W)).enumerate() {
        let (first, wide) = (col + j * 16 * W, (cols - j * 16 * W).min(16 * W));
        for (k, to) in tile.as_chunks_mut::<W>().0.iter_mut().enumerate() {
            let from = (at + k) * b.row_stride + first * b.col_stride;
            for (w, block) in to.iter_mut().enumerate() {
                let wide = wide.saturating_sub(16 * w).min(16);
                let from = &b.data[(from + 16 * w * b.col_stride).min(b.data.len())..];
                if b.col_stride == 1 && wide == 16 {
                    block.0.copy_from_slice(&from[..16]);
                } else {
                    *block = Block::default();
                    for (to, &x) in block.0[..wide].iter_mut().zip(from.iter().step_by(b.col_stride)) {
                        *to = x;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = foveate_core::Seed::root(seed).rng();
        (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
    }

    /// The chain of fused multiply-adds, written out.
    fn plain(a: View<'_>, b: View<'_>, c: &mut [f32], stride: usize) {
        for i in 0..a.rows {
            for j in 0..b.cols {
                let c = &mut c[i * stride + j];
                for k in 0..a.cols {
                    let x = a.data[i * a.row_stride + k * a.col_stride];
                    *c = x.mul_add(b.data[k * b.row_stride + j * b.col_stride], *c);
                }
            }
        }
    }

    #[track_caller]
    fn check([m, k, n]: [usize; 3], turned: [bool; 2], gap: usize) {
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let a = if turned[0] { View::new(&a, k, m).transposed() } else { View::new(&a, m, k) };
        let b = if turned[1] { View::new(&b, n, k).transposed() } else { View::new(&b, k, n) };
        let stride = n + gap;
        let mut expect = numbers(m * stride, 3);
        let given = expect.clone();
        plain(a, b, &mut expect, stride);
        for level in Level::available() {
            let mut c = given.clone();
            Gemm::default().add_product_strided(level, a, b, &mut c, stride);
            assert!(
                c.iter().zip(&expect).all(|(c, e)| c.to_bits() == e.to_bits()),
                "{level}: [{m}, {k}] [{k}, {n}], transposed {turned:?}"
            );
        }
    }

    #[test]
    fn sizes_around_the_blocks() {
        for m in [1, 5, 6, 12, 13, 193] {
            for n in [1, 15, 16, 32, 33, 50] {
                check([m, 7, n], [false, false], 0);
            }
        }
        check([13, 2 * DEPTH + 1, 33], [false, true], 3);
        check([3, 2, WIDTH + 17], [true, false], 0);
        check([HEIGHT + 1, DEPTH, 1], [true, true], 1);
        for empty in [[0, 3, 3], [3, 0, 3], [3, 3, 0]] {
            check(empty, [false, false], 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_level_adds_the_same_chain(
            sizes in [1_usize..40, 1..300, 1..70], turned: [bool; 2], gap in 0_usize..3,
        ) {
            check(sizes, turned, gap);
        }
    }

    #[test]
    fn scratch_space_is_kept() {
        let mut gemm = Gemm::default();
        let (a, b) = (numbers(40 * 300, 1), numbers(300 * 50, 2));
        let mut first = vec![0.0; 40 * 50];
        gemm.product(Level::best(), View::new(&a, 40, 300), View::new(&b, 300, 50), &mut first);
        let grown = (gemm.left.capacity(), gemm.right.capacity());
        let mut small = vec![9.0; 4];
        gemm.product(Level::best(), View::new(&a[..4], 2, 2), View::new(&b[..4], 2, 2), &mut small);
        let mut again = vec![1.0; 40 * 50];
        gemm.product(Level::best(), View::new(&a, 40, 300), View::new(&b, 300, 50), &mut again);
        assert_eq!(first, again);
        assert_eq!(grown, (gemm.left.capacity(), gemm.right.capacity()));
    }

    #[test]
    #[should_panic(expected = "columns of the left matrix and rows of the right one")]
    fn sizes_must_fit() {
        Gemm::default().product(
            Level::best(),
            View::new(&[0.0; 4], 2, 2),
            View::new(&[0.0; 3], 3, 1),
            &mut [],
        );
    }
}
