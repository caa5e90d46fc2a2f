//! A custom world in one file: a lamp on a dark picture; the agent should point at it.

use foveate::core::{
    ActionSpace, EnvError, EnvSpec, Fact, ImageBuf, ObservationSpace, PixelShape, Rng, Seed,
};
use foveate::envs::registry::Choice;
use foveate::{Action, Env, EnvRequest, Observation, Step, WorldDescriptor};

/// Its registry entry.
pub(crate) const DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    pictures: &[Choice { name: "dark", about: "a bright square on black" }],
    actions: &["point"],
    solved_at: Some(18.0),
    ..WorldDescriptor::new("scratch-lamp", "point at the lamp", make)
};

const SIDE: usize = 32;
const STEPS: usize = 20;

#[expect(clippy::unnecessary_wraps, reason = "a builder may fail")]
fn make(_: &EnvRequest) -> Result<Box<dyn Env>, foveate::registry::WorldError> {
    let spec = EnvSpec {
        id: DESCRIPTOR.name.into(),
        observation: ObservationSpace::Image(PixelShape::rgb(SIDE, SIDE)),
        action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
        max_steps: Some(STEPS),
        fps: 10.0,
    };
    Ok(Box::new(Lamp {
        spec,
        rng: Seed::root(0).rng(),
        picture: ImageBuf::black(SIDE, SIDE),
        at: 0,
        step: STEPS,
    }))
}

#[derive(Clone)]
struct Lamp {
    spec: EnvSpec,
    rng: Rng,
    picture: ImageBuf,
    /// Column of the lamp's left edge.
    at: usize,
    step: usize,
}

impl Lamp {
    /// Moves the lamp to a random position.
    fn light(&mut self) {
        self.at = self.rng.below((SIDE - 4) as u64) as usize;
        let row = self.rng.below((SIDE - 4) as u64) as usize;
        self.picture.rgb_mut().fill(0);
        for y in row..row + 4 {
            let from = 3 * (y * SIDE + self.at);
            self.picture.rgb_mut()[from..from + 12].fill(255);
        }
    }

    /// The centre of the lamp: −1 at the left edge, 1 at the right edge.
    fn place(&self) -> f64 {
        (self.at as f64 + 2.0) / SIDE as f64 * 2.0 - 1.0
    }
}

impl Env for Lamp {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.rng = Seed::root(seed).rng();
        }
        self.step = 0;
        self.light();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.spec.action.check(&self.spec.id, action)?;
        if self.step == STEPS {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        let pointed = if let Action::Continuous(numbers) = action { numbers[0] } else { 0.0 };
        let reward = 1.0 - (pointed - self.place()).abs();
        self.step += 1;
        self.light();
        Ok(Step { reward, terminated: false, truncated: self.step == STEPS })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::rgb(self.picture.as_image())
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        view.fit(self.picture.as_image());
        Ok(())
    }

    fn state(&self) -> Fact {
        Fact::Count(self.at as u64)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}
