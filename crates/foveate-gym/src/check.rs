//! Whether an environment keeps Gymnasium's promises.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::GymError;
use crate::find::find_python;
use crate::process::{NoStart, PROTOCOL, Process, granted};
use crate::settings::Settings;

const CHECK: &str = include_str!("worker/check.py");
/// How long all episodes of a check may take.
const PATIENCE: Duration = Duration::from_mins(20);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Most steps of an episode that was played.
    pub steps: u32,
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

impl Checked {
    /// The promises that are not kept.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict == Verdict::Fault)
    }
}

/// Plays episodes in two processes, in all ways that could make a difference and must not, and looks at everything that
/// comes out. Episodes have up to `steps` steps; by itself 1,000, or as many as take the environment less than a minute
/// altogether, but 50 at least.
///
/// # Errors
/// When there is no Python, or the environment cannot be made.
pub fn check(settings: &Settings, steps: Option<u32>) -> Result<Checked, GymError> {
    #[derive(Deserialize)]
    struct Answer {
        findings: Vec<Finding>,
        digest: String,
        steps: u32,
    }
    let python = find_python()?.path;
    let Settings { id, args, image, wrapper, path, .. } = settings;
    let name = settings.name();
    let run = |hash_seed: &str, brief: bool, steps: Option<u32>| -> Result<Answer, GymError> {
        let job = json!({
            "protocol": PROTOCOL, "job": "check", "more": CHECK, "brief": brief,
            "id": id, "args": args, "image": image, "wrapper": wrapper, "path": path,
            "steps": steps,
        });
        let begun = Process::begin(&python, &job, &[("PYTHONHASHSEED", hash_seed)], PATIENCE);
        let (_, answer) = begun.map_err(|error| match error {
            NoStart::Error(error) => error,
            NoStart::Trouble(trouble) => GymError::NoAnswer {
                id: name.clone(),
                why: format!("{trouble}; it did so while it was checked, which is a fault"),
            },
        })?;
        granted(&name, answer)
    };
    let first = run("0", false, steps)?;
    let second = run("1", true, Some(first.steps))?;
    let mut findings = first.findings;
    // Where one process cannot repeat itself, two cannot agree.
    let broken = |name: &str| findings.iter().any(|f| f.name == name && f.verdict == Verdict::Fault);
    if !broken("plays") && !broken("repeats") {
        let same = first.digest == second.digest;
        findings.push(Finding {
            name: "processes".into(),
            verdict: if same { Verdict::Fine } else { Verdict::Fault },
            words: if same {
                "another process plays the same episodes".into()
            } else {
                "another process plays other episodes: something depends on the order of a set, on addresses or on the \
                 clock"
                    .into()
            },
            more: String::new(),
        });
    }
    Ok(Checked { steps: first.steps, findings })
}
