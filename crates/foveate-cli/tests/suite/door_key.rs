//! `DoorKey`: its champions, and short trainings by deep Q-learning, by policy gradients and from the expert, with any number of
//! workers, killed and resumed, and in a larger grid with the weights of a smaller one.

use crate::common::{Dir, assert_same, digits_without_config};

#[test]
fn the_champions_open_the_door() {
    let dir = Dir::new();
    let solved = |args: &[&str]| {
        let report = dir.json(&[&["eval", "--json", "--seeds", "100..130"], args].concat());
        let ends = report["terminated"].as_array().expect("a list").clone();
        ends.iter().filter(|end| end.as_bool() == Some(true)).count()
    };
    assert_eq!(solved(&["--env", "door-key-5x5"]), 30);
    assert_eq!(solved(&["--env", "door-key-16x16"]), 30);
    // In a grid of another size.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../champions/door-key-16x16.safetensors");
    let shown = ["--picture", "one-hot", "--option", "actions=five"];
    assert!(solved(&[&[file, "--env", "door-key-8x8"], &shown[..]].concat()) >= 29);
}

const SHORT: [&str; 10] = [
    "--set",
    "recipe.selection.every=500",
    "--set",
    "recipe.selection.tracks=3",
    "--set",
    "recipe.selection.final_tracks=3",
    "--set",
    "recipe.selection.report_tracks=3",
    "--json",
    "--no-videos",
];

const FEW: [&str; 6] = [
    "--set",
    "recipe.stage.0.steps=1500",
    "--set",
    "recipe.stage.0.tracks=5",
    "--set",
    "recipe.stage.0.max_steps=60",
];

/// A short training with a preset of grid worlds.
fn train<'a>(preset: &'a str, name: &'a str, workers: &'a str) -> Vec<&'a str> {
    let stage: &[&str] = match preset {
        "relational" => &["--set", "recipe.stage.0.steps=1500", "--set", "recipe.stage.0.first=100"],
        "relational-ppo" => &[&FEW[..], &["--set", "recipe.stage.0.batch=50"]].concat(),
        _ => &[&FEW[..], &["--set", "recipe.stage.0.updates=4"]].concat(),
    };
    let world = ["train", "door-key-5x5", "--preset", preset, "--name", name, "--workers", workers];
    [&world, stage, &SHORT[..]].concat()
}

#[test]
fn trainings_give_the_same_bits_with_any_workers_and_after_a_stop() {
    for preset in ["relational", "relational-imitation", "relational-ppo"] {
        let dir = Dir::new();
        dir.ok(&train(preset, "one", "1"));
        let expect = digits_without_config(&dir.path("runs/one"));

        dir.kill_and_resume(&train(preset, "two", "3"), "runs/two", &["--workers", "2"]);
        assert_same(&digits_without_config(&dir.path("runs/two")), &expect);

        // In a larger grid, from these weights.
        let larger = ["--set", "env.id=\"door-key-6x6\"", "--set", "recipe.init={ weights = \"runs/one\" }"];
        dir.ok(&[&train(preset, "three", "2")[..], &larger].concat());
        dir.ok(&["watch", "runs/three", "--out", "a.png", "--seed", "7", "--at", "0"]);
        assert!(dir.read("a.png").starts_with(b"\x89PNG"));
    }
}
