//! Learners: they request episodes and learn from the results.

use std::fmt;
use std::sync::Arc;

use crate::episode::EpisodeRules;
use crate::{EvolveError, Experience, Progress, RolloutJob, StateDict, StateError, Work};

/// An algorithm that learns from episodes: an evolution strategy behind an adapter, imitation, value and
/// policy gradients.
///
/// A learner is a plain state machine. It returns the next [`Work`], an [`Executor`](crate::Executor) runs
/// it, and the learner receives the [`Experience`]. All randomness comes from seed paths, so a learner
/// restored from [`Learner::state`] resumes bit for bit. It handles vectors, returns and recordings, never
/// worlds, agents or files.
pub trait Learner: Send {
    /// The next training work, on these episodes; the same until [`Learner::receive`] gets its experience.
    fn work(&mut self, episodes: &Episodes<'_>) -> Work;

    /// Learns from the experience of the last work.
    ///
    /// # Errors
    /// When it does not belong to the work, contains numbers that are not finite, or learning diverges; the
    /// state is then unchanged.
    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError>;

    /// Gives it the flag to look at between two updates; set, [`Learner::receive`] ends with [`LearnError::Stopped`].
    /// Learners whose updates are short need not look.
    fn stop_when(&mut self, _asked: &StopRequest) {}

    /// `[n_params]`: the weights to validate and to return.
    fn weights(&self) -> &[f64];

    /// `[n_params]`: the current point of learning: the centre of a search, or the weights at which gradients
    /// are computed. May differ from [`Learner::weights`], which may be an average.
    fn centre(&self) -> &[f64] {
        self.weights()
    }

    /// Number of experiences received.
    fn generation(&self) -> u64;

    /// Numbers about the last experience for the log, by name: a loss, the norm of its gradient, ….
    fn measures(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Everything needed to resume bit for bit; see [`Learner::restore`].
    fn state(&self) -> StateDict;

    /// Restores the state from [`Learner::state`].
    ///
    /// # Errors
    /// When a tensor is missing, of the wrong size, not finite, or was made with other settings; the learner
    /// is then unchanged.
    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError>;

    /// Like [`Learner::restore`], for a state that was made with other settings; continues with this
    /// learner's settings.
    ///
    /// The tensor `settings` identifies a state's settings; a learner that wraps another one forwards this
    /// call.
    ///
    /// # Errors
    /// Those of [`Learner::restore`]; also when the state itself does not fit the settings.
    fn restore_changed(&mut self, state: &StateDict) -> Result<(), LearnError> {
        self.restore(&crate::tensor::with_settings_of(state, self.state()))
    }
}

/// A flag that is set when the user asks to stop. Clones look at the same flag; the default is never set.
#[derive(Clone, Default)]
pub struct StopRequest(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl StopRequest {
    /// The flag that `asked` reads.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        StopRequest(Some(Arc::new(asked)))
    }

    /// Checks that nobody has asked to stop.
    ///
    /// # Errors
    /// [`LearnError::Stopped`] when somebody has.
    pub fn check(&self) -> Result<(), LearnError> {
        if self.0.as_ref().is_some_and(|asked| asked()) { Err(LearnError::Stopped) } else { Ok(()) }
    }
}

impl fmt::Debug for StopRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StopRequest").field(&self.check().is_err()).finish()
    }
}

/// The episodes of a learner's next work; the training plan decides them.
#[derive(Clone, Copy)]
pub struct Episodes<'a> {
    /// Number of episodes per row of weights.
    pub per_row: usize,
    /// The rules that end an episode before the world does.
    pub rules: EpisodeRules,
    /// The world's seed, from the row and the index of the episode.
    pub seeds: &'a dyn Fn(usize, usize) -> u64,
}

impl Episodes<'_> {
    /// The jobs of `rows` rows of weights, in row order.
    ///
    /// ```
    /// use foveate_core::{Episodes, RolloutJob, episode::EpisodeRules};
    /// let seeds = |row, episode| 100 + 10 * row as u64 + episode as u64;
    /// let episodes = Episodes { per_row: 2, rules: EpisodeRules::WHOLE, seeds: &seeds };
    /// assert_eq!(episodes.jobs(3)[5], RolloutJob { genome: 2, episode: 1, env_seed: 121 });
    /// ```
    pub fn jobs(&self, rows: usize) -> Vec<RolloutJob> {
        let job = |genome, episode| RolloutJob { genome, episode, env_seed: (self.seeds)(genome, episode) };
        (0..rows).flat_map(|row| (0..self.per_row).map(move |episode| job(row, episode))).collect()
    }
}

/// Errors of a learner.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// An evolution strategy returned an error.
    #[error(transparent)]
    Evolve(#[from] EvolveError),
    /// The experience does not belong to the work.
    #[error("the experience does not fit the work: {why}")]
    Experience {
        /// What does not fit.
        why: String,
    },
    /// Experience was received before work was requested.
    #[error("experience was given before work was asked for")]
    NothingAsked,
    /// A return is NaN or infinite.
    #[error("the return of job {job} in generation {generation} is {value}")]
    ReturnNotFinite {
        /// Which job of the work.
        job: usize,
        /// The generation.
        generation: u64,
        /// The return.
        value: f64,
    },
    /// The user asked to stop, and the updates of this round were given up.
    #[error("learning was stopped before the updates of this generation were complete")]
    Stopped,
    /// A gradient could not be computed.
    #[error("learning from the recordings of generation {generation} failed: {why}")]
    Gradient {
        /// The generation.
        generation: u64,
        /// What went wrong.
        why: String,
    },
    /// The numbers of the weights left their range.
    #[error("learning diverged in generation {generation}: {what}; choose a smaller learning_rate")]
    Diverged {
        /// The generation.
        generation: u64,
        /// The quantity that is out of range.
        what: String,
    },
    /// An invalid setting.
    #[error("{why}")]
    BadConfig {
        /// The problem, and how to resolve it.
        why: String,
    },
    /// A state that does not fit.
    #[error("the saved state does not fit this learner: {why}")]
    BadState {
        /// What does not fit.
        why: String,
    },
}

impl From<StateError> for LearnError {
    fn from(error: StateError) -> Self {
        LearnError::BadState { why: error.to_string() }
    }
}
