//! The WebAssembly module, against the same sessions natively: every bit of every frame, which holds the picture, the chosen patches,
//! their importance and measured effects, the action and the score.

use std::path::Path;
use std::process::Command;

use foveate_web::BrowserLab;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A program that runs WebAssembly: `node` on the path.
#[track_caller]
fn node() -> Option<&'static str> {
    let found = Command::new("node").arg("--version").output().is_ok_and(|out| out.status.success());
    if !found {
        foveate_toy::needs::skip("node is not on the PATH; install Node.js 20 or newer");
    }
    found.then_some("node")
}

/// The lines of `episode.mjs`, natively.
fn native(plan: &Value) -> Vec<String> {
    let mut lab = BrowserLab::new().expect("the bundled agents act");
    let mut lines = vec![];
    for part in plan.as_array().expect("a list") {
        for command in part["commands"].as_array().expect("a list") {
            lab.handle(&command.to_string());
        }
        for _ in 0..part["steps"].as_u64().expect("a number") {
            lab.handle(r#"{"type":"step"}"#);
            let digest = Sha256::digest(lab.frame());
            lines.push(digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")));
        }
        let messages: Vec<String> = serde_json::from_str(&lab.take_messages()).expect("a list of texts");
        for message in messages.iter().map(|text| serde_json::from_str::<Value>(text).expect("JSON")) {
            assert!(message.get("error").is_none(), "{message}");
            if message["type"] == "end" {
                let end = &message["runners"][0];
                let score = end["score"].as_f64().expect("a number");
                lines.push(format!("{score} {}", end["steps"]));
            }
        }
    }
    lines
}

/// Compares all lines; returns how many episodes ended.
#[track_caller]
fn check(plan: &Value) -> usize {
    let Some(node) = node() else { return usize::MAX };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(node);
    command.arg(here.join("tests/episode.mjs")).arg(here.join("foveate.wasm.gz"));
    // An import is a module by its ending alone.
    let script = std::env::temp_dir().join(format!("foveate-engine-{}.mjs", std::process::id()));
    std::fs::write(&script, include_str!("../src/page/engine.js")).expect("a temporary file");
    let output = command.arg(&script).arg(plan.to_string()).output().expect("node runs");
    let _ = std::fs::remove_file(&script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let (native, module) = (native(plan), text.lines().collect::<Vec<_>>());
    assert_eq!(native.len(), module.len());
    let differs = native.iter().zip(&module).position(|(native, module)| native != module);
    assert_eq!(
        differs, None,
        "the frame of this step differs; if sources changed, build the module again: cargo xtask web"
    );
    native.iter().filter(|line| line.contains(' ')).count()
}

/// A whole episode, then another world's.
fn episode(scene: &str, seed: u64, steps: usize) -> Value {
    let commands = [
        json!({ "type": "open", "scene": scene }),
        json!({ "type": "view", "width": 160, "height": 128 }),
        json!({ "type": "set", "seed": seed, "auto": false, "effects": false }),
    ];
    json!({ "commands": commands, "steps": steps })
}

#[test]
fn car_racing_is_the_same() {
    assert!(check(&json!([episode("car-racing", 3, 1000)])) > 0, "it comes to an end");
}

#[test]
fn cart_pole_with_shuffled_sensors_is_the_same() {
    assert!(check(&json!([episode("cartpole", 3, 1000)])) > 0, "it comes to an end");
}

#[test]
fn door_key_is_the_same() {
    let ended = check(&json!([episode("door-key", 3, 60), episode("large-door-key", 5, 120)]));
    assert!(ended > 0, "it comes to an end");
}

#[test]
fn interventions_and_their_effects_are_the_same() {
    let set = |change: Value| {
        let mut command = json!({ "type": "set" });
        let (Value::Object(command_entries), Value::Object(entries)) = (&mut command, change) else {
            unreachable!("both are objects")
        };
        command_entries.extend(entries);
        command
    };
    let of = |commands: &[Value], steps: usize| json!({ "commands": commands, "steps": steps });
    check(&json!([
        of(&[set(json!({ "seed": 7, "picture": "fast", "effects": true }))], 20),
        of(&[set(json!({ "shifts": ["blob:5:x=0.4:y=0.6:size=0.2", "hue:3", "brightness:2"] }))], 20),
        of(&[set(json!({ "variants": ["bar"], "runners": [{ "agent": 0, "k": 4 }] }))], 20),
        of(&[set(json!({ "variants": ["blob"], "shifts": [] }))], 20),
        of(&[json!({ "type": "open", "scene": "shuffled-car-racing" })], 10),
        of(&[json!({ "type": "shuffle" })], 10),
        of(&[json!({ "type": "open", "scene": "cartpole" }), set(json!({ "shifts": ["missing:3"] }))], 50),
        of(&[json!({ "type": "shuffle" })], 50),
    ]));
}
