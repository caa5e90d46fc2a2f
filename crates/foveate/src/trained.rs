//! Training by name.

use std::path::PathBuf;

use foveate_run::RunError;
use foveate_run::config::Said;
use foveate_run::fit::configure;
use foveate_run::progress::Reporter;
use foveate_run::train::{self, Outcome, TrainRequest};
use foveate_run::trust::WorldFlags;
use foveate_run::workers::Stop;

/// What to train. What it leaves out is chosen by the world.
#[derive(Debug, Clone, Default)]
pub struct TrainOptions {
    /// The world.
    pub world: WorldFlags,
    /// The [preset](foveate_registry::PRESETS) that everything else lies on top of; `None` for the one that suits the
    /// world.
    pub preset: Option<String>,
    /// A TOML file with what differs from the preset.
    pub config: Option<PathBuf>,
    /// Keys of the configuration with their values, as `recipe.stage.0.sigma=0.05`.
    pub set: Vec<String>,
    /// The folder of all runs.
    pub runs: PathBuf,
    /// What to call the run; `None` for the world's name, numbered.
    pub name: Option<String>,
}

/// Trains an agent; the run's folder has its weights, log and films.
///
/// # Errors
/// When the options make no sense, the world cannot be made, or the run fails.
pub fn train(options: TrainOptions, reporter: &mut Reporter, stop: &Stop) -> Result<Outcome, RunError> {
    let TrainOptions { world, preset, config, set, runs, name } = options;
    let said = Said::read(config.as_deref(), &set, &world)?;
    // The world lives until the run has its own: the process that hosts it is then shared.
    let configured = configure(preset.as_deref(), &said)?;
    train::run(&TrainRequest { config: configured.config.clone(), runs, name }, reporter, stop)
}
