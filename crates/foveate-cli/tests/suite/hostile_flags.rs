//! Thousands of invalid or extreme flag values: each is rejected, or its job completes or can be stopped;
//! there is no panic, no abort, and no process uses a gigabyte.
//!
//! Every test run checks a few hundred; `FOVEATE_FLAGS=10000` checks all of them, and
//! `FOVEATE_FLAGS_FIRST=5000` starts with that one.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Dir, made_up, npz, weights};
use foveate::core::{Rng, Seed};

/// Address space of every process, in KiB.
const MEMORY_KB: u32 = 1_000_000;
/// Number of 20 ms waits after which a running job is asked to stop, and after which it must have stopped.
const ASKED: u32 = 100;
const GONE: u32 = 6000;

/// A training that takes a moment.
const TINY: &str = "
[env]
picture = 'none'

[agent.config]
patch = 24
stride = 24
top_k = 2
query_dim = 2
hidden = 2

[recipe]
max_steps = 2
selection = { every = 4, tracks = 1, finalists = 1, final_tracks = 1, report_tracks = 1 }
stage = [{ name = 'only', steps = 4, population = 4 }]
";

/// The arguments before and after a value: a command with one flag without its value.
const FLAGS: &[(&[&str], &str, Kind)] = &[
    (EVAL, "--episodes", Kind::Number),
    (EVAL, "--seed", Kind::Number),
    (EVAL, "--workers", Kind::Number),
    (EVAL, "--max-steps", Kind::Number),
    (EVAL, "--image-threads", Kind::Number),
    (&["eval", "--max-steps", "1", "--workers", "1"], "--seeds", Kind::Range),
    (EVAL, "--picture", Kind::Word),
    (EVAL, "--variant", Kind::Variant),
    (EVAL, "--shift", Kind::Shift),
    (EVAL, "--option", Kind::Pair),
    (EVAL, "--env", Kind::Word),
    (EVAL, "--env-arg", Kind::Pair),
    (EVAL, "--wrap", Kind::Wrap),
    (EVAL, "", Kind::Word),
    (STRESS, "--variants", Kind::Variant),
    (STRESS, "--shifts", Kind::Shift),
    (
        &[
            "stress",
            "w.safetensors",
            "--variants",
            "none",
            "--shifts",
            "noise",
            "--episodes",
            "1",
            "--max-steps",
            "1",
        ],
        "--severities",
        Kind::Range,
    ),
    (
        &[
            "stress",
            "w.safetensors",
            "--variants",
            "none",
            "--shifts",
            "noise:1",
            "--episodes",
            "1",
            "--max-steps",
            "1",
        ],
        "--at",
        Kind::Number,
    ),
    (&["stress", "w.safetensors", "--variants", "none", "--max-steps", "1"], "--episodes", Kind::Number),
    (STRESS, "--seed", Kind::Number),
    (STRESS, "--workers", Kind::Number),
    (&["stress", "w.safetensors", "--sheet", "s.png", "--severities", "1"], "--at", Kind::Number),
    (WATCH, "--seed", Kind::Number),
    (WATCH, "--episode", Kind::Number),
    (&["watch", "w.safetensors", "--out", "a.png", "--at", "0"], "--steps", Kind::Number),
    (&["watch", "w.safetensors", "--steps", "1", "--out", "a.gif"], "--size", Kind::Size),
    (&["watch", "w.safetensors", "--out", "a.png"], "--at", Kind::Number),
    (&["watch", "w.safetensors", "--steps", "1"], "--out", Kind::Word),
    (
        &["explain", "w.safetensors", "--decisions", "1", "--max-steps", "1", "--out", "r"],
        "--episodes",
        Kind::Number,
    ),
    (
        &["explain", "w.safetensors", "--episodes", "1", "--max-steps", "1", "--out", "r"],
        "--decisions",
        Kind::Number,
    ),
    (
        &["explain", "w.safetensors", "--episodes", "1", "--decisions", "1", "--out", "r"],
        "--max-steps",
        Kind::Number,
    ),
    (
        &[
            "explain",
            "w.safetensors",
            "--episodes",
            "1",
            "--decisions",
            "1",
            "--max-steps",
            "1",
            "--out",
            "r",
        ],
        "--workers",
        Kind::Number,
    ),
    (TRAIN, "--seed", Kind::Number),
    (TRAIN, "--workers", Kind::Number),
    (TRAIN, "--set", Kind::Key),
    (TRAIN, "--set", Kind::Key),
    (TRAIN, "--set", Kind::Key),
    (TRAIN, "--set", Kind::Key),
    (TRAIN, "--name", Kind::Word),
    (&["train", "--config", "tiny.toml"], "--preset", Kind::Word),
    (&["train"], "--resume", Kind::Word),
    (&["replay", "--actions", "a.jsonl", "--out", "t.jsonl"], "--seed", Kind::Number),
    (&["replay", "--actions", "a.jsonl", "--out", "t.jsonl"], "--shift", Kind::Shift),
    (&["replay", "--actions", "a.jsonl", "--out", "t.jsonl"], "--wrap", Kind::Wrap),
    (&["replay", "--actions", "a.jsonl", "--out", "t.jsonl"], "--option", Kind::Pair),
    (&["lab", "--no-open", "--host", "192.0.2.1"], "--port", Kind::Number),
    (&["lab", "--no-open", "--host", "192.0.2.1"], "--token", Kind::Word),
    (&["lab", "--no-open", "--port", "1"], "--host", Kind::Word),
    (&["import", "in.npz"], "--layout", Kind::Word),
    (&["import", "in.npz"], "--agent", Kind::Word),
    (&["import", "in.npz"], "--env", Kind::Word),
    (&["compare"], "", Kind::Word),
    (&["list"], "", Kind::Word),
    (&["completions"], "", Kind::Word),
];
const EVAL: &[&str] = &["eval", "w.safetensors", "--episodes", "1", "--max-steps", "1", "--workers", "1"];
const STRESS: &[&str] = &["stress", "w.safetensors", "--episodes", "1", "--max-steps", "1", "--workers", "1"];
const WATCH: &[&str] = &["watch", "w.safetensors", "--steps", "1", "--out", "a.png"];
const TRAIN: &[&str] = &["train", "--config", "tiny.toml", "--no-videos"];

/// The valid values of a flag.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Number,
    Range,
    Size,
    Word,
    Pair,
    Key,
    Variant,
    Shift,
    Wrap,
}

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "2",
    "3",
    "-1",
    "-9223372036854775808",
    "127",
    "128",
    "255",
    "256",
    "4096",
    "4097",
    "5000",
    "65535",
    "65536",
    "1000000",
    "1000001",
    "200000000",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1e3",
    "1e308",
    "1e309",
    "-1e308",
    "1e-320",
    "0.5",
    "1.5",
    ".5",
    "5.",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "infinity",
    "0x10",
    "0b1",
    "1_000",
    "+7",
    " 7",
    "7 ",
    "٣",
    "１２",
    "1,5",
    "",
    " ",
    "-",
    "--",
    "true",
    "null",
];

const WORDS: &[&str] = &[
    "",
    " ",
    ".",
    "..",
    "/",
    "/dev/null/x",
    "-",
    "--",
    "-x",
    "none",
    "all",
    "random",
    "random:",
    "random:-1",
    "random:18446744073709551616",
    "random-actions:7",
    "car-racing",
    "car-racing\u{0301}",
    "ＣＡＲ",
    "🏎",
    "a\nb",
    "a\u{1b}[31m",
    "\u{7f}",
    "\u{202e}abc",
    "exact",
    "fast",
    "classic",
    "none.safetensors",
    "w.safetensors/x",
    "runs/../..",
    "%s%n",
    "$(true)",
    "`true`",
    "'",
    "\"",
    "\\",
    "a=b",
    "=",
    "a,b",
    "laptop",
    "paper",
    "bash",
    "localhost",
    "::1",
    "[::1]",
    "127.0.0.1",
    "999.999.999.999",
    "a.png",
    "a.mp4/",
    ".png",
    "auto",
    "a token of mine",
    "attention-agent",
    "published",
];

const KEYS: &[&str] = &[
    "seed",
    "version",
    "workers",
    "videos",
    "env.id",
    "env.picture",
    "env.variants",
    "env.options.max_steps",
    "env.options.wrap",
    "agent.name",
    "agent.config.image",
    "agent.config.patch",
    "agent.config.stride",
    "agent.config.query_dim",
    "agent.config.top_k",
    "agent.config.hidden",
    "agent.config.actions",
    "agent.config.voting.kernel",
    "agent.config.features.conv.filters",
    "agent.config.features.histogram.bins",
    "recipe.algorithm",
    "recipe.max_steps",
    "recipe.init",
    "recipe.init.uniform",
    "recipe.teacher",
    "recipe.teacher.weights",
    "recipe.selection.every",
    "recipe.selection.every.generations",
    "recipe.selection.tracks",
    "recipe.selection.finalists",
    "recipe.selection.final_tracks",
    "recipe.selection.report_tracks",
    "recipe.selection.evaluation_tracks",
    "recipe.selection.evaluation_every",
    "recipe.selection.draw_actions",
    "recipe.selection.reevaluate",
    "recipe.stage.0.starts",
    "recipe.stage.0.steps",
    "recipe.stage.0.generations",
    "recipe.stage.0.tracks",
    "recipe.stage.0.population",
    "recipe.stage.0.sigma",
    "recipe.stage.0.sigma.from",
    "recipe.stage.0.patience",
    "recipe.stage.0.max_steps",
    "recipe.stage.0.replay.keep",
    "recipe.stage.0.replay.share",
    "recipe.stage.0.restarts.max_population",
    "recipe.stage.0.restarts.after",
    "recipe.stage.0.algorithm",
    "recipe.stage.0.bounds.low",
    "recipe.stage.1.steps",
    "recipe.stage",
    "recipe",
    "",
    ".",
    "a.b.c.d.e.f.g.h",
];

const VALUES: &[&str] = &[
    "cma-es",
    "sep-cma-es",
    "simple-ga",
    "imitation",
    "[]",
    "{}",
    "[96, 96]",
    "[4096, 4096]",
    "[1, 1]",
    "[[0.0, 1.0]]",
    "[[1.0, 0.0]]",
    "'a'",
    "\"\\u0000\"",
    "[[[[[[[[",
    "{ from = 1, to = 2 }",
    "{ generations = 1 }",
    "1979-05-27",
    "{ weights = 'none' }",
    "'off'",
    "grey+resize:4096x4096+stack:64",
];

const SHIFTS: &[&str] = &[
    "noise",
    "blur",
    "hue",
    "delay",
    "blob",
    "bar",
    "brightness",
    "occlusion",
    "background-video",
    "shift",
    "sticky",
    "noise:5",
    "blur:1",
    "x=0.5",
    "size=1e308",
    "folder=.",
    "folder=/",
    "@0",
    "@200",
    "@5-2",
    "@0-18446744073709551615",
    "color=#cc0000",
    "severity",
];

const WRAPS: &[&str] = &[
    "grey",
    "grey:ale",
    "resize",
    "resize:64x64",
    "resize:4096x4096",
    "resize:0x0",
    "resize:1x1:area",
    "crop:0,0,9,9",
    "stack:3",
    "stack:64",
    "stack:65",
    "repeat:4",
    "repeat:18446744073709551615",
    "max",
    "noop:30",
    "noop:18446744073709551615",
    "clip",
    "sign",
    "atari",
    "float",
    "rescale",
    "time-limit:0",
];

const VARIANTS: &[&str] = &[
    "bar",
    "blob",
    "color",
    "video",
    "video:folder=.",
    "bar:width=150",
    "bar:width=1e308",
    "blob:side=NaN",
    "blob:side=18446744073709551615",
    "bar:width=-1",
    "noise",
    "none",
    "all",
    "original",
];

/// A value for a flag of this kind.
fn value(kind: Kind, rng: &mut Rng) -> String {
    let mut pick = |from: &[&'static str]| from[rng.below(from.len() as u64) as usize];
    let text = match kind {
        Kind::Number => pick(NUMBERS).to_owned(),
        Kind::Word => pick(WORDS).to_owned(),
        Kind::Range => {
            format!("{}{}{}", pick(NUMBERS), pick(&["..", ",", "..=", "-", ".", ":"]), pick(NUMBERS))
        }
        Kind::Size => format!("{}{}{}", pick(NUMBERS), pick(&["x", "X", "×", "*", ","]), pick(NUMBERS)),
        Kind::Pair => format!(
            "{}{}{}",
            pick(&["max_steps", "continuous", "lap", "wrap", "", "arg.x", "path"]),
            pick(&["=", "", "=="]),
            pick(NUMBERS)
        ),
        Kind::Key => {
            let value = if pick(&["n", "v"]) == "n" { pick(NUMBERS) } else { pick(VALUES) };
            format!("{}{}{value}", pick(KEYS), pick(&["=", " = ", "", "=="]))
        }
        Kind::Variant | Kind::Shift | Kind::Wrap => {
            let pieces = match kind {
                Kind::Variant => VARIANTS,
                Kind::Shift => SHIFTS,
                _ => WRAPS,
            };
            let mut text = pick(pieces).to_owned();
            for _ in 0..pick(&["0", "1", "2", "3"]).parse().unwrap_or(0) {
                text += pick(&["+", ":", "@", ",", "=", "-", ""]);
                text += if pick(&["n", "p", "p"]) == "n" { pick(NUMBERS) } else { pick(pieces) };
            }
            text
        }
    };
    match rng.below(60) {
        0 => text.repeat(1 + 2000 / (text.len() + 1)),
        1 => format!("{text}\u{1b}]0;x\u{7}"),
        2 => text.chars().rev().collect(),
        3 => [&*text, "+"].concat().repeat(2001),
        4 => [&*text, ","].concat().repeat(2001),
        _ => text,
    }
}

/// Waits for `child`; returns the status, and whether it had to be asked to stop.
fn wait(child: &mut Child) -> Option<(ExitStatus, bool)> {
    for round in 0..GONE {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return Some((status, round >= ASKED));
        }
        if round == ASKED {
            // Like Ctrl-C; how long it then takes depends on the machine.
            let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            assert!(asked.is_ok_and(|status| status.success()), "kill asks politely");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

#[cfg(target_os = "linux")]
#[test]
fn no_flag_value_is_a_panic() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let all = number("FOVEATE_FLAGS").unwrap_or(300);
    let dir = Dir::new();
    let mut codes = std::collections::BTreeMap::<_, u32>::new();
    let mut stopped = 0;
    for case in number("FOVEATE_FLAGS_FIRST").unwrap_or(0)..all {
        let mut rng = Seed::root(17).child("flag value", case).rng();
        // All flags in turn.
        let (command, flag, kind) = FLAGS[(case % FLAGS.len() as u64) as usize];
        // Linux limits an argument to 128 KiB.
        let text: String = value(kind, &mut rng).replace('\0', "").chars().take(30_000).collect();
        let given = if flag.is_empty() { text } else { format!("{flag}={text}") };
        for (name, bytes) in [("w.safetensors", weights()), ("in.npz", npz(&made_up()))] {
            dir.write(name, bytes);
        }
        dir.write("tiny.toml", TINY);
        dir.write("a.jsonl", "[0, 0, 0]\n[0, 1, 0]\n");
        let mut limited = Command::new("sh");
        limited.arg("-c").arg(format!("ulimit -v {MEMORY_KB}; exec \"$0\" \"$@\""));
        limited.arg(env!("CARGO_BIN_EXE_foveate")).args(command).arg(&given).current_dir(dir.path(""));
        // Its output goes to files, so that it never waits for a reader.
        let said = |name: &str| File::create(dir.path(name)).expect("writable");
        limited.stdin(Stdio::null()).stdout(said("stdout")).stderr(said("stderr"));
        let mut child = limited.spawn().expect("there is a shell");
        let shown = format!("case {case}: {command:?} {:.300}", format!("{given:?}"));
        let Some((status, asked)) = wait(&mut child) else { panic!("{shown}: it does not stop") };
        let stderr = String::from_utf8_lossy(&dir.read("stderr")).into_owned();
        stopped += u32::from(asked);
        assert!(matches!(status.code(), Some(0..=2)), "{shown}: {status}\n{stderr:.2000}");
        assert!(!stderr.contains("panicked"), "{shown}:\n{stderr:.2000}");
        *codes.entry(status.code()).or_default() += 1;
        for name in ["runs", "r"] {
            let _ = std::fs::remove_dir_all(dir.path(name));
        }
    }
    eprintln!("{all} flag values: {codes:?}, {stopped} of them asked to stop");
    assert!(codes.contains_key(&Some(0)) && codes.contains_key(&Some(1)) && codes.contains_key(&Some(2)));
}
