//! Voting kernels in every command: training, evaluation, video, import.

use crate::common::{Dir, check_fails, made_up, npz};
use foveate::run::weights::AgentFile;
use serde_json::json;

/// A very short run.
const SHORT: &str = "
[env]
picture = \"fast\"

[recipe]
max_steps = 30
selection = { every = 200, tracks = 1, finalists = 1, final_tracks = 1, report_tracks = 2, evaluation_tracks = 0 }
stage = [{ name = \"only\", steps = 400, population = 4, sigma = 0.1, learning_rate = 1.0 }]
";

#[test]
fn every_kernel_trains_and_its_weights_know_it() {
    let dir = Dir::new();
    dir.write("short.toml", SHORT);
    for (name, settings) in [
        ("relu", &["agent.config.voting.kernel=relu"][..]),
        ("hybrid", &["agent.config.voting={kernel=\"hybrid\", features=4, hyperplanes=3, same_length=1.4}"]),
        (
            "iap",
            &[
                "agent.name=iap",
                "agent.config.controller={kind=\"mlp\", hidden=[8]}",
                "agent.config.patch=2",
                "agent.config.stride=6",
                "agent.config.aggregation=learned",
                "agent.config.values.colour=true",
            ],
        ),
        ("levels", &["agent.name=iap-hierarchical", "agent.config.duration=[2, 9]"]),
    ] {
        let sets = settings.iter().flat_map(|set| ["--set", set]);
        let begin = ["train", "car-racing", "--config", "short.toml", "--name", name];
        let args: Vec<&str> = begin.into_iter().chain(["--no-videos"]).chain(sets).collect();
        dir.ok(&args);
        let run = format!("runs/{name}");
        let report = dir.json(&["eval", &run, "--episodes", "2", "--max-steps", "20", "--json"]);
        assert_eq!(report["returns"].as_array().map(Vec::len), Some(2), "{report}");
        dir.ok(&["watch", &run, "--at", "3", "--out", &format!("{name}.png")]);
        assert!(dir.read(&format!("{name}.png")).starts_with(b"\x89PNG"), "{name}");
    }
    let told = dir.ok(&["compare", "runs/relu", "runs/hybrid", "--out", "kernels.svg"]);
    assert!(told.contains("| relu | 1 |") && told.ends_with("kernels.svg\n"), "{told}");
    assert!(dir.read("kernels.svg").starts_with(b"<svg "));
    let all = dir.json(&["compare", "runs/relu", "runs/iap", "--json"]);
    assert_eq!(all["groups"][1]["runs"][0]["name"], json!("iap"));
    check_fails(&dir, &["compare", "runs/relu", "runs/nobody"], &["runs/nobody", "check the path"]);
    let file = AgentFile::load(&dir.path("runs/hybrid/best.safetensors")).expect("a weight file");
    assert_eq!(file.config()["voting"]["hyperplanes"], json!(3));
}

#[test]
fn published_weights_may_vote_otherwise() {
    let dir = Dir::new();
    dir.write("w.npz", npz(&made_up()));
    dir.write("relu.toml", "[voting]\nkernel = \"relu\"\n");
    dir.ok(&[
        "import",
        "w.npz",
        "--agent",
        "attention-agent",
        "--config",
        "relu.toml",
        "--out",
        "relu.safetensors",
    ]);
    let file = AgentFile::load(&dir.path("relu.safetensors")).expect("a weight file");
    assert_eq!(file.config()["voting"]["kernel"], json!("relu"));
    dir.write("typo.toml", "[voting]\nkernel = \"rely\"\n");
    check_fails(
        &dir,
        &["import", "w.npz", "--agent", "attention-agent", "--config", "typo.toml"],
        &["voting.kernel wants one of \"softmax\"", "the text \"rely\"; did you mean relu?"],
    );
}

#[test]
fn demonstrations_need_an_lstm() {
    let dir = Dir::new();
    check_fails(
        &dir,
        &["train", "car-racing", "--set", "agent.name=iap-hierarchical"],
        &["iap-hierarchical cannot learn from an expert", "imitation"],
    );
}
