//! `OpenAI`-ES: mirrored sampling, centred ranks, Adam, weight decay, a step size that is not adapted.
//!
//! Salimans, Ho, Chen, Sidor and Sutskever, "Evolution strategies as a scalable alternative to reinforcement
//! learning", 2017, algorithm 1 with section 2.1's mirrored sampling, fitness shaping and weight decay:
//!
//! ```text
//! x_i = m ± σ z_i                        in opposite pairs
//! g = 1/(λσ) Σ w_i z_i  −  d m           w: fitness by centred ranks, d: weight decay
//! m ← Adam(m, g)
//! ```
//!
//! `z_i` is computed from the genome as evaluated.

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{Base, answered_by_base, sigma_floor};
use crate::check;
use crate::optimizer::Optimizer;
use crate::shaping::{Shaper, Shaping};

/// Settings of [`OpenAiEs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenAiEsConfig {
    /// λ: genomes per generation, at least 2; even when `mirrored`.
    pub population: usize,
    /// σ: initial standard deviation of every parameter, above 0.
    pub sigma: f64,
    /// Factor of σ per generation, above 0 and at most 1.
    pub sigma_decay: f64,
    /// Lower limit of σ, 0 or more.
    pub sigma_min: f64,
    /// Adam's η, above 0: approximately the largest change of a parameter per generation.
    pub learning_rate: f64,
    /// Adam's β₁, `0.0..1.0`.
    pub beta1: f64,
    /// Adam's β₂, `0.0..1.0`.
    pub beta2: f64,
    /// d: weight decay of the mean, 0 or more.
    pub weight_decay: f64,
    /// How fitness is converted to weights.
    pub shaping: Shaping,
    /// Sample genomes in antithetic pairs.
    pub mirrored: bool,
}

impl Default for OpenAiEsConfig {
    fn default() -> Self {
        OpenAiEsConfig {
            population: 64,
            sigma: 0.1,
            sigma_decay: 1.0,
            sigma_min: 0.0,
            learning_rate: 0.02,
            beta1: 0.9,
            beta2: 0.999,
            weight_decay: 0.0,
            shaping: Shaping::CentredRanks,
            mirrored: true,
        }
    }
}

impl OpenAiEsConfig {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        check::population(self.population, self.mirrored)?;
        check::above_zero(&[("sigma", self.sigma), ("learning_rate", self.learning_rate)])?;
        check::factor(&[("sigma_decay", self.sigma_decay)])?;
        check::not_negative(&[("sigma_min", self.sigma_min), ("weight_decay", self.weight_decay)])?;
        check::share(&[("beta1", self.beta1), ("beta2", self.beta2)])
    }

    /// σ of the generation after one with σ = `sigma`.
    fn decayed(&self, sigma: f64) -> f64 {
        (sigma * self.sigma_decay).max(self.sigma_min.min(sigma)).max(f64::from(f32::MIN_POSITIVE))
    }

    fn numbers(&self) -> Vec<f64> {
        vec![
            self.population as f64,
            self.sigma,
            self.sigma_decay,
            self.sigma_min,
            self.learning_rate,
            self.beta1,
            self.beta2,
            self.weight_decay,
            self.shaping.number(),
            f64::from(u8::from(self.mirrored)),
        ]
    }
}

/// The `OpenAI`-ES strategy; see the [module](self).
#[derive(Debug, Clone)]
pub struct OpenAiEs {
    config: OpenAiEsConfig,
    base: Base,
    sigma: f64,
    optimizer: Optimizer,
    shaper: Shaper,
    /// Scratch: `[n_params]`.
    gradient: Vec<f64>,
}

impl OpenAiEs {
    /// Starts around `mean` (`[n_params]`); all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `mean` is empty or not finite.
    pub fn from_mean(config: OpenAiEsConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        let n = mean.len();
        Ok(OpenAiEs {
            base: Base::new(mean, config.population, seed)?,
            sigma: config.sigma,
            optimizer: Optimizer::adam(n, config.learning_rate, config.beta1, config.beta2),
            shaper: Shaper::new(config.shaping, config.population),
            gradient: vec![0.0; n],
            config,
        })
    }

    /// The standard deviation of the next genomes.
    pub const fn sigma(&self) -> f64 {
        self.sigma
    }
}

impl Evolver for OpenAiEs {
    answered_by_base!();

    fn ask(&mut self) -> &Population {
        if self.base.must_sample() {
            self.base.sample(self.config.mirrored, |_| self.sigma);
        }
        self.base.population()
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        self.base.check_fitness(fitness)?;
        let OpenAiEsConfig { population, weight_decay, .. } = self.config;
        self.gradient.fill(0.0);
        for (i, &w) in self.shaper.weights(fitness).iter().enumerate() {
            let genome = self.base.population().genome(i).iter().zip(self.base.mean());
            for ((&x, m), g) in genome.zip(&mut self.gradient) {
                *g += w * (f64::from(x) - m);
            }
        }
        for (g, m) in self.gradient.iter_mut().zip(self.base.mean()) {
            // One σ from z = (x − m) / σ, one from the formula. Below its floor x − m is rounding alone.
            let sigma = self.sigma.max(sigma_floor(*m));
            let scale = 1.0 / (population as f64 * sigma * sigma);
            *g = *g * scale - weight_decay * m;
        }
        self.base.check_range("the gradient", &self.gradient)?;
        self.sigma = self.config.decayed(self.sigma);
        Ok(self.base.told(fitness, self.sigma, |mean| self.optimizer.step(&self.gradient, mean)))
    }

    fn state(&self) -> StateDict {
        let mut state = self.base.state(self.config.numbers());
        state.insert("sigma".into(), Tensor::from(vec![self.sigma]));
        self.optimizer.save(&mut state);
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let saved = self.base.saved(StateReader(state), &self.config.numbers())?;
        let sigma = StateReader(state).sigmas("sigma", 1)?[0];
        self.optimizer = self.optimizer.restored(StateReader(state))?;
        self.sigma = sigma;
        self.base.restore(saved);
        Ok(())
    }
}
