//! The study of an agent that attends to named sensors: which it listens to, and whether that is true.
//!
//! Episodes are played and recorded. Decisions are then repeated with the value of one sensor changed, each from the
//! agent's state at that decision: set to the sensor's mean over the episode, held at an earlier value, or replaced by its
//! value at a moment of another episode. The change of the action is compared with the weight of the sensor. Last, the
//! sensors are recovered from the controller's inputs by linear regression.
//!
//! Sensors are identified by the world: where a shift shows them in another order, [`Env::sensor_order`] says which is
//! which, and every result is of the world's sensor.
//!
//! [`Env::sensor_order`]: foveate_core::Env::sensor_order

mod figures;
mod page;
mod probe;
mod record;
mod recover;

use std::fmt;

use foveate_core::{
    ActContext, Agent, Env, EvaluateError, Labels, Observation, RolloutJob, Seed, Tokens, episode_seed,
    statistics,
};
use serde::Serialize;

use self::probe::{Effects, Foils, INTERVENTIONS};
use self::record::Record;
pub use self::recover::{Recovered, RecoveredSensor};
use super::cost::{Meter, StudyCost};
use super::play::{EpisodeStart, action_scale};
use super::probes::{other_moment, spread};
use super::{
    AddFile, Mean, Progress, REPORT_FILE, ReportHead, Scheduler, StudyError, StudyRequest, SwapReport,
    SwapStudy, report_page, swaps, write_figure,
};
use crate::faithful::{Conclusion, FEWEST_EPISODES};
use crate::trajectory::{ActionScale, Dimension};

/// Steps for which a frozen sensor holds its value.
const FREEZE: usize = 10;
/// Moments of other episodes whose values replace that of a sensor.
const DONORS: usize = 4;
/// Random orders of the weights behind the null of a rank correlation.
const DEALS: usize = 40;
/// Mean change of the action, as a part of its range, below which nothing is said about the order of the sensors.
const FLOOR: f64 = 0.01;

/// The verdict when interventions disagree.
const IN_PART: &str = "in part";

/// What the report on an agent with named sensors found, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SensorReport {
    /// What was studied.
    #[serde(flatten)]
    pub head: ReportHead,
    /// What matters, by which path, in which order; `None` where nothing can be swapped.
    pub swaps: Option<SwapReport>,
    /// Heads of the attention, and queries (codes) of each.
    pub heads_and_codes: [usize; 2],
    /// The sensors, in the world's order.
    pub sensors: Vec<SensorFinding>,
    /// Mean change of the action when all sensors get their values of another episode.
    pub natural: Mean,
    /// Rank correlation of weight and effect, for each intervention.
    pub ranks: Vec<RankTest>,
    /// Whether sensors with larger weights move the action more: `supported` or `not supported` with all interventions,
    /// `in part` with some of them, `undecided`.
    pub verdict: String,
    /// Where that and a line of `swaps` seem to contradict each other: what the difference is.
    pub differences: Vec<String>,
    /// The sensors as linear functions of the controller's inputs; `null` when it has none or too many.
    pub recovered: Option<Recovered>,
    /// The distance between two actions, in words.
    pub distance: &'static str,
    /// Constants of the method.
    pub method: SensorMethod,
}

/// Results on one sensor: means over episodes with their intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SensorFinding {
    /// Its name.
    pub name: String,
    /// Its share of all absolute weights.
    pub weight: Mean,
    /// Change of the action, in 0.0..=1.0, for each intervention.
    pub change: Vec<Mean>,
}

/// Rank correlation of the sensors' weights and the changes of the action that an intervention on each causes: per
/// decision over the sensors, then the mean over the decisions of an episode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankTest {
    /// The intervention.
    pub intervention: String,
    /// The correlation.
    pub own: Mean,
    /// Its null: the same weights, dealt to the sensors at random.
    pub dealt: Mean,
    /// Its second null: the weights of a moment of another episode.
    pub other_moment: Mean,
    /// Paired difference from the first null.
    pub above_dealt: Mean,
    /// Paired difference from the second null.
    pub above_other: Mean,
    /// The correlation of agents with random weights, of themselves.
    pub random_agent: Mean,
    /// Whether both paired differences lie above 0.
    pub verdict: String,
}

/// Constants of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SensorMethod {
    /// The interventions on a sensor.
    pub interventions: [&'static str; 3],
    /// Steps for which a frozen sensor holds its value.
    pub freeze: usize,
    /// Moments of other episodes that values are taken from, per decision and sensor.
    pub donors: usize,
    /// Random orders behind the first null.
    pub deals: usize,
    /// Change of the action, all sensors replaced, below which nothing is said about their order.
    pub floor: f64,
    /// Confidence level of all intervals.
    pub interval: f64,
    /// Fewer episodes give no conclusion.
    pub fewest_episodes: usize,
    /// Recommended number of episodes.
    pub advised_episodes: usize,
}

impl SensorMethod {
    const fn ours() -> Self {
        SensorMethod {
            interventions: INTERVENTIONS,
            freeze: FREEZE,
            donors: DONORS,
            deals: DEALS,
            floor: FLOOR,
            interval: 0.95,
            fewest_episodes: FEWEST_EPISODES,
            advised_episodes: 20,
        }
    }
}

/// Whether the agent attends to named sensors in this world. An agent that does not fit the world is refused later.
pub fn listens(env: &dyn Env, agent: &dyn Agent, seed: u64) -> bool {
    let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
    env.reset(Some(seed));
    agent.begin_episode(episode_seed(seed, 0));
    if !matches!(env.observation(), Observation::Vector(_)) {
        return false;
    }
    let decided = agent.act(env.observation(), &mut ActContext::default());
    decided.is_ok_and(|decision| {
        decision.attention.is_some_and(|attention| matches!(attention.tokens(), Tokens::Named(_)))
    })
}

/// A finished study of an agent with named sensors.
pub struct SensorStudy {
    found: Found,
    swaps: Option<SwapStudy>,
    report: SensorReport,
    labels: Labels,
    dimensions: Vec<Dimension>,
}

/// The world at the start of an episode; the agent, and one with random weights.
type Start = (Box<dyn Env>, [Box<dyn Agent>; 2]);

/// All results of the phases.
struct Found {
    scale: ActionScale,
    /// The agent's episodes.
    records: Vec<Record>,
    /// `[episodes][decisions]`, of the agent and of agents with random weights.
    effects: [Vec<Vec<Effects>>; 2],
}

/// Runs the study of an agent with named sensors, reporting progress.
///
/// # Errors
/// When the agent attends to something else than the numbers that the world shows, an episode fails, or someone asks to
/// stop.
pub fn study_sensors(
    request: StudyRequest<'_>,
    scheduler: &impl Scheduler,
    progress: &mut dyn FnMut(Progress),
) -> Result<SensorStudy, StudyError> {
    let cost = StudyCost::of_sensors(&request);
    let own = cost.part("playing and filming");
    let mut meter = Meter::new(cost, progress);
    let swaps = swaps::first_part(&request, scheduler, &mut meter)?;
    let found = find(&request, scheduler, &mut meter, own)?;
    let report = report(&request, &found, swaps.as_ref());
    let StudyRequest { labels, dimensions, .. } = request;
    Ok(SensorStudy { found, swaps, report, labels, dimensions })
}

fn find(
    request: &StudyRequest<'_>,
    scheduler: &impl Scheduler,
    meter: &mut Meter<'_>,
    part: usize,
) -> Result<Found, StudyError> {
    let seed = Seed::root(request.seed).child("explain sensors", 0);
    let (n, decisions, env_seed) = (request.episodes, request.decisions, request.seed);
    let max_steps = request.max_steps.unwrap_or(usize::MAX);
    let scale = action_scale(request.env.spec());
    let mut env = request.env.boxed_clone();
    let starts: Vec<Start> = (0..n)
        .map(|episode| {
            env.reset((episode == 0).then_some(request.seed));
            let random =
                super::phases::random_weights(request.agent, seed.child("random weights", episode as u64));
            (env.boxed_clone(), [request.agent.boxed_clone(), random])
        })
        .collect();
    let bank = std::sync::Mutex::new(starts);
    let start = |side: usize, episode: usize| {
        let bank = bank.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (env, agents) = &bank[episode];
        EpisodeStart {
            env: env.boxed_clone(),
            agent: agents[side].boxed_clone(),
            job: RolloutJob { genome: 0, episode, env_seed },
            max_steps,
        }
    };
    let names = &request.sensors;
    let played = scheduler.ordered(
        0..2 * n,
        |i| record::record(start(i / n, i % n), names, i == 0, &|| scheduler.stopped()),
        &mut || meter.job(part),
    )?;
    let (mut own, mut random) = (played, Vec::new());
    if own.len() == 2 * n {
        random = own.split_off(n);
    }
    if own.len() != n || random.len() != n {
        return Err(EvaluateError::Stopped.into());
    }
    let sides = [own, random];
    let probed = scheduler.ordered(
        0..2 * n,
        |i| {
            let (side, e) = (i / n, i % n);
            let (records, record) = (&sides[side], &sides[side][e]);
            let lengths: Vec<usize> = records.iter().map(Record::len).collect();
            let moments = seed.child("side", side as u64).child("episode", e as u64);
            let other = |rng: &mut foveate_core::Rng, step: usize| {
                // Every agent with random weights is another one, so its donors come from its own episode.
                let (episode, at) = if side == 0 {
                    other_moment(&lengths, e, step, rng)
                } else {
                    (e, other_moment(&lengths[e..=e], 0, step, rng).1)
                };
                (&records[episode], at)
            };
            let foils = Foils { scale: &scale, other: &other, seed: moments };
            let steps = spread(record.len(), decisions);
            probe::probe(start(side, e), record, &steps, &foils, &|| scheduler.stopped())
        },
        &mut || meter.job(part + 1),
    )?;
    let mut own = probed;
    let random = own.split_off(n.min(own.len()));
    let [records, _] = sides;
    Ok(Found { scale, records, effects: [own, random] })
}

/// The mean over episodes, with its interval over them.
pub(super) fn over(values: &[f64]) -> Mean {
    (statistics::mean(values), statistics::mean_interval(values))
}

/// For every episode the mean of `of` over its decisions; episodes without any are left out.
pub(super) fn per_episode<T>(episodes: &[Vec<T>], of: &dyn Fn(&T) -> Option<f64>) -> Vec<f64> {
    let mean = |decisions: &Vec<T>| {
        let values: Vec<f64> = decisions.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| statistics::mean(&values))
    };
    episodes.iter().filter_map(mean).collect()
}

/// Whether rank correlations of these episodes, as claimed and of the nulls, do not exist: where all weights or all effects of
/// every decision are equal, they and those of weights dealt at random are 0.
pub(super) fn undefined(ranks: &[&[f64]; 3]) -> bool {
    ranks.iter().all(|ranks| ranks.iter().all(|&rank| rank == 0.0))
}

fn report(request: &StudyRequest<'_>, found: &Found, swaps: Option<&SwapStudy>) -> SensorReport {
    let Found { records, effects: [own, random], .. } = found;
    let natural = over(&per_episode(own, &|effects| Some(effects.natural)));
    let enough = records.len() >= FEWEST_EPISODES;
    let ranks: Vec<RankTest> = INTERVENTIONS
        .iter()
        .enumerate()
        .map(|(which, name)| {
            let of = |column: usize| per_episode(own, &|effects| Some(effects.ranks[which][column]));
            let (own, dealt, other) = (of(0), of(1), of(2));
            let difference = |null: &[f64]| -> Mean {
                over(&own.iter().zip(null).map(|(own, null)| own - null).collect::<Vec<_>>())
            };
            let (above_dealt, above_other) = (difference(&dealt), difference(&other));
            let above = |(_, interval): Mean| interval.is_some_and(|[low, _]| low > 0.0);
            let verdict = if !enough || natural.0 < FLOOR || undefined(&[&own, &dealt, &other]) {
                Conclusion::Undecided
            } else if above(above_dealt) && above(above_other) {
                Conclusion::Supported
            } else {
                Conclusion::NotSupported
            };
            RankTest {
                intervention: (*name).into(),
                own: over(&own),
                dealt: over(&dealt),
                other_moment: over(&other),
                above_dealt,
                above_other,
                random_agent: over(&per_episode(random, &|effects| Some(effects.ranks[which][0]))),
                verdict: verdict.to_string(),
            }
        })
        .collect();
    let all = |wanted: Conclusion| ranks.iter().all(|test| test.verdict == wanted.to_string());
    let verdict = [Conclusion::Supported, Conclusion::NotSupported, Conclusion::Undecided];
    let verdict =
        verdict.into_iter().find(|&wanted| all(wanted)).map_or(IN_PART.into(), |all| all.to_string());
    let sensors = Record::all_keys(records).into_iter().map(|(key, name)| {
        let of = |value: &dyn Fn(&Effects, usize) -> f64| {
            over(&per_episode(own, &|effects| effects.row(key).map(|row| value(effects, row))))
        };
        SensorFinding {
            name,
            weight: of(&|effects, row| effects.share(row)),
            change: (0..INTERVENTIONS.len())
                .map(|which| of(&|effects, row| effects.change[which][row]))
                .collect(),
        }
    });
    let episodes = records.iter().map(|record| &record.trajectory);
    let decisions = own.iter().map(Vec::len).sum();
    SensorReport {
        head: ReportHead::new(request.labels.clone(), request.seed, episodes, decisions),
        swaps: swaps.map(|swaps| swaps.report().clone()),
        heads_and_codes: records.first().map_or([0; 2], |record| record.readers),
        sensors: sensors.collect(),
        natural,
        ranks,
        differences: swaps::differences(&page::CHANGING, &verdict, swaps.map(SwapStudy::report)),
        verdict,
        recovered: recover::recover(records),
        distance: report_page::scale_name(&found.scale),
        method: SensorMethod::ours(),
    }
}

impl SensorStudy {
    /// Passes name and bytes of every file of the report to `add`, as [`Study::write`](super::Study::write) does.
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(self, add: &mut AddFile<'_, E>) -> Result<SensorReport, E> {
        let SensorStudy { found, swaps, mut report, labels, dimensions } = self;
        let figures = figures::figures(&found, &report, &dimensions);
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

impl fmt::Display for SensorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.lines(f, &self.head.env)?;
        swaps::verdict_lines(f, self.swaps.as_ref())?;
        let told = |(mean, interval): Mean| match interval {
            Some([low, high]) => format!("{mean:6.3} ({low:6.3} … {high:6.3})"),
            None => format!("{mean:6.3}"),
        };
        writeln!(f, "  all sensors of another episode change the action by {}", told(self.natural))?;
        for sensor in &self.sensors {
            let change = sensor.change.first().copied().unwrap_or_default();
            writeln!(
                f,
                "  {:22} weight {}  {} {}",
                sensor.name,
                told(sensor.weight),
                INTERVENTIONS[0],
                told(change)
            )?;
        }
        for test in &self.ranks {
            let RankTest { intervention, own, dealt, verdict, .. } = test;
            writeln!(
                f,
                "  rank correlation, {intervention:12} {}  null {}  {verdict}",
                told(*own),
                told(*dealt)
            )?;
        }
        for sensor in self.recovered.iter().flat_map(|recovered| &recovered.sensors) {
            writeln!(
                f,
                "  recovered from the message: {:22} R² {}; in sample {:.3}{}",
                sensor.name,
                told((sensor.r2, sensor.interval)),
                sensor.in_sample,
                sensor.by_episode.map(|r2| format!(", each episode by itself {r2:.3}")).unwrap_or_default()
            )?;
        }
        writeln!(f, "  sensors with larger weights move the action more: {}", self.verdict)?;
        swaps::difference_lines(f, &self.differences)?;
        self.head.place(f)
    }
}
