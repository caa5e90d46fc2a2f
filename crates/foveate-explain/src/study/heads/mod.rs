//! Analyses of an agent whose heads attend to the cells of its picture, after Mott et al. 2019: one file each.
//!
//! All of them read decisions that were opened at their attention ([`Agent::open`]), and some change what was attended to, or
//! what was seen, before the decision ends. Every number is a mean over episodes with its 95 % interval; where chance alone
//! would give something, that is the null beside it.

mod drive;
mod inject;
mod maps;
mod planning;
mod saliency;
mod threshold;
mod weights;
mod what_where;

use std::fmt;
use std::path::PathBuf;

use foveate_core::{
    ActContext, Agent, Env, Labels, Opened, PatchGrid, RolloutJob, Seed, Tokens, episode_seed,
};
use serde::Serialize;

use super::play::EpisodeStart;
use super::report_page::count;
use super::{
    AddFile, Mean, Progress, REPORT_FILE, Scheduler, StudyError, figures_json, whole_json, write_figure,
};
use crate::figure::Figure;

/// Which analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Analysis {
    /// Where each head attends: overlays, marginals, entropy.
    Weights,
    /// Whether a head asks for contents or for places.
    WhatWhere,
    /// Perturbation saliency of policy and value, beside attention.
    Saliency,
    /// An object pasted into the picture, against the same moments without it.
    Inject,
    /// The score with small weights set to zero.
    Threshold,
    /// Whether heads attend to where something will move, and whether arrivals there change what is done.
    Planning,
}

impl Analysis {
    /// All of them.
    pub const ALL: [Analysis; 6] = [
        Analysis::Weights,
        Analysis::WhatWhere,
        Analysis::Saliency,
        Analysis::Inject,
        Analysis::Threshold,
        Analysis::Planning,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Analysis::Weights => "weights",
            Analysis::WhatWhere => "what-where",
            Analysis::Saliency => "saliency",
            Analysis::Inject => "inject",
            Analysis::Threshold => "threshold",
            Analysis::Planning => "planning",
        }
    }

    /// How often every episode is played in full.
    pub const fn times(self) -> usize {
        match self {
            Analysis::Threshold => threshold::TIMES,
            _ => 1,
        }
    }
}

/// What may mislead where one other action changes all that follows, in the same way each time.
const DETERMINISTIC: &str = "in a deterministic game one other action leads to another course of the game, in every episode that \
                             begins alike, so the score at one t may be far from those beside it; judge by games with sticky \
                             actions";

/// World, agent and size of an analysis.
pub struct HeadsRequest<'a> {
    /// Which analysis.
    pub analysis: Analysis,
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// Names of world and agent.
    pub labels: Labels,
    /// The world is seeded once with this.
    pub seed: u64,
    /// Episodes, at least 1.
    pub episodes: usize,
    /// Steps after which an episode is truncated; `None` to leave that to the world.
    pub max_steps: Option<usize>,
    /// Decisions per episode that are looked at closely, at least 1; for `saliency`.
    pub decisions: usize,
    /// Of a game whose actions may stick: the probability; 0 is a deterministic game.
    pub sticky: Option<f64>,
}

/// A number that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What it is.
    pub name: String,
    /// Its mean over episodes, and the 95 % interval.
    pub value: Mean,
    /// What chance gives.
    pub null: Option<Mean>,
    /// The paired difference of the two.
    pub above_null: Option<Mean>,
}

impl Finding {
    fn plain(name: impl Into<String>, values: &[f64]) -> Self {
        Finding { name: name.into(), value: super::sensors::over(values), null: None, above_null: None }
    }

    /// With the null of each episode.
    fn against(name: impl Into<String>, values: &[f64], null: &[f64]) -> Self {
        let apart: Vec<f64> = values.iter().zip(null).map(|(a, b)| a - b).collect();
        Finding {
            name: name.into(),
            value: super::sensors::over(values),
            null: Some(super::sensors::over(null)),
            above_null: Some(super::sensors::over(&apart)),
        }
    }
}

/// What an analysis found, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadsReport {
    /// The folder that it was written to.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Files of figures.
    #[serde(skip)]
    pub pictures: Vec<String>,
    /// Which analysis.
    pub analysis: Analysis,
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
    /// Of a game whose actions may stick: the probability; 0 is a deterministic game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<f64>,
    /// Why the numbers may mislead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<&'static str>,
    /// Heads, rows and columns of cells.
    pub attention: [usize; 3],
    /// Score of every episode, played as the agent is.
    pub scores: Vec<f64>,
    /// The numbers.
    pub findings: Vec<Finding>,
    /// Confidence level of all intervals.
    pub interval: f64,
}

/// A number with about three digits that count, and the sign that people write.
fn number(value: f64) -> String {
    let text = match value.abs() {
        0.0 => "0".into(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.0e}"),
    };
    text.replace('-', "−")
}

/// `0.6400 (0.5000 … 0.7800)`; one episode has no interval.
fn with_interval((mean, interval): Mean) -> String {
    match interval {
        Some([low, high]) => format!("{} ({} … {})", number(mean), number(low), number(high)),
        None => number(mean),
    }
}

impl fmt::Display for HeadsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [heads, rows, columns] = self.attention;
        writeln!(f, "{}", self.weights)?;
        writeln!(f, "  {} of {} over {rows} x {columns} cells", self.analysis.name(), count(heads, "head"))?;
        writeln!(
            f,
            "  on {}, variant {}, seed {}, {}",
            self.env,
            self.variant,
            self.seed,
            count(self.scores.len(), "episode")
        )?;
        match self.sticky {
            Some(0.0) => writeln!(f, "  no sticky actions: the game is deterministic")?,
            Some(chance) => writeln!(
                f,
                "  sticky actions: each frame repeats the action before with probability {chance}"
            )?,
            None => {}
        }
        if let Some(warning) = self.warning {
            writeln!(f, "  warning: {warning}")?;
        }
        let longest = self.findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
        for Finding { name, value, null, above_null } in &self.findings {
            write!(f, "  {name:longest$}  {}", with_interval(*value))?;
            if let (Some(null), Some(above)) = (null, above_null) {
                write!(f, "; null {}, difference {}", with_interval(*null), with_interval(*above))?;
            }
            writeln!(f)?;
        }
        let first = self.pictures.first().map_or("", |name| name);
        write!(f, "{}: {}", self.folder.join(first).display(), count(self.pictures.len(), "picture"))
    }
}

/// A finished analysis.
pub struct HeadsStudy {
    report: HeadsReport,
    figures: Vec<Figure>,
}

impl HeadsStudy {
    /// Passes name and bytes of every file to `add`: figures as SVG, PNG, CSV and JSON, and last [`REPORT_FILE`].
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(self, add: &mut AddFile<'_, E>) -> Result<HeadsReport, E> {
        let HeadsStudy { mut report, figures } = self;
        for figure in &figures {
            write_figure(figure, add)?;
            report.pictures.push(format!("figures/{}.png", figure.name));
        }
        add(REPORT_FILE, whole_json(&report, &figures_json(figures.iter())).as_bytes())?;
        Ok(report)
    }
}

/// Heads, rows and columns of cells, if the agent attends to the cells of this world's picture and can be opened; an agent
/// that does not fit the world is refused later.
pub fn attends_with_heads(env: &dyn Env, agent: &dyn Agent, seed: u64) -> Option<[usize; 3]> {
    let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
    env.reset(Some(seed));
    agent.begin_episode(episode_seed(seed, 0));
    let mut context = ActContext::default();
    let attention = {
        let mut whole = agent.boxed_clone();
        let attention = whole.act(env.observation(), &mut context).ok()?.attention?;
        match (attention.tokens(), attention.queries()) {
            (Tokens::Cells { rows, columns }, 1) => [attention.heads(), rows, columns],
            _ => return None,
        }
    };
    let opens = agent.open(env.observation(), &context, &mut Opened::default());
    opens.is_ok_and(|opens| opens).then_some(attention)
}

/// What the analyses share.
struct Job<'a, S> {
    scheduler: &'a S,
    /// Decisions per episode that are looked at closely.
    decisions: usize,
    /// Of all random choices.
    seed: Seed,
    heads: usize,
    grid: PatchGrid,
    /// `[episodes]`
    starts: Vec<std::sync::Mutex<EpisodeStart>>,
}

impl<S: Scheduler> Job<'_, S> {
    /// An episode as it begins.
    fn start(&self, episode: usize) -> EpisodeStart {
        self.starts[episode].lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Numbers of all episodes.
    fn episodes(&self) -> std::ops::Range<usize> {
        0..self.starts.len()
    }
}

/// What an analysis hands back.
struct Found {
    scores: Vec<f64>,
    findings: Vec<Finding>,
    figures: Vec<Figure>,
}

/// Runs an analysis, reporting progress.
///
/// # Errors
/// When the agent has no heads over the cells of this world's picture, an episode fails, or someone asks to stop.
pub fn study_heads(
    request: &HeadsRequest<'_>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<HeadsStudy, StudyError> {
    let Some([heads, rows, columns]) = attends_with_heads(request.env, request.agent, request.seed) else {
        return Err(StudyError::Refused {
            why: format!(
                "{}: this agent has no heads that attend to the cells of a picture; choose one that has, such as an s3ta",
                request.labels.weights
            ),
        });
    };
    let refused = |error: foveate_core::PolicyError| StudyError::Refused { why: error.to_string() };
    let grid = PatchGrid::tile(columns, rows, 1, 1).map_err(refused)?;
    let mut env = request.env.boxed_clone();
    let starts = (0..request.episodes).map(|episode| {
        env.reset((episode == 0).then_some(request.seed));
        std::sync::Mutex::new(EpisodeStart {
            env: env.boxed_clone(),
            agent: request.agent.boxed_clone(),
            job: RolloutJob { genome: 0, episode, env_seed: request.seed },
            max_steps: request.max_steps.unwrap_or(usize::MAX),
        })
    });
    let seed = Seed::root(request.seed).child("heads", 0);
    let job = Job { scheduler, decisions: request.decisions, seed, heads, grid, starts: starts.collect() };
    let found = match request.analysis {
        Analysis::Weights => weights::find(&job, progress),
        Analysis::WhatWhere => what_where::find(&job, progress),
        Analysis::Saliency => saliency::find(&job, progress),
        Analysis::Inject => inject::find(&job, progress),
        Analysis::Threshold => threshold::find(&job, progress),
        Analysis::Planning => planning::find(&job, progress),
    }?;
    let Labels { env, picture, variant, weights } = request.labels.clone();
    let Found { scores, findings, figures } = found;
    let report = HeadsReport {
        folder: PathBuf::new(),
        pictures: vec![],
        analysis: request.analysis,
        env,
        picture,
        variant,
        weights,
        seed: request.seed,
        sticky: request.sticky,
        warning: (request.analysis == Analysis::Threshold && request.sticky == Some(0.0))
            .then_some(DETERMINISTIC),
        attention: [heads, rows, columns],
        scores,
        findings,
        interval: 0.95,
    };
    Ok(HeadsStudy { report, figures })
}

/// Calls `progress` after each of `total` jobs.
fn counted<'a>(what: &'static str, total: usize, progress: &'a mut dyn FnMut(Progress)) -> impl FnMut() + 'a {
    let mut done = 0;
    move || {
        done += 1;
        progress(Progress { what, done: done as f64 / total.max(1) as f64 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_keep_their_digits() {
        for (value, expect) in [
            (0.0, "0"),
            (-21.0, "−21.0"),
            (192.4, "192"),
            (0.0123, "0.0123"),
            (-2.5e-7, "−2e−7"),
            (1.5, "1.50"),
        ] {
            assert_eq!(number(value), expect);
        }
        assert_eq!(with_interval((0.5, Some([0.25, 1.0]))), "0.5000 (0.2500 … 1.00)");
        assert_eq!(with_interval((3.0, None)), "3.00");
    }
}
