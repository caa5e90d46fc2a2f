//! The study of an agent that attends to the cells of a grid world: which cells attend to which, and whether the decisions
//! depend on the cells that get attention.
//!
//! Episodes are played and recorded. Decisions are then repeated in copies of the world whose *state* was edited
//! ([`Env::edit_state`]): an object removed, given another colour or moved, a wall set or taken away. The observation
//! follows from the edited state, so the agent sees what it would see if the world were so. Last, whole episodes are
//! played in worlds that were edited at the start.
//!
//! [`Env::edit_state`]: foveate_core::Env::edit_state

mod figures;
mod page;
mod probe;
mod record;

use std::collections::BTreeMap;
use std::fmt;

use foveate_core::{
    Agent, Env, EvaluateError, GridView, Labels, ObservationSpace, RolloutJob, Seed, Tokens, episode_seed,
};
use serde::Serialize;

use self::probe::{Change, Edit, Effects, Foils, with_edit};
use self::record::Record;
use super::cost::{Meter, StudyCost};
use super::play::{EpisodeStart, replay};
use super::probes::{other_moment, spread};
use super::report_page::with_interval;
use super::sensors::{over, per_episode, undefined};
use super::{
    AddFile, Mean, Progress, REPORT_FILE, RankTest, ReportHead, Scheduler, StudyError, StudyRequest,
    SwapReport, SwapStudy, report_page, swaps, write_figure,
};
use crate::faithful::{Conclusion, FEWEST_EPISODES};
use crate::figure::Drawing;
use crate::node_maps;
use crate::node_maps::object_label;
use crate::trajectory::Dimension;

/// Moments of other episodes whose observations replace a decision's own.
const DONORS: usize = 4;
/// Random orders of the weights behind the null of a rank correlation.
const DEALS: usize = 40;
/// Share of decisions that another observation must change; below it nothing is said about cells.
const FLOOR: f64 = 0.01;
/// Moments of the shown episode of which maps are drawn.
const MOMENTS: usize = 3;

/// What the report on an agent that attends to cells found, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellReport {
    /// What was studied.
    #[serde(flatten)]
    pub head: ReportHead,
    /// What matters, by which path, in which order; `None` where nothing can be swapped.
    pub swaps: Option<SwapReport>,
    /// Heads of the attention, and queries of each.
    pub heads_and_queries: [usize; 2],
    /// Share of decisions with another best action when everything that the agent sees is that of another episode.
    pub natural: Mean,
    /// The same as mean absolute change of the actions' values, the unit of all changes of values in this report.
    pub natural_values: Mean,
    /// Which nodes attend to what, over all steps.
    pub attention: Vec<NodeAttention>,
    /// What edits of the world's state do to single decisions.
    pub edits: Vec<EditFinding>,
    /// Mean number of cells in view that a rank correlation is over.
    pub cells: f64,
    /// Rank correlation over cells in view of attention and effect.
    pub rank: RankTest,
    /// Paired differences of effects.
    pub contrasts: Vec<Contrast>,
    /// Whether decisions depend more on cells with more attention: `supported`, `not supported`, `undecided`.
    pub verdict: String,
    /// Where that and a line of `swaps` seem to contradict each other: what the difference is.
    pub differences: Vec<String>,
    /// Whole episodes in worlds edited at the start.
    pub edited_episodes: Vec<EditedEpisodes>,
    /// Constants of the method.
    pub method: CellMethod,
}

/// The share of its attention that a node gives to all cells of a kind, in the steps in which both are in view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeAttention {
    /// The head; `null` for the share that equal weights would give.
    pub head: Option<usize>,
    /// The node that attends: `agent`, `in front`, or an object.
    pub node: String,
    /// What it attends to: `agent` (the agent's own cell), an object, `wall`, `empty`, `hidden`.
    pub target: String,
    /// The share.
    pub share: f64,
    /// Steps that it is over.
    pub steps: usize,
}

/// What an edit of the world's state does to a decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditFinding {
    /// What was edited.
    pub object: String,
    /// What was done to it.
    pub edit: String,
    /// Decisions.
    pub decisions: usize,
    /// Its cell's share of all attention; `null` for controls.
    pub attention: Option<Mean>,
    /// Share of decisions with another best action.
    pub action: Mean,
    /// Mean absolute change of the actions' values, as a part of the natural change.
    pub values: Mean,
}

/// A paired difference of effects on the actions' values, as a part of the natural change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// What is compared.
    pub name: String,
    /// Decisions.
    pub decisions: usize,
    /// The difference.
    pub difference: Mean,
}

/// Whole episodes in worlds whose state was edited at the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditedEpisodes {
    /// What was edited; empty for the worlds as they were.
    pub object: String,
    /// What was done to it.
    pub edit: String,
    /// Episodes.
    pub episodes: usize,
    /// Mean score.
    pub score: Mean,
    /// Mean score of the same episodes without the edit.
    pub unedited: Mean,
    /// Share of episodes that the world ended, rather than the limit of steps.
    pub terminated: Mean,
}

/// Constants of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellMethod {
    /// What is done to objects.
    pub edits: [&'static str; 3],
    /// Moments of other episodes per decision.
    pub donors: usize,
    /// Random orders behind the first null.
    pub deals: usize,
    /// Share of decisions that another observation must change.
    pub floor: f64,
    /// Confidence level of all intervals.
    pub interval: f64,
    /// Fewer episodes give no conclusion.
    pub fewest_episodes: usize,
    /// Recommended number of episodes.
    pub advised_episodes: usize,
}

impl CellMethod {
    const fn ours() -> Self {
        CellMethod {
            edits: [Edit::ALL[0].name(), Edit::ALL[1].name(), Edit::ALL[2].name()],
            donors: DONORS,
            deals: DEALS,
            floor: FLOOR,
            interval: 0.95,
            fewest_episodes: FEWEST_EPISODES,
            advised_episodes: 20,
        }
    }
}

/// Whether the agent attends to the cells of this world, and the world says what lies in them. An agent that does not fit the
/// world is refused later.
pub fn attends_to_cells(env: &dyn Env, agent: &dyn Agent, seed: u64) -> bool {
    if !matches!(env.spec().observation, ObservationSpace::Grid { .. }) {
        return false;
    }
    let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
    env.reset(Some(seed));
    agent.begin_episode(episode_seed(seed, 0));
    let decided = agent.act(env.observation(), &mut foveate_core::ActContext::default());
    let cells = |decision: foveate_core::Decision<'_>| {
        decision.attention.is_some_and(|attention| matches!(attention.tokens(), Tokens::Grid { .. }))
    };
    env.grid_view().is_some() && decided.is_ok_and(cells)
}

/// A finished study of an agent that attends to cells.
pub struct CellStudy {
    found: Found,
    swaps: Option<SwapStudy>,
    report: CellReport,
    labels: Labels,
    dimensions: Vec<Dimension>,
}

/// A moment of the shown episode.
struct Moment {
    step: usize,
    view: GridView,
    maps: Drawing,
    /// `[heads, queries, cells]`
    weights: Vec<f32>,
}

/// All results of the phases.
struct Found {
    records: Vec<Record>,
    /// `[episodes][decisions]`
    effects: Vec<Vec<Effects>>,
    /// `[episodes]`: label, edit, score and whether the world ended it; first the episode as it was.
    played: Vec<Vec<Played>>,
    moments: Vec<Moment>,
}

/// An episode in an edited world.
struct Played {
    object: String,
    edit: &'static str,
    score: f64,
    terminated: bool,
}

/// Runs the study of an agent that attends to cells, reporting progress.
///
/// # Errors
/// When the agent attends to something else than the cells that the world shows, the world's state cannot be edited, an
/// episode fails, or someone asks to stop.
pub fn study_cells(
    request: StudyRequest<'_>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<CellStudy, StudyError> {
    let cost = StudyCost::of_cells(&request);
    let own = cost.part("playing and filming");
    let mut meter = Meter::new(cost, progress);
    let swaps = swaps::first_part(&request, scheduler, &mut meter)?;
    let found = find(&request, scheduler, &mut meter, own)?;
    let report = report(&request, &found, swaps.as_ref());
    let StudyRequest { labels, dimensions, .. } = request;
    Ok(CellStudy { found, swaps, report, labels, dimensions })
}

fn find(
    request: &StudyRequest<'_>,
    scheduler: &impl Scheduler,
    meter: &mut Meter<'_>,
    part: usize,
) -> Result<Found, StudyError> {
    let seed = Seed::root(request.seed).child("explain cells", 0);
    let (n, decisions, env_seed) = (request.episodes, request.decisions, request.seed);
    let max_steps = request.max_steps.unwrap_or(usize::MAX);
    let mut env = request.env.boxed_clone();
    let starts: Vec<Box<dyn Env>> = (0..n)
        .map(|episode| {
            env.reset((episode == 0).then_some(request.seed));
            env.boxed_clone()
        })
        .collect();
    let bank = std::sync::Mutex::new((starts, request.agent.boxed_clone()));
    let start = |episode: usize| {
        let bank = bank.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        EpisodeStart {
            env: bank.0[episode].boxed_clone(),
            agent: bank.1.boxed_clone(),
            job: RolloutJob { genome: 0, episode, env_seed },
            max_steps,
        }
    };
    let records = scheduler.ordered(
        0..n,
        |e| record::record(start(e), e == 0, &|| scheduler.stopped()),
        &mut || meter.job(part),
    )?;
    if records.len() != n {
        return Err(EvaluateError::Stopped.into());
    }
    let lengths: Vec<usize> = records.iter().map(|record| record.trajectory.len()).collect();
    meter.length(lengths.iter().sum::<usize>() / n);
    let effects = scheduler.ordered(
        0..n,
        |e| {
            let random = {
                let bank = bank.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                super::phases::random_weights(&*bank.1, seed.child("random weights", e as u64))
            };
            let other = |rng: &mut foveate_core::Rng, step: usize| {
                let (episode, at) = other_moment(&lengths, e, step, rng);
                (&records[episode], at)
            };
            let foils = Foils { other: &other, random: &*random, seed: seed.child("episode", e as u64) };
            probe::probe(start(e), &spread(lengths[e], decisions), &foils, &|| scheduler.stopped())
        },
        &mut || meter.job(part + 1),
    )?;
    let played = scheduler.ordered(
        0..n,
        |e| play_edited(&start(e), seed.child("edited episode", e as u64), &|| scheduler.stopped()),
        &mut || meter.job(part + 2),
    )?;
    if effects.len() != n || played.len() != n {
        return Err(EvaluateError::Stopped.into());
    }
    let moments = moments(start(0), &spread(lengths[0], MOMENTS))?;
    Ok(Found { records, effects, played, moments })
}

/// Plays the episode as it is, and after each edit of each object at its start.
fn play_edited(
    start: &EpisodeStart,
    seed: Seed,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Played>, StudyError> {
    let mut all = vec![];
    let mut play = |env: Option<Box<dyn Env>>, object: String, edit: &'static str| {
        if stopped() {
            return Err(StudyError::from(EvaluateError::Stopped));
        }
        let mut start = start.clone();
        if let Some(env) = env {
            start.env = env;
        }
        let result = start.run(&mut ())?;
        all.push(Played { object, edit, score: result.total, terminated: result.terminated });
        Ok(())
    };
    play(None, String::new(), "")?;
    let Some(view) = start.env.grid_view() else { return Ok(all) };
    let mut rng = seed.rng();
    for object in &view.objects {
        for edit in Edit::ALL {
            if let Some(env) = with_edit(&*start.env, &view, object, edit, &mut rng)? {
                play(Some(env), object_label(&view, object), edit.name())?;
            }
        }
    }
    Ok(all)
}

/// The maps of the moments before these decisions.
fn moments(start: EpisodeStart, steps: &[usize]) -> Result<Vec<Moment>, StudyError> {
    let mut all = vec![];
    replay(start, steps, &mut |step, env, agent, context| {
        let (mut agent, mut context) = (agent.boxed_clone(), context.clone());
        let Some(view) = env.grid_view() else { return Ok(()) };
        // It decided here before, so it can.
        if let Ok(decision) = agent.act(env.observation(), &mut context)
            && let Some(attention) = decision.attention
            && let Some(maps) = node_maps(&view, &attention, [crate::charts::HALF, f64::INFINITY])
        {
            let weights = attention.weights().to_vec();
            all.push(Moment { step, view, maps, weights });
        }
        Ok(())
    })?;
    Ok(all)
}

/// A mean in another unit.
fn in_units((mean, interval): Mean, unit: f64) -> Mean {
    let unit = if unit > 0.0 { unit } else { 1.0 };
    (mean / unit, interval.map(|ends| ends.map(|end| end / unit)))
}

fn report(request: &StudyRequest<'_>, found: &Found, swaps: Option<&SwapStudy>) -> CellReport {
    let Found { records, effects, .. } = found;
    let natural = over(&per_episode(effects, &|of| Some(of.natural.action)));
    let natural_values = over(&per_episode(effects, &|of| Some(of.natural.values)));
    let unit = natural_values.0;
    let finding =
        |object: &str, edit: &str, attention: Option<Mean>, of: &dyn Fn(&Effects) -> Option<Change>| {
            let decisions = effects.iter().flatten().filter(|effects| of(effects).is_some()).count();
            EditFinding {
                object: object.into(),
                edit: edit.into(),
                decisions,
                attention,
                action: over(&per_episode(effects, &|effects| Some(of(effects)?.action))),
                values: in_units(over(&per_episode(effects, &|effects| Some(of(effects)?.values))), unit),
            }
        };
    let mut labels: Vec<String> =
        effects.iter().flatten().flat_map(|of| of.objects.iter().map(|(label, ..)| label.clone())).collect();
    labels.sort();
    labels.dedup();
    let mut edits = vec![];
    for label in &labels {
        for edit in Edit::ALL {
            let matching = |of: &Effects| -> Vec<(f64, Change)> {
                let fits = of.objects.iter().filter(|(name, _, done, _)| name == label && *done == edit);
                fits.map(|&(_, attention, _, change)| (attention, change)).collect()
            };
            let mean = |of: &Effects, value: &dyn Fn(&(f64, Change)) -> f64| {
                let all = matching(of);
                (!all.is_empty()).then(|| all.iter().map(value).sum::<f64>() / all.len() as f64)
            };
            let attention = over(&per_episode(effects, &|of| mean(of, &|(attention, _)| *attention)));
            let change = |of: &Effects| {
                Some(Change {
                    action: mean(of, &|(_, change)| change.action)?,
                    values: mean(of, &|(_, change)| change.values)?,
                })
            };
            let row = finding(label, edit.name(), Some(attention), &change);
            if row.decisions > 0 {
                edits.push(row);
            }
        }
    }
    edits.push(finding(RANDOM_CELL, "wall set or removed", None, &|of| of.random_cell));
    edits.push(finding(OUT_OF_VIEW, Edit::Removed.name(), None, &|of| of.unseen));
    edits.retain(|row| row.decisions > 0);

    let ranks = |column: usize| per_episode(effects, &|of| Some(of.ranks?[column]));
    let (own, dealt, other) = (ranks(0), ranks(1), ranks(2));
    let difference =
        |null: &[f64]| over(&own.iter().zip(null).map(|(own, null)| own - null).collect::<Vec<_>>());
    let (above_dealt, above_other) = (difference(&dealt), difference(&other));
    let above = |(_, interval): Mean| interval.is_some_and(|[low, _]| low > 0.0);
    let undefined = natural.0 < FLOOR || undefined(&[&own, &dealt, &other]);
    let verdict = if own.len() < FEWEST_EPISODES || undefined {
        Conclusion::Undecided
    } else if above(above_dealt) && above(above_other) {
        Conclusion::Supported
    } else {
        Conclusion::NotSupported
    };
    let rank = RankTest {
        intervention: "cell changed".into(),
        own: over(&own),
        dealt: over(&dealt),
        other_moment: over(&other),
        above_dealt,
        above_other,
        random_agent: over(&ranks(3)),
        verdict: verdict.to_string(),
    };
    let contrast = |name: &str, of: &dyn Fn(&Effects) -> Option<f64>| Contrast {
        name: name.into(),
        decisions: effects.iter().flatten().filter(|effects| of(effects).is_some()).count(),
        difference: in_units(over(&per_episode(effects, of)), unit),
    };
    let contrasts = vec![
        contrast("object with the most attention removed, less that with the least", &|of| {
            let [most, least] = of.most_and_least?;
            Some(most.values - least.values)
        }),
        contrast("object with the most attention removed, less a random cell changed", &|of| {
            let [most, _] = of.most_and_least?;
            Some(most.values - of.random_cell?.values)
        }),
    ];
    let cells: Vec<f64> = effects.iter().flatten().map(|of| of.cells as f64).collect();
    let trajectories = records.iter().map(|record| &record.trajectory);
    CellReport {
        head: ReportHead::new(
            request.labels.clone(),
            request.seed,
            trajectories,
            effects.iter().map(Vec::len).sum(),
        ),
        swaps: swaps.map(|swaps| swaps.report().clone()),
        heads_and_queries: records.first().map_or([0; 2], |record| record.readers),
        natural,
        natural_values,
        attention: attention(records),
        edits,
        cells: foveate_core::statistics::mean(&cells),
        differences: swaps::differences(&page::EDITING, &rank.verdict, swaps.map(SwapStudy::report)),
        verdict: rank.verdict.clone(),
        rank,
        contrasts,
        edited_episodes: edited_episodes(&found.played),
        method: CellMethod::ours(),
    }
}

/// The control of edits: a cell without an object.
const RANDOM_CELL: &str = "a random cell";
/// The second control: what the agent does not see.
const OUT_OF_VIEW: &str = "an object out of view";

fn attention(records: &[Record]) -> Vec<NodeAttention> {
    let mut links: BTreeMap<record::Link, (f64, usize)> = BTreeMap::new();
    let mut uniform: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for record in records {
        for (link, (sum, steps)) in &record.links {
            let all = links.entry(link.clone()).or_default();
            *all = (all.0 + sum, all.1 + steps);
        }
        for (target, (sum, steps)) in &record.uniform {
            let all = uniform.entry(target.clone()).or_default();
            *all = (all.0 + sum, all.1 + steps);
        }
    }
    let links = links.into_iter().map(|((head, node, target), (sum, steps))| NodeAttention {
        head: Some(head),
        node,
        target,
        share: sum / steps as f64,
        steps,
    });
    let uniform = uniform.into_iter().map(|(target, (sum, steps))| NodeAttention {
        head: None,
        node: "equal weights".into(),
        target,
        share: sum / steps as f64,
        steps,
    });
    links.chain(uniform).collect()
}

fn edited_episodes(played: &[Vec<Played>]) -> Vec<EditedEpisodes> {
    let mut keys: Vec<(String, &'static str)> =
        played.iter().flatten().map(|played| (played.object.clone(), played.edit)).collect();
    keys.sort_by_key(|(object, edit)| {
        (object.clone(), Edit::ALL.iter().position(|known| known.name() == *edit))
    });
    keys.dedup();
    keys.into_iter()
        .map(|(object, edit)| {
            let (mut scores, mut unedited, mut ends) = (vec![], vec![], vec![]);
            for episodes in played {
                // Of several objects of one name, their mean.
                let fits: Vec<&Played> =
                    episodes.iter().filter(|played| played.object == object && played.edit == edit).collect();
                if let (false, Some(first)) = (fits.is_empty(), episodes.first()) {
                    let mean = |of: &dyn Fn(&Played) -> f64| {
                        fits.iter().map(|played| of(played)).sum::<f64>() / fits.len() as f64
                    };
                    scores.push(mean(&|played| played.score));
                    ends.push(mean(&|played| f64::from(u8::from(played.terminated))));
                    unedited.push(first.score);
                }
            }
            EditedEpisodes {
                object,
                edit: edit.into(),
                episodes: scores.len(),
                score: over(&scores),
                unedited: over(&unedited),
                terminated: over(&ends),
            }
        })
        .collect()
}

impl CellStudy {
    /// Passes name and bytes of every file of the report to `add`, as [`Study::write`](super::Study::write) does.
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(self, add: &mut AddFile<'_, E>) -> Result<CellReport, E> {
        let CellStudy { found, swaps, mut report, labels, dimensions } = self;
        let figures = figures::figures(&found, &report);
        let all = || swaps.iter().flat_map(SwapStudy::figures).chain(figures.all());
        for figure in all() {
            write_figure(figure, add)?;
        }
        let numbers = super::figures_json(all());
        let mut page = page::page(&labels, &found, &report, figures, &dimensions);
        page.put_first(swaps);
        let html = page.html(&report_page::png);
        report.head.bytes = html.len();
        add("index.html", html.as_bytes())?;
        add("episode.mp4", page.film.mp4)?;
        add(REPORT_FILE, super::whole_json(&report, &numbers).as_bytes())?;
        Ok(report)
    }
}

impl fmt::Display for CellReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.lines(f, &format!("{}, picture {}", self.head.env, self.head.picture))?;
        swaps::verdict_lines(f, self.swaps.as_ref())?;
        writeln!(
            f,
            "  another observation changes the best action in a share of {}",
            with_interval(self.natural)
        )?;
        for row in &self.edits {
            writeln!(
                f,
                "  {:22} {:19} n {:4}  other action {:19}  values {}",
                row.object,
                row.edit,
                row.decisions,
                with_interval(row.action),
                with_interval(row.values)
            )?;
        }
        for row in &self.edited_episodes {
            let name = if row.object.is_empty() { "as it was" } else { &row.object };
            writeln!(
                f,
                "  episode, {name:13} {:19} n {:4}  score {:19}  ended {}",
                row.edit,
                row.episodes,
                with_interval(row.score),
                with_interval(row.terminated)
            )?;
        }
        writeln!(
            f,
            "  rank correlation of attention and effect {}, dealt at random {}, of another moment {}",
            with_interval(self.rank.own),
            with_interval(self.rank.dealt),
            with_interval(self.rank.other_moment)
        )?;
        for contrast in &self.contrasts {
            writeln!(
                f,
                "  {} (n {}): {}",
                contrast.name,
                contrast.decisions,
                with_interval(contrast.difference)
            )?;
        }
        writeln!(f, "  decisions depend more on cells with more attention: {}", self.verdict)?;
        swaps::difference_lines(f, &self.differences)?;
        self.head.place(f)
    }
}
