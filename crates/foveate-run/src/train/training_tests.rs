//! Complete training runs on a toy world, stopped and restored at any point.

use foveate_core::episode::EpisodeRules;
use foveate_core::{
    ActMode, EpisodeResult, Executor, Experience, Population, Purpose, Record, Recording, RolloutJob,
    StateDict, Tensor,
};
use foveate_train::{
    Event, Fitness, FreshWeights, Init, Interval, LEARNERS, LearnsFrom, Patience, Recipe, Replay,
    ReplayJudge, Schedule, Selection, Stage, TrackSeeds, TrainError, Training,
};

use crate::workers::{Stop, Workers};
use foveate_toy::{ToyStudent, ToyWorld, toy_agent};

fn recipe() -> Recipe {
    let stage = Stage { starts: 3, ..Stage::new("tries", 1500).with("population", 8).with("sigma", 0.3) };
    Recipe {
        algorithm: "rank-es".into(),
        max_steps: 50,
        teacher: None,
        init: Init::Torch,
        selection: Selection {
            every: Interval::Steps(700),
            tracks: 5,
            finalists: 3,
            final_tracks: 6,
            reevaluate: 0,
            report_tracks: 7,
            evaluation_tracks: 0,
            evaluation_every: None,
            draw_actions: false,
        },
        stages: vec![
            stage.clone(),
            Stage { name: "learn".into(), starts: 1, tracks: 2, ..stage.clone().with("averaging", 0.5) },
            Stage { name: "forks".into(), starts: 2, ..stage.with("sigma", 0.1).with("mirrored", true) },
        ],
    }
}

fn fresh() -> FreshWeights {
    Box::new(|seed| {
        let mut rng = seed.rng();
        (0..3).map(|_| rng.uniform(-0.5, 0.5) as f32).collect()
    })
}

fn training(seed: u64) -> Training {
    Training::new(recipe(), seed, fresh(), None).expect("fine")
}

fn step(training: &mut Training, executor: &mut dyn Executor) -> Option<Vec<Event>> {
    let work = training.work()?;
    assert_eq!(training.work().as_ref(), Some(&work), "asking does not move");
    let mut experience = Experience::default();
    executor.execute(&work, &mut experience).expect("fine");
    Some(training.receive(experience).expect("its own experience"))
}

fn workers(count: usize) -> Workers {
    Workers::new(&ToyWorld::default(), &toy_agent(0.0), count, Stop::default())
}

#[test]
fn the_steps_left_go_by_the_length_of_the_episodes_seen() {
    // Episodes of the toy end long before this.
    let mut recipe = recipe();
    recipe.max_steps = 1_000_000;
    recipe.selection.report_tracks = 400;
    let mut training = Training::new(recipe, 1, fresh(), None).expect("fine");
    let mut workers = workers(2);
    let mut estimates = vec![];
    while step(&mut training, &mut workers).is_some() {
        estimates.push((training.steps(), training.steps_left()));
    }
    for (done, left) in estimates {
        let found = training.steps() - done;
        assert!(left <= 4 * found, "{left} steps left at {done}, and {found} followed");
    }
}

#[test]
fn a_run_goes_through_its_stages_and_learns() {
    let (mut training, mut workers) = (training(1), workers(2));
    let mut events = Vec::new();
    let mut estimates = vec![];
    while let Some(more) = step(&mut training, &mut workers) {
        estimates.push((training.steps(), training.steps_left()));
        events.extend(more);
    }
    assert!(training.is_done() && training.steps_left() == 0);
    for (done, left) in estimates {
        let found = training.steps() - done;
        assert!(left <= 3 * found && found <= 3 * left, "{left} steps left at {done}, and {found} followed");
    }
    assert_eq!(training.receive(Experience::default()), Err(TrainError::NothingDue));

    // Starts in order, each with a validation at its end; a stage with several starts selects one; then
    // finals and report.
    let mut plot: Vec<String> = Vec::new();
    for event in &events {
        let line = match event {
            Event::Generation { stage, start, .. } => format!("{stage} {start}"),
            Event::Validation { .. } => "validation".into(),
            Event::Evaluation { .. } => "evaluation".into(),
            Event::Chosen { stage, .. } => format!("chosen {stage}"),
            Event::Final { .. } => "final".into(),
            Event::Stagnation { why, .. } => panic!("this run changes: {why}"),
            Event::Report { .. } => "report".into(),
        };
        if plot.last() != Some(&line) || line == "final" {
            plot.push(line);
        }
    }
    let stages: Vec<&str> = plot.iter().map(String::as_str).filter(|l| *l != "validation").collect();
    let mut in_order = stages.clone();
    in_order.dedup_by(|a, b| a == b && *a != "final");
    assert_eq!(
        in_order,
        [
            "tries 1",
            "tries 2",
            "tries 3",
            "chosen tries",
            "learn 1",
            "forks 1",
            "forks 2",
            "chosen forks",
            "final",
            "final",
            "final",
            "report"
        ]
    );
    for end in ["tries 2", "tries 3", "chosen tries", "forks 1", "forks 2", "chosen forks"] {
        let at = plot.iter().position(|line| line == end).expect("it happens");
        assert_eq!(plot[at - 1], "validation", "before {end}");
    }

    let validations: Vec<f64> = events
        .iter()
        .filter_map(|e| match e {
            Event::Validation { summary, .. } => Some(summary.mean),
            _ => None,
        })
        .collect();
    let Some(Event::Report { summary, returns, judging_steps, steps, .. }) = events.last() else {
        panic!("the last event is the report")
    };
    assert!(summary.mean > 15.0, "the toy is easy to learn: {summary:?}, validations {validations:?}");
    assert_eq!(returns.len(), 7);
    assert_eq!(training.steps(), judging_steps + steps);
    assert!((9000..12_000).contains(steps), "6 starts of 1500 and the rest of a generation: {steps}");
}

#[test]
fn the_choice_is_by_validation_then_by_the_finals() {
    let (mut training, mut workers) = (training(3), workers(1));
    let mut starts = Vec::new();
    let mut last = None;
    let mut finals = Vec::new();
    while let Some(events) = step(&mut training, &mut workers) {
        for event in events {
            match event {
                Event::Validation { summary, ref stage, start, generation, .. } if stage == "tries" => {
                    last = Some((summary.mean, generation));
                    starts.resize(start, (0.0, 0));
                    starts[start - 1] = (summary.mean, generation);
                }
                Event::Chosen { ref stage, mean, generation } if stage == "tries" => {
                    let best =
                        starts.iter().copied().fold((f64::MIN, 0), |a, b| if b.0 > a.0 { b } else { a });
                    assert_eq!((mean, generation), best, "of {starts:?}, last {last:?}");
                }
                Event::Final { generation, summary, .. } => finals.push((summary.mean, generation)),
                Event::Report { generation, .. } => {
                    let best =
                        finals.iter().copied().fold((f64::MIN, 0), |a, b| if b.0 > a.0 { b } else { a });
                    assert_eq!(generation, best.1, "of {finals:?}");
                    assert_eq!(training.best_weights().map(|(_, generation)| generation), Some(best.1));
                }
                _ => {}
            }
        }
    }
    assert_eq!((starts.len(), finals.len()), (3, 3));
}

/// A table of TOML.
fn toml(text: &str) -> toml::Value {
    let mut table: toml::Table = format!("x = {text}").parse().expect("TOML");
    table.remove("x").expect("it was written")
}

/// Recipes with every option, by name.
fn recipes() -> Vec<(&'static str, Recipe)> {
    type Change = fn(&mut Recipe);
    let cases: [(&str, Change); 12] = [
        ("plain", |_| {}),
        ("tracks of one's own", |r| each(r, |s| (s.tracks, s.track_seeds) = (2, TrackSeeds::Separate))),
        ("median", |r| each(r, |s| (s.tracks, s.fitness) = (3, Fitness::Median))),
        ("cvar", |r| each(r, |s| (s.tracks, s.fitness) = (4, Fitness::Cvar(0.5)))),
        ("little patience", |r| each(r, |s| s.patience = Patience(Some(1)))),
        ("longer and longer", |r| {
            each(r, |s| {
                s.max_steps =
                    Some(Schedule::from_value(&toml("{ from = 10, to = 50, over = 900 }")).expect("fine"));
            });
        }),
        ("hard tracks", |r| {
            each(r, |s| {
                (s.tracks, s.steps) = (2, 6000);
                s.replay = Some(Replay { share: 0.9, keep: 3, judge: ReplayJudge::Population });
            });
        }),
        ("hard tracks by the mean", |r| {
            each(r, |s| {
                (s.tracks, s.steps) = (2, 6000);
                s.replay = Some(Replay { share: 0.9, keep: 9, judge: ReplayJudge::Mean });
            });
        }),
        ("smaller steps", |r| {
            each(r, |s| {
                *s = s
                    .clone()
                    .with("sigma", toml("{ from = 0.3, to = 0.1, shape = 'cosine' }"))
                    .with("learning_rate", toml("[[0, 1.0], [700, 0.5]]"));
            });
        }),
        ("more genomes", |r| each(r, |s| *s = s.clone().with("population", toml("[[0, 6], [500, 10]]")))),
        ("generations", |r| {
            r.selection.every = Interval::Generations(2);
            each(r, |s| s.generations = Some(5));
        }),
        ("evaluations and rounds", |r| {
            (r.selection.evaluation_tracks, r.selection.evaluation_every) = (4, Some(2));
            r.selection.reevaluate = 2;
        }),
    ];
    cases
        .into_iter()
        .map(|(name, change)| {
            let mut recipe = recipe();
            change(&mut recipe);
            recipe.check().expect(name);
            (name, recipe)
        })
        .collect()
}

fn each(recipe: &mut Recipe, change: fn(&mut Stage)) {
    recipe.stages.iter_mut().for_each(change);
}

/// Performs a run twice, the second time with a new process after each piece of work; returns the last
/// weights.
#[track_caller]
fn check_stops(name: &str, recipe: &Recipe) -> Vec<f32> {
    let training = || Training::new(recipe.clone(), 2, fresh(), None).expect(name);
    let (mut straight, mut one, mut three) = (training(), workers(1), workers(3));
    let mut stopped = training();
    let mut tasks = 0;
    loop {
        // Only the state is transferred.
        let mut next = training();
        next.restore(&stopped.state()).expect("its own state");
        stopped = next;
        assert_eq!(stopped.state(), straight.state(), "{name}: before work {tasks}");
        let (a, b) = (step(&mut straight, &mut one), step(&mut stopped, &mut three));
        assert_eq!(a, b, "{name}: work {tasks}");
        if a.is_none() {
            break;
        }
        tasks += 1;
        assert_eq!(straight.tasks(), tasks);
    }
    assert!(tasks > 20, "{name}: {tasks}");
    straight.last_weights()
}

#[test]
fn a_run_stopped_after_any_task_goes_on_bit_for_bit() {
    let mut ends = Vec::new();
    for (name, recipe) in recipes() {
        ends.push((name, check_stops(name, &recipe)));
    }
    for (i, (name, weights)) in ends.iter().enumerate() {
        let same = ends[..i].iter().find(|other| other.1 == *weights);
        // Evaluation and selection do not affect learning.
        let expect = (*name == "evaluations and rounds").then_some("plain");
        assert_eq!(same.map(|other| other.0), expect, "{name} makes a difference");
    }
}

#[test]
fn every_strategy_goes_on_bit_for_bit() {
    for described in LEARNERS.iter().filter(|learner| learner.learns_from == LearnsFrom::Returns) {
        for more in ["", "bounds", "restarts"] {
            let mut recipe = recipe();
            recipe.stages.truncate(1);
            let mut stage = Stage::new("only", 8000).with("population", 20);
            stage.starts = 2;
            stage.algorithm = Some(described.name.into());
            stage = match more {
                "bounds" => stage.with(more, toml("{ low = -9.0, high = 9.0 }")),
                "restarts" => stage.with(more, toml("{ after = 3, max_population = 40 }")),
                _ => stage,
            };
            if more == "bounds" {
                recipe.stages = vec![stage];
            } else {
                recipe.stages.push(stage);
            }
            let name = format!("{} {more}", described.name);
            recipe.complete().expect(&name);
            check_stops(&name, &recipe);
        }
    }
}

#[test]
fn a_changed_recipe_is_refused_unless_it_is_meant() {
    let (mut training, mut workers) = (training(2), workers(1));
    for _ in 0..12 {
        step(&mut training, &mut workers);
    }
    let state = training.state();
    let weights = training.last_weights();
    for (name, recipe) in recipes().into_iter().skip(1) {
        let mut other = Training::new(recipe, 2, fresh(), None).expect("fine");
        let before = other.state();
        let said = other.restore(&state).expect_err(name).to_string();
        assert!(said.contains("it was made with another recipe"), "{name}: {said}");
        assert_eq!(other.state(), before);
        other.restore_changed(&state).expect(name);
        assert_eq!((other.last_weights(), other.tasks()), (weights.clone(), 12), "{name}");
        while step(&mut other, &mut workers).is_some() {}
        assert!(other.is_done(), "{name}");
    }
    // The position of the run must still exist.
    let mut shorter = recipe();
    shorter.stages.truncate(1);
    shorter.stages[0].starts = 1;
    let mut other = Training::new(shorter, 2, fresh(), None).expect("fine");
    let said = other.restore_changed(&state).expect_err("it stood in the second start").to_string();
    assert!(said.contains("is not in the recipe"), "{said}");
}

/// The jobs of the first generation, and the one after the first that differs from a plain run.
fn jobs(change: fn(&mut Stage), skip: usize) -> (Vec<RolloutJob>, Population, EpisodeRules) {
    let mut recipe = recipe();
    each(&mut recipe, change);
    let mut training = Training::new(recipe, 1, fresh(), None).expect("fine");
    for _ in 0..skip {
        step(&mut training, &mut workers(1));
    }
    let work = training.work().expect("a generation");
    (work.jobs, work.weights, work.rules)
}

#[test]
fn tracks_of_a_generation() {
    let (common, population, rules) = jobs(|s| (s.tracks, s.patience) = (2, Patience(Some(20))), 0);
    assert_eq!((common.len(), population.len(), rules.patience), (16, 8, Some(20)));
    for job in &common {
        assert_eq!(job.env_seed, common[job.episode].env_seed, "all drive the same");
    }
    assert_ne!(common[0].env_seed, common[1].env_seed);
    let (own, _, _) = jobs(|s| (s.tracks, s.track_seeds) = (2, TrackSeeds::Separate), 0);
    let seeds: std::collections::BTreeSet<u64> = own.iter().map(|job| job.env_seed).collect();
    assert_eq!(seeds.len(), 16, "every rollout has its own");
    let (_, _, rules) = jobs(|s| s.patience = Patience(None), 0);
    assert_eq!(rules, EpisodeRules { max_steps: 50, ..EpisodeRules::WHOLE });
    let short = |s: &mut Stage| {
        s.max_steps = Some(Schedule::from_value(&toml("[[0, 10], [200, 30]]")).expect("fine"));
    };
    assert_eq!(jobs(short, 0).2.max_steps, 10);
    assert_eq!(jobs(short, 4).2.max_steps, 30, "4 generations of 8 rollouts of 10 steps");

    // The recommended weights run every track once more, and are not used for learning.
    let with_mean = |s: &mut Stage| s.replay = Some(Replay { share: 0.5, keep: 9, judge: ReplayJudge::Mean });
    let (judged, population, _) = jobs(with_mean, 0);
    assert_eq!((judged.len(), population.len()), (9, 9));
    let mut mean = Training::new(recipe(), 1, fresh(), None).expect("fine");
    assert_eq!(population.genome(8), mean.last_weights());
    assert_eq!(judged[8], RolloutJob { genome: 8, episode: 0, env_seed: judged[0].env_seed });
    assert_eq!(&judged[..8], mean.work().expect("a generation").jobs);
}

#[test]
fn hard_tracks_come_again() {
    let mut recipe = recipe();
    let replay = Replay { share: 0.5, keep: 5, judge: ReplayJudge::Population };
    recipe.stages.truncate(1);
    recipe.stages[0] = Stage { steps: 20_000, replay: Some(replay), ..recipe.stages[0].clone() };
    let (mut training, mut workers) = (Training::new(recipe, 1, fresh(), None).expect("fine"), workers(1));
    let mut seen = std::collections::BTreeSet::new();
    let (mut again, mut generations) = (0, 0);
    for _ in 0..60 {
        let work = training.work().expect("long enough");
        for event in step(&mut training, &mut workers).expect("long enough") {
            if let Event::Generation { replayed, .. } = event {
                let known = !seen.insert(work.jobs[0].env_seed);
                assert_eq!(usize::from(known), replayed, "what came again had been there");
                generations += 1;
                again += replayed;
            }
        }
    }
    // Less than the share, because no track is replayed while none is below the usual return.
    assert!((5..2 * generations / 3).contains(&again), "{again} of {generations}");
}

#[test]
fn evaluations_watch_and_change_nothing() {
    let run = |tracks| {
        let mut recipe = recipe();
        (recipe.selection.evaluation_tracks, recipe.selection.evaluation_every) =
            (tracks, (tracks > 0).then_some(2));
        let (mut training, mut workers) =
            (Training::new(recipe, 1, fresh(), None).expect("fine"), workers(1));
        let mut events = Vec::new();
        while let Some(more) = step(&mut training, &mut workers) {
            events.extend(more);
        }
        events
    };
    let (without, with) = (run(0), run(4));
    let mut validations = 0;
    let mut plain = Vec::new();
    let mut all_seeds = Vec::new();
    for (i, event) in with.iter().enumerate() {
        match event {
            Event::Evaluation { seeds, returns, summary, generation, .. } => {
                assert_eq!((seeds.len(), returns.len(), summary.n), (4, 4, 4));
                all_seeds.push(seeds.clone());
                assert_eq!(validations % 2, 1, "before every second validation");
                let Event::Validation { generation: validated, .. } = &with[i + 1] else {
                    panic!("a validation follows")
                };
                assert_eq!(generation, validated);
            }
            Event::Validation { .. } => {
                validations += 1;
                plain.push(event.clone());
            }
            Event::Report { generation, steps, summary, seeds, returns, .. } => plain.push(Event::Report {
                generation: *generation,
                steps: *steps,
                summary: *summary,
                seeds: seeds.clone(),
                returns: returns.clone(),
                judging_steps: 0,
            }),
            other => plain.push(other.clone()),
        }
    }
    let without: Vec<Event> = without
        .into_iter()
        .map(|event| match event {
            Event::Report { generation, steps, summary, seeds, returns, .. } => {
                assert!(seeds.iter().all(|seed| !all_seeds[0].contains(seed)));
                Event::Report { generation, steps, summary, seeds, returns, judging_steps: 0 }
            }
            other => other,
        })
        .collect();
    assert_eq!(plain, without, "but for the evaluations the runs are the same");
    assert_eq!(all_seeds.len(), validations / 2);
    assert!(all_seeds.iter().all(|seeds| *seeds == all_seeds[0]), "the same tracks each time");
}

#[test]
fn rounds_of_finals_drive_other_tracks() {
    let mut recipe = recipe();
    (recipe.selection.reevaluate, recipe.selection.finalists) = (1, 4);
    let (mut training, mut workers) = (Training::new(recipe, 1, fresh(), None).expect("fine"), workers(1));
    let mut driven: Vec<(Vec<u64>, u64, f64, usize)> = Vec::new();
    while let Some(work) = training.work() {
        let seeds: Vec<u64> = work.jobs.iter().map(|job| job.env_seed).collect();
        for event in step(&mut training, &mut workers).expect("there is a work") {
            match event {
                Event::Final { generation, summary, round, .. } => {
                    driven.push((seeds.clone(), generation, summary.mean, round));
                }
                Event::Report { generation, .. } => {
                    let both: Vec<_> = driven[4..]
                        .iter()
                        .map(|later| {
                            let first =
                                driven[..4].iter().find(|first| first.1 == later.1).expect("it drove before");
                            (first.2 + later.2, later.1)
                        })
                        .collect();
                    let best = both.iter().copied().fold((f64::MIN, 0), |a, b| if b.0 > a.0 { b } else { a });
                    assert_eq!(generation, best.1, "of {both:?}");
                }
                _ => {}
            }
        }
    }
    assert_eq!(driven.iter().map(|d| d.3).collect::<Vec<_>>(), [1, 1, 1, 1, 2, 2]);
    assert!(driven[1..4].iter().all(|d| d.0 == driven[0].0) && driven[4].0 == driven[5].0);
    assert!(driven[0].0.iter().all(|seed| !driven[4].0.contains(seed)));
}

#[test]
fn seeds_matter_and_tracks_are_shared_within_a_generation() {
    let (mut one, mut other) = (training(1), training(2));
    let (a, b) = (one.work().expect("a generation"), other.work().expect("a generation"));
    assert_ne!(a.weights, b.weights);
    assert_ne!(a.jobs, b.jobs);
    assert!(a.jobs.iter().all(|job| job.env_seed == a.jobs[0].env_seed));
    assert_eq!(a.jobs.len(), 8);
    assert_eq!(a.rules.patience, None, "off unless the recipe says otherwise");
    step(&mut one, &mut workers(1));
    let next = one.work().expect("a generation");
    assert_ne!(next.jobs[0].env_seed, a.jobs[0].env_seed, "every generation has a track of its own");
}

#[test]
fn a_refused_result_moves_nothing() {
    let mut training = training(1);
    let work = training.work().expect("a generation");
    let state = training.state();
    let nan = EpisodeResult { total: f64::NAN, ..EpisodeResult::default() };
    let demonstrations = vec![Recording::Demonstration(foveate_core::Demonstration::default()); 8];
    let good = vec![EpisodeResult::default(); 8];
    for wrong in [
        Experience::default(),
        Experience::of_episodes(vec![EpisodeResult::default(); 7]),
        Experience::of_episodes(vec![nan; 8]),
        Experience { recordings: demonstrations, ..Experience::of_episodes(good.clone()) },
        Experience { version: 0, ..Experience::of_episodes(good) },
    ] {
        training.receive(wrong).expect_err("must be refused");
        assert_eq!(training.state(), state);
        assert_eq!(training.work(), Some(work.clone()));
    }
}

#[test]
fn a_broken_state_is_refused_and_changes_nothing() {
    let (mut training, mut workers) = (training(2), workers(1));
    for _ in 0..12 {
        step(&mut training, &mut workers);
    }
    let good = training.state();
    let set = |name: &str, tensor: Tensor| {
        let mut state = good.clone();
        state.insert(name.into(), tensor);
        state
    };
    let mut states: Vec<(StateDict, &str)> = vec![
        (set("course.position", Tensor::from(vec![0, 7, 0])), "stage 7, start 0 is not in the recipe"),
        (set("course.position", Tensor::from(vec![0, 1, 1])), "stage 1, start 1 is not in the recipe"),
        (set("course.position", Tensor::from(vec![9, 0, 0])), "course.position is 9"),
        (set("course.position", Tensor::from(vec![3, 0, 0])), ""),
        (
            set("course.counts", Tensor::from(vec![90, 90, 91, 1, 0, 1, 0, 0])),
            "a validation after generation",
        ),
        (
            set("course.counts", Tensor::from(vec![90, 90, 0, 1, 0, 1, 1000, 0])),
            "a validation after generation",
        ),
        (set("course.base", Tensor::from(vec![f64::NAN; 3])), "course.base holds NaN"),
        (set("course.finals", Tensor::from(vec![1.0; 9])), "its position and its finalists contradict"),
        (set("course.finals", Tensor::from(vec![f64::NAN])), "course.finals holds NaN"),
        (set("course.recipe", Tensor::from(vec![1, 2, 3, 4])), "it was made with another recipe"),
        (set("learner.mean", Tensor::from(vec![1.0; 4])), "mean has 4 numbers"),
    ];
    for name in good.keys() {
        let mut state = good.clone();
        state.remove(name);
        // Without its first entry, a leader or a candidate does not exist.
        let head = matches!(name.rsplit_once('.'), Some((_, "at")));
        if !head {
            states.push((state, ""));
        }
    }
    for (state, why) in states {
        let said = training.restore(&state).expect_err(why).to_string();
        assert!(said.contains(why), "{said} / {why}");
        assert_eq!(training.state(), good);
    }
}

/// One stage of demonstrations, from poor initial weights.
fn demonstrations() -> Recipe {
    let stage =
        Stage { algorithm: Some("imitation".into()), tracks: 6, ..Stage::new("demonstrations", 4000) };
    let stage = stage.with("updates", 200).with("pieces", 4).with("piece", 20).with("learning_rate", 0.02);
    Recipe { stages: vec![stage], ..recipe() }
}

fn with_student(recipe: Recipe) -> Result<Training, TrainError> {
    Training::new(recipe, 3, fresh(), Some(Box::new(ToyStudent::new())))
}

#[test]
fn demonstrations_teach_and_resume_to_the_bit() {
    let mut whole = with_student(demonstrations()).expect("fine");
    let (mut one, mut three) = (workers(1), workers(3));
    let mut events = Vec::new();
    let mut states = Vec::new();
    while let Some(more) = step(&mut whole, &mut one) {
        events.extend(more);
        states.push(whole.state());
    }
    let means: Vec<f64> = events
        .iter()
        .filter_map(|e| if let Event::Generation { mean, .. } = e { Some(*mean) } else { None })
        .collect();
    // In the first round the expert acts, with disturbances; in the second the student acts, after one round
    // of demonstrations.
    assert!(means.len() > 10 && means[means.len() - 1] > 0.9 * means[0], "{means:?}");
    let expert_like = whole.best_weights().expect("there is one").0;
    assert!((expert_like[0] + 3.0).abs() < 0.2, "{expert_like:?}");

    for (at, state) in states.iter().enumerate().step_by(3) {
        let mut other = with_student(demonstrations()).expect("fine");
        other.restore(state).expect("its own");
        for (later, expect) in states.iter().enumerate().skip(at + 1) {
            step(&mut other, &mut three).expect("not over");
            assert!(other.state() == *expect, "restored after {at}, different after {later}");
        }
        assert!(step(&mut other, &mut three).is_none());
    }
}

#[test]
fn demonstrations_need_someone_who_learns() {
    let error = Training::new(demonstrations(), 3, fresh(), None).err().expect("no student").to_string();
    assert!(
        error.contains("\"demonstrations\" is imitation") && error.contains("no part that learns"),
        "{error}"
    );
    // Results without demonstrations.
    let mut training = with_student(demonstrations()).expect("fine");
    let work = training.work().expect("the first");
    assert!(matches!(work.record, Record::Demonstrations(_)));
    let results = vec![EpisodeResult::default(); work.jobs.len()];
    let error =
        training.receive(Experience::of_episodes(results)).expect_err("no demonstrations").to_string();
    assert!(error.contains("0 recordings for 6 jobs"), "{error}");
    let mut evolving = Training::new(recipe(), 3, fresh(), None).expect("fine");
    assert_eq!(evolving.work().expect("the first").record, Record::Returns);
}

#[test]
fn what_episodes_are_for_is_said() {
    let mut recipe = demonstrations();
    (recipe.selection.evaluation_tracks, recipe.selection.evaluation_every) = (2, Some(1));
    let (mut training, mut workers) = (with_student(recipe).expect("fine"), workers(1));
    let mut purposes = std::collections::BTreeMap::new();
    while let Some(work) = training.work() {
        // A round of imitation has one row of weights, as validations have.
        assert_eq!(work.weights.len(), 1);
        assert_eq!(work.purpose.trains(), work.record != Record::Returns);
        *purposes.entry(work.purpose).or_insert(0) += 1;
        step(&mut training, &mut workers);
    }
    let all = [Purpose::Training, Purpose::Validation, Purpose::Finals, Purpose::Report, Purpose::Evaluation];
    assert!(purposes.keys().copied().eq(all), "{purposes:?}");
}

#[test]
fn judged_agents_draw_their_actions_if_the_recipe_says_so() {
    for draw_actions in [false, true] {
        let mut recipe = recipe();
        recipe.selection.draw_actions = draw_actions;
        let (mut training, mut workers) =
            (Training::new(recipe, 1, fresh(), None).expect("fine"), workers(1));
        let mut judged = 0;
        while let Some(work) = training.work() {
            let explores = work.mode() == ActMode::Explore { epsilon: 0.0 };
            assert_eq!(explores, work.purpose.trains() || draw_actions, "{:?}", work.purpose);
            judged += usize::from(!work.purpose.trains());
            step(&mut training, &mut workers);
        }
        assert!(judged > 3);
    }
}
