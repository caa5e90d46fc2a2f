//! How long a decision of the published CarRacing agent takes, in CPU time of one thread, on every instruction set.
//!
//! `cargo run --release -p foveate-agents --example forward [-- --json]`
//!
//! Reads the published weights and the golden frames (see `tests/suite/common`);
//! `bench/reference/attention_agent_forward.py` measures `NumPy` and `PyTorch` on the same. `foveate bench forward` needs
//! no such files: it measures the champion on frames of a lap.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

#[allow(dead_code, reason = "tests need more of it")]
#[path = "../tests/suite/common/mod.rs"]
mod common;

use std::error::Error;

use foveate_agents::{AttentionAgent, AttentionAgentConfig};
use foveate_core::{ActContext, Image, Observation, Policy};
use foveate_kernels::Level;
use rustix::time::{ClockId, clock_gettime};

/// CPU time to spend on each level, in nanoseconds.
const SPEND: u64 = 1_500_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().any(|arg| arg == "--json");
    let config = AttentionAgentConfig::default();
    let golden = foveate_toy::needs::data("attention_agent_carracing.npz")
        .zip(foveate_toy::needs::data("golden_attention_agent_carracing.npz"));
    let (weights, frames) = golden.ok_or(
        "the published weights and golden frames are not there; `foveate bench forward` measures without them",
    )?;
    let params = common::read_npz(&weights)["params"].f32();
    let frames = common::read_npz(&frames)["frames"].u8().to_vec();
    let frames: Vec<Image> =
        frames.chunks_exact(96 * 96 * 3).filter_map(|rgb| Image::new(96, 96, rgb)).collect();

    let mut cells = Vec::new();
    for level in Level::available() {
        let mut agent = AttentionAgent::new(config.clone())?.with_level(level);
        agent.set_params(&params)?;
        let mut memory = agent.memory();
        // Equal sums say that two programs saw the same frames and chose the same patches.
        let mut sum = 0;
        for frame in &frames {
            let attention = agent
                .act(Observation::rgb(*frame), &mut memory, &mut ActContext::default())?
                .attention
                .expect("this agent attends");
            sum += attention
                .selected()
                .expect("it selects")
                .tokens
                .iter()
                .map(|&patch| u64::from(patch))
                .sum::<u64>();
        }
        // The fastest pass is what is left when others on the machine do not disturb.
        let (start, mut best, mut decisions) = (cpu_ns(), u64::MAX, 0_u64);
        while cpu_ns() - start < SPEND {
            let pass = cpu_ns();
            for frame in &frames {
                agent.act(Observation::rgb(*frame), &mut memory, &mut ActContext::default())?;
            }
            best = best.min(cpu_ns() - pass);
            decisions += frames.len() as u64;
        }
        let mean = (cpu_ns() - start) as f64 / decisions as f64 / 1e3;
        let us = best as f64 / frames.len() as f64 / 1e3;
        if json {
            cells.push(format!("\"{level}_us\":{us:.2}"));
        } else {
            println!(
                "{level:>9}: {us:8.2} us a decision at best, {mean:.2} on average of {decisions}; chosen patches sum to {sum}"
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

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
