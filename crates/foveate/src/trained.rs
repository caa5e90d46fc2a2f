//! Trains agents by name.

use std::path::PathBuf;

use foveate_run::RunError;
use foveate_run::cluster::Cluster;
use foveate_run::config::UserSettings;
use foveate_run::fit::configure;
use foveate_run::progress::TrainObserver;
use foveate_run::train::{self, TrainRequest, TrainResult};
use foveate_run::trust::WorldFlags;
use foveate_run::workers::Stop;

/// The options of a training run. The world provides the default of options not given.
#[derive(Debug, Clone, Default)]
pub struct TrainOptions {
    /// The world.
    pub world: WorldFlags,
    /// The base [preset](foveate_registry::PRESETS), which other options override; `None` for the world's
    /// default preset.
    pub preset: Option<String>,
    /// A TOML file with settings that override the preset.
    pub config: Option<PathBuf>,
    /// Training steps of all stages together, which keep their shares; `None` for those of the configuration.
    pub steps: Option<u64>,
    /// Configuration keys with their values, as `recipe.stage.0.sigma=0.05`.
    pub set: Vec<String>,
    /// The parent folder of all runs.
    pub runs: PathBuf,
    /// The name of the run; `None` for the world's name with a number.
    pub name: Option<String>,
}

/// Trains an agent; the run folder holds its weights, log and videos. `observer` receives its progress; `&mut ()`
/// ignores it.
///
/// # Errors
/// When the options are invalid, when the world cannot be built, or when the run fails.
pub fn train(
    options: TrainOptions,
    observer: &mut dyn TrainObserver,
    stop: &Stop,
) -> Result<TrainResult, RunError> {
    train_on(options, None, observer, stop)
}

/// As [`train()`], with the rollouts on the machines of `cluster`; on all cores of this one without.
///
/// # Errors
/// As [`train()`], and when the cluster has no machine for it.
pub fn train_on(
    options: TrainOptions,
    cluster: Option<Box<dyn Cluster>>,
    observer: &mut dyn TrainObserver,
    stop: &Stop,
) -> Result<TrainResult, RunError> {
    let TrainOptions { world, preset, config, steps, set, runs, name } = options;
    let said = UserSettings::read(config.as_deref(), &set, &world)?;
    // Keep the world until the run has built its own: both then share the process that hosts it.
    let mut configured = configure(preset.as_deref(), &said)?;
    if let Some(steps) = steps {
        configured.config.recipe.set_training_steps(steps)?;
    }
    if let Some(note) = &configured.note {
        observer.note(note);
    }
    let request = TrainRequest { config: configured.config.clone(), runs, name };
    train::run_on(&request, cluster, observer, stop)
}
