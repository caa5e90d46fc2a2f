//! An environment that was found to work, and its idle workers.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foveate_core::EnvSpec;

use crate::error::GymError;
use crate::find::find_python;
use crate::hello::Hello;
use crate::process::{NoStart, Process, Trouble};
use crate::settings::Settings;

/// Whoever is told when a worker had to be replaced; may be several lines, with Python's traceback.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// Workers that wait for the next world; more are sent home.
const MAX_IDLE: usize = 256;

/// How many different tracebacks are remembered, so that none is shown twice.
const MAX_STORIES: usize = 16;

/// How often the first worker may end before it has made the environment.
const MAX_STARTS: usize = 5;

/// An environment that was found to work, with its worker processes. Copies of a world share it.
pub struct Gym {
    settings: Settings,
    python: PathBuf,
    hello: Hello,
    spec: EnvSpec,
    notice: Notice,
    /// Whether [`Gym::notice_once`] has spoken.
    noticed: AtomicBool,
    idle: Mutex<Vec<Process>>,
    replaced: AtomicU64,
    /// Tracebacks that were shown.
    stories: Mutex<Vec<String>>,
}

impl fmt::Debug for Gym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gym")
            .field("settings", &self.settings)
            .field("python", &self.python)
            .finish_non_exhaustive()
    }
}

impl Gym {
    /// Starts a first worker and lets it make the environment.
    ///
    /// # Errors
    /// When there is no Python, a package is missing or too old, there is no such environment, or it cannot be made.
    pub fn new(settings: Settings, notice: Notice) -> Result<Arc<Self>, GymError> {
        let python = find_python()?.path;
        let id = settings.name();
        let mut begun = Process::host(&python, &settings);
        for _ in 1..MAX_STARTS {
            // One that ended without having said anything may have been ended by someone else.
            if !matches!(&begun, Err(NoStart::Trouble(Trouble::Gone(_)))) {
                break;
            }
            begun = Process::host(&python, &settings);
        }
        let (process, hello) = begun.map_err(|error| match error {
            NoStart::Error(error) => error,
            NoStart::Trouble(trouble) => {
                if !trouble.story().is_empty() {
                    notice(trouble.story());
                }
                GymError::NoAnswer { id, why: format!("{trouble}; `foveate doctor` looks for the cause") }
            }
        })?;
        let spec = hello.spec(&settings.name());
        let idle = Mutex::new(vec![process]);
        Ok(Arc::new(Gym {
            settings,
            python,
            hello,
            spec,
            notice,
            noticed: AtomicBool::new(false),
            idle,
            replaced: AtomicU64::new(0),
            stories: Mutex::default(),
        }))
    }

    /// What the environment is, in the worker's words.
    pub const fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The shape of the world.
    pub const fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// What was asked for.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many workers were replaced because they died, hung, raised or grew too large.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// Process groups of the workers that wait, for tests that end them.
    pub fn idle_workers(&self) -> Vec<u32> {
        self.lock().iter().map(Process::id).collect()
    }

    /// A worker: one that waits, or a new one.
    pub(crate) fn take(&self) -> Result<Process, Trouble> {
        let idle = self.lock().pop();
        idle.map_or_else(|| self.start(), Ok)
    }

    /// A new worker.
    pub(crate) fn start(&self) -> Result<Process, Trouble> {
        match Process::host(&self.python, &self.settings) {
            Ok((process, hello)) if hello == self.hello => Ok(process),
            Ok(_) => Err(Trouble::Astray(
                "a new worker's environment has other spaces than the first; do its arguments depend on chance?"
                    .into(),
            )),
            Err(NoStart::Error(error)) => Err(Trouble::NoProcess(error.to_string())),
            Err(NoStart::Trouble(trouble)) => Err(trouble),
        }
    }

    /// Takes a worker back.
    pub(crate) fn give_back(&self, mut process: Process) {
        if process.tell_time().is_err() {
            return;
        }
        let mut idle = self.lock();
        if idle.len() < MAX_IDLE {
            idle.push(process);
        }
    }

    /// Counts a worker that had to be replaced, and tells: all of the first few, then fewer and fewer; a traceback once.
    pub(crate) fn tell(&self, what: &str, story: &str) {
        let before = self.replaced.fetch_add(1, Ordering::Relaxed);
        if before < 4 {
            let story = if self.is_new(story) { format!("\n{story}") } else { String::new() };
            (self.notice)(&format!("{}: {what}{story}", self.spec.id));
        } else if (before + 1).is_power_of_two() {
            (self.notice)(&format!("{}: {what}; {} workers were replaced so far", self.spec.id, before + 1));
        }
    }

    /// Tells something that stays as it is, the first time.
    pub(crate) fn notice_once(&self, what: &str) {
        if !self.noticed.swap(true, Ordering::Relaxed) {
            (self.notice)(&format!("{}: {what}", self.spec.id));
        }
    }

    /// Counts a worker that failed for good; who asked is told why. A traceback is shown unless it was shown before.
    pub(crate) fn give_up(&self, story: &str) {
        self.replaced.fetch_add(1, Ordering::Relaxed);
        if self.is_new(story) {
            (self.notice)(&format!("{}:\n{story}", self.spec.id));
        }
    }

    /// Whether it is a traceback that was not shown before; remembers it.
    fn is_new(&self, story: &str) -> bool {
        let mut stories = self.stories.lock().unwrap_or_else(PoisonError::into_inner);
        if story.is_empty() || stories.iter().any(|shown| shown == story) {
            return false;
        }
        if stories.len() < MAX_STORIES {
            stories.push(story.to_owned());
        }
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All workers close their environments at the same time.
impl Drop for Gym {
    fn drop(&mut self) {
        for process in self.lock().iter() {
            process.hang_up();
        }
    }
}
