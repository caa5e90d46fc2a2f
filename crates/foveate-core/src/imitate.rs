//! Imitation of an expert that has access to more than the learner's observations.
//!
//! DAgger: the learner acts, the expert's action is recorded in every step, and the learner's controller is
//! fitted to these actions (Ross, Gordon and Bagnell 2011, "A reduction of imitation learning and structured
//! prediction to no-regret online learning"; with an expert that sees the world's state: Chen, Zhou, Koltun
//! and Krähenbühl 2019, "Learning by cheating"). The learner itself only ever receives its observations.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::actor_critic::{LossSums, Sequence, SequenceLoss, SequenceScratch, study_sequence};
use crate::{ActorCritic, DifferentiatedEpisode, PackedPictures, PolicyError, Seed, ValueNetwork, Windows};

/// The error of a policy that draws no actions from a distribution.
pub fn no_actor_critic() -> PolicyError {
    let why = "this agent does not draw its actions from a distribution; choose one that does".into();
    PolicyError::BadConfig { why }
}

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
    /// Whether all its numbers are in their ranges.
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

/// Whether a setting is left out because it is zero.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Whether a turn is left out because it is a single step.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_short(turn: &u64) -> bool {
    *turn <= 1
}

/// How the episodes of demonstrations are run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemonstrationPlan {
    /// Whether the expert acts; otherwise the learner acts.
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
    /// Whether each step also records what the expert says that actions cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub costs: bool,
    /// Whether each step records the picture that is observed and where the expert looks on it, in place of what the
    /// learner's controller gets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gaze: bool,
}

/// A policy that learns by gradients, whole or in part: its dimensions, and the gradient on a demonstration.
pub trait Student: Send {
    /// Count of numbers per step, see [`StudyInputs`].
    fn inputs(&self) -> usize;

    /// Bytes of the picture per step, 0 for none.
    fn picture(&self) -> usize {
        0
    }

    /// Number of actions per step.
    fn actions(&self) -> usize;

    /// Range of the flat parameters that are learnt; the others never change.
    fn learns(&self) -> Range<usize>;

    /// Sets the weights at which gradients are computed, `[n_params]`.
    ///
    /// # Errors
    /// When the count is wrong or a value is not finite.
    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError>;

    /// Adds to `gradient` (`[n_params]`) the gradient of the squared error on steps `piece` of a
    /// demonstration, summed over steps and actions, in units where every action ranges from −1 to 1; returns
    /// that error. The memory is reset `burn_in` steps before the piece, as at the start of an episode, and
    /// no gradient flows into those steps. A student that classifies takes the cross entropy of the expert's choice,
    /// summed over steps, in place of the squared error.
    ///
    /// The gradient of the piece is summed separately and then added, with one addition per parameter in
    /// [`learns`](Self::learns); the other parameters are not touched. Therefore gradients of pieces that are
    /// each computed into zeros and then added in order are bit-identical to those of the same pieces
    /// computed one after the other.
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

    /// Adds the gradients of all `pieces` to `gradient`, in the order of the pieces, and writes the error of each to
    /// `errors`. The result is bit-identical to calling [`Student::study`] on one piece after the other,
    /// which the default does; an implementation may distribute the pieces over threads.
    ///
    /// # Errors
    /// When the gradient of a piece could not be computed; `gradient` and `errors` then hold those of some
    /// pieces.
    ///
    /// # Panics
    /// Those of [`Student::study`], unless an implementation returns an error instead.
    fn study_all(
        &mut self,
        pieces: &[Piece],
        burn_in: usize,
        gradient: &mut [f32],
        errors: &mut Vec<f64>,
    ) -> Result<(), PolicyError> {
        errors.clear();
        for Piece { demonstration, steps } in pieces {
            errors.push(self.study(demonstration, steps.clone(), burn_in, gradient));
        }
        Ok(())
    }

    /// From now on leaves out this share of the patches, `0.0..1.0`, of every step that is learnt from (dropout); which ones
    /// depends on `seed` and on the number of the step in its demonstration, on nothing else. Returns whether this student can;
    /// the default cannot.
    fn drop_patches(&mut self, share: f64, seed: Seed) -> bool {
        let _ = (share, seed);
        false
    }

    /// Adds to `gradient` (`[n_params]`) the gradient of the negative return through policy and world, and returns the
    /// return.
    ///
    /// The episode is divided into windows that end before the steps `ends` (ascending, the last is the number of
    /// steps). In each of them the return is `(1 − discount) Σ discount^t reward` over its steps, and the value of the
    /// observation after it; `values` (`[ends, numbers]`) are the derivatives of these values, in the same units,
    /// already multiplied by `discount` to the power of the window's length. No gradient flows from one window into
    /// another, while the policy's memory goes on.
    ///
    /// The first [`begin`](DifferentiatedEpisode::begin) inputs of the episode only set the policy's memory.
    ///
    /// Derivatives with respect to the world's state and to the policy's memory are clipped to `clip` where they are passed
    /// from step to step.
    ///
    /// # Errors
    /// When this policy cannot learn that way, or the episode does not have its dimensions.
    fn study_world(
        &mut self,
        episode: &DifferentiatedEpisode,
        windows: &Windows<'_>,
        gradient: &mut [f32],
    ) -> Result<f64, PolicyError> {
        let _ = (episode, windows, gradient);
        let why =
            "this agent cannot learn through a world's equations; attention-neuron on numbers can".into();
        Err(PolicyError::BadConfig { why })
    }

    /// The values of its actions, at the weights of [`Student::set_params`]; `None` for a policy that does not value
    /// actions.
    fn value_network(&mut self) -> Option<&mut dyn ValueNetwork> {
        None
    }

    /// The distribution of its actions and its values, at the weights of [`Student::set_params`]; `None` for a policy
    /// without them.
    fn actor_critic(&mut self) -> Option<&mut dyn ActorCritic> {
        None
    }

    /// Adds to `gradient` (`[n_params]`) that of `loss` for all `sequences`, each through all of its steps, and returns the
    /// sums of what the loss returns, both in the order of the sequences. The gradient of each sequence is summed separately
    /// and then added, so an implementation may distribute the sequences over threads with the same bits.
    ///
    /// # Errors
    /// When this policy has no [`ActorCritic`], or a sequence does not fit it; `gradient` then holds the gradients of some
    /// sequences.
    fn study_sequences(
        &mut self,
        sequences: &[Sequence],
        loss: &Arc<dyn SequenceLoss>,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let Some(network) = self.actor_critic() else { return Err(no_actor_critic()) };
        let (mut scratch, mut own) = (SequenceScratch::default(), vec![0.0; gradient.len()]);
        let mut sums = LossSums::default();
        for (index, sequence) in sequences.iter().enumerate() {
            own.fill(0.0);
            let of_this = study_sequence(network, sequence, index, &**loss, &mut scratch, &mut own)?;
            for (sum, x) in sums.iter_mut().zip(of_this) {
                *sum += x;
            }
            for (to, from) in gradient.iter_mut().zip(&own) {
                *to += from;
            }
        }
        Ok(sums)
    }

    /// The student of this agent's attention, which learns to attend to what the expert looks at, from demonstrations with
    /// [gaze](DemonstrationPlan::gaze); it has the same parameters and learns others. `None` when there is none.
    fn gaze_student(&self) -> Option<Box<dyn Student>> {
        None
    }

    /// The student of this agent's sensors, which learns to tell them apart from what they show and what was done; it has the
    /// same parameters and learns some of them. `None` when there is none.
    fn names_student(&self) -> Option<Box<dyn Student>> {
        None
    }

    /// A copy with separate scratch space.
    fn boxed_clone(&self) -> Box<dyn Student>;
}
