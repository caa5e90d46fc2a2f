//! DoomTakeCover with the same commands as all worlds.

use std::process::Command;

use crate::common::{Dir, npz};
use serde_json::Value;

/// Whether there is a Python with vizdoom; prints a message if not.
fn vizdoom() -> bool {
    foveate_toy::needs::worlds_python().is_some()
}

fn command(dir: &Dir, args: &[&str]) -> Command {
    let mut command = dir.command(args);
    command.env("FOVEATE_PYTHON", std::env::var_os("FOVEATE_WORLDS_PYTHON").unwrap_or_default());
    command
}

/// Runs a command that must succeed; returns its output.
#[track_caller]
fn ok(dir: &Dir, args: &[&str]) -> String {
    let done = command(dir, args).output().expect("the binary starts");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("output is text")
}

#[track_caller]
fn json(dir: &Dir, args: &[&str]) -> Value {
    serde_json::from_str(&ok(dir, args)).expect("one JSON object")
}

const GAME: [&str; 4] = ["--env", "take-cover", "--picture", "fast"];

#[test]
fn an_untrained_agent_in_every_variant() {
    if !vizdoom() {
        return;
    }
    let dir = Dir::new();
    let eval = |more: &[&str]| json(&dir, &[&["eval", "random:3", "--json"], &GAME[..], more].concat());
    let all = eval(&["--seeds", "0..5", "--workers", "2"]);
    assert_eq!(all["env"].as_str(), Some("take-cover"));
    assert!(
        all["terminated"]
            .as_array()
            .is_some_and(|ends| ends.len() == 5 && ends.iter().all(|end| *end == true))
    );
    let returns = |report: &Value| report["returns"].as_array().expect("a list").clone();
    assert_eq!(returns(&all)[2..4], returns(&eval(&["--seeds", "2..4", "--workers", "1"])));
    assert!(returns(&all).iter().all(|r| r.as_f64().is_some_and(|r| (50.0..2101.0).contains(&r))));

    let table = json(
        &dir,
        &[
            &["stress", "random:3", "--shifts", "blur", "--severities", "3", "--episodes", "2", "--json"],
            &GAME[..],
        ]
        .concat(),
    );
    let rows = table["agents"][0]["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["original", "higher-walls", "floor-texture", "hovering-text", "blur:3"]);
    // Published scores are those of the published weights.
    assert!(rows[1]["published"].is_null(), "{}", rows[1]);
    // A contact sheet of one step, with the views for people and for agents.
    ok(&dir, &[&["stress", "random:3", "--at", "30", "--looks", "looks.png"], &GAME[..]].concat());
    assert!(dir.read("looks.png").starts_with(b"\x89PNG"));
}

#[test]
fn the_champion_plays_as_its_card_says() {
    if !vizdoom() {
        return;
    }
    let dir = Dir::new();
    let card = concat!(env!("CARGO_MANIFEST_DIR"), "/../../champions/take-cover.md");
    let card = std::fs::read_to_string(card).expect("it has a card");
    let rows: Vec<Vec<f64>> = card
        .lines()
        .skip_while(|line| !line.starts_with("| seed | return | steps |"))
        .skip(2)
        .map_while(|line| line.strip_prefix('|')?.strip_suffix('|'))
        .map(|row| row.split('|').map(|cell| cell.trim().parse().expect("a number")).collect())
        .collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [2.0, 3.0]);
    let said = json(&dir, &["eval", "--env", "take-cover", "--seeds", "2..4", "--json"]);
    assert_eq!(said["picture"], "exact", "the world of its training");
    let list = |name: &str| -> Vec<f64> {
        said[name].as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
    };
    for (i, name) in [(1, "returns"), (2, "lengths")] {
        assert_eq!(list(name), rows.iter().map(|row| row[i]).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn films_and_reports() {
    if !vizdoom() {
        return;
    }
    let dir = Dir::new();
    ok(&dir, &[&["watch", "random", "--steps", "20", "--out", "film.gif"], &GAME[..]].concat());
    assert!(dir.read("film.gif").starts_with(b"GIF89a"));
    let explain = ["explain", "random", "--episodes", "2", "--decisions", "2", "--max-steps", "80", "--json"];
    let report = json(&dir, &[&explain, &GAME[..]].concat());
    assert!(report.is_object() && dir.path("report/index.html").exists());
}

#[test]
fn training_and_the_published_weights() {
    if !vizdoom() {
        return;
    }
    let dir = Dir::new();
    let small = [
        "recipe.stage.0.steps=600",
        "recipe.stage.0.population=4",
        "recipe.stage.1.steps=4500",
        "recipe.stage.1.tracks=2",
        "recipe.stage.1.updates=3",
        "recipe.stage.2.steps=600",
        "recipe.stage.2.population=4",
        "recipe.selection.tracks=2",
        "recipe.selection.final_tracks=2",
        "recipe.selection.report_tracks=2",
    ];
    let sets = small.iter().flat_map(|set| ["--set", set]);
    let train: Vec<&str> = ["train", "take-cover", "--no-videos"].into_iter().chain(sets).collect();
    ok(&dir, &train);
    let config = String::from_utf8(dir.read("runs/take-cover/config.toml")).expect("text");
    assert!(config.contains("picture = \"fast\"") && config.contains("algorithm = \"rank-es\""), "{config}");
    let report = json(&dir, &["eval", "runs/take-cover", "--seeds", "0..2", "--json"]);
    assert_eq!((report["env"].as_str(), report["picture"].as_str()), (Some("take-cover"), Some("fast")));

    // The published number of parameters, in their order: a bias that always presses one button.
    let mut numbers = vec![0.0_f32; 3633];
    numbers[3616] = 5.0;
    dir.write("published.npz", npz(&numbers));
    let said = ok(&dir, &["import", "published.npz", "--env", "take-cover"]);
    assert!(said.contains("3633 weights") && said.contains("[1, 16]"), "{said}");
    let report = json(&dir, &["eval", "published.safetensors", "--seeds", "0..2", "--json"]);
    assert_eq!((report["env"].as_str(), report["picture"].as_str()), (Some("take-cover"), Some("exact")));
    // The number of parameters determines the world.
    let done = dir.run(&["import", "published.npz", "--out", "guessed.safetensors"]);
    assert!(done.code == Some(0) && done.stderr.contains("take-cover"), "{done:?}");
    assert_eq!(dir.read("guessed.safetensors"), dir.read("published.safetensors"));
}

#[test]
fn without_vizdoom_it_says_how_to_get_it() {
    // The Python for other tests does not have it.
    let Some(python) = foveate_toy::needs::python() else { return };
    let there = Command::new(python).args(["-c", "import vizdoom"]).output().expect("Python starts");
    if there.status.success() {
        foveate_toy::needs::skip("FOVEATE_PYTHON has vizdoom, so its absence cannot be tested");
        return;
    }
    let dir = Dir::new();
    for variant in ["original", "higher-walls"] {
        let done = dir.run(&["eval", "random", "--env", "take-cover", "--variant", variant]);
        assert_eq!(done.code, Some(1));
        let lines: Vec<&str> = done.stderr.lines().collect();
        assert!(
            lines.len() == 1
                && lines[0].starts_with("error: take-cover: vizdoom cannot be imported")
                && lines[0].ends_with("-m pip install vizdoom"),
            "{done:?}"
        );
    }
}

#[test]
fn everything_of_it_is_listed() {
    let dir = Dir::new();
    let list = dir.ok(&["list", "all"]);
    for word in [
        "world take-cover:",
        "higher-walls",
        "floor-texture",
        "hovering-text",
        "640x480",
        "DoomTakeCover on one computer",
    ] {
        assert!(list.contains(word), "{word}");
    }
    for (args, words) in [
        (
            &["--picture", "classic"][..],
            "take-cover has no picture \"classic\"; choose from: exact, near, fast",
        ),
        (&["--variant", "bar"], "take-cover has no variant \"bar\"; choose from: higher-walls"),
        (&["--option", "lives=3"], "take-cover has no option \"lives\"; choose from: actions, timeout"),
    ] {
        let done = dir.run(&[&["eval", "random", "--env", "take-cover"], args].concat());
        assert!(done.code == Some(1) && done.stderr.contains(words), "{done:?}");
    }
}
