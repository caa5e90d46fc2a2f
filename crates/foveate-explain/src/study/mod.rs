//! The study behind a report: episodes, interventions and conclusions.
//!
//! Episodes are played and recorded. Decisions are repeated on changed pictures, each from the agent's state at that
//! decision. Episodes are driven again with an intervention in every step. Worlds are stepped by
//! [`Episode`](foveate_core::episode::Episode) alone; a [`Scheduler`] runs the jobs.

mod cells;
mod conclude;
mod conditions;
mod cost;
mod erase;
mod figures;
mod film;
mod head;
mod heads;
mod phases;
mod play;
mod positions;
mod probes;
mod report_page;
mod saved_decision;
mod seen;
mod sensors;
mod swaps;

use std::fmt;

use foveate_core::{ActContext, Agent, Env, EnvError, EvaluateError, Labels, episode_seed};
use foveate_film::FilmError;
use serde::Serialize;

pub use cost::StudyCost;
pub use erase::Erasure;
pub use positions::Encoded;

pub use cells::{
    CellMethod, CellReport, CellStudy, Contrast, EditFinding, EditedEpisodes, NodeAttention,
    attends_to_cells, study_cells,
};
pub use head::ReportHead;
pub use heads::{Analysis, Finding, HeadsReport, HeadsRequest, HeadsStudy, attends_with_heads, study_heads};
pub use sensors::{
    RankTest, Recovered, RecoveredSensor, SensorFinding, SensorMethod, SensorReport, SensorStudy, listens,
    study_sensors,
};

pub(crate) use swaps::strongest;
pub use swaps::{
    Compared, Comparison, EffectMeter, Order, Randomised, Regret, SwapReport, SwapStudy, UNTRAINED,
    Untrained, VerdictLine, study_swaps,
};

use crate::faithful::{Conclusion, Faithfulness};
use crate::figure::{Dress, Figure, raster, svg};
use crate::looks::{around_changes, density, holds, regions, typical_hold};
use crate::trajectory::Dimension;

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
}

/// Runs the jobs of a study, in parallel where it can.
pub trait Scheduler: Sync {
    /// Runs every job; result `i` belongs to job `i`. `each` is called on the caller's thread after every job, in no
    /// particular order.
    ///
    /// # Errors
    /// The error of the failed job with the lowest number among those that ran, or that a stop was requested.
    fn ordered<J: Send, R: Send>(
        &self,
        jobs: impl Iterator<Item = J> + Send,
        work: impl Fn(J) -> Result<R, StudyError> + Sync,
        each: &mut dyn FnMut(),
    ) -> Result<Vec<R>, StudyError>;

    /// Whether a stop was requested.
    fn stopped(&self) -> bool;
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

/// What the report found, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyReport {
    /// What was studied.
    #[serde(flatten)]
    pub head: ReportHead,
    /// What matters, by which path, in which order; `None` where nothing can be swapped.
    pub swaps: Option<SwapReport>,
    /// Patches that the agent looks at, and patches in all.
    pub looked_at: [usize; 2],
    /// Share of attention in each ninth of the picture, the largest first.
    pub regions: Vec<(String, f64)>,
    /// Median time for which a patch stays selected, in decisions and weighted by time.
    pub typical_hold: usize,
    /// Patches counted, and the 95 % quantile of their importance.
    pub importance: (u64, f64),
    /// Large changes of the action around which attention was analysed.
    pub changes: usize,
    /// The distance between two actions, in words.
    pub distance: &'static str,
    /// Whether its decisions depend on what it attends to: `supported`, `not supported`, `undecided`.
    pub verdict: String,
    /// Where that and a line of `swaps` seem to contradict each other: what the difference is.
    pub differences: Vec<String>,
    /// Whether covering attended places costs more score than covering as many other pixels.
    pub driving: String,
    /// The difference in score, for each fill.
    pub cost: Vec<Cost>,
    /// The tested claims; the second is the null.
    pub claims: Vec<Claim>,
    /// Interventions on single decisions.
    pub interventions: Vec<Intervention>,
    /// Interventions on whole episodes.
    pub drives: Vec<Drive>,
    /// Kinds of things taken out of what the world shows.
    pub erasures: Vec<Erasure>,
    /// What the positions of selected patches encode of the world's state.
    pub encoded: Vec<Encoded>,
    /// Agreement of perturbation saliency and attention.
    pub agreement: Agreement,
    /// Constants of the method.
    pub method: Method,
}

/// Constants of the method, so that the report file holds every number of the page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Method {
    /// The scale of faithfulness: the claim matters less than, as much as, or to the exclusion of other places.
    pub faithfulness_scale: [i32; 3],
    /// Confidence level of all intervals.
    pub interval: f64,
    /// Standard deviation, in pixels, of the blur that covers.
    pub blur_px: f64,
    /// Standard deviation, in pixels, of the bump of perturbation saliency.
    pub bump_px: f64,
    /// Where perturbation saliency comes from.
    pub saliency: &'static str,
    /// The ranges of importance that sample patches are drawn from.
    pub ranges: [&'static str; 3],
    /// Fewer episodes give no conclusion.
    pub fewest_episodes: usize,
    /// Recommended number of episodes.
    pub advised_episodes: usize,
}

impl Method {
    fn ours() -> Method {
        Method {
            faithfulness_scale: [-1, 0, 1],
            interval: 0.95,
            blur_px: crate::BLUR_PX,
            bump_px: crate::saliency::BUMP_PX,
            saliency: "Greydanus et al. 2018",
            ranges: crate::interest::Range::ALL.map(crate::interest::Range::name),
            fewest_episodes: crate::faithful::FEWEST_EPISODES,
            advised_episodes: 20,
        }
    }
}

/// Score lost by covering attended places in whole episodes, beyond what covering as many other pixels costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// What covered pixels became.
    pub fill: String,
    /// Mean paired difference of the scores; positive when covering attended places costs more.
    pub difference: f64,
    /// Its 95 % interval; `null` for one episode.
    pub interval: Option<[f64; 2]>,
}

/// A tested claim of what an agent attends to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Whose claim it is.
    pub name: String,
    /// Its faithfulness when places are covered by blur.
    #[serde(serialize_with = "faithfulness")]
    pub blur: Faithfulness,
    /// The same with the mean colour.
    #[serde(serialize_with = "faithfulness")]
    pub mean: Faithfulness,
    /// Faithfulness of the null, for each fill.
    #[serde(serialize_with = "nulls")]
    pub null: [Faithfulness; 2],
    /// The conclusion; `None` for the null itself.
    #[serde(serialize_with = "verdict")]
    pub verdict: Option<Conclusion>,
}

impl Claim {
    fn new(
        name: &str,
        [blur, mean]: [Faithfulness; 2],
        null: [Faithfulness; 2],
        verdict: Option<Conclusion>,
    ) -> Self {
        Claim { name: name.to_owned(), blur, mean, null, verdict }
    }
}

fn faithfulness<S: serde::Serializer>(of: &Faithfulness, to: S) -> Result<S::Ok, S::Error> {
    (of.value, of.interval).serialize(to)
}

fn nulls<S: serde::Serializer>(of: &[Faithfulness; 2], to: S) -> Result<S::Ok, S::Error> {
    of.map(|of| (of.value, of.interval)).serialize(to)
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn verdict<S: serde::Serializer>(of: &Option<Conclusion>, to: S) -> Result<S::Ok, S::Error> {
    of.map(|verdict| verdict.to_string()).serialize(to)
}

/// An intervention on decisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervention {
    /// What was done.
    pub name: String,
    /// What covered pixels became.
    pub fill: String,
    /// Mean change of the action, in 0.0..=1.0.
    pub change: f64,
    /// Its 95 % interval over episodes; `null` for one episode.
    pub interval: Option<[f64; 2]>,
    /// Mean size of the change of the picture, in 0.0..=1.0.
    pub size: f64,
}

/// Whole episodes with an intervention in every step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drive {
    /// What was done.
    pub name: String,
    /// What covered pixels became; empty where nothing was covered.
    pub fill: String,
    /// Mean score.
    pub mean: f64,
    /// Its 95 % interval; `null` for one episode.
    pub interval: Option<[f64; 2]>,
    /// Score of every episode.
    pub scores: Vec<f64>,
}

/// A mean over episodes and its 95 % interval; one episode has none.
pub type Mean = (f64, Option<[f64; 2]>);

/// Agreement of perturbation saliency and attention: means and 95 % intervals over episodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Decisions that were compared.
    pub decisions: usize,
    /// Rank correlation over all patches.
    pub ranks: Mean,
    /// The same against the attention of another decision.
    pub ranks_null: Mean,
    /// Intersection over union of the most salient and the selected patches.
    pub overlap: Mean,
    /// The same against the attention of another decision.
    pub overlap_null: Mean,
}

impl StudyReport {
    /// What covering the attended places costs in score, in a sentence.
    pub fn driving_sentence(&self) -> String {
        report_page::driving_sentence(self)
    }
}

impl fmt::Display for StudyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.lines(f, &format!("{}, picture {}", self.head.env, self.head.picture))?;
        swaps::verdict_lines(f, self.swaps.as_ref())?;
        for claim in &self.claims {
            let told = |of: Faithfulness| match of.interval {
                Some([from, to]) => format!("{:5.2} ({from:5.2} … {to:5.2})", of.value),
                None => format!("{:5.2}", of.value),
            };
            let verdict = claim.verdict.map_or("the null".to_owned(), |verdict| verdict.to_string());
            writeln!(
                f,
                "  {:32} blur {}  mean {}  {verdict}",
                claim.name,
                told(claim.blur),
                told(claim.mean)
            )?;
        }
        writeln!(
            f,
            "  it acts on what it looks at: {}; its score rests on it: {}",
            self.verdict, self.driving
        )?;
        swaps::difference_lines(f, &self.differences)?;
        self.head.place(f)
    }
}

/// Whether there is something to explain: attention, or a picture that can be perturbed. An agent that does not fit the
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

/// A finished study.
pub struct Study {
    found: phases::Found,
    figures: figures::Figures,
    swaps: Option<SwapStudy>,
    report: StudyReport,
    labels: Labels,
    dimensions: Vec<Dimension>,
}

/// Takes a file of the report: its name and its bytes.
pub type AddFile<'a, E> = dyn FnMut(&str, &[u8]) -> Result<(), E> + 'a;

/// The file that holds every number of the report.
pub const REPORT_FILE: &str = "report.json";

/// Runs the study, reporting progress.
///
/// # Errors
/// When the world shows no picture, an episode fails, or someone asks to stop.
pub fn study(
    request: StudyRequest<'_>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Study, StudyError> {
    seen::pictures(request.env)?;
    let mut found = phases::find(&request, scheduler, progress)?;
    let swaps = found.swaps.take();
    let findings = conclude::conclude(&found);
    let figures = figures::figures(&found, &findings, &request.dimensions);
    let report = report(&request, &found, findings, swaps.as_ref());
    let StudyRequest { labels, dimensions, .. } = request;
    Ok(Study { found, figures, swaps, report, labels, dimensions })
}

impl Study {
    /// Passes name and bytes of every file of the report to `add`: figures as SVG, PNG, CSV and JSON, the page, the film,
    /// and last [`REPORT_FILE`].
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(self, add: &mut AddFile<'_, E>) -> Result<StudyReport, E> {
        let Study { found, figures, swaps, mut report, labels, dimensions } = self;
        let all = || swaps.iter().flat_map(SwapStudy::figures).chain(figures.all());
        for figure in all() {
            write_figure(figure, add)?;
        }
        let numbers = figures_json(all());
        let mut page = report_page::page(&labels, &found, &report, figures, &dimensions, swaps.as_ref());
        page.put_first(swaps);
        let html = page.html(&report_page::png);
        report.head.bytes = html.len();
        add("index.html", html.as_bytes())?;
        add("episode.mp4", page.film.mp4)?;
        add(REPORT_FILE, whole_json(&report, &numbers).as_bytes())?;
        Ok(report)
    }
}

/// The numbers of the report.
fn report(
    request: &StudyRequest<'_>,
    found: &phases::Found,
    findings: conclude::Findings,
    swaps: Option<&SwapStudy>,
) -> StudyReport {
    let [ranks, ranks_null, overlap, overlap_null] = findings.agreement;
    let mut regions = regions(&density(&found.episodes, found.grid), found.grid);
    regions.sort_by(|a, b| b.looks.total_cmp(&a.looks));
    let decisions = found.probed.iter().map(Vec::len).sum();
    StudyReport {
        head: ReportHead::new(request.labels.clone(), request.seed, found.episodes.iter(), decisions),
        swaps: swaps.map(|swaps| swaps.report().clone()),
        looked_at: [found.looked_at(), found.grid.len()],
        regions: regions.into_iter().map(|region| (region.name, region.looks)).collect(),
        typical_hold: typical_hold(&holds(&found.episodes)),
        importance: (found.counts.total(), found.counts.quantile(0.95)),
        changes: around_changes(&found.episodes, &found.scale).changes,
        distance: report_page::scale_name(&found.scale),
        differences: swaps::differences(
            &report_page::COVERING,
            &findings.decisions.to_string(),
            swaps.map(SwapStudy::report),
        ),
        verdict: findings.decisions.to_string(),
        driving: findings.driving.to_string(),
        cost: findings.cost,
        claims: findings.claims,
        interventions: findings.interventions,
        drives: findings.drives,
        erasures: found.erasures.clone(),
        encoded: found.encoded.clone(),
        agreement: Agreement { decisions: findings.salient, ranks, ranks_null, overlap, overlap_null },
        method: Method::ours(),
    }
}

/// A figure as SVG, PNG, CSV and JSON.
fn write_figure<E>(figure: &Figure, add: &mut AddFile<'_, E>) -> Result<(), E> {
    let name = format!("figures/{}", figure.name);
    let drawn = svg(&figure.drawing, &figure.title, Dress::Alone, &report_page::png);
    add(&format!("{name}.svg"), drawn.as_bytes())?;
    add(&format!("{name}.png"), &report_page::png(raster(&figure.drawing).as_image()))?;
    add(&format!("{name}.csv"), figure.table.csv().as_bytes())?;
    add(&format!("{name}.json"), figure.table.json().to_string().as_bytes())
}

/// The rows that each figure is drawn from, a line per figure.
fn figures_json<'a>(figures: impl Iterator<Item = &'a Figure>) -> String {
    let lines: Vec<String> =
        figures.map(|figure| format!("    {:?}: {}", figure.name, figure.table.json())).collect();
    format!("  \"figures\": {{\n{}\n  }}", lines.join(",\n"))
}

/// The report, and behind it the rows of every figure: every number that the page shows.
fn whole_json(report: &impl Serialize, figures: &str) -> String {
    let found = serde_json::to_string_pretty(report).unwrap_or_default();
    format!("{},\n{figures}\n}}\n", found.trim_end_matches('}').trim_end())
}
