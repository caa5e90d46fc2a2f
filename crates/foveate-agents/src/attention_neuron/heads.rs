//! Heads: what turns the codes of a picture into an action.
//!
//! * AttentionAgent on the latent picture, as in the paper's CarRacing: [`LatentConfig`];
//! * convolutions and layers, as in the paper's Pong: [`ConvolutionConfig`];
//! * layers alone: [`DenseConfig`];
//! * an LSTM on all messages: [`RecurrentConfig`].
//!
//! All but the first let gradients through to the codes.

use foveate_core::{PolicyError, TensorShape, Threads};
use foveate_kernels::conv::{Conv, ConvShape};
use foveate_kernels::dense::{self, Dense};
use foveate_kernels::patch_codes::Latent;
use foveate_kernels::top_k::top_k;
use foveate_kernels::{Embedded, Level};
use serde::{Deserialize, Serialize};

use crate::config::{ConvolutionLayer, MAX_HIDDEN, Scale, bad, within};
use crate::controller::MAX_LAYERS;
use crate::lstm::{LstmController, LstmState};
use crate::params::Params;
use crate::voting::{MAX_PATCHES, Voter, VotingConfig};

/// The configuration of a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HeadConfig {
    /// AttentionAgent on the latent picture.
    AttentionAgent(LatentConfig),
    /// Convolutions over the latent picture, then layers with relu.
    Convolution(ConvolutionConfig),
    /// Layers with relu.
    Dense(DenseConfig),
    /// An LSTM on all messages.
    Recurrent(RecurrentConfig),
}

impl Default for HeadConfig {
    fn default() -> Self {
        HeadConfig::AttentionAgent(LatentConfig::default())
    }
}

/// AttentionAgent on the latent picture: codes vote for codes, and an LSTM acts on where the best ones are.
///
/// The latent picture is smoothed in time, `m_t = (1 − α) m̂_t + α m_{t−1}`, with an α that a small network computed at the
/// end of the previous step from the LSTM's output and the action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LatentConfig {
    /// Length of a query and of a key.
    pub query_dim: usize,
    /// The divisor of queries × keys. The published agent does not divide.
    pub scale: Scale,
    /// The attention kernel.
    #[serde(skip_serializing_if = "VotingConfig::is_default")]
    pub voting: VotingConfig,
    /// Number of codes whose row and column the LSTM gets, K.
    pub top_k: usize,
    /// Hidden units of the LSTM.
    pub hidden: usize,
    /// Hidden units of the network that computes α; 0 for no smoothing.
    pub smoothing: usize,
}

impl Default for LatentConfig {
    fn default() -> Self {
        LatentConfig {
            query_dim: 4,
            scale: Scale::One,
            voting: VotingConfig::default(),
            top_k: 10,
            hidden: 16,
            smoothing: 16,
        }
    }
}

/// Convolutions without padding, relu before and after each, then layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConvolutionConfig {
    /// Its convolutions.
    pub layers: Vec<ConvolutionLayer>,
    /// Units of each layer with relu behind them.
    pub hidden: Vec<usize>,
    /// What its outputs are.
    pub output: Output,
}

impl Default for ConvolutionConfig {
    fn default() -> Self {
        ConvolutionConfig {
            layers: vec![
                ConvolutionLayer { filters: 64, size: 4, stride: 2 },
                ConvolutionLayer { filters: 64, size: 3, stride: 1 },
            ],
            hidden: vec![512],
            output: Output::Scores,
        }
    }
}

/// Layers on the messages of all codes, one code after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DenseConfig {
    /// Units of each layer with relu.
    pub hidden: Vec<usize>,
    /// What its outputs are.
    pub output: Output,
}

/// An LSTM and a linear layer with tanh on the messages of all codes, one code after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecurrentConfig {
    /// Hidden units of the LSTM.
    pub hidden: usize,
}

impl Default for RecurrentConfig {
    fn default() -> Self {
        RecurrentConfig { hidden: 32 }
    }
}

/// What the outputs of a head are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Actions, through tanh.
    #[default]
    Tanh,
    /// A score per choice.
    Scores,
}

impl HeadConfig {
    /// The head of the published agent for Pong.
    pub fn puzzle_pong() -> Self {
        HeadConfig::Convolution(ConvolutionConfig::default())
    }

    /// Returns whether its outputs are scores.
    pub(super) const fn gives_scores(&self) -> bool {
        match self {
            HeadConfig::AttentionAgent(_) | HeadConfig::Recurrent(_) => false,
            HeadConfig::Convolution(ConvolutionConfig { output, .. })
            | HeadConfig::Dense(DenseConfig { output, .. }) => matches!(output, Output::Scores),
        }
    }

    /// Inputs and hidden units of its LSTM, if it has one.
    pub(super) fn lstm(&self, codes: [usize; 2], message: usize) -> Option<(usize, usize)> {
        match self {
            HeadConfig::AttentionAgent(latent) => Some((latent.top_k.saturating_mul(2), latent.hidden)),
            HeadConfig::Recurrent(recurrent) => Some((self.flat(codes, message), recurrent.hidden)),
            HeadConfig::Convolution(_) | HeadConfig::Dense(_) => None,
        }
    }

    /// Hidden units of a recurrent head; `None` for other heads.
    pub(super) const fn recurrent(&self) -> Option<usize> {
        match self {
            HeadConfig::Recurrent(recurrent) => Some(recurrent.hidden),
            HeadConfig::AttentionAgent(_) | HeadConfig::Convolution(_) | HeadConfig::Dense(_) => None,
        }
    }

    /// Convolutions, units of the layers behind them and kind of the outputs; `None` for heads that are no layers.
    pub(super) fn layers(&self) -> Option<(&[ConvolutionLayer], &[usize], Output)> {
        match self {
            HeadConfig::Convolution(ConvolutionConfig { layers, hidden, output }) => {
                Some((layers, hidden, *output))
            }
            HeadConfig::Dense(DenseConfig { hidden, output }) => Some((&[], hidden, *output)),
            HeadConfig::AttentionAgent(_) | HeadConfig::Recurrent(_) => None,
        }
    }

    /// Returns whether gradients flow through it to the codes.
    pub(super) const fn is_differentiable(&self) -> bool {
        !matches!(self, HeadConfig::AttentionAgent(_))
    }

    /// Checks that it fits a latent picture of these rows and columns.
    ///
    /// # Errors
    /// When a size is out of its bounds.
    pub(super) fn check(&self, [rows, columns]: [usize; 2]) -> Result<(), PolicyError> {
        let hidden_layers = |hidden: &[usize]| {
            if hidden.len() > MAX_LAYERS {
                return bad(format!(
                    "head.hidden names {} layers; at most {MAX_LAYERS} are possible",
                    hidden.len()
                ));
            }
            hidden.iter().try_for_each(|&units| within("head.hidden", units, MAX_HIDDEN))
        };
        match self {
            HeadConfig::AttentionAgent(latent) => {
                let codes = rows.saturating_mul(columns);
                within("codes", codes, MAX_PATCHES)?;
                within("head.query_dim", latent.query_dim, MAX_HIDDEN)?;
                within("head.hidden", latent.hidden, MAX_HIDDEN)?;
                within("head.top_k", latent.top_k, usize::MAX)?;
                if latent.smoothing > MAX_HIDDEN {
                    return bad(format!(
                        "head.smoothing is {}; at most {MAX_HIDDEN} are possible",
                        latent.smoothing
                    ));
                }
                if latent.top_k > codes {
                    return bad(format!(
                        "head.top_k is {}; there are {codes} codes, so lower it",
                        latent.top_k
                    ));
                }
                if codes.saturating_mul(latent.query_dim) > 16 << 20 {
                    return bad(format!(
                        "head.query_dim = {} for {codes} codes is too large; lower it",
                        latent.query_dim
                    ));
                }
                latent.voting.check(latent.query_dim)
            }
            HeadConfig::Convolution(ConvolutionConfig { layers, hidden, .. }) => {
                if layers.is_empty() || layers.len() > MAX_LAYERS {
                    return bad(format!(
                        "head.layers names {} convolutions; it must be from 1 to {MAX_LAYERS}, or take kind = \"dense\"",
                        layers.len()
                    ));
                }
                ConvolutionLayer::check_all(layers, "head.layers", [rows, columns])?;
                hidden_layers(hidden)
            }
            HeadConfig::Dense(DenseConfig { hidden, .. }) => hidden_layers(hidden),
            HeadConfig::Recurrent(RecurrentConfig { hidden }) => within("head.hidden", *hidden, MAX_HIDDEN),
        }
    }

    /// The convolutions of a valid configuration.
    fn convolutions(&self, [rows, columns]: [usize; 2], message: usize) -> Vec<ConvShape> {
        let HeadConfig::Convolution(ConvolutionConfig { layers, .. }) = self else { return vec![] };
        let (mut channels, mut height, mut width) = (message, rows, columns);
        let shapes = layers.iter().map_while(|&ConvolutionLayer { filters, size, stride }| {
            // What does not fit is refused elsewhere.
            if size == 0 || stride == 0 || size > height.min(width) {
                return None;
            }
            let shape = ConvShape { channels, height, width, filters, size, stride };
            (channels, (height, width)) = (filters, shape.output());
            Some(shape)
        });
        shapes.collect()
    }

    /// Inputs of the first layer behind the convolutions, if there are any.
    fn flat(&self, codes: [usize; 2], message: usize) -> usize {
        let last = self.convolutions(codes, message).last().map(|shape| {
            let (height, width) = shape.output();
            shape.filters.saturating_mul(height).saturating_mul(width)
        });
        last.unwrap_or_else(|| codes[0].saturating_mul(codes[1]).saturating_mul(message))
    }

    /// Name and shape of its tensors.
    pub(super) fn tensors(&self, codes: [usize; 2], message: usize, actions: usize) -> Vec<TensorShape> {
        let mut all = vec![];
        let mut push = |name: &str, shape: Vec<usize>| all.push(TensorShape { name: name.into(), shape });
        match self {
            HeadConfig::AttentionAgent(latent) => {
                for name in ["latent_query", "latent_key"] {
                    push(&format!("{name}.bias"), vec![latent.query_dim]);
                    push(&format!("{name}.weight"), vec![latent.query_dim, message]);
                }
                push_lstm(&mut push, latent.top_k.saturating_mul(2), latent.hidden, actions);
                if latent.smoothing > 0 {
                    push("smoothing0.bias", vec![latent.smoothing]);
                    push("smoothing0.weight", vec![latent.smoothing, latent.hidden.saturating_add(actions)]);
                    push("smoothing1.bias", vec![1]);
                    push("smoothing1.weight", vec![1, latent.smoothing]);
                }
            }
            HeadConfig::Recurrent(RecurrentConfig { hidden }) => {
                push_lstm(&mut push, self.flat(codes, message), *hidden, actions);
            }
            HeadConfig::Convolution(ConvolutionConfig { hidden, .. })
            | HeadConfig::Dense(DenseConfig { hidden, .. }) => {
                for (i, shape) in self.convolutions(codes, message).iter().enumerate() {
                    push(&format!("conv{i}.bias"), vec![shape.filters]);
                    let filter = vec![shape.filters, shape.channels, shape.size, shape.size];
                    push(&format!("conv{i}.weight"), filter);
                }
                let mut width = self.flat(codes, message);
                for (i, &units) in hidden.iter().enumerate() {
                    push(&format!("hidden{i}.bias"), vec![units]);
                    push(&format!("hidden{i}.weight"), vec![units, width]);
                    width = units;
                }
                push("output.bias", vec![actions]);
                push("output.weight", vec![actions, width]);
            }
        }
        all
    }
}

/// Name and shape of the tensors of an LSTM and the layer behind it.
fn push_lstm(push: &mut dyn FnMut(&str, Vec<usize>), inputs: usize, hidden: usize, actions: usize) {
    let gates = hidden.saturating_mul(4);
    push("lstm.bias_hh", vec![gates]);
    push("lstm.bias_ih", vec![gates]);
    push("lstm.weight_hh", vec![gates, hidden]);
    push("lstm.weight_ih", vec![gates, inputs]);
    push("output.bias", vec![actions]);
    push("output.weight", vec![actions, hidden]);
}

/// The messages of all codes, one code after the other, of `message`, `[message, padded codes]`.
fn code_by_code(message: &[f32], codes: usize, out: &mut [f32]) {
    let width = out.len() / codes;
    for (d, row) in message.chunks_exact(codes.next_multiple_of(16)).enumerate() {
        for (number, &x) in out[d..].iter_mut().step_by(width).zip(row) {
            *number = x;
        }
    }
}

/// A head of a valid configuration. Zero weights until [`Head::set`].
#[derive(Debug, Clone)]
pub(super) enum Head {
    Latent(Box<LatentHead>),
    Layers(LayersHead),
    Recurrent(RecurrentHead),
}

#[derive(Debug, Clone)]
pub(super) struct RecurrentHead {
    codes: usize,
    inputs: usize,
    hidden: usize,
    actions: usize,
    controller: LstmController,
}

#[derive(Debug, Clone)]
pub(super) struct LatentHead {
    config: LatentConfig,
    codes: [usize; 2],
    message: usize,
    actions: usize,
    latent: Latent,
    controller: LstmController,
    /// The network that computes α: two layers.
    smoothing: Option<[Dense; 2]>,
    threads: Threads,
}

#[derive(Debug, Clone)]
pub(super) struct LayersHead {
    codes: [usize; 2],
    message: usize,
    convolutions: Vec<Conv>,
    layers: Vec<Dense>,
    output: Output,
}

/// The state of a head, its scratch space, and its last outputs.
#[derive(Debug, Clone)]
pub enum HeadMemory {
    /// Of AttentionAgent on the latent picture.
    Latent(Box<LatentMemory>),
    /// Of layers.
    Layers(LayersMemory),
    /// Of an LSTM on all messages.
    Recurrent(RecurrentMemory),
}

/// The state of an LSTM on all messages.
#[derive(Debug, Clone)]
pub struct RecurrentMemory {
    lstm: LstmState,
    inputs: Vec<f32>,
    raw: Vec<f32>,
}

/// The state of AttentionAgent on the latent picture.
#[derive(Debug, Clone)]
pub struct LatentMemory {
    /// `[message, padded codes]`: m of the last step; empty without smoothing.
    smoothed: Vec<f32>,
    alpha: f32,
    embedded: Embedded,
    voter: Voter,
    /// `[codes]`
    importance: Vec<f32>,
    best: Vec<u32>,
    order: Vec<u32>,
    inputs: Vec<f32>,
    lstm: LstmState,
    raw: Vec<f32>,
    /// The inputs of the network that computes α, and its hidden units.
    mixer: [Vec<f32>; 2],
}

impl LatentMemory {
    /// The share of the previous latent picture in the next one, α.
    pub const fn alpha(&self) -> f32 {
        self.alpha
    }

    /// The selected codes, the most important first.
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    /// The LSTM's output, `[hidden]`.
    pub fn h(&self) -> &[f32] {
        self.lstm.h()
    }

    /// The LSTM's memory, `[hidden]`.
    pub fn c(&self) -> &[f32] {
        self.lstm.c()
    }
}

/// The scratch space of layers.
#[derive(Debug, Clone)]
pub struct LayersMemory {
    /// Inputs and outputs of each convolution and layer, in order.
    stages: Vec<Vec<f32>>,
}

impl HeadMemory {
    /// The last outputs.
    pub(super) fn raw(&self) -> &[f32] {
        match self {
            HeadMemory::Latent(m) => &m.raw,
            HeadMemory::Layers(m) => m.stages.last().map_or(&[], |last| last),
            HeadMemory::Recurrent(m) => &m.raw,
        }
    }

    /// The last inputs of the LSTM, if there is one.
    pub(super) fn inputs(&self) -> &[f32] {
        match self {
            HeadMemory::Latent(m) => &m.inputs,
            HeadMemory::Layers(_) => &[],
            HeadMemory::Recurrent(m) => &m.inputs,
        }
    }

    /// Starts an episode.
    pub(super) fn reset(&mut self) {
        match self {
            HeadMemory::Latent(m) => {
                m.lstm.reset();
                m.smoothed.fill(0.0);
                m.alpha = 0.0;
            }
            HeadMemory::Layers(_) => {}
            HeadMemory::Recurrent(m) => m.lstm.reset(),
        }
    }
}

impl Head {
    pub(super) fn new(config: &HeadConfig, codes: [usize; 2], message: usize, actions: usize) -> Self {
        match config {
            HeadConfig::AttentionAgent(latent) => {
                let count = codes[0] * codes[1];
                let smoothing = (latent.smoothing > 0).then(|| {
                    [Dense::new(latent.hidden + actions, latent.smoothing), Dense::new(latent.smoothing, 1)]
                });
                Head::Latent(Box::new(LatentHead {
                    latent: Latent::new(count, message, latent.query_dim),
                    controller: LstmController::new(2 * latent.top_k, latent.hidden, actions),
                    smoothing,
                    codes,
                    message,
                    actions,
                    threads: Threads::one(),
                    config: latent.clone(),
                }))
            }
            HeadConfig::Recurrent(RecurrentConfig { hidden }) => {
                let inputs = config.flat(codes, message);
                Head::Recurrent(RecurrentHead {
                    codes: codes[0] * codes[1],
                    inputs,
                    hidden: *hidden,
                    actions,
                    controller: LstmController::new(inputs, *hidden, actions),
                })
            }
            HeadConfig::Convolution(ConvolutionConfig { hidden, output, .. })
            | HeadConfig::Dense(DenseConfig { hidden, output }) => {
                let convolutions =
                    config.convolutions(codes, message).into_iter().map(Conv::new).collect::<Vec<_>>();
                let mut width = config.flat(codes, message);
                let mut layers = vec![];
                for &units in hidden.iter().chain([&actions]) {
                    layers.push(Dense::new(width, units));
                    width = units;
                }
                Head::Layers(LayersHead { codes, message, convolutions, layers, output: *output })
            }
        }
    }

    /// Sets the weights. Does not allocate.
    pub(super) fn set(&mut self, params: &Params) {
        match self {
            Head::Latent(head) => {
                let divisor = head.config.scale.divisor(head.message, head.config.query_dim);
                let query = params.linear("latent_query.weight", "latent_query.bias");
                let key = params.linear("latent_key.weight", "latent_key.bias");
                head.latent.set(query, key, head.config.voting.scales(divisor));
                head.controller.set(params.lstm(), params.linear("output.weight", "output.bias"));
                if let Some([first, second]) = &mut head.smoothing {
                    first.set(params.linear("smoothing0.weight", "smoothing0.bias"));
                    second.set(params.linear("smoothing1.weight", "smoothing1.bias"));
                }
            }
            Head::Recurrent(head) => {
                head.controller.set(params.lstm(), params.linear("output.weight", "output.bias"));
            }
            Head::Layers(head) => {
                // They are the last tensors, a bias and a weight each.
                let count = 2 * (head.convolutions.len() + head.layers.len());
                let mut tensors = params.last(count);
                let mut next = || {
                    let bias = tensors.next().unwrap_or_default();
                    foveate_kernels::project::Linear { weight: tensors.next().unwrap_or_default(), bias }
                };
                head.convolutions.iter_mut().for_each(|conv| conv.set(next()));
                head.layers.iter_mut().for_each(|layer| layer.set(next()));
            }
        }
    }

    /// Threads that share the work on one picture, for memory made from now on.
    pub(super) fn set_threads(&mut self, threads: &Threads) {
        if let Head::Latent(head) = self {
            head.threads = threads.clone();
        }
    }

    pub(super) fn memory(&self) -> HeadMemory {
        match self {
            Head::Latent(head) => {
                let LatentConfig { query_dim, top_k, hidden, smoothing, .. } = head.config;
                let codes = head.codes[0] * head.codes[1];
                let numbers = if smoothing > 0 { head.message * codes.next_multiple_of(16) } else { 0 };
                HeadMemory::Latent(Box::new(LatentMemory {
                    smoothed: vec![0.0; numbers],
                    alpha: 0.0,
                    embedded: head.latent.embedded(),
                    voter: head.config.voting.voter(codes, query_dim, &head.threads),
                    importance: vec![0.0; codes],
                    best: vec![0; top_k],
                    order: Vec::with_capacity(codes),
                    inputs: vec![0.0; 2 * top_k],
                    lstm: LstmState::new(hidden),
                    raw: vec![0.0; head.actions],
                    mixer: [vec![0.0; hidden + head.actions], vec![0.0; smoothing]],
                }))
            }
            Head::Recurrent(head) => HeadMemory::Recurrent(RecurrentMemory {
                lstm: LstmState::new(head.hidden),
                inputs: vec![0.0; head.inputs],
                raw: vec![0.0; head.actions],
            }),
            Head::Layers(head) => {
                let first = head.codes[0] * head.codes[1] * head.message;
                let convolutions = head.convolutions.iter().map(|conv| conv.shape().outputs());
                let layers = head.layers.iter().map(Dense::outputs);
                let lens = [first].into_iter().chain(convolutions).chain(layers);
                HeadMemory::Layers(LayersMemory { stages: lens.map(|len| vec![0.0; len]).collect() })
            }
        }
    }

    /// One step on `message`, `[message, padded codes]`.
    ///
    /// # Errors
    /// When the votes of the codes are not finite.
    pub(super) fn step(
        &self,
        level: Level,
        message: &[f32],
        memory: &mut HeadMemory,
    ) -> Result<(), PolicyError> {
        match (self, memory) {
            (Head::Latent(head), HeadMemory::Latent(m)) => head.step(level, message, m),
            (Head::Layers(head), HeadMemory::Layers(m)) => {
                head.step(level, message, m);
                Ok(())
            }
            (Head::Recurrent(head), HeadMemory::Recurrent(m)) => {
                code_by_code(message, head.codes, &mut m.inputs);
                head.controller.step(level, &m.inputs, &mut m.lstm, &mut m.raw);
                Ok(())
            }
            _ => unreachable!("the memory of another head"),
        }
    }
}

impl LatentHead {
    fn step(&self, level: Level, message: &[f32], m: &mut LatentMemory) -> Result<(), PolicyError> {
        let [rows, columns] = self.codes;
        let message = if self.smoothing.is_some() {
            for (old, &new) in m.smoothed.iter_mut().zip(message) {
                *old = (1.0 - m.alpha) * new + m.alpha * *old;
            }
            &m.smoothed
        } else {
            message
        };
        self.latent.project(level, message, &mut m.embedded);
        m.voter.compute(level, &m.embedded, None, self.config.top_k, &mut m.importance)?;
        top_k(&m.importance, &mut m.best, &mut m.order);
        for (&code, place) in m.best.iter().zip(m.inputs.chunks_exact_mut(2)) {
            let code = code as usize;
            place[0] = (code / columns) as f32 / rows as f32;
            place[1] = (code % columns) as f32 / columns as f32;
        }
        self.controller.step(level, &m.inputs, &mut m.lstm, &mut m.raw);
        if let Some([first, second]) = &self.smoothing {
            let [inputs, hidden] = &mut m.mixer;
            inputs[..m.lstm.h().len()].copy_from_slice(m.lstm.h());
            inputs[m.lstm.h().len()..].copy_from_slice(&m.raw);
            first.apply(level, inputs, hidden);
            dense::tanh(level, hidden);
            let mut alpha = [0.0];
            second.apply(level, hidden, &mut alpha);
            dense::sigmoid(level, &mut alpha);
            m.alpha = alpha[0];
        }
        Ok(())
    }
}

impl LayersHead {
    fn step(&self, level: Level, message: &[f32], m: &mut LayersMemory) {
        let codes = self.codes[0] * self.codes[1];
        let pitch = codes.next_multiple_of(16);
        let (first, _) = m.stages.split_first_mut().expect("the codes come first");
        if self.convolutions.is_empty() {
            code_by_code(message, codes, first);
        } else {
            // A picture of `message` channels.
            for (plane, row) in first.chunks_exact_mut(codes).zip(message.chunks_exact(pitch)) {
                for (number, &x) in plane.iter_mut().zip(row) {
                    *number = if x > 0.0 { x } else { 0.0 };
                }
            }
        }
        let convolutions = self.convolutions.len();
        for (i, conv) in self.convolutions.iter().enumerate() {
            let (before, after) = m.stages.split_at_mut(i + 1);
            conv.apply(level, &before[i], &mut after[0]);
        }
        for (i, layer) in self.layers.iter().enumerate() {
            let (before, after) = m.stages.split_at_mut(convolutions + i + 1);
            layer.apply(level, &before[convolutions + i], &mut after[0]);
            if i + 1 < self.layers.len() {
                for x in &mut after[0] {
                    *x = if *x > 0.0 { *x } else { 0.0 };
                }
            } else if self.output == Output::Tanh {
                dense::tanh(level, &mut after[0]);
            }
        }
    }
}
