//! Errors of training.

use foveate_core::{LearnError, OrderError, StateError};

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An invalid recipe.
    #[error("{why}{}", stage.as_ref().map(|stage| format!(" (in stage {stage:?} of the recipe)")).unwrap_or_default())]
    Recipe {
        /// The name of the stage; `None` if the error concerns the whole recipe.
        stage: Option<String>,
        /// Which setting is wrong, its value, and what to write instead.
        why: String,
    },
    /// A stage needs an agent that learns by gradients.
    #[error(
        "stage {stage:?} is {learner}, and this agent has no part that learns by gradients; choose a strategy of \
         evolution"
    )]
    NoStudent {
        /// The name of the stage.
        stage: String,
        /// The name of the learner.
        learner: &'static str,
    },
    /// Experience was received although no work is due.
    #[error("experience was given, but no work is due: the training is over")]
    NothingDue,
    /// Experience does not fit the work.
    #[error(transparent)]
    Experience(#[from] OrderError),
    /// A return is NaN or infinite.
    #[error("the return of genome {genome}, episode {episode}, in generation {generation} is {value}")]
    ReturnNotFinite {
        /// The genome.
        genome: usize,
        /// Which of its episodes.
        episode: usize,
        /// Generations so far.
        generation: u64,
        /// The return.
        value: f64,
    },
    /// A saved state does not fit this training.
    #[error("the saved state does not fit this training: {why}")]
    BadState {
        /// What does not fit.
        why: String,
    },
    /// An error of the learner.
    #[error(transparent)]
    Learner(#[from] LearnError),
}

impl TrainError {
    /// An error about the whole recipe.
    pub(crate) fn recipe(why: impl Into<String>) -> Self {
        TrainError::Recipe { stage: None, why: why.into() }
    }

    /// The same error with the name of the stage, unless it already names one.
    pub(crate) fn in_stage(self, name: &str) -> Self {
        match self {
            TrainError::Recipe { stage: None, why } => {
                TrainError::Recipe { stage: Some(name.to_owned()), why }
            }
            other => other,
        }
    }
}

impl From<StateError> for TrainError {
    fn from(error: StateError) -> Self {
        TrainError::BadState { why: error.to_string() }
    }
}
