//! A whole course on a toy world, stopped and restored anywhere.

use foveate_core::Evaluator;

use super::*;
use crate::recipe::Stage;
use crate::toy::{ToyWorld, toy_agent};
use crate::workers::{Stop, Workers};

fn recipe() -> Recipe {
    let stage = Stage {
        name: "heats".into(),
        starts: 3,
        steps: 1500,
        population: 8,
        tracks: 1,
        sigma: 0.3,
        learning_rate: 1.0,
        weight_decay: 0.0,
        averaging: 0.0,
        mirrored: false,
        patience: 20,
    };
    Recipe {
        algorithm: "rank-es".into(),
        max_steps: 50,
        selection: Selection { every: 700, tracks: 5, finalists: 3, final_tracks: 6, report_tracks: 7 },
        stages: vec![
            stage.clone(),
            Stage { name: "learn".into(), starts: 1, tracks: 2, averaging: 0.5, ..stage.clone() },
            Stage { name: "forks".into(), starts: 2, sigma: 0.1, mirrored: true, ..stage },
        ],
    }
}

fn fresh() -> FreshWeights {
    Box::new(|seed| {
        let mut rng = seed.rng();
        (0..3).map(|_| rng.uniform(-0.5, 0.5) as f32).collect()
    })
}

fn course(seed: u64) -> Course {
    Course::new(recipe(), seed, fresh()).expect("fine")
}

fn step(course: &mut Course, workers: &mut Workers) -> Option<Vec<Event>> {
    let task = course.task()?;
    assert_eq!(course.task().as_ref(), Some(&task), "asking does not move");
    let mut results = Vec::new();
    workers.set_rules(task.rules);
    workers.evaluate(&task.population, &task.jobs, &mut results).expect("fine");
    Some(course.learn(&results).expect("its own results"))
}

fn workers(count: usize) -> Workers {
    let rules = recipe().whole_episodes();
    Workers::new(&ToyWorld::default(), &toy_agent(0.0), count, rules, Stop::default())
}

#[test]
fn a_run_goes_through_its_stages_and_learns() {
    let (mut course, mut workers) = (course(1), workers(2));
    let mut events = Vec::new();
    let mut left = course.steps_left();
    while let Some(more) = step(&mut course, &mut workers) {
        assert!(course.steps_left() <= left, "time left goes down");
        left = course.steps_left();
        events.extend(more);
    }
    assert!(course.is_done() && left == 0);
    assert_eq!(course.learn(&[]), Err(EvolveError::NothingAsked));

    // Starts in order, each with a validation at its end; the stages with several choose; then finals and report.
    let mut plot: Vec<String> = Vec::new();
    for event in &events {
        let line = match event {
            Event::Generation { stage, start, .. } => format!("{stage} {start}"),
            Event::Validation { .. } => "validation".into(),
            Event::Chosen { stage, .. } => format!("chosen {stage}"),
            Event::Final { .. } => "final".into(),
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
            "heats 1",
            "heats 2",
            "heats 3",
            "chosen heats",
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
    for end in ["heats 2", "heats 3", "chosen heats", "forks 1", "forks 2", "chosen forks"] {
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
    assert_eq!(course.steps(), judging_steps + steps);
    assert!((9000..12_000).contains(steps), "6 starts of 1500 and the rest of a generation: {steps}");
}

#[test]
fn the_choice_is_by_validation_then_by_the_finals() {
    let (mut course, mut workers) = (course(3), workers(1));
    let mut starts = Vec::new();
    let mut last = None;
    let mut finals = Vec::new();
    while let Some(events) = step(&mut course, &mut workers) {
        for event in events {
            match event {
                Event::Validation { summary, ref stage, start, generation, .. } if stage == "heats" => {
                    last = Some((summary.mean, generation));
                    starts.resize(start, (0.0, 0));
                    starts[start - 1] = (summary.mean, generation);
                }
                Event::Chosen { ref stage, mean, generation } if stage == "heats" => {
                    let best =
                        starts.iter().copied().fold((f64::MIN, 0), |a, b| if b.0 > a.0 { b } else { a });
                    assert_eq!((mean, generation), best, "of {starts:?}, last {last:?}");
                }
                Event::Final { generation, summary, .. } => finals.push((summary.mean, generation)),
                Event::Report { generation, .. } => {
                    let best =
                        finals.iter().copied().fold((f64::MIN, 0), |a, b| if b.0 > a.0 { b } else { a });
                    assert_eq!(generation, best.1, "of {finals:?}");
                    assert_eq!(course.best_weights().map(|(_, generation)| generation), Some(best.1));
                }
                _ => {}
            }
        }
    }
    assert_eq!((starts.len(), finals.len()), (3, 3));
}

#[test]
fn a_run_stopped_after_any_task_goes_on_bit_for_bit() {
    let (mut straight, mut workers) = (course(2), workers(1));
    let mut stopped = course(2);
    let mut tasks = 0;
    loop {
        // A fresh process each time: nothing but the state goes over.
        let mut next = course(2);
        next.restore(&stopped.state()).expect("its own state");
        stopped = next;
        assert_eq!(stopped.state(), straight.state());
        let (a, b) = (step(&mut straight, &mut workers), step(&mut stopped, &mut workers));
        assert_eq!(a, b, "task {tasks}");
        if a.is_none() {
            break;
        }
        tasks += 1;
        assert_eq!(straight.tasks(), tasks);
    }
    assert!(tasks > 20);
}

#[test]
fn seeds_matter_and_tracks_are_shared_within_a_generation() {
    let (mut one, mut other) = (course(1), course(2));
    let (a, b) = (one.task().expect("a generation"), other.task().expect("a generation"));
    assert_ne!(a.population, b.population);
    assert_ne!(a.jobs, b.jobs);
    assert!(a.jobs.iter().all(|job| job.env_seed == a.jobs[0].env_seed));
    assert_eq!(a.jobs.len(), 8);
    assert_eq!(a.rules.patience, Some(20));
    step(&mut one, &mut workers(1));
    let next = one.task().expect("a generation");
    assert_ne!(next.jobs[0].env_seed, a.jobs[0].env_seed, "every generation has a track of its own");
}

#[test]
fn a_refused_result_moves_nothing() {
    let mut course = course(1);
    let task = course.task().expect("a generation");
    let state = course.state();
    let nan = EpisodeResult { total: f64::NAN, ..EpisodeResult::default() };
    for wrong in [vec![], vec![EpisodeResult::default(); 7], vec![nan; 8]] {
        course.learn(&wrong).expect_err("must be refused");
        assert_eq!(course.state(), state);
        assert_eq!(course.task(), Some(task.clone()));
    }
}

#[test]
fn a_broken_state_is_refused_and_changes_nothing() {
    let (mut course, mut workers) = (course(2), workers(1));
    for _ in 0..12 {
        step(&mut course, &mut workers);
    }
    let good = course.state();
    let set = |name: &str, tensor: Tensor| {
        let mut state = good.clone();
        state.insert(name.into(), tensor);
        state
    };
    let mut states: Vec<(StateDict, &str)> = vec![
        (set("course.position", Tensor::U64(vec![0, 7, 0])), "stage 7, start 0 is not in the recipe"),
        (set("course.position", Tensor::U64(vec![0, 1, 1])), "stage 1, start 1 is not in the recipe"),
        (set("course.position", Tensor::U64(vec![9, 0, 0])), "course.position is 9"),
        (set("course.position", Tensor::U64(vec![3, 0, 0])), ""),
        (set("course.base", Tensor::F64(vec![f64::NAN; 3])), "course.base is not 3 finite numbers"),
        (set("course.finals", Tensor::F64(vec![1.0; 9])), "course.finals does not fit"),
        (set("evolution.mean", Tensor::F64(vec![1.0; 4])), "mean has 4 numbers"),
    ];
    for name in good.keys() {
        let mut state = good.clone();
        state.remove(name);
        // Without its head, a leader or a candidate is simply not there.
        let head = matches!(name.rsplit_once('.'), Some((_, "at")));
        if !head {
            states.push((state, ""));
        }
    }
    for (state, why) in states {
        let said = course.restore(&state).expect_err(why).to_string();
        assert!(said.contains(why), "{said} / {why}");
        assert_eq!(course.state(), good);
    }
}
