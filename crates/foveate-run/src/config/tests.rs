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
    check_err("", &["recipe.stage.0.sigma=many"], "invalid type: string \"many\", expected f64");
    check_err("", &["sigma"], "a value is missing; write it as key=value");
    check_err("", &["=3"], "a key is missing; write it as key=value");
    check_err("", &["recipe=3"], "invalid type: integer `3`");
    check_err("", &["recipe.stage.9.sigma=3"], "invalid type: map");
    check_err("seed = 1\nseed = 2", &[], "mine.toml line 2: duplicate key");
    check_err("seed = = 1", &[], "mine.toml line 1");
    check_err("version = 2", &[], "this program reads version 1");
    check_err("", &["seed=-1"], "invalid value: integer `-1`");
    check_err("", &["recipe.stage.0.population=1"], "population = 1; a generation needs at least 2 genomes");
    check_err("", &["recipe.stage.0.tracks=0"], "tracks = 0; choose 1 or more (in stage \"");
    check_err(
        "",
        &["recipe.stage.0.patience=never"],
        "recipe.stage[0].patience: \"never\", expected a number",
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
    let world = WorldFlags {
        id: Some("gym:X-v0".into()),
        picture: Some("render".into()),
        variants: vec!["bar".into()],
        options: [("y", "3"), ("arg.gravity", "9.5"), ("wrap", "grey")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        trust: Trust::AnyWorld,
        ..WorldFlags::default()
    };
    let said = UserSettings::read(Some(&path), &["env.picture=c"], &world).expect("right");
    assert_eq!(said.world().as_deref(), Some("gym:X-v0"));
    let request = said.config("evolution", Table::new()).expect("right").env.request().expect("trusted");
    assert_eq!((&*request.id, request.picture.as_deref()), ("gym:X-v0", Some("render")));
    assert_eq!(request.variants, ["bar"]);
    let options: Vec<_> = request.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(options, ["arg.gravity=9.5", "wrap=grey", "x=1", "y=3"]);
    let silent = UserSettings::read(Some(&path), &NO_SETS, &WorldFlags::default()).expect("right");
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
    let (one, two) = ("{ kernel = 'relu' }", "{ kernel = 'relu', same_length = 2.0 }");
    let other = "{ same_length = 2.0 }";
    assert_eq!(voting("", &[]), one);
    // In a value, what is given is all there is.
    assert_eq!(voting("", &["agent.config.voting={same_length=2.0}"]), other);
    assert_eq!(voting("agent.config.voting = { same_length = 2.0 }", &[]), other);
    assert_eq!(voting("[agent.config]\nvoting = { same_length = 2.0 }", &[]), other);
    assert_eq!(voting("agent = { config = { voting = { same_length = 2.0 } }, name = \"iap\" }", &[]), other);
    assert_eq!(voting("[agent]\nname = \"iap\"\nconfig = { voting = { same_length = 2.0 } }", &[]), other);
    // A path adds to what there is.
    assert_eq!(voting("", &["agent.config.voting.same_length=2.0"]), two);
    assert_eq!(voting("agent.config.voting.same_length = 2.0", &[]), two);
    assert_eq!(voting("[agent]\nconfig.voting.same_length = 2.0", &[]), two);
    assert_eq!(voting("[agent.config.voting]\nsame_length = 2.0", &[]), two);
    assert_eq!(voting("[agent.config.voting]", &[]), one);
    // Later ones lie on top of earlier ones.
    let later = ["agent.config.voting={same_length=3.0}", "agent.config.voting.same_length=2.0"];
    assert_eq!(voting("[agent.config.voting]\nsame_length = 4.0", &later), other);
    // Lists, and entries of lists.
    let convolutions = |sets: &[&str]| {
        let open = ["env.id=gym:X-v0", "env.picture=world", "recipe.max_steps=400"];
        let config = TrainConfig::load("s3ta-small", None, &[&open, sets].concat()).expect("right");
        config.agent.config["convolutions"].to_string()
    };
    assert_eq!(convolutions(&["agent.config.convolutions=[]"]), "[]");
    let first =
        convolutions(&["agent.config.convolutions.0={filters=2}", "agent.config.convolutions.1.filters=3"]);
    assert_eq!(first, "[{ filters = 2 }, { filters = 3, size = 4, stride = 2 }]");
    let world = WorldFlags { options: [("y".into(), "3".into())].into(), ..WorldFlags::default() };
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
        let config = UserSettings::read(None, &set, &WorldFlags::default())
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
