//! Third-party worlds, in their pinned versions: each is run with an agent with attention and one without,
//! and recorded.

use std::process::Command;

use crate::common::Dir;
use serde_json::Value;

/// A world: its name in this test, its flags, the seed of an agent with visible behaviour if the world has a
/// picture, the steps of an episode, and the number of steps per frame of a GIF, which shows about 25 frames
/// per second.
struct World(&'static str, &'static str, Option<u8>, usize, usize);

const WORLDS: [World; 10] = [
    World("pong", "--env gym:ALE/Pong-v5", Some(1), 20, 1),
    World("breakout", "--env gym:ALE/Breakout-v5", Some(1), 20, 1),
    World("seaquest", "--env atari --option game=seaquest --option sticky=0.25", Some(1), 20, 1),
    World("key", "--env gym:MiniGrid-DoorKey-5x5-v0 --picture render", Some(4), 12, 1),
    World(
        "key in part",
        "--env gym:MiniGrid-DoorKey-5x5-v0 \
         --option gym_wrapper=minigrid.wrappers.RGBImgPartialObsWrapper(tile_size=12)",
        Some(4),
        12,
        1,
    ),
    World("cheetah", "--env gym:dm_control/cheetah-run-v0 --picture render", Some(1), 8, 4),
    World("cheetah's numbers", "--env gym:dm_control/cheetah-run-v0", None, 20, 4),
    World("car", "--env gym:CarRacing-v3", Some(1), 12, 2),
    World("ant", "--env ant", None, 20, 2),
    World("doom", "--env gym:VizdoomTakeCover-v1", Some(1), 12, 1),
];

#[test]
fn atari() {
    check("pong");
    check("breakout");
    check("seaquest");
}

#[test]
fn scores_in_atari_are_compared_with_people() {
    let Some(python) = foveate_toy::needs::worlds_python() else { return };
    let dir = Dir::new();
    let eval = |more: &[&str]| -> String {
        let world =
            ["eval", "random-actions", "--env", "atari", "--option", "game=breakout", "--seeds", "0..3"];
        let done = dir.command(&[&world, more].concat()).env("FOVEATE_PYTHON", &python).output();
        let done = done.expect("the binary starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text")
    };
    let json = |more: &[&str]| -> Value {
        serde_json::from_str(&eval(&[&["--json"], more].concat())).expect("one JSON object")
    };
    let report = json(&[]);
    let normalised = &report["human_normalised"];
    assert_eq!(
        (&normalised["task"], &normalised["random"], &normalised["human"]),
        (&"breakout".into(), &1.7.into(), &30.5.into())
    );
    for (score, percent) in [
        (&report["mean"], &normalised["mean"]),
        (&report["ci95"][0], &normalised["ci95"][0]),
        (&report["ci95"][1], &normalised["ci95"][1]),
    ] {
        let (score, percent) = (score.as_f64().expect("a number"), percent.as_f64().expect("a number"));
        assert!((percent - (score - 1.7) / 0.288).abs() < 1e-9, "{report}");
    }
    let percent =
        format!("  score     {:.1} % human-normalised", normalised["mean"].as_f64().expect("a number"));
    assert!(eval(&[]).contains(&percent), "{percent}");
    // Parts of episodes and clipped rewards are not comparable.
    assert!(json(&["--max-steps", "20"])["human_normalised"].is_null());
    assert!(json(&["--wrap", "clip"])["human_normalised"].is_null());
}

/// An episode of several games is that of one of them, and counts as its normalised score.
#[test]
fn several_games_are_one_world() {
    let Some(python) = foveate_toy::needs::worlds_python() else { return };
    let dir = Dir::new();
    let eval = |game: &str| -> Value {
        let game = format!("game={game}");
        let flags =
            ["eval", "random-actions", "--env", "atari", "--option", &game, "--option", "actions=full"];
        let more = ["--seeds", "0..6", "--json"];
        let done = dir.command(&[&flags[..], &more].concat()).env("FOVEATE_PYTHON", &python).output();
        let done = done.expect("the binary starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let report: Value = serde_json::from_slice(&done.stdout).expect("one JSON object");
        assert!(report["human_normalised"].is_null() == game.contains('+'), "{report}");
        report
    };
    let returns = |report: &Value| -> Vec<f64> {
        let returns = report["returns"].as_array().expect("a list");
        returns.iter().map(|value| value.as_f64().expect("a number")).collect()
    };
    let report = eval("pong+breakout*2");
    let (pong, breakout, both) = (returns(&eval("pong")), returns(&eval("breakout")), returns(&report));
    let mut games = [0, 0];
    for ((pong, breakout), both) in pong.iter().zip(&breakout).zip(&both) {
        let scores = [(pong + 20.7) / 0.353, (breakout - 1.7) / 0.288];
        let game = scores.iter().position(|score| (score - both).abs() < 1e-6);
        games[game.unwrap_or_else(|| panic!("{both} is not one of {scores:?}"))] += 1;
    }
    assert!(games[0] > 0 && games[1] > 0, "{games:?}");
    for (task, (name, episodes)) in ["pong", "breakout"].into_iter().zip(games).enumerate() {
        let task = &report["tasks"][task];
        assert_eq!((task["task"].as_str(), task["n"].as_u64()), (Some(name), Some(episodes)), "{report}");
    }
}

/// Population-based training in two games; its log has the fittest member and its settings.
#[test]
fn a_population_learns_two_games() {
    let Some(python) = foveate_toy::needs::worlds_python() else { return };
    let dir = Dir::new();
    let run = |flags: &[&str]| {
        let done = dir.command(flags).env("FOVEATE_PYTHON", &python).output().expect("the binary starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let train = |name: &str, generations: &str| {
        let stage = [
            "max_steps=30",
            "tracks=2",
            "begin=0",
            "interval=1",
            "members=3",
            "vtrace.unroll=10",
            generations,
        ];
        let stage = stage.map(|setting| format!("recipe.stage.0.{setting}"));
        let selection = ["tracks=2", "finalists=1", "final_tracks=2", "report_tracks=2"];
        let selection = selection.map(|setting| format!("recipe.selection.{setting}"));
        let small = ["recipe.max_steps=30".to_owned(), "env.options.wrap=grey+resize:20x20".to_owned()];
        let mut flags = vec!["train", "atari", "--preset", "s3ta-population", "--name", name];
        for setting in stage.iter().chain(&selection).chain(&small) {
            flags.extend(["--set", setting]);
        }
        run(&flags);
    };
    train("whole", "generations=3");
    let log = std::fs::read_to_string(dir.path("runs/whole/log.jsonl")).expect("a log");
    let last: Value = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event"))
        .rfind(|event: &Value| event["event"] == "generation")
        .expect("a generation");
    let measures = &last["measures"];
    assert_eq!(last["generation"], 3);
    for name in ["fitness", "member", "copies", "learning_rate", "entropy_weight", "epsilon", "clip", "loss"]
    {
        assert!(measures[name].is_number(), "{name}: {measures}");
    }
    // 3 members of 2 episodes of 30 steps.
    assert_eq!(last["steps"], 3 * 180);
}

#[test]
fn minigrid() {
    check("key");
    check("key in part");
}

#[test]
fn dm_control() {
    if std::env::var_os("FOVEATE_WORLDS_DRAW").is_none() {
        foveate_toy::needs::skip("FOVEATE_WORLDS_DRAW does not say that MuJoCo can draw");
        return;
    }
    check("cheetah");
    check("cheetah's numbers");
}

#[test]
fn car_racing() {
    check("car");
}

#[test]
fn ant() {
    check("ant");
}

#[test]
fn vizdoom() {
    check("doom");
}

/// Runs and records the world `name`: the same results with one worker and with two, other episodes for other
/// seeds, and videos of the right size and length in which something changes.
#[track_caller]
fn check(name: &str) {
    let (Some(worlds), Some(decoder)) = (foveate_toy::needs::worlds_python(), foveate_toy::needs::python())
    else {
        return;
    };
    let World(_, flags, agent, steps, per_frame) =
        WORLDS.iter().find(|world| world.0 == name).expect("a row of the table");
    let limit = format!("limit:{steps}");
    let world: Vec<&str> = flags.split_whitespace().chain(["--wrap", &limit]).collect();
    let dir = Dir::new();
    let foveate = |args: &[&str]| -> String {
        let all = [args, &world].concat();
        let done = dir.command(&all).env("FOVEATE_PYTHON", &worlds).output().expect("the binary starts");
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{name}: {all:?}: {text}");
        // What it costs, on a slow machine.
        let cost = format!("{}: ", args[0]);
        assert!(
            text.lines().all(|line| line.starts_with(&cost) && line.contains("about ")),
            "{name}: {all:?}: nothing went wrong, yet it said: {text}"
        );
        String::from_utf8(done.stdout).expect("text")
    };
    let mut films = vec![];
    let agent = agent.map(|seed| format!("random:{seed}"));
    for driver in ["random-actions:3"].into_iter().chain(agent.as_deref()) {
        let eval = |workers: &str| -> Value {
            let args = ["eval", driver, "--seeds", "0..4", "--json", "--workers", workers];
            let mut report: Value = serde_json::from_str(&foveate(&args)).expect("one JSON object");
            report["steps_per_cpu_second"] = Value::Null;
            report
        };
        let (one, two) = (eval("1"), eval("2"));
        assert_eq!(one, two, "{name}, {driver}: the number of workers changes nothing");
        let lengths = one["lengths"].as_array().expect("a list");
        assert!(lengths.iter().all(|n| (1..=*steps as u64).contains(&n.as_u64().expect("a count"))), "{one}");
        assert!(one["returns"].as_array().expect("a list").iter().all(Value::is_number), "{one}");
        let file = if Some(driver) == agent.as_deref() { "agent.mp4" } else { "actions.gif" };
        let said = foveate(&["watch", driver, "--seed", "2", "--size", "804x408", "--out", file]);
        let played = said.split("; ").nth(1).and_then(|part| part.split(' ').next()?.parse::<usize>().ok());
        films.push((file, played.expect(&said)));
    }
    let left: Vec<_> = dir.everything().into_iter().map(|(path, _)| path).collect();
    assert_eq!(left.len(), films.len(), "{name}: nothing but films is left: {left:?}");

    let mut python = Command::new(decoder);
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/films.py"));
    let done = python.args(films.iter().map(|(file, _)| dir.path(file))).output().expect("Python starts");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    let told: Vec<Value> = serde_json::from_slice(&done.stdout).expect("a list");
    assert_eq!(told.len(), films.len());
    for ((file, played), told) in films.iter().zip(told) {
        let of = format!("{name}, {file}: {told}");
        assert_eq!((told["width"].as_u64(), told["height"].as_u64()), (Some(804), Some(408)), "{of}");
        let steps = if file.ends_with("gif") { played.div_ceil(*per_frame) } else { *played };
        assert_eq!(told["frames"].as_u64(), Some(steps as u64 + 1), "each step and the beginning: {of}");
        for picture in ["world", "agent"] {
            let number = |what: &str| told[picture][what].as_f64().expect("a number");
            assert!(number("least") > 5.0, "a blank {picture}: {of}");
            assert!(number("changed") >= 10.0, "nothing happens in the {picture}'s picture: {of}");
        }
        if std::env::var_os("FOVEATE_SHOW").is_some() {
            eprintln!("{of}");
        }
    }
}
