//! A tiny world and a tiny agent, for tests of the code around them.

use std::ops::Range;

use foveate_core::{
    ActContext, Action, ActionSpace, Decision, Demonstration, Env, EnvError, EnvSpec, Fact, ImageBuf,
    Observation, ObservationSpace, Policy, PolicyAgent, PolicyError, Rng, Seed, Step, Student, TensorShape,
};

/// A drifting ball on a line; the closer the agent keeps it to the middle, the higher the reward.
///
/// Reward: `1 − |x|` per step; the world ends when the ball is farther out than 2, or after 60 steps.
#[derive(Debug, Clone)]
pub(crate) struct ToyWorld {
    spec: EnvSpec,
    stream: Rng,
    noise: Rng,
    observation: [f32; 2],
    x: f64,
    t: usize,
    over: bool,
    script: Option<Vec<f64>>,
    panics_at: Option<(u64, usize)>,
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
            seed: 0,
        }
    }
}

impl ToyWorld {
    /// Gives these rewards, one per step, and then terminates.
    pub(crate) fn paying(rewards: &[f64]) -> Self {
        ToyWorld { script: Some(rewards.to_vec()), ..ToyWorld::default() }
    }

    /// Panics in step `step` of every episode with the seed `seed`.
    pub(crate) fn panicking(seed: u64, step: usize) -> Self {
        ToyWorld { panics_at: Some((seed, step)), ..ToyWorld::default() }
    }

    fn look(&mut self) {
        self.observation = [self.x as f32, 1.0];
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

/// `action = w₀ · x + w₁ + w₂ · (last action)`: three parameters, and a memory that a reset must clear.
#[derive(Debug, Clone)]
pub(crate) struct ToyPolicy([f32; 3]);

/// [`ToyPolicy`] as an agent.
pub(crate) type ToyAgent = PolicyAgent<ToyPolicy>;

/// The last action, and the last observation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ToyMemory {
    action: [f64; 1],
    seen: [f32; 2],
}

impl Policy for ToyPolicy {
    type Memory = ToyMemory;

    fn memory(&self) -> ToyMemory {
        ToyMemory::default()
    }

    fn reset(&self, memory: &mut ToyMemory, _: Seed) {
        *memory = ToyMemory::default();
    }

    fn inputs<'m>(&self, memory: &'m ToyMemory) -> &'m [f32] {
        &memory.seen
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut ToyMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Observation::Vector(&[x, one]) = observation else {
            return Err(PolicyError::ObservationShape { wanted: "2 numbers".into(), given: "others".into() });
        };
        let [a, b, c] = self.0;
        memory.seen = [x, one];
        memory.action = [f64::from(a * x + b * one) + f64::from(c) * memory.action[0]];
        Ok(Decision::new(&memory.action))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![TensorShape { name: "w".into(), shape: vec![3] }]
    }

    fn params(&self) -> Vec<f32> {
        self.0.to_vec()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.0 = flat.try_into().map_err(|_| PolicyError::ParamCount {
            wanted: 3,
            given: flat.len(),
            tensors: "w 3".into(),
        })?;
        Ok(())
    }
}

/// An agent whose parameters are all `w`.
pub(crate) fn toy_agent(w: f32) -> ToyAgent {
    PolicyAgent::new(ToyPolicy([w; 3]))
}

/// [`ToyPolicy`] as a student.
#[derive(Debug, Clone)]
pub(crate) struct ToyStudent(pub(crate) [f32; 3]);

impl Student for ToyStudent {
    fn inputs(&self) -> usize {
        2
    }

    fn actions(&self) -> usize {
        1
    }

    fn learns(&self) -> Range<usize> {
        0..3
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        let mut policy = ToyPolicy(self.0);
        policy.set_params(flat)?;
        self.0 = policy.0;
        Ok(())
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let [a, b, c] = self.0;
        // The action, and its derivative with respect to the parameters.
        let (mut action, mut slope, mut sum) = (0.0_f32, [0.0_f32; 3], 0.0);
        let mut of_piece = [0.0; 3];
        for t in piece.start.saturating_sub(burn_in)..piece.end {
            let &[x, one] = &demonstration.inputs[2 * t..2 * t + 2] else { unreachable!("two numbers") };
            let inputs = [x, one, action];
            action = a * x + b * one + c * action;
            if t < piece.start {
                continue;
            }
            for (slope, input) in slope.iter_mut().zip(inputs) {
                *slope = input + c * *slope;
            }
            let error = action - demonstration.actions[t];
            sum += f64::from(error * error);
            for (of_piece, slope) in of_piece.iter_mut().zip(slope) {
                *of_piece += 2.0 * error * slope;
            }
        }
        gradient.iter_mut().zip(of_piece).for_each(|(to, sum)| *to += sum);
        sum
    }

    fn boxed_clone(&self) -> Box<dyn Student> {
        Box::new(self.clone())
    }
}
