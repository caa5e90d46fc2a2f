//! `foveate compare`

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use foveate_run::{atomic, compare, suggest};

use crate::out;

/// Put the learning curves of several runs beside one another
#[derive(Debug, Args)]
#[command(after_help = "\
Runs whose names differ in a number at the end are seeds of one recipe: relu-1, relu-2 and relu-3
become one line with three thin ones behind it. Runs may still be learning.

Examples:
  foveate compare runs/*
  foveate compare runs/softmax-* runs/relu-* --out kernels.svg --title \"Kernels of voting\"
  foveate compare runs/a runs/b --json")]
pub(crate) struct Compare {
    /// Folders of runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The picture
    #[arg(long, value_name = "FILE", default_value = "compare.svg")]
    out: PathBuf,
    /// What stands above it
    #[arg(long, default_value = "Learning curves")]
    title: String,
    /// Print the curves as one JSON object, and make no picture
    #[arg(long, conflicts_with_all = ["out", "title"])]
    json: bool,
}

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.runs.iter().try_for_each(|run| suggest::missing_run(run))?;
        let all = compare::read(&self.runs)?;
        if self.json {
            let value = serde_json::to_value(&all).map_err(|error| anyhow!("{error}"))?;
            return Ok(out::say_json(&value)?);
        }
        atomic::write(&self.out, all.to_svg(&self.title).as_bytes())?;
        Ok(out::say(&format!("{}\n{}", all.to_markdown(), self.out.display()))?)
    }
}
