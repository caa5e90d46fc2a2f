//! One worker process, and the messages exchanged with it.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::GymError;
use crate::hello::Hello;
use crate::hosted::HostedHandle;
use crate::settings::Settings;
use crate::sweep;

/// Version of the socket protocol; the worker has the same number.
pub(crate) const PROTOCOL: u32 = 1;
const BOOT: &str = include_str!("worker/boot.py");
/// The program of a worker.
const WORKER: &str = concat!(
    include_str!("worker/keeper.py"),
    include_str!("worker/layout.py"),
    include_str!("worker/worker.py")
);
/// Longest answer accepted: a rendered picture of 4096 × 4096 pixels.
const MAX_ANSWER: usize = 64 << 20;
/// Largest observation, in bytes.
pub(crate) const MAX_OBSERVATION: usize = 256 << 20;
/// How many bytes of the worker's output are kept for error messages.
const LOG_TAIL: u64 = 16 << 10;
/// Environment variables of a worker, unless the user has set them: one thread each, since there is a worker
/// for every core; no window, no sound; and a repeatable iteration order of sets.
const SURROUNDINGS: [(&str, &str); 10] = [
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("LP_NUM_THREADS", "1"),
    ("SDL_VIDEODRIVER", "dummy"),
    ("SDL_AUDIODRIVER", "dummy"),
    ("ALSOFT_DRIVERS", "null"),
    ("PYGAME_HIDE_SUPPORT_PROMPT", "1"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONUNBUFFERED", "1"),
];

/// CPU time reported by workers, in nanoseconds.
static WORKER_CPU: AtomicU64 = AtomicU64::new(0);

/// CPU time that the workers of all environments have reported. A worker reports at the start of each
/// episode, and once more when its world is dropped.
pub fn worker_cpu() -> Duration {
    Duration::from_nanos(WORKER_CPU.load(Ordering::Relaxed))
}

/// Number of live workers.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How often the thread polls for an answer before it sleeps: some tens of microseconds. The worker polls for
/// the next request in the same way (`Host.serve` of worker.py).
const LOOKS: u32 = 100;
/// After this many failed polls in a row, only one wait in [`AGAIN`] polls.
const PATIENCE: u32 = 2;
const AGAIN: u32 = 256;

/// Decides whether to poll for an answer before sleeping: waking a sleeping core costs more than a short wait
/// does.
#[derive(Debug, Default, Clone, Copy)]
struct Spin {
    /// Failed polls in a row.
    vain: u32,
    /// Waits without polling since the last poll.
    slept: u32,
}

impl Spin {
    /// Returns whether to poll this time.
    fn worth(&mut self) -> bool {
        if self.vain < PATIENCE {
            return true;
        }
        self.slept += 1;
        if self.slept < AGAIN {
            return false;
        }
        self.slept = 0;
        true
    }

    fn learn(&mut self, came: bool) {
        self.vain = if came { 0 } else { (self.vain + 1).min(PATIENCE) };
    }
}

/// Returns whether both sides of every worker can have a core of their own; otherwise polling takes time from other
/// processes.
fn cores_to_spare() -> bool {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    enough(*CORES, LIVE.load(Ordering::Relaxed))
}

const fn enough(cores: usize, workers: usize) -> bool {
    workers <= cores / 2
}

/// A worker process.
pub(crate) struct Process {
    control: UnixStream,
    spin: Spin,
    memory: File,
    /// The end of the worker's output, which its keeper writes.
    log: File,
    /// `None` for a thread of this process.
    keeper: Option<Keeper>,
    timeout: Cell<Duration>,
    /// The worker did not answer in time, so it would not close its environment either.
    hung: Cell<bool>,
    /// The worker uses more memory than it should.
    pub(crate) heavy: bool,
    resets: u64,
    cpu_seconds: f64,
}

/// The process that keeps a worker.
struct Keeper {
    child: Child,
    /// The worker's folder for temporary files.
    folder: PathBuf,
}

/// The time limit of a step holds for each of several steps in one request, but a hung worker is found after so many at most.
const MOST_WAITS: u32 = 4;

/// The answer to a request for steps: how many were made, the sum of their rewards, and how the last one ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepReply {
    pub(crate) steps: u16,
    pub(crate) reward: f64,
    pub(crate) terminated: bool,
    pub(crate) truncated: bool,
}

/// Why a worker cannot be used any more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trouble {
    /// The process ended, after printing this.
    Gone(String),
    /// No answer within this time.
    Hung(Duration),
    /// The environment raised an exception: Python's traceback.
    Raised(String),
    /// A replay differed from the original, or an answer is invalid.
    Astray(String),
    /// There is no process, for this reason.
    NoProcess(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Gone(log) if log.trim().is_empty() => {
                f.write_str("its worker process ended without a word")
            }
            Trouble::Gone(log) => write!(f, "its worker process ended: {}", last_line(log)),
            Trouble::Hung(time) => write!(f, "its worker did not answer for {} s", time.as_secs()),
            Trouble::Raised(story) => write!(f, "it raised {}", last_line(story)),
            Trouble::Astray(what) | Trouble::NoProcess(what) => f.write_str(what),
        }
    }
}

impl Trouble {
    /// Python's full output, on several lines.
    pub(crate) fn story(&self) -> &str {
        match self {
            Trouble::Gone(text) | Trouble::Raised(text) => text.trim_end(),
            _ => "",
        }
    }
}

pub(crate) fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default().trim()
}

/// Creates the file for observations or for output: memory with a descriptor and no name.
fn nameless(name: &str) -> io::Result<File> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
        Ok(File::from(fd))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        // Falls back to a file that is unlinked at once.
        for attempt in 0..100 {
            let path = std::env::temp_dir().join(format!("{name}-{}-{attempt}", std::process::id()));
            match File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    std::fs::remove_file(&path)?;
                    return Ok(file);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

/// The worker's answer to its job, or the reason why it refused.
pub(crate) fn granted<T: DeserializeOwned>(id: &str, answer: Value) -> Result<T, GymError> {
    let refused =
        |why: String, story: &str| GymError::Refused { id: id.to_owned(), why, story: story.to_owned() };
    if answer["fine"] != Value::Bool(true) {
        let text = |key: &str| answer[key].as_str().unwrap_or_default();
        let (mut why, story) = (text("why").to_owned(), text("story"));
        if !story.is_empty() {
            why.push_str("; Python's traceback says where");
        }
        return Err(refused(why, story));
    }
    serde_json::from_value(answer)
        .map_err(|error| refused(format!("its worker's answer is broken: {error}"), ""))
}

/// Returns whether a program is Python, of any version.
fn is_python(program: &Path) -> bool {
    /// Waits of 20 ms until it must have answered.
    const PATIENCE: u32 = 500;
    let mut command = Command::new(program);
    command.args(["-c", "print(6*7)"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
    for _ in 0..PATIENCE {
        if ended(&mut child) {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    // It has ended, or writes more than a pipe holds, or does nothing.
    let _ = child.kill();
    let _ = child.wait();
    let mut answer = Vec::new();
    let read = child.stdout.take().map(|out| out.take(8).read_to_end(&mut answer));
    matches!(read, Some(Ok(_))) && answer.trim_ascii() == b"42"
}

/// Why a worker did not start.
pub(crate) enum NoStart {
    Error(GymError),
    Trouble(Trouble),
}

impl Process {
    /// Starts Python with the worker's program.
    fn spawn(python: &Path, surroundings: &[(&str, &str)]) -> Result<Self, GymError> {
        let connect = |source| GymError::Connect { source };
        let (control, theirs) = UnixStream::pair().map_err(connect)?;
        let memory = nameless("foveate-observation").map_err(connect)?;
        let log = nameless("foveate-log").map_err(connect)?;
        sweep::once();
        let folder = sweep::new_folder();
        let mut command = Command::new(python);
        command.args(["-c", BOOT]).process_group(0);
        command.stdin(OwnedFd::from(theirs));
        command.stdout(memory.try_clone().map_err(connect)?).stderr(log.try_clone().map_err(connect)?);
        for (name, value) in SURROUNDINGS {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command.envs(surroundings.iter().copied());
        // Python takes an empty entry as the current folder, which is rarely intended.
        if let Some(folders) = std::env::var_os("PYTHONPATH") {
            let named = std::env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty());
            match std::env::join_paths(named) {
                Ok(named) if !named.is_empty() => command.env("PYTHONPATH", named),
                _ => command.env_remove("PYTHONPATH"),
            };
        }
        // All processes that the worker starts inherit these variables and are identified by them.
        for name in ["TMPDIR", "TEMP", "TMP", sweep::MARK] {
            command.env(name, &folder);
        }
        let child =
            command.spawn().map_err(|source| GymError::Start { python: python.to_owned(), source })?;
        Ok(Process::with(control, memory, log, Some(Keeper { child, folder })))
    }

    fn with(control: UnixStream, memory: File, log: File, keeper: Option<Keeper>) -> Self {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Process {
            control,
            spin: Spin::default(),
            memory,
            log,
            keeper,
            timeout: Cell::new(Duration::ZERO),
            hung: Cell::new(false),
            heavy: false,
            resets: 0,
            cpu_seconds: 0.0,
        }
    }

    /// A thread of this process that `hosted` starts, and its first answer to `job`.
    fn in_this_process(
        hosted: &HostedHandle,
        job: &Value,
        timeout: Duration,
    ) -> Result<(Self, Value), NoStart> {
        let connect = |source| NoStart::Error(GymError::Connect { source });
        let (control, theirs) = UnixStream::pair().map_err(connect)?;
        let memory = nameless("foveate-observation").map_err(connect)?;
        let log = nameless("foveate-log").map_err(connect)?;
        let also = memory.try_clone().map_err(connect)?;
        let begun = hosted.host().serve(theirs.into_raw_fd(), also.into_raw_fd());
        begun.map_err(|why| NoStart::Trouble(Trouble::NoProcess(why)))?;
        let mut process = Process::with(control, memory, log, None);
        let answer = process.first_words(job, timeout).map_err(NoStart::Trouble)?;
        Ok((process, answer))
    }

    /// Starts a worker with these environment variables and sends it `job`; returns its first answer, an
    /// object.
    pub(crate) fn begin(
        python: &Path,
        job: &Value,
        surroundings: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<(Self, Value), NoStart> {
        let mut process = Process::spawn(python, surroundings).map_err(NoStart::Error)?;
        match process.first_words(job, timeout) {
            Ok(answer) => Ok((process, answer)),
            Err(Trouble::Gone(_)) if !is_python(python) => Err(NoStart::Error(GymError::NoPython {
                why: format!("{} is no Python: it does not answer what print(6*7) prints", python.display()),
            })),
            Err(trouble) => Err(NoStart::Trouble(trouble)),
        }
    }

    /// Starts a worker that hosts an environment.
    pub(crate) fn host(python: &Path, settings: &Settings) -> Result<(Self, Hello), NoStart> {
        let Settings {
            id,
            args,
            timeout: _,
            start_timeout,
            memory,
            image,
            drawn,
            wrapper,
            path,
            whole,
            exact_actions,
            program,
            hosted,
        } = settings;
        let whole = *whole || hosted.is_some();
        // A thread uses no memory of its own.
        let memory = if hosted.is_some() { &(1 << 40) } else { memory };
        let job = json!({
            "protocol": PROTOCOL, "job": "host", "id": id, "args": args, "render": true, "image": image, "drawn": drawn,
            "wrapper": wrapper, "path": path, "exact_actions": exact_actions, "whole": whole, "megabytes": memory, "most_bytes": MAX_OBSERVATION,
            "more": program.map(|program| program.source),
        });
        let (process, answer) = match hosted {
            Some(hosted) => Process::in_this_process(hosted, &job, *start_timeout)?,
            None => Process::begin(python, &job, &[], *start_timeout)?,
        };
        let name = settings.name();
        let hello: Hello = granted(&name, answer).map_err(NoStart::Error)?;
        hello.check(&name).map_err(NoStart::Error)?;
        Ok((process, hello))
    }

    fn first_words(&mut self, job: &Value, timeout: Duration) -> Result<Value, Trouble> {
        self.wait_up_to(timeout)?;
        let job = job.to_string();
        let mut words = Vec::with_capacity(WORKER.len() + job.len() + 8);
        for text in [WORKER, &job] {
            words.extend_from_slice(&(text.len() as u32).to_le_bytes());
            words.extend_from_slice(text.as_bytes());
        }
        self.say(&words)?;
        self.more_words(timeout)
    }

    /// Receives one JSON object about the worker's job; the last one is the answer.
    pub(crate) fn more_words(&mut self, timeout: Duration) -> Result<Value, Trouble> {
        self.wait_up_to(timeout)?;
        let mut length = [0; 4];
        self.receive(&mut length)?;
        let answer = self.hear_all(u32::from_le_bytes(length) as usize)?;
        serde_json::from_slice(&answer)
            .map_err(|error| Trouble::Astray(format!("its worker's answer is no JSON: {error}")))
    }

    /// Starts an episode.
    pub(crate) fn reset(&mut self, seed: u64, timeout: Duration) -> Result<(), Trouble> {
        self.wait_up_to(timeout)?;
        self.resets += 1;
        let mut request = [0; 16];
        request[0] = b'R';
        request[8..].copy_from_slice(&seed.to_le_bytes());
        let (_, _, seconds) = self.ask(&request)?;
        self.account(seconds);
        Ok(())
    }

    /// Advances up to `times` steps; `request` is what [`step_request`] made.
    pub(crate) fn step(
        &mut self,
        request: &[u8],
        times: u16,
        timeout: Duration,
    ) -> Result<StepReply, Trouble> {
        self.wait_up_to(timeout.saturating_mul(u32::from(times).min(MOST_WAITS)))?;
        let (flags, length, reward) = self.ask(request)?;
        // So few steps are made that their number fits where other answers have a length.
        let steps = u16::try_from(length).unwrap_or(0);
        if steps == 0 || steps > times {
            return Err(Trouble::Astray("its worker answered a step with something else".into()));
        }
        Ok(StepReply { steps, reward, terminated: flags & 1 != 0, truncated: flags & 2 != 0 })
    }

    /// Requests data: `I` for the info of the last step, `P` for a rendered picture.
    pub(crate) fn fetch(&mut self, what: u8, timeout: Duration) -> Result<Vec<u8>, Trouble> {
        self.wait_up_to(timeout)?;
        let (_, length, _) = self.ask(&plain_request(what))?;
        self.hear_all(length)
    }

    /// Requests the CPU time that the worker process has used, for [`worker_cpu`].
    pub(crate) fn tell_time(&mut self) -> Result<(), Trouble> {
        if self.keeper.is_none() {
            return Ok(());
        }
        self.wait_up_to(Duration::from_secs(5))?;
        let (_, _, seconds) = self.ask(&plain_request(b'T'))?;
        self.account(seconds);
        Ok(())
    }

    /// Adds the CPU time that the worker has used since the last report.
    fn account(&mut self, seconds: f64) {
        let new = (seconds - self.cpu_seconds).max(0.0);
        self.cpu_seconds = seconds;
        WORKER_CPU.fetch_add((new * 1e9) as u64, Ordering::Relaxed);
    }

    /// Reads `into.len()` bytes of the observation from byte `at` on.
    ///
    /// This is one copy, as reading from a mapping would be. A worker that shortens the file can do no harm.
    pub(crate) fn look(&self, at: usize, into: &mut [u8]) -> Result<(), Trouble> {
        self.memory
            .read_exact_at(into, at as u64)
            .map_err(|error| Trouble::Astray(format!("its observation cannot be read: {error}")))
    }

    /// Asks a model: writes what it sees, sends its state, and returns its answer.
    pub(crate) fn question(
        &mut self,
        seen: &[u8],
        state: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, Trouble> {
        self.wait_up_to(timeout)?;
        let written = self.memory.write_all_at(seen, 0);
        written.map_err(|error| Trouble::Astray(format!("its observation cannot be written: {error}")))?;
        let mut request = vec![0; 16];
        request[8..12].copy_from_slice(&(state.len() as u32).to_le_bytes());
        request.extend_from_slice(state);
        let (_, length, seconds) = self.ask(&request)?;
        self.account(seconds);
        self.hear_all(length)
    }

    /// Sends a request and receives the head of the answer: flags, number of bytes that follow, a number.
    fn ask(&mut self, request: &[u8]) -> Result<(u8, usize, f64), Trouble> {
        self.say(request)?;
        let mut head = [0; 16];
        let came = self.look_out(&mut head)?;
        self.receive(&mut head[came..])?;
        let [status, flags, _, _, length @ .., _, _, _, _, _, _, _, _] = head;
        let number = f64::from_le_bytes(*head.last_chunk().expect("16 bytes end with 8"));
        let length = u32::from_le_bytes(length) as usize;
        self.heavy |= flags & 4 != 0;
        if status == 0 {
            return Ok((flags, length, number));
        }
        let words = String::from_utf8_lossy(&self.hear_all(length)?).into_owned();
        Err(if status == 2 { Trouble::Astray(words) } else { Trouble::Raised(words) })
    }

    /// Returns whether the worker has begun at most one episode.
    pub(crate) const fn is_new(&self) -> bool {
        self.resets <= 1
    }

    fn wait_up_to(&self, timeout: Duration) -> Result<(), Trouble> {
        if self.timeout.get() == timeout {
            return Ok(());
        }
        let set = self
            .control
            .set_read_timeout(Some(timeout))
            .and_then(|()| self.control.set_write_timeout(Some(timeout)));
        set.map_err(|error| Trouble::NoProcess(format!("cannot set a time limit: {error}")))?;
        self.timeout.set(timeout);
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.control.write_all(bytes).map_err(|error| self.lost(&error))
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<(), Trouble> {
        self.control.read_exact(into).map_err(|error| self.lost(&error))
    }

    /// Polls for the beginning of an answer, if that pays; returns the number of bytes received.
    fn look_out(&mut self, into: &mut [u8]) -> Result<usize, Trouble> {
        if !cores_to_spare() || !self.spin.worth() {
            return Ok(0);
        }
        for _ in 0..LOOKS {
            match rustix::net::recv(&self.control, &mut *into, RecvFlags::DONTWAIT) {
                // The read that follows handles the end of the stream.
                Ok((_, 0)) => break,
                Ok((_, came)) => {
                    self.spin.learn(true);
                    return Ok(came);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(self.lost(&error.into())),
            }
        }
        self.spin.learn(false);
        Ok(0)
    }

    fn hear_all(&mut self, length: usize) -> Result<Vec<u8>, Trouble> {
        if length > MAX_ANSWER {
            return Err(Trouble::Astray(format!("its worker's answer is {length} bytes long")));
        }
        let mut bytes = vec![0; length];
        self.receive(&mut bytes)?;
        Ok(bytes)
    }

    fn lost(&self, error: &io::Error) -> Trouble {
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            self.hung.set(true);
            return Trouble::Hung(self.timeout.get());
        }
        Trouble::Gone(self.printed())
    }

    /// The end of the worker's output.
    pub(crate) fn printed(&self) -> String {
        let size = self.log.metadata().map_or(0, |data| data.len());
        let from = size.saturating_sub(LOG_TAIL);
        let mut bytes = vec![0; (size - from) as usize];
        if self.log.read_exact_at(&mut bytes, from).is_err() {
            return String::new();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The keeper's process id, which is also the group's; `None` of a thread.
    pub(crate) fn id(&self) -> Option<u32> {
        self.keeper.as_ref().map(|keeper| keeper.child.id())
    }
}

/// Milliseconds after which a keeper that does not end counts as hung: five seconds for the environment to
/// close itself, and the time to remove the worker's files on a busy machine.
const KEEPER_MS: u32 = 12_000;

impl Process {
    /// Lets the worker close its environment and end, without waiting for it.
    pub(crate) fn hang_up(&self) {
        if self.hung.get()
            && let Some(keeper) = self.id().and_then(|id| Pid::from_raw(id as i32))
        {
            // The environment would not close: the keeper ends the worker at once.
            let _ = kill_process(keeper, Signal::USR1);
        }
        let _ = self.control.shutdown(Shutdown::Both);
    }
}

/// Closes the connection, upon which the worker closes its environment and ends. Waits until all its
/// processes and files are gone.
impl Drop for Process {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        self.hang_up();
        // A thread ends by itself: nobody waits for it, since it may need the interpreter that the caller holds.
        let Some(Keeper { child, folder }) = &mut self.keeper else { return };
        for _ in 0..KEEPER_MS {
            match child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                _ => break,
            }
        }
        // Kills remaining processes of the group, and the keeper if it hangs; both are rare.
        if let Some(group) = Pid::from_raw(child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
        // Does nothing unless the keeper was killed.
        sweep::folder(folder);
    }
}

fn plain_request(what: u8) -> [u8; 16] {
    let mut request = [0; 16];
    request[0] = what;
    request
}

/// Writes the request for steps: `S`, whether the worker may poll for the next request before it sleeps (0
/// or 1), two bytes for how many steps, four of padding, and the numbers of the action.
pub(crate) fn step_request(into: &mut Vec<u8>, numbers: &[f64], times: u16) {
    into.clear();
    let [low, high] = times.to_le_bytes();
    into.extend_from_slice(&[b'S', u8::from(cores_to_spare()), low, high, 0, 0, 0, 0]);
    for number in numbers {
        into.extend_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of polls among `waits`, when every answer comes in time or none does.
    fn looked(spin: &mut Spin, waits: u32, in_time: bool) -> u32 {
        let mut looks = 0;
        for _ in 0..waits {
            if spin.worth() {
                looks += 1;
                spin.learn(in_time);
            }
        }
        looks
    }

    #[test]
    fn quick_worlds_are_looked_for_and_slow_ones_hardly_ever() {
        let mut spin = Spin::default();
        assert_eq!(looked(&mut spin, 1000, true), 1000);
        assert_eq!(looked(&mut spin, 2 + 10 * AGAIN, false), 2 + 10, "two in vain, then one in {AGAIN}");
        // One answer in time is enough to poll again.
        assert_eq!(looked(&mut spin, AGAIN, true), 1);
        assert_eq!(looked(&mut spin, 100, true), 100);
    }

    #[test]
    fn none_looks_where_it_would_take_the_time_from_another() {
        assert!(enough(2, 1) && enough(16, 8));
        assert!(!enough(1, 1) && !enough(2, 2) && !enough(3, 2) && !enough(16, 9));
    }

    #[test]
    fn a_program_that_is_no_python_is_named() {
        for name in ["/bin/ls", "/bin/cat", "/bin/true", "/bin/echo"] {
            let begun = Process::begin(Path::new(name), &json!({}), &[], Duration::from_secs(30));
            let Err(NoStart::Error(error)) = begun.map(drop) else { panic!("{name} is no Python") };
            let said = error.to_string();
            assert!(said.contains(&format!("{name} is no Python")) && said.lines().count() == 1, "{said}");
        }
        if let Ok(python) = crate::find::find_python() {
            assert!(is_python(&python.path), "{python:?}");
        }
    }

    #[test]
    fn a_step_tells_the_worker_whether_it_may_look() {
        let mut request = vec![];
        step_request(&mut request, &[1.5], 260);
        assert_eq!((request[0], request.len()), (b'S', 16));
        assert!(request[1] <= 1 && request[2..8] == [4, 1, 0, 0, 0, 0], "{request:?}");
    }
}
