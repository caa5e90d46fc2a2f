//! The network, in the paper's order.

use foveate_core::PolicyError;
use foveate_learn::{
    Activations, Add, Builder, ChannelNorm, Concat, Conv, Frequencies, Function, GroupNorms, Learned, Linear,
    LstmGates, MaxPool, Network, Node, Padding, Part, Softmax, SoftmaxAttention, SpatialBasis, StateNodes,
    WeightedSum,
};

use super::{Basis, S3taConfig, Source, Torso};
use crate::config::{ConvolutionLayer, MAX_ACTIONS, MAX_HIDDEN, MAX_SIDE, bad, within};

/// Most layers of a kind, most heads and frequencies.
const MAX_LAYERS: usize = 64;
/// Most numbers of a tensor of one step.
const MAX_NUMBERS: usize = 1 << 24;
/// Filters of the three stages of the residual torso.
const STAGES: [usize; 3] = [16, 32, 32];

/// A network of one step, and what is read from it.
#[derive(Debug)]
pub(super) struct Nodes {
    /// Its inputs: the picture, what the last step was, the states.
    pub(super) net: Network,
    pub(super) policy: Node,
    pub(super) value: Node,
    /// h and c of the vision core, h and c of the LSTM; of the residual torso those of its LSTM, if it has one.
    pub(super) states: Vec<StateNodes>,
    pub(super) attention: Option<AttentionNodes>,
}

/// The attention in a network.
#[derive(Debug)]
pub(super) struct AttentionNodes {
    /// Rows and columns of cells.
    pub(super) cells: [usize; 2],
    weights: Weights,
}

/// Where the weights are, `[heads, cells]`.
#[derive(Debug)]
enum Weights {
    Output(Node),
    /// The layer of this node keeps them.
    Kept(Node),
}

impl AttentionNodes {
    /// `[batch, heads, cells]`
    pub(super) fn weights<'a>(&self, acts: &'a Activations) -> &'a [f32] {
        match self.weights {
            Weights::Output(node) => acts.get(node),
            Weights::Kept(node) => acts.kept(node),
        }
    }
}

/// Layers with relu between them, and after the last if `last`.
fn layers(net: &mut Builder, name: &str, units: &[usize], mut x: Node, last: bool) -> Node {
    for (i, &n) in units.iter().enumerate() {
        x = net.layer(&format!("{name}{}", i + 1), Linear::new(n), [x]);
        if last || i + 1 < units.len() {
            x = net.map(Function::Relu, x);
        }
    }
    x
}

/// h and c after the sums of the four gates, whose parameters, if they have any, are called `name`.
fn gates(net: &mut Builder, name: &str, gates: LstmGates, sums: Node, [h, c]: [Node; 2]) -> [StateNodes; 2] {
    let units = net.shape(h).last().copied().unwrap_or_default();
    let both = net.layer(name, gates, [sums, c]);
    let next_h = net.then(Part { begin: 0, len: units }, [both]);
    let next_c = net.then(Part { begin: units, len: units }, [both]);
    [StateNodes { input: h, output: next_h }, StateNodes { input: c, output: next_c }]
}

/// An LSTM on `x`, whose state is `[h, c]`.
fn lstm(net: &mut Builder, x: Node, state: [Node; 2], forget_bias: f32) -> [StateNodes; 2] {
    let units = net.shape(state[0]).last().copied().unwrap_or_default();
    let from_x = net.layer("core_input", Linear::new(4 * units), [x]);
    let from_h = net.layer("core_state", Linear::new(4 * units).without_bias(), [state[0]]);
    let sums = net.then(Add, [from_x, from_h]);
    gates(net, "core_gates", LstmGates::default().with_forget_bias(forget_bias), sums, state)
}

fn numbers(net: &Builder, node: Node) -> usize {
    net.shape(node).iter().product()
}

fn check(config: &S3taConfig) -> Result<(), PolicyError> {
    let [rows, columns, channels] = config.view;
    within("rows of the view", rows, MAX_SIDE)?;
    within("columns of the view", columns, MAX_SIDE)?;
    within("channels of the view", channels, MAX_SIDE)?;
    within("actions", config.actions, MAX_ACTIONS)?;
    if config.view.iter().product::<usize>() > MAX_NUMBERS {
        return bad(format!("view is {:?}; at most {MAX_NUMBERS} numbers are possible", config.view));
    }
    if !(config.reward_clip >= 0.0 && config.reward_clip.is_finite()) {
        return bad(format!("reward_clip = {}; it must be at least 0", config.reward_clip));
    }
    if !(config.score_scale > 0.0 && config.score_scale <= 100.0) {
        return bad(format!("score_scale = {}; choose from above 0 to 100", config.score_scale));
    }
    if !(config.pixel_scale > 0.0 && config.pixel_scale <= 1000.0) {
        return bad(format!("pixel_scale = {}; choose from above 0 to 1000", config.pixel_scale));
    }
    if !(-100.0..=100.0).contains(&config.forget_bias) {
        return bad(format!("forget_bias = {}; choose from -100 to 100", config.forget_bias));
    }
    for (name, hidden) in [("query_hidden", &config.query_hidden), ("answer_hidden", &config.answer_hidden)] {
        if hidden.len() > MAX_LAYERS {
            return bad(format!("{name} names {} layers; at most {MAX_LAYERS} are possible", hidden.len()));
        }
        for &units in hidden {
            within(name, units, MAX_HIDDEN)?;
        }
    }
    if config.units > MAX_HIDDEN || config.trunk > MAX_HIDDEN {
        return bad(format!("units = {}, trunk = {}; at most {MAX_HIDDEN}", config.units, config.trunk));
    }
    if config.torso == Torso::Residual {
        return Ok(());
    }
    if config.units == 0 {
        return bad("units = 0; the queries come from the LSTM, so it needs at least 1");
    }
    within("number of convolutions", config.convolutions.len(), MAX_LAYERS)?;
    for &ConvolutionLayer { filters, size, stride } in &config.convolutions {
        within("convolutions: filters", filters, MAX_HIDDEN)?;
        within("convolutions: size", size, MAX_SIDE)?;
        within("convolutions: stride", stride, MAX_SIDE)?;
    }
    within("size", config.size, MAX_LAYERS)?;
    within("channels", config.channels, MAX_HIDDEN)?;
    within("heads", config.heads, MAX_LAYERS)?;
    within("frequencies", config.frequencies, MAX_LAYERS)?;
    if config.keys == 0 || config.keys >= config.channels {
        return bad(format!("keys = {}; choose from 1 to {}", config.keys, config.channels - 1));
    }
    if config.attention == Source::KeyNorms && !config.keys.is_multiple_of(config.heads) {
        return bad(format!(
            "keys = {} for {} heads; with attention = \"key-norms\" each head gets as many, so choose a multiple",
            config.keys, config.heads
        ));
    }
    Ok(())
}

/// The network of these settings.
///
/// # Errors
/// When they make no sense.
pub(super) fn build(config: &S3taConfig) -> Result<Nodes, PolicyError> {
    check(config)?;
    let mut net = Builder::default();
    let picture = net.input("picture", config.view);
    let told = net.input("told", [config.told()]);
    let nodes = match config.torso {
        Torso::Attention => attentive(config, &mut net, picture, told),
        Torso::Residual => residual(config, &mut net, picture, told),
    };
    let Parts { state, states, attention } = nodes;
    let [policy, value] = act(config, &mut net, state);
    let mut read = vec![policy, value];
    read.extend(states.iter().map(|state| state.output));
    read.extend(attention.as_ref().map(|attention| match attention.weights {
        Weights::Output(node) | Weights::Kept(node) => node,
    }));
    let net = net.build(&read).or_else(|error| bad(error.to_string()))?;
    Ok(Nodes { net, policy, value, states, attention })
}

/// What a torso hands on.
struct Parts {
    /// What acts.
    state: Node,
    states: Vec<StateNodes>,
    attention: Option<AttentionNodes>,
}

/// The states of the vision core, and those of the LSTM.
fn vision_states(config: &S3taConfig, net: &mut Builder, cells: [usize; 2]) -> [Node; 2] {
    ["vision_h", "vision_c"].map(|name| net.state(name, [cells[0], cells[1], config.channels]))
}

fn core_states(config: &S3taConfig, net: &mut Builder) -> [Node; 2] {
    ["core_h", "core_c"].map(|name| net.state(name, [config.units]))
}

/// What the vision core sees.
struct Seen {
    cells: [usize; 2],
    vision: [StateNodes; 2],
    /// `[rows, columns, keys]`
    contents: Node,
    /// `[cells, features]`, with the spatial basis.
    values: Node,
    basis: SpatialBasis,
}

fn attentive(config: &S3taConfig, net: &mut Builder, picture: Node, told: Node) -> Parts {
    let x = convolve(config, net, picture);
    let cells = cells(net, x);
    let vision = vision_states(config, net, cells);
    let core = core_states(config, net);
    let seen = see(config, net, x, vision);
    let queries = ask(config, net, core[0], told);
    let (answers, weights, _) = attend(config, net, &seen, queries);
    let core = answer(config, net, (answers, queries, told), core);
    let attention = Some(AttentionNodes { cells, weights });
    Parts { state: core[0].output, states: [seen.vision, core].concat(), attention }
}

/// 1. The vision core: convolutions …
fn convolve(config: &S3taConfig, net: &mut Builder, picture: Node) -> Node {
    let mut x = picture;
    for (i, &ConvolutionLayer { filters, size, stride }) in config.convolutions.iter().enumerate() {
        let conv = Conv::new(filters, size).with_stride(stride).with_padding(Padding::Same);
        x = net.layer(&format!("vision_conv{}", i + 1), conv, [x]);
        x = net.map(Function::Relu, x);
    }
    if config.normalise { net.then(ChannelNorm::default(), [x]) } else { x }
}

fn cells(net: &Builder, x: Node) -> [usize; 2] {
    match *net.shape(x) {
        [rows, columns, _] => [rows, columns],
        _ => [1, 1],
    }
}

/// … then a `ConvLSTM`, whose output is keys and values, with the spatial basis.
fn see(config: &S3taConfig, net: &mut Builder, x: Node, vision: [Node; 2]) -> Seen {
    let S3taConfig { channels, keys, .. } = *config;
    let cells = cells(net, x);
    let conv = Conv::new(4 * channels, config.size).with_padding(Padding::Same);
    let from_x = net.layer("vision_input", conv, [x]);
    let from_h = net.layer("vision_state", conv.without_bias(), [vision[0]]);
    let sums = net.then(Add, [from_x, from_h]);
    let cell = LstmGates::default().with_forget_bias(config.forget_bias);
    let cell = if config.peepholes { cell.with_peepholes() } else { cell };
    let vision = gates(net, "vision_peephole", cell, sums, vision);
    let seen = vision[0].output;
    let basis = SpatialBasis::new(
        config.frequencies,
        match config.basis {
            Basis::Mixed => Frequencies::Mixed,
            Basis::MixedFromZero => Frequencies::MixedFromZero,
            Basis::Cosines => Frequencies::Cosines,
        },
    );
    let contents = net.then(Part { begin: 0, len: keys }, [seen]);
    let values = net.then(Part { begin: keys, len: channels - keys }, [seen]);
    let values = net.then(basis, [values]);
    let values = net.reshape(values, [cells[0] * cells[1], channels - keys + basis.channels()]);
    Seen { cells, vision, contents, values, basis }
}

/// 2. Queries from the state before this step, the key of every head after the other.
fn ask(config: &S3taConfig, net: &mut Builder, core_h: Node, told: Node) -> Option<Node> {
    let numbers = config.heads * config.key_width();
    match config.attention {
        Source::TopDown => {
            let x = layers(net, "query", &config.query_hidden, core_h, true);
            Some(net.layer("query", Linear::new(numbers), [x]))
        }
        Source::FixedQuery => Some(net.layer("query", Learned::new([numbers]), [told])),
        Source::KeyNorms => None,
    }
}

/// 3. Answers, `[heads, features]`, the weights behind them, and with queries the queries and keys.
fn attend(
    config: &S3taConfig,
    net: &mut Builder,
    seen: &Seen,
    queries: Option<Node>,
) -> (Node, Weights, Option<[Node; 2]>) {
    let cells = seen.cells[0] * seen.cells[1];
    if let Some(queries) = queries {
        let keys = net.then(seen.basis, [seen.contents]);
        let keys = net.reshape(keys, [cells, config.key_width()]);
        let asked = net.reshape(queries, [config.heads, config.key_width()]);
        let answers = net.then(SoftmaxAttention::new(config.score_scale), [asked, keys, seen.values]);
        (answers, Weights::Kept(answers), Some([asked, keys]))
    } else {
        let keys = net.reshape(seen.contents, [cells, config.keys]);
        let norms = net.then(GroupNorms::new(config.heads), [keys]);
        let weights = net.then(Softmax, [norms]);
        (net.then(WeightedSum, [weights, seen.values]), Weights::Output(weights), None)
    }
}

/// 4. Answers, queries and the last step feed the LSTM.
fn answer(
    config: &S3taConfig,
    net: &mut Builder,
    (answers, queries, told): (Node, Option<Node>, Node),
    core: [Node; 2],
) -> [StateNodes; 2] {
    let flat = numbers(net, answers);
    let mut x = net.reshape(answers, [flat]);
    if let Some(queries) = queries {
        x = net.then(Concat, [x, queries]);
    }
    x = net.then(Concat, [x, told]);
    x = layers(net, "answer", &config.answer_hidden, x, config.answer_relu);
    lstm(net, x, core, config.forget_bias)
}

/// Choice and value from the state.
fn act(config: &S3taConfig, net: &mut Builder, state: Node) -> [Node; 2] {
    let x = if config.trunk > 0 { layers(net, "trunk", &[config.trunk], state, true) } else { state };
    [net.layer("policy", Linear::new(config.actions), [x]), net.layer("value", Linear::new(1), [x])]
}

/// The network in two: up to the attention, and from it on.
#[derive(Debug)]
pub(super) struct Halves {
    pub(super) front: Front,
    pub(super) back: Back,
}

/// Its inputs: the picture, what the last step was, h and c of the vision core, h of the LSTM. Its parameters are the first of
/// the network.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) net: Network,
    pub(super) vision: [StateNodes; 2],
    pub(super) attention: AttentionNodes,
    /// `[cells, features]`
    pub(super) values: Node,
    /// `[heads, width]` and `[cells, width]`, where queries ask.
    pub(super) queries_and_keys: Option<[Node; 2]>,
}

/// Its inputs: weights `[heads, cells]`, values, what the last step was, h and c of the LSTM. Its parameters are the last of the
/// network; those of the queries belong to both halves.
#[derive(Debug)]
pub(super) struct Back {
    pub(super) net: Network,
    pub(super) core: [StateNodes; 2],
    pub(super) policy: Node,
    pub(super) value: Node,
}

/// The two halves; `None` for the residual torso, which has no attention.
///
/// # Errors
/// When the settings make no sense.
pub(super) fn halves(config: &S3taConfig) -> Result<Option<Halves>, PolicyError> {
    check(config)?;
    if config.torso == Torso::Residual {
        return Ok(None);
    }
    let refused = |error: foveate_learn::NetworkError| bad(error.to_string());
    let mut net = Builder::default();
    let picture = net.input("picture", config.view);
    let told = net.input("told", [config.told()]);
    let x = convolve(config, &mut net, picture);
    let cells = cells(&net, x);
    let states = vision_states(config, &mut net, cells);
    let core_h = net.state("core_h", [config.units]);
    let seen = see(config, &mut net, x, states);
    let queries = ask(config, &mut net, core_h, told);
    let (answers, weights, queries_and_keys) = attend(config, &mut net, &seen, queries);
    let mut read = vec![answers, seen.values, seen.vision[0].output, seen.vision[1].output];
    read.extend(queries_and_keys.into_iter().flatten());
    if let Weights::Output(weights) = weights {
        read.push(weights);
    }
    let features = net.shape(seen.values).to_vec();
    let attention = AttentionNodes { cells, weights };
    let Seen { vision, values, .. } = seen;
    let net = net.build(&read).or_else(refused)?;
    let front = Front { net, vision, attention, values, queries_and_keys };

    let mut net = Builder::default();
    let weights = net.input("weights", [config.heads, features[0]]);
    let values = net.input("values", features);
    let told = net.input("told", [config.told()]);
    let core = core_states(config, &mut net);
    let queries = ask(config, &mut net, core[0], told);
    let answers = net.then(WeightedSum, [weights, values]);
    let core = answer(config, &mut net, (answers, queries, told), core);
    let [policy, value] = act(config, &mut net, core[0].output);
    let net = net.build(&[policy, value, core[0].output, core[1].output]).or_else(refused)?;
    Ok(Some(Halves { front, back: Back { net, core, policy, value } }))
}

/// Espeholt et al. 2018, figure 3, right.
fn residual(config: &S3taConfig, net: &mut Builder, picture: Node, told: Node) -> Parts {
    let conv = |filters| Conv::new(filters, 3).with_padding(Padding::Same);
    let mut x = picture;
    for (stage, filters) in STAGES.into_iter().enumerate() {
        let name = format!("stage{}", stage + 1);
        x = net.layer(&format!("{name}_conv"), conv(filters), [x]);
        x = net.then(MaxPool::new(3).with_stride(2).with_padding(Padding::Same), [x]);
        for block in 1..=2 {
            let mut y = net.map(Function::Relu, x);
            y = net.layer(&format!("{name}_block{block}_conv1"), conv(filters), [y]);
            y = net.map(Function::Relu, y);
            y = net.layer(&format!("{name}_block{block}_conv2"), conv(filters), [y]);
            x = net.then(Add, [x, y]);
        }
    }
    let x = net.map(Function::Relu, x);
    let flat = numbers(net, x);
    let x = net.reshape(x, [flat]);
    let x = layers(net, "answer", &config.answer_hidden, x, true);
    if config.units == 0 {
        return Parts { state: x, states: vec![], attention: None };
    }
    let x = net.then(Concat, [x, told]);
    let core = ["core_h", "core_c"].map(|name| net.state(name, [config.units]));
    let core = lstm(net, x, core, config.forget_bias);
    Parts { state: core[0].output, states: core.to_vec(), attention: None }
}
