//! AttentionNeuron on numbers: every number is a sensor.
//!
//! Per step, with the observation o of N numbers and the agent's own last output a:
//!
//! 1. sensor i is a row of a shared LSTM, which gets `[o_i, a]`; its hidden state is the key `k_i`;
//! 2. the weight of sensor i for code m is `σ((Q W_q + b_q)_m · (k_i W_k + b_k) / s)`, with the fixed
//!    [`queries`] Q;
//! 3. the message is tanh(w o): M numbers, whatever N is (the tanh is in the published code, not in the paper);
//! 4. layers with tanh turn the message into the action, which is the next step's a.

use foveate_core::{
    ActContext, Agent, Attention, Decision, EnvSpec, Model, Observation, Opened, Policy, PolicyAgent,
    PolicyError, Seed, StudyInputs, TensorShape, Tokens,
};
use foveate_kernels::{Level, sensory};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attention_neuron::student::VectorStudent;
use crate::attention_neuron::{Senses, queries, vector_graph};
use crate::config::{
    MAX_HIDDEN, MAX_PARAMS, MAX_SENSORS, Scale, bad, check_actions, check_params, from_units, to_units,
    within,
};
use crate::controller::{Controller, ControllerConfig, ControllerState, MAX_LAYERS};
use crate::descriptor::AgentConfig;
use crate::onnx::OnnxModel;
use crate::params::{Params, forward_params};
use crate::torch::TorchModule;

/// Hyper-parameters of an AttentionNeuron on numbers. The defaults are those of the published CartPole agent.
///
/// ```
/// use foveate_agents::AgentConfig;
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
    /// True if these linear layers have biases.
    pub bias: bool,
    /// The divisor of queries × keys; `sqrt_d` is the root of `message_dim`, `sqrt_d_in` that of `key_dim`.
    pub scale: Scale,
    /// What turns quotients into weights.
    pub activation: Activation,
    /// True if the message goes through tanh.
    pub squash: bool,
    /// Units of each layer between the message and the action's layer; tanh after each.
    pub layers: Vec<usize>,
    /// Names of the sensors, in the order in which the world shows them; others are called `sensor 0`, `sensor 1`, ….
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensors: Vec<String>,
    /// `[low, high]` per action dimension: the actions for the network's outputs −1 and 1. Of choices one range for each.
    pub actions: Vec<[f64; 2]>,
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
            scale: Scale::One,
            activation: Activation::Tanh,
            squash: true,
            layers: vec![],
            sensors: vec![],
            actions: vec![[-1.0, 1.0]],
        }
    }
}

impl VectorConfig {
    /// The settings of the published agent for CartPole, whose sensors are position, angle and their velocities.
    pub fn cartpole_pi() -> Self {
        let sensors = ["x", "x'", "cosθ", "sinθ", "θ'"].map(String::from).to_vec();
        VectorConfig { sensors, ..VectorConfig::default() }
    }

    /// The settings of the published agent for Ant, whose sensors are the body's place and motion, the angle and the
    /// speed of each joint, and the contacts of its feet.
    pub fn ant_pi() -> Self {
        let body = ["z", "sin target", "cos target", "vx", "vy", "vz", "roll", "pitch"].map(String::from);
        let joints = (0..8).flat_map(|i| [format!("joint {i}"), format!("joint {i}'")]);
        let feet = (0..4).map(|i| format!("foot {i}"));
        VectorConfig {
            sensors: body.into_iter().chain(joints).chain(feet).collect(),
            codes: 32,
            bias: true,
            scale: Scale::SqrtD,
            layers: vec![32],
            actions: vec![[-1.0, 1.0]; 8],
            ..VectorConfig::default()
        }
    }

    /// What turns the message into the action.
    fn controller(&self) -> ControllerConfig {
        if self.layers.is_empty() {
            ControllerConfig::Linear {}
        } else {
            ControllerConfig::Mlp { hidden: self.layers.clone() }
        }
    }

    /// The sizes of its neurons.
    pub(super) fn sizes(&self) -> sensory::SensorySizes {
        sensory::SensorySizes {
            shared: self.actions.len(),
            hidden: self.key_dim,
            codes: self.codes,
            activation: match self.activation {
                Activation::Tanh => sensory::Activation::Tanh,
                Activation::Sigmoid => sensory::Activation::Sigmoid,
                Activation::Softmax => sensory::Activation::Softmax,
            },
            squash: self.squash,
        }
    }
}

impl AgentConfig for VectorConfig {
    fn check(&self) -> Result<(), PolicyError> {
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
        check_params(&self.tensors(), "lower codes, key_dim, message_dim or layers")?;
        // The table of queries is no parameter, but as large as one.
        let table = self.codes.saturating_mul(self.query_dim.max(self.key_dim));
        if table > MAX_PARAMS {
            return bad(format!(
                "codes = {} times query_dim or key_dim is {table}; at most {MAX_PARAMS} are possible, so lower codes",
                self.codes
            ));
        }
        Ok(())
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
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
        all.extend(self.controller().tensors("", self.codes, self.actions.len()));
        all
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(VectorAgent::new(self.clone())?)))
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        Ok(Some(Box::new(VectorStudent::new(self.clone())?)))
    }

    fn onnx(&self, params: &[f32], spec: &EnvSpec) -> Result<Option<OnnxModel>, PolicyError> {
        vector_graph::model(self, params, spec).map(Some)
    }

    fn torch(&self) -> Result<Option<TorchModule>, PolicyError> {
        Ok(Some(super::module()))
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::attention_neuron::vectors::{VectorAgent, VectorConfig};
/// use foveate_core::{ActContext, Observation, Policy};
///
/// let agent = VectorAgent::new(VectorConfig::cartpole_pi())?;
/// let mut memory = agent.memory();
/// // Any number of sensors; it stays the same until the next episode.
/// let decision = agent.act(Observation::Vector(&[0.1, 0.2, 0.3]), &mut memory, &mut ActContext::default())?;
/// assert_eq!(decision.action, [0.0]);
/// let attention = decision.attention.expect("it attends to its sensors");
/// assert_eq!((attention.queries(), attention.tokens().len()), (16, 3));
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct VectorAgent {
    config: VectorConfig,
    level: Level,
    params: Params,
    /// `[codes, query_dim]`
    queries: Vec<f32>,
    scores: Scores,
    neurons: sensory::Neurons,
    controller: Controller,
}

/// The linear maps from a key to the scores of the codes.
#[derive(Debug, Clone)]
pub(super) struct Scores {
    /// `[codes, key_dim]`
    pub(super) weight: Vec<f32>,
    /// `[codes]`
    pub(super) bias: Vec<f32>,
    /// `[message_dim]`: a query after its linear layer.
    query: Vec<f64>,
}

impl Scores {
    pub(super) fn new(config: &VectorConfig) -> Self {
        Scores {
            weight: vec![0.0; config.codes * config.key_dim],
            bias: vec![0.0; config.codes],
            query: vec![0.0; config.message_dim],
        }
    }

    /// Makes one map of both linear layers of the attention, which is possible because queries are fixed; sums are in
    /// double precision. Calls `projected` with each code and its query after the linear layer. Does not allocate.
    pub(super) fn set(
        &mut self,
        config: &VectorConfig,
        params: &Params,
        queries: &[f32],
        mut projected: impl FnMut(usize, &[f64]),
    ) {
        let &VectorConfig { query_dim, key_dim, message_dim, .. } = config;
        let Scores { weight, bias, query } = self;
        let (of_query, query_bias) = (params.get("query.weight"), params.get("query.bias"));
        let (of_key, key_bias) = (params.get("key.weight"), params.get("key.bias"));
        let divisor = config.scale.divisor(key_dim, message_dim);
        let rows = weight.chunks_exact_mut(key_dim).zip(bias);
        for (code, ((weight, bias), raw)) in rows.zip(queries.chunks_exact(query_dim)).enumerate() {
            for (d, query) in query.iter_mut().enumerate() {
                let row = &of_query[d * query_dim..(d + 1) * query_dim];
                let dot: f64 = row.iter().zip(raw).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
                *query = dot + query_bias.get(d).map_or(0.0, |&b| f64::from(b));
            }
            for (k, weight) in weight.iter_mut().enumerate() {
                let column = of_key[k..].iter().step_by(key_dim);
                let dot: f64 = query.iter().zip(column).map(|(q, &w)| q * f64::from(w)).sum();
                *weight = (dot / divisor) as f32;
            }
            let dot: f64 = query.iter().zip(key_bias).map(|(q, &b)| q * f64::from(b)).sum();
            *bias = (dot / divisor) as f32;
            projected(code, query);
        }
    }
}

/// The agent's state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct VectorMemory {
    /// True if the number of sensors of this episode is known.
    begun: bool,
    senses: sensory::Senses,
    controller: ControllerState,
    /// One for each sensor.
    names: Vec<String>,
    raw: Vec<f32>,
    action: Vec<f64>,
    /// The last observation, and the output of the step before it.
    told: Vec<f32>,
}

impl VectorMemory {
    /// The last message, `[codes]`.
    pub fn message(&self) -> &[f32] {
        self.senses.message()
    }

    /// The last action as the network gave it, in −1 ..= 1 per dimension.
    pub fn raw(&self) -> &[f32] {
        &self.raw
    }
}

impl VectorAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: VectorConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let params = Params::zeros(config.tensors());
        let VectorConfig { codes, query_dim, .. } = config;
        let mut agent = VectorAgent {
            level: Level::best(),
            queries: queries(codes, query_dim),
            scores: Scores::new(&config),
            neurons: sensory::Neurons::new(config.sizes()),
            controller: Controller::new(&config.controller(), "", codes, config.actions.len(), &params),
            params,
            config,
        };
        agent.pack();
        Ok(agent)
    }

    /// The same agent on another instruction set, which gives the same decisions to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Its configuration.
    pub const fn config(&self) -> &VectorConfig {
        &self.config
    }

    /// Converts the parameters to the layout that the kernels use. Does not allocate.
    fn pack(&mut self) {
        let VectorAgent { config, params, queries, scores, .. } = self;
        scores.set(config, params, queries, |_, _| {});
        self.neurons.set(params.lstm(), &scores.weight, &scores.bias);
        self.controller.set(params);
    }

    /// Starts the episode with as many sensors as it shows at first.
    fn begin(&self, sensors: usize, memory: &mut VectorMemory) {
        memory.begun = true;
        memory.senses.begin(sensors);
        memory.names.truncate(sensors);
        for i in memory.names.len()..sensors {
            let name = self.config.sensors.get(i).cloned();
            memory.names.push(name.unwrap_or_else(|| format!("sensor {i}")));
        }
    }

    /// The numbers that are seen; remembers them, and begins the episode with as many sensors as it shows at first.
    fn sense<'o>(
        &self,
        observation: Observation<'o>,
        memory: &mut VectorMemory,
    ) -> Result<&'o [f32], PolicyError> {
        let numbers = observation.numbers().unwrap_or_default();
        let fits = if memory.begun {
            numbers.len() == memory.senses.sensors()
        } else {
            (1..=MAX_SENSORS).contains(&numbers.len())
        };
        if !fits {
            let wanted = if memory.begun {
                format!("the {} numbers with which this episode began", memory.senses.sensors())
            } else {
                format!("1 to {MAX_SENSORS} numbers")
            };
            return Err(PolicyError::ObservationShape { wanted, given: observation.describe() });
        }
        if let Some(index) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(PolicyError::SensorNotFinite { index, value: numbers[index] });
        }
        if !memory.begun {
            self.begin(numbers.len(), memory);
        }
        memory.told.clear();
        memory.told.extend_from_slice(numbers);
        memory.told.extend_from_slice(&memory.raw);
        Ok(numbers)
    }

    /// From the message on.
    fn decide<'m>(&self, m: &'m mut VectorMemory) -> Result<Decision<'m>, PolicyError> {
        self.controller.step(self.level, m.senses.message(), &mut m.controller, &mut m.raw);
        to_units(&m.raw, &self.config.actions, &mut m.action);
        let tokens = Tokens::Named(&m.names);
        let attention = Attention::soft(tokens, 1, self.config.codes, m.senses.weights())?;
        Ok(Decision::new(&m.action).with_attention(attention))
    }
}

impl Policy for VectorAgent {
    type Memory = VectorMemory;

    fn memory(&self) -> VectorMemory {
        VectorMemory {
            begun: false,
            senses: self.neurons.senses(),
            controller: Controller::state(&self.config.controller()),
            names: vec![],
            raw: vec![0.0; self.config.actions.len()],
            action: vec![0.0; self.config.actions.len()],
            told: vec![],
        }
    }

    fn reset(&self, memory: &mut VectorMemory, _: Seed) {
        memory.begun = false;
        memory.raw.fill(0.0);
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut VectorMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let numbers = self.sense(observation, memory)?;
        let m = memory;
        self.neurons.step(self.level, numbers, &m.raw, &mut m.senses);
        self.decide(m)
    }

    /// With softmax the weights are not divided by their sum: the message is.
    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut VectorMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        let numbers = self.sense(observation, memory)?;
        self.neurons.step(self.level, numbers, &memory.raw, &mut memory.senses);
        opened.units = numbers.len();
        opened.hard = false;
        opened.tokens.clear();
        opened.tokens.extend(0..numbers.len() as u32);
        opened.readers = self.config.codes;
        opened.means = self.neurons.means();
        opened.weights.resize(self.config.codes * numbers.len(), 0.0);
        self.neurons.write_weights(self.level, &memory.senses, &mut opened.weights);
        opened.values.clear();
        opened.values.extend_from_slice(numbers);
        opened.terms.clear();
        Ok(true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut VectorMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let m = memory;
        let sensors = m.senses.sensors();
        let wanted = [self.config.codes * sensors, sensors];
        if [opened.weights.len(), opened.values.len()] != wanted {
            let why = format!(
                "{} weights and {} values, where the agent takes {} and {}",
                opened.weights.len(),
                opened.values.len(),
                wanted[0],
                wanted[1]
            );
            return Err(PolicyError::BadAttention { why });
        }
        self.neurons.give(self.level, &opened.weights, &opened.values, &mut m.senses);
        self.decide(m)
    }

    /// The sensors answer what was really done, which is how they are told apart.
    fn acted(&self, action: &[f64], memory: &mut VectorMemory) {
        // The agent's own action stays as the network gave it, to the bit.
        if action == memory.action {
            return;
        }
        for ((raw, &action), &bounds) in memory.raw.iter_mut().zip(action).zip(&self.config.actions) {
            *raw = from_units(action, bounds);
        }
    }

    /// The message.
    fn inputs<'m>(&self, memory: &'m VectorMemory) -> &'m [f32] {
        memory.message()
    }

    /// The sensors' numbers, and the agent's output of the step before.
    fn study_inputs<'m>(&self, memory: &'m VectorMemory) -> Result<StudyInputs<'m>, PolicyError> {
        let (named, shown) = (self.config.sensors.len(), memory.senses.sensors());
        if named != shown {
            return bad(format!(
                "the world shows {shown} numbers and the agent's sensors names {named}; an agent that learns from an expert \
                 has a name for each"
            ));
        }
        Ok(StudyInputs { numbers: &memory.told, picture: &[] })
    }

    forward_params!(|agent| agent.pack());
}

/// The settings for a world that shows numbers.
pub(super) fn fit(spec: &EnvSpec, _: &[[f64; 2]]) -> Value {
    json!({ "senses": "numbers", "actions": spec.action.bounds() })
}
