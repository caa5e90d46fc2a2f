//! `foveate list`

use clap::Args;
use foveate_envs::registry::{self, Line};
use foveate_run::config::PRESETS;
use serde_json::{Value, json};

use crate::out;

/// Show the worlds, pictures, variants and presets
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foveate list
  foveate list --json")]
pub(crate) struct List {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.json { Ok(out::say_json(&as_json())?) } else { Ok(out::say(as_text().trim_end())?) }
    }
}

fn as_text() -> String {
    let mut parts = vec![];
    for env in registry::list() {
        parts.push(format!("world {}: {}\n", env.id, env.about));
        for (title, lines) in [
            ("pictures (--picture), the first is the default", &env.pictures),
            ("variants (--variant)", &env.variants),
            ("options (--option KEY=VALUE)", &env.options),
        ] {
            parts.push(format!("\n {title}:\n{}", columns(lines)));
        }
    }
    parts.push(format!("\npresets for training: {}\n", PRESETS.map(|(name, _)| name).join(", ")));
    parts.concat()
}

fn columns(lines: &[Line]) -> String {
    out::columns(lines.iter().map(|line| (line.name.as_str(), line.about.as_str())))
}

fn as_json() -> Value {
    let lines = |lines: &[Line]| -> Vec<Value> {
        lines.iter().map(|line| json!({ "name": line.name, "about": line.about })).collect()
    };
    let worlds: Vec<Value> = registry::list()
        .iter()
        .map(|env| {
            json!({
                "name": env.id,
                "about": env.about,
                "pictures": lines(&env.pictures),
                "variants": lines(&env.variants),
                "options": lines(&env.options),
            })
        })
        .collect();
    json!({ "worlds": worlds, "presets": PRESETS.map(|(name, _)| name) })
}
