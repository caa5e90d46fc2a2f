//! A plain network that draws its actions from a distribution and estimates values, for policy gradients (PPO, V-trace) and
//! imitation.
//!
//! It acts on numbers, a grid of cells or a picture, without attention. Convolutions with relu, if there are any, come first
//! and are shared. Without memory it has two networks of tanh layers, one for the actions and one for the value; with an LSTM
//! both share the layers and the LSTM. A choice is drawn by the softmax of
//! its logits. Other actions are independent normal numbers, whose standard deviations are parameters that do not depend on
//! the observation. When it does not explore, it takes the most likely choice, or the means, within the range of the
//! actions.

mod student;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use foveate_core::{
    ActContext, ActMode, ActionDistribution, Agent, Decision, Model, Observation, ObservationSpace,
    PixelShape, Policy, PolicyAgent, PolicyError, Seed, SparseRows, StudyInputs, TensorShape,
};
use foveate_kernels::Level;
use foveate_kernels::rows;
use foveate_learn::{
    Activations, Add, Builder, Conv, Function, Linear, LstmGates, Network, Node, Part, Prepared, StateNodes,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{ConvolutionLayer, MAX_HIDDEN, MAX_SENSORS, bad, check_actions, check_params, within};
use crate::controller_agent::{MOST, scale};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Init, Sees};
use crate::params::{Params, forward_params};
use crate::probabilities::probabilities;

pub use student::ActorCriticStudent;

/// Most layers before the heads.
const MAX_LAYERS: usize = 16;
/// Smallest side of a picture that gets convolutions by default: 8 pixels every 4, then 4 every 2.
const SMALLEST: usize = 20;
/// Most numbers of a grid or a picture, and most outputs of a convolution.
const MAX_VIEW: usize = 1 << 20;
/// Fewest cells of a grid whose zeros are left out.
const MANY: usize = 256;
/// What the first weights of the policy's last layer are multiplied by, so that all actions are about equally likely at first.
const CAREFUL: f32 = 0.01;

/// Settings of the agent. The defaults suit a world of four numbers and two choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActorCriticConfig {
    /// `[low, high]` per number that is seen: what goes to the network's −1 and 1. Empty for a grid or a picture.
    pub observation: Vec<[f64; 2]>,
    /// Rows, columns and channels of a grid or a picture, those of all pictures of a stack; zeros for numbers.
    pub view: [usize; 3],
    /// What the codes of a grid, or the bytes of a picture, are divided by, above 0.
    pub divisor: f64,
    /// Convolutions of the view.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub convolutions: Vec<ConvolutionLayer>,
    /// Units of each tanh layer.
    pub hidden: Vec<usize>,
    /// Units of the LSTM after them, 0 for none.
    pub lstm: usize,
    /// True if the actions are choices.
    pub discrete: bool,
    /// `[low, high]` per action dimension: the actions for the network's outputs −1 and 1. Of choices one range for each,
    /// which has no effect.
    pub actions: Vec<[f64; 2]>,
    /// Natural logarithm of the standard deviations at first, as a share of half the range of the action.
    pub log_std: f64,
}

impl Default for ActorCriticConfig {
    fn default() -> Self {
        ActorCriticConfig {
            observation: vec![[-1.0, 1.0]; 4],
            view: [0; 3],
            divisor: 10.0,
            convolutions: vec![],
            hidden: vec![64, 64],
            lstm: 0,
            discrete: true,
            actions: vec![[0.0, 1.0]; 2],
            log_std: -0.5,
        }
    }
}

impl ActorCriticConfig {
    /// Numbers that the network gets.
    fn inputs(&self) -> usize {
        self.observation.len().saturating_add(self.cells())
    }

    /// Bytes of a grid or a picture, 0 for numbers.
    fn cells(&self) -> usize {
        if !self.observation.is_empty() {
            return 0;
        }
        self.view.iter().fold(1_usize, |product, &n| product.saturating_mul(n))
    }

    fn distribution(&self) -> ActionDistribution {
        let n = self.actions.len();
        if self.discrete { ActionDistribution::Choices(n) } else { ActionDistribution::Normal(n) }
    }

    /// The network of valid settings.
    fn build(&self) -> Result<Nodes, PolicyError> {
        let (inputs, outputs) = (self.inputs(), self.actions.len());
        if !(1..=MAX_VIEW).contains(&inputs) || self.observation.len() > MAX_SENSORS {
            return bad(format!(
                "observation has {} ranges and view is {:?}, {inputs} numbers; give one [low, high] for each number that the \
                 world shows, 1 to {MAX_SENSORS}, or rows, columns and channels of its grid or picture, 1 to {MAX_VIEW}",
                self.observation.len(),
                self.view
            ));
        }
        if !self.observation.is_empty() && self.view != [0; 3] {
            return bad(format!(
                "observation and view = {:?}; give one of them, the other is empty",
                self.view
            ));
        }
        if let Some(i) = self.observation.iter().position(|&range| scale(range).is_none()) {
            let [low, high] = self.observation[i];
            return bad(format!("observation[{i}] is [{low}, {high}]; give a finite low and a larger high"));
        }
        if !(self.divisor > 0.0 && self.divisor.is_finite()) {
            return bad(format!("divisor = {}; it must be above 0", self.divisor));
        }
        if !(-20.0..=20.0).contains(&self.log_std) {
            return bad(format!("log_std = {}; choose from -20 to 20", self.log_std));
        }
        within("number of hidden layers, hidden,", self.hidden.len(), MAX_LAYERS)?;
        if self.convolutions.len() > MAX_LAYERS {
            return bad(format!(
                "convolutions names {}; at most {MAX_LAYERS} are possible",
                self.convolutions.len()
            ));
        }
        let [rows, columns, _] = self.view;
        ConvolutionLayer::check_all(&self.convolutions, "convolutions", [rows, columns])?;
        for &units in self.hidden.iter().chain((self.lstm > 0).then_some(&self.lstm)) {
            within("number of units", units, MAX_HIDDEN)?;
        }
        check_actions(&self.actions)?;
        let mut net = Builder::default();
        let input = if self.convolutions.is_empty() {
            net.input("observation", [inputs])
        } else {
            let mut x = net.input("observation", self.view);
            for (i, &ConvolutionLayer { filters, size, stride }) in self.convolutions.iter().enumerate() {
                x = net.layer(&format!("conv{}", i + 1), Conv::new(filters, size).with_stride(stride), [x]);
                let outputs = net.shape(x).iter().fold(1_usize, |product, &n| product.saturating_mul(n));
                if outputs > MAX_VIEW {
                    return bad(format!(
                        "convolutions[{i}] has {outputs} outputs, at most {MAX_VIEW} are possible; lower filters, or raise stride"
                    ));
                }
                x = net.map(Function::Relu, x);
            }
            let numbers = net.shape(x).iter().product::<usize>();
            net.reshape(x, [numbers])
        };
        let trunk = |net: &mut Builder, name: &str| {
            let mut x = input;
            for (i, &units) in self.hidden.iter().enumerate() {
                x = net.layer(&format!("{name}{}", i + 1), Linear::new(units), [x]);
                x = net.map(Function::Tanh, x);
            }
            x
        };
        let mut states = vec![];
        let [of_policy, of_value] = if self.lstm > 0 {
            let (x, units) = (trunk(&mut net, "hidden"), self.lstm);
            let (h, c) = (net.state("h", [units]), net.state("c", [units]));
            let from_x = net.layer("lstm_input", Linear::new(4 * units), [x]);
            let from_h = net.layer("lstm_state", Linear::new(4 * units), [h]);
            let sums = net.then(Add, [from_x, from_h]);
            let both = net.then(LstmGates::default(), [sums, c]);
            let next_h = net.then(Part { begin: 0, len: units }, [both]);
            let next_c = net.then(Part { begin: units, len: units }, [both]);
            states = vec![StateNodes { input: h, output: next_h }, StateNodes { input: c, output: next_c }];
            [next_h; 2]
        } else {
            [trunk(&mut net, "policy_hidden"), trunk(&mut net, "value_hidden")]
        };
        let policy = net.layer("policy", Linear::new(outputs), [of_policy]);
        let value = net.layer("value", Linear::new(1), [of_value]);
        let read: Vec<Node> =
            [policy, value].into_iter().chain(states.iter().map(|state| state.output)).collect();
        let net = net.build(&read).or_else(|error| bad(error.to_string()))?;
        let mut tensors = net.tensors().to_vec();
        if !self.discrete {
            tensors.push(TensorShape { name: "log_std".into(), shape: vec![outputs] });
        }
        check_params(&tensors, "lower hidden or lstm")?;
        Ok(Nodes { net, tensors, policy, value, states })
    }
}

/// A network and what is read from it.
#[derive(Debug)]
struct Nodes {
    net: Network,
    /// Those of the network, then `log_std` if the actions are no choices.
    tensors: Vec<TensorShape>,
    policy: Node,
    value: Node,
    /// h and c of the LSTM.
    states: Vec<StateNodes>,
}

/// Reads observations, and describes distributions.
#[derive(Debug, Clone)]
struct Eyes {
    config: ActorCriticConfig,
    /// Middle and factor of every number; empty for a grid.
    scales: Vec<(f32, f32)>,
}

impl Eyes {
    fn new(config: ActorCriticConfig) -> Self {
        Eyes { scales: config.observation.iter().filter_map(|&range| scale(range)).collect(), config }
    }

    /// The bytes, channels last, of which [`Eyes::read`] made the network's inputs for a grid or a picture.
    fn bytes(&self, inputs: &[f32]) -> Vec<u8> {
        let divisor = self.config.divisor as f32;
        inputs[..self.config.cells()].iter().map(|input| (input * divisor + 0.5) as u8).collect()
    }

    /// Writes the network's inputs for these bytes; those of a grid to within rounding.
    fn scale_bytes(&self, bytes: &[u8], to: &mut [f32]) {
        let factor = 1.0 / self.config.divisor as f32;
        to.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = f32::from(byte) * factor);
    }

    /// Writes the network's inputs for `observation`.
    fn read(&self, observation: Observation<'_>, to: &mut [f32]) -> Result<(), PolicyError> {
        let [rows, columns, channels] = self.config.view;
        let divisor = self.config.divisor as f32;
        if let (true, Observation::Grid(grid)) = (self.scales.is_empty(), observation)
            && [grid.rows(), grid.columns(), grid.channels()] == self.config.view
        {
            to.iter_mut().zip(grid.codes()).for_each(|(to, &code)| *to = f32::from(code) / divisor);
            return Ok(());
        }
        if let (true, Some(pixels)) = (self.scales.is_empty(), observation.image()) {
            let PixelShape { frames, height, width, channels: colours } = pixels.shape();
            if [height, width, frames * colours] == self.config.view {
                // Pictures of a stack become channels, oldest first.
                let (factor, bytes) = (1.0 / divisor, pixels.bytes());
                let (size, channels) = (height * width, frames * colours);
                if let (4, 1) = (frames, colours) {
                    let (a, rest) = bytes.split_at(size);
                    let (b, rest) = rest.split_at(size);
                    let (c, d) = rest.split_at(size);
                    let places = to.as_chunks_mut::<4>().0.iter_mut().zip(a).zip(b).zip(c).zip(d);
                    for ((((to, a), b), c), d) in places {
                        *to = [*a, *b, *c, *d].map(|byte| f32::from(byte) * factor);
                    }
                    return Ok(());
                }
                for (frame, bytes) in bytes.chunks_exact(size * colours).enumerate() {
                    let places = to.chunks_exact_mut(channels).zip(bytes.chunks_exact(colours));
                    for (to, bytes) in places {
                        for (to, &byte) in to[frame * colours..].iter_mut().zip(bytes) {
                            *to = f32::from(byte) * factor;
                        }
                    }
                }
                return Ok(());
            }
        }
        let given = observation.numbers().unwrap_or_default();
        if self.scales.is_empty() || given.len() != self.scales.len() {
            let wanted = if self.scales.is_empty() {
                format!("{rows}x{columns} cells or pixels with {channels} numbers each")
            } else {
                format!("{} numbers", self.scales.len())
            };
            return Err(PolicyError::ObservationShape { wanted, given: observation.describe() });
        }
        for (index, ((to, &x), (middle, factor))) in to.iter_mut().zip(given).zip(&self.scales).enumerate() {
            if !x.is_finite() {
                return Err(PolicyError::SensorNotFinite { index, value: x });
            }
            *to = ((x - middle) * factor).clamp(-MOST, MOST);
        }
        Ok(())
    }

    /// The bytes of a grid that is shown to a network that reads it without its zeros.
    fn sparse<'o>(&self, observation: Observation<'o>) -> Option<&'o [u8]> {
        let Observation::Grid(grid) = observation else { return None };
        let fits = [grid.rows(), grid.columns(), grid.channels()] == self.config.view;
        let plain = self.scales.is_empty() && self.config.convolutions.is_empty() && self.config.lstm == 0;
        (fits && plain && self.config.cells() >= MANY).then(|| grid.codes())
    }

    /// Half the range of each action, and its middle.
    fn ranges(&self) -> impl Iterator<Item = (f32, f32)> {
        self.config
            .actions
            .iter()
            .map(|[low, high]| (((high - low) / 2.0) as f32, f64::midpoint(*low, *high) as f32))
    }

    /// Writes the distribution, as [`ActionDistribution`] says, from the network's numbers and the parameters `log_std`.
    fn describe(&self, policy: &[f32], log_std: &[f32], to: &mut [f32]) {
        if self.config.discrete {
            to.copy_from_slice(policy);
            return;
        }
        let (means, deviations) = to.split_at_mut(policy.len());
        for (i, (half, middle)) in self.ranges().enumerate() {
            means[i] = policy[i] * half + middle;
            deviations[i] = log_std[i] + half.ln();
        }
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::actor_critic::{ActorCriticAgent, ActorCriticConfig};
/// use foveate_core::{ActContext, Observation, Policy};
///
/// let agent = ActorCriticAgent::new(ActorCriticConfig::default())?;
/// let mut memory = agent.memory();
/// let decision = agent.act(Observation::Vector(&[0.1, 0.2, 0.3, 0.4]), &mut memory, &mut ActContext::default())?;
/// assert_eq!(decision.action, [0.5, 0.5], "zero weights: both choices are equally likely");
/// assert_eq!(decision.value, Some(0.0));
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ActorCriticAgent {
    eyes: Eyes,
    level: Level,
    nodes: Arc<Nodes>,
    params: Params,
    prepared: Arc<Prepared>,
}

/// The agent's state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct ActorCriticMemory {
    input: Vec<f32>,
    /// The input without its zeros, in place of `input`; empty if that is read.
    row: SparseRows,
    /// The bytes of a grid or a picture, made when a demonstration asks for them.
    bytes: OnceLock<Vec<u8>>,
    /// h and c of the LSTM; empty without one.
    h: Vec<f32>,
    c: Vec<f32>,
    acts: Activations,
    /// `[outputs]`: the distribution.
    outputs: Vec<f32>,
    action: Vec<f64>,
}

impl ActorCriticAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: ActorCriticConfig) -> Result<Self, PolicyError> {
        let nodes = Arc::new(config.build()?);
        let mut agent = ActorCriticAgent {
            eyes: Eyes::new(config),
            level: Level::best(),
            params: Params::zeros(nodes.tensors.clone()),
            prepared: Arc::default(),
            nodes,
        };
        agent.prepare();
        Ok(agent)
    }

    /// Lays the weights out for decisions, after they changed.
    fn prepare(&mut self) {
        let net = &self.nodes.net;
        self.prepared = Arc::new(net.prepare(self.level, &self.params.flat()[..net.params()]));
    }

    /// The same agent on another instruction set, which gives the same decisions to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

impl Policy for ActorCriticAgent {
    type Memory = ActorCriticMemory;

    fn memory(&self) -> ActorCriticMemory {
        let config = &self.eyes.config;
        ActorCriticMemory {
            input: vec![0.0; config.inputs()],
            row: SparseRows::default(),
            bytes: OnceLock::new(),
            h: vec![0.0; config.lstm],
            c: vec![0.0; config.lstm],
            acts: self.nodes.net.activations(1),
            outputs: vec![0.0; config.distribution().outputs()],
            action: vec![0.0; config.actions.len()],
        }
    }

    fn reset(&self, memory: &mut ActorCriticMemory, _: Seed) {
        memory.h.fill(0.0);
        memory.c.fill(0.0);
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut ActorCriticMemory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let ActorCriticMemory { input, row, bytes, h, c, acts, outputs, action } = memory;
        let Nodes { net, policy, value, states, .. } = &*self.nodes;
        row.clear(input.len());
        if let Some(cells) = self.eyes.sparse(observation) {
            rows::append_bytes(self.level, row, cells, self.eyes.config.divisor as f32);
        } else {
            self.eyes.read(observation, input)?;
        }
        bytes.take();
        let (flat, log_std) = self.params.flat().split_at(net.params());
        let weights = (flat, &*self.prepared);
        match &states[..] {
            _ if !row.is_empty() => net.forward_rows(self.level, weights, row, &[0], acts),
            [of_h, of_c] => {
                net.forward(self.level, weights, &[input, h, c], 1, acts);
                h.copy_from_slice(acts.get(of_h.output));
                c.copy_from_slice(acts.get(of_c.output));
            }
            _ => net.forward(self.level, weights, &[input], 1, acts),
        }
        self.eyes.describe(acts.get(*policy), log_std, outputs);
        let explores = matches!(context.mode, ActMode::Explore { .. });
        let value = Some(acts.get(*value)[0]);
        if self.eyes.config.discrete {
            probabilities(outputs, action);
            if explores {
                let drawn = context.rng.weighted(action);
                action.fill(0.0);
                action[drawn] = 1.0;
            }
            return Ok(Decision { logits: Some(outputs), value, ..Decision::new(action) });
        }
        let (means, deviations) = outputs.split_at(action.len());
        for (i, ([low, high], action)) in self.eyes.config.actions.iter().zip(&mut *action).enumerate() {
            let mean = f64::from(means[i]);
            *action = if explores {
                mean + f64::from(deviations[i]).exp() * context.rng.normal()
            } else {
                mean.clamp(*low, *high)
            };
        }
        Ok(Decision { value, ..Decision::new(action) })
    }

    fn study_inputs<'m>(&self, memory: &'m ActorCriticMemory) -> Result<StudyInputs<'m>, PolicyError> {
        let ActorCriticMemory { input, row, bytes, .. } = memory;
        if self.eyes.config.cells() == 0 {
            return Ok(StudyInputs { numbers: input, picture: &[] });
        }
        let made = || {
            if row.is_empty() {
                return self.eyes.bytes(input);
            }
            let mut cells = vec![0.0; input.len()];
            row.write(0, &mut cells);
            self.eyes.bytes(&cells)
        };
        Ok(StudyInputs { numbers: &[], picture: bytes.get_or_init(made) })
    }

    fn recurrent_state(&self, memory: &ActorCriticMemory, state: &mut Vec<f32>) {
        state.extend_from_slice(&memory.h);
        state.extend_from_slice(&memory.c);
    }

    forward_params!(|agent| agent.prepare());
}

impl AgentConfig for ActorCriticConfig {
    fn check(&self) -> Result<(), PolicyError> {
        self.build().map(drop)
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.build().map_or_else(|_| vec![], |nodes| nodes.tensors)
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(ActorCriticAgent::new(self.clone())?)))
    }

    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        let Ok(nodes) = self.build() else { return vec![0.0; self.param_count()] };
        let mut params = match init {
            Init::Torch => nodes.net.initial(seed),
            Init::He => nodes.net.initial_he(seed),
            Init::Zeros => return vec![0.0; self.param_count()],
        };
        params.resize(nodes.tensors.iter().map(TensorShape::len).sum(), self.log_std as f32);
        let mut begin = 0;
        for tensor in &nodes.tensors {
            if ["policy.weight", "policy.bias"].contains(&&*tensor.name) {
                params[begin..begin + tensor.len()].iter_mut().for_each(|x| *x *= CAREFUL);
            }
            begin += tensor.len();
        }
        params
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        Ok(Some(Box::new(ActorCriticStudent::new(self)?)))
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "actor-critic",
    summary: "draws its actions and estimates values with a plain network, or an LSTM; learns by policy gradients, or from an expert",
    sees: Sees::Anything,
    read: descriptor::read::<ActorCriticConfig>,
    fit: |spec, ranges| {
        let actions = spec.action.bounds();
        let mut fitted = json!({ "observation": ranges, "view": [0, 0, 0], "discrete": spec.action.is_discrete(), "actions": actions });
        if let ObservationSpace::Grid { rows, columns, channels } = spec.observation {
            fitted["view"] = json!([rows, columns, channels]);
        } else if let (true, Some(shape)) = (ranges.is_empty(), spec.observation.image()) {
            let PixelShape { frames, height, width, channels } = shape;
            fitted["view"] = json!([height, width, frames.saturating_mul(channels)]);
            fitted["divisor"] = json!(255.0);
            // Those of Mnih et al. 2013, as far as the picture is large enough.
            let layers = [(16, 8, 4), (32, 4, 2)].map(|(filters, size, stride)| ConvolutionLayer {
                filters,
                size,
                stride,
            });
            let usual = if height.min(width) >= SMALLEST { &layers[..] } else { &[] };
            fitted["convolutions"] = json!(usual);
        }
        fitted
    },
    published: &[],
};
