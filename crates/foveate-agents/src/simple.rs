//! Agents of one's own in a few lines.

use std::fmt;
use std::marker::PhantomData;

use foveate_core::{
    ActContext, Agent, Decision, Observation, Policy, PolicyAgent, PolicyError, Seed, TensorShape,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{MAX_ACTIONS, MAX_SENSORS, check_params, within};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Sees};

/// An agent that is a function of its weights and of the numbers that it sees.
///
/// An agent that needs more, such as a memory, a picture or an attention, implements [`Policy`].
///
/// ```
/// use foveate_agents::simple::SimplePolicy;
/// use foveate_agents::{AGENTS, AgentDescriptor};
///
/// /// One layer without biases.
/// struct Linear;
///
/// impl SimplePolicy for Linear {
///     fn weights(numbers: usize, actions: usize) -> usize {
///         numbers * actions
///     }
///     fn act(weights: &[f32], seen: &[f32], action: &mut [f64]) {
///         for (out, row) in action.iter_mut().zip(weights.chunks(seen.len())) {
///             *out = row.iter().zip(seen).map(|(w, x)| f64::from(w * x)).sum();
///         }
///     }
/// }
///
/// AGENTS.register(AgentDescriptor::simple::<Linear>("linear", "one layer"))?;
/// # Ok::<(), foveate_core::RegistryError>(())
/// ```
pub trait SimplePolicy: Send + Sync + 'static {
    /// The count of weights for a world that shows `numbers` numbers and takes `actions` numbers, or has as many choices.
    fn weights(numbers: usize, actions: usize) -> usize;

    /// Writes the action: numbers in the world's units, or a score for each choice, of which the largest is chosen.
    fn act(weights: &[f32], seen: &[f32], action: &mut [f64]);
}

/// The settings of a [`SimplePolicy`]: the shape of the world.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, bound = "")]
struct Config<P> {
    /// Numbers that the world shows.
    numbers: usize,
    /// Numbers or choices of an action.
    actions: usize,
    #[serde(skip)]
    policy: PhantomData<P>,
}

impl<P> Default for Config<P> {
    fn default() -> Self {
        Config { numbers: 1, actions: 1, policy: PhantomData }
    }
}

impl<P: SimplePolicy> AgentConfig for Config<P> {
    fn check(&self) -> Result<(), PolicyError> {
        within("numbers", self.numbers, MAX_SENSORS)?;
        within("actions", self.actions, MAX_ACTIONS)?;
        check_params(&self.tensors(), "take fewer")
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![TensorShape { name: "weight".into(), shape: vec![1, P::weights(self.numbers, self.actions)] }]
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        self.check()?;
        let Config { numbers, actions, .. } = *self;
        let weights = vec![0.0; P::weights(numbers, actions)];
        Ok(Box::new(PolicyAgent::new(Simple::<P> { numbers, actions, weights, policy: PhantomData })))
    }
}

/// The policy of a [`SimplePolicy`].
struct Simple<P> {
    numbers: usize,
    actions: usize,
    weights: Vec<f32>,
    policy: PhantomData<P>,
}

impl<P> Clone for Simple<P> {
    fn clone(&self) -> Self {
        Simple { weights: self.weights.clone(), ..*self }
    }
}

impl<P> fmt::Debug for Simple<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simple")
            .field("numbers", &self.numbers)
            .field("actions", &self.actions)
            .finish_non_exhaustive()
    }
}

impl<P: SimplePolicy> Policy for Simple<P> {
    /// The last action.
    type Memory = Vec<f64>;

    fn memory(&self) -> Vec<f64> {
        vec![0.0; self.actions]
    }

    fn reset(&self, memory: &mut Vec<f64>, _: Seed) {
        memory.fill(0.0);
    }

    fn act<'m>(
        &self,
        seen: Observation<'_>,
        memory: &'m mut Vec<f64>,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Some(numbers) = seen.numbers().filter(|numbers| numbers.len() == self.numbers) else {
            let wanted = format!("{} numbers", self.numbers);
            return Err(PolicyError::ObservationShape { wanted, given: seen.describe() });
        };
        P::act(&self.weights, numbers, memory);
        Ok(Decision::new(memory))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        Config::<P> { numbers: self.numbers, actions: self.actions, policy: PhantomData }.tensors()
    }

    fn params(&self) -> Vec<f32> {
        self.weights.clone()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.len() != self.weights.len() {
            let (wanted, given) = (self.weights.len(), flat.len());
            return Err(PolicyError::ParamCount { wanted, given, tensors: "weight".into() });
        }
        if let Some(index) = flat.iter().position(|weight| !weight.is_finite()) {
            return Err(PolicyError::ParamNotFinite { tensor: "weight".into(), index, value: flat[index] });
        }
        self.weights.copy_from_slice(flat);
        Ok(())
    }
}

impl AgentDescriptor {
    /// The descriptor of this agent.
    pub const fn simple<P: SimplePolicy>(name: &'static str, summary: &'static str) -> Self {
        AgentDescriptor {
            name,
            summary,
            sees: Sees::Numbers,
            read: descriptor::read::<Config<P>>,
            fit: |spec, _| json!({ "numbers": spec.observation.numbers(), "actions": spec.action.len() }),
            published: &[],
        }
    }
}
