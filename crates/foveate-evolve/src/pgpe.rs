//! PGPE: policy gradients with parameter-based exploration, with `ClipUp` or Adam.
//!
//! Sehnke, Osendorfer, Rückstieß, Graves, Peters and Schmidhuber, "Parameter-exploring policy gradients",
//! Neural Networks 2010, with symmetric samples. Genomes come in pairs `m ± d`, `d ~ N(0, σ²)`, with a σ for
//! each parameter; with `w` the shaped fitness of a genome, `b` the mean of all of them and λ genomes,
//!
//! ```text
//! g_m = 1/λ Σ (w⁺ − w⁻) d                                over the pairs
//! g_σ = 1/λ Σ (w⁺ + w⁻ − 2b) (d² − σ²) / σ
//! m ← ClipUp(m, g_m)  or  Adam(m, g_m)
//! σ ← σ + η_σ g_σ,  but by no more than the share `sigma_max_change` of σ
//! ```
//!
//! The limits of σ and `ClipUp` are those of Toklu, Liskowski and Srivastava 2020, whose rule of thumb is the
//! default here: a maximum speed of a fifteenth of the initial radius `σ √n`, and a learning rate of half the
//! maximum speed. `d` is half the difference of the genomes of a pair as evaluated, so a repaired pair still
//! shows which of the two is better.

use foveate_core::{EvolveError, Evolver, Population, Progress, Seed, StateDict, StateReader, Tensor};
use serde::{Deserialize, Serialize};

use crate::base::{Base, answered_by_base, sigma_floor};
use crate::check;
use crate::optimizer::{Optimizer, OptimizerKind};
use crate::shaping::{Shaper, Shaping};

/// Settings of [`Pgpe`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PgpeConfig {
    /// λ: genomes per generation, an even number of at least 2.
    pub population: usize,
    /// Initial standard deviation of every parameter, above 0.
    pub sigma: f64,
    /// `η_σ`: learning rate of the standard deviations, 0 or more.
    pub sigma_learning_rate: f64,
    /// The largest relative change of a standard deviation per generation, above 0 and at most 1.
    pub sigma_max_change: f64,
    /// The optimiser of the mean.
    pub optimizer: OptimizerKind,
    /// η, above 0. Default: half the maximum speed for `ClipUp`, 0.02 for Adam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// `ClipUp`'s `v_max`, above 0: the largest step of the mean per generation. Default: `σ √n / 15` for n
    /// parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_speed: Option<f64>,
    /// `ClipUp`'s μ or Adam's β₁, `0.0..1.0`.
    pub momentum: f64,
    /// How fitness is converted to weights.
    pub shaping: Shaping,
}

impl Default for PgpeConfig {
    fn default() -> Self {
        PgpeConfig {
            population: 64,
            sigma: 0.1,
            sigma_learning_rate: 0.1,
            sigma_max_change: 0.2,
            optimizer: OptimizerKind::ClipUp,
            learning_rate: None,
            max_speed: None,
            momentum: 0.9,
            shaping: Shaping::CentredRanks,
        }
    }
}

impl PgpeConfig {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), EvolveError> {
        check::population(self.population, true)?;
        check::above_zero(&[
            ("sigma", self.sigma),
            ("learning_rate", self.learning_rate.unwrap_or(1.0)),
            ("max_speed", self.max_speed.unwrap_or(1.0)),
        ])?;
        if self.optimizer == OptimizerKind::Adam && self.max_speed.is_some() {
            let why = "max_speed is ClipUp's; leave it out or choose optimizer = \"clip-up\"".into();
            return Err(EvolveError::BadConfig { why });
        }
        check::not_negative(&[("sigma_learning_rate", self.sigma_learning_rate)])?;
        check::factor(&[("sigma_max_change", self.sigma_max_change)])?;
        check::share(&[("momentum", self.momentum)])
    }

    fn numbers(&self) -> Vec<f64> {
        vec![
            self.population as f64,
            self.sigma,
            self.sigma_learning_rate,
            self.sigma_max_change,
            f64::from(u8::from(self.optimizer == OptimizerKind::Adam)),
            self.learning_rate.unwrap_or(-1.0),
            self.max_speed.unwrap_or(-1.0),
            self.momentum,
            self.shaping.number(),
        ]
    }

    fn optimizer(&self, params: usize) -> Optimizer {
        match self.optimizer {
            OptimizerKind::ClipUp => {
                let max_speed = self.max_speed.unwrap_or(self.sigma * (params as f64).sqrt() / 15.0);
                let rate = self.learning_rate.unwrap_or(max_speed / 2.0);
                Optimizer::clip_up(params, rate, max_speed, self.momentum)
            }
            OptimizerKind::Adam => {
                Optimizer::adam(params, self.learning_rate.unwrap_or(0.02), self.momentum, 0.999)
            }
        }
    }
}

/// The PGPE strategy; see the [module](self).
#[derive(Debug, Clone)]
pub struct Pgpe {
    config: PgpeConfig,
    base: Base,
    /// `[n_params]`
    sigma: Vec<f64>,
    optimizer: Optimizer,
    shaper: Shaper,
    /// Scratch: `[n_params]`, the gradient of the mean.
    gradient: Vec<f64>,
    /// Scratch: `[n_params]`, the next σ.
    next_sigma: Vec<f64>,
}

impl Pgpe {
    /// Starts around `mean` (`[n_params]`); all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `mean` is empty or not finite.
    pub fn from_mean(config: PgpeConfig, mean: Vec<f64>, seed: Seed) -> Result<Self, EvolveError> {
        config.check()?;
        let n = mean.len();
        Ok(Pgpe {
            base: Base::new(mean, config.population, seed)?,
            sigma: vec![config.sigma; n],
            optimizer: config.optimizer(n),
            shaper: Shaper::new(config.shaping, config.population),
            gradient: vec![0.0; n],
            next_sigma: vec![0.0; n],
            config,
        })
    }

    /// `[n_params]`: the standard deviation of each parameter.
    pub fn sigma(&self) -> &[f64] {
        &self.sigma
    }
}

impl Evolver for Pgpe {
    answered_by_base!();

    fn ask(&mut self) -> &Population {
        if self.base.must_sample() {
            self.base.sample(true, |j| self.sigma[j]);
        }
        self.base.population()
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        self.base.check_fitness(fitness)?;
        let n = self.config.population as f64;
        let weights = self.shaper.weights(fitness);
        let baseline = weights.iter().sum::<f64>() / n;
        self.gradient.fill(0.0);
        self.next_sigma.fill(0.0);
        let population = self.base.population();
        for (pair, w) in weights.chunks_exact(2).enumerate() {
            let (of_mean, of_sigma) = ((w[0] - w[1]) / n, (w[0] + w[1] - 2.0 * baseline) / n);
            let genomes = population.genome(2 * pair).iter().zip(population.genome(2 * pair + 1));
            let sums = self.gradient.iter_mut().zip(&mut self.next_sigma);
            for (((&plus, &minus), sigma), (g, s)) in genomes.zip(&self.sigma).zip(sums) {
                let d = 0.5 * (f64::from(plus) - f64::from(minus));
                *g += of_mean * d;
                *s += of_sigma * (d * d - sigma * sigma) / sigma;
            }
        }
        let PgpeConfig { sigma_learning_rate, sigma_max_change, .. } = self.config;
        for ((next, sigma), m) in self.next_sigma.iter_mut().zip(&self.sigma).zip(self.base.mean()) {
            let limit = sigma_max_change * sigma;
            *next = (sigma + (sigma_learning_rate * *next).clamp(-limit, limit)).max(sigma_floor(*m));
        }
        self.base.check_range("the gradient", &self.gradient)?;
        self.base.check_range("sigma", &self.next_sigma)?;
        std::mem::swap(&mut self.sigma, &mut self.next_sigma);
        let sigma = self.sigma.iter().sum::<f64>() / self.sigma.len() as f64;
        Ok(self.base.told(fitness, sigma, |mean| self.optimizer.step(&self.gradient, mean)))
    }

    fn state(&self) -> StateDict {
        let mut state = self.base.state(self.config.numbers());
        state.insert("sigma".into(), Tensor::from(self.sigma.clone()));
        self.optimizer.save(&mut state);
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let saved = self.base.saved(StateReader(state), &self.config.numbers())?;
        let sigma = StateReader(state).sigmas("sigma", self.sigma.len())?;
        self.optimizer = self.optimizer.restored(StateReader(state))?;
        self.sigma.copy_from_slice(sigma);
        self.base.restore(saved);
        Ok(())
    }
}
