//! `foveate compare`

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use foveate::run::compare::Over;
use foveate::run::{atomic, compare, suggest};

use crate::out;

/// Compare the learning curves of several runs
#[derive(Debug, Args)]
#[command(after_help = "\
Runs with the same configuration form a group, whatever their names: one line with a thin one for
each run behind it. Runs whose configurations differ in anything but seed, workers and videos are
never pooled; the picture, the table and the JSON say which keys differ. Runs may still be training.

Examples:
  foveate compare runs/*
  foveate compare runs/softmax-* runs/relu-* --out kernels.svg --title \"Kernels of voting\"
  foveate compare runs/softmax-* runs/relu-* --over cpu-seconds
  foveate compare runs/a runs/b --json")]
pub(crate) struct Compare {
    /// Folders of runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The picture
    #[arg(long, value_name = "FILE", default_value = "compare.svg")]
    out: PathBuf,
    /// Its title
    #[arg(long, default_value = "Learning curves")]
    title: String,
    /// What the curves are drawn over; CPU seconds are those of all threads, validations included
    #[arg(long, value_enum, default_value_t)]
    over: Axis,
    /// Print the curves as one JSON object and draw no picture
    #[arg(long, conflicts_with_all = ["out", "title", "over"])]
    json: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Axis {
    #[default]
    Steps,
    CpuSeconds,
}

impl From<Axis> for Over {
    fn from(axis: Axis) -> Self {
        match axis {
            Axis::Steps => Over::Steps,
            Axis::CpuSeconds => Over::CpuSeconds,
        }
    }
}

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.runs.iter().try_for_each(|run| suggest::missing_run(run))?;
        let all = compare::read(&self.runs)?;
        if self.json {
            let value = serde_json::to_value(&all).map_err(|error| anyhow!("{error}"))?;
            return Ok(out::say_json(&value)?);
        }
        atomic::write(&self.out, all.to_svg(&self.title, self.over.into()).as_bytes())?;
        Ok(out::say(&format!("{}\n{}", all.to_markdown(), self.out.display()))?)
    }
}
