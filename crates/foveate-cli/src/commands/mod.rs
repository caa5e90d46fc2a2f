//! One file per command.

mod bench;
mod check_env;
mod compare;
mod completions;
mod doctor;
mod eval;
mod explain;
mod export;
mod heads;
mod import;
mod lab;
mod list;
mod replay;
mod reproduce;
mod stress;
mod train;
mod watch;

use clap::Subcommand;

use crate::Clusters;
use crate::remedy::WorldAs;

/// What `foveate` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Train(train::Train),
    Compare(compare::Compare),
    Eval(eval::Eval),
    Stress(stress::Stress),
    Watch(watch::Watch),
    Explain(explain::Explain),
    Export(export::Export),
    Heads(heads::Heads),
    Replay(replay::Replay),
    Reproduce(reproduce::Reproduce),
    Import(import::Import),
    Lab(lab::Lab),
    List(list::List),
    Doctor(doctor::Doctor),
    CheckEnv(check_env::CheckEnv),
    Bench(bench::Bench),
    Completions(completions::Completions),
}

impl Command {
    /// How this command takes the name of a world.
    pub(crate) fn world_as(&self) -> WorldAs {
        match self {
            Command::Train(_) => WorldAs::Argument,
            _ => WorldAs::Flag,
        }
    }

    pub(crate) fn run(self, clusters: Option<&Clusters>) -> anyhow::Result<()> {
        match self {
            Command::Train(command) => command.run(clusters),
            Command::Compare(command) => command.run(),
            Command::Eval(command) => command.run(),
            Command::Stress(command) => command.run(),
            Command::Watch(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Export(command) => command.run(),
            Command::Heads(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Replay(command) => command.run(),
            Command::Reproduce(command) => command.run(clusters),
            Command::Lab(command) => command.run(),
            Command::List(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::CheckEnv(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Completions(command) => command.run(),
        }
    }
}
