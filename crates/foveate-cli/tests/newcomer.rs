//! What someone meets who uses the program for the first time.

mod common;

use common::{Dir, check_fails, weights};
use serde_json::Value;

/// A folder with a weight file and two runs that hold nothing but a configuration.
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

#[test]
fn near_misses_suggest_the_name() {
    let dir = with_runs();
    let eval = ["eval", "w.safetensors", "--episodes", "1"];
    for (args, want) in [
        (&["train", "CarRacing-v3"][..], "did you mean car-racing, or gym:CarRacing-v3 (needs Python)?"),
        (&["train", "car_racing"], "did you mean car-racing?"),
        (&["train", "carracing"], "did you mean car-racing?"),
        (&["train", "takecover"], "did you mean take-cover?"),
        (&["train", "CartPole-v1"], "did you mean gym:CartPole-v1?"),
        (&["train", "cartpole"], "did you mean gym:CartPole-v1?"),
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
        (&["eval", "car-racing"], "did you mean the run runs/car-racing?"),
        (&["eval", "runs/secod"], "did you mean the run runs/second?"),
        (&["watch", "take-cover"], "train an agent with `foveate train take-cover`"),
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
    // Without any run there is only the world.
    let dir = Dir::new();
    check_fails(
        &dir,
        &["eval", "car-racing"],
        &["`foveate train car-racing`", "name none to use the trained champion"],
    );
    check_fails(&dir, &["eval", "none"], &["cannot read none", "check the path"]);
}

#[test]
fn list_shows_one_part() {
    let dir = Dir::new();
    let all = dir.ok(&["list"]);
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
        ("presets", "laptop, evolution, paper, take-cover", "sep-cma-es"),
    ] {
        let text = dir.ok(&["list", part]);
        assert!(text.contains(has) && !text.contains(lacks), "{part}: {text}");
        if part != "variants" {
            assert!(all.contains(&text), "{part} is a piece of the whole list: {text}");
        }
        let Value::Object(list) = dir.json(&["list", part, "--json"]) else { panic!("{part}: no object") };
        assert_eq!(list.len(), 1, "{part}");
        for (name, value) in list {
            assert!(value.as_array().is_some_and(|list| !list.is_empty()), "{part}: {value}");
            if part != "variants" {
                assert_eq!(value, everything[&name]);
            }
        }
    }
}

#[test]
fn own_flags_come_before_shared_ones() {
    // Those of `WeightsArg` and `WorldArgs`.
    const SHARED: [&str; 9] =
        ["image-threads", "env", "picture", "variant", "shift", "option", "env-arg", "wrap", "trust-world"];
    let dir = Dir::new();
    for command in ["eval", "stress", "watch", "explain", "replay", "lab", "train", "import"] {
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
