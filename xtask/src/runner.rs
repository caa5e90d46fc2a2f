//! Runs the tests: by cargo-nextest where it is installed, by `cargo test` where it is not.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, Result};

use crate::{cargo, root, run, skips};

/// Slowest tests that a run lists.
const SLOWEST: usize = 10;

static NEXTEST: LazyLock<bool> = LazyLock::new(|| {
    let version = cargo().args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
});

/// The tests that cargo's arguments `chosen` select; what follows `--` in them are parts of names.
pub(crate) fn tests(chosen: &[&str]) -> Command {
    let mut cargo = cargo();
    cargo.args(if *NEXTEST { &["nextest", "run"][..] } else { &["test"] });
    environment(cargo.arg("--no-fail-fast").args(chosen));
    cargo
}

/// Arguments that choose the tests of a few seconds.
pub(crate) fn quick() -> &'static [&'static str] {
    if *NEXTEST { &["--profile", "quick"] } else { &["--lib"] }
}

/// The documentation tests, which `cargo test` has run with the others.
pub(crate) fn doctests() -> Result<()> {
    if !*NEXTEST {
        return Ok(());
    }
    let mut cargo = cargo();
    environment(cargo.args(["test", "--doc", "--workspace", "--no-fail-fast", "--quiet"]));
    run("documentation tests", &mut cargo)
}

/// All of it is compiled once: what would be kept for the next edit costs time and disk.
fn environment(cargo: &mut Command) {
    cargo.env("CARGO_INCREMENTAL", "0").env(skips::RECORD, skips::record());
}

/// Runs `tests` to the end and lists the slowest.
pub(crate) fn run_tests(step: &str, tests: &mut Command) -> Result<()> {
    let report = report();
    if *NEXTEST {
        let _ = fs::remove_file(&report);
    } else {
        eprintln!(
            "cargo-nextest is not installed: one test program after the other, and no list of the slowest tests"
        );
    }
    let outcome = run(step, tests);
    if let Ok(text) = fs::read_to_string(&report) {
        eprintln!("the {SLOWEST} slowest tests, in seconds:");
        for (seconds, name) in slowest(&text).with_context(|| format!("reading {}", report.display()))? {
            eprintln!("{seconds:9.1}  {name}");
        }
    }
    outcome
}

/// Where `.config/nextest.toml` puts the times of all tests.
fn report() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("nextest/default/junit.xml")
}

/// The longest tests of a `JUnit` report, the longest first.
fn slowest(report: &str) -> Result<Vec<(f64, String)>> {
    let mut all = Vec::new();
    for case in report.split("<testcase ").skip(1) {
        let (attributes, _) = case.split_once('>').unwrap_or((case, ""));
        let attributes = format!(" {attributes}");
        let value = |name: &str| {
            let (_, rest) = attributes.split_once(&format!(" {name}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let (program, name, seconds) = (value("classname"), value("name"), value("time"));
        let (Some(program), Some(name), Some(seconds)) = (program, name, seconds) else {
            anyhow::bail!("a test case without classname, name or time")
        };
        all.push((seconds.parse()?, format!("{program} {name}")));
    }
    all.sort_by(|a: &(f64, String), b| b.0.total_cmp(&a.0));
    all.truncate(SLOWEST);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first() {
        let case = |name: &str, time: f64| {
            format!(
                "<testcase name=\"{name}\" classname=\"crate::suite\" timestamp=\"now\" time=\"{time}\">\n</testcase>"
            )
        };
        let report: String = (0..20_u8).map(|i| case(&format!("t{i}"), f64::from(i * 7 % 20))).collect();
        let slowest = slowest(&report).expect("times");
        let times: Vec<f64> = slowest.iter().map(|(seconds, _)| *seconds).collect();
        assert_eq!(times, [19.0, 18.0, 17.0, 16.0, 15.0, 14.0, 13.0, 12.0, 11.0, 10.0]);
        assert_eq!(slowest[0].1, "crate::suite t17");
        assert!(super::slowest("<testcase name=\"x\">").is_err());
    }
}
