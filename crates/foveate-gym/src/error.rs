//! Errors that can occur before an environment runs.

use std::io;
use std::path::PathBuf;

/// Why an environment cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GymError {
    /// No Python interpreter was found.
    #[error("{why}; install Python 3.8 or newer, or name one as in FOVEATE_PYTHON=/path/to/python3")]
    NoPython {
        /// Where the search looked.
        why: String,
    },
    /// Python does not start.
    #[error("{} does not start: {source}; name another Python as in FOVEATE_PYTHON=/path/to/python3", python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The socket or the memory files shared by the two processes cannot be created.
    #[error(
        "cannot connect a worker process: {source}; close some programs or raise the limit of open files"
    )]
    Connect {
        /// The system's error.
        source: io::Error,
    },
    /// The worker cannot make the environment.
    #[error("{id}: {why}")]
    Refused {
        /// The environment, as `--env` takes it.
        id: String,
        /// The reason, on one line, with what to do.
        why: String,
        /// Python's traceback, if there is one.
        story: String,
    },
    /// The worker ended, or sent nothing, before the environment existed.
    #[error("{id}: {why}")]
    NoAnswer {
        /// The environment, as `--env` takes it.
        id: String,
        /// What happened, and the last of what Python printed.
        why: String,
    },
    /// An option has an invalid value.
    #[error("{id}: {why}")]
    Setting {
        /// The environment, as `--env` takes it.
        id: String,
        /// What is wrong with the option.
        why: String,
    },
}
