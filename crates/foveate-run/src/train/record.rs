//! Records about a run in its folder: `about.json`, with the time of every resume, and `tracks.json`.

use foveate_core::Purpose;
use foveate_core::Seed;
use foveate_train::track_seed;
use serde_json::{Value, json};

use crate::RunError;
use crate::clock::{unix_now, utc};
use crate::config::TrainConfig;
use crate::folder::FolderHandle;
use crate::lock::host;

const NAME: &str = "about.json";
/// Longer files are rejected.
const MAX_FILE: u64 = 64 << 20;

/// `about.json`.
#[derive(Debug)]
pub(super) struct RunRecord(Value);

impl RunRecord {
    /// The record of a run that starts now.
    pub(super) fn new(seed: u64) -> Self {
        let now = unix_now();
        RunRecord(json!({
            "program": "foveate",
            "version": env!("CARGO_PKG_VERSION"),
            "build": crate::BUILD,
            "host": host(),
            "started": utc(now),
            "started_unix": now,
            "seed": seed,
        }))
    }

    /// The record of the run in `folder`; a new one if it is missing.
    pub(super) fn read(folder: &FolderHandle, seed: u64) -> Result<Self, RunError> {
        let bytes = match folder.read(NAME, MAX_FILE) {
            Ok(bytes) => bytes.ok(),
            Err(RunError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::new(seed));
            }
            Err(error) => return Err(error),
        };
        let value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        value.filter(Value::is_object).map(RunRecord).ok_or_else(|| RunError::BadRun {
            folder: folder.path().to_path_buf(),
            why: format!("{NAME} cannot be read; move it away to go on without it"),
        })
    }

    /// The start of the run, in seconds since 1970.
    pub(super) fn started(&self) -> u64 {
        // The event file's name has ten digits for it.
        self.0["started_unix"].as_u64().filter(|&t| t < 10_000_000_000).unwrap_or_else(unix_now)
    }

    /// Records that the run was resumed at `generation`, with the changes since.
    pub(super) fn resumed(&mut self, generation: u64, workers: usize, changes: &[String]) {
        let mut entry = json!({
            "at": utc(unix_now()),
            "version": env!("CARGO_PKG_VERSION"),
            "build": crate::BUILD,
            "host": host(),
            "generation": generation,
            "workers": workers,
        });
        if !changes.is_empty() {
            entry["changes"] = changes.into();
        }
        match &mut self.0["resumed"] {
            Value::Array(all) => all.push(entry),
            other => *other = json!([entry]),
        }
    }

    /// Writes it into the folder of its run.
    pub(super) fn save(&self, folder: &FolderHandle) -> Result<(), RunError> {
        folder.write(NAME, format!("{:#}\n", self.0))
    }
}

/// Writes `tracks.json`: which tracks serve which purpose.
pub(super) fn save_tracks(folder: &FolderHandle, config: &TrainConfig) -> Result<(), RunError> {
    let selection = &config.recipe.selection;
    let list = |purpose: Purpose, count: usize| {
        let track = |i: u64| track_seed(Seed::root(config.seed).child(purpose.label(), i), purpose);
        let seeds = (0..count as u64).map(|i| track(i).to_string());
        seeds.collect::<Vec<_>>().join(", ")
    };
    let text = format!(
        "{{\n  \"about\": \"the seeds that the world is reset with; none serves two purposes\",\n  \
         \"training\": \"fresh ones for every generation, named in its line of log.jsonl as trained_on\",\n  \
         \"validation\": [{}],\n  \"finals\": [{}],\n  \"evaluation\": [{}],\n  \"report\": [{}]\n}}\n",
        list(Purpose::Validation, selection.tracks),
        list(Purpose::Finals, selection.final_tracks.saturating_mul(1 + selection.reevaluate)),
        list(Purpose::Evaluation, selection.evaluation_tracks),
        list(Purpose::Report, selection.report_tracks),
    );
    folder.write("tracks.json", text)
}
