//! Forms of settings: what each setting takes, found by asking the code that reads it.
//!
//! The code that reads settings says what it expected when it gets something else. This module gives it texts, lists and
//! tables in the place of a setting and puts what it says into plain words, with an example that it accepts. So a new setting
//! has its form in lists and messages without a line about it, and the two cannot differ.

use serde_json::{Map, Value, json};

use crate::near;

/// Reads settings and completes them with their defaults, or says what is wrong.
pub type Read<'a> = &'a dyn Fn(&Value) -> Result<Value, String>;

/// In larger settings the wrong one is not looked for.
const MOST_VALUES: usize = 2000;
/// Longer examples are left out.
const LONGEST_EXAMPLE: usize = 200;
/// Deeper tables and lists are not described.
const DEEPEST: usize = 6;
/// The key of a date of TOML in JSON.
const DATE: &str = "$__toml";
/// No setting has this name and no word is this one.
const PROBE: &str = "?";

/// A setting that can be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its name, with those of the tables it is in: `voting.kernel`.
    pub key: String,
    /// What it takes, in words.
    pub form: String,
    /// Its value where none is given; `None` for a setting that is left out then.
    pub default: Option<Value>,
}

/// Every setting that `read` knows, where those of `base` are made.
pub fn settings(base: &Value, read: Read<'_>) -> Vec<Setting> {
    let mut all = vec![];
    if let Ok(base) = read(base) {
        walk(&base, "", &base, read, &mut all);
    }
    all
}

/// Adds the settings of the table `of` at the place `at` of `base`.
fn walk(base: &Value, at: &str, of: &Value, read: Read<'_>, all: &mut Vec<Setting>) {
    let Some(table) = of.as_object() else { return };
    let mut keys: Vec<String> = table.keys().cloned().collect();
    let known = read(&with(base, &format!("{at}/{PROBE}"), json!(0))).err();
    keys.extend(known.iter().flat_map(|said| words(said, "unknown field")).map(str::to_owned));
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let place = format!("{at}/{key}");
        let default = table.get(&key);
        let inner = match default {
            Some(Value::Array(list)) => {
                list.first().filter(|first| first.is_object()).map(|first| (format!("{place}/0"), first))
            }
            Some(value) if value.as_object().is_some_and(|table| !table.is_empty()) => {
                Some((place.clone(), value))
            }
            _ => None,
        };
        // One of several words that may be a table, too, is a setting itself.
        match inner.filter(|_| at.matches('/').count() < DEEPEST) {
            Some((place, value)) if form_at(base, &place, read).is_some_and(|form| form.is_table) => {
                walk(base, &place, value, read, all);
            }
            _ => {
                let form = form_at(base, &place, read).map_or_else(
                    || "a table".to_owned(),
                    // A list that is there is an example itself.
                    |form| {
                        if default.is_some_and(Value::is_array) { form.one } else { form.with_example(None) }
                    },
                );
                all.push(Setting { key: key_of(&place), form, default: default.cloned() });
            }
        }
    }
}

/// Which of the settings `given` has the wrong form, by its name after `prefix`, what it was given and what it wants; `None`
/// when `read` takes them, or says something else of them.
pub fn refusal(given: &Value, read: Read<'_>, prefix: &str) -> Option<String> {
    let said = read(given).err()?;
    let of_form =
        ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant `", "missing field `"];
    if !of_form.iter().any(|start| said.contains(start)) {
        return None;
    }
    let place = if count(given) > MOST_VALUES { None } else { culprit(given, "", &said, read) };
    let Some(place) = place else { return Some(plain(&said)) };
    let value = given.pointer(&place)?;
    let key = format!("{prefix}{}", key_of(&place));
    let Some(form) = form_at(given, &place, read) else { return Some(format!("{key}: {}", plain(&said))) };
    let default = read(&without(given, &place)).ok().and_then(|whole| whole.pointer(&place).cloned());
    let hint =
        value.as_str().map_or_else(String::new, |word| near::hint_of(word, form.words.iter().map(|w| &**w)));
    let hint = if hint.is_empty() { hint } else { format!(";{hint}") };
    Some(format!(
        "{key} wants {}; it was given {}{hint}",
        form.with_example(default.as_ref()),
        described(value)
    ))
}

/// The place of the setting without which `said` is not said of `given`, within that at `at`.
fn culprit(given: &Value, at: &str, said: &str, read: Read<'_>) -> Option<String> {
    match given.pointer(at)? {
        Value::Object(table) => {
            let places: Vec<String> = table.keys().map(|key| format!("{at}/{}", escaped(key))).collect();
            // What is left may be wrong, too, or need a value in this place.
            let is_well = |place: &&String| read(&without(given, place)).is_ok();
            let others = |value: &Value| read(value).err().is_none_or(|other| other != said);
            let helps = |place: &&String| {
                others(&without(given, place))
                    && form_at(given, place, read)
                        .is_none_or(|form| others(&with(given, place, form.example)))
            };
            let place = places.iter().find(is_well).or_else(|| places.iter().find(helps))?;
            Some(culprit(given, place, said, read).unwrap_or_else(|| place.clone()))
        }
        Value::Array(list) => {
            // Lists are read from the front: the first part of which this is said ends with what is wrong.
            let ends = |&last: &usize| {
                read(&with(given, at, list[..=last].into())).is_err_and(|other| other == said)
            };
            let last = (0..list.len()).find(ends)?;
            culprit(given, &format!("{at}/{last}"), said, read)
        }
        _ => None,
    }
}

/// What a setting takes.
#[derive(Debug, Clone)]
struct Form {
    /// In words, of one.
    one: String,
    /// In words, of several.
    many: String,
    /// A value that is accepted.
    example: Value,
    /// The words it may be.
    words: Vec<String>,
    is_table: bool,
    /// The words say all.
    is_whole: bool,
}

impl Form {
    fn new(one: &str, many: &str, example: Value) -> Self {
        Form {
            one: one.to_owned(),
            many: many.to_owned(),
            example,
            words: vec![],
            is_table: false,
            is_whole: false,
        }
    }

    /// In words, with an example where words do not say enough.
    fn with_example(&self, default: Option<&Value>) -> String {
        let own = Some(&self.example).filter(|example| example.is_object() || example.is_array());
        let default = default.filter(|default| default.is_object() == self.is_table);
        let example =
            default.or(own).filter(|_| !self.is_whole).map(written).filter(|example| example != "{}");
        match example.filter(|example| example.len() <= LONGEST_EXAMPLE) {
            Some(example) => format!("{}, such as {example}", self.one),
            None => self.one.clone(),
        }
    }
}

/// Reads a value in the place of a setting, completed where everything else is well.
type Probe<'a> = &'a dyn Fn(Value) -> Result<Option<Value>, String>;

/// The form of the setting at `place`.
fn form_at(base: &Value, place: &str, read: Read<'_>) -> Option<Form> {
    let others = read(&without(base, place)).err();
    let probe = |value: Value| match read(&with(base, place, value)) {
        Ok(whole) => Ok(whole.pointer(place).cloned()),
        Err(said) if Some(&said) == others.as_ref() => Ok(None),
        Err(said) => Err(said),
    };
    form(&probe, 0)
}

fn form(probe: Probe<'_>, depth: usize) -> Option<Form> {
    let Err(said) = probe(json!(PROBE)) else { return Some(Form::new("a text", "texts", json!("text"))) };
    let words = words(&said, "unknown variant");
    if depth > DEEPEST {
        return None;
    }
    if !words.is_empty() {
        return Some(one_of(&words, probe, depth));
    }
    let expected = expected(&said)?;
    Some(match expected {
        "a boolean" => Form::new("true or false", "times true or false", json!(true)),
        "f32" | "f64" => Form::new("a number", "numbers", json!(0.5)),
        "u64" | "usize" => Form::new("a whole number from 0", "whole numbers from 0", json!(16)),
        "u8" => Form::new("a whole number from 0 to 255", "whole numbers from 0 to 255", json!(16)),
        "u32" => {
            Form::new("a whole number from 0 to 4294967295", "whole numbers from 0 to 4294967295", json!(16))
        }
        "i32" | "i64" => Form::new("a whole number", "whole numbers", json!(16)),
        _ if expected.contains("sequence") || expected.contains(" of length ") => list(probe, depth)?,
        _ if ["struct ", "map", "tagged enum", "table"].iter().any(|kind| expected.contains(kind)) => {
            table(probe, depth)?
        }
        // The reader's own words.
        own => {
            let example =
                [json!(16), json!(0.5), json!(true)].into_iter().find(|value| probe(value.clone()).is_ok());
            Form { is_whole: true, ..Form::new(own, own, example.unwrap_or_default()) }
        }
    })
}

/// The form of a setting that is one of `words`, or a table with one of them as its key.
fn one_of(words: &[&str], probe: Probe<'_>, depth: usize) -> Form {
    let choices = words.iter().map(|&word| match probe(json!(word)) {
        Err(said) if said.contains("unit variant") => {
            let inner = form(&|value| probe(json!({ word: value })), depth + 1);
            written(&json!({ word: inner.map_or(json!(1), |inner| inner.example) }))
        }
        _ => format!("{word:?}"),
    });
    let choices: Vec<String> = choices.collect();
    let one = if choices.len() > 1 { format!("one of {}", choices.join(", ")) } else { choices.concat() };
    let many = format!("words of {}", choices.join(", "));
    Form {
        is_whole: true,
        words: words.iter().map(|&word| word.to_owned()).collect(),
        ..Form::new(&one, &many, json!(words[0]))
    }
}

fn list(probe: Probe<'_>, depth: usize) -> Option<Form> {
    let empty = probe(json!([])).err();
    let length = empty
        .and_then(|said| expected(&said)?.rsplit(' ').next()?.parse::<usize>().ok())
        .filter(|&n| n <= 16);
    let entry = form(&|value| probe(vec![value; length.unwrap_or(1)].into()), depth + 1)?;
    let number = length.map_or_else(String::new, |n| format!("{n} "));
    let (one, many) =
        (format!("a list of {number}{}", entry.many), format!("lists of {number}{}", entry.many));
    Some(Form::new(&one, &many, vec![entry.example; length.unwrap_or(1)].into()))
}

fn table(probe: Probe<'_>, depth: usize) -> Option<Form> {
    let mut example = Map::new();
    let known = probe(json!({ PROBE: 0 })).err();
    let known = known.as_deref().map_or_else(Vec::new, |said| words(said, "unknown field"));
    // What the table itself lacks is no fault of the one value.
    let lacks = |said: &str| missing(said).is_some_and(|key| known.is_empty() || known.contains(&key));
    let of_key = |table: &Map<String, Value>, key: &str| {
        let probe = |value: Value| {
            let mut table = table.clone();
            table.insert(key.to_owned(), value);
            match probe(table.into()) {
                Err(said) if lacks(&said) => Ok(None),
                read => read.map(|whole| whole?.get(key).cloned()),
            }
        };
        form(&probe, depth + 1)
    };
    // With all that it needs; with its defaults where it needs nothing.
    for _ in 0..DEEPEST {
        match probe(example.clone().into()) {
            Err(said) => {
                let key = missing(&said)?;
                let value = of_key(&example, key)?.example;
                // Of two numbers the second is the larger one, as in a range.
                let value = if value.is_f64() { json!(0.5 + example.len() as f64) } else { value };
                example.insert(key.to_owned(), value);
            }
            Ok(Some(Value::Object(whole))) if example.is_empty() => {
                example = whole;
                break;
            }
            Ok(_) => break,
        }
    }
    Some(Form { is_table: true, ..Form::new("a table", "tables", example.into()) })
}

/// What a reader's message says that it expected.
fn expected(said: &str) -> Option<&str> {
    let of_type = said.contains("invalid type: ")
        || said.contains("invalid value: ")
        || said.contains("invalid length ");
    let own = || ["; write ", "; choose "].iter().find_map(|start| Some(said.split_once(start)?.1));
    if !of_type && let Some(own) = own() {
        return Some(own);
    }
    Some(said.rsplit_once("expected ")?.1.split(';').next()?.trim())
}

/// The key that a reader's message says is missing.
fn missing(said: &str) -> Option<&str> {
    said.split_once("missing field `")?.1.split('`').next()
}

/// The words that a message about an unknown one says are known.
fn words<'a>(said: &'a str, what: &str) -> Vec<&'a str> {
    let known = near::unknown_word(said).filter(|_| said.contains(what));
    known.map_or_else(Vec::new, |(_, known)| known)
}

/// A reader's message without the names of types.
pub fn plain(said: &str) -> String {
    let of_type = |said: &str| said.contains("invalid ") || said.contains("unknown variant");
    let form =
        Some(said).filter(|said| of_type(said)).and_then(|said| form(&|_| Err(said.to_owned()), DEEPEST));
    match (form, said.find("invalid ").or_else(|| said.find("unknown variant"))) {
        (Some(form), Some(at)) => format!("{}give {}", &said[..at], form.one),
        (None, Some(at)) => format!("{}a value has another form than its setting; correct it", &said[..at]),
        _ => said.replace("missing field `", "there is no `"),
    }
}

/// `value` as it is written in a configuration.
pub fn written(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            if let Some((_, date)) = table.iter().find(|(key, _)| key.starts_with(DATE)) {
                return date.as_str().unwrap_or_default().to_owned();
            }
            let entries: Vec<String> =
                table.iter().map(|(key, value)| format!("{key}={}", written(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(written).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// `value` in words, cut where it is long.
fn described(value: &Value) -> String {
    let what = match value {
        Value::String(_) => "the text ",
        Value::Number(_) => "the number ",
        Value::Array(_) => "the list ",
        Value::Object(table) if table.keys().any(|key| key.starts_with(DATE)) => "the date ",
        Value::Object(_) => "the table ",
        Value::Bool(_) | Value::Null => "",
    };
    let text = written(value);
    let short: String = text.chars().take(60).collect();
    format!("{what}{short}{}", if short.len() < text.len() { "…" } else { "" })
}

/// How many values there are in `value`.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(table) => table.values().map(count).sum(),
        Value::Array(list) => list.iter().map(count).sum(),
        _ => 0,
    }
}

/// A key as a part of a place: a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The key of a place, as users write it.
fn key_of(place: &str) -> String {
    place.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
}

/// `base` with `value` at `place`, whose table exists.
fn with(base: &Value, place: &str, value: Value) -> Value {
    let mut whole = base.clone();
    if let Some(old) = whole.pointer_mut(place) {
        *old = value;
    } else if let Some((table, key)) = place.rsplit_once('/')
        && let Some(Value::Object(table)) = whole.pointer_mut(table)
    {
        table.insert(key.replace("~1", "/").replace("~0", "~"), value);
    }
    whole
}

/// `base` without what is at `place`.
fn without(base: &Value, place: &str) -> Value {
    let mut whole = base.clone();
    if let Some((table, key)) = place.rsplit_once('/')
        && let Some(Value::Object(table)) = whole.pointer_mut(table)
    {
        table.remove(&key.replace("~1", "/").replace("~0", "~"));
    }
    whole
}

#[cfg(test)]
mod tests;
