//! A world, an agent and a learner from another crate, each one file and one registry entry: they are listed,
//! trained, evaluated, recorded, explained and shown in the lab by name alone.

#[path = "scratch/agent.rs"]
mod agent;
#[path = "scratch/learner.rs"]
mod learner;
#[path = "scratch/world.rs"]
mod world;

use std::path::Path;
use std::sync::{Arc, Once};

use foveate::jobs::{Evaluate, Explain, Train, Watch};
use foveate::lab::{Session, lab_setup};
use foveate::run::workers::Stop;
use foveate::{AGENTS, LEARNERS, LoadedAgent, Player, WORLDS, World, WorldSpec};

const WORLD: &str = "scratch-lamp";
const AGENT: &str = "scratch-brightness";

/// Registers one entry for each of them.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        WORLDS.register(world::DESCRIPTOR).expect("a new name");
        AGENTS.register(agent::DESCRIPTOR).expect("a new name");
        LEARNERS.register(learner::DESCRIPTOR).expect("a new name");
    });
}

fn evaluation() -> Evaluate {
    Evaluate { episodes: 10, workers: 1, ..Evaluate::default() }
}

#[test]
fn they_are_listed_and_found_like_all_others() {
    register();
    assert!(WORLDS.names().contains(&WORLD) && AGENTS.names().contains(&AGENT));
    assert!(LEARNERS.names().contains(&"scratch-search"));
    assert!(WORLDS.register(world::DESCRIPTOR).is_err() && AGENTS.register(agent::DESCRIPTOR).is_err());
    let said = World::named("scratch-lmap").spec(&World::named("scratch-lmap").own()).expect_err("unknown");
    assert!(said.to_string().contains("did you mean scratch-lamp?"), "{said}");
    // The default agent for this observation fits the world, too.
    let world = World::named(WORLD);
    let untrained = LoadedAgent::load(Some("random".as_ref()), &world).expect("it fits");
    assert_eq!(untrained.file.name(), "attention-agent");
    let report = evaluation().run(&untrained.into(), &Stop::default()).expect("it acts");
    assert_eq!(report.lengths, [20; 10]);
    let mut unknown = world.own();
    unknown.options.insert("size".into(), "9".into());
    let said = foveate::make(&unknown).err().expect("no such option").to_string();
    assert!(said.contains("scratch-lamp has no option \"size\""), "{said}");
}

/// Settings that override the world's preset.
const CONFIG: &str = "
    workers = 1
    videos = false
    agent.name = 'scratch-brightness'

    [recipe]
    algorithm = 'scratch-search'
    selection = { every = 4000, tracks = 4, finalists = 1, final_tracks = 4, report_tracks = 8 }

    [[recipe.stage]]
    name = 'search'
    steps = 12_000
    tracks = 2
    population = 12
";

/// Trains the scratch agent in the scratch world with the scratch learner; returns the run folder.
fn trained(runs: &Path) -> std::path::PathBuf {
    let config = runs.join("scratch.toml");
    std::fs::write(&config, CONFIG).expect("writable");
    let job = Train {
        world: WorldSpec::named(WORLD),
        config: Some(config),
        runs: runs.to_path_buf(),
        name: Some("scratch".into()),
        ..Train::default()
    };
    job.run(&mut (), &Stop::default()).expect("it trains").folder
}

#[test]
fn they_are_trained_judged_filmed_explained_and_shown_in_the_lab() {
    register();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let run = trained(dir.path());
    let kept = std::fs::read_to_string(run.join("config.toml")).expect("the run keeps it");
    assert!(
        kept.contains("scratch-search") && kept.contains("sigma = 0.5"),
        "defaults are written out: {kept}"
    );
    // No world is given: the run's weights record it.
    let world = World::new(WorldSpec::default());
    let trained = LoadedAgent::load(Some(&run), &world).expect("a run");
    assert_eq!((trained.file.name(), &*trained.world.id), (AGENT, WORLD));
    let stop = Stop::default();
    let mean = |player: &Player| evaluation().run(player, &stop).expect("it acts").summary.mean;
    let chance = Player::load(Some("random-actions".as_ref()), &WorldSpec::named(WORLD)).expect("it fits");
    let player = Player::from(trained.clone());
    assert!(mean(&player) > mean(&chance) + 3.0, "it learnt: {} against {}", mean(&player), mean(&chance));

    let picture = dir.path().join("look.png");
    let film = Watch { out: picture.clone(), at: Some(5), effects: false, ..Watch::default() };
    film.run(&player, &stop, &mut |_| {}).expect("it is filmed");
    assert!(picture.is_file());

    let out = dir.path().join("report");
    let small = Explain {
        out: out.clone(),
        episodes: 2,
        decisions: 4,
        untrained: 2,
        workers: 1,
        ..Explain::default()
    };
    small.run(&player, &stop, &mut |_| {}).expect("it is explained");
    assert!(out.join("index.html").is_file());

    let named = vec![(trained.file.clone(), "mine".to_owned())];
    let setup = lab_setup(trained.world.clone(), named).expect("it can be shown");
    let mut session = Session::new(Arc::new(setup)).expect("a session");
    let hello = session.take_messages().concat();
    assert!(hello.contains("point") && hello.contains("mine"), "{hello}");
    session.handle(r#"{"type":"view","width":96,"height":96}"#);
    assert!(!session.frame().is_empty());
}
