//! Gymnasium environments with the same commands as native worlds.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Dir, check_same, digits};
use foveate::core::Seed;
use serde_json::Value;

const TOYS: &str = concat!("path=", env!("CARGO_MANIFEST_DIR"), "/../foveate-gym/tests/toys");

fn python() -> bool {
    foveate_toy::needs::python().is_some()
}

/// Runs a command that must succeed, on the toy `name`.
#[track_caller]
fn on_toy(dir: &Dir, name: &str, args: &[&str]) -> String {
    let id = format!("gym:foveate_toys:Toys/{name}-v0");
    let world = ["--env", &id, "--option", TOYS];
    dir.ok(&[args, &world].concat())
}

#[test]
fn an_untrained_agent_drives_any_environment_with_a_picture() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let eval = ["eval", "random:3", "--seeds", "0..4", "--json"];
    let report = |args: &[&str]| -> Value {
        let mut report: Value =
            serde_json::from_str(&on_toy(&dir, "Picture", args)).expect("one JSON object");
        report["steps_per_cpu_second"] = Value::Null;
        report
    };
    let one = report(&[&eval[..], &["--workers", "1"]].concat());
    assert_eq!(one["lengths"], serde_json::json!([60, 60, 60, 60]), "its own time limit");
    assert_eq!(one["picture"], "world");
    assert_eq!(one["weights"], "random weights of seed 3");
    assert_eq!(report(&[&eval[..], &["--workers", "3"]].concat()), one);
    let stream = ["eval", "random:3", "--seed", "5", "--episodes", "5", "--json"];
    let (one, three) = (
        report(&[&stream[..], &["--workers", "1"]].concat()),
        report(&[&stream[..], &["--workers", "3"]].concat()),
    );
    assert_eq!(one, three);
    let returns = one["returns"].as_array().expect("a list");
    assert!(returns.windows(2).any(|pair| pair[0] != pair[1]), "other episodes: {returns:?}");
}

/// A world with the same observations in every episode: the random agent still acts differently in each.
#[test]
fn random_actions_are_seeded_by_the_episode() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let returns = |args: &[&str]| -> Vec<f64> {
        let said = on_toy(&dir, "Still", &[&["eval", "random-actions", "--json"], args].concat());
        let report: Value = serde_json::from_str(&said).expect("one JSON object");
        serde_json::from_value(report["returns"].clone()).expect("numbers")
    };
    for episodes in [["--seed", "5", "--episodes", "6"], ["--seeds", "5..11", "--max-steps", "60"]] {
        let one = returns(&[&episodes[..], &["--workers", "1"]].concat());
        let different: BTreeSet<u64> = one.iter().map(|x| x.to_bits()).collect();
        assert_eq!((one.len(), different.len()), (6, 6), "{one:?}");
        assert_eq!(returns(&[&episodes[..], &["--workers", "3"]].concat()), one);
        if episodes[0] == "--seeds" {
            assert_eq!(returns(&["--seeds", "8..9"]), one[3..4], "an episode by itself");
        } else {
            assert_eq!(returns(&["--seeds", "5..6"]), one[..1], "the first of a stream has its seed");
        }
    }
    let filmed = on_toy(
        &dir,
        "Still",
        &["watch", "random-actions", "--seed", "5", "--episode", "3", "--out", "a.gif"],
    );
    let fourth = returns(&["--seed", "5", "--episodes", "4"])[3];
    assert!(filmed.contains(&format!("score {fourth:.3}")), "{fourth}: {filmed}");
}

#[test]
fn a_film_of_what_cannot_begin_says_why() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let watch = ["watch", "random-actions", "--env", "gym:foveate_toys:Toys/Odd-v0", "--option", TOYS];
    let done = dir.run(&[&watch[..], &["--env-arg", "what=reset", "--out", "a.png"]].concat());
    assert_eq!(done.code, Some(1));
    let last = done.stderr.trim_end().lines().next_back().unwrap_or_default();
    assert!(last.contains("it raised ValueError: it cannot begin") && last.contains("seed 1"), "{done:?}");
    assert_eq!(done.stderr.matches("Traceback").count(), 1, "{done:?}");
}

/// Every command that reports a score.
#[test]
fn what_is_not_finite_is_an_error_that_says_where() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let world = ["--env", "gym:foveate_toys:Toys/Odd-v0", "--option", TOYS, "--env-arg", "what=x"];
    let value = ["--env-arg", "value=np.nan", "--picture", "render"];
    for command in [
        &["eval", "random-actions", "--seeds", "4..5"][..],
        &["eval", "random", "--seeds", "4..5"],
        &["watch", "random", "--seed", "4", "--out", "a.gif"],
        &["stress", "random", "--shifts", "blur:1", "--variants", "none", "--seed", "4", "--episodes", "1"],
    ] {
        let done = dir.run(&[command, &world, &value].concat());
        assert_eq!(done.code, Some(1), "{command:?}: {done:?}");
        let last = done.stderr.trim_end().lines().next_back().unwrap_or_default();
        let part =
            "gym:foveate_toys:Toys/Odd-v0: observation[1] is NaN after step 5 of the episode with seed 4;";
        assert!(last.contains(part), "{command:?}: {done:?}");
    }
}

#[test]
fn films_show_what_the_environment_draws() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    on_toy(&dir, "Picture", &["watch", "random", "--out", "a.png", "--at", "9"]);
    assert!(dir.read("a.png").starts_with(b"\x89PNG"));
    on_toy(&dir, "Grey", &["watch", "random", "--out", "a.gif", "--steps", "5"]);
    assert!(dir.read("a.gif").starts_with(b"GIF"));
}

#[test]
fn what_fails_is_one_line_after_the_traceback() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let check = |world: &[&str], parts: &[&str]| {
        let done = dir.run(&[&["eval", "random", "--episodes", "1"], world].concat());
        assert_eq!(done.code, Some(1), "{done:?}");
        let last = done.stderr.trim_end().lines().next_back().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(';'), "{done:?}");
        for part in parts {
            assert!(done.stderr.contains(part), "{part}: {done:?}");
        }
    };
    check(&["--env", "gym:Nothing-v0"], &["gym:Nothing-v0: ", "name its module too"]);
    check(&["--env", "gym:Nothing-v0", "--picture", "fast"], &["no picture \"fast\"; choose from: world"]);
    check(&["--env", "gym:Nothing-v0", "--variant", "bar"], &["no variant \"bar\"", "--env-arg"]);
    check(&["--env", "gym:Nothing-v0", "--option", "lap=3"], &["there is no option \"lap\"; choose from"]);
    let broken = "gym:foveate_toys:Toys/Trivial-v0";
    check(&["--env", broken, "--option", TOYS, "--env-arg", "x=1"], &["Traceback", "TypeError"]);
    let missing =
        dir.command(&["eval", "random", "--env", "gym:X-v0"]).env("FOVEATE_PYTHON", "/no/python").output();
    let said = String::from_utf8_lossy(&missing.expect("it starts").stderr).into_owned();
    assert!(said.contains("FOVEATE_PYTHON: there is no /no/python; install Python"), "{said}");
}

#[test]
fn the_bridge_and_the_native_world_give_the_same_returns() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let champion = concat!(env!("CARGO_MANIFEST_DIR"), "/../../champions/car-racing.safetensors");
    for (weights, seeds, steps) in [("random:4", "3..6", "70"), (champion, "11..13", "300")] {
        let report = |world: &[&str]| -> Value {
            let eval = ["eval", weights, "--seeds", seeds, "--max-steps", steps, "--json", "--workers", "2"];
            serde_json::from_str(&dir.ok(&[&eval[..], world].concat())).expect("one JSON object")
        };
        let native = report(&["--env", "car-racing", "--picture", "exact"]);
        let bridge = report(&["--env", "gym:CarRacing-v3"]);
        assert_eq!(native["returns"], bridge["returns"], "{weights}");
        assert_eq!(native["lengths"], bridge["lengths"], "{weights}");
        let returns = native["returns"].as_array().expect("a list");
        assert!(returns.windows(2).all(|pair| pair[0] != pair[1]), "different drives: {returns:?}");
    }
}

#[test]
fn doctor_and_checker_speak_plainly() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let said = dir.ok(&["doctor"]);
    assert!(said.contains("(named by FOVEATE_PYTHON)") && said.contains("works  gym:CarRacing-v3"), "{said}");
    let said = dir.ok(&["check-env", "gym:foveate_toys:Toys/Toy-v0", "--option", TOYS]);
    assert!(said.contains("ok     repeats") && !said.contains("FAULT"), "{said}");
    assert!(said.contains("episodes of up to 1000 steps were played"), "{said}");
    let few = ["check-env", "gym:foveate_toys:Toys/Toy-v0", "--option", TOYS, "--steps", "7"];
    let said = dir.ok(&few);
    assert!(said.contains("no episode ended within 7 steps") && !said.contains("FAULT"), "{said}");
    // Findings are printed even if the environment then hangs.
    let hangs = ["--env-arg", "how=hang", "--env-arg", "at=9", "--option", "timeout=3"];
    let done =
        dir.run(&[&["check-env", "gym:foveate_toys:Toys/Breaks-v0", "--option", TOYS][..], &hangs].concat());
    assert_eq!(done.code, Some(1));
    let place = "FAULT  hangs              step 9 of seed 1 took longer than 3 s, which is what the option timeout allows";
    assert!(done.stdout.contains(place), "{done:?}");
    let flawed =
        ["check-env", "gym:foveate_toys:Toys/Flawed-v0", "--option", TOYS, "--env-arg", "flaw=alias"];
    let done = dir.run(&flawed);
    assert_eq!(done.code, Some(1));
    assert!(done.stdout.contains("FAULT  copies"), "{done:?}");
    assert!(done.stderr.contains("breaks 1 of Gymnasium's promises; correct them"), "{done:?}");
    let done = dir.run(&["check-env", "car-racing"]);
    assert!(done.stderr.contains("write gym:ID"), "{done:?}");
}

/// A short training on a toy: only evolution, and the selection at its end.
fn short(name: &str, steps: u32) -> String {
    format!(
        "
[env]
id = \"gym:foveate_toys:Toys/{name}-v0\"
picture = \"world\"
options = {{ path = {:?}, timeout = 20 }}

[agent.config]
patch = 24
stride = 24
top_k = 2
query_dim = 2
hidden = 2

[recipe]
max_steps = 60
selection = {{ every = 50000, tracks = 4, finalists = 2, final_tracks = 4, report_tracks = 6 }}
stage = [{{ name = \"only\", steps = {steps}, population = 16, sigma = 1.0, learning_rate = 1.0 }}]
",
        &TOYS["path=".len()..]
    )
}

/// Descendant processes of `parent`.
fn below(parent: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([parent]);
    loop {
        let before = found.len();
        for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
            let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            let Some((pid, rest)) = text.split_once(' ') else { continue };
            let parent = rest.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
            if let (Ok(pid), Some(parent)) = (pid.parse::<u32>(), parent)
                && found.contains(&parent)
            {
                found.insert(pid);
            }
        }
        if found.len() == before {
            found.remove(&parent);
            return found;
        }
    }
}

/// Kills workers of a training run at random moments, `FOVEATE_KILLS` times (default 30); the run must end
/// with the same bytes as an undisturbed one.
#[test]
#[cfg(target_os = "linux")]
fn a_run_whose_workers_are_killed_ends_with_the_same_bytes() {
    if !python() {
        return;
    }
    let kills: u32 = std::env::var("FOVEATE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let dir = Dir::new();
    dir.write("short.toml", short("Picture", 400 * kills));
    let train = |name: &'static str, pause: &str| {
        let args = [
            "train",
            "--preset",
            "evolution",
            "--config",
            "short.toml",
            "--name",
            name,
            "--workers",
            "2",
            "--no-videos",
            "--trust-world",
        ];
        let mut command = dir.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).env("TOYS_PAUSE", pause);
        command.spawn().expect("the binary starts")
    };
    let whole = train("whole", "0").wait_with_output().expect("it ends");
    assert!(whole.status.success(), "{whole:?}");
    let expect = digits(&dir.path("runs/whole"));

    // Takes as long as the kills, on any machine.
    let mut run = train("killed", "0.004");
    let mut rng = Seed::root(11).rng();
    let mut killed = 0;
    while !dir.path("runs/killed/config.toml").exists() && run.try_wait().expect("our child").is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    while killed < kills && run.try_wait().expect("our child").is_none() {
        // Frequent enough to hit new workers at their start, rare enough that no worker dies repeatedly in
        // the same step.
        std::thread::sleep(Duration::from_millis(200 + rng.below(1600)));
        let all: Vec<u32> = below(run.id()).into_iter().collect();
        if all.is_empty() {
            continue;
        }
        let one = all[rng.below(all.len() as u64) as usize].to_string();
        let kill = Command::new("kill").args(["-9", &one]).stderr(Stdio::null()).status();
        killed += u32::from(kill.expect("kill runs").success());
    }
    let done = run.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let noted = String::from_utf8_lossy(&done.stderr).matches("a new worker plays it again").count();
    assert!(noted > 0, "some kills meet a world at work");
    eprintln!("{killed} workers killed");
    assert!(killed >= kills / 2, "the run is long enough for only {killed} kills");
    check_same(&expect, &dir.path("runs/killed"));
}
