//! Finished rows on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use foveate_envs::registry::EnvRequest;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::atomic;
use crate::error::RunError;
use crate::replay::sha256_hex;
use crate::weights::AgentFile;

/// Changes when the digits of a row may.
const VERSION: u32 = 1;

/// What the episodes of a row came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) returns: Vec<f64>,
    pub(super) lengths: Vec<u64>,
    pub(super) terminated: Vec<bool>,
}

/// A row with everything that it depends on.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Everything that a row depends on, as text.
pub(super) fn key(
    file: &AgentFile,
    world: &EnvRequest,
    seed: u64,
    episodes: usize,
    max_steps: Option<u64>,
) -> String {
    let EnvRequest { id, picture, variants, options, shifts, .. } = world;
    let world = json!({
        "id": id, "picture": picture, "variants": variants, "options": options, "shifts": shifts,
    });
    let agent = json!({ "name": file.name(), "config": file.config(), "sha256": file.sha256() });
    json!({
        "version": VERSION, "foveate": env!("CARGO_PKG_VERSION"), "world": world, "agent": agent,
        "seed": seed, "episodes": episodes, "max_steps": max_steps,
    })
    .to_string()
}

/// A folder of rows.
pub(super) struct Keeper(PathBuf);

impl Keeper {
    pub(super) fn open(folder: &Path) -> Result<Self, RunError> {
        let rows = folder.join("rows");
        fs::create_dir_all(&rows).map_err(RunError::io("create", &rows))?;
        Ok(Keeper(rows))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.0.join(format!("{}.json", &sha256_hex(key.as_bytes())[..16]))
    }

    /// The row, if it is there and whole; a broken file is as good as none, its row is driven again.
    pub(super) fn find(&self, key: &str) -> Option<Outcome> {
        let kept: Kept = serde_json::from_slice(&fs::read(self.path(key)).ok()?).ok()?;
        let Outcome { returns, lengths, terminated } = &kept.outcome;
        let whole = returns.len() == lengths.len() && returns.len() == terminated.len();
        (kept.key == key && whole).then_some(kept.outcome)
    }

    pub(super) fn keep(&self, key: &str, outcome: &Outcome) -> Result<(), RunError> {
        let kept = Kept { key: key.into(), outcome: outcome.clone() };
        let text = serde_json::to_string(&kept).expect("numbers and text can be written");
        atomic::write(self.path(key), text)
    }
}
