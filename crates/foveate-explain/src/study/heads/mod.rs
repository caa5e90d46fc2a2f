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

use std::cell::RefCell;
use std::fmt;

use foveate_core::{ActContext, Agent, Env, Labels, Opened, PatchGrid, Seed, Tokens, episode_seed};
use serde::Serialize;

use super::cost::{Meter, StudyCost};
use super::fields::{Fields, Registration};
use super::finding::{Analysis, Bench, EpisodeShown, Finding, Findings};
use super::means::{difference, over};
use super::play::{EpisodeStart, Starts};
use super::words::{capital, count};
use super::{HEADS, INTERVAL, Mean, Progress, ReportHead, Scheduler, Study, StudyError, finish};
use crate::charts::percent;
use crate::figure::Figure;
use crate::page::{Mood, PageAnswer, PageTable, Section};
pub(super) use inject::Inject;
pub(super) use planning::Planning;
pub(super) use saliency::BesideSaliency;
pub(super) use threshold::Threshold;
pub(super) use weights::WeightsOfHeads;
pub(super) use what_where::WhatWhere;

/// The analysis of this name.
pub fn heads_analysis(name: &str) -> Option<&'static dyn Analysis> {
    HEADS.iter().copied().find(|analysis| analysis.name() == name)
}

/// What may mislead where one other action changes all that follows, in the same way each time.
const DETERMINISTIC: &str = "in a deterministic game one other action leads to another course of the game, in every episode that \
                             begins alike, so the score at one t may be far from those beside it; judge by games with sticky \
                             actions";

/// World, agent and size of an analysis.
pub struct HeadsRequest<'a> {
    /// The analysis.
    pub analysis: &'static dyn Analysis,
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
pub struct HeadNumber {
    /// What it is.
    pub name: String,
    /// Its mean over episodes, and the 95 % interval.
    pub value: Mean,
    /// What chance gives.
    pub null: Option<Mean>,
    /// The paired difference of the two.
    pub above_null: Option<Mean>,
}

impl HeadNumber {
    fn plain(name: impl Into<String>, values: &[f64]) -> Self {
        HeadNumber { name: name.into(), value: over(values), null: None, above_null: None }
    }

    /// With the null of each episode.
    fn against(name: impl Into<String>, values: &[f64], null: &[f64]) -> Self {
        HeadNumber {
            name: name.into(),
            value: over(values),
            null: Some(over(null)),
            above_null: Some(difference(values, null)),
        }
    }
}

/// What an analysis of heads found, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heads {
    /// The analysis.
    pub analysis: &'static str,
    /// Of a game whose actions may stick: the probability; 0 is a deterministic game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<f64>,
    /// Why the numbers may mislead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<&'static str>,
    /// Heads, rows and columns of cells.
    pub attention: [usize; 3],
    /// How far cells lie from where their contents come from; of analyses that judge or show places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration: Option<Registration>,
    /// Score of every episode, played as the agent is.
    #[serde(skip)]
    pub scores: Vec<f64>,
    /// The numbers.
    pub findings: Vec<HeadNumber>,
    /// Confidence level of all intervals.
    pub interval: f64,
}

/// Numbers that stand at the top of the page.
const ANSWERS: usize = 4;

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

impl Heads {
    /// The lines on a terminal.
    fn lines(&self) -> Vec<String> {
        let [heads, rows, columns] = self.attention;
        let mut lines =
            vec![format!("{} of {} over {rows} x {columns} cells", self.analysis, count(heads, "head"))];
        lines.extend(self.sticky.map(|chance| match chance {
            0.0 => "no sticky actions: the game is deterministic".to_owned(),
            _ => format!("sticky actions: each frame repeats the action before with probability {chance}"),
        }));
        lines.extend(self.warning.map(|warning| format!("warning: {warning}")));
        lines.extend(self.registration.as_ref().map(registered));
        let longest = self.findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
        lines.extend(self.findings.iter().map(|HeadNumber { name, value, null, above_null }| {
            let beside = null.zip(*above_null).map(|(null, above)| {
                format!("; null {}, difference {}", with_interval(null), with_interval(above))
            });
            format!("{name:longest$}  {}{}", with_interval(*value), beside.unwrap_or_default())
        }));
        lines
    }

    /// The numbers that differ most clearly from what chance gives, or the first ones of those without a null.
    fn answers(&self, more: &'static str) -> Vec<PageAnswer> {
        let clearly = |number: &HeadNumber| match number.above_null {
            Some((_, Some([low, high]))) if low > 0.0 || high < 0.0 => {
                2.0 * low.max(-high) / (high - low).max(1e-12)
            }
            _ => 0.0,
        };
        let mut order: Vec<&HeadNumber> = self.findings.iter().collect();
        order.sort_by(|a, b| clearly(b).total_cmp(&clearly(a)));
        let of = |number: &&HeadNumber| {
            let HeadNumber { name, value, null, above_null } = *number;
            let apart = clearly(number) > 0.0;
            let (name, against) = name.split_once("; null: ").unwrap_or((name, "by chance"));
            let beside = null.map(|null| format!("; {against}: {}", with_interval(null))).unwrap_or_default();
            let said = match above_null {
                None => "",
                Some((above, _)) if apart && *above > 0.0 => ": more than the null",
                Some(_) if apart => ": less than the null",
                Some(_) => ": not clearly apart from the null",
            };
            PageAnswer {
                answer: String::new(),
                sentence: format!("{}{said}.", capital(name)),
                number: format!("{}{beside}.", with_interval(*value)),
                mood: if apart { Mood::Good } else { Mood::Plain },
                more,
            }
        };
        order.iter().take(ANSWERS).map(of).collect()
    }

    fn table(&self) -> PageTable {
        let rows = self.findings.iter().map(|HeadNumber { name, value, null, above_null }| {
            let told = |of: &Option<Mean>| of.map_or("—".into(), with_interval);
            [name.clone(), with_interval(*value), told(null), told(above_null)]
        });
        PageTable::new(["what", "mean", "null", "difference"], rows)
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
pub(super) struct Job {
    /// Decisions per episode that are looked at closely.
    decisions: usize,
    sticky: Option<f64>,
    /// Of all random choices.
    seed: Seed,
    heads: usize,
    grid: PatchGrid,
    /// Where the contents of cells come from.
    fields: Fields,
    starts: Starts,
}

impl Job {
    /// An episode as it begins.
    fn start(&self, episode: usize) -> EpisodeStart {
        self.starts.get(episode)
    }

    /// Numbers of all episodes.
    fn episodes(&self) -> std::ops::Range<usize> {
        0..self.starts.len()
    }
}

/// The part of a study that plays its episodes.
pub(super) const PLAYING: &str = "playing";
/// The part of a study that measures where the contents of cells come from.
pub(super) const MEASURING: &str = "measuring where cells read";

/// Returns whether the analysis of this name shows or judges places of the picture.
pub(super) fn shows_places(name: &str) -> bool {
    [WeightsOfHeads::NAME, BesideSaliency::NAME, Inject::NAME, Planning::NAME].contains(&name)
}

/// How far cells lie from where their contents come from, in a sentence.
fn registered(of: &Registration) -> String {
    let Registration { decisions, places, distance, own, silent } = of;
    let mut told = format!(
        "weights are shown and judged at the places that change the cells, measured with {} × {} places in {}: the strongest place \
         lies {} cells from the middle of its cell, and {} of a cell's change comes from the cell's own position",
        places[0],
        places[1],
        count(*decisions, "decision"),
        number(*distance),
        percent(*own)
    );
    if *silent > 0 {
        told += &format!("; {} that no place changes count where they lie", count(*silent, "cell"));
    }
    told
}

/// What an analysis hands back.
struct Found {
    scores: Vec<f64>,
    findings: Vec<HeadNumber>,
    figures: Vec<Figure>,
}

/// An analysis of heads.
trait OfHeads: fmt::Debug + Sync {
    /// Its name on the command line.
    const NAME: &'static str;
    /// Its heading.
    const TITLE: &'static str;
    /// How often every episode is played in full.
    const TIMES: usize = 1;
    /// True if it misleads in a game that is always the same.
    const STICKY: bool = false;

    /// Plays and finds; `each` is called after every job.
    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError>;
}

impl<T: OfHeads> Analysis for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn plays(&self) -> usize {
        T::TIMES
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(job) = bench.get::<Job>() else { return Ok(None) };
        let playing = bench.meter.borrow().part(PLAYING);
        let Found { scores, findings, figures } =
            T::find(job, bench.scheduler, &mut || bench.meter.borrow_mut().job(playing))?;
        let found = Heads {
            analysis: T::NAME,
            sticky: job.sticky,
            warning: (T::STICKY && job.sticky == Some(0.0)).then_some(DETERMINISTIC),
            attention: [job.heads, job.grid.height(), job.grid.width()],
            registration: shows_places(T::NAME).then(|| job.fields.registration()),
            scores,
            findings,
            interval: INTERVAL,
        };
        let mut figures = figures;
        let picture = (!figures.is_empty()).then(|| figures.remove(0));
        let section = Section {
            id: T::NAME.into(),
            title: T::TITLE.into(),
            lead: found
                .warning
                .map(|warning| format!("Warning: {warning}."))
                .into_iter()
                .chain(found.registration.as_ref().map(|of| format!("{}.", registered(of))))
                .collect(),
            tables: vec![found.table()],
            figures,
            ..Section::default()
        };
        let (lines, answers) = (found.lines(), found.answers(T::NAME));
        Ok(Some(Finding { lines, answers, picture, section: Some(section), ..Finding::new(found) }))
    }
}

/// Runs an analysis, reporting progress.
///
/// # Errors
/// When the agent has no heads over the cells of this world's picture, an episode fails, or someone asks to stop.
pub fn study_heads(
    request: HeadsRequest<'_>,
    scheduler: &dyn Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<Study, StudyError> {
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
    let starts = Starts::new(request.env, request.agent, request.seed, request.episodes, request.max_steps);
    let seed = Seed::root(request.seed).child("heads", 0);
    let mut meter = Meter::new(StudyCost::of_heads(&request), progress);
    let part = meter.part(MEASURING);
    let mut fields = None;
    if shows_places(request.analysis.name()) {
        fields = Fields::of_episodes(&|episode| starts.get(episode), starts.len(), scheduler, &mut || {
            meter.job(part);
        })?;
    }
    let fields = fields.unwrap_or_else(|| Fields::unmeasured(grid));
    let HeadsRequest { analysis, decisions, sticky, labels, .. } = request;
    let job = Job { decisions, sticky, seed, heads, grid, fields, starts };
    let head = ReportHead::new(&labels, request.seed, vec![], vec![], 0);
    let shown = EpisodeShown { verb: "attends to with its heads", ..EpisodeShown::default() };
    let (dimensions, meter) = (vec![], RefCell::new(meter));
    let bench = Bench { head, dimensions, shown, measured: vec![Box::new(job)], scheduler, meter };
    let mut study = finish(&[analysis], bench)?;
    let scores = study.report.get::<Heads>().map_or(vec![], |found| found.scores.clone());
    let head = &mut study.report.head;
    (head.mean_score, head.scores) = (foveate_core::statistics::mean(&scores), scores);
    Ok(study)
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
