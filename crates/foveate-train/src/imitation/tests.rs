use foveate_core::episode::EpisodeRules;
use foveate_core::{EpisodeResult, Episodes, Purpose};
use foveate_toy::ToyStudent;

use super::*;

/// A demonstration of an expert with the weights 0.5 and −2.
fn demonstration(seed: u64, steps: usize) -> Demonstration {
    let mut rng = Seed::root(seed).rng();
    let inputs: Vec<f32> = (0..2 * steps).map(|_| rng.normal() as f32).collect();
    let actions = inputs.chunks(2).map(|xy| 0.5 * xy[0] - 2.0 * xy[1]).collect();
    Demonstration { inputs, actions, steps, ..Demonstration::default() }
}

fn small() -> ImitationConfig {
    ImitationConfig {
        keep: 3,
        updates: 150,
        pieces: 4,
        piece: 10,
        learning_rate: 0.02,
        averaging: 0.98,
        ..ImitationConfig::default()
    }
}

fn new(config: ImitationConfig) -> Imitation {
    with(config, ToyStudent::linear(2, 3))
}

/// The third parameter, which does not learn, is 7.
fn with(config: ImitationConfig, student: ToyStudent) -> Imitation {
    Imitation::new(config, vec![0.0, 0.0, 7.0], Seed::root(1), Box::new(student)).expect("fine")
}

fn experience(demonstrations: Vec<Demonstration>, total: f64) -> Experience {
    Experience {
        episodes: vec![EpisodeResult { total, ..EpisodeResult::default() }; demonstrations.len().max(1)],
        recordings: demonstrations.into_iter().map(Recording::Demonstration).collect(),
        ..Experience::default()
    }
}

fn record(learner: &mut Imitation) -> Record {
    let seeds = |_, episode| episode as u64;
    let work = learner.work(&Episodes { per_row: 2, rules: EpisodeRules::WHOLE, seeds: &seeds });
    assert_eq!((work.weights.len(), work.jobs.len(), work.purpose), (1, 2, Purpose::Training));
    work.record
}

fn round(learner: &mut Imitation, number: u64) {
    let demonstrations = vec![demonstration(2 * number, 40), demonstration(2 * number + 1, 7)];
    let progress = learner.receive(experience(demonstrations, number as f64)).expect("fine");
    assert_eq!((progress.best, progress.sigma), (number as f64, 0.0));
}

#[test]
fn demonstrations_lead_to_the_expert_and_leave_the_rest_alone() {
    let mut learner = new(small());
    let plan = |expert_drives| {
        Record::Demonstrations(DemonstrationPlan {
            expert_drives,
            turn: 1,
            pushes: 1.0,
            ..DemonstrationPlan::default()
        })
    };
    assert_eq!(record(&mut learner), plan(true));
    for number in 0..6 {
        round(&mut learner, number);
    }
    assert_eq!(record(&mut learner), plan(false));
    for (weights, what) in [(learner.centre(), "centre"), (learner.weights(), "average")] {
        let far = (weights[0] - 0.5).abs().max((weights[1] + 2.0).abs());
        assert!(far < 0.02, "{what}: {weights:?}");
        assert_eq!(weights[2], 7.0, "{what}");
    }
}

#[test]
fn a_restored_learner_goes_on_to_the_bit() {
    restored_goes_on(&small());
}

#[test]
fn a_restored_learner_with_priorities_goes_on_to_the_bit() {
    restored_goes_on(&ImitationConfig { priority: 0.6, ..small() });
}

fn restored_goes_on(config: &ImitationConfig) {
    let new = |config: &ImitationConfig| new(config.clone());
    let small = || config;
    let (mut learner, mut other) = (new(small()), new(small()));
    for number in 0..3 {
        round(&mut learner, number);
    }
    record(&mut learner);
    other.restore(&learner.state()).expect("its own");
    // The format of older versions, which had no priorities.
    let name_then = |name: &str| match name {
        "demonstrations.errors" => name.to_owned(),
        _ => name.replace("demonstrations.", "lessons."),
    };
    let old: StateDict = learner
        .state()
        .into_iter()
        .map(|(name, tensor)| (name_then(&name), Tensor::from(tensor.into_data())))
        .collect();
    assert!(old.contains_key("lessons.inputs"));
    let mut from_old = new(small());
    from_old.restore(&old).expect("an older state");
    assert_eq!(from_old.state(), learner.state());
    for number in 3..5 {
        round(&mut learner, number);
        round(&mut other, number);
        assert_eq!(learner.state(), other.state(), "round {number}");
    }
    let mut broken = Vec::new();
    for (name, tensor) in learner.state() {
        let other: Tensor = match tensor.data() {
            TensorData::F64(v) => v[1..].to_vec().into(),
            TensorData::F32(v) => v[1..].to_vec().into(),
            TensorData::U64(v) => [&v[..], &[1]].concat().into(),
            _ => unreachable!("no state has others"),
        };
        broken.push((name.clone(), Some(other)));
        broken.push((name, None));
    }
    broken.push(("demonstrations.steps".into(), Some(Tensor::from(vec![u64::MAX, 2, 47]))));
    broken.push(("demonstrations.steps".into(), Some(Tensor::from(vec![0_u64, 40, 7, 40]))));
    for (name, tensor) in broken {
        let mut state = learner.state();
        match tensor {
            Some(tensor) => drop(state.insert(name.clone(), tensor)),
            None => drop(state.remove(&name)),
        }
        let before = other.state();
        assert!(other.restore(&state).is_err(), "{name}");
        assert_eq!(other.state(), before, "{name}");
    }
}

#[test]
fn demonstrations_are_bounded_in_bytes() {
    for priority in [0.0, 0.5] {
        let config = ImitationConfig { keep: 5, updates: 2, priority, ..small() };
        let mut learner = new(config.clone());
        // Three numbers a step.
        learner.method.room = 12 * 60;
        let steps = |learner: &Imitation| -> Vec<usize> {
            learner.method.demonstrations.iter().map(|demonstration| demonstration.steps).collect()
        };
        round(&mut learner, 0);
        assert_eq!(steps(&learner), [40, 7]);
        round(&mut learner, 1);
        assert_eq!(steps(&learner), [7, 40, 7], "the oldest goes first");
        let mut other = new(config);
        other.restore(&learner.state()).expect("its own");
        other.method.room = learner.method.room;
        round(&mut learner, 2);
        round(&mut other, 2);
        assert_eq!(learner.state(), other.state());
        learner.method.room = 1;
        round(&mut learner, 3);
        assert_eq!(steps(&learner), [7], "the newest is always kept");
    }
}

#[test]
fn a_gradient_that_cannot_be_had_is_an_error_and_changes_nothing() {
    let mut learner = with(small(), ToyStudent::linear(2, 3).refusing());
    let before = learner.state();
    let round = || experience(vec![demonstration(1, 40)], 1.0);
    let error = learner.receive(round()).expect_err("it cannot be studied").to_string();
    assert_eq!(
        error,
        "learning from the recordings of generation 0 failed: update 0 (batch 0 of the round): piece 1 of the demonstrations could not be studied: it broke"
    );
    assert_eq!(learner.state(), before);
    // With a single segment in each update, there is none to refuse.
    let mut learner = with(ImitationConfig { pieces: 1, ..small() }, ToyStudent::linear(2, 3).refusing());
    learner.receive(round()).expect("fine");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut learner = new(small());
    let before = learner.state();
    let nan = Demonstration { actions: vec![f32::NAN; 40], ..demonstration(1, 40) };
    let cases = [
        (vec![], "without any demonstration"),
        (
            vec![Demonstration { steps: 39, ..demonstration(1, 40) }],
            "39 steps has 80 inputs and 40 actions; 2 and 1 a step",
        ),
        (vec![Demonstration::default()], "0 steps"),
        (vec![nan], "NaN"),
    ];
    for (demonstrations, why) in cases {
        let error = learner.receive(experience(demonstrations, 1.0)).expect_err(why).to_string();
        assert!(error.contains(why), "{error} / {why}");
    }
    let transitions =
        Experience { recordings: vec![Recording::Transitions(vec![])], ..experience(vec![], 1.0) };
    let error = learner.receive(transitions).expect_err("transitions").to_string();
    assert!(error.contains("imitation learns from demonstrations"), "{error}");
    let error = learner.receive(experience(vec![demonstration(1, 40)], f64::NAN)).expect_err("no return");
    assert!(matches!(error, LearnError::ReturnNotFinite { job: 0, .. }), "{error}");
    // Numbers for which no finite gradient exists.
    let huge = Demonstration {
        inputs: vec![1e30; 80],
        actions: vec![-1e30; 40],
        steps: 40,
        ..Demonstration::default()
    };
    let error = learner.receive(experience(vec![huge], 1.0)).expect_err("too large");
    assert!(matches!(error, LearnError::Diverged { .. }), "{error}");
    assert_eq!(learner.state(), before);

    let cases = [
        (ImitationConfig { keep: 0, ..small() }, "keep = 0; choose from 1"),
        (ImitationConfig { updates: 1_000_000, ..small() }, "updates = 1000000"),
        (ImitationConfig { pushes: 101.0, ..small() }, "pushes = 101"),
        (ImitationConfig { pushes: f64::NAN, ..small() }, "pushes = NaN"),
        (ImitationConfig { learning_rate: 0.0, ..small() }, "learning_rate = 0"),
        (ImitationConfig { averaging: 1.0, ..small() }, "averaging = 1"),
        (ImitationConfig { clip: -1.0, ..small() }, "clip = -1; it must be above 0, or 0"),
        (ImitationConfig { clip: f64::INFINITY, ..small() }, "clip = inf"),
    ];
    for (config, why) in cases {
        let error = config.check().expect_err(why).to_string();
        assert!(error.contains(why), "{error} / {why}");
    }
}

/// Gradients are shortened to `clip`. States made with a clip of 1 are those of older versions, which had no other.
#[test]
fn gradients_are_shortened_to_the_clip() {
    let trained = |clip: f64| {
        let mut learner = new(ImitationConfig { clip, ..small() });
        (0..2).for_each(|number| round(&mut learner, number));
        learner
    };
    let [one, off, large, small_clip] = [1.0, 0.0, 1e9, 1e-3].map(trained);
    assert_eq!(one.weights(), trained_by_default().weights());
    assert_eq!(off.weights(), large.weights(), "no gradient is as long");
    assert_ne!(one.weights(), off.weights());
    assert_ne!(one.weights(), small_clip.weights());
    let settings = |learner: &Imitation| learner.state()["settings"].len();
    assert_eq!((settings(&one), settings(&off)), (9, 10));
    let mut other = new(ImitationConfig { clip: 0.0, ..small() });
    let said = other.restore(&one.state()).expect_err("another clip").to_string();
    assert!(said.contains("it was made with the settings"), "{said}");
    other.restore(&off.state()).expect("the same clip");
}

/// In turn, each new demonstration is used once before any is used again, and older ones are not.
#[test]
fn segments_may_come_from_each_new_demonstration_in_turn() {
    // The gradient of a demonstration of one step with the input eᵢ has only component i, and a student of ten inputs sees
    // which of them moved.
    let unit = |i: usize| {
        let mut inputs = vec![0.0; 10];
        inputs[i] = 1.0;
        Demonstration { inputs, actions: vec![1.0], steps: 1, ..Demonstration::default() }
    };
    let config = |updates: usize| ImitationConfig {
        in_turn: true,
        keep: 20,
        updates,
        pieces: 1,
        piece: 1,
        averaging: 0.0,
        ..small()
    };
    let moved = |updates: usize| {
        let student = Box::new(ToyStudent::linear(10, 10));
        let mut learner =
            Imitation::new(config(updates), vec![0.0; 10], Seed::root(3), student).expect("fine");
        learner.receive(experience((0..10).map(unit).collect(), 0.0)).expect("fine");
        learner.centre().iter().filter(|w| **w != 0.0).count()
    };
    assert_eq!([1, 4, 9, 10].map(moved), [1, 4, 9, 10]);
    // The next round uses its own demonstrations alone: those of one input here.
    let student = Box::new(ToyStudent::linear(10, 10));
    let mut learner = Imitation::new(config(4), vec![0.0; 10], Seed::root(3), student).expect("fine");
    learner.receive(experience(vec![unit(0)], 0.0)).expect("fine");
    learner.receive(experience(vec![unit(7)], 0.0)).expect("fine");
    let moved: Vec<usize> = (0..10).filter(|&i| learner.centre()[i] != 0.0).collect();
    assert_eq!(moved, [0, 7]);
    assert_eq!(learner.state()["settings"].len(), 11);
    let table = |in_turn| ImitationConfig { in_turn, ..small() }.table();
    assert!(table(true).contains_key("in_turn") && !table(false).contains_key("in_turn"));
}

fn trained_by_default() -> Imitation {
    let mut learner = new(small());
    (0..2).for_each(|number| round(&mut learner, number));
    learner
}

/// A student that sees a picture learns what the picture does not explain, and continues from a saved state as if it had
/// not been interrupted.
#[test]
fn pictures_are_demonstrated_and_saved() {
    let seen = |seed, steps| {
        let mut demonstration = demonstration(seed, steps);
        for (t, action) in demonstration.actions.iter_mut().enumerate() {
            demonstration.pictures.push(&[(50 * t % 256) as u8, 0, 0, 0, 0]);
            *action += (50 * t % 256) as f32 / 255.0;
        }
        demonstration
    };
    let student = || ToyStudent::linear(2, 3).seeing(5);
    let mut learner = with(small(), student());
    let round = |learner: &mut Imitation, n: u64| {
        learner.receive(experience(vec![seen(2 * n, 40), seen(2 * n + 1, 7)], 0.0)).map(drop)
    };
    for n in 0..4 {
        round(&mut learner, n).unwrap();
    }
    let state = learner.state();
    let mut again = with(small(), student());
    again.restore(&state).unwrap();
    round(&mut learner, 9).unwrap();
    round(&mut again, 9).unwrap();
    assert_eq!(learner.weights(), again.weights());
    assert_eq!(learner.state(), again.state());
    let [a, b, c] = *learner.weights() else { unreachable!() };
    assert!((a - 0.5).abs() < 0.01 && (b + 2.0).abs() < 0.01 && c == 7.0, "{a} {b} {c}");

    // Without pictures, with pictures of another length, and with broken ones.
    let refused = learner.receive(experience(vec![demonstration(1, 40)], 0.0)).unwrap_err();
    assert!(refused.to_string().contains("40 steps has 0 pictures; 40 are due"), "{refused}");
    let mut short = with(small(), ToyStudent::linear(2, 3).seeing(4));
    let refused = short.receive(experience(vec![seen(1, 40)], 0.0)).unwrap_err();
    assert!(refused.to_string().contains("picture 0 does not have 4 bytes"), "{refused}");
    assert!(short.restore(&state).is_err());
    for name in ["demonstrations.pictures", "demonstrations.picture_ends"] {
        let mut broken = state.clone();
        broken.remove(name);
        assert!(again.restore(&broken).is_err(), "without {name}");
    }
    let mut broken = state.clone();
    broken.insert(
        "demonstrations.pictures".into(),
        Tensor::new(vec![3], TensorData::U8(vec![1, 2, 3])).expect("three bytes"),
    );
    assert!(again.restore(&broken).is_err());
}

/// A stage learns names or something else, and only where there are any.
#[test]
fn names_need_sensors() {
    let config = ImitationConfig { names: true, ..small() };
    let toy = || Box::new(ToyStudent::linear(2, 3));
    let refused =
        Imitation::new(config.clone(), vec![0.0; 3], Seed::root(1), toy()).err().expect("no sensors");
    assert!(refused.to_string().contains("names = true needs an agent with sensors"), "{refused}");
    for both in
        [ImitationConfig { gaze: true, ..config.clone() }, ImitationConfig { stakes: true, ..config.clone() }]
    {
        let refused = both.check().expect_err("two things").to_string();
        assert!(refused.contains("a stage learns one of them"), "{refused}");
    }
    assert_ne!(config.numbers(), small().numbers());
    assert_ne!(config.numbers(), ImitationConfig { gaze: true, ..small() }.numbers());
}

/// Settings with a share of the expert are those of the work and of the state; a share that is no share is refused.
#[test]
fn the_expert_has_a_share_of_the_steps() {
    let config = ImitationConfig { expert_share: 0.75, turn: 3, ..small() };
    let mut learner = new(config.clone());
    let Record::Demonstrations(plan) = record(&mut learner) else { panic!("demonstrations") };
    assert_eq!((plan.expert_share, plan.turn), (0.75, 3));
    let single = ImitationConfig { turn: 1, ..config.clone() };
    assert_ne!(single.numbers(), config.numbers());
    assert!(!single.table().contains_key("turn") && config.table().contains_key("turn"));
    let refused = ImitationConfig { turn: 0, ..small() }.check().expect_err("no step").to_string();
    assert!(refused.contains("turn = 0"), "{refused}");
    let mut again = new(config);
    again.restore(&learner.state()).expect("its own");
    assert!(new(small()).restore(&learner.state()).is_err(), "a state of other settings");
    for share in [-0.1, 1.1, f64::NAN] {
        let refused = ImitationConfig { expert_share: share, ..small() }.check().expect_err("no share");
        assert!(refused.to_string().contains("choose from 0 to 1"), "{refused}");
    }
}

/// What the expert says that actions cost, and where it looks, is recorded when asked for, saved, and refused when it is
/// missing or makes no sense.
#[test]
fn costs_and_gazes_are_demonstrated_and_saved() {
    let config = ImitationConfig { stakes: true, ..small() };
    let plan = |learner: &mut Imitation| match record(learner) {
        Record::Demonstrations(plan) => (plan.costs, plan.gaze, plan.expert_drives),
        other => panic!("{other:?}"),
    };
    let costing = |seed, steps| Demonstration {
        costs: (0..3 * steps).map(|i| (i % 7) as f32 / 7.0).collect(),
        ..demonstration(seed, steps)
    };
    let mut learner = new(config.clone());
    assert_eq!(plan(&mut learner), (true, false, true));
    learner.receive(experience(vec![costing(0, 40), costing(1, 7)], 0.0)).expect("fine");
    assert_eq!(plan(&mut learner), (true, false, false), "then the learner acts");
    let mut again = new(config.clone());
    again.restore(&learner.state()).expect("its own");
    assert_eq!(again.state(), learner.state());
    assert!(again.method.demonstrations.iter().all(|d| d.costs.len() == 3 * d.steps));
    for broken in [demonstration(0, 40), Demonstration { costs: vec![f32::NAN; 120], ..demonstration(0, 40) }]
    {
        let refused = learner.receive(experience(vec![broken], 0.0)).unwrap_err().to_string();
        assert!(refused.contains("costs; 120 finite ones are due"), "{refused}");
    }
    let other = new(small()).receive(experience(vec![costing(0, 40)], 0.0)).unwrap_err().to_string();
    assert!(other.contains("has 120 costs; 0 finite ones are due"), "{other}");
    assert!(new(small()).restore(&learner.state()).is_err(), "another loss");

    // Where actions are choices, there is a cost for each.
    let choosing = |steps: usize| Demonstration { costs: vec![0.5; steps], ..demonstration(0, steps) };
    let mut learner = new(config.clone());
    learner.receive(experience(vec![choosing(40)], 0.0)).expect("fine");
    let mut again = new(config.clone());
    again.restore(&learner.state()).expect("its own");
    assert_eq!(again.state(), learner.state());
    assert!(again.method.demonstrations.iter().all(|d| d.costs.len() == d.steps));
    let mixed = learner.receive(experience(vec![costing(0, 40)], 0.0)).unwrap_err().to_string();
    assert!(mixed.contains("has 120 costs; 40 finite ones are due"), "{mixed}");

    // The gaze is to the right by 0.8 of the brightness.
    let gazing = |steps: usize| {
        let mut demonstration =
            Demonstration { actions: vec![0.0; steps], steps, ..Demonstration::default() };
        for t in 0..steps {
            let bright = (50 * t % 256) as u8;
            demonstration.pictures.push(&[bright, 0, 0]);
            let point = GazePoint { x: 0.8 * f32::from(bright) / 255.0, y: 0.5, weight: 1.0 };
            demonstration.gaze.push(vec![point; 1 + t % 2]);
        }
        demonstration
    };
    let config = ImitationConfig { gaze: true, ..small() };
    let student = || ToyStudent::linear(2, 3).seeing(3);
    let mut learner = with(config.clone(), student());
    let round = |learner: &mut Imitation| {
        assert_eq!(plan(learner), (false, true, true), "the expert acts in every round");
        learner.receive(experience(vec![gazing(40), gazing(7)], 0.0)).map(drop)
    };
    for _ in 0..4 {
        round(&mut learner).expect("fine");
    }
    let mut again = with(config.clone(), student());
    again.restore(&learner.state()).expect("its own");
    round(&mut learner).expect("fine");
    round(&mut again).expect("fine");
    assert_eq!(learner.state(), again.state());
    let [a, b, c] = *learner.weights() else { unreachable!() };
    assert!((a - 0.8).abs() < 0.01 && b == 0.0 && c == 7.0, "{a} {b} {c}");

    let mut off = gazing(40);
    off.gaze[3][0].x = 1.5;
    let refused = learner.receive(experience(vec![off], 0.0)).unwrap_err().to_string();
    assert!(refused.contains("looks at (1.5, 0.5) with weight 1"), "{refused}");
    let none = Demonstration { gaze: vec![], ..gazing(40) };
    let refused = learner.receive(experience(vec![none], 0.0)).unwrap_err().to_string();
    assert!(refused.contains("40 steps has a gaze in 0; 40 are due"), "{refused}");
    let state = learner.state();
    for name in ["demonstrations.gaze_points", "demonstrations.gaze_counts"] {
        let mut broken = state.clone();
        broken.remove(name);
        assert!(again.restore(&broken).is_err(), "without {name}");
    }
    for counts in [vec![1; 47], vec![u64::MAX; 87], vec![0; 87]] {
        let mut broken = state.clone();
        broken.insert("demonstrations.gaze_counts".into(), Tensor::from(counts));
        assert!(again.restore(&broken).is_err());
    }
    assert!(
        Imitation::new(config, vec![0.0; 3], Seed::root(1), Box::new(ToyStudent::linear(2, 3))).is_err(),
        "a student without an attention"
    );
    let written = |config: ImitationConfig| config.table();
    assert!(!written(small()).contains_key("stakes") && !written(small()).contains_key("gaze"));
    assert!(written(ImitationConfig { gaze: true, ..small() }).contains_key("gaze"));
}
