//! Policies that draw their actions from a distribution and estimate values, with gradients, for policy gradients.

use crate::{Observation, PolicyError};

/// The distribution of an action, and which outputs describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionDistribution {
    /// One of this many choices, with the probabilities softmax(outputs): one output for each.
    Choices(usize),
    /// This many independent normal numbers, in the world's units: first the mean of each, then the natural logarithm of
    /// each standard deviation.
    Normal(usize),
}

impl ActionDistribution {
    /// Number of outputs that describe it.
    pub const fn outputs(self) -> usize {
        match self {
            ActionDistribution::Choices(n) => n,
            ActionDistribution::Normal(n) => 2 * n,
        }
    }
}

/// What an [`ActorCritic`] computes for some steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Predictions {
    /// `[steps, …, outputs]`: the distributions of the actions.
    pub outputs: Vec<f32>,
    /// `[steps, …]`: the estimates of the discounted return from the step on.
    pub values: Vec<f32>,
    /// `[steps, …, memory_len]`: the memory before each step, where it was asked for.
    pub memories: Vec<f32>,
}

/// The network of a policy that draws its actions from a distribution, and estimates values; with or without memory.
pub trait ActorCritic {
    /// Numbers of an encoded observation.
    fn encoded_len(&self) -> usize;

    /// Appends the encoding of `observation` to `codes`.
    ///
    /// # Errors
    /// [`PolicyError::ObservationShape`] when the network was built for another observation space.
    fn encode(&self, observation: Observation<'_>, codes: &mut Vec<f32>) -> Result<(), PolicyError>;

    /// The distribution of its actions.
    fn distribution(&self) -> ActionDistribution;

    /// Numbers that are kept from step to step; 0 for a network without memory.
    fn memory_len(&self) -> usize {
        0
    }

    /// Computes an episode from its first step on, with the memory as it is at the start: `inputs` is
    /// `[steps, encoded_len]`. Fills all parts of `predictions`, in place of what they hold.
    ///
    /// # Panics
    /// When the length of `inputs` is no multiple of [`ActorCritic::encoded_len`].
    fn follow(&mut self, inputs: &[f32], predictions: &mut Predictions);

    /// Computes `steps` consecutive steps of some sequences, for [`ActorCritic::backward`]: `inputs` is
    /// `[steps, sequences, encoded_len]`, `memories` the memory before the first step of each, `[sequences, memory_len]`.
    /// The memories of the result are empty. Allocates only for sizes other than those before.
    ///
    /// # Panics
    /// When the lengths do not fit together.
    fn forward(&mut self, steps: usize, inputs: &[f32], memories: &[f32]) -> &Predictions;

    /// Adds to `gradient` (`[n_params]`) that of a loss whose derivatives with respect to the last
    /// [`ActorCritic::forward`] are `d_outputs` and `d_values`, through all of its steps (truncated backpropagation
    /// through time: none flows past the first).
    ///
    /// # Panics
    /// When a length differs from that of the last forward pass.
    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]);
}
