//! Learning from an expert that sees more than the learner may.
//!
//! The learner drives, the expert says in every step what it would do there, and the learner's last part is fitted to
//! that (Ross, Gordon and Bagnell 2011, "A reduction of imitation learning and structured prediction to no-regret online
//! learning"; with an expert that sees the world's state: Chen, Zhou, Koltun and Krähenbühl 2019, "Learning by
//! cheating"). What the learner sees when it drives alone is never more than its observations.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::PolicyError;

/// One episode: what the part that learns was told, and what the expert would have done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Demonstration {
    /// `[steps, inputs]`: what the part that learns was told, see [`Agent::inputs`](crate::Agent::inputs).
    pub inputs: Vec<f32>,
    /// `[steps, actions]`: what the expert would have done, in the world's units.
    pub actions: Vec<f32>,
    /// How many steps.
    pub steps: usize,
}

/// A stretch of a demonstration.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The demonstration.
    pub demonstration: Arc<Demonstration>,
    /// Which of its steps.
    pub steps: Range<usize>,
}

/// How the episodes of demonstrations are driven.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemonstrationPlan {
    /// Whether the expert drives; the learner does otherwise.
    pub expert_drives: bool,
    /// Pushes per 100 steps, each of some steps: the learner must see how to come back. 0 for none.
    pub pushes: f64,
}

/// A policy whose last part learns by gradients: its shape, and the gradient of a demonstration.
pub trait Student: Send {
    /// Numbers per step that the part that learns is told.
    fn inputs(&self) -> usize;

    /// Numbers per action.
    fn actions(&self) -> usize;

    /// Which of the flat parameters learn; the others never change.
    fn learns(&self) -> Range<usize>;

    /// Takes weights to compute gradients at, `[n_params]`.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite.
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;

    /// Adds the gradient of the squared error on steps `piece` of a demonstration, summed over steps and actions, in units where
    /// every action reaches from −1 to 1, to `gradient` (`[n_params]`), and gives that error. The memory begins
    /// `burn_in` steps before the piece, as it is at the start of an episode, and no gradient flows into those.
    ///
    /// The gradient of the piece is summed by itself and then added, with one addition for each parameter that
    /// [`learns`](Self::learns), and nothing is added to the others. Therefore gradients of pieces that are each studied
    /// into zeros and then added in order are, to the bit, those of the same pieces studied one after the other.
    ///
    /// # Panics
    /// When the demonstration has another shape than this student, or the piece ends behind it.
    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64;

    /// Adds the gradients of all `pieces` to `gradient`, in the order of the pieces, and gives the sum of their errors:
    /// the same bits as those of [`Student::study`] of one piece after the other, which is what it does unless an
    /// implementation shares the pieces among threads.
    ///
    /// # Errors
    /// When a piece could not be studied; `gradient` then holds the gradients of some pieces.
    ///
    /// # Panics
    /// As [`Student::study`], unless an implementation makes an error of that.
    fn study_all(
        &mut self,
        pieces: &[Piece],
        burn_in: usize,
        gradient: &mut [f32],
    ) -> Result<f64, PolicyError> {
        let study = |error, piece: &Piece| {
            error + self.study(&piece.demonstration, piece.steps.clone(), burn_in, gradient)
        };
        Ok(pieces.iter().fold(0.0, study))
    }

    /// A copy with its own scratch space.
    fn boxed_clone(&self) -> Box<dyn Student>;
}
