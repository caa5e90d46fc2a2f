//! Worlds.

use crate::near::hint;
use crate::{Action, ActionSpace, Fact, ImageBuf, Observation, ObservationSpace};

/// A world that can be reset, stepped, copied and looked at.
///
/// Object-safe on purpose: worlds meet agents behind `Box<dyn Env>`, at one virtual call a step. Nothing in `reset` or
/// `step` allocates once the world has seen its largest track.
///
/// **A copy is part of the contract:** [`Env::boxed_clone`] continues bit for bit like the original.
pub trait Env: Send {
    /// What the world shows and takes.
    fn spec(&self) -> &EnvSpec;

    /// Starts an episode. With a seed, the world's random stream starts afresh; without one it goes on, as in
    /// Gymnasium, so that one seed names a whole sequence of episodes.
    ///
    /// A world in another process may fail to begin; the next step then says so.
    fn reset(&mut self, seed: Option<u64>);

    /// Advances one step.
    ///
    /// # Errors
    /// When the action does not fit [`EnvSpec::action`], when a number in it is not finite, or when the episode is
    /// over (or never began) and the world must be reset first.
    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError>;

    /// What the agent sees now: after `reset` the first observation, after the last step the final one.
    fn observation(&self) -> Observation<'_>;

    /// Draws the world as people see it, filling `view` at whatever size it has.
    ///
    /// # Errors
    /// When this world has no picture for people.
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError>;

    /// The simulation state as named facts, in full precision, for replays and goldens.
    fn state(&self) -> Fact;

    /// Writes to `action` (`[actions]`) what a scripted expert that sees the world's state would do now. It may
    /// remember the episode, so ask in every step or in none.
    ///
    /// # Errors
    /// [`EnvError::NoExpert`] when this world has none, [`EnvError::ActionLength`] when an action of another length is
    /// asked for, [`EnvError::NeedsReset`] when no episode is under way.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        let _ = action;
        Err(EnvError::NoExpert { env: self.spec().id.clone() })
    }

    /// A copy that continues bit for bit like the original.
    fn boxed_clone(&self) -> Box<dyn Env>;
}

/// What one step brought.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step {
    /// Reward of this step.
    pub reward: f64,
    /// The task itself ended; the value beyond is zero.
    pub terminated: bool,
    /// We stopped watching; a learner still bootstraps from the final observation.
    pub truncated: bool,
}

impl Step {
    /// Whether the episode is over, for whichever reason.
    pub const fn is_over(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// The shape of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvSpec {
    /// Registered name, as in `--env`.
    pub id: String,
    /// What it shows.
    pub observation: ObservationSpace,
    /// What it takes.
    pub action: ActionSpace,
    /// Steps after which an episode is truncated.
    pub max_steps: Option<usize>,
    /// Steps per second of simulated time, for films.
    pub fps: f64,
}

/// What can go wrong in a world.
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
    /// A discrete action where a continuous one is due, the other way round, or a choice out of range.
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
    /// Stepped before the first reset or after the end.
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
