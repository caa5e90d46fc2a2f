//! Whole episodes driven with the same intervention in every step.

use crate::{Fill, Mask, PictureEditor};
use foveate_core::episode::{Actor, ActorError, Chosen, Episode, EpisodeRules};
use foveate_core::{ActContext, Agent, Env, EvaluateError, ImageBuf, Observation, PolicyError, Seed};

use super::StudyError;
use super::fields::Fields;
use super::play::EpisodeStart;
use super::probes::{Located, located};
use super::seen::SeenPicture;

/// The intervention on every picture before the agent sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    AsIs,
    CoverAttended(Fill),
    CoverRandom(Fill),
    CoverLeast(Fill),
    KeepAttended(Fill),
    KeepRandom(Fill),
    Blind,
}

impl Condition {
    /// All conditions, in the order of the report.
    pub(super) fn all() -> Vec<Condition> {
        let mut all = vec![Condition::AsIs];
        for fill in Fill::ALL {
            all.extend([
                Condition::CoverAttended(fill),
                Condition::CoverRandom(fill),
                Condition::CoverLeast(fill),
                Condition::KeepAttended(fill),
                Condition::KeepRandom(fill),
            ]);
        }
        all.push(Condition::Blind);
        all
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Condition::AsIs => "as it is",
            Condition::CoverAttended(_) => "cover what it looks at",
            Condition::CoverRandom(_) => "cover random other places",
            Condition::CoverLeast(_) => "cover the least attended",
            Condition::KeepAttended(_) => "keep only what it looks at",
            Condition::KeepRandom(_) => "keep only random places",
            Condition::Blind => "blind",
        }
    }

    pub(super) fn fill(self) -> Option<Fill> {
        match self {
            Condition::AsIs | Condition::Blind => None,
            Condition::CoverAttended(fill)
            | Condition::CoverRandom(fill)
            | Condition::CoverLeast(fill)
            | Condition::KeepAttended(fill)
            | Condition::KeepRandom(fill) => Some(fill),
        }
    }
}

/// The score of the episode under `condition`. The covered places are those that a copy of the agent attends to on the
/// unchanged picture.
pub(super) fn play_under(
    start: EpisodeStart,
    condition: Condition,
    fields: Option<&Fields>,
    seed: Seed,
) -> Result<f64, StudyError> {
    let EpisodeStart { mut env, agent, job, max_steps } = start;
    let mut actor = IntervenedActor { agent, condition, fields, seed };
    let mut episode = Episode::new(job, EpisodeRules { max_steps: max_steps as u64, ..EpisodeRules::WHOLE });
    episode.resume(&mut actor);
    Ok(episode.finish::<EvaluateError>(&mut *env, &mut actor, &mut ())?.total)
}

/// An agent that sees changed pictures.
struct IntervenedActor<'f> {
    agent: Box<dyn Agent>,
    condition: Condition,
    fields: Option<&'f Fields>,
    seed: Seed,
}

impl Actor for IntervenedActor<'_> {
    fn begin_episode(&mut self, episode: Seed) {
        self.agent.begin_episode(episode);
    }

    fn act(
        &mut self,
        env: &mut dyn Env,
        step: u64,
        context: &mut ActContext,
    ) -> Result<Chosen<'_>, ActorError> {
        let changed = match (env.observation(), self.condition) {
            (Observation::Image(_), condition) if condition != Condition::AsIs => {
                self.changed(env, context, step)?
            }
            _ => None,
        };
        let mut bytes = vec![];
        let observation = match &changed {
            Some((seen, changed)) => seen.observation(changed.as_image(), &mut bytes),
            None => env.observation(),
        };
        Ok(self.agent.act(observation, context)?.into())
    }

    fn agent(&self) -> Option<&dyn Agent> {
        Some(&*self.agent)
    }
}

impl IntervenedActor<'_> {
    /// What is seen, and the picture after the intervention; `None` when the agent attends to no place that could be intervened on.
    fn changed(
        &self,
        env: &dyn Env,
        context: &ActContext,
        step: u64,
    ) -> Result<Option<(SeenPicture, ImageBuf)>, PolicyError> {
        let unseen = |error: StudyError| PolicyError::BadConfig { why: error.to_string() };
        if self.condition == Condition::Blind {
            let seen = SeenPicture::of(env, None).map_err(unseen)?;
            let grey = seen.blindfold();
            return Ok(Some((seen, grey)));
        }
        let mut looker = self.agent.boxed_clone();
        let decision = looker.act(env.observation(), &mut context.clone())?;
        let (Some(attention), Some(fill)) = (&decision.attention, self.condition.fill()) else {
            return Ok(None);
        };
        let Some(grid) = attention.tokens().grid() else { return Ok(None) };
        let seen = SeenPicture::of(env, Some(grid)).map_err(unseen)?;
        let Some(Located { grid, importance, claim }) = located(attention, &seen, self.fields) else {
            return Ok(None);
        };
        let [width, height] = seen.size();
        let mask = Mask::of_patches(width, height, grid, &claim);
        let scene = PictureEditor::of_stack(seen.picture(), seen.parts(), fill);
        let mut rng = self.seed.child("step", step).rng();
        let changed = match self.condition {
            Condition::CoverRandom(_) => scene.cover(&Mask::random_elsewhere(&mask, grid, &mut rng)),
            Condition::KeepRandom(_) => scene.keep(&Mask::random_elsewhere(&mask, grid, &mut rng)),
            Condition::CoverLeast(_) => {
                let mut least: Vec<u32> = (0..grid.len() as u32).collect();
                least.sort_by(|&i, &j| importance[i as usize].total_cmp(&importance[j as usize]));
                scene.cover(&Mask::elsewhere(&mask, grid, least))
            }
            Condition::KeepAttended(_) => scene.keep(&mask),
            _ => scene.cover(&mask),
        };
        Ok(Some((seen, changed)))
    }
}
