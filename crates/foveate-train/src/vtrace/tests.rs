use std::ops::Range;

use foveate_core::episode::EpisodeRules;
use foveate_core::{
    Demonstration, EpisodeResult, Episodes, Observation, ObservationBuf, Outputs, Recording, RolloutJob,
    add_gradients,
};

use super::*;

const CELLS: usize = 5;
/// Two logits and a value for each place of a corridor, then what the memory adds to the second logit.
pub(crate) const PARAMS: usize = 3 * CELLS + 1;

/// A table, and a memory that counts steps: it adds `params[15] · steps` to the logit of choice 1.
#[derive(Clone)]
pub(crate) struct Table {
    params: Vec<f32>,
    seen: Vec<(usize, f32)>,
    predictions: Predictions,
}

impl Table {
    pub(crate) fn new() -> Self {
        Table { params: vec![0.0; PARAMS], seen: vec![], predictions: Predictions::default() }
    }

    fn row(&self, place: usize, steps: f32) -> [f32; 3] {
        let row = &self.params[3 * place..][..3];
        [row[0], row[1] + self.params[PARAMS - 1] * steps, row[2]]
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
        last: LastStep<'_>,
        observation: Observation<'_>,
        codes: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        // In this corridor the place says whether there was a step before.
        assert!(last.action.is_some() || observation.numbers() == Some(&[0.0]));
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

    fn memory_len(&self) -> usize {
        1
    }

    fn forward(&mut self, steps: usize, inputs: &[f32], memories: &[f32]) -> &Predictions {
        assert_eq!((inputs.len(), memories.len()), (steps, 1), "one sequence");
        self.seen = inputs.iter().enumerate().map(|(t, &at)| (at as usize, memories[0] + t as f32)).collect();
        let rows: Vec<[f32; 3]> = self.seen.iter().map(|&(place, steps)| self.row(place, steps)).collect();
        self.predictions.outputs = rows.iter().flat_map(|row| [row[0], row[1]]).collect();
        self.predictions.values = rows.iter().map(|row| row[2]).collect();
        &self.predictions
    }

    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        for ((&(place, steps), d), d_value) in self.seen.iter().zip(d_outputs.chunks_exact(2)).zip(d_values) {
            gradient[3 * place] += d[0];
            gradient[3 * place + 1] += d[1];
            gradient[3 * place + 2] += d_value;
            gradient[PARAMS - 1] += d[1] * steps;
        }
    }
}

fn place(at: usize) -> ObservationBuf {
    ObservationBuf::Vector(vec![at as f32])
}

/// An episode in a corridor of five places, cut into unrolls of `unroll` steps, with actions drawn from the weights: choice 1
/// leads to the right, choice 0 to the left; the last place ends it with a reward of 3, and the limit of steps truncates it.
pub(crate) fn episode(weights: &[f32], seed: u64, limit: usize, unroll: usize) -> Vec<Unroll> {
    let mut rng = Seed::root(seed).rng();
    let mut table = Table::new();
    table.params.copy_from_slice(weights);
    let (mut at, mut step) = (0_usize, 0_usize);
    let mut unrolls: Vec<Unroll> = vec![];
    loop {
        let row = table.row(at, step as f32);
        let right = 1.0 / (1.0 + f64::from(row[0] - row[1]).exp());
        let choice = usize::from(rng.next_f64() < right);
        if step.is_multiple_of(unroll) {
            let memory = vec![step as f32];
            unrolls.push(Unroll { observations: vec![place(at)], memory, ..Unroll::default() });
        }
        at = if choice == 1 { at + 1 } else { at.saturating_sub(1) };
        step += 1;
        let last = unrolls.last_mut().expect("just begun");
        last.logits.extend([row[0], row[1]]);
        last.actions.push(ActionBuf::Discrete(choice));
        last.terminated = at + 1 == CELLS;
        last.rewards.push(if last.terminated { 3.0 } else { 0.0 });
        last.observations.push(place(at));
        last.truncated = !last.terminated && step == limit;
        if last.terminated || last.truncated {
            return unrolls;
        }
    }
}

pub(crate) fn experience(episodes: Vec<Vec<Unroll>>) -> Experience {
    let total = |unrolls: &Vec<Unroll>| EpisodeResult {
        total: unrolls.iter().flat_map(|unroll| &unroll.rewards).sum(),
        ..Default::default()
    };
    Experience {
        episodes: episodes.iter().map(total).collect(),
        recordings: episodes.into_iter().map(Recording::Transitions).collect(),
        ..Experience::default()
    }
}

pub(crate) fn config() -> VtraceConfig {
    VtraceConfig {
        discount: 0.9,
        unroll: 4,
        batch: 8,
        epochs: 2,
        learning_rate: 0.02,
        reduce: Reduce::Mean,
        clip: 1.0,
        optimizer: OptimizerConfig::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-5 },
        ..VtraceConfig::default()
    }
}

fn new(config: VtraceConfig) -> Vtrace {
    Vtrace::new(config, &[0.0; PARAMS], Seed::root(1), &Table::new()).expect("fine")
}

fn round(learner: &mut Vtrace) {
    let seeds = |_: usize, episode: usize| episode as u64;
    let work = learner.work(&Episodes { per_row: 8, rules: EpisodeRules::WHOLE, seeds: &seeds });
    assert_eq!((work.jobs.len(), work.weights.len()), (8, 1));
    assert_eq!(work.record, Record::Transitions { unroll: 4 });
    assert_eq!(work.jobs[3], RolloutJob { genome: 0, episode: 3, env_seed: 3 });
    let (weights, generation) = (work.weights.genome(0), learner.generation());
    let episodes = (0..8).map(|i| episode(weights, 100 * generation + i, 20, 4)).collect();
    learner.receive(experience(episodes)).expect("fine");
}

/// The policy goes straight to the goal, and the values are those of that policy: 0.9 to the power of the steps left, since the
/// reward of 3 is clipped to 1.
#[test]
fn the_corridor_is_solved() {
    let mut learner = new(config());
    (0..150).for_each(|_| round(&mut learner));
    let weights: Vec<f32> = learner.weights().iter().map(|&x| x as f32).collect();
    for (at, row) in weights.chunks_exact(3).take(CELLS - 1).enumerate() {
        let value = 0.9_f32.powi((CELLS - 2 - at) as i32);
        assert!((row[2] - value).abs() < 0.15, "place {at}: {row:?}, not {value}");
    }
    let mut lengths: Vec<usize> = (0..100).map(|seed| episode(&weights, seed, 20, 100)[0].len()).collect();
    lengths.sort_unstable();
    assert_eq!((lengths[0], lengths[50]), (4, 4));
    let measures = learner.measures();
    let names: Vec<&str> = measures.iter().map(|(name, _)| *name).collect();
    let expect = [
        "loss",
        "gradient_norm",
        "entropy",
        "value_loss",
        "clip_fraction",
        "kl",
        "explained_variance",
        "policy_lag",
    ];
    assert_eq!(names, expect);
    assert!(measures.iter().all(|(_, value)| value.is_finite()), "{measures:?}");
    assert!(measures[2].1 < 0.5 && measures[6].1 > 0.5 && measures[7].1 > 0.0, "{measures:?}");
}

/// Targets of 0 and 2 in two unrolls, one step each, and values of 1 and 2: the variance is 1, half of which is left.
#[test]
fn explained_variance_is_of_all_unrolls() {
    let config = VtraceConfig { discount: 1.0, ..config() };
    let mut all = LossSums::default();
    for (reward, value) in [(0.0, 1.0), (2.0, 2.0)] {
        let (choices, rewards) = (vec![0], vec![reward]);
        let behaviour =
            Behaviour { choices, logs: vec![-2.0_f64.ln()], rewards, terminated: true, kept: vec![] };
        let (mut d_outputs, mut d_values) = ([0.0; 2], [0.0; 1]);
        let of_step = config.differentiate(
            &behaviour,
            2,
            1.0,
            (&[0.0; 2], &[value, 9.0]),
            (&mut d_outputs, &mut d_values),
        );
        all.iter_mut().zip(of_step).for_each(|(all, x)| *all += x);
    }
    let measures = measures(&all, 1);
    let explained = measures.iter().find(|(name, _)| *name == "explained_variance").expect("it is there");
    assert_eq!(explained.1, 0.5, "{measures:?}");
}

/// In the first rounds the values become those of the policy that acts, at random here, and the policy stays.
#[test]
fn values_learn_first() {
    let mut learner = new(VtraceConfig { value_rounds: 60, ..config() });
    let apart = |learner: &Vtrace| {
        let places = learner.weights().chunks_exact(3).take(CELLS - 1);
        places.map(|row| (row[0] - row[1]).abs()).fold(0.0, f64::max)
    };
    (0..60).for_each(|_| round(&mut learner));
    assert!(apart(&learner) < 0.02, "{:?}", learner.weights());
    let values: Vec<f64> = learner.weights().chunks_exact(3).take(CELLS - 1).map(|row| row[2]).collect();
    assert!(values.is_sorted() && values[CELLS - 2] > values[0] + 0.3, "{values:?}");
    (0..20).for_each(|_| round(&mut learner));
    assert!(apart(&learner) > 0.5, "{:?}", learner.weights());
}

/// The gradient of an update is that of the loss with constant targets, where ratios are free and bounded, and where the policy
/// stays.
#[test]
fn the_gradient_is_that_of_the_loss() {
    for value_rounds in [0, 1] {
        gradient_and_loss(value_rounds);
    }
}

fn gradient_and_loss(value_rounds: u64) {
    let config = VtraceConfig { entropy_weight: 0.3, reduce: Reduce::Sum, value_rounds, ..config() };
    let mut learner = new(config.clone());
    let episodes = (0..3).map(|i| episode(&[0.0; PARAMS], i, 12, 4)).collect();
    let batch = learner.method.sequences(experience(episodes), 0).expect("they fit");
    let mut rng = Seed::root(5).rng();
    let moved: Vec<f32> = (0..PARAMS).map(|_| rng.uniform(-0.5, 0.5) as f32).collect();
    let mut gradient = vec![0.0; PARAMS];
    learner.model.set_params(&moved).expect("as many");
    add_gradients(&mut *learner.model, &learner.method.loss(&batch), &mut gradient, &mut |_| ())
        .expect("good");
    // The same sum in double precision, with targets at the weights before the step.
    let logs_of = |params: &[f64], place: usize, step: f64| {
        let row =
            [params[3 * place], params[3 * place + 1] + params[PARAMS - 1] * step, params[3 * place + 2]];
        let most = row[0].max(row[1]);
        let total = most + ((row[0] - most).exp() + (row[1] - most).exp()).ln();
        ([row[0] - total, row[1] - total], row[2])
    };
    let wide: Vec<f64> = moved.iter().map(|&x| f64::from(x)).collect();
    let at = |observation: &ObservationBuf| match observation {
        ObservationBuf::Vector(place) => place[0] as usize,
        _ => 0,
    };
    let loss = |params: &[f64]| -> f64 {
        let mut loss = 0.0;
        for Sequence { unroll, behaviour, .. } in &batch {
            let begin = f64::from(unroll.memory[0]);
            let see =
                |params: &[f64], t: usize| logs_of(params, at(&unroll.observations[t]), begin + t as f64);
            let ratios: Vec<f64> = (0..unroll.len())
                .map(|t| see(&wide, t).0[behaviour.choices[t]] - behaviour.logs[t])
                .collect();
            let values: Vec<f32> = (0..=unroll.len()).map(|t| see(&wide, t).1 as f32).collect();
            let aims = targets(
                &ratios,
                &behaviour.rewards,
                &values,
                unroll.terminated,
                config.discount,
                config.bounds(),
            );
            for t in 0..unroll.len() {
                let (logs, value) = see(params, t);
                let entropy = -logs.iter().map(|log| log.exp() * log).sum::<f64>();
                loss += config.value_weight * 0.5 * (value - aims.values[t]).powi(2);
                if value_rounds == 0 {
                    loss -= logs[behaviour.choices[t]] * aims.advantages[t] + config.entropy_weight * entropy;
                    continue;
                }
                let logits = &unroll.logits[2 * t..][..2];
                let total = logits.iter().map(|&x| f64::from(x).exp()).sum::<f64>();
                let shares = logits.iter().map(|&x| f64::from(x).exp() / total);
                loss -= shares.zip(logs).map(|(share, log)| share * log).sum::<f64>();
            }
        }
        loss
    };
    for i in 0..PARAMS {
        let side = |h: f64| {
            let mut params = wide.clone();
            params[i] += h;
            loss(&params)
        };
        let slope = (side(1e-5) - side(-1e-5)) / 2e-5;
        assert!((slope - f64::from(gradient[i])).abs() < 1e-4, "{i}: {slope}, {}", gradient[i]);
    }
}

#[test]
fn unrolls_follow_one_another() {
    let learner = new(config());
    let unrolls = episode(&[0.0; PARAMS], 3, 12, 4);
    assert!(unrolls.len() > 1);
    let ends: Vec<_> = unrolls.iter().map(|unroll| (unroll.actions[3].clone(), 0.0)).collect();
    let sequences = learner.method.sequences(experience(vec![unrolls]), 0).expect("they fit");
    assert_eq!(sequences[0].before, None);
    for (i, Sequence { before, behaviour, .. }) in sequences.iter().enumerate().skip(1) {
        assert_eq!(before.as_ref(), Some(&ends[i - 1]));
        assert!(behaviour.rewards.iter().all(|reward| *reward <= 1.0), "clipped");
    }
}

#[test]
fn a_restored_learner_goes_on_to_the_bit() {
    for config in [
        config(),
        VtraceConfig { clip_by: ClipBy::Value, optimizer: VtraceConfig::default().optimizer, ..config() },
    ] {
        let mut learner = new(config.clone());
        (0..3).for_each(|_| round(&mut learner));
        let state = learner.state();
        let mut other = new(config.clone());
        other.restore(&state).expect("its own");
        assert_eq!(other.state(), state);
        for _ in 0..3 {
            round(&mut learner);
            round(&mut other);
        }
        assert_eq!(other.state(), learner.state());
        assert_ne!(other.state(), state);
        assert_eq!(other.measures(), learner.measures());
        let mut slower = new(VtraceConfig { learning_rate: 0.001, ..config });
        assert!(slower.restore(&state).is_err());
        slower.restore_changed(&state).expect("only the rate differs");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut learner = new(config());
    round(&mut learner);
    let before = learner.state();
    let good = episode(&[0.0; PARAMS], 5, 12, 4);
    let wrong = |change: &dyn Fn(&mut Unroll)| {
        let mut unrolls = good.clone();
        change(&mut unrolls[1]);
        experience(vec![good.clone(), unrolls])
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
        (wrong(&|unroll| unroll.logits.truncate(1)), "logits"),
        (wrong(&|unroll| unroll.memory.clear()), "a recurrent state of 0 numbers"),
        (wrong(&|unroll| *unroll = Unroll::default()), "0 steps"),
        (experience(vec![vec![]]), "without any unroll"),
        (demonstration, "vtrace learns from transitions"),
    ] {
        let said = learner.receive(experience).expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
        assert_eq!(learner.state(), before, "{why}");
    }
    for (config, why) in [
        (VtraceConfig { discount: 1.5, ..config() }, "discount = 1.5; choose from 0 to 1"),
        (VtraceConfig { unroll: 0, ..config() }, "unroll = 0; choose from 1 to 1000000"),
        (VtraceConfig { batch: usize::MAX, ..config() }, "choose from 1 to 1000000"),
        (VtraceConfig { rho: 0.0, ..config() }, "rho = 0; it must be above 0"),
        (VtraceConfig { entropy_weight: -1.0, ..config() }, "entropy_weight = -1; it must be at least 0"),
        (
            VtraceConfig {
                optimizer: OptimizerConfig::RmsProp {
                    decay: 2.0,
                    momentum: 0.0,
                    epsilon: 0.1,
                    tensorflow: true,
                },
                ..config()
            },
            "optimizer: decay = 2",
        ),
    ] {
        let said = config.check().expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
    }
}

/// A loss that overflows stops the run, names update and batch, and changes nothing.
#[test]
fn a_loss_that_is_no_number_names_its_update() {
    let mut learner = new(VtraceConfig { reward_clip: 1e308, ..config() });
    round(&mut learner);
    let before = learner.state();
    let mut unrolls = episode(&[0.0; PARAMS], 5, 12, 4);
    unrolls[0].rewards.fill(1e300);
    let said = learner.receive(experience(vec![unrolls])).expect_err("it overflows").to_string();
    assert!(said.contains("diverged in generation 1") && said.contains("(batch 0 of the round)"), "{said}");
    assert_eq!(learner.state(), before);
}
