use proptest::prelude::*;

use super::*;
use crate::config::TrainConfig;
use crate::failure::Failure;
use crate::weights::AgentFile;

fn asked(id: &str, options: &[(&str, &str)]) -> FileWorld {
    FileWorld::new(
        EnvRequest { id: id.into(), options: pairs(options), ..EnvRequest::default() },
        "a.safetensors",
    )
}

fn pairs(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn named(id: &str, options: &[(&str, &str)]) -> WorldSpec {
    WorldSpec { id: Some(id.into()), options: WorldOptions(pairs(options)), ..WorldSpec::default() }
}

/// Options that select no code and open no file.
const HARMLESS: [&str; 6] = ["timeout", "start_timeout", "memory", "image", "actions", "wrap"];

/// Worlds that a file may name, besides MiniGrid's.
const NATIVE: [&str; 14] = [
    "car-racing",
    "cartpole-swingup-harder",
    "cheetah-run",
    "walker-walk",
    "cartpole-swingup",
    "ball-in-cup-catch",
    "reacher-easy",
    "finger-spin",
    "quadruped-walls",
    "digits",
    "take-cover",
    "ant",
    "pong",
    "atari",
];

#[test]
fn files_may_name_native_worlds_alone() {
    let nothing = WorldSpec::default();
    for name in NATIVE {
        assert!(is_native(name));
        let request = asked(name, &[("wrap", "grey")]).accept(&nothing).expect("a native one");
        assert_eq!((&*request.id, &*request.options["wrap"]), (name, "grey"));
    }
    let minigrid = ["door-key-", "empty-", "four-rooms", "lava-crossing-", "simple-crossing-"];
    let others: Vec<_> =
        WORLDS.names().into_iter().filter(|name| !minigrid.iter().any(|own| name.starts_with(own))).collect();
    let known: Vec<_> = NATIVE.into_iter().chain(["gym:ID", "mjcf:FILE"]).collect();
    assert_eq!(others, known, "each was thought about");
    assert!(!is_native("gym:X-v0") && !is_native("mjcf:robot.xml"));
    // Which library a task of DeepMind Control opens, the user says.
    for (world, option) in [("cheetah-run", "library"), ("mjcf:robot.xml", "library")] {
        let file = [(option, "/tmp/evil.so"), ("repeat", "2")];
        for own in [nothing.clone(), named(world, &[])] {
            let said = asked(world, &file).accept(&own).expect_err("a library is code").to_string();
            assert!(
                said.contains("library=/tmp/evil.so, which is a native library: code that would run"),
                "{said}"
            );
            assert!(!said.contains("Python"), "{said}");
        }
        let said =
            asked(world, &file).accept(&named(world, &[(option, "/opt/mujoco")])).expect("the user's own");
        assert_eq!(said.options, pairs(&[(option, "/opt/mujoco"), ("repeat", "2")]));
    }
    asked("cheetah-run", &[("repeat", "2"), ("size", "84")]).accept(&nothing).expect("no code");
    let said = asked("gym:X-v0", &[]).accept(&nothing).expect_err("Python").to_string();
    assert!(
        said.contains("a.safetensors asks for the world gym:X-v0,")
            && said.contains("add the setting `world gym:X-v0`"),
        "{said}"
    );
    let trust = WorldSpec { trust: true, ..WorldSpec::default() };
    assert_eq!(
        asked("gym:X-v0", &[("path", ".")]).accept(&trust).expect("trusted").options,
        pairs(&[("path", ".")])
    );
    let said = asked("rocket", &[]).accept(&nothing).expect_err("no world").to_string();
    assert!(said.contains("\"rocket\"") && said.contains("car-racing"), "{said}");
}

/// A world that the command line names takes harmless options from the file, and nothing else.
#[test]
fn options_that_choose_code_are_said_by_the_user() {
    let file =
        [("timeout", "9"), ("memory", "500"), ("wrap", "grey"), ("image", "a"), ("actions", "float64")];
    let request = asked("gym:X-v0", &file).accept(&named("gym:X-v0", &[("timeout", "7")])).expect("harmless");
    assert_eq!((&*request.options["timeout"], request.options.len()), ("7", 5));
    for (name, value) in [("path", "."), ("gym_wrapper", "a.B"), ("arg.level", "a.cfg"), ("anything", "else")]
    {
        let refused = asked("gym:X-v0", &[(name, value)]).accept(&named("gym:X-v0", &[]));
        assert!(refused.expect_err("it may run code").to_string().contains(name), "{name}");
        // The user gives the same value, or another one.
        for own in [value, "b.C"] {
            let own = [(name, own)];
            let request = asked("gym:X-v0", &[(name, value)]).accept(&named("gym:X-v0", &own)).expect("said");
            assert_eq!(request.options, pairs(&own));
        }
        // Nothing is taken from a file with a different world.
        let request = asked("gym:X-v0", &[(name, value)]).accept(&named("gym:Y-v0", &[])).expect("named");
        assert_eq!(request, EnvRequest { id: "gym:Y-v0".into(), ..EnvRequest::default() });
    }
}

#[test]
fn the_settings_that_name_the_world_are_given() {
    let world = EnvRequest {
        id: "gym:X-v0".into(),
        picture: Some("render".into()),
        options: pairs(&[
            ("path", "/a b"),
            ("arg.lap", "0.9"),
            ("wrap", "grey+stack:3"),
            ("gym_wrapper", "a.B('x')"),
        ]),
        ..EnvRequest::default()
    };
    let said = |world: &EnvRequest, flags: &WorldSpec| {
        FileWorld::new(world.clone(), "f").accept(flags).expect_err("it may run code").to_string()
    };
    let all = r"add the settings `world gym:X-v0, picture render, argument lap=0.9, option gym_wrapper=a.B('x'), option path=/a b, wrap grey+stack:3` yourself, or the setting `trust-world`";
    assert!(said(&world, &WorldSpec::default()).contains(all), "{}", said(&world, &WorldSpec::default()));
    let some = named("gym:X-v0", &[("path", "/a b"), ("arg.lap", "0.9"), ("wrap", "grey+stack:3")]);
    assert!(
        said(&world, &some)
            .contains("add the settings `picture render, option gym_wrapper=a.B('x')` yourself")
    );
    let no = WorldSpec { only_of_file: true, ..WorldSpec::default() };
    let trust = "if you trust it, add the setting `trust-world` to take it as it stands";
    assert!(said(&world, &no).ends_with(trust));
    // Unreadable values are not printed in hints, and long ones are truncated.
    for (value, shows) in
        [("a\nb", "a\\nb"), ("\u{202e}x", "\\u{202e}x"), (&*"x".repeat(100_000), "xxx… (1000")]
    {
        let text =
            said(&EnvRequest { options: pairs(&[("path", value)]), ..world.clone() }, &WorldSpec::default());
        assert!(text.contains(shows) && text.ends_with(trust) && text.len() < 1000, "{text}");
    }
}

/// A text that is, or resembles, a world's name.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        "gym:[A-Za-z:./-]{0,12}",
        prop::sample::select(vec![
            "car-racing",
            "take-cover",
            "Gym:CartPole-v1",
            " gym:CartPole-v1",
            "GYM:X",
            "python:x"
        ])
        .prop_map(str::to_owned),
        "\\PC{0,12}",
    ]
}

fn option() -> impl Strategy<Value = (String, String)> {
    let names =
        ["path", "gym_wrapper", "arg.x", "arg.", "timeout", "wrap", "module", "python", "program", "PATH"];
    (prop_oneof![prop::sample::select(names.to_vec()).prop_map(str::to_owned), "\\PC{0,6}"], "\\PC{0,20}")
}

proptest! {
    /// For any contents of weights, a configuration or a recorded failure, only native worlds are accepted.
    #[test]
    fn no_file_yields_a_gymnasium_world(
        id in id(),
        picture in "\\PC{0,8}",
        options in prop::collection::btree_map("\\PC{0,8}", "\\PC{0,20}", 0..3),
        more in prop::collection::vec(option(), 0..4),
    ) {
        let mut options = options;
        options.extend(more);
        let world = serde_json::json!({ "id": id, "picture": picture, "variants": [], "options": options }).to_string();
        let file = AgentFile::new("random-actions", &serde_json::json!({}), vec![]).expect("an agent");
        if let Some(world) = file.note("world", world).world("a file") {
            if let Ok(request) = world.clone().accept(&WorldSpec::default()) {
                prop_assert!(is_native(&request.id), "{request:?}");
            }
            // If the command line names it, no option that could select code is accepted.
            if let Ok(request) = world.accept(&named(&id, &[])) && !is_native(&id) {
                prop_assert!(request.options.keys().all(|name| HARMLESS.contains(&&**name)), "{request:?}");
            }
        }

        let env = toml::toml! { [env] };
        let mut env = env;
        env["env"] = toml::Value::Table(toml::Table::from_iter([
            ("id".to_owned(), id.clone().into()),
            ("picture".to_owned(), picture.clone().into()),
            ("variants".to_owned(), toml::Value::Array(vec![])),
            ("options".to_owned(), toml::Value::try_from(&options).expect("texts")),
        ]));
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.toml");
        std::fs::write(&path, env.to_string()).expect("writable");
        let config = TrainConfig::load("laptop", Some(&path), &[""; 0]).expect("texts are all it checks");
        if let Ok(request) = config.env.request() {
            prop_assert!(is_native(&request.id), "{request:?}");
        }
        let sets = [format!("env.id={}", toml::Value::from(&*id))];
        let config = TrainConfig::load("laptop", Some(&path), &sets).expect("texts are all it checks");
        if let Ok(request) = config.env.request() && !is_native(&id) {
            prop_assert!(request.options.keys().all(|name| HARMLESS.contains(&&**name)), "{request:?}");
        }
        std::fs::write(&path, config.to_toml()).expect("writable");
        if let Ok(request) = TrainConfig::read(&path).expect("its own file").env.request() {
            prop_assert!(is_native(&request.id), "{request:?}");
        }

        let failure = serde_json::json!({
            "format": "foveate-failure-1", "version": "0.1.0", "what": "x", "generation": 1, "genome": 0, "episode": 0,
            "env_seed": 1, "step": 1, "max_steps": 5, "patience": null, "agent": { "name": "attention-agent" },
            "env": { "id": id, "picture": picture, "variants": [], "options": options }, "weights": "", "actions": [],
        });
        let path = dir.path().join("a.json");
        std::fs::write(&path, failure.to_string()).expect("writable");
        if let Ok(request) = Failure::read(&path).expect("a failure").env.request() {
            prop_assert!(is_native(&request.id), "{request:?}");
        }
    }
}
