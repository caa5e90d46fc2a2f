use std::ops::Range;

use foveate_core::episode::EpisodeRules;
use foveate_core::{
    Demonstration, EpisodeResult, Episodes, Observation, ObservationBuf, OutputKind, Recording, RolloutJob,
    Tensor, Work, add_gradients,
};

use super::*;

const CELLS: usize = 5;
/// Two logits and a value for each place of a corridor.
const PARAMS: usize = 3 * CELLS;

/// A table: `[cells, 3]`.
#[derive(Clone)]
struct Table {
    params: Vec<f32>,
    seen: Vec<usize>,
    predictions: Predictions,
}

impl Table {
    fn new() -> Self {
        Table { params: vec![0.0; PARAMS], seen: vec![], predictions: Predictions::default() }
    }
}

impl Model for Table {
    fn learns(&self) -> Range<usize> {
        0..PARAMS
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.len() != PARAMS {
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
        let Some(&[place]) = observation.numbers() else {
            let (wanted, given) = ("a place".into(), observation.describe());
            return Err(PolicyError::ObservationShape { wanted, given });
        };
        codes.push(place);
        Ok(())
    }

    fn kind(&self) -> OutputKind {
        OutputKind::Policy(ActionDistribution::Choices(2))
    }

    fn forward(&mut self, steps: usize, inputs: &[f32], _: &[f32]) -> &Predictions {
        assert_eq!(steps, 1, "it has no memory");
        self.seen = inputs.iter().map(|&place| place as usize).collect();
        let rows = || self.seen.iter().map(|&place| &self.params[3 * place..][..3]);
        self.predictions.outputs = rows().flat_map(|row| row[..2].iter().copied()).collect();
        self.predictions.values = rows().map(|row| row[2]).collect();
        &self.predictions
    }

    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        for ((&place, d_outputs), d_value) in self.seen.iter().zip(d_outputs.chunks_exact(2)).zip(d_values) {
            gradient[3 * place] += d_outputs[0];
            gradient[3 * place + 1] += d_outputs[1];
            gradient[3 * place + 2] += d_value;
        }
    }
}

fn place(at: usize) -> ObservationBuf {
    ObservationBuf::Vector(vec![at as f32])
}

/// An episode in a corridor of five places, with actions drawn from the weights: choice 1 leads to the right, choice 0 to the
/// left; the last place ends it with a reward of 1, and the limit of steps truncates it.
fn episode(weights: &[f32], seed: u64, limit: usize) -> Unroll {
    let mut rng = Seed::root(seed).rng();
    let mut at = 0_usize;
    let mut unroll = Unroll { observations: vec![place(0)], ..Unroll::default() };
    while unroll.len() < limit && !unroll.terminated {
        let right = 1.0 / (1.0 + f64::from(weights[3 * at] - weights[3 * at + 1]).exp());
        let choice = usize::from(rng.next_f64() < right);
        at = if choice == 1 { at + 1 } else { at.saturating_sub(1) };
        unroll.terminated = at + 1 == CELLS;
        unroll.actions.push(ActionBuf::Discrete(choice));
        unroll.rewards.push(if unroll.terminated { 1.0 } else { 0.0 });
        unroll.observations.push(place(at));
    }
    unroll.truncated = !unroll.terminated;
    unroll
}

fn experience(episodes: Vec<Unroll>) -> Experience {
    let total = |unroll: &Unroll| EpisodeResult { total: unroll.rewards.iter().sum(), ..Default::default() };
    Experience {
        episodes: episodes.iter().map(total).collect(),
        recordings: episodes.into_iter().map(|unroll| Recording::Transitions(vec![unroll])).collect(),
        ..Experience::default()
    }
}

fn config() -> PpoConfig {
    PpoConfig { discount: 0.9, batch: 32, learning_rate: 0.03, ..PpoConfig::default() }
}

fn new(config: PpoConfig) -> Ppo {
    Ppo::new(config, &[0.0; PARAMS], Seed::root(1), &Table::new()).expect("fine")
}

fn work(learner: &mut Ppo) -> Work {
    let seeds = |_: usize, episode: usize| episode as u64;
    learner.work(&Episodes { per_row: 8, rules: EpisodeRules::WHOLE, seeds: &seeds })
}

fn round(learner: &mut Ppo) {
    let work = work(learner);
    assert_eq!((work.jobs.len(), work.weights.len()), (8, 1));
    assert_eq!(work.jobs[3], RolloutJob { genome: 0, episode: 3, env_seed: 3 });
    let weights = work.weights.genome(0);
    let generation = learner.generation();
    let episodes = (0..8).map(|i| episode(weights, 100 * generation + i, 20)).collect();
    learner.receive(experience(episodes)).expect("fine");
}

/// The policy goes straight to the goal, and the values are those of that policy: 0.9 to the power of the steps left.
#[test]
fn the_corridor_is_solved() {
    let mut learner = new(config());
    (0..60).for_each(|_| round(&mut learner));
    let weights: Vec<f32> = learner.weights().iter().map(|&x| x as f32).collect();
    for (at, row) in weights.chunks_exact(3).take(CELLS - 1).enumerate() {
        assert!(row[1] - row[0] > 2.0, "place {at}: {row:?}");
        let value = 0.9_f32.powi((CELLS - 2 - at) as i32);
        assert!((row[2] - value).abs() < 0.15, "place {at}: {row:?}, not {value}");
    }
    let mut lengths: Vec<usize> = (0..100).map(|seed| episode(&weights, seed, 20).len()).collect();
    lengths.sort_unstable();
    assert_eq!((lengths[0], lengths[50]), (4, 4));
    let measures = learner.measures();
    let names: Vec<&str> = measures.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["loss", "gradient_norm", "entropy", "value_loss", "clip_fraction", "kl", "explained_variance"]
    );
    assert!(measures.iter().all(|(_, value)| value.is_finite()), "{measures:?}");
    assert!(measures[2].1 < 0.5 && measures[6].1 > 0.5, "{measures:?}");
}

/// What the policy computed when it acted is the same as what is computed again, so it makes no difference which is used.
#[test]
fn recorded_logits_and_values_change_no_bit() {
    let seeds = 0..8;
    let weights: Vec<f32> = (0..PARAMS).map(|i| (i as f32 * 0.7).sin()).collect();
    let start: Vec<f64> = weights.iter().map(|&x| f64::from(x)).collect();
    let learn = |recorded: bool| {
        let mut learner = Ppo::new(config(), &start, Seed::root(1), &Table::new()).expect("fine");
        work(&mut learner);
        let episodes = seeds.clone().map(|seed| {
            let mut unroll = episode(&weights, seed, 6);
            if recorded {
                for observation in &unroll.observations[..unroll.len()] {
                    let ObservationBuf::Vector(at) = observation else { unreachable!("a place") };
                    let row = &weights[3 * at[0] as usize..][..3];
                    unroll.logits.extend_from_slice(&row[..2]);
                    unroll.values.push(row[2]);
                }
            }
            unroll
        });
        learner.receive(experience(episodes.collect())).expect("fine");
        (learner.state(), learner.measures())
    };
    assert_eq!(learn(true), learn(false));
}

/// The steps of an experience, at the learner's weights.
fn rollouts(learner: &mut Ppo, experience: Experience) -> Arc<Rollouts> {
    let Ppo { method, descent, model, .. } = learner;
    let stop = foveate_core::StopRequest::default();
    let mut round = Round { descent, model: &mut **model, gradient: &mut vec![], stop: &stop };
    Arc::new(method.rollouts(&mut round, experience).expect("they fit"))
}

/// The gradient of an update is that of the loss it reports, where ratios are free, bounded, and on either side.
#[test]
fn the_gradient_is_that_of_the_loss() {
    let config = PpoConfig { clip: 1e9, clip_ratio: 0.1, entropy_weight: 0.3, batch: 1000, ..config() };
    let mut learner = new(config);
    let episodes = (0..6).map(|i| episode(&[0.0; PARAMS], i, 12)).collect();
    let rollouts = rollouts(&mut learner, experience(episodes));
    let mut rng = Seed::root(5).rng();
    let moved: Vec<f32> = (0..PARAMS).map(|_| rng.uniform(-0.5, 0.5) as f32).collect();
    let loss = learner.method.loss(&mut *learner.model, &rollouts, &rollouts.segments);
    let mut at = |params: &[f32]| {
        let (mut all, mut gradient) = (LossSums::default(), vec![0.0; PARAMS]);
        learner.model.set_params(params).expect("as many");
        add_gradients(&mut *learner.model, &loss, &mut gradient, &mut |sums| add(&mut all, sums))
            .expect("good");
        (all, gradient)
    };
    let (sums, gradient) = at(&moved);
    assert!(sums[CLIPPED] > 0.2 && sums[CLIPPED] < 1.0, "{}", sums[CLIPPED]);
    for i in 0..PARAMS {
        let mut side = |h: f32| {
            let mut params = moved.clone();
            params[i] += h;
            at(&params).0[0]
        };
        let slope = (side(1e-3) - side(-1e-3)) / 2e-3;
        assert!((slope - f64::from(gradient[i])).abs() < 2e-3, "{i}: {slope}, {}", gradient[i]);
    }
}

/// The value of the last observation counts after a truncation, and not after the end of the task.
#[test]
fn a_truncation_is_no_end() {
    let mut weights = [0.0; PARAMS];
    weights[3 + 2] = 2.0; // the value of place 1
    let unroll = |terminated: bool| Unroll {
        observations: vec![place(0), place(1)],
        actions: vec![ActionBuf::Discrete(1)],
        rewards: vec![1.0],
        terminated,
        truncated: !terminated,
        ..Unroll::default()
    };
    for (terminated, target) in [(true, 1.0), (false, 1.0 + 0.9 * 2.0)] {
        let mut learner = Ppo::new(config(), &weights, Seed::root(1), &Table::new()).expect("fine");
        let rollouts = rollouts(&mut learner, experience(vec![unroll(terminated)]));
        assert!((rollouts.targets[0] - target).abs() < 1e-12, "{}", rollouts.targets[0]);
    }
}

#[test]
fn rewards_are_scaled_before_anything_is_computed_from_them() {
    let unroll = || Unroll {
        observations: (0..3).map(place).collect(),
        actions: vec![ActionBuf::Discrete(1); 2],
        rewards: vec![1.0, 3.0],
        terminated: true,
        ..Unroll::default()
    };
    let mut learner = new(PpoConfig { reward_scale: 0.25, lambda: 1.0, ..config() });
    let rollouts = rollouts(&mut learner, experience(vec![unroll()]));
    assert_eq!(rollouts.targets, [0.25 + 0.9 * 0.75, 0.75]);
}

#[test]
fn a_restored_learner_goes_on_to_the_bit() {
    let mut learner = new(config());
    (0..3).for_each(|_| round(&mut learner));
    let state = learner.state();
    let mut other = new(config());
    other.restore(&state).expect("its own");
    assert_eq!(other.state(), state);
    for _ in 0..3 {
        round(&mut learner);
        round(&mut other);
    }
    assert_eq!(other.state(), learner.state());
    assert_ne!(other.state(), state);
    assert_eq!(other.measures(), learner.measures());
    for (name, broken) in [
        ("params", Tensor::from(vec![0.0_f32])),
        ("params", Tensor::from(vec![f32::NAN; PARAMS])),
        ("counts", Tensor::from(vec![1_u64])),
        ("seed", Tensor::from(vec![9_u64])),
    ] {
        let mut wrong = state.clone();
        wrong.insert(name.into(), broken);
        let mut third = new(config());
        let before = third.state();
        assert!(third.restore(&wrong).is_err(), "{name}");
        assert_eq!(third.state(), before, "{name}");
    }
    // Other settings, on purpose.
    let mut slower = new(PpoConfig { learning_rate: 0.001, ..config() });
    assert!(slower.restore(&state).is_err());
    slower.restore_changed(&state).expect("only the rate differs");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut learner = new(config());
    round(&mut learner);
    let before = learner.state();
    let good = episode(&[0.0; PARAMS], 5, 12);
    let wrong = |change: &dyn Fn(&mut Unroll)| {
        let mut unroll = good.clone();
        change(&mut unroll);
        experience(vec![good.clone(), unroll])
    };
    let parts = Experience {
        recordings: vec![Recording::Transitions(vec![good.clone(), good.clone()])],
        ..Experience::of_episodes(vec![EpisodeResult::default()])
    };
    let demonstration = Experience {
        recordings: vec![Recording::Demonstration(Demonstration::default())],
        ..Experience::of_episodes(vec![EpisodeResult::default()])
    };
    for (experience, why) in [
        (Experience::default(), "without any episode"),
        (wrong(&|unroll| unroll.actions[0] = ActionBuf::Discrete(2)), "one of 2 choices is due"),
        (wrong(&|unroll| unroll.actions[0] = ActionBuf::Continuous(vec![0.5])), "one of 2 choices is due"),
        (wrong(&|unroll| unroll.observations[0] = ObservationBuf::Vector(vec![])), "a place"),
        (wrong(&|unroll| drop(unroll.observations.pop())), "observations"),
        (wrong(&|unroll| *unroll = Unroll::default()), "0 steps"),
        (parts, "an episode in 2 unrolls"),
        (demonstration, "ppo learns from transitions"),
    ] {
        let said = learner.receive(experience).expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
        assert_eq!(learner.state(), before, "{why}");
    }
    for (config, why) in [
        (PpoConfig { discount: 1.5, ..config() }, "discount = 1.5; choose from 0 to 1"),
        (PpoConfig { lambda: f64::NAN, ..config() }, "lambda = NaN"),
        (PpoConfig { batch: 0, ..config() }, "batch = 0; choose from 1 to 1000000"),
        (PpoConfig { epochs: usize::MAX, ..config() }, "choose from 1 to 1000000"),
        (PpoConfig { clip_ratio: 0.0, ..config() }, "clip_ratio = 0; it must be above 0"),
        (PpoConfig { entropy_weight: -1.0, ..config() }, "entropy_weight = -1; it must be at least 0"),
        (PpoConfig { reward_scale: 0.0, ..config() }, "reward_scale = 0; it must be above 0"),
    ] {
        let said = config.check().expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
    }
    for (weights, why) in [(vec![], "0 parameters"), (vec![0.0; 3], "3 numbers for a table")] {
        let said = Ppo::new(config(), &weights, Seed::root(1), &Table::new()).err().expect(why).to_string();
        assert!(said.contains(why), "{said}");
    }
}

/// A loss that overflows stops the run, names update and batch, and changes nothing.
#[test]
fn a_loss_that_is_no_number_names_its_update() {
    let mut learner = new(config());
    round(&mut learner);
    let before = learner.state();
    let mut unroll = episode(&[0.0; PARAMS], 5, 12);
    unroll.rewards.fill(1e300);
    let said = learner.receive(experience(vec![unroll])).expect_err("it overflows").to_string();
    assert!(said.contains("diverged in generation 1") && said.contains("(batch 0 of the round)"), "{said}");
    assert_eq!(learner.state(), before);
}
