//! One file per command.

mod bench;
mod completions;
mod list;
mod replay;

use clap::Subcommand;

/// What `foveate` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Replay(replay::Replay),
    List(list::List),
    Bench(bench::Bench),
    Completions(completions::Completions),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Replay(command) => command.run(),
            Command::List(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Completions(command) => command.run(),
        }
    }
}
