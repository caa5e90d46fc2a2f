//! A pole on a cart, pushed to the left or to the right: the task of Barto, Sutton and Anderson 1983 with the numbers of
//! Gymnasium's `CartPole-v1`.

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Observation, ObservationSpace, Rng, Seed, Step,
};

/// Seconds of a step.
const STEP: f64 = 0.02;
/// The force of a push, in newtons.
const FORCE: f64 = 10.0;
/// Half of the track in metres, and the largest angle in radians.
const LIMITS: [f64; 2] = [2.4, 0.209_439_510_239_319_55];

/// The world: position of the cart, its velocity, the pole's angle (positive to the right), its angular velocity.
#[derive(Debug, Clone)]
pub(super) struct CartPole {
    spec: EnvSpec,
    rng: Rng,
    state: [f64; 4],
    shown: [f32; 4],
    running: bool,
}

impl CartPole {
    /// Builds a world; it must be reset before the first step.
    pub(super) fn new() -> Self {
        let spec = EnvSpec {
            id: "cart-pole".into(),
            observation: ObservationSpace::Vector { len: 4 },
            action: ActionSpace::Discrete { n: 2 },
            max_steps: None,
            fps: 1.0 / STEP,
        };
        CartPole { spec, rng: Seed::root(0).rng(), state: [0.0; 4], shown: [0.0; 4], running: false }
    }
}

impl Env for CartPole {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.rng = Seed::root(seed).child("cart-pole", 0).rng();
        }
        self.state = [(); 4].map(|()| self.rng.uniform(-0.05, 0.05));
        self.shown = self.state.map(|x| x as f32);
        self.running = true;
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        self.spec.action.check(&self.spec.id, action)?;
        let push = if action == Action::Discrete(1) { FORCE } else { -FORCE };
        // Cart of 1 kg, pole of 0.1 kg and 1 m, whose middle is at 0.5 m.
        let [x, v, angle, spin] = self.state;
        let (sin, cos) = angle.sin_cos();
        let pushed = (push + 0.05 * spin * spin * sin) / 1.1;
        let turn = (9.8 * sin - cos * pushed) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1));
        let faster = pushed - 0.05 * turn * cos / 1.1;
        self.state = [x + STEP * v, v + STEP * faster, angle + STEP * spin, spin + STEP * turn];
        self.shown = self.state.map(|x| x as f32);
        let [x, _, angle, _] = self.state;
        let terminated = x.abs() > LIMITS[0] || angle.abs() > LIMITS[1];
        self.running = !terminated;
        Ok(Step { reward: 1.0, terminated, truncated: false })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&self.shown)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}
