use foveate_core::episode::EpisodeRules;
use foveate_core::{
    Demonstration, EpisodeResult, Episodes, GridBuf, Observation, ObservationBuf, Recording, RolloutJob,
};
use std::ops::Range;

use super::*;

/// A table of values, `[cells, 2]`: one number per place of a corridor and choice.
#[derive(Clone)]
struct Table {
    params: Vec<f32>,
    predictions: Predictions,
    seen: Vec<u8>,
}

const CELLS: usize = 5;

impl Table {
    fn new() -> Self {
        Table { params: vec![0.0; 2 * CELLS], predictions: Predictions::default(), seen: vec![] }
    }
}

impl Model for Table {
    fn learns(&self) -> Range<usize> {
        0..2 * CELLS
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.len() != 2 * CELLS {
            return Err(PolicyError::BadConfig { why: format!("{} numbers for a table", flat.len()) });
        }
        self.params.copy_from_slice(flat);
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn outputs(&mut self) -> Option<&mut dyn Outputs> {
        Some(self)
    }
}

impl Outputs for Table {
    fn encoded_len(&self) -> usize {
        1
    }

    fn encode(
        &self,
        _: LastStep<'_>,
        observation: Observation<'_>,
        codes: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        let Observation::Grid(grid) = observation else {
            return Err(PolicyError::ObservationShape {
                wanted: "a place".into(),
                given: observation.describe(),
            });
        };
        codes.extend(grid.codes().iter().map(|&code| f32::from(code)));
        Ok(())
    }

    fn kind(&self) -> OutputKind {
        OutputKind::Values(2)
    }

    fn encodes_bytes(&self) -> bool {
        true
    }

    fn forward(&mut self, _: usize, inputs: &[f32], _: &[f32]) -> &Predictions {
        self.seen = inputs.iter().map(|&at| at as u8).collect();
        let row = |&at: &u8| self.params[2 * usize::from(at)..][..2].to_vec();
        self.predictions.outputs = self.seen.iter().flat_map(row).collect();
        &self.predictions
    }

    fn backward(&mut self, d_values: &[f32], _: &[f32], gradient: &mut [f32]) {
        for (&at, d) in self.seen.iter().zip(d_values.chunks_exact(2)) {
            gradient[2 * usize::from(at)] += d[0];
            gradient[2 * usize::from(at) + 1] += d[1];
        }
    }
}

fn place(at: usize) -> ObservationBuf {
    ObservationBuf::Grid(GridBuf::new(1, 1, 1, vec![at as u8]).expect("one code"))
}

/// An episode in a corridor of five places: choice 1 leads to the right, choice 0 to the left; the last place ends it with
/// a reward of 1, and the limit of steps truncates it.
fn episode(seed: u64, limit: usize) -> Vec<Unroll> {
    let mut rng = Seed::root(seed).rng();
    let mut at = 0_usize;
    let mut unroll = Unroll { observations: vec![place(0)], ..Unroll::default() };
    while unroll.len() < limit && !unroll.terminated {
        let choice = rng.below(2) as usize;
        at = if choice == 1 { at + 1 } else { at.saturating_sub(1) };
        unroll.terminated = at + 1 == CELLS;
        unroll.actions.push(ActionBuf::Discrete(choice));
        unroll.rewards.push(if unroll.terminated { 1.0 } else { 0.0 });
        unroll.observations.push(place(at));
    }
    unroll.truncated = !unroll.terminated;
    vec![unroll]
}

fn experience(episodes: Vec<Vec<Unroll>>) -> Experience {
    let total = |unrolls: &[Unroll]| unrolls.iter().flat_map(|unroll| &unroll.rewards).sum();
    let results = episodes.iter().map(|e| EpisodeResult { total: total(e), ..EpisodeResult::default() });
    Experience {
        episodes: results.collect(),
        recordings: episodes.into_iter().map(Recording::Transitions).collect(),
        ..Experience::default()
    }
}

fn config() -> DqnConfig {
    DqnConfig {
        discount: 0.9,
        target_every: 20,
        batch: 16,
        steps_per_update: 1,
        first: 50,
        learning_rate: 0.02,
        capacity: 500,
        ..DqnConfig::default()
    }
}

fn new(config: DqnConfig) -> Dqn {
    Dqn::new(config, &[0.0; 2 * CELLS], Seed::root(1), &Table::new()).expect("fine")
}

fn round(learner: &mut Dqn, number: u64) {
    let seeds = |_: usize, episode: usize| episode as u64;
    let work = learner.work(&Episodes { per_row: 4, rules: EpisodeRules::WHOLE, seeds: &seeds });
    assert_eq!((work.epsilon, work.jobs.len(), work.weights.len()), (learner.method.config.epsilon, 4, 1));
    assert_eq!(work.jobs[3], RolloutJob { genome: 0, episode: 3, env_seed: 3 });
    let episodes = (0..4).map(|i| episode(10 * number + i, 12)).collect();
    learner.receive(experience(episodes)).expect("fine");
}

/// Every way to learn finds the values that the rules of the corridor have: 0.9 to the power of the steps that the best
/// policy needs after this one.
#[test]
fn values_are_those_of_the_best_policy() {
    let correct =
        [0.9_f64.powi(4), 0.9_f64.powi(3), 0.9_f64.powi(4), 0.9_f64.powi(2), 0.9_f64.powi(3), 0.9, 0.81, 1.0];
    for config in [
        config(),
        DqnConfig { target: Target::Single, loss: Loss::Huber, ..config() },
        DqnConfig { priority: 0.6, rewarding_copies: 3, ..config() },
        DqnConfig { averaging: 0.99, ..config() },
    ] {
        let mut learner = new(config.clone());
        (0..60).for_each(|number| round(&mut learner, number));
        for (index, (value, correct)) in learner.weights().iter().zip(correct).enumerate() {
            assert!((value - correct).abs() < 0.03, "value {index} is {value}, not {correct}: {config:?}");
        }
        let measures = learner.measures();
        let names: Vec<&str> = measures.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["epsilon", "replay", "loss", "gradient_norm", "value"]);
        assert!(measures[2].1 < 0.02, "{measures:?}");
    }
}

/// Returns of several steps, rewards in place of 0, and what a truncation means are seen in the transitions themselves.
#[test]
fn transitions_are_what_the_settings_say() {
    let unroll = Unroll {
        observations: (0..4).map(place).collect(),
        actions: vec![ActionBuf::Discrete(1); 3],
        rewards: vec![0.0, 0.0, 1.0],
        truncated: true,
        ..Unroll::default()
    };
    let kept = |config: DqnConfig, unroll: &Unroll| {
        let mut learner = new(config);
        learner.method.remember(network(&mut *learner.model), unroll).expect("it fits");
        let replay = &learner.method.learnt.replay;
        (0..replay.len())
            .map(|i| replay.get(i))
            .map(|e| (e.before[0], e.after[0], e.reward, e.discount))
            .collect::<Vec<_>>()
    };
    assert_eq!(kept(config(), &unroll), [(0, 1, 0.0, 0.9), (1, 2, 0.0, 0.9), (2, 3, 1.0, 0.9)]);
    let two = DqnConfig { n_step: 2, zero_reward: -0.5, ..config() };
    let expect = [(0, 2, -0.95, 0.81), (1, 3, 0.4, 0.81), (2, 3, 1.0, 0.9)];
    for (got, expect) in kept(two, &unroll).into_iter().zip(expect) {
        assert_eq!((got.0, got.1), (expect.0, expect.1));
        assert!((got.2 - expect.2).abs() < 1e-6 && (got.3 - expect.3).abs() < 1e-6, "{got:?}");
    }
    let cut = DqnConfig { bootstrap_truncated: false, rewarding_copies: 2, ..config() };
    assert_eq!(kept(cut, &unroll)[2..], [(2, 3, 1.0, 0.0), (2, 3, 1.0, 0.0)]);
    let over = Unroll { terminated: true, truncated: false, ..unroll };
    assert_eq!(kept(config(), &over)[2], (2, 3, 1.0, 0.0));
}

/// The target rule of the book takes the best action of the state before the step.
#[test]
fn target_rules_differ_where_the_networks_do() {
    let unroll = Unroll {
        observations: vec![place(0), place(1)],
        actions: vec![ActionBuf::Discrete(0)],
        rewards: vec![0.0],
        truncated: true,
        ..Unroll::default()
    };
    // Place 0 prefers choice 0, place 1 choice 1.
    let mut weights = [0.0; 2 * CELLS];
    (weights[0], weights[2], weights[3]) = (1.0, 0.2, 0.7);
    // A softmax with a temperature of 0.5 gives 0.7 and 0.2 shares as 1 and 1/e; the book's rule takes 1 and 0 of place 0.
    let mean = |[first, second]: [f64; 2], share: f64| (first * share + second) / (share + 1.0);
    for (target, target_temperature, value) in [
        (Target::Double, 0.0, 0.7),
        (Target::Single, 0.0, 0.7),
        (Target::Before, 0.0, 0.2),
        (Target::Double, 0.001, 0.7),
        (Target::Double, 0.5, mean([0.2, 0.7], (-1.0_f64).exp())),
        (Target::Single, 0.5, mean([0.2, 0.7], (-1.0_f64).exp())),
        (Target::Before, 0.5, mean([0.2, 0.7], 2.0_f64.exp())),
    ] {
        let config = DqnConfig { target, target_temperature, first: 0, batch: 1, discount: 1.0, ..config() };
        let mut learner = Dqn::new(config, &weights, Seed::root(1), &Table::new()).expect("fine");
        learner.receive(experience(vec![vec![unroll.clone()]])).expect("fine");
        // The error is 1 − value, and the loss its square.
        let loss = learner.measures().iter().find(|(name, _)| *name == "loss").expect("an update").1;
        assert!((loss - (1.0_f64 - value).powi(2)).abs() < 1e-6, "{target:?}: {loss}");
    }
}

#[test]
fn a_restored_learner_goes_on_to_the_bit() {
    for config in [config(), DqnConfig { priority: 0.5, averaging: 0.9, steps_per_update: 5, ..config() }] {
        let mut learner = new(config.clone());
        (0..4).for_each(|number| round(&mut learner, number));
        let state = learner.state();
        let mut other = new(config.clone());
        other.restore(&state).expect("its own");
        assert_eq!(other.state(), state);
        for number in 4..8 {
            round(&mut learner, number);
            round(&mut other, number);
        }
        assert_eq!(other.state(), learner.state());
        assert_ne!(other.state(), state);
        assert_eq!(other.weights(), learner.weights());

        for (name, broken) in [
            ("params", Tensor::from(vec![0.0_f32])),
            ("target", Tensor::from(vec![f32::NAN; 2 * CELLS])),
            ("counts", Tensor::from(vec![1_u64, 2, 5])),
            ("seed", Tensor::from(vec![9_u64])),
            ("replay.next", Tensor::from(vec![u64::MAX])),
        ] {
            let mut wrong = state.clone();
            wrong.insert(name.into(), broken);
            let mut third = new(config.clone());
            let before = third.state();
            assert!(third.restore(&wrong).is_err(), "{name}");
            assert_eq!(third.state(), before, "{name}");
        }
        // Other settings, on purpose.
        let mut slower = new(DqnConfig { learning_rate: 0.001, ..config.clone() });
        assert!(slower.restore(&state).is_err());
        slower.restore_changed(&state).expect("only the rate differs");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut learner = new(config());
    round(&mut learner, 1);
    let before = learner.state();
    let good = episode(5, 12);
    let wrong = |change: &dyn Fn(&mut Unroll)| {
        let mut unrolls = good.clone();
        change(&mut unrolls[0]);
        experience(vec![good.clone(), unrolls])
    };
    for (experience, why) in [
        (Experience::default(), "without any episode"),
        (wrong(&|unroll| unroll.actions[0] = ActionBuf::Discrete(2)), "one of 2 choices is due"),
        (wrong(&|unroll| unroll.actions[0] = ActionBuf::Continuous(vec![0.5])), "one of 2 choices is due"),
        (wrong(&|unroll| unroll.observations[0] = ObservationBuf::Vector(vec![0.0])), "a place"),
        (wrong(&|unroll| drop(unroll.observations.pop())), "observations"),
        (wrong(&|unroll| unroll.rewards[0] = 1e300), "sum to"),
        (
            Experience {
                recordings: vec![Recording::Demonstration(Demonstration::default())],
                ..Experience::of_episodes(vec![EpisodeResult::default()])
            },
            "dqn learns from transitions",
        ),
    ] {
        let said = learner.receive(experience).expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
        assert_eq!(learner.state(), before, "{why}");
    }

    for (config, why) in [
        (DqnConfig { epsilon: 1.5, ..config() }, "epsilon = 1.5; choose from 0 to 1"),
        (DqnConfig { discount: f64::NAN, ..config() }, "discount = NaN"),
        (DqnConfig { batch: 0, ..config() }, "batch = 0; choose from 1 to 1000000"),
        (DqnConfig { capacity: usize::MAX, ..config() }, "choose from 1 to 10000000"),
        (DqnConfig { first: 501, ..config() }, "first = 501, but the replay buffer holds 500"),
        (DqnConfig { clip: 0.0, ..config() }, "clip = 0; it must be above 0"),
        (DqnConfig { averaging: 1.0, ..config() }, "averaging = 1; it must be at least 0 and below 1"),
    ] {
        let said = config.check().expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
    }
    for (weights, why) in [(vec![], "0 parameters"), (vec![0.0; 3], "3 numbers for a table")] {
        let said = Dqn::new(config(), &weights, Seed::root(1), &Table::new()).err().expect(why).to_string();
        assert!(said.contains(why), "{said}");
    }
}

/// A loss that overflows stops the run, and names the update.
#[test]
fn a_loss_that_is_no_number_names_its_update() {
    let mut learner = new(DqnConfig { first: 0, batch: 1, ..config() });
    let mut unrolls = episode(5, 12);
    unrolls[0].rewards.fill(3e38);
    let said = loop {
        match learner.receive(experience(vec![unrolls.clone()])) {
            Ok(_) => {}
            Err(error) => break error.to_string(),
        }
        assert!(learner.generation() < 50, "it never overflows");
    };
    assert!(said.contains("diverged in generation") && said.contains("update "), "{said}");
}

/// Values are computed once for each observation, and anew with other weights.
#[test]
fn known_values_are_those_of_the_network() {
    let (mut table, mut known, mut values) = (Table::new(), KnownValues::default(), vec![]);
    for weights in [[0.5; 2 * CELLS], std::array::from_fn(|i| i as f32)] {
        table.set_params(&weights).expect("as many");
        for (codes, computed) in [(&[3, 1, 3][..], &[3, 1, 3][..]), (&[1, 4, 3], &[4]), (&[4, 4], &[4])] {
            known.write(&mut table, &weights, codes, &mut values);
            let expect: Vec<f32> =
                codes.iter().flat_map(|&at| weights[2 * usize::from(at)..][..2].to_vec()).collect();
            assert_eq!(values, expect, "{codes:?}");
            assert_eq!(table.seen, computed, "{codes:?}");
        }
    }
}
