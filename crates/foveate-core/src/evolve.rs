//! Evolution strategies behind `ask` and `tell`.

use serde::{Deserialize, Serialize};

use crate::{StateDict, StateError};

/// An evolution strategy.
///
/// One generation is one `ask` and one `tell`. Asking twice without telling gives the same population. All randomness
/// comes from the seed path of the generation, so a strategy restored from [`Evolver::state`] goes on bit for bit.
pub trait Evolver: Send {
    /// The genomes of this generation.
    fn ask(&mut self) -> &Population;

    /// The genomes of the last `ask`, to repair (see [`Evolver::tell`]) or to replace by some from elsewhere.
    fn population_mut(&mut self) -> &mut Population;

    /// Learns from the population of the last `ask`: `fitness[i]` belongs to row `i`, larger is better.
    ///
    /// What is learnt from are the genomes as they lie there now, repaired or replaced if someone did so through
    /// [`Evolver::population_mut`]. They are rounded to single precision; a strategy may learn from the draws before
    /// rounding where a genome was left as it was drawn, and says so.
    ///
    /// # Errors
    /// When the count is wrong, a fitness is not finite, nothing was asked, or the search diverges; the state is then
    /// unchanged.
    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError>;

    /// `[n_params]`: the centre of the search, rounded for those who drive with it.
    fn mean(&self) -> &[f32];

    /// `[n_params]`: the centre of the search in double precision: the mean of the distribution that genomes are drawn
    /// from, or the elite of a strategy that has no distribution.
    fn centre(&self) -> &[f64];

    /// `[n_params]`: the weights to validate and to hand on. The centre, unless the strategy knows better: an average
    /// of its means, the centre kept within bounds, that of an earlier restart.
    fn recommended(&self) -> &[f64] {
        self.centre()
    }

    /// Euclidean length of the centre.
    fn norm(&self) -> f64 {
        self.centre().iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Generations told so far.
    fn generation(&self) -> u64;

    /// Everything needed to go on bit for bit; see [`Evolver::restore`].
    fn state(&self) -> StateDict;

    /// Takes back what [`Evolver::state`] gave.
    ///
    /// # Errors
    /// When something is missing, of the wrong size, or not finite; the strategy is then unchanged.
    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError>;

    /// Takes back a state that was made with other settings, and goes on from there with its own.
    ///
    /// What recognises a state's settings is its tensor `settings`; a strategy around another one passes this on.
    ///
    /// # Errors
    /// As [`Evolver::restore`]; also when the state itself does not fit the settings.
    fn restore_changed(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let mut state = state.clone();
        if let Some(settings) = self.state().remove("settings") {
            state.insert("settings".into(), settings);
        }
        self.restore(&state)
    }
}

/// Genomes, `[n_genomes, n_params]`, row-major.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "UncheckedPopulation")]
pub struct Population {
    genomes: Vec<f32>,
    params: usize,
}

/// A population as it was read.
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
    /// One genome.
    pub fn of(genome: &[f32]) -> Self {
        Population { genomes: genome.to_vec(), params: genome.len() }
    }

    /// Adds a genome of as many parameters.
    ///
    /// # Panics
    /// When it has another number of parameters.
    pub fn push(&mut self, genome: impl ExactSizeIterator<Item = f32>) {
        assert_eq!(genome.len(), self.params, "a genome of another length");
        self.genomes.extend(genome);
    }

    /// Room for `genomes` genomes of `params` parameters, all zero.
    pub fn zeros(genomes: usize, params: usize) -> Self {
        Population { genomes: vec![0.0; genomes * params], params }
    }

    /// How many parameters a genome has.
    pub const fn params(&self) -> usize {
        self.params
    }

    /// How many genomes.
    pub fn len(&self) -> usize {
        self.genomes.len().checked_div(self.params).unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.genomes.is_empty()
    }

    /// `[n_params]`: genome `index`.
    pub fn genome(&self, index: usize) -> &[f32] {
        &self.genomes[index * self.params..(index + 1) * self.params]
    }

    /// `[n_params]`: genome `index`, to write.
    pub fn genome_mut(&mut self, index: usize) -> &mut [f32] {
        &mut self.genomes[index * self.params..(index + 1) * self.params]
    }
}

/// How a generation went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Generations told so far, this one included.
    pub generation: u64,
    /// Best fitness of the population.
    pub best: f64,
    /// Mean fitness of the population.
    pub mean: f64,
    /// Standard deviation of the search distribution, averaged over parameters.
    pub sigma: f64,
}

/// What can go wrong in an evolution strategy.
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
        /// Which genome.
        genome: usize,
        /// Which generation.
        generation: u64,
        /// The value.
        value: f64,
    },
    /// `tell` without `ask`.
    #[error("tell was called without ask")]
    NothingAsked,
    /// The search ran out of the range of its numbers.
    #[error(
        "the search diverged in generation {generation}: {what}; start closer, with a smaller step size, or bound the \
         parameters"
    )]
    Diverged {
        /// Which generation.
        generation: u64,
        /// What is out of range.
        what: String,
    },
    /// A setting that makes no sense.
    #[error("{why}")]
    BadConfig {
        /// What is wrong and what to do instead.
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
