use foveate_core::Model;
use foveate_core::episode::EpisodeRules;

use super::*;
use crate::vtrace::tests::{PARAMS, Table, config as vtrace, episode, experience};

const PER_ROW: usize = 4;

fn config() -> PopulationConfig {
    PopulationConfig { members: 3, interval: 2, margin: 0.1, vtrace: vtrace(), ..PopulationConfig::default() }
}

fn build(config: &PopulationConfig) -> Population {
    let student = Table::new();
    let parts = LearnerParts {
        weights: vec![0.0; PARAMS],
        seed: Seed::root(1),
        model: Some(&student as &dyn Model),
        fitness: Fitness::Mean,
    };
    config.check().expect("fine");
    config.population(parts).expect("fine")
}

/// What the members play in the corridor of V-trace's tests with the weights of the work.
fn played(learner: &mut Population) -> Experience {
    let seeds = |row: usize, episode: usize| (10 * row + episode) as u64;
    let work = learner.work(&Episodes { per_row: PER_ROW, rules: EpisodeRules::WHOLE, seeds: &seeds });
    assert_eq!((work.weights.len(), work.record), (3, Record::Transitions { unroll: 4 }));
    let generation = learner.generation();
    let play = |job: &foveate_core::RolloutJob| {
        episode(work.weights.genome(job.genome), 1000 * generation + job.env_seed, 20, 4)
    };
    experience(work.jobs.iter().map(play).collect())
}

fn round(learner: &mut Population) -> Progress {
    let experience = played(learner);
    learner.receive(experience).expect("it fits")
}

fn settings(learner: &Population) -> Vec<[f64; EVOLVED.len()]> {
    learner.members.iter().map(|member| member.learner.evolved()).collect()
}

#[test]
fn a_population_learns_and_gives_the_weights_of_its_fittest() {
    let mut learner = build(&config());
    let first = round(&mut learner);
    assert!(first.best >= first.mean && first.sigma == 0.0);
    for _ in 0..39 {
        round(&mut learner);
    }
    let fitness = learner.rated.clone();
    // The goal is worth 3.
    assert!(fitness.iter().all(|&fitness| fitness > 2.9), "{fitness:?}");
    assert!(fitness.iter().all(|&other| other <= fitness[learner.leader()]));
    assert_eq!(learner.weights(), learner.members[learner.leader()].learner.weights());
    let measures = learner.measures();
    let of = |name: &str| measures.iter().find(|(known, _)| *known == name).expect(name).1;
    assert_eq!((of("fitness"), of("member")), (fitness[learner.leader()], (learner.leader() + 1) as f64));
    assert_eq!(of("learning_rate"), settings(&learner)[learner.leader()][0]);
}

/// The weights that go straight to the goal.
fn good() -> Heritage {
    let mut learner = build(&config());
    for _ in 0..60 {
        round(&mut learner);
    }
    learner.members[learner.leader()].learner.heritage()
}

#[test]
fn worse_members_take_over_from_better_ones() {
    for (margin, copies) in [(0.1, 1), (1e6, 0)] {
        let two = PopulationConfig { members: 2, interval: 1, chance: 0.0, margin, ..config() };
        let mut learner = build(&two);
        learner.members[1].learner.inherit(&good()).expect("fine");
        learner.members[1].learner.evolve([0.001, 0.5, 1e-4, 7.0]).expect("fine");
        learner.rated = vec![1.0, 3.0];
        learner.compare(1).expect("fine");
        let [one, other] = [0, 1].map(|number| &learner.members[number].learner);
        assert_eq!(learner.copies, copies, "{margin}");
        assert_eq!(one.weights() == other.weights(), copies == 1, "{margin}");
        assert_eq!(one.evolved() == [0.001, 0.5, 1e-4, 7.0], copies == 1, "{margin}");
        assert_eq!(other.evolved(), [0.001, 0.5, 1e-4, 7.0], "{margin}");
        // The optimiser goes on with the other one's means.
        let optimizer = |learner: &Vtrace| {
            let state = learner.state();
            [state["optimizer.first"].clone(), state["optimizer.second"].clone()]
        };
        assert_eq!(optimizer(one) == optimizer(other), copies == 1, "{margin}");
    }
}

#[test]
fn settings_change_by_the_factor_as_often_as_chance_says() {
    let start = build(&config()).members[0].learner.evolved();
    let mut learner = build(&PopulationConfig { chance: 1.0, factor: 2.0, ..config() });
    learner.compare(1).expect("fine");
    let mut seen = [0, 0];
    for settings in settings(&learner) {
        for (setting, start) in settings.iter().zip(start) {
            let grew = *setting == 2.0 * start;
            assert!(grew || *setting == start / 2.0, "{setting} from {start}");
            seen[usize::from(grew)] += 1;
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    let mut learner = build(&PopulationConfig { chance: 0.0, ..config() });
    learner.compare(1).expect("fine");
    assert_eq!(settings(&learner), [start; 3]);
    // About a third of 3 · 4 · 200.
    let mut learner = build(&config());
    let mut changed = 0;
    for number in 0..200 {
        let before = settings(&learner);
        learner.compare(number).expect("fine");
        let after = settings(&learner);
        changed += after.as_flattened().iter().zip(before.as_flattened()).filter(|(a, b)| a != b).count();
    }
    assert!((680..920).contains(&changed), "{changed}");
    // What is 0 stays, and nothing leaves its range.
    let mut learner = build(&PopulationConfig { chance: 1.0, factor: 100.0, ..config() });
    for member in &mut learner.members {
        member.learner.evolve([0.1, 0.0, 0.5, 1.0]).expect("fine");
    }
    for number in 0..100 {
        learner.compare(number).expect("fine");
        assert!(settings(&learner).iter().all(|settings| settings[1] == 0.0 && settings[2] <= 1.0));
    }
}

#[test]
fn comparisons_come_when_they_are_due() {
    let mut learner = build(&PopulationConfig { interval: 3, begin: 4, ..config() });
    let mut due = vec![];
    for generation in 0..14 {
        learner.generation = generation;
        due.push(learner.comparison());
    }
    let expect: Vec<Option<u64>> = (0..14)
        .map(|n| [(7, 1), (10, 2), (13, 3)].iter().find(|(at, _)| *at == n).map(|(_, k)| *k))
        .collect();
    assert_eq!(due, expect);
    // What was played before a comparison does not count after it.
    let mut learner = build(&config());
    round(&mut learner);
    assert_eq!(learner.members[0].played.len(), PER_ROW);
    round(&mut learner);
    assert!(learner.members[0].played.is_empty());
}

#[test]
fn every_task_weighs_the_same_in_a_members_fitness() {
    let mut learner = build(&PopulationConfig { interval: 10, ..config() });
    let mut experience = played(&mut learner);
    for (job, episode) in experience.episodes.iter_mut().enumerate() {
        // Three episodes of a task that gives 1 or, for the second member, 2; and one of a task that gives 10.
        let second = usize::from(job / PER_ROW == 1);
        (episode.task, episode.total) = if job % PER_ROW == 2 { (1, 10.0) } else { (0, (1 + second) as f64) };
    }
    learner.receive(experience).expect("it fits");
    assert_eq!(learner.rated, [5.5, 6.0, 5.5]);
    assert_eq!(learner.members[1].played, [(0, 2.0), (0, 2.0), (1, 10.0), (0, 2.0)]);
    // The tasks are saved, where there are several.
    let state = learner.state();
    let mut resumed = build(&PopulationConfig { interval: 10, ..config() });
    resumed.restore(&state).expect("its own state");
    assert_eq!(resumed.members[1].played, learner.members[1].played);
    assert_eq!(resumed.state(), state);
    let mut broken = state.clone();
    broken.insert("member0.tasks".into(), Tensor::from(vec![1_u64]));
    let said = resumed.restore(&broken).expect_err("too few").to_string();
    assert!(said.contains("tasks is not 4 integers"), "{said}");
    let mut one_task = build(&config());
    round(&mut one_task);
    assert!(!one_task.state().contains_key("member0.tasks"));
}

#[test]
fn a_resumed_run_has_the_same_bits() {
    let mut whole = build(&config());
    let mut states = vec![];
    for _ in 0..7 {
        states.push(whole.state());
        round(&mut whole);
    }
    assert!(settings(&whole).iter().any(|settings| *settings != settings_at_start()));
    for (done, state) in states.iter().enumerate() {
        let mut resumed = build(&config());
        resumed.restore(state).expect("its own state");
        assert_eq!(resumed.state(), *state, "after {done}");
        for _ in done..7 {
            round(&mut resumed);
        }
        assert_eq!(resumed.state(), whole.state(), "after {done}");
    }
}

fn settings_at_start() -> [f64; EVOLVED.len()] {
    build(&config()).members[0].learner.evolved()
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut learner = build(&config());
    let error = learner.receive(Experience::default()).expect_err("nothing was asked");
    assert_eq!(error, LearnError::NothingAsked);
    for _ in 0..3 {
        round(&mut learner);
    }
    let before = learner.state();
    let mut refused = |experience: Experience, part: &str| {
        let said = learner.receive(experience).expect_err(part).to_string();
        assert!(said.contains(part), "{said}");
        assert_eq!(learner.state(), before, "{part}");
    };
    let all = || {
        let mut same = build(&config());
        same.restore(&before).expect("its own state");
        played(&mut same)
    };
    let mut short = all();
    short.episodes.pop();
    refused(short, "11 episodes and 12 recordings, 12 of each are due");
    let mut broken = all();
    broken.episodes[5].total = f64::NAN;
    refused(broken, "the return of job 5 in generation 3 is NaN");
    // The last member's recording; the others have learnt by then.
    let mut broken = all();
    let foveate_core::Recording::Transitions(unrolls) = &mut broken.recordings[11] else { panic!("unrolls") };
    unrolls[0].logits.pop();
    refused(broken, "logits for");

    let mut learner = build(&config());
    let start = learner.state();
    for (name, tensor, part) in [
        ("counts", Tensor::from(vec![3_u64]), "counts is not 2 integers"),
        ("fitness", Tensor::from(vec![0.0]), "fitness has 1 numbers, 3 are due"),
        ("member2.evolved", Tensor::from(vec![-1.0, 0.01, 1e-5, 1.0]), "learning_rate = -1"),
        ("member2.params", Tensor::from(vec![0.0_f32]), "params has 1 numbers"),
        ("member1.played", Tensor::from(vec![f64::NAN]), "played"),
    ] {
        let mut state = before.clone();
        state.insert(name.into(), tensor);
        let said = learner.restore(&state).expect_err(name).to_string();
        assert!(said.contains(part), "{name}: {said}");
        assert_eq!(learner.state(), start, "{name}");
    }
    let mut missing = before.clone();
    missing.remove("member1.counts");
    learner.restore(&missing).expect_err("a member lacks something");
    assert_eq!(learner.state(), start);
    let mut other = build(&PopulationConfig { margin: 0.2, ..config() });
    let said = other.restore(&before).expect_err("other settings").to_string();
    assert!(said.contains("it was made with the settings"), "{said}");
}

#[test]
fn bad_settings_say_what_to_choose() {
    let fine = config();
    for (config, part) in [
        (PopulationConfig { members: 1, ..fine.clone() }, "members = 1; choose from 2 to 1000"),
        (PopulationConfig { interval: 0, ..fine.clone() }, "interval = 0; choose 1 or more"),
        (PopulationConfig { margin: -1.0, ..fine.clone() }, "margin = -1; it must be at least 0"),
        (PopulationConfig { chance: 1.5, ..fine.clone() }, "chance = 1.5; choose from 0 to 1"),
        (PopulationConfig { factor: 1.0, ..fine.clone() }, "factor = 1; choose one above 1"),
        (
            PopulationConfig { vtrace: VtraceConfig { discount: 2.0, ..vtrace() }, ..fine.clone() },
            "discount = 2; choose from 0 to 1",
        ),
    ] {
        let said = config.check().expect_err(part).to_string();
        assert!(said.contains(part), "{said}");
    }
    let table = "members = 4\nvtrace = { unroll = 20, learning_rate = 0.001 }".parse().expect("TOML");
    let parsed = crate::LEARNERS.find("population").expect("registered").settings(&table).expect("fine");
    assert_eq!(parsed.rows(10), 4);
    assert_eq!(parsed.table()["vtrace"]["unroll"].as_integer(), Some(20));
    let wrong = "vtrace = { unrol = 20 }".parse().expect("TOML");
    let said = crate::LEARNERS.find("population").expect("registered").settings(&wrong).map(drop);
    assert!(said.expect_err("a typing error").contains("unrol"));
}
