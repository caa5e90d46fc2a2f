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
mod moment;
mod places;
mod report;

use foveate_core::Seed;

pub use compare::{Compared, Comparison};
pub use report::{Order, SwapReport, Untrained, VerdictLine};

use self::measure::{Plan, measure};
use super::phases::random_weights;
use super::sensors::write_figure;
use super::{AddFile, Progress, REPORT_FILE, Scheduler, StudyError, StudyRequest, figures_json, whole_json};
use crate::figure::Figure;

/// Untrained agents that an agent is compared with.
pub const UNTRAINED: usize = 20;
/// Decisions of an episode in which places of the observation are swapped.
const INPUTS: usize = 3;
/// Episodes, decisions and steps of each untrained agent.
const UNTRAINED_SIZE: [usize; 3] = [5, 6, 200];

/// A finished study.
pub struct SwapStudy {
    report: SwapReport,
    figures: Vec<Figure>,
}

impl SwapStudy {
    /// What was found.
    pub const fn report(&self) -> &SwapReport {
        &self.report
    }

    /// Passes name and bytes of every file to `add`: figures as SVG, PNG, CSV and JSON, every effect as CSV, and last
    /// [`REPORT_FILE`]; names begin with `folder`.
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(self, folder: &str, add: &mut AddFile<'_, E>) -> Result<SwapReport, E> {
        let SwapStudy { report, figures } = self;
        let mut add = |name: &str, bytes: &[u8]| add(&format!("{folder}{name}"), bytes);
        for figure in &figures {
            write_figure(figure, &mut add)?;
        }
        add(REPORT_FILE, whole_json(&report, &figures_json(figures.iter())).as_bytes())?;
        Ok(report)
    }
}

/// Studies an agent, and `untrained` agents of the same kind with random weights.
///
/// # Errors
/// When an episode fails, the agent has neither attention nor a picture, or someone asks to stop.
pub fn study_swaps(
    request: &StudyRequest<'_>,
    untrained: usize,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<SwapStudy, StudyError> {
    let seed = Seed::root(request.seed).child("swaps", 0);
    let plan = Plan {
        env: request.env,
        agent: request.agent,
        seed: request.seed,
        episodes: request.episodes,
        decisions: request.decisions,
        inputs: INPUTS,
        max_steps: request.max_steps,
    };
    let share = if untrained == 0 { 1.0 } else { 0.6 };
    let measured = measure(&plan, seed, scheduler, &mut |now: Progress| {
        progress(Progress { done: share * now.done, ..now });
    })?;
    if measured.units.is_none() && measured.places == 0 {
        return Err(StudyError::Refused {
            why: format!(
                "{}: this agent has no attention that can be opened, and its world shows nothing with places that could be swapped",
                request.labels.weights
            ),
        });
    }
    let [episodes, decisions, steps] = UNTRAINED_SIZE;
    let mut others = vec![];
    for number in 0..untrained {
        let agent = random_weights(request.agent, seed.child("untrained", number as u64));
        let plan = Plan {
            agent: &*agent,
            episodes: episodes.min(request.episodes),
            decisions: decisions.min(request.decisions),
            inputs: usize::from(measured.units.is_none()),
            max_steps: Some(steps.min(request.max_steps.unwrap_or(steps))),
            ..plan
        };
        others.push(measure(&plan, seed.child("untrained", number as u64), scheduler, &mut |_| ())?);
        let done = share + (1.0 - share) * (number + 1) as f64 / untrained as f64;
        progress(Progress { what: "untrained agents", done });
    }
    let report = report::report(request, &measured, &others);
    let figures = figures::figures(&report, &measured);
    Ok(SwapStudy { report, figures })
}
