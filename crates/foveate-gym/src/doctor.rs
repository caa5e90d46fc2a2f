//! Checks that the dependencies of environments are installed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::GymError;
use crate::find::{Python, find_python};
use crate::process::{NoStart, PROTOCOL, Process, granted};

const DOCTOR: &str = include_str!("worker/doctor.py");
/// Time limit for all families together.
const PATIENCE: Duration = Duration::from_mins(5);

/// What is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doctor {
    /// Path of the Python interpreter.
    pub python: String,
    /// Where the interpreter's path came from, as in [`Python::named_by`](crate::Python::named_by).
    pub named_by: String,
    /// Python version.
    pub version: String,
    /// gymnasium version.
    pub gymnasium: String,
    /// numpy version.
    pub numpy: String,
    /// Families of environments.
    pub families: Vec<Family>,
}

/// A family of environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Family {
    /// Name of the family.
    pub name: String,
    /// The environment that was tried.
    pub id: String,
    /// True if it could be made, reset, stepped and drawn.
    pub works: bool,
    /// The reason why it does not work, with the pip command that helps.
    pub why: String,
}

/// Finds Python, lets a worker look for packages, and tries one environment of each family.
///
/// # Errors
/// When there is no Python, or none that can host an environment; the message says what to install.
pub fn doctor() -> Result<Doctor, GymError> {
    #[derive(Deserialize)]
    struct Answer {
        python: String,
        gymnasium: String,
        numpy: String,
        families: Vec<(String, String, bool, String)>,
    }
    let Python { path, named_by } = find_python()?;
    let job = json!({ "protocol": PROTOCOL, "job": "doctor", "more": DOCTOR });
    let id = "gym:ID";
    let begun = Process::begin(&path, &job, &[], PATIENCE);
    let (_, answer) = begun.map_err(|error| match error {
        NoStart::Error(error) => error,
        NoStart::Trouble(trouble) => GymError::NoAnswer {
            id: id.into(),
            why: format!("{trouble}; run `{} -c 'import gymnasium'` to see more", path.display()),
        },
    })?;
    let Answer { python, gymnasium, numpy, families } = granted(id, answer)?;
    let family = |(name, id, works, why)| Family { name, id, works, why };
    Ok(Doctor {
        python: path.display().to_string(),
        named_by: named_by.into(),
        version: python,
        gymnasium,
        numpy,
        families: families.into_iter().map(family).collect(),
    })
}
