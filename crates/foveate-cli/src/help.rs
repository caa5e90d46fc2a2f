//! Help texts with names from the registries, so that a new world, agent or preset is in the help at once.

use foveate::agents::Sees;
use foveate::envs::shift::SHIFT_SETS;
use foveate::registry::default_world;
use foveate::registry::presets_of;
use foveate::run::ticker::wrap;
use foveate::{AGENTS, PRESETS, WORLDS, WorldDescriptor};

use crate::out;

/// Columns of help that is wrapped by hand.
const WIDTH: usize = 100;

/// The help of `--env`.
pub(crate) fn env() -> String {
    let families =
        WORLDS.iter().filter_map(|world| Some(format!(", and {} is {}", world.name, world.family?.members)));
    format!(
        "The world; `foveate list` shows them{} [default: that of the weights, or {}]",
        families.collect::<String>(),
        default_world().name
    )
}

/// The help of `--picture`.
pub(crate) fn picture() -> String {
    let mut rendered: Vec<(&str, Vec<&str>)> = Vec::new();
    for world in WORLDS.iter() {
        let Some(picture) = world.fallback_picture else { continue };
        match rendered.iter_mut().find(|(other, _)| *other == picture) {
            Some((_, worlds)) => worlds.push(world.name),
            None => rendered.push((picture, vec![world.name])),
        }
    }
    let rendered = rendered
        .iter()
        .map(|(picture, worlds)| format!("; for {}, `{picture}` is the rendered one", worlds.join(", ")));
    format!(
        "The picture that the agent sees{} [default: that of the weights or the configuration, or the world's own]",
        rendered.collect::<String>()
    )
}

/// The default presets of a world; those of a family depend on the observations of its worlds.
fn usual_presets(world: &WorldDescriptor) -> String {
    let presets = presets_of(world);
    if world.family.is_some() {
        let fitted: Vec<&str> =
            presets.iter().filter(|preset| preset.open).map(|preset| preset.name).collect();
        return format!("{} for {}, by its observations", fitted.join(" or "), world.name);
    }
    format!("{} for {}", presets.first().map_or("none", |preset| preset.name), world.name)
}

/// The help of `--preset`.
pub(crate) fn preset() -> String {
    let usual: Vec<String> = WORLDS.iter().map(usual_presets).collect();
    format!("Base configuration; other options override it [default: {}]", usual.join("; "))
}

/// The table of presets in the help of `foveate train`.
pub(crate) fn presets() -> String {
    let presets: Vec<_> = PRESETS.iter().map(|preset| (preset.name, preset.summary)).collect();
    wrap(&out::columns(presets.into_iter()), WIDTH)
}

/// The help of the argument with the weights.
pub(crate) fn weights() -> String {
    format!(
        "A weight file, the folder of a run (its best weights), the name of a champion or its world, `random` (`random:7` for \
         seed 7) for an untrained agent that fits the world, or {}, which has no weights; a file or run of that name comes \
         first [default: the bundled agent, which was trained in its world]",
        without_weights()
    )
}

/// The help of the arguments with the weights of several agents.
pub(crate) fn many_weights() -> String {
    format!(
        "Weight files, folders of runs (their best weights), champions by name, `random` or {} [default: the bundled agent, \
         which was trained in its world]",
        without_weights()
    )
}

/// Agents that have no weights.
fn without_weights() -> String {
    let names =
        AGENTS.iter().filter(|agent| agent.sees == Sees::Nothing).map(|agent| format!("`{}`", agent.name));
    names.collect::<Vec<_>>().join(" or ")
}

/// Variants that need a value from the user, and are therefore not among all variants.
fn incomplete_variants() -> String {
    let variants = WORLDS.iter().flat_map(|world| world.variants).filter_map(|variant| {
        let parameter = variant.parameters.iter().find(|parameter| parameter.default.is_empty())?;
        Some(format!("`{}`, which needs a value for `{}`", variant.name, parameter.name))
    });
    variants.collect::<Vec<_>>().join(", and ")
}

/// The help of `--each-variant`.
pub(crate) fn each_variant() -> String {
    let incomplete = incomplete_variants();
    format!("Evaluate the unmodified world and each of its variants in one table, except {incomplete}")
}

/// The help of `--shifts`.
pub(crate) fn shift_rows() -> String {
    let sets = SHIFT_SETS.names().join(", ");
    format!(
        "Shifts and sets of shifts ({sets}), separated by commas, as in `noise,blob:5:x=0.3,hue+blur`; all (every shift that \
         fits the world) or none"
    )
}

/// The help of `--variants`.
pub(crate) fn variants() -> String {
    let incomplete = incomplete_variants();
    format!("Variants of the world, separated by commas; all (except {incomplete}) or none")
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;
    use crate::Cli;

    /// The long help of `foveate NAME`, each paragraph on one line.
    fn help_of(name: &str) -> String {
        let mut command = Cli::command();
        let command = command.find_subcommand_mut(name).expect("a command").clone();
        Command::render_long_help(&mut command.term_width(10_000)).to_string()
    }

    #[test]
    fn help_has_every_name_that_a_registry_knows() {
        let train = help_of("train");
        for preset in PRESETS.iter() {
            assert!(train.contains(&format!("\n  {} ", preset.name)), "{} is not in\n{train}", preset.name);
        }
        for world in WORLDS.iter() {
            assert!(train.contains(&usual_presets(world)), "{train}");
        }
        assert!(train.contains("laptop-relu for car-racing; "), "{train}");
        assert!(train.contains("; for gym:ID, `render` is the rendered one"), "{train}");
        assert!(train.contains("mjcf:FILE, `pixels` is the rendered one"), "{train}");
        for name in ["eval", "watch", "explain", "heads", "lab", "stress"] {
            let help = help_of(name);
            assert!(help.contains("or car-racing]") && help.contains("and gym:ID is "), "{help}");
            assert!(help.contains("`random-actions`"), "{help}");
        }
        assert!(help_of("eval").contains("except `video`, which needs a value for `"));
        assert!(help_of("stress").contains("all (except `video`, which needs a value for `"));
    }

    /// The sources of the command's help, without tests.
    const SOURCES: [&str; 5] = [
        include_str!("commands/train.rs"),
        include_str!("commands/eval.rs"),
        include_str!("commands/stress.rs"),
        include_str!("weights_arg.rs"),
        include_str!("world_args.rs"),
    ];

    #[test]
    fn no_default_that_a_registry_knows_is_written_out() {
        for source in SOURCES {
            let source = source.split("#[cfg(test)]").next().unwrap_or_default();
            for line in source.lines().filter(|line| line.contains("[default: ")) {
                for name in PRESETS.names().into_iter().chain(WORLDS.names()).chain(AGENTS.names()) {
                    assert!(!line.contains(name), "{name}: take it from the registry in help.rs: {line}");
                }
            }
        }
    }
}
