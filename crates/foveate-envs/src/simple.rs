//! Worlds of one's own in a few lines.

use foveate_core::{
    Action, ActionBuf, ActionSpace, Env, EnvError, EnvSpec, ImageBuf, Observation, Rng, Seed, Step,
};

use crate::registry::{EnvRequest, WorldDescriptor, WorldError};

/// The rules of a world: where an episode begins, what a step does, and what is seen.
///
/// [`Simple`] makes a world of them and sees to what all worlds have in common: seeds, the limit of steps, checks of actions.
/// A world that needs more, such as an expert, implements [`Env`].
///
/// ```
/// use foveate_core::{Action, ActionSpace, Env, EnvSpec, Observation, ObservationSpace, Rng};
/// use foveate_envs::simple::{Simple, SimpleEnv};
///
/// /// A coin: one point for calling the side that is shown.
/// #[derive(Clone, Default)]
/// struct Coin([f32; 1]);
///
/// impl SimpleEnv for Coin {
///     fn spec() -> EnvSpec {
///         let (observation, action) = (ObservationSpace::Vector { len: 1 }, ActionSpace::Discrete { n: 2 });
///         EnvSpec { id: "coin".into(), observation, action, max_steps: Some(10), fps: 10.0 }
///     }
///     fn reset(&mut self, rng: &mut Rng) {
///         self.0[0] = rng.below(2) as f32;
///     }
///     fn step(&mut self, action: Action<'_>, rng: &mut Rng) -> (f64, bool) {
///         let won = action == Action::Discrete(self.0[0] as usize);
///         self.reset(rng);
///         (f64::from(u8::from(won)), false)
///     }
///     fn observation(&self) -> Observation<'_> {
///         Observation::Vector(&self.0)
///     }
/// }
///
/// let mut coin = Simple::<Coin>::new("coin");
/// coin.reset(Some(1));
/// assert!(!coin.step(Action::Discrete(0))?.is_over());
/// assert!(coin.step(Action::Discrete(7)).is_err(), "there are two choices");
/// # Ok::<(), foveate_core::EnvError>(())
/// ```
pub trait SimpleEnv: Clone + Default + Send + 'static {
    /// Spaces, limit of steps and frame rate; its `id` becomes the world's name.
    fn spec() -> EnvSpec;

    /// Starts an episode; random numbers come from `rng` alone.
    fn reset(&mut self, rng: &mut Rng);

    /// Advances one step and returns its reward, and whether the task ended the episode. The action fits [`SimpleEnv::spec`];
    /// its numbers are clipped to their bounds.
    fn step(&mut self, action: Action<'_>, rng: &mut Rng) -> (f64, bool);

    /// The current observation.
    fn observation(&self) -> Observation<'_>;

    /// Renders the world for people; returns whether it can, which the default cannot.
    fn render(&self, view: &mut ImageBuf) -> bool {
        let _ = view;
        false
    }
}

/// The world of a [`SimpleEnv`].
#[derive(Debug, Clone)]
pub struct Simple<E> {
    rules: E,
    spec: EnvSpec,
    rng: Rng,
    /// The last action, clipped.
    action: ActionBuf,
    /// Steps of the episode; `None` when none is running.
    steps: Option<usize>,
}

impl<E: SimpleEnv> Simple<E> {
    /// The world, called `name`.
    pub fn new(name: &str) -> Self {
        let spec = EnvSpec { id: name.to_owned(), ..E::spec() };
        Simple {
            rules: E::default(),
            action: spec.action.zero(),
            spec,
            rng: Seed::root(0).rng(),
            steps: None,
        }
    }
}

impl<E: SimpleEnv> Env for Simple<E> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.rng = Seed::root(seed).rng();
        }
        self.rules.reset(&mut self.rng);
        self.steps = Some(0);
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.spec.action.check(&self.spec.id, action)?;
        let needs_reset = || EnvError::NeedsReset { env: self.spec.id.clone() };
        let steps = self.steps.ok_or_else(needs_reset)? + 1;
        self.action.set(action);
        if let (ActionBuf::Continuous(numbers), ActionSpace::Box { low, high }) =
            (&mut self.action, &self.spec.action)
        {
            for (number, (low, high)) in numbers.iter_mut().zip(low.iter().zip(high)) {
                *number = number.max(*low).min(*high);
            }
        }
        let (reward, terminated) = self.rules.step(self.action.as_action(), &mut self.rng);
        let truncated = !terminated && self.spec.max_steps.is_some_and(|most| steps >= most);
        self.steps = Some(steps).filter(|_| !terminated && !truncated);
        Ok(Step { reward, terminated, truncated })
    }

    fn observation(&self) -> Observation<'_> {
        self.rules.observation()
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let none =
            || EnvError::NoView { env: self.spec.id.clone(), why: "it has no picture for people".into() };
        self.rules.render(view).then_some(()).ok_or_else(none)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

impl WorldDescriptor {
    /// The descriptor of the world with these rules.
    pub const fn simple<E: SimpleEnv>(name: &'static str, summary: &'static str) -> Self {
        WorldDescriptor::new(name, summary, make::<E>)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as `WorldDescriptor::make` wants it")]
fn make<E: SimpleEnv>(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    Ok(Box::new(Simple::<E>::new(&request.id)))
}

#[cfg(test)]
mod tests {
    use foveate_core::ObservationSpace;

    use super::*;

    /// Walks along a line; ends at 0.5.
    #[derive(Clone, Default)]
    struct Walk([f32; 1]);

    impl SimpleEnv for Walk {
        fn spec() -> EnvSpec {
            let action = ActionSpace::Box { low: vec![-0.1], high: vec![0.1] };
            let observation = ObservationSpace::Vector { len: 1 };
            EnvSpec { id: "walk".into(), observation, action, max_steps: Some(7), fps: 10.0 }
        }

        fn reset(&mut self, rng: &mut Rng) {
            self.0[0] = rng.uniform(0.0, 0.01) as f32;
        }

        fn step(&mut self, action: Action<'_>, _: &mut Rng) -> (f64, bool) {
            let Action::Continuous(&[by]) = action else { unreachable!("checked") };
            self.0[0] += by as f32;
            (by, self.0[0] >= 0.5)
        }

        fn observation(&self) -> Observation<'_> {
            Observation::Vector(&self.0)
        }
    }

    fn play(world: &mut dyn Env, push: f64) -> Vec<Step> {
        let mut steps = vec![];
        while steps.last().is_none_or(|step: &Step| !step.is_over()) {
            steps.push(world.step(Action::Continuous(&[push])).expect("an episode is running"));
        }
        steps
    }

    #[test]
    fn the_end_of_the_task_and_the_limit_are_two_things() {
        let mut world = Simple::<Walk>::new("walk");
        assert!(matches!(world.step(Action::Continuous(&[0.0])), Err(EnvError::NeedsReset { .. })));
        world.reset(Some(1));
        let fast = play(&mut world, 9.0);
        assert_eq!((fast.len(), fast[4].terminated, fast[4].truncated), (5, true, false));
        assert!((fast[0].reward - 0.1).abs() < 1e-12, "clipped: {}", fast[0].reward);
        assert!(matches!(world.step(Action::Continuous(&[0.0])), Err(EnvError::NeedsReset { .. })));
        world.reset(None);
        let slow = play(&mut world, 0.01);
        assert_eq!((slow.len(), slow[6].terminated, slow[6].truncated), (7, false, true));
        world.reset(None);
        assert!(world.step(Action::Continuous(&[f64::NAN])).is_err());
        assert!(world.step(Action::Discrete(0)).is_err());
    }

    #[test]
    fn a_seed_determines_a_sequence_of_episodes_and_copies_go_on_alike() {
        let first = |world: &mut dyn Env, seed| {
            world.reset(seed);
            world.observation().numbers().expect("a number")[0].to_bits()
        };
        let (mut one, mut other) = (Simple::<Walk>::new("walk"), Simple::<Walk>::new("walk"));
        let starts = [first(&mut one, Some(3)), first(&mut one, None)];
        assert_eq!(starts, [first(&mut other, Some(3)), first(&mut other, None)]);
        assert_ne!(starts[0], starts[1]);
        let mut copy = one.boxed_clone();
        assert_eq!(first(&mut *copy, None), first(&mut one, None));
    }
}
