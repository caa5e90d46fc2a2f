//! The commands with valid input.

use crate::common::{Dir, made_up, npz, weights, with_input};
use serde_json::{Value, json};

#[test]
fn import_then_evaluate() {
    let dir = Dir::new();
    dir.write("published.npz", npz(&made_up()));
    let told = dir.json(&["import", "published.npz", "--agent", "attention-agent", "--json"]);
    assert_eq!((&told["params"], &told["file"]), (&json!(3667), &json!("published.safetensors")));
    assert_eq!(told["config"]["top_k"], 10);
    assert!(dir.ok(&["import", "published.npz", "--layout", "sorted"]).contains("3667 weights"));

    // A different divisor is a different agent with the same weights.
    let agent = ["import", "published.npz", "--agent", "attention-agent", "--json"];
    let scaled = dir.json(&[&agent[..], &["--scale", "sqrt-d", "--out", "scaled.safetensors"]].concat());
    assert_eq!((&scaled["config"]["scale"], &scaled["sha256"]), (&json!("sqrt_d"), &told["sha256"]));
    let other = [&agent[..], &["--layout", "registration", "--out", "o.safetensors"]].concat();
    assert_ne!(dir.json(&other)["sha256"], told["sha256"]);

    let eval = ["eval", "published.safetensors", "--picture", "classic", "--max-steps", "40", "--json"];
    let run = |more: &[&str]| {
        let mut report = dir.json(&[&eval, more].concat());
        let speed = report["steps_per_cpu_second"].take();
        assert!(speed.as_f64().is_some_and(|s| s > 0.0), "{speed}");
        report
    };
    let report = run(&["--episodes", "3", "--seed", "1", "--workers", "1"]);
    assert_eq!(report, run(&["--episodes", "3", "--seed", "1", "--workers", "3"]), "any number of workers");
    let keys: Vec<&str> =
        report.as_object().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default();
    for key in [
        "env",
        "picture",
        "variant",
        "weights",
        "seed",
        "n",
        "mean",
        "std",
        "median",
        "q25",
        "q75",
        "ci95",
        "returns",
        "lengths",
        "terminated",
        "steps_per_cpu_second",
    ] {
        assert!(keys.contains(&key), "{key} is missing from {keys:?}");
    }
    assert_eq!(
        json!([report["env"], report["picture"], report["variant"], report["seed"], report["n"]]),
        json!(["car-racing", "classic", "original", 1, 3])
    );
    assert_eq!(report["ci95"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["lengths"], json!([40, 40, 40]));
    let bar = run(&["--seeds", "5..7", "--variant", "bar", "--variant", "blob:side=4"]);
    assert_eq!(json!([bar["variant"], bar["seed"], bar["n"]]), json!(["bar+blob:side=4", "5..7", 2]));
    let text = dir.ok(&["eval", "published.safetensors", "--max-steps", "5", "--episodes", "2"]);
    assert!(text.contains("published.safetensors") && text.contains("picture exact"), "{text}");
}

#[test]
fn replay_writes_a_trace() {
    let dir = Dir::new();
    dir.write("actions.jsonl", "[0, 1, 0]\n".repeat(30));
    let replay = ["replay", "--env", "car-racing", "--seed", "7", "--actions", "actions.jsonl", "--out"];
    dir.ok(&[&replay[..], &["trace.jsonl"]].concat());
    let trace = String::from_utf8(dir.read("trace.jsonl")).expect("text");
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 31);
    for (t, line) in lines.iter().enumerate() {
        assert_eq!(line["t"], t);
        let sum = line["frame_sha256"].as_str().unwrap_or_default();
        assert!(sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()), "{sum}");
        for key in ["x", "y", "angle", "vx", "vy", "w"] {
            assert!(line["state"]["hull"][key].is_number(), "{key}");
            assert!((0..4).all(|wheel| line["state"]["wheels"][wheel][key].is_number()), "{key}");
        }
        assert!(line["state"]["tiles_visited"].is_u64());
        assert!(
            line["reward"].is_number() && line["terminated"].is_boolean() && line["truncated"].is_boolean()
        );
    }
    assert!(
        lines[30]["state"]["hull"]["vy"].as_f64() > lines[0]["state"]["hull"]["vy"].as_f64(),
        "it drives"
    );

    assert_eq!(dir.ok(&[&replay[..], &["-"]].concat()), trace, "stdout gets the same");
    let mut from_stdin = replay.map(str::to_owned);
    from_stdin[6] = "-".into();
    let args: Vec<&str> = from_stdin.iter().map(String::as_str).chain(["-"]).collect();
    let out = with_input(dir.command(&args), &dir.read("actions.jsonl"));
    assert_eq!(String::from_utf8_lossy(&out.stdout), trace, "stdin gives the same");
    let other =
        dir.ok(&[&replay[..], &["-", "--picture", "classic", "--option", "seeding=gymnasium"]].concat());
    let first =
        |text: &str| serde_json::from_str::<Value>(text.lines().next().unwrap_or_default()).expect("JSON");
    assert_eq!(first(&other)["state"], first(&trace)["state"]);
    assert_ne!(first(&other)["frame_sha256"], first(&trace)["frame_sha256"]);
}

#[test]
fn watch_films() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    for (name, magic) in [("a.gif", &b"GIF89a"[..]), ("a.png", b"\x89PNG\r\n\x1a\n"), ("a.mp4", b"\0\0\0")] {
        let told = dir.ok(&["watch", "w.safetensors", "--picture", "classic", "--steps", "3", "--out", name]);
        assert!(told.starts_with(name), "{told}");
        assert!(dir.read(name).starts_with(magic), "{name}");
    }
}

#[test]
fn the_champion_drives_when_no_weights_are_named() {
    let dir = Dir::new();
    let told = dir.ok(&["watch", "--steps", "2"]);
    assert!(told.starts_with("drive.mp4: ") && told.ends_with("; car-racing champion\n"), "{told}");
    assert!(dir.read("drive.mp4").starts_with(b"\0\0\0"));
    let text = dir.ok(&["eval", "--max-steps", "5", "--episodes", "2"]);
    assert!(text.starts_with("car-racing champion\n") && text.contains("picture exact"), "{text}");
}

#[test]
fn every_variant_in_one_table() {
    let dir = Dir::new();
    let short = ["--each-variant", "--picture", "fast", "--max-steps", "5", "--seeds", "3..5"];
    let list = dir.json(&[&["eval", "--json"], &short[..]].concat());
    let list = list.as_array().expect("a list");
    let names: Vec<&str> = list.iter().filter_map(|report| report["variant"].as_str()).collect();
    assert_eq!(names, ["original", "color", "color3", "bar", "blob", "noise", "fake-lane"]);
    let table = dir.ok(&[&["eval"], &short[..]].concat());
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3 + list.len(), "{table}");
    for (line, report) in lines[3..].iter().zip(list) {
        let (name, mean) =
            (report["variant"].as_str().expect("a name"), report["mean"].as_f64().expect("a number"));
        assert!(line.starts_with(&format!("| fast | {name} | 2 | {mean:.3} ± ")), "{line}");
    }
    let one = ["eval", "--each-variant", "--picture", "fast", "--max-steps", "5", "--seeds", "3..4"];
    let table = dir.ok(&one);
    assert!(
        table.lines().skip(3).all(|line| line.contains(" | 1 | ") && line.contains("| none: one episode |"))
    );
    assert_eq!(table.matches('±').count(), 1, "in the head alone: {table}");
    let bar = dir.json(&[
        "eval",
        "--json",
        "--variant",
        "bar",
        "--picture",
        "fast",
        "--max-steps",
        "5",
        "--seeds",
        "3..5",
    ]);
    assert_eq!(bar["returns"], list[3]["returns"], "the same as by itself");
}

#[test]
fn list_names_everything_that_other_commands_take() {
    let dir = Dir::new();
    let (text, list) = (dir.ok(&["list", "all"]), dir.json(&["list", "--json"]));
    for world in list["worlds"].as_array().expect("a list") {
        for kind in ["pictures", "variants", "options"] {
            for item in world[kind].as_array().expect("a list") {
                let name = item["name"].as_str().expect("a name");
                assert!(text.contains(name), "{name}");
            }
        }
    }
    let agent = &list["agents"][0];
    assert_eq!((&agent["name"], &agent["config"]["top_k"]), (&json!("attention-agent"), &json!(10)));
    assert!(text.contains("top_k"));
    assert_eq!(list["strategies"][0]["name"], "rank-es");
    assert_eq!(list["strategies"][0]["config"]["population"], 32);
    assert_eq!(list["presets"][0], "laptop-relu");
}

#[test]
fn help_and_completions() {
    let dir = Dir::new();
    let help = dir.ok(&["--help"]);
    for line in
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty())
    {
        // Continuation lines of a long description have a larger indentation.
        let Some(command) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else { continue };
        let command = command.split_whitespace().next().expect("a name");
        if command != "help" {
            assert!(dir.ok(&[command, "--help"]).contains("Examples:"), "{command}");
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = dir.ok(&["completions", shell]);
        assert!(script.contains("variant") && script.contains("replay"), "{shell}");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_who_leaves_is_no_error() {
    let dir = Dir::new();
    let mut command = dir.command(&["replay", "--actions", "-", "--out", "-"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("it was piped");
    let feeder = std::thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut stdin, "[0, 0, 0]\n".repeat(1000).as_bytes());
    });
    let out = child.wait_with_output().expect("it ends");
    feeder.join().expect("it does not panic");
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
}

#[test]
fn stress_makes_a_table_and_keeps_its_rows() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    let short = ["--picture", "fast", "--episodes", "3", "--seed", "5", "--max-steps", "20"];
    let rows =
        ["--variants", "bar", "--shifts", "noise,blob:5:x=0.3", "--severities", "1,5", "--out", "made/here"];
    let all = [&["stress", "w.safetensors"], &short[..], &rows].concat();
    let text = dir.ok(&all);
    for file in ["table.md", "table.tex", "table.csv", "table.json", "table.svg", "severities.svg"] {
        let bytes = dir.read(&format!("made/here/{file}"));
        assert!(!bytes.is_empty(), "{file}");
    }
    let names = ["original", "bar", "noise:1", "noise:5", "blob:5:x=0.3"];
    for name in names {
        assert!(text.contains(&format!("| {name} | ")), "{name}: {text}");
    }
    assert!(text.contains("Driven: 15 episodes, 300 steps"), "{text}");
    assert!(text.starts_with(&String::from_utf8(dir.read("made/here/table.md")).expect("text")[..200]));

    // The same command again runs no episodes, and any number of workers gives the same files.
    let before = dir.everything();
    assert!(dir.ok(&all).contains("Driven: 0 episodes"));
    assert!(before == dir.everything());
    let json = dir.json(&[&all[..all.len() - 2], &["--workers", "3", "--json"]].concat());
    let kept: Value = serde_json::from_slice(&dir.read("made/here/table.json")).expect("JSON");
    assert_eq!(json["digest"], kept["digest"]);
    assert_eq!(json["agents"], kept["agents"]);
    assert_eq!(json["effort"]["steps"], 300);

    // A row equals the result of eval with --variant and --shift.
    let eval = ["eval", "w.safetensors", "--json", "--shift", "noise:5"];
    let eval = dir.json(&[&eval, &short[..]].concat());
    assert_eq!(eval["returns"], json["agents"][0]["rows"][3]["returns"]);
    assert_eq!(eval["variant"], "original; noise:5");
}

#[test]
fn shifts_can_be_watched() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    let watch = |shift: &str, at: &str, out: &str| {
        let world = ["watch", "w.safetensors", "--picture", "fast", "--shift", shift];
        dir.ok(&[&world, &["--at", at, "--out", out][..]].concat());
        dir.read(out)
    };
    let (plain, blob) = (watch("blob:5@9", "8", "a.png"), watch("blob:5@9", "9", "b.png"));
    assert!(plain != blob);
    assert!(watch("blob:4@10", "8", "c.png") != plain, "the title says what is on");
    dir.ok(&["stress", "--picture", "fast", "--sheet", "sheet.png", "--at", "5", "--severities", "3"]);
    assert!(dir.read("sheet.png").starts_with(b"\x89PNG"));
}

#[test]
fn a_calibration_sets_answers_beside_the_truth() {
    let dir = Dir::new();
    let done = dir.json(&["explain", "--calibrate", "--episodes", "1", "--json"]);
    let cases = done["cases"].as_array().expect("a list");
    assert!(cases.len() >= 4 * 24, "{} answers", cases.len());
    for case in cases {
        assert_eq!(case["given"], "undecided", "one episode decides nothing: {case}");
        assert!(case["case"].is_string() && case["question"].is_string() && case["seed"] == 1, "{case}");
    }
    assert_eq!(done["summary"]["wrong"], 0);
    let done = dir.run(&["explain", "--calibrate", "--episodes", "1", "--seeds", "0"]);
    assert!(done.code == Some(1) && done.stderr.contains("seeds = 0"), "{}", done.stderr);
    for flags in
        [&["w.safetensors"][..], &["--compare"], &["--decisions", "3"], &["--env", "pong"], &["--out", "a"]]
    {
        let done = dir.run(&[&["explain", "--calibrate"], flags].concat());
        assert!(
            done.code == Some(2) && done.stderr.contains("cannot be used with"),
            "{flags:?}: {}",
            done.stderr
        );
    }
}

#[test]
fn explain_makes_a_folder_and_says_what_it_found() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    let short = ["explain", "w.safetensors", "--picture", "fast", "--max-steps", "12", "--decisions", "2"];
    let done = dir.run(&[&short[..], &["--episodes", "1", "--out", "a"]].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    // What it costs, if that is a second or more, and nothing else.
    assert!(done.stderr.lines().all(|line| line.starts_with("explain: 1 episode ")), "{}", done.stderr);
    for wants in [
        "tested        2 decisions in 1 episode;",
        "one episode has no interval",
        "undecided",
        "a/index.html: ",
    ] {
        assert!(done.stdout.contains(wants), "{wants:?} is not said: {}", done.stdout);
    }
    for file in
        ["index.html", "report.json", "episode.mp4", "figures/faithfulness.svg", "figures/gaze-map.png"]
    {
        assert!(!dir.read(&format!("a/{file}")).is_empty(), "{file}");
    }
    let told = dir.json(&[&short[..], &["--episodes", "2", "--seed", "3", "--json", "--out", "a"]].concat());
    assert_eq!(told["scores"].as_array().map(Vec::len), Some(2));
    assert_eq!((&told["seed"], &told["decisions"], &told["picture"]), (&3.into(), &4.into(), &"fast".into()));
    let mut written: serde_json::Value = serde_json::from_slice(&dir.read("a/report.json")).expect("JSON");
    let rows = written.as_object_mut().and_then(|report| report.remove("figures")).expect("rows of figures");
    assert!(rows["faithfulness"][0]["mean"].is_number(), "{rows}");
    assert_eq!(written, told, "the older report made way");
}
