//! Exported agents decide as they do here: the same observations, in five episodes of their world, asked of ONNX Runtime.
//!
//! `FOVEATE_PYTHON` names a Python with the pinned packages; without it these tests are skipped with a message.

use std::fs;
use std::path::Path;
use std::process::Command;

use foveate::agents::registry::{self, Init};
use foveate::core::{ActContext, ActMode, Action, Observation, Seed};
use foveate::run::weights::AgentFile;
use foveate::run::worlds;
use foveate::{EnvRequest, Player, WorldSpec};
use foveate_toy::needs;
use serde_json::{Value, json};

use crate::common::{Dir, check_fails};

/// Numbers that differ by less are the same.
const SAME: f64 = 1e-5;

/// What an agent saw and did in some steps.
#[derive(Default)]
struct Record {
    observations: Vec<u8>,
    shape: Vec<usize>,
    kind: &'static str,
    starts: Vec<bool>,
    rewards: Vec<f64>,
    /// The last choice, −1 for none.
    choices: Vec<i64>,
    attention: Vec<u8>,
    actions: Vec<u8>,
    selected: Vec<u8>,
    values: Vec<Option<f32>>,
}

impl Record {
    fn see(&mut self, observation: Observation<'_>) {
        match observation {
            Observation::Vector(numbers) => {
                self.kind = "float32";
                self.shape = vec![numbers.len()];
                self.observations.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
            }
            Observation::Grid(grid) => {
                self.kind = "uint8";
                self.shape = vec![grid.rows(), grid.columns(), grid.channels()];
                self.observations.extend(grid.codes());
            }
            other => {
                let pixels = other.image().expect("a picture");
                let is = pixels.shape();
                let all = [is.frames, is.height, is.width, is.channels];
                self.kind = "uint8";
                self.shape = all[usize::from(is.frames == 1)..].to_vec();
                self.observations.extend(pixels.bytes());
            }
        }
    }

    fn write(&self, folder: &Path, first: &Value, bounds: &Value) {
        let about = json!({
            "shape": self.shape, "kind": self.kind, "starts": self.starts, "rewards": self.rewards,
            "choices": self.choices, "values": self.values, "first": first, "bounds": bounds,
        });
        fs::create_dir_all(folder).expect("a folder");
        for (name, bytes) in [
            ("record.json", about.to_string().as_bytes()),
            ("observations", &self.observations),
            ("attention", &self.attention),
            ("actions", &self.actions),
            ("selected", &self.selected),
        ] {
            fs::write(folder.join(name), bytes).expect("writable");
        }
    }
}

/// The first of the largest numbers, as the world chooses.
fn first_largest(numbers: &[f64]) -> usize {
    (0..numbers.len()).fold(0, |best, i| if numbers[i] > numbers[best] { i } else { best })
}

/// Drives the agent of `file` through `episodes` of at most `steps` steps.
fn drive(file: &AgentFile, world: &EnvRequest, episodes: u64, steps: usize) -> Record {
    let mut env = worlds::make(world.clone()).expect("the world");
    let mut agent = file.agent().expect("good weights");
    let mut record = Record::default();
    let discrete = env.spec().action.is_discrete();
    for episode in 0..episodes {
        let seed = Seed::root(episode);
        let mut context = ActContext::new(seed, ActMode::Greedy);
        env.reset(Some(episode));
        agent.begin_episode(seed);
        for step in 0..steps {
            record.see(env.observation());
            record.starts.push(step == 0);
            record.rewards.push(context.reward);
            record.choices.push(context.choice.map_or(-1, |choice| choice as i64));
            let decision = agent.act(env.observation(), &mut context).expect("it fits");
            let attention = decision.attention.expect("it attends");
            record.attention.extend(attention.weights().iter().flat_map(|x| x.to_le_bytes()));
            match attention.selected() {
                Some(selected) if !attention.passes_all() => {
                    record.selected.extend(selected.tokens.iter().flat_map(|x| x.to_le_bytes()));
                }
                _ => record.selected.extend([0; 4]),
            }
            let action: Vec<f32> = decision
                .logits
                .map_or_else(|| decision.action.iter().map(|&x| x as f32).collect(), <[f32]>::to_vec);
            record.actions.extend(action.iter().flat_map(|x| x.to_le_bytes()));
            record.values.push(decision.value);
            let choice = first_largest(decision.action);
            let step = if discrete {
                context.choice = Some(choice);
                env.step(Action::Discrete(choice))
            } else {
                env.step(Action::Continuous(decision.action))
            };
            let step = step.expect("a step");
            context.reward = step.reward;
            if step.is_over() {
                break;
            }
        }
    }
    record
}

/// Asks the exported model in `dir` what the agent was asked, and compares the answers.
#[track_caller]
fn compare(name: &str, python: &Path, kind: &str, dir: &Dir, same: f64) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export.py");
    let mut command = Command::new(python);
    command.arg(script).arg(kind).args(["model", "record", "back.safetensors"].map(|name| dir.path(name)));
    let out = command.output().expect("Python starts");
    assert!(out.status.success(), "{name}, {kind}: {}", String::from_utf8_lossy(&out.stderr));
    let worst: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    eprintln!("{name}, {kind}: {worst}");
    for part in ["attention", "action", "value"] {
        assert!(worst[part].as_f64().expect("a number") < same, "{name}, {kind}: {part} differs: {worst}");
    }
    let count = |part: &str| worst[part].as_u64().expect("a count");
    // Two patches of almost as many votes, once in several hundred steps.
    assert!(count("ties") * 300 <= count("steps"), "{name}, {kind}: {worst}");
    assert_eq!(count("choices"), 0, "{name}, {kind}: {worst}");
}

/// Compares the agent of `file` in `world` with what its exported forms answer.
#[track_caller]
fn check(name: &str, file: &AgentFile, world: &EnvRequest, (episodes, steps): (u64, usize), same: f64) {
    let pythons = [("onnx", needs::python()), ("torch", needs::torch_python())];
    let (mut record, first, bounds) = (None, first_state(file), told_actions(file));
    for (kind, python) in pythons {
        let Some(python) = python else { continue };
        let record = record.get_or_insert_with(|| drive(file, world, episodes, steps));
        let dir = Dir::new();
        record.write(&dir.path("record"), &first, &bounds);
        file.clone().made_for(world).save(&dir.path("agent.safetensors")).expect("writable");
        let told = dir.json(&[
            "export",
            "agent.safetensors",
            "--to",
            kind,
            "--out",
            "model",
            "--json",
            "--trust-world",
        ]);
        assert_eq!(told["sha256"], file.sha256(), "{name}");
        compare(name, &python, kind, &dir, same);
        if kind == "torch" {
            let back = AgentFile::load(&dir.path("back.safetensors")).expect("weights");
            let bits = |file: &AgentFile| file.params().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!((bits(&back), back.config()), (bits(file), file.config()), "{name}");
            assert_eq!(back.world("back"), file.clone().made_for(world).world("back"), "{name}");
        }
    }
}

/// States that do not begin as zeros: where each has a one.
fn first_state(file: &AgentFile) -> Value {
    file.config().get("first_choice").map_or(json!({}), |choice| json!({ "before": choice }))
}

/// The bounds of actions whose numbers are told to the agent in the step after.
fn told_actions(file: &AgentFile) -> Value {
    let config = file.config();
    let told = match file.name() {
        "iap" => config["last_action"] == "values",
        "attention-neuron" => config.get("first_choice").is_none(),
        _ => false,
    };
    if told { config["actions"].clone() } else { Value::Null }
}

/// The champion of this file in its own world, five episodes.
#[track_caller]
fn check_champion(name: &str, steps: usize, same: f64) {
    let path = format!("{}/../../champions/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    let spec = WorldSpec { trust: true, ..WorldSpec::default() };
    let player = Player::load(Some(Path::new(&path)), &spec).expect("a champion");
    let file = AgentFile::load(Path::new(&path)).expect("a champion");
    check(name, &file, &player.world, (5, steps), same);
}

/// An agent of these settings with drawn weights, two episodes.
#[track_caller]
fn check_drawn(agent: &str, settings: &Value, world: &EnvRequest, steps: usize) {
    let params =
        registry::initial_params(agent, settings, Init::Torch, Seed::root(7)).expect("good settings");
    let file = AgentFile::new(agent, settings, params).expect("good settings");
    check(&format!("{agent} {settings}"), &file, world, (2, steps), SAME);
}

fn world(id: &str, options: &[(&str, &str)]) -> EnvRequest {
    let options = options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    EnvRequest { id: id.into(), options, ..EnvRequest::default() }
}

#[test]
fn attention_agents_decide_the_same() {
    check_champion("car-racing", 300, SAME);
    let settings = json!({ "stride": 8, "features": {
        "colour": true, "histogram": { "bins": 3 }, "conv": { "filters": 2, "size": 3, "stride": 2 } } });
    check_drawn("attention-agent", &settings, &world("car-racing", &[]), 20);
}

#[test]
fn implicit_attention_decides_the_same() {
    let base = json!({ "stride": 8, "top_k": 5, "query_dim": 6 });
    for more in [
        json!({}),
        json!({ "selection": { "apart": 20 }, "last_action": "values", "values": {
            "conv": { "filters": 2, "size": 3, "stride": 2, "evolved": false, "seed": 3 } } }),
        json!({ "selection": { "apart": 60 }, "last_action": "choice", "controller": { "kind": "mlp", "hidden": [7, 5] } }),
        json!({ "selection": "best_in_place", "aggregation": "learned", "controller": { "kind": "linear" } }),
        json!({ "selection": "least", "voting": { "kernel": "elu", "features": 5, "seed": 2 } }),
        json!({ "voting": { "kernel": "exp" } }),
        json!({ "voting": { "kernel": "softmax_kernel", "same_length": 1.5 }, "aggregation": "learned" }),
        json!({ "voting": { "kernel": "softmax" }, "patch": 1, "stride": 6, "values": { "colour": true } }),
    ] {
        let mut settings = base.clone();
        settings.as_object_mut().expect("settings").extend(more.as_object().expect("settings").clone());
        check_drawn("iap", &settings, &world("car-racing", &[]), 15);
    }
}

#[test]
fn attention_neurons_decide_the_same() {
    check_champion("cartpole-swingup-harder", 300, SAME);
    // Its scores are not divided, so they enlarge errors: our own decisions in single precision are as far from double precision.
    check_champion("cartpole-swingup-harder-913", 300, 5.0 * SAME);
    check_champion("car-racing-attention-neuron", 200, SAME);
    for activation in ["sigmoid", "softmax"] {
        let settings = json!({ "activation": activation, "bias": true, "squash": false, "layers": [6, 5], "scale": "sqrt_d" });
        check_drawn("attention-neuron", &settings, &world("cartpole-swingup-harder", &[]), 40);
    }
    let (grey, scored) = (
        world("car-racing", &[("wrap", "grey+stack:4")]),
        world("car-racing", &[("continuous", "false"), ("wrap", "grey+resize:48x48:area+stack:4")]),
    );
    let picture = json!({ "senses": "picture", "codes": [8, 8] });
    let pong = json!({
        "senses": "picture", "image": [48, 48], "codes": [10, 10], "flatten": "time_slowest", "value_affine": true,
        "message_affine": true, "first_choice": 1, "actions": [[0, 1], [0, 1], [0, 1], [0, 1], [0, 1]],
        "head": { "kind": "convolution", "hidden": [9], "layers": [{ "filters": 4, "size": 4, "stride": 2 }] }
    });
    let dense = json!({ "senses": "picture", "codes": [4, 4], "patch": 10, "head": { "kind": "dense", "hidden": [9] } });
    for (settings, world) in [(picture, &grey), (pong, &scored), (dense, &grey)] {
        check_drawn("attention-neuron", &settings, world, 15);
    }
}

#[test]
fn relational_agents_decide_the_same() {
    check_champion("door-key-5x5", 100, SAME);
    check_champion("door-key-16x16", 300, SAME);
    for (scores, divisor) in [("indices", "largest"), ("pairs", "ten")] {
        let settings = json!({ "scores": scores, "divisor": divisor, "head_dim": 6, "score_dim": 7, "filters": [5, 4], "features": 6 });
        check_drawn("relational", &settings, &world("door-key-5x5", &[("actions", "five")]), 20);
    }
}

#[test]
fn s3ta_decides_the_same() {
    if needs::python().is_some() {
        check_champion("pong-rewards", 150, SAME);
    }
    let world = world("car-racing", &[("continuous", "false"), ("wrap", "grey+resize:40x44:area+stack:2")]);
    let small = json!({
        "view": [44, 40, 2], "actions": 5, "convolutions": [{ "filters": 3, "size": 5, "stride": 3 }], "channels": 12,
        "keys": 4, "heads": 2, "query_hidden": [5], "answer_hidden": [8], "units": 6, "trunk": 0, "pixel_scale": 9.0
    });
    for more in [
        json!({ "peepholes": true, "basis": "mixed-from-zero", "answer_relu": false, "reward_clip": 0.05 }),
        json!({ "attention": "fixed-query", "normalise": true, "basis": "cosines", "score_scale": 0.5 }),
        json!({ "attention": "key-norms", "trunk": 4, "query_hidden": [] }),
    ] {
        let mut settings = small.clone();
        settings.as_object_mut().expect("settings").extend(more.as_object().expect("settings").clone());
        check_drawn("s3ta", &settings, &world, 15);
    }
}

#[test]
fn what_cannot_be_exported_is_said_in_a_sentence() {
    let dir = Dir::new();
    let save = |agent: &str, settings: &Value, name: &str| {
        let params =
            registry::initial_params(agent, settings, Init::Torch, Seed::root(7)).expect("good settings");
        let file = AgentFile::new(agent, settings, params).expect("good settings");
        file.save(&dir.path(name)).expect("writable");
    };
    save("attention-agent", &json!({ "image": [64, 64] }), "small.safetensors");
    save("attention-agent", &json!({ "actions": [[-1, 1]] }), "one.safetensors");
    save("iap", &json!({ "voting": { "kernel": "positive" } }), "random.safetensors");
    save("s3ta", &json!({ "torso": "residual", "view": [20, 20, 3] }), "residual.safetensors");
    save("controller", &json!({ "observation": [[-1, 1]], "actions": [[-1, 1]] }), "plain.safetensors");
    dir.write("taken", "");
    dir.write("file", "");
    for (args, wants) in [
        (
            &["--to", "onnx", "--out", "taken"][..],
            &["taken is there already; move it away, or choose another place with --out"][..],
        ),
        (&["--to", "torch", "--out", "."], &["there already"]),
        (&["--to", "torch", "--out", "file/folder"], &["cannot create file", "file"]),
        (&["--to", "onnx", "--out", "/proc/none/model.onnx"], &["cannot create /proc/none"]),
        (
            &["small.safetensors", "--to", "onnx", "--env", "car-racing"],
            &["built for a picture of 64x64", "96x96"],
        ),
        (
            &["one.safetensors", "--to", "onnx", "--env", "car-racing"],
            &["acts by 1 numbers, the world takes 3"],
        ),
        (&["random.safetensors", "--to", "torch"], &["random features", "voting.kernel"]),
        (&["random.safetensors", "--to", "onnx"], &["random features", "voting.kernel"]),
        (&["residual.safetensors", "--to", "torch"], &["no attention", "torso"]),
        (
            &["plain.safetensors", "--to", "torch"],
            &["agent controller cannot be exported to torch; choose weights of one of: attention-agent, iap"],
        ),
        (&["none.safetensors", "--to", "torch"], &["none.safetensors"]),
    ] {
        check_fails(&dir, &[&["export"], args].concat(), wants);
    }
    let done = dir.run(&["export", "--to", "tensorflow"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("tensorflow") && done.stderr.contains("onnx, torch, hub"),
        "{}",
        done.stderr
    );
}

/// A folder as model hubs keep it: its scores are those that its command gives, also with the folder.
#[test]
fn a_folder_for_a_hub_has_a_card_and_is_taken_as_weights() {
    let dir = Dir::new();
    let flags =
        ["export", "cartpole-swingup-harder", "--to", "hub", "--episodes", "3", "--out", "card", "--json"];
    let told = dir.json(&flags);
    assert_eq!(told["files"], json!(["model.safetensors", "config.json", "README.md"]));
    let own = dir.json(&["eval", "cartpole-swingup-harder", "--episodes", "3", "--seed", "1", "--json"]);
    let card = String::from_utf8(dir.read("card/README.md")).expect("text");
    let config: Value = serde_json::from_slice(&dir.read("card/config.json")).expect("JSON");
    assert_eq!((&config["agent"], &config["world"]["id"]), (&"attention-neuron".into(), &own["env"]));
    let number = |key: &str| own[key].as_f64().expect("a number");
    let value = format!("value: {:.2} +/- {:.2}\n", number("mean"), number("std"));
    let interval = own["ci95"].as_array().expect("an interval");
    let interval: Vec<String> =
        interval.iter().map(|x| format!("{:.2}", x.as_f64().expect("a number"))).collect();
    let interval = format!("interval_95: [{}]\n", interval.join(", "));
    let head = card.strip_prefix("---\n").and_then(|card| card.split_once("\n---\n")).expect("a head").0;
    for part in
        [&value, &interval, "episodes: 3\n", "command: \"foveate eval WEIGHTS --episodes 3 --seed 1\""]
    {
        assert!(format!("{head}\n").contains(part), "{part}: {head}");
    }
    let again = dir.json(&["eval", "card", "--episodes", "3", "--seed", "1", "--json"]);
    assert_eq!(again["returns"], own["returns"]);
    check_fails(&dir, &flags, &["card is there already; move it away, or choose another place"]);
}
