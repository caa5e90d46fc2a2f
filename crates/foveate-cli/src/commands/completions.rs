//! `foveate completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Cli, out};

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foveate completions bash > ~/.local/share/bash-completion/completions/foveate
  foveate completions zsh > \"${fpath[1]}/_foveate\"
  foveate completions fish > ~/.config/fish/completions/foveate.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut text = vec![];
        clap_complete::generate(self.shell, &mut Cli::command(), "foveate", &mut text);
        Ok(out::say(String::from_utf8_lossy(&text).trim_end())?)
    }
}
