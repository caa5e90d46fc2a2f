//! The network, in the paper's order.

use foveate_core::PolicyError;
use foveate_learn::{
    Activations, Add, Builder, Concat, Conv, Frequencies, Function, GroupNorms, Learned, Linear, LstmGates,
    MaxPool, Network, Node, Padding, Part, Softmax, SoftmaxAttention, SpatialBasis, StateNodes, WeightedSum,
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
    let x = if config.trunk > 0 { layers(&mut net, "trunk", &[config.trunk], state, true) } else { state };
    let policy = net.layer("policy", Linear::new(config.actions), [x]);
    let value = net.layer("value", Linear::new(1), [x]);
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

fn attentive(config: &S3taConfig, net: &mut Builder, picture: Node, told: Node) -> Parts {
    let S3taConfig { channels, keys, heads, forget_bias, .. } = *config;
    // 1. The vision core: convolutions, then a ConvLSTM.
    let mut x = picture;
    for (i, &ConvolutionLayer { filters, size, stride }) in config.convolutions.iter().enumerate() {
        let conv = Conv::new(filters, size).with_stride(stride).with_padding(Padding::Same);
        x = net.layer(&format!("vision_conv{}", i + 1), conv, [x]);
        x = net.map(Function::Relu, x);
    }
    let cells = match *net.shape(x) {
        [rows, columns, _] => [rows, columns],
        _ => [1, 1],
    };
    let [rows, columns] = cells;
    let vision = ["vision_h", "vision_c"].map(|name| net.state(name, [rows, columns, channels]));
    let core = ["core_h", "core_c"].map(|name| net.state(name, [config.units]));
    let conv = Conv::new(4 * channels, config.size).with_padding(Padding::Same);
    let from_x = net.layer("vision_input", conv, [x]);
    let from_h = net.layer("vision_state", conv.without_bias(), [vision[0]]);
    let sums = net.then(Add, [from_x, from_h]);
    let cell = LstmGates::default().with_forget_bias(forget_bias);
    let cell = if config.peepholes { cell.with_peepholes() } else { cell };
    let vision = gates(net, "vision_peephole", cell, sums, vision);
    // 2. Keys and values, with the spatial basis.
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
    let width = channels - keys + basis.channels();
    let values = net.reshape(values, [rows * columns, width]);
    // 3. Queries from the state before this step, and the answers to them.
    let key_width = keys + basis.channels();
    let queries = match config.attention {
        Source::TopDown => {
            let x = layers(net, "query", &config.query_hidden, core[0], true);
            Some(net.layer("query", Linear::new(heads * key_width), [x]))
        }
        Source::FixedQuery => Some(net.layer("query", Learned::new([heads * key_width]), [told])),
        Source::KeyNorms => None,
    };
    let (answers, weights) = if let Some(queries) = queries {
        let keys = net.then(basis, [contents]);
        let keys = net.reshape(keys, [rows * columns, key_width]);
        let asked = net.reshape(queries, [heads, key_width]);
        let answers = net.then(SoftmaxAttention::new(1.0), [asked, keys, values]);
        (answers, Weights::Kept(answers))
    } else {
        let keys = net.reshape(contents, [rows * columns, keys]);
        let norms = net.then(GroupNorms::new(heads), [keys]);
        let weights = net.then(Softmax, [norms]);
        (net.then(WeightedSum, [weights, values]), Weights::Output(weights))
    };
    // 4. Answers, queries and the last step feed the LSTM.
    let mut x = net.reshape(answers, [heads * width]);
    if let Some(queries) = queries {
        x = net.then(Concat, [x, queries]);
    }
    x = net.then(Concat, [x, told]);
    x = layers(net, "answer", &config.answer_hidden, x, config.answer_relu);
    let core = lstm(net, x, core, forget_bias);
    let attention = Some(AttentionNodes { cells, weights });
    Parts { state: core[0].output, states: [vision, core].concat(), attention }
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
