//! Agents in changed worlds: the papers' generalisation tables, and severity curves for any shift.
//!
//! [`conditions()`] lists what to change, [`run`] drives every agent through every condition on the same episodes, and the
//! [`StressTable`] that comes out writes itself as Markdown, CSV, JSON and [plots](plot). Digits do not depend on the number of
//! workers. With a folder, every finished row is kept there, so that a run that was stopped goes on where it was.

mod conditions;
mod keep;
mod looks;
pub mod plot;
mod published;
mod sheet;
mod table;
mod text;

use std::path::Path;

use foveate_core::Env;
use foveate_envs::registry::EnvRequest;

use crate::budget::Need;
use crate::clock::ProcessCpu;
use crate::error::RunError;
use crate::evaluate::{self, EvalRequest, Labels, Seeds};
use crate::weights::AgentFile;
use crate::workers::Stop;
use crate::worlds;
use keep::{Keeper, RowResult};

pub use conditions::{Condition, What, conditions, severities};
pub use looks::looks;
pub use published::{Published, published};
pub use sheet::{SheetRequest, sheet};
pub use table::{AgentColumn, Change, StressRow, StressTable, solved_at};

/// More rows than this, of all agents together, are a slip of the finger.
const MAX_ROWS: usize = 10_000;
/// Worlds that are held while others are driven; further ones are made again when it is their turn.
const HELD: usize = 64;

/// An agent to be tried.
#[derive(Debug, Clone)]
pub struct Contender {
    /// What to call it at the head of its column.
    pub name: String,
    /// Its weights.
    pub file: AgentFile,
    /// Where they came from.
    pub source: String,
}

/// What to try.
pub struct StressRequest<'a> {
    /// The unmodified world.
    pub world: EnvRequest,
    /// The agents, each a column.
    pub agents: Vec<Contender>,
    /// The rows; the first one is what the others are compared with.
    pub conditions: Vec<Condition>,
    /// The seed of the world's random stream.
    pub seed: u64,
    /// Episodes of every row.
    pub episodes: usize,
    /// Threads; 0 for as many as there are cores.
    pub workers: usize,
    /// Steps after which an episode is over, if the world lets it go on for so long.
    pub max_steps: Option<u64>,
    /// Where finished rows are kept; must exist.
    pub folder: Option<&'a Path>,
}

/// A row that is about to be driven.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Rows done so far, of all agents.
    pub done: usize,
    /// Rows in all.
    pub of: usize,
    /// Rows that were done before and are not driven again.
    pub kept: usize,
    /// Whose turn it is.
    pub agent: &'a str,
    /// The row.
    pub condition: &'a str,
}

/// What driving cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Steps driven, without those of rows that were kept.
    pub steps: u64,
    /// Episodes driven.
    pub episodes: usize,
    /// CPU time of all threads together, building the tracks included.
    pub cpu_seconds: f64,
}

/// Drives every agent through every condition.
///
/// # Errors
/// When there is nothing to do, a world or an agent refuses, the folder takes nothing, or someone asked to stop: then the
/// rows that were finished are kept.
pub fn run(
    request: &StressRequest<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(StressTable, Effort), RunError> {
    let StressRequest { world, agents, conditions, seed, episodes, .. } = request;
    if agents.is_empty() || conditions.is_empty() {
        return Err(RunError::BadRequest {
            why: "there is nothing to drive; name an agent and a variant".into(),
        });
    }
    evaluate::check_episodes(*episodes)?;
    let rows = agents.len().saturating_mul(conditions.len());
    if rows > MAX_ROWS {
        return Err(RunError::BadRequest {
            why: format!(
                "{rows} rows in all; ask for at most {MAX_ROWS}, with fewer agents, variants or shifts"
            ),
        });
    }
    Need::default()
        .with(format!("the episodes of {rows} rows"), rows as u64, 17 * *episodes as u64, "lower --episodes")
        .fits_memory("this table")?;
    // Whatever is wrong with a world is said before hours are spent on the others.
    let mut held = Vec::new();
    for condition in conditions {
        let env = worlds::make(condition.in_world(world))?;
        held.extend((held.len() < HELD).then_some(env));
    }
    let keeper = request.folder.map(Keeper::open).transpose()?;
    let mut effort = Effort::default();
    let (mut done, mut kept) = (0, 0);
    let mut columns = vec![];
    for contender in agents {
        let mut outcomes = vec![];
        for (number, condition) in conditions.iter().enumerate() {
            let name = condition.name.as_str();
            progress(Progress {
                done,
                of: agents.len() * conditions.len(),
                kept,
                agent: &contender.name,
                condition: name,
            });
            let key =
                keep::key(&contender.file, &condition.in_world(world), *seed, *episodes, request.max_steps);
            let outcome = if let Some(outcome) = keeper.as_ref().and_then(|keeper| keeper.find(&key)) {
                kept += 1;
                outcome
            } else {
                let again;
                let env = if let Some(env) = held.get(number) {
                    env
                } else {
                    again = worlds::make(condition.in_world(world))?;
                    &again
                };
                let outcome = drive(request, contender, &**env, name, stop, &mut effort)?;
                if let Some(keeper) = &keeper {
                    keeper.keep(&key, &outcome)?;
                }
                outcome
            };
            outcomes.push(outcome);
            done += 1;
        }
        columns.push(AgentColumn::new(contender, world, conditions, outcomes));
    }
    Ok((StressTable::new(request, columns), effort))
}

/// One row of one agent.
fn drive(
    request: &StressRequest<'_>,
    contender: &Contender,
    env: &dyn Env,
    condition: &str,
    stop: &Stop,
    effort: &mut Effort,
) -> Result<RowResult, RunError> {
    let cpu = ProcessCpu::start();
    let agent = contender.file.agent()?;
    let labels = Labels { variant: condition.into(), weights: contender.name.clone(), ..Labels::default() };
    let seeds = Seeds::Stream { seed: request.seed, episodes: request.episodes };
    let (workers, max_steps) = (request.workers, request.max_steps);
    let report =
        evaluate::run(&EvalRequest { env, agent: &*agent, labels, seeds, workers, max_steps }, stop)?;
    effort.steps += report.lengths.iter().sum::<u64>();
    effort.episodes += report.returns.len();
    effort.cpu_seconds += cpu.elapsed().as_secs_f64();
    Ok(RowResult { returns: report.returns, lengths: report.lengths, terminated: report.terminated })
}

#[cfg(test)]
mod tests;
