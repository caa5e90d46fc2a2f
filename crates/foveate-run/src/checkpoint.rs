//! Run folders and checkpoints.
//!
//! `runs/<name>/` holds everything about a run: `config.toml` (the whole configuration), `about.json` (version, start,
//! and every time the run was gone on with), `tracks.json` (which tracks serve which purpose), `log.jsonl` (a line for
//! every event), TensorBoard's event file, `curve.svg`, `best.safetensors` and `last.safetensors` (weights), `videos/`
//! (a film of every evaluation), `failures/` (rollouts that failed), and `checkpoints/` with the newest states of the
//! run. Each file is whole at any moment, so a run may be killed at any moment; a checkpoint knows how long the log was
//! and what stood in it, and a resumed run cuts the log back to there.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use foveate_core::StateDict;
use sha2::{Digest as _, Sha256};

use crate::atomic;
use crate::error::RunError;
use crate::lock::{self, Lock};
use crate::npz::read_bounded;
use crate::tensors::{MAX_FILE, NamedTensor, TensorFile, TensorsError};

/// How many checkpoints stay: the newest, and those to fall back to if the disk broke it.
pub(crate) const KEEP: usize = 3;
/// Says what a file is.
const FORMAT: &str = "foveate-checkpoint-2";
/// Longer logs are none of ours.
const MAX_LOG: u64 = 1 << 32;
/// The folders that a crash may leave hidden files in.
const FOLDERS: [&str; 4] = [".", "checkpoints", "videos", "failures"];

/// A run's folder, locked against others who would train in it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    log: File,
    /// How much is in the log, and its sum so far.
    log_end: LogEnd,
    /// The number of the next checkpoint.
    next: u64,
    /// The contents of `config.toml`.
    config: String,
    _lock: Lock,
}

/// The log as a checkpoint knew it.
#[derive(Debug, Clone, Default)]
struct LogEnd {
    lines: u64,
    bytes: u64,
    sum: Sha256,
}

impl LogEnd {
    fn add(&mut self, bytes: &[u8]) {
        self.lines += bytes.split(|&byte| byte == b'\n').skip(1).count() as u64;
        self.bytes += bytes.len() as u64;
        self.sum.update(bytes);
    }
}

/// A state of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The course, see [`crate::course::Course::restore`].
    pub state: StateDict,
    /// Lines that the log had.
    pub lines: u64,
    /// Version of the program that wrote it.
    pub version: String,
    /// The configuration that it was written under.
    pub config: String,
    /// Bytes and sum of these lines.
    log: (u64, String),
}

/// A checkpoint to go on from.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Whether the log is the one that it was written with.
    pub log_fits: bool,
    /// A word on each newer checkpoint that was passed over.
    pub notes: Vec<String>,
}

impl RunFolder {
    /// Makes a folder for a new run in `runs`: `base`, or if that exists `base-1`, `base-2`, …
    ///
    /// # Errors
    /// When the folder cannot be made or written to.
    pub fn create(runs: &Path, base: &str, config: &str) -> Result<Self, RunError> {
        let mut folder = Self::furnish(runs, base, config)?;
        for number in 0..10_000 {
            let path = if number == 0 { runs.join(base) } else { runs.join(format!("{base}-{number}")) };
            if folder.take(&path)? {
                return Ok(folder);
            }
        }
        folder.give_up();
        let why = format!("there are 10,000 runs called {base:?} already; choose another with --name");
        Err(RunError::BadRun { folder: runs.to_path_buf(), why })
    }

    /// Makes the folder `name` in `runs` for a new run, or none: a run is never overwritten.
    ///
    /// # Errors
    /// When the name is no name of a folder, the folder exists, or cannot be made or written to.
    pub fn create_named(runs: &Path, name: &str, config: &str) -> Result<Self, RunError> {
        if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
            let why = format!("{name:?} is no name for a run; choose a plain word with --name");
            return Err(RunError::BadRequest { why });
        }
        let path = runs.join(name);
        let exists = || {
            let why = "this run exists; go on with `foveate train --resume`, or choose another --name";
            RunError::BadRun { folder: path.clone(), why: why.into() }
        };
        if path.exists() {
            return Err(exists());
        }
        let mut folder = Self::furnish(runs, name, config)?;
        if folder.take(&path)? {
            return Ok(folder);
        }
        folder.give_up();
        Err(exists())
    }

    /// A whole folder under a hidden name: whoever meets a run's folder meets all of it.
    fn furnish(runs: &Path, base: &str, config: &str) -> Result<Self, RunError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(runs).map_err(RunError::io("create", runs))?;
        remove_abandoned(runs)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let hidden = runs.join(format!(".{base}.{}-{count}{}", std::process::id(), atomic::SUFFIX));
        fs::create_dir(&hidden).map_err(RunError::io("create", &hidden))?;
        let fill = || {
            // First of all: what is locked is not abandoned.
            let lock = Lock::take(&hidden)?;
            let checkpoints = hidden.join("checkpoints");
            fs::create_dir(&checkpoints).map_err(RunError::io("create", &checkpoints))?;
            atomic::write(hidden.join("config.toml"), config)?;
            Self::open_locked(&hidden, lock)
        };
        fill().inspect_err(|_| drop(fs::remove_dir_all(&hidden)))
    }

    /// Gives the folder its name, if nothing has it.
    fn take(&mut self, path: &Path) -> Result<bool, RunError> {
        // A rename would put it in the place of an empty folder.
        if path.exists() {
            return Ok(false);
        }
        match fs::rename(&self.path, path) {
            Ok(()) => {
                self.path = path.to_path_buf();
                Ok(true)
            }
            Err(error) if path.exists() => {
                drop(error);
                Ok(false)
            }
            Err(error) => {
                self.give_up();
                Err(RunError::io("create", path)(error))
            }
        }
    }

    /// Removes what [`RunFolder::furnish`] made.
    fn give_up(&self) {
        // Nothing more can be done about a folder that does not go away.
        let _ = fs::remove_dir_all(&self.path);
    }

    /// Opens the folder of a run.
    ///
    /// # Errors
    /// When it is not the folder of a run, or another process trains in it.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let bad = |why: &str| RunError::BadRun { folder: path.to_path_buf(), why: why.into() };
        if !path.is_dir() {
            return Err(bad(
                "there is no such folder; give one that `foveate train` made, as in runs/car-racing",
            ));
        }
        if !path.join("config.toml").exists() {
            return Err(bad(
                "config.toml is missing, so this is no run; give a folder that `foveate train` made",
            ));
        }
        Self::open_locked(path, Lock::take(path)?)
    }

    fn open_locked(path: &Path, lock: Lock) -> Result<Self, RunError> {
        let config = crate::config::read_text(&path.join("config.toml"))?;
        let log_path = path.join("log.jsonl");
        let log = File::options().read(true).append(true).create(true).open(&log_path);
        let log = log.map_err(RunError::io("write", &log_path))?;
        for folder in FOLDERS.map(|name| path.join(name)) {
            if folder.is_dir() {
                atomic::clean(&folder)?;
            }
        }
        let mut folder = RunFolder {
            path: path.to_path_buf(),
            log,
            log_end: LogEnd::default(),
            next: 1,
            config,
            _lock: lock,
        };
        folder.next = folder.list()?.last().map_or(1, |(number, _)| number + 1);
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of `config.toml`.
    pub fn config(&self) -> &str {
        &self.config
    }

    fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    fn log_path(&self) -> PathBuf {
        self.path.join("log.jsonl")
    }

    /// Adds a line to the log.
    ///
    /// # Errors
    /// When it cannot be written; half a line may then stand there, which a resumed run cuts off.
    pub fn log(&mut self, line: &str) -> Result<(), RunError> {
        let line = format!("{line}\n");
        self.log.write_all(line.as_bytes()).map_err(RunError::io("write", &self.log_path()))?;
        self.log_end.add(line.as_bytes());
        Ok(())
    }

    /// Cuts the log back to where it was at `checkpoint`, and gives its lines.
    ///
    /// # Errors
    /// When the file cannot be read or changed.
    pub fn cut_log(&mut self, checkpoint: &Checkpoint) -> Result<Vec<String>, RunError> {
        let failed = || RunError::io("read", &self.log_path());
        let mut file = BufReader::new(File::open(self.log_path()).map_err(failed())?);
        let mut end = LogEnd::default();
        let mut lines = Vec::new();
        while end.lines < checkpoint.lines {
            let mut line = Vec::new();
            (&mut file).take(MAX_LOG).read_until(b'\n', &mut line).map_err(failed())?;
            if line.last() != Some(&b'\n') {
                break;
            }
            end.add(&line);
            line.pop();
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        self.log.set_len(end.bytes).map_err(RunError::io("write", &self.log_path()))?;
        self.log_end = end;
        Ok(lines)
    }

    /// Puts the log aside and begins a new one; returns what the old one is called now.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn new_log(&mut self) -> Result<String, RunError> {
        let mut names = (1..).map(|number| format!("log-aside-{number}.jsonl"));
        let aside = names.find(|name| !self.path.join(name).exists()).unwrap_or_default();
        let path = self.log_path();
        fs::rename(&path, self.path.join(&aside)).map_err(RunError::io("rename", &path))?;
        let log = File::options().read(true).append(true).create(true).open(&path);
        self.log = log.map_err(RunError::io("write", &path))?;
        self.log_end = LogEnd::default();
        Ok(aside)
    }

    /// Saves the state of the run, and lets go of old ones.
    ///
    /// # Errors
    /// When it cannot be written; the earlier ones are then untouched.
    pub fn save(&mut self, state: &StateDict) -> Result<(), RunError> {
        // A checkpoint must never be ahead of the log.
        self.log.sync_data().map_err(RunError::io("write", &self.log_path()))?;
        let tensors =
            state.iter().map(|(name, tensor)| NamedTensor::flat(name.clone(), tensor.clone())).collect();
        let mut file = TensorFile { tensors, ..TensorFile::default() };
        let LogEnd { lines, bytes, sum } = &self.log_end;
        file.metadata = [
            ("format", FORMAT.into()),
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("config", self.config.clone()),
            ("log_lines", lines.to_string()),
            ("log_bytes", bytes.to_string()),
            ("log_sha256", hex(&sum.clone().finalize())),
        ]
        .map(|(name, value): (&str, String)| (name.to_owned(), value))
        .into();
        let digest = hex(&Sha256::digest(file.to_bytes()));
        file.metadata.insert("sha256".into(), digest);
        atomic::write(self.checkpoints().join(format!("{:08}.safetensors", self.next)), file.to_bytes())?;
        self.next += 1;
        let mut all = self.list()?;
        all.truncate(all.len().saturating_sub(KEEP));
        for (_, old) in all {
            fs::remove_file(&old).map_err(RunError::io("remove", &old))?;
        }
        Ok(())
    }

    /// All checkpoints with their numbers, the oldest first.
    fn list(&self) -> Result<Vec<(u64, PathBuf)>, RunError> {
        let folder = self.checkpoints();
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in fs::read_dir(&folder).map_err(RunError::io("read", &folder))? {
            let path = entry.map_err(RunError::io("read", &folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let number = name.strip_suffix(".safetensors").and_then(|n| n.parse::<u64>().ok());
            // No run comes near the largest numbers; what bears one is not ours.
            if let Some(number) = number.filter(|&number| number < 1 << 53 && path.is_file()) {
                all.push((number, path));
            }
        }
        all.sort();
        Ok(all)
    }

    /// The newest checkpoint that is whole and that the log fits, or if there is none the newest that is whole; `None`
    /// for a run that was stopped before its first.
    ///
    /// # Errors
    /// When there are checkpoints but none is whole, or they are missing although the run has begun.
    pub fn latest(&self) -> Result<Option<Found>, RunError> {
        let mut notes = Vec::new();
        let mut log_is_another = None;
        for (_, path) in self.list()?.iter().rev() {
            let checkpoint = match load(path) {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    notes.push(error.to_string());
                    continue;
                }
            };
            if self.log_fits(&checkpoint)? {
                return Ok(Some(Found { checkpoint, log_fits: true, notes }));
            }
            let notes_before = notes.clone();
            notes.push(format!("{}: log.jsonl is not the one that it was written with", path.display()));
            log_is_another.get_or_insert(Found { checkpoint, log_fits: false, notes: notes_before });
        }
        if log_is_another.is_some() {
            return Ok(log_is_another);
        }
        let bad = |why: String| {
            let config = self.path.join("config.toml");
            let why = format!("{why}; train anew with `foveate train --config {}`", config.display());
            Err(RunError::BadRun { folder: self.path.clone(), why })
        };
        let logged = self.log.metadata().map_err(RunError::io("read", &self.log_path()))?.len();
        match notes.first() {
            Some(first) => bad(format!("no checkpoint can be read ({first})")),
            None if logged > 0 => bad("its checkpoints are missing".into()),
            None => Ok(None),
        }
    }

    /// Whether the log begins with what it was at `checkpoint`.
    fn log_fits(&self, checkpoint: &Checkpoint) -> Result<bool, RunError> {
        let failed = || RunError::io("read", &self.log_path());
        let file = File::open(self.log_path()).map_err(failed())?;
        let there = file.metadata().map_err(failed())?.len();
        let (bytes, sha256) = &checkpoint.log;
        if *bytes > there || *bytes > MAX_LOG {
            return Ok(false);
        }
        let (mut file, mut sum, mut buffer) = (file.take(*bytes), Sha256::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer).map_err(failed())? {
                0 => return Ok(hex(&sum.finalize()) == *sha256),
                count => sum.update(&buffer[..count]),
            }
        }
    }
}

fn load(path: &Path) -> Result<Checkpoint, RunError> {
    let broken = |source| RunError::Tensors { path: path.to_path_buf(), source };
    let bytes = read_bounded(path, MAX_FILE)?.map_err(|bytes| broken(TensorsError::TooLarge { bytes }))?;
    let mut file = TensorFile::from_bytes(&bytes).map_err(broken)?;
    let wrong = |why: &str| RunError::BadRun { folder: path.to_path_buf(), why: why.into() };
    if file.metadata.get("format").map(String::as_str) != Some(FORMAT) {
        return Err(wrong("this is no checkpoint of this version"));
    }
    // Every byte counts, also those that say nothing.
    let same = file.to_bytes() == bytes;
    let digest = file.metadata.remove("sha256");
    if !same || digest != Some(hex(&Sha256::digest(file.to_bytes()))) {
        return Err(wrong("its contents are not what was written"));
    }
    let mut take = |name: &str| {
        let missing = || wrong(&format!("its {name} is missing"));
        file.metadata.remove(name).ok_or_else(missing)
    };
    let number = |text: String| text.parse().map_err(|_| wrong("a number of it is none"));
    let lines = number(take("log_lines")?)?;
    let log = (number(take("log_bytes")?)?, take("log_sha256")?);
    let (version, config) = (take("version")?, take("config")?);
    let state = file.tensors.into_iter().map(|tensor| (tensor.name, tensor.data)).collect();
    Ok(Checkpoint { state, lines, version, config, log })
}

/// Removes the hidden folders of runs that were killed before they had a name.
fn remove_abandoned(runs: &Path) -> Result<(), RunError> {
    for entry in fs::read_dir(runs).map_err(RunError::io("read", runs))? {
        let path = entry.map_err(RunError::io("read", runs))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let ours = name.starts_with('.') && name.ends_with(atomic::SUFFIX);
        // One without a lock may be about to get one.
        if ours && path.join(lock::NAME).is_file() && Lock::take(&path).is_ok() {
            // If it does not go away now, the next run tries again.
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
