//! The layers of a configuration: preset, file, `--set` and the world's flags, merged and parsed.

use std::path::Path;

use foveate_agents::registry;
use foveate_core::hint::Setting;
use foveate_core::near;
use foveate_registry::{PRESETS, WORLDS};
use foveate_train::Stage;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::{EnvSection, Origin, TrainConfig, section_of, texts};
use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::initial;
use crate::trust::{WorldOptions, WorldSpec};

/// Larger files are refused.
const MAX_FILE: u64 = 1 << 20;

/// The user's settings for a run: a file, overridden by the command line.
#[derive(Debug, Clone)]
pub struct UserSettings {
    /// The layers; later ones override earlier ones.
    layers: Vec<Layer>,
    /// Their name in errors; empty without layers.
    from: String,
    /// The file.
    file: Option<String>,
    /// The world's flags of the command line.
    flags: WorldSpec,
}

impl UserSettings {
    /// Reads `file`, then every `key=value` of `sets`, then the world's flags.
    ///
    /// # Errors
    /// When the file cannot be read or is not TOML, or an entry of `sets` is not `key=value`.
    pub fn read(file: Option<&Path>, sets: &[impl AsRef<str>], flags: &WorldSpec) -> Result<Self, RunError> {
        let mut layers = vec![];
        let file = file.map(|path| path.display().to_string()).zip(file);
        if let Some((name, path)) = &file {
            layers.push(Layer::of_file(&read_text(path)?, name)?);
        }
        let mut command_line = Table::new();
        for set in sets {
            let set = one_key(set.as_ref())?;
            set.apply(&mut command_line);
            layers.push(set);
        }
        let world = Layer::of_flags(flags);
        world.apply(&mut command_line);
        layers.push(world);

        let file = file.map(|(name, _)| name);
        let set = Setting::Set.to_string();
        let from: Vec<&str> =
            file.as_deref().into_iter().chain((!sets.is_empty()).then_some(&*set)).collect();
        let env = command_line.get("env").and_then(Value::as_table);
        let text = |key: &str| env?.get(key)?.as_str().map(str::to_owned);
        let options = env.and_then(|env| env.get("options")?.as_table());
        let flags = WorldSpec {
            id: text("id"),
            picture: text("picture"),
            options: WorldOptions(options.map(texts).unwrap_or_default()),
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
            layer.apply(&mut all);
        }
        match all.remove(name) {
            Some(Value::Table(table)) => table,
            _ => Table::new(),
        }
    }

    /// Leaves the settings of a strategy out where the user exchanges it: they are those of the preset's.
    fn exchange_strategies(&self, preset: &mut Table) {
        let Some(recipe) = preset.get_mut("recipe").and_then(Value::as_table_mut) else { return };
        let asked = self.section("recipe");
        let usual = recipe.get("algorithm").cloned();
        let all = asked.get("algorithm").cloned().or_else(|| usual.clone());
        let stages = recipe.get_mut("stage").and_then(Value::as_array_mut);
        for (number, stage) in stages.into_iter().flatten().enumerate() {
            let Some(stage) = stage.as_table_mut() else { continue };
            let asked =
                asked.get("stage").and_then(|stages| stages.get(number.to_string())?.get("algorithm"));
            let own = stage.get("algorithm");
            if own.or(usual.as_ref()) != asked.or(own).or(all.as_ref()) {
                stage.retain(|key, _| Stage::has_key(key));
            }
        }
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
        self.exchange_strategies(&mut table);
        merge(&mut table, of_world);
        for layer in &self.layers {
            layer.apply(&mut table);
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
        config.env.make_files_absolute();
        Ok(config)
    }
}

/// The world's name in a configuration.
pub(crate) fn env_id(table: &Table) -> Option<String> {
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

/// Settings by path, in order.
///
/// A value replaces what was at its path, a table or a list as a whole. What only leads to a value (the header of a
/// section, a dotted key) leaves everything else in place.
#[derive(Debug, Clone, Default)]
struct Layer(Vec<(Vec<String>, Assigned)>);

/// What is at a path.
#[derive(Debug, Clone)]
enum Assigned {
    Value(Value),
    /// A section of a file in which nothing is set.
    EmptySection,
}

impl Layer {
    /// The contents of a TOML file.
    fn of_file(text: &str, from: &str) -> Result<Self, RunError> {
        let table = parse(text, from)?;
        // Only the text says whether a table was written as a value, in braces.
        let written = DeTable::parse(text).map_err(|error| bad(from, one_line(&error)))?;
        let mut layer = Layer::default();
        layer.add_section(&mut vec![], &table, written.get_ref(), text);
        Ok(layer)
    }

    fn add_section(&mut self, path: &mut Vec<String>, table: &Table, written: &DeTable<'_>, text: &str) {
        for (key, inner) in written {
            let key = key.get_ref().to_string();
            let Some(value) = table.get(&key) else { continue };
            path.push(key);
            match (value, inner.get_ref()) {
                (Value::Table(table), DeValue::Table(written)) if !is_in_braces(inner, text) => {
                    if table.is_empty() {
                        self.0.push((path.clone(), Assigned::EmptySection));
                    }
                    self.add_section(path, table, written, text);
                }
                _ => self.0.push((path.clone(), Assigned::Value(value.clone()))),
            }
            path.pop();
        }
    }

    /// The world's flags.
    fn of_flags(flags: &WorldSpec) -> Self {
        let mut layer = Layer::default();
        let mut set = |path: &[&str], value: Value| {
            let path = path.iter().map(|&key| key.to_owned()).collect();
            layer.0.push((path, Assigned::Value(value)));
        };
        for (key, value) in section_of(flags) {
            match value {
                Value::Table(options) => {
                    options.into_iter().for_each(|(name, value)| set(&["env", &key, &name], value));
                }
                value => set(&["env", &key], value),
            }
        }
        layer
    }

    /// Overrides the settings of `table`.
    fn apply(&self, table: &mut Table) {
        for (path, assigned) in &self.0 {
            if let Some((last, sections)) = path.split_last() {
                assign(table, sections, last, assigned);
            }
        }
    }
}

/// Returns whether a table was written as a value.
fn is_in_braces(table: &Spanned<DeValue<'_>>, text: &str) -> bool {
    text.as_bytes().get(table.span().start) == Some(&b'{')
}

/// Sets `last` in the section of `table` at the path `sections`; a number in the path is an index where a list stands.
fn assign(table: &mut Table, sections: &[String], last: &str, assigned: &Assigned) {
    let Some((key, rest)) = sections.split_first() else {
        match assigned {
            Assigned::Value(value) => drop(table.insert(last.to_owned(), value.clone())),
            Assigned::EmptySection => drop(table.entry(last).or_insert_with(|| Table::new().into())),
        }
        return;
    };
    let inner = table.entry(key.clone()).or_insert_with(|| Table::new().into());
    let (next, after) = rest.split_first().map_or((last, None), |(next, after)| (&**next, Some(after)));
    if let Value::Array(list) = inner
        && let Some(entry) = next.parse().ok().and_then(|index: usize| list.get_mut(index))
    {
        match (after, assigned) {
            (None, Assigned::Value(value)) => *entry = value.clone(),
            (None, Assigned::EmptySection) => {}
            (Some(sections), _) => assign(section(entry), sections, last, assigned),
        }
        return;
    }
    assign(section(inner), rest, last, assigned);
}

/// The table at this place; anything else there is replaced by an empty one.
fn section(value: &mut Value) -> &mut Table {
    if !value.is_table() {
        *value = Table::new().into();
    }
    value.as_table_mut().expect("it is one now")
}

/// `a.b=value` as a layer.
fn one_key(set: &str) -> Result<Layer, RunError> {
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
    let keys: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
    if keys.last().is_some_and(String::is_empty) {
        return Err(fail("a key is missing; write it as key=value"));
    }
    Ok(Layer(vec![(keys, Assigned::Value(value))]))
}

/// Merges `on_top` into `table`, key by key; `on_top` wins.
pub(super) fn merge(table: &mut Table, on_top: Table) {
    for (key, value) in on_top {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
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
