//! One world of a batch, with Gymnasium's rules for what follows the end of an episode.

use foveate_core::{Action, Env, EnvError, ImageBuf, Observation, Step};

/// What a world of a batch does when its episode is over; the names and the rules are Gymnasium's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Autoreset {
    /// The step after the last one of an episode resets the world: its action is ignored and its reward is 0.
    #[default]
    NextStep,
    /// The last step of an episode also resets the world; the final observation is kept beside the first one of the next
    /// episode.
    SameStep,
    /// The caller resets the world.
    Disabled,
}

/// The outcome of [`Lane::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LaneStep {
    /// Reward and flags; all zero when this was a reset.
    pub step: Step,
    /// True if the world was reset instead of stepped.
    pub is_reset: bool,
}

/// A world with a limit of steps and a rule for the end of an episode. Allocates nothing after the first final observation.
pub struct Lane {
    env: Box<dyn Env>,
    autoreset: Autoreset,
    /// Steps after which an episode is truncated, if the world does not end it before.
    max_steps: Option<usize>,
    steps: usize,
    over: bool,
    last: LastObservation,
}

/// The observation of the last step of an episode, kept when the same step resets the world.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LastObservation {
    /// The bytes of a picture or a grid, in the order of the observation; empty for numbers.
    pub bytes: Vec<u8>,
    /// The numbers of a vector.
    pub numbers: Vec<f32>,
}

/// A copy with the same episode, which goes on as the original does.
impl Clone for Lane {
    fn clone(&self) -> Self {
        let Lane { env, autoreset, max_steps, steps, over, last } = self;
        let (autoreset, max_steps, steps, over) = (*autoreset, *max_steps, *steps, *over);
        Lane { env: env.boxed_clone(), autoreset, max_steps, steps, over, last: last.clone() }
    }
}

impl LastObservation {
    fn keep(&mut self, observation: Observation<'_>) {
        self.bytes.clear();
        self.numbers.clear();
        match observation {
            Observation::Image(pixels) => self.bytes.extend_from_slice(pixels.bytes()),
            Observation::Grid(grid) => self.bytes.extend_from_slice(grid.codes()),
            Observation::Vector(numbers) => self.numbers.extend_from_slice(numbers),
            Observation::Dict(_) => {}
        }
    }
}

impl Lane {
    /// A world that has to be reset before the first step.
    pub fn new(env: Box<dyn Env>, autoreset: Autoreset, max_steps: Option<usize>) -> Self {
        Lane { env, autoreset, max_steps, steps: 0, over: false, last: LastObservation::default() }
    }

    /// The world.
    pub fn env(&self) -> &dyn Env {
        &*self.env
    }

    /// The current observation.
    pub fn observation(&self) -> Observation<'_> {
        self.env.observation()
    }

    /// The final observation of the episode that ended in the last step; only with [`Autoreset::SameStep`].
    pub const fn last_observation(&self) -> &LastObservation {
        &self.last
    }

    /// Renders the world for people.
    ///
    /// # Errors
    /// Those of [`Env::render`].
    pub fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        self.env.render(view)
    }

    /// Sets an option of the next reset, see [`Env::reset_option`].
    ///
    /// # Errors
    /// Those of [`Env::reset_option`].
    pub fn reset_option(&mut self, name: &str, value: &str) -> Result<(), EnvError> {
        self.env.reset_option(name, value)
    }

    /// Starts an episode, see [`Env::reset`].
    ///
    /// # Errors
    /// [`Env::reset_error`].
    pub fn reset(&mut self, seed: Option<u64>) -> Result<(), EnvError> {
        self.env.reset(seed);
        (self.steps, self.over) = (0, false);
        self.env.reset_error().map_or(Ok(()), Err)
    }

    /// Steps the world; whoever calls this resets it. As in Gymnasium, a world whose episode the limit of steps has
    /// truncated goes on when it is stepped.
    ///
    /// # Errors
    /// Those of [`Env::step`].
    pub fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let mut step = self.env.step(action)?;
        self.steps += 1;
        step.truncated |= self.max_steps.is_some_and(|most| self.steps >= most);
        self.over = step.is_over();
        Ok(step)
    }

    /// Steps the world, or resets it, as its [`Autoreset`] says.
    ///
    /// # Errors
    /// Those of [`Env::step`]; [`EnvError::NeedsReset`] when the episode is over and the caller has to reset the world.
    pub fn advance(&mut self, action: Action<'_>) -> Result<LaneStep, EnvError> {
        match self.autoreset {
            Autoreset::NextStep if self.over => {
                self.reset(None)?;
                return Ok(LaneStep { step: Step::default(), is_reset: true });
            }
            Autoreset::Disabled if self.over => {
                return Err(EnvError::NeedsReset { env: self.env.spec().id.clone() });
            }
            _ => {}
        }
        let step = self.step(action)?;
        if self.autoreset == Autoreset::SameStep && step.is_over() {
            self.last.keep(self.env.observation());
            // The step counts; if the reset failed, the next step returns the error.
            let _ = self.reset(None);
        }
        Ok(LaneStep { step, is_reset: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cartpole_swingup;
    use crate::registry::EnvRequest;

    fn lane(autoreset: Autoreset, max_steps: Option<usize>) -> Lane {
        let id = cartpole_swingup::DESCRIPTOR.name.to_owned();
        let env = cartpole_swingup::DESCRIPTOR.build(&EnvRequest { id, ..EnvRequest::default() });
        let mut lane = Lane::new(env.expect("no options"), autoreset, max_steps);
        lane.reset(Some(3)).expect("it begins");
        lane
    }

    fn numbers(lane: &Lane) -> Vec<f32> {
        lane.observation().numbers().expect("a world of numbers").to_vec()
    }

    const STILL: Action<'static> = Action::Continuous(&[0.0]);

    /// The first observations of episodes 0 and 1, and the last one of episode 0, of two steps.
    fn expected() -> [Vec<f32>; 3] {
        let mut plain = lane(Autoreset::Disabled, None);
        let first = numbers(&plain);
        for _ in 0..2 {
            plain.step(STILL).expect("it runs");
        }
        let last = numbers(&plain);
        plain.reset(None).expect("it begins");
        [first, last, numbers(&plain)]
    }

    #[test]
    fn each_rule_resets_when_it_says() {
        let [first, last, second] = expected();
        for (rule, after) in
            [(Autoreset::NextStep, &last), (Autoreset::SameStep, &second), (Autoreset::Disabled, &last)]
        {
            let mut lane = lane(rule, Some(2));
            assert_eq!(numbers(&lane), first, "{rule:?}");
            assert!(!lane.advance(STILL).expect("it runs").step.is_over(), "{rule:?}");
            let end = lane.advance(STILL).expect("it runs");
            assert!(
                (end.step.truncated, end.step.terminated, end.is_reset) == (true, false, false),
                "{rule:?}"
            );
            assert_eq!(&numbers(&lane), after, "{rule:?}");
            let then = lane.advance(STILL);
            match rule {
                Autoreset::NextStep => {
                    assert_eq!(then, Ok(LaneStep { is_reset: true, ..LaneStep::default() }));
                    assert_eq!(numbers(&lane), second);
                }
                Autoreset::SameStep => {
                    assert!(!then.expect("a new episode").is_reset);
                    assert_eq!(lane.last_observation().numbers, last);
                }
                Autoreset::Disabled => {
                    assert!(matches!(then, Err(EnvError::NeedsReset { .. })), "{then:?}");
                    lane.reset(None).expect("it begins");
                    assert_eq!(numbers(&lane), second);
                }
            }
        }
    }
}
