//! Explanation reports with tests: what an agent attends to, and whether its actions depend on it.
//!
//! The report runs episodes and records the agent's attention; it repeats decisions on modified pictures,
//! each from the same state as the original decision; and it runs whole episodes with the modification in
//! every step. The result is a folder with one self-contained page, and every figure with its data.

#[cfg(test)]
mod cells_tests;
mod files;
#[cfg(test)]
mod heads_tests;
mod jobs;
#[cfg(test)]
mod sensors_tests;
#[cfg(test)]
mod swaps_tests;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use foveate_core::hint::{Setting, Task};
use foveate_core::{Agent, Env};
pub use foveate_explain::study::{
    ANALYSES, Analysis, AskedTwice, CellEdits, ClaimMap, ClaimOfMoments, Compared, Comparison, Covers,
    Finding, HEADS, Heads, Progress, Report, ReportHead, SensorEffects, StudyError, Swaps, UNTRAINED,
};
use foveate_explain::study::{
    HeadsRequest, Scheduler, Study, StudyCost, StudyKind, StudyRequest, has_attention, study, study_heads,
    study_swaps,
};
use foveate_explain::trajectory::Dimension;

use crate::RunError;
use crate::budget;
use crate::evaluate::Labels;
use crate::job_cost::JobCost;
use crate::workers::{Stop, check_count, default_workers};
use files::Folder;
pub(crate) use jobs::ThreadScheduler;

/// A request for a report.
pub struct ExplainRequest<'a> {
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// Names of world and agent.
    pub labels: Labels,
    /// Names of the numbers that the world shows, in its order; empty when it has none.
    pub sensors: &'a [&'a str],
    /// The world is seeded once with this seed; the report shows the first episode of that stream.
    pub seed: u64,
    /// Number of episodes for the statistics.
    pub episodes: usize,
    /// Decisions per episode that are tested.
    pub decisions: usize,
    /// Untrained agents of the same kind that the agent is compared with; [`UNTRAINED`] are advised.
    pub untrained: usize,
    /// Steps after which an episode is truncated; `None` for the world's own limit.
    pub max_steps: Option<usize>,
    /// Of an agent of the calling program: what is known of it, and asked of it. `None` of an agent of a file.
    pub asked: Option<&'a AskedAgent>,
    /// Threads; 0 for as many as there are cores.
    pub workers: usize,
    /// The output folder; an older report there is replaced.
    pub out: &'a Path,
}

/// What reports know of an agent that is in no weight file, and ask of it.
#[derive(Clone, Default)]
pub struct OwnAgent {
    /// False if its answers depend on the observation alone, as far as is known.
    pub has_state: bool,
    /// Whether it says what it attends to.
    pub has_attention: bool,
    /// How often it may be asked beside playing; `None` for as often as the method wants.
    pub questions: Option<usize>,
    /// What is claimed to matter to it.
    pub claims: Vec<Arc<dyn ClaimOfMoments + Send>>,
}

impl fmt::Debug for OwnAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims: Vec<&str> = self.claims.iter().map(|claim| claim.name()).collect();
        f.debug_struct("OwnAgent")
            .field("has_state", &self.has_state)
            .field("has_attention", &self.has_attention)
            .field("questions", &self.questions)
            .field("claims", &claims)
            .finish()
    }
}

/// An agent that is in no weight file, once it was asked the same questions twice.
#[derive(Debug, Clone, Default)]
pub struct AskedAgent {
    /// What was known before.
    pub own: OwnAgent,
    /// Whether it gave the same answers to the same questions.
    pub twice: AskedTwice,
}

impl AskedAgent {
    /// False if its action depends on the observation alone.
    pub const fn remembers(&self) -> bool {
        self.own.has_state || !self.twice.is_steady()
    }

    /// Questions that are left for a report once it was asked twice.
    fn left(&self) -> Option<usize> {
        self.own.questions.map(|questions| questions.saturating_sub(self.twice.questions))
    }

    /// Decisions of an episode that can be tested with these questions, of `decisions`: one with a memory is asked eight times for
    /// each, by either path and with parts of others.
    fn decisions(&self, decisions: usize, episodes: usize) -> usize {
        match self.left().filter(|_| self.remembers()) {
            Some(left) => decisions.min((left / (8 * episodes.max(1))).max(1)),
            None => decisions,
        }
    }
}

/// More decisions in total would need more memory than a laptop has to spare.
const MOST_DECISIONS: usize = 5000;

/// Memory of an episode until the report is written, in bytes: 4.3 MB were measured with CarRacing's `exact`
/// picture, whose copies are the largest, 1.1 MB with `fast`.
const EPISODE: u64 = 5 << 20;

/// Memory of a decision in bytes: 0.6 MB were measured with 529 patches, of the agent's and of a random-weight agent's together.
const DECISION: u64 = 5 << 17;

/// Makes the report; calls `progress` repeatedly.
///
/// # Errors
/// When the world shows no picture, an episode fails, the user asks to stop, or the folder cannot be made. An
/// older report is then untouched.
pub fn run(
    request: &ExplainRequest<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, RunError> {
    if request.asked.is_none() && !has_attention(request.env, request.agent, request.seed) {
        return Err(RunError::BadRequest {
            why: format!(
                "{}: this agent has no attention, so there is nothing to explain about where it looks; {} and {} show what it does",
                request.labels.weights,
                Task::Evaluate,
                Task::Watch
            ),
        });
    }
    let workers = check(request)?;
    let what = study_request(request);
    let kind = StudyKind::of(&what);
    written("explain", request, workers, &kind.cost(&what), stop, progress, |scheduler, progress| {
        study(kind, &what, scheduler, progress)
    })
}

/// Announces the cost of a checked request, makes the report and writes its folder.
fn written(
    job: &'static str,
    request: &ExplainRequest<'_>,
    workers: usize,
    cost: &StudyCost,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
    make: impl FnOnce(&dyn Scheduler, &mut dyn FnMut(Progress)) -> Result<Study, StudyError>,
) -> Result<Report, RunError> {
    let folder = Folder::create(request.out)?;
    stop.announce(cost_of(job, request, cost, workers));
    let progress = &mut |now: Progress| {
        stop.reached(now.done);
        progress(now);
    };
    let failed = |error: StudyError| RunError::of_weights(&request.labels.weights)(error.into());
    let made = make(&ThreadScheduler { workers, stop }, progress).map_err(failed)?;
    let [writing, written] = [0.9, 1.0].map(|done| Progress { what: "writing", done });
    progress(writing);
    let mut report = made.write(&mut |name: &str, bytes: &[u8]| folder.add(name, bytes))?;
    report.head.folder = request.out.to_path_buf();
    folder.commit()?;
    progress(written);
    Ok(report)
}

/// The cost of a study, with the time that it takes on this machine.
fn cost_of(job: &'static str, request: &ExplainRequest<'_>, cost: &StudyCost, workers: usize) -> JobCost {
    JobCost::of_study(job, cost, request.env, request.agent, request.seed, workers)
}

fn study_request<'a>(request: &ExplainRequest<'a>) -> StudyRequest<'a> {
    let dimensions = crate::watch::dials(request.env.spec())
        .into_iter()
        .map(|dial| Dimension { name: dial.name, low: dial.low, high: dial.high })
        .collect();
    StudyRequest {
        env: request.env,
        agent: request.agent,
        labels: request.labels.clone(),
        seed: request.seed,
        episodes: request.episodes,
        decisions: request
            .asked
            .map_or(request.decisions, |asked| asked.decisions(request.decisions, request.episodes)),
        untrained: request.untrained,
        max_steps: request.max_steps,
        dimensions,
        sensors: request.sensors.iter().map(ToString::to_string).collect(),
        questions: request.asked.and_then(AskedAgent::left),
        remembers: request.asked.is_none_or(AskedAgent::remembers),
        claims: request.asked.map_or(vec![], |asked| {
            asked.own.claims.iter().map(|claim| &**claim as &dyn ClaimOfMoments).collect()
        }),
        twice: request.asked.map(|asked| asked.twice),
    }
}

/// Checks the size of a request, and returns the number of threads for it.
fn check(request: &ExplainRequest<'_>) -> Result<usize, RunError> {
    let ExplainRequest { episodes, decisions, .. } = *request;
    let refused = |why: String| Err(RunError::BadRequest { why });
    if episodes == 0 || decisions == 0 || request.max_steps == Some(0) {
        return refused("a report needs at least 1 episode, 1 decision and 1 step; raise what is 0".into());
    }
    if episodes.saturating_mul(decisions) > MOST_DECISIONS {
        return refused(format!(
            "{episodes} episodes with {decisions} decisions each are more than {MOST_DECISIONS} in all; lower {} or {}",
            Setting::Episodes,
            Setting::Decisions
        ));
    }
    check_count(request.workers)?;
    let jobs = episodes.saturating_mul(decisions);
    let workers = if request.workers == 0 { default_workers() } else { request.workers };
    let threads = workers.min(jobs);
    let (params, spec) = (request.agent.params().len(), request.env.spec());
    let starts = EPISODE + 32 * params as u64 + 4 * budget::world(spec);
    budget::workers(threads, params, spec)
        .with(format!("{jobs} decisions"), jobs as u64, DECISION, format!("lower {}", Setting::Decisions))
        .with(format!("{episodes} episodes"), episodes as u64, starts, format!("lower {}", Setting::Episodes))
        .fits_memory("this report")?;
    Ok(workers)
}

/// Analyses the heads of an agent that attends to the cells of a picture; writes a report to a folder, and calls `progress`
/// repeatedly. `sticky` is the probability with which the game's actions stick, where they may.
///
/// # Errors
/// When the agent has no such heads, an episode fails, the user asks to stop, or the folder cannot be made. An older report
/// is then untouched.
pub fn heads(
    request: &ExplainRequest<'_>,
    analysis: &'static dyn Analysis,
    sticky: Option<f64>,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, RunError> {
    let workers = check(request)?;
    let what = HeadsRequest {
        analysis,
        env: request.env,
        agent: request.agent,
        labels: request.labels.clone(),
        seed: request.seed,
        episodes: request.episodes,
        max_steps: request.max_steps,
        decisions: request.decisions,
        sticky,
    };
    written("heads", request, workers, &StudyCost::of_heads(&what), stop, progress, |scheduler, progress| {
        study_heads(what, scheduler, progress)
    })
}

/// Compares what agents act on: what matters, by which path, in which order.
/// `requests` are named rows, all with the folder, seed and size of the first. Calls `progress` repeatedly.
///
/// # Errors
/// When an agent has nothing that can be swapped, an episode fails, the user asks to stop, or the folder cannot be made. An
/// older report is then untouched.
pub fn compare(
    requests: &[(String, ExplainRequest<'_>)],
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Comparison, RunError> {
    let Some((_, first)) = requests.first() else {
        return Err(RunError::BadRequest { why: "there is no agent to compare; name one".into() });
    };
    let workers = check(first)?;
    for (_, request) in &requests[1..] {
        check(request)?;
    }
    let folder = Folder::create(first.out)?;
    let costs = requests.iter().map(|(name, request)| {
        let cost = StudyCost::of_swaps(&study_request(request));
        (name.clone(), cost_of("explain", request, &cost, workers))
    });
    if let Some(cost) = JobCost::of_rows(costs.collect()) {
        stop.announce(cost);
    }
    let mut studies: Vec<(String, _)> = vec![];
    for (number, (name, request)) in requests.iter().enumerate() {
        let failed = |error: StudyError| RunError::of_weights(&request.labels.weights)(error.into());
        let mut part = |now: Progress| {
            let done = (number as f64 + now.done) / requests.len() as f64;
            stop.reached(done);
            progress(Progress { done, ..now });
        };
        let scheduler = ThreadScheduler { workers, stop };
        let study = study_swaps(study_request(request), &scheduler, &mut part).map_err(failed)?;
        let taken: Vec<&str> = studies.iter().map(|(name, _)| &**name).collect();
        studies.push((file_name(name, &taken), study));
    }
    progress(Progress { what: "writing", done: 1.0 });
    let mut comparison = Comparison::write(studies, &mut |name: &str, bytes: &[u8]| folder.add(name, bytes))?;
    comparison.folder = first.out.to_path_buf();
    folder.commit()?;
    Ok(comparison)
}

/// A name as a folder beside the files of a comparison may have it, different from those that are `taken`.
fn file_name(name: &str, taken: &[&str]) -> String {
    const OWN: [&str; 3] = ["figures", "index.html", "report.json"];
    let kept = |c: char| if c.is_alphanumeric() || "-_.:=".contains(c) { c } else { '-' };
    let plain: String = name.trim_start_matches(['.', '/']).chars().map(kept).collect();
    let plain = if plain.is_empty() { "agent".into() } else { plain };
    let free = |name: &String| !OWN.contains(&&**name) && !taken.contains(&&**name);
    let numbered = (2_usize..).map(|number| format!("{plain}-{number}"));
    std::iter::once(plain.clone()).chain(numbered).find(free).unwrap_or(plain)
}

impl From<StudyError> for RunError {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Evaluate(source) => source.into(),
            StudyError::Env(source) => source.into(),
            StudyError::Film(source) => RunError::Film { path: "the report's film".into(), source },
            other => RunError::BadRequest { why: other.to_string() },
        }
    }
}
