//! [`CartPoleSwingUp`] as an [`Env`].

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, ImageBuf, Observation, ObservationSpace, Step,
    StepDerivatives,
};

use super::physics::{CartPoleState, FORCE, FPS, Motion};
use super::{ID, expert, view};
use crate::random::Mt19937;

/// Steps after which an episode is truncated.
pub(super) const MAX_STEPS: usize = 1000;
/// The seed of a world that never got one.
pub(super) const DEFAULT_SEED: u64 = 0;

/// The options of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CartPoleConfig {
    /// Shows all five numbers twice.
    pub redundant: bool,
}

/// A cart on a track of 4.8 m swings its pole up; after AttentionNeuron's `CartPoleSwingUpHarder`.
///
/// * observation: position of the cart, its velocity, cosine and sine of the pole's angle (0 is upright,
///   positive is to the left), its angular velocity; metres, radians and seconds
/// * action: the force on the cart, −1 (10 N to the left) to 1 (to the right); numbers outside are clipped
/// * reward: `(cos θ + 1) / 2 * cos(π/2 * x / 2.4)` of the state after the step, also in the last step, where
///   it can be a little below 0
/// * end: terminated when the cart is more than 2.4 m from the middle, truncated after 1000 steps; both can
///   happen in the same step
///
/// A reset without a seed continues the random stream; a world that never got a seed uses 0.
#[derive(Debug, Clone)]
pub struct CartPoleSwingUp {
    config: CartPoleConfig,
    spec: EnvSpec,
    stream: Mt19937,
    motion: Motion,
    /// The force of the last step, in N.
    force: f64,
    /// `[x, x', cos θ, sin θ, θ']`, twice.
    numbers: [f32; 10],
    steps: usize,
    running: bool,
}

/// The description of a world with these options.
pub(super) fn spec(config: CartPoleConfig) -> EnvSpec {
    EnvSpec {
        id: ID.into(),
        observation: ObservationSpace::Vector { len: if config.redundant { 10 } else { 5 } },
        action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
        max_steps: Some(MAX_STEPS),
        fps: FPS,
    }
}

/// Position, velocity, cosine and sine of the angle, angular velocity.
#[inline(always)]
pub(super) fn shown(state: CartPoleState, (sin, cos): (f64, f64)) -> [f32; 5] {
    let CartPoleState { x, x_dot, theta_dot, .. } = state;
    [x as f32, x_dot as f32, cos as f32, sin as f32, theta_dot as f32]
}

impl CartPoleSwingUp {
    /// Builds a world; it must be reset before the first step.
    pub fn new(config: CartPoleConfig) -> Self {
        let mut world = CartPoleSwingUp {
            config,
            spec: spec(config),
            stream: Mt19937::gym_seeded(DEFAULT_SEED),
            motion: Motion::new(CartPoleState::HANGING),
            force: 0.0,
            numbers: [0.0; 10],
            steps: 0,
            running: false,
        };
        world.look();
        world
    }

    /// Position, angle and velocities, in full precision.
    pub const fn cart_pole(&self) -> CartPoleState {
        self.motion.state()
    }

    /// The error for an action that is no finite number.
    #[cold]
    fn refused(&self, action: Action<'_>) -> EnvError {
        self.spec.action.check(ID, action).expect_err("its space has one number, which is finite")
    }

    /// Writes the observation.
    #[inline]
    fn look(&mut self) {
        let five = shown(self.motion.state(), self.motion.sin_cos());
        self.numbers[..5].copy_from_slice(&five);
        if self.config.redundant {
            self.numbers[5..].copy_from_slice(&five);
        }
    }
}

impl Env for CartPoleSwingUp {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.stream = Mt19937::gym_seeded(seed);
        }
        self.motion = Motion::new(CartPoleState::start(&mut self.stream));
        (self.force, self.steps, self.running) = (0.0, 0, true);
        self.look();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        let action = match action {
            Action::Continuous(&[number]) if number.is_finite() => number,
            _ => return Err(self.refused(action)),
        };
        self.force = action.clamp(-1.0, 1.0) * FORCE;
        self.motion.advance(self.force);
        self.look();
        self.steps += 1;
        let state = self.motion.state();
        let terminated = state.is_off();
        let truncated = self.steps >= MAX_STEPS;
        self.running = !(terminated || truncated);
        Ok(Step { reward: state.reward(self.motion.sin_cos().1), terminated, truncated })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::Vector(if self.config.redundant { &self.numbers } else { &self.numbers[..5] })
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        view::draw(self.motion.state(), self.force, view);
        Ok(())
    }

    /// `x`, `x_dot`, `theta`, `theta_dot`, and the `force` of the last step.
    fn state(&self) -> Fact {
        let CartPoleState { x, x_dot, theta, theta_dot } = self.motion.state();
        Fact::Group(vec![
            ("x", Fact::Number(x)),
            ("x_dot", Fact::Number(x_dot)),
            ("theta", Fact::Number(theta)),
            ("theta_dot", Fact::Number(theta_dot)),
            ("force", Fact::Number(self.force)),
        ])
    }

    /// A scripted law that sees the exact state: it pumps energy into the pole, balances it near the top, and brakes
    /// before an end of the track.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        let &mut [ref mut action] = action else {
            return Err(EnvError::ActionLength { env: ID.into(), wanted: 1, given: action.len() });
        };
        *action = expert::force(self.cart_pole()) / FORCE;
        Ok(())
    }

    /// The state is position, velocity, angle, angular velocity. Where the action is clipped, its derivative is 0.
    fn derivatives(&self, action: &[f64], derivatives: &mut StepDerivatives) -> Result<(), EnvError> {
        let &[action] = action else {
            return Err(EnvError::ActionLength { env: ID.into(), wanted: 1, given: action.len() });
        };
        let StepDerivatives { state, reward, observation } = derivatives;
        let (sin, cos) = self.motion.sin_cos();
        let now = self.motion.state();
        let force = action.clamp(-1.0, 1.0) * FORCE;
        let mut next = now.slopes(force, sin, cos);
        if action.abs() <= 1.0 {
            for row in &mut next {
                row[4] *= FORCE;
            }
        } else {
            for row in &mut next {
                row[4] = 0.0;
            }
        }
        let after = now.moved(force, sin, cos);
        let [by_x, by_theta] = after.reward_slopes();
        state.clear();
        state.extend(next.iter().flatten());
        reward.clear();
        reward.extend((0..5).map(|i| by_x * next[0][i] + by_theta * next[2][i]));
        observation.clear();
        let five = [
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, -sin, 0.0],
            [0.0, 0.0, cos, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ];
        for _ in 0..if self.config.redundant { 2 } else { 1 } {
            observation.extend(five.iter().flatten());
        }
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(config: CartPoleConfig) -> CartPoleSwingUp {
        CartPoleSwingUp::new(config)
    }

    fn seen(world: &CartPoleSwingUp) -> Vec<f32> {
        let Observation::Vector(numbers) = world.observation() else { panic!("numbers") };
        numbers.to_vec()
    }

    #[test]
    fn resets_without_a_seed_continue_the_stream() {
        let mut env = world(CartPoleConfig::default());
        let mut starts = |seed| {
            env.reset(seed);
            env.cart_pole()
        };
        let one = [Some(1), None, None].map(&mut starts);
        assert!(one[0] != one[1] && one[1] != one[2], "{one:?}");
        assert_eq!([Some(1), None, None].map(&mut starts), one);
        assert_ne!(starts(Some(2)), one[0]);
    }

    #[test]
    fn derivatives_are_those_of_finite_differences() {
        const SMALL: f64 = 1e-6;
        let mut found = StepDerivatives::default();
        let list = |state: CartPoleState| [state.x, state.x_dot, state.theta, state.theta_dot];
        let mut env = world(CartPoleConfig { redundant: true });
        env.reset(Some(3));
        for step in 0..200 {
            let action = (f64::from(step) * 0.7).sin() * 0.9;
            env.derivatives(&[action], &mut found).expect("it has them");
            let outcome = |moved: [f64; 4], action: f64| {
                let [x, x_dot, theta, theta_dot] = moved;
                let mut copy = env.clone();
                copy.motion = Motion::new(CartPoleState { x, x_dot, theta, theta_dot });
                copy.look();
                let (sin, cos) = copy.motion.sin_cos();
                let seen = [x, x_dot, cos, sin, theta_dot];
                let reward = copy.step(Action::Continuous(&[action])).expect("it runs").reward;
                (list(copy.cart_pole()), reward, seen)
            };
            let now = list(env.cart_pole());
            for input in 0..5 {
                let shifted = |by: f64| {
                    let (mut state, mut action) = (now, action);
                    *state.get_mut(input).unwrap_or(&mut action) += by;
                    outcome(state, action)
                };
                let (low, high) = (shifted(-SMALL), shifted(SMALL));
                let near = |slope: f64, low: f64, high: f64, what: &str| {
                    let expect = (high - low) / (2.0 * SMALL);
                    assert!(
                        (slope - expect).abs() < 1e-6 * (1.0 + expect.abs()),
                        "{what}, input {input}, step {step}: {slope}, {expect}"
                    );
                };
                for row in 0..4 {
                    near(found.state[row * 5 + input], low.0[row], high.0[row], "state");
                }
                near(found.reward[input], low.1, high.1, "reward");
                for number in 0..if input < 4 { 10 } else { 0 } {
                    near(
                        found.observation[number * 4 + input],
                        low.2[number % 5],
                        high.2[number % 5],
                        "observation",
                    );
                }
            }
            if env.step(Action::Continuous(&[action])).expect("it runs").terminated {
                env.reset(None);
            }
        }
        env.derivatives(&[1.5], &mut found).expect("it has them");
        assert!((0..4).all(|row| found.state[row * 5 + 4] == 0.0), "a clipped action moves nothing");
        assert!(matches!(env.derivatives(&[], &mut found), Err(EnvError::ActionLength { given: 0, .. })));
    }

    #[test]
    fn redundant_shows_everything_twice_and_changes_nothing_else() {
        let mut one = world(CartPoleConfig::default());
        let mut two = world(CartPoleConfig { redundant: true });
        for world in [&mut one, &mut two] {
            world.reset(Some(4));
        }
        for step in 0..50 {
            assert_eq!([seen(&one), seen(&one)].concat(), seen(&two));
            assert_eq!(two.observation().space(), two.spec().observation);
            let action = [f64::from(step % 7) / 3.0 - 1.0];
            let steps = [&mut one, &mut two].map(|world| world.step(Action::Continuous(&action)));
            assert_eq!(steps[0], steps[1]);
        }
    }

    #[test]
    fn ends_are_of_two_kinds() {
        // Pushed to the right all the time, the cart leaves the track.
        let mut env = world(CartPoleConfig::default());
        env.reset(Some(1));
        let last = loop {
            let step = env.step(Action::Continuous(&[2.0])).expect("clipped");
            if step.is_over() {
                break step;
            }
        };
        assert!(last.terminated && !last.truncated && last.reward <= 0.0, "{last:?}");
        assert!(env.cart_pole().x > super::super::HALF_TRACK);
        let again = env.step(Action::Continuous(&[0.0]));
        assert_eq!(again, Err(EnvError::NeedsReset { env: ID.into() }));
        // Held in the middle, it is stopped after 1000 steps.
        env.reset(Some(1));
        env.motion = Motion::new(CartPoleState::HANGING);
        env.look();
        let steps = (1..=1000).map(|_| env.step(Action::Continuous(&[0.0])).expect("a good action"));
        let over: Vec<Step> = steps.filter(Step::is_over).collect();
        assert_eq!(over.len(), 1);
        assert!(over[0].truncated && !over[0].terminated);
    }

    #[test]
    fn bad_actions_change_nothing() {
        let mut env = world(CartPoleConfig::default());
        env.reset(Some(2));
        let before = env.cart_pole();
        for (action, want) in [
            (Action::Continuous(&[f64::NAN]), "action[0] is NaN"),
            (Action::Continuous(&[f64::INFINITY]), "action[0] is inf"),
            (Action::Continuous(&[]), "an action of 0 numbers"),
            (Action::Continuous(&[0.0, 0.0]), "an action of 2 numbers"),
            (Action::Discrete(0), "does not take the action"),
        ] {
            let said = env.step(action).expect_err(want).to_string();
            assert!(said.contains(want) && said.contains(ID), "{said}");
        }
        assert_eq!(env.cart_pole(), before);
        assert!(world(CartPoleConfig::default()).step(Action::Continuous(&[0.0])).is_err(), "never reset");
    }
}
