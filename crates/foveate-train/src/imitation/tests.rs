use std::ops::Range;

use foveate_core::episode::EpisodeRules;
use foveate_core::{EpisodeResult, PolicyError};

use super::*;

/// `action = w₀ x + w₁ y`; the third parameter is not used.
#[derive(Debug, Clone, Default)]
struct Linear([f32; 2]);

impl Student for Linear {
    fn inputs(&self) -> usize {
        2
    }

    fn actions(&self) -> usize {
        1
    }

    fn learns(&self) -> Range<usize> {
        0..2
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        assert_eq!(flat.len(), 3);
        self.0 = [flat[0], flat[1]];
        Ok(())
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        _: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let (mut sum, mut of_piece) = (0.0, [0.0; 2]);
        for t in piece {
            let [x, y] = [demonstration.inputs[2 * t], demonstration.inputs[2 * t + 1]];
            let error = self.0[0] * x + self.0[1] * y - demonstration.actions[t];
            of_piece[0] += 2.0 * error * x;
            of_piece[1] += 2.0 * error * y;
            sum += f64::from(error * error);
        }
        gradient.iter_mut().zip(of_piece).for_each(|(to, sum)| *to += sum);
        sum
    }

    fn boxed_clone(&self) -> Box<dyn Student> {
        Box::new(self.clone())
    }
}

/// A demonstration of an expert with the weights 0.5 and −2.
fn demonstration(seed: u64, steps: usize) -> Demonstration {
    let mut rng = Seed::root(seed).rng();
    let inputs: Vec<f32> = (0..2 * steps).map(|_| rng.normal() as f32).collect();
    let actions = inputs.chunks(2).map(|xy| 0.5 * xy[0] - 2.0 * xy[1]).collect();
    Demonstration { inputs, actions, steps }
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
    Imitation::new(config, vec![0.0, 0.0, 7.0], Seed::root(1), Box::new(Linear::default())).expect("fine")
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
    let plan = |expert_drives| Record::Demonstrations(DemonstrationPlan { expert_drives, pushes: 1.0 });
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
    let (mut learner, mut other) = (new(small()), new(small()));
    for number in 0..3 {
        round(&mut learner, number);
    }
    record(&mut learner);
    other.restore(&learner.state()).expect("its own");
    // The format of older versions.
    let old: StateDict = learner
        .state()
        .into_iter()
        .map(|(name, tensor)| (name.replace("demonstrations.", "lessons."), Tensor::from(tensor.into_data())))
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

/// A student that fails on the second segment.
#[derive(Debug, Clone, Default)]
struct Failing(Linear);

impl Student for Failing {
    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    fn actions(&self) -> usize {
        self.0.actions()
    }

    fn learns(&self) -> Range<usize> {
        self.0.learns()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.0.set_params(flat)
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        _: usize,
        gradient: &mut [f32],
    ) -> f64 {
        self.0.study(demonstration, piece, 0, gradient)
    }

    fn study_all(&mut self, pieces: &[Piece], _: usize, _: &mut [f32]) -> Result<f64, PolicyError> {
        assert_eq!(pieces.len(), small().pieces);
        Err(PolicyError::Study { piece: 1, why: "it broke".into() })
    }

    fn boxed_clone(&self) -> Box<dyn Student> {
        Box::new(self.clone())
    }
}

#[test]
fn a_gradient_that_cannot_be_had_is_an_error_and_changes_nothing() {
    let mut learner =
        Imitation::new(small(), vec![0.0, 0.0, 7.0], Seed::root(1), Box::new(Failing::default()))
            .expect("fine");
    let before = learner.state();
    let round = experience(vec![demonstration(1, 40)], 1.0);
    let error = learner.receive(round).expect_err("it cannot be studied").to_string();
    assert_eq!(
        error,
        "learning from the recordings of generation 0 failed: piece 1 of the demonstrations could not be studied: it broke"
    );
    assert_eq!(learner.state(), before);
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
    let huge = Demonstration { inputs: vec![1e30; 80], actions: vec![-1e30; 40], steps: 40 };
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
    ];
    for (config, why) in cases {
        let error = config.check().expect_err(why).to_string();
        assert!(error.contains(why), "{error} / {why}");
    }
}
