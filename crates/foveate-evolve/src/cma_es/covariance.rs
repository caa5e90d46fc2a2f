//! The covariance matrix, its factor, and the updates since the last factorisation.
//!
//! A factorisation costs O(n³), so it is only computed when it would change something: in between, samples
//! come from the old factor and updates are stored as vectors. At n = 3,667 with 256 genomes it is computed
//! every third generation.

use foveate_core::EvolveError;
use foveate_kernels::matrix::{add_outer, cholesky, lower_times, solve_lower};

use super::Form;
#[cfg(feature = "eigen")]
use super::eigen::Eigen;
use super::matrix::Matrix;
use crate::base::bad;

/// The largest ratio of eigenvalues that sampling can resolve; pycma's `tolconditioncov`.
const CONDITION_LIMIT: f64 = 1e14;

/// Most factorisations of a matrix whose diagonal must be increased first.
const ATTEMPTS: i32 = 128;

/// Attempts before additions are at least as large as rounding, which then reach the size of the matrix in 53:
/// of a matrix whose condition is too high, and of one that is not positive definite.
const PATIENCE: [i32; 2] = [8, 64];

/// `C`, `[n, n]`, and a factor `A` with `A Aᵀ = C` from the last factorisation.
///
/// The same matrix has a bit-identical factor on processors with the same instructions.
#[derive(Debug, Clone)]
pub(super) struct Covariance {
    /// `C` at the last factorisation; only the lower triangle is used.
    matrix: Matrix,
    factor: Factor,
    /// The current `C` is `decay · matrix + Σ grown grownᵀ − Σ shrunk shrunkᵀ`.
    decay: f64,
    grown: Matrix,
    shrunk: Matrix,
    /// True if it has been factorised; before, it is the matrix of [`Covariance::new`].
    factored: bool,
}

#[derive(Debug, Clone)]
enum Factor {
    /// `A = L`; only the lower triangle is used.
    Cholesky(Matrix),
    /// The symmetric root.
    #[cfg(feature = "eigen")]
    Eigen(Eigen),
}

impl Covariance {
    /// A unit matrix whose diagonal increases by 0.01 % in total, as pycma's does: all eigenvalues differ.
    ///
    /// # Errors
    /// When this build does not include `form`.
    #[cfg_attr(
        feature = "eigen",
        expect(clippy::unnecessary_wraps, reason = "fails in builds without the feature")
    )]
    pub(super) fn new(form: Form, n: usize) -> Result<Self, EvolveError> {
        let variance = |i: usize| (1e-4 / n as f64 * i as f64).exp();
        let factor = match form {
            Form::Cholesky => Factor::Cholesky(Matrix::diagonal(n, |i| variance(i).sqrt())),
            #[cfg(feature = "eigen")]
            Form::Eigen => Factor::Eigen(Eigen::diagonal(n, variance)),
            #[cfg(not(feature = "eigen"))]
            Form::Eigen => return Err(super::not_built()),
        };
        Ok(Covariance {
            matrix: Matrix::diagonal(n, variance),
            factor,
            decay: 1.0,
            grown: Matrix::zeros(n, 0),
            shrunk: Matrix::zeros(n, 0),
            factored: false,
        })
    }

    fn dimension(&self) -> usize {
        self.matrix.rows()
    }

    /// Multiplies the matrix by `decay`, before the vectors of this generation are added.
    pub(super) fn shrink(&mut self, decay: f64) {
        self.decay *= decay;
        let by = decay.sqrt();
        for columns in [&mut self.grown, &mut self.shrunk] {
            columns.as_mut_slice().iter_mut().for_each(|x| *x *= by);
        }
    }

    /// Adds `weight · vector vectorᵀ`.
    pub(super) fn learn(&mut self, weight: f64, vector: &[f64]) {
        let columns = if weight < 0.0 { &mut self.shrunk } else { &mut self.grown };
        if weight != 0.0 {
            columns.push(weight.abs().sqrt(), vector);
        }
    }

    /// `[n]`: the diagonal of the current matrix.
    pub(super) fn variances(&self, into: &mut Vec<f64>) {
        into.clear();
        into.extend((0..self.dimension()).map(|i| self.decay * self.matrix[(i, i)]));
        for (columns, sign) in [(&self.grown, 1.0), (&self.shrunk, -1.0)] {
            for j in 0..columns.cols() {
                for (v, x) in into.iter_mut().zip(columns.col(j)) {
                    *v += sign * x * x;
                }
            }
        }
    }

    /// Applies the stored updates to the matrix and factorises it.
    pub(super) fn refactor(&mut self) {
        self.flush();
        self.factor_matrix();
    }

    /// Divides row and column i by `scale[i]`, then factorises.
    pub(super) fn rescale(&mut self, scale: &[f64]) {
        self.flush();
        for j in 0..self.dimension() {
            let column = self.matrix.col_mut(j);
            for (x, s) in column.iter_mut().zip(scale).skip(j) {
                *x /= s * scale[j];
            }
        }
        self.factor_matrix();
    }

    fn flush(&mut self) {
        if self.decay != 1.0 {
            for j in 0..self.dimension() {
                self.matrix.col_mut(j)[j..].iter_mut().for_each(|x| *x *= self.decay);
            }
            self.decay = 1.0;
        }
        for (columns, sign) in [(&mut self.grown, 1.0), (&mut self.shrunk, -1.0)] {
            add_outer(self.matrix.view_mut(), sign, columns.view());
            columns.clear();
        }
    }

    /// Factorises the matrix; first increases its diagonal if it is not positive definite or its condition
    /// number is above [`CONDITION_LIMIT`], which rounding, repaired genomes and fitness without differences
    /// can cause.
    ///
    /// What is missing for the condition may be less than a diagonal element's rounding, so later additions
    /// are at least the rounding of the largest element, doubled each time. A matrix that is not finite loses
    /// its correlations instead.
    fn factor_matrix(&mut self) {
        self.factored = true;
        let least = match &self.factor {
            Factor::Cholesky(lower) => {
                (0..lower.rows()).map(|i| lower[(i, i)].powi(2)).fold(f64::INFINITY, f64::min)
            }
            #[cfg(feature = "eigen")]
            Factor::Eigen(eigen) => eigen.least(),
        };
        let mut rescue = least.max(f64::MIN_POSITIVE);
        for attempt in 0..ATTEMPTS {
            let (added, patience) = match self.try_factor() {
                Some((smallest, largest)) if largest > CONDITION_LIMIT * smallest => {
                    ((largest - CONDITION_LIMIT * smallest) / (CONDITION_LIMIT - 1.0) * 1.001, PATIENCE[0])
                }
                Some(_) => return,
                None => {
                    rescue *= 2.0;
                    (rescue, PATIENCE[1])
                }
            };
            let diagonal = (0..self.dimension()).map(|i| self.matrix[(i, i)]);
            let rounding = f64::EPSILON * diagonal.fold(0.0, f64::max);
            let least = if attempt < patience { 0.0 } else { rounding * 2.0_f64.powi(attempt - patience) };
            for i in 0..self.dimension() {
                self.matrix[(i, i)] += added.max(least);
            }
        }
        self.forget_correlations();
    }

    /// Replaces the matrix by a diagonal one that can be factorised, with its variances as far as they are
    /// numbers above 0, and factorises it.
    fn forget_correlations(&mut self) {
        let n = self.dimension();
        let variances: Vec<f64> = (0..n).map(|i| self.matrix[(i, i)]).collect();
        let largest = variances.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let largest = if largest >= f64::MIN_POSITIVE { largest } else { 1.0 };
        self.matrix = Matrix::diagonal(n, |i| {
            let variance = if variances[i].is_finite() { variances[i] } else { largest };
            variance.max(10.0 * largest / CONDITION_LIMIT)
        });
        self.try_factor().expect("a diagonal of positive numbers");
    }

    /// Factorises the matrix and returns its smallest and largest eigenvalue, or bounds within them; `None`
    /// when it is not positive definite.
    fn try_factor(&mut self) -> Option<(f64, f64)> {
        match &mut self.factor {
            Factor::Cholesky(lower) => {
                let n = self.matrix.rows();
                for j in 0..n {
                    lower.col_mut(j)[j..].copy_from_slice(&self.matrix.col(j)[j..]);
                }
                cholesky(lower.view_mut()).ok()?;
                let pivots = (0..n).map(|i| lower[(i, i)].powi(2));
                let (smallest, largest) =
                    pivots.fold((f64::INFINITY, 0.0), |(low, high), p| (p.min(low), p.max(high)));
                (smallest > 0.0 && largest.is_finite()).then_some((smallest, largest))
            }
            #[cfg(feature = "eigen")]
            Factor::Eigen(eigen) => eigen.factor(&self.matrix),
        }
    }

    /// `Y = A Z`, `[n, k]`.
    pub(super) fn colour(&self, z: &Matrix, y: &mut Matrix) {
        match &self.factor {
            Factor::Cholesky(lower) => lower_times(y.view_mut(), lower.view(), z.view()),
            #[cfg(feature = "eigen")]
            Factor::Eigen(eigen) => eigen.colour(z, y),
        }
    }

    /// `Z = A⁻¹ Y`, `[n, k]`, in place.
    pub(super) fn whiten(&self, y: &mut Matrix) {
        match &self.factor {
            Factor::Cholesky(lower) => solve_lower(lower.view(), y.view_mut()),
            #[cfg(feature = "eigen")]
            Factor::Eigen(eigen) => *y = eigen.whiten(y),
        }
    }

    /// `[n, n]`: the current matrix, row by row.
    pub(super) fn to_rows(&self) -> Vec<f64> {
        let mut now = self.clone();
        now.flush();
        let n = self.dimension();
        (0..n).flat_map(|i| (0..n).map(move |j| (i.max(j), i.min(j)))).map(|at| now.matrix[at]).collect()
    }

    /// The lower triangle of the last factorised matrix, column by column; empty before the first
    /// factorisation.
    pub(super) fn triangle(&self) -> Vec<f64> {
        if !self.factored {
            return Vec::new();
        }
        (0..self.dimension()).flat_map(|j| &self.matrix.col(j)[j..]).copied().collect()
    }

    /// `decay`, and the vectors added since the last factorisation.
    pub(super) fn pending(&self) -> (f64, Vec<f64>, Vec<f64>) {
        (self.decay, self.grown.as_slice().to_vec(), self.shrunk.as_slice().to_vec())
    }

    /// Restores the results of [`Covariance::triangle`] and [`Covariance::pending`]; the sizes must fit.
    ///
    /// # Errors
    /// When the triangle is not a positive definite matrix, or this build does not include `form`.
    pub(super) fn restored(
        form: Form,
        n: usize,
        triangle: &[f64],
        decay: f64,
        grown: &[f64],
        shrunk: &[f64],
    ) -> Result<Self, EvolveError> {
        let mut made = Covariance::new(form, n)?;
        if !triangle.is_empty() {
            let mut rest = triangle;
            for j in 0..n {
                let (column, after) = rest.split_at(n - j);
                made.matrix.col_mut(j)[j..].copy_from_slice(column);
                rest = after;
            }
            made.factored = true;
            // The saved matrix was factorised without changes.
            made.try_factor().ok_or_else(|| bad("covariance is not positive definite".into()))?;
        }
        made.decay = decay;
        for (columns, saved) in [(&mut made.grown, grown), (&mut made.shrunk, shrunk)] {
            saved.chunks_exact(n).for_each(|vector| columns.push(1.0, vector));
        }
        Ok(made)
    }
}
