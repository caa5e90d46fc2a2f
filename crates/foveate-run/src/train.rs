//! The training loop: a [`Training`] driven by [`Workers`](crate::workers::Workers), kept in a [`RunFolder`].
//!
//! A run may be stopped at any moment, politely or not; [`resume`] goes on from its newest checkpoint and ends with the
//! same weights, to the bit, as if it had never stopped, with any number of workers before and after.

mod changes;
mod drive;
mod films;
mod record;
mod summary;

use std::path::{Path, PathBuf};
use std::time::Duration;

use foveate_agents::registry;
use foveate_core::{Agent, Env, Student, TensorShape};
use foveate_train::{Event, Training};

use crate::budget;
use crate::checkpoint::RunFolder;
use crate::config::{AgentSection, TrainConfig};
use crate::cost::Cost;
use crate::error::RunError;
use crate::initial;
use crate::parallel_student::ParallelStudent;
use crate::progress::Reporter;
use crate::trust::{Trust, flag_for};
use crate::weights::AgentFile;
use crate::workers::{Stop, default_workers};
use drive::Run;

/// Time between checkpoints: what a crash can cost.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// How a call of [`run`] or [`resume`] ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The run's folder.
    pub folder: PathBuf,
    /// The report on the best weights; `None` when the run was stopped before.
    pub report: Option<Event>,
}

/// A new run.
#[derive(Debug, Clone)]
pub struct TrainRequest {
    /// What to do.
    pub config: TrainConfig,
    /// The folder of all runs.
    pub runs: PathBuf,
    /// What to call this one; `None` for the name of the world, numbered if need be.
    pub name: Option<String>,
}

/// A run to go on with.
#[derive(Debug, Clone, Default)]
pub struct ResumeRequest {
    /// Its folder.
    pub folder: PathBuf,
    /// The number of threads, if it is not to be that of the configuration; the digits do not depend on it.
    pub workers: Option<usize>,
    /// Whether evaluations leave films, if it is not to be as the configuration says.
    pub videos: Option<bool>,
    /// Goes on although the configuration, the program's version or the log was changed, and says so in `about.json`.
    pub allow_changes: bool,
    /// Whether its world may be one that runs code.
    pub trust: Trust,
}

/// Starts a run and trains to its end, or until someone asks to stop.
///
/// # Errors
/// When the configuration cannot be met, the folder cannot be made, or a rollout fails. Whatever was learnt until then
/// is in the folder.
pub fn run(request: &TrainRequest, reporter: &mut Reporter, stop: &Stop) -> Result<Outcome, RunError> {
    let TrainRequest { config, runs, name } = request;
    let parts = Parts::of(config, runs)?;
    reporter.in_world(&config.env.id);
    let toml = config.to_toml();
    let folder = match name {
        Some(name) => RunFolder::create_named(runs, name, &toml)?,
        None => RunFolder::create(runs, &config.env.id, &toml)?,
    };
    if let Some(warning) = Cost::of(config, &parts.tensors()?).and_then(|cost| cost.warning()) {
        reporter.note(&warning);
    }
    parts.warn(reporter)?;
    reporter.note(&header(config, folder.path()));
    Run::begin(parts, folder)?.drive(reporter, stop)
}

/// What is said before a run begins.
fn header(config: &TrainConfig, folder: &Path) -> String {
    format!(
        "training {} on {} (picture {}), {} steps, seed {}; everything goes to {}\nCtrl-C stops safely, `foveate train --resume {}{}` goes on",
        config.agent.name,
        config.env.id,
        config.env.picture,
        foveate_explain::figure::count_steps(config.recipe.training_steps()),
        config.seed,
        folder.display(),
        folder.display(),
        flag_for(&config.env.id),
    )
}

/// Goes on with a run, exactly.
///
/// # Errors
/// When the folder is not that of a run, is broken, or its configuration was changed; or as [`run`].
pub fn resume(request: &ResumeRequest, reporter: &mut Reporter, stop: &Stop) -> Result<Outcome, RunError> {
    let folder = RunFolder::open(&request.folder)?;
    let mut config = TrainConfig::of_text(folder.config(), &folder.path().join("config.toml"))?;
    config.workers = request.workers.unwrap_or(config.workers);
    config.videos = request.videos.unwrap_or(config.videos);
    config.env.trust(request.trust);
    reporter.in_world(&config.env.id);
    let parts = Parts::of(&config, folder.path())?;
    Run::resume(parts, folder, request.allow_changes, reporter)?.drive(reporter, stop)
}

/// What a run needs from outside.
struct Parts {
    config: TrainConfig,
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
    training: Training,
    title: String,
    checkpoint_every: Duration,
    save: SaveWeights,
}

/// The bytes of a file with weights, of a generation.
type SaveWeights = Box<dyn Fn(&[f32], u64) -> Result<Vec<u8>, RunError>>;

impl Parts {
    /// All of it, if this machine has room for it; the run's folder is, or will be in, `place`.
    fn of(config: &TrainConfig, place: &Path) -> Result<Self, RunError> {
        let TrainConfig { seed, env: env_section, agent: agent_section, recipe, .. } = config;
        let seed = *seed;
        let world = env_section.request()?;
        let env = crate::worlds::make(world.clone())?;
        let settings = agent_section.settings()?;
        let name = agent_section.name.clone();
        let whole = registry::full_config(&name, &settings)?;
        let tensors = registry::tensors(&name, &settings)?;
        let crew = if config.workers == 0 { default_workers() } else { config.workers };
        // Before anything of this size is made; then once more with what a demonstration takes.
        let fits =
            |numbers: usize| budget::training(config, (&whole, &tensors), (env.spec(), numbers), crew, place);
        fits(0)?;
        let agent = agent_section.build()?;
        let fresh = initial::fresh(&recipe.init, &name, &settings)?;
        let student = taught(config, &*env, &settings, crew)?;
        fits(student.as_ref().map_or(0, |student| student.inputs() + student.actions()))?;
        let save: SaveWeights = Box::new(move |weights, generation| {
            Ok(AgentFile::new(&name, &settings, weights.to_vec())?
                .made_for(&world)
                .note("source", format!("foveate train, seed {seed}, generation {generation}"))
                .to_bytes())
        });
        Ok(Parts {
            env,
            training: Training::new(recipe.clone(), seed, fresh, student)?,
            title: format!(
                "{} learns {} (picture {}, seed {seed})",
                agent_section.name, env_section.id, env_section.picture
            ),
            checkpoint_every: CHECKPOINT_EVERY,
            save,
            agent,
            config: config.clone(),
        })
    }

    /// The agent's parameters.
    fn tensors(&self) -> Result<Vec<TensorShape>, RunError> {
        let AgentSection { name, .. } = &self.config.agent;
        Ok(foveate_agents::registry::tensors(name, &self.config.agent.settings()?)?)
    }

    /// Says what of the configuration does not suit this machine.
    fn warn(&self, reporter: &mut Reporter) -> Result<(), RunError> {
        let params = self.tensors()?.iter().map(TensorShape::len).sum();
        if let Some(warning) = foveate_train::balance::warning(&self.config.recipe, params, self.workers()) {
            reporter.warn(&warning);
        }
        Ok(())
    }

    fn workers(&self) -> usize {
        if self.config.workers == 0 { default_workers() } else { self.config.workers }
    }
}

/// The part of the agent that learns by gradients, on so many threads, if a stage is imitation; the world must have an expert then.
fn taught(
    config: &TrainConfig,
    env: &dyn Env,
    settings: &serde_json::Value,
    threads: usize,
) -> Result<Option<Box<dyn Student>>, RunError> {
    if !config.recipe.imitates() {
        return Ok(None);
    }
    let mut env = env.boxed_clone();
    env.reset(Some(0));
    let actions = env.spec().action.len();
    env.expert(&mut vec![0.0; actions])?;
    Ok(Some(Box::new(ParallelStudent::new(registry::student(&config.agent.name, settings)?, threads))))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod training_tests;
