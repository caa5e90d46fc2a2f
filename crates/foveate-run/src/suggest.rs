//! What a user may have meant by the name of a world or of a run.

use std::fs;
use std::path::{Path, PathBuf};

use foveate_core::{EnvError, near};
use foveate_envs::registry;

use crate::champion::has_champion;
use crate::error::RunError;

/// Environments of Gymnasium that are often named without `gym:` or without their version.
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

/// Where runs are by themselves.
const RUNS: &str = "runs";

/// Names that are compared in a folder of runs.
const MOST_RUNS: usize = 10_000;

/// ` did you mean WORLD?`, or nothing if no world's name is close to `given`.
pub fn world(given: &str) -> String {
    let worlds = registry::list();
    let native = near::closest(given, worlds.iter().map(|world| world.id));
    let gym = gym(given);
    match (native, gym) {
        (Some(native), Some(gym)) => format!(" did you mean {native}, or {gym} (needs Python)?"),
        (Some(native), None) => format!(" did you mean {native}?"),
        (None, Some(gym)) => format!(" did you mean {gym}?"),
        (None, None) => String::new(),
    }
}

/// The environment of Gymnasium that `given` names without its `gym:`.
fn gym(given: &str) -> Option<String> {
    let prefix = foveate_gym::PREFIX;
    let looks_right = given.len() <= 100
        && given.starts_with(|c: char| c.is_ascii_alphabetic())
        && given.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c));
    let version = given.rsplit_once("-v").map_or("", |(_, version)| version);
    let versioned = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    if OFTEN_NAMED.contains(&given) || given.starts_with(prefix) {
        return (!given.starts_with(prefix)).then(|| format!("{prefix}{given}"));
    }
    let often = near::closest(given, OFTEN_NAMED).map(|id| format!("{prefix}{id}"));
    often.or_else(|| (looks_right && versioned).then(|| format!("{prefix}{given}")))
}

/// The error about a world's name, with the name that was meant.
pub(crate) fn named(error: EnvError) -> RunError {
    let EnvError::UnknownEnv { given, known } = error else { return error.into() };
    let path = Path::new(&given);
    let instead = if path.join("config.toml").is_file() {
        format!(" it is the folder of a run, which goes on with `foveate train --resume {given}`;")
    } else if path.extension().is_some_and(|ending| ending == "toml") && path.is_file() {
        format!(" it is a configuration, which is trained with `foveate train --config {given}`;")
    } else {
        world(&given)
    };
    RunError::BadRequest {
        why: format!(
            "no environment is called {given:?};{instead} `foveate list worlds` shows them: {known}, and gym:ID for \
             any environment of Gymnasium"
        ),
    }
}

/// Says what was meant when `path`, which is to be weights or a run, does not exist.
///
/// # Errors
/// When it does not exist and another name is likely: that of a run, or that of a world, which has weights only once an
/// agent was trained in it.
pub fn missing_weights(path: &Path) -> Result<(), RunError> {
    missing_run(path)?;
    let Some(given) = path.to_str().filter(|_| fs::symlink_metadata(path).is_err()) else { return Ok(()) };
    let hint = world(given);
    let worlds = registry::list();
    let why = if let Some(id) = near::closest(given, worlds.iter().map(|world| world.id)) {
        let champion = if has_champion(id) { ", or name none to use the trained champion" } else { "" };
        format!(
            "{given:?} is no file and no run{}; train an agent with `foveate train {id}` and name its folder, as in \
             {RUNS}/{id}{champion}",
            if id == given { ", but a world" } else { "" }
        )
    } else if !hint.is_empty() || given.starts_with(foveate_gym::PREFIX) {
        let id = gym(given).unwrap_or_else(|| given.to_owned());
        format!(
            "{given:?} is no file and no run, but a world; train an agent with `foveate train {id}` and name its \
             folder, or name an untrained agent as in `random --env {id}`"
        )
    } else if let Some(name) = near::closest(given, ["random", "random-actions"]) {
        format!("cannot read {given}: there is no such file or run; did you mean {name}?")
    } else {
        return Ok(());
    };
    Err(RunError::BadRequest { why })
}

/// Says which run was meant when `path` does not exist.
///
/// # Errors
/// When it does not exist and a run has its name, or nearly.
pub fn missing_run(path: &Path) -> Result<(), RunError> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let Some(run) = near_run(path) else { return Ok(()) };
    Err(RunError::BadRequest {
        why: format!(
            "cannot read {}: there is no such file or folder; did you mean the run {}?",
            path.display(),
            run.display()
        ),
    })
}

/// The run whose name is closest to that of `path`: in the same folder, and for a bare name in `runs`.
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
            ("CartPole-v1", " did you mean gym:CartPole-v1?"),
            ("cartpole", " did you mean gym:CartPole-v1?"),
            ("ALE/Pong-v5", " did you mean gym:ALE/Pong-v5?"),
            ("moon", ""),
            ("a b-v1", ""),
            ("gym:CartPole-v1", ""),
        ] {
            assert_eq!(world(given), expect, "{given}");
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
