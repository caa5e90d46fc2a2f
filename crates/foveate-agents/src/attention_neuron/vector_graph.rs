//! AttentionNeuron on numbers in a graph of ONNX.

use foveate_core::{EnvSpec, ObservationSpace, PolicyError, SENSORS};

use super::queries;
use super::vectors::{Activation, VectorConfig};
use crate::descriptor::AgentConfig;
use crate::onnx::{Graph, OnnxModel, PortNumbers, act, misfit, params, sizes};

/// The graph of an AttentionNeuron on numbers, of any number of sensors.
pub(super) fn model(config: &VectorConfig, flat: &[f32], spec: &EnvSpec) -> Result<OnnxModel, PolicyError> {
    let sensors = spec.observation.numbers();
    if sensors == 0 {
        return Err(misfit(spec, "numbers"));
    }
    let params = params(config.tensors(), flat)?;
    let g = &mut Graph::new(&params).in_doubles();
    let any = || "sensors".to_owned();
    let name = if matches!(spec.observation, ObservationSpace::Dict(_)) { SENSORS } else { "observation" };
    let about =
        format!("the numbers as the world shows them; this world has {sensors}, and any number is taken");
    let observation = g.input(name, PortNumbers::F32, &[any()], &about);
    let (state, actions) = ([any(), config.key_dim.to_string()], sizes(&[config.actions.len()]));
    let before = g.state("before", &actions);
    let [h, c] = ["h", "c"].map(|name| g.state(name, &state));

    // 1. A row of the LSTM for each sensor, which gets its number and the last output.
    let column = g.ints([1]);
    let number = g.op("Unsqueeze", &[&observation, &column]);
    let weight = g.param("lstm.weight_ih");
    let weight = g.transpose(&weight, &[1, 0]);
    let [of_number, of_action] =
        [(0, 1), (1, 1 + config.actions.len())].map(|(begin, end)| g.slice(&weight, 0, begin, end));
    let from_number = g.matmul(&number, &of_number);
    let from_action = g.matmul(&before, &of_action);
    let sums = g.add(&from_number, &from_action);
    let bias = g.param("lstm.bias_ih");
    let ih = g.add(&sums, &bias);
    let hh = g.layer(["lstm.weight_hh", "lstm.bias_hh"], &h);
    let sums = g.add(&ih, &hh);
    let [h, c] = g.gates(&sums, &c);

    // 2. The weight of each sensor for each code.
    let table = g.floats(&[config.codes, config.query_dim], queries(config.codes, config.query_dim));
    let query = g.linear("query", &table);
    let key = g.linear("key", &h);
    let key = g.transpose(&key, &[1, 0]);
    let products = g.matmul(&query, &key);
    let scores = g.times(&products, 1.0 / config.scale.divisor(config.key_dim, config.message_dim));
    let weights = match config.activation {
        Activation::Tanh => g.op("Tanh", &[&scores]),
        Activation::Sigmoid => g.op("Sigmoid", &[&scores]),
        Activation::Softmax => g.softmax(&scores),
    };
    g.output(
        "attention",
        PortNumbers::F32,
        &[config.codes.to_string(), any()],
        &weights,
        "the weight of each sensor for each code",
    );

    // 3. The message, and 4. the action.
    let mut x = g.matmul(&weights, &observation);
    if config.squash {
        x = g.op("Tanh", &[&x]);
    }
    for i in 0..config.layers.len() {
        x = g.linear(&format!("hidden{i}"), &x);
        x = g.op("Tanh", &[&x]);
    }
    let raw = g.linear("output", &x);
    let raw = g.op("Tanh", &[&raw]);
    g.next_state("before", &actions, &raw);
    g.next_state("h", &state, &h);
    g.next_state("c", &state, &c);
    act(g, spec, &raw, &config.actions)?;
    g.finish(
        "attention-neuron",
        "AttentionNeuron (Tang and Ha 2021): every number is a sensor with a network of its own",
    )
}
