//! `gym:ID`: any Gymnasium environment as a world.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use foveate_core::hint::Setting;
use foveate_core::{Env, EnvError, EnvSpec, near};
use foveate_envs::registry::{Choice, EnvRequest, Family, WorldDescriptor, WorldError};
use foveate_gym::{Gym, GymError, GymWorld, OPTIONS, PREFIX, Settings, hosted};

pub use foveate_gym::{Host, HostedName, ONNX_PROGRAM, OnnxAgent, OnnxModel, host, runs_in};

/// Name of the picture that an environment returns as its observation.
pub const PICTURE: &str = "world";

/// Name of the picture that an environment renders for people.
pub const RENDER: &str = "render";

/// Its entry in [`WORLDS`](crate::WORLDS).
pub(crate) static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    family: Some(Family {
        prefix: PREFIX,
        members: "any environment of Gymnasium",
        needs: "Python",
        suggest,
    }),
    pictures: &[
        Choice { name: PICTURE, about: "what it shows" },
        Choice { name: RENDER, about: "what it draws for people" },
    ],
    options: &const { Choice::all(OPTIONS) },
    has_process: true,
    runs_code: true,
    // All other options (`path`, `gym_wrapper`, every `arg.NAME`) select code or open a file.
    file_options: &["timeout", "start_timeout", "memory", "image", "show", "actions"],
    fallback_picture: Some(RENDER),
    ..WorldDescriptor::new(
        "gym:ID",
        "any environment of Gymnasium, in Python processes of its own; docs/gymnasium.md",
        make,
    )
};

/// The callback set by [`on_notice`].
static LISTENER: RwLock<Option<fn(&str)>> = RwLock::new(None);

/// Registers `listener`: it is called with a readable line when a worker process was replaced, and with
/// Python's tracebacks.
pub fn on_notice(listener: fn(&str)) {
    *LISTENER.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
}

/// Calls the listener, if there is one.
pub(crate) fn tell(text: &str) {
    if let Some(listener) = *LISTENER.read().unwrap_or_else(PoisonError::into_inner) {
        listener(text);
    }
}

/// Passes the error's Python traceback to the listener, if there is one; the error itself has a one-line
/// message.
pub fn with_traceback(error: GymError) -> GymError {
    if let GymError::Refused { story, .. } = &error
        && !story.is_empty()
    {
        tell(story.trim_end());
    }
    error
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let id = request.id.strip_prefix(PREFIX).unwrap_or_default();
    if let Some(variant) = request.variants.first() {
        return Err(EnvError::UnknownOption {
            env: request.id.clone(),
            what: "variant",
            given: variant.clone(),
            known: format!("none; {} changes the environment", Setting::Argument),
        }
        .into());
    }
    let settings = settings(id, request).map_err(WorldError::source_of)?;
    let gym = start(Settings { hosted: hosted(id), ..settings }).map_err(WorldError::source_of)?;
    Ok(Box::new(GymWorld::new(gym)))
}

/// The settings of the environment `id`.
fn settings(id: &str, request: &EnvRequest) -> Result<Settings, GymError> {
    let options = request.options.iter().map(|(name, value)| (&**name, &**value));
    let drawn = request.picture.as_deref() == Some(RENDER);
    Ok(Settings { drawn, ..Settings::parse(id, options)? })
}

/// Changes the request for an environment so that its world shows all that an agent needs which takes observations as the
/// environment gives them.
pub fn show_all(request: &mut EnvRequest) {
    if request.id.starts_with(PREFIX) {
        request.options.entry("show".into()).or_insert_with(|| "all".into());
    }
}

/// Loads the ONNX model of a file for the world that `request` describes, which has this `spec`.
///
/// # Errors
/// When there is no Python with onnxruntime, or when the file is no ONNX model of a policy.
pub fn onnx(path: &Path, request: &EnvRequest, spec: &EnvSpec) -> Result<Arc<OnnxModel>, GymError> {
    let id = request.id.strip_prefix(PREFIX).filter(|_| request.picture.as_deref() != Some(RENDER));
    let settings = id.map(|id| settings(id, request)).transpose()?;
    OnnxModel::load(path, spec, settings.as_ref()).map_err(with_traceback)
}

/// Starts an environment, or reuses a running one: worlds that differ only in wrappers and shifts (such as
/// the rows of a table over many shifts) share its processes.
pub(crate) fn start(settings: Settings) -> Result<Arc<Gym>, GymError> {
    static RUNNING: Mutex<Vec<Weak<Gym>>> = Mutex::new(Vec::new());
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.retain(|gym| gym.strong_count() > 0);
    if let Some(gym) = running.iter().filter_map(Weak::upgrade).find(|gym| *gym.settings() == settings) {
        return Ok(gym);
    }
    let notice = |text: &str| tell(&format!("note: {text}"));
    let gym = Gym::new(settings, Arc::new(notice)).map_err(with_traceback)?;
    if let Some(hosted) = &gym.settings().hosted {
        hosted.keep(&gym);
    }
    running.push(Arc::downgrade(&gym));
    Ok(gym)
}

/// Environments that users often name without `gym:` or without their version.
const OFTEN_NAMED: [&str; 12] = [
    "CartPole-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Acrobot-v1",
    "Pendulum-v1",
    "LunarLander-v3",
    "BipedalWalker-v3",
    "FrozenLake-v1",
    "Taxi-v3",
    "CliffWalking-v1",
    "Blackjack-v1",
    "Ant-v5",
];

/// The environment that `given` means when its `gym:` prefix or version is missing.
fn suggest(given: &str) -> Option<String> {
    let looks_right = given.len() <= 100
        && given.starts_with(|c: char| c.is_ascii_alphabetic())
        && given.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c));
    let version = given.rsplit_once("-v").map_or("", |(_, version)| version);
    let versioned = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    if OFTEN_NAMED.contains(&given) || given.starts_with(PREFIX) {
        return (!given.starts_with(PREFIX)).then(|| format!("{PREFIX}{given}"));
    }
    let often = near::closest(given, OFTEN_NAMED).map(|id| format!("{PREFIX}{id}"));
    often.or_else(|| (looks_right && versioned).then(|| format!("{PREFIX}{given}")))
}
