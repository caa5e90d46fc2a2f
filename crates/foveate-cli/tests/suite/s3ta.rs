//! Training of an agent with heads by V-trace and from an expert, killed and resumed; its analyses.

use std::fmt::Write;
use std::fs;

use crate::common::{Dir, assert_same, check_fails, digits_without_config};
use sha2::{Digest, Sha256};

/// A small S3TA in a small grid world, seen in colours.
const SMALL: &str = r#"
version = 1

[env]
id = "empty-5x5"
picture = "rgb"

[env.options]
actions = "five"

[agent]
name = "s3ta"

[agent.config]
convolutions = [{ filters = 4, size = 8, stride = 8 }]
channels = 12
keys = 4
heads = 2
frequencies = 2
query_hidden = [8]
answer_hidden = [16]
units = 8
trunk = 8

[recipe]
max_steps = 20
init = "torch"
selection = { every = 400, tracks = 2, finalists = 1, final_tracks = 2, report_tracks = 3, evaluation_tracks = 0 }

[[recipe.stage]]
name = "expert"
algorithm = "imitation"
steps = 200
tracks = 4
patience = "off"
expert_rounds = 1
updates = 6
pieces = 2
piece = 4
burn_in = 2

[[recipe.stage]]
name = "policy"
algorithm = "vtrace"
steps = 1500
tracks = 4
patience = "off"
unroll = 8
batch = 4
epochs = 2
reduce = "mean"
"#;

#[test]
fn a_killed_training_ends_with_the_same_bytes_and_its_heads_are_analysed() {
    let dir = Dir::new();
    dir.write("small.toml", SMALL);
    let train = |name: &'static str, workers: &'static str| {
        ["train", "--config", "small.toml", "--name", name, "--workers", workers, "--no-videos"]
    };
    dir.ok(&train("straight", "1"));
    let expect = digits_without_config(&dir.path("runs/straight"));
    dir.kill_and_resume(&train("killed", "2"), "runs/killed", &["--workers", "3"]);
    assert_same(&digits_without_config(&dir.path("runs/killed")), &expect);
    let log = fs::read_to_string(dir.path("runs/straight/log.jsonl")).expect("a log");
    assert!(log.contains("policy_lag") && log.contains("\"stage\":\"expert\""), "{log}");

    let said = dir.ok(&["heads", "weights", "runs/straight", "--episodes", "2", "--out", "found"]);
    assert!(said.contains("head 1: entropy") && said.contains("found/index.html"), "{said}");
    for picture in ["overlays", "marginals", "entropy"] {
        let png = fs::read(dir.path(&format!("found/figures/{picture}.png"))).expect("it was drawn");
        assert!(png.starts_with(b"\x89PNG"), "{picture}");
    }
    let json = dir.json(&["heads", "threshold", "runs/straight", "--episodes", "2", "--json"]);
    assert_eq!(
        (&json["analysis"], json["findings"].as_array().map(Vec::len)),
        (&"threshold".into(), Some(8))
    );
    for (flag, value, wants) in [
        ("--episodes", "0", "at least 1 episode"),
        ("--decisions", "0", "1 decision"),
        ("--episodes", "18446744073709551615", "are more than"),
        ("--max-steps", "0", "1 step"),
        ("--out", "small.toml", "is a file"),
    ] {
        check_fails(&dir, &["heads", "saliency", "runs/straight", flag, value], &[wants]);
    }
    check_fails(
        &dir,
        &["heads", "weights", "--env", "door-key-5x5", "--episodes", "1"],
        &["no heads that attend to the cells of a picture"],
    );
}

/// The kept weights, and what their cards say about them.
#[test]
fn kept_weights_play_as_their_cards_say() {
    for (name, episodes) in [("breakout", 2), ("pong", 1), ("pong-rewards", 2)] {
        plays_as_its_card_says(name, episodes);
    }
}

fn plays_as_its_card_says(name: &str, episodes: usize) {
    let champions = concat!(env!("CARGO_MANIFEST_DIR"), "/../../champions");
    let path = format!("{champions}/{name}.safetensors");
    let card = fs::read_to_string(format!("{champions}/{name}.md")).expect("the card");
    let file = fs::read(&path).expect("the weights");
    let mut sum = String::new();
    for byte in Sha256::digest(&file) {
        let _ = write!(sum, "{byte:02x}");
    }
    assert!(card.contains(&sum), "champions/{name}.md must name the file's SHA-256, {sum}");
    if foveate_toy::needs::python().is_none() {
        return;
    }
    let report = Dir::new().json(&["eval", &path, "--seeds", &format!("0..{episodes}"), "--json"]);
    for seed in 0..episodes {
        let row = format!("| {seed} | {} | {} |", report["returns"][seed], report["lengths"][seed]);
        let row = row.replace(".0 |", " |");
        assert!(card.contains(&row), "{name}: {row}");
    }
}
