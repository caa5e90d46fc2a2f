//! Errors outside of worlds and agents.
//!
//! Every message is one complete line: what happened, where, with which numbers, and after the semicolon what
//! to do next. A source's message is already part of its wrapper's message, so print only the outermost
//! error.

use std::io;
use std::path::{Path, PathBuf};

use foveate_core::hint::{Hint, Setting, Task};
use foveate_core::{EnvError, EvaluateError, LearnError, PolicyError, Purpose};
use foveate_train::TrainError;

use foveate_registry::WorldError;

use crate::npz::error::NpzError;
use crate::run_name::RunName;
use crate::tensors::TensorsError;
use foveate_agents::stored_agent::WeightsError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {}; {}", path.display(), what(source, doing), remedy(source, doing))]
    Io {
        /// What was being done, as a verb: `read`, `write`, `create`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A broken or unsupported npz file.
    #[error("{}: {source}", path.display())]
    Npz {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        source: NpzError,
    },
    /// A request that cannot be fulfilled.
    #[error("{why}")]
    BadRequest {
        /// What is wrong and what to do instead.
        why: String,
    },
    /// A run folder that is broken, or not a run folder of this program.
    #[error("{}: {why}", folder.display())]
    BadRun {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// A file requests a world that may run code, and whoever asked for the job has not accepted it; see
    /// [`crate::trust`].
    #[error(
        "{file} asks for the world {what}, which is {code} that would run with your rights; if you trust it, {}",
        how_to_trust(missing.as_ref())
    )]
    Untrusted {
        /// The file.
        file: Box<str>,
        /// The world, with the options that choose code.
        what: Box<str>,
        /// What would run: `Python code`.
        code: &'static str,
        /// The settings that name it; `None` if they cannot be named in this job, or not readably.
        missing: Option<Hint>,
    },
    /// A run that failed, and can be resumed once the reason is fixed.
    #[error("{source}, then go on with {}", run.resume())]
    Halted {
        /// The run.
        run: RunName,
        /// Why it failed.
        source: Box<RunError>,
    },
    /// A rollout of a run failed.
    #[error(
        "{}generation {generation}: {source}; see it again with {}, and once its cause is gone go on with {}",
        when(*purpose), run.trusted(Task::Replay.of(file.display())), run.resume()
    )]
    Failed {
        /// The purpose of the rollout.
        purpose: Purpose,
        /// The current generation, or the one after which weights were tested.
        generation: u64,
        /// What happened, to which genome, in which episode and step.
        source: Box<EvaluateError>,
        /// The replay.
        file: PathBuf,
        /// The run.
        run: RunName,
    },
    /// A broken or unsupported SafeTensors file.
    #[error("{}: {source}", path.display())]
    Tensors {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        source: TensorsError,
    },
    /// A weight file that is broken, or holds no agent of this program.
    #[error("{}: {source}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        source: WeightsError,
    },
    /// Published weights that do not belong to the agent.
    #[error("{}: {why}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// A line of recorded actions that cannot be replayed.
    #[error("{name} line {line}: {why}; write one action of this world per line")]
    Actions {
        /// The file.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The reader of the output has closed it, or it cannot be written.
    #[error("cannot write the output: {source}; {}", remedy(source, "write"))]
    Output {
        /// The system's error.
        source: io::Error,
    },
    /// A broken picture, or an unusable folder of pictures.
    #[error("{}: {why}", path.display())]
    Picture {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// A file of a data set that cannot be used.
    #[error("{}: {why}", path.display())]
    DataFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// An invalid configuration.
    #[error("{from}: {why}")]
    Config {
        /// The file or option.
        from: String,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// A picture or video could not be made.
    #[error("{}: {source}", path.display())]
    Film {
        /// The file to be written.
        path: PathBuf,
        /// Why not.
        source: foveate_film::FilmError,
    },
    /// A resource of a world failed.
    #[error("{source}")]
    World {
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A Gymnasium environment cannot be used.
    #[error(transparent)]
    Gym(#[from] foveate_gym::GymError),
    /// An error of a world.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// An error of an agent.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An error of a recipe or a learner.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// An error of a learner.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// A rollout failed.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// An episode failed whose weights are not a genome of a population.
    #[error("{}", source.about(weights))]
    Episode {
        /// Where the weights came from.
        weights: String,
        /// What happened, in which episode and step.
        source: Box<EvaluateError>,
    },
}

impl From<WorldError> for RunError {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::Env(error) => error.into(),
            WorldError::Source(error) => match error.downcast() {
                Ok(error) => RunError::Gym(*error),
                Err(error) => RunError::World { source: error },
            },
            other => RunError::World { source: Box::new(other) },
        }
    }
}

impl RunError {
    /// For `map_err`: adds whose rollout failed. A stop request is passed through.
    pub fn of_weights(weights: &str) -> impl Fn(RunError) -> RunError + use<'_> {
        let weights = if weights.is_empty() { "the weights" } else { weights };
        move |error| match error {
            RunError::Evaluate(EvaluateError::Stopped) => error,
            RunError::Evaluate(source) => {
                RunError::Episode { weights: weights.to_owned(), source: Box::new(source) }
            }
            other => other,
        }
    }

    /// For `map_err`: adds what was being done (a verb) and the path.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunError + use<> {
        let path = path.to_path_buf();
        move |source| RunError::Io { doing, path, source }
    }
}

/// The settings that accept a world of a file.
fn how_to_trust(missing: Option<&Hint>) -> String {
    let trust = Setting::TrustWorld;
    match missing {
        Some(missing) => format!("add {missing} yourself, or {trust} to take it as it stands"),
        None => format!("add {trust} to take it as it stands"),
    }
}

/// The words before a generation's number in a message.
fn when(purpose: Purpose) -> String {
    if purpose.trains() { String::new() } else { format!("{} after ", purpose.label()) }
}

/// What is wrong with a path at which nothing is.
pub(crate) const NOTHING: &str = "there is no such file or folder";

/// An I/O error in words; a missing file is the same words everywhere.
fn what(source: &io::Error, doing: &str) -> String {
    match (source.kind(), doing) {
        (io::ErrorKind::NotFound, "read") => NOTHING.to_owned(),
        _ => source.to_string(),
    }
}

/// What a user can do about an I/O error.
fn remedy(source: &io::Error, doing: &str) -> &'static str {
    use io::ErrorKind as Kind;
    match (source.kind(), doing) {
        (Kind::NotFound, "read") => "check the path",
        (Kind::NotFound, _) => "create the folder first or choose another path",
        (Kind::PermissionDenied | Kind::ReadOnlyFilesystem, "read") => "make it readable for you",
        (Kind::PermissionDenied | Kind::ReadOnlyFilesystem, _) => "choose a folder that you may write to",
        (Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge, _) => {
            "free some space or choose another disk"
        }
        // From `input`: no regular file.
        (Kind::InvalidInput, "read") => "name a regular file",
        (Kind::IsADirectory, _) => "this is a folder: name a file in it",
        (Kind::NotADirectory, _) => "part of the path is a file: choose another path",
        (Kind::AlreadyExists, _) => "choose another name or move the old one away",
        (Kind::InvalidFilename, _) => "choose a shorter or simpler name",
        _ => "check the path and the disk, then try again",
    }
}
