//! The study behind a report: episodes, interventions and conclusions.
//!
//! Episodes are played and recorded. Decisions are repeated on changed pictures, each from the agent's state at that
//! decision. Episodes are driven again with an intervention in every step. Worlds are stepped by
//! [`Episode`](foveate_core::episode::Episode) alone; a [`Scheduler`] runs the jobs.

pub mod analyses;
mod cells;
mod conditions;
mod cost;
mod fields;
mod film;
mod finding;
mod functions;
mod head;
mod heads;
mod means;
mod phases;
mod play;
mod probes;
mod random_agent;
mod report;
mod saved_decision;
mod seen;
mod sensors;
mod swaps;
mod twice;
mod words;

use std::sync::{Mutex, PoisonError};

use foveate_core::{ActContext, Agent, Env, EnvError, EvaluateError, Labels, episode_seed};
use foveate_film::FilmError;

pub use analyses::ANALYSES;
pub use analyses::asked::FunctionAsked;
pub use analyses::cell_edits::{CellEdits, CellMethod, Contrast, EditFinding};
pub use analyses::covers::{Claim, Cost, Covers, Drive, Intervention, Method};
pub use analyses::edited_worlds::{EditedEpisodes, EditedWorlds};
pub use analyses::erasures::{Erasure, Erasures};
pub use analyses::interest::Interest;
pub use analyses::looks::Looks;
pub use analyses::matters::Swaps;
pub use analyses::message::{Message, Recovered, RecoveredSensor};
pub use analyses::node_links::{NodeAttention, NodeLinks};
pub use analyses::positions::{Encoded, Encodings};
pub use analyses::saliency::{Agreement, Saliency};
pub use analyses::sensor_codes::SensorCodes;
pub use analyses::sensor_effects::{SensorEffects, SensorFinding, SensorMethod};
pub use cost::StudyCost;
pub use fields::{PlacedAttention, Registration};
pub use finding::{Analysis, Bench, Finding, Findings, Numbers};
pub use head::ReportHead;
pub use heads::{HeadNumber, Heads, HeadsRequest, attends_with_heads, heads_analysis, study_heads};
pub use means::RankTest;
pub use report::{Report, Study};
pub(crate) use swaps::strongest;
pub use swaps::{
    Answer, ClaimMap, ClaimOfMoments, Compared, Comparison, EffectMeter, Order, Randomised, Regret,
    SwapReport, UNTRAINED, Untrained, VerdictLine, XrlBench, study_swaps,
};
pub use twice::{AskedFunction, AskedTwice};

use crate::trajectory::Dimension;
use cost::Meter;

/// The analyses of heads that attend to the cells of a picture, of which one is chosen.
pub const HEADS: &[&dyn Analysis] = &[
    &heads::WeightsOfHeads,
    &heads::WhatWhere,
    &heads::BesideSaliency,
    &heads::Inject,
    &heads::Threshold,
    &heads::Planning,
];

/// Confidence level of all intervals.
const INTERVAL: f64 = 0.95;
/// Recommended number of episodes.
const ADVISED_EPISODES: usize = 20;

/// World, agent and size of a study.
pub struct StudyRequest<'a> {
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// Names of world and agent.
    pub labels: Labels,
    /// The world is seeded once with this; the report shows the first episode of that stream.
    pub seed: u64,
    /// Episodes that the statistics are over, at least 1.
    pub episodes: usize,
    /// Decisions per episode that are tested, at least 1.
    pub decisions: usize,
    /// Untrained agents of the same kind that the agent is compared with; [`UNTRAINED`] are advised.
    pub untrained: usize,
    /// Steps after which an episode is truncated; `None` to leave that to the world.
    pub max_steps: Option<usize>,
    /// Names and bounds of the action's dimensions.
    pub dimensions: Vec<Dimension>,
    /// Names of the numbers that the world shows, in its order; empty when it has none.
    pub sensors: Vec<String>,
    /// Of a function of the calling program: whether it gave the same answers twice. `None` of an agent of a file.
    pub twice: Option<AskedTwice>,
    /// How many times the agent may be asked beside playing; `None`: as often as the method wants.
    pub questions: Option<usize>,
    /// False if the agent's action is known to depend on the observation alone.
    pub remembers: bool,
    /// Claims that are judged in place of the agent's own; of none, its own is.
    pub claims: Vec<&'a dyn ClaimOfMoments>,
}

/// Runs the jobs of a study, in parallel where it can.
pub trait Scheduler: Sync {
    /// Runs jobs `0..jobs`. `each` is called on the caller's thread after every job, in no particular order.
    ///
    /// # Errors
    /// The error of the failed job with the lowest number among those that ran, or that a stop was requested.
    fn run(
        &self,
        jobs: usize,
        work: &(dyn Fn(usize) -> Result<(), StudyError> + Sync),
        each: &mut dyn FnMut(),
    ) -> Result<(), StudyError>;

    /// Returns whether a stop was requested.
    fn stopped(&self) -> bool;
}

impl dyn Scheduler + '_ {
    /// Runs every job; result `i` belongs to job `i`. `each` is called as [`Scheduler::run`] calls it.
    ///
    /// # Errors
    /// As [`Scheduler::run`].
    pub fn ordered<J: Send, R: Send>(
        &self,
        jobs: impl IntoIterator<Item = J>,
        work: impl Fn(J) -> Result<R, StudyError> + Sync,
        each: &mut dyn FnMut(),
    ) -> Result<Vec<R>, StudyError> {
        let jobs: Vec<Mutex<Option<J>>> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
        let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
        let one = |number: usize| {
            let job = jobs[number].lock().unwrap_or_else(PoisonError::into_inner).take();
            let result = job.map(&work).transpose()?;
            *results[number].lock().unwrap_or_else(PoisonError::into_inner) = result;
            Ok(())
        };
        self.run(jobs.len(), &one, each)?;
        let results =
            results.into_iter().map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
        results.collect::<Option<Vec<R>>>().ok_or_else(|| EvaluateError::Stopped.into())
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// An episode failed, or someone asked to stop.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// The world failed outside of an episode.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// The episode could not be filmed.
    #[error(transparent)]
    Film(#[from] FilmError),
    /// The world or the machine does not allow a study.
    #[error("{why}")]
    Refused {
        /// What is wrong and what to do.
        why: String,
    },
}

/// Progress of a study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The phase under way.
    pub what: &'static str,
    /// Share of all work done, in 0.0..=1.0.
    pub done: f64,
}

/// A mean over episodes and its 95 % interval; one episode has none.
pub type Mean = (f64, Option<[f64; 2]>);

/// Returns whether there is something to explain: attention, or a picture that can be perturbed. An agent that does not fit the
/// world is refused later.
pub fn has_attention(env: &dyn Env, agent: &dyn Agent, seed: u64) -> bool {
    if env.spec().observation.picture().is_some() {
        return true;
    }
    let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
    env.reset(Some(seed));
    agent.begin_episode(episode_seed(seed, 0));
    agent
        .act(env.observation(), &mut ActContext::default())
        .map_or(true, |decision| decision.attention.is_some())
}

/// What an agent attends to in a world, and so what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StudyKind {
    /// Places of a picture, or nothing.
    Pictures,
    /// Named sensors.
    Sensors,
    /// Cells of a grid world.
    Cells,
    /// What a function of the calling program attends to is not known.
    Functions,
}

impl StudyKind {
    /// What the agent attends to in its world. An agent that does not fit the world is refused later.
    pub fn of(request: &StudyRequest<'_>) -> Self {
        let &StudyRequest { env, agent, seed, .. } = request;
        if request.twice.is_some() {
            StudyKind::Functions
        } else if sensors::listens(env, agent, seed) {
            StudyKind::Sensors
        } else if cells::attends_to_cells(env, agent, seed) {
            StudyKind::Cells
        } else {
            StudyKind::Pictures
        }
    }

    /// The cost of the study.
    pub fn cost(self, request: &StudyRequest<'_>) -> StudyCost {
        match self {
            StudyKind::Pictures => StudyCost::of_pictures(request),
            StudyKind::Sensors => StudyCost::of_sensors(request),
            StudyKind::Cells => StudyCost::of_cells(request),
            StudyKind::Functions => StudyCost::of_functions(request),
        }
    }
}

/// Takes a file of the report: its name and its bytes.
pub type AddFile<'a, E> = dyn FnMut(&str, &[u8]) -> Result<(), E> + 'a;

/// The file that holds every number of the report.
pub const REPORT_FILE: &str = "report.json";

/// Measures what the analyses need, and runs them, reporting progress.
///
/// # Errors
/// When the agent attends to something else than what the world shows, an episode fails, or someone asks to stop.
pub fn study(
    kind: StudyKind,
    request: &StudyRequest<'_>,
    scheduler: &dyn Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Study, StudyError> {
    let meter = Meter::new(kind.cost(request), progress);
    let bench = match kind {
        StudyKind::Pictures => phases::measure(request, scheduler, meter),
        StudyKind::Sensors => sensors::measure(request, scheduler, meter),
        StudyKind::Cells => cells::measure(request, scheduler, meter),
        StudyKind::Functions => functions::measure(request, scheduler, meter),
    }?;
    finish(ANALYSES, bench)
}

/// Runs the analyses of what was measured.
fn finish(analyses: &[&dyn Analysis], bench: Bench<'_>) -> Result<Study, StudyError> {
    let findings = Findings::of(analyses, &bench)?;
    let effects = bench.get::<swaps::Swapped>().and_then(|swaps| swaps.measured.film.clone());
    let Bench { head, dimensions, shown, .. } = bench;
    Ok(Study { report: Report { head, findings }, shown, effects, dimensions })
}
