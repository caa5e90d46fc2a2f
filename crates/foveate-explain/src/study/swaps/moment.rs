//! Decisions that can be taken again, with parts of them from other moments.

use std::sync::{Mutex, PoisonError};

use foveate_core::{
    ActContext, Agent, Env, EnvSpec, Observation, ObservationBuf, Opened, PatchGrid, PolicyError,
};

use super::places::Places;
use crate::saliency::Perturber;
use crate::study::StudyError;
use crate::study::fields::FieldMoment;
use crate::study::seen::SeenPicture;
use crate::trajectory::ActionScale;

/// How far apart two actions are, from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::study) enum Distance {
    /// Mean over dimensions of |difference| divided by the dimension's extent.
    Ranges(ActionScale),
    /// Half the sum of |differences| of the choices' probabilities: total variation.
    Probabilities,
    /// 1 if another choice has the largest score.
    Choice,
}

impl Distance {
    /// For a world whose agent decides as in `actions`: choices have probabilities if each of them is not negative and their
    /// sum is 1 in all decisions.
    pub(in crate::study) fn of<'a>(spec: &EnvSpec, mut actions: impl Iterator<Item = &'a [f64]>) -> Distance {
        if !spec.action.is_discrete() {
            return Distance::Ranges(ActionScale::Box(spec.action.bounds()));
        }
        let are_probabilities = |action: &[f64]| {
            action.iter().all(|&p| p >= 0.0) && (action.iter().sum::<f64>() - 1.0).abs() < 1e-5
        };
        if actions.all(are_probabilities) { Distance::Probabilities } else { Distance::Choice }
    }

    pub(in crate::study) fn between(&self, a: &[f64], b: &[f64]) -> f64 {
        match self {
            Distance::Ranges(scale) => scale.distance(a, b),
            Distance::Probabilities => a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0,
            Distance::Choice => f64::from(u8::from(best(a) != best(b))),
        }
    }

    /// By how much the score of what `other` chooses is below that of what `own` chooses, in `own`'s scores; `None` unless choices
    /// are made by the largest score.
    pub(in crate::study) fn regret(&self, other: &[f64], own: &[f64]) -> Option<f64> {
        let chosen = own[best(own)];
        (*self == Distance::Choice).then(|| chosen - own.get(best(other)).copied().unwrap_or(chosen))
    }

    /// In words, with its unit.
    pub(in crate::study) const fn name(&self) -> &'static str {
        match self {
            Distance::Ranges(_) => "mean over the action's dimensions of |difference| / extent",
            Distance::Probabilities => "total variation of the choices' probabilities",
            Distance::Choice => "share of decisions in which another choice is the best",
        }
    }
}

fn best(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = i;
        }
    }
    best
}

/// A decision as it was taken, with all that it depended on.
pub(in crate::study) struct Moment {
    pub(in crate::study) step: usize,
    /// Agent and context before it; locked, for agents are used by one thread at a time.
    before: Mutex<Again>,
    /// The agent opened at its attention, if it can be.
    at_attention: Option<Mutex<Again>>,
    pub(in crate::study) seen: ObservationBuf,
    pub(in crate::study) action: Vec<f64>,
    /// The decision at its attention, if the agent can be opened there.
    pub(in crate::study) opened: Option<Opened>,
    /// The places that can be transplanted, if the tokens of the attention have places in what is observed.
    pub(in crate::study) places: Option<Places>,
    /// `[tokens]`: how much each is said to matter, 1 in all; of hard attention the selected ones by rank, and hardly anything of
    /// the others.
    pub(in crate::study) claim: Vec<f64>,
    /// `[claims][places]`: the same of places: the agent's own claim, or those of others; empty where none is made.
    pub(in crate::study) place_claims: Vec<Vec<f64>>,
}

/// A decision to begin again: the agent opened at its attention, or as it was before, and its context.
pub(in crate::study) struct Again {
    agent: Box<dyn Agent>,
    context: ActContext,
}

impl Moment {
    /// Returns whether there is something that can be swapped.
    pub(in crate::study) fn can_be_swapped(&self) -> bool {
        self.opened.is_some() || self.places.as_ref().is_some_and(|places| places.len() > 0)
    }

    /// The decision that `agent` is about to take in `env`. With `salient`, perturbation saliency is the claim of an agent
    /// without attention.
    pub(in crate::study) fn of(
        step: usize,
        env: &dyn Env,
        agent: &dyn Agent,
        context: &ActContext,
        salient: bool,
    ) -> Result<Moment, StudyError> {
        let refused = |error: PolicyError| StudyError::Refused { why: error.to_string() };
        let observation = env.observation();
        let mut opened = Opened::default();
        let mut halfway = agent.boxed_clone();
        let opens = halfway.open(observation, context, &mut opened).map_err(refused)?;
        let opened = opens.then_some(opened);
        let mut whole = agent.boxed_clone();
        let decision = whole.act(observation, &mut context.clone()).map_err(refused)?;
        let places = Places::of(decision.attention.as_ref(), observation);
        let action = decision.action.to_vec();
        let claim = match (&opened, &decision.attention) {
            (Some(opened), _) if !opened.hard => opened.claim().into_iter().map(f64::from).collect(),
            (_, Some(attention)) if attention.selected().is_none() => {
                attention.importance().iter().map(|&x| f64::from(x)).collect()
            }
            (_, Some(attention)) => {
                let votes = attention.importance();
                let all: f32 = votes.iter().sum();
                let rest = |&vote: &f32| if all > 0.0 { 1e-6 * f64::from(vote / all) } else { 0.0 };
                let mut claim: Vec<f64> = votes.iter().map(rest).collect();
                let selected = attention.by_rank();
                for (rank, &token) in selected.iter().enumerate() {
                    claim[token as usize] = 1.0 - rank as f64 / selected.len() as f64;
                }
                claim
            }
            (_, None) => vec![],
        };
        let place_claim = match (&places, &decision.attention) {
            (Some(places), Some(attention)) => places.pool(attention.tokens(), &claim),
            (Some(places @ Places::Pixels { .. }), None) if salient => {
                saliency(env, agent, context, &action, places)?
            }
            _ => vec![],
        };
        let [claim, place_claim] = [claim, place_claim].map(in_all_one);
        let place_claims = if place_claim.is_empty() { vec![] } else { vec![place_claim] };
        Ok(Moment {
            step,
            at_attention: opens.then(|| Mutex::new(Again { agent: halfway, context: context.clone() })),
            before: Mutex::new(Again { agent: agent.boxed_clone(), context: context.clone() }),
            seen: observation.into(),
            action,
            opened,
            places,
            claim,
            place_claims,
        })
    }

    /// The agent opened at its attention, or, if it cannot be, as it was before.
    pub(in crate::study) fn begin(&self) -> Again {
        Again::copy_of(self.at_attention.as_ref().unwrap_or(&self.before))
    }

    /// Agent and context before it, with what was seen.
    pub(in crate::study) fn for_fields(&self) -> FieldMoment {
        let Again { agent, context } = Again::copy_of(&self.before);
        FieldMoment { agent, context, seen: self.seen.clone() }
    }

    /// The action on another observation, with this moment's memory.
    pub(in crate::study) fn act_on(&self, observation: Observation<'_>) -> Result<Vec<f64>, PolicyError> {
        let Again { mut agent, mut context } = Again::copy_of(&self.before);
        Ok(agent.act(observation, &mut context)?.action.to_vec())
    }
}

impl Again {
    fn copy_of(locked: &Mutex<Again>) -> Again {
        let Again { agent, context } = &*locked.lock().unwrap_or_else(PoisonError::into_inner);
        Again { agent: agent.boxed_clone(), context: context.clone() }
    }

    /// The action with these weights and values.
    pub(in crate::study) fn resume(&self, opened: &Opened) -> Result<Vec<f64>, PolicyError> {
        Ok(self.agent.boxed_clone().resume(opened, &mut self.context.clone())?.action.to_vec())
    }
}

pub(super) fn in_all_one(mut claim: Vec<f64>) -> Vec<f64> {
    let sum: f64 = claim.iter().sum();
    if sum > 0.0 {
        for claim in &mut claim {
            *claim /= sum;
        }
    }
    claim
}

/// `[places]`: the mean perturbation saliency (Greydanus et al. 2018) of each place.
fn saliency(
    env: &dyn Env,
    agent: &dyn Agent,
    context: &ActContext,
    usual: &[f64],
    places: &Places,
) -> Result<Vec<f64>, StudyError> {
    let seen = SeenPicture::of(env, None)?;
    let mut perturber = Perturber::of_stack(seen.picture(), seen.frames());
    let mut bytes = vec![];
    let refused = |error: PolicyError| StudyError::Refused { why: error.to_string() };
    // Every dimension counts by its range.
    let bounds = env.spec().action.bounds();
    let range = |i: usize| bounds.get(i).map_or(1.0, |[low, high]| (high - low).max(1e-12));
    let mut all = vec![];
    for place in 0..perturber.columns() * perturber.rows() {
        let observation = seen.observation(perturber.perturbed(place).as_image(), &mut bytes);
        let mut agent = agent.boxed_clone();
        let action = agent.act(observation, &mut context.clone()).map_err(refused)?.action;
        let apart = action.iter().zip(usual).enumerate().map(|(i, (a, b))| ((a - b) / range(i)).powi(2));
        all.push(apart.sum::<f64>() / 2.0);
    }
    let side = (places.len() as f64).sqrt().round() as usize;
    let (rows, columns) = if side * side == places.len() { (side, side) } else { (1, places.len()) };
    let grid = PatchGrid::tile(columns, rows, 1, 1).map_err(refused)?;
    Ok(perturber.on_patches(&all, grid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_differ_by_probability_or_by_which_is_best() {
        let (a, b) = (&[0.25, 0.75][..], &[0.5, 0.5][..]);
        assert_eq!(Distance::Probabilities.between(a, b), 0.25);
        assert_eq!(Distance::Choice.between(a, b), 1.0, "the first of equals is the best");
        assert_eq!(Distance::Choice.between(&[3.0, 9.0], a), 0.0);
        assert_eq!(Distance::Choice.regret(b, a), Some(0.5), "the second choice was worth as much more");
        assert_eq!(Distance::Choice.regret(&[3.0, 9.0], a), Some(0.0));
        assert_eq!(Distance::Probabilities.regret(b, a), None);
        let box_ = Distance::Ranges(ActionScale::Box(vec![[-1.0, 1.0]]));
        assert_eq!(box_.between(&[0.0], &[1.0]), 0.5);
    }
}
