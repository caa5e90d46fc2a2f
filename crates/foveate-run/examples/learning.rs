//! How long a step of learning takes, in CPU time of one thread: deep Q-learning with relational networks, and
//! classification of digits.
//!
//! `cargo run --release -p foveate-run --example learning -- FOLDER [--json]`
//!
//! Writes what a step starts from and its gradient to FOLDER, for `bench/reference/learning.py`, which measures `PyTorch` on
//! the same. Without `--json` it prints also the time of every layer beside the peak of one core.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::relational::agent::RelationalStudent;
use foveate_agents::relational::classifier::{ClassifierConfig, ClassifierNetwork, ClassifierStudent};
use foveate_agents::relational::{Divisor, QNetworkConfig, Scores};
use foveate_core::{Action, Demonstration, Model, Observation, Outputs, Predictions, Seed, Student};
use foveate_envs::minigrid::DESCRIPTORS;
use foveate_envs::registry::EnvRequest;
use foveate_kernels::Level;
use foveate_kernels::peak;
use foveate_learn::{
    Builder, Clip, Conv, LayerNorm, Linear, Network, Node, Optimizer, OptimizerConfig, SoftmaxAttention,
    optimizer,
};
use foveate_run::clock::ThreadCpu;

/// CPU time to spend on each step.
const SPEND: Duration = Duration::from_secs(4);
/// The same for each layer.
const SPEND_LAYER: Duration = Duration::from_millis(200);
/// Pictures of a step that classifies digits.
const PICTURES: usize = 300;
const PIXELS: usize = 28 * 28;
const CLASSES: usize = 10;

/// Whose best action counts in the target.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// The network's in the state after: three forward passes.
    Standard,
    /// The network's in the state before, the rule of the book: two forward passes.
    Book,
}

/// A step of deep Q-learning.
struct Case {
    name: &'static str,
    config: QNetworkConfig,
    picture: Option<&'static str>,
    batch: usize,
    rule: Rule,
    /// All observations of the batch differ; else they are drawn from random play in DoorKey-5x5.
    distinct: bool,
    learning_rate: f64,
    clip: f64,
}

/// Transitions: of each its observations, action, reward and the factor of the value beyond.
#[derive(Default)]
struct Batch {
    before: Vec<u8>,
    after: Vec<u8>,
    actions: Vec<u8>,
    rewards: Vec<f32>,
    discounts: Vec<f32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: learning FOLDER [--json]")?;
    let folder = Path::new(&folder);
    let json = std::env::args().any(|arg| arg == "--json");
    let book = QNetworkConfig { divisor: Divisor::Largest, ..QNetworkConfig::default() };
    let preset = QNetworkConfig {
        channels: 20,
        elu_output: false,
        divisor: Divisor::One,
        filters: [16, 16],
        heads: 2,
        head_dim: 16,
        features: 32,
        scores: Scores::Products,
        ..QNetworkConfig::default()
    };
    let mut cells = vec![];
    for (name, rule, distinct) in [
        ("book_standard", Rule::Standard, true),
        ("book_book", Rule::Book, true),
        ("book_standard_repeated", Rule::Standard, false),
        ("book_book_repeated", Rule::Book, false),
    ] {
        let config = book.clone();
        let case =
            Case { name, config, picture: None, batch: 50, rule, distinct, learning_rate: 5e-4, clip: 1.0 };
        cells.push((name, values(&case, folder)?));
    }
    for (name, distinct) in [("preset", true), ("preset_repeated", false)] {
        let (config, picture) = (preset.clone(), Some("one-hot"));
        let rule = Rule::Standard;
        let case = Case { name, config, picture, batch: 64, rule, distinct, learning_rate: 1e-3, clip: 10.0 };
        cells.push((name, values(&case, folder)?));
    }
    for (name, network) in
        [("digits", ClassifierNetwork::Relational), ("digits_baseline", ClassifierNetwork::Convolutional)]
    {
        cells.push((name, classes(name, network, folder)?));
    }
    if json {
        let cells: Vec<String> = cells
            .iter()
            .map(|(name, (us, loss))| format!("\"{name}\":{{\"us\":{us},\"loss\":{loss}}}"))
            .collect();
        println!("{{{}}}", cells.join(","));
    } else {
        for (name, (us, loss)) in cells {
            println!("{name:>24}: {:9.3} ms a step; loss {loss}", us / 1e3);
        }
        layers()?;
    }
    Ok(())
}

/// Microseconds of the fastest step, and the loss of the first.
fn values(case: &Case, folder: &Path) -> Result<(f64, f64), Box<dyn Error>> {
    let Case { name, config, batch: count, rule, learning_rate, clip, .. } = case;
    let batch = transitions(case)?;
    let mut params = config.initial_params(Init::Torch, Seed::root(1));
    let target_params = config.initial_params(Init::Torch, Seed::root(2));
    let mut online = RelationalStudent::new(config.clone())?;
    let mut target = online.clone();
    let choices = config.actions;
    let [before, after] =
        [&batch.before, &batch.after].map(|codes| codes.iter().map(|&x| f32::from(x)).collect::<Vec<_>>());
    let mut seen = Predictions::default();
    let write = |what: &str, numbers: &[f32]| write(folder, name, what, &bytes(numbers));
    for (what, bytes) in [("before", &batch.before), ("after", &batch.after), ("actions", &batch.actions)] {
        self::write(folder, name, what, bytes)?;
    }
    write("rewards", &batch.rewards)?;
    write("discounts", &batch.discounts)?;
    write("params", &params)?;
    write("target", &target_params)?;

    let mut optimizer = Optimizer::new(OptimizerConfig::default(), params.len());
    let (mut gradient, mut slopes) = (vec![0.0; params.len()], vec![0.0; count * choices]);
    let (mut chosen, mut values) = (vec![], vec![]);
    let best =
        |values: &[f32]| (1..choices).fold(0, |best, i| if values[i] > values[best] { i } else { best });
    let mut first = None;
    let mut step = || -> Result<(), Box<dyn Error>> {
        online.set_params(&params)?;
        target.set_params(&target_params)?;
        chosen.clear();
        if *rule == Rule::Standard {
            online.follow(&after, &mut seen);
            chosen.extend(seen.outputs.chunks_exact(choices).map(best));
        }
        values.clear();
        values.extend_from_slice(&online.forward(1, &before, &[]).outputs);
        if *rule == Rule::Book {
            chosen.extend(values.chunks_exact(choices).map(best));
        }
        target.follow(&after, &mut seen);
        let beyond = &seen.outputs;
        slopes.fill(0.0);
        let mut loss = 0.0;
        for (i, &choice) in chosen.iter().enumerate() {
            let at = i * choices + usize::from(batch.actions[i]);
            let error = values[at] - (batch.rewards[i] + batch.discounts[i] * beyond[i * choices + choice]);
            loss += f64::from(error) * f64::from(error) / *count as f64;
            slopes[at] = 2.0 * error / *count as f32;
        }
        gradient.fill(0.0);
        online.backward(&slopes, &[], &mut gradient);
        if first.is_none() {
            first = Some((loss, gradient.clone()));
        }
        Clip::Norm(*clip).apply(optimizer::norm(&gradient), &mut gradient);
        optimizer.step(*learning_rate, &gradient, &mut params);
        Ok(())
    };
    let us = fastest(SPEND, &mut step)?;
    let (loss, gradient) = first.ok_or("no step was made")?;
    write("gradient", &gradient)?;
    Ok((us, loss))
}

/// Transitions of random play.
fn transitions(case: &Case) -> Result<Batch, Box<dyn Error>> {
    /// Transitions from which a batch is drawn.
    const PLAYED: usize = 9000;
    const ACTIONS: u64 = 5;
    const DISCOUNT: f32 = 0.99;
    let id = if case.distinct { "door-key-8x8" } else { "door-key-5x5" };
    let world = DESCRIPTORS.iter().find(|world| world.name == id).ok_or("a world is missing")?;
    let request = EnvRequest {
        id: id.into(),
        picture: case.picture.map(str::to_owned),
        options: [("actions".to_owned(), "five".to_owned())].into(),
        ..EnvRequest::default()
    };
    let mut env = world.build(&request)?;
    let mut rng = Seed::root(5).rng();
    let mut played = Batch::default();
    let mut width = 0;
    for episode in 0.. {
        if played.actions.len() >= PLAYED {
            break;
        }
        env.reset(Some(episode));
        loop {
            let action = rng.below(ACTIONS);
            let see = |to: &mut Vec<u8>, seen: Observation<'_>| match seen {
                Observation::Grid(grid) => {
                    to.extend_from_slice(grid.codes());
                    Ok(grid.codes().len())
                }
                other => Err(format!("{id} shows {}", other.describe())),
            };
            width = see(&mut played.before, env.observation())?;
            let outcome = env.step(Action::Discrete(action as usize))?;
            see(&mut played.after, env.observation())?;
            played.actions.push(action as u8);
            played.rewards.push(outcome.reward as f32);
            played.discounts.push(if outcome.terminated { 0.0 } else { DISCOUNT });
            if outcome.terminated || outcome.truncated {
                break;
            }
        }
    }
    let (mut batch, mut seen) = (Batch::default(), [BTreeSet::new(), BTreeSet::new()]);
    while batch.actions.len() < case.batch {
        let at = rng.below(played.actions.len() as u64) as usize;
        let [before, after] = [&played.before, &played.after].map(|codes| &codes[at * width..][..width]);
        if case.distinct && (seen[0].contains(before) || seen[1].contains(after)) {
            continue;
        }
        seen[0].insert(before);
        seen[1].insert(after);
        batch.before.extend_from_slice(before);
        batch.after.extend_from_slice(after);
        batch.actions.push(played.actions[at]);
        batch.rewards.push(played.rewards[at]);
        batch.discounts.push(played.discounts[at]);
    }
    Ok(batch)
}

/// Microseconds of the fastest step on [`PICTURES`] pictures, and the loss of the first.
fn classes(name: &str, network: ClassifierNetwork, folder: &Path) -> Result<(f64, f64), Box<dyn Error>> {
    let config = ClassifierConfig { network, ..ClassifierConfig::default() };
    let mut params = config.initial_params(Init::Torch, Seed::root(1));
    let mut student = ClassifierStudent::new(&config)?;
    // Noise, and a bright bar whose place is the class.
    let mut rng = Seed::root(6).rng();
    let mut demonstration = Demonstration { steps: PICTURES, ..Demonstration::default() };
    let (mut pictures, mut labels) = (vec![], vec![]);
    for _ in 0..PICTURES {
        let class = rng.below(CLASSES as u64) as usize;
        let mut picture: Vec<u8> = (0..PIXELS).map(|_| rng.below(60) as u8).collect();
        picture[(4 + 2 * class) * 28 + 3..][..22].fill(255);
        demonstration.pictures.push(&picture);
        demonstration.actions.extend((0..CLASSES).map(|i| f32::from(u8::from(i == class))));
        pictures.extend(picture);
        labels.push(class as u8);
    }
    write(folder, name, "pictures", &pictures)?;
    write(folder, name, "classes", &labels)?;
    write(folder, name, "params", &bytes(&params))?;

    let mut optimizer = Optimizer::new(OptimizerConfig::default(), params.len());
    let mut gradient = vec![0.0; params.len()];
    let mut first = None;
    let mut step = || -> Result<(), Box<dyn Error>> {
        student.set_params(&params)?;
        gradient.fill(0.0);
        let loss = student.study(&demonstration, 0..PICTURES, 0, &mut gradient) / PICTURES as f64;
        for g in &mut gradient {
            *g /= PICTURES as f32;
        }
        if first.is_none() {
            first = Some((loss, gradient.clone()));
        }
        optimizer.step(1e-3, &gradient, &mut params);
        Ok(())
    };
    let us = fastest(SPEND, &mut step)?;
    let (loss, gradient) = first.ok_or("no step was made")?;
    write(folder, name, "gradient", &bytes(&gradient))?;
    Ok((us, loss))
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn write(folder: &Path, name: &str, what: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let path = folder.join(format!("{name}.{what}"));
    fs::write(&path, bytes).map_err(|error| format!("writing {}: {error}", path.display()).into())
}

/// CPU microseconds of the fastest call: what is left when others on the machine do not disturb.
fn fastest(
    spend: Duration,
    step: &mut dyn FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let (all, mut best) = (ThreadCpu::start(), Duration::MAX);
    while best == Duration::MAX || all.elapsed() < spend {
        let one = ThreadCpu::start();
        step()?;
        best = best.min(one.elapsed());
    }
    Ok(best.as_secs_f64() * 1e6)
}

/// A layer: its name, the samples of a batch, how it is built, and the multiply-adds of its products for a sample; backward
/// takes twice as many.
type LayerRow = (&'static str, usize, fn(&mut Builder) -> Node, usize);

/// Prints the time of every costly layer, forward and backward, beside the peak.
fn layers() -> Result<(), Box<dyn Error>> {
    const ROUNDS: u64 = 100_000;
    let level = Level::best();
    let us = fastest(SPEND_LAYER, &mut || {
        black_box(peak::multiply_adds(level, black_box(ROUNDS)));
        Ok(())
    })?;
    let peak = 2.0 * (ROUNDS * peak::PER_ROUND as u64) as f64 / us / 1e3;
    println!("\npeak of one core with {level}: {peak:.0} GFLOP/s");
    println!("| layer | batch | forward µs | of the peak | backward µs | of the peak |");
    println!("|---|---:|---:|---:|---:|---:|");
    let rows: [LayerRow; 11] = [
        ("relational 22 → 192, 49 nodes", 4, |net| linear(net, &[49, 22], 192), 49 * 22 * 192),
        ("relational 64 → 49, 147 rows", 4, |net| linear(net, &[147, 64], 49), 147 * 64 * 49),
        ("relational 49 → 49, 147 rows", 4, |net| linear(net, &[147, 49], 49), 147 * 49 * 49),
        ("relational 192 → 64, 49 nodes", 4, |net| linear(net, &[49, 192], 64), 49 * 192 * 64),
        ("relational normalisation of 3 × 49 × 64", 4, |net| norm(net, &[3, 49, 64]), 0),
        ("digits 4 × 4, 16 → 20", 2, |net| conv(net, [25, 25, 16], 20), 22 * 22 * 16 * 16 * 20),
        ("digits 4 × 4, 20 → 24", 2, |net| conv(net, [22, 22, 20], 24), 19 * 19 * 16 * 20 * 24),
        ("digits 4 × 4, 24 → 30", 2, |net| conv(net, [19, 19, 24], 30), 16 * 16 * 16 * 24 * 30),
        ("digits 32 → 36, 256 nodes", 2, |net| linear(net, &[256, 32], 36), 256 * 32 * 36),
        ("digits attention of 256 nodes", 2, attention, 2 * 256 * 256 * 36),
        ("digits normalisation of 256 × 36", 2, |net| norm(net, &[256, 36]), 0),
    ];
    for (name, batch, build, multiply_adds) in rows {
        let mut net = Builder::default();
        let output = build(&mut net);
        let net = net.build(&[output])?;
        let [forward, backward] = time(level, &net, output, batch)?;
        let share = |us: f64, products: usize| match multiply_adds {
            0 => "–".to_owned(),
            n => format!("{:.0} %", 100.0 * 2.0 * (products * n * batch) as f64 / us / 1e3 / peak),
        };
        println!(
            "| {name} | {batch} | {forward:.1} | {} | {backward:.1} | {} |",
            share(forward, 1),
            share(backward, 2)
        );
    }
    Ok(())
}

fn linear(net: &mut Builder, shape: &[usize], outputs: usize) -> Node {
    let x = net.state("x", shape);
    net.layer("layer", Linear::new(outputs), [x])
}

fn norm(net: &mut Builder, shape: &[usize]) -> Node {
    let x = net.state("x", shape);
    net.layer("layer", LayerNorm::over(shape.len()).with_affine(), [x])
}

fn conv(net: &mut Builder, shape: [usize; 3], filters: usize) -> Node {
    let x = net.state("x", shape);
    net.layer("layer", Conv::new(filters, 4), [x])
}

fn attention(net: &mut Builder) -> Node {
    let [query, key, value] = ["query", "key", "value"].map(|name| net.state(name, [256, 36]));
    net.then(SoftmaxAttention::new(1.0 / 6.0), [query, key, value])
}

/// Microseconds of the fastest forward and backward pass of a network of one layer.
fn time(level: Level, net: &Network, output: Node, batch: usize) -> Result<[f64; 2], Box<dyn Error>> {
    let mut rng = Seed::root(7).rng();
    let params = net.initial(Seed::root(1));
    let inputs: Vec<Vec<f32>> = net
        .inputs()
        .map(|(_, shape)| {
            let len = batch * shape.iter().product::<usize>();
            (0..len).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
        })
        .collect();
    let inputs: Vec<&[f32]> = inputs.iter().map(|input| &input[..]).collect();
    let mut acts = net.activations(batch);
    let mut gradient = vec![0.0; params.len()];
    let forward = fastest(SPEND_LAYER, &mut || {
        net.forward(level, &params, &inputs, batch, &mut acts);
        Ok(())
    })?;
    let backward = fastest(SPEND_LAYER, &mut || {
        acts.gradient_mut(output).fill(0.01);
        net.backward(level, &params, &mut acts, &mut gradient);
        Ok(())
    })?;
    Ok([forward, backward])
}
