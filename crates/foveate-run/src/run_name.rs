//! The name of a run in messages.

use std::path::PathBuf;

use foveate_core::hint::{Hint, Setting, Task};

/// A run, as the next job must name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    /// Its folder.
    pub folder: PathBuf,
    /// True if its world runs code, which the next job must be trusted to run; see [`crate::trust`].
    pub runs_code: bool,
}

impl RunName {
    /// The task that resumes it.
    pub fn resume(&self) -> Hint {
        self.trusted(Task::Resume.of(self.folder.display()))
    }

    /// `task`, with the setting that the world of this run needs.
    pub fn trusted(&self, task: Hint) -> Hint {
        if self.runs_code { task.with(Setting::TrustWorld) } else { task }
    }
}
