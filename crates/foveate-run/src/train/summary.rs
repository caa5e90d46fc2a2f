//! `summary.json`: the results of a finished run, for programs.

use serde_json::json;

use foveate_train::{Event, Summary};

use crate::RunError;
use crate::config::TrainConfig;
use crate::folder::FolderHandle;
use crate::lock::host;
use crate::replay::sha256_hex;

const NAME: &str = "summary.json";
/// Identifies the file format and its version.
const FORMAT: &str = "foveate-summary-1";

/// Writes the report of a run with its context: the name and the bytes of the file of the best weights, wall
/// and CPU seconds of the run, and its threads. Values that depend on the machine are only under `machine`.
pub(super) fn write(
    folder: &FolderHandle,
    config: &TrainConfig,
    report: &Event,
    (file, weights): (&str, &[u8]),
    ((seconds, cpu_seconds), workers): ((f64, f64), usize),
) -> Result<(), RunError> {
    let Event::Report { generation, steps, judging_steps, summary, seeds, returns } = report else {
        return Ok(());
    };
    let Summary { n, mean, std, median, q25, q75, ci95 } = summary;
    let value = json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "build": crate::BUILD,
        "score": {
            "mean": mean, "std": std, "std_ddof": 0, "n": n, "interval_95": ci95,
            "median": median, "q25": q25, "q75": q75,
        },
        "seeds": seeds,
        "returns": returns,
        "weights": { "file": file, "sha256": sha256_hex(weights), "generation": generation },
        "world": config.env,
        "agent": config.agent,
        "seed": config.seed,
        "training_steps": steps,
        "judging_steps": judging_steps,
        "machine": { "host": host(), "workers": workers, "seconds": seconds, "cpu_seconds": cpu_seconds },
    });
    folder.write(NAME, format!("{value:#}\n"))
}

/// Removes the summary of a run that is no longer complete.
pub(super) fn remove(folder: &FolderHandle) -> Result<(), RunError> {
    if folder.has(NAME) { folder.remove(NAME) } else { Ok(()) }
}
