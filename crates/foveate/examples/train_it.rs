//! A world and an agent of your own, trained from rewards, checkpointed and evaluated like those included in Foveate.
//!
//! Run: `cargo run --release -p foveate --example train_it`
//! Time: 1 s; writes the folder `runs/line`
//! Output:
//! ```text
//! linear: 3 weights, -3.8 on 100 test episodes
//! ```

#![allow(clippy::print_stdout, clippy::wildcard_imports, reason = "an example, with its output")]

use foveate::jobs::{Evaluate, Train};
use foveate::simple::*;
use foveate::{Player, Stop, WorldSpec};

/// A point on a line that must move to a target: 50 steps, each costs the remaining distance.
#[derive(Clone, Default)]
struct Line([f32; 2]);

impl SimpleEnv for Line {
    fn spec() -> EnvSpec {
        let action = ActionSpace::Box { low: vec![-0.1], high: vec![0.1] };
        let observation = ObservationSpace::Vector { len: 2 };
        EnvSpec { id: "line".into(), observation, action, max_steps: Some(50), fps: 10.0 }
    }

    fn reset(&mut self, rng: &mut Rng) {
        self.0 = std::array::from_fn(|_| rng.uniform(-1.0, 1.0) as f32);
    }

    fn step(&mut self, action: Action<'_>, _: &mut Rng) -> (f64, bool) {
        if let Action::Continuous(push) = action {
            self.0[0] += push[0] as f32;
        }
        (-f64::from((self.0[0] - self.0[1]).abs()), false)
    }

    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&self.0)
    }
}

/// One linear layer; the last weight is the bias.
struct Linear;

impl SimplePolicy for Linear {
    fn weights(numbers: usize, _: usize) -> usize {
        numbers + 1
    }

    fn act(weights: &[f32], seen: &[f32], action: &mut [f64]) {
        action[0] = seen.iter().chain(&[1.0]).zip(weights).map(|(x, w)| f64::from(x * w)).sum();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    WORLDS.register(WorldDescriptor::simple::<Line>("line", "move a point to a target"))?;
    AGENTS.register(AgentDescriptor::simple::<Linear>("linear", "one linear layer"))?;
    let job = Train {
        world: WorldSpec::named("line"),
        steps: Some(120_000),
        set: vec!["agent.name=linear".into(), "videos=false".into()],
        ..Train::default()
    };
    let run = job.run(&mut (), &Stop::default())?;
    let best = Player::load(Some(&run.folder), &job.world)?;
    let mean = Evaluate::default().run(&best, &Stop::default())?.summary.mean;
    println!("linear: {} weights, {mean:.1} on 100 test episodes", best.agent()?.params().len());
    Ok(())
}
