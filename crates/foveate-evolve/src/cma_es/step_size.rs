//! Cumulative step-size adaptation: σ grows while steps point in the same direction, and shrinks while they
//! cancel out.

/// Rates of the adaptation in `n` dimensions; the strategy owns the path itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepSize {
    n: f64,
    cs: f64,
    damping: f64,
    mueff: f64,
    /// `E‖N(0, I)‖`.
    chi: f64,
}

impl StepSize {
    /// Rates for a variance-effective selection mass `mueff`.
    ///
    /// These are pycma 4.5's, whose damping for `μ_eff` well above n is stronger than the tutorial's.
    pub(crate) fn new(n: usize, mueff: f64) -> Self {
        let d = n as f64;
        let cs = ((mueff + 2.0) / (d + mueff + 3.0)).min(0.5);
        let inner = (3.0 * (1.0 - 0.5_f64.powf(d / 9.0))).max(1.0);
        let large = (inner * ((mueff - 1.0) / (d + 1.0)).sqrt() - 1.0).max(0.0);
        StepSize { n: d, cs, damping: 1.0 + 2.0 * large + cs, mueff, chi: expected_norm(n) }
    }

    /// Adds `shift`, the weighted mean of the good genomes' normal vectors, to the `path`.
    pub(crate) fn advance(&self, path: &mut [f64], shift: &[f64]) {
        let gain = (self.cs * (2.0 - self.cs) * self.mueff).sqrt();
        for (p, z) in path.iter_mut().zip(shift) {
            *p = (1.0 - self.cs) * *p + gain * z;
        }
    }

    /// Returns whether the path is so long that the rank-one update should pause, in generation `generation` ≥ 1.
    pub(crate) fn stalls(&self, path: &[f64], generation: u64) -> bool {
        let squares: f64 = path.iter().map(|p| p * p).sum();
        let young = 1.0 - (1.0 - self.cs).powf(2.0 * generation as f64);
        squares / young / self.n - 1.0 >= 1.0 + 4.0 / (self.n + 1.0)
    }

    /// The factor of σ: between 1/e and e.
    pub(crate) fn change(&self, path: &[f64]) -> f64 {
        let length = path.iter().map(|p| p * p).sum::<f64>().sqrt();
        (self.cs / self.damping * (length / self.chi - 1.0)).clamp(-1.0, 1.0).exp()
    }
}

/// `E‖N(0, I_n)‖ = √2 Γ((n + 1) / 2) / Γ(n / 2)`, by `E_(n+2) = E_n · (n + 1) / n`.
fn expected_norm(n: usize) -> f64 {
    let (mut norm, mut d) = if n % 2 == 1 {
        (std::f64::consts::FRAC_2_PI.sqrt(), 1)
    } else {
        (std::f64::consts::FRAC_PI_2.sqrt(), 2)
    };
    while d < n {
        norm *= (d as f64 + 1.0) / d as f64;
        d += 2;
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_norms_are_the_gamma_functions() {
        for (n, norm) in [
            (1, 0.7978845608028656),
            (2, 1.2533141373156),
            (3, 1.595769121605731),
            (100, 9.97503163955105),
            (1000, 31.61487189698008),
        ] {
            assert!((expected_norm(n) - norm).abs() < 1e-12 * norm, "{n}: {}", expected_norm(n));
        }
    }

    #[test]
    fn long_paths_widen_and_short_ones_narrow() {
        let step = StepSize::new(10, 3.0);
        let path = |length: f64| vec![length / 10.0_f64.sqrt(); 10];
        assert!(step.change(&path(1.0)) < 1.0);
        assert!((step.change(&path(step.chi)) - 1.0).abs() < 1e-15);
        assert!(step.change(&path(9.0)) > 1.0);
        assert_eq!(step.change(&path(1e9)), 1.0_f64.exp());
        assert!(!step.stalls(&path(4.0), 1000) && step.stalls(&path(5.0), 1000));
        // In early generations the path has more weight.
        assert!(step.stalls(&path(4.0), 1));
    }
}
