//! Worlds by name: what the command line and every other outer door ask for.

use std::collections::BTreeMap;
use std::sync::Arc;

use foveate_core::{Env, EnvError, ImageBuf};

use crate::car_racing;
pub use crate::car_racing::variants::{Parameter, VariantInfo};
use crate::shift::{Plan, Shifted};
use crate::take_cover;

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnvRequest {
    /// Name of the world.
    pub id: String,
    /// Name of the picture; `None` for the world's own.
    pub picture: Option<String>,
    /// Variants of the looks, each a name or several as in `bar+color:amplitude=0.1`.
    pub variants: Vec<String>,
    /// Options by name.
    pub options: BTreeMap<String, String>,
    /// Shifts of what is seen and done, each as [`Plan`] reads it, as in `hue:2+noise:4@200`.
    pub shifts: Vec<String>,
    /// Pictures for a variant that shows a video, which only whoever may read files can load.
    pub video: Option<Arc<Vec<ImageBuf>>>,
}

/// One world, described.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvInfo {
    /// Its name.
    pub id: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its pictures, the default first.
    pub pictures: Vec<Line>,
    /// Its variants.
    pub variants: &'static [VariantInfo],
    /// Its options.
    pub options: Vec<Line>,
    /// The mean return from which on it counts as solved, where there is an agreement.
    pub solved_at: Option<f64>,
    /// What differs from episode to episode, for texts: `track`; with an `s` for several.
    pub instance: &'static str,
}

/// A name and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What users type.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
}

impl Line {
    pub(crate) fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Line { name: name.into(), about: about.into() }
    }
}

struct Entry {
    id: &'static str,
    info: fn() -> EnvInfo,
    make: fn(&EnvRequest) -> Result<Box<dyn Env>, EnvError>,
}

const WORLDS: &[Entry] = &[
    Entry { id: car_racing::ID, info: car_racing::request::info, make: car_racing::request::make },
    Entry { id: take_cover::ID, info: take_cover::request::info, make: take_cover::request::make },
];

/// Builds the world that `request` describes.
///
/// ```
/// use foveate_envs::registry::{EnvRequest, make};
/// let request = EnvRequest {
///     id: "car-racing".into(),
///     picture: Some("none".into()),
///     options: [("continuous".into(), "false".into())].into(),
///     ..EnvRequest::default()
/// };
/// assert_eq!(make(&request)?.spec().max_steps, Some(1000));
/// # Ok::<(), foveate_core::EnvError>(())
/// ```
///
/// # Errors
/// [`EnvError::UnknownEnv`] or [`EnvError::UnknownOption`] with the known names, [`EnvError::BadOption`] for values
/// that do not fit or do not go together.
pub fn make(request: &EnvRequest) -> Result<Box<dyn Env>, EnvError> {
    let Some(entry) = WORLDS.iter().find(|entry| entry.id == request.id) else {
        let known: Vec<&str> = WORLDS.iter().map(|entry| entry.id).collect();
        return Err(EnvError::UnknownEnv { given: request.id.clone(), known: known.join(", ") });
    };
    let env = (entry.make)(request)?;
    let plan = Plan::parse_all(&request.shifts)?;
    if plan.is_empty() { Ok(env) } else { Ok(Box::new(Shifted::new(env, &plan)?)) }
}

/// All worlds.
pub fn list() -> Vec<EnvInfo> {
    WORLDS.iter().map(|entry| (entry.info)()).collect()
}
