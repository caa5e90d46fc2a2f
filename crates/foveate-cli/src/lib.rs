//! The `foveate` command: a thin command-line interface to `foveate-run`.
//!
//! Each command has its file in `commands`: its flags, its help, and the output of its result. An error is
//! one line on stderr that ends with what to do next; the exit code is then 1, or 2 when the command line
//! itself is invalid.

mod commands;
#[cfg(test)]
mod documents_tests;
mod help;
#[cfg(test)]
mod jobs_tests;
mod out;
mod progress;
mod remedy;
mod weights_arg;

use std::ffi::OsString;
use std::io::{Write as _, stdout};

use clap::{Command, CommandFactory, FromArgMatches, Parser};
use foveate::run::RunError;
use foveate::run::cluster::Cluster;
use remedy::{WorldAs, with_flags};

/// Train, evaluate and explain reinforcement-learning agents with an attention bottleneck.
#[derive(Debug, Parser)]
#[command(name = "foveate", version = foveate::run::VERSION, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

const EXAMPLES: &str = "\
Start here:
  foveate watch                                         record the bundled agent: drive.mp4
  foveate train car-racing                              train an agent
  foveate watch runs/car-racing --out drive.mp4         record it with its attention
  foveate eval runs/car-racing                          evaluate it over many episodes
  foveate list                                          worlds, pictures, variants, agents
Every command has examples, as in `foveate train --help`.";

/// Runs the command with these arguments, the first of which is the program's name; `None` for those of the process. Returns
/// the exit code: 0, 1 for an error, 2 for an invalid command line.
///
/// `clusters` makes the cluster at an address, for a program that has an engine for it.
pub fn run(arguments: Option<Vec<OsString>>, clusters: Option<&Clusters>) -> u8 {
    foveate::registry::gymnasium::on_notice(|text| eprintln!("{}", with_flags(text, WorldAs::Flag)));
    let command = unfilled(Cli::command()).mut_subcommands(unfilled);
    let matches = match arguments {
        Some(arguments) => command.try_get_matches_from(arguments),
        None => command.try_get_matches(),
    };
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(told) => return tell(&told),
    };
    let world = cli.command.world_as();
    match cli.command.run(clusters) {
        Ok(()) => SUCCESS,
        // The reader of our output has closed it on purpose.
        Err(error) if out::is_broken_pipe(&error) => SUCCESS,
        Err(error) => {
            out::complain(&error, world);
            FAILURE
        }
    }
}

/// Makes the cluster at an address, or says in a sentence why not. The plain command has none: its engine is one of Python.
pub type Clusters = dyn Fn(&str) -> Result<Box<dyn Cluster>, String>;

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;

/// Prints help, or the error in the command line.
fn tell(told: &clap::Error) -> u8 {
    if !told.use_stderr() {
        let shown = told.print().and_then(|()| stdout().flush());
        let error = shown.map_err(|source| anyhow::Error::from(RunError::Output { source }));
        return match error {
            Err(error) if !out::is_broken_pipe(&error) => {
                eprintln!("error: {error}");
                FAILURE
            }
            _ => SUCCESS,
        };
    }
    let text = told.to_string();
    if text.lines().all(|line| out::one_line(line) == line) {
        // A terminal that cannot be written to cannot report an error either.
        let _ = told.print();
    } else {
        text.lines().for_each(|line| eprintln!("{}", out::one_line(line)));
    }
    u8::try_from(told.exit_code()).unwrap_or(2)
}

/// `command` with every paragraph of its long help on one line, which clap wraps to the terminal's width. In
/// the source they are wrapped for readability.
fn unfilled(command: Command) -> Command {
    let Some(help) = command.get_after_help().map(ToString::to_string) else { return command };
    command.after_help(unfill(&help))
}

/// Joins the lines of every paragraph. An indented line stays on its own.
fn unfill(text: &str) -> String {
    let mut joined = String::new();
    let mut apart = true;
    for line in text.lines() {
        let alone = line.is_empty() || line.starts_with(' ');
        if !joined.is_empty() {
            joined.push(if alone || apart { '\n' } else { ' ' });
        }
        joined.push_str(line);
        apart = alone || line.ends_with(':');
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        for (text, expect) in [
            ("one\ntwo", "one two"),
            ("one\ntwo\n\nthree", "one two\n\nthree"),
            ("Examples:\n  a\n  b\nmore\nwords", "Examples:\n  a\n  b\nmore words"),
            ("first:\nsecond", "first:\nsecond"),
        ] {
            assert_eq!(unfill(text), expect);
        }
    }

    #[test]
    fn flags_do_not_clash() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_every_flag_is_explained() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no help");
            assert!(command.get_after_help().is_some(), "{name} has no examples");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{name}: {} has no help", argument.get_id());
            }
        }
    }

    #[test]
    fn help_fits_a_hundred_columns() {
        // Text that is wrapped by hand must not be wrapped again.
        let mut long = String::new();
        for command in Cli::command().get_subcommands() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.chars().count() > 100) {
                long += &format!("{} --help: {line}\n", command.get_name());
            }
        }
        assert!(long.is_empty(), "{long}");
    }
}
