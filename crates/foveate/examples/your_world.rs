//! A world of your own: one type and one registry entry; all commands and functions then find it by its name.
//!
//! Run: `cargo run --release -p foveate --example your_world`
//! Time: less than a second
//! Output:
//! ```text
//! line: random actions score -36.1 on average
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use foveate::core::{ActionSpace, EnvError, EnvSpec, ObservationSpace, Rng};
use foveate::jobs::Evaluate;
use foveate::run::workers::Stop;
use foveate::{Action, Env, Observation, Player, Seed, Step, WORLDS, WorldDescriptor, WorldSpec};

/// A point on a line that must move to a target: 50 steps, each costs the remaining distance.
#[derive(Clone)]
struct Line {
    spec: EnvSpec,
    rng: Rng,
    seen: [f32; 2], // point and target
    steps_left: usize,
}

pub(crate) fn descriptor() -> WorldDescriptor {
    WorldDescriptor::new("line", "move a point to a target", |_| {
        let action = ActionSpace::Box { low: vec![-0.1], high: vec![0.1] };
        let observation = ObservationSpace::Vector { len: 2 };
        let spec = EnvSpec { id: "line".into(), observation, action, max_steps: Some(50), fps: 10.0 };
        Ok(Box::new(Line { spec, rng: Seed::root(0).rng(), seen: [0.0; 2], steps_left: 0 }))
    })
}

impl Env for Line {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        self.rng = seed.map_or_else(|| self.rng.clone(), |seed| Seed::root(seed).rng());
        self.seen = std::array::from_fn(|_| self.rng.uniform(-1.0, 1.0) as f32);
        self.steps_left = 50;
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.spec.action.check(&self.spec.id, action)?;
        let Some(left) = self.steps_left.checked_sub(1) else {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        };
        self.steps_left = left;
        if let Action::Continuous(&[push]) = action {
            self.seen[0] += push.clamp(-0.1, 0.1) as f32;
        }
        let reward = -f64::from((self.seen[0] - self.seen[1]).abs());
        Ok(Step { reward, terminated: false, truncated: left == 0 })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&self.seen)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

#[allow(dead_code, reason = "train_it includes this file")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    WORLDS.register(descriptor())?;
    let random = Player::load(Some("random-actions".as_ref()), &WorldSpec::named("line"))?;
    let report = Evaluate::default().run(&random, &Stop::default())?;
    println!("line: random actions score {:.1} on average", report.summary.mean);
    Ok(())
}
