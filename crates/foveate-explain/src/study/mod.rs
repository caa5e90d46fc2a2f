//! The study behind a report: what is played, tested and driven, and what follows from it.
//!
//! Episodes are played and recorded; decisions are taken again on changed pictures, each from the very state in which it
//! was taken; episodes are driven again with a change in every step. Worlds are stepped by
//! [`Episode`](foveate_core::episode::Episode) alone, and jobs run where a [`Scheduler`] says.

mod conclude;
mod conditions;
mod figures;
mod film;
mod phases;
mod play;
mod probes;
mod report_page;
mod saved_decision;

use std::fmt;
use std::path::PathBuf;

use foveate_core::{ActContext, Agent, Env, EnvError, EvaluateError, Labels, episode_seed, statistics};
use foveate_film::FilmError;
use serde::Serialize;

use crate::faithful::{Conclusion, Faithfulness};
use crate::figure::{Dress, Figure, raster, svg};
use crate::looks::{around_changes, density, holds, regions, typical_hold};
use crate::trajectory::{Dimension, Trajectory};

/// What is studied.
pub struct StudyRequest<'a> {
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// What to call them.
    pub labels: Labels,
    /// The world is seeded once with this; the first episode of its stream is the one that is shown.
    pub seed: u64,
    /// Episodes that the statistics are over, at least 1.
    pub episodes: usize,
    /// Decisions per episode that are tested, at least 1.
    pub decisions: usize,
    /// Steps after which an episode is over, if the world lets it go on for so long.
    pub max_steps: Option<usize>,
    /// Names and bounds of the action's dimensions.
    pub dimensions: Vec<Dimension>,
}

/// Runs the jobs of a study, at the same time where it can.
pub trait Scheduler: Sync {
    /// Does every job; result `i` belongs to job `i`, whoever did it. `each` is called on the caller's thread after
    /// every job, in no particular order.
    ///
    /// # Errors
    /// That of the first job that fails, in the order of the jobs among those done; or that someone asked to stop.
    fn ordered<J: Send, R: Send>(
        &self,
        jobs: impl Iterator<Item = J> + Send,
        work: impl Fn(J) -> Result<R, StudyError> + Sync,
        each: &mut dyn FnMut(),
    ) -> Result<Vec<R>, StudyError>;

    /// Whether someone asked to stop.
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

/// How far the making of a report is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub what: &'static str,
    /// The part of all work that is done, in 0.0..=1.0.
    pub done: f64,
}

/// What the report found, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyReport {
    /// The folder that it was written to.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Bytes of the page.
    #[serde(skip)]
    pub bytes: usize,
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Its variants.
    pub variant: String,
    /// Where the weights came from.
    pub weights: String,
    /// The seed of the stream.
    pub seed: u64,
    /// Score of every episode; the first one is shown.
    pub scores: Vec<f64>,
    /// Mean of the scores.
    pub mean_score: f64,
    /// Steps of every episode.
    pub steps: Vec<usize>,
    /// Decisions put to the test.
    pub decisions: usize,
    /// Patches that the agent looks at, and patches in all.
    pub looked_at: [usize; 2],
    /// Which part of all looks goes to each ninth of the picture, the most looked-at first.
    pub regions: Vec<(String, f64)>,
    /// Half of all looks are part of a hold of at most so many decisions in a row.
    pub typical_hold: usize,
    /// Patches whose importance was counted, and how many votes one patch in twenty has at least.
    pub importance: (u64, f64),
    /// Large changes of the action that the gaze was looked at around.
    pub changes: usize,
    /// How far two actions lie apart.
    pub distance: &'static str,
    /// Whether it acts, decision by decision, on what it looks at: `supported`, `not supported`, `undecided`.
    pub verdict: String,
    /// Whether covering what it looks at costs more score than covering as much elsewhere.
    pub driving: String,
    /// How much more it costs, for each fill.
    pub cost: Vec<Cost>,
    /// The same of agents of random weights.
    pub random_driving: String,
    /// Whose claims were tested; the second is the null.
    pub claims: Vec<Claim>,
    /// What was done to the pictures of decisions.
    pub interventions: Vec<Intervention>,
    /// What was done to the pictures of whole episodes.
    pub drives: Vec<Drive>,
    /// Perturbation saliency and gaze.
    pub agreement: Agreement,
    /// What the numbers of the method are.
    pub method: Method,
}

/// Numbers that belong to the method and not to what was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Method {
    /// The scale of faithfulness: the claim matters less than, as much as, or to the exclusion of other places.
    pub faithfulness_scale: [i32; 3],
    /// What part of all cases intervals hold.
    pub interval: f64,
    /// Standard deviation, in pixels, of the blur that covers.
    pub blur_px: f64,
    /// Standard deviation, in pixels, of the bump of perturbation saliency.
    pub bump_px: f64,
    /// Where perturbation saliency comes from.
    pub saliency: &'static str,
    /// The ranges of importance that sample patches are drawn from.
    pub ranges: [&'static str; 3],
    /// Episodes below which there is no verdict.
    pub fewest_episodes: usize,
    /// Episodes that are advised.
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

/// What covering the gaze costs in whole episodes, more than covering as much elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// What covered pixels became.
    pub fill: String,
    /// Mean difference of the scores, episode by episode; positive when covering the gaze costs more.
    pub difference: f64,
    /// Its 95 % interval; `null` for one episode.
    pub interval: Option<[f64; 2]>,
}

/// A claim of where an agent looks, tested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Whose.
    pub name: String,
    /// Its faithfulness when places are covered by blur.
    #[serde(serialize_with = "faithfulness")]
    pub blur: Faithfulness,
    /// The same with the mean colour.
    #[serde(serialize_with = "faithfulness")]
    pub mean: Faithfulness,
    /// What it is compared with, for each fill.
    #[serde(serialize_with = "nulls")]
    pub null: [Faithfulness; 2],
    /// What the test says; `None` for the null itself.
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
    /// It was done to agents of random weights.
    pub random_weights: bool,
    /// Mean score.
    pub mean: f64,
    /// Its 95 % interval; `null` for one episode.
    pub interval: Option<[f64; 2]>,
    /// Score of every episode.
    pub scores: Vec<f64>,
}

/// A mean over episodes and its 95 % interval; one episode has none.
pub type Mean = (f64, Option<[f64; 2]>);

/// How far perturbation saliency and gaze agree: means and 95 % intervals over episodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Decisions that were compared.
    pub decisions: usize,
    /// Rank correlation over all patches.
    pub ranks: Mean,
    /// With the gaze of another moment.
    pub ranks_null: Mean,
    /// Intersection over union of the most salient patches and those looked at.
    pub overlap: Mean,
    /// With the gaze of another moment.
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
        let StudyReport { weights, env, picture, variant, seed, .. } = self;
        writeln!(f, "{weights}")?;
        writeln!(f, "  on            {env}, picture {picture}, variant {variant}, seed {seed}")?;
        writeln!(
            f,
            "  tested        {} decisions in {}; the first scores {:.1}",
            self.decisions,
            report_page::count(self.scores.len(), "episode"),
            self.scores.first().copied().unwrap_or(0.0)
        )?;
        if self.scores.len() == 1 {
            writeln!(f, "  intervals     none: one episode has no interval")?;
        }
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
        write!(f, "{}: {:.1} MB", self.folder.join("index.html").display(), self.bytes as f64 / 1e6)
    }
}

/// Whether there is something to explain: a gaze, or a picture that perturbations change. An agent that cannot see this
/// world at all is refused later.
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
    report: StudyReport,
    labels: Labels,
    dimensions: Vec<Dimension>,
}

/// The file that holds every number of the report.
pub const REPORT_FILE: &str = "report.json";

/// Makes the study, calling `progress` now and then.
///
/// # Errors
/// When the world shows no picture, an episode fails, or someone asks to stop.
pub fn study(
    request: StudyRequest<'_>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Study, StudyError> {
    let found = phases::find(&request, scheduler, progress)?;
    let findings = conclude::conclude(&found);
    let figures = figures::figures(&found, &findings, &request.dimensions);
    let report = report(&request, &found, findings);
    let StudyRequest { labels, dimensions, .. } = request;
    Ok(Study { found, figures, report, labels, dimensions })
}

impl Study {
    /// Gives every file of the report, name and bytes, to `add`: figures as SVG, PNG, CSV and JSON, the page, the film,
    /// and last [`REPORT_FILE`].
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(self, add: &mut dyn FnMut(&str, &[u8]) -> Result<(), E>) -> Result<StudyReport, E> {
        let Study { found, figures, mut report, labels, dimensions } = self;
        for figure in figures.all() {
            let name = format!("figures/{}", figure.name);
            let drawn = svg(&figure.drawing, &figure.title, Dress::Alone, &report_page::png);
            add(&format!("{name}.svg"), drawn.as_bytes())?;
            add(&format!("{name}.png"), &report_page::png(raster(&figure.drawing).as_image()))?;
            add(&format!("{name}.csv"), figure.table.csv().as_bytes())?;
            add(&format!("{name}.json"), figure.table.json().to_string().as_bytes())?;
        }
        let numbers = figures_json(figures.all());
        let page = report_page::page(&labels, &found, &report, figures, &dimensions);
        let html = page.html(&report_page::png);
        report.bytes = html.len();
        add("index.html", html.as_bytes())?;
        add("episode.mp4", page.film.mp4)?;
        add(REPORT_FILE, whole_json(&report, &numbers).as_bytes())?;
        Ok(report)
    }
}

/// The numbers of the report.
fn report(request: &StudyRequest<'_>, found: &phases::Found, findings: conclude::Findings) -> StudyReport {
    let labels = request.labels.clone();
    let [ranks, ranks_null, overlap, overlap_null] = findings.agreement;
    let mut regions = regions(&density(&found.episodes, found.grid), found.grid);
    regions.sort_by(|a, b| b.looks.total_cmp(&a.looks));
    let scores: Vec<f64> = found.episodes.iter().map(Trajectory::score).collect();
    StudyReport {
        folder: PathBuf::new(),
        bytes: 0,
        env: labels.env,
        picture: labels.picture,
        variant: labels.variant,
        weights: labels.weights,
        seed: request.seed,
        mean_score: statistics::mean(&scores),
        scores,
        steps: found.episodes.iter().map(Trajectory::len).collect(),
        decisions: found.probed.iter().map(Vec::len).sum(),
        looked_at: [found.cards.first().map_or(0, |card| card.claim.len()), found.grid.len()],
        regions: regions.into_iter().map(|region| (region.name, region.looks)).collect(),
        typical_hold: typical_hold(&holds(&found.episodes)),
        importance: (found.counts.total(), found.counts.quantile(0.95)),
        changes: around_changes(&found.episodes, &found.scale).changes,
        distance: report_page::scale_name(&found.scale),
        verdict: findings.decisions.to_string(),
        driving: findings.driving.to_string(),
        cost: findings.cost,
        random_driving: findings.random_driving.to_string(),
        claims: findings.claims,
        interventions: findings.interventions,
        drives: findings.drives,
        agreement: Agreement { decisions: findings.salient, ranks, ranks_null, overlap, overlap_null },
        method: Method::ours(),
    }
}

/// The rows that each figure is drawn from, a line per figure.
fn figures_json<'a>(figures: impl Iterator<Item = &'a Figure>) -> String {
    let lines: Vec<String> =
        figures.map(|figure| format!("    {:?}: {}", figure.name, figure.table.json())).collect();
    format!("  \"figures\": {{\n{}\n  }}", lines.join(",\n"))
}

/// The report, and behind it the rows of every figure: every number that the page shows.
fn whole_json(report: &StudyReport, figures: &str) -> String {
    let found = serde_json::to_string_pretty(report).unwrap_or_default();
    format!("{},\n{figures}\n}}\n", found.trim_end_matches('}').trim_end())
}
