//! The network in a graph of ONNX.

use foveate_core::{EnvSpec, PolicyError};
use foveate_learn::{Frequencies, SpatialBasis};

use super::{Basis, S3taConfig, Source, Torso};
use crate::config::{ConvolutionLayer, bad};
use crate::descriptor::AgentConfig;
use crate::onnx::{
    Attribute, Edge, Graph, OnnxModel, PortNumbers, give, misfit, one_hot, params, picture, sizes,
};

/// Checks that it is an agent with attention.
pub(super) fn has_attention(config: &S3taConfig) -> Result<(), PolicyError> {
    match config.torso {
        Torso::Attention => Ok(()),
        Torso::Residual => bad(
            "torso = \"residual\" has no attention and cannot be exported; choose an agent with torso = \"attention\"",
        ),
    }
}

/// The graph of an S3TA agent.
pub(super) fn model(config: &S3taConfig, flat: &[f32], spec: &EnvSpec) -> Result<OnnxModel, PolicyError> {
    config.check()?;
    has_attention(config)?;
    let params = params(config.tensors(), flat)?;
    let g = &mut Graph::new(&params);
    let [height, width, channels] = config.view;
    let wanted = format!("a picture of {height} x {width} pixels with {channels} numbers each");
    let (shown, [frames, rows, columns, colours]) = picture(g, spec, &wanted)?;
    if [rows, columns, frames * colours] != config.view {
        return Err(misfit(spec, &wanted));
    }
    let reward = g.input(
        "reward",
        PortNumbers::F32,
        &sizes(&[1]),
        "the reward of the last step; 0 at the start of an episode",
    );
    let about = "the action of the last step; -1 at the start of an episode";
    let last = g.input("last_choice", PortNumbers::I64, &sizes(&[1]), about);
    let least = g.number(-config.reward_clip as f32);
    let most = g.number(config.reward_clip as f32);
    let reward = g.op("Clip", &[&reward, &least, &most]);
    let last = one_hot(g, &last, config.actions);
    let told = g.concat(&[&reward, &last], 0);

    // 1. The vision core: convolutions, and a ConvLSTM. Pictures of a stack become channels, `[1, channels, rows, columns]`.
    let mut x = g.as_floats(&shown);
    x = g.times(&x, f64::from(config.pixel_scale / 255.0));
    x = g.reshape(&x, &[frames, rows, columns, colours]);
    x = g.transpose(&x, &[0, 3, 1, 2]);
    x = g.reshape(&x, &[1, channels, height, width]);
    let mut cells = [height, width];
    for (i, &ConvolutionLayer { size, stride, .. }) in config.convolutions.iter().enumerate() {
        x = convolve(g, &format!("vision_conv{}", i + 1), &x, &mut cells, size, stride);
        x = g.op("Relu", &[&x]);
    }
    if config.normalise {
        x = g.normalise(&x, &[2, 3]);
    }
    let [rows, columns] = cells;
    let shape = sizes(&[rows, columns, config.channels]);
    let [vision_h, vision_c] = ["vision_h", "vision_c"].map(|name| g.state(name, &shape));
    let from_x = convolve(g, "vision_input", &x, &mut cells, config.size, 1);
    let h = g.reshape(&vision_h, &[1, rows, columns, config.channels]);
    let h = g.transpose(&h, &[0, 3, 1, 2]);
    let from_h = convolve(g, "vision_state", &h, &mut cells, config.size, 1);
    let sums = g.add(&from_x, &from_h);
    let sums = g.transpose(&sums, &[0, 2, 3, 1]);
    let sums = g.reshape(&sums, &[rows, columns, 4 * config.channels]);
    let peepholes = config.peepholes.then(|| {
        let all = g.param("vision_peephole.weight");
        std::array::from_fn(|gate| {
            let one = g.slice(&all, 0, gate, gate + 1);
            g.reshape(&one, &[rows, columns, config.channels])
        })
    });
    let [h, c] = gates(g, config.forget_bias, &sums, &vision_c, peepholes.as_ref());
    g.next_state("vision_h", &shape, &h);
    g.next_state("vision_c", &shape, &c);

    // Keys and values, with the spatial basis.
    let count = rows * columns;
    let frequencies = match config.basis {
        Basis::Mixed => Frequencies::Mixed,
        Basis::MixedFromZero => Frequencies::MixedFromZero,
        Basis::Cosines => Frequencies::Cosines,
    };
    let basis = SpatialBasis::new(config.frequencies, frequencies);
    let places = basis.of(rows, columns).into_iter().map(|x| x as f32);
    let places = g.floats(&[count, basis.channels()], places);
    let seen = g.reshape(&h, &[count, config.channels]);
    let contents = g.slice(&seen, 1, 0, config.keys);
    let values = g.slice(&seen, 1, config.keys, config.channels);
    let values = g.concat(&[&values, &places], 1);

    // 2. Queries from the state before this step.
    let units = sizes(&[config.units]);
    let [core_h, core_c] = ["core_h", "core_c"].map(|name| g.state(name, &units));
    let key_width = config.keys + basis.channels();
    let queries = match config.attention {
        Source::TopDown => {
            let x = layers(g, "query", config.query_hidden.len(), &core_h, true);
            Some(g.linear("query", &x))
        }
        Source::FixedQuery => Some(g.param("query.value")),
        Source::KeyNorms => None,
    };

    // 3. Answers.
    let scores = if let Some(queries) = &queries {
        let keys = g.concat(&[&contents, &places], 1);
        let keys = g.transpose(&keys, &[1, 0]);
        let asked = g.reshape(queries, &[config.heads, key_width]);
        let products = g.matmul(&asked, &keys);
        g.times(&products, f64::from(config.score_scale))
    } else {
        let keys = g.reshape(&contents, &[count, config.heads, config.keys / config.heads]);
        let squares = g.mul(&keys, &keys);
        let sums = g.sum(&squares, 2, false);
        let least = g.number(1e-12);
        let sums = g.add(&sums, &least);
        let norms = g.op("Sqrt", &[&sums]);
        g.transpose(&norms, &[1, 0])
    };
    let weights = g.softmax(&scores);
    let about = format!("the weight of each cell for each head; cells row by row, {rows} rows of {columns}");
    g.output("attention", PortNumbers::F32, &sizes(&[config.heads, count]), &weights, &about);
    let answers = g.matmul(&weights, &values);
    let features = config.channels - config.keys + basis.channels();
    let mut parts = vec![g.reshape(&answers, &[config.heads * features])];
    parts.extend(queries);
    parts.push(told);

    // 4. The LSTM, which acts and estimates values.
    let x = g.concat(&parts.iter().collect::<Vec<_>>(), 0);
    let x = layers(g, "answer", config.answer_hidden.len(), &x, config.answer_relu);
    let (from_x, from_h) = (g.linear("core_input", &x), g.linear("core_state", &core_h));
    let sums = g.add(&from_x, &from_h);
    let [h, c] = gates(g, config.forget_bias, &sums, &core_c, None);
    g.next_state("core_h", &units, &h);
    g.next_state("core_c", &units, &c);
    let x = layers(g, "trunk", usize::from(config.trunk > 0), &h, true);
    let scores = g.linear("policy", &x);
    let value = g.linear("value", &x);
    g.output("value", PortNumbers::F32, &sizes(&[1]), &value, "the value of the state");
    give(g, spec, &scores, config.actions)?;
    g.finish(
        "s3ta",
        "S3TA (Mott et al. 2019): an LSTM asks the cells of the picture for what it wants to know",
    )
}

/// A convolution with zeros around the picture, so that the output has ⌈size / stride⌉ rows and columns.
fn convolve(
    g: &mut Graph<'_>,
    name: &str,
    x: &Edge,
    cells: &mut [usize; 2],
    size: usize,
    stride: usize,
) -> Edge {
    let weight = g.param(&format!("{name}.weight"));
    let weight = g.transpose(&weight, &[0, 3, 1, 2]);
    let to = cells.map(|n| n.div_ceil(stride));
    let pads: [usize; 2] = std::array::from_fn(|i| ((to[i] - 1) * stride + size).saturating_sub(cells[i]));
    let before = pads.map(|all| all / 2);
    let pads = [before[0], before[1], pads[0] - before[0], pads[1] - before[1]].map(|n| n as i64);
    let strides = [stride as i64; 2];
    let mut inputs = vec![x.clone(), weight];
    let bias = format!("{name}.bias");
    if g.has(&bias) {
        inputs.push(g.param(&bias));
    }
    *cells = to;
    let attributes = [("strides", Attribute::Ints(&strides)), ("pads", Attribute::Ints(&pads))];
    g.op_with("Conv", &inputs.iter().collect::<Vec<_>>(), &attributes)
}

/// h and c after the sums of the gates; with peepholes, gates i and f see the memory before, o the new one.
fn gates(
    g: &mut Graph<'_>,
    forget_bias: f32,
    sums: &Edge,
    c: &Edge,
    peepholes: Option<&[Edge; 3]>,
) -> [Edge; 2] {
    let [mut i, mut f, z, mut o] = g.ops("Split", &[sums], &[("axis", Attribute::Int(-1))]);
    let bias = g.number(forget_bias);
    f = g.add(&f, &bias);
    if let Some([of_i, of_f, _]) = peepholes {
        let (more, keep) = (g.mul(of_i, c), g.mul(of_f, c));
        (i, f) = (g.add(&i, &more), g.add(&f, &keep));
    }
    let (i, f, z) = (g.op("Sigmoid", &[&i]), g.op("Sigmoid", &[&f]), g.op("Tanh", &[&z]));
    let (kept, new) = (g.mul(&f, c), g.mul(&i, &z));
    let c = g.add(&kept, &new);
    if let Some([_, _, of_o]) = peepholes {
        let more = g.mul(of_o, &c);
        o = g.add(&o, &more);
    }
    let (o, tanh) = (g.op("Sigmoid", &[&o]), g.op("Tanh", &[&c]));
    [g.mul(&o, &tanh), c]
}

/// Layers with relu between them, and after the last if `last`.
fn layers(g: &mut Graph<'_>, name: &str, count: usize, x: &Edge, last: bool) -> Edge {
    let mut x = x.clone();
    for i in 1..=count {
        x = g.linear(&format!("{name}{i}"), &x);
        if last || i < count {
            x = g.op("Relu", &[&x]);
        }
    }
    x
}
