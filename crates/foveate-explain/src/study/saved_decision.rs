//! Decisions taken again on changed pictures.

use crate::faithful::Effect;
use crate::saliency::Perturber;
use crate::trajectory::ActionScale;
use crate::{Fill, Mask, PictureEditor, change_size};
use foveate_core::{ActContext, Agent, Image, ImageBuf, PatchGrid, PolicyError, Rng};

use super::seen::SeenPicture;

/// Random covers that are compared with one of what was claimed.
pub(super) const DRAWS: usize = 12;

/// A decision that can be taken again: the agent as it was before it, and what it then saw and did.
pub(super) struct SavedDecision {
    pub(super) step: usize,
    pub(super) before: (Box<dyn Agent>, ActContext),
    pub(super) seen: SeenPicture,
    pub(super) action: Vec<f64>,
    pub(super) grid: PatchGrid,
    /// `[n_patches]`
    pub(super) importance: Vec<f32>,
    /// The patches said to matter, most important first.
    pub(super) claim: Vec<u32>,
}

/// What the agent is shown when a picture is changed.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    /// The changed picture.
    Picture,
    /// Nothing but grey, whatever the picture is.
    Grey,
}

impl SavedDecision {
    /// How far the action on `picture` lies from the action on the picture as it was.
    pub(super) fn effect(&self, picture: Image<'_>, scale: &ActionScale) -> Result<f64, PolicyError> {
        Ok(scale.distance(&self.act(picture)?, &self.action))
    }

    /// The action on `picture`, taken in the state in which this decision was taken.
    pub(super) fn act(&self, picture: Image<'_>) -> Result<Vec<f64>, PolicyError> {
        let (agent, context) = &self.before;
        let mut bytes = vec![];
        let observation = self.seen.observation(picture, &mut bytes);
        Ok(agent.boxed_clone().act(observation, &mut context.clone())?.action.to_vec())
    }

    /// Interventions on what was seen.
    pub(super) fn editor(&self, fill: Fill) -> PictureEditor<'_> {
        PictureEditor::of_stack(self.seen.picture(), self.seen.parts(), fill)
    }

    /// Perturbations of what was seen.
    pub(super) fn perturber(&self) -> Perturber<'_> {
        Perturber::of_stack(self.seen.picture(), self.seen.parts())
    }

    /// The pixels of the patches in `claim`.
    pub(super) fn mask(&self, claim: &[u32]) -> Mask {
        let [width, height] = self.seen.size();
        Mask::of_patches(width, height, self.grid, claim)
    }

    /// What covering `claim` does, against covering as many random other pixels.
    pub(super) fn claim_effect(
        &self,
        scene: &PictureEditor<'_>,
        claim: &[u32],
        shown: Shown,
        scale: &ActionScale,
        rng: &mut Rng,
    ) -> Result<Effect, PolicyError> {
        if matches!(shown, Shown::Grey) {
            return self.blind_effect(scene, claim, scale, rng);
        }
        let mask = self.mask(claim);
        let claimed = self.effect(scene.cover(&mask).as_image(), scale)?;
        let mut elsewhere = 0.0;
        for _ in 0..DRAWS {
            let cover = Mask::random_elsewhere(&mask, self.grid, rng);
            elsewhere += self.effect(scene.cover(&cover).as_image(), scale)? / DRAWS as f64;
        }
        Ok(Effect { claimed, elsewhere })
    }

    /// The same of an agent that is shown grey instead of each picture.
    fn blind_effect(
        &self,
        scene: &PictureEditor<'_>,
        claim: &[u32],
        scale: &ActionScale,
        rng: &mut Rng,
    ) -> Result<Effect, PolicyError> {
        let mask = self.mask(claim);
        let other = Mask::random_elsewhere(&mask, self.grid, rng);
        // Whatever is covered, it is shown the same grey.
        let usual = self.act(self.seen.blindfold().as_image())?;
        let acts = |_: ImageBuf| self.act(self.seen.blindfold().as_image());
        Ok(Effect {
            claimed: scale.distance(&acts(scene.cover(&mask))?, &usual),
            elsewhere: scale.distance(&acts(scene.cover(&other))?, &usual),
        })
    }

    /// `[places]`: half the squared change of the action, per place of the perturber.
    pub(super) fn saliency(&self, scale: &ActionScale) -> Result<Vec<f64>, PolicyError> {
        let mut perturber = self.perturber();
        let usual = unit(&self.action, scale);
        (0..perturber.columns() * perturber.rows())
            .map(|place| {
                let action = self.act(perturber.perturbed(place).as_image())?;
                let apart =
                    unit(&action, scale).iter().zip(&usual).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                Ok(apart / 2.0)
            })
            .collect()
    }
}

/// An action with every dimension in units of its extent, or as probabilities.
fn unit(action: &[f64], scale: &ActionScale) -> Vec<f64> {
    match scale {
        ActionScale::Box(bounds) => {
            action.iter().zip(bounds).map(|(a, [low, high])| a / (high - low).max(1e-12)).collect()
        }
        ActionScale::Choices => scale.shown(action),
    }
}

/// What one intervention did to a decision.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct InterventionEffect {
    /// Change of the action.
    pub(super) action: f64,
    /// Size of the change of the picture.
    pub(super) size: f64,
}

impl InterventionEffect {
    pub(super) fn of(
        taken: &SavedDecision,
        changed: &ImageBuf,
        scale: &ActionScale,
    ) -> Result<Self, PolicyError> {
        let action = taken.effect(changed.as_image(), scale)?;
        Ok(InterventionEffect { action, size: change_size(taken.seen.picture(), changed.as_image()) })
    }

    /// Of several.
    pub(super) fn mean(all: &[InterventionEffect]) -> Self {
        let n = all.len().max(1) as f64;
        InterventionEffect {
            action: all.iter().map(|o| o.action).sum::<f64>() / n,
            size: all.iter().map(|o| o.size).sum::<f64>() / n,
        }
    }
}
