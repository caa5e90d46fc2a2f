//! The bottleneck in a graph of ONNX, and the controller behind it.

use foveate_core::{DEPTH, EnvSpec, PatchGrid, PolicyError};

use super::{Aggregation, BottleneckConfig, Selection};
use crate::config::bad;
use crate::controller::ControllerConfig;
use crate::features::Features;
use crate::onnx::{Attribute, Edge, Graph, PortNumbers, misfit, picture, sizes};
use crate::torch::TorchModule;
use crate::voting::{Exponential, Relu, VotingConfig};

/// The features of the selected patches, one after the other; attention and selection become outputs.
pub(crate) fn look(
    graph: &mut Graph<'_>,
    spec: &EnvSpec,
    config: &BottleneckConfig,
) -> Result<Edge, PolicyError> {
    let grid = config.check()?;
    let [width, height] = config.image;
    let wanted = format!("a picture of {width}x{height}{}", if config.depth { " with depth" } else { "" });
    let (shown, [frames, rows, columns, channels]) = picture(graph, spec, &wanted)?;
    if [columns, frames * rows] != config.image || !matches!(channels, 1 | 3) {
        return Err(misfit(spec, &wanted));
    }
    let mut rgb = graph.reshape(&shown, &[height, width, channels]);
    rgb = graph.as_floats(&rgb);
    if channels == 1 {
        rgb = graph.concat(&[&rgb, &rgb, &rgb], 2);
    }
    let mut pixels = rgb.clone();
    if config.depth {
        if !spec.observation.has_depth() {
            return Err(misfit(spec, &wanted));
        }
        let depth = graph.input(
            DEPTH,
            PortNumbers::U8,
            &sizes(&[height, width, 1]),
            "depth of each pixel, 0 is near",
        );
        let depth = graph.as_floats(&depth);
        pixels = graph.concat(&[&rgb, &depth], 2);
    }
    let byte = graph.number(255.0);
    pixels = graph.div(&pixels, &byte);
    pixels = graph.transpose(&pixels, &[2, 0, 1]);
    pixels = graph.reshape(&pixels, &[1, config.channels(), height, width]);
    let [query, key] = ["query", "key"].map(|name| project(graph, config, grid, &pixels, name));
    let divisor = config.scale.divisor(config.patch_len(), config.query_dim);
    let weights = (config.aggregation == Aggregation::Learned).then(|| graph.param("aggregation.weight"));
    let importance =
        vote(graph, &config.voting, divisor, [&query, &key], config.query_dim, weights.as_ref())?;
    let selected = select(graph, config, grid, &importance);
    graph.output(
        "attention",
        PortNumbers::F32,
        &sizes(&[grid.len()]),
        &importance,
        "the votes for each patch, row by row",
    );
    let about = "the patches that the controller is told about";
    graph.output("selected", PortNumbers::I64, &sizes(&[config.top_k]), &selected, about);
    let values = features(graph, config, grid, &rgb, &selected);
    Ok(graph.reshape(&values, &[config.outputs()]))
}

/// The layer `name` of every patch, `[patches, query_dim]`: a convolution.
fn project(
    graph: &mut Graph<'_>,
    config: &BottleneckConfig,
    grid: PatchGrid,
    pixels: &Edge,
    name: &str,
) -> Edge {
    let BottleneckConfig { patch, stride, query_dim, .. } = *config;
    let weight = graph.param(&format!("{name}.weight"));
    let weight = graph.reshape(&weight, &[query_dim, patch, patch, config.channels()]);
    let weight = graph.transpose(&weight, &[0, 3, 1, 2]);
    let bias = graph.param(&format!("{name}.bias"));
    let strides = [stride as i64; 2];
    let all = graph.op_with("Conv", &[pixels, &weight, &bias], &[("strides", Attribute::Ints(&strides))]);
    let all = graph.reshape(&all, &[query_dim, grid.len()]);
    graph.transpose(&all, &[1, 0])
}

/// The votes for each patch, `[patches]`, from queries and keys of `dim` numbers, `[patches, dim]`; `weights` say how much each
/// vote counts.
pub(crate) fn vote(
    graph: &mut Graph<'_>,
    voting: &VotingConfig,
    divisor: f64,
    [query, key]: [&Edge; 2],
    dim: usize,
    weights: Option<&Edge>,
) -> Result<Edge, PolicyError> {
    if let VotingConfig::Softmax(_) = voting {
        let key = graph.transpose(key, &[1, 0]);
        let products = graph.matmul(query, &key);
        let scores = graph.times(&products, 1.0 / divisor);
        let spread = graph.softmax(&scores);
        return Ok(graph.sum(&spread, 0, false));
    }
    // A feature map takes one vector at a time, so each has its half of the divisor.
    let [query, key] = [query, key].map(|edge| graph.times(edge, 1.0 / divisor.sqrt()));
    let map: &dyn Fn(&mut Graph<'_>, &Edge) -> Edge = match *voting {
        VotingConfig::SoftmaxKernel(Exponential { same_length }) => {
            let [query, key] = [query, key].map(|edge| match same_length {
                Some(length) => of_length(graph, &edge, length),
                None => edge,
            });
            let key = graph.transpose(&key, &[1, 0]);
            let products = graph.matmul(&query, &key);
            let pairs = graph.op("Exp", &[&products]);
            return Ok(match weights {
                Some(weights) => graph.matmul(&pairs, weights),
                None => graph.sum(&pairs, 1, false),
            });
        }
        VotingConfig::Relu(Relu { epsilon, .. }) => &move |graph: &mut Graph<'_>, x: &Edge| {
            let positive = graph.op("Relu", &[x]);
            let epsilon = graph.number(epsilon as f32);
            graph.add(&positive, &epsilon)
        },
        VotingConfig::Exp(_) => &|graph: &mut Graph<'_>, x: &Edge| graph.op("Exp", &[x]),
        VotingConfig::Elu(_) => &|graph: &mut Graph<'_>, x: &Edge| {
            let elu = graph.op("Elu", &[x]);
            let one = graph.number(1.0);
            graph.add(&elu, &one)
        },
        _ => return check_kernel(voting).map(|()| query),
    };
    let (mut pair, mut count) = ([query, key], 1);
    if let Some(drawn) = voting.projections(dim) {
        count = drawn.len() / dim;
        let drawn = graph.floats(&[count, dim], drawn);
        let drawn = graph.transpose(&drawn, &[1, 0]);
        pair = pair.map(|edge| graph.matmul(&edge, &drawn));
    }
    let [query, key] = pair.map(|edge| map(graph, &edge));
    let sums = match weights {
        Some(weights) => graph.matmul(weights, &key),
        None => graph.sum(&key, 0, false),
    };
    // The features of both are divided by the root of their number.
    let sums = graph.times(&sums, 1.0 / count as f64);
    Ok(graph.matmul(&query, &sums))
}

/// Checks that votes of this kernel have a form in other programs.
fn check_kernel(voting: &VotingConfig) -> Result<(), PolicyError> {
    match voting {
        VotingConfig::Softmax(_)
        | VotingConfig::SoftmaxKernel(_)
        | VotingConfig::Relu(_)
        | VotingConfig::Exp(_)
        | VotingConfig::Elu(_) => Ok(()),
        _ => bad(
            "votes by random features of the softmax kernel cannot be exported; choose an agent with voting.kernel = \
             \"softmax\", \"softmax_kernel\", \"relu\", \"exp\" or \"elu\"",
        ),
    }
}

/// `module` with the projections that votes need.
pub(crate) fn drawn(
    module: TorchModule,
    voting: &VotingConfig,
    dim: usize,
) -> Result<TorchModule, PolicyError> {
    check_kernel(voting)?;
    Ok(match voting.projections(dim) {
        Some(drawn) => module.with_fixed("projections", vec![drawn.len() / dim, dim], drawn),
        None => module,
    })
}

/// `module` with all drawn numbers of the bottleneck.
pub(crate) fn module(module: TorchModule, config: &BottleneckConfig) -> Result<TorchModule, PolicyError> {
    let module = drawn(module, &config.voting, config.query_dim)?;
    let (Some(conv), features) = (config.features.conv, Features::new(&config.features, config.patch)) else {
        return Ok(module);
    };
    let Some((weight, bias)) = features.conv_weights().filter(|_| !conv.evolved) else { return Ok(module) };
    let shape = vec![conv.filters, conv.size, conv.size, 3];
    Ok(module.with_fixed("conv.weight", shape, weight.to_vec()).with_fixed(
        "conv.bias",
        vec![conv.filters],
        bias.to_vec(),
    ))
}

/// Rows scaled to this length; zeros stay zeros.
fn of_length(graph: &mut Graph<'_>, rows: &Edge, length: f64) -> Edge {
    let squares = graph.mul(rows, rows);
    let sums = graph.sum(&squares, 1, true);
    let is = graph.op("Sqrt", &[&sums]);
    let least = graph.number(f32::MIN_POSITIVE);
    let is = graph.op("Max", &[&is, &least]);
    let scaled = graph.div(rows, &is);
    graph.times(&scaled, length)
}

/// The indices of the selected patches, in their order.
fn select(graph: &mut Graph<'_>, config: &BottleneckConfig, grid: PatchGrid, importance: &Edge) -> Edge {
    let best = |graph: &mut Graph<'_>, of: &Edge, largest: i64| -> [Edge; 2] {
        let k = graph.ints([config.top_k]);
        graph.ops("TopK", &[of, &k], &[("axis", Attribute::Int(0)), ("largest", Attribute::Int(largest))])
    };
    match config.selection {
        Selection::Best => best(graph, importance, 1)[1].clone(),
        Selection::Least => best(graph, importance, 0)[1].clone(),
        Selection::BestInPlace => {
            let [_, found] = best(graph, importance, 1);
            best(graph, &found, 0)[0].clone()
        }
        Selection::Apart(pixels) => apart(graph, config, grid, importance, (pixels - 1) / config.stride),
    }
}

/// The largest one by one, each without what is within `reach` rows and columns of those before; when no others are left, the
/// largest of them.
fn apart(
    graph: &mut Graph<'_>,
    config: &BottleneckConfig,
    grid: PatchGrid,
    importance: &Edge,
    reach: usize,
) -> Edge {
    let (patches, columns) = (grid.len(), grid.columns());
    let row = graph.ints((0..patches).map(|patch| patch / columns));
    let column = graph.ints((0..patches).map(|patch| patch % columns));
    let all = graph.ints(0..patches);
    let reach = graph.ints([reach]);
    let lowest = graph.number(f32::NEG_INFINITY);
    let (mut free, mut untaken, mut found) = (importance.clone(), importance.clone(), vec![]);
    for _ in 0..config.top_k {
        let most = graph.op_with("ReduceMax", &[&free], &[("keepdims", Attribute::Int(0))]);
        let some = graph.op("Greater", &[&most, &lowest]);
        let from = graph.op("Where", &[&some, &free, &untaken]);
        let at = graph.op_with(
            "ArgMax",
            &[&from],
            &[("axis", Attribute::Int(0)), ("keepdims", Attribute::Int(1))],
        );
        let near = [&row, &column].map(|place| {
            let here = graph.rows(place, &at);
            let distance = graph.sub(place, &here);
            let distance = graph.op("Abs", &[&distance]);
            graph.op("LessOrEqual", &[&distance, &reach])
        });
        let near = graph.op("And", &[&near[0], &near[1]]);
        free = graph.op("Where", &[&near, &lowest, &free]);
        let taken = graph.op("Equal", &[&all, &at]);
        untaken = graph.op("Where", &[&taken, &lowest, &untaken]);
        found.push(at);
    }
    graph.concat(&found.iter().collect::<Vec<_>>(), 0)
}

/// The features of the selected patches, `[top_k, features]`; `rgb` is `[height, width, 3]`, from 0 to 255.
fn features(
    graph: &mut Graph<'_>,
    config: &BottleneckConfig,
    grid: PatchGrid,
    rgb: &Edge,
    selected: &Edge,
) -> Edge {
    let (of, k, side, width) = (&config.features, config.top_k, config.patch, grid.width());
    let mut all = vec![];
    if of.centre {
        let centres: Vec<f32> = (0..grid.len())
            .flat_map(|patch| {
                let (x, y) = grid.centre(patch);
                [y as f32 / grid.height() as f32, x as f32 / width as f32]
            })
            .collect();
        let centres = graph.floats(&[grid.len(), 2], centres);
        all.push(graph.rows(&centres, selected));
    }
    if of.colour || of.histogram.is_some() || of.conv.is_some() {
        // The pixels of the selected patches, `[k, side * side, 3]`.
        let corners = graph.ints((0..grid.len()).map(|patch| {
            let (x, y) = grid.corner(patch);
            y * width + x
        }));
        let corners = graph.rows(&corners, selected);
        let corners = graph.reshape(&corners, &[k, 1]);
        let offsets = graph.ints((0..side * side).map(|at| at / side * width + at % side));
        let places = graph.add(&corners, &offsets);
        let flat = graph.reshape(rgb, &[width * grid.height(), 3]);
        let pixels = graph.rows(&flat, &places);
        if of.colour {
            let mean = graph.mean(&pixels, &[1]);
            let mean = graph.times(&mean, 1.0 / 255.0);
            all.push(graph.reshape(&mean, &[k, 3]));
        }
        if let Some(histogram) = of.histogram {
            let scaled = graph.times(&pixels, histogram.bins as f64 / 256.0);
            let bin = graph.op("Floor", &[&scaled]);
            let bin = graph.reshape(&bin, &[k, side * side, 3, 1]);
            let bins = graph.floats(&[histogram.bins], (0..histogram.bins).map(|bin| bin as f32));
            let is = graph.op("Equal", &[&bin, &bins]);
            let is = graph.as_floats(&is);
            let share = graph.mean(&is, &[1]);
            all.push(graph.reshape(&share, &[k, 3 * histogram.bins]));
        }
        if let Some(conv) = of.conv {
            let (weight, bias) = if conv.evolved {
                (graph.param("conv.weight"), graph.param("conv.bias"))
            } else {
                let features = Features::new(of, side);
                let (weight, bias) = features.conv_weights().unwrap_or_default();
                let weight = graph.floats(&[conv.filters, conv.size, conv.size, 3], weight.iter().copied());
                (weight, graph.floats(&[conv.filters], bias.iter().copied()))
            };
            let weight = graph.transpose(&weight, &[0, 3, 1, 2]);
            let scaled = graph.times(&pixels, 1.0 / 255.0);
            let square = graph.reshape(&scaled, &[k, side, side, 3]);
            let square = graph.transpose(&square, &[0, 3, 1, 2]);
            let strides = [conv.stride as i64; 2];
            let sums =
                graph.op_with("Conv", &[&square, &weight, &bias], &[("strides", Attribute::Ints(&strides))]);
            let sums = graph.op("Tanh", &[&sums]);
            all.push(graph.reshape(&sums, &[k, conv.filters * conv.places(side).pow(2)]));
        }
    }
    graph.concat(&all.iter().collect::<Vec<_>>(), 1)
}

/// The controller's output, in −1 ..= 1; the state of an LSTM becomes inputs and outputs.
pub(crate) fn control(graph: &mut Graph<'_>, config: &ControllerConfig, inputs: &Edge) -> Edge {
    let mut x = inputs.clone();
    match config {
        ControllerConfig::Linear {} => {}
        ControllerConfig::Mlp { hidden } => {
            for i in 0..hidden.len() {
                x = graph.linear(&format!("hidden{i}"), &x);
                x = graph.op("Tanh", &[&x]);
            }
        }
        ControllerConfig::Lstm { hidden } => x = remember(graph, *hidden, &x),
    }
    let raw = graph.linear("output", &x);
    graph.op("Tanh", &[&raw])
}

/// h of the LSTM of so many hidden units, whose state becomes inputs and outputs.
pub(crate) fn remember(graph: &mut Graph<'_>, hidden: usize, x: &Edge) -> Edge {
    let shape = sizes(&[hidden]);
    let state = ["h", "c"].map(|name| graph.state(name, &shape));
    let [h, c] = graph.lstm(x, state.each_ref());
    graph.next_state("h", &shape, &h);
    graph.next_state("c", &shape, &c);
    h
}
