//! Suggestions for misspelt names of worlds and runs.

use std::fs;
use std::path::{Path, PathBuf};

use foveate_agents::Sees;
use foveate_core::hint::{Hint, Setting, Task};
use foveate_core::{EnvError, near};
use foveate_registry::{AGENTS, WORLDS};

use crate::error::{NOTHING, RunError};

/// The default folder of runs.
const RUNS: &str = "runs";

/// Maximum number of names that are compared in a folder of runs.
const MOST_RUNS: usize = 10_000;

/// ` did you mean WORLD?`, or an empty text if no world's name is close to `given`.
pub fn world(given: &str) -> String {
    match (native(given), member(given)) {
        (Some(native), Some((member, needs))) => {
            format!(" did you mean {native}, or {member} (needs {needs})?")
        }
        (Some(name), None) => format!(" did you mean {name}?"),
        (None, Some((member, _))) => format!(" did you mean {member}?"),
        (None, None) => String::new(),
    }
}

/// The world that `given` may mean, among those that are not families.
fn native(given: &str) -> Option<&'static str> {
    let names = WORLDS.iter().filter(|world| world.family.is_none()).map(|world| world.name);
    near::closest(given, names).filter(|name| *name != given)
}

/// The member of a family of worlds that `given` names without the family's prefix, and its requirement.
fn member(given: &str) -> Option<(String, &'static str)> {
    let families = WORLDS.iter().filter_map(|world| world.family);
    families.into_iter().find_map(|family| Some(((family.suggest)(given)?, family.needs)))
}

/// The error about a world's name, with a suggestion.
pub(crate) fn named(error: EnvError) -> RunError {
    let EnvError::UnknownEnv { given, known } = error else { return error.into() };
    let path = Path::new(&given);
    let instead = if path.join("config.toml").is_file() {
        format!(" it is the folder of a run, which goes on with {};", Task::Resume.of(&given))
    } else if path.extension().is_some_and(|ending| ending == "toml") && path.is_file() {
        let train = Hint::from(Task::Train).with(Setting::Config.to(&given));
        format!(" it is a configuration, which is trained with {train};")
    } else {
        world(&given)
    };
    let families: String = WORLDS
        .iter()
        .filter_map(|world| Some(format!(", and {} for {}", world.name, world.family?.members)))
        .collect();
    RunError::BadRequest {
        why: format!(
            "no environment is called {given:?};{instead} {} shows them: {known}{families}",
            Task::ListWorlds
        ),
    }
}

/// Suggests a name when `path`, which should be weights or a run, does not exist.
///
/// # Errors
/// When it does not exist and another name is likely: that of a run, that of weights, or that of a world, which may have weights
/// only after training.
pub fn missing_weights(path: &Path) -> Result<(), RunError> {
    missing_run(path)?;
    // A path or a name with this ending is a file, however close it is to another name.
    let is_name = path.file_name() == Some(path.as_os_str())
        && path.extension().is_none_or(|ending| ending != "safetensors");
    let absent = is_name && fs::symlink_metadata(path).is_err();
    let Some(given) = path.to_str().filter(|_| absent) else { return Ok(()) };
    let named = WORLDS.get(given);
    let known = without_weights().chain(WORLDS.iter().map(|world| world.name));
    let nearest = near::closest(given, known).filter(|name| without_weights().any(|own| own == *name));
    let why = if let Some(name) = nearest.filter(|_| named.is_none()) {
        format!("did you mean {name}?")
    } else {
        let other = || native(given).map(str::to_owned).or_else(|| member(given).map(|(id, _)| id));
        let (what, id) = match named {
            Some(_) => ("it is a world:".to_owned(), given.to_owned()),
            None => match other() {
                Some(id) => (format!("did you mean the world {id}?"), id),
                None => return Ok(()),
            },
        };
        format!(
            "{what} train an agent with {} and name its folder, or name an untrained agent: random, with {}",
            Task::Train.of(&id),
            Setting::World.to(&id)
        )
    };
    Err(RunError::BadRequest { why: format!("cannot read {given}: {NOTHING}; {why}") })
}

/// Names that are valid in place of weights: random weights, agents without weights, and champions.
fn without_weights() -> impl Iterator<Item = &'static str> {
    let blind = AGENTS.iter().filter(|agent| agent.sees == Sees::Nothing);
    std::iter::once("random")
        .chain(blind.map(|agent| agent.name))
        .chain(WORLDS.iter().flat_map(|world| world.champions).map(|champion| champion.name))
}

/// Suggests a run when `path` does not exist.
///
/// # Errors
/// When it does not exist and a run has the same or a similar name.
pub fn missing_run(path: &Path) -> Result<(), RunError> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let Some(run) = near_run(path) else { return Ok(()) };
    Err(RunError::BadRequest {
        why: format!("cannot read {}: {NOTHING}; did you mean the run {}?", path.display(), run.display()),
    })
}

/// The run whose name is closest to that of `path`: in the same folder, or in `runs` for a bare name.
fn near_run(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new(RUNS));
    let entries = fs::read_dir(folder).ok()?.take(MOST_RUNS).flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("config.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    near::closest(name, names.iter().map(String::as_str)).map(|name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_of_ours_and_of_gymnasium() {
        for (given, expect) in [
            ("car_racing", " did you mean car-racing?"),
            ("carracing", " did you mean car-racing?"),
            ("CarRacing-v3", " did you mean car-racing, or gym:CarRacing-v3 (needs Python)?"),
            ("CartPole-v1", " did you mean cartpole-swingup, or gym:CartPole-v1 (needs Python)?"),
            ("cartpole", " did you mean cartpole-swingup, or gym:CartPole-v1 (needs Python)?"),
            ("Acrobot-v1", " did you mean gym:Acrobot-v1?"),
            ("ALE/Pong-v5", " did you mean pong, or gym:ALE/Pong-v5 (needs Python)?"),
            ("moon", ""),
            ("a b-v1", ""),
            ("gym:CartPole-v1", ""),
        ] {
            assert_eq!(world(given), expect, "{given}");
        }
    }

    #[test]
    fn names_of_weight_files_are_no_worlds() {
        for (given, want) in [
            ("car_racing", "; did you mean car-racing?"),
            ("CartPole-v1", "; did you mean the world cartpole-swingup? train an agent with"),
            ("pong", "; it is a world: train an agent with"),
            ("gym:CartPole-v1", "; it is a world: train an agent with"),
        ] {
            let said = missing_weights(Path::new(given)).expect_err(given).to_string();
            assert!(said.starts_with(&format!("cannot read {given}: {NOTHING}{want}")), "{said}");
        }
        for given in ["cartpole_pi.safetensors", "car-racing.safetensors", "moon", "old/car-racing", "./pong"]
        {
            assert!(missing_weights(Path::new(given)).is_ok(), "{given}");
        }
    }

    #[test]
    fn runs_in_the_same_folder() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for run in ["car-racing", "car-racing-2", "second"] {
            fs::create_dir(dir.path().join(run)).expect("writable");
            fs::write(dir.path().join(run).join("config.toml"), "").expect("writable");
        }
        fs::create_dir(dir.path().join("secnod")).expect("writable");
        for (given, expect) in [
            ("car_racing", Some("car-racing")),
            ("car-racing-3", Some("car-racing")),
            ("secondd", Some("second")),
            ("moon", None),
        ] {
            let expect = expect.map(|run| dir.path().join(run));
            assert_eq!(near_run(&dir.path().join(given)), expect, "{given}");
            assert_eq!(missing_run(&dir.path().join(given)).is_err(), expect.is_some());
        }
        assert!(missing_run(&dir.path().join("second")).is_ok(), "it is there");
    }
}
