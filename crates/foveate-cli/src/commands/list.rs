//! `foveate list`

use anyhow::anyhow;
use clap::Args;
use foveate::agents::voting::{KERNELS, VotingConfig};
use foveate::core::forms::{self, Setting, written};
use foveate::core::near;
use foveate::envs::registry::{Champion, Choice, VariantInfo};
use foveate::envs::shift::{SHIFT_SETS, ShiftDescriptor, ShiftSet};
use foveate::envs::wrap;
use foveate::registry::{
    AGENTS, AgentDescriptor, PRESETS, Preset, SHIFTS, WORLDS, WorldDescriptor, presets_of,
};
use foveate::run::ticker;
use foveate::{LEARNERS, LearnerDescriptor};
use serde_json::{Value, json};

use crate::out;

/// List worlds, agents, learners, presets and everything else that has a name
#[derive(Debug, Args)]
#[command(after_help = "\
Without a name, one line for each kind of thing; with one, the details of a kind, or of everything
that has this name.

Examples:
  foveate list
  foveate list worlds
  foveate list car-racing
  foveate list agents --json")]
pub(crate) struct List {
    /// A kind of thing, a name such as `car-racing`, or all
    #[arg(value_name = "KIND|NAME")]
    part: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A kind of thing that has names.
struct Part {
    name: &'static str,
    /// What they are.
    about: &'static str,
    names: fn() -> Vec<&'static str>,
    text: fn() -> String,
    json: fn() -> Value,
    /// Whether `list all` shows it: some are shown with others.
    whole: bool,
}

const PARTS: [Part; 13] = [
    Part {
        name: "worlds",
        about: "where agents act",
        names: || worlds(false).map(|world| world.name).collect(),
        text: worlds_text,
        json: worlds_json,
        whole: true,
    },
    Part {
        name: "champions",
        about: "trained agents that come with Foveate; the first of a world acts where no weights are named",
        names: || WORLDS.iter().flat_map(|world| world.champions).map(|champion| champion.name).collect(),
        text: champions_text,
        json: champions_json,
        whole: false,
    },
    Part {
        name: "variants",
        about: "changes of a world's appearance (--variant)",
        names: || {
            let mut names: Vec<_> =
                worlds(false).flat_map(|world| world.variants).map(|info| info.name).collect();
            names.sort_unstable();
            names.dedup();
            names
        },
        text: variants_text,
        json: variants_json,
        whole: false,
    },
    Part {
        name: "shifts",
        about: "changes of what an agent sees and does, of any world that they fit (--shift)",
        names: || SHIFTS.names(),
        text: shifts_text,
        json: shifts_json,
        whole: true,
    },
    Part {
        name: "sets",
        about: "sets of shifts (foveate stress --shifts)",
        names: || SHIFT_SETS.names(),
        text: sets_text,
        json: sets_json,
        whole: true,
    },
    Part {
        name: "wrappers",
        about: "changes of any world's observation (--wrap)",
        names: || wrap::catalogue().iter().map(|(name, _)| *name).collect(),
        text: wrappers_text,
        json: || lines_json(&wrappers()),
        whole: true,
    },
    Part {
        name: "gym",
        about: "families of worlds",
        names: || worlds(true).map(|world| world.name).collect(),
        text: gym_text,
        json: gym_json,
        whole: true,
    },
    Part {
        name: "agents",
        about: "what learns and acts (--set agent.name=NAME)",
        names: || AGENTS.names(),
        text: agents_text,
        json: agents_json,
        whole: true,
    },
    Part {
        name: "kernels",
        about: "by which patches vote (--set agent.config.voting.kernel=NAME)",
        names: || KERNELS.iter().map(|(name, _)| *name).collect(),
        text: kernels_text,
        json: kernels_json,
        whole: true,
    },
    Part {
        name: "learners",
        about: "how weights are found (--set recipe.algorithm=NAME)",
        names: || LEARNERS.names(),
        text: learners_text,
        json: learners_json,
        whole: false,
    },
    Part {
        name: "strategies",
        about: "",
        names: Vec::new,
        text: learners_text,
        json: learners_json,
        whole: true,
    },
    Part {
        name: "presets",
        about: "configurations for training, each for certain worlds (--preset)",
        names: || PRESETS.names(),
        text: presets_text,
        json: || json!(PRESETS.names()),
        whole: true,
    },
    Part {
        name: "settings",
        about: "settings of a run (--set)",
        names: Vec::new,
        text: run_settings_text,
        json: || settings_json(&run_settings()),
        whole: true,
    },
];

/// Every kind.
const ALL: &str = "all";

impl List {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let whole = || PARTS.iter().filter(|part| part.whole).collect::<Vec<&Part>>();
        let parts = match self.part.as_deref() {
            None if !self.json => return Ok(out::say(&overview())?),
            None | Some(ALL) => whole(),
            Some(name) => match find(name) {
                Some(part) => vec![part],
                None => return self.one(name),
            },
        };
        if self.json {
            let all = parts.iter().map(|part| (part.name.to_owned(), (part.json)()));
            return Ok(out::say_json(&Value::Object(all.collect()))?);
        }
        let text: Vec<String> = parts.iter().map(|part| (part.text)()).collect();
        Ok(out::say(text.join("\n").trim_end())?)
    }

    /// Everything that is called `name`.
    fn one(&self, name: &str) -> anyhow::Result<()> {
        if self.json {
            let named = |value: &Value| value["name"] == name || *value == name;
            let of = |part: &Part| -> Vec<Value> {
                let list = (part.json)();
                list.as_array().into_iter().flatten().filter(|value| named(value)).cloned().collect()
            };
            let found =
                PARTS.iter().filter(|part| part.name != "strategies").map(|part| (part.name, of(part)));
            let found: serde_json::Map<String, Value> = found
                .filter(|(_, list)| !list.is_empty())
                .map(|(kind, list)| (kind.to_owned(), list.into()))
                .collect();
            return if found.is_empty() { Err(unknown(name)) } else { Ok(out::say_json(&found.into())?) };
        }
        let entries = |title: &str, lines: Vec<Entry>| -> Option<String> {
            (!lines.is_empty()).then(|| format!("{title}:\n\n{}", columns(&lines)))
        };
        let world = WORLDS.get(name).map(|world| match world.family {
            None => world_text(world),
            Some(_) => family_text(world),
        });
        let found = [
            world,
            AGENTS.get(name).map(agent_text),
            LEARNERS.get(name).and_then(|learner| entries("learner", learner_lines(learner))),
            PRESETS.get(name).and_then(|preset| entries("preset", vec![preset_line(preset)])),
            SHIFTS.get(name).and_then(|shift| entries("shift", shift_lines(shift))),
            SHIFT_SETS
                .iter()
                .find(|set| set.name == name)
                .and_then(|set| entries("set of shifts", set_lines(set))),
            KERNELS
                .iter()
                .find(|(own, _)| *own == name)
                .and_then(|(name, about)| entries("kernel", kernel_lines(name, about))),
            worlds(false)
                .flat_map(|world| world.variants)
                .find(|info| info.name == name)
                .and_then(|info| entries("variant", variant_lines(info))),
            wrap::catalogue()
                .iter()
                .find(|(own, _)| own.split(':').next() == Some(name))
                .and_then(|line| entries("wrapper", vec![as_line(line)])),
            // A champion that is called like its world is shown with it.
            WORLDS
                .iter()
                .filter(|world| world.name != name)
                .flat_map(champion_lines)
                .find(|(own, _)| *own == name)
                .and_then(|(_, line)| entries("champion", vec![line])),
        ];
        let text: Vec<String> = found.into_iter().flatten().collect();
        if text.is_empty() {
            return Err(unknown(name));
        }
        Ok(out::say(text.join("\n").trim_end())?)
    }
}

/// The names of every kind.
fn overview() -> String {
    let mut text = String::from(
        "Details: `foveate list KIND`, `foveate list NAME`, or everything: `foveate list all`\n",
    );
    for part in &PARTS {
        let names = (part.names)();
        if !names.is_empty() {
            text.push_str(&format!("\n{}: {}\n  {}\n", part.name, part.about, names.join(", ")));
        }
    }
    ticker::wrap(text.trim_end(), WIDTH)
}

/// Columns of the overview.
const WIDTH: usize = 100;

/// The kind `name`, in the plural or in the singular.
fn find(name: &str) -> Option<&'static Part> {
    let singular = |part: &Part| {
        part.name.strip_suffix('s').is_some_and(|one| one == name)
            || (part.name, name) == ("strategies", "strategy")
    };
    PARTS.iter().find(|part| part.name == name || singular(part))
}

fn unknown(name: &str) -> anyhow::Error {
    let kinds = PARTS.iter().map(|part| part.name).chain([ALL]).collect::<Vec<_>>();
    let names = PARTS.iter().flat_map(|part| (part.names)());
    let hint = near::hint_of(name, kinds.iter().copied().chain(names));
    anyhow!("nothing is called {name:?};{hint} choose from: {}", kinds.join(", "))
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
    worlds(false).map(world_text).collect::<Vec<_>>().join("\n")
}

fn world_text(world: &WorldDescriptor) -> String {
    let mut text = format!("world {}: {}\n", world.name, world.summary);
    for (title, lines) in [
        ("pictures (--picture), the first is the default", choices(world.pictures)),
        (
            "variants (--variant NAME:PARAMETER=VALUE+NAME…), each with its parameters",
            variants(world.variants),
        ),
        ("options (--option KEY=VALUE)", choices(world.options)),
        ("presets for training (--preset), the first is the default", presets(world)),
        ("champions: the first acts where no WEIGHTS are named", champions(world)),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n {title}:\n{}", columns(&lines)));
        }
    }
    text
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

/// The trained agents of a world, each with its world.
fn champion_lines(world: &'static WorldDescriptor) -> impl Iterator<Item = (&'static str, Entry)> {
    world.champions.iter().map(|champion| {
        let about = format!("{}; in {}", champion.about, world.name);
        (champion.name, Entry { name: champion.name.into(), about })
    })
}

fn champions_text() -> String {
    let lines: Vec<Entry> = WORLDS.iter().flat_map(champion_lines).map(|(_, line)| line).collect();
    format!(
        "champions: trained agents that come with Foveate, named in place of weights; the first of a world acts where none are named:\n\n{}",
        columns(&lines)
    )
}

fn champions_json() -> Value {
    let of_world = |world: &'static WorldDescriptor| {
        let one = |champion: &Champion| json!({ "name": champion.name, "about": champion.about, "world": world.name });
        world.champions.iter().map(one)
    };
    WORLDS.iter().flat_map(of_world).collect()
}

/// The presets that suit a world.
fn presets(world: &WorldDescriptor) -> Vec<Entry> {
    presets_of(world).into_iter().map(preset_line).collect()
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
    lines.extend(SHIFT_SETS.iter().flat_map(set_lines));
    format!("sets of shifts (foveate stress --shifts SET,SHIFT,…), rows of a table:\n\n{}", columns(&lines))
}

fn set_lines(set: &ShiftSet) -> Vec<Entry> {
    vec![
        Entry { name: set.name.into(), about: set.about.into() },
        Entry { name: String::new(), about: set.shifts.join(",") },
    ]
}

fn sets_json() -> Value {
    let set = |set: &ShiftSet| json!({ "name": set.name, "about": set.about, "shifts": set.shifts });
    SHIFT_SETS.iter().map(set).collect()
}

fn wrappers_text() -> String {
    format!("wrappers (--wrap NAME:VALUE+NAME…) of any world:\n\n{}", columns(&wrappers()))
}

fn gym_text() -> String {
    worlds(true).map(family_text).collect::<Vec<_>>().join("\n")
}

fn family_text(world: &WorldDescriptor) -> String {
    let pictures: Vec<String> =
        world.pictures.iter().map(|picture| format!("{}, {}", picture.name, picture.about)).collect();
    format!(
        "world {}: {}\n\n pictures (--picture): {}\n\n options (--option KEY=VALUE):\n\n{}",
        world.name,
        world.summary,
        pictures.join("; "),
        columns(&choices(world.options))
    )
}

fn agents_text() -> String {
    AGENTS.iter().map(agent_text).collect::<Vec<_>>().join("\n")
}

fn agent_text(agent: &AgentDescriptor) -> String {
    format!(
        "agent {}: {}; sees {}\n\n settings, as in `foveate train --set agent.config.top_k=5`, each with its default and what it takes:\n{}",
        agent.name,
        agent.summary,
        agent.sees.describe(),
        columns(&setting_lines(&agent.settings()))
    )
}

/// A line for each setting: its default, and what it takes.
fn setting_lines(settings: &[Setting]) -> Vec<Entry> {
    let line = |setting: &Setting| {
        let default = setting.default.as_ref().map_or_else(|| "not set".to_owned(), written);
        Entry { name: setting.key.clone(), about: format!("{default} ({})", setting.form) }
    };
    settings.iter().map(line).collect()
}

fn settings_json(settings: &[Setting]) -> Value {
    let one = |s: &Setting| json!({ "name": s.key, "default": s.default, "form": s.form });
    settings.iter().map(one).collect()
}

/// Settings of a run that all agents and learners have.
fn run_settings() -> Vec<Setting> {
    let preset = PRESETS.names()[0];
    foveate::run::config::settings(preset).expect("a preset in the list can be read")
}

fn run_settings_text() -> String {
    format!(
        "settings of a run (--set KEY=VALUE, and in the file of --config), with the values of the preset {} and what they\n\
         take; those of its agent: `foveate list AGENT`, those of a stage's learner: `foveate list LEARNER`:\n\n{}",
        PRESETS.names()[0],
        columns(&setting_lines(&run_settings()))
    )
}

fn kernels_text() -> String {
    let lines = KERNELS.iter().flat_map(|(name, about)| kernel_lines(name, about));
    format!(
        "kernels, by which the patches of attention-agent, iap and iap-hierarchical vote, each with its settings, as in\n\
         `foveate train --set agent.config.voting.kernel=relu`:\n\n{}",
        columns(&lines.collect::<Vec<_>>())
    )
}

fn kernel_lines(name: &str, about: &str) -> Vec<Entry> {
    described(name, about, &kernel_settings(name))
}

fn learner_lines(learner: &LearnerDescriptor) -> Vec<Entry> {
    described(learner.name, learner.summary, &learner.forms())
}

fn learners_text() -> String {
    let lines = LEARNERS.iter().flat_map(learner_lines);
    format!(
        "learners (`algorithm` in a training configuration), each with its settings:\n\n{}\n all but imitation with \
         `bounds = {{ low = -3, high = 3, repair = \"reflect\" }}` (or \"clip\"), and with\n \
         `restarts = {{ after = 100, population_factor = 2 }}`\n",
        columns(&lines.collect::<Vec<_>>())
    )
}

fn presets_text() -> String {
    let lines: Vec<Entry> = PRESETS.iter().map(preset_line).collect();
    format!("presets for training (--preset):\n\n{}", columns(&lines))
}

/// A line for an entry with settings, followed by one for each of them.
fn described(name: &str, about: &str, settings: &[Setting]) -> Vec<Entry> {
    let of_entry = Entry { name: name.into(), about: about.into() };
    let indented =
        setting_lines(settings).into_iter().map(|line| Entry { name: format!("  {}", line.name), ..line });
    std::iter::once(of_entry).chain(indented).collect()
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

/// Every setting of a kernel.
fn kernel_settings(name: &str) -> Vec<Setting> {
    let complete = |config: &Value| {
        let config: VotingConfig =
            serde_json::from_value(config.clone()).map_err(|error| error.to_string())?;
        serde_json::to_value(config).map_err(|error| error.to_string())
    };
    let mut settings = forms::settings(&json!({ "kernel": name }), &complete);
    settings.retain(|setting| setting.key != "kernel");
    settings
}

/// The settings that have a default, with their values.
fn defaults(settings: &[Setting]) -> Value {
    let with_default = settings.iter().filter_map(|s| Some((s.key.clone(), s.default.clone()?)));
    Value::Object(with_default.collect())
}

/// Every setting of a learner that has a default, with that value.
fn learner_settings(learner: &LearnerDescriptor) -> serde_json::Map<String, Value> {
    match serde_json::to_value(learner.defaults()) {
        Ok(Value::Object(settings)) => settings,
        _ => serde_json::Map::new(),
    }
}

fn variants(infos: &[VariantInfo]) -> Vec<Entry> {
    infos.iter().flat_map(variant_lines).collect()
}

/// A line for a variant, followed by one for each of its parameters.
fn variant_lines(info: &VariantInfo) -> Vec<Entry> {
    let line = |name: String, about: String| Entry { name, about };
    let about = format!("{} ({})", info.about, info.source);
    let parameters =
        info.parameters.iter().map(|p| line(format!("  :{}={}", p.name, p.default), p.about.to_owned()));
    std::iter::once(line(info.name.to_owned(), about)).chain(parameters).collect()
}

fn shifts() -> Vec<Entry> {
    SHIFTS.iter().flat_map(shift_lines).collect()
}

/// A line for a shift with the effect of its severities, followed by one for each of its parameters.
fn shift_lines(info: &ShiftDescriptor) -> Vec<Entry> {
    let amounts = info.amounts.map(|amount| amount.to_string()).join(", ");
    let about = format!("{}; {}: {amounts}", info.about, info.unit);
    let knobs = info
        .knobs
        .iter()
        .map(|k| Entry { name: format!("  :{}={}", k.name, k.default), about: k.about.to_owned() });
    std::iter::once(Entry { name: info.name.to_owned(), about }).chain(knobs).collect()
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
            "presets": presets_of(world).iter().map(|preset| preset.name).collect::<Vec<_>>(),
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
    let agent = |agent: &AgentDescriptor| json!({ "name": agent.name, "about": agent.summary, "sees": agent.sees.describe(), "config": settings(agent.name), "settings": settings_json(&agent.settings()) });
    AGENTS.iter().map(agent).collect()
}

fn learners_json() -> Value {
    LEARNERS
        .iter()
        .map(|s| json!({ "name": s.name, "about": s.summary, "config": learner_settings(s), "settings": settings_json(&s.forms()) }))
        .collect()
}

fn kernels_json() -> Value {
    let kernel = |(name, about): &(&str, &str)| {
        let settings = kernel_settings(name);
        json!({ "name": name, "about": about, "config": defaults(&settings), "settings": settings_json(&settings) })
    };
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
