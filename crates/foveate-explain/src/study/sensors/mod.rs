//! What an agent that attends to named sensors listens to, and whether that is true.
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

pub(super) mod probe;
pub(super) mod record;

use std::any::Any;
use std::cell::RefCell;

use foveate_core::{Agent, Env, EvaluateError, Observation, Seed, Tokens};

use self::probe::{Effects, Foils};
use self::record::Record;
use super::cost::Meter;
use super::finding::{Bench, EpisodeShown};
use super::play::{EpisodeStart, Starts, action_scale, first_decision};
use super::probes::{other_moment, spread};
use super::{ReportHead, Scheduler, StudyError, StudyRequest, swaps};
use crate::trajectory::ActionScale;

/// Steps for which a frozen sensor holds its value.
pub(super) const FREEZE: usize = 10;
/// Moments of other episodes whose values replace that of a sensor.
pub(super) const DONORS: usize = 4;
/// Random orders of the weights behind the null of a rank correlation.
pub(super) const DEALS: usize = 40;
/// Mean change of the action, as a part of its range, below which nothing is said about the order of the sensors.
pub(super) const FLOOR: f64 = 0.01;
/// Most names of columns that fit below the weights of the film.
const MOST_COLUMN_NAMES: usize = 12;

/// Returns whether the agent attends to named sensors in this world. An agent that does not fit the world is refused later.
pub(super) fn listens(env: &dyn Env, agent: &dyn Agent, seed: u64) -> bool {
    let listens = first_decision(env, agent, seed, |env, decision| {
        let named = decision.attention.is_some_and(|of| matches!(of.tokens(), Tokens::Named(_)));
        named && matches!(env.observation(), Observation::Vector(_))
    });
    listens.unwrap_or(false)
}

/// All results of the phases.
pub(super) struct MeasuredSensors {
    pub(super) scale: ActionScale,
    /// The agent's episodes.
    pub(super) records: Vec<Record>,
    /// `[episodes][decisions]`, of the agent and of agents with random weights.
    pub(super) effects: [Vec<Vec<Effects>>; 2],
}

/// Plays, records and tests.
pub(super) fn measure<'a>(
    request: &StudyRequest<'_>,
    scheduler: &'a dyn Scheduler,
    mut meter: Meter<'a>,
) -> Result<Bench<'a>, StudyError> {
    let part = meter.part("playing and filming");
    let swaps = swaps::first_part(request, scheduler, &mut meter)?;
    let seed = Seed::root(request.seed).child("explain sensors", 0);
    let (n, decisions) = (request.episodes, request.decisions);
    let scale = action_scale(request.env.spec());
    let starts = Starts::of(request);
    let start = |side: usize, episode: usize| match side {
        0 => starts.get(episode),
        _ => EpisodeStart { agent: starts.random(episode, seed), ..starts.get(episode) },
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
    let [mut records, _] = sides;
    let first = &mut records[0];
    let mut episode = first.trajectory.clone();
    for action in &mut episode.actions {
        *action = scale.shown(action);
    }
    let (film, picture) = first.film.take().unzip();
    let columns = if first.names.len() <= MOST_COLUMN_NAMES { first.names.clone() } else { vec![] };
    let tested = own.iter().map(Vec::len).sum();
    let trajectories = records.iter().map(|record| &record.trajectory);
    let head = ReportHead::of(&request.labels, request.seed, trajectories, tested);
    let head = ReportHead { pictured: false, ..head };
    let shown = EpisodeShown {
        verb: "listens to",
        episode,
        maps: vec![],
        film,
        picture: picture.unwrap_or([1, 1]),
        seen: "weights: a column for each sensor, a row for each code",
        columns,
    };
    let mut measured: Vec<Box<dyn Any>> =
        vec![Box::new(MeasuredSensors { scale, records, effects: [own, random] })];
    measured.extend(swaps.map(|swaps| Box::new(swaps) as Box<dyn Any>));
    let (dimensions, meter) = (request.dimensions.clone(), RefCell::new(meter));
    Ok(Bench { head, dimensions, shown, measured, scheduler, meter })
}
