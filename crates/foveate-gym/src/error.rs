//! What can go wrong before there is a world.

use std::io;
use std::path::PathBuf;

/// Why an environment cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GymError {
    /// There is no Python where one was looked for.
    #[error("{why}; install Python 3.8 or newer, or name one as in FOVEATE_PYTHON=/path/to/python3")]
    NoPython {
        /// Where it was looked for.
        why: String,
    },
    /// Python does not start.
    #[error("{} does not start: {source}; name another Python as in FOVEATE_PYTHON=/path/to/python3", python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What two processes need between them cannot be had.
    #[error(
        "cannot connect a worker process: {source}; close some programs or raise the limit of open files"
    )]
    Connect {
        /// What the system said.
        source: io::Error,
    },
    /// The worker cannot make the environment, and says why.
    #[error("{id}: {why}")]
    Refused {
        /// The environment, as `--env` takes it.
        id: String,
        /// Why, on one line, with what to do.
        why: String,
        /// Python's traceback, if there is one.
        story: String,
    },
    /// The worker ended or said nothing before there was an environment.
    #[error("{id}: {why}")]
    NoAnswer {
        /// The environment, as `--env` takes it.
        id: String,
        /// What happened, and the last of what Python printed.
        why: String,
    },
    /// An option that makes no sense.
    #[error("{id}: {why}")]
    Setting {
        /// The environment, as `--env` takes it.
        id: String,
        /// What is wrong with it.
        why: String,
    },
}
