//! Imitation of an expert that has access to more than the learner's observations.
//!
//! DAgger: the learner acts, the expert's action is recorded in every step, and the learner's controller is
//! fitted to these actions (Ross, Gordon and Bagnell 2011, "A reduction of imitation learning and structured
//! prediction to no-regret online learning"; with an expert that sees the world's state: Chen, Zhou, Koltun
//! and Krähenbühl 2019, "Learning by cheating"). The learner itself only ever receives its observations.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{GradientParts, LossSums, MOST_AT_ONCE, Model, PartScratch, lacking};
use crate::{PackedPictures, PolicyError, Seed};

/// What a [`Student`] learns from in one step: numbers, a picture, or both.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StudyInputs<'a> {
    /// Numbers, such as the inputs of a controller, or sensors.
    pub numbers: &'a [f32],
    /// The bytes of a picture.
    pub picture: &'a [u8],
}

/// One episode: what the student learns from, and the expert's actions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Demonstration {
    /// `[steps, inputs]`: the numbers of [`Agent::study_inputs`](crate::Agent::study_inputs).
    pub inputs: Vec<f32>,
    /// `[steps]`: its pictures; empty when the student learns from numbers alone.
    #[serde(default, skip_serializing_if = "PackedPictures::is_empty")]
    pub pictures: PackedPictures,
    /// `[steps, actions]`: the expert's actions, in the world's units.
    pub actions: Vec<f32>,
    /// `[steps, costs]`: the [costs](crate::Env::costs) of actions; empty when the expert was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<f32>,
    /// `[steps]`: where the expert looks; empty when it was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaze: Vec<Vec<GazePoint>>,
    /// Number of steps.
    pub steps: usize,
}

/// A place on the observed picture at which the world's expert looks, because its action depends on what is there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GazePoint {
    /// Share of the picture's width, from the left, `0.0..=1.0`.
    pub x: f32,
    /// Share of the picture's height, from the top, `0.0..=1.0`.
    pub y: f32,
    /// How much it matters, above 0 and finite; only ratios within a step count.
    pub weight: f32,
}

impl GazePoint {
    /// Returns whether all its numbers are in their ranges.
    pub fn is_valid(&self) -> bool {
        let on_picture = |x: f32| (0.0..=1.0).contains(&x);
        on_picture(self.x) && on_picture(self.y) && self.weight > 0.0 && self.weight.is_finite()
    }
}

/// A range of steps of a demonstration.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The demonstration.
    pub demonstration: Arc<Demonstration>,
    /// The range.
    pub steps: Range<usize>,
}

/// Returns whether a setting is left out because it is zero.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Returns whether a turn is left out because it is a single step.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_short(turn: &u64) -> bool {
    *turn <= 1
}

/// How the episodes of demonstrations are run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemonstrationPlan {
    /// True if the expert acts; otherwise the learner acts.
    pub expert_drives: bool,
    /// Where the learner acts: the share of steps in which the expert acts in its place, `0.0..=1.0`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expert_share: f64,
    /// Steps that one of them acts before it is drawn anew who acts; 0 counts as 1.
    #[serde(default, skip_serializing_if = "is_short")]
    pub turn: u64,
    /// Random perturbations of the action per 100 steps, each several steps long: they show the learner how
    /// to recover. 0 for none.
    pub pushes: f64,
    /// True if each step also records what the expert says that actions cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub costs: bool,
    /// True if each step records the picture that is observed and where the expert looks on it, in place of what the
    /// learner's controller gets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gaze: bool,
}

/// The part of a [`Model`] that learns from an expert's demonstrations.
pub trait Student {
    /// Count of numbers per step, see [`StudyInputs`].
    fn inputs(&self) -> usize;

    /// Number of actions per step.
    fn actions(&self) -> usize;

    /// Adds to `gradient` (`[n_params]`) the gradient of the squared error on steps `piece` of a
    /// demonstration, summed over steps and actions, in units where every action ranges from −1 to 1; returns
    /// that error. The memory is reset `burn_in` steps before the piece, as at the start of an episode, and
    /// no gradient flows into those steps. A student that classifies takes the cross entropy of the expert's choice,
    /// summed over steps, in place of the squared error.
    ///
    /// The gradient of the piece is summed separately and then added, with one addition per parameter that the model
    /// [learns](Model::learns); the other parameters are not touched.
    ///
    /// # Panics
    /// When the demonstration does not have this student's dimensions, or when the piece ends after the
    /// demonstration.
    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64;

    /// Bytes of the picture per step, 0 for none.
    fn picture(&self) -> usize {
        0
    }

    /// From now on leaves out this share of the patches, `0.0..1.0`, of every step that is learnt from (dropout); which ones
    /// depends on `seed` and on the number of the step in its demonstration, on nothing else. Returns whether this student can;
    /// the default cannot.
    fn drop_patches(&mut self, share: f64, seed: Seed) -> bool {
        let _ = (share, seed);
        false
    }
}

/// Pieces of demonstrations as the [`GradientParts`] of an update. The error of each is the first of its sums.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pieces {
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// Steps before a piece that set the memory.
    pub burn_in: usize,
    /// What [`Student::drop_patches`] gets.
    pub dropout: Option<(f64, Seed)>,
}

impl GradientParts for Pieces {
    fn count(&self) -> usize {
        self.pieces.len()
    }

    /// A piece takes some ten microseconds.
    fn at_once(&self) -> usize {
        MOST_AT_ONCE
    }

    fn study(
        &self,
        part: usize,
        model: &mut dyn Model,
        _: &mut PartScratch,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let student = model.student().ok_or_else(|| lacking("student of demonstrations"))?;
        if let Some((share, seed)) = self.dropout {
            student.drop_patches(share, seed);
        }
        let Piece { demonstration, steps } = &self.pieces[part];
        let mut sums = LossSums::default();
        sums[0] = student.study(demonstration, steps.clone(), self.burn_in, gradient);
        Ok(sums)
    }
}
