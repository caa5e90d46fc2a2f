//! How long a student of the CarRacing agent needs for a step of a demonstration, there and back, in CPU time of one
//! thread, on every instruction set; and for taking new weights.
//!
//! `cargo run --release -p foveate-agents --example study`

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::ops::Range;

use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::{AttentionAgentConfig, Level, LstmStudent};
use foveate_core::{Demonstration, Model, PolicyError, Seed, Student};
use rustix::time::{ClockId, clock_gettime};

/// Steps of a piece.
const STEPS: usize = 150;
/// CPU time to spend on each measurement, in nanoseconds.
const SPEND: u64 = 500_000_000;

fn main() -> Result<(), PolicyError> {
    let config = AttentionAgentConfig::default();
    let params = config.initial_params(Init::Torch, Seed::root(1));
    let mut rng = Seed::root(2).rng();
    let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(0.0, 1.0) as f32).collect() };
    let demonstration = Demonstration {
        inputs: draw(2 * STEPS * 20),
        actions: draw(2 * STEPS * 3),
        steps: 2 * STEPS,
        ..Demonstration::default()
    };
    let mut gradient = vec![0.0; params.len()];
    for level in Level::available() {
        let mut student = LstmStudent::new(&config)?.with_level(level);
        let set = best_ns(|| student.set_params(&params))?;
        let mut study = |piece: Range<usize>, burn_in| {
            best_ns(|| {
                student.study(&demonstration, piece.clone(), burn_in, &mut gradient);
                Ok(())
            })
        };
        let piece = study(0..STEPS, 0)?;
        let burnt = study(STEPS..2 * STEPS, STEPS)? - piece;
        println!(
            "{:>9}: {:6.3} us a step there and back, {:6.3} us a step of burn-in; weights in {:6.1} us",
            level.name(),
            piece / STEPS as f64 / 1e3,
            burnt / STEPS as f64 / 1e3,
            set / 1e3
        );
    }
    Ok(())
}

/// The least time that `work` takes, in nanoseconds: what is left when others on the machine do not disturb.
fn best_ns(mut work: impl FnMut() -> Result<(), PolicyError>) -> Result<f64, PolicyError> {
    let (start, mut best) = (cpu_ns(), u64::MAX);
    while cpu_ns() - start < SPEND {
        let pass = cpu_ns();
        for _ in 0..10 {
            work()?;
        }
        best = best.min(cpu_ns() - pass);
    }
    Ok(best as f64 / 10.0)
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
