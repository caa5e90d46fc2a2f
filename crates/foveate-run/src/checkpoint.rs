//! Run folders and checkpoints.
//!
//! `runs/<name>/` holds everything about a run: `config.toml` (the whole configuration), `about.json` (version, start),
//! `log.jsonl` (a line for every event), `curve.svg`, `best.safetensors` and `last.safetensors` (weights), and
//! `checkpoints/` with the newest states of the run. Each file is whole at any moment, so a run may be killed at any
//! moment; a checkpoint knows how long the log was, and a resumed run cuts the log back to there.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use foveate_core::StateDict;
use sha2::{Digest as _, Sha256};

use crate::atomic;
use crate::error::RunError;
use crate::tensors::{NamedTensor, TensorFile};

/// How many checkpoints stay: the newest, and those to fall back to if the disk broke it.
const KEEP: usize = 3;
/// Says what a file is.
const FORMAT: &str = "foveate-checkpoint-1";

/// A run's folder, locked against others who would train in it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    log: File,
    /// Lines in the log.
    lines: u64,
    /// Of `config.toml`.
    config_sha256: String,
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
}

impl RunFolder {
    /// Makes a folder for a new run in `runs`: `base`, or if that exists `base-1`, `base-2`, …
    ///
    /// # Errors
    /// When the folder cannot be made or written to.
    pub fn create(runs: &Path, base: &str, config: &str, about: &str) -> Result<Self, RunError> {
        fs::create_dir_all(runs).map_err(RunError::io("create", runs))?;
        for number in 0..10_000 {
            let path = if number == 0 { runs.join(base) } else { runs.join(format!("{base}-{number}")) };
            match fs::create_dir(&path) {
                Ok(()) => return Self::furnish(&path, config, about),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(RunError::io("create", &path)(error)),
            }
        }
        let why = format!("there are 10,000 runs called {base:?} already; choose another with --name");
        Err(RunError::BadRun { folder: runs.to_path_buf(), why })
    }

    /// Makes the folder `name` in `runs` for a new run, or none: a run is never overwritten.
    ///
    /// # Errors
    /// When the name is no name of a folder, the folder exists, or cannot be made or written to.
    pub fn create_named(runs: &Path, name: &str, config: &str, about: &str) -> Result<Self, RunError> {
        if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
            let why = format!("{name:?} is no name for a run; choose a plain word with --name");
            return Err(RunError::BadRequest { why });
        }
        fs::create_dir_all(runs).map_err(RunError::io("create", runs))?;
        let path = runs.join(name);
        match fs::create_dir(&path) {
            Ok(()) => Self::furnish(&path, config, about),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let why = "this run exists; go on with `foveate train --resume`, or choose another --name";
                Err(RunError::BadRun { folder: path, why: why.into() })
            }
            Err(error) => Err(RunError::io("create", &path)(error)),
        }
    }

    fn furnish(path: &Path, config: &str, about: &str) -> Result<Self, RunError> {
        let checkpoints = path.join("checkpoints");
        fs::create_dir(&checkpoints).map_err(RunError::io("create", &checkpoints))?;
        atomic::write(path.join("about.json"), about)?;
        atomic::write(path.join("config.toml"), config)?;
        Self::open(path)
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
        let config = match fs::read(path.join("config.toml")) {
            Ok(config) => config,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(bad(
                    "config.toml is missing, so this is no run; give a folder that `foveate train` made",
                ));
            }
            Err(error) => return Err(RunError::io("read", &path.join("config.toml"))(error)),
        };
        let log_path = path.join("log.jsonl");
        let log = File::options().read(true).append(true).create(true).open(&log_path);
        let log = log.map_err(RunError::io("write", &log_path))?;
        match log.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(bad("another process trains in this folder; wait for it or stop it first"));
            }
            // Some file systems have no locks; training without one beats not training.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut folder = RunFolder {
            path: path.to_path_buf(),
            log,
            lines: 0,
            config_sha256: hex(&Sha256::digest(&config)),
        };
        for leftovers in [folder.path.clone(), folder.checkpoints()] {
            if leftovers.is_dir() {
                atomic::clean(&leftovers)?;
            }
        }
        folder.lines = folder.read_log()?.len() as u64;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// Adds a line to the log.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn log(&mut self, line: &str) -> Result<(), RunError> {
        self.log
            .write_all(format!("{line}\n").as_bytes())
            .map_err(RunError::io("write", &self.path.join("log.jsonl")))?;
        self.lines += 1;
        Ok(())
    }

    /// The whole lines of the log.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_log(&self) -> Result<Vec<String>, RunError> {
        let path = self.path.join("log.jsonl");
        let mut text = Vec::new();
        File::open(&path)
            .and_then(|mut file| file.read_to_end(&mut text))
            .map_err(RunError::io("read", &path))?;
        let text = String::from_utf8_lossy(&text);
        // A line without an end was cut off by a crash.
        Ok(text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect())
    }

    /// Cuts the log back to its first `lines` lines; a shorter one stays as it is.
    ///
    /// # Errors
    /// When the file cannot be changed.
    pub fn cut_log(&mut self, lines: u64) -> Result<(), RunError> {
        let mut kept = self.read_log()?;
        kept.truncate(lines as usize);
        let bytes: usize = kept.iter().map(|line| line.len() + 1).sum();
        self.log.set_len(bytes as u64).map_err(RunError::io("write", &self.path.join("log.jsonl")))?;
        self.lines = kept.len() as u64;
        Ok(())
    }

    /// Saves the state of the run, and lets go of old ones.
    ///
    /// # Errors
    /// When it cannot be written; the earlier ones are then untouched.
    pub fn save(&self, state: &StateDict) -> Result<(), RunError> {
        // A checkpoint must never be ahead of the log.
        self.log.sync_data().map_err(RunError::io("write", &self.path.join("log.jsonl")))?;
        let tensors =
            state.iter().map(|(name, tensor)| NamedTensor::flat(name.clone(), tensor.clone())).collect();
        let mut file = TensorFile { tensors, ..TensorFile::default() };
        file.metadata.insert("format".into(), FORMAT.into());
        file.metadata.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        file.metadata.insert("config_sha256".into(), self.config_sha256.clone());
        file.metadata.insert("log_lines".into(), self.lines.to_string());
        let digest = hex(&Sha256::digest(file.to_bytes()));
        file.metadata.insert("sha256".into(), digest);
        atomic::write(self.checkpoints().join(format!("{:08}.safetensors", self.lines)), file.to_bytes())?;
        let mut all = self.list()?;
        all.truncate(all.len().saturating_sub(KEEP));
        for old in all {
            fs::remove_file(&old).map_err(RunError::io("remove", &old))?;
        }
        Ok(())
    }

    /// All checkpoints, the oldest first.
    fn list(&self) -> Result<Vec<PathBuf>, RunError> {
        let folder = self.checkpoints();
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in fs::read_dir(&folder).map_err(RunError::io("read", &folder))? {
            let path = entry.map_err(RunError::io("read", &folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(number) = name.strip_suffix(".safetensors").and_then(|n| n.parse::<u64>().ok()) {
                all.push((number, path));
            }
        }
        all.sort();
        Ok(all.into_iter().map(|(_, path)| path).collect())
    }

    /// The newest checkpoint that is whole, with a word on each newer one that is not; `None` for a run that was
    /// stopped before its first.
    ///
    /// # Errors
    /// When there are checkpoints but none is whole, they are of another configuration, or they are missing although
    /// the run has begun.
    pub fn latest(&self) -> Result<Option<(Checkpoint, Vec<String>)>, RunError> {
        let mut broken = Vec::new();
        for path in self.list()?.iter().rev() {
            match self.load(path) {
                Ok(checkpoint) => return Ok(Some((checkpoint, broken))),
                Err(error @ RunError::BadRun { .. }) => return Err(error),
                Err(error) => broken.push(error.to_string()),
            }
        }
        let bad = |why: String| Err(RunError::BadRun { folder: self.path.clone(), why });
        let config = self.path.join("config.toml");
        match broken.first() {
            Some(first) => bad(format!(
                "no checkpoint can be read ({first}); train anew with `foveate train --config {}`",
                config.display()
            )),
            None if self.lines > 0 => bad(format!(
                "its checkpoints are missing; train anew with `foveate train --config {}`",
                config.display()
            )),
            None => Ok(None),
        }
    }

    fn load(&self, path: &Path) -> Result<Checkpoint, RunError> {
        let mut file = TensorFile::read(path)?;
        let wrong = |why: &str| RunError::BadRequest { why: format!("{}: {why}", path.display()) };
        if file.metadata.get("format").map(String::as_str) != Some(FORMAT) {
            return Err(wrong("this is no checkpoint of ours"));
        }
        let digest = file.metadata.remove("sha256");
        if digest != Some(hex(&Sha256::digest(file.to_bytes()))) {
            return Err(wrong("its contents are not what was written"));
        }
        if file.metadata.get("config_sha256") != Some(&self.config_sha256) {
            return Err(RunError::BadRun {
                folder: self.path.clone(),
                why: "config.toml was changed after the run began; put it back, or start a new run with \
                      `foveate train --config` and the changed file"
                    .into(),
            });
        }
        let lines = file.metadata.get("log_lines").and_then(|n| n.parse().ok());
        let lines = lines.ok_or_else(|| wrong("its length of the log is missing"))?;
        let version = file.metadata.remove("version").unwrap_or_default();
        let state = file.tensors.into_iter().map(|tensor| (tensor.name, tensor.data)).collect();
        Ok(Checkpoint { state, lines, version })
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use foveate_core::Tensor;
    use tempfile::TempDir;

    use super::*;

    fn state(x: f64) -> StateDict {
        StateDict::from([
            ("a.mean".into(), Tensor::F64(vec![x, -x])),
            ("a.count".into(), Tensor::U64(vec![7])),
            ("b".into(), Tensor::F32(vec![1.5])),
        ])
    }

    fn new_run(dir: &TempDir) -> RunFolder {
        RunFolder::create(&dir.path().join("runs"), "car", "seed = 1\n", "{}").expect("writable")
    }

    /// A run with five checkpoints, one after each line of the log, closed again.
    fn five(dir: &TempDir) -> PathBuf {
        let mut folder = new_run(dir);
        for i in 0..5 {
            folder.log(&format!("{{\"line\":{i}}}")).expect("writable");
            folder.save(&state(f64::from(i))).expect("writable");
        }
        folder.path().to_path_buf()
    }

    #[test]
    fn a_new_run_never_takes_the_folder_of_another() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let names: Vec<_> = (0..3)
            .map(|_| new_run(&dir).path().file_name().expect("a name").to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["car", "car-1", "car-2"]);
        let runs = dir.path().join("runs");
        let said = RunFolder::create_named(&runs, "car-1", "", "{}").expect_err("exists").to_string();
        assert!(said.contains("this run exists; go on with `foveate train --resume`"), "{said}");
        for name in ["", "a/b", "..", ".hidden"] {
            let said = RunFolder::create_named(&runs, name, "", "{}").expect_err(name).to_string();
            assert!(said.contains("choose a plain word"), "{said}");
        }
        RunFolder::create_named(&runs, "mine", "", "{}").expect("a free name");
        fs::write(dir.path().join("file"), "").expect("writable");
        let said =
            RunFolder::create(&dir.path().join("file"), "car", "", "{}").expect_err("a file").to_string();
        assert!(said.contains("cannot create"), "{said}");
    }

    #[test]
    fn the_newest_three_stay_and_the_newest_counts() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = five(&dir);
        let folder = RunFolder::open(&path).expect("a run");
        assert_eq!(folder.list().expect("listable").len(), 3);
        let (checkpoint, notes) = folder.latest().expect("whole").expect("there is one");
        assert_eq!((checkpoint.state, checkpoint.lines, notes.len()), (state(4.0), 5, 0));
        assert_eq!(checkpoint.version, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn the_log_is_cut_to_the_checkpoint() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = five(&dir);
        fs::OpenOptions::new()
            .append(true)
            .open(path.join("log.jsonl"))
            .and_then(|mut f| f.write_all(b"{\"line\":5}\n{\"line\":6}\n{\"li"))
            .expect("writable");
        let mut folder = RunFolder::open(&path).expect("a run");
        assert_eq!(folder.lines, 7, "the half line does not count");
        let (checkpoint, _) = folder.latest().expect("whole").expect("there is one");
        folder.cut_log(checkpoint.lines).expect("writable");
        folder.log("{\"line\":\"new\"}").expect("writable");
        let log = folder.read_log().expect("readable");
        assert_eq!((log.len(), log[4].as_str(), log[5].as_str()), (6, "{\"line\":4}", "{\"line\":\"new\"}"));
        folder.cut_log(99).expect("a shorter one stays");
        assert_eq!(folder.lines, 6);
    }

    #[test]
    fn a_broken_newest_falls_back_to_the_one_before() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = five(&dir);
        let newest = path.join("checkpoints/00000005.safetensors");
        let bytes = fs::read(&newest).expect("readable");
        // Any byte of it.
        for at in (0..bytes.len()).step_by(13) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x41;
            fs::write(&newest, wrong).expect("writable");
            let folder = RunFolder::open(&path).expect("a run");
            let (checkpoint, notes) = folder.latest().expect("the one before").expect("there is one");
            assert_eq!((checkpoint.lines, notes.len()), (4, 1), "byte {at}");
        }
        fs::write(&newest, &bytes[..bytes.len() - 3]).expect("writable");
        let folder = RunFolder::open(&path).expect("a run");
        let (checkpoint, notes) = folder.latest().expect("the one before").expect("there is one");
        assert_eq!(checkpoint.state, state(3.0));
        assert!(notes[0].contains("00000005.safetensors"), "{notes:?}");
    }

    #[test]
    fn folders_that_cannot_go_on_say_why() {
        type Damage = fn(&Path);
        let cases: [(Damage, &str); 6] = [
            (|p| fs::remove_dir_all(p).expect("ours"), "there is no such folder"),
            (
                |p| fs::remove_file(p.join("config.toml")).expect("ours"),
                "config.toml is missing, so this is no run",
            ),
            (|p| fs::write(p.join("config.toml"), "seed = 2\n").expect("ours"), "config.toml was changed"),
            (
                |p| fs::remove_dir_all(p.join("checkpoints")).expect("ours"),
                "its checkpoints are missing; train anew",
            ),
            (
                |p| {
                    for n in 3..=5 {
                        fs::write(p.join(format!("checkpoints/{n:08}.safetensors")), "garbage")
                            .expect("ours");
                    }
                },
                "no checkpoint can be read",
            ),
            (
                |p| {
                    let foreign = TensorFile::default().to_bytes();
                    for n in 3..=5 {
                        fs::write(p.join(format!("checkpoints/{n:08}.safetensors")), &foreign).expect("ours");
                    }
                },
                "this is no checkpoint of ours",
            ),
        ];
        for (damage, why) in cases {
            let dir = tempfile::tempdir().expect("a temporary folder");
            let path = five(&dir);
            damage(&path);
            let said = RunFolder::open(&path)
                .and_then(|folder| folder.latest().map(|_| ()))
                .expect_err(why)
                .to_string();
            assert!(said.contains(why) && said.contains(';') && said.lines().count() == 1, "{said}");
        }
    }

    #[test]
    fn one_process_at_a_time() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let first = new_run(&dir);
        let said = RunFolder::open(first.path()).expect_err("locked").to_string();
        assert!(said.contains("another process trains in this folder"), "{said}");
        let path = first.path().to_path_buf();
        drop(first);
        assert_eq!(RunFolder::open(&path).expect("free again").latest().expect("nothing yet"), None);
    }
}
