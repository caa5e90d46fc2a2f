//! Measures the updates of learners by gradients: CPU and wall seconds of a round, without the world.
//!
//! `cargo run --release -p foveate-run --example updates [THREADS]`

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use foveate_agents::registry::{self, Init, initial_params};
use foveate_core::episode::EpisodeRules;
use foveate_core::{
    ActionBuf, Demonstration, EpisodeResult, Episodes, Experience, GridBuf, ObservationBuf, Record,
    Recording, Rng, Seed, Unroll,
};
use foveate_run::clock::{ProcessCpu, Wall};
use foveate_run::parallel_model::ParallelModel;
use foveate_train::{Fitness, LEARNERS, LearnerParts};
use serde_json::{Value, json};

const EPISODES: usize = 8;
const STEPS: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let dense = json!({ "observation": vec![[-1.0, 1.0]; 24], "actions": [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], "discrete": true, "hidden": [64, 64] });
    let lstm = json!({ "observation": vec![[-1.0, 1.0]; 24], "actions": [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], "discrete": true, "hidden": [64], "lstm": 32 });
    let grid = json!({ "view": [7, 7], "channels": 3, "actions": 4 });
    for (name, learner, agent, settings, table) in [
        ("ppo", "ppo", "actor-critic", &dense, "epochs = 4"),
        ("ppo, LSTM", "ppo", "actor-critic", &lstm, "epochs = 4"),
        ("vtrace", "vtrace", "actor-critic", &lstm, "unroll = 50\nbatch = 8"),
        ("dqn", "dqn", "relational", &grid, "first = 100\nsteps_per_update = 8"),
        ("imitation", "imitation", "attention-agent", &Value::Null, "updates = 200"),
    ] {
        let model = ParallelModel::new(registry::model(agent, settings)?, threads);
        let weights = initial_params(agent, settings, Init::Torch, Seed::root(1))?;
        let parts = LearnerParts {
            weights: weights.iter().map(|&x| f64::from(x)).collect(),
            seed: Seed::root(2),
            model: Some(&model),
            fitness: Fitness::Mean,
        };
        let mut learner = LEARNERS.find(learner)?.settings(&table.parse()?)?.build(parts)?;
        let (mut best, mut wall) = (f64::INFINITY, f64::INFINITY);
        for round in 0..4 {
            let seeds = |_: usize, episode: usize| episode as u64;
            let work =
                learner.work(&Episodes { per_row: EPISODES, rules: EpisodeRules::WHOLE, seeds: &seeds });
            let experience = experience(&work.record, agent, round);
            let (time, cpu) = (Wall::start(), ProcessCpu::start());
            learner.receive(experience)?;
            best = best.min(cpu.elapsed().as_secs_f64());
            wall = wall.min(time.elapsed().as_secs_f64());
        }
        let sum: f64 = learner.centre().iter().sum();
        println!("{name:12} {best:.4} s CPU, {wall:.4} s wall a round; weights sum to {sum:?}");
    }
    Ok(())
}

/// Random episodes.
fn experience(record: &Record, agent: &str, round: u64) -> Experience {
    let mut rng = Seed::root(3).child("round", round).rng();
    let recordings = (0..EPISODES).map(|_| match record {
        Record::Demonstrations(_) => {
            let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(0.0, 1.0) as f32).collect() };
            let (inputs, actions) = (draw(STEPS * 20), draw(STEPS * 3));
            Recording::Demonstration(Demonstration {
                inputs,
                actions,
                steps: STEPS,
                ..Demonstration::default()
            })
        }
        Record::Transitions { unroll } => {
            let count = STEPS / (*unroll).min(STEPS);
            Recording::Transitions((0..count).map(|_| episode(&mut rng, agent, STEPS / count)).collect())
        }
        _ => unreachable!("no learner here asks for it"),
    });
    let recordings = recordings.collect();
    Experience { recordings, ..Experience::of_episodes(vec![EpisodeResult::default(); EPISODES]) }
}

fn episode(rng: &mut Rng, agent: &str, steps: usize) -> Unroll {
    let observations = (0..=steps)
        .map(|_| match agent {
            "relational" => {
                let codes: Vec<u8> = (0..147).map(|_| rng.below(4) as u8).collect();
                ObservationBuf::Grid(GridBuf::new(7, 7, 3, codes).expect("as many"))
            }
            _ => ObservationBuf::Vector((0..24).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()),
        })
        .collect();
    Unroll {
        observations,
        actions: (0..steps).map(|_| ActionBuf::Discrete(rng.below(4) as usize)).collect(),
        rewards: (0..steps).map(|_| rng.uniform(0.0, 1.0)).collect(),
        logits: (0..4 * steps).map(|_| rng.uniform(-0.1, 0.1) as f32).collect(),
        memory: vec![0.0; 64],
        truncated: true,
        ..Unroll::default()
    }
}
