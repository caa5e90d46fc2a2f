//! ONNX models that somebody else made, in the place of weights.
//!
//! `FOVEATE_PYTHON` names a Python with the pinned packages; without it these tests are skipped with a message.

use std::fs;

use foveate_toy::needs;
use serde_json::Value;

use crate::common::Dir;

/// A field of bytes of a protocol buffer.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 127 {
        out.push(length as u8 & 127 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
    out
}

/// A field of a small number.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// The type of floats.
const FLOAT: u8 = 1;

/// Name and shape of an input or output; the first dimension is the batch.
fn port(name: &str, size: u8) -> Vec<u8> {
    let batch = field(1, &field(2, b"batch"));
    let shape = field(2, &[batch, field(1, &number(1, size))].concat());
    [field(1, name.as_bytes()), field(2, &field(1, &[number(1, FLOAT), shape].concat()))].concat()
}

fn node(kind: &str, inputs: &[&str], output: &str, domain: &str) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|name| field(1, name.as_bytes())).collect();
    let domain = if domain.is_empty() { vec![] } else { field(7, domain.as_bytes()) };
    [inputs, field(2, output.as_bytes()), field(4, kind.as_bytes()), domain].concat()
}

fn tensor(name: &str, shape: &[u8], numbers: &[f32]) -> Vec<u8> {
    let shape: Vec<u8> = shape.iter().flat_map(|&size| number(1, size)).collect();
    let raw: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    [shape, number(2, FLOAT), field(8, name.as_bytes()), field(9, &raw)].concat()
}

/// A model of these nodes, tensors, inputs and outputs.
fn model(nodes: &[Vec<u8>], tensors: &[Vec<u8>], inputs: &[Vec<u8>], outputs: &[Vec<u8>]) -> Vec<u8> {
    let all = |number: u8, parts: &[Vec<u8>]| parts.iter().flat_map(|part| field(number, part)).collect();
    let graph: Vec<Vec<u8>> =
        vec![all(1, nodes), field(2, b"graph"), all(5, tensors), all(11, inputs), all(12, outputs)];
    [number(1, 8), field(8, &number(2, 13)), field(7, &graph.concat())].concat()
}

/// A model of `sensors` numbers whose scores of two choices are these weights of them, by the operator `kind`.
fn linear(sensors: u8, weights: &[f32], kind: &str, domain: &str) -> Vec<u8> {
    model(
        &[node(kind, &["seen", "weights"], "scores", domain)],
        &[tensor("weights", &[sensors, 2], weights)],
        &[port("seen", sensors)],
        &[port("scores", 2)],
    )
}

/// Pushes the cart to where the pole falls.
const BY_THE_ANGLE: [f32; 8] = [0.0, 0.0, 0.0, 0.0, -5.0, 5.0, -1.0, 1.0];
const CART_POLE: [&str; 2] = ["--env", "gym:CartPole-v1"];

#[test]
fn a_model_of_a_file_is_evaluated_tested_explained_and_filmed() {
    if needs::python().is_none() {
        return;
    }
    let dir = Dir::new();
    fs::write(dir.path("angle.onnx"), linear(4, &BY_THE_ANGLE, "MatMul", "")).expect("writable");
    let told = |flags: &[&str]| dir.json(&[flags, &CART_POLE, &["--json"]].concat());
    let one = told(&["eval", "angle.onnx", "--episodes", "5", "--workers", "1"]);
    assert_eq!(one["mean"], 500.0, "{one}");
    let three = told(&["eval", "angle.onnx", "--episodes", "5", "--workers", "3"]);
    assert_eq!(one["returns"], three["returns"]);
    let explained =
        told(&["explain", "angle.onnx", "--episodes", "10", "--decisions", "6", "--max-steps", "60"]);
    let answer = |question: &str| {
        let lines = explained["swaps"]["verdict"].as_array().expect("answers");
        lines.iter().find(|line| line["question"] == question).expect("an answer")["answer"].clone()
    };
    assert_eq!((answer("moves"), answer("path")), ("yes".into(), "yes".into()), "{explained}");
    let table =
        told(&["stress", "angle.onnx", "--shifts", "sticky:5", "--variants", "none", "--episodes", "5"]);
    let rows = table["agents"][0]["rows"].as_array().expect("rows");
    assert!(rows.len() == 2 && rows[0]["mean"].as_f64() > rows[1]["mean"].as_f64(), "{table}");
    let film = ["watch", "angle.onnx", "--max-steps", "5", "--out", "film.mp4"];
    assert!(dir.command(&[&film[..], &CART_POLE].concat()).output().expect("it starts").status.success());
}

/// Its only memory is its state: it goes left and right in turn, whatever it sees.
#[test]
fn a_state_goes_from_step_to_step_and_is_its_memory() {
    if needs::python().is_none() {
        return;
    }
    let dir = Dir::new();
    let clock = model(
        &[
            node("Neg", &["turn_in"], "other", ""),
            node("MatMul", &["seen", "weights"], "nothing", ""),
            node("Add", &["other", "nothing"], "sum", ""),
            node("Add", &["sum", "half"], "shown", ""),
            node("Add", &["other", "one"], "turn_out", ""),
            node("MatMul", &["shown", "scores_of"], "scores", ""),
        ],
        &[
            tensor("weights", &[4, 1], &[0.0; 4]),
            tensor("one", &[1, 1], &[1.0]),
            tensor("half", &[1, 1], &[0.5]),
            tensor("scores_of", &[1, 2], &[-5.0, 5.0]),
        ],
        &[port("seen", 4), port("turn_in", 1)],
        &[port("scores", 2), port("turn_out", 1)],
    );
    fs::write(dir.path("clock.onnx"), clock).expect("writable");
    let flags = ["explain", "clock.onnx", "--episodes", "10", "--decisions", "6", "--json"];
    let told = dir.json(&[&flags[..], &CART_POLE].concat());
    let lines = told["swaps"]["verdict"].as_array().expect("answers");
    let moves = lines.iter().find(|line| line["question"] == "moves").expect("an answer");
    assert_eq!(moves["answer"], "no", "{told}");
    assert!(told["swaps"]["memory"]["value"].as_f64() > Some(0.9), "{told}");
}

#[test]
fn an_exported_agent_plays_as_the_agent_does() {
    if needs::python().is_none() {
        return;
    }
    let dir = Dir::new();
    for (champion, more) in [
        ("cartpole-swingup-harder", &["--env", "cartpole-swingup-harder", "--max-steps", "40"][..]),
        ("door-key-5x5", &["--env", "door-key-5x5", "--picture", "one-hot", "--option", "actions=five"]),
        ("car-racing", &["--env", "car-racing", "--picture", "fast", "--max-steps", "30"]),
    ] {
        let name = format!("{champion}.onnx");
        let export = dir.command(&["export", champion, "--to", "onnx", "--out", &name]).output();
        assert!(export.expect("it starts").status.success(), "{champion}");
        let told = |weights: &str| {
            dir.json(&[&["eval", weights, "--episodes", "3", "--json"], more].concat())["returns"].clone()
        };
        let numbers = |returns: &Value| -> Vec<f64> {
            returns.as_array().expect("returns").iter().filter_map(Value::as_f64).collect()
        };
        let (own, exported) = (numbers(&told(champion)), numbers(&told(&name)));
        for (own, exported) in own.iter().zip(&exported) {
            assert!((own - exported).abs() < 1e-2, "{champion}: {own} and {exported}");
        }
        assert_eq!(own.len(), 3);
    }
}

#[test]
fn what_is_no_policy_is_said_in_one_sentence() {
    if needs::python().is_none() {
        return;
    }
    let dir = Dir::new();
    let huge = model(
        &[
            node("ConstantOfShape", &["size"], "big", ""),
            node("ReduceSum", &["big"], "sum", ""),
            node("MatMul", &["seen", "weights"], "scores", ""),
        ],
        &[
            // Half a million times a million numbers.
            [
                number(1, 2),
                number(2, 7),
                field(8, b"size"),
                field(9, &[1 << 19_u64, 1 << 20].map(u64::to_le_bytes).concat()),
            ]
            .concat(),
            tensor("weights", &[4, 2], &BY_THE_ANGLE),
        ],
        &[port("seen", 4)],
        &[port("scores", 2), port("sum", 1)],
    );
    let nan = linear(4, &[f32::NAN; 8], "MatMul", "");
    let three = model(
        &[node("MatMul", &["seen", "weights"], "scores", "")],
        &[tensor("weights", &[4, 3], &[1.0; 12])],
        &[port("seen", 4)],
        &[port("scores", 3)],
    );
    for (name, bytes, part) in [
        ("garbage", b"no protocol buffer".to_vec(), "onnxruntime does not read it"),
        ("empty", vec![], "onnxruntime does not read it"),
        ("custom", linear(4, &BY_THE_ANGLE, "Own", "own.operators"), "own.operators"),
        ("other-shape", linear(5, &[0.0; 10], "MatMul", ""), "Got: 4 Expected: 5"),
        ("nan", nan, "number 0 of its action is NaN; take finite numbers"),
        ("three", three, "its action has 3 numbers; take a choice from 0 to 1"),
        ("huge", huge, "onnxruntime"),
    ] {
        let file = format!("{name}.onnx");
        fs::write(dir.path(&file), bytes).expect("writable");
        let flags = ["eval", &file, "--episodes", "1", "--option", "memory=500"];
        let done = dir.command(&[&flags[..], &CART_POLE].concat()).output().expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{name}: {said}");
        assert!(
            said.starts_with("error: ") && said.lines().count() == 1 && said.contains(part),
            "{name}: {said}"
        );
    }
    for (flags, part) in [
        (
            &["eval", "missing.onnx", "--env", "gym:CartPole-v1"][..],
            "it cannot be read: No such file or directory",
        ),
        (&["eval", "nan.onnx"], "is an ONNX model, which names no world; name it with --env"),
        (&["export", "nan.onnx", "--env", "gym:CartPole-v1"], "is no agent of a weight file; export weights"),
        (&["lab", "nan.onnx", "--env", "gym:CartPole-v1"], "an ONNX model"),
    ] {
        let done = dir.command(flags).output().expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.code() == Some(1) && said.contains(part) && said.lines().count() == 1,
            "{flags:?}: {said}"
        );
    }
}
