//! The network in a graph of ONNX.

use foveate_core::{EnvSpec, ObservationSpace, PolicyError};

use crate::descriptor::AgentConfig;
use crate::onnx::{Attribute, Edge, Graph, OnnxModel, PortNumbers, give, params, sizes};
use crate::relational::{Divisor, QNetworkConfig, Scores};

/// The graph of a relational agent.
pub(super) fn model(config: &QNetworkConfig, flat: &[f32], spec: &EnvSpec) -> Result<OnnxModel, PolicyError> {
    config.check()?;
    let QNetworkConfig { view: [rows, columns], channels, heads, head_dim, .. } = *config;
    if spec.observation != (ObservationSpace::Grid { rows, columns, channels }) {
        return Err(PolicyError::ObservationShape {
            wanted: format!("a grid of {rows}x{columns} cells with {channels} codes each"),
            given: format!("{:?}", spec.observation),
        });
    }
    let params = params(config.tensors(), flat)?;
    let g = &mut Graph::new(&params);
    let about = "the grid as the world shows it, [row, column, code]";
    let shown = g.input("observation", PortNumbers::U8, &sizes(&[rows, columns, channels]), about);

    // 1. Features of every cell, with its place, make queries, keys and values, `[heads, nodes, head_dim]` each.
    let mut x = g.as_floats(&shown);
    let divisor = match config.divisor {
        Divisor::Largest => {
            let (most, one) =
                (g.op_with("ReduceMax", &[&x], &[("keepdims", Attribute::Int(0))]), g.number(1.0));
            g.op("Max", &[&most, &one])
        }
        Divisor::Ten => g.number(10.0),
        Divisor::One => g.number(1.0),
    };
    x = g.div(&x, &divisor);
    let nodes = rows * columns;
    x = g.reshape(&x, &[nodes, channels]);
    let mut width = channels;
    for (name, filters) in [("conv1", config.filters[0]), ("conv2", config.filters[1])] {
        // A convolution of 1 × 1 is a layer of every cell.
        let weight = g.param(&format!("{name}.weight"));
        let weight = g.reshape(&weight, &[filters, width]);
        let weight = g.transpose(&weight, &[1, 0]);
        let sums = g.matmul(&x, &weight);
        let bias = g.param(&format!("{name}.bias"));
        let sums = g.add(&sums, &bias);
        x = g.op("Relu", &[&sums]);
        width = filters;
    }
    let places = (0..nodes)
        .flat_map(|at| [(at % columns) as f32 / columns as f32, (at / columns) as f32 / rows as f32])
        .collect::<Vec<_>>();
    let places = g.floats(&[nodes, 2], places);
    let x = g.concat(&[&x, &places], 1);
    let [query, key, value] = ["query", "key", "value"].map(|name| {
        let all = g.linear(name, &x);
        let all = g.reshape(&all, &[nodes, heads, head_dim]);
        let all = g.transpose(&all, &[1, 0, 2]);
        let all = g.normalise(&all, &[0, 1, 2]);
        let [scale, shift] = ["scale", "shift"].map(|of| g.param(&format!("{name}_norm.{of}")));
        let all = g.mul(&all, &scale);
        g.add(&all, &shift)
    });

    // 2. Answers of all nodes.
    let scores = match config.scores {
        Scores::Indices => {
            let (query, key) = (g.linear("score_query", &query), g.linear("score_key", &key));
            let sums = g.add(&query, &key);
            let sums = g.op("Elu", &[&sums]);
            g.linear("score", &sums)
        }
        Scores::Pairs => {
            let (query, key) = (g.linear("score_query", &query), g.linear("score_key", &key));
            let query = g.reshape(&query, &[heads, nodes, 1, config.score_dim]);
            let key = g.reshape(&key, &[heads, 1, nodes, config.score_dim]);
            let sums = g.add(&query, &key);
            let sums = g.op("Elu", &[&sums]);
            let scores = g.linear("score", &sums);
            g.reshape(&scores, &[heads, nodes, nodes])
        }
        Scores::Products => {
            let key = g.transpose(&key, &[0, 2, 1]);
            let products = g.matmul(&query, &key);
            g.times(&products, 1.0 / (head_dim as f64).sqrt())
        }
    };
    let weights = g.softmax(&scores);
    let about =
        "how much each node attends to each other: heads, nodes that attend, nodes that are attended to";
    g.output("attention", PortNumbers::F32, &sizes(&[heads, nodes, nodes]), &weights, about);
    let answers = g.matmul(&weights, &value);

    // 3. The largest answer over all nodes values the actions, and the state where there is a critic.
    let answers = g.transpose(&answers, &[1, 0, 2]);
    let answers = g.reshape(&answers, &[nodes, heads * head_dim]);
    let x = g.linear("linear1", &answers);
    let x = g.op("Relu", &[&x]);
    let x = g.normalise(&x, &[0, 1]);
    let x: Edge =
        g.op_with("ReduceMax", &[&x], &[("axes", Attribute::Ints(&[0])), ("keepdims", Attribute::Int(0))]);
    let mut values = g.linear("linear2", &x);
    if config.elu_output {
        values = g.op("Elu", &[&values]);
    }
    if config.critic {
        let value = g.linear("critic", &x);
        g.output("value", PortNumbers::F32, &sizes(&[1]), &value, "the value of the state");
    }
    give(g, spec, &values, config.actions)?;
    g.finish(
        "relational",
        "The relational module: cells attend to each other, and the largest answer values the actions",
    )
}
