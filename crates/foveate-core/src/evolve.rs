//! Evolution strategies with an `ask` and `tell` interface.

use serde::{Deserialize, Serialize};

use crate::{StateDict, StateError};

/// An evolution strategy.
///
/// One generation is one `ask` and one `tell`. A second `ask` without `tell` gives the same population. All
/// randomness comes from the seed path of the generation, so a strategy restored from [`Evolver::state`]
/// resumes bit for bit.
pub trait Evolver: Send {
    /// The genomes of this generation.
    fn ask(&mut self) -> &Population;

    /// The genomes of the last `ask`, to repair (see [`Evolver::tell`]) or to replace by others.
    fn population_mut(&mut self) -> &mut Population;

    /// Learns from the population of the last `ask`: `fitness[i]` belongs to row `i`, larger is better.
    ///
    /// The strategy learns from the genomes as they are now, with any repair or replacement made through
    /// [`Evolver::population_mut`]. They are rounded to single precision; for an unchanged genome, a strategy
    /// may learn from the draw before rounding, and documents this.
    ///
    /// # Errors
    /// When the count is wrong, a fitness is not finite, `ask` was not called, or the search diverges; the
    /// state is then unchanged.
    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError>;

    /// `[n_params]`: the centre of the search, rounded to single precision for use as an agent's parameters.
    fn mean(&self) -> &[f32];

    /// `[n_params]`: the centre of the search in double precision: the mean of the distribution that genomes
    /// are drawn from, or the elite of a strategy that has no distribution.
    fn centre(&self) -> &[f64];

    /// `[n_params]`: the weights to validate and to return. The centre by default; a strategy may have a
    /// better estimate: an average of its means, the centre kept within bounds, that of an earlier restart.
    fn recommended(&self) -> &[f64] {
        self.centre()
    }

    /// Euclidean length of the centre.
    fn norm(&self) -> f64 {
        self.centre().iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Number of generations told so far.
    fn generation(&self) -> u64;

    /// Everything needed to resume bit for bit; see [`Evolver::restore`].
    fn state(&self) -> StateDict;

    /// Restores the state from [`Evolver::state`].
    ///
    /// # Errors
    /// When something is missing, of the wrong size, or not finite; the strategy is then unchanged.
    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError>;

    /// Restores a state that was made with other settings, and continues with this strategy's settings.
    ///
    /// The tensor `settings` identifies a state's settings; a strategy that wraps another one forwards this
    /// call.
    ///
    /// # Errors
    /// Those of [`Evolver::restore`]; also when the state itself does not fit the settings.
    fn restore_changed(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        self.restore(&crate::tensor::with_settings_of(state, self.state()))
    }
}

/// Genomes, `[n_genomes, n_params]`, row-major.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "UncheckedPopulation")]
pub struct Population {
    genomes: Vec<f32>,
    params: usize,
}

/// A population before validation.
#[derive(Deserialize)]
struct UncheckedPopulation {
    genomes: Vec<f32>,
    params: usize,
}

impl TryFrom<UncheckedPopulation> for Population {
    type Error = StateError;

    fn try_from(UncheckedPopulation { genomes, params }: UncheckedPopulation) -> Result<Self, StateError> {
        let whole = if params == 0 { genomes.is_empty() } else { genomes.len().is_multiple_of(params) };
        if whole {
            Ok(Population { genomes, params })
        } else {
            Err(StateError::Shape {
                shape: vec![genomes.len() / params.max(1), params],
                numbers: genomes.len(),
            })
        }
    }
}

impl Population {
    /// A population of one genome.
    pub fn of(genome: &[f32]) -> Self {
        Population { genomes: genome.to_vec(), params: genome.len() }
    }

    /// Adds a genome with the same number of parameters.
    ///
    /// # Panics
    /// When it has another number of parameters.
    pub fn push(&mut self, genome: impl ExactSizeIterator<Item = f32>) {
        assert_eq!(genome.len(), self.params, "a genome of another length");
        self.genomes.extend(genome);
    }

    /// A population of `genomes` genomes with `params` parameters, all zero.
    pub fn zeros(genomes: usize, params: usize) -> Self {
        Population { genomes: vec![0.0; genomes * params], params }
    }

    /// Number of parameters per genome.
    pub const fn params(&self) -> usize {
        self.params
    }

    /// Number of genomes.
    pub fn len(&self) -> usize {
        self.genomes.len().checked_div(self.params).unwrap_or(0)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.genomes.is_empty()
    }

    /// `[n_params]`: genome `index`.
    pub fn genome(&self, index: usize) -> &[f32] {
        &self.genomes[index * self.params..(index + 1) * self.params]
    }

    /// `[n_params]`: genome `index`, mutable.
    pub fn genome_mut(&mut self, index: usize) -> &mut [f32] {
        &mut self.genomes[index * self.params..(index + 1) * self.params]
    }
}

/// Statistics of a generation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Number of generations told so far, this one included.
    pub generation: u64,
    /// Best fitness of the population.
    pub best: f64,
    /// Mean fitness of the population.
    pub mean: f64,
    /// Standard deviation of the search distribution, averaged over parameters.
    pub sigma: f64,
}

/// Errors of an evolution strategy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvolveError {
    /// The wrong number of fitness values.
    #[error("{given} fitness values for a population of {wanted}")]
    FitnessCount {
        /// Genomes in the population.
        wanted: usize,
        /// Values given.
        given: usize,
    },
    /// A fitness is NaN or infinite.
    #[error("the fitness of genome {genome} in generation {generation} is {value}")]
    FitnessNotFinite {
        /// The genome.
        genome: usize,
        /// The generation.
        generation: u64,
        /// The value.
        value: f64,
    },
    /// `tell` was called without `ask`.
    #[error("tell was called without ask")]
    NothingAsked,
    /// The numbers of the search left their range.
    #[error(
        "the search diverged in generation {generation}: {what}; start closer, with a smaller step size, or bound the \
         parameters"
    )]
    Diverged {
        /// The generation.
        generation: u64,
        /// The quantity that is out of range.
        what: String,
    },
    /// An invalid setting.
    #[error("{why}")]
    BadConfig {
        /// The problem, and how to resolve it.
        why: String,
    },
    /// A state that does not fit.
    #[error("the saved state does not fit this strategy: {why}")]
    BadState {
        /// What does not fit.
        why: String,
    },
}

impl From<StateError> for EvolveError {
    fn from(error: StateError) -> Self {
        EvolveError::BadState { why: error.to_string() }
    }
}
