//! `foveate list`

use clap::Args;
use foveate_agents::voting::{KERNELS, VotingConfig};
use foveate_envs::registry::{self, Line, VariantInfo};
use foveate_envs::shift::{ShiftInfo, Target, catalogue};
use foveate_envs::wrap;
use foveate_run::config::PRESETS;
use serde_json::{Value, json};

use crate::out;

/// Show the worlds, pictures, variants, shifts, agents, voting kernels, evolution strategies and presets
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
            (
                "variants (--variant NAME:PARAMETER=VALUE+NAME…), each with its parameters",
                &variants(env.variants),
            ),
            ("options (--option KEY=VALUE)", &env.options),
        ] {
            parts.push(format!("\n {title}:\n{}", columns(lines)));
        }
    }
    parts.push(
        "\nshifts (--shift NAME:SEVERITY:PARAMETER=VALUE@STEP+NAME…) of any world with a picture, severity 1 to 5:\n\n"
            .into(),
    );
    parts.push(columns(&shifts()));
    parts.push("\nwrappers (--wrap NAME:VALUE+NAME…) of any world:\n\n".into());
    let line = |&(name, about): &(&str, &str)| Line { name: name.into(), about: about.into() };
    parts.push(columns(&wrap::catalogue().iter().map(line).collect::<Vec<_>>()));
    parts.push(
        "\nworld gym:ID: any environment of Gymnasium, in Python processes of its own; docs/gymnasium.md\n\n \
         pictures (--picture): world, what it shows; render, what it draws for people\n\n options \
         (--option KEY=VALUE):\n\n"
            .into(),
    );
    let options = foveate_run::worlds::gym_options();
    parts.push(columns(&options.map(|option| line(&option)).collect::<Vec<_>>()));
    for agent in foveate_agents::registry::list() {
        parts.push(format!("\nagent {}: {}\n", agent.name, agent.summary));
        parts.push(
            "\n settings and their defaults, as in `foveate train --set agent.config.top_k=5`:\n".into(),
        );
        let lines: Vec<Line> = settings(agent.name)
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| Line { name: name.clone(), about: value.to_string() })
            .collect();
        parts.push(columns(&lines));
    }
    parts.push(
        "\nkernels, by which the patches of any agent vote, each with its settings, as in\n\
         `foveate train --set agent.config.voting.kernel=relu`:\n\n"
            .into(),
    );
    let lines = KERNELS.iter().flat_map(|(name, about)| {
        let settings: Vec<String> = kernel_settings(name)
            .iter()
            .map(|(name, default)| format!("{name}={default}").replace('"', ""))
            .collect();
        let line = |name: &str, about: &str| Line { name: name.into(), about: about.into() };
        std::iter::once(line(name, about))
            .chain((!settings.is_empty()).then(|| line("", &settings.join(" "))))
            .collect::<Vec<_>>()
    });
    parts.push(columns(&lines.collect::<Vec<_>>()));
    parts.push("\nstrategies (`algorithm` in a training configuration), each with its settings:\n\n".into());
    let lines = strategies().flat_map(|strategy| {
        let settings: Vec<String> = strategy_settings(strategy.name)
            .iter()
            .map(|(name, default)| format!("{name}={default}").replace('"', ""))
            .collect();
        let line = |name: &str, about: &str| Line { name: name.into(), about: about.into() };
        [line(strategy.name, strategy.what), line("", &settings.join(" "))]
    });
    parts.push(columns(&lines.collect::<Vec<_>>()));
    parts.push(
        "\n all but imitation with `bounds = { low = -3, high = 3, repair = \"reflect\" }` (or \"clip\"), and with\n \
         `restarts = { after = 100, population_factor = 2 }`\n"
            .into(),
    );
    parts.push(format!("\npresets for training: {}\n", PRESETS.map(|(name, _)| name).join(", ")));
    parts.concat()
}

/// Every setting of an agent, at its default.
fn settings(agent: &str) -> Value {
    foveate_agents::registry::full_config(agent, &Value::Null)
        .expect("the defaults of a registered agent are good")
}

/// Every setting of a kernel, at its default.
fn kernel_settings(name: &str) -> serde_json::Map<String, Value> {
    let config: VotingConfig = serde_json::from_value(json!({ "kernel": name })).expect("it is in the list");
    let Ok(Value::Object(mut settings)) = serde_json::to_value(config) else { return serde_json::Map::new() };
    settings.remove("kernel");
    settings
}

/// Strategies of evolution, and imitation.
fn strategies() -> impl Iterator<Item = &'static foveate_evolve::Described> {
    foveate_evolve::list().iter().chain([&foveate_evolve::IMITATION])
}

/// Every setting of a strategy that has a default, at its default.
fn strategy_settings(name: &str) -> serde_json::Map<String, Value> {
    let config = foveate_evolve::StrategyConfig::named(name).expect("it is in the list");
    let Ok(Value::Object(mut settings)) = serde_json::to_value(config) else { return serde_json::Map::new() };
    settings.remove("algorithm");
    settings
}

/// A line for each variant and, below it, one for each of its parameters.
fn variants(infos: &[VariantInfo]) -> Vec<Line> {
    let line = |name: String, about: String| Line { name, about };
    let of_one = |info: &VariantInfo| {
        let about = format!("{} ({})", info.about, info.source);
        let parameters = info
            .parameters
            .iter()
            .map(move |p| line(format!("  :{}={}", p.name, p.default), p.about.to_owned()));
        std::iter::once(line(info.name.to_owned(), about)).chain(parameters).collect::<Vec<_>>()
    };
    infos.iter().flat_map(of_one).collect()
}

/// A line for each shift with what its severities amount to and, below it, one for each of its parameters.
fn shifts() -> Vec<Line> {
    let of_one = |info: &ShiftInfo| {
        let amounts = info.amounts.map(|amount| amount.to_string()).join(", ");
        let about = format!("{}; {}: {amounts}", info.about, info.unit);
        let knobs = info
            .knobs
            .iter()
            .map(|k| Line { name: format!("  :{}={}", k.name, k.default), about: k.about.to_owned() });
        std::iter::once(Line { name: info.name.to_owned(), about }).chain(knobs).collect::<Vec<_>>()
    };
    catalogue().iter().flat_map(of_one).collect()
}

fn columns(lines: &[Line]) -> String {
    out::columns(lines.iter().map(|line| (line.name.as_str(), line.about.as_str())))
}

fn as_json() -> Value {
    let lines = |lines: &[Line]| -> Vec<Value> {
        lines.iter().map(|line| json!({ "name": line.name, "about": line.about })).collect()
    };
    let variant = |info: &VariantInfo| {
        let parameters: Vec<Value> = info
            .parameters
            .iter()
            .map(|p| json!({ "name": p.name, "default": p.default, "about": p.about }))
            .collect();
        json!({
            "name": info.name,
            "about": info.about,
            "parameters": parameters,
            "source": info.source,
            "pictures": info.pictures,
        })
    };
    let worlds: Vec<Value> = registry::list()
        .iter()
        .map(|env| {
            json!({
                "name": env.id,
                "about": env.about,
                "pictures": lines(&env.pictures),
                "variants": env.variants.iter().map(variant).collect::<Vec<_>>(),
                "options": lines(&env.options),
            })
        })
        .collect();
    let agents: Vec<Value> = foveate_agents::registry::list()
        .iter()
        .map(|agent| json!({ "name": agent.name, "about": agent.summary, "config": settings(agent.name) }))
        .collect();
    let strategies: Vec<Value> = strategies()
        .map(|s| json!({ "name": s.name, "about": s.what, "config": strategy_settings(s.name) }))
        .collect();
    let kernels: Vec<Value> = KERNELS
        .iter()
        .map(|(name, about)| json!({ "name": name, "about": about, "config": kernel_settings(name) }))
        .collect();
    let shifts: Vec<Value> = catalogue()
        .iter()
        .map(|info| {
            let knobs: Vec<Value> = info
                .knobs
                .iter()
                .map(|k| json!({ "name": k.name, "default": k.default, "about": k.about }))
                .collect();
            json!({
                "name": info.name,
                "about": info.about,
                "changes": if info.target == Target::Picture { "picture" } else { "action" },
                "unit": info.unit,
                "amounts": info.amounts,
                "parameters": knobs,
            })
        })
        .collect();
    json!({ "worlds": worlds, "shifts": shifts, "agents": agents, "kernels": kernels, "strategies": strategies, "presets": PRESETS.map(|(name, _)| name) })
}
