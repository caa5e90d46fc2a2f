//! Measures the gradients of a round of imitation with the settings of the default recipe, 1,200 updates of
//! 24 segments, in wall time and CPU time of all threads: on one thread, and with a [`ParallelModel`] of 1,
//! 2, … threads.
//!
//! `cargo run --release -p foveate-run --example rounds [MOST_THREADS]`

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use foveate_agents::registry::{self, Init, initial_params};
use foveate_core::{Demonstration, EpisodeResult, Experience, Learner, Model, Recording, Seed};
use foveate_run::clock::{ProcessCpu, Wall};
use foveate_run::parallel_model::ParallelModel;
use foveate_run::workers::default_workers;
use foveate_train::imitation::{Imitation, ImitationConfig};
use serde_json::Value;

const AGENT: &str = "attention-agent";
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let most = std::env::args().nth(1).map_or(Ok(default_workers()), |text| text.parse())?;
    let counts = std::iter::once(None).chain((1..=most).map(Some));
    for threads in counts {
        let learner = registry::model(AGENT, &Value::Null)?;
        let learner: Box<dyn Model> = match threads {
            None => learner,
            Some(threads) => Box::new(ParallelModel::new(learner, threads)),
        };
        let what = threads.map_or_else(|| "without".to_owned(), |threads| format!("{threads:>7}"));
        let (wall, cpu) = best_round(learner)?;
        println!("{what} threads: {wall:.3} s wall, {cpu:.3} s CPU a round");
    }
    Ok(())
}

/// Minimum wall time and minimum CPU time of a round, in seconds.
fn best_round(mut learner: Box<dyn Model>) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let params = initial_params(AGENT, &Value::Null, Init::Torch, Seed::root(1))?;
    let mean = params.into_iter().map(f64::from).collect();
    let student = learner.student().ok_or("it learns from demonstrations")?;
    let (inputs, actions) = (student.inputs(), student.actions());
    let mut learner = Imitation::new(ImitationConfig::default(), mean, Seed::root(2), learner)?;
    let mut rng = Seed::root(3).rng();
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(0.0, 1.0) as f32).collect() };
        let demonstration = |_| Demonstration {
            inputs: draw(1000 * inputs),
            actions: draw(1000 * actions),
            steps: 1000,
            ..Demonstration::default()
        };
        let recordings = (0..24).map(demonstration).map(Recording::Demonstration).collect();
        let episodes = vec![EpisodeResult::default(); 24];
        let experience = Experience { recordings, ..Experience::of_episodes(episodes) };
        let (wall, cpu) = (Wall::start(), ProcessCpu::start());
        learner.receive(experience)?;
        best = (best.0.min(wall.elapsed().as_secs_f64()), best.1.min(cpu.elapsed().as_secs_f64()));
    }
    Ok(best)
}
