//! The training loop: runs the work of a [`Training`] on [`Workers`](crate::workers::Workers), and stores it
//! in a [`RunFolder`].
//!
//! A run may be stopped at any moment, even by a kill; [`resume`] continues from its newest checkpoint. The
//! final weights are bit-identical to those of an uninterrupted run, with any number of workers before and
//! after.

mod budget;
mod changes;
mod drive;
mod films;
mod record;
mod summary;

use std::path::{Path, PathBuf};
use std::time::Duration;

use foveate_agents::registry;
use foveate_core::hint::Setting;
use foveate_core::{Agent, Env, EnvError, Model, StepDerivatives, TensorShape};
use foveate_train::{Event, LearnsFrom, Recipe, Selection, Training};

use crate::checkpoint::RunFolder;
use crate::cluster::Cluster;
use crate::config::{AgentSection, TrainConfig, whole_paths};
use crate::cost::Cost;
use crate::error::RunError;
use crate::fit;
use crate::initial;
use crate::parallel_model::ParallelModel;
use crate::progress::{Note, RunName, TrainObserver, count_steps};
use crate::suggest;
use crate::teacher;
use crate::trust::is_native;
use crate::weights::AgentFile;
use crate::workers::{Stop, default_workers};
use drive::Run;

/// Steps of judging a short training that are worth a line.
const WORTH_SAYING: u64 = 10_000;

/// Time between checkpoints: the most that a crash loses.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// The result of [`run`] or [`resume`].
#[derive(Debug, Clone, PartialEq)]
pub struct TrainResult {
    /// The run's folder.
    pub folder: PathBuf,
    /// The report on the best weights; `None` when the run was stopped before it.
    pub report: Option<Event>,
}

/// A request for a new run.
#[derive(Debug, Clone)]
pub struct TrainRequest {
    /// The configuration.
    pub config: TrainConfig,
    /// The folder of all runs.
    pub runs: PathBuf,
    /// The name of this run; `None` for the name of the world, numbered if necessary.
    pub name: Option<String>,
}

/// A request to resume a run.
#[derive(Debug, Clone, Default)]
pub struct ResumeRequest {
    /// Its folder.
    pub folder: PathBuf,
    /// Overrides the number of threads of the configuration; results do not depend on it.
    pub workers: Option<usize>,
    /// Overrides whether evaluations write videos.
    pub videos: Option<bool>,
    /// Resumes although the configuration, the program's version or the log has changed, and records this in
    /// `about.json`.
    pub allow_changes: bool,
    /// True if its world may be one that runs code.
    pub trust: bool,
}

/// Starts a run and trains to its end, or until the user asks to stop.
///
/// # Errors
/// When the configuration is not possible, the folder cannot be created, or a rollout fails. The state up to
/// then is in the folder.
pub fn run(
    request: &TrainRequest,
    observer: &mut dyn TrainObserver,
    stop: &Stop,
) -> Result<TrainResult, RunError> {
    run_on(request, None, observer, stop)
}

/// As [`run`], with the rollouts on the machines of `cluster`; on all cores of this one without. The run's files are the
/// same, and where it was begun does not bind where it is resumed.
///
/// # Errors
/// As [`run`], and when the cluster has no machine for it.
pub fn run_on(
    request: &TrainRequest,
    cluster: Option<Box<dyn Cluster>>,
    observer: &mut dyn TrainObserver,
    stop: &Stop,
) -> Result<TrainResult, RunError> {
    let TrainRequest { config, runs, name } = request;
    let parts = Parts::of(config, runs)?.on(cluster);
    observer.world(&config.env.id);
    let toml = config.to_toml();
    let folder = match name {
        Some(name) => RunFolder::create_named(runs, name, &toml)?,
        None => RunFolder::create(runs, &whole_paths::short_id(&config.env.id), &toml)?,
    };
    if let Some(warning) = Cost::of(config, &parts.tensors()?).and_then(|cost| cost.warning()) {
        observer.note(&Note::Expensive { why: warning });
    }
    parts.warn(observer)?;
    observer.note(&Note::Begins {
        agent: config.agent.name.clone(),
        world: config.env.id.clone(),
        picture: config.env.picture.clone(),
        steps: config.recipe.training_steps(),
        seed: config.seed,
        run: run_name(folder.path(), &config.env.id),
    });
    Run::begin(parts, folder)?.drive(observer, stop)
}

/// The run in `folder`, whose world is `world`.
fn run_name(folder: &Path, world: &str) -> RunName {
    RunName { folder: folder.to_path_buf(), runs_code: !is_native(world) }
}

/// Resumes a run, bit-identical to an uninterrupted one.
///
/// # Errors
/// When the folder is not that of a run, is broken, or its configuration has changed; or as [`run`].
pub fn resume(
    request: &ResumeRequest,
    observer: &mut dyn TrainObserver,
    stop: &Stop,
) -> Result<TrainResult, RunError> {
    resume_on(request, None, observer, stop)
}

/// As [`resume`], with the rollouts on the machines of `cluster`, see [`run_on`].
///
/// # Errors
/// As [`resume`], and when the cluster has no machine for it.
pub fn resume_on(
    request: &ResumeRequest,
    cluster: Option<Box<dyn Cluster>>,
    observer: &mut dyn TrainObserver,
    stop: &Stop,
) -> Result<TrainResult, RunError> {
    let folder = RunFolder::open(&request.folder)?;
    let mut config = TrainConfig::of_text(folder.config(), &folder.path().join("config.toml"))?;
    config.workers = request.workers.unwrap_or(config.workers);
    config.videos = request.videos.unwrap_or(config.videos);
    config.env.trust(request.trust);
    observer.world(&config.env.id);
    let parts = Parts::of(&config, folder.path())?.on(cluster);
    Run::resume(parts, folder, request.allow_changes, observer)?.drive(observer, stop)
}

/// The parts of a run: world, agent and files.
struct Parts {
    config: TrainConfig,
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
    training: Training,
    title: String,
    checkpoint_every: Duration,
    save: SaveWeights,
    /// Where the rollouts run, if not here.
    cluster: Option<Box<dyn Cluster>>,
}

/// Encodes the weights of a generation as the bytes of a file.
type SaveWeights = Box<dyn Fn(&[f32], u64) -> Result<Vec<u8>, RunError>>;

impl Parts {
    /// Builds all parts, if this machine has room for them; the run's folder is, or will be in, `place`.
    fn of(config: &TrainConfig, place: &Path) -> Result<Self, RunError> {
        let TrainConfig { seed, env: env_section, agent: agent_section, recipe, .. } = config;
        let seed = *seed;
        let world = env_section.request()?;
        let env = teacher::world(world.clone(), recipe.teacher.as_ref())?;
        let settings = agent_section.settings()?;
        let name = agent_section.name.clone();
        let whole = registry::full_config(&name, &settings)?;
        let tensors = registry::tensors(&name, &settings)?;
        let threads = if config.workers == 0 { default_workers() } else { config.workers };
        // Checked before large allocations; and again when the size of a demonstration is known.
        let fits =
            |numbers: usize| budget::fits(config, (&whole, &tensors), (env.spec(), numbers), threads, place);
        fits(0)?;
        let agent = agent_section.build()?;
        let fresh = initial::fresh(&recipe.init, &name, &settings)?;
        let mut model = taught(config, &*env, &settings, threads)?;
        // A picture's bytes count as so many numbers.
        let student = model.as_mut().and_then(|model| model.student());
        fits(student.map_or(0, |s| s.inputs() + s.actions() + s.picture().div_ceil(4)))?;
        let save: SaveWeights = Box::new(move |weights, generation| {
            Ok(AgentFile::new(&name, &settings, weights.to_vec())?
                .made_for(&world)
                .note("source", format!("foveate train, seed {seed}, generation {generation}"))
                .to_bytes())
        });
        Ok(Parts {
            env,
            training: Training::new(recipe.clone(), seed, fresh, model)?,
            title: format!(
                "{} learns {} (picture {}, seed {seed})",
                agent_section.name, env_section.id, env_section.picture
            ),
            checkpoint_every: CHECKPOINT_EVERY,
            save,
            agent,
            config: config.clone(),
            cluster: None,
        })
    }

    /// The same with its rollouts on `cluster`.
    fn on(self, cluster: Option<Box<dyn Cluster>>) -> Self {
        Parts { cluster, ..self }
    }

    /// The tensors of the agent.
    fn tensors(&self) -> Result<Vec<TensorShape>, RunError> {
        let AgentSection { name, .. } = &self.config.agent;
        Ok(foveate_agents::registry::tensors(name, &self.config.agent.settings()?)?)
    }

    /// Warns about settings that do not suit this machine.
    fn warn(&self, observer: &mut dyn TrainObserver) -> Result<(), RunError> {
        let fresh = self.training.steps() == 0;
        if let Some(why) = judging(&self.config.recipe, self.training.steps_left()).filter(|_| fresh) {
            observer.note(&Note::Expensive { why });
        }
        if self.cluster.is_some() {
            return Ok(());
        }
        let params = self.tensors()?.iter().map(TensorShape::len).sum();
        if let Some(warning) = foveate_train::balance::warning(&self.config.recipe, params, self.workers()) {
            observer.note(&Note::Unbalanced { why: warning });
        }
        Ok(())
    }

    fn workers(&self) -> usize {
        if self.config.workers == 0 { default_workers() } else { self.config.workers }
    }
}

/// What a short training costs beside its steps: the episodes that judge it, whose number the steps do not change. `left` is the
/// number of all steps.
fn judging(recipe: &Recipe, left: u64) -> Option<String> {
    let training = recipe.training_steps();
    let judging = left.saturating_sub(training);
    if judging < WORTH_SAYING || judging / 10 < training {
        return None;
    }
    let Selection { tracks, final_tracks, report_tracks, .. } = recipe.selection;
    let set = |key: &str| Setting::Set.to(format!("recipe.selection.{key}=5"));
    Some(format!(
        "{} steps of training, and up to {} of episodes that judge it ({tracks} a validation, {final_tracks} a finalist, \
         {report_tracks} for the report); {} shortens them",
        count_steps(training),
        count_steps(judging),
        set("tracks").with(set("final_tracks")).with(set("report_tracks")),
    ))
}

/// The part of the agent that learns by gradients, on this many threads, if a stage needs it; the world must then have an
/// expert, or derivatives.
fn taught(
    config: &TrainConfig,
    env: &dyn Env,
    settings: &serde_json::Value,
    threads: usize,
) -> Result<Option<Box<dyn Model>>, RunError> {
    if !config.recipe.needs_model() {
        return Ok(None);
    }
    let [imitates, derives] =
        [LearnsFrom::Demonstrations, LearnsFrom::Derivatives].map(|data| config.recipe.learns_from(data));
    let mut env = env.boxed_clone();
    env.reset(Some(0));
    let mut action = vec![0.0; env.spec().action.len()];
    if imitates {
        match env.expert(&mut action) {
            Err(EnvError::NoExpert { env: error }) => {
                let why = no_expert(&error, &config.env.id)?;
                return Err(RunError::BadRequest { why });
            }
            asked => asked?,
        }
    }
    if derives {
        env.derivatives(&action, &mut StepDerivatives::default())?;
    }
    Ok(Some(Box::new(ParallelModel::new(registry::model(&config.agent.name, settings)?, threads))))
}

/// What to do in the world `id` without an expert; `env` is what its error calls it.
fn no_expert(env: &str, id: &str) -> Result<String, RunError> {
    let teacher = "name a trained agent to ask as recipe.teacher = { weights = \"FILE\" }";
    let without: Vec<String> =
        fit::presets_without_expert(foveate_registry::world(id).map_err(suggest::named)?)?
            .iter()
            .map(|preset| Setting::Preset.to(preset).to_string())
            .collect();
    let or = match &*without {
        [] => String::new(),
        presets => format!(", or learn without one: {}", presets.join(" or ")),
    };
    Ok(format!("{env} has no expert to learn from; {teacher}{or}"))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod training_tests;
