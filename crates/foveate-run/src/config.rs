//! Training configuration: read, check, use.
//!
//! A configuration is a TOML file. Omitted keys come from a [preset](foveate_registry::PRESETS), `--set`
//! overrides both, and an unknown key is an error at any level. A run copies the complete result into its
//! folder.

mod layers;
#[cfg(test)]
mod tests;
pub(crate) mod whole_paths;

use std::collections::BTreeMap;
use std::path::Path;

use foveate_agents::registry;
use foveate_core::Agent;
use foveate_core::forms::{self, Setting};
use foveate_envs::registry::EnvRequest;
use foveate_train::{Recipe, Stage};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::RunError;
use crate::trust::{FileWorld, WorldSpec};
use crate::workers::MOST_WORKERS;

pub use self::layers::{UserSettings, agent_settings};
use self::layers::{bad, parse, with_hint};
pub(crate) use self::layers::{env_id, preset_table, read_text, read_text_in};

/// The version of the file format.
pub const VERSION: u32 = 1;

/// The complete configuration of a training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Version of the format: [`VERSION`].
    pub version: u32,
    /// All randomness of the run derives from this seed.
    pub seed: u64,
    /// Threads; 0 for one per core. Results do not depend on it.
    pub workers: usize,
    /// True if every evaluation writes a video. Results do not depend on it.
    #[serde(default = "yes")]
    pub videos: bool,
    /// The world.
    pub env: EnvSection,
    /// The agent.
    pub agent: AgentSection,
    /// The settings of learning.
    pub recipe: Recipe,
}

/// The world to train in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvSection {
    /// Its name, as in `foveate list`.
    pub id: String,
    /// What the agent sees.
    pub picture: String,
    /// Changes of the world's appearance, as in `--variant`.
    pub variants: Vec<String>,
    /// Shifts of what the agent sees and does, in training and in its evaluations, as in `--shift`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shifts: Vec<String>,
    /// Options of the world itself.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub options: Table,
    /// Where the section was read and what the command line says: this decides whether the world is trusted.
    /// A section without any flags is treated as one from a stranger.
    #[serde(skip)]
    origin: Origin,
}

/// The origin of a section.
#[derive(Debug, Clone, Default)]
struct Origin {
    file: String,
    flags: WorldSpec,
}

/// Equal if the same world is requested, whatever the origin.
impl PartialEq for EnvSection {
    fn eq(&self, other: &Self) -> bool {
        let EnvSection { id, picture, variants, shifts, options, origin: _ } = self;
        (id, picture, variants, shifts, options)
            == (&other.id, &other.picture, &other.variants, &other.shifts, &other.options)
    }
}

/// The agent to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSection {
    /// Its name, as in `foveate list`.
    pub name: String,
    /// Settings that override the agent's defaults.
    #[serde(default)]
    pub config: Table,
}

impl EnvSection {
    /// The request for this world.
    ///
    /// # Errors
    /// When the section came from a file that may not request this world, see [`FileWorld::accept`].
    pub fn request(&self) -> Result<EnvRequest, RunError> {
        let asked = EnvRequest {
            id: self.id.clone(),
            picture: Some(self.picture.clone()),
            variants: self.variants.clone(),
            shifts: self.shifts.clone(),
            options: texts(&self.options),
            ..EnvRequest::default()
        };
        FileWorld::new(asked, &*self.origin.file).accept(&self.origin.flags)
    }

    /// Names all files by their whole paths: a run is also used from other folders than that in which it began.
    fn make_files_absolute(&mut self) {
        let EnvSection { id, variants, shifts, options, .. } = self;
        let flags = &mut self.origin.flags;
        // What the user's flags say comes last, so it is the same.
        for id in std::iter::once(id).chain(&mut flags.id) {
            *id = whole_paths::of_id(id);
        }
        for text in variants.iter_mut().chain(&mut flags.variants) {
            *text = whole_paths::of_variant(text);
        }
        for text in shifts.iter_mut().chain(&mut flags.shifts) {
            *text = whole_paths::of_shift(text);
        }
        for (name, value) in options {
            if let Value::String(path) = value {
                *path = whole_paths::of_option(name, path);
            }
        }
        for (name, path) in flags.options.iter_mut() {
            *path = whole_paths::of_option(name, path);
        }
    }

    /// Sets the file that the section came from, and the world's flags of the command line.
    pub fn came_from(&mut self, file: impl std::fmt::Display, flags: WorldSpec) {
        self.origin = Origin { file: file.to_string(), flags };
    }

    /// Sets the world's flags of the command line.
    pub fn set_flags(&mut self, flags: WorldSpec) {
        self.origin.flags = flags;
    }

    /// Sets whether the command line trusts the world.
    pub fn trust(&mut self, trust: bool) {
        self.origin.flags.trust = trust;
    }
}

/// The options as text.
fn texts(options: &Table) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    options.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// The world's flags of a command line as a section of a configuration.
fn section_of(flags: &WorldSpec) -> Table {
    // Trust is the user's, never a configuration's. Texts are TOML.
    let mut table = Table::try_from(flags).unwrap_or_default();
    table.remove("trust");
    table
}

impl AgentSection {
    /// The agent's settings in the form that registries take.
    ///
    /// # Errors
    /// When a value has a type that no agent has, such as a date.
    pub fn settings(&self) -> Result<serde_json::Value, RunError> {
        serde_json::to_value(&self.config)
            .map_err(|error| RunError::BadRequest { why: format!("agent.config: {error}") })
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// When there is no such agent or its settings are invalid.
    pub fn build(&self) -> Result<Box<dyn Agent>, RunError> {
        Ok(registry::make(&self.name, &self.settings()?)?)
    }
}

/// Every setting of a run but those of its agent and of its learners, with its form; the defaults are those of `preset`.
///
/// # Errors
/// When there is no such preset.
pub fn settings(preset: &str) -> Result<Vec<Setting>, RunError> {
    let preset = serde_json::to_value(preset_table(preset)?).unwrap_or_default();
    let mut all = forms::settings(&preset, &complete);
    // The others of a stage are settings of its learner.
    all.retain(|setting| setting.key.strip_prefix("recipe.stage.0.").is_none_or(Stage::has_key));
    Ok(all)
}

/// Reads a configuration and writes it with its defaults.
fn complete(given: &serde_json::Value) -> Result<serde_json::Value, String> {
    let config = TrainConfig::deserialize(given).map_err(|error| error.to_string())?;
    // What no stage knows is a setting of its learner; the place that asks for names is no setting.
    if config.recipe.stages.iter().any(|stage| stage.options.contains_key("?")) {
        let known: Vec<String> = Stage::keys().map(|key| format!("`{key}`")).collect();
        return Err(format!("unknown field `?`, expected one of {}", known.join(", ")));
    }
    serde_json::to_value(config).map_err(|error| error.to_string())
}

const fn yes() -> bool {
    true
}

impl TrainConfig {
    /// Loads a preset, overridden by the contents of `file` if there is one, overridden by every `key=value`
    /// of `sets`.
    ///
    /// Keys of `sets` are paths: `recipe.stage.0.sigma=0.05` for the first stage. Values are TOML; a value
    /// that is not TOML is a string. Keys that a preset leaves to the world stay unset here, see
    /// [`crate::fit::configure`].
    ///
    /// # Errors
    /// When the preset is unknown, the file cannot be read, a key does not exist, or a value is out of its
    /// range.
    pub fn load(preset: &str, file: Option<&Path>, sets: &[impl AsRef<str>]) -> Result<Self, RunError> {
        UserSettings::read(file, sets, &WorldSpec::default())?.config(preset, Table::new())
    }

    /// Reads a complete configuration, as a run folder stores it; no defaults are filled in.
    ///
    /// # Errors
    /// As [`TrainConfig::load`].
    pub fn read(path: &Path) -> Result<Self, RunError> {
        Self::of_text(&read_text(path)?, path)
    }

    /// As [`TrainConfig::read`], for the contents `text` of the file at `path`.
    ///
    /// # Errors
    /// As [`TrainConfig::load`].
    pub fn of_text(text: &str, path: &Path) -> Result<Self, RunError> {
        let from = path.display().to_string();
        Self::from_table(&parse(text, &from)?, &from)
    }

    /// The configuration as a TOML file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("plain tables of numbers and texts can be written")
    }

    fn from_table(table: &Table, from: &str) -> Result<Self, RunError> {
        let mut config: TrainConfig = serde_path_to_error::deserialize(table.clone()).map_err(|error| {
            let place = error.path().to_string().replace('[', ".").replace(']', "");
            let given = serde_json::to_value(table).unwrap_or_default();
            if let Some(why) = forms::refusal(&given, &complete, "") {
                return bad(from, why);
            }
            bad(from, format!("{place}: {}", with_hint(error.inner(), &place, table)))
        })?;
        config.env.came_from(from, WorldSpec { only_of_file: true, ..WorldSpec::default() });
        if let Some(why) = config.refusal() {
            return Err(bad(from, why));
        }
        config.check().map_err(|why| bad(from, why))?;
        Ok(config)
    }

    /// Which setting of the agent or of a learner has the wrong form.
    fn refusal(&self) -> Option<String> {
        let AgentSection { name, .. } = &self.agent;
        let of_agent = registry::find(name)
            .ok()
            .and_then(|agent| agent.refusal(&self.agent.settings().ok()?, "agent.config."));
        let of_stage = |(index, stage): (usize, &Stage)| {
            // A number that is not finite has no form in JSON, but its learner says what is wrong with it.
            stage.learner(&self.recipe.algorithm, 0).err()?;
            stage.refusal(&self.recipe.algorithm, &format!("recipe.stage.{index}."))
        };
        of_agent.or_else(|| self.recipe.stages.iter().enumerate().find_map(of_stage))
    }

    /// Checks everything that can be checked without a world or an agent.
    fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!("version = {}; this program reads version {VERSION}", self.version));
        }
        if self.workers > MOST_WORKERS {
            return Err(format!("workers = {}; choose a number from 0 to {MOST_WORKERS}", self.workers));
        }
        if i64::try_from(self.seed).is_err() {
            return Err(format!("seed = {}; choose a number below 2^63", self.seed));
        }
        self.recipe.check().map_err(|error| error.to_string())
    }
}
