//! Models that are compiled in a process of its own.
//!
//! A model is a program for MuJoCo's parser and compiler, which are not made for strangers' files: a file that includes itself
//! overflows the stack, a height field of 90,000 by 90,000 takes all memory, a billion replicas never end. So `compile` starts a
//! process with limits on memory, stack, processor time and time. It compiles the model, steps it twice, writes what it made into
//! a file without a name, and ends. Whatever else it does is an error of one line.
//!
//! Only a new program is safe to start: a process with threads that forks may hardly do anything. Which program that is, depends on
//! who asks:
//!
//! * The command `foveate` starts itself, and so may each program that calls [`hook`] first in its `main`.
//! * The package for Python starts its interpreter, which loads the package's native module: [`start_with`].
//! * Without either, models of strangers are refused with a sentence that says so.

mod child;

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::{MujocoError, one_line};
use crate::ffi::Library;
use crate::model::{LARGEST_MODEL, LONGEST_TEXT, check_size};

pub use child::serve;

/// Limits of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory in MB, besides what the process needs to begin.
    pub megabytes: u32,
    /// Time in seconds.
    pub seconds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { megabytes: 768, seconds: 8 }
    }
}

/// The first argument of a process that compiles.
pub const ARGUMENT: &str = "__compile-model";

/// What starts a process that compiles; the arguments of the job follow.
static START: Mutex<Option<Vec<OsString>>> = Mutex::new(None);
/// The variable with the process that asks for a model.
const FOR: &str = "FOVEATE_COMPILES_FOR";

/// How often [`stop`] was called.
static STOPS: AtomicU64 = AtomicU64::new(0);

/// Lets this program compile models in processes of its own: call it first in `main`. In such a process it does the work and ends
/// the process; otherwise it returns at once.
///
/// ```no_run
/// foveate_mujoco::compiler::hook();
/// // the program
/// ```
pub fn hook() {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [first, job @ ..] = &arguments[..]
        && first == ARGUMENT
    {
        serve(job);
    }
    // The link leads to the running program also after its file was replaced.
    let own = Path::new("/proc/self/exe");
    let own = if own.exists() { Some(own.to_owned()) } else { std::env::current_exe().ok() };
    if let Some(own) = own {
        start_with(vec![own.into(), ARGUMENT.into()]);
    }
}

/// Says which program and which first arguments start a process that calls [`serve`] with the arguments that follow.
pub fn start_with(command: Vec<OsString>) {
    *START.lock().unwrap_or_else(PoisonError::into_inner) = Some(command);
}

/// Ends all compilations that are running, as for Ctrl-C; they return [`MujocoError::Stopped`].
pub fn stop() {
    STOPS.fetch_add(1, Ordering::Relaxed);
}

/// A compiled model in a file that is there as long as this value.
pub(crate) struct Compiled {
    pub(crate) path: CString,
    pub(crate) warnings: Vec<String>,
    _file: File,
}

/// What begins the lines of the answer; others are those of MuJoCo.
const MARK: &str = "\u{1}foveate ";
/// Both processes are of one version.
const HELLO: &str = concat!("hello ", env!("CARGO_PKG_VERSION"));
const WARNING: &str = "warning ";
const INVALID: &str = "invalid ";
const REFUSED: &str = "refused ";
const DONE: &str = "done";

/// Compiles the model in the file `path` in a new process.
pub(crate) fn compile(library: &Library, path: &Path, limits: Limits) -> Result<Compiled, MujocoError> {
    let name = path.display().to_string();
    child::check_file(path).map_err(|error| error.of(path))?;
    let size = std::fs::metadata(path).map_or(0, |data| data.len());
    check_size(&name, "bytes of XML", size, LONGEST_TEXT)?;
    if path.to_str().is_none() {
        return Err(MujocoError::File { path: path.to_owned(), why: "its path is not UTF-8".into() });
    }
    let failed = |why: String| MujocoError::Compiler { why };
    let start = START.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(start) = start.filter(|start| !start.is_empty()) else {
        return Err(failed(
            "a program in Rust calls foveate::compile_models() first in its main to have one".into(),
        ));
    };
    let stops = STOPS.load(Ordering::Relaxed);
    let file = || nameless().map_err(|error| failed(format!("no temporary file can be made: {error}")));
    let (made, mut said) = (file()?, file()?);
    let shared = |file: &File| {
        let copy = file.try_clone().map_err(|error| failed(error.to_string()))?;
        Ok(Stdio::from(copy))
    };
    let mut command = Command::new(&start[0]);
    command
        .args(&start[1..])
        .args([library.path(), path])
        .args([limits.megabytes.to_string(), limits.seconds.to_string()])
        // One arena for all threads: others reserve 64 MB each.
        .env("MALLOC_ARENA_MAX", "1")
        .env(FOR, std::process::id().to_string())
        .stdin(shared(&made)?)
        .stdout(shared(&said)?)
        .stderr(shared(&said)?);
    let child = command
        .spawn()
        .map_err(|error| failed(format!("{} cannot be started: {error}", Path::new(&start[0]).display())))?;
    // The process ends itself a little earlier; this is for one that cannot.
    let most = Duration::from_secs(u64::from(limits.seconds)) + Duration::from_millis(500);
    let status = wait(child, most, stops).map_err(|error| failed(error.to_string()))?;
    let Ended::By(status) = status else {
        return Err(match status {
            Ended::Stopped => MujocoError::Stopped { name },
            _ => MujocoError::Compile { name, why: too_long(limits) },
        });
    };
    let answer = Answer::read(&mut said).map_err(|error| failed(error.to_string()))?;
    if let Some(why) = answer.invalid {
        return Err(MujocoError::Model { name, why });
    }
    if let Some(why) = answer.refused {
        return Err(MujocoError::Compile { name, why });
    }
    if !answer.done || !status.success() {
        return Err(ended(name, status, &answer, &start, limits));
    }
    let size = made.metadata().map_err(|error| failed(error.to_string()))?.len();
    check_size(&name, "bytes of the compiled model", size, LARGEST_MODEL)?;
    let path = CString::new(format!("/dev/fd/{}", made.as_raw_fd())).unwrap_or_default();
    Ok(Compiled { path, warnings: answer.warnings, _file: made })
}

/// How a process ended.
enum Ended {
    By(ExitStatus),
    TooLate,
    Stopped,
}

/// Waits for the end of a process, or makes one.
fn wait(mut child: Child, most: Duration, stops: u64) -> std::io::Result<Ended> {
    let (mut pause, mut waited) = (Duration::from_micros(200), Duration::ZERO);
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.signal() {
                // Ctrl-C reaches all processes of a terminal.
                Some(INTERRUPT) => Ended::Stopped,
                _ => Ended::By(status),
            });
        }
        if STOPS.load(Ordering::Relaxed) != stops {
            break Ended::Stopped;
        }
        if waited > most {
            break Ended::TooLate;
        }
        std::thread::sleep(pause);
        waited += pause;
        pause = (pause * 2).min(Duration::from_millis(5));
    };
    child.kill()?;
    child.wait()?;
    Ok(ended)
}

const INTERRUPT: i32 = 2;
const ABORT: i32 = 6;
const KILL: i32 = 9;
const TERMINATE: i32 = 15;
/// `SIGXCPU` and `SIGXFSZ`, the same numbers on Linux and macOS.
const PROCESSOR_TIME: i32 = 24;
const FILE_SIZE: i32 = 25;

/// What a process said.
#[derive(Default)]
struct Answer {
    hello: bool,
    warnings: Vec<String>,
    invalid: Option<String>,
    refused: Option<String>,
    done: bool,
    /// The last line that was not ours.
    other: String,
}

impl Answer {
    fn read(file: &mut File) -> std::io::Result<Self> {
        const MOST: u64 = 1 << 20;
        let mut text = Vec::new();
        file.rewind()?;
        file.take(MOST).read_to_end(&mut text)?;
        let mut answer = Answer::default();
        for line in String::from_utf8_lossy(&text).lines() {
            let Some(ours) = line.strip_prefix(MARK) else {
                if !line.trim().is_empty() {
                    answer.other = one_line(line);
                }
                continue;
            };
            if let Some(why) = ours.strip_prefix(WARNING) {
                answer.warnings.push(why.to_owned());
            } else if let Some(why) = ours.strip_prefix(INVALID) {
                answer.invalid = Some(why.to_owned());
            } else if let Some(why) = ours.strip_prefix(REFUSED) {
                answer.refused = Some(why.to_owned());
            } else {
                answer.hello |= ours == HELLO;
                answer.done |= ours == DONE;
            }
        }
        Ok(answer)
    }
}

fn too_long(Limits { seconds, .. }: Limits) -> String {
    format!(
        "it takes longer than {seconds} s; allow more with start_timeout={}",
        seconds.saturating_mul(8).min(3600)
    )
}

fn too_much(Limits { megabytes, .. }: Limits) -> String {
    format!(
        "it takes more than {megabytes} MB of memory; allow more with memory={}",
        megabytes.saturating_mul(4)
    )
}

/// Why a process ended without a model.
fn ended(
    name: String,
    status: ExitStatus,
    answer: &Answer,
    start: &[OsString],
    limits: Limits,
) -> MujocoError {
    let last = if answer.other.is_empty() { String::new() } else { format!(" ({})", answer.other) };
    if !answer.hello {
        let program = Path::new(&start[0]).display();
        return MujocoError::Compiler { why: format!("{program} does not begin, {status}{last}") };
    }
    let out_of_memory = ["bad_alloc", "memory allocation of", "length_error"];
    let why = match status.signal() {
        Some(PROCESSOR_TIME) => too_long(limits),
        Some(FILE_SIZE) => format!("the compiled model is larger than {} MB", LARGEST_MODEL >> 20),
        Some(KILL | TERMINATE) => "its process was killed from outside, perhaps for want of memory".to_owned(),
        _ if status.code() == Some(child::TOO_LATE) => too_long(limits),
        _ if out_of_memory.iter().any(|part| answer.other.contains(part)) => too_much(limits),
        Some(ABORT) if !answer.other.contains("stack overflow") => format!("MuJoCo gave up on it{last}"),
        Some(_) => {
            "MuJoCo crashed on it; it includes itself, is nested too deeply, has sizes beyond all bounds, or meets a fault of MuJoCo"
                .to_owned()
        }
        None => format!("its process ended with {status}{last}"),
    };
    MujocoError::Compile { name, why }
}

/// A new file that no folder shows.
#[cfg(target_os = "linux")]
fn nameless() -> std::io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("foveate model", MemfdFlags::CLOEXEC)?.into())
}

/// A new file that no folder shows.
#[cfg(not(target_os = "linux"))]
fn nameless() -> std::io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("foveate-model-{}-{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
