use foveate_registry::PRESETS;

use foveate_train::LearnsFrom;

use super::*;

const NO_SETS: [&str; 0] = [];

#[test]
fn presets_are_whole_and_survive_a_round_trip() {
    for preset in PRESETS.iter() {
        // The settings that presets for many worlds leave to the world.
        let (name, open) = (preset.name, preset.open);
        let sets: &[&str] =
            if open { &["env.id=gym:X-v0", "env.picture=world", "recipe.max_steps=400"] } else { &[] };
        let config = TrainConfig::load(name, None, sets).expect("a preset is right");
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, config.to_toml()).expect("writable");
        assert_eq!(TrainConfig::read(&path).expect("our own file"), config);
    }
}

#[test]
fn files_and_sets_lie_on_top() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("mine.toml");
    let text = "seed = 5\n[recipe]\nmax_steps = 500\n[agent.config]\ntop_k = 5\n";
    std::fs::write(&path, text).expect("writable");
    let sets = [
        "recipe.stage.0.population=66",
        "recipe.stage.0.sigma.to=0.3",
        "recipe.stage.0.sigma.from=0.2",
        "env.picture = classic",
        "env.variants=[\"bar\"]",
        "env.shifts=[\"missing:share=0.5\"]",
        "agent.config.patch=5",
    ];
    let config = TrainConfig::load("laptop", Some(&path), &sets).expect("right");
    let plain = TrainConfig::load("laptop", None, &NO_SETS).expect("right");
    let options = &config.recipe.stages[0].options;
    assert_eq!((config.seed, config.recipe.max_steps), (5, 500));
    assert_eq!(
        (options["population"].as_integer(), options["sigma"]["to"].as_float()),
        (Some(66), Some(0.3))
    );
    assert_eq!((&*config.env.picture, &config.env.variants), ("classic", &vec!["bar".to_owned()]));
    assert_eq!(config.env.request().expect("a native world").shifts, ["missing:share=0.5"]);
    assert_eq!(config.agent.config.to_string().replace('\n', ";"), "patch = 5;top_k = 5;");
    assert_eq!(config.recipe.selection.every, plain.recipe.selection.every);
}

#[track_caller]
fn check_err(file: &str, sets: &[&str], expect: &str) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, file).expect("writable");
    let said = TrainConfig::load("laptop", Some(&path), sets).expect_err("must be refused").to_string();
    assert!(said.contains(expect), "{said}");
    assert!(said.contains(';') && said.lines().count() == 1, "{said}");
}

#[test]
fn bad_input() {
    check_err(
        "",
        &["recipe.stage.0.sigm=0.3"],
        "unknown field `sigm`, expected one of `population`, `sigma`",
    );
    check_err("[recipe.selection]\nsigm = 1", &[], "unknown field `sigm`");
    check_err("sigma = 1", &[], "unknown field `sigma`");
    check_err(
        "",
        &["recipe.stage.0.sigma=many"],
        "recipe.stage.0.sigma wants a number, such as 0.1; it was given the text \"many\"",
    );
    check_err("", &["sigma"], "a value is missing; write it as key=value");
    check_err("", &["=3"], "a key is missing; write it as key=value");
    check_err("", &["recipe=3"], "recipe wants a table");
    check_err("", &["recipe.stage.9.sigma=3"], "recipe.stage wants a list of tables, such as [{name=");
    check_err("seed = 1\nseed = 2", &[], "mine.toml line 2: duplicate key");
    check_err("seed = = 1", &[], "mine.toml line 1");
    check_err("version = 2", &[], "this program reads version 1");
    check_err("", &["seed=-1"], "seed wants a whole number from 0; it was given the number -1");
    check_err("", &["recipe.stage.0.population=1"], "population = 1; a generation needs at least 2 genomes");
    check_err("", &["recipe.stage.0.tracks=0"], "tracks = 0; choose 1 or more (in stage \"");
    check_err(
        "",
        &["recipe.stage.0.patience=never"],
        "recipe.stage.0.patience: \"never\", expected a number",
    );
    check_err("", &["recipe.selection.every=-1"], "recipe.selection.every: -1, expected training steps");
    check_err("", &["recipe.init=ones"], "recipe.init: no beginning is called \"ones\"; choose");
    check_err("", &["recipe.init.weights=nowhere.safetensors"], "nowhere.safetensors");
    check_err("", &["recipe.teacher.weights=nowhere.safetensors"], "nowhere.safetensors");
    check_err(
        "",
        &["recipe.teacher.file=a"],
        "recipe.teacher.file: unknown field `file`, expected `weights` or `sha256`; correct it",
    );
    check_err("", &["workers=5000"], "workers = 5000; choose a number from 0");
    check_err(&"#".repeat(2 << 20), &[], "is it the right file?");
    let said = TrainConfig::load("desktop", None, &NO_SETS).expect_err("no such preset").to_string();
    let known = foveate_registry::PRESETS.names().join(", ");
    assert_eq!(said, format!("no preset is called \"desktop\"; choose from: {known}"));
}

#[track_caller]
fn check_patience(preset: &str, file: &str, sets: &[&str], expect: &[Option<u32>]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, file).expect("writable");
    let config = TrainConfig::load(preset, Some(&path), sets).expect("right");
    let found: Vec<_> = config.recipe.stages.iter().map(|stage| stage.patience.0).collect();
    assert_eq!(found, expect, "{preset}, {file:?}, {sets:?}");
}

#[test]
fn patience_belongs_to_the_world() {
    let stage = "[[recipe.stage]]\nname = \"own\"\nsteps = 10\n";
    let said = format!("{stage}patience = 7\n");
    let gym = "env.id=gym:MountainCar-v0";
    check_patience("laptop", "", &[], &[Some(20), Some(100)]);
    check_patience("evolution", "", &[], &[Some(20), Some(20)]);
    check_patience("laptop", stage, &[], &[Some(20)]);
    check_patience("evolution", "", &[gym], &[None, None]);
    check_patience("evolution", "", &["env.id=take-cover"], &[None, None]);
    check_patience("evolution", stage, &[gym], &[None]);
    check_patience("evolution", &said, &[gym], &[Some(7)]);
    check_patience("evolution", "", &[gym, "recipe.stage.0.patience=30"], &[Some(30), None]);
    check_patience("take-cover", stage, &[], &[None]);
    let of_world = ["env.picture=world", "recipe.max_steps=400"];
    check_patience("gymnasium", "", &[&[gym], &of_world[..]].concat(), &[None, None]);
    check_patience("gymnasium-pictures", "", &[&[gym], &of_world[..]].concat(), &[None, None]);
}

#[test]
fn flags_of_the_world_lie_on_top_of_everything() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("mine.toml");
    let text = "[env]\nid = \"a\"\npicture = \"b\"\n[env.options]\nx = 1\ny = 2\n";
    std::fs::write(&path, text).expect("writable");
    let world = WorldSpec {
        id: Some("gym:X-v0".into()),
        picture: Some("render".into()),
        variants: vec!["bar".into()],
        options: [("y", "3"), ("arg.gravity", "9.5"), ("wrap", "grey")]
            .map(|(name, value)| (name.into(), value.into()))
            .into_iter()
            .collect(),
        trust: true,
        ..WorldSpec::default()
    };
    let said = UserSettings::read(Some(&path), &["env.picture=c"], &world).expect("right");
    assert_eq!(said.world().as_deref(), Some("gym:X-v0"));
    let request = said.config("evolution", Table::new()).expect("right").env.request().expect("trusted");
    assert_eq!((&*request.id, request.picture.as_deref()), ("gym:X-v0", Some("render")));
    assert_eq!(request.variants, ["bar"]);
    let options: Vec<_> = request.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(options, ["arg.gravity=9.5", "wrap=grey", "x=1", "y=3"]);
    let silent = UserSettings::read(Some(&path), &NO_SETS, &WorldSpec::default()).expect("right");
    assert_eq!(silent.world().as_deref(), Some("a"));
}

#[test]
fn settings_of_the_presets_agent_are_not_those_of_another() {
    let keys = |sets: &[&str]| {
        let config = TrainConfig::load("laptop-relu", None, sets).expect("right");
        config.agent.config.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&[]), ["hidden", "voting"]);
    assert_eq!(keys(&["agent.name=attention-agent"]), ["hidden", "voting"]);
    assert_eq!(keys(&["agent.name=controller", "agent.config.hidden=8"]), ["hidden"]);
    assert!(keys(&["agent.name=random-actions"]).is_empty());
}

#[test]
fn laptop_relu_is_laptop_but_for_what_its_head_says() {
    let sets = [
        "agent.config.voting={kernel=\"relu\"}",
        "agent.config.hidden=32",
        "recipe.stage.0.steps=1000000",
        "recipe.stage.1.steps=1000000",
        "recipe.stage.1.keep=1000",
    ];
    let relu = TrainConfig::load("laptop-relu", None, &NO_SETS).expect("a preset");
    let laptop = TrainConfig::load("laptop", None, &sets).expect("a preset");
    assert_eq!(relu, laptop);
}

#[test]
fn recipes_of_car_racing_are_what_they_were() {
    for (preset, digest) in [
        (
            "laptop",
            [
                13_848_622_002_730_525_092,
                5_745_736_116_200_554_906,
                3_795_973_595_054_495_742,
                11_325_142_140_583_988_870,
            ],
        ),
        (
            "evolution",
            [
                249_407_683_732_047_026,
                1_720_981_902_144_585_778,
                14_513_388_474_290_276_377,
                1_258_041_468_980_147_243,
            ],
        ),
        (
            "paper",
            [
                15_524_036_442_924_189_961,
                13_944_964_607_010_576_232,
                17_079_608_141_814_548_060,
                11_480_690_221_161_448_332,
            ],
        ),
    ] {
        let mut recipe = TrainConfig::load(preset, None, &NO_SETS).expect("right").recipe;
        // The digests are older than these names of stages, which change no result.
        for stage in &mut recipe.stages {
            match &*stage.name {
                "tries" => stage.name = "heats".into(),
                "demonstrations" => stage.name = "lessons".into(),
                _ => {}
            }
        }
        assert_eq!(recipe.digest(), digest, "{preset}");
    }
}

#[test]
fn a_table_or_a_list_that_is_given_replaces_the_one_below_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("mine.toml");
    let voting = |file: &str, sets: &[&str]| {
        std::fs::write(&path, file).expect("writable");
        let config = TrainConfig::load("laptop-relu", Some(&path), sets).expect("right");
        config.agent.config["voting"].to_string().replace('"', "'")
    };
    // The preset has { kernel = "relu" }.
    let (one, two) = ("{ kernel = 'relu' }", "{ epsilon = 2.0, kernel = 'relu' }");
    let other = "{ kernel = 'softmax_kernel', same_length = 2.0 }";
    assert_eq!(voting("", &[]), one);
    // In a value, what is given is all there is.
    assert_eq!(voting("", &["agent.config.voting={kernel='softmax_kernel', same_length=2.0}"]), other);
    assert_eq!(voting("agent.config.voting = { kernel = 'softmax_kernel', same_length = 2.0 }", &[]), other);
    assert_eq!(
        voting("[agent.config]\nvoting = { kernel = 'softmax_kernel', same_length = 2.0 }", &[]),
        other
    );
    assert_eq!(
        voting(
            "agent = { config = { voting = { kernel = 'softmax_kernel', same_length = 2.0 } }, name = \"iap\" }",
            &[]
        ),
        other
    );
    assert_eq!(
        voting(
            "[agent]\nname = \"iap\"\nconfig = { voting = { kernel = 'softmax_kernel', same_length = 2.0 } }",
            &[]
        ),
        other
    );
    // A path adds to what there is.
    assert_eq!(voting("", &["agent.config.voting.epsilon=2.0"]), two);
    assert_eq!(voting("agent.config.voting.epsilon = 2.0", &[]), two);
    assert_eq!(voting("[agent]\nconfig.voting.epsilon = 2.0", &[]), two);
    assert_eq!(voting("[agent.config.voting]\nepsilon = 2.0", &[]), two);
    assert_eq!(voting("[agent.config.voting]", &[]), one);
    // Later ones lie on top of earlier ones.
    let later = [
        "agent.config.voting={kernel='softmax_kernel', same_length=3.0}",
        "agent.config.voting.same_length=2.0",
    ];
    assert_eq!(voting("[agent.config.voting]\nepsilon = 4.0", &later), other);
    // Lists, and entries of lists.
    let convolutions = |sets: &[&str]| {
        let open = ["env.id=gym:X-v0", "env.picture=world", "recipe.max_steps=400"];
        let config = TrainConfig::load("s3ta-small", None, &[&open, sets].concat()).expect("right");
        config.agent.config["convolutions"].to_string()
    };
    assert_eq!(convolutions(&["agent.config.convolutions=[]"]), "[]");
    let first = convolutions(&[
        "agent.config.convolutions.0={filters=2, size=3, stride=1}",
        "agent.config.convolutions.1.filters=3",
    ]);
    assert_eq!(first, "[{ filters = 2, size = 3, stride = 1 }, { filters = 3, size = 4, stride = 2 }]");
    let world =
        WorldSpec { options: [("y".into(), "3".into())].into_iter().collect(), ..WorldSpec::default() };
    let said = UserSettings::read(None, &["env.options={x=1}"], &world).expect("right");
    assert_eq!(said.section("env")["options"].to_string(), "{ x = 1, y = \"3\" }");
}

#[test]
fn another_strategy_has_settings_of_its_own() {
    let stages = |preset: &str, sets: &[&str]| {
        let config = TrainConfig::load(preset, None, sets).expect("it fits");
        let of = |stage: &foveate_train::Stage| {
            (stage.algorithm.clone().expect("complete"), stage.options.clone())
        };
        config.recipe.stages.iter().map(of).collect::<Vec<_>>()
    };
    let usual = |name: &str| {
        let settings = foveate_train::LEARNERS.find(name).expect("it exists").settings(&Table::new());
        (name.to_owned(), settings.expect("defaults").table())
    };
    let evolves = |learner: &&foveate_train::LearnerDescriptor| learner.learns_from == LearnsFrom::Returns;
    for strategy in foveate_train::LEARNERS.iter().filter(|learner| evolves(learner)) {
        let set = format!("recipe.algorithm={}", strategy.name);
        let evolution = stages("evolution", &[&set]);
        if strategy.name == "rank-es" {
            assert_eq!(evolution, stages("evolution", &[]), "the preset's own");
            continue;
        }
        let expect = usual(strategy.name);
        assert_eq!(evolution, [expect.clone(), expect.clone()]);
        // A stage with a strategy of its own keeps it, and its settings.
        assert_eq!(stages("laptop", &[&set])[1], stages("laptop", &[])[1]);
        let one = stages("evolution", &[&format!("recipe.stage.1.algorithm={}", strategy.name)]);
        assert_eq!(one, [stages("evolution", &[])[0].clone(), expect]);
    }
    let sets = ["recipe.algorithm=simple-ga", "recipe.stage.0.population=48"];
    assert_eq!(stages("evolution", &sets)[0].1["population"].as_integer(), Some(48), "what the user says");
}

#[test]
fn files_of_options_are_stored_with_their_whole_paths() {
    // The folder of this crate is the current one.
    let stored = |data: &str| {
        let set = ["env.id=digits".to_owned(), format!("env.options.data={data:?}")];
        let config = UserSettings::read(None, &set, &WorldSpec::default())
            .expect("settings")
            .config("digits", Table::new());
        config.expect("a configuration").env.options["data"].as_str().expect("text").to_owned()
    };
    let here = std::env::current_dir().expect("a folder");
    assert_eq!(Path::new(&stored("src")), here.join("src"));
    assert_eq!(stored("none-of-ours"), "none-of-ours", "what is not there stays");
    // A run of before keeps what it has.
    let text = TrainConfig::load("digits", None, &["env.options.data=src"]).expect("fine").to_toml();
    let old = text.replace(&here.join("src").display().to_string(), "src");
    let old = TrainConfig::of_text(&old, Path::new("config.toml")).expect("fine");
    assert_eq!(old.env.options["data"].as_str(), Some("src"));
}

#[test]
fn files_of_worlds_variants_and_shifts_are_stored_with_their_whole_paths() {
    // The folder of this crate is the current one.
    let here = std::env::current_dir().expect("a folder").display().to_string();
    for (sets, expect) in [
        (
            "env.shifts=['blur:2+background-video:5:folder=src@3-9']",
            format!("blur:2+background-video:5:folder={here}/src@3-9"),
        ),
        (
            "env.shifts=['background-image:5:file=Cargo.toml:tolerance=3+hue:1']",
            format!("background-image:5:file={here}/Cargo.toml:tolerance=3+hue:1"),
        ),
        (
            "env.shifts=['background-video:5:folder=none-of-ours']",
            "background-video:5:folder=none-of-ours".into(),
        ),
        ("env.shifts=['background-video:5:folder=auto']", "background-video:5:folder=auto".into()),
        ("env.variants=['bar+video:folder=src']", format!("bar+video:folder={here}/src")),
        ("env.variants=['bar', 'color']", "\"bar\", \"color\"".into()),
    ] {
        let toml = TrainConfig::load("laptop", None, &[sets]).expect(sets).to_toml();
        assert!(toml.contains(&expect), "{sets}: {toml}");
        // A run of before keeps what it has, and one of now, too.
        let again = TrainConfig::of_text(&toml, Path::new("config.toml")).expect("fine").to_toml();
        assert_eq!(again, toml);
        let old = toml.replace(&format!("{here}/"), "");
        assert_eq!(TrainConfig::of_text(&old, Path::new("config.toml")).expect("fine").to_toml(), old);
    }
    assert_eq!(whole_paths::of_id("mjcf:Cargo.toml"), format!("mjcf:{here}/Cargo.toml"));
    assert_eq!(whole_paths::of_id("mjcf:none.xml"), "mjcf:none.xml");
    assert_eq!(whole_paths::short_id("mjcf:/a/robot.xml"), "mjcf:robot.xml");
}

/// What no message may hold: words of the language that Foveate is written in, and names of its types.
const JARGON: [&str; 18] = [
    "struct",
    "enum",
    "variant",
    "invalid type",
    "invalid value",
    "invalid length",
    "sequence",
    "usize",
    "u64",
    "u32",
    "u8",
    "f64",
    "f32",
    "i64",
    "map",
    "newtype",
    "tuple",
    "missing field",
];

/// Gives the setting `key` a value of each kind, and checks what is said of those that it does not take.
fn check_forms(sets: &[String], key: &str, setting: &Setting) {
    let mut refused = 0;
    for wrong in ["true", "\"?\"", "-3.5", "[\"?\"]", "{\"?\" = \"?\"}"] {
        let set = format!("{key}={wrong}");
        let Err(error) = TrainConfig::load("laptop", None, &[sets, std::slice::from_ref(&set)].concat())
            .and_then(|config| config.agent.build())
        else {
            continue;
        };
        refused += 1;
        let said = error.to_string();
        let said = said.replace("invalid value for", "");
        // A name that nothing has: the message has the names of what there is.
        let of_name = ["choose from", "is called", "cannot read"].iter().any(|part| said.contains(part));
        assert!(of_name || said.contains(key.rsplit('.').next().unwrap_or(key)), "{set}: {said}");
        assert!(said.contains(" wants ") == said.contains("it was given"), "{set}: {said}");
        for word in said.split(|c: char| !c.is_alphanumeric() && c != ' ') {
            let humps = word.split(' ').any(|word| {
                word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase)
            });
            assert!(!humps, "{set}: a name of a type in {said}");
        }
        let jargon = JARGON.iter().find(|word| {
            said.split(|c: char| !c.is_alphanumeric() && c != ' ')
                .any(|part| format!(" {part} ").contains(&format!(" {word} ")))
        });
        assert_eq!(jargon, None, "{set}: {said}");
        assert_eq!(said.lines().count(), 1, "{set}: {said}");
    }
    assert!(refused >= 2, "{key} takes anything, but its form is {}", setting.form);
}

#[test]
fn messages_about_every_setting_are_plain_words() {
    for agent in registry::AGENTS.iter() {
        let of_agent = agent.settings();
        assert!(!of_agent.is_empty(), "{}", agent.name);
        for setting in &of_agent {
            check_forms(
                &[format!("agent.name={}", agent.name)],
                &format!("agent.config.{}", setting.key),
                setting,
            );
        }
    }
    for learner in foveate_train::LEARNERS.iter() {
        let of_learner = learner.forms();
        assert!(!of_learner.is_empty(), "{}", learner.name);
        for setting in &of_learner {
            check_forms(
                &[format!("recipe.algorithm={}", learner.name)],
                &format!("recipe.stage.0.{}", setting.key),
                setting,
            );
        }
    }
    for setting in settings("laptop").expect("a preset") {
        if !["agent.config", "env.options"].iter().any(|free| setting.key.starts_with(free)) {
            check_forms(&[], &setting.key, &setting);
        }
    }
}

#[test]
fn messages_have_the_whole_key_and_an_example() {
    for (set, expect) in [
        (
            "agent.config.features.histogram=yes",
            "agent.config.features.histogram wants a table, such as {bins=16}; it was given the text \"yes\"",
        ),
        (
            "agent.config.top_k=yes",
            "agent.config.top_k wants a whole number from 0, such as 10; it was given the text \"yes\"",
        ),
        ("agent.config.voting.kernel=rely", "agent.config.voting.kernel wants one of \"softmax\","),
        (
            "recipe.stage.0.track_seeds=3",
            "recipe.stage.0.track_seeds wants one of \"common\", \"separate\"; it was given the number 3",
        ),
        (
            "recipe.stage.0.fitness=best",
            "recipe.stage.0.fitness wants one of \"mean\", \"median\", {cvar=0.5}; it was given",
        ),
        (
            "env.variants=bar",
            "env.variants wants a list of texts, such as [\"text\"]; it was given the text \"bar\"",
        ),
        ("seed=1979-05-27", "seed wants a whole number from 0; it was given the date 1979-05-27"),
    ] {
        check_err("", &[set], expect);
    }
}
