//! Checks that an environment keeps Gymnasium's contract.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::GymError;
use crate::find::find_python;
use crate::process::{NoStart, PROTOCOL, Process, Trouble, granted};
use crate::settings::Settings;
use foveate_core::hint::Task;

const CHECK: &str = include_str!("worker/check.py");
/// A working worker sends a sign of life at least once in this interval, unless its environment keeps it
/// waiting.
const BETWEEN_SIGNS: Duration = Duration::from_secs(1);

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Largest number of steps in an episode played; `None` if the environment hung or its process died
    /// first.
    pub steps: Option<u32>,
    /// One finding for each rule of the contract, met or violated.
    pub findings: Vec<Finding>,
}

/// One rule of the contract and whether the environment follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the rule, one or two words.
    pub name: String,
    /// Whether the environment follows it.
    pub verdict: Verdict,
    /// What was observed.
    pub words: String,
    /// Python's traceback, if there is one.
    #[serde(default)]
    pub more: String,
}

/// Result for one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The environment follows the rule.
    Fine,
    /// The environment violates the rule.
    Fault,
    /// Worth knowing, but not a violation.
    Note,
}

impl Finding {
    fn new(name: &str, verdict: Verdict, words: &str) -> Self {
        Finding { name: name.to_owned(), verdict, words: words.to_owned(), more: String::new() }
    }
}

impl Checked {
    /// The violated rules.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict == Verdict::Fault)
    }
}

/// Plays episodes in two processes, varies everything that must not make a difference, and checks all
/// results. Episodes have up to `steps` steps. Without `steps` the limit is 1,000, or as many as take the
/// environment less than a minute altogether, but at least 50. Calls `tell` with each finding as soon as it
/// is made.
/// # Errors
/// When there is no Python, or the environment cannot be made.
pub fn check(
    settings: &Settings,
    steps: Option<u32>,
    tell: &mut dyn FnMut(&Finding),
) -> Result<Checked, GymError> {
    let python = find_python()?.path;
    let mut findings = Vec::new();
    let mut add = |finding: Finding| {
        tell(&finding);
        findings.push(finding);
    };
    let first = run(settings, &python, false, steps, &mut add)?;
    // A second process is of no use for an environment that cannot be played.
    let plays = findings.iter().all(|f| f.name != "plays");
    let mut add = |finding: Finding| {
        tell(&finding);
        findings.push(finding);
    };
    let second = match &first {
        Some(first) if plays => run(settings, &python, true, Some(first.steps), &mut add)?,
        _ => None,
    };
    let steps = first.as_ref().map(|first| first.steps);
    // If one process cannot repeat an episode, two processes cannot agree.
    let repeats = findings.iter().all(|f| f.name != "repeats" || f.verdict != Verdict::Fault);
    if let (Some(first), Some(second)) = (first, second)
        && repeats
    {
        let finding = if first.digest == second.digest {
            Finding::new("processes", Verdict::Fine, "another process plays the same episodes")
        } else {
            let words = "another process plays other episodes: something depends on the order of a set, on addresses or on \
                         the clock";
            Finding::new("processes", Verdict::Fault, words)
        };
        tell(&finding);
        findings.push(finding);
    }
    Ok(Checked { steps, findings })
}

/// Results that both processes must agree on.
#[derive(Deserialize)]
struct Answer {
    digest: String,
    steps: u32,
}

/// Runs the check in one process; the second process iterates over sets in another order. `None` if the
/// process did not finish.
fn run(
    settings: &Settings,
    python: &Path,
    second: bool,
    steps: Option<u32>,
    add: &mut dyn FnMut(Finding),
) -> Result<Option<Answer>, GymError> {
    let Settings { id, args, image, wrapper, path, timeout, start_timeout, .. } = settings;
    let name = settings.name();
    let job = json!({
        "protocol": PROTOCOL, "job": "check", "more": CHECK, "brief": second,
        "id": id, "args": args, "image": image, "wrapper": wrapper, "path": path,
        "steps": steps,
    });
    let hash_seed = if second { "1" } else { "0" };
    let begun = Process::begin(python, &job, &[("PYTHONHASHSEED", hash_seed)], *start_timeout);
    let (mut process, mut word) = begun.map_err(|error| match error {
        NoStart::Error(error) => error,
        NoStart::Trouble(trouble) => GymError::NoAnswer {
            id: name.clone(),
            why: format!("{trouble} before it was made; {} looks for the cause", Task::Doctor),
        },
    })?;
    let mut limit = ("start_timeout", *start_timeout);
    loop {
        if let Ok(finding) = Finding::deserialize(&word["finding"]) {
            add(finding);
        } else if let Some(name) = word["limit"].as_str() {
            limit = if name == "timeout" { ("timeout", *timeout) } else { ("start_timeout", *start_timeout) };
        } else {
            return granted(&name, word).map(Some);
        }
        // Signs of life arrive at intervals, not before every operation.
        word = match process.more_words(limit.1 + BETWEEN_SIGNS) {
            Ok(word) => word,
            Err(trouble) => {
                let place = place(&process);
                let mut words = format!("{place}: {trouble}");
                if let Trouble::Hung(_) = trouble {
                    let (option, seconds) = (limit.0, limit.1.as_secs());
                    words = format!(
                        "{place} took longer than {seconds} s, which is what the option {option} allows"
                    );
                }
                let name = if matches!(trouble, Trouble::Hung(_)) { "hangs" } else { "dies" };
                let more = if let Trouble::Gone(printed) = trouble { printed } else { String::new() };
                add(Finding { more, ..Finding::new(name, Verdict::Fault, &words) });
                return Ok(None);
            }
        };
    }
}

/// The operation in progress, as the worker describes it.
fn place(process: &Process) -> String {
    let mut bytes = [0; 200];
    if process.look(0, &mut bytes).is_err() {
        return "making the environment".into();
    }
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
