//! S3TA (Mott et al. 2019, "Towards Interpretable Reinforcement Learning Using Attention Augmented Agents"): soft, spatial,
//! sequential, top-down attention.
//!
//! A convolutional network with a `ConvLSTM` looks at the picture. Four heads ask it questions, which come from the agent's own
//! state and not from the picture, and each gets an answer: a mean of the picture's cells, weighted by softmax attention. The
//! answers feed an LSTM, which acts and estimates values. A fixed spatial basis, appended to keys and values, lets a head ask
//! for places as well as for contents.
//!
//! Where the paper leaves something open, it is a setting, and its default is that of the specification. The paper's
//! ablations (`attention`) and the residual networks that it compares with (`torso`) are settings, too.

mod graph;
mod network;
mod student;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use foveate_core::{
    ActContext, ActMode, Action, Agent, Attention, Decision, EnvSpec, LastStep, Model, Observation, Opened,
    PixelShape, Policy, PolicyAgent, PolicyError, Seed, StudyInputs, TensorShape, Tokens, Turn,
};
use foveate_kernels::Level;
use foveate_learn::Activations;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{ConvolutionLayer, bad, check_params};
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Init, Sees};
use crate::onnx::OnnxModel;
use crate::params::{Params, forward_params, starts};
use crate::probabilities::probabilities;
use crate::torch::TorchModule;

use network::{Back, Front, Halves, Nodes};
pub use student::S3taStudent;

/// Settings. The defaults are those of the paper, for a screen of 210 × 160 pixels in colours and 18 actions: 2,286,611
/// parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct S3taConfig {
    /// Rows, columns and channels of the picture; pictures of a stack become channels.
    pub view: [usize; 3],
    /// Number of actions.
    pub actions: usize,
    /// What looks at the picture.
    pub torso: Torso,
    /// What pixels, as numbers from 0 to 1, are multiplied by: 1 is plain. A ball of two pixels changes the sums of large filters
    /// little; the larger this is, the sooner it is learnt from. Unless it is 1, the first filters of [`Init::He`] sum to zero,
    /// so that even backgrounds do not become larger with it.
    pub pixel_scale: f32,
    /// Convolutions of the vision core, each followed by relu. Their output has ⌈size / stride⌉ rows and columns, as with
    /// TensorFlow's SAME padding.
    pub convolutions: Vec<ConvolutionLayer>,
    /// True if each of their features is normalised over the cells of the picture, so that what is rare stands out; `false` in
    /// the paper.
    pub normalise: bool,
    /// Channels of the `ConvLSTM`: those of keys and those of values together.
    pub channels: usize,
    /// Side of the `ConvLSTM`'s filters.
    pub size: usize,
    /// True if the gates of the `ConvLSTM` see its memory c as well (Shi et al. 2015), each with a weight for every cell and
    /// channel.
    pub peepholes: bool,
    /// How many of the channels are keys.
    pub keys: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Where the scores of cells come from.
    pub attention: Source,
    /// What queries times keys are multiplied by before the softmax; 1 in the paper. Not used by `key-norms`.
    pub score_scale: f32,
    /// Frequencies of each kind and axis of the spatial basis, which has four times their square channels.
    pub frequencies: usize,
    /// Which functions the spatial basis multiplies.
    pub basis: Basis,
    /// Units of the hidden layers from the state to the queries.
    pub query_hidden: Vec<usize>,
    /// Units of the layers from the answers to the LSTM; of the residual torso those after it.
    pub answer_hidden: Vec<usize>,
    /// True if the last of these is followed by relu, as the others are.
    pub answer_relu: bool,
    /// Units of the LSTM that acts; 0 for none, which only the residual torso can do without.
    pub units: usize,
    /// Units of the layer between the LSTM and the actions; 0 for none.
    pub trunk: usize,
    /// Added to the sums of all forget gates.
    pub forget_bias: f32,
    /// The agent is told the reward of the last step, clipped to ± this.
    pub reward_clip: f64,
}

/// What looks at the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Torso {
    /// Convolutions, a `ConvLSTM`, and attention.
    #[default]
    Attention,
    /// The deep residual network of IMPALA (Espeholt et al. 2018), without attention.
    Residual,
}

/// Where the scores of the cells come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Queries from the state of the LSTM: top-down.
    #[default]
    TopDown,
    /// Queries that are learnt and always the same.
    FixedQuery,
    /// Norms of the keys, without queries: each head has a share of the keys, and none of the spatial basis.
    KeyNorms,
}

/// The functions of the spatial basis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Cosines and sines of frequencies 1, 2, ….
    #[default]
    Mixed,
    /// Cosines of 0, 1, …, sines of 1, 2, …: with a constant channel.
    MixedFromZero,
    /// Cosines alone, as public replications have it.
    Cosines,
}

impl Default for S3taConfig {
    fn default() -> Self {
        let layer = |filters, size, stride| ConvolutionLayer { filters, size, stride };
        S3taConfig {
            view: [210, 160, 3],
            actions: 18,
            torso: Torso::default(),
            pixel_scale: 1.0,
            convolutions: vec![layer(32, 8, 4), layer(64, 4, 2)],
            normalise: false,
            channels: 128,
            size: 3,
            peepholes: false,
            keys: 8,
            heads: 4,
            attention: Source::default(),
            score_scale: 1.0,
            frequencies: 4,
            basis: Basis::default(),
            query_hidden: vec![256, 128],
            answer_hidden: vec![512, 256],
            answer_relu: true,
            units: 256,
            trunk: 128,
            forget_bias: 1.0,
            reward_clip: 1.0,
        }
    }
}

impl S3taConfig {
    /// Numbers of the picture.
    fn pixels(&self) -> usize {
        self.view.iter().product()
    }

    /// Numbers of a key: its contents, and the spatial basis.
    const fn key_width(&self) -> usize {
        self.keys.saturating_add(4_usize.saturating_mul(self.frequencies.saturating_mul(self.frequencies)))
    }

    /// Draws the biases with which queries ask for contents from the standard normal distribution. With zeros, the queries of
    /// an empty state are zero: attention is even, and neither queries nor keys have a gradient.
    fn draw_queries(&self, tensors: &[TensorShape], params: &mut [f32], seed: Seed) {
        for (tensor, start) in tensors.iter().zip(starts(tensors)) {
            if tensor.name == "query.bias" {
                let mut rng = seed.child("query", 0).rng();
                for query in params[start..][..tensor.len()].chunks_exact_mut(self.key_width()) {
                    query[..self.keys].fill_with(|| rng.normal() as f32);
                }
            }
        }
    }

    /// Numbers that say what happened in the last step: the reward, and a bit for each action.
    const fn told(&self) -> usize {
        1 + self.actions
    }

    /// Writes what the network is told about the last step.
    fn tell(&self, last: LastStep<'_>, to: &mut [f32]) -> Result<(), PolicyError> {
        to.fill(0.0);
        to[0] = last.reward.clamp(-self.reward_clip, self.reward_clip) as f32;
        match last.action {
            None => {}
            Some(Action::Discrete(choice)) if choice < self.actions => to[1 + choice] = 1.0,
            Some(action) => {
                return bad(format!(
                    "the last action is {action}, where one of {} choices is due",
                    self.actions
                ));
            }
        }
        Ok(())
    }

    /// Writes the picture, `[rows, columns, channels]`.
    fn look(&self, observation: Observation<'_>, to: &mut [u8]) -> Result<(), PolicyError> {
        let [rows, columns, channels] = self.view;
        if let Some(pixels) = observation.image() {
            let PixelShape { frames, height, width, channels: colours } = pixels.shape();
            if [height, width, frames * colours] == self.view {
                // Pictures of a stack become channels, oldest first.
                for (frame, bytes) in pixels.bytes().chunks_exact(height * width * colours).enumerate() {
                    let places = to.chunks_exact_mut(channels).zip(bytes.chunks_exact(colours));
                    for (to, bytes) in places {
                        to[frame * colours..][..colours].copy_from_slice(bytes);
                    }
                }
                return Ok(());
            }
        }
        let wanted = format!("a picture of {rows} x {columns} pixels with {channels} numbers each");
        Err(PolicyError::ObservationShape { wanted, given: observation.describe() })
    }
}

/// Writes a picture as the network sees it, from 0 to `pixel_scale`.
fn scale(pixels: &[u8], pixel_scale: f32, to: &mut [f32]) {
    let factor = pixel_scale / 255.0;
    for (to, &byte) in to.iter_mut().zip(pixels) {
        *to = f32::from(byte) * factor;
    }
}

/// Subtracts its mean from every filter that the picture meets first, so that none answers to an even background.
fn balance_filters(tensors: &[TensorShape], params: &mut [f32]) {
    for (tensor, start) in tensors.iter().zip(starts(tensors)) {
        if tensor.name == "vision_conv1.weight" || tensor.name == "stage1_conv.weight" {
            let size = tensor.shape[1..].iter().product();
            for filter in params[start..][..tensor.len()].chunks_exact_mut(size) {
                let mean = filter.iter().sum::<f32>() / size as f32;
                for weight in filter {
                    *weight -= mean;
                }
            }
        }
    }
}

/// The agent. Zero weights until [`Policy::set_params`].
///
/// ```
/// use foveate_agents::s3ta::{S3taAgent, S3taConfig};
/// use foveate_core::{ActContext, ImageBuf, Observation, Policy};
///
/// let agent = S3taAgent::new(S3taConfig::default())?;
/// assert_eq!(agent.params().len(), 2_286_611);
/// let mut memory = agent.memory();
/// let screen = ImageBuf::black(160, 210);
/// let decision = agent.act(Observation::rgb(screen.as_image()), &mut memory, &mut ActContext::default())?;
/// let attention = decision.attention.expect("four heads over 27 x 20 cells");
/// assert_eq!((attention.heads(), attention.tokens().len()), (4, 540));
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct S3taAgent {
    config: S3taConfig,
    level: Level,
    nodes: Arc<Nodes>,
    /// For decisions that are opened.
    halves: Option<Arc<Halves>>,
    params: Params,
}

/// The agent's recurrent state, its scratch space, and the outputs of its last decision.
#[derive(Debug, Clone)]
pub struct S3taMemory {
    /// `[rows, columns, channels]`: what was seen, as bytes and from 0 to 1.
    pixels: Vec<u8>,
    picture: Vec<f32>,
    told: Vec<f32>,
    /// The states of the network: h and c of the vision core, h and c of the LSTM.
    states: Vec<Vec<f32>>,
    acts: Activations,
    /// Of the halves, once a decision was opened.
    halves: Option<[Activations; 2]>,
    logits: Vec<f32>,
    action: Vec<f64>,
    /// Scratch space of decisions in several episodes at once, in the first episode's memory.
    batch: Option<Box<Batch>>,
}

/// States, logits and action of a [`S3taMemory`].
type Own<'m> = (&'m mut [Vec<f32>], &'m mut [f32], &'m mut [f64]);

/// What the network sees and computes in several episodes at once.
#[derive(Debug, Clone)]
struct Batch {
    /// Most episodes.
    capacity: usize,
    /// `[episodes, …]`, as the parts of a [`S3taMemory`].
    pictures: Vec<f32>,
    told: Vec<f32>,
    states: Vec<Vec<f32>>,
    acts: Activations,
}

impl S3taAgent {
    /// An agent of zero weights on the fastest instruction set of this processor.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`AgentConfig::check`].
    pub fn new(config: S3taConfig) -> Result<Self, PolicyError> {
        let nodes = Arc::new(network::build(&config)?);
        let halves = network::halves(&config)?.map(Arc::new);
        let params = Params::zeros(nodes.net.tensors().to_vec());
        Ok(S3taAgent { config, level: Level::best(), nodes, halves, params })
    }

    /// The same agent on another instruction set, which gives the same decisions to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// What each head's scores of the cells are sums of: what is there, and where that is (Mott et al. 2019, section 4.3).
    fn terms(&self, queries: &[f32], keys: &[f32]) -> [(&'static str, Vec<f32>); 2] {
        let (width, contents) = (self.config.key_width(), self.config.keys);
        let sums = |range: std::ops::Range<usize>| {
            let mut sums = Vec::with_capacity(queries.len() / width * keys.len() / width);
            for query in queries.chunks_exact(width) {
                sums.extend(keys.chunks_exact(width).map(|key| {
                    let pairs = query[range.clone()].iter().zip(&key[range.clone()]);
                    pairs.map(|(q, k)| q * k).sum::<f32>() * self.config.score_scale
                }));
            }
            sums
        };
        [("what", sums(0..contents)), ("where", sums(contents..width))]
    }

    /// Its settings.
    pub const fn config(&self) -> &S3taConfig {
        &self.config
    }

    /// Scratch space for this many episodes at once.
    fn batch(&self, capacity: usize) -> Batch {
        let Nodes { net, states, .. } = &*self.nodes;
        Batch {
            capacity,
            pictures: vec![0.0; capacity * self.config.pixels()],
            told: vec![0.0; capacity * self.config.told()],
            states: vec![vec![]; states.len()],
            acts: net.activations(capacity),
        }
    }

    /// Writes what the network sees and is told in an episode.
    fn see(
        &self,
        observation: Observation<'_>,
        context: &ActContext,
        pixels: &mut [u8],
        picture: &mut [f32],
        told: &mut [f32],
    ) -> Result<(), PolicyError> {
        self.config.look(observation, pixels)?;
        scale(pixels, self.config.pixel_scale, picture);
        let last = LastStep { action: context.choice.map(Action::Discrete), reward: context.reward };
        self.config.tell(last, told)
    }

    /// Computes the network for `count` episodes.
    fn forward(
        &self,
        pictures: &[f32],
        told: &[f32],
        states: &[Vec<f32>],
        count: usize,
        acts: &mut Activations,
    ) {
        let inputs: [&[f32]; 6] = std::array::from_fn(|i| match i {
            0 => pictures,
            1 => told,
            state => states.get(state - 2).map_or(&[][..], |state| &state[..]),
        });
        self.nodes.net.forward(self.level, self.params.flat(), &inputs[..2 + states.len()], count, acts);
    }

    /// Takes the new states and the decision of episode `i` from what the network computed, to the parts of its memory.
    fn decide<'m>(
        &self,
        acts: &'m Activations,
        i: usize,
        (states, logits, action): Own<'m>,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Nodes { policy, value, attention, .. } = &*self.nodes;
        for (state, nodes) in states.iter_mut().zip(&self.nodes.states) {
            let len = state.len();
            state.copy_from_slice(&acts.get(nodes.output)[i * len..][..len]);
        }
        let choices = logits.len();
        choose(&acts.get(*policy)[i * choices..][..choices], logits, action, context);
        let value = Some(acts.get(*value)[i]);
        let decision = Decision { logits: Some(logits), value, ..Decision::new(action) };
        let Some(attention) = attention else { return Ok(decision) };
        let [rows, columns] = attention.cells;
        let len = self.config.heads * rows * columns;
        let weights = &attention.weights(acts)[i * len..][..len];
        let tokens = Tokens::Cells { rows, columns };
        Ok(decision.with_attention(Attention::soft(tokens, self.config.heads, 1, weights)?))
    }
}

/// Writes the logits, and the probabilities of the choices or the one that is drawn.
fn choose(from: &[f32], logits: &mut [f32], action: &mut [f64], context: &mut ActContext) {
    logits.copy_from_slice(from);
    probabilities(logits, action);
    if matches!(context.mode, ActMode::Explore { .. }) {
        let drawn = context.rng.weighted(action);
        action.fill(0.0);
        action[drawn] = 1.0;
    }
}

impl Policy for S3taAgent {
    type Memory = S3taMemory;

    fn memory(&self) -> S3taMemory {
        let Nodes { net, states, .. } = &*self.nodes;
        let len = |node| net.shape(node).iter().product::<usize>();
        S3taMemory {
            pixels: vec![0; self.config.pixels()],
            picture: vec![0.0; self.config.pixels()],
            told: vec![0.0; self.config.told()],
            states: states.iter().map(|state| vec![0.0; len(state.input)]).collect(),
            acts: net.activations(1),
            halves: None,
            logits: vec![0.0; self.config.actions],
            action: vec![0.0; self.config.actions],
            batch: None,
        }
    }

    fn reset(&self, memory: &mut S3taMemory, _: Seed) {
        memory.states.iter_mut().for_each(|state| state.fill(0.0));
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut S3taMemory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let S3taMemory { pixels, picture, told, states, acts, logits, action, .. } = memory;
        self.see(observation, context, pixels, picture, told)?;
        self.forward(picture, told, states, 1, acts);
        self.decide(acts, 0, (states, logits, action), context)
    }

    /// All episodes go through the network together.
    fn act_batch(
        &self,
        turns: &mut [Turn<'_>],
        memories: &mut [S3taMemory],
        decided: &mut dyn FnMut(usize, Decision<'_>),
    ) -> Result<(), PolicyError> {
        let repeated = |i: usize| turns[..i].iter().any(|turn| turn.episode == turns[i].episode);
        if turns.len() < 2 || (1..turns.len()).any(repeated) {
            // A second turn of an episode needs the state after the first.
            for (i, turn) in turns.iter_mut().enumerate() {
                decided(i, self.act(turn.observation, &mut memories[turn.episode], turn.context)?);
            }
            return Ok(());
        }
        let fits = memories[0].batch.take().filter(|batch| batch.capacity >= turns.len());
        let mut batch = fits.unwrap_or_else(|| Box::new(self.batch(turns.len())));
        let Batch { pictures, told, states, acts, .. } = &mut *batch;
        let (pixels, bits) = (self.config.pixels(), self.config.told());
        states.iter_mut().for_each(Vec::clear);
        // Those before the first error decide.
        let (mut count, mut outcome) = (0, Ok(()));
        for (turn, (picture, told)) in
            turns.iter().zip(pictures.chunks_exact_mut(pixels).zip(told.chunks_exact_mut(bits)))
        {
            let memory = &mut memories[turn.episode];
            outcome = self.see(turn.observation, turn.context, &mut memory.pixels, picture, told);
            if outcome.is_err() {
                break;
            }
            memory.told.copy_from_slice(told);
            for (all, own) in states.iter_mut().zip(&memory.states) {
                all.extend_from_slice(own);
            }
            count += 1;
        }
        if count > 0 {
            self.forward(&pictures[..count * pixels], &told[..count * bits], states, count, acts);
        }
        for (i, turn) in turns[..count].iter_mut().enumerate() {
            let S3taMemory { states, logits, action, .. } = &mut memories[turn.episode];
            decided(i, self.decide(acts, i, (states, logits, action), turn.context)?);
        }
        memories[0].batch = Some(batch);
        outcome
    }

    fn open(
        &self,
        observation: Observation<'_>,
        memory: &mut S3taMemory,
        context: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        let Some(halves) = &self.halves else { return Ok(false) };
        let S3taMemory { pixels, picture, told, states, halves: acts, .. } = memory;
        self.see(observation, context, pixels, picture, told)?;
        let Front { net, vision, attention, values, queries_and_keys } = &halves.front;
        let [acts, _] = acts.get_or_insert_with(|| [net.activations(1), halves.back.net.activations(1)]);
        let inputs = [&picture[..], &told[..], &states[0], &states[1], &states[2]];
        net.forward(self.level, &self.params.flat()[..net.params()], &inputs, 1, acts);
        for (state, nodes) in states.iter_mut().zip(vision) {
            state.copy_from_slice(acts.get(nodes.output));
        }
        opened.units = attention.cells[0] * attention.cells[1];
        opened.hard = false;
        opened.means = false;
        opened.tokens.clear();
        opened.tokens.extend(0..opened.units as u32);
        opened.readers = self.config.heads;
        opened.weights.clear();
        opened.weights.extend_from_slice(attention.weights(acts));
        opened.values.clear();
        opened.values.extend_from_slice(acts.get(*values));
        opened.terms.clear();
        if let Some([queries, keys]) = *queries_and_keys {
            opened.terms.extend(self.terms(acts.get(queries), acts.get(keys)));
        }
        Ok(true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut S3taMemory,
        context: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let bad = |why: String| Err(PolicyError::BadAttention { why });
        let Some(halves) = &self.halves else {
            return bad("an agent without attention cannot be opened".into());
        };
        let Back { net, core, policy, value } = &halves.back;
        let [rows, columns] = halves.front.attention.cells;
        let features: usize = halves.front.net.shape(halves.front.values).iter().product();
        let (weights, values) = (self.config.heads * rows * columns, features);
        if opened.weights.len() != weights || opened.values.len() != values {
            return bad(format!(
                "{} weights and values of {} numbers, where the agent takes {weights} and {values}",
                opened.weights.len(),
                opened.values.len()
            ));
        }
        let S3taMemory { told, states, halves: acts, logits, action, .. } = memory;
        let [_, acts] = acts.get_or_insert_with(|| [halves.front.net.activations(1), net.activations(1)]);
        let inputs = [&opened.weights[..], &opened.values, told, &states[2], &states[3]];
        let flat = self.params.flat();
        net.forward(self.level, &flat[flat.len() - net.params()..], &inputs, 1, acts);
        for (state, nodes) in states[2..].iter_mut().zip(core) {
            state.copy_from_slice(acts.get(nodes.output));
        }
        choose(acts.get(*policy), logits, action, context);
        let value = Some(acts.get(*value)[0]);
        Ok(Decision { logits: Some(logits), value, ..Decision::new(action) })
    }

    fn study_inputs<'m>(&self, memory: &'m S3taMemory) -> Result<StudyInputs<'m>, PolicyError> {
        Ok(StudyInputs { numbers: &memory.told, picture: &memory.pixels })
    }

    fn recurrent_state(&self, memory: &S3taMemory, to: &mut Vec<f32>) {
        memory.states.iter().for_each(|state| to.extend_from_slice(state));
    }

    forward_params!();
}

impl AgentConfig for S3taConfig {
    fn check(&self) -> Result<(), PolicyError> {
        let nodes = network::build(self)?;
        check_params(nodes.net.tensors(), "lower channels, units or answer_hidden")
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        network::build(self).map_or_else(|_| vec![], |nodes| nodes.net.tensors().to_vec())
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(S3taAgent::new(self.clone())?)))
    }

    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        let Ok(nodes) = network::build(self) else { return vec![0.0; self.param_count()] };
        match init {
            Init::Torch => nodes.net.initial(seed),
            Init::He => {
                let mut params = nodes.net.initial_he(seed);
                if self.pixel_scale != 1.0 {
                    balance_filters(nodes.net.tensors(), &mut params);
                }
                self.draw_queries(nodes.net.tensors(), &mut params, seed);
                params
            }
            Init::Zeros => vec![0.0; nodes.net.params()],
        }
    }

    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        Ok(Some(Box::new(S3taStudent::new(self)?)))
    }

    fn onnx(&self, params: &[f32], spec: &EnvSpec) -> Result<Option<OnnxModel>, PolicyError> {
        graph::model(self, params, spec).map(Some)
    }

    fn torch(&self) -> Result<Option<TorchModule>, PolicyError> {
        let source = include_str!("../../foveate-py/python/foveate/torch/s3ta.py");
        graph::has_attention(self)?;
        Ok(Some(TorchModule::new("S3ta", "s3ta", source, false)))
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "s3ta",
    summary: "four heads ask the picture's cells for what its LSTM wants to know; learns by V-trace (Mott et al. 2019)",
    sees: Sees::Picture,
    read: descriptor::read::<S3taConfig>,
    fit: |spec, _| {
        let mut fitted = json!({ "actions": spec.action.len() });
        if let Some(PixelShape { frames, height, width, channels }) = spec.observation.image() {
            fitted["view"] = json!([height, width, frames.saturating_mul(channels)]);
        }
        fitted
    },
    published: &[],
};
