//! The layers of a configuration: preset, file, `--set` and the world's flags, merged and parsed.

use std::path::Path;

use foveate_agents::registry;
use foveate_core::hint::Setting;
use foveate_core::near;
use foveate_registry::{PRESETS, WORLDS};
use toml::{Table, Value};

use super::{EnvSection, Origin, TrainConfig, section_of, texts};
use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::initial;
use crate::trust::WorldFlags;

/// Larger files are refused.
const MAX_FILE: u64 = 1 << 20;

/// The user's settings for a run: a file, overridden by the command line.
#[derive(Debug, Clone)]
pub struct UserSettings {
    /// The layers; later ones override earlier ones.
    layers: Vec<Table>,
    /// Their name in errors; empty without layers.
    from: String,
    /// The file.
    file: Option<String>,
    /// The world's flags of the command line.
    flags: WorldFlags,
}

impl UserSettings {
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
        let set = Setting::Set.to_string();
        let from: Vec<&str> =
            file.as_deref().into_iter().chain((!sets.is_empty()).then_some(&*set)).collect();
        let env = command_line.get("env").and_then(Value::as_table);
        let text = |key: &str| env?.get(key)?.as_str().map(str::to_owned);
        let options = env.and_then(|env| env.get("options")?.as_table());
        let flags = WorldFlags {
            id: text("id"),
            picture: text("picture"),
            options: options.map(texts).unwrap_or_default(),
            ..flags.clone()
        };
        Ok(UserSettings { from: from.join(" and "), layers, file, flags })
    }

    /// The requested world, with this picture; the section may be incomplete.
    pub(crate) fn env(&self, picture: &str) -> EnvSection {
        let section = self.section("env");
        let texts_of = |key: &str| -> Vec<String> {
            let all = section.get(key).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        EnvSection {
            id: self.world().unwrap_or_default(),
            picture: picture.to_owned(),
            variants: texts_of("variants"),
            shifts: texts_of("shifts"),
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
        if let Some(teacher) = &mut config.recipe.teacher {
            initial::pin_file("teacher", &mut teacher.weights, &mut teacher.sha256)?;
        }
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
pub(crate) fn preset_table(name: &str) -> Result<Table, RunError> {
    let preset = PRESETS.find(name).map_err(|error| RunError::BadRequest { why: error.to_string() })?;
    parse(preset.text, name)
}

pub(crate) fn read_text(path: &Path) -> Result<String, RunError> {
    text_of(crate::input::read(path, MAX_FILE)?, path)
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

pub(super) fn parse(text: &str, from: &str) -> Result<Table, RunError> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let at = line.map_or(from.to_owned(), |line| format!("{from} line {line}"));
        bad(&at, one_line(&error))
    })
}

/// `a.b=value` as a table.
pub(super) fn one_key(set: &str) -> Result<Table, RunError> {
    let fail = |why: &str| bad(&Setting::Set.to(set).to_string(), why.to_owned());
    let (path, text) =
        set.split_once('=').ok_or_else(|| fail("a value is missing; write it as key=value"))?;
    let text = text.trim();
    let value = match format!("x = {text}").parse::<Table>() {
        Ok(mut table) if table.len() == 1 => {
            table.remove("x").ok_or_else(|| fail("a value is missing; write it as key=value"))?
        }
        // A bare word is a string: env.picture=exact.
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
pub(super) fn merge(table: &mut Table, on_top: Table) {
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

pub(super) fn bad(from: &str, why: String) -> RunError {
    RunError::Config { from: from.to_owned(), why }
}

/// The message of an error at `place` in `table`, with a suggested name or the section where the key belongs.
pub(super) fn with_hint(error: &toml::de::Error, place: &str, table: &Table) -> String {
    let text = one_line(error);
    let Some((given, known)) = near::unknown_word(&text) else { return text };
    let path = || path_of(&Value::Table(table.clone()), given).or_else(|| agent_key(table, given));
    match near::hint_of(given, known) {
        hint if !hint.is_empty() => text.replace("; correct it", &format!(";{hint}")),
        _ => match path() {
            // The key itself may be the only one of its name.
            Some(path) if path != place => text.replace("; correct it", &format!("; did you mean {path}?")),
            _ => text,
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
