//! Whole episodes driven with the same intervention in every step.

use foveate_core::{ActContext, ActMode, Observation, Seed};
use foveate_explain::{Fill, Mask, Scene};

use super::play::{Seat, act, broken, env_error, picture, policy_error};
use super::probe::blindfold;
use super::study::claim;
use crate::RunError;

/// What is done to every picture before the agent gets it.
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
    /// Every condition, as they are shown.
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

/// The score of the episode under `condition`. Where the agent would look is asked of it on the picture as it is.
pub(super) fn drive(mut seat: Seat, condition: Condition, seed: Seed) -> Result<f64, RunError> {
    let mut score = 0.0;
    seat.agent.begin_episode(seat.job.episode_seed());
    let mut context = ActContext::new(seat.job.episode_seed(), ActMode::Greedy);
    for step in 0..seat.max_steps {
        let changed = {
            let picture = picture(&*seat.env)?;
            match condition {
                Condition::AsIs => None,
                Condition::Blind => Some(blindfold(picture)),
                _ => changed(&seat, &context, condition, step, seed)?,
            }
        };
        let observation = match &changed {
            Some(changed) => Observation::Image(changed.as_image()),
            None => seat.env.observation(),
        };
        let action = match seat.agent.act(observation, &mut context) {
            Ok(decision) => decision.action.to_vec(),
            Err(source) => return Err(policy_error(seat.job, step, source)),
        };
        if let Some((i, x)) = action.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            return Err(broken(seat.job, step, format!("the agent's action[{i}] is {x}")));
        }
        let outcome = act(&mut *seat.env, &action).map_err(|source| env_error(seat.job, step, source))?;
        score += outcome.reward;
        if outcome.is_over() {
            break;
        }
    }
    Ok(score)
}

/// The picture after the intervention; `None` when the agent attends to no place that could be intervened on.
fn changed(
    seat: &Seat,
    context: &ActContext,
    condition: Condition,
    step: usize,
    seed: Seed,
) -> Result<Option<foveate_core::ImageBuf>, RunError> {
    let picture = picture(&*seat.env)?;
    let mut looker = seat.agent.boxed_clone();
    let decision = match looker.act(Observation::Image(picture), &mut context.clone()) {
        Ok(decision) => decision,
        Err(source) => return Err(policy_error(seat.job, step, source)),
    };
    let (Some(attention), Some(fill)) = (&decision.attention, condition.fill()) else { return Ok(None) };
    let Some(grid) = attention.tokens().grid() else { return Ok(None) };
    let mask = Mask::of_patches(picture.width(), picture.height(), grid, &claim(attention));
    let scene = Scene::new(picture, fill);
    let mut rng = seed.child("step", step as u64).rng();
    Ok(Some(match condition {
        Condition::CoverRandom(_) => scene.cover(&Mask::random_elsewhere(&mask, grid, &mut rng)),
        Condition::KeepRandom(_) => scene.keep(&Mask::random_elsewhere(&mask, grid, &mut rng)),
        Condition::CoverLeast(_) => {
            let importance = attention.importance();
            let mut least: Vec<u32> = (0..grid.len() as u32).collect();
            least.sort_by(|&i, &j| importance[i as usize].total_cmp(&importance[j as usize]));
            scene.cover(&Mask::elsewhere(&mask, grid, least))
        }
        Condition::KeepAttended(_) => scene.keep(&mask),
        _ => scene.cover(&mask),
    }))
}
