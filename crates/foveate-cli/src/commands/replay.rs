//! `foveate replay`

use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use foveate::WorldSpec;
use foveate::run::RunError;
use foveate::run::atomic::AtomicFile;
use foveate::run::failure::Failure;
use foveate::run::replay::{End, recorded, replay};
use foveate::run::worlds;

/// Replay recorded actions and write a trace of the world
#[derive(Debug, Args)]
#[command(after_help = "\
Actions are one JSON array of numbers per line, for CarRacing [steer, gas, brake]; a world with
discrete actions (--option continuous=false) reads one integer per line.

The trace is one JSON object per line: t, reward, terminated, truncated, frame_sha256 (of the raw
bytes of the agent's picture) and state, in full precision. Line 0 is the reset, line t is step t.
It ends with the actions or with the episode, whichever comes first.

When a rollout fails, `foveate train` writes a file to the run's folder `failures`: --failure
repeats that rollout with its agent and says whether it fails again; --out then traces the world up
to the failure.

Examples:
  foveate replay --seed 7 --picture exact --actions drive.jsonl --out trace.jsonl
  yes '[0, 0.5, 0]' | foveate replay --seed 7 --actions - --out - | tail -1
  foveate replay --failure runs/car-racing/failures/generation-000012-genome-3-episode-0.json")]
pub(crate) struct Replay {
    /// The seed of the reset
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The recorded actions; - for stdin
    #[arg(long, value_name = "FILE", required_unless_present = "failure")]
    actions: Option<PathBuf>,
    /// Where the trace goes; - for stdout
    #[arg(long, value_name = "FILE", required_unless_present = "failure")]
    out: Option<PathBuf>,
    /// A rollout that failed in training, from the run's folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["actions", "seed", "variants", "shifts"])]
    failure: Option<PathBuf>,
    #[command(flatten)]
    world: WorldSpec,
}

impl Replay {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(path) = &self.failure {
            return failure(path, self.world, self.out.as_deref());
        }
        let (Some(actions), Some(out)) = (&self.actions, &self.out) else {
            anyhow::bail!(
                "actions and a place for the trace are missing; give --actions FILE and --out FILE"
            );
        };
        let mut env = worlds::make(self.world.request())?;
        let name = actions.display().to_string();
        let mut actions = open(actions)?;
        let played = written(out, |trace| replay(&mut *env, self.seed, &name, &mut *actions, trace))?;
        let why = match played.end {
            End::Actions => "the actions ended",
            End::Terminated => "the episode ended",
            End::Truncated => "the time limit was reached",
        };
        eprintln!("{} steps, return {:.2}: {why}", played.steps, played.total);
        Ok(())
    }
}

/// Repeats a failed rollout.
fn failure(path: &Path, world: WorldSpec, out: Option<&Path>) -> anyhow::Result<()> {
    let mut failure = Failure::read(path)?;
    failure.env.set_flags(world);
    if let Some(out) = out {
        written(out, |trace| failure.trace(trace))?;
    }
    let Failure { generation, genome, episode, env_seed, step, what, .. } = &failure;
    let then = format!(
        "generation {generation}, genome {genome}, episode {episode} (seed {env_seed}), step {step}: {what}"
    );
    match failure.again()? {
        Some(again) if failure.is(&again) => {
            eprintln!("it fails again: {then}");
            Ok(())
        }
        again => {
            let now = again.map_or_else(|| "it went well".into(), |again| again.to_string());
            anyhow::bail!(
                "it does not fail as it did ({then}): now {now}; was it another version of the program ({})?",
                failure.version
            )
        }
    }
}

/// Lets `write` write to `out` atomically.
fn written<T>(out: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T, RunError>) -> Result<T, RunError> {
    if out == Path::new("-") {
        let mut trace = BufWriter::new(io::stdout().lock());
        let done = write(&mut trace)?;
        trace.flush().map_err(|source| RunError::Output { source })?;
        return Ok(done);
    }
    let mut trace = BufWriter::new(AtomicFile::create(out)?);
    let done = write(&mut trace)?;
    let trace = trace.into_inner().map_err(|error| RunError::io("write", out)(error.into_error()))?;
    trace.commit()?;
    Ok(done)
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, RunError> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(recorded(path)?))
}
