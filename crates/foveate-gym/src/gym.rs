//! An environment that is known to work, and its idle workers.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foveate_core::EnvSpec;
use foveate_core::hint::Task;

use crate::error::GymError;
use crate::find::find_python;
use crate::hello::Hello;
use crate::process::{NoStart, Process, Trouble};
use crate::settings::Settings;

/// Callback for messages about replaced workers. A message may have several lines, with Python's traceback.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// Largest number of idle workers kept for the next world; further ones are closed.
const MAX_IDLE: usize = 256;

/// Number of different tracebacks remembered, so that none is shown twice.
const MAX_STORIES: usize = 16;

/// How often the first worker may end before it has made the environment.
const MAX_STARTS: usize = 5;

/// An environment that is known to work, with its worker processes. Copies of a world share it.
pub struct Gym {
    settings: Settings,
    python: PathBuf,
    hello: Hello,
    spec: EnvSpec,
    notice: Notice,
    /// Whether [`Gym::notice_once`] has sent its message.
    noticed: AtomicBool,
    idle: Mutex<Vec<Process>>,
    replaced: AtomicU64,
    /// Tracebacks already shown.
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
    /// Starts the first worker, which makes the environment.
    ///
    /// # Errors
    /// When there is no Python, a package is missing or too old, the environment does not exist, or it cannot
    /// be made.
    pub fn new(settings: Settings, notice: Notice) -> Result<Arc<Self>, GymError> {
        let python = if settings.hosted.is_some() { PathBuf::new() } else { find_python()?.path };
        let id = settings.name();
        let mut begun = Process::host(&python, &settings);
        for _ in 1..MAX_STARTS {
            // A worker that ended without a message may have been killed from outside.
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
                GymError::NoAnswer { id, why: format!("{trouble}; {} looks for the cause", Task::Doctor) }
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

    /// The worker's description of the environment.
    pub const fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Observation and action spaces of the world.
    pub const fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// The settings it was made with.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Number of workers replaced because they died, hung, raised an exception or used too much memory.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// Process groups of the idle workers, for tests that kill them.
    pub fn idle_workers(&self) -> Vec<u32> {
        self.lock().iter().filter_map(Process::id).collect()
    }

    /// Returns an idle worker, or starts a new one.
    pub(crate) fn take(&self) -> Result<Process, Trouble> {
        let idle = self.lock().pop();
        idle.map_or_else(|| self.start(), Ok)
    }

    /// Starts a new worker.
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

    /// Returns a worker to the idle ones.
    pub(crate) fn give_back(&self, mut process: Process) {
        if process.tell_time().is_err() {
            return;
        }
        let mut idle = self.lock();
        if idle.len() < MAX_IDLE {
            idle.push(process);
        }
    }

    /// Counts a replaced worker and reports it: each of the first few, later only when the count is a power
    /// of two. A traceback is shown once.
    pub(crate) fn tell(&self, what: &str, story: &str) {
        let before = self.replaced.fetch_add(1, Ordering::Relaxed);
        if before < 4 {
            let story = if self.is_new(story) { format!("\n{story}") } else { String::new() };
            (self.notice)(&format!("{}: {what}{story}", self.spec.id));
        } else if (before + 1).is_power_of_two() {
            (self.notice)(&format!("{}: {what}; {} workers were replaced so far", self.spec.id, before + 1));
        }
    }

    /// Reports a lasting condition, the first time only.
    pub(crate) fn notice_once(&self, what: &str) {
        if !self.noticed.swap(true, Ordering::Relaxed) {
            (self.notice)(&format!("{}: {what}", self.spec.id));
        }
    }

    /// Counts a worker that failed permanently. The caller reports the reason; the traceback is shown unless
    /// it was shown before.
    pub(crate) fn give_up(&self, story: &str) {
        self.replaced.fetch_add(1, Ordering::Relaxed);
        if self.is_new(story) {
            (self.notice)(&format!("{}:\n{story}", self.spec.id));
        }
    }

    /// Returns whether this traceback is new; remembers it.
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

/// Lets all workers close their environments at the same time.
impl Drop for Gym {
    fn drop(&mut self) {
        for process in self.lock().iter() {
            process.hang_up();
        }
    }
}
