//! The folder of an experiment: what of it has been run, so that it can be stopped and resumed.

use std::path::{Path, PathBuf};

use foveate_envs::registry::EnvRequest;
use serde::{Deserialize, Serialize};

use super::experiment::{Arm, Experiment, Row};
use super::measured::{Judged, Machine, Measured};
use crate::clock::utc_now;
use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::lock::Lock;
use crate::replay::sha256_hex;
use crate::stress::keep::key;
use crate::weights::{AgentFile, is_weights_or_run};

/// The experiment that the folder belongs to.
const BELONGS: &str = "experiment.toml";
/// The folder of the trainings.
const RUNS: &str = "runs";
/// The folder of the evaluations.
const EVALUATIONS: &str = "evaluations";
/// Larger files are refused.
const MAX_FILE: u64 = 64 << 20;

/// The folder of an experiment, locked for this process.
pub struct ExperimentFolder {
    folder: FolderHandle,
    evaluations: FolderHandle,
    _lock: Lock,
}

/// An evaluation with everything that it depends on.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    #[serde(flatten)]
    measured: Measured,
}

/// A run's `summary.json`, as far as it is needed here.
#[derive(Deserialize)]
struct RunSummary {
    machine: RunMachine,
}

#[derive(Deserialize)]
struct RunMachine {
    cpu_seconds: f64,
}

impl ExperimentFolder {
    /// Opens the folder at `path` for the experiment called `id` whose file is `text`; creates it if it is missing.
    ///
    /// # Errors
    /// When it belongs to another experiment, another process works in it, or it cannot be created.
    pub fn open(path: &Path, id: &str, text: &str) -> Result<Self, RunError> {
        let folder = FolderHandle::open_or_create(path)?;
        let lock = Lock::take(&folder)?;
        folder.sweep();
        let belongs = format!("# {id}\n{text}");
        if folder.has(BELONGS) {
            let there = folder.read(BELONGS, MAX_FILE)?.unwrap_or_default();
            if there != belongs.as_bytes() {
                return Err(RunError::BadRequest {
                    why: format!(
                        "{}: this folder belongs to another experiment, or to {id} as another version of Foveate has it; \
                         choose another folder with {}",
                        path.display(),
                        foveate_core::hint::Setting::Out
                    ),
                });
            }
        } else {
            folder.write(BELONGS, belongs)?;
        }
        let evaluations = folder.make_folder(EVALUATIONS)?;
        evaluations.sweep();
        Ok(ExperimentFolder { folder, evaluations, _lock: lock })
    }

    /// The folder of all trainings.
    pub fn runs(&self) -> PathBuf {
        self.folder.path().join(RUNS)
    }

    /// The CPU seconds of a finished training.
    pub fn training_seconds(&self, run: &str) -> Option<f64> {
        let runs = self.folder.folder(RUNS).ok()??.folder(run).ok()??;
        let summary = runs.read("summary.json", MAX_FILE).ok()?.ok()?;
        Some(serde_json::from_slice::<RunSummary>(&summary).ok()?.machine.cpu_seconds)
    }

    /// The evaluation called `name`, if it is there and depends on nothing but `key`.
    pub fn find(&self, name: &str, key: &str) -> Option<Measured> {
        let bytes = self.evaluations.read(&format!("{name}.json"), MAX_FILE).ok()?.ok()?;
        let kept: Kept = serde_json::from_slice(&bytes).ok()?;
        (kept.key == sha256_hex(key.as_bytes())).then_some(kept.measured)
    }

    /// Keeps an evaluation.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, name: &str, key: &str, measured: &Measured) -> Result<(), RunError> {
        let kept = Kept { key: sha256_hex(key.as_bytes()), measured: measured.clone() };
        let text =
            serde_json::to_string(&kept).map_err(|error| RunError::BadRequest { why: error.to_string() })?;
        self.evaluations.write(&format!("{name}.json"), text)
    }

    /// Writes `table.md`, `table.csv`, `figure.svg` and `report.json`; `runs` are the names of the trainings.
    ///
    /// # Errors
    /// When a log is broken or a file cannot be written.
    pub fn write(&self, judged: &Judged, runs: &[String]) -> Result<(), RunError> {
        let runs: Vec<PathBuf> = runs.iter().map(|run| self.runs().join(run)).collect();
        self.folder.write("table.md", judged.document())?;
        self.folder.write("table.csv", judged.csv())?;
        self.folder.write("figure.svg", judged.figure(&runs)?)?;
        self.folder.write("report.json", judged.to_json())
    }
}

/// How far a training is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// It has not begun.
    No,
    /// It was stopped.
    Stopped,
    /// It is finished.
    Finished,
}

/// How far the training called `run` in an experiment's folder is.
pub fn begun(folder: &Path, run: &str) -> Begun {
    let run = folder.join(RUNS).join(run);
    match (run.join("summary.json").is_file(), run.is_dir()) {
        (true, _) => Begun::Finished,
        (_, true) => Begun::Stopped,
        _ => Begun::No,
    }
}

/// Whether an evaluation called `name` is there; what it depends on is not looked at.
pub fn is_evaluated(folder: &Path, name: &str) -> bool {
    folder.join(EVALUATIONS).join(format!("{name}.json")).is_file()
}

/// The name of a training.
pub fn run_name(arm: &Arm, seed: u64) -> String {
    format!("{}-{seed}", file_name(&arm.name))
}

/// The name of an evaluation; `seed` is that of the training.
pub fn evaluation_name(experiment: &Experiment, row: Row, seed: Option<u64>) -> String {
    let arm = &experiment.arms[row.arm];
    let arm = seed.map_or_else(|| file_name(&arm.name), |seed| run_name(arm, seed));
    format!("{arm}.{}", file_name(&experiment.conditions[row.condition].name))
}

/// A name as that of a file.
pub fn file_name(name: &str) -> String {
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

/// The published weights of `arm` at `path`: the file itself, or the first of the arm's names that is in the folder.
pub fn find_weights(path: &Path, arm: &Arm) -> Option<PathBuf> {
    if !path.is_dir() || is_weights_or_run(path) {
        return path.exists().then(|| path.to_path_buf());
    }
    let all = arm.files.iter().map(|name| path.join(name));
    all.into_iter().find(|file| file.is_file())
}

/// Everything that an evaluation depends on, as text; `seeds` are those of its episodes.
pub fn evaluation_key(
    file: &AgentFile,
    world: &EnvRequest,
    seed: u64,
    seeds: &str,
    episodes: usize,
) -> String {
    format!("{seeds} {}", key(file, world, seed, episodes, None))
}

impl Machine {
    /// This machine, now.
    pub fn now(cpu_seconds: f64, training_cpu_seconds: Option<f64>) -> Self {
        Machine {
            foveate: crate::VERSION.to_owned(),
            processor: processor(),
            date: utc_now(),
            cpu_seconds,
            training_cpu_seconds,
        }
    }
}

/// The processor's name, as far as the system says it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
