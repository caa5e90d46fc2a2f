//! Training configuration: read, check, use.
//!
//! A configuration is a TOML file. Omitted keys come from a [preset](foveate_registry::PRESETS), `--set`
//! overrides both, and an unknown key is an error at any level. A run copies the complete result into its
//! folder.

use std::collections::BTreeMap;
use std::path::Path;

use foveate_agents::registry;
use foveate_core::{Agent, near};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{PRESETS, WORLDS};
use foveate_train::Recipe;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::initial;
use crate::trust::{FileWorld, Repeat, Trust, WorldFlags};
use crate::workers::MOST_WORKERS;

/// The version of the file format.
pub const VERSION: u32 = 1;

/// Larger files are refused.
const MAX_FILE: u64 = 1 << 20;

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
    /// Whether every evaluation writes a video. Results do not depend on it.
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
    flags: WorldFlags,
}

/// Equal if the same world is requested, whatever the origin.
impl PartialEq for EnvSection {
    fn eq(&self, other: &Self) -> bool {
        let EnvSection { id, picture, variants, options, origin: _ } = self;
        (id, picture, variants, options) == (&other.id, &other.picture, &other.variants, &other.options)
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
            options: texts(&self.options),
            ..EnvRequest::default()
        };
        FileWorld::new(asked, &*self.origin.file).accept(&self.origin.flags)
    }

    /// Sets the file that the section came from, and the world's flags of the command line.
    pub fn came_from(&mut self, file: impl std::fmt::Display, flags: WorldFlags) {
        self.origin = Origin { file: file.to_string(), flags };
    }

    /// Sets the world's flags of the command line.
    pub fn set_flags(&mut self, flags: WorldFlags) {
        self.origin.flags = flags;
    }

    /// Sets whether the command line trusts the world.
    pub fn trust(&mut self, trust: Trust) {
        self.origin.flags.trust = trust;
    }
}

/// The options as text.
fn texts(options: &Table) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    options.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// The world's flags of a command line as a section of a configuration.
fn section_of(flags: &WorldFlags) -> Table {
    let WorldFlags { id, picture, variants, options, .. } = flags;
    let mut table = Table::new();
    for (key, value) in [("id", id), ("picture", picture)] {
        if let Some(value) = value {
            table.insert(key.to_owned(), value.clone().into());
        }
    }
    if !variants.is_empty() {
        table.insert("variants".into(), variants.clone().into());
    }
    if !options.is_empty() {
        let options = options.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        table.insert("options".into(), Value::Table(options.collect()));
    }
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
        Said::read(file, sets, &WorldFlags { repeat: Repeat::Train, ..WorldFlags::default() })?
            .config(preset, Table::new())
    }

    /// Reads a complete configuration, as a run folder stores it; no defaults are filled in.
    ///
    /// # Errors
    /// As [`TrainConfig::load`].
    pub fn read(path: &Path) -> Result<Self, RunError> {
        Self::of_text(&read_text(path)?, path)
    }

    /// As [`TrainConfig::read`], for the contents `text` of the file at `path`.
    pub(crate) fn of_text(text: &str, path: &Path) -> Result<Self, RunError> {
        let from = path.display().to_string();
        Self::from_table(&parse(text, &from)?, &from)
    }

    /// The configuration as a TOML file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("plain tables of numbers and texts can be written")
    }

    fn from_table(table: &Table, from: &str) -> Result<Self, RunError> {
        let mut config: TrainConfig = serde_path_to_error::deserialize(table.clone())
            .map_err(|error| bad(from, format!("{}: {}", error.path(), with_hint(error.inner(), table))))?;
        config.env.came_from(from, WorldFlags { repeat: Repeat::No, ..WorldFlags::default() });
        config.check().map_err(|why| bad(from, why))?;
        Ok(config)
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

/// The user's settings for a run: a file, overridden by the command line.
#[derive(Debug, Clone)]
pub struct Said {
    /// The layers; later ones override earlier ones.
    layers: Vec<Table>,
    /// Their name in errors; empty without layers.
    from: String,
    /// The file.
    file: Option<String>,
    /// The world's flags of the command line.
    flags: WorldFlags,
}

impl Said {
    /// Reads `file`, then every `key=value` of `sets`, then the world's flags.
    ///
    /// # Errors
    /// When the file cannot be read or is not TOML, or an entry of `sets` is not `key=value`.
    pub fn read(file: Option<&Path>, sets: &[impl AsRef<str>], flags: &WorldFlags) -> Result<Self, RunError> {
        let mut layers = vec![];
        let file = file.map(|path| path.display().to_string()).zip(file);
        if let Some((name, path)) = &file {
            layers.push(parse(&read_text(path)?, name)?);
        }
        let mut command_line = Table::new();
        for set in sets {
            let set = one_key(set.as_ref())?;
            merge(&mut command_line, set.clone());
            layers.push(set);
        }
        let world = Table::from_iter([("env".to_owned(), Value::Table(section_of(flags)))]);
        merge(&mut command_line, world.clone());
        layers.push(world);

        let file = file.map(|(name, _)| name);
        let from: Vec<&str> =
            file.as_deref().into_iter().chain((!sets.is_empty()).then_some("--set")).collect();
        let env = command_line.get("env").and_then(Value::as_table);
        let text = |key: &str| env?.get(key)?.as_str().map(str::to_owned);
        let options = env.and_then(|env| env.get("options")?.as_table());
        let flags = WorldFlags {
            id: text("id"),
            picture: text("picture"),
            options: options.map(texts).unwrap_or_default(),
            ..flags.clone()
        };
        Ok(Said { from: from.join(" and "), layers, file, flags })
    }

    /// The requested world, with this picture; the section may be incomplete.
    pub(crate) fn env(&self, picture: &str) -> EnvSection {
        let section = self.section("env");
        let variants = section.get("variants").and_then(Value::as_array).into_iter().flatten();
        EnvSection {
            id: self.world().unwrap_or_default(),
            picture: picture.to_owned(),
            variants: variants.filter_map(Value::as_str).map(str::to_owned).collect(),
            options: section.get("options").and_then(Value::as_table).cloned().unwrap_or_default(),
            origin: self.origin(&self.from),
        }
    }

    /// Where the world comes from.
    fn origin(&self, from: &str) -> Origin {
        Origin { file: self.file.clone().unwrap_or_else(|| from.to_owned()), flags: self.flags.clone() }
    }

    /// All of the user's settings in the section `name`.
    pub fn section(&self, name: &str) -> Table {
        let mut all = Table::new();
        for layer in &self.layers {
            if let Some(Value::Table(table)) = layer.get(name) {
                merge(&mut all, table.clone());
            }
        }
        all
    }

    /// The world that the user named.
    pub fn world(&self) -> Option<String> {
        self.section("env").get("id").and_then(Value::as_str).map(str::to_owned)
    }

    /// The configuration: the preset, overridden by the world's own settings (`of_world`), overridden by the
    /// user's settings.
    ///
    /// # Errors
    /// When the preset is unknown, a key does not exist, or a value is out of its range.
    pub fn config(&self, preset: &str, of_world: Table) -> Result<TrainConfig, RunError> {
        let mut table = preset_table(preset)?;
        let its_own = env_id(&table);
        let id = self.world().or_else(|| its_own.clone()).unwrap_or_default();
        if its_own.is_some_and(|its_own| its_own != id) {
            // A suitable `patience` depends on the world that the preset was made for.
            each_stage(&mut table, |stage| drop(stage.remove("patience")));
        }
        let asked = self.section("agent").get("name").cloned();
        if let Some(agent) = table.get_mut("agent").and_then(Value::as_table_mut)
            && asked.is_some_and(|asked| agent.get("name") != Some(&asked))
        {
            // These settings belong to the preset's agent.
            agent.remove("config");
        }
        merge(&mut table, of_world);
        for layer in &self.layers {
            merge(&mut table, layer.clone());
        }
        only_picture(&mut table, preset)?;
        each_stage(&mut table, |stage| {
            let patience = WORLDS.get(&id).and_then(|world| world.patience);
            let usual = patience.map_or_else(|| "off".into(), Value::from);
            stage.entry("patience").or_insert(usual);
        });
        let from = if self.from.is_empty() { format!("preset {preset}") } else { self.from.clone() };
        let mut config = TrainConfig::from_table(&table, &from)?;
        config.recipe.complete().map_err(|error| bad(&from, error.to_string()))?;
        initial::pin(&mut config.recipe.init)?;
        config.env.origin = self.origin(&from);
        Ok(config)
    }
}

/// The world's name in a configuration.
fn env_id(table: &Table) -> Option<String> {
    Some(table.get("env")?.get("id")?.as_str()?.to_owned())
}

/// Changes every stage that is a table.
fn each_stage(table: &mut Table, mut change: impl FnMut(&mut Table)) {
    let stages =
        table.get_mut("recipe").and_then(|recipe| recipe.get_mut("stage")).and_then(Value::as_array_mut);
    for stage in stages.into_iter().flatten() {
        stage.as_table_mut().map(&mut change);
    }
}

/// Reads settings of an agent from a TOML file, for [`foveate_agents::registry::make`].
///
/// # Errors
/// When the file cannot be read or is not TOML. The registry checks whether the keys exist.
pub fn agent_settings(path: &Path) -> Result<serde_json::Value, RunError> {
    let from = path.display().to_string();
    let table = parse(&read_text(path)?, &from)?;
    serde_json::to_value(table).map_err(|error| bad(&from, format!("{error}; use numbers and texts")))
}

/// A preset's picture belongs to its own world; another world without a picture of this name uses its
/// default.
fn only_picture(table: &mut Table, preset: &str) -> Result<(), RunError> {
    let picture = |table: &Table| table.get("env").and_then(|env| env.get("picture")).cloned();
    let shown = picture(table);
    let untouched = shown == picture(&preset_table(preset)?);
    let world = env_id(table).and_then(|id| WORLDS.get(&id));
    let is_its = |name: &str| world.is_some_and(|world| world.pictures.iter().any(|p| p.name == name));
    if untouched
        && !shown.as_ref().and_then(Value::as_str).is_some_and(is_its)
        && let Some(usual) = world.and_then(|world| world.pictures.first())
        && let Some(env) = table.get_mut("env").and_then(Value::as_table_mut)
    {
        env.insert("picture".into(), Value::String(usual.name.into()));
    }
    Ok(())
}

/// A table of the preset called `name`.
fn preset_table(name: &str) -> Result<Table, RunError> {
    let preset = PRESETS.find(name).map_err(|error| RunError::BadRequest { why: error.to_string() })?;
    parse(preset.text, name)
}

pub(crate) fn read_text(path: &Path) -> Result<String, RunError> {
    text_of(crate::npz::read_bounded(path, MAX_FILE)?, path)
}

/// The text of the file `name` in the folder of a run.
pub(crate) fn read_text_in(folder: &FolderHandle, name: &str) -> Result<String, RunError> {
    text_of(folder.read(name, MAX_FILE)?, &folder.path().join(name))
}

fn text_of(bytes: Result<Vec<u8>, u64>, path: &Path) -> Result<String, RunError> {
    let from = path.display().to_string();
    let bytes = bytes
        .map_err(|size| bad(&from, format!("{size} bytes are no configuration; is it the right file?")))?;
    String::from_utf8(bytes).map_err(|_| bad(&from, "this is no text; give a TOML file".into()))
}

fn parse(text: &str, from: &str) -> Result<Table, RunError> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let at = line.map_or(from.to_owned(), |line| format!("{from} line {line}"));
        bad(&at, one_line(&error))
    })
}

/// `a.b=value` as a table.
fn one_key(set: &str) -> Result<Table, RunError> {
    let fail = |why: &str| bad(&format!("--set {set}"), why.to_owned());
    let (path, text) =
        set.split_once('=').ok_or_else(|| fail("a value is missing; write it as key=value"))?;
    let text = text.trim();
    let value = match format!("x = {text}").parse::<Table>() {
        Ok(mut table) if table.len() == 1 => {
            table.remove("x").ok_or_else(|| fail("a value is missing; write it as key=value"))?
        }
        // A bare word is a string: --set env.picture=exact.
        _ => Value::String(text.to_owned()),
    };
    let mut keys = path.trim().rsplit('.');
    let mut table = Table::new();
    let last = keys
        .next()
        .filter(|key| !key.is_empty())
        .ok_or_else(|| fail("a key is missing; write it as key=value"))?;
    table.insert(last.to_owned(), value);
    for key in keys {
        let mut outer = Table::new();
        outer.insert(key.to_owned(), Value::Table(table));
        table = outer;
    }
    Ok(table)
}

/// Merges `on_top` into `table`, key by key; `on_top` wins.
fn merge(table: &mut Table, on_top: Table) {
    for (key, value) in on_top {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            // `stage.0.sigma`: an entry of a list by its index.
            (Some(Value::Array(below)), Value::Table(above)) if names_entries(below, &above) => {
                for (index, value) in above {
                    let entry = index.parse().ok().and_then(|i: usize| below.get_mut(i));
                    match (entry, value) {
                        (Some(Value::Table(entry)), Value::Table(value)) => merge(entry, value),
                        (Some(entry), value) => *entry = value,
                        (None, _) => {}
                    }
                }
            }
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Whether every key is the index of an entry of this list.
fn names_entries(list: &[Value], table: &Table) -> bool {
    table.keys().all(|key| key.parse().is_ok_and(|i: usize| i < list.len()))
}

fn bad(from: &str, why: String) -> RunError {
    RunError::Config { from: from.to_owned(), why }
}

/// The message of an error in `table`, with a suggested name or the section where the key belongs.
fn with_hint(error: &toml::de::Error, table: &Table) -> String {
    let text = one_line(error);
    let Some((given, known)) = near::unknown_word(&text) else { return text };
    let path = || path_of(&Value::Table(table.clone()), given).or_else(|| agent_key(table, given));
    match near::hint_of(given, known) {
        hint if !hint.is_empty() => text.replace("; correct it", &format!(";{hint}")),
        _ => match path() {
            Some(path) => text.replace("; correct it", &format!("; did you mean {path}?")),
            None => text,
        },
    }
}

/// The path of a key `key` that is not at the top level.
fn path_of(value: &Value, key: &str) -> Option<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Table(table) => table.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect(),
        _ => return None,
    };
    inner.iter().find_map(|(name, value)| match value {
        Value::Table(table) if table.contains_key(key) => Some(format!("{name}.{key}")),
        _ => path_of(value, key).map(|path| format!("{name}.{path}")),
    })
}

/// `agent.config.KEY` if the agent has such a setting.
fn agent_key(table: &Table, key: &str) -> Option<String> {
    let agent = table.get("agent")?.get("name")?.as_str()?;
    let settings = registry::full_config(agent, &serde_json::Value::Null).ok()?;
    settings.get(key).map(|_| format!("agent.config.{key}"))
}

/// The message of a TOML error, without its excerpt of the file.
fn one_line(error: &toml::de::Error) -> String {
    let mut text = error.message().trim().replace('\n', " ");
    if !text.contains(';') {
        text.push_str("; correct it");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SETS: [&str; 0] = [];

    #[test]
    fn presets_are_whole_and_survive_a_round_trip() {
        for name in PRESETS.names() {
            // The settings that presets for many worlds leave to the world.
            let sets: &[&str] = if name.starts_with("gymnasium") {
                &["env.id=gym:X-v0", "env.picture=world", "recipe.max_steps=200"]
            } else {
                &[]
            };
            let config = TrainConfig::load(name, None, sets).expect("a preset is right");
            let dir = tempfile::tempdir().expect("a temporary folder");
            let path = dir.path().join("config.toml");
            std::fs::write(&path, config.to_toml()).expect("writable");
            assert_eq!(TrainConfig::read(&path).expect("our own file"), config);
        }
    }

    #[test]
    fn files_and_sets_lie_on_top() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("mine.toml");
        let text = "seed = 5\n[recipe]\nmax_steps = 500\n[agent.config]\ntop_k = 5\n";
        std::fs::write(&path, text).expect("writable");
        let sets = [
            "recipe.stage.0.population=66",
            "recipe.stage.0.sigma.to=0.3",
            "recipe.stage.0.sigma.from=0.2",
            "env.picture = classic",
            "env.variants=[\"bar\"]",
            "agent.config.patch=5",
        ];
        let config = TrainConfig::load("laptop", Some(&path), &sets).expect("right");
        let plain = TrainConfig::load("laptop", None, &NO_SETS).expect("right");
        let options = &config.recipe.stages[0].options;
        assert_eq!((config.seed, config.recipe.max_steps), (5, 500));
        assert_eq!(
            (options["population"].as_integer(), options["sigma"]["to"].as_float()),
            (Some(66), Some(0.3))
        );
        assert_eq!((&*config.env.picture, &config.env.variants), ("classic", &vec!["bar".to_owned()]));
        assert_eq!(config.agent.config.to_string().replace('\n', ";"), "patch = 5;top_k = 5;");
        assert_eq!(config.recipe.selection.every, plain.recipe.selection.every);
    }

    #[track_caller]
    fn check_err(file: &str, sets: &[&str], expect: &str) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("mine.toml");
        std::fs::write(&path, file).expect("writable");
        let said = TrainConfig::load("laptop", Some(&path), sets).expect_err("must be refused").to_string();
        assert!(said.contains(expect), "{said}");
        assert!(said.contains(';') && said.lines().count() == 1, "{said}");
    }

    #[test]
    fn bad_input() {
        check_err(
            "",
            &["recipe.stage.0.sigm=0.3"],
            "unknown field `sigm`, expected one of `population`, `sigma`",
        );
        check_err("[recipe.selection]\nsigm = 1", &[], "unknown field `sigm`");
        check_err("sigma = 1", &[], "unknown field `sigma`");
        check_err("", &["recipe.stage.0.sigma=many"], "invalid type: string \"many\", expected f64");
        check_err("", &["sigma"], "a value is missing; write it as key=value");
        check_err("", &["=3"], "a key is missing; write it as key=value");
        check_err("", &["recipe=3"], "invalid type: integer `3`");
        check_err("", &["recipe.stage.9.sigma=3"], "invalid type: map");
        check_err("seed = 1\nseed = 2", &[], "mine.toml line 2: duplicate key");
        check_err("seed = = 1", &[], "mine.toml line 1");
        check_err("version = 2", &[], "this program reads version 1");
        check_err("", &["seed=-1"], "invalid value: integer `-1`");
        check_err(
            "",
            &["recipe.stage.0.population=1"],
            "population = 1; a generation needs at least 2 genomes",
        );
        check_err("", &["recipe.stage.0.tracks=0"], "tracks = 0; choose 1 or more (in stage \"");
        check_err(
            "",
            &["recipe.stage.0.patience=never"],
            "recipe.stage[0].patience: \"never\", expected a number",
        );
        check_err("", &["recipe.selection.every=-1"], "recipe.selection.every: -1, expected training steps");
        check_err("", &["recipe.init=ones"], "recipe.init: no beginning is called \"ones\"; choose");
        check_err("", &["recipe.init.weights=nowhere.safetensors"], "nowhere.safetensors");
        check_err("", &["workers=5000"], "workers = 5000; choose a number from 0");
        check_err(&"#".repeat(2 << 20), &[], "is it the right file?");
        let said = TrainConfig::load("desktop", None, &NO_SETS).expect_err("no such preset").to_string();
        assert_eq!(
            said,
            "no preset is called \"desktop\"; choose from: laptop, laptop-relu, evolution, paper, take-cover, \
             gymnasium, gymnasium-pictures"
        );
    }

    #[track_caller]
    fn check_patience(preset: &str, file: &str, sets: &[&str], expect: &[Option<u32>]) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("mine.toml");
        std::fs::write(&path, file).expect("writable");
        let config = TrainConfig::load(preset, Some(&path), sets).expect("right");
        let found: Vec<_> = config.recipe.stages.iter().map(|stage| stage.patience.0).collect();
        assert_eq!(found, expect, "{preset}, {file:?}, {sets:?}");
    }

    #[test]
    fn patience_belongs_to_the_world() {
        let stage = "[[recipe.stage]]\nname = \"own\"\nsteps = 10\n";
        let said = format!("{stage}patience = 7\n");
        let gym = "env.id=gym:MountainCar-v0";
        check_patience("laptop", "", &[], &[Some(20), Some(100)]);
        check_patience("evolution", "", &[], &[Some(20), Some(20)]);
        check_patience("laptop", stage, &[], &[Some(20)]);
        check_patience("evolution", "", &[gym], &[None, None]);
        check_patience("evolution", "", &["env.id=take-cover"], &[None, None]);
        check_patience("evolution", stage, &[gym], &[None]);
        check_patience("evolution", &said, &[gym], &[Some(7)]);
        check_patience("evolution", "", &[gym, "recipe.stage.0.patience=30"], &[Some(30), None]);
        check_patience("take-cover", stage, &[], &[None]);
        let of_world = ["env.picture=world", "recipe.max_steps=200"];
        check_patience("gymnasium", "", &[&[gym], &of_world[..]].concat(), &[None, None]);
        check_patience("gymnasium-pictures", "", &[&[gym], &of_world[..]].concat(), &[None, None]);
    }

    #[test]
    fn flags_of_the_world_lie_on_top_of_everything() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("mine.toml");
        let text = "[env]\nid = \"a\"\npicture = \"b\"\n[env.options]\nx = 1\ny = 2\n";
        std::fs::write(&path, text).expect("writable");
        let world = WorldFlags {
            id: Some("gym:X-v0".into()),
            picture: Some("render".into()),
            variants: vec!["bar".into()],
            options: [("y", "3"), ("arg.gravity", "9.5"), ("wrap", "grey")]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
            trust: Trust::AnyWorld,
            ..WorldFlags::default()
        };
        let said = Said::read(Some(&path), &["env.picture=c"], &world).expect("right");
        assert_eq!(said.world().as_deref(), Some("gym:X-v0"));
        let request = said.config("evolution", Table::new()).expect("right").env.request().expect("trusted");
        assert_eq!((&*request.id, request.picture.as_deref()), ("gym:X-v0", Some("render")));
        assert_eq!(request.variants, ["bar"]);
        let options: Vec<_> = request.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(options, ["arg.gravity=9.5", "wrap=grey", "x=1", "y=3"]);
        let silent = Said::read(Some(&path), &NO_SETS, &WorldFlags::default()).expect("right");
        assert_eq!(silent.world().as_deref(), Some("a"));
    }

    #[test]
    fn settings_of_the_presets_agent_are_not_those_of_another() {
        let keys = |sets: &[&str]| {
            let config = TrainConfig::load("laptop-relu", None, sets).expect("right");
            config.agent.config.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(&[]), ["hidden", "voting"]);
        assert_eq!(keys(&["agent.name=attention-agent"]), ["hidden", "voting"]);
        assert_eq!(keys(&["agent.name=controller", "agent.config.hidden=8"]), ["hidden"]);
        assert!(keys(&["agent.name=random-actions"]).is_empty());
    }

    #[test]
    fn laptop_relu_is_laptop_but_for_what_its_head_says() {
        let sets = [
            "agent.config.voting={kernel=\"relu\"}",
            "agent.config.hidden=32",
            "recipe.stage.0.steps=1000000",
            "recipe.stage.1.steps=1000000",
            "recipe.stage.1.keep=1000",
        ];
        let relu = TrainConfig::load("laptop-relu", None, &NO_SETS).expect("a preset");
        let laptop = TrainConfig::load("laptop", None, &sets).expect("a preset");
        assert_eq!(relu, laptop);
    }

    #[test]
    fn recipes_of_car_racing_are_what_they_were() {
        for (preset, digest) in [
            (
                "laptop",
                [
                    13_848_622_002_730_525_092,
                    5_745_736_116_200_554_906,
                    3_795_973_595_054_495_742,
                    11_325_142_140_583_988_870,
                ],
            ),
            (
                "evolution",
                [
                    249_407_683_732_047_026,
                    1_720_981_902_144_585_778,
                    14_513_388_474_290_276_377,
                    1_258_041_468_980_147_243,
                ],
            ),
            (
                "paper",
                [
                    15_524_036_442_924_189_961,
                    13_944_964_607_010_576_232,
                    17_079_608_141_814_548_060,
                    11_480_690_221_161_448_332,
                ],
            ),
        ] {
            let mut recipe = TrainConfig::load(preset, None, &NO_SETS).expect("right").recipe;
            // The digests are older than these names of stages, which change no result.
            for stage in &mut recipe.stages {
                match &*stage.name {
                    "tries" => stage.name = "heats".into(),
                    "demonstrations" => stage.name = "lessons".into(),
                    _ => {}
                }
            }
            assert_eq!(recipe.digest(), digest, "{preset}");
        }
    }
}
