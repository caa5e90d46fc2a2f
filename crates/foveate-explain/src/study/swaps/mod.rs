//! What matters, by which path, in which order: decisions are taken again with parts of them from other episodes.
//!
//! A decision depends on what the attention hands on (which places, and what is there) and on the memory. Each is replaced by that
//! of a *donor*, a decision of another episode, and the change of the action measured:
//!
//! * **N**, natural variation: everything from the donor, in the action's own scale. Where the action hardly moves, nothing can be
//!   explained.
//! * **M**, the share of N that comes with the attended path alone; beside it that of the memory alone.
//! * **F**, the order: the action's change when the parts that the agent claims to matter most are swapped first, between that of
//!   random parts (0) and that of the best order of single parts (1); below 0 the claim misleads. Once over what is attended
//!   (values swapped, weights and memory kept), once over all places of the observation (everything computed again).

mod compare;
mod effects;
mod figures;
mod measure;
mod meter;
mod moment;
mod page;
mod places;
mod report;
#[cfg(test)]
mod verdict_tests;

use foveate_core::{Agent, Seed};

pub use compare::{Compared, Comparison};
pub use effects::Regret;
pub use meter::EffectMeter;
pub use report::{Order, Randomised, SwapReport, Untrained, VerdictLine};

pub(super) use measure::Sampled;
pub(crate) use meter::strongest;
pub(super) use moment::Moment;
pub(super) use page::{OwnTest, difference_lines, differences, verdict_lines};

use self::measure::{Plan, measure};
use super::phases::{random_tensors, random_weights};
use super::{
    AddFile, Progress, REPORT_FILE, Scheduler, StudyError, StudyRequest, figures_json, whole_json,
    write_figure,
};
use crate::figure::Figure;
use crate::page::FilmEffects;

/// Untrained agents that an agent is compared with.
pub const UNTRAINED: usize = 20;
/// Decisions of an episode in which places of the observation are swapped.
pub(super) const INPUTS: usize = 3;
/// Episodes, decisions and steps of each untrained agent.
pub const UNTRAINED_SIZE: [usize; 3] = [5, 6, 200];

/// A finished study.
pub struct SwapStudy {
    report: SwapReport,
    figures: Vec<Figure>,
    film: Option<FilmEffects>,
}

impl SwapStudy {
    /// What was found.
    pub const fn report(&self) -> &SwapReport {
        &self.report
    }

    pub(super) const fn film(&self) -> Option<&FilmEffects> {
        self.film.as_ref()
    }

    pub(super) fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter()
    }

    /// Passes name and bytes of every file to `add`: figures as SVG, PNG, CSV and JSON, every effect as CSV, and last
    /// [`REPORT_FILE`]; names begin with `folder`.
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(self, folder: &str, add: &mut AddFile<'_, E>) -> Result<SwapReport, E> {
        let SwapStudy { report, figures, .. } = self;
        let mut add = |name: &str, bytes: &[u8]| add(&format!("{folder}{name}"), bytes);
        for figure in &figures {
            write_figure(figure, &mut add)?;
        }
        add(REPORT_FILE, whole_json(&report, &figures_json(figures.iter())).as_bytes())?;
        Ok(report)
    }
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

/// Share of a report's work that is the study of swaps.
const FIRST_PART: f64 = 0.3;

/// The study that stands first in a report; `None` where nothing can be swapped.
pub(super) fn first_part(
    request: &StudyRequest<'_>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<SwapStudy>, StudyError> {
    let mut part = |now: Progress| progress(Progress { done: FIRST_PART * now.done, ..now });
    find(request, None, scheduler, &mut part)
}

/// The study of decisions that are known, with effects for the film of their first episode; `None` where nothing can be swapped.
pub(super) fn of_sampled(
    request: &StudyRequest<'_>,
    sampled: Sampled,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<SwapStudy>, StudyError> {
    find(request, Some(sampled), scheduler, progress)
}

/// The progress of what comes after [`first_part`].
pub(super) fn second_part(progress: &mut dyn FnMut(Progress)) -> impl FnMut(Progress) {
    |now| progress(Progress { done: FIRST_PART + (1.0 - FIRST_PART) * now.done, ..now })
}

/// Studies an agent, and untrained agents of the same kind.
///
/// # Errors
/// When an episode fails, the agent has neither attention nor a picture, or someone asks to stop.
pub fn study_swaps(
    request: &StudyRequest<'_>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<SwapStudy, StudyError> {
    find(request, None, scheduler, progress)?.ok_or_else(|| StudyError::Refused {
        why: format!(
            "{}: this agent has no attention that can be opened, and its world shows nothing with places that could be swapped",
            request.labels.weights
        ),
    })
}

fn find(
    request: &StudyRequest<'_>,
    sampled: Option<Sampled>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<SwapStudy>, StudyError> {
    let untrained = request.untrained;
    let seed = Seed::root(request.seed).child("swaps", 0);
    let plan = Plan {
        env: request.env,
        agent: request.agent,
        seed: request.seed,
        episodes: request.episodes,
        decisions: request.decisions,
        inputs: INPUTS,
        max_steps: request.max_steps,
        film: sampled.is_some(),
    };
    let share = if untrained == 0 { 1.0 } else { 0.6 };
    let measured = measure(&plan, seed, sampled, scheduler, &mut |now: Progress| {
        progress(Progress { done: share * now.done, ..now });
    })?;
    if measured.units.is_none() && measured.places == 0 {
        return Ok(None);
    }
    let [episodes, decisions, steps] = UNTRAINED_SIZE;
    let parts = if untrained == 0 { vec![] } else { parts(request.agent) };
    let (mut done, total) = (0, untrained + (2 * parts.len()).saturating_sub(1));
    let mut small = |agent: &dyn Agent, seed: Seed| {
        let plan = Plan {
            agent,
            episodes: episodes.min(request.episodes),
            decisions: decisions.min(request.decisions),
            inputs: usize::from(measured.units.is_none()),
            max_steps: Some(steps.min(request.max_steps.unwrap_or(steps))),
            film: false,
            ..plan
        };
        let measured = measure(&plan, seed, None, scheduler, &mut |_| ());
        done += 1;
        let done = share + (1.0 - share) * done as f64 / total as f64;
        progress(Progress { what: "untrained agents", done });
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
    let report = report::report(request, &measured, &others, randomised);
    let figures = figures::figures(&report, &measured);
    Ok(Some(SwapStudy { report, figures, film: measured.film }))
}
