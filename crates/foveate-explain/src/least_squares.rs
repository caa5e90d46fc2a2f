//! Linear functions fitted by least squares.

/// Added to the diagonal of the normal equations, as a part of its mean, so that inputs that repeat each other do no harm.
const RIDGE: f64 = 1e-9;

/// A row of inputs, and the value that belongs to it.
pub(crate) type Sample<'a> = (&'a [f32], f64);

/// The factor of the normal equations: inputs and a constant.
pub(crate) struct Normal {
    /// Numbers of a row, the constant last.
    n: usize,
    /// `[n, n]`: the lower triangular Cholesky factor.
    lower: Vec<f64>,
}

impl Normal {
    /// `None` when the inputs are not finite.
    pub(crate) fn new<'a>(inputs: usize, rows: impl Iterator<Item = &'a [f32]>) -> Option<Self> {
        let n = inputs + 1;
        let mut lower = vec![0.0; n * n];
        for row in rows {
            for i in 0..n {
                let x = at(row, i);
                for j in 0..=i {
                    lower[i * n + j] += x * at(row, j);
                }
            }
        }
        let trace: f64 = (0..n).map(|i| lower[i * n + i]).sum();
        for i in 0..n {
            lower[i * n + i] += RIDGE * trace / n as f64;
        }
        for i in 0..n {
            for j in 0..=i {
                let before: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let rest = lower[i * n + j] - before;
                lower[i * n + j] = if i == j { rest.sqrt() } else { rest / lower[j * n + j] };
            }
        }
        lower.iter().all(|x| x.is_finite()).then_some(Normal { n, lower })
    }

    /// `[n]`: the coefficients, the constant last.
    pub(crate) fn solve<'a>(&self, samples: impl Iterator<Item = Sample<'a>>) -> Vec<f64> {
        let Normal { n, lower } = self;
        let n = *n;
        let mut x = vec![0.0; n];
        for (row, value) in samples {
            for (i, x) in x.iter_mut().enumerate() {
                *x += at(row, i) * value;
            }
        }
        for i in 0..n {
            let before: f64 = (0..i).map(|k| lower[i * n + k] * x[k]).sum();
            x[i] = (x[i] - before) / lower[i * n + i];
        }
        for i in (0..n).rev() {
            let after: f64 = (i + 1..n).map(|k| lower[k * n + i] * x[k]).sum();
            x[i] = (x[i] - after) / lower[i * n + i];
        }
        x
    }
}

/// Input `i`, or the constant behind the last one.
fn at(row: &[f32], i: usize) -> f64 {
    row.get(i).map_or(1.0, |&x| f64::from(x))
}

/// The value that a fit gives for a row.
pub(crate) fn told(fit: &[f64], row: &[f32]) -> f64 {
    fit.iter().enumerate().map(|(i, weight)| weight * at(row, i)).sum()
}
