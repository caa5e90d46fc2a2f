//! The symmetric root of a covariance matrix.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{MatMut, MatRef, Par};
use foveate_kernels::matrix::multiply;

use super::matrix::Matrix;

/// `A = B D Bᵀ`.
#[derive(Debug, Clone)]
pub(super) struct Eigen {
    /// B, `[n, n]`: eigenvectors in columns.
    basis: Matrix,
    /// D, `[n]`: the square roots of the eigenvalues, in ascending order.
    roots: Vec<f64>,
}

impl Eigen {
    /// The root of a diagonal matrix with these diagonal elements, in ascending order.
    pub(super) fn diagonal(n: usize, variance: impl Fn(usize) -> f64) -> Self {
        Eigen { basis: Matrix::diagonal(n, |_| 1.0), roots: (0..n).map(|i| variance(i).sqrt()).collect() }
    }

    /// The smallest eigenvalue.
    pub(super) fn least(&self) -> f64 {
        self.roots[0].powi(2)
    }

    /// Factorises a matrix, of which only the lower triangle is used, and returns its smallest and largest
    /// eigenvalue; `None` when it is not positive definite.
    pub(super) fn factor(&mut self, matrix: &Matrix) -> Option<(f64, f64)> {
        let n = matrix.rows();
        let mut values = Diag::zeros(n);
        let vectors = ComputeEigenvectors::Yes;
        let mut memory =
            MemBuffer::new(self_adjoint_evd_scratch::<f64>(n, vectors, Par::Seq, faer::Spec::default()));
        self_adjoint_evd(
            MatRef::from_column_major_slice(matrix.as_slice(), n, n),
            values.as_mut(),
            Some(MatMut::from_column_major_slice_mut(self.basis.as_mut_slice(), n, n)),
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
        self.roots.clear();
        self.roots.extend(values.iter().map(|v| v.sqrt()));
        Some((values[0], values[n - 1]))
    }

    /// `Y = A Z`, `[n, k]`.
    pub(super) fn colour(&self, z: &Matrix, y: &mut Matrix) {
        self.turn(z, y, |x, root| x * root);
    }

    /// `A⁻¹ Y`, `[n, k]`.
    pub(super) fn whiten(&self, y: &Matrix) -> Matrix {
        let mut z = Matrix::zeros(y.rows(), y.cols());
        self.turn(y, &mut z, |x, root| x / root);
        z
    }

    /// `B change(Bᵀ X, D)`.
    fn turn(&self, x: &Matrix, into: &mut Matrix, change: impl Fn(f64, f64) -> f64) {
        let mut turned = Matrix::zeros(x.rows(), x.cols());
        multiply(0.0, turned.view_mut(), 1.0, self.basis.view().transposed(), x.view());
        for j in 0..x.cols() {
            for (x, root) in turned.col_mut(j).iter_mut().zip(&self.roots) {
                *x = change(*x, *root);
            }
        }
        multiply(0.0, into.view_mut(), 1.0, self.basis.view(), turned.view());
    }
}
