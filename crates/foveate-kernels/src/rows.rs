//! Products of a few rows, or of rows that are mostly zero, with a matrix that is used again and again.
//!
//! The numbers are those of [`gemm`](crate::gemm): chains of fused multiply-adds over `k` in ascending order. Terms whose left
//! number is zero are left out, which changes at most the sign of a zero, for finite numbers. The right matrix is laid out once,
//! as [`Turned`], so that a row needs no copy of it.
//!
//! ```
//! use foveate_core::SparseRows;
//! use foveate_kernels::Level;
//! use foveate_kernels::rows::{self, Turned};
//!
//! // Two outputs of three inputs each, as a linear layer stores them.
//! let mut weight = Turned::default();
//! weight.set(Level::best(), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3);
//! let mut x = SparseRows::new(3);
//! rows::append(Level::best(), &mut x, &[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
//! let mut y = [0.0; 4];
//! rows::product(Level::best(), &x, &weight, Some(&[0.5, 0.5]), &mut y);
//! assert_eq!(y, [2.5, 5.5, 4.5, 10.5]);
//! ```

#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes, not iterators with closures: see `Isa::load_all`"
)]

use foveate_core::SparseRows;

use crate::Level;
use crate::lanes::{Isa, Lanes, Task};
use crate::plain::Plain;

/// Lanes of a register.
const LANES: usize = 16;
/// Most registers of sums of a row.
const MOST: usize = 4;
/// Numbers whose zeros are found at a time.
const WIDE: usize = 64;

/// A matrix `[n, k]`, stored by its columns: `[k, n]`, with zeros after each column to a whole number of registers.
#[derive(Debug, Clone, Default)]
pub struct Turned {
    columns: usize,
    stride: usize,
    data: Vec<f32>,
    /// Scratch space: rows of a gradient, filled up to whole registers.
    padded: Vec<f32>,
}

impl Turned {
    /// Copies `matrix`, `[n, k]`, row-major.
    ///
    /// # Panics
    /// When its length is not `n * k`.
    pub fn set(&mut self, level: Level, matrix: &[f32], n: usize, k: usize) {
        assert_eq!(matrix.len(), n * k, "numbers of a matrix of {n} rows and {k} columns");
        self.columns = n;
        self.stride = n.next_multiple_of(LANES);
        if self.stride == n {
            self.data.resize(k * n, 0.0);
        } else {
            self.data.clear();
            self.data.resize(k * self.stride, 0.0);
        }
        if n > 0 && k > 0 {
            level.run(Turn {
                from: matrix,
                rows: n,
                columns: k,
                strides: [k, self.stride],
                to: &mut self.data,
            });
        }
    }

    /// Becomes zeros, as many as of a matrix `[n, k]`.
    pub fn clear(&mut self, n: usize, k: usize) {
        self.columns = n;
        self.stride = n.next_multiple_of(LANES);
        self.data.clear();
        self.data.resize(k * self.stride, 0.0);
    }

    /// Copies itself back to `matrix`, `[n, k]`, row-major.
    ///
    /// # Panics
    /// When it has another size.
    pub fn write(&self, level: Level, matrix: &mut [f32]) {
        let k = self.terms();
        assert_eq!(matrix.len(), self.columns * k, "numbers of the matrix");
        if !matrix.is_empty() {
            level.run(Turn {
                from: &self.data,
                rows: k,
                columns: self.columns,
                strides: [self.stride, k],
                to: matrix,
            });
        }
    }

    /// Rows of what it was set to: numbers of a product's row.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Columns of what it was set to: terms of a sum.
    pub const fn terms(&self) -> usize {
        if let Some(terms) = self.data.len().checked_div(self.stride) { terms } else { 0 }
    }
}

/// Adds all rows of `matrix`, `[…, width]`, row-major.
///
/// # Panics
/// When the length of the matrix is no multiple of the rows' width.
pub fn append(level: Level, rows: &mut SparseRows, matrix: &[f32]) {
    append_within(level, rows, matrix, usize::MAX);
}

/// The same until more than `most` numbers in all rows are not zero; returns whether all rows were added.
///
/// # Panics
/// As [`append`].
pub fn append_within(level: Level, rows: &mut SparseRows, matrix: &[f32], most: usize) -> bool {
    let width = rows.width();
    assert!(width > 0 && matrix.len().is_multiple_of(width), "rows of {width} numbers");
    matrix.chunks_exact(width).all(|row| {
        rows.push_with(|places, values| level.run_plain(Kept { row, divisor: 1.0, places, values }));
        rows.kept() <= most
    })
}

/// Adds a row of these bytes, each divided by `divisor`.
///
/// # Panics
/// When there are more or fewer bytes than the rows are wide.
pub fn append_bytes(level: Level, rows: &mut SparseRows, bytes: &[u8], divisor: f32) {
    assert_eq!(bytes.len(), rows.width(), "bytes of a row");
    rows.push_with(|places, values| level.run_plain(Kept { row: bytes, divisor, places, values }));
}

/// `c = rows * turned`, `[rows, turned.columns()]`, where every row begins its sums at `bias`, or at zero.
///
/// # Panics
/// When the sizes do not fit together.
pub fn product(level: Level, rows: &SparseRows, turned: &Turned, bias: Option<&[f32]>, c: &mut [f32]) {
    let n = turned.columns;
    assert_eq!(rows.width(), turned.terms(), "terms of the rows and of the matrix");
    assert_eq!(c.len(), rows.len() * n, "numbers of the product");
    assert!(bias.is_none_or(|bias| bias.len() == n), "numbers of the bias and of a row");
    if n > 0 {
        level.run(Product { rows, turned, bias, c });
    }
}

/// `turned += rowsᵀ * dy`, of `[rows, turned.columns()]`: the gradient of a weight. Sums go over rows in ascending order.
///
/// # Panics
/// When the sizes do not fit together.
pub fn add_outer(level: Level, rows: &SparseRows, dy: &[f32], turned: &mut Turned) {
    let n = turned.columns;
    assert_eq!(rows.width(), turned.terms(), "terms of the rows and of the matrix");
    assert_eq!(dy.len(), rows.len() * n, "numbers of the gradient");
    if n == 0 || rows.is_empty() {
        return;
    }
    let mut padded = std::mem::take(&mut turned.padded);
    let stride = turned.stride;
    let dy = if n == stride {
        dy
    } else {
        padded.clear();
        padded.resize(rows.len() * stride, 0.0);
        for (to, from) in padded.chunks_exact_mut(stride).zip(dy.chunks_exact(n)) {
            to[..n].copy_from_slice(from);
        }
        &padded
    };
    level.run(AddOuter { rows, dy, turned: &mut *turned });
    turned.padded = padded;
}

/// A number or a byte of a row.
trait Number: Copy {
    fn is_zero(self) -> bool;

    /// Its value, where bytes are divided.
    fn value(self, divisor: f32) -> f32;
}

impl Number for f32 {
    #[inline(always)]
    fn is_zero(self) -> bool {
        self == 0.0
    }

    #[inline(always)]
    fn value(self, _: f32) -> f32 {
        self
    }
}

impl Number for u8 {
    #[inline(always)]
    fn is_zero(self) -> bool {
        self == 0
    }

    #[inline(always)]
    fn value(self, divisor: f32) -> f32 {
        f32::from(self) / divisor
    }
}

/// Copies the numbers of a row that are not zero, and their places, one after the other; returns how many there are.
struct Kept<'a, T> {
    row: &'a [T],
    divisor: f32,
    places: &'a mut [u32],
    values: &'a mut [f32],
}

impl<T: Number> Plain for Kept<'_, T> {
    type Out = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Kept { row, divisor, places, values } = self;
        let mut kept = 0;
        let (blocks, rest) = row.as_chunks::<WIDE>();
        for (number, block) in blocks.iter().enumerate() {
            let mut mask = 0_u64;
            for i in 0..WIDE {
                mask |= u64::from(!block[i].is_zero()) << i;
            }
            while mask != 0 {
                let i = mask.trailing_zeros() as usize % WIDE;
                places[kept] = (number * WIDE + i) as u32;
                values[kept] = block[i].value(divisor);
                kept += 1;
                mask &= mask - 1;
            }
        }
        for (i, &x) in rest.iter().enumerate().filter(|(_, x)| !x.is_zero()) {
            places[kept] = (blocks.len() * WIDE + i) as u32;
            values[kept] = x.value(divisor);
            kept += 1;
        }
        kept
    }
}

struct Product<'a> {
    rows: &'a SparseRows,
    turned: &'a Turned,
    bias: Option<&'a [f32]>,
    c: &'a mut [f32],
}

impl Task for Product<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Product { rows, turned, bias, c } = self;
        let (n, stride) = (turned.columns, turned.stride);
        for (row, c) in c.chunks_exact_mut(n).enumerate() {
            let (places, values) = rows.row(row);
            let mut first = 0;
            while first < stride {
                let registers = (stride - first) / LANES;
                let part = (isa, places, values, &turned.data[first..], stride);
                let bias = bias.map(|bias| &bias[first..]);
                let to = &mut c[first..];
                match registers {
                    1 => sums_of::<I, 1>(part, bias, to),
                    2 => sums_of::<I, 2>(part, bias, to),
                    3 => sums_of::<I, 3>(part, bias, to),
                    _ => sums_of::<I, MOST>(part, bias, to),
                }
                first += registers.min(MOST) * LANES;
            }
        }
    }
}

/// The sums of `W` registers of a row: `matrix` begins at their first column.
#[inline(always)]
fn sums_of<I: Isa, const W: usize>(
    (isa, places, values, matrix, stride): (I, &[u32], &[f32], &[f32], usize),
    bias: Option<&[f32]>,
    to: &mut [f32],
) {
    let wide = to.len().min(W * LANES);
    let mut sums = [isa.splat16(0.0); W];
    if let Some(bias) = bias {
        for w in 0..W {
            let mut all = [0.0; LANES];
            let from = &bias[(w * LANES).min(wide)..wide.min((w + 1) * LANES)];
            all[..from.len()].copy_from_slice(from);
            sums[w] = isa.load16(&all);
        }
    }
    for (&place, &x) in places.iter().zip(values) {
        let column = &matrix[place as usize * stride..][..W * LANES];
        let x = isa.splat16(x);
        for w in 0..W {
            let column = column[w * LANES..].first_chunk().expect("a register");
            sums[w] = x.mul_add(isa.load16(column), sums[w]);
        }
    }
    for w in 0..W {
        let begin = (w * LANES).min(wide);
        let to = &mut to[begin..wide.min(begin + LANES)];
        if let Some(to) = to.first_chunk_mut() {
            sums[w].store(to);
        } else {
            let mut all = [0.0; LANES];
            sums[w].store(&mut all);
            to.copy_from_slice(&all[..to.len()]);
        }
    }
}

struct AddOuter<'a> {
    rows: &'a SparseRows,
    /// `[rows, stride]`
    dy: &'a [f32],
    turned: &'a mut Turned,
}

impl Task for AddOuter<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let AddOuter { rows, dy, turned } = self;
        let stride = turned.stride;
        for (row, dy) in dy.chunks_exact(stride).enumerate() {
            let (places, values) = rows.row(row);
            let mut first = 0;
            while first < stride {
                let registers = (stride - first) / LANES;
                let part = (isa, places, values, &dy[first..], stride);
                let data = &mut turned.data[first..];
                match registers {
                    1 => add_row::<I, 1>(part, data),
                    2 => add_row::<I, 2>(part, data),
                    3 => add_row::<I, 3>(part, data),
                    _ => add_row::<I, MOST>(part, data),
                }
                first += registers.min(MOST) * LANES;
            }
        }
    }
}

/// Adds `W` registers of a row of the gradient, times the numbers of a row, to the columns at its places.
#[inline(always)]
fn add_row<I: Isa, const W: usize>(
    (isa, places, values, dy, stride): (I, &[u32], &[f32], &[f32], usize),
    data: &mut [f32],
) {
    let mut row = [isa.splat16(0.0); W];
    for w in 0..W {
        row[w] = isa.load16(dy[w * LANES..].first_chunk().expect("a register"));
    }
    for (&place, &x) in places.iter().zip(values) {
        let column = &mut data[place as usize * stride..][..W * LANES];
        let x = isa.splat16(x);
        for w in 0..W {
            let column: &mut [f32; LANES] = column[w * LANES..].first_chunk_mut().expect("a register");
            x.mul_add(row[w], isa.load16(column)).store(column);
        }
    }
}

/// Copies `[rows, columns]` to `[columns, rows]`.
struct Turn<'a> {
    from: &'a [f32],
    rows: usize,
    columns: usize,
    /// Distances of rows in `from`, and of columns in `to`.
    strides: [usize; 2],
    to: &'a mut [f32],
}

impl Task for Turn<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Turn { from, rows, columns, strides: [across, stride], to } = self;
        for row in (0..rows).step_by(LANES) {
            let high = (rows - row).min(LANES);
            let mut column = 0;
            if high == LANES {
                while column + 8 <= columns {
                    let mut block = [isa.load8(&[0.0; 8]); LANES];
                    for (i, block) in block.iter_mut().enumerate() {
                        let from = &from[(row + i) * across + column..];
                        *block = isa.load8(from.first_chunk().expect("eight numbers"));
                    }
                    let turned = isa.transpose(block);
                    for t in 0..8 {
                        let to = &mut to[(column + t) * stride + row..];
                        turned[t].store(to.first_chunk_mut().expect("a register"));
                    }
                    column += 8;
                }
            }
            for column in column..columns {
                for i in row..row + high {
                    to[column * stride + i] = from[i * across + column];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gemm::{Gemm, View};

    fn numbers(n: usize, seed: u64, zeros: f64) -> Vec<f32> {
        let mut rng = foveate_core::Seed::root(seed).rng();
        (0..n)
            .map(|_| {
                let x = rng.uniform(-1.0, 1.0) as f32;
                if rng.uniform(0.0, 1.0) < zeros { 0.0 } else { x }
            })
            .collect()
    }

    /// Product and gradient are those of `gemm`, on every instruction set.
    #[track_caller]
    fn check([m, k, n]: [usize; 3], zeros: f64) {
        let (x, w, b) = (numbers(m * k, 1, zeros), numbers(n * k, 2, 0.0), numbers(n, 3, 0.0));
        let (dy, old) = (numbers(m * n, 4, 0.3), numbers(n * k, 5, 0.5));
        let best = Level::best();
        let mut gemm = Gemm::default();
        let (mut y, mut d_weight) = (vec![0.0; m * n], old.clone());
        gemm.product_plus(best, View::new(&x, m, k), View::new(&w, n, k).transposed(), &b, &mut y);
        gemm.add_product(best, View::new(&dy, m, n).transposed(), View::new(&x, m, k), &mut d_weight);
        for level in Level::available() {
            let (mut turned, mut rows) = (Turned::default(), SparseRows::new(k));
            turned.set(level, &w, n, k);
            append(level, &mut rows, &x);
            let mut given = vec![f32::NAN; m * n];
            product(level, &rows, &turned, Some(&b), &mut given);
            assert_eq!(given, y, "{m} x {k} x {n}, {level:?}");
            let mut back = vec![f32::NAN; n * k];
            turned.write(level, &mut back);
            assert_eq!(back, w, "there and back, {level:?}");
            turned.set(level, &old, n, k);
            add_outer(level, &rows, &dy, &mut turned);
            turned.write(level, &mut back);
            assert_eq!(back, d_weight, "gradient of {m} x {k} x {n}, {level:?}");
        }
    }

    #[test]
    fn rows_of_any_size_give_the_numbers_of_a_matrix_product() {
        for size in [[1, 1, 1], [1, 980, 64], [3, 17, 65], [2, 8, 16], [5, 40, 100], [4, 7, 15], [2, 300, 48]]
        {
            check(size, 0.85);
            check(size, 0.0);
        }
        check([3, 5, 4], 1.0);
    }

    #[test]
    fn rows_with_too_many_numbers_are_refused() {
        let mut rows = SparseRows::new(2);
        assert!(append_within(Level::best(), &mut rows, &[0.0, 1.0, 0.0, 0.0], 1));
        rows.clear(2);
        assert!(!append_within(Level::best(), &mut rows, &[0.0, 1.0, 1.0, 0.0], 1));
    }

    #[test]
    fn bytes_are_the_numbers_that_they_are_divided_to() {
        let bytes: Vec<u8> = (0..333_u32).map(|i| (i * i % 7 * (i % 3)) as u8).collect();
        let numbers: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte) / 10.0).collect();
        for level in Level::available() {
            let mut rows = SparseRows::new(bytes.len());
            append_bytes(level, &mut rows, &bytes, 10.0);
            append(level, &mut rows, &numbers);
            assert_eq!(rows.row(0), rows.row(1), "{level:?}");
            let mut back = vec![f32::NAN; bytes.len()];
            rows.write(0, &mut back);
            assert_eq!(back, numbers, "{level:?}");
        }
    }

    proptest! {
        #[test]
        fn any_rows_give_the_numbers_of_a_matrix_product(m in 1_usize..5, k in 1_usize..40, n in 1_usize..70, zeros in 0.0..1.0) {
            check([m, k, n], zeros);
        }
    }
}
