use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Everything {
    flag: bool,
    number: f64,
    count: usize,
    small: u8,
    word: String,
    mode: Mode,
    pair: [f64; 2],
    pairs: Vec<[usize; 2]>,
    names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Histogram>,
    tagged: Tagged,
    free: BTreeMap<String, f64>,
    layers: Vec<Histogram>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nested: Option<Nested>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nested {
    #[serde(deserialize_with = "every")]
    every: u64,
    layer: Histogram,
}

/// With words of its own.
fn every<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let given = Value::deserialize(from)?;
    given
        .as_u64()
        .ok_or_else(|| serde::de::Error::custom(format!("{given}, expected a number or \"off\"; correct it")))
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Mean,
    Share(f64),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Histogram {
    bins: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Tagged {
    Plain { width: usize },
    Other { names: Vec<String> },
}

impl Default for Tagged {
    fn default() -> Self {
        Tagged::Plain { width: 3 }
    }
}

fn read(given: &Value) -> Result<Value, String> {
    let read = serde_json::from_value::<Everything>(given.clone()).map_err(|error| error.to_string())?;
    serde_json::to_value(read).map_err(|error| error.to_string())
}

#[track_caller]
fn check(given: &Value, expect: &str) {
    assert_eq!(refusal(given, &read, "a.").as_deref(), Some(expect), "{given}");
}

#[test]
fn messages_say_the_key_its_form_and_what_was_given() {
    check(
        &json!({ "flag": "yes" }),
        "a.flag wants true or false, such as false; it was given the text \"yes\"",
    );
    check(&json!({ "number": [1] }), "a.number wants a number, such as 0.0; it was given the list [1]");
    check(
        &json!({ "count": -3 }),
        "a.count wants a whole number from 0, such as 0; it was given the number -3",
    );
    check(
        &json!({ "small": 300 }),
        "a.small wants a whole number from 0 to 255, such as 0; it was given the number 300",
    );
    check(&json!({ "word": true }), "a.word wants a text, such as \"\"; it was given true");
    check(
        &json!({ "mode": "maen" }),
        "a.mode wants one of \"mean\", {share=0.5}; it was given the text \"maen\"; did you mean mean?",
    );
    check(&json!({ "mode": { "share": "x" } }), "a.mode.share wants a number; it was given the text \"x\"");
    check(
        &json!({ "pair": [1, 2, 3] }),
        "a.pair wants a list of 2 numbers, such as [0.0, 0.0]; it was given the list [1, 2, 3]",
    );
    check(
        &json!({ "pairs": [[1, 2], ["x", 3]] }),
        "a.pairs wants a list of lists of 2 whole numbers from 0, such as []; it was given the list [[1, 2], [\"x\", 3]]",
    );
    check(
        &json!({ "histogram": "yes" }),
        "a.histogram wants a table, such as {bins=16}; it was given the text \"yes\"",
    );
    check(
        &json!({ "histogram": {} }),
        "a.histogram wants a table, such as {bins=16}; it was given the table {}",
    );
    check(
        &json!({ "histogram": { "bins": true } }),
        "a.histogram.bins wants a whole number from 0; it was given true",
    );
    check(
        &json!({ "layers": [{ "bins": 3 }, { "bins": "x" }] }),
        "a.layers.1.bins wants a whole number from 0; it was given the text \"x\"",
    );
    check(
        &json!({ "tagged": { "kind": "plain", "width": "x" } }),
        "a.tagged.width wants a whole number from 0; it was given the text \"x\"",
    );
    check(
        &json!({ "tagged": 3 }),
        "a.tagged wants a table, such as {kind=\"plain\", width=3}; it was given the number 3",
    );
    check(
        &json!({ "nested": 3 }),
        "a.nested wants a table, such as {every=16, layer={bins=16}}; it was given the number 3",
    );
    check(
        &json!({ "nested": { "every": 3, "layer": 3 } }),
        "a.nested.layer wants a table, such as {bins=16}; it was given the number 3",
    );
    check(
        &json!({ "count": { "$__toml_private_datetime": "1979-05-27" } }),
        "a.count wants a whole number from 0, such as 0; it was given the date 1979-05-27",
    );
    // Two mistakes: the first is told in full.
    check(&json!({ "flag": 1, "word": 2 }), "a.flag wants true or false; it was given the number 1");
}

#[test]
fn what_has_its_form_is_not_refused() {
    assert_eq!(refusal(&json!({ "flag": true, "mode": { "share": 0.1 } }), &read, ""), None);
    assert_eq!(refusal(&json!({ "flog": true }), &read, ""), None, "another kind of error");
    assert_eq!(
        refusal(&json!({ "nested": { "every": true } }), &read, ""),
        None,
        "the reader has words of its own"
    );
}

#[test]
fn large_settings_have_a_message_without_names_of_types() {
    let many = json!({ "names": vec!["a"; MOST_VALUES], "histogram": 3 });
    assert_eq!(
        refusal(&many, &read, "").as_deref(),
        Some("a value has another form than its setting; correct it")
    );
}

#[test]
fn every_setting_is_listed() {
    let all: Vec<String> =
        settings(&json!({}), &read).into_iter().map(|s| format!("{}: {}", s.key, s.form)).collect();
    assert_eq!(
        all,
        [
            "count: a whole number from 0",
            "flag: true or false",
            "free: a table",
            "histogram: a table, such as {bins=16}",
            "layers: a list of tables",
            "mode: one of \"mean\", {share=0.5}",
            "names: a list of texts",
            "nested: a table, such as {every=16, layer={bins=16}}",
            "number: a number",
            "pair: a list of 2 numbers",
            "pairs: a list of lists of 2 whole numbers from 0",
            "small: a whole number from 0 to 255",
            "tagged.kind: one of \"plain\", \"other\"",
            "tagged.width: a whole number from 0",
            "word: a text",
        ]
    );
}
