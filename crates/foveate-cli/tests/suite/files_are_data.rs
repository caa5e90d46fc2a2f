//! Files are data: no weights, configuration, run folder or recorded failure starts a program or imports a
//! module, whatever its contents, unless the command line allows it.
//!
//! Most cases need no Python: a planted one leaves a mark when it is started, and native worlds never start
//! any.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::common::{Dir, Done, SHORT};
use foveate::run::weights::AgentFile;
use serde_json::json;

/// The file that a started Python, or an imported planted module, creates.
const MARK: &str = "it-ran";
/// A "wrapper" that calls several functions; the last one is a shell.
const SHELL: &str = "operator.is_(0)+builtins.str+textwrap.indent('touch it-ran; #')+os.system";

/// A folder with a planted Python, weights for each of `worlds` (`0.safetensors`, `1.safetensors`, …), and
/// modules that create the mark when they are imported.
fn planted(worlds: &[&str]) -> Dir {
    let dir = Dir::new();
    dir.write("python", format!("#!/bin/sh\ntouch '{}'\nexit 1\n", dir.path(MARK).display()));
    fs::set_permissions(dir.path("python"), PermissionsExt::from_mode(0o755)).expect("ours");
    let module = format!("open('{}', 'w').close()\n", dir.path(MARK).display());
    for name in ["evil", "numpy", "gymnasium", "socket", "struct", "json", "sitecustomize"] {
        dir.write(&format!("{name}.py"), &module);
    }
    for (i, world) in worlds.iter().enumerate() {
        dir.write(&format!("{i}.safetensors"), made_for(world));
    }
    dir
}

/// An agent that runs in any world with two choices, with a note for `world`: JSON.
fn made_for(world: &str) -> Vec<u8> {
    let config = json!({ "actions": [[0, 1], [0, 1]] });
    AgentFile::new("random-actions", &config, vec![]).expect("an agent").note("world", world).to_bytes()
}

fn run(dir: &Dir, args: &[&str]) -> Done {
    let mut command = dir.command(args);
    command.env("FOVEATE_PYTHON", dir.path("python")).env_remove("PYTHONPATH");
    let out = command.output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    Done { code: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) }
}

/// A command on a file that tries to run code: it is rejected, and nothing runs. With `--trust-world` the
/// code runs, if it `may`.
#[track_caller]
fn refused(dir: &Dir, args: &[&str], wants: &[&str], may: bool) {
    let before = names(dir);
    let done = run(dir, args);
    assert!(!dir.path(MARK).exists(), "{args:?}: it ran");
    assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
    assert_eq!((done.stdout.as_str(), done.stderr.lines().count()), ("", 1), "{args:?}: {done:?}");
    for want in wants {
        assert!(done.stderr.contains(want), "{args:?}: {want:?} is not said: {}", done.stderr);
    }
    assert_eq!(names(dir), before, "{args:?} left something");
    if may {
        assert!(done.stderr.contains("--trust-world to take it as it stands"), "{args:?}: {}", done.stderr);
    }
    let done = run(dir, &[args, &["--trust-world"]].concat());
    assert_eq!(done.code, Some(1), "the planted Python is none: {done:?}");
    assert_eq!(dir.path(MARK).exists(), may, "{args:?} with --trust-world: {done:?}");
    let _ = fs::remove_file(dir.path(MARK));
}

/// A short training in the world of `env`.
fn short(env: &str) -> String {
    let text = SHORT.replacen("picture = \"none\"", env, 1);
    assert_ne!(text, SHORT);
    text
}

fn names(dir: &Dir) -> Vec<std::path::PathBuf> {
    let names = dir.everything().into_iter().map(|(path, _)| path);
    // The file of a released lock is irrelevant.
    names.filter(|path| path.file_name().is_none_or(|name| name != "lock")).collect()
}

fn note(id: &str, options: &[(&str, &str)]) -> String {
    let options: serde_json::Map<_, _> =
        options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
    json!({ "id": id, "picture": null, "variants": [], "options": options }).to_string()
}

#[test]
fn weights() {
    let cart = "gym:CartPole-v1";
    let worlds = [
        note(cart, &[]),
        note(cart, &[("gym_wrapper", SHELL)]),
        note("gym:evil:X-v0", &[("path", ".")]),
        note(cart, &[("path", ".")]),
        note("gym:VizdoomBasic-v1", &[("arg.scenario_file", "a.cfg")]),
        note("take-cover", &[("path", ".")]),
        note("take-cover", &[("gym_wrapper", SHELL)]),
        note("take-cover", &[("program", "import evil")]),
        note("car-racing", &[("path", ".")]),
        note("GYM:CartPole-v1", &[]),
        note(" gym:evil:X-v0", &[("path", ".")]),
        note("gym:CartPole-v1\n--trust-world", &[("gym_wrapper", "evil.\u{202e}Wrapper")]),
    ];
    let dir = planted(&worlds.each_ref().map(String::as_str));
    fs::create_dir_all(dir.path("runs/best")).expect("writable");
    fs::create_dir_all(dir.path("runs/last")).expect("writable");
    fs::copy(dir.path("1.safetensors"), dir.path("runs/best/best.safetensors")).expect("writable");
    fs::copy(dir.path("2.safetensors"), dir.path("runs/last/last.safetensors")).expect("writable");
    let refused = |args: &[&str], wants: &[&str]| refused(&dir, args, wants, true);

    // 1 to 9: the note in weights, and in the weights of a run's folder, for every command.
    refused(
        &["eval", "0.safetensors"],
        &["0.safetensors asks for the world gym:CartPole-v1,", "add `--env gym:CartPole-v1`"],
    );
    refused(
        &["eval", "1.safetensors"],
        &["--option 'gym_wrapper=operator.is_(0)+", r"'\''touch it-ran; #'\''"],
    );
    refused(&["watch", "2.safetensors"], &["`--env gym:evil:X-v0 --option path=.`"]);
    refused(&["explain", "1.safetensors"], &["gym_wrapper=operator"]);
    refused(&["stress", "3.safetensors"], &["with path=."]);
    self::refused(
        &dir,
        &["stress", "random", "2.safetensors", "--episodes", "1"],
        &["2.safetensors asks"],
        false,
    );
    refused(&["lab", "1.safetensors", "--no-open"], &["gym_wrapper=operator"]);
    refused(&["eval", "runs/best", "--each-variant"], &["runs/best/best.safetensors asks"]);
    refused(&["watch", "runs/last", "--out", "a.png"], &["runs/last/last.safetensors asks"]);
    // 10 to 13: the user names the world, the file gives its options.
    let named = ["--env", "gym:CartPole-v1"];
    refused(&[&["eval", "1.safetensors"], &named[..]].concat(), &["add `--option 'gym_wrapper=operator"]);
    refused(&[&["watch", "3.safetensors"], &named[..]].concat(), &["add `--option path=.` yourself"]);
    refused(
        &["eval", "4.safetensors", "--env", "gym:VizdoomBasic-v1"],
        &["add `--env-arg scenario_file=a.cfg` yourself"],
    );
    refused(&["lab", "2.safetensors", "--no-open", "--env", "gym:evil:X-v0"], &["add `--option path=.`"]);
    // 14: unreadable values are not printed in hints.
    refused(
        &["eval", "11.safetensors"],
        &["gym:CartPole-v1\\n--trust-world with gym_wrapper=evil.\\u{202e}Wrapper"],
    );
    // 15 to 20: native worlds have no such options, and there are no other kinds of worlds.
    let never = |args: &[&str], wants: &[&str]| self::refused(&dir, args, wants, false);
    never(&["eval", "5.safetensors"], &["no option \"path\"; choose from: actions, timeout"]);
    never(&["watch", "6.safetensors"], &["no option \"gym_wrapper\"; choose from"]);
    never(&["stress", "7.safetensors", "--variants", "none"], &["no option \"program\"; choose from"]);
    never(&["explain", "8.safetensors"], &["no option \"path\"; choose from"]);
    never(&["eval", "9.safetensors"], &["\"GYM:CartPole-v1\"", "list worlds` shows them: car-racing"]);
    never(
        &["lab", "10.safetensors", "--no-open"],
        &["\" gym:evil:X-v0\"", "list worlds` shows them: car-racing"],
    );
}

#[test]
fn configurations_runs_and_failures() {
    let dir = planted(&[]);
    let config = |name: &str, env: &str| dir.write(name, short(env));
    config("id.toml", "id = \"gym:CartPole-v1\"");
    config("module.toml", "id = \"gym:evil:X-v0\"\noptions = { path = \".\" }");
    config("path.toml", "options = { path = \".\" }");
    config(
        "wrapper.toml",
        &format!("id = \"gym:CartPole-v1\"\noptions = {{ timeout = 9, gym_wrapper = {SHELL:?} }}"),
    );
    config("arg.toml", "picture = \"render\"\noptions = { \"arg.level\" = 3 }");
    config("cover.toml", "id = \"take-cover\"\npicture = \"fast\"\noptions = { path = \".\" }");
    let refused = |args: &[&str], wants: &[&str]| refused(&dir, args, wants, true);

    // 21 to 26: configurations.
    refused(
        &["train", "--config", "id.toml"],
        &["id.toml asks for the world gym:CartPole-v1,", "add `gym:CartPole-v1 --picture world` yourself"],
    );
    refused(&["train", "--config", "module.toml"], &["`gym:evil:X-v0 --picture world --option path=.`"]);
    refused(
        &["train", "gym:CartPole-v1", "--config", "path.toml"],
        &["path.toml asks", "--option path=.` yourself"],
    );
    refused(&["train", "gym:CartPole-v1", "--config", "wrapper.toml"], &["with gym_wrapper=operator"]);
    refused(
        &["train", "--set", "env.id=gym:CartPole-v1", "--config", "arg.toml"],
        &["with arg.level=3", "--env-arg level=3` yourself"],
    );
    self::refused(
        &dir,
        &["train", "--config", "cover.toml"],
        &["no option \"path\"; choose from: actions, timeout"],
        false,
    );

    // 27: a run's folder from a stranger.
    dir.write("short.toml", SHORT);
    let few = ["--set", "recipe.stage.0.steps=300", "--no-videos"];
    dir.ok(&[&["train", "car-racing", "--config", "short.toml", "--name", "run"], &few[..]].concat());
    let text = String::from_utf8(dir.read("runs/run/config.toml")).expect("text");
    let strange = text.replace("id = \"car-racing\"", "id = \"gym:evil:X-v0\"\noptions = { path = \".\" }");
    let strange = strange.replace("picture = \"none\"", "picture = \"world\"");
    assert_ne!(strange, text);
    dir.write("runs/run/config.toml", &strange);
    refused(
        &["train", "--resume", "runs/run", "--allow-changes"],
        &[
            "runs/run/config.toml asks for the world gym:evil:X-v0 with path=., ",
            "if you trust it, add --trust-world to",
        ],
    );
    // Its curves are numbers, and its weights can initialise other runs.
    dir.ok(&["compare", "runs/run", "--out", "a.svg"]);

    // 28 to 31: failed rollouts.
    let huge = "recipe.stage.0.sigma=1e300";
    dir.run(&["train", "car-racing", "--config", "short.toml", "--name", "fails", "--set", huge]);
    let file = "runs/fails/failures/generation-000001-genome-0-episode-0.json";
    let text = String::from_utf8(dir.read(file)).expect("it failed");
    let env = |env: &str| text.replacen("\"id\":\"car-racing\"", env, 1).replacen("\"none\"", "\"world\"", 1);
    dir.write("id.json", env("\"id\":\"gym:CartPole-v1\""));
    dir.write("path.json", env("\"id\":\"gym:evil:X-v0\",\"options\":{\"path\":\".\"}"));
    refused(
        &["replay", "--failure", "id.json"],
        &["id.json asks for the world gym:CartPole-v1,", "`--env gym:CartPole-v1 --picture world`"],
    );
    refused(&["replay", "--failure", "path.json", "--out", "trace.jsonl"], &["with path=."]);
    refused(&["replay", "--failure", "path.json", "--env", "gym:evil:X-v0"], &["--option path=.` yourself"]);
    dir.write(
        "cover.json",
        env("\"id\":\"take-cover\",\"options\":{\"gym_wrapper\":\"evil.W\"}")
            .replace("\"world\"", "\"fast\""),
    );
    self::refused(
        &dir,
        &["replay", "--failure", "cover.json"],
        &["no option \"gym_wrapper\"; choose from"],
        false,
    );
}

/// Weights whose note of a world is not used, because they initialise others or the user names the world, are
/// accepted.
#[test]
fn files_whose_world_does_not_count() {
    let dir = planted(&[]);
    dir.write("short.toml", SHORT);
    let few = ["--set", "recipe.stage.0.steps=300", "--no-videos", "--config", "short.toml"];
    dir.ok(&[&["train", "car-racing", "--name", "run"], &few[..]].concat());
    let best = AgentFile::load(&dir.path("runs/run/best.safetensors")).expect("whole");
    let strange = best.note("world", note("gym:evil:X-v0", &[("path", "."), ("gym_wrapper", SHELL)]));
    strange.save(&dir.path("strange.safetensors")).expect("writable");
    let init = "recipe.init={weights=\"strange.safetensors\"}";
    for args in [
        &[&["train", "car-racing", "--name", "on", "--set", init], &few[..]].concat()[..],
        &["eval", "strange.safetensors", "--env", "car-racing", "--episodes", "1", "--max-steps", "3"],
    ] {
        let done = run(&dir, args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        assert!(!dir.path(MARK).exists(), "{args:?}: it ran");
    }
}

/// Whether there is a Python with gymnasium; prints a message if not.
fn python() -> bool {
    foveate_toy::needs::python().is_some()
}

#[test]
fn wrappers_are_classes_of_wrappers() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let mark = dir.path(MARK);
    dir.write(
        "evil.py",
        format!(
            "import os, subprocess\n\
             def wrap(env, *args, **named): open('{}', 'w').close()\n\
             class Thing:\n    def __init__(self, *args, **named): wrap(None)\n    Inner = wrap\n\
             class Callable:\n    def __call__(self, *args, **named): wrap(None)\n\
             called = Callable()\n",
            mark.display()
        ),
    );
    let touch = format!("touch {}; #", mark.display());
    for (wrapper, says) in [
        (&*SHELL.replace("touch it-ran; #", &touch), "operator.is_ is no class of wrappers"),
        ("evil.wrap", "evil.wrap is no class of wrappers"),
        ("evil.wrap('x', y=1)", "evil.wrap is no class of wrappers"),
        ("evil.Thing", "evil.Thing is no class of wrappers"),
        ("evil.called", "evil.called is no class of wrappers"),
        ("evil.Thing.Inner", "No module named 'evil.Thing'"),
        ("evil.os.system", "No module named 'evil.os'"),
        ("evil.subprocess.Popen", "No module named 'evil.subprocess'"),
        ("subprocess.Popen", "subprocess.Popen is no class of wrappers"),
        ("builtins.exec", "builtins.exec is no class of wrappers"),
        ("gymnasium.Env", "gymnasium.Env is no class of wrappers"),
        ("gymnasium.make", "gymnasium.make is no class of wrappers"),
        ("FlattenObservation(evil.wrap())", "its arguments must be plain values"),
        ("FlattenObservation(**{'a': 1})", "its arguments must be plain values"),
        ("FlattenObservation(*[1])", "its arguments must be plain values"),
        ("FlattenObservation({[]: 1})", "its arguments must be plain values"),
        ("__import__('evil').wrap", "it is no name with dots"),
        ("(lambda env: 0)", "it is no name with dots"),
        ("[evil.wrap][0]", "it is no name with dots"),
        ("evil.wrap if 1 else evil.wrap", "it is no name with dots"),
        ("evil.wrap\0", "it cannot be read"),
        (&*"(".repeat(1500), "it cannot be read"),
        (&*format!("a.B({}1)", "-".repeat(1900)), "gym_wrapper=a.B(---"),
        (&*"a.B+".repeat(1000), "4000 characters; at most 2000"),
    ] {
        let wrapper = wrapper.replace('\0', "\u{1}");
        let option = format!("gym_wrapper={wrapper}");
        let args =
            ["eval", "random-actions", "--env", "gym:CartPole-v1", "--option", "path=.", "--option", &option];
        let done = dir.run(&args);
        assert!(!mark.exists(), "{wrapper}: it ran");
        assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{wrapper}: {done:?}");
        for part in [says, "write it as in minigrid.wrappers"] {
            assert!(done.stderr.contains(part), "{wrapper}: {part:?} is not said: {done:?}");
        }
    }
}

/// `python -c` imports modules from the current folder, which may contain untrusted files.
#[test]
fn modules_of_the_current_folder_are_not_imported() {
    if !python() {
        return;
    }
    let dir = planted(&[]);
    let told = |args: &[&str], pythonpath: Option<&str>| {
        let mut command = dir.command(args);
        match pythonpath {
            Some(folders) => command.env("PYTHONPATH", folders),
            None => command.env_remove("PYTHONPATH"),
        };
        let done = command.output().expect("the binary starts");
        let ran = fs::remove_file(dir.path(MARK)).is_ok();
        (done.status.code(), ran, String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let eval = ["eval", "random-actions", "--env", "gym:CartPole-v1", "--episodes", "2", "--workers", "1"];
    for pythonpath in [None, Some(""), Some(":"), Some("/nowhere:"), Some(":/nowhere")] {
        let (code, ran, said) = told(&eval, pythonpath);
        assert_eq!((code, ran), (Some(0), false), "PYTHONPATH {pythonpath:?}: {said}");
    }
    for args in [&["doctor"][..], &["check-env", "gym:CartPole-v1", "--steps", "5"]] {
        let (code, ran, said) = told(args, None);
        assert_eq!((code, ran), (Some(0), false), "{args:?}: {said}");
    }
    // If a package lies there, the error says which option enables it.
    dir.write("mine.py", "import gymnasium\ngymnasium.register('Mine-v0', 'gymnasium.envs.classic_control:CartPoleEnv', max_episode_steps=9)\n");
    let own = [&eval[..3], &["gym:mine:Mine-v0", "--episodes", "1"]].concat();
    let (code, ran, said) = told(&own, None);
    assert_eq!((code, ran), (Some(1), false));
    assert!(said.contains("No module named 'mine'") && said.contains("path=. is this one"), "{said}");
    // The folder is then searched first, as the user requested.
    let own = [&own[..], &["--option", "path=."]].concat();
    assert!(told(&own, None).1, "the planted numpy lies in the folder that was named");
    for name in ["numpy", "gymnasium", "socket", "struct", "json", "sitecustomize"] {
        fs::remove_file(dir.path(&format!("{name}.py"))).expect("ours");
    }
    let (code, ran, said) = told(&own, None);
    assert_eq!((code, ran), (Some(0), false), "{said}");
}

/// The commands that the program prints work as printed, for runs in worlds that run code.
#[test]
fn printed_commands_work() {
    if !python() {
        return;
    }
    let dir = Dir::new();
    let toys = concat!(env!("CARGO_MANIFEST_DIR"), "/../foveate-gym/tests/toys");
    fs::create_dir_all(dir.path("a b")).expect("writable");
    let copied = Command::new("cp").args(["-r", toys]).arg(dir.path("a b")).status().expect("cp runs");
    assert!(copied.success());
    let shell = |line: &str| {
        let line = line.replacen("foveate", env!("CARGO_BIN_EXE_foveate"), 1);
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(dir.path("")).stdin(Stdio::null());
        let out = command.output().expect("a shell");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
        Done { code: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) }
    };
    let between = |text: &str, from: &str| -> String {
        let rest = &text[text.find(from).unwrap_or_else(|| panic!("{from:?} is not said: {text}")) + 1..];
        rest[..rest.find('`').expect("its end")].to_owned()
    };
    let env = "id = \"gym:foveate_toys:Toys/Picture-v0\"\noptions = { path = \"a b/toys\", timeout = 20 }";
    dir.write("own.toml", short(env).replacen("image = [96, 96]\n", "", 1));
    // A user's own configuration: the error prints the missing flags.
    let train = "foveate train --config own.toml --preset evolution --no-videos --name run --set recipe.stage.0.steps=800";
    let done = shell(train);
    assert_eq!(done.code, Some(1), "{done:?}");
    let words = between(&done.stderr, "`gym:");
    let done = shell(&format!("{train} {words}"));
    assert_eq!(done.code, Some(0), "{words}: {done:?}");
    // The run prints its own command.
    let resume = between(&done.stdout, "`foveate train --resume");
    assert_eq!(resume, "foveate train --resume runs/run --trust-world");
    let done = shell(&resume);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("this run is finished"), "{done:?}");
    let config = String::from_utf8(dir.read("runs/run/config.toml")).expect("text");
    dir.write("runs/run/config.toml", config.replace("population = 4\n", "population = 6\n"));
    let done = shell(&format!("{resume} --allow-changes"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let anew = between(&done.stdout, "`foveate train --config");
    let done = shell(&anew);
    assert_eq!(done.code, Some(0), "{anew}: {done:?}");
    // Its weights: the same, with other flags.
    let eval = "foveate eval runs/run --episodes 2 --max-steps 5";
    let done = shell(eval);
    assert_eq!(done.code, Some(1), "{done:?}");
    let words = between(&done.stderr, "`--env");
    for words in [&*words, "--trust-world"] {
        let done = shell(&format!("{eval} {words}"));
        assert_eq!(done.code, Some(0), "{words}: {done:?}");
    }
    // A failed rollout.
    let done = shell(&format!(
        "{} --trust-world --set recipe.stage.0.sigma=1e300",
        train.replace("--name run", "--name fails")
    ));
    assert_eq!(done.code, Some(1), "{done:?}");
    let replay = between(&done.stderr, "`foveate replay --failure");
    assert!(replay.ends_with(" --trust-world"), "{replay}");
    let done = shell(&replay);
    assert_eq!(done.code, Some(0), "{replay}: {done:?}");
    assert!(done.stderr.starts_with("it fails again"), "{done:?}");
}
