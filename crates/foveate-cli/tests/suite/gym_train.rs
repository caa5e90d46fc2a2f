//! `foveate train gym:ID` without options: the observations select agent, picture and recipe, and training
//! improves the score.

use crate::common;

use std::collections::BTreeSet;

use crate::common::{Dir, assert_same, check_fails, digits_without_config};
use foveate::run::config::TrainConfig;
use serde_json::Value;

const TOYS: &str = concat!("path=", env!("CARGO_MANIFEST_DIR"), "/../foveate-gym/tests/toys");
const EXAMPLES: &str = concat!("path=", env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn python() -> bool {
    foveate_toy::needs::python().is_some()
}

/// The preset `gymnasium`, shortened.
const SHORT: [&str; 12] = [
    "--set",
    "recipe.stage.0.starts=1",
    "--set",
    "recipe.stage.0.steps=60_000",
    "--set",
    "recipe.stage.1.starts=1",
    "--set",
    "recipe.stage.1.steps=10_000",
    "--set",
    "recipe.selection={every=20_000, tracks=10, finalists=2, final_tracks=10, report_tracks=30}",
    "--no-videos",
    "--json",
];

/// Mean return of the report at the end of a log.
#[track_caller]
fn result(log: &str) -> f64 {
    let last: Value = serde_json::from_str(log.lines().next_back().unwrap_or_default()).expect("a log line");
    assert_eq!(last["event"], "report");
    last["mean"].as_f64().expect("a report has a mean")
}

#[test]
fn cart_pole_is_learnt_and_the_digits_are_the_same_for_any_workers_and_after_a_stop() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let train = |name: &'static str, workers: &'static str| {
        [&["train", "gym:CartPole-v1", "--name", name, "--workers", workers], &SHORT[..]].concat()
    };
    let score = result(&dir.ok(&train("one", "1")));
    assert!(score >= 195.0, "{score}: the world counts as learnt at 195, random weights get about 20");
    let expect = digits_without_config(&dir.path("runs/one"));

    let config = TrainConfig::read(&dir.path("runs/one/config.toml")).expect("its own");
    assert_eq!(
        (&*config.agent.name, &*config.env.picture, config.recipe.max_steps),
        ("controller", "world", 500)
    );
    assert!(
        config.recipe.stages.iter().all(|stage| stage.patience.0.is_none()),
        "no patience of CarRacing's"
    );
    assert_eq!(config.agent.config["observation"].as_array().map(Vec::len), Some(4));

    dir.kill_and_resume(&train("two", "2"), "runs/two", &["--workers", "2", "--trust-world"]);
    assert_same(&digits_without_config(&dir.path("runs/two")), &expect);

    // A world on the command line is accepted.
    let world = ["--env", "gym:CartPole-v1"];
    let eval = |weights: &str, more: &[&str]| -> f64 {
        let args = [&["eval", weights, "--episodes", "10", "--json"], &world[..], more].concat();
        dir.json(&args)["mean"].as_f64().expect("a mean")
    };
    let learnt = eval("runs/one", &[]);
    assert!(learnt >= 195.0 && learnt > 4.0 * eval("random:1", &[]), "{learnt}");
    assert!(
        eval("runs/one", &["--shift", "sticky:5"]) < learnt,
        "shifts of actions happen to numbers' worlds, too"
    );
    let drive = |args: &[&str]| dir.ok(&[args, &world[..]].concat());
    drive(&["watch", "runs/one", "--out", "a.png", "--at", "3"]);
    drive(&["watch", "runs/one", "--out", "b.png", "--at", "3", "--picture", "render"]);
    assert!(dir.read("a.png").starts_with(b"\x89PNG") && dir.read("b.png").starts_with(b"\x89PNG"));
    let stress = drive(&["stress", "runs/one", "--shifts", "sticky", "--severities", "5", "--episodes", "3"]);
    assert!(stress.contains("sticky"), "{stress}");
    let fails = |args: &[&str], wants: &[&str]| check_fails(&dir, &[args, &world[..]].concat(), wants);
    fails(
        &["stress", "runs/one", "--shifts", "noise", "--episodes", "3"],
        &["numbers, not a picture; choose one that fits: sticky"],
    );
    fails(&["explain", "runs/one"], &["this agent has no attention", "foveate watch"]);
}

/// Without pygame `CartPole` runs but cannot be rendered: videos show the agent's observation, and no command
/// fails.
#[test]
fn a_world_that_cannot_be_drawn_is_learnt_all_the_same() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    dir.write("pygame.py", "raise ImportError('not here')");
    let args =
        [&["train", "gym:CartPole-v1", "--name", "one"], &SHORT[..10], &["--set", "recipe.stage.0.steps=1"]];
    let done =
        dir.command(&args.concat()).env("PYTHONPATH", dir.path(".")).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("films are without its picture: pygame is not installed"), "{said}");
    assert_eq!(said.lines().count(), 1, "said once: {said}");
    assert!(dir.path("runs/one/videos").read_dir().expect("films").count() > 0);
}

#[test]
fn what_a_world_shows_chooses_agent_picture_and_recipe() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let short = [
        "--set",
        "recipe.selection={every=5, tracks=1, finalists=1, final_tracks=1, report_tracks=1}",
        "--no-videos",
        "--workers",
        "1",
    ];
    let stages = |n: usize| -> Vec<String> {
        (0..n)
            .flat_map(|i| {
                ["starts=1", "steps=5", "tracks=1", "population=4"]
                    .map(|set| ["--set".into(), format!("recipe.stage.{i}.{set}")])
            })
            .flatten()
            .collect()
    };
    let check = |name: &str, more: &[&str], expect: (&str, &str, usize, &str), note: &str| {
        let id = format!("gym:foveate_toys:Toys/{name}-v0");
        let stages = stages(2);
        let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
        let run = format!("{name}{}", more.concat().len());
        let args = [&["train", &id, "--option", TOYS, "--name", &run], &short[..], &stages, more].concat();
        let done = dir.run(&args);
        assert_eq!(done.code, Some(0), "{name}: {}", done.stderr);
        assert!(
            done.stderr.contains(note) && done.stderr.is_empty() == note.is_empty(),
            "{name}: {}",
            done.stderr
        );
        let config = TrainConfig::read(&dir.path(&format!("runs/{run}/config.toml"))).expect("its own");
        let algorithm = config.recipe.algorithm.as_str();
        let found = (&*config.agent.name, &*config.env.picture, config.recipe.max_steps as usize, algorithm);
        assert_eq!(found, expect, "{name} {more:?}");
        config
    };
    check("Toy", &[], ("controller", "world", 60, "cma-es"), "");
    check("Picture", &[], ("attention-agent", "world", 60, "rank-es"), "");
    check("Trivial", &["--wrap", "limit:20"], ("attention-agent", "world", 20, "rank-es"), "");
    check(
        "Words",
        &[],
        ("attention-agent", "render", 60, "rank-es"),
        "shows neither a picture nor numbers; the agent sees what it draws",
    );
    check("Toy", &["--picture", "render"], ("attention-agent", "render", 60, "rank-es"), "");
    check(
        "Toy",
        &["--set", "agent.name=attention-agent"],
        ("attention-agent", "render", 60, "rank-es"),
        "it shows 2 numbers and no picture; the agent sees what it draws",
    );
    let config = check(
        "Toy",
        &["--env-arg", "colour=red", "--option", "timeout=20", "--set", "recipe.max_steps=30"],
        ("controller", "world", 30, "cma-es"),
        "",
    );
    let options: Vec<String> =
        config.env.options.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let path = format!("path=\"{}\"", &TOYS["path=".len()..]);
    assert_eq!(options, ["arg.colour=\"red\"", &path, "timeout=\"20\""]);
}

#[test]
fn what_does_not_go_together_is_refused_in_a_line() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let fails = |args: &[&str], wants: &[&str]| {
        check_fails(&dir, &[&["train"], args].concat(), wants);
    };
    // The recipe of CarRacing ends with demonstrations, for which another world has no expert.
    fails(
        &["gym:CartPole-v1", "--preset", "laptop", "--picture", "render"],
        &[
            "preset laptop is for car-racing, and gym:CartPole-v1 has: gymnasium, gymnasium-pictures, evolution;",
        ],
    );
    fails(
        &["gym:CartPole-v1", "--preset", "evolution"],
        &["shows numbers and no picture", "--picture render"],
    );
    fails(
        &["car-racing", "--preset", "gymnasium"],
        &["for worlds that have none of their own", "car-racing has: laptop-relu"],
    );
    fails(&["--preset", "gymnasium-pictures"], &["for worlds that have none of their own"]);
    let picture = "gym:foveate_toys:Toys/Picture-v0";
    fails(
        &[picture, "--option", TOYS, "--preset", "gymnasium"],
        &["no numbers, which agent controller needs"],
    );
    fails(&["car-racing", "--set", "agent.name=controller"], &["no numbers, which agent controller needs"]);
    fails(&["car-racing", "--wrap", "nonsense"], &["nonsense"]);
}

#[test]
fn hints_name_no_flag_that_the_command_lacks() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let flags = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        words.filter(|word| word.len() > 3 && word.starts_with("--")).map(str::to_owned).collect()
    };
    let attention = dir.path("a.safetensors");
    std::fs::write(&attention, common::weights()).expect("writable");
    let mut hinted = 0;
    for args in [
        &["train", "gym:CartPole-v1", "--preset", "laptop"][..],
        &["train", "gym:CartPole-v1", "--preset", "evolution"],
        &["train", "gym:CartPole-v1", "--variant", "bar"],
        &["train", "gym:CartPole-v1", "--picture", "fast"],
        &["train", "gym:CartPole-v1", "--preset", "laptop", "--picture", "render"],
        &["eval", "a.safetensors", "--env", "gym:CartPole-v1"],
        &["eval", "random", "--env", "gym:CartPole-v1", "--variant", "bar"],
        &["watch", "a.safetensors", "--env", "gym:CartPole-v1"],
        &["explain", "a.safetensors", "--env", "gym:CartPole-v1"],
        &["lab", "a.safetensors", "--env", "gym:CartPole-v1", "--no-open"],
        &["stress", "random", "--env", "gym:CartPole-v1", "--shifts", "noise"],
        &["stress", "random", "--env", "gym:CartPole-v1", "--sheet", "a.png"],
        &["replay", "--env", "gym:CartPole-v1", "--variant", "bar", "--actions", "-", "--out", "-"],
        &["check-env", "gym:CartPole-v1", "--option", "lap=1"],
    ] {
        let done = dir.run(args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        let known = flags(&dir.ok(&[args[0], "--help"]));
        let named = flags(&done.stderr);
        hinted += named.len();
        assert!(named.is_subset(&known), "{args:?} lacks {:?}: {}", named.difference(&known), done.stderr);
    }
    assert!(hinted >= 5, "only {hinted} flags were named; does this test see them?");
}

#[test]
fn a_world_of_ones_own_is_learnt_from_its_pictures() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let world = ["gym:my_world:Catch-v0", "--option", EXAMPLES];
    let more = [
        "--json",
        "--no-videos",
        "--set",
        "recipe.stage.0.starts=1",
        "--set",
        "recipe.stage.0.steps=350_000",
        "--set",
        "recipe.stage.1.steps=1",
        "--set",
        "recipe.selection={every=120_000, tracks=10, finalists=2, final_tracks=20, report_tracks=30}",
    ];
    let learnt = result(&dir.ok(&[&["train"], &world[..], &more].concat()));
    let random =
        dir.json(&[&["eval", "random-actions", "--json", "--episodes", "30", "--env"], &world[..]].concat());
    let random = random["mean"].as_f64().expect("a mean");
    assert!(learnt > random + 2.0, "{learnt} is no better than {random}");
}
