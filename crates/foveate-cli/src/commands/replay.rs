//! `foveate replay`

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use foveate_run::RunError;
use foveate_run::atomic::AtomicFile;
use foveate_run::replay::{End, replay};
use foveate_run::worlds;

use crate::world_args::WorldArgs;

/// Play recorded actions again and write down what the world did
#[derive(Debug, Args)]
#[command(after_help = "\
Actions are one JSON array of numbers per line, for CarRacing [steer, gas, brake]; a world that takes choices
(--option continuous=false) reads one whole number per line.

The trace is one JSON object per line: t, reward, terminated, truncated, frame_sha256 (of the raw RGB bytes that the
agent sees) and state, in full precision. Line 0 is the reset, line t the step t. It ends with the actions or with the
episode, whichever comes first.

Examples:
  foveate replay --seed 7 --picture exact --actions drive.jsonl --out trace.jsonl
  yes '[0, 0.5, 0]' | foveate replay --seed 7 --actions - --out - | tail -1")]
pub(crate) struct Replay {
    #[command(flatten)]
    world: WorldArgs,
    /// The seed that the world is reset with
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The recorded actions; - for stdin
    #[arg(long, value_name = "FILE")]
    actions: PathBuf,
    /// Where the trace goes; - for stdout
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Replay {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut env = worlds::make(self.world.request(None))?;
        let mut actions = open(&self.actions)?;
        let name = self.actions.display().to_string();
        let played = if self.out == Path::new("-") {
            let mut trace = BufWriter::new(io::stdout().lock());
            let played = replay(&mut *env, self.seed, &name, &mut *actions, &mut trace)?;
            trace.flush().map_err(|source| RunError::Output { source })?;
            played
        } else {
            let mut trace = BufWriter::new(AtomicFile::create(&self.out)?);
            let played = replay(&mut *env, self.seed, &name, &mut *actions, &mut trace)?;
            let trace =
                trace.into_inner().map_err(|error| RunError::io("write", &self.out)(error.into_error()))?;
            trace.commit()?;
            played
        };
        let why = match played.end {
            End::Actions => "the actions ended",
            End::Terminated => "the episode ended",
            End::Truncated => "the time limit was reached",
        };
        eprintln!("{} steps, return {:.2}: {why}", played.steps, played.total);
        Ok(())
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, RunError> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(RunError::io("read", path))?;
    Ok(Box::new(BufReader::new(file)))
}
