//! Skipped tests and steps: recorded while they run, counted at the end, failures in continuous integration.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::root;

/// The variable that names the record; `foveate_toy::needs` and the tests of the Python package append to it.
pub(crate) const RECORD: &str = "FOVEATE_SKIPPED";

/// What may be missing in continuous integration: a part of the line in the record, and the reason.
const MAY_BE_MISSING: [(&str, &str); 5] = [
    (
        "cargo-deny is not installed",
        "it takes longer to build than the tests; .github/workflows/ci.yml installs it",
    ),
    ("advisories cannot be fetched", "they lie in a repository that not every machine can reach"),
    ("Miri is not installed", "it needs a nightly toolchain; .github/workflows/ci.yml installs one"),
    ("only root can try as another user", "continuous integration need not run as root"),
    ("FOVEATE_DATA names no folder", "the published weights are not distributed with Foveate"),
];

/// The file with one line for each skipped test or step.
pub(crate) fn record() -> PathBuf {
    root().join("target/skipped.txt")
}

/// Removes the record of an earlier run.
pub(crate) fn begin() -> Result<()> {
    let record = record();
    fs::create_dir_all(record.parent().expect("it lies in a folder")).context("creating target")?;
    fs::write(&record, "").with_context(|| format!("writing {}", record.display()))
}

/// Records that `step` is skipped, and why.
pub(crate) fn add(step: &str, why: &str) -> Result<()> {
    eprintln!("skipped: {why}");
    let record = record();
    let mut file =
        OpenOptions::new().append(true).create(true).open(&record).context("opening the record")?;
    writeln!(file, "{step}: {why}").with_context(|| format!("writing {}", record.display()))
}

/// Prints what was skipped.
///
/// # Errors
/// With `CI=true`, when something was skipped that may not be missing there.
pub(crate) fn end() -> Result<()> {
    let record = record();
    let text = fs::read_to_string(&record).with_context(|| format!("reading {}", record.display()))?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    eprintln!("\n{} skipped", lines.len());
    for line in &lines {
        let reason = reason(line).map_or(String::new(), |reason| format!(" (may be missing: {reason})"));
        eprintln!("  {line}{reason}");
    }
    let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    verdict(&lines, ci)
}

/// Why what a line of the record names may be missing in continuous integration.
fn reason(line: &str) -> Option<&'static str> {
    MAY_BE_MISSING.iter().find(|(part, _)| line.contains(part)).map(|(_, reason)| *reason)
}

fn verdict(lines: &[&str], ci: bool) -> Result<()> {
    let wrong = lines.iter().filter(|line| reason(line).is_none()).count();
    if ci && wrong > 0 {
        bail!(
            "{wrong} skipped where nothing may be skipped (CI=true): install what the lines above name, or list the need with \
             its reason in xtask/src/skips.rs"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_fails_in_continuous_integration_alone() {
        let miri = "miri: Miri is not installed; rustup toolchain install nightly";
        let python = "crates/foveate-cli/tests/suite/gym.rs a_test: FOVEATE_PYTHON does not name a Python";
        for (lines, ci, passes) in [
            (&[][..], true, true),
            (&[miri], true, true),
            (&[python], false, true),
            (&[python], true, false),
            (&[miri, python], true, false),
        ] {
            assert_eq!(verdict(lines, ci).is_ok(), passes, "{lines:?}, CI={ci}");
        }
    }
}
