//! Axes along which queries and keys have equal spread.

#![expect(clippy::needless_range_loop, reason = "formulas of matrices are read by their indices")]

use super::MOST_AXES;

type Matrix = [[f64; MOST_AXES]; MOST_AXES];

/// Two linear maps A and B with A q · B k = q · k.
pub(super) struct Axes {
    dim: usize,
    query: Matrix,
    key: Matrix,
}

impl Axes {
    /// The axes for `count` rows. Element i of a row is `number(row, i)`: `dim` numbers of a query, then
    /// `dim` of a key. Computed in double precision with the four basic operations and square roots, so that
    /// all machines agree.
    #[inline(always)]
    pub(super) fn balance(dim: usize, count: usize, number: impl Fn(usize, usize) -> f64) -> Axes {
        let query = covariance(dim, count, &number);
        let key = covariance(dim, count, |row, i| number(row, dim + i));
        axes(dim, &query, &key)
    }

    /// Coordinates of a query along the axes.
    #[inline(always)]
    pub(super) fn query(&self, number: impl Fn(usize) -> f64) -> [f64; MOST_AXES] {
        along(&self.query, self.dim, number)
    }

    /// Coordinates of a key along the axes.
    #[inline(always)]
    pub(super) fn key(&self, number: impl Fn(usize) -> f64) -> [f64; MOST_AXES] {
        along(&self.key, self.dim, number)
    }
}

#[inline(always)]
fn along(matrix: &Matrix, dim: usize, number: impl Fn(usize) -> f64) -> [f64; MOST_AXES] {
    let mut out = [0.0; MOST_AXES];
    for i in 0..dim {
        let x = number(i);
        for (out, m) in out[..dim].iter_mut().zip(&matrix[i]) {
            *out += x * m;
        }
    }
    out
}

#[inline(always)]
fn covariance(dim: usize, count: usize, number: impl Fn(usize, usize) -> f64) -> Matrix {
    let mut mean = [0.0; MOST_AXES];
    for row in 0..count {
        for (i, mean) in mean[..dim].iter_mut().enumerate() {
            *mean += number(row, i);
        }
    }
    let mean = mean.map(|sum| sum / count as f64);
    let mut sums = [[0.0; MOST_AXES]; MOST_AXES];
    for row in 0..count {
        let mut x = [0.0; MOST_AXES];
        for i in 0..dim {
            x[i] = number(row, i) - mean[i];
        }
        for i in 0..dim {
            for j in 0..=i {
                sums[i][j] += x[i] * x[j];
            }
        }
    }
    for i in 0..dim {
        for j in 0..dim {
            sums[i][j] = if j <= i { sums[i][j] / count as f64 } else { sums[j][i] / count as f64 };
        }
    }
    sums
}

/// With `S_q = L Lᵀ` and `Lᵀ S_k L = U diag(λ) Uᵀ`, queries times L⁻ᵀ U λ^¼ and keys times L U λ^−¼ have the
/// same diagonal covariance λ^½.
fn axes(dim: usize, query: &Matrix, key: &Matrix) -> Axes {
    // A direction without any spread gets a little, so that the inverse exists.
    let trace: f64 = (0..dim).map(|i| query[i][i]).sum();
    let little = trace * 1e-9 / dim as f64 + 1e-30;
    let mut l = [[0.0; MOST_AXES]; MOST_AXES];
    for i in 0..dim {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|t| l[i][t] * l[j][t]).sum();
            l[i][j] = if i == j {
                (query[i][i] + little - sum).max(little).sqrt()
            } else {
                (query[i][j] - sum) / l[j][j]
            };
        }
    }
    let product = |a: &dyn Fn(usize, usize) -> f64, b: &dyn Fn(usize, usize) -> f64| {
        let mut out = [[0.0; MOST_AXES]; MOST_AXES];
        for i in 0..dim {
            for j in 0..dim {
                out[i][j] = (0..dim).map(|t| a(i, t) * b(t, j)).sum();
            }
        }
        out
    };
    let right = product(&|i, t| key[i][t], &|t, j| l[t][j]);
    let middle = product(&|i, t| l[t][i], &|t, j| right[t][j]);
    let (values, u) = eigen(dim, middle);
    let largest = values[..dim].iter().copied().fold(0.0, f64::max);
    // L⁻¹ by forward substitution.
    let mut inverse = [[0.0; MOST_AXES]; MOST_AXES];
    for j in 0..dim {
        for i in j..dim {
            let sum: f64 = (j..i).map(|t| l[i][t] * inverse[t][j]).sum();
            inverse[i][j] = (f64::from(u8::from(i == j)) - sum) / l[i][i];
        }
    }
    let (mut q, mut k) =
        (product(&|i, t| inverse[t][i], &|t, j| u[t][j]), product(&|i, t| l[i][t], &|t, j| u[t][j]));
    for j in 0..dim {
        let value = values[j].max(largest * 1e-12);
        let root = if value > 0.0 { value.sqrt().sqrt() } else { 1.0 };
        for i in 0..dim {
            q[i][j] *= root;
            k[i][j] /= root;
        }
    }
    Axes { dim, query: q, key: k }
}

/// Eigenvalues, smallest first, and eigenvectors (columns) of a symmetric matrix, by Jacobi's rotations.
fn eigen(dim: usize, mut a: Matrix) -> ([f64; MOST_AXES], Matrix) {
    let mut u = [[0.0; MOST_AXES]; MOST_AXES];
    for (i, row) in u.iter_mut().enumerate() {
        row[i] = 1.0;
    }
    for _ in 0..12 {
        for p in 0..dim {
            for q in p + 1..dim {
                if a[p][q] == 0.0 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let cos = 1.0 / (t * t + 1.0).sqrt();
                let sin = t * cos;
                for row in &mut a[..dim] {
                    (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                }
                for j in 0..dim {
                    (a[p][j], a[q][j]) = (cos * a[p][j] - sin * a[q][j], sin * a[p][j] + cos * a[q][j]);
                }
                for row in &mut u[..dim] {
                    (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                }
            }
        }
    }
    let mut order = [0; MOST_AXES];
    for (i, to) in order.iter_mut().enumerate() {
        *to = i;
    }
    order[..dim].sort_by(|&i, &j| a[i][i].total_cmp(&a[j][j]));
    let mut values = [0.0; MOST_AXES];
    let mut sorted = [[0.0; MOST_AXES]; MOST_AXES];
    for (to, &from) in order[..dim].iter().enumerate() {
        values[to] = a[from][from];
        for i in 0..dim {
            sorted[i][to] = u[i][from];
        }
    }
    (values, sorted)
}
