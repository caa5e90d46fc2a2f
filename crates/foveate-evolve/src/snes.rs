//! SNES: separable natural evolution strategies.
//!
//! Schaul, Glasmachers and Schmidhuber, "High dimensions and heavy tails for natural evolution strategies",
//! GECCO 2011, algorithm 1 (the utilities are those of Wierstra et al., "Natural Evolution Strategies", JMLR
//! 2014, section 3.1). Genomes are sampled around a mean with a standard deviation per parameter,
//! `x_i = m + σ ∘ z_i`; the natural gradient of the ranked fitness updates both:
//!
//! ```text
//! u_r = max(0, ln(λ/2 + 1) − ln r) / Σ … − 1/λ        weight of rank r = 1 … λ
//! m ← m + η_m σ ∘ Σ u_i z_i                           η_m = 1
//! σ ← σ ∘ exp(η_σ/2 · Σ u_i (z_i² − 1))               η_σ = (3 + ln n) / (5 √n)
//! ```
//!
//! `z_i` is computed from the genome as evaluated, so the update uses rounded or repaired genomes as they
//! are. This implementation adds two limits: no generation multiplies σ by more than e (only genomes that a
//! repair has moved far could cause this), and σ never falls below the spacing of single-precision numbers at
//! the mean, where genomes would be equal.

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{Base, answered_by_base, sigma_floor};
use crate::check;
use crate::shaping::Shaper;

/// The largest logarithm of the growth of σ in a generation; CMA-ES has the same limit.
const MOST_GROWTH: f64 = 1.0;

/// Settings of [`Snes`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnesConfig {
    /// λ: genomes per generation, at least 2; even when `mirrored`.
    pub population: usize,
    /// Initial standard deviation of every parameter, above 0.
    pub sigma: f64,
    /// `η_m`: learning rate of the mean, above 0.
    pub learning_rate: f64,
    /// `η_σ`: learning rate of the standard deviations, 0 or more; by default `(3 + ln n) / (5 √n)` for n
    /// parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma_learning_rate: Option<f64>,
    /// Sample genomes in antithetic pairs.
    pub mirrored: bool,
}

impl Default for SnesConfig {
    fn default() -> Self {
        SnesConfig {
            population: 32,
            sigma: 0.1,
            learning_rate: 1.0,
            sigma_learning_rate: None,
            mirrored: false,
        }
    }
}

impl SnesConfig {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        check::population(self.population, self.mirrored)?;
        check::above_zero(&[("sigma", self.sigma), ("learning_rate", self.learning_rate)])?;
        check::not_negative(&[("sigma_learning_rate", self.sigma_learning_rate.unwrap_or(0.0))])
    }

    fn numbers(&self) -> Vec<f64> {
        vec![
            self.population as f64,
            self.sigma,
            self.learning_rate,
            self.sigma_learning_rate.unwrap_or(-1.0),
            f64::from(u8::from(self.mirrored)),
        ]
    }
}

/// The SNES strategy; see the [module](self).
#[derive(Debug, Clone)]
pub struct Snes {
    config: SnesConfig,
    base: Base,
    /// `[n_params]`
    sigma: Vec<f64>,
    sigma_rate: f64,
    shaper: Shaper,
    /// Scratch: `[n_params]`, the next mean.
    next_mean: Vec<f64>,
    /// Scratch: `[n_params]`, the next σ.
    next_sigma: Vec<f64>,
}

impl Snes {
    /// Starts around `mean` (`[n_params]`); all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `mean` is empty or not finite.
    pub fn from_mean(config: SnesConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        let n = mean.len();
        let published = (3.0 + (n as f64).ln()) / (5.0 * (n as f64).sqrt());
        Ok(Snes {
            base: Base::new(mean, config.population, seed)?,
            sigma: vec![config.sigma; n],
            sigma_rate: config.sigma_learning_rate.unwrap_or(published),
            shaper: Shaper::natural(config.population),
            next_mean: vec![0.0; n],
            next_sigma: vec![0.0; n],
            config,
        })
    }

    /// `[n_params]`: the standard deviation of each parameter.
    pub fn sigma(&self) -> &[f64] {
        &self.sigma
    }
}

impl Evolver for Snes {
    answered_by_base!();

    fn ask(&mut self) -> &Population {
        if self.base.must_sample() {
            self.base.sample(self.config.mirrored, |j| self.sigma[j]);
        }
        self.base.population()
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        self.base.check_fitness(fitness)?;
        self.next_mean.fill(0.0);
        self.next_sigma.fill(0.0);
        for (i, &u) in self.shaper.weights(fitness).iter().enumerate() {
            let genome = self.base.population().genome(i).iter().zip(self.base.mean()).zip(&self.sigma);
            let sums = self.next_mean.iter_mut().zip(&mut self.next_sigma);
            for (((&x, m), sigma), (of_mean, of_sigma)) in genome.zip(sums) {
                let z = (f64::from(x) - m) / sigma;
                *of_mean += u * z;
                *of_sigma += u * (z * z - 1.0);
            }
        }
        let here = self.base.mean().iter().zip(&self.sigma);
        for ((m, sigma), (mean, next)) in here.zip(self.next_mean.iter_mut().zip(&mut self.next_sigma)) {
            *mean = m + self.config.learning_rate * sigma * *mean;
            let growth = (0.5 * self.sigma_rate * *next).min(MOST_GROWTH);
            *next = (sigma * growth.exp()).max(sigma_floor(*mean));
        }
        self.base.check_range("the mean", &self.next_mean)?;
        self.base.check_range("sigma", &self.next_sigma)?;
        std::mem::swap(&mut self.sigma, &mut self.next_sigma);
        let sigma = self.sigma.iter().sum::<f64>() / self.sigma.len() as f64;
        Ok(self.base.told(fitness, sigma, |mean| mean.copy_from_slice(&self.next_mean)))
    }

    fn state(&self) -> StateDict {
        let mut state = self.base.state(self.config.numbers());
        state.insert("sigma".into(), Tensor::from(self.sigma.clone()));
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let saved = self.base.saved(StateReader(state), &self.config.numbers())?;
        let sigma = StateReader(state).sigmas("sigma", self.sigma.len())?;
        self.sigma.copy_from_slice(sigma);
        self.base.restore(saved);
        Ok(())
    }
}
