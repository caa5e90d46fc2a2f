//! AttentionNeuron on pictures in a graph of ONNX.

use foveate_core::{EnvSpec, PolicyError};

use super::heads::{ConvolutionConfig, DenseConfig, HeadConfig, LatentConfig, Output};
use super::pictures::{Order, PictureConfig};
use super::queries;
use crate::bottleneck::graph::{drawn, remember, vote};
use crate::descriptor::AgentConfig;
use crate::onnx::{
    Attribute, Edge, Graph, OnnxModel, PortNumbers, act, first_largest, give, misfit, one_hot, params,
    picture, sizes,
};
use crate::torch::TorchModule;

/// The graph of an AttentionNeuron on pictures.
pub(super) fn model(config: &PictureConfig, flat: &[f32], spec: &EnvSpec) -> Result<OnnxModel, PolicyError> {
    config.check()?;
    let params = params(config.tensors(), flat)?;
    let g = &mut Graph::new(&params);
    let PictureConfig { image: [width, height], frames, patch: side, .. } = *config;
    let wanted = format!("a stack of {frames} grey pictures of {width}x{height}");
    let (shown, is) = picture(g, spec, &wanted)?;
    if is != [frames, height, width, 1] {
        return Err(misfit(spec, &wanted));
    }
    let (rows, columns, area) = (height / side, width / side, side * side);
    let (patches, actions) = (rows * columns, sizes(&[config.actions.len()]));
    let first = config.first_choice;
    let about = match first {
        None => "the last step's next_before; zeros at the start of an episode".into(),
        Some(choice) => {
            format!("the last step's next_before; zeros, and a one at {choice}, at the start of an episode")
        }
    };
    let before = g.input("before", PortNumbers::F32, &actions, &about);

    // Patches, `[patches, frames, area]`, from 0 to 1.
    let pixels = g.as_floats(&shown);
    let pixels = g.times(&pixels, 1.0 / 255.0);
    let pixels = g.reshape(&pixels, &[frames, height, width]);
    let pixels = g.slice(&pixels, 1, 0, rows * side);
    let pixels = g.slice(&pixels, 2, 0, columns * side);
    let pixels = g.reshape(&pixels, &[frames, rows, side, columns, side]);
    let pixels = g.transpose(&pixels, &[1, 3, 0, 2, 4]);
    let pixels = g.reshape(&pixels, &[patches, frames, area]);

    // 1. Keys of what moves.
    let (after, earlier) = (g.slice(&pixels, 1, 1, frames), g.slice(&pixels, 1, 0, frames - 1));
    let mut moves = g.sub(&after, &earlier);
    if config.flatten == Order::TimeFastest {
        moves = g.transpose(&moves, &[0, 2, 1]);
    }
    let moves = g.reshape(&moves, &[patches, (frames - 1) * area]);
    let weight = g.param("key.weight");
    let weight = g.transpose(&weight, &[1, 0]);
    let differences = (frames - 1) * area;
    let of_moves = g.slice(&weight, 0, 0, differences);
    let of_action = g.slice(&weight, 0, differences, differences + config.actions.len());
    let from_moves = g.matmul(&moves, &of_moves);
    let from_action = g.matmul(&before, &of_action);
    let bias = g.param("key.bias");
    let shared = g.add(&from_action, &bias);
    let key = g.add(&from_moves, &shared);

    // 2. Values of what it looks like.
    let mut looks = g.normalise(&pixels, &[2]);
    if config.value_affine {
        looks = affine(g, "value_norm", &looks);
    }
    let looks = g.reshape(&looks, &[patches, frames * area]);
    let value = g.linear("value", &looks);

    // 3. A message for each code.
    let codes = config.codes[0] * config.codes[1];
    let table = g.floats(&[codes, config.code_dim], queries(codes, config.code_dim));
    let query = g.linear("query", &table);
    let key = g.transpose(&key, &[1, 0]);
    let products = g.matmul(&query, &key);
    let divisor =
        config.scale.divisor(differences + config.actions.len(), config.query_dim) / config.sharpness;
    let scores = g.times(&products, 1.0 / divisor);
    let weights = g.softmax(&scores);
    let importance = g.sum(&weights, 0, false);
    let about = "the weights of each patch, added up over the codes, row by row";
    g.output("attention", PortNumbers::F32, &sizes(&[patches]), &importance, about);
    let message = g.matmul(&weights, &value);
    let message = g.op("Relu", &[&message]);
    let mut message = g.normalise(&message, &[1]);
    if config.message_affine {
        message = affine(g, "message_norm", &message);
    }

    // 4. The head.
    let raw = head(g, config, &message)?;
    if first.is_some() {
        let choice = first_largest(g, &raw);
        let choice = one_hot(g, &choice, config.actions.len());
        g.next_state("before", &actions, &choice);
    } else {
        g.next_state("before", &actions, &raw);
    }
    if config.head.gives_scores() {
        give(g, spec, &raw, config.actions.len())?;
    } else {
        act(g, spec, &raw, &config.actions)?;
    }
    g.finish(
        "attention-neuron",
        "AttentionNeuron (Tang and Ha 2021): every patch is a sensor with a network of its own",
    )
}

/// The module of `PyTorch`.
pub(super) fn module(config: &PictureConfig) -> Result<TorchModule, PolicyError> {
    match &config.head {
        HeadConfig::AttentionAgent(latent) => drawn(super::module(), &latent.voting, latent.query_dim),
        _ => Ok(super::module()),
    }
}

/// Factors and offsets behind a normalisation.
fn affine(g: &mut Graph<'_>, name: &str, x: &Edge) -> Edge {
    let [weight, bias] = ["weight", "bias"].map(|of| g.param(&format!("{name}.{of}")));
    let x = g.mul(x, &weight);
    g.add(&x, &bias)
}

/// What the head makes of the messages, `[codes, message]`.
fn head(g: &mut Graph<'_>, config: &PictureConfig, message: &Edge) -> Result<Edge, PolicyError> {
    let ([rows, columns], width) = (config.codes, config.message_dim);
    let flat = |g: &mut Graph<'_>, x: &Edge| g.reshape(x, &[rows * columns * width]);
    let (mut x, hidden, output) = match &config.head {
        HeadConfig::AttentionAgent(latent) => return latent_head(g, latent, config, message),
        HeadConfig::Recurrent(recurrent) => {
            let x = flat(g, message);
            let h = remember(g, recurrent.hidden, &x);
            let raw = g.linear("output", &h);
            return Ok(g.op("Tanh", &[&raw]));
        }
        HeadConfig::Dense(DenseConfig { hidden, output }) => (flat(g, message), hidden, *output),
        HeadConfig::Convolution(ConvolutionConfig { layers, hidden, output }) => {
            let mut x = g.reshape(message, &[1, rows, columns, width]);
            x = g.transpose(&x, &[0, 3, 1, 2]);
            x = g.op("Relu", &[&x]);
            let mut numbers = [width, rows, columns];
            for (i, layer) in layers.iter().enumerate() {
                let [weight, bias] = ["weight", "bias"].map(|of| g.param(&format!("conv{i}.{of}")));
                let strides = [layer.stride as i64; 2];
                x = g.op_with("Conv", &[&x, &weight, &bias], &[("strides", Attribute::Ints(&strides))]);
                x = g.op("Relu", &[&x]);
                let [_, rows, columns] = numbers;
                let places = |of: usize| (of - layer.size) / layer.stride + 1;
                numbers = [layer.filters, places(rows), places(columns)];
            }
            (g.reshape(&x, &[numbers.iter().product()]), hidden, *output)
        }
    };
    for i in 0..hidden.len() {
        x = g.linear(&format!("hidden{i}"), &x);
        x = g.op("Relu", &[&x]);
    }
    let raw = g.linear("output", &x);
    Ok(if output == Output::Tanh { g.op("Tanh", &[&raw]) } else { raw })
}

/// AttentionAgent on the latent picture.
fn latent_head(
    g: &mut Graph<'_>,
    latent: &LatentConfig,
    config: &PictureConfig,
    message: &Edge,
) -> Result<Edge, PolicyError> {
    let [rows, columns] = config.codes;
    let (codes, shape) = (rows * columns, sizes(&[rows * columns, config.message_dim]));
    let mut message = message.clone();
    if latent.smoothing > 0 {
        let (old, alpha) = (g.state("smoothed", &shape), g.state("alpha", &sizes(&[1])));
        let one = g.number(1.0);
        let rest = g.sub(&one, &alpha);
        let (new, old) = (g.mul(&message, &rest), g.mul(&old, &alpha));
        message = g.add(&new, &old);
        g.next_state("smoothed", &shape, &message);
    }
    let [query, key] = ["latent_query", "latent_key"].map(|name| g.linear(name, &message));
    let divisor = latent.scale.divisor(config.message_dim, latent.query_dim);
    let votes = vote(g, &latent.voting, divisor, [&query, &key], latent.query_dim, None)?;
    let k = g.ints([latent.top_k]);
    let [_, best] = g.ops("TopK", &[&votes, &k], &[("axis", Attribute::Int(0))]);
    let places: Vec<f32> = (0..codes)
        .flat_map(|code| [(code / columns) as f32 / rows as f32, (code % columns) as f32 / columns as f32])
        .collect();
    let places = g.floats(&[codes, 2], places);
    let x = g.rows(&places, &best);
    let x = g.reshape(&x, &[2 * latent.top_k]);
    let h = remember(g, latent.hidden, &x);
    let raw = g.linear("output", &h);
    let raw = g.op("Tanh", &[&raw]);
    if latent.smoothing > 0 {
        let x = g.concat(&[&h, &raw], 0);
        let x = g.linear("smoothing0", &x);
        let x = g.op("Tanh", &[&x]);
        let x = g.linear("smoothing1", &x);
        let alpha = g.op("Sigmoid", &[&x]);
        g.next_state("alpha", &sizes(&[1]), &alpha);
    }
    Ok(raw)
}
