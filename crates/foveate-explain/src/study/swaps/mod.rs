//! What matters, by which path, in which order: decisions are taken again with parts of them from other episodes.
//!
//! A decision depends on what the attention hands on (which places, and what is there) and on the memory. Each is replaced by that
//! of a *donor*, a decision of another episode, and the change of the action measured:
//!
//! * Natural variation: everything from the donor, in the action's own scale. Where the action hardly moves, nothing can be
//!   explained.
//! * Paths: the share of it that comes with what is seen or attended to alone, and with the memory alone.
//! * Rightness: how much further the action moves when the parts that a claim names come from the donor, than when as many parts
//!   do that it does not name. Once over all places of the observation (everything computed again), once over what is attended
//!   (values swapped, weights and memory kept).
//! * Of the moment: the same, less that of the parts that the claims in other episodes name.

mod claims;
mod compare;
pub(super) mod effects;
pub(super) mod figures;
pub(super) mod measure;
mod meter;
mod moment;
pub(super) mod page;
mod places;
pub(super) mod report;
mod verdict;
#[cfg(test)]
mod verdict_tests;
mod xrl_bench;

use std::any::Any;
use std::cell::RefCell;

use foveate_core::{ActContext, Agent, Seed, episode_seed};

pub use claims::{ClaimMap, ClaimOfMoments};
pub use compare::{Compared, Comparison};
pub use effects::Regret;
pub use meter::EffectMeter;
pub(super) use report::head;
pub use report::{Order, Randomised, SwapReport, Untrained};
pub use verdict::{Answer, VerdictLine};
pub use xrl_bench::XrlBench;

pub(super) use measure::{Measured, Measurement, Sampled};
pub(crate) use meter::strongest;
pub(super) use moment::Moment;
pub(super) use page::{OwnTest, differences};
pub(super) use places::Places;

use self::effects::Effort;
use self::measure::{Plan, measure};
use super::cost::{Meter, StudyCost};
use super::finding::{Bench, EpisodeShown};
use super::random_agent::{random_tensors, random_weights};
use super::twice::AskedFunction;
use super::{ANALYSES, Progress, Scheduler, Study, StudyError, StudyRequest, finish};

/// Untrained agents that an agent is compared with.
pub const UNTRAINED: usize = 20;
/// Decisions of an episode in which places of the observation are swapped.
pub(super) const INPUTS: usize = 3;
/// Episodes, decisions and steps of each untrained agent.
const UNTRAINED_SIZE: [usize; 3] = [5, 6, 200];

/// Decisions of an agent with parts swapped, and those of agents that it is compared with.
pub(super) struct Swapped {
    pub(super) measured: Measurement,
    /// Untrained agents.
    pub(super) others: Vec<Measurement>,
    /// The agent with parts of its weights at random.
    pub(super) randomised: Vec<Randomised>,
}

/// Most parts of an agent that are drawn at random by themselves.
const MOST_PARTS: usize = 8;

/// The parts of an agent's weights, from the first to the last: tensors of a common name. Of many, the first word of the name.
fn parts(agent: &dyn Agent) -> Vec<(String, Vec<String>)> {
    let tensors = agent.tensors();
    let grouped = |of: fn(&str) -> &str| {
        let mut parts: Vec<(String, Vec<String>)> = vec![];
        for tensor in &tensors {
            let part = of(&tensor.name);
            match parts.iter_mut().find(|(name, _)| name == part) {
                Some((_, all)) => all.push(tensor.name.clone()),
                None => parts.push((part.to_owned(), vec![tensor.name.clone()])),
            }
        }
        parts
    };
    let layers = grouped(|name| name.rsplit_once('.').map_or(name, |(layer, _)| layer));
    let parts = if layers.len() > MOST_PARTS {
        grouped(|name| name.split_once('.').map_or(name, |(first, _)| first))
    } else {
        layers
    };
    if parts.len() > MOST_PARTS { vec![] } else { parts }
}

/// Returns whether an agent has parts that can be swapped: attention that can be opened, or a world with places.
pub(super) fn swappable(request: &StudyRequest<'_>) -> bool {
    let (mut env, mut agent) = (request.env.boxed_clone(), request.agent.boxed_clone());
    env.reset(Some(request.seed));
    agent.begin_episode(episode_seed(request.seed, 0));
    Moment::of(0, &*env, &*agent, &ActContext::default(), false).is_ok_and(|moment| moment.can_be_swapped())
}

/// Episodes, decisions and steps of each untrained agent of this study.
pub(super) fn untrained_size(request: &StudyRequest<'_>) -> [usize; 3] {
    let [episodes, decisions, steps] = UNTRAINED_SIZE;
    let limit = request.max_steps.unwrap_or(steps);
    [episodes.min(request.episodes), decisions.min(request.decisions), steps.min(limit)]
}

/// Agents with parts drawn at random: each part alone, and with all behind it; the last part alone is both.
pub(super) fn partly_random(request: &StudyRequest<'_>) -> usize {
    if request.untrained == 0 { 0 } else { (2 * parts(request.agent).len()).saturating_sub(1) }
}

/// The study that stands first in a report, whose cost begins with [`StudyCost::of_swaps`]; `None` where nothing can be swapped.
pub(super) fn first_part(
    request: &StudyRequest<'_>,
    scheduler: &dyn Scheduler,
    meter: &mut Meter<'_>,
) -> Result<Option<Swapped>, StudyError> {
    find(request, None, scheduler, meter)
}

/// The study of decisions that are known, with effects for the film of their first episode; `None` where nothing can be swapped.
pub(super) fn of_sampled(
    request: &StudyRequest<'_>,
    sampled: Sampled,
    scheduler: &dyn Scheduler,
    meter: &mut Meter<'_>,
) -> Result<Option<Swapped>, StudyError> {
    find(request, Some(sampled), scheduler, meter)
}

/// Studies an agent, and untrained agents of the same kind.
///
/// # Errors
/// When an episode fails, the agent has neither attention nor a picture, or someone asks to stop.
pub fn study_swaps(
    request: StudyRequest<'_>,
    scheduler: &dyn Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Study, StudyError> {
    let mut meter = Meter::new(StudyCost::of_swaps(&request), progress);
    let Some(swapped) = first_part(&request, scheduler, &mut meter)? else {
        return Err(nothing_to_swap(&request));
    };
    let head = report::head(&request.labels, request.seed, &swapped.measured);
    let mut measured: Vec<Box<dyn Any>> = vec![Box::new(swapped)];
    measured.extend(AskedFunction::of(&request).map(|asked| Box::new(asked) as Box<dyn Any>));
    let (dimensions, shown, meter) = (request.dimensions, EpisodeShown::default(), RefCell::new(meter));
    let bench = Bench { head, dimensions, shown, measured, scheduler, meter };
    finish(ANALYSES, bench)
}

/// The error for an agent of which [`first_part`] finds nothing.
pub(super) fn nothing_to_swap(request: &StudyRequest<'_>) -> StudyError {
    StudyError::Refused {
        why: format!(
            "{}: this agent has no attention that can be opened, and its world shows nothing with places that could be swapped",
            request.labels.weights
        ),
    }
}

fn find(
    request: &StudyRequest<'_>,
    sampled: Option<Sampled>,
    scheduler: &dyn Scheduler,
    meter: &mut Meter<'_>,
) -> Result<Option<Swapped>, StudyError> {
    let untrained = request.untrained;
    let seed = Seed::root(request.seed).child("swaps", 0);
    let (effort, inputs) = Effort::of(request);
    // Perturbation saliency, the claim where nobody makes one, asks hundreds of questions at every moment.
    let salient = request.twice.is_none() || request.questions.is_none() || !request.claims.is_empty();
    let inputs = if salient { inputs } else { 0 };
    let plan = Plan {
        env: request.env,
        agent: request.agent,
        seed: request.seed,
        episodes: request.episodes,
        decisions: request.decisions,
        inputs,
        max_steps: request.max_steps,
        film: sampled.is_some(),
        effort,
        remembers: request.remembers,
        claims: &request.claims,
        bench: true,
    };
    let parts_of = |first, then| [meter.part(first), meter.part(then)];
    let (own, others) = (parts_of("playing episodes", "swapping parts"), meter.part("untrained agents"));
    let measured = measure(&plan, seed, sampled, scheduler, meter, own)?;
    if measured.units.is_none() && measured.places == 0 {
        return Ok(None);
    }
    let lengths = measured.episodes.iter().filter_map(|all| Some(all.last()?.step + 1));
    meter.length(lengths.sum::<usize>() / measured.episodes.len().max(1));
    meter.finish(own[1]);
    let [episodes, decisions, steps] = untrained_size(request);
    let parts = if untrained == 0 { vec![] } else { parts(request.agent) };
    let mut done = 0;
    let mut small = |agent: &dyn Agent, seed: Seed| {
        let plan = Plan {
            agent,
            episodes,
            decisions,
            inputs: usize::from(measured.units.is_none()),
            max_steps: Some(steps),
            film: false,
            bench: false,
            ..plan
        };
        let measured = measure(&plan, seed, None, scheduler, meter, [others, others + 1]);
        done += 1;
        meter.reach(others + 1, done * episodes * decisions);
        measured
    };
    let mut others = vec![];
    for number in 0..untrained {
        let seed = seed.child("untrained", number as u64);
        others.push(small(&*random_weights(request.agent, seed), seed)?);
    }
    let mut randomised = vec![];
    for cascade in [false, true] {
        for number in 0..parts.len() {
            let random = if cascade { &parts[number..] } else { &parts[number..=number] };
            // The last part alone is the first step of the cascade.
            if cascade && random.len() == 1 {
                continue;
            }
            let seed = seed.child("randomised", number as u64);
            let which = |name: &str| random.iter().any(|(_, tensors)| tensors.iter().any(|own| own == name));
            let agent = random_tensors(request.agent, seed, &which);
            let name = parts[number].0.clone();
            randomised.push(Randomised::new(name, cascade, &small(&*agent, seed)?));
        }
    }
    Ok(Some(Swapped { measured, others, randomised }))
}
