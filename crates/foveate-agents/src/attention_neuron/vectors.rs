//! AttentionNeuron on numbers: every number is a sensor.
//!
//! Per step, with the observation o of N numbers and the agent's own last output a:
//!
//! 1. sensor i is a row of a shared LSTM, which gets `[o_i, a]`; its hidden state is the key `k_i`;
//! 2. the weight of sensor i for code m is `σ((Q W_q + b_q)_m · (k_i W_k + b_k) / s)`, with the fixed
//!    [`queries`](super::queries) Q;
//! 3. the message is tanh(w o): M numbers, whatever N is (the tanh is in the published code, not in the paper);
//! 4. layers with tanh turn the message into the action, which is the next step's a.

use foveate_core::{Agent, EnvSpec, PolicyError, TensorShape};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attention_neuron::Senses;
use crate::config::{MAX_HIDDEN, MAX_SENSORS, bad, check_actions, check_params, within};
use crate::controller::MAX_LAYERS;
use crate::registry::AgentConfig;

/// Hyper-parameters of an AttentionNeuron on numbers. The defaults are those of the published CartPole agent.
///
/// ```
/// use foveate_agents::attention_neuron::vectors::VectorConfig;
/// assert_eq!(VectorConfig::cartpole_pi().param_count(), 913);
/// assert_eq!(VectorConfig::ant_pi().param_count(), 2504);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VectorConfig {
    /// `"numbers"`.
    pub senses: Senses,
    /// Length of the message: M, the number of queries.
    pub codes: usize,
    /// Length of a query before its linear layer: columns of the fixed table.
    pub query_dim: usize,
    /// Length of a key before its linear layer: hidden units of the LSTM.
    pub key_dim: usize,
    /// Length of queries and keys after their linear layers.
    pub message_dim: usize,
    /// Whether these linear layers have biases.
    pub bias: bool,
    /// The divisor of queries × keys.
    pub scale: Divisor,
    /// What turns quotients into weights.
    pub activation: Activation,
    /// Whether the message goes through tanh.
    pub squash: bool,
    /// Units of each layer between the message and the action's layer; tanh after each.
    pub layers: Vec<usize>,
    /// Names of the sensors, in the order in which the world shows them; others are called `sensor 0`, `sensor 1`, ….
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensors: Vec<String>,
    /// `[low, high]` per action dimension: the actions for the network's outputs −1 and 1. Of choices one range for each.
    pub actions: Vec<[f64; 2]>,
}

/// The divisor of queries × keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Divisor {
    /// 1, as in the published CartPole agent.
    #[default]
    One,
    /// √`message_dim`, as in the published Ant agent.
    SqrtD,
}

/// What turns the quotients of a code into the weights of the sensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// tanh: each sensor by itself, −1 ..= 1.
    #[default]
    Tanh,
    /// The logistic function: each sensor by itself, 0 ..= 1.
    Sigmoid,
    /// Softmax over the sensors: the weights of a code sum to 1.
    Softmax,
}

impl Default for VectorConfig {
    fn default() -> Self {
        VectorConfig {
            senses: Senses::Numbers,
            codes: 16,
            query_dim: 8,
            key_dim: 8,
            message_dim: 32,
            bias: false,
            scale: Divisor::One,
            activation: Activation::Tanh,
            squash: true,
            layers: vec![],
            sensors: vec![],
            actions: vec![[-1.0, 1.0]],
        }
    }
}

impl VectorConfig {
    /// The settings of the published agent for CartPole.
    pub fn cartpole_pi() -> Self {
        VectorConfig::default()
    }

    /// The settings of the published agent for Ant.
    pub fn ant_pi() -> Self {
        VectorConfig {
            codes: 32,
            bias: true,
            scale: Divisor::SqrtD,
            layers: vec![32],
            actions: vec![[-1.0, 1.0]; 8],
            ..VectorConfig::default()
        }
    }

    /// Checks everything.
    ///
    /// # Errors
    /// When a value is out of bounds, or the agent would be unreasonably large.
    pub fn check(&self) -> Result<(), PolicyError> {
        for (name, value) in [
            ("codes", self.codes),
            ("query_dim", self.query_dim),
            ("key_dim", self.key_dim),
            ("message_dim", self.message_dim),
        ] {
            within(name, value, MAX_HIDDEN)?;
        }
        if self.layers.len() > MAX_LAYERS {
            return bad(format!(
                "layers names {} layers; at most {MAX_LAYERS} are possible",
                self.layers.len()
            ));
        }
        self.layers.iter().try_for_each(|&units| within("layers", units, MAX_HIDDEN))?;
        if self.sensors.len() > MAX_SENSORS {
            return bad(format!("sensors names {}; at most {MAX_SENSORS} are possible", self.sensors.len()));
        }
        check_actions(&self.actions)?;
        check_params(&self.tensors(), "lower codes, key_dim, message_dim or layers")
    }

    /// Name and shape of every parameter tensor, in the order of the flat vector.
    pub fn tensors(&self) -> Vec<TensorShape> {
        let mut all = vec![];
        let mut push = |name: &str, shape: Vec<usize>| all.push(TensorShape { name: name.into(), shape });
        let (gates, inputs) = (self.key_dim.saturating_mul(4), self.actions.len() + 1);
        push("lstm.bias_hh", vec![gates]);
        push("lstm.bias_ih", vec![gates]);
        push("lstm.weight_hh", vec![gates, self.key_dim]);
        push("lstm.weight_ih", vec![gates, inputs]);
        for (name, width) in [("query", self.query_dim), ("key", self.key_dim)] {
            if self.bias {
                push(&format!("{name}.bias"), vec![self.message_dim]);
            }
            push(&format!("{name}.weight"), vec![self.message_dim, width]);
        }
        let mut width = self.codes;
        for (i, &units) in self.layers.iter().enumerate() {
            push(&format!("hidden{i}.bias"), vec![units]);
            push(&format!("hidden{i}.weight"), vec![units, width]);
            width = units;
        }
        push("output.bias", vec![self.actions.len()]);
        push("output.weight", vec![self.actions.len(), width]);
        all
    }

    /// How many parameters the agent has.
    pub fn param_count(&self) -> usize {
        self.tensors().iter().map(TensorShape::len).sum()
    }
}

impl AgentConfig for VectorConfig {
    fn check(&self) -> Result<(), PolicyError> {
        VectorConfig::check(self)
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        VectorConfig::tensors(self)
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        bad("senses = \"numbers\" is not built yet; choose agent controller")
    }
}

/// The settings for a world that shows numbers.
pub(super) fn fit(spec: &EnvSpec, _: &[[f64; 2]]) -> Value {
    json!({ "senses": "numbers", "actions": spec.action.bounds() })
}
