//! What learners by gradients need of an agent: its [`Model`].
//!
//! A learner divides an update into [`GradientParts`], each with a loss and a gradient of its own. [`add_gradients`] adds them in their
//! order, so the sum has the same bits on one thread and on many.

use std::ops::Range;
use std::sync::Arc;

use crate::{Action, DifferentiatedEpisode, Observation, PolicyError, SparseRows, Student, Windows};

/// The part of an agent that learns by gradients. What it can learn from, it hands out.
pub trait Model: Send {
    /// Range of the flat parameters that are learnt; the others never change.
    fn learns(&self) -> Range<usize>;

    /// Sets the weights at which gradients are computed, `[n_params]`.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite.
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;

    /// A copy with separate scratch space.
    fn boxed_clone(&self) -> Box<dyn Model>;

    /// What it computes from observations, with the gradient; `None` for one that only learns from recordings.
    fn outputs(&mut self) -> Option<&mut dyn Outputs> {
        None
    }

    /// What learns from an expert's demonstrations, if there is such a part.
    fn student(&mut self) -> Option<&mut dyn Student> {
        None
    }

    /// Another model of the same agent, with the same parameters, that learns something else from demonstrations; `None` when
    /// there is none.
    fn taught(&self, what: Taught) -> Option<Box<dyn Model>> {
        let _ = what;
        None
    }

    /// Adds to `gradient` (`[n_params]`) the gradient of the negative return through policy and world, and returns the
    /// return.
    ///
    /// The episode is divided into windows that end before the steps `ends` (ascending, the last is the number of
    /// steps). In each of them the return is `(1 − discount) Σ discount^t reward` over its steps, and the value of the
    /// observation after it; `values` (`[ends, numbers]`) are the derivatives of these values, in the same units,
    /// already multiplied by `discount` to the power of the window's length. No gradient flows from one window into
    /// another, while the policy's memory goes on.
    ///
    /// The first [`begin`](DifferentiatedEpisode::begin) inputs of the episode only set the policy's memory.
    ///
    /// Derivatives with respect to the world's state and to the policy's memory are clipped to `clip` where they are passed
    /// from step to step.
    ///
    /// # Errors
    /// When this policy cannot learn that way, or the episode does not have its dimensions.
    fn study_world(
        &mut self,
        episode: &DifferentiatedEpisode,
        windows: &Windows<'_>,
        gradient: &mut [f32],
    ) -> Result<f64, PolicyError> {
        let _ = (episode, windows, gradient);
        let why =
            "this agent cannot learn through a world's equations; attention-neuron on numbers can".into();
        Err(PolicyError::BadConfig { why })
    }

    /// What computes gradients at several places, if it is not this model alone.
    fn distributed(&mut self) -> Option<&mut dyn Distributed> {
        None
    }
}

/// What else demonstrations can teach, see [`Model::taught`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taught {
    /// The attention: where the expert looks, from demonstrations with [gaze](crate::DemonstrationPlan::gaze).
    Gaze,
    /// Which of the sensors is which, from what they show and what was done.
    Names,
}

/// What the outputs of a model say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// The values of this many choices, one output for each.
    Values(usize),
    /// The distribution of the action; besides, the value of the state.
    Policy(ActionDistribution),
}

impl OutputKind {
    /// Outputs of a step.
    pub const fn outputs(self) -> usize {
        match self {
            OutputKind::Values(n) => n,
            OutputKind::Policy(distribution) => distribution.outputs(),
        }
    }

    /// The distribution of the action.
    pub const fn distribution(self) -> Option<ActionDistribution> {
        match self {
            OutputKind::Values(_) => None,
            OutputKind::Policy(distribution) => Some(distribution),
        }
    }
}

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

/// What a model computes for some steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Predictions {
    /// `[steps, …, outputs]`: what [`OutputKind`] says.
    pub outputs: Vec<f32>,
    /// `[steps, …]`: the estimates of the discounted return from the step on; empty where outputs are values.
    pub values: Vec<f32>,
    /// `[steps, …, memory_len]`: the memory before each step, where it was asked for.
    pub memories: Vec<f32>,
}

/// What a policy knows of the step before, besides its memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LastStep<'a> {
    /// The action taken; `None` in the first step of an episode.
    pub action: Option<Action<'a>>,
    /// The reward; 0 in the first step of an episode.
    pub reward: f64,
}

/// A network from encoded observations to outputs, and back from the gradient of its outputs; with or without memory.
pub trait Outputs {
    /// What its outputs say.
    fn kind(&self) -> OutputKind;

    /// Numbers of an encoded observation.
    fn encoded_len(&self) -> usize;

    /// Appends the encoding of `observation` to `codes`, after a step that ended with `last`, for a policy that is told about it.
    ///
    /// # Errors
    /// [`PolicyError::ObservationShape`] when the network was built for another observation space.
    fn encode(
        &self,
        last: LastStep<'_>,
        observation: Observation<'_>,
        codes: &mut Vec<f32>,
    ) -> Result<(), PolicyError>;

    /// Computes `steps` consecutive steps of some sequences, for [`Outputs::backward`]: `inputs` is
    /// `[steps, sequences, encoded_len]`, `memories` the memory before the first step of each, `[sequences, memory_len]`.
    /// The memories of the result are empty. Allocates only for sizes other than those before.
    ///
    /// # Panics
    /// When the lengths do not fit together.
    fn forward(&mut self, steps: usize, inputs: &[f32], memories: &[f32]) -> &Predictions;

    /// Adds the encoding of `observation` to `rows`, which are as wide as it, without its zeros. Returns false where a network does
    /// not gain by that; nothing was added then.
    ///
    /// # Errors
    /// As [`Outputs::encode`].
    fn encode_row(&self, observation: Observation<'_>, rows: &mut SparseRows) -> Result<bool, PolicyError> {
        let _ = (observation, rows);
        Ok(false)
    }

    /// [`Outputs::forward`] of one step of a network without memory, for the encodings `chosen` of `rows`.
    ///
    /// # Panics
    /// When a row is missing, or the rows have another width.
    fn forward_rows(&mut self, rows: &SparseRows, chosen: &[usize]) -> &Predictions {
        let width = self.encoded_len();
        let mut inputs = vec![0.0; chosen.len() * width];
        for (&row, input) in chosen.iter().zip(inputs.chunks_exact_mut(width)) {
            rows.write(row, input);
        }
        self.forward(1, &inputs, &[])
    }

    /// Adds to `gradient` (`[n_params]`) that of a loss whose derivatives with respect to the last
    /// [`Outputs::forward`] are `d_outputs` and `d_values`, through all of its steps (truncated backpropagation
    /// through time: none flows past the first).
    ///
    /// # Panics
    /// When a length differs from that of the last forward pass.
    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]);

    /// Computes an episode from its first step on, with the memory as it is at the start, without what [`Outputs::backward`]
    /// needs: `inputs` is `[steps, encoded_len]`. Fills all parts of `predictions`, in place of what they hold. Without memory,
    /// each step is computed by itself, with the bits of [`Outputs::forward`].
    ///
    /// # Panics
    /// When the length of `inputs` is no multiple of [`Outputs::encoded_len`].
    fn follow(&mut self, inputs: &[f32], predictions: &mut Predictions) {
        predictions.clone_from(self.forward(1, inputs, &[]));
    }

    /// Numbers that are kept from step to step; 0 for a network without memory.
    fn memory_len(&self) -> usize {
        0
    }

    /// Returns whether encodings are whole numbers from 0 to 255, so that a replay buffer keeps each in a byte.
    fn encodes_bytes(&self) -> bool {
        false
    }
}

/// Numbers about a part of an update that a learner adds up; what each of them is, the loss decides.
pub type LossSums = [f64; 8];

/// Parts between two synchronisations of all threads, at most, unless there are more threads.
pub const MOST_AT_ONCE: usize = 32;

/// An update, divided into parts, each with a loss of its own.
pub trait GradientParts: Send + Sync {
    /// Number of parts.
    fn count(&self) -> usize;

    /// Parts that are worth being computed between two synchronisations of all threads; each needs room for a gradient.
    /// At most [`MOST_AT_ONCE`].
    fn at_once(&self) -> usize {
        4
    }

    /// Adds the gradient of part `part` to `gradient` (`[n_params]`), which is zero where the model learns, and returns numbers
    /// about it. `scratch` is of any content.
    ///
    /// # Errors
    /// When the part does not fit the model.
    fn study(
        &self,
        part: usize,
        model: &mut dyn Model,
        scratch: &mut PartScratch,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError>;
}

/// Scratch space of [`GradientParts::study`].
#[derive(Debug, Clone, Default)]
pub struct PartScratch {
    /// Inputs of the network.
    pub inputs: Vec<f32>,
    /// Memories of the network.
    pub memories: Vec<f32>,
    /// What it computed.
    pub predictions: Predictions,
    /// Derivatives of the loss with respect to outputs.
    pub d_outputs: Vec<f32>,
    /// Derivatives of the loss with respect to values.
    pub d_values: Vec<f32>,
}

impl PartScratch {
    /// Makes the derivatives as many zeros as there are outputs and values.
    pub fn clear_derivatives(&mut self, outputs: usize, values: usize) {
        for (d, len) in [(&mut self.d_outputs, outputs), (&mut self.d_values, values)] {
            d.clear();
            d.resize(len, 0.0);
        }
    }
}

/// Copies of a model that compute parts of an update at the same time.
pub trait Distributed {
    /// See [`add_gradients`].
    ///
    /// # Errors
    /// When the gradient of a part could not be computed, because it panicked, too; `gradient` then holds those of some parts.
    fn add_gradients(
        &mut self,
        parts: &Arc<dyn GradientParts>,
        gradient: &mut [f32],
        receive: &mut dyn FnMut(&LossSums),
    ) -> Result<(), PolicyError>;
}

/// Computes the sum of the gradients of all `parts` in place of what `gradient` (`[n_params]`) holds, in the order of the
/// parts, and gives the numbers about each to `receive`, in the same order. The bits are the same whether the model is
/// [`Distributed`] or not.
///
/// # Errors
/// When the gradient of a part could not be computed; `gradient` then holds those of some parts.
pub fn add_gradients(
    model: &mut dyn Model,
    parts: &Arc<dyn GradientParts>,
    gradient: &mut [f32],
    receive: &mut dyn FnMut(&LossSums),
) -> Result<(), PolicyError> {
    if let Some(distributed) = model.distributed() {
        return distributed.add_gradients(parts, gradient, receive);
    }
    gradient.fill(0.0);
    let mut scratch = PartScratch::default();
    let (count, learns) = (parts.count(), model.learns());
    let mut own = vec![0.0; if count > 1 { gradient.len() } else { 0 }];
    for part in 0..count {
        if count == 1 {
            receive(&parts.study(part, model, &mut scratch, gradient)?);
            continue;
        }
        own.fill(0.0);
        receive(&parts.study(part, model, &mut scratch, &mut own)?);
        add_learnt(gradient, &own, &learns);
    }
    Ok(())
}

/// Adds the gradient of a part where the model learns.
pub fn add_learnt(gradient: &mut [f32], own: &[f32], learns: &Range<usize>) {
    for (to, from) in gradient[learns.clone()].iter_mut().zip(&own[learns.clone()]) {
        *to += from;
    }
}

/// The error of a learner whose parts do not find in a model what they need.
pub fn lacking(what: &str) -> PolicyError {
    PolicyError::BadConfig { why: format!("this agent has no {what} to learn by gradients") }
}
