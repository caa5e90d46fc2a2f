//! Robustness tests: runs agents in modified worlds, for the papers' generalisation tables and severity
//! curves of any shift.
//!
//! [`conditions()`] lists the modifications, [`run`] runs every agent in every condition on the same
//! episodes, and the resulting [`StressTable`] is written as Markdown, CSV, JSON and [plots](plot). Results
//! do not depend on the number of workers. With a folder, every finished row is stored there, so that a
//! stopped run can be continued.

mod conditions;
pub(crate) mod keep;
mod looks;
pub mod plot;
mod published;
mod sheet;
mod table;
mod text;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use foveate_core::hint::Setting;
use foveate_core::{ActContext, ActMode, Agent, Env, EvaluateError, episode_seed};
use foveate_envs::registry::EnvRequest;

use crate::budget::Need;
use crate::clock::ProcessCpu;
use crate::error::RunError;
use crate::evaluate::{self, EvalRequest, Labels, Seeds};
use crate::fit;
use crate::job_cost::{JobCost, at_most, episodes_in_words};
use crate::weights::AgentFile;
use crate::workers::Stop;
use crate::worlds;
use keep::{Keeper, RowResult};
use table::NoResult;

pub use conditions::{Condition, What, conditions, fitting_shifts, severities};
pub use looks::looks;
pub use published::Published;
pub use sheet::{SheetRequest, sheet};
pub use table::{AgentColumn, Change, StressRow, StressTable, solved_at};

/// A larger number of rows, over all agents, is a typing error.
const MAX_ROWS: usize = 10_000;
/// Number of worlds that stay open at the same time; others are created again when they are needed.
const HELD: usize = 64;

/// An agent to be tested.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The heading of its column.
    pub name: String,
    /// Its weights, or itself.
    pub tested: Tested,
    /// The origin of the weights.
    pub source: String,
}

/// What acts in a robustness test.
#[derive(Clone)]
pub enum Tested {
    /// The agent of a weight file.
    File(AgentFile),
    /// An agent of the calling program. Its finished rows are not kept in a folder, for nothing tells it from another one.
    Own(Arc<Mutex<Box<dyn Agent>>>),
}

impl Tested {
    /// The agent.
    ///
    /// # Errors
    /// When the weights do not fit its settings.
    pub fn agent(&self) -> Result<Box<dyn Agent>, RunError> {
        match self {
            Tested::File(file) => Ok(file.agent()?),
            Tested::Own(agent) => Ok(agent.lock().unwrap_or_else(PoisonError::into_inner).boxed_clone()),
        }
    }

    /// The kind of agent.
    pub fn kind(&self) -> &str {
        match self {
            Tested::File(file) => file.name(),
            Tested::Own(_) => "own",
        }
    }

    /// SHA-256 of the weights; empty for an agent of the calling program.
    pub fn sha256(&self) -> String {
        match self {
            Tested::File(file) => file.sha256(),
            Tested::Own(_) => String::new(),
        }
    }
}

impl fmt::Debug for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tested::File(file) => file.fmt(f),
            Tested::Own(_) => f.write_str("Own"),
        }
    }
}

/// A request for a robustness test.
pub struct StressRequest<'a> {
    /// The unmodified world.
    pub world: EnvRequest,
    /// The agents, one column each.
    pub agents: Vec<Contender>,
    /// The rows; the first one is the baseline.
    pub conditions: Vec<Condition>,
    /// The seed of the world's random stream.
    pub seed: u64,
    /// Episodes of every row.
    pub episodes: usize,
    /// Threads; 0 for as many as there are cores.
    pub workers: usize,
    /// Steps after which an episode is truncated, unless the world ends it earlier.
    pub max_steps: Option<u64>,
    /// The folder for finished rows; it must exist.
    pub folder: Option<&'a Path>,
}

/// A row that is about to be run.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Completed rows, over all agents.
    pub done: usize,
    /// Rows in total.
    pub of: usize,
    /// Rows from an earlier run that are not run again.
    pub kept: usize,
    /// The agent.
    pub agent: &'a str,
    /// The row.
    pub condition: &'a str,
}

/// The cost of the run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Environment steps, without those of stored rows.
    pub steps: u64,
    /// Episodes, without those of stored rows.
    pub episodes: usize,
    /// CPU time of all threads, including track generation.
    pub cpu_seconds: f64,
}

/// Runs every agent in every condition.
///
/// A row in which the world or the agent reports an error has that error in place of a result, see [`StressTable::failed`].
///
/// # Errors
/// When there is nothing to do, no row has a result, the folder cannot be written, or the user asked to stop: the finished rows
/// are then stored.
pub fn run(
    request: &StressRequest<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(StressTable, Effort), RunError> {
    let StressRequest { world, agents, conditions, episodes, .. } = request;
    if agents.is_empty() || conditions.is_empty() {
        return Err(RunError::BadRequest {
            why: "there is nothing to evaluate; name an agent and a variant".into(),
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
        .with(
            format!("the episodes of {rows} rows"),
            rows as u64,
            17 * *episodes as u64,
            format!("lower {}", Setting::Episodes),
        )
        .fits_memory("this table")?;
    let keeper = request.folder.map(Keeper::open).transpose()?;
    // Errors of any world are reported before the first row is run.
    let mut held: Vec<Box<dyn Env>> = Vec::new();
    let mut plans: Vec<Vec<RowPlan>> = agents.iter().map(|_| vec![]).collect();
    let mut plain = None;
    for condition in conditions {
        let env = worlds::make(condition.in_world(world))?;
        for (contender, plans) in agents.iter().zip(&mut plans) {
            let of = plain.as_deref();
            plans.push(RowPlan::of(request, contender, condition, &*env, of, keeper.as_ref())?);
        }
        plain.get_or_insert_with(|| env.boxed_clone());
        held.extend((held.len() < HELD).then_some(env));
    }
    let frames = held.first().and_then(|env| env.spec().observation.image()).map_or(1, |image| image.frames);
    let mut keys = BTreeSet::new();
    let played = plans.iter().flatten().filter(|plan| match plan {
        // A row with the same weights as another one is that one.
        RowPlan::Play(Some(key)) => keys.insert(key.clone()),
        RowPlan::Play(None) => true,
        RowPlan::Kept(_) | RowPlan::DoesNotFit(_) => false,
    });
    let played = played.count();
    stop.announce(cost(request, played, held.first().and_then(|env| env.spec().max_steps)));
    let mut effort = Effort::default();
    let (mut done, mut kept) = (0, 0);
    let mut first_error = None;
    let mut columns = vec![];
    for (contender, plans) in agents.iter().zip(plans) {
        let mut outcomes = vec![];
        for ((number, condition), plan) in conditions.iter().enumerate().zip(plans) {
            let name = condition.name.as_str();
            progress(Progress { done, of: rows, kept, agent: &contender.name, condition: name });
            let outcome = match plan.again(keeper.as_ref()) {
                RowPlan::Kept(outcome) => {
                    kept += 1;
                    Ok(outcome)
                }
                RowPlan::DoesNotFit(why) => Err(NoResult { why, failed: false }),
                RowPlan::Play(key) => {
                    let again;
                    let env = if let Some(env) = held.get(number) {
                        env
                    } else {
                        again = worlds::make(condition.in_world(world))?;
                        &again
                    };
                    let outcome = run_row(request, contender, &**env, name, stop, &mut effort);
                    let outcome = outcome.map_err(|error| match &contender.tested {
                        Tested::File(file) => fit::with_picture(error, &condition.in_world(world), file),
                        Tested::Own(_) => error,
                    });
                    match outcome {
                        Ok(outcome) => {
                            if let (Some(keeper), Some(key)) = (&keeper, &key) {
                                keeper.keep(key, &outcome)?;
                            }
                            Ok(outcome)
                        }
                        Err(error @ RunError::Evaluate(EvaluateError::Stopped)) => return Err(error),
                        Err(error) if stop.asked() => return Err(error),
                        Err(error) => {
                            let why = error.to_string();
                            first_error.get_or_insert(error);
                            Err(NoResult { why, failed: true })
                        }
                    }
                }
            };
            outcomes.push(outcome);
            done += 1;
        }
        columns.push(AgentColumn::new(contender, world, conditions, outcomes));
    }
    let any = columns.iter().flat_map(|column| &column.rows).any(|row| row.skipped.is_none());
    if let Some(error) = first_error.filter(|_| !any) {
        return Err(error);
    }
    Ok((StressTable::new(request, frames, columns), effort))
}

/// What becomes of a row of an agent.
enum RowPlan {
    /// An earlier run stored it.
    Kept(RowResult),
    /// The agent cannot act in it, for this reason.
    DoesNotFit(String),
    /// It is played, and stored under this key.
    Play(Option<String>),
}

impl RowPlan {
    /// Of `contender` in `env`, the world of `condition`, beside the unmodified world `plain`, if there is one.
    fn of(
        request: &StressRequest<'_>,
        contender: &Contender,
        condition: &Condition,
        env: &dyn Env,
        plain: Option<&dyn Env>,
        keeper: Option<&Keeper>,
    ) -> Result<Self, RunError> {
        let StressRequest { world, seed, episodes, max_steps, .. } = request;
        let key = match (keeper, &contender.tested) {
            (Some(keeper), Tested::File(file)) => {
                let key = keep::key(file, &condition.in_world(world), *seed, *episodes, *max_steps);
                if let Some(outcome) = keeper.find(&key) {
                    return Ok(RowPlan::Kept(outcome));
                }
                Some(key)
            }
            _ => None,
        };
        Ok(not_for(&contender.tested, env, plain)?.map_or(RowPlan::Play(key), RowPlan::DoesNotFit))
    }

    /// The same, when its turn has come: another row may have stored what it would play.
    fn again(self, keeper: Option<&Keeper>) -> Self {
        match self {
            RowPlan::Play(Some(key)) => {
                keeper.and_then(|keeper| keeper.find(&key)).map_or(RowPlan::Play(Some(key)), RowPlan::Kept)
            }
            other => other,
        }
    }
}

/// The cost of `rows` rows that are played, over all agents.
fn cost(request: &StressRequest<'_>, rows: usize, limit: Option<usize>) -> JobCost {
    let StressRequest { agents, conditions, episodes, max_steps, workers, .. } = request;
    let (all, each) = (rows * episodes, episodes_in_words(*episodes));
    let other = agents.len() * conditions.len() - rows;
    let other = if other > 0 { format!("; {other} rows are stored or do not fit") } else { String::new() };
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let parts = format!(
        "{each}{} in each of {} with {}, {} in all{other}",
        at_most(limit, *max_steps),
        plural(conditions.len(), "world"),
        plural(agents.len(), "agent"),
        episodes_in_words(all),
    );
    JobCost::of_episodes("stress", parts, all, *workers)
}

/// Why an agent cannot act in a changed world whose observations have another shape than those of the unmodified world
/// `plain`, such as more numbers than it has inputs; `None` when it can, or when the shape is the same.
fn not_for(tested: &Tested, env: &dyn Env, plain: Option<&dyn Env>) -> Result<Option<String>, RunError> {
    if plain.is_none_or(|plain| plain.spec().observation == env.spec().observation) {
        return Ok(None);
    }
    let (mut env, mut agent) = (env.boxed_clone(), tested.agent()?);
    env.reset(Some(0));
    agent.begin_episode(episode_seed(0, 0));
    let acted = agent.act(env.observation(), &mut ActContext::default());
    Ok(acted.err().map(|error| error.to_string()))
}

/// Runs one row of one agent.
fn run_row(
    request: &StressRequest<'_>,
    contender: &Contender,
    env: &dyn Env,
    condition: &str,
    stop: &Stop,
    effort: &mut Effort,
) -> Result<RowResult, RunError> {
    let cpu = ProcessCpu::start();
    let agent = contender.tested.agent()?;
    let labels = Labels { variant: condition.into(), weights: contender.name.clone(), ..Labels::default() };
    let seeds = Seeds::Stream { seed: request.seed, episodes: request.episodes };
    let (workers, max_steps) = (request.workers, request.max_steps);
    let agent = &*agent;
    let reference = None;
    let report = evaluate::run(
        &EvalRequest { env, agent, labels, seeds, workers, max_steps, mode: ActMode::Greedy, reference },
        stop,
    )?;
    effort.steps += report.lengths.iter().sum::<u64>();
    effort.episodes += report.returns.len();
    effort.cpu_seconds += cpu.elapsed().as_secs_f64();
    Ok(RowResult { returns: report.returns, lengths: report.lengths, terminated: report.terminated })
}

#[cfg(test)]
mod tests;
