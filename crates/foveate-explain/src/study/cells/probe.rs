//! Decisions repeated in worlds whose state was edited.

use foveate_core::{
    ActContext, Agent, Attention, Env, EnvError, EvaluateError, GridView, Observation, ObservationBuf,
    PolicyError, Rng, Seed, StateEdit, Tokens,
};

use super::super::StudyError;
use super::super::play::{EpisodeStart, policy_error, replay};
use super::record::Record;
use super::{DEALS, DONORS};
use crate::node_maps::object_label;
use crate::saliency::rank_correlation;
use crate::shuffled;

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::study) enum Edit {
    Removed,
    Recoloured,
    Moved,
}

impl Edit {
    pub(in crate::study) const ALL: [Edit; 3] = [Edit::Removed, Edit::Recoloured, Edit::Moved];

    pub(in crate::study) const fn name(self) -> &'static str {
        match self {
            Edit::Removed => "removed",
            Edit::Recoloured => "recoloured",
            Edit::Moved => "moved",
        }
    }
}

/// How a decision changed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(in crate::study) struct Change {
    /// Whether another action has the largest value: 0 or 1; of several changes, their mean.
    pub(in crate::study) action: f64,
    /// Mean over actions of the absolute change of their values.
    pub(in crate::study) values: f64,
}

/// The first of the largest values.
pub(in crate::study) fn best(values: &[f64]) -> Option<usize> {
    (0..values.len()).reduce(|best, at| if values[at] > values[best] { at } else { best })
}

impl Change {
    fn of(values: &[f64], usual: &[f64]) -> Change {
        let apart = values.iter().zip(usual).map(|(a, b)| (a - b).abs()).sum::<f64>();
        Change {
            action: f64::from(u8::from(best(values) != best(usual))),
            values: apart / usual.len().max(1) as f64,
        }
    }
}

/// What edits did to one decision.
pub(in crate::study) struct Effects {
    /// All that the agent sees replaced by what it sees at a moment of another episode.
    pub(in crate::study) natural: Change,
    /// Objects in view: label, share of all attention, what was done, and its effect.
    pub(in crate::study) objects: Vec<(String, f64, Edit, Change)>,
    /// An object out of view removed.
    pub(in crate::study) unseen: Option<Change>,
    /// A random cell in view without an object changed: an empty one to a wall, a wall to an empty one.
    pub(in crate::study) random_cell: Option<Change>,
    /// The object in view with the most attention removed, and that with the least; of two objects or more.
    pub(in crate::study) most_and_least: Option<[Change; 2]>,
    /// Rank correlation over all cells in view that can be edited of attention and effect: of the agent's attention, of the
    /// same dealt at random, of that of another moment, and of an agent with random weights, of itself.
    pub(in crate::study) ranks: Option<[f64; 4]>,
    /// How many cells that is over.
    pub(in crate::study) cells: usize,
}

/// What decisions are compared with.
pub(in crate::study) struct Foils<'a> {
    /// A moment of another episode: its record and step.
    pub(in crate::study) other: &'a (dyn Fn(&mut Rng, usize) -> (&'a Record, usize) + 'a),
    pub(in crate::study) random: &'a dyn Agent,
    pub(in crate::study) seed: Seed,
}

/// Puts the decisions at `steps` to the test.
pub(in crate::study) fn probe(
    start: EpisodeStart,
    steps: &[usize],
    foils: &Foils<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Effects>, StudyError> {
    let job = start.job;
    let mut all = Vec::with_capacity(steps.len());
    replay(start, steps, &mut |step, env, agent, context| {
        if stopped() {
            return Err(EvaluateError::Stopped.into());
        }
        let decision = Decided { env, agent, context };
        all.push(decision.test(step, foils).map_err(|error| match error {
            Failed::Policy(source) => policy_error(job, step, source),
            Failed::World(source) => source.into(),
        })?);
        Ok(())
    })?;
    Ok(all)
}

/// Why a test failed.
enum Failed {
    Policy(PolicyError),
    World(EnvError),
}

impl From<PolicyError> for Failed {
    fn from(error: PolicyError) -> Self {
        Failed::Policy(error)
    }
}

/// Values of the actions, and the weights of all cells, if the agent attends to cells.
type Decision = (Vec<f64>, Option<Vec<f64>>);

/// A decision of a copy of `agent`.
pub(in crate::study) fn decide(
    agent: &dyn Agent,
    context: &ActContext,
    observation: Observation<'_>,
) -> Result<Decision, PolicyError> {
    let (mut agent, mut context) = (agent.boxed_clone(), context.clone());
    let decision = agent.act(observation, &mut context)?;
    let values = match decision.logits {
        Some(values) => values.iter().map(|&value| f64::from(value)).collect(),
        None => decision.action.to_vec(),
    };
    Ok((values, decision.attention.and_then(|attention| importance(&attention))))
}

/// `[cells]`: the absolute weights of each cell, summed over heads and queries.
pub(in crate::study) fn importance(attention: &Attention<'_>) -> Option<Vec<f64>> {
    let cells = matches!(attention.tokens(), Tokens::Grid { .. });
    cells.then(|| attention.importance().iter().map(|&weight| f64::from(weight.abs())).collect())
}

/// Applies an edit to a copy of `env`; `None` when it is impossible.
pub(in crate::study) fn edited(
    env: &dyn Env,
    edit: &StateEdit<'_>,
) -> Result<Option<Box<dyn Env>>, EnvError> {
    let mut env = env.boxed_clone();
    match env.edit_state(edit) {
        Ok(()) => Ok(Some(env)),
        Err(EnvError::BadEdit { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The change that is made to a cell in view: emptied, or if it is empty, blocked by a wall. Outer walls cannot be edited.
fn toggle(view: &GridView, cell: usize) -> Option<StateEdit<'static>> {
    let at = view.cells[cell].in_world?;
    match view.cells[cell].content.as_deref()? {
        "empty" => Some(StateEdit::Block(at)),
        _ => Some(StateEdit::Remove(at)),
    }
}

/// The world with something done to an object, drawn at random where there is a choice; `None` when it cannot be done.
pub(in crate::study) fn with_edit(
    env: &dyn Env,
    view: &GridView,
    object: &foveate_core::GridObject,
    edit: Edit,
    rng: &mut Rng,
) -> Result<Option<Box<dyn Env>>, EnvError> {
    let Some(at) = object.in_world else { return Ok(None) };
    match edit {
        Edit::Removed => edited(env, &StateEdit::Remove(at)),
        Edit::Recoloured => {
            let others: Vec<&str> =
                view.colors.iter().copied().filter(|color| !object.name.contains(color)).collect();
            let Some(&color) = others.get(rng.below(others.len().max(1) as u64) as usize) else {
                return Ok(None);
            };
            edited(env, &StateEdit::Recolor { at, color })
        }
        Edit::Moved => {
            // A door changes places with a wall in view, anything else with an empty cell.
            let onto = if object.kind == "door" { "wall" } else { "empty" };
            for cell in shuffled(view.cells.len(), rng) {
                let cell = &view.cells[cell as usize];
                if let (Some(to), Some(content)) = (cell.in_world, &cell.content)
                    && content == onto
                    && let Some(env) = edited(env, &StateEdit::Move { from: at, to })?
                {
                    return Ok(Some(env));
                }
            }
            Ok(None)
        }
    }
}

/// A decision about to be taken.
struct Decided<'a> {
    env: &'a dyn Env,
    agent: &'a dyn Agent,
    context: &'a ActContext,
}

impl Decided<'_> {
    fn test(&self, step: usize, foils: &Foils<'_>) -> Result<Effects, Failed> {
        let Decided { env, agent, context } = *self;
        let seed = foils.seed.child("decision", step as u64);
        let world = |source| Failed::World(source);
        let (usual, attention) = decide(agent, context, env.observation())?;
        let (random_usual, random_attention) = decide(foils.random, context, env.observation())?;
        let view = env.grid_view();
        let (Some(view), Some(attention)) = (view, attention) else {
            // Every decision was seen to have both when the episode was recorded.
            return Err(Failed::World(EnvError::NoEdits { env: env.spec().id.clone() }));
        };
        let all: f64 = attention.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let after = |env: &dyn Env| -> Result<Change, Failed> {
            Ok(Change::of(&decide(agent, context, env.observation())?.0, &usual))
        };

        let mut rng = seed.child("donors", 0).rng();
        let donors: Vec<(&Record, usize)> = (0..DONORS).map(|_| (foils.other)(&mut rng, step)).collect();
        let mut natural = Change::default();
        for (record, at) in &donors {
            let seen: &ObservationBuf = &record.seen[*at];
            let change = Change::of(&decide(agent, context, seen.as_observation())?.0, &usual);
            natural.action += change.action / DONORS as f64;
            natural.values += change.values / DONORS as f64;
        }

        let mut objects = vec![];
        let mut removed: Vec<(f64, Change)> = vec![];
        let mut draw = seed.child("edits", 0).rng();
        for (object, cell) in view.visible() {
            for edit in Edit::ALL {
                let Some(env) = with_edit(env, &view, object, edit, &mut draw).map_err(world)? else {
                    continue;
                };
                let change = after(&*env)?;
                if edit == Edit::Removed {
                    removed.push((attention[cell], change));
                }
                objects.push((object_label(&view, object), attention[cell] / all, edit, change));
            }
        }
        let mut unseen = None;
        for object in view.objects.iter().filter(|object| object.cell.is_none()) {
            if unseen.is_none()
                && let Some(env) = with_edit(env, &view, object, Edit::Removed, &mut draw).map_err(world)?
            {
                unseen = Some(after(&*env)?);
            }
        }
        removed.sort_by(|a, b| b.0.total_cmp(&a.0));
        let most_and_least = match &removed[..] {
            [(_, most), .., (_, least)] => Some([*most, *least]),
            _ => None,
        };

        // Every cell in view that can be changed.
        let (mut of_cell, mut effects, mut of_random, mut random_effects) = (vec![], vec![], vec![], vec![]);
        let (mut plain, mut cells) = (vec![], vec![]);
        for cell in (0..view.cells.len()).filter(|&cell| cell != view.agent) {
            let Some(edit) = toggle(&view, cell) else { continue };
            let Some(env) = edited(env, &edit).map_err(world)? else { continue };
            let change = after(&*env)?;
            if !view.visible().any(|(_, shown)| shown == cell) {
                plain.push(change);
            }
            of_cell.push(attention[cell]);
            effects.push(change.values);
            of_random.push(random_attention.as_ref().map_or(0.0, |weights| weights[cell]));
            let acted = decide(foils.random, context, env.observation())?.0;
            random_effects.push(Change::of(&acted, &random_usual).values);
            cells.push(cell);
        }
        let (donor, at) = donors[0];
        let elsewhere: Vec<f64> = cells.iter().map(|&cell| donor.attention[at][cell]).collect();
        let mut deal = seed.child("deals", 0).rng();
        let ranks = (cells.len() > 2).then(|| {
            let dealt = |_| {
                let order = shuffled(cells.len(), &mut deal);
                let dealt: Vec<f64> = order.iter().map(|&at| of_cell[at as usize]).collect();
                rank_correlation(&dealt, &effects)
            };
            let dealt = (0..DEALS).map(dealt).sum::<f64>() / DEALS as f64;
            [
                rank_correlation(&of_cell, &effects),
                dealt,
                rank_correlation(&elsewhere, &effects),
                rank_correlation(&of_random, &random_effects),
            ]
        });
        let random_cell = (!plain.is_empty()).then(|| plain[draw.below(plain.len() as u64) as usize]);
        Ok(Effects { natural, objects, unseen, random_cell, most_and_least, ranks, cells: cells.len() })
    }
}
