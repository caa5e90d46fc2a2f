use std::collections::BTreeMap;
use std::fs;

use super::*;
use foveate_core::{Executor, Purpose, Record};
use foveate_train::{FreshWeights, Init, Interval, Recipe, Selection, Stage};

use crate::progress::LogLine;
use foveate_toy::{ToyStudent, ToyWorld, toy_agent};

fn recipe() -> Recipe {
    let stage = Stage { starts: 2, ..Stage::new("tries", 2500).with("population", 6).with("sigma", 0.3) };
    Recipe {
        algorithm: "rank-es".into(),
        max_steps: 50,
        teacher: None,
        init: Init::Torch,
        selection: Selection {
            every: Interval::Steps(900),
            tracks: 4,
            finalists: 2,
            final_tracks: 5,
            reevaluate: 1,
            report_tracks: 6,
            evaluation_tracks: 3,
            evaluation_every: Some(2),
            draw_actions: false,
        },
        stages: vec![
            stage.clone(),
            Stage { name: "learn".into(), starts: 1, tracks: 2, ..stage.with("averaging", 0.5) },
            demonstrations(),
        ],
    }
}

/// At least three rounds.
fn demonstrations() -> Stage {
    let stage = Stage { algorithm: Some("imitation".into()), tracks: 4, ..Stage::new("demonstrations", 700) };
    stage.with("updates", 20).with("pieces", 3).with("piece", 20).with("burn_in", 5).with("keep", 6)
}

#[expect(clippy::unnecessary_wraps, reason = "as the real one")]
fn save_flat(weights: &[f32], generation: u64) -> Result<Vec<u8>, RunError> {
    Ok(format!("{generation} {weights:?}").into_bytes())
}

fn parts(world: ToyWorld, workers: usize) -> Parts {
    let fresh: FreshWeights = Box::new(|seed| {
        let mut rng = seed.rng();
        (0..3).map(|_| rng.uniform(-0.5, 0.5) as f32).collect()
    });
    let agent = toy_agent(0.0);
    let mut config = TrainConfig::load("laptop", None, &[""; 0]).expect("the preset");
    (config.seed, config.workers, config.recipe) = (4, workers, recipe());
    Parts {
        training: Training::new(recipe(), 4, fresh, Some(Box::new(ToyStudent::new()))).expect("fine"),
        config,
        title: "toy".into(),
        checkpoint_every: Duration::ZERO,
        save: Box::new(save_flat),
        env: Box::new(world),
        agent: Box::new(agent),
        cluster: None,
    }
}

fn begin(folder: &Path, world: ToyWorld, workers: usize, stop: &Stop) -> Result<TrainResult, RunError> {
    let runs = folder.parent().expect("it has one");
    let name = folder.file_name().and_then(|n| n.to_str()).expect("a name");
    let folder = RunFolder::create_named(runs, name, "seed = 4\n")?;
    Run::begin(parts(world, workers), folder)?.drive(&mut (), stop)
}

fn go_on(folder: &Path, workers: usize) -> Result<TrainResult, RunError> {
    let folder = RunFolder::open(folder)?;
    Run::resume(parts(ToyWorld::default(), workers), folder, false, &mut ())?.drive(&mut (), &Stop::default())
}

/// Everything in the folder that must not depend on interruptions: weights, state, videos, and the log
/// without times.
fn digits(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut open = RunFolder::open(folder).expect("a run");
    let found = open.latest().expect("whole").expect("there is one");
    assert_eq!((found.log_fits, found.notes), (true, vec![]));
    let lines = open.cut_log(&found.checkpoint).expect("readable");
    let timeless = lines.iter().map(|line| {
        let line: LogLine = serde_json::from_str(line).expect("a log line");
        serde_json::to_string(&LogLine { seconds: 0.0, cpu_seconds: 0.0, ..line }).expect("plain")
    });
    let mut digits = BTreeMap::from([
        ("log".to_owned(), timeless.collect::<Vec<_>>().join("\n").into_bytes()),
        ("state".to_owned(), format!("{:?} {}", found.checkpoint.state, found.checkpoint.lines).into_bytes()),
    ]);
    for name in ["best.safetensors", "last.safetensors", "config.toml", "tracks.json", "curve.svg"] {
        digits.insert(name.to_owned(), fs::read(folder.join(name)).expect("it is there"));
    }
    for entry in fs::read_dir(folder.join("videos")).expect("it is there") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        digits.insert(name, fs::read(&path).expect("readable"));
    }
    digits
}

#[track_caller]
fn check_same(folder: &Path, expect: &BTreeMap<String, Vec<u8>>, what: &str) {
    let digits = digits(folder);
    assert!(digits.keys().eq(expect.keys()), "{what}: {:?}", digits.keys());
    for (name, bytes) in expect {
        assert!(digits[name] == *bytes, "{what}: {name} differs");
    }
}

#[test]
fn the_digits_do_not_depend_on_the_workers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let one = dir.path().join("one");
    let outcome = begin(&one, ToyWorld::default(), 1, &Stop::default()).expect("fine");
    assert!(matches!(outcome.report, Some(Event::Report { .. })));
    for workers in [2, 7] {
        let other = dir.path().join(workers.to_string());
        assert_eq!(
            begin(&other, ToyWorld::default(), workers, &Stop::default()).expect("fine").report,
            outcome.report
        );
        check_same(&other, &digits(&one), "workers");
    }
    // Resuming a completed run returns its result again.
    assert_eq!(go_on(&one, 1).expect("fine").report, outcome.report);
}

#[test]
fn a_polite_stop_leaves_a_checkpoint_and_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let straight = dir.path().join("straight");
    begin(&straight, ToyWorld::default(), 1, &Stop::default()).expect("fine");
    let stopped = dir.path().join("stopped");
    let stop = Stop::default();
    stop.ask();
    let outcome = begin(&stopped, ToyWorld::default(), 2, &stop).expect("a stop is no error");
    assert_eq!(outcome.report, None);
    go_on(&stopped, 2).expect("fine");
    check_same(&stopped, &digits(&straight), "stopped");
}

#[test]
fn only_a_run_at_its_end_has_a_summary() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let run = dir.path().join("run");
    let summary = run.join("summary.json");
    begin(&run, ToyWorld::default(), 1, &Stop::default()).expect("fine");
    let straight = fs::read_to_string(&summary).expect("there");
    // The newest checkpoints were lost: the run continues from before its end.
    let mut checkpoints: Vec<_> =
        fs::read_dir(run.join("checkpoints")).expect("there").flatten().map(|entry| entry.path()).collect();
    checkpoints.sort();
    for newest in &checkpoints[1..] {
        fs::remove_file(newest).expect("ours");
    }
    let stop = Stop::default();
    stop.ask();
    let folder = RunFolder::open(&run).expect("a run");
    let stopped = Run::resume(parts(ToyWorld::default(), 1), folder, false, &mut ()).expect("it fits");
    assert_eq!(stopped.drive(&mut (), &stop).expect("a stop is no error").report, None);
    assert!(!summary.exists());
    go_on(&run, 1).expect("fine");
    let timeless = |text: &str| {
        let mut value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        value["machine"] = serde_json::Value::Null;
        value
    };
    assert_eq!(timeless(&fs::read_to_string(&summary).expect("there")), timeless(&straight));
}

#[test]
fn a_failing_rollout_loses_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (straight, failed) = (dir.path().join("straight"), dir.path().join("failed"));
    begin(&straight, ToyWorld::default(), 1, &Stop::default()).expect("fine");
    // The track of the fifth generation.
    let mut training = parts(ToyWorld::default(), 1).training;
    let mut seed = 0;
    for _ in 0..5 {
        let work = training.work().expect("a generation");
        seed = work.jobs[0].env_seed;
        let result = foveate_core::EpisodeResult { steps: 1, ..Default::default() };
        let experience = foveate_core::Experience::of_episodes(vec![result; work.jobs.len()]);
        training.receive(experience).expect("fine");
    }
    let error = begin(&failed, ToyWorld::panicking(seed, 3), 2, &Stop::default()).expect_err("it panics");
    let said = error.to_string();
    assert!(
        said.contains(&format!("generation 5: genome 0, episode 0 (seed {seed}), step 3: panicked")),
        "{said}"
    );
    let file = failed.join("failures/generation-000005-genome-0-episode-0.json");
    assert!(said.contains(&format!("the task `replay {}`", file.display())), "{said}");
    let failure = crate::failure::Failure::read(&file).expect("a replay");
    assert_eq!((failure.env_seed, failure.step, failure.actions.len()), (seed, 3, 3));
    go_on(&failed, 1).expect("fine");
    check_same(&failed, &digits(&straight), "failed");
}

/// If a world panics in an episode, the error names the purpose of the work and the right generation.
#[test]
fn a_failing_rollout_says_what_it_was_for() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    // The first round of demonstrations and the first validation after it, both with one row of weights.
    let mut training = parts(ToyWorld::default(), 1).training;
    let mut executor = foveate_core::SerialExecutor::new(&ToyWorld::default(), &toy_agent(0.0));
    let (mut round, mut validation) = (None, None);
    while let Some(work) = training.work() {
        let first = (work.jobs[0].env_seed, training.generation(), work.weights.len());
        match (work.purpose, work.record) {
            (Purpose::Training, Record::Demonstrations(_)) => round = round.or(Some(first)),
            (Purpose::Validation, _) if validation.is_none() => validation = Some(first),
            _ => {}
        }
        let mut experience = foveate_core::Experience::default();
        executor.execute(&work, &mut experience).expect("fine");
        training.receive(experience).expect("fine");
    }
    let (round, validation) = (round.expect("a round"), validation.expect("a validation"));
    assert_eq!((round.2, validation.2), (1, 1));
    for (name, (seed, before, _), words, file) in [
        ("round", round, format!("generation {}: genome 0", round.1 + 1), "generation"),
        (
            "validation",
            validation,
            format!("validation after generation {}: genome 0", validation.1),
            "validation",
        ),
    ] {
        let folder = dir.path().join(name);
        let error = begin(&folder, ToyWorld::panicking(seed, 2), 2, &Stop::default()).expect_err("it panics");
        let said = error.to_string();
        assert!(said.starts_with(&words), "{said} / {words}");
        let generation = if name == "round" { before + 1 } else { before };
        let file = folder.join(format!("failures/{file}-{generation:06}-genome-0-episode-0.json"));
        let failure = crate::failure::Failure::read(&file).expect("a replay");
        assert_eq!((failure.env_seed, failure.generation, failure.step), (seed, generation, 2));
        assert_eq!(failure.purpose.map(Purpose::trains), Some(name == "round"));
        assert_eq!(failure.demonstration.is_some(), name == "round");
    }
}

#[test]
fn the_real_parts_fit_together() {
    let sets = [
        "env.picture=\"fast\"",
        "recipe.max_steps=30",
        "recipe.selection={every=1000,tracks=2,finalists=1,final_tracks=2,report_tracks=3}",
        "recipe.stage=[{name=\"only\",steps=100,population=4,sigma=0.1,learning_rate=1.0}]",
        "workers=2",
    ];
    let config = TrainConfig::load("laptop", None, &sets).expect("right");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let request = TrainRequest { config, runs: dir.path().join("runs"), name: None };
    let outcome = run(&request, &mut (), &Stop::default()).expect("fine");
    assert_eq!(outcome.folder, dir.path().join("runs/car-racing"));
    let request =
        ResumeRequest { folder: outcome.folder.clone(), workers: Some(1), ..ResumeRequest::default() };
    let again = resume(&request, &mut (), &Stop::default()).expect("fine");
    assert_eq!(again, outcome);
    for file in [
        "about.json",
        "config.toml",
        "tracks.json",
        "log.jsonl",
        "curve.svg",
        "best.safetensors",
        "last.safetensors",
    ] {
        assert!(outcome.folder.join(file).is_file(), "{file}");
    }
}

/// A task of DeepMind Control has no expert, so its preset that imitates needs a teacher: it says so, names presets that need none,
/// and starts with one.
#[test]
fn every_preset_of_a_task_of_control_starts() {
    use crate::config::UserSettings;
    use crate::fit::{configure, presets_without_expert};
    use crate::trust::WorldSpec;

    let Some(python) = foveate_toy::needs::worlds_python() else { return };
    let environment = Path::new(&python).ancestors().nth(2).expect("an environment").display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let mut started = 0;
    for world in foveate_registry::WORLDS.iter().filter(|world| world.needs_library && world.family.is_none())
    {
        let configured = |preset: &str, sets: &[&str]| {
            let always = [format!("env.id={}", world.name), format!("env.options.library={environment:?}")];
            let sets: Vec<&str> = always.iter().map(String::as_str).chain(sets.iter().copied()).collect();
            let said = UserSettings::read(None, &sets, &WorldSpec::default()).expect("good settings");
            configure(Some(preset), &said)
                .unwrap_or_else(|error| panic!("{} {preset}: {error}", world.name))
                .config
        };
        let start = |config: &TrainConfig| Parts::of(config, folder.path()).map(drop);
        let alone = presets_without_expert(world).expect("good presets");
        for preset in foveate_registry::presets_of(world).iter().map(|preset| preset.name) {
            started += 1;
            match start(&configured(preset, &[])) {
                Ok(()) => continue,
                Err(error) => {
                    let said = error.to_string();
                    assert!(!alone.contains(&preset), "{}: {preset}: {said}", world.name);
                    assert!(said.contains("has no expert") && said.contains("recipe.teacher"), "{said}");
                    assert!(alone.iter().all(|other| said.contains(&format!("preset {other}"))), "{said}");
                }
            }
            // What the preset with a teacher is for: a network that control-ppo trained, here an untrained one.
            let ppo = configured("control-ppo", &[]);
            let settings = ppo.agent.settings().expect("good settings");
            let seed = foveate_core::Seed::root(1);
            let params = registry::initial_params(&ppo.agent.name, &settings, registry::Init::Torch, seed)
                .expect("drawn");
            let file = folder.path().join(format!("{}.safetensors", world.name));
            AgentFile::new(&ppo.agent.name, &settings, params)
                .expect("they fit")
                .save(&file)
                .expect("written");
            let teacher = format!("recipe.teacher={{ weights = {:?} }}", file.display().to_string());
            start(&configured(preset, &[&teacher])).unwrap_or_else(|error| panic!("{preset}: {error}"));
        }
    }
    assert!(started >= 20, "{started}");
}

#[test]
fn a_short_training_says_what_its_judging_costs() {
    let mut recipe = TrainConfig::load("laptop", None, &[""; 0]).expect("a preset").recipe;
    assert_eq!(judging(&recipe, recipe.training_steps() + 264_000), None, "a whole run is as it says");
    for stage in &mut recipe.stages {
        (stage.steps, stage.starts) = (1, 1);
    }
    let said = judging(&recipe, recipe.training_steps() + 264_000).expect("far more than 3 steps");
    for part in [
        "up to 264,000 of episodes",
        "64 a validation",
        "100 for the report",
        "recipe.selection.report_tracks=5",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(judging(&recipe, recipe.training_steps() + 500), None, "a moment");
}
