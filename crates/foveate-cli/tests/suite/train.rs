//! A small complete run: started, interrupted, resumed, damaged.

use crate::common::{Dir, SHORT, check_fails};
use foveate::run::weights::AgentFile;
use serde_json::Value;

/// Fewer steps and fewer evaluations than in [`SHORT`].
const FEWER: [&str; 6] = [
    "--set",
    "recipe.max_steps=30",
    "--set",
    "recipe.stage.0.steps=1200",
    "--set",
    "recipe.selection.every=400",
];

fn start(dir: &Dir, more: &[&str]) -> String {
    dir.write("short.toml", SHORT);
    dir.ok(&[&["train", "car-racing", "--config", "short.toml"], &FEWER[..], more].concat())
}

#[test]
fn a_run_leaves_what_it_promises() {
    let dir = Dir::new();
    let told = start(&dir, &["--workers", "2"]);
    assert!(told.contains("runs/car-racing/best.safetensors"), "{told}");
    for name in
        ["config.toml", "about.json", "log.jsonl", "curve.svg", "best.safetensors", "last.safetensors"]
    {
        assert!(!dir.read(&format!("runs/car-racing/{name}")).is_empty(), "{name}");
    }

    // The weights contain their world.
    let report = dir.json(&["eval", "runs/car-racing", "--episodes", "1", "--max-steps", "3", "--json"]);
    assert_eq!((report["env"].as_str(), report["picture"].as_str()), (Some("car-racing"), Some("none")));

    // The same seed gives the same weights, for any number of workers, and each run has its own folder.
    start(&dir, &["--workers", "1", "--json"]);
    start(&dir, &["--seed", "2", "--name", "other", "--runs", "elsewhere"]);
    let weights = |run: &str| dir.read(&format!("{run}/last.safetensors"));
    assert!(weights("runs/car-racing") == weights("runs/car-racing-1"));
    assert!(weights("runs/car-racing") != weights("elsewhere/other"));

    // Resuming a finished run changes nothing.
    let before = weights("runs/car-racing");
    dir.ok(&["train", "--resume", "runs/car-racing"]);
    assert!(weights("runs/car-racing") == before);
    let log = String::from_utf8(dir.read("runs/car-racing/log.jsonl")).expect("text");
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
}

#[test]
fn a_run_that_names_files_is_of_use_from_every_folder() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("film")).expect("a folder");
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/backgrounds/noise.png");
    dir.write("film/1.png", std::fs::read(picture).expect("a picture of the documents"));
    dir.write("behind.png", std::fs::read(picture).expect("a picture of the documents"));
    let files = [
        "--set",
        "env.picture=fast",
        "--set",
        "env.variants=['video:folder=film']",
        "--set",
        "env.shifts=['background-image:5:file=behind.png']",
    ];
    start(&dir, &files);

    std::fs::create_dir(dir.path("elsewhere")).expect("a folder");
    let elsewhere = |args: &[&str]| {
        let done = dir.command(args).current_dir(dir.path("elsewhere")).output().expect("it starts");
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    };
    let eval = |run: &str| elsewhere(&["eval", run, "--episodes", "1", "--max-steps", "3", "--json"]);
    assert!(!eval("../runs/car-racing").is_empty());
    let config = String::from_utf8(dir.read("runs/car-racing/config.toml")).expect("text");
    assert!(config.contains(&dir.path("film").display().to_string()), "{config}");
    eval("../runs/car-racing/best.safetensors");

    // Resumed from elsewhere, a run ends with the same bytes.
    let stopped = [&files[..], &["--name", "stopped", "--set", "recipe.stage.0.generations=2"]].concat();
    start(&dir, &stopped);
    let before = dir.read("runs/stopped/last.safetensors");
    elsewhere(&["train", "--resume", "../runs/stopped"]);
    assert!(dir.read("runs/stopped/last.safetensors") == before);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_safely_and_resume_ends_with_the_same_weights() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let dir = Dir::new();
    let more = ["--set", "recipe.stage.0.steps=8000", "--workers", "1"];
    start(&dir, &[&more[..], &["--name", "whole"]].concat());

    let begin = ["train", "--config", "short.toml", "--json", "--name", "cut"];
    let args = [&begin[..], &FEWER, &more].concat();
    let mut child = dir.command(&args).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it was piped")).lines();
    lines.nth(3).expect("a generation").expect("text");
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill exists").success());
    lines.for_each(drop);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    let told = dir.ok(&["train", "--resume", "runs/cut", "--workers", "2"]);
    assert!(told.contains("going on with runs/cut"), "{told}");
    for name in ["best.safetensors", "last.safetensors"] {
        let same = dir.read(&format!("runs/whole/{name}")) == dir.read(&format!("runs/cut/{name}"));
        assert!(same, "{name}");
    }
}

#[test]
fn bad_configurations() {
    let dir = Dir::new();
    dir.write("short.toml", SHORT);
    dir.write("twice.toml", "seed = 1\nseed = 2\n");
    dir.write("typo.toml", "[recipe]\nalgoritm = \"rank-es\"\n");
    dir.write("file", "");
    for (flags, wants) in [
        (&["--set", "recipe.stage.0.sigm=1"][..], &["unknown field `sigm`", "`sigma`"][..]),
        (&["--set", "recipe.stage.0.sigma=-1"], &["sigma = -1; it must be above 0", "stage \"only\""]),
        (&["--set", "recipe.stage.0.sigma=nan"], &["sigma = NaN; it must be above 0"]),
        (&["--set", "recipe.stage.0.sigma={from=1,to=-1}"], &["sigma = -1; it must be above 0"]),
        (&["--set", "recipe.stage.0.population=1"], &["population = 1", "at least 2 genomes"]),
        (
            &["--set", "recipe.stage.0.population=-3"],
            &["recipe.stage.0.population wants a whole number", "the number -3"],
        ),
        (
            &["--set", "recipe.stage.0.population=4.5"],
            &["recipe.stage.0.population wants a whole number", "the number 4.5"],
        ),
        (&["--set", "recipe.stage.0.population=100000000"], &["population = 100000000", "at most 65536"]),
        (&["--set", "recipe.algorithm=magic"], &["\"magic\"", "rank-es"]),
        (&["--set", "seed"], &["--set seed", "write it as key=value"]),
        (&["--set", "seed=many"], &["seed", "\"many\""]),
        (&["--set", "agent.config.top_q=1"], &["unknown field `top_q`", "`top_k`"]),
        (&["--set", "agent.config.patch=97"], &["a patch of 97 px does not fit", "lower patch"]),
        (&["--set", "agent.config.top_k=17"], &["top_k = 17", "16 patches", "lower top_k"]),
        (&["--set", "agent.name=nobody"], &["no agent is called \"nobody\"", "attention-agent"]),
        (&["--set", "env.picture=sharp"], &["no picture \"sharp\"", "exact"]),
        (&["--set", "env.variants=[\"baa\"]"], &["no variant \"baa\"", "bar"]),
        (&["--preset", "desktop"], &["no preset for car-racing is called \"desktop\"", "laptop"]),
        (&["--runs", "file"], &["file", "choose another"]),
        (&["--runs", "/proc/runs"], &["cannot create /proc/runs", "choose another path"]),
        (&["--name", "a/b"], &["\"a/b\"", "plain word"]),
    ] {
        if flags[1].starts_with("/proc") && !std::path::Path::new("/proc").exists() {
            continue;
        }
        check_fails(&dir, &[&["train", "--config", "short.toml"], flags].concat(), wants);
    }
    for described in foveate::evolve::STRATEGIES {
        let algorithm = format!("recipe.algorithm={}", described.name);
        for (set, wants) in [
            ("recipe.stage.0.population=0", &["population = 0", "at least 2 genomes"]),
            ("recipe.stage.0.sigma=-0.5", &["sigma = -0.5", "must be above 0"]),
            ("recipe.stage.0.sgima=1", &["unknown field `sgima`", "`sigma`"]),
        ] {
            dir.write(
                "short.toml",
                SHORT.replace("population = 4", "population = 64").replace(", learning_rate = 1.0", ""),
            );
            let flags = ["train", "--config", "short.toml", "--set", &algorithm, "--set", set];
            check_fails(&dir, &flags, wants);
        }
    }
    check_fails(&dir, &["train", "moon"], &["no environment is called \"moon\"", "car-racing"]);
    check_fails(&dir, &["train", "--config", "none.toml"], &["cannot read none.toml", "check the path"]);
    check_fails(&dir, &["train", "--config", "twice.toml"], &["twice.toml line 2", "duplicate key"]);
    check_fails(&dir, &["train", "--config", "typo.toml"], &["typo.toml", "`algoritm`", "`algorithm`"]);
}

#[test]
fn broken_and_foreign_runs() {
    let dir = Dir::new();
    let resume = ["train", "--resume", "runs/car-racing"];
    check_fails(
        &dir,
        &resume,
        &["cannot read runs/car-racing: there is no such file or folder; give", "foveate train"],
    );
    start(&dir, &[]);
    check_fails(
        &dir,
        &["train", "--config", "short.toml", "--name", "car-racing"],
        &["--resume", "another name with --name"],
    );

    let run = dir.path("runs/car-racing");
    let config = dir.read("runs/car-racing/config.toml");
    let text = String::from_utf8(config.clone()).expect("text");
    dir.write("runs/car-racing/config.toml", text.replace("sigma = 1.0", "sigma = 2.0"));
    check_fails(&dir, &resume, &["recipe.stage.0.sigma was 1.0 and is 2.0", "put that back"]);
    dir.write("runs/car-racing/config.toml", "");
    check_fails(&dir, &resume, &["config.toml"]);
    dir.write("runs/car-racing/config.toml", &config);

    // Every checkpoint is truncated.
    let checkpoints: Vec<_> = std::fs::read_dir(run.join("checkpoints"))
        .expect("it is there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert!(!checkpoints.is_empty());
    for path in &checkpoints {
        let bytes = std::fs::read(path).expect("readable");
        std::fs::write(path, &bytes[..bytes.len() / 2]).expect("writable");
    }
    check_fails(&dir, &resume, &["no checkpoint can be read", "train anew"]);
    for path in &checkpoints {
        std::fs::remove_file(path).expect("it is there");
    }
    check_fails(&dir, &resume, &["checkpoints are missing", "train anew"]);

    // A folder of another kind.
    std::fs::create_dir(dir.path("photos")).expect("writable");
    dir.write("photos/beach.jpg", "sun");
    check_fails(&dir, &["train", "--resume", "photos"], &["photos: config.toml is missing", "foveate train"]);
}

/// The first generation of the published recipe, complete except for the length of its episodes: 256 genomes
/// of 3,667 parameters, 16 tracks each.
#[test]
fn the_published_recipe_drives_its_first_generation() {
    let dir = Dir::new();
    dir.ok(&[
        "train",
        "car-racing",
        "--preset",
        "paper",
        "--no-videos",
        "--set",
        "recipe.max_steps=2",
        "--set",
        "recipe.stage.0.generations=1",
        "--set",
        "recipe.selection={every={generations=1},tracks=2,finalists=1,final_tracks=2,report_tracks=3,evaluation_tracks=2,evaluation_every=1}",
    ]);
    let log = String::from_utf8(dir.read("runs/car-racing/log.jsonl")).expect("text");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().expect("a name")).collect();
    assert_eq!(events, ["generation", "evaluation", "validation", "final", "report"]);
    let (steps, best) = (lines[0]["steps"].as_u64(), lines[0]["best"].as_f64().expect("a number"));
    assert_eq!(steps, Some(2 * 256 * 16));
    assert!(best > lines[0]["mean"].as_f64().expect("a number"), "the genomes differ: {log}");
    for name in ["best.safetensors", "last.safetensors"] {
        let weights = AgentFile::load(&dir.path(&format!("runs/car-racing/{name}"))).expect("weights");
        assert_eq!(weights.params().len(), 3667);
    }
    // The state is complete, including the covariance matrix.
    assert!(dir.ok(&["train", "--resume", "runs/car-racing"]).contains("this run is finished"));
}
