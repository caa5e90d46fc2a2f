//! How long a decision of AttentionNeuron on numbers takes, in CPU time of one thread, on every instruction set: the
//! published architectures for CartPole (5 numbers) and Ant (28 numbers).
//!
//! `cargo run --release -p foveate-agents --example numbers_forward [-- --json]`
//!
//! Weights and numbers are sines of their places; `bench/reference/attention_neuron_numbers.py` measures `NumPy` and
//! `PyTorch` on the same.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;

use foveate_agents::attention_neuron::vectors::{VectorAgent, VectorConfig};
use foveate_agents::{AgentConfig, Layout};
use foveate_core::{ActContext, Observation, Policy, Seed};
use foveate_kernels::Level;
use rustix::time::{ClockId, clock_gettime};

/// CPU time to spend on each level, in nanoseconds.
const SPEND: u64 = 500_000_000;
/// Decisions of an episode.
const STEPS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().any(|arg| arg == "--json");
    let mut cells = vec![];
    for (name, config, sensors) in
        [("cartpole", VectorConfig::cartpole_pi(), 5), ("ant", VectorConfig::ant_pi(), 28)]
    {
        let count = config.param_count();
        let published: Vec<f32> = (0..count).map(|i| (0.4 * (0.37 * i as f64).sin()) as f32).collect();
        let params = Layout::Registration.to_ours(&config.tensors(), &published)?;
        let shown: Vec<f32> =
            (0..STEPS * sensors).map(|i| (2.0 * (0.7 * i as f64 + 0.3).sin()) as f32).collect();
        for level in Level::available() {
            let mut agent = VectorAgent::new(config.clone())?.with_level(level);
            agent.set_params(&params)?;
            let mut memory = agent.memory();
            let mut sum = 0.0;
            // The fastest pass is what is left when others on the machine do not disturb.
            let (start, mut best) = (cpu_ns(), u64::MAX);
            while best == u64::MAX || cpu_ns() - start < SPEND {
                let pass = cpu_ns();
                agent.reset(&mut memory, Seed::root(0));
                let mut total = 0.0;
                for numbers in shown.chunks_exact(sensors) {
                    let decision =
                        agent.act(Observation::Vector(numbers), &mut memory, &mut ActContext::default())?;
                    total += decision.action[0];
                }
                best = best.min(cpu_ns() - pass);
                sum = total;
            }
            let us = best as f64 / STEPS as f64 / 1e3;
            if json {
                cells.push(format!(r#""{name}_{level}_us": {us:.4}, "{name}_sum": {sum}"#));
            } else {
                println!("{name} {level}: {us:.3} µs per decision, actions sum to {sum:.6}");
            }
        }
    }
    if json {
        println!("{{ {} }}", cells.join(", "));
    }
    Ok(())
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
