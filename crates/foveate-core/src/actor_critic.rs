//! Policies that draw their actions from a distribution and estimate values, with gradients, for policy gradients.

use std::sync::Arc;

use crate::{Action, ActionBuf, Observation, PolicyError, Unroll};

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

    /// Appends the encoding of `observation` after a step that ended with `last`, for a policy that is told about it. The
    /// default, of a policy that is not, is [`ActorCritic::encode`].
    ///
    /// # Errors
    /// Those of [`ActorCritic::encode`].
    fn encode_after(
        &self,
        last: LastStep<'_>,
        observation: Observation<'_>,
        codes: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        let _ = last;
        self.encode(observation, codes)
    }

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

/// What a policy knows of the step before, besides its memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LastStep<'a> {
    /// The action taken; `None` in the first step of an episode.
    pub action: Option<Action<'a>>,
    /// The reward; 0 in the first step of an episode.
    pub reward: f64,
}

/// Consecutive steps of one episode, for a [`SequenceLoss`].
#[derive(Debug, Clone)]
pub struct Sequence {
    /// The steps. Its [memory](Unroll::memory) is the recurrent state before the first.
    pub unroll: Arc<Unroll>,
    /// The action of the step before the first, and its reward; `None` at the beginning of the episode.
    pub before: Option<(ActionBuf, f64)>,
}

/// Numbers about sequences that a learner adds up; what each of them is, the loss decides.
pub type LossSums = [f64; 8];

/// A loss of sequences, each by itself.
pub trait SequenceLoss: Send + Sync {
    /// The loss of sequence `index`: reads what the network computes for its steps and for the observation after the last,
    /// `[steps + 1]`, and writes the derivatives of the loss with respect to it. They are zeros before.
    fn differentiate(
        &self,
        index: usize,
        predictions: &Predictions,
        d_outputs: &mut [f32],
        d_values: &mut [f32],
    ) -> LossSums;
}

/// Scratch space of [`study_sequence`].
#[derive(Debug, Clone, Default)]
pub struct SequenceScratch {
    codes: Vec<f32>,
    predictions: Predictions,
    d_outputs: Vec<f32>,
    d_values: Vec<f32>,
}

/// Adds to `gradient` that of `loss` for sequence `index`, which is `sequence`, through all of its steps.
///
/// # Errors
/// Those of [`ActorCritic::encode_after`]; when the sequence does not fit the network.
pub fn study_sequence(
    network: &mut dyn ActorCritic,
    sequence: &Sequence,
    index: usize,
    loss: &dyn SequenceLoss,
    scratch: &mut SequenceScratch,
    gradient: &mut [f32],
) -> Result<LossSums, PolicyError> {
    let Sequence { unroll, before } = sequence;
    let steps = unroll.observations.len();
    let bad = |why: String| Err(PolicyError::BadConfig { why });
    if steps != unroll.len() + 1 || unroll.rewards.len() != unroll.len() {
        return bad(format!(
            "an unroll of {} steps with {steps} observations and {} rewards",
            unroll.len(),
            unroll.rewards.len()
        ));
    }
    if unroll.memory.len() != network.memory_len() {
        return bad(format!(
            "an unroll with a recurrent state of {} numbers, where the network keeps {}",
            unroll.memory.len(),
            network.memory_len()
        ));
    }
    let SequenceScratch { codes, predictions, d_outputs, d_values } = scratch;
    codes.clear();
    for (step, observation) in unroll.observations.iter().enumerate() {
        let last = match step.checked_sub(1) {
            Some(last) => {
                LastStep { action: Some(unroll.actions[last].as_action()), reward: unroll.rewards[last] }
            }
            None => before.as_ref().map_or(LastStep::default(), |(action, reward)| LastStep {
                action: Some(action.as_action()),
                reward: *reward,
            }),
        };
        network.encode_after(last, observation.as_observation(), codes)?;
    }
    predictions.clone_from(network.forward(steps, codes, &unroll.memory));
    for (d, len) in [(&mut *d_outputs, predictions.outputs.len()), (d_values, predictions.values.len())] {
        d.clear();
        d.resize(len, 0.0);
    }
    let sums = loss.differentiate(index, predictions, d_outputs, d_values);
    network.backward(d_outputs, d_values, gradient);
    Ok(sums)
}
