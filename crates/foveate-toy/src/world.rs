//! The world.

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, ImageBuf, Observation, ObservationSpace, Rng, Seed,
    Step,
};

/// A drifting ball on a line; the closer the agent keeps it to the middle, the higher the reward.
///
/// Reward: `1 − |x|` per step; the world ends when the ball is farther out than 2, or after 60 steps.
#[derive(Debug, Clone)]
pub struct ToyWorld {
    spec: EnvSpec,
    stream: Rng,
    noise: Rng,
    observation: [f32; 2],
    x: f64,
    t: usize,
    over: bool,
    script: Option<Vec<f64>>,
    panics_at: Option<(u64, usize)>,
    blind_from: Option<usize>,
    seed: u64,
}

impl Default for ToyWorld {
    fn default() -> Self {
        ToyWorld {
            spec: EnvSpec {
                id: "toy".into(),
                observation: ObservationSpace::Vector { len: 2 },
                action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
                max_steps: Some(60),
                fps: 10.0,
            },
            stream: Seed::root(0).rng(),
            noise: Seed::root(0).rng(),
            observation: [0.0; 2],
            x: 0.0,
            t: 0,
            over: true,
            script: None,
            panics_at: None,
            blind_from: None,
            seed: 0,
        }
    }
}

impl ToyWorld {
    /// Gives these rewards, one per step, and then terminates.
    #[must_use]
    pub fn paying(rewards: &[f64]) -> Self {
        ToyWorld { script: Some(rewards.to_vec()), ..ToyWorld::default() }
    }

    /// Panics in step `step` of every episode with the seed `seed`.
    #[must_use]
    pub fn panicking(seed: u64, step: usize) -> Self {
        ToyWorld { panics_at: Some((seed, step)), ..ToyWorld::default() }
    }

    /// Shows NaN for the ball from step `step` of every episode on.
    #[must_use]
    pub fn blinded(step: usize) -> Self {
        ToyWorld { blind_from: Some(step), ..ToyWorld::default() }
    }

    fn look(&mut self) {
        let blind = self.blind_from.is_some_and(|from| self.t >= from);
        self.observation = [if blind { f32::NAN } else { self.x as f32 }, 1.0];
    }
}

impl Env for ToyWorld {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.stream = Seed::root(seed).rng();
            self.seed = seed;
        }
        // Two random numbers per reset and none per step, as in CarRacing: the stream does not depend on the
        // length of an episode.
        self.x = self.stream.uniform(-1.0, 1.0);
        self.noise = Seed::root(self.stream.next_u64()).rng();
        (self.t, self.over) = (0, false);
        self.look();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if self.over {
            return Err(EnvError::NeedsReset { env: "toy".into() });
        }
        let Action::Continuous(&[push]) = action else {
            return Err(EnvError::ActionLength { env: "toy".into(), wanted: 1, given: 0 });
        };
        self.t += 1;
        assert!(self.panics_at != Some((self.seed, self.t)), "the toy broke");
        if let Some(script) = &self.script {
            self.over = self.t == script.len();
            return Ok(Step { reward: script[self.t - 1], terminated: self.over, truncated: false });
        }
        self.x = 1.05 * self.x + 0.3 * push + 0.1 * self.noise.normal();
        self.look();
        let terminated = self.x.abs() > 2.0;
        let truncated = !terminated && self.t == 60;
        self.over = terminated || truncated;
        Ok(Step { reward: 1.0 - self.x.abs(), terminated, truncated })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&self.observation)
    }

    fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
        Err(EnvError::NoView { env: "toy".into(), why: "there is nothing to see".into() })
    }

    fn state(&self) -> Fact {
        Fact::Number(self.x)
    }

    /// Pushes the ball back to the middle.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        action[0] = -3.0 * self.x;
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}
