//! Reproducible and safe runs: the same results for any number of workers, one trainer at a time, and no
//! silent change or failure.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{Dir, SHORT, check_fails, check_same, digits};
use foveate::run::tensors;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

fn start(dir: &Dir, name: &str, more: &[&str]) -> String {
    dir.write("short.toml", SHORT);
    dir.ok(&[&["train", "car-racing", "--config", "short.toml", "--name", name], more].concat())
}

fn about(dir: &Dir, run: &str) -> Value {
    serde_json::from_slice(&dir.read(&format!("runs/{run}/about.json"))).expect("JSON")
}

#[test]
fn the_digits_do_not_depend_on_the_workers() {
    let dir = Dir::new();
    start(&dir, "one", &["--workers", "1", "--set", "env.picture=fast"]);
    let expect = digits(&dir.path("runs/one"));
    for workers in ["2", "7"] {
        start(&dir, workers, &["--workers", workers, "--set", "env.picture=fast"]);
        let folder = dir.path(&format!("runs/{workers}"));
        // The configuration contains the number of workers.
        let config = fs::read_to_string(folder.join("config.toml")).expect("text");
        assert!(config.contains(&format!("workers = {workers}\n")), "{config}");
        fs::write(folder.join("config.toml"), &expect["config.toml"]).expect("writable");
        check_same(&expect, &folder);
    }
}

#[test]
fn evaluations_name_their_tracks_and_leave_films() {
    let dir = Dir::new();
    start(&dir, "run", &[]);
    let tracks: Value = serde_json::from_slice(&dir.read("runs/run/tracks.json")).expect("JSON");
    let log = String::from_utf8(dir.read("runs/run/log.jsonl")).expect("text");
    let mut seen = [0; 4];
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let (kind, purpose) = match line["event"].as_str().expect("a name") {
            "generation" => (0, "training"),
            "validation" => (1, "validation"),
            "final" => (2, "finals"),
            "report" => (3, "report"),
            other => panic!("{other}"),
        };
        seen[kind] += 1;
        let (generation, steps) = (line["generation"].as_u64(), line["steps"].as_u64());
        let (generation, steps) = (generation.expect("a number"), steps.unwrap_or(0));
        let film = match kind {
            0 => {
                let seed = line["trained_on"][0].as_u64().expect("a seed");
                assert!(seed >= 1 << 30 && seed.is_multiple_of(4), "{line}");
                continue;
            }
            1 => format!("generation-{generation:06}-steps-{steps:010}.mp4"),
            _ => format!("{purpose}-generation-{generation:06}.mp4"),
        };
        let film = dir.read(&format!("runs/run/videos/{film}"));
        assert!(film.len() > 1000 && film[4..8] == *b"ftyp", "{line}");
        let list = line["tracks"].as_array().expect("a list");
        let seeds: Vec<_> = list.iter().map(|track| track["seed"].clone()).collect();
        assert_eq!(Value::from(seeds), tracks[purpose]);
        let mean =
            list.iter().map(|t| t["return"].as_f64().expect("a number")).sum::<f64>() / list.len() as f64;
        assert!((mean - line["mean"].as_f64().expect("a number")).abs() < 1e-9, "{line}");
    }
    assert!(seen[0] > 12 && seen[1] > 12 && seen[2..] == [2, 1], "{seen:?}");

    // Without videos nothing else differs.
    let mut expect = digits(&dir.path("runs/run"));
    start(&dir, "silent", &["--no-videos"]);
    expect.retain(|name, _| !name.starts_with("videos"));
    expect.remove("config.toml");
    let mut digits = digits(&dir.path("runs/silent"));
    let config = digits.remove("config.toml").expect("it is there");
    assert!(String::from_utf8(config).expect("text").contains("videos = false"));
    assert!(digits == expect);
}

#[test]
fn two_trainers_do_not_share_a_folder() {
    let dir = Dir::new();
    dir.write("short.toml", SHORT);
    let args = [
        "train",
        "car-racing",
        "--config",
        "short.toml",
        "--json",
        "--name",
        "run",
        "--set",
        "recipe.stage.0.steps=10000000",
        "--no-videos",
    ];
    let mut first = dir.command(&args).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(first.stdout.take().expect("it was piped")).lines();
    lines.next().expect("a line").expect("text");
    let second = dir.run(&["train", "--resume", "runs/run"]);
    // The folder is locked, whatever happens to the file that names the process.
    fs::remove_file(dir.path("runs/run/lock")).expect("it is there");
    let third = dir.run(&["train", "--resume", "runs/run"]);
    dir.write("new", "");
    fs::rename(dir.path("new"), dir.path("runs/run/lock")).expect("writable");
    let fourth = dir.run(&["train", "--resume", "runs/run"]);
    first.kill().expect("our child");
    first.wait().expect("our child");
    assert_eq!(second.code, Some(1));
    for part in [&format!("process {} on ", first.id()), "since 20", "kill -INT"] {
        assert!(second.stderr.contains(part), "{}", second.stderr);
    }
    for other in [third, fourth] {
        assert_eq!(other.code, Some(1), "{}", other.stdout);
        assert!(
            other.stderr.contains("runs/run: another process trains in this folder;"),
            "{}",
            other.stderr
        );
    }
    let log = String::from_utf8_lossy(&dir.read("runs/run/log.jsonl")).into_owned();
    let first =
        log.lines().filter(|line| line.starts_with("{\"event\":\"generation\",\"generation\":1,")).count();
    assert_eq!(first, 1, "the log is written by one of them");
    // The lock ended with its process, without an explicit unlock.
    let said = dir.run(&["train", "--resume", "runs/run", "--set", "x=1"]);
    assert_eq!(said.code, Some(2), "--set is for new runs: {}", said.stderr);
    check_fails(&dir, &["train", "--config", "short.toml", "--name", "run"], &["this run exists"]);
    let text = fs::read_to_string(dir.path("runs/run/config.toml")).expect("text");
    dir.write("runs/run/config.toml", text.replace("steps = 10000000", "steps = 1"));
    let said = dir.run(&["train", "--resume", "runs/run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("recipe.stage.0.steps was 10000000 and is 1"), "{}", said.stderr);
    dir.ok(&["train", "--resume", "runs/run", "--allow-changes"]);
}

#[test]
fn changes_are_refused_or_recorded() {
    let dir = Dir::new();
    start(&dir, "run", &[]);
    let config = fs::read_to_string(dir.path("runs/run/config.toml")).expect("text");
    let changed =
        config.replace("steps = 2500", "steps = 3000").replace("max_steps = 40\n", "max_steps = 41\n");
    dir.write("runs/run/config.toml", format!("# a remark\n{changed}"));
    let resume = ["train", "--resume", "runs/run"];
    let what = ["recipe.max_steps was 40 and is 41", "recipe.stage.0.steps was 2500 and is 3000"];
    check_fails(&dir, &resume, &[what[0], what[1], "--allow-changes"]);
    assert!(about(&dir, "run").get("resumed").is_none());

    let told = dir.ok(&["train", "--resume", "runs/run", "--allow-changes", "--workers", "2"]);
    assert!(told.contains(what[0]) && told.contains("noted in about.json"), "{told}");
    let note = about(&dir, "run")["resumed"][0].clone();
    assert_eq!(note["changes"], Value::from(what.to_vec()));
    assert_eq!(
        (note["workers"].as_u64(), note["version"].as_str()),
        (Some(2), Some(env!("CARGO_PKG_VERSION")))
    );
    // No flag allows what the state itself does not permit.
    dir.write("runs/run/config.toml", changed.replace("hidden = 2", "hidden = 3"));
    let said = dir.run(&["train", "--resume", "runs/run", "--allow-changes"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("the saved state does not fit"), "{}", said.stderr);
    // From then on they belong to the run; comments and threads do not count as changes.
    dir.write("runs/run/config.toml", changed.replace("workers = 0", "workers = 1"));
    dir.ok(&resume);
    assert!(about(&dir, "run")["resumed"][1].get("changes").is_none());

    // A modified log: truncated to its intact part, or accepted with the user's permission.
    let log = dir.read("runs/run/log.jsonl");
    let mut wrong = log.clone();
    wrong[40] ^= 1;
    dir.write("runs/run/log.jsonl", &wrong);
    check_fails(&dir, &resume, &["log.jsonl is not what the run wrote", "--allow-changes"]);
    check_fails(
        &dir,
        &["compare", "runs/run"],
        &["runs/run/log.jsonl: it is not what the run wrote", "--resume"],
    );
    dir.ok(&["train", "--resume", "runs/run", "--allow-changes"]);
    assert!(dir.read("runs/run/log-aside-1.jsonl") == wrong);
    assert_eq!(dir.run(&["train", "--allow-changes"]).code, Some(2), "it is for --resume");
}

#[test]
fn a_finished_run_may_be_given_another_population() {
    let dir = Dir::new();
    for (name, more) in [
        ("plain", &[][..]),
        ("restarted", &["--set", "recipe.stage.0.restarts={after=1,tolerance=1000,max=2}"]),
        ("full", &["--set", "recipe.stage.0.algorithm=cma-es"]),
    ] {
        let short =
            if name == "full" { SHORT.replace(", learning_rate = 1.0", "") } else { SHORT.to_owned() };
        dir.write("short.toml", short);
        let few =
            ["--set", "recipe.stage.0.steps=1500", "--set", "recipe.selection.every=400", "--no-videos"];
        let begin = ["train", "car-racing", "--config", "short.toml", "--name", name];
        dir.ok(&[&begin, &few[..], more].concat());
        let mut expect = digits(&dir.path(&format!("runs/{name}")));
        let file = format!("runs/{name}/config.toml");
        let config = String::from_utf8(dir.read(&file)).expect("text");
        dir.write(&file, config.replace("population = 4\n", "population = 6\n"));

        let run = format!("runs/{name}");
        let resume = ["train", "--resume", &run];
        let what = "recipe.stage.0.population was 4 and is 6";
        check_fails(&dir, &resume, &[what, "--allow-changes"]);
        let told = dir.ok(&[&resume[..], &["--allow-changes"]].concat());
        for part in [what, "this run is finished", "it trains no more", "recipe.init"] {
            assert!(told.contains(part), "{name}: {part:?} is not said: {told}");
        }
        assert_eq!(about(&dir, name)["resumed"][0]["changes"], Value::from(vec![what]));
        // Nothing was trained since, so only the configuration has changed; from now on it belongs to the
        // run.
        let told = dir.ok(&resume);
        assert!(told.contains("this run is finished") && !told.contains("no more"), "{name}: {told}");
        let mut now = digits(&dir.path(&run));
        for digits in [&mut expect, &mut now] {
            digits.remove("config.toml");
            digits.remove("state");
        }
        assert!(now == expect, "{name}");
    }
    // The command in the message works.
    let init = "recipe.init={weights=\"runs/plain\"}";
    dir.ok(&["train", "--config", "runs/plain/config.toml", "--name", "on", "--set", init]);
    assert!(dir.read("runs/on/best.safetensors") != dir.read("runs/plain/best.safetensors"));
}

#[test]
fn another_version_is_refused_or_recorded() {
    let dir = Dir::new();
    start(&dir, "run", &["--set", "recipe.stage.0.steps=500", "--no-videos"]);
    let written_by = |key: &str, value: Option<&str>| {
        for entry in fs::read_dir(dir.path("runs/run/checkpoints")).expect("there") {
            let path = entry.expect("an entry").path();
            let mut file = tensors::read(&path).expect("a checkpoint");
            match value {
                Some(value) => drop(file.metadata.insert(key.into(), value.into())),
                None => drop(file.metadata.remove(key).expect("it is there")),
            }
            // As that version would have written it, including its checksum.
            file.metadata.remove("sha256");
            let sum = Sha256::digest(file.to_bytes());
            let sum = sum.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
            file.metadata.insert("sha256".into(), sum);
            fs::write(&path, file.to_bytes()).expect("writable");
        }
    };
    written_by("version", Some("0.0.9"));
    let resume = ["train", "--resume", "runs/run"];
    let build = foveate::run::BUILD;
    let what = format!("version was 0.0.9 (build {build}) and is {}", foveate::run::VERSION);
    check_fails(&dir, &resume, &[&what, "--allow-changes"]);
    let told = dir.ok(&[&resume[..], &["--allow-changes"]].concat());
    assert!(told.contains(&what), "{told}");
    assert_eq!(about(&dir, "run")["resumed"][0]["changes"], Value::from(vec![what]));
    dir.ok(&resume);
    // The same version number does not mean the same program.
    for (build, named) in [(Some("00c0ffee"), "00c0ffee"), (None, "unknown")] {
        written_by("build", build);
        let version = env!("CARGO_PKG_VERSION");
        let what = format!("version was {version} (build {named}) and is {}", foveate::run::VERSION);
        check_fails(&dir, &resume, &[&what, "--allow-changes"]);
        dir.ok(&[&resume[..], &["--allow-changes"]].concat());
        dir.ok(&resume);
    }
    assert_eq!(about(&dir, "run")["build"], build);
    assert_eq!(dir.ok(&["--version"]), format!("foveate {}\n", foveate::run::VERSION));
}

#[test]
fn a_finished_run_leaves_a_summary() {
    let dir = Dir::new();
    let few = ["--set", "recipe.stage.0.steps=500", "--no-videos"];
    start(&dir, "run", &few);
    let summary: Value = serde_json::from_slice(&dir.read("runs/run/summary.json")).expect("JSON");
    let log = String::from_utf8(dir.read("runs/run/log.jsonl")).expect("text");
    let report: Value = serde_json::from_str(log.lines().last().expect("a line")).expect("JSON");
    assert_eq!(report["event"], "report");
    for (theirs, ours) in
        [("mean", "mean"), ("std", "std"), ("n", "n"), ("median", "median"), ("ci95", "interval_95")]
    {
        assert_eq!(report[theirs], summary["score"][ours], "{theirs}");
    }
    let tracks: Value = serde_json::from_slice(&dir.read("runs/run/tracks.json")).expect("JSON");
    assert_eq!((&summary["seeds"], &summary["returns"]), (&tracks["report"], &report["returns"]));
    let best = Sha256::digest(dir.read("runs/run/best.safetensors"));
    let best = best.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    assert_eq!(summary["weights"]["sha256"], best);
    assert_eq!(summary["weights"]["file"], "best.safetensors");
    for (pointer, value) in [
        ("/format", "foveate-summary-1".into()),
        ("/build", foveate::run::BUILD.into()),
        ("/world/id", "car-racing".into()),
        ("/world/picture", "none".into()),
        ("/agent/name", "attention-agent".into()),
        ("/seed", about(&dir, "run")["seed"].clone()),
        ("/training_steps", report["steps"].clone()),
        ("/machine/cpu_seconds", report["cpu_seconds"].clone()),
    ] {
        assert_eq!(summary.pointer(pointer), Some(&value), "{pointer}");
    }
    // It is derived from the run: resuming a finished run writes it again.
    fs::remove_file(dir.path("runs/run/summary.json")).expect("it is there");
    dir.ok(&["train", "--resume", "runs/run", "--workers", "2"]);
    let mut again: Value = serde_json::from_slice(&dir.read("runs/run/summary.json")).expect("JSON");
    assert_eq!(again["machine"]["workers"], 2);
    again["machine"] = summary["machine"].clone();
    assert_eq!(again, summary);
}

/// Links, FIFOs and similar entries in a stranger's folder: nothing is read or written through them, and no
/// command blocks.
#[test]
fn nothing_in_a_run_is_followed() {
    let dir = Dir::new();
    start(&dir, "whole", &["--set", "recipe.stage.0.steps=500"]);
    dir.write("precious", "which must stay");
    fs::create_dir(dir.path("private")).expect("writable");
    dir.write("private/lock", "which must stay");
    let names = [
        "config.toml",
        "about.json",
        "tracks.json",
        "log.jsonl",
        "curve.svg",
        "best.safetensors",
        "last.safetensors",
        "summary.json",
        "lock",
        "checkpoints",
        "videos",
        "failures",
    ];
    let events = fs::read_dir(dir.path("runs/whole")).expect("there").flatten().map(|e| e.file_name());
    let events = events.map(|name| name.into_string().expect("text")).find(|name| name.starts_with("events"));
    let events = events.expect("the event file");
    for name in names.into_iter().chain([&*events]) {
        for what in ["symbolic link", "FIFO"] {
            let hurt = dir.path("runs/hurt");
            let _ = fs::remove_dir_all(&hurt);
            copy(&dir.path("runs/whole"), &hurt);
            let path = hurt.join(name);
            if path.is_dir() {
                fs::remove_dir_all(&path).expect("ours");
            } else {
                let _ = fs::remove_file(&path);
            }
            if what == "FIFO" {
                assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo exists").success());
            } else {
                let target = if ["checkpoints", "videos", "failures"].contains(&name) {
                    "private"
                } else {
                    "precious"
                };
                std::os::unix::fs::symlink(dir.path(target), &path).expect("links exist here");
            }
            let done = in_time(dir.command(&["train", "--resume", "runs/hurt"]));
            let said = String::from_utf8(done.stderr).expect("text");
            assert_eq!(done.status.code(), Some(1), "{name}: {what}: {said}");
            let wants =
                format!("error: runs/hurt: {name} is a {what}, which is never followed or opened here; ");
            assert!(said.starts_with(&wants) && said.lines().count() == 1, "{said}");
            if name == "best.safetensors" {
                let done = in_time(dir.command(&["eval", "runs/hurt", "--episodes", "1"]));
                let said = String::from_utf8(done.stderr).expect("text");
                assert!(said.starts_with(&wants) && said.lines().count() == 1, "{said}");
            }
            if name == "log.jsonl" {
                let done = in_time(dir.command(&["compare", "runs/hurt"]));
                let said = String::from_utf8(done.stderr).expect("text");
                assert!(said.starts_with(&wants) && said.lines().count() == 1, "{said}");
            }
            assert_eq!(dir.read("precious"), b"which must stay", "{name}");
            let private: Vec<_> = fs::read_dir(dir.path("private")).expect("there").flatten().collect();
            assert_eq!((private.len(), dir.read("private/lock")), (1, b"which must stay".to_vec()), "{name}");
        }
    }
    // A checkpoint that is a link is skipped; a link with a hidden name is removed without its target.
    let hurt = dir.path("runs/hurt");
    fs::remove_dir_all(&hurt).expect("ours");
    copy(&dir.path("runs/whole"), &hurt);
    for link in ["runs/hurt/checkpoints/99999999.safetensors", "runs/hurt/.x.1-0.foveate-tmp"] {
        std::os::unix::fs::symlink(dir.path("precious"), dir.path(link)).expect("links exist here");
    }
    for link in ["runs/.x.foveate-tmp", "runs/.x.1-0.foveate-tmp"] {
        std::os::unix::fs::symlink(dir.path("private"), dir.path(link)).expect("links exist here");
    }
    let told = dir.ok(&["train", "--resume", "runs/hurt"]);
    assert!(told.contains("99999999.safetensors is a symbolic link"), "{told}");
    start(&dir, "new", &["--set", "recipe.stage.0.steps=500", "--no-videos"]);
    assert_eq!(
        (dir.read("precious"), dir.read("private/lock")),
        (b"which must stay".to_vec(), b"which must stay".to_vec())
    );
    // A link to a run in the user's own path is followed.
    std::os::unix::fs::symlink("runs/whole", dir.path("link")).expect("links exist here");
    dir.ok(&["train", "--resume", "link"]);
}

/// Runs a command that must not block.
fn in_time(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    for _ in 0..3000 {
        if child.try_wait().expect("our child").is_some() {
            return child.wait_with_output().expect("our child");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().expect("our child");
    child.wait().expect("our child");
    panic!("it waits for ever: {command:?}")
}

#[test]
fn a_rollout_that_fails_is_named_and_fails_again() {
    let dir = Dir::new();
    dir.write("short.toml", SHORT);
    // Steps so large that weights overflow.
    let huge = "recipe.stage.0.sigma=1e300";
    let failed = dir.run(&["train", "car-racing", "--config", "short.toml", "--name", "run", "--set", huge]);
    assert_eq!(failed.code, Some(1));
    let file = "runs/run/failures/generation-000001-genome-0-episode-0.json";
    for part in ["error: generation 1: genome 0, episode 0 (seed ", "step 0: ", file] {
        assert!(failed.stderr.contains(part), "{}", failed.stderr);
    }
    let again = dir.run(&["replay", "--failure", file, "--out", "trace.jsonl"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stderr.starts_with("it fails again: generation 1, genome 0"), "{}", again.stderr);
    assert_eq!(String::from_utf8(dir.read("trace.jsonl")).expect("text").lines().count(), 1);

    // A rollout that does not fail, and files of other kinds.
    let text = String::from_utf8(dir.read(file)).expect("text");
    let start = text.find("\"weights\":\"").expect("it is there") + 11;
    let end = start + text[start..].find('"').expect("its end");
    let tame = format!("{}{}{}", &text[..start], "0".repeat(end - start), &text[end..]);
    dir.write("tame.json", tame);
    check_fails(
        &dir,
        &["replay", "--failure", "tame.json"],
        &["it does not fail as it did", "now it went well"],
    );
    dir.write("not.json", "{}");
    check_fails(
        &dir,
        &["replay", "--failure", "not.json"],
        &["not.json: missing field", "`failures` of a run"],
    );
}

/// Foreign files in a run's folder cause a one-line error, or none at all, and never a panic.
#[test]
fn hostile_folders() {
    type Damage = fn(&Path);
    fn write(path: &Path, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(path.join(name), bytes).expect("writable");
    }
    fn folder(path: &Path, name: &str) {
        let _ = fs::remove_file(path.join(name));
        fs::create_dir_all(path.join(name)).expect("writable");
    }
    fn huge(path: &Path, name: &str) {
        // A sparse file: it uses no disk space.
        let file = fs::File::options().write(true).create(true).truncate(false).open(path.join(name));
        file.and_then(|file| file.set_len(1 << 40)).expect("writable");
    }
    fn checkpoints(path: &Path) -> Vec<std::path::PathBuf> {
        let mut all: Vec<_> = fs::read_dir(path.join("checkpoints"))
            .expect("there")
            .map(|e| e.expect("an entry").path())
            .collect();
        all.sort();
        all
    }
    let dir = Dir::new();
    start(&dir, "whole", &["--set", "recipe.stage.0.steps=500"]);
    start(&dir, "other", &["--set", "recipe.stage.0.steps=500", "--seed", "2"]);
    let whole = dir.path("runs/whole");

    let cases: [(&str, Damage, Option<&str>); 17] = [
        (
            "a log of garbage",
            |p| write(p, "log.jsonl", [0xff, 0xfe, 0, b'\n'].repeat(5000)),
            Some("log.jsonl is not what"),
        ),
        ("no log", |p| fs::remove_file(p.join("log.jsonl")).expect("ours"), Some("log.jsonl is not what")),
        ("a huge log", |p| huge(p, "log.jsonl"), None),
        ("a log that is a folder", |p| folder(p, "log.jsonl"), Some("this is a folder")),
        (
            "unknown keys",
            |p| {
                write(
                    p,
                    "config.toml",
                    format!("x = 1\n{}", fs::read_to_string(p.join("config.toml")).expect("text")),
                );
            },
            Some("unknown field `x`"),
        ),
        ("a huge configuration", |p| huge(p, "config.toml"), Some("is it the right file?")),
        ("a configuration of bytes", |p| write(p, "config.toml", [0xff; 99]), Some("this is no text")),
        ("a configuration that is a folder", |p| folder(p, "config.toml"), Some("config.toml")),
        ("a huge checkpoint", |p| huge(p, "checkpoints/99999999.safetensors"), None),
        ("a checkpoint that is a folder", |p| folder(p, "checkpoints/99999999.safetensors"), None),
        (
            "a checkpoint with the largest number",
            |p| write(p, "checkpoints/18446744073709551615.safetensors", "x"),
            None,
        ),
        (
            "checkpoints that are a file",
            |p| {
                fs::remove_dir_all(p.join("checkpoints")).expect("ours");
                write(p, "checkpoints", "x");
            },
            Some("its checkpoints are missing"),
        ),
        (
            "checkpoints of another run",
            |p| {
                for (ours, theirs) in checkpoints(p).iter().zip(checkpoints(&p.with_file_name("other"))) {
                    fs::copy(theirs, ours).expect("writable");
                }
            },
            Some("seed was 2 and is 1"),
        ),
        ("a record of garbage", |p| write(p, "about.json", "{\"a\":"), Some("about.json cannot be read")),
        ("a record of another kind", |p| write(p, "about.json", "{\"resumed\":3,\"started_unix\":-1}"), None),
        (
            "films that are a file",
            |p| {
                fs::remove_dir_all(p.join("videos")).expect("ours");
                write(p, "videos", "x");
            },
            Some("videos"),
        ),
        ("a lock that is a folder", |p| folder(p, "lock"), Some("lock")),
    ];
    for (what, damage, error) in cases {
        let hurt = dir.path("runs/hurt");
        let _ = fs::remove_dir_all(&hurt);
        copy(&whole, &hurt);
        damage(&hurt);
        let done = dir.run(&["train", "--resume", "runs/hurt"]);
        match error {
            None => assert_eq!(done.code, Some(0), "{what}: {}", done.stderr),
            Some(wants) => {
                assert_eq!(done.code, Some(1), "{what}: {}", done.stdout);
                assert!(done.stderr.contains(wants), "{what}: {}", done.stderr);
                assert!(
                    done.stderr.starts_with("error: ") && done.stderr.lines().count() == 1,
                    "{what}: {}",
                    done.stderr
                );
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("writable");
    for entry in fs::read_dir(from).expect("listable") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("writable");
        }
    }
}
