//! Run folders and checkpoints.
//!
//! `runs/<name>/` holds everything about a run: `config.toml` (the whole configuration), `about.json`
//! (version, start, and the time of every resume), `tracks.json` (which tracks serve which purpose),
//! `log.jsonl` (a line for every event), TensorBoard's event file, `curve.svg`, `best.safetensors` and
//! `last.safetensors` (weights), `videos/` (a video of every evaluation), `failures/` (rollouts that failed),
//! and `checkpoints/` with the newest states of the run. Each file is complete at any moment, so a run may be
//! killed at any moment. A checkpoint records the length and the checksum of the log; a resumed run truncates
//! the log to that length.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use foveate_core::StateDict;
use foveate_core::hint::{Hint, Setting, Task};
use sha2::{Digest as _, Sha256};

use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::lock::Lock;
use crate::tensors::{MAX_FILE, TensorFile, TensorsError};

/// How many checkpoints are kept: the newest, and older ones as a fallback if the disk damaged it.
pub(crate) const KEEP: usize = 3;
/// Identifies the file format.
const FORMAT: &str = "foveate-checkpoint-2";
/// Longer logs are rejected.
const MAX_LOG: u64 = 1 << 32;
/// The folders in which a crash may leave hidden files.
const FOLDERS: [&str; 3] = [CHECKPOINTS, "videos", "failures"];
const CHECKPOINTS: &str = "checkpoints";
const CONFIG: &str = "config.toml";
const LOG: &str = "log.jsonl";
/// Longest name of a run in bytes: hidden names are longer, and the limit of file systems is 255.
const MAX_NAME: usize = 180;

/// A run's folder, locked against other trainers.
#[derive(Debug)]
pub struct RunFolder {
    folder: FolderHandle,
    log: File,
    /// Length of the log and its checksum so far.
    log_end: LogEnd,
    /// The number of the next checkpoint.
    next: u64,
    /// The contents of `config.toml`.
    config: String,
    _lock: Lock,
}

/// The log at the time of a checkpoint.
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
    /// The state of training, see [`foveate_train::Training::restore`].
    pub state: StateDict,
    /// Number of lines of the log.
    pub lines: u64,
    /// Version and build of the program that wrote it.
    pub version: String,
    /// The configuration of the run when it was written.
    pub config: String,
    /// Length in bytes and checksum of these lines.
    log: (u64, String),
}

/// A checkpoint to resume from.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// True if the log matches the checkpoint.
    pub log_fits: bool,
    /// A message about each newer checkpoint that was skipped.
    pub notes: Vec<String>,
}

impl RunFolder {
    /// Creates a folder for a new run in `runs`: `base` as a plain name, or if that exists `base-1`,
    /// `base-2`, …
    ///
    /// # Errors
    /// When the folder cannot be created or written to.
    pub fn create(runs: &Path, base: &str, config: &str) -> Result<Self, RunError> {
        let base = plain_name(base);
        let mut new = NewRun::furnish(runs, &base, config)?;
        for number in 0..10_000 {
            let name = if number == 0 { base.clone() } else { format!("{base}-{number}") };
            if new.take(&name)? {
                return Ok(new.run);
            }
        }
        new.give_up();
        let why =
            format!("there are 10,000 runs called {base:?} already; choose another with {}", Setting::Name);
        Err(RunError::BadRun { folder: runs.to_path_buf(), why })
    }

    /// Creates the folder `name` in `runs` for a new run. An existing run is never overwritten.
    ///
    /// # Errors
    /// When the name is not a valid folder name, or the folder exists, or cannot be created or written to.
    pub fn create_named(runs: &Path, name: &str, config: &str) -> Result<Self, RunError> {
        if let Some(why) = no_name(name) {
            let why =
                format!("{name:?} is no name for a run: {why}; choose a plain word with {}", Setting::Name);
            return Err(RunError::BadRequest { why });
        }
        let path = runs.join(name);
        let exists = || {
            let resume = Task::Resume.of(path.display());
            let why = format!(
                "this run exists; go on with {resume}, or choose another name with {}",
                Setting::Name
            );
            RunError::BadRun { folder: path.clone(), why }
        };
        if path.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let mut new = NewRun::furnish(runs, name, config)?;
        if new.take(name)? {
            return Ok(new.run);
        }
        new.give_up();
        Err(exists())
    }

    /// Opens the folder of a run.
    ///
    /// # Errors
    /// When it is not the folder of a run, or another process trains in it.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let bad = |why: &str| RunError::BadRun { folder: path.to_path_buf(), why: why.into() };
        if !path.is_dir() {
            let what = if path.exists() { "this is no folder" } else { crate::error::NOTHING };
            return Err(RunError::BadRequest {
                why: format!(
                    "cannot read {}: {what}; give the folder of a run that {} made",
                    path.display(),
                    Task::Train
                ),
            });
        }
        let folder = FolderHandle::open(path)?;
        if !folder.has(CONFIG) {
            return Err(bad(&format!(
                "config.toml is missing, so this is no run; give a folder that {} made",
                Task::Train
            )));
        }
        let lock = Lock::take(&folder)?;
        Self::open_locked(folder, lock)
    }

    fn open_locked(folder: FolderHandle, lock: Lock) -> Result<Self, RunError> {
        let config = crate::config::read_text_in(&folder, CONFIG)?;
        let log = folder.open_to_append(LOG)?;
        folder.clean()?;
        for name in FOLDERS {
            if let Some(folder) = folder.folder(name)? {
                folder.clean()?;
            }
        }
        let mut run = RunFolder { folder, log, log_end: LogEnd::default(), next: 1, config, _lock: lock };
        run.next = list(&run.folder)?.last().map_or(1, |(number, _)| number + 1);
        Ok(run)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The handle of the folder, through which all its files are read and written.
    pub fn handle(&self) -> &FolderHandle {
        &self.folder
    }

    /// The contents of `config.toml`.
    pub fn config(&self) -> &str {
        &self.config
    }

    fn log_path(&self) -> PathBuf {
        self.path().join(LOG)
    }

    /// Appends a line to the log.
    ///
    /// # Errors
    /// When it cannot be written; an incomplete line may remain, which a resumed run removes.
    pub fn log(&mut self, line: &str) -> Result<(), RunError> {
        let line = format!("{line}\n");
        self.log.write_all(line.as_bytes()).map_err(RunError::io("write", &self.log_path()))?;
        self.log_end.add(line.as_bytes());
        Ok(())
    }

    /// Truncates the log to its length at `checkpoint`, and returns its lines.
    ///
    /// # Errors
    /// When the file cannot be read or changed.
    pub fn cut_log(&mut self, checkpoint: &Checkpoint) -> Result<Vec<String>, RunError> {
        let failed = || RunError::io("read", &self.log_path());
        let mut file = BufReader::new(self.folder.open_to_read(LOG)?);
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

    /// Renames the log and starts a new one; returns the new name of the old log.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn new_log(&mut self) -> Result<String, RunError> {
        let mut names = (1..).map(|number| format!("log-aside-{number}.jsonl"));
        let aside = names.find(|name| !self.folder.has(name)).unwrap_or_default();
        let renamed = self.folder.rename(LOG.as_ref(), aside.as_ref());
        renamed.map_err(RunError::io("rename", &self.log_path()))?;
        self.log = self.folder.open_to_append(LOG)?;
        self.log_end = LogEnd::default();
        Ok(aside)
    }

    /// Saves the state of the run, and removes old checkpoints.
    ///
    /// # Errors
    /// When it cannot be written; the earlier ones are then untouched.
    pub fn save(&mut self, state: &StateDict) -> Result<(), RunError> {
        // A checkpoint must never be ahead of the log.
        self.log.sync_data().map_err(RunError::io("write", &self.log_path()))?;
        let tensors = state.iter().map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        let mut file = TensorFile { tensors, ..TensorFile::default() };
        let LogEnd { lines, bytes, sum } = &self.log_end;
        file.metadata = [
            ("format", FORMAT.into()),
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("build", crate::BUILD.into()),
            ("config", self.config.clone()),
            ("log_lines", lines.to_string()),
            ("log_bytes", bytes.to_string()),
            ("log_sha256", hex(&sum.clone().finalize())),
        ]
        .map(|(name, value): (&str, String)| (name.to_owned(), value))
        .into();
        let digest = hex(&Sha256::digest(file.to_bytes()));
        file.metadata.insert("sha256".into(), digest);
        let checkpoints = self.folder.make_folder(CHECKPOINTS)?;
        checkpoints.write(&format!("{:08}.safetensors", self.next), file.to_bytes())?;
        self.next += 1;
        let mut all = list(&self.folder)?;
        all.truncate(all.len().saturating_sub(KEEP));
        for (_, old) in all {
            checkpoints.remove(&old)?;
        }
        Ok(())
    }

    /// The newest intact checkpoint that matches the log, or if there is none the newest intact checkpoint;
    /// `None` for a run that was stopped before its first.
    ///
    /// # Errors
    /// When there are checkpoints but none is intact, or they are missing although the run has started.
    pub fn latest(&self) -> Result<Option<Found>, RunError> {
        let mut notes = Vec::new();
        let mut log_is_another = None;
        let checkpoints = self.folder.folder(CHECKPOINTS)?;
        for (name, folder) in
            list(&self.folder)?.iter().rev().filter_map(|(_, name)| Some((name, checkpoints.as_ref()?)))
        {
            let checkpoint = match load(folder, name) {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    notes.push(error.to_string());
                    continue;
                }
            };
            if log_fits(&self.folder, &checkpoint)? {
                return Ok(Some(Found { checkpoint, log_fits: true, notes }));
            }
            let notes_before = notes.clone();
            let path = folder.path().join(name);
            notes.push(format!("{}: log.jsonl is not the one that it was written with", path.display()));
            log_is_another.get_or_insert(Found { checkpoint, log_fits: false, notes: notes_before });
        }
        if log_is_another.is_some() {
            return Ok(log_is_another);
        }
        let bad = |why: String| {
            let config = self.path().join(CONFIG);
            let anew = Hint::from(Task::Train).with(Setting::Config.to(config.display()));
            let why = format!("{why}; train anew with {anew}");
            Err(RunError::BadRun { folder: self.path().to_path_buf(), why })
        };
        let logged = self.log.metadata().map_err(RunError::io("read", &self.log_path()))?.len();
        match notes.first() {
            Some(first) => bad(format!("no checkpoint can be read ({first})")),
            None if logged > 0 => bad("its checkpoints are missing".into()),
            None => Ok(None),
        }
    }
}

/// Whether the log of the run in `folder` starts with its contents at the newest intact checkpoint, as it
/// does in a run that is being continued; also `true` when there is no checkpoint.
///
/// # Errors
/// When the folder or the log cannot be read.
pub fn log_is_whole(folder: &FolderHandle) -> Result<bool, RunError> {
    let Some(checkpoints) = folder.folder(CHECKPOINTS)? else { return Ok(true) };
    for (_, name) in list(folder)?.iter().rev() {
        if let Ok(checkpoint) = load(&checkpoints, name) {
            return log_fits(folder, &checkpoint);
        }
    }
    Ok(true)
}

/// Whether the log starts with its contents at `checkpoint`.
fn log_fits(folder: &FolderHandle, checkpoint: &Checkpoint) -> Result<bool, RunError> {
    let failed = || RunError::io("read", &folder.path().join(LOG));
    let file = folder.open_to_read(LOG)?;
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

/// The names of all checkpoints of the run in `folder` with their numbers, oldest first.
fn list(folder: &FolderHandle) -> Result<Vec<(u64, String)>, RunError> {
    let Some(folder) = folder.folder(CHECKPOINTS)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for entry in folder.entries()?.into_iter().filter(|entry| !entry.is_folder) {
        let Some(name) = entry.name.to_str() else { continue };
        let number = name.strip_suffix(".safetensors").and_then(|n| n.parse::<u64>().ok());
        // No run reaches such large numbers; such a file is not a checkpoint of this program.
        if let Some(number) = number.filter(|&number| number < 1 << 53) {
            all.push((number, name.to_owned()));
        }
    }
    all.sort();
    Ok(all)
}

fn load(folder: &FolderHandle, name: &str) -> Result<Checkpoint, RunError> {
    let path = folder.path().join(name);
    let broken = |source| RunError::Tensors { path: path.clone(), source };
    let bytes = folder.read(name, MAX_FILE)?.map_err(|bytes| broken(TensorsError::TooLarge { bytes }))?;
    let mut file = TensorFile::from_bytes(&bytes).map_err(broken)?;
    let wrong = |why: &str| RunError::BadRun { folder: path.clone(), why: why.into() };
    if file.metadata.get("format").map(String::as_str) != Some(FORMAT) {
        return Err(wrong("this is no checkpoint of this version"));
    }
    // Compares all bytes, including those without meaning.
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
    // Checkpoints of earlier versions have no build.
    let version = format!("{version} (build {})", take("build").unwrap_or_else(|_| "unknown".into()));
    let state = file.tensors.into_iter().collect();
    Ok(Checkpoint { state, lines, version, config, log })
}

/// A run's folder under a hidden name: it gets its name when it is complete.
struct NewRun {
    /// The folder of all runs.
    runs: FolderHandle,
    hidden: OsString,
    run: RunFolder,
}

impl NewRun {
    fn furnish(runs: &Path, base: &str, config: &str) -> Result<Self, RunError> {
        let runs = FolderHandle::open_or_create(runs)?;
        runs.sweep();
        let failed = || RunError::io("create", &runs.path().join(base));
        let (folder, hidden) = runs.make_hidden_folder(base).map_err(failed())?;
        let fill = || {
            folder.make_folder(CHECKPOINTS)?;
            folder.write(CONFIG, config)?;
            let lock = Lock::take(&folder)?;
            RunFolder::open_locked(folder, lock)
        };
        match fill() {
            Ok(run) => Ok(NewRun { runs, hidden, run }),
            Err(error) => {
                // A folder that cannot be removed now is removed by the next run.
                let _ = runs.remove_tree(&hidden);
                Err(error)
            }
        }
    }

    /// Renames the folder to its name, if the name is free.
    fn take(&mut self, name: &str) -> Result<bool, RunError> {
        let path = self.runs.path().join(name);
        match self.runs.rename_folder(&self.hidden, name.as_ref()) {
            Ok(true) => {
                self.run.folder.renamed(&path);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) => {
                self.give_up();
                Err(RunError::io("create", &path)(error))
            }
        }
    }

    /// Removes what [`NewRun::furnish`] made.
    fn give_up(&self) {
        let _ = self.runs.remove_tree(&self.hidden);
    }
}

/// `id` as a folder name that any file system, `rsync` and URLs accept: `gym:ALE/Pong-v5` becomes
/// `gym-ALE-Pong-v5`.
fn plain_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = id.chars().take(MAX_NAME).map(plain).collect();
    let name = name.trim_matches(['.', '-']);
    if no_name(name).is_some() { "run".into() } else { name.to_owned() }
}

/// The reason why `name` cannot be the name of a run; `None` if it can.
fn no_name(name: &str) -> Option<String> {
    // Windows does not allow these names, whatever follows the first dot.
    const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |device: &str| stem.strip_prefix(device).is_some_and(|n| n.len() == 1 && n != "0");
    if name.is_empty() {
        Some("it is empty".into())
    } else if let Some(c) = name.chars().find(|&c| c.is_control() || r#"/\:*?"<>|"#.contains(c)) {
        Some(format!("{c:?} cannot be part of one"))
    } else if name.starts_with(['.', '-', ' ']) || name.ends_with(['.', ' ']) {
        Some("it begins or ends with a dot, a dash or a space".into())
    } else if name.len() > MAX_NAME {
        Some(format!("it has {} bytes, more than {MAX_NAME}", name.len()))
    } else if DEVICES.contains(&&*stem) || (stem.is_ascii() && (numbered("com") || numbered("lpt"))) {
        Some("it is a device on Windows".into())
    } else {
        None
    }
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
