//! Environments.

use crate::hint::Task;
use crate::near::hint;
use crate::{
    Action, ActionSpace, Fact, GazePoint, GridView, ImageBuf, Observation, ObservationSpace, StateEdit,
    StepDerivatives,
};

/// A world: it can be reset, stepped, copied, observed and rendered.
///
/// The trait is object-safe: the program uses worlds as `Box<dyn Env>`, at the cost of one virtual call per
/// step. `reset` and `step` of native worlds do not allocate once their buffers have grown to the largest
/// episode.
///
/// A world needs five methods: `spec`, `reset`, `step`, `observation`, `boxed_clone`. All others are capabilities, which a world
/// need not have. A wrapper names the world that it holds in [`Env::inner`] and [`Env::inner_mut`]; it then has the capabilities of
/// that world, and overrides those that it changes.
///
/// **Copies are exact:** what [`Env::boxed_clone`] returns behaves bit for bit like the original.
pub trait Env: Send {
    /// The world that this one wraps; `None`, the default, for a world that wraps none.
    fn inner(&self) -> Option<&dyn Env> {
        None
    }

    /// The world that this one wraps, to change it: the same as [`Env::inner`].
    fn inner_mut(&mut self) -> Option<&mut dyn Env> {
        None
    }

    /// Observation space, action space, time limit and frame rate.
    fn spec(&self) -> &EnvSpec;

    /// Starts an episode. With a seed, the world's random stream is seeded anew; without one the stream
    /// continues, as in Gymnasium, so that one seed determines a whole sequence of episodes.
    ///
    /// If that fails, as in a world of another process, [`Env::reset_error`] says why, and the next step returns the same error.
    fn reset(&mut self, seed: Option<u64>);

    /// Why the last reset failed; `None`, the default, when it did not.
    fn reset_error(&self) -> Option<EnvError> {
        self.inner()?.reset_error()
    }

    /// Sets an option of the next reset, as Gymnasium's `reset(options=...)`: it holds for that reset alone.
    ///
    /// # Errors
    /// [`EnvError::UnknownOption`] when resets of this world have no such option, or not this value of it; the default,
    /// because most worlds have none.
    fn reset_option(&mut self, name: &str, value: &str) -> Result<(), EnvError> {
        if let Some(inner) = self.inner_mut() {
            return inner.reset_option(name, value);
        }
        Err(EnvError::UnknownOption {
            env: self.spec().id.clone(),
            what: "option of a reset",
            given: name.to_owned(),
            known: "none".to_owned(),
        })
    }

    /// Advances one step.
    ///
    /// # Errors
    /// When the action does not fit [`EnvSpec::action`], when it contains a number that is not finite, or
    /// when no episode is running (before the first reset, or after the end of an episode).
    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError>;

    /// Advances `times` steps, at least one, with the same action, or to the end of the episode: rewards are added up, the rest
    /// is that of the last step. The same as so many calls of [`Env::step`], which it is by default, in wrappers, too; a world in
    /// another process needs one message instead of many.
    ///
    /// # Errors
    /// Those of [`Env::step`].
    fn repeat(&mut self, action: Action<'_>, times: u64) -> Result<Step, EnvError> {
        let mut all = self.step(action)?;
        for _ in 1..times {
            if all.is_over() {
                break;
            }
            let step = self.step(action)?;
            all = Step { reward: all.reward + step.reward, ..step };
        }
        Ok(all)
    }

    /// The current observation: after `reset` the first one, after the last step the final one.
    fn observation(&self) -> Observation<'_>;

    /// What an episode counts in which the rewards added up to `total`: that sum, unless episodes of this world are of
    /// different tasks, whose sums cannot be compared. Asked at the end of the episode.
    fn score(&self, total: f64) -> f64 {
        self.inner().map_or(total, |inner| inner.score(total))
    }

    /// Which of the world's tasks the current episode is of, from 0; always 0 in a world of one task.
    fn task(&self) -> usize {
        let Some(inner) = self.inner() else { return 0 };
        inner.task()
    }

    /// The names of the world's tasks, by [number](Self::task); none in a world of one task.
    fn tasks(&self) -> Vec<&'static str> {
        let Some(inner) = self.inner() else { return Vec::new() };
        inner.tasks()
    }

    /// Renders the world for people into `view`, at the size of `view`.
    ///
    /// # Errors
    /// [`EnvError::NoView`] when this world cannot be rendered; this is the default.
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        match self.inner() {
            Some(inner) => inner.render(view),
            None => Err(EnvError::NoView {
                env: self.spec().id.clone(),
                why: "it has no picture for people".into(),
            }),
        }
    }

    /// The simulation state as named facts, in full precision, for replays and golden tests; empty by
    /// default.
    fn state(&self) -> Fact {
        let Some(inner) = self.inner() else { return Fact::Named(Vec::new()) };
        inner.state()
    }

    /// Writes the action of a scripted expert to `action` (`[actions]`). The expert sees the world's state
    /// and may keep memory, so call this in every step of an episode or in none.
    ///
    /// # Errors
    /// [`EnvError::NoExpert`] when this world has none, [`EnvError::ActionLength`] when `action` has the
    /// wrong length, [`EnvError::NeedsReset`] when no episode is running.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        match self.inner_mut() {
            Some(inner) => inner.expert(action),
            None => Err(EnvError::NoExpert { env: self.spec().id.clone() }),
        }
    }

    /// Writes to `costs` what the scripted expert says that actions cost, if it acted from then on: how much worse each is
    /// than the best, 0 or more, in units where 1 is severe. They are the costs of each choice, or of the lowest, the middle
    /// and the highest value of each number of the action, `[actions, 3]`.
    ///
    /// # Errors
    /// [`EnvError::NoCosts`] when this world does not say, which is the default, [`EnvError::NeedsReset`] when no episode is
    /// running.
    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        match self.inner_mut() {
            Some(inner) => inner.costs(costs),
            None => Err(EnvError::NoCosts { env: self.spec().id.clone() }),
        }
    }

    /// Writes to `points` where the scripted expert looks on the current observation's picture; no points when nothing
    /// matters. A world that shows things elsewhere, or at another time, has no gaze.
    ///
    /// # Errors
    /// [`EnvError::NoGaze`] when this world does not say, which is the default, [`EnvError::NeedsReset`] when no episode is
    /// running.
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        match self.inner_mut() {
            Some(inner) => inner.gaze(points),
            None => Err(EnvError::NoGaze { env: self.spec().id.clone() }),
        }
    }

    /// Computes the derivatives of the step that `action` (`[actions]`, in the world's units) would be, at the current
    /// state. A world whose equations are not smooth, or which shows something else than its state, has none.
    ///
    /// # Errors
    /// [`EnvError::NoDerivatives`] when this world has none, [`EnvError::ActionLength`] when `action` has the wrong
    /// length.
    fn derivatives(&self, action: &[f64], derivatives: &mut StepDerivatives) -> Result<(), EnvError> {
        match self.inner() {
            Some(inner) => inner.derivatives(action, derivatives),
            None => Err(EnvError::NoDerivatives { env: self.spec().id.clone() }),
        }
    }

    /// Which sensor of the unchanged world each sensor of [`Env::observation`] is, as after a shuffle, for
    /// people and reports that show the original order; agents do not read it.
    ///
    /// `[sensors]`, one index for every sensor in the order shown: a number of a vector, or a square patch of
    /// a picture, row-major (all frames of a stack have the same order; the side of a patch in pixels is
    /// `sqrt(width * height / sensors)`). `u32::MAX` stands for a sensor that the unchanged world does not
    /// have, such as added noise. A sensor that the world shows twice has its index twice; one that is not
    /// shown, none. `None`, the default, is the world's own order.
    ///
    /// It may change at every reset and in every step.
    fn sensor_order(&self) -> Option<&[u32]> {
        self.inner()?.sensor_order()
    }

    /// What the observation shows, cell by cell, and the objects of the world; for people and reports, agents do not
    /// read it. `None`, the default, when the observation is no grid.
    fn grid_view(&self) -> Option<GridView> {
        self.inner()?.grid_view()
    }

    /// The kinds of things that [`StateEdit::Erase`] takes out of what the world shows; none by default.
    fn kinds(&self) -> &'static [&'static str] {
        self.inner().map_or(&[], |inner| inner.kinds())
    }

    /// Replaces the content of `quantities` with named numbers that describe the situation of the agent in the world's own
    /// terms, such as its distance from an obstacle; the same names in the same order in every step. For explanations, agents
    /// do not read them. Nothing by default.
    fn situation(&self, quantities: &mut Vec<(&'static str, f64)>) {
        match self.inner() {
            Some(inner) => inner.situation(quantities),
            None => quantities.clear(),
        }
    }

    /// Changes the state of the running episode; the observation then shows the changed world, and the next steps
    /// continue from it by the world's own rules. Neither the step count nor the random stream changes. Edit a
    /// [copy](Env::boxed_clone) to compare what an agent does in both.
    ///
    /// # Errors
    /// [`EnvError::NoEdits`] when the state of this world cannot be edited, which is the default;
    /// [`EnvError::BadEdit`] when this edit is impossible, and the world is then unchanged;
    /// [`EnvError::NeedsReset`] when no episode is running.
    fn edit_state(&mut self, edit: &StateEdit<'_>) -> Result<(), EnvError> {
        match self.inner_mut() {
            Some(inner) => inner.edit_state(edit),
            None => Err(EnvError::NoEdits { env: self.spec().id.clone() }),
        }
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
    /// Returns whether the episode was terminated or truncated.
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
        /// Expected length.
        wanted: usize,
        /// Given length.
        given: usize,
    },
    /// A discrete action for a continuous space, the other way round, or a choice out of range.
    #[error("{env} does not take the action {given}; it takes {wanted}")]
    ActionKind {
        /// The world.
        env: String,
        /// A description of the accepted actions.
        wanted: String,
        /// The given action.
        given: String,
    },
    /// A number in the action is not finite.
    #[error("action[{index}] is {value}; {env} takes finite numbers only")]
    ActionNotFinite {
        /// The world.
        env: String,
        /// Index of the dimension.
        index: usize,
        /// The number.
        value: f64,
    },
    /// `step` was called before the first reset or after the end of the episode.
    #[error("the episode of {env} is over or never began; call reset first")]
    NeedsReset {
        /// The world.
        env: String,
    },
    /// No world of this name.
    #[error(
        "no environment is called {given:?};{} choose from: {known} ({} shows them)",
        hint(given, known),
        Task::ListWorlds
    )]
    UnknownEnv {
        /// The given name.
        given: String,
        /// The known names.
        known: String,
    },
    /// The world does not have this option, or not this value of it.
    #[error("{env} has no {what} {given:?};{} choose from: {known}", hint(given, known))]
    UnknownOption {
        /// The world.
        env: String,
        /// Kind of option: `picture`, `variant`, `option`.
        what: &'static str,
        /// The given option or value.
        given: String,
        /// The known ones.
        known: String,
    },
    /// Options that exist but cannot be combined.
    #[error("{env}: {why}")]
    BadOption {
        /// The world.
        env: String,
        /// The conflict, and how to resolve it.
        why: String,
    },
    /// The world has no scripted expert.
    #[error("{env} has no expert to learn from; train with evolution alone, or in a world that has one")]
    NoExpert {
        /// The world.
        env: String,
    },
    /// The world does not say what actions cost.
    #[error("{env} does not say what actions cost; leave out costs, or train in take-cover")]
    NoCosts {
        /// The world.
        env: String,
    },
    /// The world does not say where its expert looks.
    #[error(
        "{env} does not say where its expert looks; learn to attend by evolution, or in take-cover without shifts and wrappers"
    )]
    NoGaze {
        /// The world.
        env: String,
    },
    /// The world has no derivatives.
    #[error(
        "{env} has no derivatives to learn through; train with evolution, or in cartpole-swingup-harder without shifts"
    )]
    NoDerivatives {
        /// The world.
        env: String,
    },
    /// The state of the world cannot be edited.
    #[error("the state of {env} cannot be edited; choose one of MiniGrid's worlds, such as door-key-5x5")]
    NoEdits {
        /// The world.
        env: String,
    },
    /// An edit of the state that is impossible.
    #[error("{env}: cannot {edit}: {why}")]
    BadEdit {
        /// The world.
        env: String,
        /// The edit.
        edit: String,
        /// The reason, and what to do.
        why: String,
    },
    /// A world in another process failed, or could not be reached.
    #[error("{env}: {why}")]
    Outside {
        /// The world.
        env: String,
        /// The failure, and how to resolve it.
        why: String,
    },
    /// The world cannot be rendered for people.
    #[error("{env} cannot be rendered: {why}")]
    NoView {
        /// The world.
        env: String,
        /// The reason.
        why: String,
    },
}
