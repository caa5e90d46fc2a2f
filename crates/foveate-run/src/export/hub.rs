//! A folder as model hubs keep it: `model.safetensors`, `config.json`, and `README.md`, the model's card, whose head has the scores in
//! the form `model-index`.

use serde_json::{Value, json};

use crate::evaluate::EvalReport;
use crate::weights::{AgentFile, HUB_WEIGHTS};

/// The files, by name.
pub(super) fn files(file: &AgentFile, report: &EvalReport) -> Vec<(String, Vec<u8>)> {
    let config = json!({
        "library_name": "foveate",
        "foveate_version": crate::VERSION,
        "agent": file.name(),
        "config": file.config(),
        "world": file.about("world").and_then(|world| serde_json::from_str::<Value>(world).ok()),
        "parameters": file.params().len(),
        "sha256": file.sha256(),
    });
    let config = serde_json::to_string_pretty(&config).unwrap_or_default() + "\n";
    vec![
        (HUB_WEIGHTS.to_owned(), file.to_bytes()),
        ("config.json".to_owned(), config.into_bytes()),
        ("README.md".to_owned(), card(file, report).into_bytes()),
    ]
}

/// The card with what stands in braces.
const CARD: &str = include_str!("card.md");

fn card(file: &AgentFile, report: &EvalReport) -> String {
    let EvalReport { env, picture, variant, weights, summary, seed, .. } = report;
    let number = |x: f64| format!("{x:.2}");
    let end = |end: usize| summary.ci95.map_or_else(|| "null".to_owned(), |ci95| number(ci95[end]));
    let std = |sign: &str| summary.std.map_or(String::new(), |std| format!(" {sign} {}", number(std)));
    let world = format!("{env}, picture {picture}, variant {variant}");
    // A string of JSON is one of YAML.
    let quoted = |text: &str| Value::from(text).to_string();
    let filled = |name: &str| match name {
        "quoted agent" => quoted(file.name()),
        "quoted env" => quoted(env),
        "quoted weights" => quoted(weights),
        "quoted world" => quoted(&world),
        "agent" => file.name().to_owned(),
        "env" => plain(env),
        "weights" => plain(weights),
        "world" => plain(&world).replace('|', "\\|"),
        "mean" => number(summary.mean),
        "+/- std" => std("+/-"),
        "± std" => std("±"),
        "median" => number(summary.median),
        "low" => end(0),
        "high" => end(1),
        "interval" => summary.ci95.map_or_else(
            || "none: one episode".to_owned(),
            |[low, high]| format!("{} … {}", number(low), number(high)),
        ),
        "n" => summary.n.to_string(),
        "seed" => serde_json::to_string(seed).unwrap_or_default(),
        "parameters" => file.params().len().to_string(),
        "sha256" => file.sha256(),
        "source" => {
            file.about("source").map_or(String::new(), |source| format!("Made by `{}`.\n", plain(source)))
        }
        other => unreachable!("{other} stands in no card"),
    };
    let mut out = String::new();
    let mut rest = CARD;
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        out += before;
        out += &filled(name);
        rest = after;
    }
    out + rest
}

/// Words from a weight file as one line without marks of code.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect()
}
