//! How long a decision of AttentionNeuron on pictures takes, in CPU time of one thread, on every instruction set, and where
//! the time goes: the published CarRacing agent, and the architecture of the published Pong agent.
//!
//! `cargo run --release -p foveate-agents --example picture_forward [-- --json]`
//!
//! CarRacing: the published weights and the golden stacks of pictures, where they are there (see `tests/suite/common`). Pong: its
//! weights are sines of their places, its pictures paddles and a ball. `bench/reference/attention_neuron_pictures.py`
//! measures `NumPy` and `PyTorch` on the same.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

#[allow(dead_code, reason = "tests need more of it")]
#[path = "../tests/suite/common/mod.rs"]
mod common;

use std::error::Error;

use foveate_agents::attention_neuron::heads::HeadMemory;
use foveate_agents::attention_neuron::pictures::{PictureAgent, PictureConfig};
use foveate_agents::{AgentConfig, Layout};
use foveate_core::{ActContext, Observation, PixelShape, Pixels, Policy, Seed};
use foveate_kernels::Level;
use rustix::time::{ClockId, clock_gettime};

/// CPU time to spend on each level, in nanoseconds.
const SPEND: u64 = 1_500_000_000;

/// An agent and what it is shown.
struct Work {
    name: &'static str,
    config: PictureConfig,
    params: Vec<f32>,
    /// Stacks of four pictures, one after the other.
    stacks: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().any(|arg| arg == "--json");
    let mut cells = Vec::new();
    for Work { name, config, params, stacks } in carracing()?.into_iter().chain([pong()?]) {
        let [width, height] = config.image;
        let shape = PixelShape { frames: config.frames, height, width, channels: 1 };
        let stacks: Vec<Pixels> = stacks
            .chunks_exact(config.frames * width * height)
            .filter_map(|bytes| Pixels::new(shape, bytes))
            .collect();
        for level in Level::available() {
            let mut agent = PictureAgent::new(config.clone())?.with_level(level);
            agent.set_params(&params)?;
            let mut memory = agent.memory();
            // Equal sums say that two programs saw the same pictures and computed the same.
            let (mut sums, mut distinct) = (vec![], 0);
            for stack in &stacks {
                agent.reset(&mut memory, Seed::root(0));
                agent.act(Observation::Image(*stack), &mut memory, &mut ActContext::default())?;
                sums.push(match memory.head() {
                    HeadMemory::Latent(latent) => latent.best().iter().map(|&code| f64::from(code)).sum(),
                    _ => memory.raw().iter().map(|&score| f64::from(score)).sum::<f64>(),
                });
                distinct += memory.distinct();
            }
            let mut act = || {
                for stack in &stacks {
                    let _ = agent.act(Observation::Image(*stack), &mut memory, &mut ActContext::default());
                }
            };
            let us = fastest(&mut act) / stacks.len() as f64;
            let mut codes = agent.codes_alone();
            let mut compute = || stacks.iter().for_each(|stack| codes(stack.bytes()));
            let layer = fastest(&mut compute) / stacks.len() as f64;
            if json {
                cells.push(format!("\"{name}_{level}_us\":{us:.2},\"{name}_sums\":{sums:?}"));
            } else {
                let distinct = distinct as f64 / stacks.len() as f64;
                println!(
                    "{name:>9} {level:>9}: {us:8.2} us a decision, {layer:.2} of them for the codes of {distinct:.0} \
                     distinct patches; sum {}",
                    sums.iter().sum::<f64>()
                );
            }
        }
    }
    if json {
        println!("{{{}}}", cells.join(","));
    }
    Ok(())
}

/// The published CarRacing agent, when its weights and pictures are there. A sum is that of the chosen codes.
fn carracing() -> Result<Option<Work>, Box<dyn Error>> {
    let config = PictureConfig::carracing_pi();
    let golden = foveate_toy::needs::data("attention_neuron_carracing_pi.npz")
        .zip(foveate_toy::needs::data("golden_attention_neuron_carracing_pi.npz"));
    let Some((weights, stacks)) = golden else { return Ok(None) };
    let flat = common::read_npz(&weights)["params"].f32();
    let params = Layout::Registration.to_ours(&config.tensors(), &flat)?;
    let stacks = common::read_npz(&stacks)["stack"].u8().to_vec();
    Ok(Some(Work { name: "carracing", config, params, stacks }))
}

/// The architecture of the Pong agent. A sum is that of all scores.
fn pong() -> Result<Work, Box<dyn Error>> {
    /// Decisions of a pass.
    const STEPS: usize = 24;
    let config = PictureConfig::puzzle_pong();
    let flat: Vec<f32> = (0..config.param_count()).map(|i| (0.06 * (0.37 * i as f64).sin()) as f32).collect();
    let params = Layout::Registration.to_ours(&config.tensors(), &flat)?;
    let pictures: Vec<Vec<u8>> = (0..STEPS + 3).map(picture_of_pong).collect();
    let stacks = pictures.windows(4).flatten().flatten().copied().collect();
    Ok(Work { name: "pong", config, params, stacks })
}

/// Two paddles and a ball, which move; the top rows are blank.
fn picture_of_pong(t: usize) -> Vec<u8> {
    let mut picture = vec![87; 84 * 84];
    picture[..10 * 84].fill(0);
    for (row, column, height, width, grey) in [
        (14 + t % 50, 8, 8, 2, 147),
        (60 - t % 40, 74, 8, 2, 148),
        (20 + 2 * t % 60, 12 + 3 * t % 60, 3, 2, 236),
    ] {
        for y in row..row + height {
            picture[y * 84 + column..][..width].fill(grey);
        }
    }
    picture
}

/// Microseconds of the fastest pass: what is left when others on the machine do not disturb.
fn fastest(pass: &mut dyn FnMut()) -> f64 {
    let (start, mut best) = (cpu_ns(), u64::MAX);
    while cpu_ns() - start < SPEND {
        let begin = cpu_ns();
        pass();
        best = best.min(cpu_ns() - begin);
    }
    best as f64 / 1e3
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
