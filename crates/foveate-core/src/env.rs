//! Environments.

use crate::near::hint;
use crate::{Action, ActionSpace, Fact, ImageBuf, Observation, ObservationSpace};

/// A world: it can be reset, stepped, copied, observed and rendered.
///
/// The trait is object-safe: the program uses worlds as `Box<dyn Env>`, at the cost of one virtual call per step. `reset`
/// and `step` of native worlds do not allocate once their buffers have grown to the largest episode.
///
/// **Copies are exact:** what [`Env::boxed_clone`] returns behaves bit for bit like the original.
pub trait Env: Send {
    /// Observation space, action space, time limit and frame rate.
    fn spec(&self) -> &EnvSpec;

    /// Starts an episode. With a seed, the world's random stream is seeded anew; without one the stream continues, as in
    /// Gymnasium, so that one seed determines a whole sequence of episodes.
    ///
    /// If a world in another process fails to start, the next step returns the error.
    fn reset(&mut self, seed: Option<u64>);

    /// Advances one step.
    ///
    /// # Errors
    /// When the action does not fit [`EnvSpec::action`], when a number in it is not finite, or when the episode is
    /// over (or never began) and the world must be reset first.
    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError>;

    /// The current observation: after `reset` the first one, after the last step the final one.
    fn observation(&self) -> Observation<'_>;

    /// Renders the world for people into `view`, at the size of `view`.
    ///
    /// # Errors
    /// [`EnvError::NoView`] when this world cannot be rendered, as by default.
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let _ = view;
        Err(EnvError::NoView { env: self.spec().id.clone(), why: "it has no picture for people".into() })
    }

    /// The simulation state as named facts, in full precision, for replays and goldens; by default none.
    fn state(&self) -> Fact {
        Fact::Named(Vec::new())
    }

    /// Writes the action of a scripted expert to `action` (`[actions]`). The expert sees the world's state and may keep
    /// memory, so call this in every step of an episode or in none.
    ///
    /// # Errors
    /// [`EnvError::NoExpert`] when this world has none, [`EnvError::ActionLength`] when an action of another length is
    /// asked for, [`EnvError::NeedsReset`] when no episode is under way.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        let _ = action;
        Err(EnvError::NoExpert { env: self.spec().id.clone() })
    }

    /// A copy that behaves bit for bit like the original.
    fn boxed_clone(&self) -> Box<dyn Env>;
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step {
    /// Reward of this step.
    pub reward: f64,
    /// The task ended; the value of what follows is zero.
    pub terminated: bool,
    /// The episode was stopped, as by a time limit; a learner still bootstraps from the final observation.
    pub truncated: bool,
}

impl Step {
    /// Whether the episode was terminated or truncated.
    pub const fn is_over(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// The description of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvSpec {
    /// Registered name, as in `--env`.
    pub id: String,
    /// Observation space.
    pub observation: ObservationSpace,
    /// Action space.
    pub action: ActionSpace,
    /// Steps after which an episode is truncated.
    pub max_steps: Option<usize>,
    /// Steps per second of simulated time, for videos.
    pub fps: f64,
}

/// Errors of a world.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// The action has the wrong number of dimensions.
    #[error("an action of {given} numbers was given, {env} takes {wanted}")]
    ActionLength {
        /// The world.
        env: String,
        /// Numbers it takes.
        wanted: usize,
        /// Numbers it was given.
        given: usize,
    },
    /// A discrete action for a continuous space, the other way round, or a choice out of range.
    #[error("{env} does not take the action {given}; it takes {wanted}")]
    ActionKind {
        /// The world.
        env: String,
        /// What it takes, in words.
        wanted: String,
        /// What it was given.
        given: String,
    },
    /// A number in the action is not finite.
    #[error("action[{index}] is {value}; {env} takes finite numbers only")]
    ActionNotFinite {
        /// The world.
        env: String,
        /// Which dimension.
        index: usize,
        /// The number.
        value: f64,
    },
    /// A step before the first reset or after the end of the episode.
    #[error("the episode of {env} is over or never began; call reset first")]
    NeedsReset {
        /// The world.
        env: String,
    },
    /// No world of this name.
    #[error("no environment is called {given:?};{} choose from: {known}", hint(given, known))]
    UnknownEnv {
        /// What was asked for.
        given: String,
        /// What there is.
        known: String,
    },
    /// An option that the world does not have, or a value that it does not take.
    #[error("{env} has no {what} {given:?};{} choose from: {known}", hint(given, known))]
    UnknownOption {
        /// The world.
        env: String,
        /// Kind of option: `picture`, `variant`, `option`.
        what: &'static str,
        /// What was asked for.
        given: String,
        /// What there is.
        known: String,
    },
    /// Options that exist but do not go together.
    #[error("{env}: {why}")]
    BadOption {
        /// The world.
        env: String,
        /// What is wrong and what to do instead.
        why: String,
    },
    /// The world has no expert to learn from.
    #[error("{env} has no expert to learn from; train with evolution alone, or in a world that has one")]
    NoExpert {
        /// The world.
        env: String,
    },
    /// A world in another process failed, or could not be reached.
    #[error("{env}: {why}")]
    Outside {
        /// The world.
        env: String,
        /// What happened and what to do.
        why: String,
    },
    /// The world has no picture for people.
    #[error("{env} cannot be rendered: {why}")]
    NoView {
        /// The world.
        env: String,
        /// Why.
        why: String,
    },
}
