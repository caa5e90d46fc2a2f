//! sep-CMA-ES: CMA-ES with a diagonal covariance matrix. Linear in the number of parameters.
//!
//! Ros and Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity" (PPSN 2008),
//! observed that n numbers can be learnt faster than n²/2 and multiplied the learning rate of C by
//! `(n + 2) / 3`. This file implements its current version, pycma 4.5 with `CMA_diagonal: True`, and agrees with it for
//! given normal numbers (`tests/suite/oracle_cma.rs`). Its rates are of the same order,
//!
//! ```text
//! c_1 = 1 / (n + 2 √n + μ_eff / n)                                     of order n / 2 times the full matrix's
//! c_μ = (μ_eff − 1.75 + 1 / μ_eff) / (n + 4 √n + μ_eff / 2)             likewise
//! c_c = (1 + 1 / n + μ_eff / n) / (√n + 1 / n + 2 μ_eff / n)
//! ```
//!
//! and its update is multiplicative, so a variance stays positive for any negative weights:
//!
//! ```text
//! x_i = m + σ s∘z_i                                                     z_i ~ N(0, I)
//! m   ← m + σ s∘Σ⁺ w_r z_r
//! p_σ ← (1 − c_σ) p_σ + √(c_σ (2 − c_σ) μ_eff) Σ⁺ w_r z_r
//! p_c ← (1 − c_c) p_c + h √(c_c (2 − c_c) μ_eff) Σ⁺ w_r z_r
//! s   ← s exp(½ ln 2 (c_1' (p_c² − 1) + c_μ Σ w_r (z_r² − 1)))         c_1': less while h is 0
//! σ   ← σ exp(c_σ / d (‖p_σ‖ / E‖N(0, I)‖ − 1))
//! ```
//!
//! As for the full matrix, the scales take the factor by which σ has grown when that is 10⁹, σ follows the
//! path at any n, and populations below 6 have no mirrored genomes (pycma's `AdaptSigma: CMAAdaptSigmaCSA`
//! and `CMA_mirrors: 0`).

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{Base, answered_by_base};
use crate::cma_es::{
    NARROWEST, Rates, StepSize, Weights, balance, check_normals, check_settings, check_sigma,
    default_population, is_flat, rank,
};

/// Settings of a [`SepCmaEs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SepCmaEsConfig {
    /// λ: genomes per generation, at least 2; by default `4 + 3 ln n` for n parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<usize>,
    /// Initial σ: standard deviation of every parameter around the mean, above 0.
    pub sigma: f64,
    /// Also learn from bad genomes, with negative weights.
    pub active: bool,
}

impl Default for SepCmaEsConfig {
    fn default() -> Self {
        SepCmaEsConfig { population: None, sigma: 0.1, active: true }
    }
}

impl SepCmaEsConfig {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        check_settings(self.population, self.sigma)
    }

    /// λ for genomes of `params` parameters.
    pub fn population(&self, params: usize) -> usize {
        self.population.unwrap_or_else(|| default_population(params))
    }
}

/// The sep-CMA-ES strategy; see the [module](self) for the algorithm.
#[derive(Debug, Clone)]
pub struct SepCmaEs {
    config: SepCmaEsConfig,
    base: Base,
    weights: Weights,
    rates: Rates,
    step_size: StepSize,

    /// σ.
    sigma: f64,
    /// `[n_params]`: s, the root of the diagonal of C.
    scale: Vec<f64>,
    /// `[n_params]`: `p_σ`.
    path_sigma: Vec<f64>,
    /// `[n_params]`: `p_c`.
    path_c: Vec<f64>,
    /// `[λ, n_params]`: the normal numbers of the genomes.
    normals: Vec<f64>,
    /// Scratch: `[n_params]`.
    step: Vec<f64>,
    next_mean: Vec<f64>,
    next_scale: Vec<f64>,
    next_path_sigma: Vec<f64>,
    next_path_c: Vec<f64>,
    /// Scratch: genome indices, best first.
    order: Vec<usize>,
}

impl SepCmaEs {
    /// Starts around `mean`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `mean` is empty or not finite.
    pub fn from_mean(config: SepCmaEsConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        let n = mean.len();
        let lambda = config.population(n);
        let base = Base::new(mean, lambda, seed)?;
        let mut weights = Weights::new(lambda);
        let rates = Rates::diagonal(n, weights.mueff());
        if config.active {
            // pycma limits the negative weights for a full matrix first, which only matters for λ far above n².
            let full = Rates::full(n, lambda, weights.mueff());
            weights.finalise_negative(n, full.c1, full.cmu, true);
            weights.finalise_negative(n, rates.c1, rates.cmu, false);
        } else {
            weights.drop_negative();
        }
        Ok(SepCmaEs {
            step_size: StepSize::new(n, weights.mueff()),
            weights,
            rates,
            sigma: config.sigma,
            scale: vec![1.0; n],
            path_sigma: vec![0.0; n],
            path_c: vec![0.0; n],
            normals: vec![0.0; n * lambda],
            step: vec![0.0; n],
            next_mean: vec![0.0; n],
            next_scale: vec![0.0; n],
            next_path_sigma: vec![0.0; n],
            next_path_c: vec![0.0; n],
            order: Vec::with_capacity(lambda),
            config,
            base,
        })
    }

    /// The settings.
    pub const fn config(&self) -> &SepCmaEsConfig {
        &self.config
    }

    /// σ.
    pub const fn sigma(&self) -> f64 {
        self.sigma
    }

    /// `[n_params]`: the evolution path of σ.
    pub fn path_sigma(&self) -> &[f64] {
        &self.path_sigma
    }

    /// `[n_params]`: the evolution path of the rank-one update.
    pub fn path_c(&self) -> &[f64] {
        &self.path_c
    }

    /// `[n_params]`: standard deviations, in units of σ.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// As [`Evolver::ask`], with the normal numbers `normals`, `[n_genomes, n_params]`, row-major, instead of
    /// random ones, to compare with another implementation. They are not saved: a restored strategy draws its
    /// own.
    ///
    /// # Errors
    /// When the count is wrong or a number is not finite.
    pub fn ask_with(&mut self, normals: &[f64]) -> Result<&Population, EvolveError> {
        check_normals(normals, self.normals.len())?;
        self.normals.copy_from_slice(normals);
        self.base.must_sample();
        self.place();
        Ok(self.base.population())
    }

    fn place(&mut self) {
        let n = self.scale.len();
        self.base.place(|i, j| self.sigma * self.scale[j] * self.normals[i * n + j]);
    }

    /// Recomputes the normal numbers of repaired parameters from their current values; the others keep
    /// theirs.
    fn take_repairs(&mut self) {
        let n = self.scale.len();
        for (i, normals) in self.normals.chunks_exact_mut(n).enumerate() {
            let genome = self.base.population().genome(i).iter().zip(self.base.mean()).zip(&self.scale);
            for (((&x, m), s), z) in genome.zip(normals) {
                let length = self.sigma * s;
                if x != (m + length * *z) as f32 {
                    *z = (f64::from(x) - m) / length;
                }
            }
        }
    }

    /// Computes the next state from the ranking in `order`; an error if σ, the mean or the scales are out of
    /// range.
    fn look_ahead(&mut self) -> Result<f64, EvolveError> {
        let n = self.scale.len();
        let genome = |i: usize| &self.normals[i * n..(i + 1) * n];
        self.step.fill(0.0);
        for (w, &i) in self.weights.positive().iter().zip(&self.order) {
            for (s, z) in self.step.iter_mut().zip(genome(i)) {
                *s += w * z;
            }
        }
        self.next_path_sigma.copy_from_slice(&self.path_sigma);
        self.step_size.advance(&mut self.next_path_sigma, &self.step);
        let sigma = self.sigma * self.step_size.change(&self.next_path_sigma);

        let stalls = self.step_size.stalls(&self.next_path_sigma, self.base.generation() + 1);
        let Rates { cc, c1, cmu } = self.rates;
        let gain = if stalls { 0.0 } else { (cc * (2.0 - cc) * self.weights.mueff()).sqrt() };
        // While the path stalls, the variance that it would have added is not removed either.
        let c1a = if stalls { c1 * (1.0 - cc * (2.0 - cc)) } else { c1 };
        for (j, z) in self.step.iter().enumerate() {
            let path = (1.0 - cc) * self.path_c[j] + gain * z;
            self.next_path_c[j] = path;
            self.next_scale[j] = c1a * (path * path - 1.0);
            self.next_mean[j] = self.base.mean()[j] + self.sigma * self.scale[j] * z;
        }
        for (&w, &i) in self.weights.all().iter().zip(&self.order) {
            for (sum, z) in self.next_scale.iter_mut().zip(genome(i)) {
                *sum += cmu * w * (z * z - 1.0);
            }
        }
        for (next, s) in self.next_scale.iter_mut().zip(&self.scale) {
            *next = (s * (std::f64::consts::LN_2 / 2.0 * *next).exp()).max(NARROWEST / sigma);
            check_sigma(&self.base, sigma * *next)?;
        }
        check_sigma(&self.base, sigma)?;
        self.base.check_range("the mean", &self.next_mean)?;
        Ok(sigma)
    }

    /// The settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64> {
        let lambda = self.base.population().len() as f64;
        vec![lambda, self.config.sigma, f64::from(u8::from(self.config.active))]
    }
}

impl Evolver for SepCmaEs {
    answered_by_base!();

    fn ask(&mut self) -> &Population {
        if self.base.must_sample() {
            for (i, genome) in self.normals.chunks_exact_mut(self.scale.len()).enumerate() {
                let mut rng = self.base.genome_seed(i).rng();
                genome.fill_with(|| rng.normal());
            }
            self.place();
        }
        self.base.population()
    }

    /// Follows the contract of [`Evolver::tell`]; parameters that were not modified are used in double
    /// precision.
    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        self.base.check_fitness(fitness)?;
        self.take_repairs();
        rank(fitness, &mut self.order);
        match self.look_ahead() {
            Err(_) if is_flat(fitness) => self.next_mean.copy_from_slice(self.base.mean()),
            sigma => {
                self.sigma = sigma?;
                std::mem::swap(&mut self.path_sigma, &mut self.next_path_sigma);
                std::mem::swap(&mut self.path_c, &mut self.next_path_c);
                std::mem::swap(&mut self.scale, &mut self.next_scale);
            }
        }
        balance(self.config.sigma, &mut self.sigma, &mut self.scale);
        let sigma = self.sigma * self.scale.iter().sum::<f64>() / self.scale.len() as f64;
        Ok(self.base.told(fitness, sigma, |mean| mean.copy_from_slice(&self.next_mean)))
    }

    fn state(&self) -> StateDict {
        let mut state = self.base.state(self.numbers());
        state.extend([
            ("sigma".into(), Tensor::from(vec![self.sigma])),
            ("scale".into(), Tensor::from(self.scale.clone())),
            ("path_sigma".into(), Tensor::from(self.path_sigma.clone())),
            ("path_c".into(), Tensor::from(self.path_c.clone())),
        ]);
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let (saved, n) = (StateReader(state), self.scale.len());
        let base = self.base.saved(saved, &self.numbers())?;
        let (sigma, scale) = (saved.sigmas("sigma", 1)?[0], saved.sigmas("scale", n)?);
        let (path_sigma, path_c) = (saved.f64s("path_sigma", n)?, saved.f64s("path_c", n)?);
        self.sigma = sigma;
        self.scale.copy_from_slice(scale);
        self.path_sigma.copy_from_slice(path_sigma);
        self.path_c.copy_from_slice(path_c);
        self.base.restore(base);
        Ok(())
    }
}
