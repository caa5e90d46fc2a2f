//! Worlds are stepped in one place: the episode driver of `foveate-core`.

use std::fs;
use std::path::{Path, PathBuf};

/// The driver.
const DRIVER: &str = "crates/foveate-core/src/episode.rs";
/// Worlds and wrappers, which step the world that they change or the process that they stand for.
const WORLDS: [&str; 2] = ["crates/foveate-envs/src", "crates/foveate-gym/src"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Lines on which a world is stepped, outside of the tests at the foot of a file.
fn steps(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect();
    let joined =
        code.join("\n").replace("\n            .step(", ".step(").replace("\n        .step(", ".step(");
    let of_env = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("//")
            && line.split(".step(").zip(line.split(".step(").skip(1)).any(|(before, after)| {
                let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("");
                ["env", "world", "game", "copy"].contains(&name) || after.trim_start().starts_with("Action::")
            })
    };
    joined.lines().filter(of_env).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn worlds_are_stepped_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let mut files = vec![];
    for entry in fs::read_dir(root.join("crates")).expect("crates/") {
        sources(&entry.expect("entry").path().join("src"), &mut files);
    }
    sources(&root.join("xtask/src"), &mut files);
    let mut found = vec![];
    for file in files {
        let name = file.strip_prefix(root).expect("below the root").display().to_string();
        if WORLDS.iter().any(|worlds| name.starts_with(worlds)) || name.ends_with("/tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        found.extend(steps(&text).into_iter().map(|line| format!("{name}: {line}")));
    }
    let expect =
        [format!("{DRIVER}: let outcome = env.step(action).map_err(|source| self.refused(source.into()))?;")];
    assert_eq!(found, expect, "drive worlds with foveate_core::episode::Episode");
}

#[test]
fn a_step_is_found_however_it_is_written() {
    for (text, count) in [
        ("let a = env.step(action)?;", 1),
        ("self.env\n            .step(Action::Discrete(1));", 1),
        ("lane.world.step(x)", 1),
        ("optimizer.step(&gradient); lane.step();", 0),
        ("// env.step(action)", 0),
        ("#[cfg(test)]\nmod tests { env.step(a) }", 0),
    ] {
        assert_eq!(steps(text).len(), count, "{text}");
    }
}
