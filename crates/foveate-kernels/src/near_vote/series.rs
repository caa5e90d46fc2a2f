//! Chebyshev nodes and the error of interpolation between them.

/// Maximum number of nodes along an axis.
pub(super) const MOST_NODES: usize = 14;

/// The nodes, and the conversion between values at them and Chebyshev coefficients.
#[derive(Debug, Clone)]
pub(super) struct Chebyshev {
    /// For n nodes, the matrix `(2 − δ_k0) / n · T_k(node g)`, `[n][g][k]`.
    change: Vec<[[f64; MOST_NODES]; MOST_NODES]>,
    /// For n nodes, their positions in −1 ..= 1.
    nodes: Vec<[f64; MOST_NODES]>,
}

impl Chebyshev {
    pub(super) fn new() -> Self {
        let mut all = Chebyshev { change: Vec::new(), nodes: Vec::new() };
        for n in 0..=MOST_NODES {
            let (mut change, mut nodes) = ([[0.0; MOST_NODES]; MOST_NODES], [0.0; MOST_NODES]);
            for g in 0..n {
                nodes[g] = cos_pi((2 * g + 1) as f64 / (2 * n) as f64);
                let (mut before, mut now) = (nodes[g], 1.0);
                for (k, to) in change[g][..n].iter_mut().enumerate() {
                    *to = now * if k == 0 { 1.0 } else { 2.0 } / n as f64;
                    (before, now) = (now, 2.0 * nodes[g] * now - before);
                }
            }
            all.change.push(change);
            all.nodes.push(nodes);
        }
        all
    }

    pub(super) fn nodes(&self, n: usize) -> &[f64] {
        &self.nodes[n][..n]
    }

    /// Converts values at the nodes of a tensor grid, with the last axis fastest, to the coefficients of the
    /// interpolating polynomial; if transposed, converts weighted sums of polynomials to weights at the
    /// nodes.
    pub(super) fn change(&self, grid: &[u8], values: &mut [f32], transposed: bool) {
        let mut inner = 1;
        for &n in grid.iter().rev() {
            let n = usize::from(n);
            let matrix = &self.change[n];
            for lines in values.chunks_exact_mut(n * inner) {
                for start in 0..inner {
                    let mut line = [0.0; MOST_NODES];
                    for (g, to) in line[..n].iter_mut().enumerate() {
                        *to = f64::from(lines[g * inner + start]);
                    }
                    for k in 0..n {
                        let sum: f64 = (0..n)
                            .map(|g| line[g] * if transposed { matrix[k][g] } else { matrix[g][k] })
                            .sum();
                        lines[k * inner + start] = sum as f32;
                    }
                }
            }
            inner *= n;
        }
    }
}

/// Bound on the relative error of interpolating e^(r s), −1 ≤ s ≤ 1, at n Chebyshev nodes: r^n e^(2 r) /
/// (2^(n − 1) n!).
pub(super) fn error(r: f64, n: usize) -> f64 {
    let mut error = 2.0 * exp(2.0 * r);
    for i in 1..=n {
        error *= r / (2.0 * i as f64);
    }
    error
}

/// e^x for 0 ≤ x ≤ 1000 or so, never too small: a library's function might differ between machines.
fn exp(x: f64) -> f64 {
    // (e^(x / 1024))^1024 with a series of six terms, plus a little more than the truncated rest.
    let y = x / 1024.0;
    let mut sum = 1.0;
    for i in (1..=6).rev() {
        sum = 1.0 + sum * y / f64::from(i);
    }
    (0..10).fold(sum, |power, _| power * power) * (1.0 + 1e-6)
}

/// cos(π x) for 0 ≤ x ≤ 1, by its series.
fn cos_pi(x: f64) -> f64 {
    if x > 0.5 {
        return -cos_pi(1.0 - x);
    }
    let square = (std::f64::consts::PI * x).powi(2);
    (1..=14).rev().fold(1.0, |sum, i| 1.0 - sum * square / f64::from((2 * i - 1) * (2 * i)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_powers_are_right() {
        for n in 1..=MOST_NODES {
            for (g, node) in Chebyshev::new().nodes(n).iter().enumerate() {
                let want = (std::f64::consts::PI * (g as f64 + 0.5) / n as f64).cos();
                assert!((node - want).abs() < 1e-15, "node {g} of {n}: {node}");
            }
        }
        for x in [0.0, 1e-3, 0.5, 2.0, 30.0] {
            assert!((0.0..2e-6).contains(&(exp(x) / x.exp() - 1.0)), "{x}");
        }
    }

    /// The error of the interpolating polynomial never exceeds the bound, and the bound is not loose.
    #[test]
    fn the_bound_holds() {
        let chebyshev = Chebyshev::new();
        for r in [0.01, 0.1, 0.5, 1.0, 2.0] {
            for n in 1..=10 {
                let mut values: Vec<f32> = chebyshev.nodes(n).iter().map(|s| (r * s).exp() as f32).collect();
                chebyshev.change(&[n as u8], &mut values, false);
                let worst = (0..=200)
                    .map(|i| {
                        let s = f64::from(i) / 100.0 - 1.0;
                        let angle = s.acos();
                        let sum: f64 = values
                            .iter()
                            .enumerate()
                            .map(|(k, &c)| f64::from(c) * (k as f64 * angle).cos())
                            .sum();
                        (sum / (r * s).exp() - 1.0).abs()
                    })
                    .fold(0.0, f64::max);
                let bound = error(r, n);
                assert!(worst <= bound + 2e-6, "r = {r}, n = {n}: off by {worst}, bound {bound}");
                assert!(
                    bound < 1e-5 || bound < worst * 60.0 * exp(r),
                    "r = {r}, n = {n}: {worst} of {bound}"
                );
            }
        }
    }
}
