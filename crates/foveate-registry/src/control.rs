//! Tasks of the DeepMind Control suite, with MuJoCo's own library.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use foveate_control::{Control, ControlConfig, TASKS, Task, task};
use foveate_core::{Env, EnvError, EnvSpec};
use foveate_envs::registry::{Choice, EnvRequest, WorldDescriptor, WorldError};
use foveate_gym::find_python;
use foveate_mujoco::{Found, Library, MujocoError, Search};

/// The option that names the library's file.
const LIBRARY: &str = "library";

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 2] = [
    ("repeat", "control steps for which an action is held, 1 to 100; their rewards are added (default: 1)"),
    (
        LIBRARY,
        "file of MuJoCo's library, or a folder with it (default: the one of FOVEATE_MUJOCO or of Python's package mujoco)",
    ),
];

const PICTURES: [Choice; 1] = Choice::all([("state", "positions and velocities, as numbers")]);

/// Their entries in [`WORLDS`](crate::WORLDS), in the order of [`TASKS`].
pub(crate) static DESCRIPTORS: [WorldDescriptor; 6] = [
    describe(
        "cheetah-run",
        "a planar animal runs as fast as it can; DeepMind Control, with MuJoCo's library",
        0,
    ),
    describe(
        "walker-walk",
        "a planar figure stands up and walks; DeepMind Control, with MuJoCo's library",
        1,
    ),
    describe("cartpole-swingup", "a cart swings its pole up; DeepMind Control, with MuJoCo's library", 2),
    describe(
        "ball-in-cup-catch",
        "a cup catches a ball on a string; DeepMind Control, with MuJoCo's library",
        3,
    ),
    describe(
        "reacher-easy",
        "an arm keeps its finger in a target; DeepMind Control, with MuJoCo's library",
        4,
    ),
    describe("finger-spin", "a finger keeps a body spinning; DeepMind Control, with MuJoCo's library", 5),
];

const fn describe(name: &'static str, summary: &'static str, index: usize) -> WorldDescriptor {
    let known = TASK_TEXTS[index];
    WorldDescriptor {
        pictures: &PICTURES,
        options: &const { Choice::all(OPTIONS) },
        actions: known.0,
        sensors: known.1,
        presets: &["gymnasium"],
        needs_library: true,
        code_options: &[LIBRARY],
        spec: Some(spec),
        ..WorldDescriptor::new(name, summary, make)
    }
}

/// Names of actions and of sensors of each task.
const TASK_TEXTS: [(&[&str], &[&str]); 6] = foveate_control::NAMES;

fn of(request: &EnvRequest) -> Result<(&'static Task, ControlConfig), EnvError> {
    let unknown =
        || EnvError::UnknownEnv { given: request.id.clone(), known: TASKS.map(|task| task.name).join(", ") };
    let task = task(&request.id).ok_or_else(unknown)?;
    let repeat = request.options.get("repeat").map_or(Ok(1), |text| {
        let good = text.parse().ok().filter(|repeat| (1..=ControlConfig::MOST_REPEATS).contains(repeat));
        good.ok_or_else(|| EnvError::BadOption {
            env: request.id.clone(),
            why: format!("repeat is a whole number from 1 to {}, not {text:?}", ControlConfig::MOST_REPEATS),
        })
    })?;
    Ok((task, ControlConfig { repeat }))
}

fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    let (task, config) = of(request)?;
    Ok(Control::spec_of(task, config))
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let (task, config) = of(request)?;
    let outside = |why: String| EnvError::Outside { env: request.id.clone(), why };
    let library = request.options.get(LIBRARY).map(PathBuf::from);
    let library = open(library).map_err(|error| outside(error.to_string()))?;
    Ok(Box::new(Control::new(&library, task, config).map_err(WorldError::source_of)?))
}

/// Finds MuJoCo's library: in `named`, or where [`Search`] looks.
///
/// # Errors
/// As [`Search::find`].
pub fn find(named: Option<PathBuf>) -> Result<Found, MujocoError> {
    let python = find_python().ok().map(|python| python.path);
    Search { library: named, python }.find()
}

/// Finds and opens MuJoCo's library; a file is opened once.
///
/// # Errors
/// As [`Search::find`] and [`Library::open`].
pub fn open(named: Option<PathBuf>) -> Result<Library, MujocoError> {
    static OPEN: Mutex<BTreeMap<PathBuf, Library>> = Mutex::new(BTreeMap::new());
    let path = find(named)?.path;
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = open.get(&path) {
        return Ok(library.clone());
    }
    let library = Library::open(&path)?;
    open.insert(path, library.clone());
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_described_and_requests_are_checked() {
        for (world, task) in DESCRIPTORS.iter().zip(TASKS) {
            assert_eq!((world.name, world.actions, world.sensors), (task.name, task.actions, task.sensors));
        }
        let request = |options: &[(&str, &str)]| EnvRequest {
            id: "cheetah-run".into(),
            options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            ..EnvRequest::default()
        };
        assert_eq!(spec(&request(&[("repeat", "4")])).expect("fine").max_steps, Some(250));
        for bad in ["0", "101", "-1", "two"] {
            let said = spec(&request(&[("repeat", bad)])).expect_err(bad).to_string();
            assert!(said.contains("repeat is a whole number from 1 to 100"), "{said}");
        }
        let said = make(&request(&[(LIBRARY, "/nowhere")])).err().expect("no library").to_string();
        assert!(said.contains("there is none at /nowhere") && said.lines().count() == 1, "{said}");
        assert!(said.contains("pip install mujoco==3.17.0"), "{said}");
    }
}
