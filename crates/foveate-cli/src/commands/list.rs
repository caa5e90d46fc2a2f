//! `foveate list`

use anyhow::anyhow;
use clap::Args;
use foveate::agents::voting::{KERNELS, VotingConfig};
use foveate::core::near;
use foveate::envs::registry::{Choice, VariantInfo};
use foveate::envs::shift::{SHIFT_SETS, ShiftDescriptor, ShiftSet};
use foveate::envs::wrap;
use foveate::registry::{AGENTS, AgentDescriptor, PRESETS, Preset, SHIFTS, WORLDS, WorldDescriptor};
use foveate::{LEARNERS, LearnerDescriptor};
use serde_json::{Value, json};

use crate::out;

/// List worlds, pictures, variants, shifts and sets of them, agents, voting kernels, evolution strategies and presets
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foveate list
  foveate list worlds
  foveate list agents --json")]
pub(crate) struct List {
    #[arg(value_name = "PART", help = format!("Show only one part: {}", PARTS.map(|part| part.name).join(", ")))]
    part: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A part of the list.
struct Part {
    name: &'static str,
    text: fn() -> String,
    json: fn() -> Value,
}

const PARTS: [Part; 10] = [
    Part { name: "worlds", text: worlds_text, json: worlds_json },
    Part { name: "variants", text: variants_text, json: variants_json },
    Part { name: "shifts", text: shifts_text, json: shifts_json },
    Part { name: "sets", text: sets_text, json: sets_json },
    Part { name: "wrappers", text: wrappers_text, json: || lines_json(&wrappers()) },
    Part { name: "gym", text: gym_text, json: gym_json },
    Part { name: "agents", text: agents_text, json: agents_json },
    Part { name: "kernels", text: kernels_text, json: kernels_json },
    Part { name: "strategies", text: strategies_text, json: strategies_json },
    Part { name: "presets", text: presets_text, json: || json!(PRESETS.names()) },
];

impl List {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let parts: Vec<&Part> = match &self.part {
            // Variants are shown with their worlds.
            None => PARTS.iter().filter(|part| part.name != "variants").collect(),
            Some(name) => vec![find(name)?],
        };
        if self.json {
            let all = parts.iter().map(|part| (part.name.to_owned(), (part.json)()));
            return Ok(out::say_json(&Value::Object(all.collect()))?);
        }
        let text: Vec<String> = parts.iter().map(|part| (part.text)()).collect();
        Ok(out::say(text.join("\n").trim_end())?)
    }
}

/// The part `name`, in the plural or in the singular.
fn find(name: &str) -> anyhow::Result<&'static Part> {
    let singular = |part: &Part| {
        part.name.strip_suffix('s').is_some_and(|one| one == name)
            || (part.name, name) == ("strategies", "strategy")
    };
    PARTS.iter().find(|part| part.name == name || singular(part)).ok_or_else(|| {
        let known = PARTS.iter().map(|part| part.name).collect::<Vec<_>>().join(", ");
        anyhow!("there is no list of {name:?};{} choose from: {known}", near::hint(name, &known))
    })
}

/// A name and its description.
struct Entry {
    name: String,
    about: String,
}

/// The worlds that are not families (`false`), or the families (`true`).
fn worlds(families: bool) -> impl Iterator<Item = &'static WorldDescriptor> {
    WORLDS.iter().filter(move |world| world.family.is_some() == families)
}

fn worlds_text() -> String {
    let mut parts = vec![];
    for world in worlds(false) {
        let title = if parts.is_empty() { "" } else { "\n" };
        parts.push(format!("{title}world {}: {}\n", world.name, world.summary));
        for (title, lines) in [
            ("pictures (--picture), the first is the default", choices(world.pictures)),
            (
                "variants (--variant NAME:PARAMETER=VALUE+NAME…), each with its parameters",
                variants(world.variants),
            ),
            ("options (--option KEY=VALUE)", choices(world.options)),
            ("presets for training (--preset), the first is the default", presets(world)),
            ("champions: the first acts where no WEIGHTS are named, the others by name", champions(world)),
        ] {
            if !lines.is_empty() {
                parts.push(format!("\n {title}:\n{}", columns(&lines)));
            }
        }
    }
    parts.concat()
}

fn choices(choices: &[Choice]) -> Vec<Entry> {
    choices.iter().map(|choice| Entry { name: choice.name.into(), about: choice.about.into() }).collect()
}

/// The trained agents that come with Foveate.
fn champions(world: &WorldDescriptor) -> Vec<Entry> {
    world
        .champions
        .iter()
        .map(|champion| Entry { name: champion.name.into(), about: champion.about.into() })
        .collect()
}

/// The presets that suit a world.
fn presets(world: &WorldDescriptor) -> Vec<Entry> {
    world.presets.iter().filter_map(|name| PRESETS.get(name)).map(preset_line).collect()
}

fn preset_line(preset: &Preset) -> Entry {
    Entry { name: preset.name.into(), about: format!("{}; trains {}", preset.summary, preset.agent) }
}

fn variants_text() -> String {
    let of_world = |world: &WorldDescriptor| {
        format!(
            "variants of {} (--variant NAME:PARAMETER=VALUE+NAME…), each with its parameters:\n\n{}",
            world.name,
            columns(&variants(world.variants))
        )
    };
    let with_variants = worlds(false).filter(|world| !world.variants.is_empty());
    with_variants.map(of_world).collect::<Vec<_>>().join("\n")
}

fn shifts_text() -> String {
    format!(
        "shifts (--shift NAME:SEVERITY:PARAMETER=VALUE@STEP+NAME…) of any world that they fit, severity 1 to 5:\n\n{}",
        columns(&shifts())
    )
}

fn sets_text() -> String {
    let mut lines = vec![
        Entry { name: "none".into(), about: "no shift".into() },
        Entry { name: "all".into(), about: "every shift that fits the world, in each severity".into() },
    ];
    for set in SHIFT_SETS.iter() {
        lines.push(Entry { name: set.name.into(), about: set.about.into() });
        lines.push(Entry { name: String::new(), about: set.shifts.join(",") });
    }
    format!("sets of shifts (foveate stress --shifts SET,SHIFT,…), rows of a table:\n\n{}", columns(&lines))
}

fn sets_json() -> Value {
    let set = |set: &ShiftSet| json!({ "name": set.name, "about": set.about, "shifts": set.shifts });
    SHIFT_SETS.iter().map(set).collect()
}

fn wrappers_text() -> String {
    format!("wrappers (--wrap NAME:VALUE+NAME…) of any world:\n\n{}", columns(&wrappers()))
}

fn gym_text() -> String {
    let of_one = |world: &WorldDescriptor| {
        let pictures: Vec<String> =
            world.pictures.iter().map(|picture| format!("{}, {}", picture.name, picture.about)).collect();
        format!(
            "world {}: {}\n\n pictures (--picture): {}\n\n options (--option KEY=VALUE):\n\n{}",
            world.name,
            world.summary,
            pictures.join("; "),
            columns(&choices(world.options))
        )
    };
    worlds(true).map(of_one).collect::<Vec<_>>().join("\n")
}

fn agents_text() -> String {
    let of_one = |agent: &AgentDescriptor| {
        let lines: Vec<Entry> = settings(agent.name)
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| Entry { name: name.clone(), about: value.to_string() })
            .collect();
        format!(
            "agent {}: {}; sees {}\n\n settings and their defaults, as in `foveate train --set agent.config.top_k=5`:\n{}",
            agent.name,
            agent.summary,
            agent.sees.describe(),
            columns(&lines)
        )
    };
    AGENTS.iter().map(of_one).collect::<Vec<_>>().join("\n")
}

fn kernels_text() -> String {
    let lines = KERNELS.iter().flat_map(|(name, about)| described(name, about, &kernel_settings(name)));
    format!(
        "kernels, by which the patches of any agent vote, each with its settings, as in\n\
         `foveate train --set agent.config.voting.kernel=relu`:\n\n{}",
        columns(&lines.collect::<Vec<_>>())
    )
}

fn strategies_text() -> String {
    let lines = LEARNERS.iter().flat_map(|s| described(s.name, s.summary, &learner_settings(s)));
    format!(
        "strategies (`algorithm` in a training configuration), each with its settings:\n\n{}\n all but imitation with \
         `bounds = {{ low = -3, high = 3, repair = \"reflect\" }}` (or \"clip\"), and with\n \
         `restarts = {{ after = 100, population_factor = 2 }}`\n",
        columns(&lines.collect::<Vec<_>>())
    )
}

fn presets_text() -> String {
    let lines: Vec<Entry> = PRESETS.iter().map(preset_line).collect();
    format!("presets for training (--preset):\n\n{}", columns(&lines))
}

/// A line for an entry with settings and, below it, one with the settings.
fn described(name: &str, about: &str, settings: &serde_json::Map<String, Value>) -> Vec<Entry> {
    let line = |name: &str, about: String| Entry { name: name.into(), about };
    let settings: Vec<String> =
        settings.iter().map(|(name, default)| format!("{name}={default}").replace('"', "")).collect();
    let settings = (!settings.is_empty()).then(|| line("", settings.join(" ")));
    std::iter::once(line(name, about.into())).chain(settings).collect()
}

fn wrappers() -> Vec<Entry> {
    wrap::catalogue().iter().map(as_line).collect()
}

fn gym_json() -> Value {
    worlds(true).flat_map(|world| choices_json(world.options)).collect()
}

fn as_line(&(name, about): &(&str, &str)) -> Entry {
    Entry { name: name.into(), about: about.into() }
}

/// Every setting of an agent, with its default value.
fn settings(agent: &str) -> Value {
    foveate::agents::registry::full_config(agent, &Value::Null)
        .expect("the defaults of a registered agent are good")
}

/// Every setting of a kernel, with its default value.
fn kernel_settings(name: &str) -> serde_json::Map<String, Value> {
    let config: VotingConfig = serde_json::from_value(json!({ "kernel": name })).expect("it is in the list");
    let Ok(Value::Object(mut settings)) = serde_json::to_value(config) else { return serde_json::Map::new() };
    settings.remove("kernel");
    settings
}

/// Every setting of a learner that has a default, with that value.
fn learner_settings(learner: &LearnerDescriptor) -> serde_json::Map<String, Value> {
    match serde_json::to_value(learner.defaults()) {
        Ok(Value::Object(settings)) => settings,
        _ => serde_json::Map::new(),
    }
}

/// A line for each variant, followed by one for each of its parameters.
fn variants(infos: &[VariantInfo]) -> Vec<Entry> {
    let line = |name: String, about: String| Entry { name, about };
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

/// A line for each shift with the effect of its severities, followed by one for each of its parameters.
fn shifts() -> Vec<Entry> {
    let of_one = |info: &ShiftDescriptor| {
        let amounts = info.amounts.map(|amount| amount.to_string()).join(", ");
        let about = format!("{}; {}: {amounts}", info.about, info.unit);
        let knobs = info
            .knobs
            .iter()
            .map(|k| Entry { name: format!("  :{}={}", k.name, k.default), about: k.about.to_owned() });
        std::iter::once(Entry { name: info.name.to_owned(), about }).chain(knobs).collect::<Vec<_>>()
    };
    SHIFTS.iter().flat_map(of_one).collect()
}

fn columns(lines: &[Entry]) -> String {
    out::columns(lines.iter().map(|line| (line.name.as_str(), line.about.as_str())))
}

fn choices_json(choices: &[Choice]) -> Vec<Value> {
    choices.iter().map(|choice| json!({ "name": choice.name, "about": choice.about })).collect()
}

fn lines_json(lines: &[Entry]) -> Value {
    lines.iter().map(|line| json!({ "name": line.name, "about": line.about })).collect()
}

fn worlds_json() -> Value {
    let world = |world: &WorldDescriptor| {
        json!({
            "name": world.name,
            "about": world.summary,
            "pictures": choices_json(world.pictures),
            "variants": world.variants.iter().map(variant_json).collect::<Vec<_>>(),
            "options": choices_json(world.options),
            "presets": world.presets,
            "champions": world.champions.iter().map(|champion| champion.name).collect::<Vec<_>>(),
            "solved_at": world.solved_at,
        })
    };
    worlds(false).map(world).collect()
}

fn variants_json() -> Value {
    let of_world = |world: &'static WorldDescriptor| {
        world.variants.iter().map(move |info| {
            let mut variant = variant_json(info);
            variant["world"] = world.name.into();
            variant
        })
    };
    worlds(false).flat_map(of_world).collect()
}

fn variant_json(info: &VariantInfo) -> Value {
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
}

fn agents_json() -> Value {
    let agent = |agent: &AgentDescriptor| json!({ "name": agent.name, "about": agent.summary, "sees": agent.sees.describe(), "config": settings(agent.name) });
    AGENTS.iter().map(agent).collect()
}

fn strategies_json() -> Value {
    LEARNERS
        .iter()
        .map(|s| json!({ "name": s.name, "about": s.summary, "config": learner_settings(s) }))
        .collect()
}

fn kernels_json() -> Value {
    let kernel = |(name, about): &(&str, &str)| json!({ "name": name, "about": about, "config": kernel_settings(name) });
    KERNELS.iter().map(kernel).collect()
}

fn shifts_json() -> Value {
    let shift = |info: &ShiftDescriptor| {
        let knobs: Vec<Value> = info
            .knobs
            .iter()
            .map(|k| json!({ "name": k.name, "default": k.default, "about": k.about }))
            .collect();
        json!({
            "name": info.name,
            "about": info.about,
            "changes": info.target.name(),
            "unit": info.unit,
            "amounts": info.amounts,
            "parameters": knobs,
        })
    };
    SHIFTS.iter().map(shift).collect()
}
