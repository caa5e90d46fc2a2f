//! How long S3TA takes to act and to learn, in CPU time of one thread.
//!
//! `cargo run --release -p foveate-agents --example s3ta -- FOLDER [--json] [--only=NAME]`
//!
//! Two networks: `full`, that of the paper for 210 × 160 × 3 numbers and 18 actions, and `small`, that of the preset `s3ta-small`
//! for 84 × 84 × 4 and 6. Acting is one decision in each of 1 or 16 episodes, learning the forward and backward passes
//! of four unrolls, each by itself as the learner has it, and a step of the optimiser. Writes what they start from, and what they
//! compute, to FOLDER, for `bench/reference/s3ta.py`, which measures `PyTorch` on the same. Without `--json` it prints also
//! the time of every costly layer beside the peak of one core.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;

use foveate_agents::config::ConvolutionLayer;
use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::s3ta::{S3taAgent, S3taConfig, S3taStudent};
use foveate_core::{
    ActContext, Action, LastStep, Model, Observation, Outputs, PixelShape, Pixels, Policy, Seed, Turn,
};
use foveate_kernels::{Level, peak};
use foveate_learn::{
    Builder, Conv, LstmGates, Network, Node, Optimizer, OptimizerConfig, Padding, SoftmaxAttention,
};
use rustix::time::{ClockId, clock_gettime};

/// CPU seconds to spend on each measurement.
const SPEND: f64 = 6.0;
/// The same for each layer.
const SPEND_LAYER: f64 = 0.6;
/// Sequences of a step of learning.
const SEQUENCES: usize = 4;

/// Seconds of CPU time that this thread took.
fn clock() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// CPU seconds of a call of which one in ten is as fast: what is left when others on the machine do not disturb, but not the very
/// fastest, which the clock of a virtual machine may make up. At least two calls.
fn fastest(spend: f64, mut step: impl FnMut()) -> f64 {
    let (begin, mut all) = (clock(), vec![]);
    while all.len() < 2 || clock() - begin < spend {
        let start = clock();
        step();
        all.push(clock() - start);
    }
    all.sort_by(f64::total_cmp);
    all[all.len() / 10]
}

struct Case {
    name: &'static str,
    config: S3taConfig,
    /// Steps of an unroll, with the observation after the last.
    steps: usize,
}

fn cases() -> [Case; 2] {
    let layer = |filters, size, stride| ConvolutionLayer { filters, size, stride };
    let small = S3taConfig {
        view: [84, 84, 4],
        actions: 6,
        convolutions: vec![layer(16, 8, 4), layer(32, 4, 2)],
        channels: 32,
        query_hidden: vec![64],
        answer_hidden: vec![128],
        units: 128,
        trunk: 64,
        ..S3taConfig::default()
    };
    [
        Case { name: "full", config: S3taConfig::default(), steps: 21 },
        Case { name: "small", config: small, steps: 51 },
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: s3ta FOLDER [--json] [--only=NAME]")?;
    let json = std::env::args().any(|arg| arg == "--json");
    let only = std::env::args().find_map(|arg| arg.strip_prefix("--only=").map(str::to_owned));
    let mut cells = vec![];
    for case in cases() {
        if only.as_ref().is_none_or(|only| only == case.name) {
            measure(&case, Path::new(&folder), &mut cells)?;
        }
    }
    if json {
        let cells: Vec<String> = cells.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        println!("{{{}}}", cells.join(","));
        return Ok(());
    }
    for (name, value) in cells {
        println!("{name:>20}: {value:8.1} frames per CPU second");
    }
    layers();
    Ok(())
}

fn write(path: &Path, numbers: &[f32]) -> Result<(), Box<dyn Error>> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(path, bytes).map_err(|error| format!("writing {}: {error}", path.display()).into())
}

/// Appends the frames per CPU second of acting and learning.
fn measure(case: &Case, folder: &Path, cells: &mut Vec<(String, f64)>) -> Result<(), Box<dyn Error>> {
    let Case { name, config, steps } = case;
    let file = |what: &str| folder.join(format!("{name}.{what}"));
    let mut params = config.initial_params(Init::Torch, Seed::root(1));
    write(&file("params"), &params)?;
    let mut rng = Seed::root(2).rng();
    let pixels: usize = config.view.iter().product();
    let frames = steps * SEQUENCES;
    let pictures: Vec<u8> = (0..frames * pixels).map(|_| rng.below(256) as u8).collect();
    fs::write(file("pictures"), &pictures)?;
    let [height, width, channels] = config.view;
    let shape = PixelShape { frames: 1, height, width, channels };
    let see = |frame: usize| {
        let bytes = &pictures[frame * pixels..][..pixels];
        Pixels::new(shape, bytes).map(Observation::Image).ok_or("a picture of another size")
    };

    let mut agent = S3taAgent::new(config.clone())?;
    agent.set_params(&params)?;
    let mut logits = vec![];
    for batch in [1, 16] {
        let mut memories = vec![agent.memory(); batch];
        let mut contexts: Vec<ActContext> = (0..batch).map(|_| ActContext::default()).collect();
        let mut act = |keep: &mut dyn FnMut(&[f32])| -> Result<(), Box<dyn Error>> {
            let mut turns = vec![];
            for (episode, context) in contexts.iter_mut().enumerate() {
                turns.push(Turn { episode, observation: see(episode)?, context });
            }
            let mut decided =
                |_, decision: foveate_core::Decision<'_>| keep(decision.logits.unwrap_or_default());
            Ok(agent.act_batch(&mut turns, &mut memories, &mut decided)?)
        };
        // From fresh episodes.
        logits.clear();
        act(&mut |row| logits.extend_from_slice(row))?;
        let mut outcome = Ok(());
        let seconds = fastest(SPEND, || {
            let now = act(&mut |_| {});
            if now.is_err() {
                outcome = now;
            }
        });
        outcome?;
        cells.push((format!("{name}_act_{batch}"), batch as f64 / seconds));
    }
    write(&file("logits"), &logits)?;

    let mut student = S3taStudent::new(config)?;
    let mut codes = vec![vec![]; SEQUENCES];
    let (mut rewards, mut choices) = (vec![], vec![]);
    for frame in 0..frames {
        let reward = rng.uniform(-1.0, 1.0) as f32;
        let choice = rng.below(config.actions as u64) as usize;
        let last = LastStep { action: Some(Action::Discrete(choice)), reward: f64::from(reward) };
        student.encode(last, see(frame)?, &mut codes[frame / steps])?;
        rewards.push(reward);
        choices.push(choice as f32);
    }
    let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect() };
    let (of_logits, of_values) = (numbers(frames * config.actions), numbers(frames));
    for (what, numbers) in
        [("rewards", &rewards), ("choices", &choices), ("of_logits", &of_logits), ("of_values", &of_values)]
    {
        write(&file(what), numbers)?;
    }
    let memory = vec![0.0; student.memory_len()];
    let config = OptimizerConfig::RmsProp { decay: 0.99, momentum: 0.0, epsilon: 0.01, tensorflow: true };
    let mut optimizer = Optimizer::new(config, params.len());
    let mut gradient = vec![0.0; params.len()];
    let mut first = None;
    let mut outcome = Ok(());
    let seconds = fastest(SPEND, || {
        outcome = student.set_params(&params);
        gradient.fill(0.0);
        for (sequence, codes) in codes.iter().enumerate() {
            student.forward(*steps, codes, &memory);
            let rows = sequence * steps..(sequence + 1) * steps;
            let width = of_logits.len() / frames;
            let of_logits = &of_logits[rows.start * width..rows.end * width];
            student.backward(of_logits, &of_values[rows], &mut gradient);
        }
        if first.is_none() {
            first = Some(gradient.clone());
        }
        optimizer.step(1e-6, &gradient, &mut params);
    });
    outcome?;
    write(&file("gradient"), &first.unwrap_or_default())?;
    cells.push((format!("{name}_learn"), frames as f64 / seconds));
    Ok(())
}

/// Prints the time of every costly layer of the full network, forward and backward, beside the peak. Counted are the products of
/// the definition; where fewer are made (Winograd), the share can exceed 100 %.
fn layers() {
    const ROUNDS: u64 = 1_000_000;
    let level = Level::best();
    let seconds = fastest(SPEND_LAYER, || {
        black_box(peak::multiply_adds(level, black_box(ROUNDS)));
    });
    let peak = (ROUNDS * peak::PER_ROUND as u64) as f64 / seconds;
    println!("\npeak of one core with {level}: {:.1} G multiply-adds a second", peak / 1e9);
    println!("| layer | forward ms | of the peak | backward ms | of the peak |\n|---|---:|---:|---:|---:|");
    let same = |filters, size| Conv::new(filters, size).with_padding(Padding::Same);
    let row = |what: &str, build: &dyn Fn(&mut Builder) -> Node, terms: usize| {
        let mut net = Builder::default();
        let y = build(&mut net);
        let Ok(net) = net.build(&[y]) else { return };
        let (forward, backward) = layer(level, &net, y);
        let share = |terms: usize, seconds: f64| {
            if terms == 0 { "–".into() } else { format!("{:.0} %", 100.0 * terms as f64 / seconds / peak) }
        };
        println!(
            "| {what} | {:.2} | {} | {:.2} | {} |",
            forward * 1e3,
            share(terms, forward),
            backward * 1e3,
            share(2 * terms, backward)
        );
    };
    let cells = 27 * 20;
    row(
        "convolution 8 × 8 every 4, 3 → 32, of bytes (no gradient of the picture)",
        &|net| {
            let x = net.input("x", [210, 160, 3]);
            net.layer("conv", same(32, 8).with_stride(4), [x])
        },
        53 * 40 * 32 * 192,
    );
    row(
        "convolution 4 × 4 every 2, 32 → 64",
        &|net| {
            let x = net.state("x", [53, 40, 32]);
            net.layer("conv", same(64, 4).with_stride(2), [x])
        },
        cells * 64 * 512,
    );
    row(
        "ConvLSTM, 3 × 3, 64 → 512",
        &|net| {
            let x = net.state("x", [27, 20, 64]);
            net.layer("conv", same(512, 3), [x])
        },
        cells * 512 * 9 * 64,
    );
    row(
        "ConvLSTM, 3 × 3, 128 → 512",
        &|net| {
            let x = net.state("x", [27, 20, 128]);
            net.layer("conv", same(512, 3).without_bias(), [x])
        },
        cells * 512 * 9 * 128,
    );
    row(
        "ConvLSTM, gates",
        &|net| {
            let (z, c) = (net.state("z", [27, 20, 512]), net.state("c", [27, 20, 128]));
            net.then(LstmGates::default(), [z, c])
        },
        0,
    );
    row(
        "attention of four heads",
        &|net| {
            let (q, k, v) =
                (net.state("q", [4, 72]), net.state("k", [cells, 72]), net.state("v", [cells, 184]));
            net.then(SoftmaxAttention::new(1.0), [q, k, v])
        },
        0,
    );
}

/// CPU seconds forward and backward.
fn layer(level: Level, net: &Network, y: Node) -> (f64, f64) {
    let mut rng = Seed::root(3).rng();
    let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(-0.1, 0.1) as f32).collect() };
    let params = numbers(net.params());
    let inputs: Vec<Vec<f32>> = net
        .inputs()
        .map(|(_, shape)| shape.iter().product())
        .collect::<Vec<_>>()
        .into_iter()
        .map(&mut numbers)
        .collect();
    let inputs: Vec<&[f32]> = inputs.iter().map(|input| &input[..]).collect();
    let mut acts = net.activations(1);
    let forward = fastest(SPEND_LAYER, || net.forward(level, &params, &inputs, 1, &mut acts));
    let pull = numbers(acts.get(y).len());
    let mut gradient = vec![0.0; params.len()];
    let backward = fastest(SPEND_LAYER, || {
        acts.gradient_mut(y).copy_from_slice(&pull);
        net.backward(level, &params, &mut acts, &mut gradient);
    });
    (forward, backward)
}
