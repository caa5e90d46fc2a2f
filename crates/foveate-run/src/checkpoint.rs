//! Run folders and checkpoints.
//!
//! `runs/<name>/` holds everything about a run: `config.toml` (the whole configuration), `about.json` (version, start,
//! and every time the run was gone on with), `tracks.json` (which tracks serve which purpose), `log.jsonl` (a line for
//! every event), TensorBoard's event file, `curve.svg`, `best.safetensors` and `last.safetensors` (weights), `videos/`
//! (a film of every evaluation), `failures/` (rollouts that failed), and `checkpoints/` with the newest states of the
//! run. Each file is whole at any moment, so a run may be killed at any moment; a checkpoint knows how long the log was
//! and what stood in it, and a resumed run cuts the log back to there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use foveate_core::StateDict;
use sha2::{Digest as _, Sha256};

use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::lock::Lock;
use crate::tensors::{MAX_FILE, TensorFile, TensorsError};

/// How many checkpoints stay: the newest, and those to fall back to if the disk broke it.
pub(crate) const KEEP: usize = 3;
/// Says what a file is.
const FORMAT: &str = "foveate-checkpoint-2";
/// Longer logs are none of ours.
const MAX_LOG: u64 = 1 << 32;
/// The folders that a crash may leave hidden files in.
const FOLDERS: [&str; 3] = [CHECKPOINTS, "videos", "failures"];
const CHECKPOINTS: &str = "checkpoints";
const CONFIG: &str = "config.toml";
const LOG: &str = "log.jsonl";
/// Longest name of a run in bytes: hidden names are longer, and file systems end at 255.
const MAX_NAME: usize = 180;

/// A run's folder, locked against others who would train in it.
#[derive(Debug)]
pub struct RunFolder {
    folder: FolderHandle,
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
    /// The course, see [`foveate_train::Training::restore`].
    pub state: StateDict,
    /// Lines that the log had.
    pub lines: u64,
    /// Version of the program that wrote it, with its build.
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
    /// Makes a folder for a new run in `runs`: `base` as a plain name, or if that exists `base-1`, `base-2`, …
    ///
    /// # Errors
    /// When the folder cannot be made or written to.
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
        let why = format!("there are 10,000 runs called {base:?} already; choose another with --name");
        Err(RunError::BadRun { folder: runs.to_path_buf(), why })
    }

    /// Makes the folder `name` in `runs` for a new run, or none: a run is never overwritten.
    ///
    /// # Errors
    /// When the name is no name of a folder, the folder exists, or cannot be made or written to.
    pub fn create_named(runs: &Path, name: &str, config: &str) -> Result<Self, RunError> {
        if let Some(why) = no_name(name) {
            let why = format!("{name:?} is no name for a run: {why}; choose a plain word with --name");
            return Err(RunError::BadRequest { why });
        }
        let path = runs.join(name);
        let exists = || {
            let why = "this run exists; go on with `foveate train --resume`, or choose another --name";
            RunError::BadRun { folder: path.clone(), why: why.into() }
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
            return Err(bad(
                "there is no such folder; give one that `foveate train` made, as in runs/car-racing",
            ));
        }
        let folder = FolderHandle::open(path)?;
        if !folder.has(CONFIG) {
            return Err(bad(
                "config.toml is missing, so this is no run; give a folder that `foveate train` made",
            ));
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder itself, through which everything in it is read and written.
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

    /// Puts the log aside and begins a new one; returns what the old one is called now.
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

    /// Saves the state of the run, and lets go of old ones.
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

    /// The newest checkpoint that is whole and that the log fits, or if there is none the newest that is whole; `None`
    /// for a run that was stopped before its first.
    ///
    /// # Errors
    /// When there are checkpoints but none is whole, or they are missing although the run has begun.
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
            let why = format!("{why}; train anew with `foveate train --config {}`", config.display());
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

/// Whether the log of the run in `folder` begins with what it was at the newest checkpoint that is whole, as it does in a
/// run that goes on; also when there is none to say so.
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

/// Whether the log begins with what it was at `checkpoint`.
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

/// The names of all checkpoints of the run in `folder` with their numbers, the oldest first.
fn list(folder: &FolderHandle) -> Result<Vec<(u64, String)>, RunError> {
    let Some(folder) = folder.folder(CHECKPOINTS)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for entry in folder.entries()?.into_iter().filter(|entry| !entry.is_folder) {
        let Some(name) = entry.name.to_str() else { continue };
        let number = name.strip_suffix(".safetensors").and_then(|n| n.parse::<u64>().ok());
        // No run comes near the largest numbers; what bears one is not ours.
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
    // Checkpoints of before had none.
    let version = format!("{version} (build {})", take("build").unwrap_or_else(|_| "unknown".into()));
    let state = file.tensors.into_iter().collect();
    Ok(Checkpoint { state, lines, version, config, log })
}

/// A run's folder under a hidden name: whoever meets a run's folder meets all of it.
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
                // Nothing more can be done about a folder that does not go away; the next run sweeps it.
                let _ = runs.remove_tree(&hidden);
                Err(error)
            }
        }
    }

    /// Gives the folder its name, if nothing has it.
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

/// `id` as the name of a folder that any file system, `rsync` and a URL take: `gym:ALE/Pong-v5` is `gym-ALE-Pong-v5`.
fn plain_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = id.chars().take(MAX_NAME).map(plain).collect();
    let name = name.trim_matches(['.', '-']);
    if no_name(name).is_some() { "run".into() } else { name.to_owned() }
}

/// Why `name` cannot be the name of a run, if it cannot.
fn no_name(name: &str) -> Option<String> {
    // Windows has no files of these names, whatever follows the first dot.
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
