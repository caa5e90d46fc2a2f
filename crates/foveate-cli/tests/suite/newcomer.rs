//! The experience of a new user.

use crate::common;

use crate::common::{Dir, check_fails, npz, weights};
use foveate::AGENTS;
use foveate::agents::registry::published;
#[cfg(not(feature = "eigen"))]
use foveate::run::config::TrainConfig;
use foveate::run::weights::load_weights_or_run;
use serde_json::Value;

/// A folder with a weight file and two runs that contain only a configuration.
fn with_runs() -> Dir {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    for run in ["runs/car-racing", "runs/second"] {
        std::fs::create_dir_all(dir.path(run)).expect("writable");
        dir.write(&format!("{run}/config.toml"), "");
    }
    dir.write("mine.toml", "seed = 3\n");
    dir
}

/// A feature that the build does not include is rejected before anything runs, also when the folder of an old
/// run uses it.
#[test]
#[cfg(not(feature = "eigen"))]
fn eigenvectors_need_a_build_with_them() {
    let dir = with_runs();
    let parts = ["form = \"eigen\"", "cargo run --release --features eigen --", "form = \"cholesky\""];
    let paper = ["train", "car-racing", "--preset", "paper", "--name", "new"];
    check_fails(&dir, &[&paper[..], &["--set", "recipe.stage.0.form=eigen"]].concat(), &parts);
    assert!(!dir.path("runs/new").exists());
    let old = TrainConfig::load("paper", None, &[""; 0]).expect("a preset").to_toml();
    assert!(old.contains("form = \"cholesky\""), "{old}");
    dir.write("runs/second/config.toml", old.replace("\"cholesky\"", "\"eigen\""));
    for made_by_opening in ["lock", "log.jsonl"] {
        dir.write(&format!("runs/second/{made_by_opening}"), "");
    }
    check_fails(&dir, &["train", "--resume", "runs/second"], &parts);
}

#[test]
fn near_misses_suggest_the_name() {
    let dir = with_runs();
    let eval = ["eval", "w.safetensors", "--episodes", "1"];
    for (args, want) in [
        (&["train", "CarRacing-v3"][..], "did you mean car-racing, or gym:CarRacing-v3 (needs Python)?"),
        (&["train", "car_racing"], "did you mean car-racing?"),
        (&["train", "carracing"], "did you mean car-racing?"),
        (&["train", "takecover"], "did you mean take-cover?"),
        (&["train", "CartPole-v1"], "or gym:CartPole-v1 (needs Python)?"),
        (&["train", "cartpole"], "did you mean cartpole-swingup, or gym:CartPole-v1"),
        (&["train", "runs/car-racing"], "`foveate train --resume runs/car-racing`"),
        (&["train", "mine.toml"], "`foveate train --config mine.toml`"),
        (&["train", "car-racing", "--preset", "papper"], "did you mean paper?"),
        (&["train", "car-racing", "--set", "agent.name=AttentionAgent"], "did you mean attention-agent?"),
        (&["train", "car-racing", "--set", "agent.config.topk=5"], "did you mean top_k?"),
        (&["train", "car-racing", "--set", "agent.config.voting.kernel=reluu"], "did you mean relu?"),
        (&["train", "car-racing", "--set", "recipe.algorithm=cma"], "did you mean cma-es?"),
        (&["train", "car-racing", "--set", "recipe.stage.0.sigm=1"], "did you mean sigma?"),
        (&["train", "car-racing", "--set", "recipe.max_step=5"], "did you mean max_steps?"),
        (&["train", "car-racing", "--set", "sede=5"], "did you mean seed?"),
        (&["train", "car-racing", "--set", "sigma=0.2"], "did you mean recipe.stage.0.sigma?"),
        (&["train", "car-racing", "--set", "top_k=5"], "did you mean agent.config.top_k?"),
        (&["train", "--resume", "car-racing"], "did you mean the run runs/car-racing?"),
        (&["compare", "secnd"], "did you mean the run runs/second?"),
        (&["eval", "car_racing"], "did you mean the run runs/car-racing?"),
        (&["eval", "runs/secod"], "did you mean the run runs/second?"),
        (&["watch", "pong"], "train an agent with `foveate train pong`"),
        (&["eval", "gym:CartPole-v1"], "`foveate train gym:CartPole-v1`"),
        (&["eval", "randm"], "did you mean random?"),
        (&["eval", "--env", "CarRacing-v3"], "did you mean car-racing"),
        (&["import", "w.npz", "--agent", "attention_agent"], "did you mean attention-agent?"),
        (&[&eval[..], &["--env", "car_racing"]].concat(), "did you mean car-racing?"),
        (&[&eval[..], &["--picture", "clasic"]].concat(), "did you mean classic?"),
        (&[&eval[..], &["--variant", "bloob"]].concat(), "did you mean blob?"),
        (&[&eval[..], &["--variant", "blob:sied=3"]].concat(), "did you mean side?"),
        (&[&eval[..], &["--shift", "nosie:2"]].concat(), "did you mean noise?"),
        (&[&eval[..], &["--option", "continous=false"]].concat(), "did you mean continuous?"),
        (&[&eval[..], &["--wrap", "gray"]].concat(), "did you mean grey?"),
        (&["stress", "w.safetensors", "--shifts", "blurr"], "did you mean blur?"),
        (&["list", "wrold"], "did you mean worlds?"),
    ] {
        check_fails(&dir, args, &[want]);
    }
    // Without any run there is only the champion to suggest.
    let dir = Dir::new();
    check_fails(&dir, &["eval", "car_racing"], &["cannot read car_racing: ", "did you mean car-racing?"]);
    check_fails(&dir, &["eval", "none"], &["cannot read none", "check the path"]);
}

#[test]
fn list_shows_one_part() {
    let dir = Dir::new();
    let all = dir.ok(&["list", "all"]);
    let everything = dir.json(&["list", "--json"]);
    for (part, has, lacks) in [
        ("worlds", "world car-racing: ", "agent attention-agent"),
        ("world", "world take-cover: ", "agent attention-agent"),
        ("variants", "fake-lane", "world car-racing: "),
        ("shifts", "background-still", "fake-lane"),
        ("wrappers", "resize", "background-still"),
        ("gym", "gym_wrapper", "resize"),
        ("agents", "agent iap: ", "world car-racing"),
        ("kernels", "relu", "agent iap: "),
        ("strategies", "sep-cma-es", "relu"),
        ("strategy", "sep-cma-es", "relu"),
        ("learners", "sep-cma-es", "relu"),
        ("champions", "in door-key-16x16", "relu"),
        ("presets", "DoomTakeCover on one computer", "sep-cma-es"),
    ] {
        let text = dir.ok(&["list", part]);
        assert!(text.contains(has) && !text.contains(lacks), "{part}: {text}");
        let extra = ["variants", "learners", "champions"].contains(&part);
        if !extra {
            assert!(all.contains(&text), "{part} is a piece of the whole list: {text}");
        }
        let Value::Object(list) = dir.json(&["list", part, "--json"]) else { panic!("{part}: no object") };
        assert_eq!(list.len(), 1, "{part}");
        for (name, value) in list {
            assert!(value.as_array().is_some_and(|list| !list.is_empty()), "{part}: {value}");
            if !extra {
                assert_eq!(value, everything[&name]);
            }
        }
    }
}

#[test]
fn list_is_an_overview_and_finds_any_name() {
    let dir = Dir::new();
    let overview = dir.ok(&["list"]);
    assert!(
        overview.lines().count() < 90 && overview.lines().all(|line| line.chars().count() <= 100),
        "{overview}"
    );
    for name in [
        "car-racing",
        "door-key-16x16",
        "gym:ID",
        "iap",
        "ppo",
        "relational-ppo",
        "fake-lane",
        "sticky",
        "relu",
    ] {
        assert!(overview.contains(name), "{name} is not in {overview}");
    }
    for (name, has, lacks) in [
        ("car-racing", "fake-lane", "door-key"),
        ("gym:CartPole-v1", "gym_wrapper", "car-racing"),
        ("attention-neuron", "car-racing with patches in any order", "random-actions"),
        ("ppo", "learner:", "preset"),
        ("laptop-relu", "trains attention-agent", "iap"),
        ("car-racing-attention-neuron", "in car-racing", "door-key"),
        ("shuffle", "shift:", "noise"),
        ("stack", "observations at once", "grey"),
        ("relu", "kernel:", "softmax"),
        ("fake-lane", "variant:", "blob"),
    ] {
        let text = dir.ok(&["list", name]);
        assert!(text.contains(has) && !text.contains(lacks), "{name}: {text}");
    }
    let found = dir.json(&["list", "car-racing", "--json"]);
    assert_eq!(
        (&found["worlds"][0]["name"], &found["champions"][0]["world"]),
        (&"car-racing".into(), &"car-racing".into())
    );
    check_fails(&dir, &["list", "car-racin"], &["nothing is called", "did you mean car-racing?", "learners"]);
}

#[test]
fn a_champion_is_named_like_a_file_and_a_file_comes_first() {
    let dir = with_runs();
    let eval = |name: &str, more: &[&str]| {
        let short = ["eval", name, "--episodes", "1", "--max-steps", "2"];
        dir.ok(&[&short[..], more].concat())
    };
    assert!(eval("car-racing", &[]).contains("car-racing champion"));
    assert!(eval("cartpole-swingup-harder", &[]).contains("on        cartpole-swingup-harder"));
    let elsewhere = eval("door-key-16x16", &["--env", "door-key-8x8"]);
    assert!(
        elsewhere.contains("door-key-16x16 champion") && elsewhere.contains("on        door-key-8x8"),
        "{elsewhere}"
    );
    dir.ok(&["watch", "door-key-5x5", "--at", "1", "--out", "a.png"]);
    let stress = ["stress", "door-key-5x5", "--variants", "none", "--episodes", "1", "--max-steps", "2"];
    assert!(dir.ok(&stress).contains("door-key-5x5"));
    // A folder that is no run is not meant; a file of this name is, and a path always is.
    std::fs::create_dir(dir.path("car-racing")).expect("writable");
    assert!(eval("car-racing", &[]).contains("car-racing champion"));
    check_fails(&dir, &["eval", "./car-racing"], &["neither best.safetensors nor last"]);
    std::fs::remove_dir(dir.path("car-racing")).expect("ours");
    dir.write("car-racing", weights());
    let own = eval("car-racing", &[]);
    assert!(!own.contains("champion"), "{own}");
}

#[test]
fn worlds_steps_and_kinds_of_presets_are_named_alike_everywhere() {
    let dir = Dir::new();
    for (args, wants) in [
        (&["train", "--env", "moon"][..], &["no environment is called \"moon\""][..]),
        (&["train", "--env", "car-racing", "--steps", "0"], &["0 training steps; choose 1 or more"]),
        (
            &["train", "door-key-8x8", "--preset", "ppo"],
            &["several", "relational-ppo, door-key-ppo; name one"],
        ),
        (
            &["train", "car-racing", "--preset", "quadruped"],
            &["no preset for car-racing is called", "laptop-relu"],
        ),
        (
            &["train", "--env", "cartpole-swingup-harder", "--preset", "ppo"],
            &["no preset for cartpole-swingup-harder"],
        ),
    ] {
        check_fails(&dir, args, wants);
    }
    assert_eq!(dir.run(&["train", "car-racing", "--env", "car-racing"]).code, Some(2), "one of them");
    // One flag limits the steps, whichever of its two names another command has taught.
    let steps = |args: &[&str]| dir.ok(&[args, &["--env", "door-key-5x5"]].concat());
    assert!(steps(&["eval", "random", "--episodes", "1", "--steps", "3"]).contains("3 steps on average"));
    assert!(
        steps(&["watch", "random", "--max-steps", "3", "--out", "a.gif"]).contains("3 steps, not to the end")
    );
}

#[test]
fn what_does_not_fit_says_what_does() {
    let dir = Dir::new();
    let door = ["eval", "--env", "door-key-5x5", "--episodes", "1"];
    check_fails(
        &dir,
        &[&door[..], &["--picture", "view"]].concat(),
        &["; with `--picture one-hot` it shows that"],
    );
    check_fails(
        &dir,
        &[&door[..], &["--shift", "blur:2"]].concat(),
        &["not a picture; choose one that fits: sticky, unsteady"],
    );
    let numbers = ["eval", "--env", "cartpole-swingup-harder", "--shift", "hue:3"];
    check_fails(
        &dir,
        &numbers,
        &["shows 5 numbers, not a picture; choose one that fits: sticky", "noise-channels"],
    );
    let looks = ["train", "door-key-5x5", "--set", "agent.name=attention-agent"];
    check_fails(&dir, &looks, &["with `--picture rgb` it shows one"]);
    // No world is suggested in place of itself.
    let done = dir.run(&["eval", "--env", "door-key-8x8"]);
    assert!(
        done.stderr.contains("no trained agent for door-key-8x8") && !done.stderr.contains("did you mean"),
        "{}",
        done.stderr
    );
    // Nor an agent that could not act there.
    let fit = "`foveate train door-key-8x8` makes one";
    assert!(
        done.stderr.contains(fit) && done.stderr.ends_with(": door-key-5x5, door-key-16x16\n"),
        "{}",
        done.stderr
    );
    let other = ["eval", "--env", "walker-walk"];
    check_fails(
        &dir,
        &other,
        &["`foveate train walker-walk` makes one; or name a weight file or the folder of a run"],
    );
}

#[test]
fn a_missing_file_has_one_phrase() {
    let dir = Dir::new();
    for args in [
        &["eval", "moon"][..],
        &["watch", "moon"],
        &["explain", "moon"],
        &["stress", "moon"],
        &["lab", "moon"],
        &["compare", "moon"],
        &["import", "moon"],
        &["replay", "--failure", "moon"],
        &["train", "--resume", "moon"],
        &["train", "--config", "moon"],
        &["train", "car-racing", "--init", "moon"],
    ] {
        check_fails(&dir, args, &["cannot read moon: there is no such file or folder; "]);
    }
}

#[test]
fn own_flags_come_before_shared_ones() {
    // The arguments of `WeightsArg` and `WorldArgs`.
    const SHARED: [&str; 9] =
        ["image-threads", "env", "picture", "variant", "shift", "option", "env-arg", "wrap", "trust-world"];
    let dir = Dir::new();
    for command in ["eval", "stress", "watch", "explain", "heads", "replay", "lab", "train", "import"] {
        let mut own = vec![];
        let mut shared = vec![];
        let mut heading = String::new();
        for line in dir.ok(&[command, "--help"]).lines() {
            if line.ends_with(':') && !line.contains(' ') {
                line.clone_into(&mut heading);
            }
            let Some(flag) =
                line.trim_start().trim_start_matches("-h, ").trim_start_matches("-V, ").strip_prefix("--")
            else {
                continue;
            };
            let flag = flag.split_whitespace().next().expect("a name").to_owned();
            if heading == "Options:" {
                assert!(shared.is_empty(), "{command}: --{flag} comes after shared flags");
                own.push(flag);
            } else {
                shared.push(flag);
            }
        }
        assert!(own.contains(&"help".to_owned()), "{command}: {own:?}");
        assert!(
            shared.iter().all(|flag| SHARED.contains(&flag.as_str())),
            "{command} has its own among {shared:?}"
        );
        if command != "import" && command != "train" {
            assert!(shared.contains(&"env".to_owned()), "{command}: {shared:?}");
            assert!(own.iter().all(|flag| !SHARED.contains(&flag.as_str())), "{command}: {own:?}");
        }
    }
}

/// Runs a command on a terminal with this many columns, and returns its complete output.
#[cfg(unix)]
fn on_terminal(dir: &Dir, columns: u16, args: &[&str]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    use std::io::Read;

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("ours");
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("a size");
    let name = ptsname(&terminal, Vec::new()).expect("a name");
    let side = || {
        let path = std::path::Path::new(name.to_str().expect("text"));
        std::fs::OpenOptions::new().read(true).write(true).open(path).expect("the other side")
    };
    let mut child = {
        let mut command = dir.command(args);
        command.stdout(side()).stderr(side());
        command.spawn().expect("the binary starts")
    };
    let mut shown = vec![];
    // Reading fails once the other side is closed.
    let _ = std::fs::File::from(terminal).read_to_end(&mut shown);
    child.wait().expect("it ends");
    String::from_utf8(shown).expect("text").replace("\r\n", "\n")
}

#[cfg(unix)]
#[test]
fn a_narrow_terminal_gets_whole_words() {
    const COLUMNS: usize = 64;
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    dir.write("short.toml", common::SHORT);
    let eval = ["eval", "w.safetensors", "--picture", "fast", "--max-steps", "20", "--episodes"];
    for args in [
        &["--help"][..],
        &["train", "--help"],
        &["stress", "--help"],
        &["list"],
        &[&eval[..], &["3"]].concat(),
        &[&eval[..], &["3", "--each-variant"]].concat(),
        &["eval", "none", "--wrap", "a-rather-long-name-of-a-wrapper-that-does-not-exist"],
        &["train", "--config", "short.toml"],
    ] {
        let shown = on_terminal(&dir, COLUMNS as u16, args);
        let piped = dir.run(args);
        let whole: Vec<&str> =
            piped.stdout.split_whitespace().chain(piped.stderr.split_whitespace()).collect();
        for line in shown.split(['\n', '\r']) {
            let line = line.trim_start_matches("\x1b[2K").trim_end();
            // Clap underlines its headings.
            let plain: String = line
                .split('\x1b')
                .enumerate()
                .map(
                    |(i, piece)| {
                        if i == 0 { piece } else { piece.split_once('m').map_or(piece, |(_, rest)| rest) }
                    },
                )
                .collect();
            // Only a single word that is longer than the terminal may extend beyond it.
            let long = plain.split_whitespace().any(|word| word.chars().count() + 8 > COLUMNS);
            assert!(plain.chars().count() <= COLUMNS || long, "{args:?}: {plain}");
        }
        // Output that differs between runs cannot be compared.
        if args.contains(&"--help") || ["list", "none"].iter().any(|word| args.contains(word)) {
            for word in shown.split_whitespace().filter(|word| !word.contains('\x1b')) {
                assert!(whole.contains(&word) || word == "next:", "{args:?}: {word:?} is a piece of a word");
            }
        }
    }
}

#[test]
fn a_pipe_hears_of_progress_where_it_spoils_nothing() {
    let dir = Dir::new();
    dir.write("w.safetensors", weights());
    dir.write("short.toml", common::SHORT);
    let world = ["--picture", "fast"];
    for (args, want, on_stdout) in [
        (
            &["eval", "w.safetensors", "--episodes", "6", "--workers", "1", "--json"][..],
            " of 6 episodes",
            false,
        ),
        (&["stress", "w.safetensors", "--episodes", "3", "--variants", "bar", "--json"], "row ", false),
        (
            &[
                "explain",
                "w.safetensors",
                "--episodes",
                "1",
                "--decisions",
                "2",
                "--max-steps",
                "30",
                "--json",
            ],
            " %  ",
            false,
        ),
        (&["watch", "w.safetensors", "--steps", "60"], "step ", false),
    ] {
        let mut command = dir.command(&[args, &world].concat());
        command.env("FOVEATE_PROGRESS_SECONDS", "0.05");
        let out = command.output().expect("the binary starts");
        let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "{args:?}: {stderr}");
        let told = if on_stdout { &stdout } else { &stderr };
        assert!(told.lines().any(|line| line.starts_with("0:") && line.contains(want)), "{args:?}: {told}");
        assert!(!stderr.contains('\x1b') && !stdout.contains('\x1b'), "{args:?}");
        if args.contains(&"--json") {
            serde_json::from_str::<Value>(&stdout).expect("one JSON object and nothing else");
        }
        // No progress is shown for a command that takes less than a minute, only what it costs.
        let quiet = dir.run(&[args, &world].concat());
        let cost = format!("{}: ", args[0]);
        assert!(quiet.stderr.lines().all(|line| line.starts_with(&cost)), "{args:?}: {}", quiet.stderr);
    }
}

#[test]
fn training_says_what_it_does_what_it_costs_and_what_comes_next() {
    let dir = Dir::new();
    dir.write("short.toml", common::SHORT);
    let mut command = dir.command(&["train", "--config", "short.toml", "--name", "a"]);
    command.env("FOVEATE_PROGRESS_SECONDS", "0.02");
    let out = command.output().expect("the binary starts");
    let told = String::from_utf8_lossy(&out.stdout);
    assert!(told.lines().any(|line| line.starts_with("0:0") && line.contains("gen ")), "{told}");
    assert!(told.contains("rollouts"), "{told}");
    let next = told.split("next:\n").nth(1).expect("what comes next");
    for line in next.lines() {
        let args: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert!(line.starts_with("  foveate ") && args[1].ends_with("runs/a"), "{line}");
        let short = match args[0] {
            "watch" => ["--steps", "2"],
            "eval" => ["--max-steps", "2"],
            _ => continue,
        };
        dir.ok(&[&args[..], &short].concat());
    }
    assert!(next.contains("foveate watch") && next.contains("foveate eval"), "{next}");
    assert!(!told.contains("this costs"), "{told}");

    // The published recipe, with the smallest possible population.
    let mut command = dir.command(&[
        "train",
        "car-racing",
        "--preset",
        "paper",
        "--name",
        "p",
        "--workers",
        "1",
        "--no-videos",
    ]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the binary starts");
    let mut first = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().expect("piped")),
        &mut first,
    )
    .expect("a line");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(
        first.starts_with("this costs up to 8.2 billion steps: 160 to 260 hours of CPU time")
            && first.contains("MB of memory"),
        "{first}"
    );
}

#[test]
fn published_weights_are_recognised_by_their_number() {
    let dir = Dir::new();
    for (count, agent, flags, world) in [
        (913, "attention-neuron", &[][..], "cartpole-swingup-harder"),
        (2504, "attention-neuron", &[], "ant"),
        (2248, "controller", &["--agent", "attention-neuron"], "ant"),
        (3667, "attention-agent", &["--agent", "attention-neuron"], "car-racing"),
        (7212, "attention-neuron", &[], "car-racing"),
        (1_687_726, "attention-neuron", &[], "pong"),
    ] {
        let counting: Vec<f32> = (0..count).map(|i| i as f32).collect();
        dir.write("w.npz", npz(&counting));
        let told = dir.json(&[&["import", "w.npz", "--json"], flags].concat());
        assert_eq!(
            (&told["agent"], &told["params"], &told["layout"]),
            (&Value::from(agent), &count.into(), &"registration".into()),
            "{count}"
        );
        let (file, _) = load_weights_or_run(&dir.path("w.safetensors")).expect("it was written");
        let noted: Value = serde_json::from_str(&file.about["world"]).expect("JSON");
        assert_eq!(noted["id"], world, "{count}");
        // Another layout or divisor is the user's to choose.
        let sorted = [&["import", "w.npz", "--layout", "sorted", "--json"], flags].concat();
        assert_ne!(dir.json(&sorted)["sha256"], told["sha256"], "{count}");
    }
    dir.write("w.npz", npz(&(0..3667).map(|i| i as f32).collect::<Vec<_>>()));
    let scale = |flags: &[&str]| {
        dir.json(&[&["import", "w.npz", "--json"], flags].concat())["config"]["scale"].clone()
    };
    assert_eq!(scale(&["--agent", "attention-neuron"]), "sqrt_d");
    assert_eq!(scale(&["--agent", "attention-agent"]), "sqrt_d_in", "the AttentionAgent release");
    assert_eq!(scale(&["--layout", "sorted"]), "sqrt_d_in", "only the AttentionAgent release has this order");
}

#[test]
fn a_number_of_weights_that_several_releases_have_needs_the_agent() {
    let dir = Dir::new();
    let mut pairs = 0;
    for one in AGENTS.iter().flat_map(|agent| agent.published) {
        let releases = published(None, one.params);
        if releases.len() < 2 {
            continue;
        }
        pairs += 1;
        let numbers: Vec<f32> = (0..one.params).map(|i| (i as f32 * 0.37).sin()).collect();
        dir.write("w.npz", npz(&numbers));
        let tries =
            [&[][..], &["--layout", "registration"], &["--env", one.world.id], &["--scale", "sqrt-d"]];
        for (of, weights) in &releases {
            let flag = format!("--agent {of}");
            for flags in tries {
                check_fails(&dir, &[&["import", "w.npz"], flags].concat(), &["are those of", &flag]);
            }
            check_fails(&dir, &["import", "w.npz"], &[&format!("{of}'s published {}", weights.name)]);
        }
    }
    assert_eq!(pairs, 3, "AttentionAgent's, its branch's and AttentionNeuron's CarRacing");
    // What the message says is what helps.
    let choices = [
        (&["--agent", "attention-agent"][..], "sqrt_d_in", "sorted"),
        (&["--agent", "attention-agent", "--layout", "registration"], "sqrt_d_in", "registration"),
        (&["--agent", "attention-neuron"], "sqrt_d", "registration"),
    ];
    for (flags, scale, layout) in choices {
        let told = dir.json(&[&["import", "w.npz", "--json"], flags].concat());
        assert_eq!((&told["config"]["scale"], &told["layout"]), (&scale.into(), &layout.into()), "{flags:?}");
    }
}

#[test]
fn the_released_attention_agent_is_known_by_its_numbers() {
    let Some(file) = foveate_toy::needs::data("attention_agent_carracing.npz") else { return };
    let bytes = std::fs::read(file).expect("readable");
    let dir = Dir::new();
    dir.write("carracing.npz", bytes);
    let told = dir.json(&["import", "carracing.npz", "--json"]);
    assert_eq!((&told["config"]["scale"], &told["layout"]), (&"sqrt_d_in".into(), &"sorted".into()));
}

#[test]
fn import_finds_the_world_by_the_number_of_weights() {
    let dir = Dir::new();
    let of = |count: usize| npz(&(0..count).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>());
    for (count, flags, world) in
        [(3667, &["--layout", "sorted"][..], Value::Null), (3633, &[], "take-cover".into())]
    {
        dir.write("w.npz", of(count));
        let done = dir.run(&[&["import", "w.npz"], flags].concat());
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let (file, _) = load_weights_or_run(&dir.path("w.safetensors")).expect("it was written");
        assert_eq!(file.params().len(), count);
        assert_eq!(done.stderr.contains("take-cover"), !world.is_null(), "{}", done.stderr);
        let noted = file
            .about
            .get("world")
            .map_or(Value::Null, |text| serde_json::from_str::<Value>(text).expect("JSON")["id"].clone());
        assert_eq!(noted, world);
    }
    std::fs::remove_file(dir.path("w.safetensors")).expect("it is there");
    for (count, flags, wants) in [
        (
            3633,
            &["--env", "car-racing"][..],
            &["3633 is what `--agent attention-agent --env take-cover`"][..],
        ),
        (3667, &["--env", "take-cover"], &["`--agent attention-agent --env car-racing`"]),
        (
            2504,
            &["--agent", "attention-agent"],
            &["2504 is what the published ant_pi of attention-neuron has"],
        ),
        (914, &["--agent", "attention-neuron"], &["914 parameters were given, this agent has 913"]),
        (50, &[], &["50 parameters were given", "--config"]),
    ] {
        dir.write("w.npz", of(count));
        check_fails(&dir, &[&["import", "w.npz"], flags].concat(), wants);
    }
}
