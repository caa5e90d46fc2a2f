//! Recombination weights and the learning rates that follow from them.
//!
//! Hansen, "The CMA Evolution Strategy: A Tutorial" (arXiv:1604.00772), equations 49 to 58 and table 1, with
//! the constants of pycma 4.5, some of which differ from the tutorial's.

/// `w_1 ≥ … ≥ w_λ`: the positive ones sum to 1, the others are not above 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    all: Vec<f64>,
    mu: usize,
    mueff: f64,
}

impl Weights {
    /// `ln((λ + 1) / 2) − ln r` for rank r, positive and negative parts each scaled to a sum of one.
    pub(crate) fn new(lambda: usize) -> Self {
        let middle = f64::midpoint(lambda as f64, 1.0).ln();
        let mut all: Vec<f64> = (1..=lambda).map(|rank| middle - (rank as f64).ln()).collect();
        let mu = all.iter().filter(|w| **w > 0.0).count();
        let (positive, negative) = all.split_at_mut(mu);
        for part in [positive, negative] {
            let sum = part.iter().sum::<f64>().abs();
            if sum > 0.0 {
                scale(part, 1.0 / sum);
            }
        }
        let mueff = 1.0 / all[..mu].iter().map(|w| w * w).sum::<f64>();
        Weights { all, mu, mueff }
    }

    /// The weights, best rank first.
    pub(crate) fn all(&self) -> &[f64] {
        &self.all
    }

    /// The positive weights, which move the mean.
    pub(crate) fn positive(&self) -> &[f64] {
        &self.all[..self.mu]
    }

    /// `μ_eff`: the number of equally weighted genomes whose mean has the same variance as the weighted mean
    /// of the good ones.
    pub(crate) const fn mueff(&self) -> f64 {
        self.mueff
    }

    /// Removes the negative weights: no active update.
    pub(crate) fn drop_negative(&mut self) {
        self.all[self.mu..].fill(0.0);
    }

    /// Scales the negative weights for learning rates `c1` and `cmu` in `n` dimensions: first so that the
    /// covariance matrix neither grows nor decays on average, then limited by `μ_eff` of the bad half, and,
    /// if `positive_definite` is set, limited so that the matrix stays positive definite.
    pub(crate) fn finalise_negative(&mut self, n: usize, c1: f64, cmu: f64, positive_definite: bool) {
        if self.all.last().is_none_or(|w| *w >= 0.0) {
            return;
        }
        let negative = &mut self.all[self.mu..];
        let squares: f64 = negative.iter().map(|w| w * w).sum();
        let mueff_negative = negative.iter().sum::<f64>().powi(2) / squares;
        if cmu > 0.0 {
            let factor = ((1.0 + c1 / cmu) / negative.iter().sum::<f64>()).abs();
            scale(negative, factor);
            if positive_definite {
                limit(negative, (1.0 - c1 - cmu) / cmu / n as f64);
            }
        }
        limit(negative, 1.0 + 2.0 * mueff_negative / (self.mueff + 2.0));
    }
}

fn scale(weights: &mut [f64], factor: f64) {
    for w in weights {
        *w *= factor;
    }
}

/// Scales negative weights down to a sum of `-bound` if their sum is below it.
fn limit(negative: &mut [f64], bound: f64) {
    let (sum, bound) = (negative.iter().sum::<f64>(), bound.abs());
    if sum < -bound {
        let factor = (bound / sum).abs();
        scale(negative, factor);
    }
}

/// Learning rates of the covariance matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    /// Rate of the rank-one path.
    pub(crate) cc: f64,
    /// Rate of the rank-one update.
    pub(crate) c1: f64,
    /// Rate of the rank-μ update.
    pub(crate) cmu: f64,
}

impl Rates {
    /// For a full matrix.
    pub(crate) fn full(n: usize, lambda: usize, mueff: f64) -> Self {
        let d = n as f64;
        let c1 = (lambda as f64 / 6.0).min(1.0) * 2.0 / ((d + 1.3).powi(2) + mueff);
        Rates {
            cc: (4.0 + mueff / d) / (d + 4.0 + 2.0 * mueff / d),
            c1,
            cmu: (2.0 * (mueff - 1.75 + 1.0 / mueff) / ((d + 2.0).powi(2) + mueff)).min(1.0 - c1),
        }
    }

    /// For a diagonal matrix, as in pycma.
    pub(crate) fn diagonal(n: usize, mueff: f64) -> Self {
        let d = n as f64;
        let c1 = 1.0 / (d + 2.0 * d.sqrt() + mueff / d);
        Rates {
            cc: (1.0 + 1.0 / d + mueff / d) / (d.sqrt() + 1.0 / d + 2.0 * mueff / d),
            c1,
            cmu: ((mueff - 1.75 + 1.0 / mueff) / (d + 4.0 * d.sqrt() + mueff / 2.0)).min(1.0 - c1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_pycmas() {
        // cma.CMAEvolutionStrategy(20 * [0.1], 1).sp of pycma 4.5.
        let mut weights = Weights::new(12);
        let rates = Rates::full(20, 12, weights.mueff());
        weights.finalise_negative(20, rates.c1, rates.cmu, true);
        let expect = [
            0.4024029428,
            0.2533890840,
            0.1662215645,
            0.1043752252,
            0.05640347757,
            0.01720770576,
            -0.05018713636,
            -0.1406167894,
            -0.2203813963,
            -0.2917332686,
            -0.3562788884,
            -0.4152044225,
        ];
        for (w, e) in weights.all().iter().zip(expect) {
            assert!((w - e).abs() < 1e-9, "{weights:?}");
        }
        let diagonal = Rates::diagonal(20, weights.mueff());
        for (rate, expect) in [
            (rates.cc, 0.171767),
            (rates.c1, 0.00437235),
            (rates.cmu, 0.00921656),
            (diagonal.cc, 0.252594),
            (diagonal.c1, 0.0343279),
            (diagonal.cmu, 0.0565385),
        ] {
            assert!((rate - expect).abs() < 1e-5 * expect.abs(), "{rate} {expect}");
        }
    }

    #[test]
    fn weights_keep_what_they_promise() {
        for lambda in [2, 3, 4, 5, 6, 17, 256, 1001] {
            for n in [1, 2, 5, 100, 3667] {
                let mut weights = Weights::new(lambda);
                let rates = Rates::full(n, lambda, weights.mueff());
                weights.finalise_negative(n, rates.c1, rates.cmu, true);
                let sum = weights.positive().iter().sum::<f64>();
                assert!((sum - 1.0).abs() < 1e-12, "{sum}");
                assert!(weights.all().windows(2).all(|w| w[0] >= w[1]));
                assert!((1.0..=lambda as f64).contains(&weights.mueff()));
                // The remaining part of the matrix after the active update cannot be negative.
                let negative = weights.all().iter().filter(|w| **w < 0.0).sum::<f64>();
                let decay = 1.0 - rates.c1 - rates.cmu * weights.all().iter().sum::<f64>();
                assert!(decay + rates.cmu * negative * n as f64 > -1e-12, "{n} {lambda} {decay} {negative}");
                weights.drop_negative();
                assert!(weights.all().iter().all(|w| *w >= 0.0));
            }
        }
    }
}
