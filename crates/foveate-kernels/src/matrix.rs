//! Dense linear algebra in double precision on one thread: products, rank-k updates, Cholesky factors and
//! triangular systems.
//!
//! Matrices are column-major. [`Mat`] borrows a matrix or its transpose for reading, [`MatMut`] borrows one
//! for writing. Every algorithm divides its matrix into halves down to blocks of [`BLOCK`], so that nearly
//! all the work is in [`multiply`], which is `matrixmultiply::dgemm`.
//!
//! # Rounding
//!
//! The same input gives bit-identical results at any place in memory and in every call: one thread, a fixed
//! order of operations, constant block sizes. An element of a product is the sum over `k` in ascending order,
//! in pieces of 256 terms; each piece starts at zero and is then added to the element.
//!
//! Results differ only between processors that fuse a multiplication with an addition within a piece and
//! those that do not. On `x86_64`, AVX-512 and AVX2 with FMA fuse and are bit-identical to each other; older
//! processors do not fuse. Nothing is fused outside of products.
//!
//! # Non-finite numbers
//!
//! They propagate to every element that depends on them, and further: triangles are multiplied with explicit
//! zeros within blocks of [`BLOCK`], and `0 · ∞` is NaN. [`cholesky`] returns an error for every matrix whose
//! factor is not finite.

use std::fmt;

/// Rows and columns of the blocks that are not divided further.
pub const BLOCK: usize = 32;

/// Rows of a panel that are solved together: with `BLOCK` columns they fit the first-level cache.
const STRIP: usize = 64;

/// A matrix for reading, `[rows, cols]`, in any layout.
#[derive(Debug, Clone, Copy)]
pub struct Mat<'a> {
    /// Element `(i, j)` is at `i * row_stride + j * col_stride`, which is below `data.len()` for all
    /// elements.
    data: &'a [f64],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

/// A column-major matrix for writing, `[rows, cols]`.
#[derive(Debug)]
pub struct MatMut<'a> {
    /// Element `(i, j)` is at `i + j * stride`, which is below `data.len()` for all elements;
    /// `stride >= rows`.
    data: &'a mut [f64],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// Length of the slice from the first element of a column-major matrix to its last.
fn extent(rows: usize, cols: usize, stride: usize) -> usize {
    assert!(stride >= rows, "columns of {rows} numbers begin every {stride}");
    if rows == 0 || cols == 0 {
        return 0;
    }
    (cols - 1).checked_mul(stride).and_then(|n| n.checked_add(rows)).expect("a size that fits memory")
}

impl<'a> Mat<'a> {
    /// The column-major matrix `[rows, cols]` whose column `j` begins at `data[j * stride]`.
    ///
    /// # Panics
    /// When `stride` is below `rows`, or `data` is too short.
    pub fn new(data: &'a [f64], rows: usize, cols: usize, stride: usize) -> Self {
        let extent = extent(rows, cols, stride);
        assert!(data.len() >= extent, "{} numbers for a matrix that takes {extent}", data.len());
        Mat { data, rows, cols, row_stride: 1, col_stride: stride }
    }

    /// Its transpose.
    #[must_use]
    pub const fn transposed(self) -> Self {
        let Mat { data, rows, cols, row_stride, col_stride } = self;
        Mat { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }

    /// The part of `rows` rows from `row` on and `cols` columns from `col` on, `[rows, cols]`.
    ///
    /// # Panics
    /// When the matrix has fewer rows or columns.
    #[must_use]
    pub fn part(self, (row, rows): (usize, usize), (col, cols): (usize, usize)) -> Self {
        assert!(row <= self.rows && rows <= self.rows - row, "rows");
        assert!(col <= self.cols && cols <= self.cols - col, "columns");
        // The start of an empty part may be past the last element.
        let begin = row.saturating_mul(self.row_stride).saturating_add(col.saturating_mul(self.col_stride));
        let begin = begin.min(self.data.len());
        Mat { data: &self.data[begin..], rows, cols, ..self }
    }

    /// `[rows]`: column `j` of a matrix that is not transposed.
    fn col(self, j: usize) -> &'a [f64] {
        debug_assert!(self.row_stride == 1 && j < self.cols, "a column");
        &self.data[j * self.col_stride..][..self.rows]
    }
}

impl<'a> MatMut<'a> {
    /// The matrix `[rows, cols]` whose column `j` begins at `data[j * stride]`.
    ///
    /// # Panics
    /// When `stride` is below `rows`, or `data` is too short.
    pub fn new(data: &'a mut [f64], rows: usize, cols: usize, stride: usize) -> Self {
        let extent = extent(rows, cols, stride);
        assert!(data.len() >= extent, "{} numbers for a matrix that takes {extent}", data.len());
        MatMut { data, rows, cols, stride }
    }

    /// The same matrix, for reading.
    pub fn as_ref(&self) -> Mat<'_> {
        Mat { data: self.data, rows: self.rows, cols: self.cols, row_stride: 1, col_stride: self.stride }
    }

    /// The same matrix, with a shorter lifetime.
    pub fn reborrow(&mut self) -> MatMut<'_> {
        MatMut { data: self.data, rows: self.rows, cols: self.cols, stride: self.stride }
    }

    /// Splits the matrix into its first `cols` columns and the others.
    fn split_cols(self, cols: usize) -> (Self, Self) {
        assert!(cols <= self.cols, "columns");
        let at = cols.saturating_mul(self.stride).min(self.data.len());
        let (left, right) = self.data.split_at_mut(at);
        let MatMut { rows, stride, .. } = self;
        (
            MatMut { data: left, rows, cols, stride },
            MatMut { data: right, rows, cols: self.cols - cols, stride },
        )
    }

    /// The `rows` rows from `row` on.
    fn rows(self, row: usize, rows: usize) -> Self {
        assert!(row <= self.rows && rows <= self.rows - row, "rows");
        let begin = row.min(self.data.len());
        MatMut { data: &mut self.data[begin..], rows, ..self }
    }

    /// `[rows]`: column `j`.
    fn col(&mut self, j: usize) -> &mut [f64] {
        debug_assert!(j < self.cols, "a column");
        &mut self.data[j * self.stride..][..self.rows]
    }
}

/// `C = beta C + alpha A B`, of `[m, n]`, `[m, k]` and `[k, n]`. If `beta` is 0, the content of C is not
/// read.
///
/// Allocates up to 2.3 MB and frees it again.
///
/// # Panics
/// When the sizes do not match.
#[allow(clippy::needless_pass_by_value, reason = "a mutable view is given away, as a slice is")]
pub fn multiply(beta: f64, c: MatMut<'_>, alpha: f64, a: Mat<'_>, b: Mat<'_>) {
    let (m, k, n) = (a.rows, a.cols, b.cols);
    assert_eq!((c.rows, c.cols, b.rows), (m, n, k), "C, A and B do not fit");
    // SAFETY: `dgemm` reads A and B and reads and writes C at the elements below the given sizes, and
    // accesses nothing else.
    // - They lie within the slices: that is the invariant of `Mat` and `MatMut`, which only `new` (checked
    //   against the slice), `transposed` (the same elements), `part`, `split_cols` and `rows` (a subset of
    //   them) make. An offset within a slice of f64 fits `isize`, so does each stride that is multiplied with
    //   an index above 0; with no such index a stride that does not fit is never used.
    // - Elements of C are distinct: its strides are 1 and `stride >= rows`.
    // - C is borrowed mutably, so neither A nor B overlaps it.
    // - `dgemm` detects the processor's features itself.
    unsafe {
        matrixmultiply::dgemm(
            m,
            k,
            n,
            alpha,
            a.data.as_ptr(),
            a.row_stride as isize,
            a.col_stride as isize,
            b.data.as_ptr(),
            b.row_stride as isize,
            b.col_stride as isize,
            beta,
            c.data.as_mut_ptr(),
            1,
            c.stride as isize,
        );
    }
}

/// Where to divide `n`: at a multiple of [`BLOCK`] near the middle; less than `n` if `n` exceeds [`BLOCK`].
const fn half(n: usize) -> usize {
    (n / 2).next_multiple_of(BLOCK)
}

/// `C += alpha V Vᵀ`, of `[n, n]` and `[n, k]`; only the lower triangle is read and written.
///
/// # Panics
/// When the sizes do not match.
pub fn add_outer(c: MatMut<'_>, alpha: f64, v: Mat<'_>) {
    let n = v.rows;
    assert_eq!((c.rows, c.cols), (n, n), "C does not fit V");
    if n > BLOCK {
        let h = half(n);
        let (upper, lower) = (v.part((0, h), (0, v.cols)), v.part((h, n - h), (0, v.cols)));
        let (mut left, right) = c.split_cols(h);
        multiply(1.0, left.reborrow().rows(h, n - h), alpha, lower, upper.transposed());
        add_outer(left.rows(0, h), alpha, upper);
        add_outer(right.rows(h, n - h), alpha, lower);
        return;
    }
    let mut c = c;
    let mut block = [0.0; BLOCK * BLOCK];
    let mut square = MatMut::new(&mut block, n, n, n);
    multiply(0.0, square.reborrow(), alpha, v, v.transposed());
    for j in 0..n {
        for (c, x) in c.col(j)[j..].iter_mut().zip(&square.col(j)[j..]) {
            *c += x;
        }
    }
}

/// `Y = L Z`, of `[n, k]`, `[n, n]` and `[n, k]`; only the lower triangle of L is read.
///
/// # Panics
/// When the sizes do not match.
pub fn lower_times(y: MatMut<'_>, l: Mat<'_>, z: Mat<'_>) {
    let n = l.rows;
    assert_eq!((l.cols, y.rows, z.rows, y.cols), (n, n, n, z.cols), "Y, L and Z do not fit");
    add_lower_times(0.0, y, l, z);
}

/// `Y = beta Y + L Z`
fn add_lower_times(beta: f64, mut y: MatMut<'_>, l: Mat<'_>, z: Mat<'_>) {
    let (n, k) = (l.rows, z.cols);
    if n > BLOCK {
        let h = half(n);
        add_lower_times(beta, y.reborrow().rows(0, h), l.part((0, h), (0, h)), z.part((0, h), (0, k)));
        let mut rest = y.rows(h, n - h);
        multiply(beta, rest.reborrow(), 1.0, l.part((h, n - h), (0, h)), z.part((0, h), (0, k)));
        add_lower_times(1.0, rest, l.part((h, n - h), (h, n - h)), z.part((h, n - h), (0, k)));
        return;
    }
    let mut block = [0.0; BLOCK * BLOCK];
    for j in 0..n {
        block[j * n + j..(j + 1) * n].copy_from_slice(&l.col(j)[j..]);
    }
    multiply(beta, y, 1.0, Mat::new(&block, n, n, n), z);
}

/// Replaces Y by the solution X of `L X = Y`, of `[n, k]` and `[n, n]`; only the lower triangle of L is read.
///
/// Allocates about half the size of Y.
///
/// # Panics
/// When the sizes do not match.
pub fn solve_lower(l: Mat<'_>, y: MatMut<'_>) {
    let n = l.rows;
    assert_eq!((l.cols, y.rows), (n, n), "L and Y do not fit");
    solve_with(l, y, &mut Vec::new());
}

fn solve_with(l: Mat<'_>, mut y: MatMut<'_>, scratch: &mut Vec<f64>) {
    let (n, k) = (l.rows, y.cols);
    if n > BLOCK {
        let h = half(n);
        solve_with(l.part((0, h), (0, h)), y.reborrow().rows(0, h), scratch);
        // Rows of one column are adjacent in memory, so the rows read while others are written are copied
        // first.
        scratch.clear();
        for j in 0..k {
            scratch.extend_from_slice(&y.col(j)[..h]);
        }
        let mut rest = y.rows(h, n - h);
        multiply(1.0, rest.reborrow(), -1.0, l.part((h, n - h), (0, h)), Mat::new(scratch, h, k, h));
        solve_with(l.part((h, n - h), (h, n - h)), rest, scratch);
        return;
    }
    for j in 0..k {
        let y = y.col(j);
        for i in 0..n {
            let (x, rest) = y[i..].split_first_mut().expect("i < n");
            let l = &l.col(i)[i..];
            *x /= l[0];
            for (y, l) in rest.iter_mut().zip(&l[1..]) {
                *y -= *x * l;
            }
        }
    }
}

/// A matrix without a Cholesky factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPositiveDefinite {
    /// The first column whose pivot is not a finite number above 0.
    pub column: usize,
}

impl fmt::Display for NotPositiveDefinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the matrix is not positive definite: the pivot of column {} is not above 0", self.column)
    }
}

impl std::error::Error for NotPositiveDefinite {}

/// Replaces the lower triangle of A, `[n, n]`, by the L of `A = L Lᵀ`; the upper triangle is neither read nor
/// written.
///
/// L is finite with a diagonal above 0, for any content of A.
///
/// # Errors
/// When A is not positive definite, within rounding; the content of A is then unspecified.
///
/// # Panics
/// When A is not square.
pub fn cholesky(a: MatMut<'_>) -> Result<(), NotPositiveDefinite> {
    assert_eq!(a.rows, a.cols, "A is not square");
    factor(a, 0)
}

/// [`cholesky`] of the part of a matrix that begins at `first`.
fn factor(mut a: MatMut<'_>, first: usize) -> Result<(), NotPositiveDefinite> {
    let n = a.rows;
    if n > BLOCK {
        let h = half(n);
        let (mut left, right) = a.split_cols(h);
        let mut right = right.rows(h, n - h);
        factor(left.reborrow().rows(0, h), first)?;
        solve_transposed(left.reborrow(), h);
        add_outer(right.reborrow(), -1.0, left.as_ref().part((h, n - h), (0, h)));
        return factor(right, first + h);
    }
    for j in 0..n {
        let (done, mut rest) = a.reborrow().split_cols(j);
        let column = &mut rest.col(0)[j..];
        for k in 0..j {
            let l = &done.as_ref().col(k)[j..];
            let x = l[0];
            for (c, l) in column.iter_mut().zip(l) {
                *c -= x * l;
            }
        }
        // A NaN is not above 0 either. A non-finite number in a row makes the pivot of that row −∞ or NaN.
        if !(column[0] > 0.0 && column[0].is_finite()) {
            return Err(NotPositiveDefinite { column: first + j });
        }
        let pivot = column[0].sqrt();
        column[0] = pivot;
        column[1..].iter_mut().for_each(|x| *x /= pivot);
    }
    Ok(())
}

/// Replaces the rows of A from `top` on, `[m, n]`, by the solution X of `X Lᵀ = A`, where L is the lower
/// triangle of the first n rows of A.
fn solve_transposed(mut a: MatMut<'_>, top: usize) {
    let (rows, n) = (a.rows, a.cols);
    if n > BLOCK {
        let h = half(n);
        let (mut left, mut right) = a.split_cols(h);
        solve_transposed(left.reborrow(), top);
        let left = left.as_ref();
        let (x, l) = (left.part((top, rows - top), (0, h)), left.part((h, n - h), (0, h)));
        multiply(1.0, right.reborrow().rows(top, rows - top), -1.0, x, l.transposed());
        return solve_transposed(right.rows(h, rows - h), top - h);
    }
    for begin in (top..rows).step_by(STRIP) {
        let end = rows.min(begin + STRIP);
        for j in 0..n {
            let (done, mut rest) = a.reborrow().split_cols(j);
            let done = done.as_ref();
            let column = rest.col(0);
            let pivot = column[j];
            let strip = &mut column[begin..end];
            for k in 0..j {
                let l = done.col(k);
                let x = l[j];
                for (a, l) in strip.iter_mut().zip(&l[begin..end]) {
                    *a -= x * l;
                }
            }
            for a in &mut *strip {
                *a /= pivot;
            }
        }
    }
}
