//! Help texts with names from the registries, so that a new world, agent or preset is in the help at once.

use foveate::agents::Sees;
use foveate::run::ticker::wrap;
use foveate::{AGENTS, PRESETS};

use crate::out;

/// Columns of help that is wrapped by hand.
const WIDTH: usize = 100;

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
         first [default: the bundled agent, which was trained in its world]. eval, explain and watch also take an ONNX model, \
         FILE.onnx, with --env",
        without_weights()
    )
}

/// The help of the arguments with the weights of several agents.
pub(crate) fn many_weights() -> String {
    format!(
        "Weight files, ONNX models with --env, folders of runs (their best weights), champions by name, `random` or {} \
         [default: the bundled agent, which was trained in its world]",
        without_weights()
    )
}

/// Agents that have no weights.
fn without_weights() -> String {
    let names =
        AGENTS.iter().filter(|agent| agent.sees == Sees::Nothing).map(|agent| format!("`{}`", agent.name));
    names.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};
    use clap_complete::{Shell, generate};
    use foveate::WORLDS;
    use foveate::run::command::{Known, usual_presets};

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
    const SOURCES: [&str; 7] = [
        include_str!("commands/train.rs"),
        include_str!("commands/eval.rs"),
        include_str!("commands/stress.rs"),
        include_str!("weights_arg.rs"),
        include_str!("../../foveate/src/jobs/train.rs"),
        include_str!("../../foveate/src/jobs/stress.rs"),
        include_str!("../../foveate-run/src/trust.rs"),
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

    #[test]
    fn completions_offer_every_name_and_help_does_not_list_them() {
        let mut text = vec![];
        generate(Shell::Bash, &mut Cli::command(), "foveate", &mut text);
        let text = String::from_utf8(text).expect("UTF-8");
        for known in [Known::WORLD, Known::PICTURE, Known::VARIANT, Known::SHIFT, Known::PRESET] {
            let names = known.names();
            assert!(names.len() > 1);
            for name in names {
                assert!(text.split_whitespace().any(|word| word.trim_matches(['"', '\'']) == name), "{name}");
            }
        }
        for command in Cli::command().get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(!help.contains("possible values: bar"), "{help}");
        }
    }
}
