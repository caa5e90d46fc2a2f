//! A world of four sensors, and an agent that listens to them, with a known ground truth.

use foveate_core::{
    ActContext, Action, ActionSpace, Attention, Decision, Env, EnvError, EnvSpec, ImageBuf, Observation,
    ObservationSpace, Policy, PolicyAgent, PolicyError, Rng, Seed, Step, TensorShape, Tokens,
};

/// Amplitudes of the sensors of [`Gauges`].
pub const SIZES: [f64; 4] = [0.2, 0.4, 0.8, 1.6];

/// Four numbers that wander about 0, each with its own amplitude, in another order in every episode if `shuffled`;
/// 60 steps.
#[derive(Debug, Clone)]
pub struct Gauges {
    spec: EnvSpec,
    shuffled: bool,
    stream: Rng,
    noise: Rng,
    order: Vec<u32>,
    state: [f64; 4],
    shown: Vec<f32>,
    t: usize,
}

impl Gauges {
    /// The world at its first start.
    pub fn new(shuffled: bool) -> Self {
        Gauges {
            spec: EnvSpec {
                id: "gauges".into(),
                observation: ObservationSpace::Vector { len: 4 },
                action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
                max_steps: Some(60),
                fps: 10.0,
            },
            shuffled,
            stream: Seed::root(0).rng(),
            noise: Seed::root(0).rng(),
            order: (0..4).collect(),
            state: [0.0; 4],
            shown: vec![0.0; 4],
            t: 0,
        }
    }

    fn wander(&mut self) {
        for (state, size) in self.state.iter_mut().zip(SIZES) {
            *state = 0.6 * *state + 0.8 * size * self.noise.normal();
        }
        for (shown, &sensor) in self.shown.iter_mut().zip(&self.order) {
            *shown = self.state[sensor as usize] as f32;
        }
    }
}

impl Env for Gauges {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.stream = Seed::root(seed).rng();
        }
        self.noise = Seed::root(self.stream.next_u64()).rng();
        let by = self.stream.below(4) as usize;
        if self.shuffled {
            self.order = (0..4).map(|i| (i + by) as u32 % 4).collect();
        }
        self.state = [0.0; 4];
        self.t = 0;
        self.wander();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let Action::Continuous(&[push]) = action else {
            return Err(EnvError::ActionLength { env: "gauges".into(), wanted: 1, given: 0 });
        };
        self.t += 1;
        self.wander();
        Ok(Step { reward: push, terminated: false, truncated: self.t == 60 })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&self.shown)
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        view.rgb_mut().fill(if self.state[3] > 0.0 { 200 } else { 30 });
        Ok(())
    }

    fn sensor_order(&self) -> Option<&[u32]> {
        self.shuffled.then_some(&*self.order)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

/// What a [`Listener`] reports as its attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SensorClaim {
    /// The truth: the size of what each sensor adds to the action.
    Truth,
    /// Numbers that have nothing to do with the action.
    Nonsense,
    /// The truth, where the larger number counts less.
    Inverted,
}

/// Acts on the sum of its sensors. Its message is that sum, and the sum of the squares.
#[derive(Debug, Clone)]
pub struct Listener {
    says: SensorClaim,
    gain: f32,
}

impl Listener {
    /// An agent that reports this, and whose action is at most `gain`.
    pub fn agent(says: SensorClaim, gain: f32) -> PolicyAgent<Listener> {
        PolicyAgent::new(Listener { says, gain })
    }
}

/// Outputs of the last decision of a [`Listener`].
#[derive(Debug, Clone)]
pub struct ListenerMemory {
    /// One name for each number that it is shown.
    names: Vec<String>,
    action: Vec<f64>,
    message: Vec<f32>,
    weights: Vec<f32>,
}

impl Policy for Listener {
    type Memory = ListenerMemory;

    fn memory(&self) -> ListenerMemory {
        let names = (0..4).map(|i| format!("number {i}")).collect();
        ListenerMemory { names, action: vec![], message: vec![], weights: vec![] }
    }

    fn reset(&self, _: &mut ListenerMemory, _: Seed) {}

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut ListenerMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Some(numbers) = observation.numbers() else {
            return Err(PolicyError::BadConfig { why: "numbers, please".into() });
        };
        let sum: f64 = numbers.iter().map(|&x| f64::from(x)).sum();
        memory.action = vec![f64::from(self.gain) * (0.3 * sum).tanh()];
        memory.message = vec![sum as f32, numbers.iter().map(|x| x * x).sum()];
        let mut chance = Seed::root(numbers[0].to_bits().into()).rng();
        let told = numbers.iter().map(|x| match self.says {
            SensorClaim::Truth => x.abs(),
            SensorClaim::Nonsense => chance.next_f64() as f32,
            SensorClaim::Inverted => 1.0 / (x.abs() + 0.01),
        });
        let told: Vec<f32> = told.collect();
        // Two codes, with opposite signs.
        memory.weights = told.iter().copied().chain(told.iter().map(|w| -w)).collect();
        let attention = Attention::soft(Tokens::Named(&memory.names), 1, 2, &memory.weights)?;
        Ok(Decision::new(&memory.action).with_attention(attention))
    }

    fn inputs<'m>(&self, memory: &'m ListenerMemory) -> &'m [f32] {
        &memory.message
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![TensorShape { name: "gain".into(), shape: vec![1] }]
    }

    fn params(&self) -> Vec<f32> {
        vec![self.gain]
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.gain = flat[0];
        Ok(())
    }
}
