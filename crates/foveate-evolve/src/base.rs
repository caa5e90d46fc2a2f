//! Shared parts of the strategies: the state of the search, sampling of genomes, and saving.

use foveate_core::{EvolveError, Population, Progress, Seed, StateDict, StateReader, Tensor};

/// Values above this are out of range; genomes are in single precision, whose limit is 3e38.
const TOO_LARGE: f64 = 1e30;

/// The first value that is NaN or larger than 1e30 in magnitude, with its index.
pub fn first_out_of_range(values: &[f64]) -> Option<(usize, f64)> {
    values.iter().copied().enumerate().find(|(_, x)| x.is_nan() || x.abs() > TOO_LARGE)
}

/// The smallest sigma at mean `m`: the spacing of single-precision numbers there, below which genomes would
/// be equal.
pub(crate) fn sigma_floor(m: f64) -> f64 {
    f64::from(f32::EPSILON) * m.abs().max(1e-30)
}

/// The state of a search.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    seed: Seed,
    generation: u64,
    /// `[n_params]`
    mean: Vec<f64>,
    /// `[n_params]`: the mean, rounded to single precision.
    mean_f32: Vec<f32>,
    population: Population,
    asked: bool,
}

impl Base {
    pub(crate) fn new(mean: Vec<f64>, population: usize, seed: Seed) -> Result<Self, EvolveError> {
        if mean.is_empty() {
            return Err(EvolveError::BadConfig { why: "there is nothing to evolve: 0 parameters".into() });
        }
        if let Some((i, x)) = first_out_of_range(&mean) {
            let why =
                format!("parameter {i} of the start is {x}; it must be a number of at most {TOO_LARGE:e}");
            return Err(EvolveError::BadConfig { why });
        }
        Ok(Base {
            seed,
            generation: 0,
            mean_f32: mean.iter().map(|&x| x as f32).collect(),
            population: Population::zeros(population, mean.len()),
            mean,
            asked: false,
        })
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn mean(&self) -> &[f64] {
        &self.mean
    }

    pub(crate) fn mean_f32(&self) -> &[f32] {
        &self.mean_f32
    }

    /// The genomes of this generation.
    pub(crate) const fn population(&self) -> &Population {
        &self.population
    }

    pub(crate) const fn population_mut(&mut self) -> &mut Population {
        &mut self.population
    }

    /// Returns whether a population must be sampled; after this call there is one.
    pub(crate) const fn must_sample(&mut self) -> bool {
        !std::mem::replace(&mut self.asked, true)
    }

    /// The seed path of this generation.
    pub(crate) const fn generation_seed(&self) -> Seed {
        self.seed.child("generation", self.generation)
    }

    /// The seed path of a genome of this generation.
    pub(crate) const fn genome_seed(&self, index: usize) -> Seed {
        self.generation_seed().child("genome", index as u64)
    }

    /// Samples the population around the mean, with standard deviation `sigma(j)` for parameter `j`; when
    /// `mirrored`, in adjacent antithetic pairs.
    pub(crate) fn sample(&mut self, mirrored: bool, sigma: impl Fn(usize) -> f64) {
        for i in 0..self.population.len() {
            let (draw, sign) = if mirrored { (i / 2, if i % 2 == 1 { -1.0 } else { 1.0 }) } else { (i, 1.0) };
            let mut rng = self.genome_seed(draw).rng();
            let genome = self.population.genome_mut(i);
            for (j, (x, m)) in genome.iter_mut().zip(&self.mean).enumerate() {
                *x = (m + sign * sigma(j) * rng.normal()) as f32;
            }
        }
    }

    /// Sets genome `i` to the mean plus `step(i, j)` in parameter `j`.
    pub(crate) fn place(&mut self, step: impl Fn(usize, usize) -> f64) {
        for i in 0..self.population.len() {
            for (j, (x, m)) in self.population.genome_mut(i).iter_mut().zip(&self.mean).enumerate() {
                *x = (m + step(i, j)) as f32;
            }
        }
    }

    /// Checks that this fitness is valid for `tell`.
    pub(crate) fn check_fitness(&self, fitness: &[f64]) -> Result<(), EvolveError> {
        let wanted = self.population.len();
        if !self.asked {
            return Err(EvolveError::NothingAsked);
        }
        if fitness.len() != wanted {
            return Err(EvolveError::FitnessCount { wanted, given: fitness.len() });
        }
        if let Some((genome, &value)) = fitness.iter().enumerate().find(|(_, f)| !f.is_finite()) {
            return Err(EvolveError::FitnessNotFinite { genome, generation: self.generation, value });
        }
        Ok(())
    }

    /// Checks that updated values are finite and in range.
    pub(crate) fn check_range(&self, what: &'static str, values: &[f64]) -> Result<(), EvolveError> {
        match first_out_of_range(values) {
            None => Ok(()),
            Some((parameter, value)) => {
                let what = format!("{what} of parameter {parameter} is {value}");
                Err(EvolveError::Diverged { generation: self.generation, what })
            }
        }
    }

    /// Ends the generation: `step` moves the mean.
    pub(crate) fn told(&mut self, fitness: &[f64], sigma: f64, step: impl FnOnce(&mut [f64])) -> Progress {
        step(&mut self.mean);
        self.round();
        self.generation += 1;
        self.asked = false;
        Progress {
            generation: self.generation,
            best: fitness.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: fitness.iter().sum::<f64>() / fitness.len() as f64,
            sigma,
        }
    }

    fn round(&mut self) {
        for (m32, m) in self.mean_f32.iter_mut().zip(&self.mean) {
            *m32 = *m as f32;
        }
    }

    /// The entries of every state; `settings` detect states that were saved with other settings.
    pub(crate) fn state(&self, settings: Vec<f64>) -> StateDict {
        StateDict::from([
            ("mean".into(), Tensor::from(self.mean.clone())),
            ("generation".into(), Tensor::from(vec![self.generation])),
            ("seed".into(), Tensor::from(vec![self.seed.value()])),
            ("settings".into(), Tensor::from(settings)),
        ])
    }

    /// The result of [`Base::state`]: the mean and the generation, checked but not yet applied.
    pub(crate) fn saved<'a>(
        &self,
        state: StateReader<'a>,
        settings: &[f64],
    ) -> Result<(&'a [f64], u64), EvolveError> {
        let saved = state.f64s("settings", settings.len())?;
        if saved != settings {
            return Err(bad(format!("it was made with the settings {saved:?}, these are {settings:?}")));
        }
        if state.counts("seed", 1)?[0] != self.seed.value() {
            return Err(bad("it was made with another seed".into()));
        }
        Ok((state.f64s("mean", self.mean.len())?, state.counters("generation", 1)?[0]))
    }

    /// Applies the result of [`Base::saved`].
    pub(crate) fn restore(&mut self, (mean, generation): (&[f64], u64)) {
        self.mean.copy_from_slice(mean);
        self.round();
        self.generation = generation;
        self.asked = false;
    }
}

pub(crate) fn bad(why: String) -> EvolveError {
    EvolveError::BadState { why }
}

/// The methods of [`foveate_core::Evolver`] that a strategy with a field `base: Base` forwards to it.
macro_rules! answered_by_base {
    () => {
        fn population_mut(&mut self) -> &mut Population {
            self.base.population_mut()
        }

        fn mean(&self) -> &[f32] {
            self.base.mean_f32()
        }

        fn centre(&self) -> &[f64] {
            self.base.mean()
        }

        fn generation(&self) -> u64 {
            self.base.generation()
        }
    };
}
pub(crate) use answered_by_base;
