//! Which cells of a grid world attend to which, and whether the decisions depend on the cells that get attention.
//!
//! Episodes are played and recorded. Decisions are then repeated in copies of the world whose *state* was edited
//! ([`Env::edit_state`]): an object removed, given another colour or moved, a wall set or taken away. The observation
//! follows from the edited state, so the agent sees what it would see if the world were so. Last, whole episodes are
//! played in worlds that were edited at the start.
//!
//! [`Env::edit_state`]: foveate_core::Env::edit_state

pub(super) mod probe;
pub(super) mod record;

use std::any::Any;
use std::cell::RefCell;

use foveate_core::{Agent, Env, EvaluateError, GridView, ObservationSpace, Seed, Tokens};

use self::probe::{Edit, Effects, Foils, best, with_edit};
use self::record::Record;
use super::cost::Meter;
use super::finding::{Bench, EpisodeShown};
use super::play::{EpisodeStart, Starts, first_decision, replay};
use super::probes::{other_moment, spread};
use super::{ReportHead, Scheduler, StudyError, StudyRequest, swaps};
use crate::figure::Drawing;
use crate::node_maps;
use crate::node_maps::object_label;

/// Moments of other episodes whose observations replace a decision's own.
pub(super) const DONORS: usize = 4;
/// Random orders of the weights behind the null of a rank correlation.
pub(super) const DEALS: usize = 40;
/// Share of decisions that another observation must change; below it nothing is said about cells.
pub(super) const FLOOR: f64 = 0.01;
/// Moments of the shown episode of which maps are drawn.
pub(super) const MOMENTS: usize = 3;

/// Whether the agent attends to the cells of this world, and the world says what lies in them. An agent that does not fit the
/// world is refused later.
pub(super) fn attends_to_cells(env: &dyn Env, agent: &dyn Agent, seed: u64) -> bool {
    let cells = first_decision(env, agent, seed, |env, decision| {
        let cells = decision.attention.is_some_and(|of| matches!(of.tokens(), Tokens::Grid { .. }));
        cells && env.grid_view().is_some()
    });
    matches!(env.spec().observation, ObservationSpace::Grid { .. }) && cells.unwrap_or(false)
}

/// A moment of the shown episode.
pub(super) struct Moment {
    pub(super) step: usize,
    pub(super) view: GridView,
    pub(super) maps: Drawing,
    /// `[heads, queries, cells]`
    pub(super) weights: Vec<f32>,
}

/// All results of the phases.
pub(super) struct MeasuredCells {
    pub(super) records: Vec<Record>,
    /// `[episodes][decisions]`
    pub(super) effects: Vec<Vec<Effects>>,
    /// `[episodes]`: label, edit, score and whether the world ended it; first the episode as it was.
    pub(super) played: Vec<Vec<Played>>,
    pub(super) moments: Vec<Moment>,
}

/// An episode in an edited world.
pub(super) struct Played {
    pub(super) object: String,
    pub(super) edit: &'static str,
    pub(super) score: f64,
    pub(super) terminated: bool,
}

/// Plays, records and tests.
pub(super) fn measure<'a>(
    request: &StudyRequest<'_>,
    scheduler: &'a dyn Scheduler,
    mut meter: Meter<'a>,
) -> Result<Bench<'a>, StudyError> {
    let part = meter.part("playing and filming");
    let swaps = swaps::first_part(request, scheduler, &mut meter)?;
    let seed = Seed::root(request.seed).child("explain cells", 0);
    let (n, decisions) = (request.episodes, request.decisions);
    let starts = Starts::of(request);
    let mut records = scheduler.ordered(
        0..n,
        |e| record::record(starts.get(e), e == 0, &|| scheduler.stopped()),
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
            let random = starts.random(e, seed);
            let other = |rng: &mut foveate_core::Rng, step: usize| {
                let (episode, at) = other_moment(&lengths, e, step, rng);
                (&records[episode], at)
            };
            let foils = Foils { other: &other, random: &*random, seed: seed.child("episode", e as u64) };
            probe::probe(starts.get(e), &spread(lengths[e], decisions), &foils, &|| scheduler.stopped())
        },
        &mut || meter.job(part + 1),
    )?;
    let played = scheduler.ordered(
        0..n,
        |e| play_edited(&starts.get(e), seed.child("edited episode", e as u64), &|| scheduler.stopped()),
        &mut || meter.job(part + 2),
    )?;
    if effects.len() != n || played.len() != n {
        return Err(EvaluateError::Stopped.into());
    }
    let moments = moments(starts.get(0), &spread(lengths[0], MOMENTS))?;
    let first = &mut records[0];
    let mut episode = first.trajectory.clone();
    for values in &mut episode.actions {
        let best = best(values);
        *values = (0..values.len()).map(|at| f64::from(u8::from(Some(at) == best))).collect();
    }
    let film = first.film.take();
    let trajectories = records.iter().map(|record| &record.trajectory);
    let tested = effects.iter().map(Vec::len).sum();
    let head = ReportHead::of(&request.labels, request.seed, trajectories, tested);
    let shown = EpisodeShown {
        verb: "attends to",
        episode,
        maps: vec![],
        picture: film.as_ref().map_or([1, 1], |film| [film.film().seen[2], film.film().seen[3]]),
        film,
        seen: "where cells attend to: a block for each cell, a map for each head",
        columns: vec![],
    };
    let mut measured: Vec<Box<dyn Any>> = vec![Box::new(MeasuredCells { records, effects, played, moments })];
    measured.extend(swaps.map(|swaps| Box::new(swaps) as Box<dyn Any>));
    let (dimensions, meter) = (request.dimensions.clone(), RefCell::new(meter));
    Ok(Bench { head, dimensions, shown, measured, scheduler, meter })
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
