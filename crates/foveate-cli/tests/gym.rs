//! Environments of Gymnasium behind the same commands as native worlds.

mod common;

use common::Dir;
use serde_json::Value;

const TOYS: &str = concat!("path=", env!("CARGO_MANIFEST_DIR"), "/../foveate-gym/tests/toys");

fn python() -> bool {
    let there = std::env::var_os("FOVEATE_PYTHON").is_some();
    if !there {
        eprintln!("skipped: FOVEATE_PYTHON names no Python with gymnasium; run cargo xtask test");
    }
    there
}

/// Runs a command that must succeed, on the toy `name`.
#[track_caller]
fn on_toy(dir: &Dir, name: &str, args: &[&str]) -> String {
    let id = format!("gym:foveate_toys:Toys/{name}-v0");
    let world = ["--env", &id, "--option", TOYS];
    dir.ok(&[args, &world].concat())
}

#[test]
fn an_untrained_agent_drives_any_environment_with_a_picture() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let eval = ["eval", "random:3", "--seeds", "0..4", "--json"];
    let report = |args: &[&str]| -> Value {
        let mut report: Value =
            serde_json::from_str(&on_toy(&dir, "Picture", args)).expect("one JSON object");
        report["steps_per_cpu_second"] = Value::Null;
        report
    };
    let one = report(&[&eval[..], &["--workers", "1"]].concat());
    assert_eq!(one["lengths"], serde_json::json!([60, 60, 60, 60]), "its own time limit");
    assert_eq!(one["picture"], "world");
    assert_eq!(one["weights"], "random weights of seed 3");
    assert_eq!(report(&[&eval[..], &["--workers", "3"]].concat()), one);
    let stream = ["eval", "random:3", "--seed", "5", "--episodes", "5", "--json"];
    let (one, three) = (
        report(&[&stream[..], &["--workers", "1"]].concat()),
        report(&[&stream[..], &["--workers", "3"]].concat()),
    );
    assert_eq!(one, three);
    let returns = one["returns"].as_array().expect("a list");
    assert!(returns.windows(2).any(|pair| pair[0] != pair[1]), "other episodes: {returns:?}");
}

#[test]
fn films_show_what_the_environment_draws() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    on_toy(&dir, "Picture", &["watch", "random", "--out", "a.png", "--at", "9"]);
    assert!(dir.read("a.png").starts_with(b"\x89PNG"));
    on_toy(&dir, "Grey", &["watch", "random", "--out", "a.gif", "--steps", "5"]);
    assert!(dir.read("a.gif").starts_with(b"GIF"));
}

#[test]
fn what_fails_is_one_line_after_the_traceback() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let check = |world: &[&str], parts: &[&str]| {
        let done = dir.run(&[&["eval", "random", "--episodes", "1"], world].concat());
        assert_eq!(done.code, Some(1), "{done:?}");
        let last = done.stderr.trim_end().lines().next_back().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(';'), "{done:?}");
        for part in parts {
            assert!(done.stderr.contains(part), "{part}: {done:?}");
        }
    };
    check(&["--env", "gym:Nothing-v0"], &["gym:Nothing-v0: ", "name its module too"]);
    check(&["--env", "gym:Nothing-v0", "--picture", "fast"], &["no picture \"fast\"; choose from: world"]);
    check(&["--env", "gym:Nothing-v0", "--variant", "bar"], &["no variant \"bar\"", "--env-arg"]);
    check(&["--env", "gym:Nothing-v0", "--option", "lap=3"], &["there is no option \"lap\"; choose from"]);
    let broken = "gym:foveate_toys:Toys/Trivial-v0";
    check(&["--env", broken, "--option", TOYS, "--env-arg", "x=1"], &["Traceback", "TypeError"]);
    let missing =
        dir.command(&["eval", "random", "--env", "gym:X-v0"]).env("FOVEATE_PYTHON", "/no/python").output();
    let said = String::from_utf8_lossy(&missing.expect("it starts").stderr).into_owned();
    assert!(said.contains("FOVEATE_PYTHON: there is no /no/python; install Python"), "{said}");
}
