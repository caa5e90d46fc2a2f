//! Storage of finished rows on disk.

use std::path::Path;

use foveate_envs::registry::EnvRequest;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::replay::sha256_hex;
use crate::weights::AgentFile;

/// Increase this when the results of a row may change.
const VERSION: u32 = 1;
/// Longer files are rejected: the maximum number of episodes of a row, at 60 bytes each.
const MAX_FILE: u64 = 64 << 20;

/// The results of a row's episodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RowResult {
    pub(super) returns: Vec<f64>,
    pub(super) lengths: Vec<u64>,
    pub(super) terminated: Vec<bool>,
}

/// A row with everything that it depends on.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    #[serde(flatten)]
    outcome: RowResult,
    /// Checksum of the row, to detect changes.
    sha256: String,
}

/// The checksum of a row.
fn sum(key: &str, outcome: &RowResult) -> String {
    sha256_hex(text(&(key, outcome)).as_bytes())
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and text can be written")
}

/// Everything that a row depends on, as text.
pub(crate) fn key(
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
        "version": VERSION, "foveate": crate::VERSION, "world": world, "agent": agent,
        "seed": seed, "episodes": episodes, "max_steps": max_steps,
    })
    .to_string()
}

/// A folder of stored rows.
pub(super) struct Keeper(FolderHandle);

impl Keeper {
    pub(super) fn open(folder: &Path) -> Result<Self, RunError> {
        let folder = FolderHandle::open_or_create(folder)?;
        folder.sweep();
        let rows = folder.make_folder("rows")?;
        rows.sweep();
        Ok(Keeper(rows))
    }

    fn name(key: &str) -> String {
        format!("{}.json", &sha256_hex(key.as_bytes())[..16])
    }

    /// The stored row, if it is there and intact; the row of a broken or changed file is run again.
    pub(super) fn find(&self, key: &str) -> Option<RowResult> {
        let bytes = self.0.read(&Self::name(key), MAX_FILE).ok()?.ok()?;
        let kept: Kept = serde_json::from_slice(&bytes).ok()?;
        let RowResult { returns, lengths, terminated } = &kept.outcome;
        let whole = returns.len() == lengths.len() && returns.len() == terminated.len();
        (kept.key == key && whole && kept.sha256 == sum(key, &kept.outcome)).then_some(kept.outcome)
    }

    pub(super) fn keep(&self, key: &str, outcome: &RowResult) -> Result<(), RunError> {
        let kept = Kept { key: key.into(), outcome: outcome.clone(), sha256: sum(key, outcome) };
        self.0.write(&Self::name(key), text(&kept))
    }
}
