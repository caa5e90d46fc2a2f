//! The covariance matrix, its factor, and what it learnt since the factor was made.
//!
//! A factorisation costs O(n³), so it waits until it would change something: in between, samples come from the old
//! factor and what is learnt is kept as vectors. At n = 3,667 with 256 genomes that is every third generation.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::Form;

/// The largest ratio of eigenvalues that samples can still resolve; pycma's `tolconditioncov`.
const CONDITION_LIMIT: f64 = 1e14;

/// `C`, `[n, n]`, and a factor `A` with `A Aᵀ = C` as it was when last factored.
///
/// One thread and memory that is always aligned alike: the same matrix has the same factor to the bit.
#[derive(Debug, Clone)]
pub(super) struct Covariance {
    /// `C` when it was last factored; the lower triangle counts.
    matrix: Mat<f64>,
    factor: Factor,
    /// `C` now is `decay · matrix + Σ grown grownᵀ − Σ shrunk shrunkᵀ`.
    decay: f64,
    grown: Columns,
    shrunk: Columns,
    /// Whether it was ever factored; before, it is what [`Covariance::new`] made.
    factored: bool,
}

#[derive(Debug, Clone)]
enum Factor {
    /// `A = B D Bᵀ`, the symmetric root: `[n, n]` eigenvectors in columns, and the square roots of the eigenvalues.
    Eigen { basis: Mat<f64>, roots: Vec<f64> },
    /// `A = L`; the lower triangle counts.
    Cholesky { lower: Mat<f64> },
}

impl Covariance {
    /// A unit matrix whose diagonal rises by 0.01 % in all, as pycma's does: no eigenvalue comes twice.
    pub(super) fn new(form: Form, n: usize) -> Self {
        let variance = |i: usize| (1e-4 / n as f64 * i as f64).exp();
        let factor = match form {
            Form::Eigen => Factor::Eigen {
                basis: Mat::identity(n, n),
                roots: (0..n).map(|i| variance(i).sqrt()).collect(),
            },
            Form::Cholesky => Factor::Cholesky { lower: diagonal(n, |i| variance(i).sqrt()) },
        };
        Covariance {
            matrix: diagonal(n, variance),
            factor,
            decay: 1.0,
            grown: Columns::new(n),
            shrunk: Columns::new(n),
            factored: false,
        }
    }

    fn dimension(&self) -> usize {
        self.matrix.nrows()
    }

    /// Multiplies the matrix by `decay`, before the vectors of this generation are learnt.
    pub(super) fn shrink(&mut self, decay: f64) {
        self.decay *= decay;
        self.grown.scale(decay.sqrt());
        self.shrunk.scale(decay.sqrt());
    }

    /// Adds `weight · vector vectorᵀ`.
    pub(super) fn learn(&mut self, weight: f64, vector: &[f64]) {
        let columns = if weight < 0.0 { &mut self.shrunk } else { &mut self.grown };
        if weight != 0.0 {
            columns.push(weight.abs().sqrt(), vector);
        }
    }

    /// `[n]`: the diagonal of the matrix as it is now.
    pub(super) fn variances(&self, into: &mut Vec<f64>) {
        into.clear();
        into.extend((0..self.dimension()).map(|i| self.decay * self.matrix[(i, i)]));
        for (columns, sign) in [(&self.grown, 1.0), (&self.shrunk, -1.0)] {
            for column in columns.iter() {
                for (v, x) in into.iter_mut().zip(column) {
                    *v += sign * x * x;
                }
            }
        }
    }

    /// Puts what was learnt into the matrix and factors it.
    pub(super) fn refactor(&mut self) {
        self.flush();
        self.factor_matrix();
    }

    /// Divides row and column i by `scale[i]`, then factors.
    pub(super) fn rescale(&mut self, scale: &[f64]) {
        self.flush();
        for j in 0..self.dimension() {
            let column = self.matrix.col_as_slice_mut(j);
            for (x, s) in column.iter_mut().zip(scale).skip(j) {
                *x /= s * scale[j];
            }
        }
        self.factor_matrix();
    }

    fn flush(&mut self) {
        if self.decay != 1.0 {
            for j in 0..self.dimension() {
                self.matrix.col_as_slice_mut(j)[j..].iter_mut().for_each(|x| *x *= self.decay);
            }
            self.decay = 1.0;
        }
        for (columns, sign) in [(&mut self.grown, 1.0), (&mut self.shrunk, -1.0)] {
            let vectors = columns.as_mat();
            triangular::matmul(
                self.matrix.as_mut(),
                BlockStructure::TriangularLower,
                Accum::Add,
                vectors,
                BlockStructure::Rectangular,
                vectors.transpose(),
                BlockStructure::Rectangular,
                sign,
                Par::Seq,
            );
            columns.clear();
        }
    }

    /// Factors the matrix; adds to its diagonal first where it is not positive definite or its condition is beyond
    /// [`CONDITION_LIMIT`], which rounding and repaired genomes can bring about.
    fn factor_matrix(&mut self) {
        self.factored = true;
        let least = match &self.factor {
            Factor::Eigen { roots, .. } => roots[0].powi(2),
            Factor::Cholesky { lower } => {
                (0..lower.nrows()).map(|i| lower[(i, i)].powi(2)).fold(f64::INFINITY, f64::min)
            }
        };
        let mut rescue = least.max(f64::MIN_POSITIVE);
        loop {
            let (added, good) = match self.try_factor() {
                Some((smallest, largest)) if largest > CONDITION_LIMIT * smallest => {
                    ((largest - CONDITION_LIMIT * smallest) / (CONDITION_LIMIT - 1.0) * 1.001, false)
                }
                Some(_) => (0.0, true),
                None => {
                    rescue *= 2.0;
                    (rescue, false)
                }
            };
            if good {
                return;
            }
            for i in 0..self.dimension() {
                self.matrix[(i, i)] += added;
            }
        }
    }

    /// Factors the matrix and gives its smallest and largest eigenvalue, or bounds within them; nothing when it is
    /// not positive definite.
    fn try_factor(&mut self) -> Option<(f64, f64)> {
        let n = self.dimension();
        match &mut self.factor {
            Factor::Eigen { basis, roots } => {
                let mut values = Diag::zeros(n);
                let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<f64>(
                    n,
                    ComputeEigenvectors::Yes,
                    Par::Seq,
                    faer::Spec::default(),
                ));
                self_adjoint_evd(
                    self.matrix.as_ref(),
                    values.as_mut(),
                    Some(basis.as_mut()),
                    Par::Seq,
                    MemStack::new(&mut memory),
                    faer::Spec::default(),
                )
                .ok()?;
                let values: Vec<f64> = values.column_vector().iter().copied().collect();
                // In ascending order; a NaN is not positive either.
                if !values.iter().all(|v| *v > 0.0 && v.is_finite()) {
                    return None;
                }
                roots.clear();
                roots.extend(values.iter().map(|v| v.sqrt()));
                Some((values[0], values[n - 1]))
            }
            Factor::Cholesky { lower } => {
                for j in 0..n {
                    lower.col_as_slice_mut(j)[j..].copy_from_slice(&self.matrix.col_as_slice(j)[j..]);
                }
                let mut memory =
                    MemBuffer::new(cholesky_in_place_scratch::<f64>(n, Par::Seq, faer::Spec::default()));
                cholesky_in_place(
                    lower.as_mut(),
                    faer::linalg::cholesky::llt::factor::LltRegularization::default(),
                    Par::Seq,
                    MemStack::new(&mut memory),
                    faer::Spec::default(),
                )
                .ok()?;
                let pivots = (0..n).map(|i| lower[(i, i)].powi(2));
                let (smallest, largest) =
                    pivots.fold((f64::INFINITY, 0.0), |(low, high), p| (p.min(low), p.max(high)));
                (smallest > 0.0 && largest.is_finite()).then_some((smallest, largest))
            }
        }
    }

    /// `y = A z` for the columns of `z`, `[n, k]`; `scratch` has the same size.
    pub(super) fn colour(&self, z: MatRef<'_, f64>, mut y: MatMut<'_, f64>, mut scratch: MatMut<'_, f64>) {
        match &self.factor {
            Factor::Eigen { basis, roots } => {
                matmul(scratch.rb_mut(), Accum::Replace, basis.transpose(), z, 1.0, Par::Seq);
                scale_rows(scratch.rb_mut(), roots, |x, root| x * root);
                matmul(y.rb_mut(), Accum::Replace, basis, scratch, 1.0, Par::Seq);
            }
            Factor::Cholesky { lower } => triangular::matmul(
                y.rb_mut(),
                BlockStructure::Rectangular,
                Accum::Replace,
                lower,
                BlockStructure::TriangularLower,
                z,
                BlockStructure::Rectangular,
                1.0,
                Par::Seq,
            ),
        }
    }

    /// `z = A⁻¹ y` for the columns of `y`, `[n, k]`, in place; `scratch` has the same size.
    pub(super) fn whiten(&self, y: MatMut<'_, f64>, mut scratch: MatMut<'_, f64>) {
        match &self.factor {
            Factor::Eigen { basis, roots } => {
                matmul(scratch.rb_mut(), Accum::Replace, basis.transpose(), y.rb(), 1.0, Par::Seq);
                scale_rows(scratch.rb_mut(), roots, |x, root| x / root);
                matmul(y, Accum::Replace, basis, scratch, 1.0, Par::Seq);
            }
            Factor::Cholesky { lower } => solve_lower_triangular_in_place(lower.as_ref(), y, Par::Seq),
        }
    }

    /// `[n, n]`: the matrix as it is now, row by row.
    pub(super) fn to_rows(&self) -> Vec<f64> {
        let mut now = self.clone();
        now.flush();
        let n = self.dimension();
        (0..n).flat_map(|i| (0..n).map(move |j| (i.max(j), i.min(j)))).map(|at| now.matrix[at]).collect()
    }

    /// The lower triangle of the matrix that was last factored, column by column; nothing before the first time.
    pub(super) fn triangle(&self) -> Vec<f64> {
        if !self.factored {
            return Vec::new();
        }
        (0..self.dimension()).flat_map(|j| &self.matrix.col_as_slice(j)[j..]).copied().collect()
    }

    /// `decay`, and the vectors learnt since the last factorisation.
    pub(super) fn pending(&self) -> (f64, Vec<f64>, Vec<f64>) {
        (self.decay, self.grown.to_vec(), self.shrunk.to_vec())
    }

    /// What [`Covariance::triangle`] and [`Covariance::pending`] told; the sizes must fit.
    ///
    /// # Errors
    /// When the triangle is no positive definite matrix.
    pub(super) fn restored(
        form: Form,
        n: usize,
        triangle: &[f64],
        decay: f64,
        grown: &[f64],
        shrunk: &[f64],
    ) -> Result<Self, String> {
        let mut made = Covariance::new(form, n);
        if !triangle.is_empty() {
            let mut rest = triangle;
            for j in 0..n {
                let (column, after) = rest.split_at(n - j);
                made.matrix.col_as_slice_mut(j)[j..].copy_from_slice(column);
                rest = after;
            }
            made.factored = true;
            // What is saved was factored as it stands.
            made.try_factor().ok_or("covariance is not positive definite")?;
        }
        made.decay = decay;
        for (columns, saved) in [(&mut made.grown, grown), (&mut made.shrunk, shrunk)] {
            saved.chunks_exact(n).for_each(|vector| columns.push(1.0, vector));
        }
        Ok(made)
    }
}

/// Column vectors, in memory that grows; `[n, count]`.
#[derive(Debug, Clone)]
struct Columns {
    room: Mat<f64>,
    count: usize,
}

impl Columns {
    fn new(n: usize) -> Self {
        Columns { room: Mat::zeros(n, 0), count: 0 }
    }

    fn push(&mut self, factor: f64, vector: &[f64]) {
        if self.count == self.room.ncols() {
            self.room.resize_with(vector.len(), (2 * self.count).max(8), |_, _| 0.0);
        }
        for (x, v) in self.room.col_as_slice_mut(self.count).iter_mut().zip(vector) {
            *x = factor * v;
        }
        self.count += 1;
    }

    fn scale(&mut self, factor: f64) {
        for j in 0..self.count {
            self.room.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= factor);
        }
    }

    fn clear(&mut self) {
        self.count = 0;
    }

    fn iter(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.count).map(|j| self.room.col_as_slice(j))
    }

    fn as_mat(&self) -> MatRef<'_, f64> {
        self.room.as_ref().subcols(0, self.count)
    }

    fn to_vec(&self) -> Vec<f64> {
        self.iter().flatten().copied().collect()
    }
}

fn diagonal(n: usize, value: impl Fn(usize) -> f64) -> Mat<f64> {
    let mut matrix = Mat::zeros(n, n);
    for i in 0..n {
        matrix[(i, i)] = value(i);
    }
    matrix
}

fn scale_rows(mut matrix: MatMut<'_, f64>, scale: &[f64], change: impl Fn(f64, f64) -> f64) {
    for j in 0..matrix.ncols() {
        for (i, s) in scale.iter().enumerate() {
            matrix[(i, j)] = change(matrix[(i, j)], *s);
        }
    }
}
