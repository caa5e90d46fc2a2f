//! Whether an environment keeps Gymnasium's promises.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::GymError;
use crate::find::find_python;
use crate::process::{NoStart, PROTOCOL, Process, Trouble, granted};
use crate::settings::Settings;

const CHECK: &str = include_str!("worker/check.py");
/// A worker tells that it goes on at least once in this time, as long as its environment does not keep it waiting.
const BETWEEN_SIGNS: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Most steps of an episode that was played; `None` if the environment hung or its process died first.
    pub steps: Option<u32>,
    /// Each promise, kept or not.
    pub findings: Vec<Finding>,
}

/// One promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name, in a word or two.
    pub name: String,
    /// Whether it is kept.
    pub verdict: Verdict,
    /// What was seen.
    pub words: String,
    /// Python's traceback, if there is one.
    #[serde(default)]
    pub more: String,
}

/// Whether a promise is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is.
    Fine,
    /// It is not.
    Fault,
    /// Something to know, and no fault.
    Note,
}

impl Finding {
    fn new(name: &str, verdict: Verdict, words: &str) -> Self {
        Finding { name: name.to_owned(), verdict, words: words.to_owned(), more: String::new() }
    }
}

impl Checked {
    /// The promises that are not kept.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict == Verdict::Fault)
    }
}

/// Plays episodes in two processes, in all ways that could make a difference and must not, and looks at everything that
/// comes out. Episodes have up to `steps` steps; by itself 1,000, or as many as take the environment less than a minute
/// altogether, but 50 at least. Each finding is told as soon as it is made.
///
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
    // An environment that cannot be played need not be played twice.
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
    // Where one process cannot repeat itself, two cannot agree.
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

/// What two processes must agree on.
#[derive(Deserialize)]
struct Answer {
    digest: String,
    steps: u32,
}

/// Lets one process play, with another order of sets if it is the second; `None` if it did not come to the end.
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
            why: format!("{trouble} before it was made; `foveate doctor` looks for the cause"),
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
        // Signs of life come now and then, not before everything that is done.
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

/// What the worker was doing, in its own words.
fn place(process: &Process) -> String {
    let mut bytes = [0; 200];
    if process.look(0, &mut bytes).is_err() {
        return "making the environment".into();
    }
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
