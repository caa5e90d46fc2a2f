//! CPU time of a step of DeepMind Control's tasks from pixels and of a decision on them.
//!
//! `cargo run --release -p foveate-registry --example pixel_steps -- [TASK]` prints one JSON object: per task, or of one, the
//! milliseconds of this thread for a step of the world with its picture of 100 × 100 pixels (`world_ms`), and with a decision of IAP
//! (`ReLU` features, patches of 7 pixels at a distance of 4) besides (`ms`).

#![allow(clippy::print_stdout, reason = "what the example is for")]

use foveate_agents::registry::{self, Init};
use foveate_core::{ActContext, Action, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{WORLDS, make};
use rustix::time::{ClockId, clock_gettime};

/// Steps of a round; the fastest of the rounds counts.
const STEPS: usize = 400;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(1);
    let mut rows = Vec::new();
    let tasks = WORLDS.iter().filter(|world| world.needs_library && world.family.is_none());
    for world in tasks.filter(|world| only.as_ref().is_none_or(|only| only == world.name)) {
        for antialias in ["true", "false"] {
            let request = EnvRequest {
                id: world.name.into(),
                picture: Some("pixels".into()),
                options: [("antialias".into(), antialias.into())].into(),
                ..EnvRequest::default()
            };
            let mut env = make(&request)?;
            let config = serde_json::json!({
                "image": [100, 100],
                "actions": vec![[-1.0, 1.0]; env.spec().action.len()],
            });
            let mut agent = registry::make("iap", &config)?;
            agent.set_params(&registry::initial_params("iap", &config, Init::Torch, Seed::root(1))?)?;
            let mut best = [f64::INFINITY; 2];
            for _ in 0..ROUNDS {
                for (decides, best) in [false, true].into_iter().zip(&mut best) {
                    env.reset(Some(1));
                    agent.begin_episode(Seed::root(2));
                    let mut action =
                        agent.act(env.observation(), &mut ActContext::default())?.action.to_vec();
                    let start = cpu_seconds();
                    for _ in 0..STEPS {
                        if decides {
                            let decision = agent.act(env.observation(), &mut ActContext::default())?;
                            action.copy_from_slice(decision.action);
                        }
                        if env.step(Action::Continuous(&action))?.is_over() {
                            // The quadruped falls.
                            env.reset(None);
                        }
                    }
                    *best = best.min((cpu_seconds() - start) / STEPS as f64 * 1e3);
                }
            }
            let [world_ms, ms] = best;
            let name = if antialias == "true" {
                world.name.into()
            } else {
                format!("{}, no anti-aliasing", world.name)
            };
            rows.push(serde_json::json!({ "task": name, "world_ms": world_ms, "ms": ms }));
        }
    }
    println!("{}", serde_json::json!({ "steps": rows }));
    Ok(())
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
