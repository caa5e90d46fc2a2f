//! How long a decision of AttentionNeuron's published CarRacing agent takes, in CPU time of one thread, on every instruction
//! set, and where the time goes.
//!
//! `cargo run --release -p foveate-agents --example picture_forward [-- --json]`
//!
//! Reads the published weights and the golden stacks of pictures (see `tests/common`);
//! `bench/reference/attention_neuron_pictures.py` measures `NumPy` and `PyTorch` on the same.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

#[allow(dead_code, reason = "tests need more of it")]
#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;

use foveate_agents::attention_neuron::heads::HeadMemory;
use foveate_agents::attention_neuron::pictures::{PictureAgent, PictureConfig};
use foveate_agents::{AgentConfig, Layout};
use foveate_core::{ActContext, Observation, PixelShape, Pixels, Policy};
use foveate_kernels::Level;
use rustix::time::{ClockId, clock_gettime};

/// CPU time to spend on each level, in nanoseconds.
const SPEND: u64 = 1_500_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().any(|arg| arg == "--json");
    let config = PictureConfig::carracing_pi();
    let golden = common::data("attention_neuron_carracing_pi.npz")
        .zip(common::data("golden_attention_neuron_carracing_pi.npz"));
    let (weights, stacks) = golden.ok_or("the published weights and golden pictures are not there")?;
    let flat = common::read_npz(&weights)["params"].f32();
    let params = Layout::Registration.to_ours(&config.tensors(), &flat)?;
    let stacks = common::read_npz(&stacks)["stack"].u8().to_vec();
    let shape = PixelShape { frames: 4, height: 96, width: 96, channels: 1 };
    let stacks: Vec<Pixels> =
        stacks.chunks_exact(4 * 96 * 96).filter_map(|bytes| Pixels::new(shape, bytes)).collect();

    let mut cells = Vec::new();
    for level in Level::available() {
        let mut agent = PictureAgent::new(config.clone())?.with_level(level);
        agent.set_params(&params)?;
        let mut memory = agent.memory();
        // Equal sums say that two programs saw the same pictures and chose the same codes.
        let (mut sum, mut distinct) = (0, 0);
        for stack in &stacks {
            agent.act(Observation::Image(*stack), &mut memory, &mut ActContext::default())?;
            let HeadMemory::Latent(latent) = memory.head() else { return Err("another head".into()) };
            sum += latent.best().iter().map(|&code| u64::from(code)).sum::<u64>();
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
            cells.push(format!("\"{level}_us\":{us:.2}"));
        } else {
            let distinct = distinct as f64 / stacks.len() as f64;
            println!(
                "{level:>9}: {us:8.2} us a decision, {layer:.2} of them for the codes of {distinct:.0} distinct patches; \
                 chosen codes sum to {sum}"
            );
        }
        if json && level == Level::best() {
            cells.push(format!("\"chosen_sum\":{sum}"));
        }
    }
    if json {
        println!("{{{}}}", cells.join(","));
    }
    Ok(())
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
