//! Contract tests for every learner in the registry, and for one that a program registers.

use foveate_core::episode::EpisodeRules;
use foveate_core::{
    Demonstration, DifferentiatedEpisode, EpisodeResult, Episodes, Experience, LearnError, Learner, Progress,
    Purpose, Record, Recording, Seed, StateDict, StateReader, StopRequest, Tensor, TensorData, Unroll, Work,
};
use foveate_toy::ToyStudent;
use foveate_train::{
    Fitness, JobSize, LEARNERS, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom,
    Stage,
};
use toml::Table;

const PARAMS: usize = 5;

/// A custom learner: follows the rewards of its transitions.
struct Follower {
    weights: Vec<f64>,
    generation: u64,
}

static FOLLOWER: LearnerDescriptor = LearnerDescriptor {
    name: "follower",
    summary: "adds the mean reward of its transitions to every weight",
    learns_from: LearnsFrom::Transitions,
    schedulable: false,
    parse: |_, table| match table.keys().next() {
        None => Ok(Box::new(FollowerSettings)),
        Some(key) => Err(format!("unknown field `{key}`, there are no settings")),
    },
};

struct FollowerSettings;

impl LearnerSettings for FollowerSettings {
    fn check(&self) -> Result<(), LearnError> {
        Ok(())
    }
    fn table(&self) -> Table {
        Table::new()
    }
    fn rows(&self, _: usize) -> usize {
        1
    }
    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        if parts.weights.is_empty() || parts.weights.iter().any(|x| !x.is_finite()) {
            return Err(LearnError::BadConfig { why: "weights must be finite numbers".into() });
        }
        Ok(Box::new(Follower { weights: parts.weights, generation: 0 }))
    }
    fn size(&self, job: &JobSize) -> LearnerSize {
        let bytes = 8 * job.params;
        LearnerSize { memory: bytes, saved: bytes, what: "weights".into(), remedy: "choose a smaller agent" }
    }
}

impl Learner for Follower {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        let row: Vec<f32> = self.weights.iter().map(|&w| w as f32).collect();
        Work {
            purpose: Purpose::Training,
            weights: foveate_core::Population::of(&row),
            jobs: episodes.jobs(1),
            rules: episodes.rules,
            record: Record::Transitions { unroll: 4 },
            epsilon: 0.0,
            draw_actions: false,
        }
    }
    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError> {
        let refuse = |why: &str| Err(LearnError::Experience { why: why.to_owned() });
        let mut rewards = Vec::new();
        for recording in &experience.recordings {
            let Recording::Transitions(unrolls) = recording else { return refuse("no transitions") };
            rewards.extend(unrolls.iter().flat_map(Unroll::iter).map(|transition| transition.reward));
        }
        let returns = experience.episodes.iter().map(|episode| episode.total);
        if rewards.is_empty() || !returns.clone().chain(rewards.iter().copied()).all(f64::is_finite) {
            return refuse("no finite rewards");
        }
        let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
        self.weights.iter_mut().for_each(|w| *w += mean);
        self.generation += 1;
        let reached = returns.sum::<f64>() / experience.episodes.len() as f64;
        Ok(Progress { generation: self.generation, best: reached, mean: reached, sigma: 0.0 })
    }
    fn weights(&self) -> &[f64] {
        &self.weights
    }
    fn generation(&self) -> u64 {
        self.generation
    }
    fn state(&self) -> StateDict {
        let generation = Tensor::from(vec![self.generation]);
        [("weights".into(), self.weights.clone().into()), ("generation".into(), generation)].into()
    }
    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        let state = StateReader(state);
        let (weights, generation) =
            (state.f64s("weights", self.weights.len())?, state.counters("generation", 1)?[0]);
        (self.weights, self.generation) = (weights.to_vec(), generation);
        Ok(())
    }
}

fn all() -> Vec<&'static LearnerDescriptor> {
    // The test that runs first registers it.
    let _ = LEARNERS.register(FOLLOWER);
    LEARNERS.iter().collect()
}

fn table(learner: &LearnerDescriptor) -> Table {
    let small = match learner.learns_from {
        LearnsFrom::Demonstrations => "updates = 5\npieces = 3\npiece = 4\nburn_in = 1\nkeep = 6",
        LearnsFrom::Derivatives => {
            "horizon = 3\nupdates = 2\ncritic_rounds = 1\ncritic_batch = 9\ncritic_units = 4"
        }
        LearnsFrom::Values => {
            "batch = 4\nfirst = 1\nsteps_per_update = 3\ncapacity = 9\nn_step = 2\npriority = 0.5"
        }
        LearnsFrom::Policies if learner.name == "vtrace" => "batch = 3\nepochs = 2\nunroll = 2",
        LearnsFrom::Policies if learner.name == "population" => {
            "members = 3\ninterval = 2\nvtrace = { batch = 3, epochs = 2, unroll = 2 }"
        }
        LearnsFrom::Policies => "batch = 3\nepochs = 2\nsegment = 2",
        LearnsFrom::Returns | LearnsFrom::Transitions => "",
    };
    small.parse().expect("TOML")
}

fn build(learner: &LearnerDescriptor, weights: Vec<f64>, seed: u64) -> Result<Box<dyn Learner>, LearnError> {
    built(learner, &table(learner), weights, seed)
}

fn built(
    learner: &LearnerDescriptor,
    settings: &Table,
    weights: Vec<f64>,
    seed: u64,
) -> Result<Box<dyn Learner>, LearnError> {
    let model = ToyStudent::linear(2, PARAMS);
    let model = if learner.learns_from == LearnsFrom::Values { model.valuing() } else { model };
    let settings = learner.settings(settings).expect(learner.name);
    settings.build(LearnerParts {
        weights,
        seed: Seed::root(seed),
        model: Some(&model),
        fitness: Fitness::Mean,
    })
}

fn new(learner: &LearnerDescriptor) -> Box<dyn Learner> {
    build(learner, vec![0.5; PARAMS], 1).expect(learner.name)
}

fn work(learner: &mut dyn Learner) -> Work {
    let seeds = |row, episode| 100 * row as u64 + episode as u64;
    learner.work(&Episodes {
        per_row: 2,
        rules: EpisodeRules { max_steps: 30, patience: Some(3) },
        seeds: &seeds,
    })
}

/// Synthetic experience, computed from the weights and the seeds alone.
fn experience(work: &Work) -> Experience {
    let mut experience = Experience::default();
    for job in &work.jobs {
        let genome = work.weights.genome(job.genome);
        let mut rng = Seed::root(job.env_seed).rng();
        let total = -genome.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() + 0.01 * rng.normal();
        experience.episodes.push(EpisodeResult { total, steps: 8, ..EpisodeResult::default() });
        let mut draw = |n: usize| (0..n).map(|_| rng.normal() as f32).collect::<Vec<f32>>();
        match work.record {
            Record::Returns => {}
            Record::Demonstrations(_) => {
                let inputs: Vec<f32> = draw(8).into_iter().flat_map(|x| [x, 1.0]).collect();
                let actions = inputs.chunks(2).map(|input| 0.3 * input[0] - 0.1 * input[1]).collect();
                experience.recordings.push(Recording::Demonstration(Demonstration {
                    inputs,
                    actions,
                    steps: 8,
                    ..Demonstration::default()
                }));
            }
            Record::Derivatives | Record::Window { .. } => {
                let episode = DifferentiatedEpisode {
                    begin: 0,
                    steps: 8,
                    states: 2,
                    inputs: draw(16),
                    observations: draw(18),
                    rewards: draw(8),
                    state: draw(8 * 6),
                    reward: draw(8 * 3),
                    observation: draw(9 * 4),
                    terminated: job.episode == 1,
                };
                experience.recordings.push(Recording::Differentiated(episode));
            }
            Record::Transitions { .. } => {
                let observations = draw(3).into_iter().map(|x| foveate_core::ObservationBuf::Vector(vec![x]));
                experience.recordings.push(Recording::Transitions(vec![Unroll {
                    observations: observations.collect(),
                    actions: vec![foveate_core::ActionBuf::Discrete(0); 2],
                    rewards: vec![total; 2],
                    logits: vec![0.0; 4],
                    ..Unroll::default()
                }]));
            }
        }
    }
    experience
}

fn round(learner: &mut dyn Learner) -> Progress {
    let work = work(learner);
    learner.receive(experience(&work)).expect("its own experience")
}

#[test]
fn work_says_what_it_is_and_stays_until_it_is_received() {
    for described in all() {
        let mut learner = new(described);
        let settings = described.settings(&table(described)).expect(described.name);
        for generation in 0..3 {
            assert_eq!(learner.generation(), generation, "{}", described.name);
            let first = work(&mut *learner);
            assert_eq!(first, work(&mut *learner), "{}: asking does not move", described.name);
            assert_eq!((first.purpose, first.rules.max_steps), (Purpose::Training, 30));
            assert_eq!((first.weights.len(), first.weights.params()), (settings.rows(PARAMS), PARAMS));
            assert_eq!(first.jobs.len(), 2 * first.weights.len());
            let learns_from = match first.record {
                Record::Transitions { .. }
                    if matches!(described.learns_from, LearnsFrom::Values | LearnsFrom::Policies) =>
                {
                    described.learns_from
                }
                Record::Returns => LearnsFrom::Returns,
                Record::Demonstrations(_) => LearnsFrom::Demonstrations,
                Record::Derivatives | Record::Window { .. } => LearnsFrom::Derivatives,
                Record::Transitions { .. } => LearnsFrom::Transitions,
            };
            assert_eq!(learns_from, described.learns_from, "{}", described.name);
            experience(&first).check(&first).expect("it answers the work");
            let progress = round(&mut *learner);
            assert_eq!(progress.generation, generation + 1, "{}", described.name);
            assert!(progress.best >= progress.mean && progress.sigma >= 0.0, "{progress:?}");
        }
        assert_ne!(learner.weights(), [0.5; PARAMS], "{} learns", described.name);
    }
}

#[test]
fn a_restored_learner_resumes_bit_for_bit() {
    for described in all() {
        let mut straight = new(described);
        for stop in 0..4 {
            let mut other = new(described);
            // No earlier state may survive.
            for _ in 0..stop {
                round(&mut *other);
            }
            work(&mut *other);
            other.restore(&straight.state()).expect("its own state");
            assert_eq!(other.state(), straight.state(), "{}", described.name);
            assert_eq!((other.weights(), other.centre()), (straight.weights(), straight.centre()));
            assert_eq!(work(&mut *other), work(&mut *straight), "{}", described.name);
            round(&mut *straight);
            round(&mut *other);
            assert_eq!(other.state(), straight.state(), "{}", described.name);
        }
        // The state survives serialisation, shapes included.
        let text = serde_json::to_string(&straight.state()).expect("finite numbers");
        let state: StateDict = serde_json::from_str(&text).expect("its own");
        assert_eq!(state, straight.state(), "{}", described.name);
        let mut changed = new(described);
        changed.restore_changed(&state).expect("the same settings");
        assert_eq!(changed.state(), state, "{}", described.name);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    for described in all() {
        let name = described.name;
        let mut learner = new(described);
        round(&mut *learner);
        let before = learner.state();
        let work = work(&mut *learner);
        let good = experience(&work);
        let mut nan = good.clone();
        nan.episodes[0].total = f64::NAN;
        let mut wrong = vec![Experience::default(), nan];
        if work.record != Record::Returns {
            wrong.push(Experience { recordings: vec![], ..good.clone() });
            let other = match good.recordings[0] {
                Recording::Demonstration(_) | Recording::Differentiated(_) => Recording::Transitions(vec![]),
                Recording::Transitions(_) => Recording::Demonstration(Demonstration::default()),
            };
            wrong.push(Experience { recordings: vec![other; work.jobs.len()], ..good.clone() });
        }
        for experience in wrong {
            learner.receive(experience).expect_err(name);
            assert_eq!(learner.state(), before, "{name}");
        }
        for key in before.keys() {
            let mut state = before.clone();
            state.remove(key);
            if learner.restore(&state).is_err() {
                assert_eq!(learner.state(), before, "{name} without {key}");
            }
        }
        learner.restore(&StateDict::new()).expect_err(name);
        // The learner continues as if nothing had happened.
        let mut calm = new(described);
        round(&mut *calm);
        round(&mut *calm);
        learner.receive(good).expect("its own");
        assert_eq!(learner.state(), calm.state(), "{name}");
        for weights in [vec![], vec![0.0, f64::NAN, 0.0, 0.0, 0.0]] {
            assert!(build(described, weights, 1).is_err(), "{name}");
        }
    }
}

/// Tensors whose length only one other bounds, so that a shorter one may be right.
const OF_ANY_LENGTH: [&str; 3] = ["played", "covariance_grown", "covariance_shrunk"];

/// This tensor with other lengths, and with numbers that no learner saves.
fn forged(tensor: &Tensor) -> (Vec<Tensor>, Vec<Tensor>) {
    fn lengths<T: Clone + Default>(values: &[T]) -> Vec<Vec<T>> {
        let longer = [values, &[T::default()]].concat();
        let mut all = vec![longer, [values, values, &[T::default()]].concat()];
        if !values.is_empty() {
            all.extend([vec![], values[..values.len() - 1].to_vec(), values[1..].to_vec()]);
        }
        all
    }
    fn with<T: Copy>(values: &[T], number: T) -> Vec<T> {
        values.iter().enumerate().map(|(i, &x)| if i == values.len() / 2 { number } else { x }).collect()
    }
    fn tensors<T>(all: Vec<Vec<T>>) -> Vec<Tensor>
    where
        Tensor: From<Vec<T>>,
    {
        all.into_iter().map(Tensor::from).collect()
    }
    match tensor.data() {
        TensorData::F32(v) => {
            let numbers = [f32::NAN, f32::INFINITY, f32::MAX, f32::MIN, -1.0, 0.0].map(|x| with(v, x));
            (tensors(lengths(v)), tensors(numbers.into()))
        }
        TensorData::F64(v) => {
            let numbers = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, -1.0, 0.0].map(|x| with(v, x));
            (tensors(lengths(v)), tensors(numbers.into()))
        }
        TensorData::U64(v) => {
            let numbers = [u64::MAX, u64::MAX / 2, 1 << 40, 0].map(|x| with(v, x));
            (tensors(lengths(v)), tensors(numbers.into()))
        }
        TensorData::U8(v) => {
            let bytes = |v: Vec<u8>| Tensor::new(vec![v.len()], TensorData::U8(v)).expect("as many");
            (lengths(v).into_iter().map(bytes).collect(), vec![bytes(with(v, 255))])
        }
        other => panic!("no learner saves {}", other.dtype()),
    }
}

#[test]
fn a_forged_state_is_refused_and_never_panics() {
    for described in all() {
        let name = described.name;
        let mut learner = new(described);
        for _ in 0..3 {
            round(&mut *learner);
        }
        let before = learner.state();
        for (key, tensor) in &before {
            let (lengths, numbers) = forged(tensor);
            let any_length = OF_ANY_LENGTH.iter().any(|free| key.ends_with(free));
            for (resized, tensor) in
                lengths.into_iter().map(|t| (true, t)).chain(numbers.into_iter().map(|t| (false, t)))
            {
                let what = format!("{name}: {key} as {:?} {:?}", tensor.shape(), tensor.data());
                let mut state = before.clone();
                state.insert(key.clone(), tensor);
                let mut other = new(described);
                let fresh = other.state();
                let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let restored = other.restore(&state);
                    if restored.is_ok() {
                        // What was taken may lead anywhere, but not to a panic.
                        let work = work(&mut *other);
                        let _ = other.receive(experience(&work));
                        other.state();
                    }
                    restored
                }));
                let Ok(restored) = caught else { panic!("{what}: a panic") };
                match restored {
                    Err(_) => assert_eq!(other.state(), fresh, "{what}"),
                    Ok(()) => assert!(!resized || any_length, "{what}: taken"),
                }
            }
        }
    }
}

#[test]
fn a_stop_is_seen_between_updates_and_changes_nothing() {
    for described in all().into_iter().filter(|described| described.learns_from.needs_model()) {
        let mut learner = new(described);
        round(&mut *learner);
        let before = learner.state();
        let work = work(&mut *learner);
        learner.stop_when(&StopRequest::new(|| true));
        let stopped = learner.receive(experience(&work));
        assert_eq!(stopped, Err(LearnError::Stopped), "{}", described.name);
        assert_eq!(learner.state(), before, "{}", described.name);
        learner.stop_when(&StopRequest::default());
        learner.receive(experience(&work)).expect("its own");
        let mut calm = new(described);
        round(&mut *calm);
        round(&mut *calm);
        assert_eq!(learner.state(), calm.state(), "{}", described.name);
    }
}

#[test]
fn descriptors_are_complete() {
    let job =
        JobSize { params: 1000, longest: 500, steps: 100_000, tracks: 8, observed: 100, demonstrated: 30 };
    for described in all() {
        assert!(!described.summary.is_empty() && !described.summary.ends_with('.'), "{}", described.name);
        let defaults = described.defaults();
        let settings = described.settings(&defaults).expect("its own defaults");
        settings.check().expect("its own defaults");
        assert_eq!(settings.table(), defaults, "{}", described.name);
        let size = settings.size(&job);
        assert!(
            size.memory >= size.saved && size.saved > 0 && !size.what.is_empty() && !size.remedy.is_empty()
        );
        let said = described.settings(&"colour = 3".parse().expect("TOML")).err().expect("no such setting");
        assert!(said.contains("unknown field `colour`"), "{}: {said}", described.name);
        // A stage of a recipe finds the learner by its name.
        let learner = Stage::new("a", 1000).learner(described.name, 0).expect(described.name);
        assert_eq!((learner.descriptor().name, learner.table()), (described.name, &defaults));
    }
    let without =
        LearnerParts { weights: vec![0.0; 2], seed: Seed::root(1), model: None, fitness: Fitness::Mean };
    let imitation =
        LEARNERS.find("imitation").expect("it is there").settings(&Table::new()).expect("its defaults");
    let said = imitation.build(without).err().expect("no student").to_string();
    assert!(said.contains("a part that learns by gradients; this one has none"), "{said}");
}

/// A digest of the bits of a state.
fn digest(state: &StateDict) -> u64 {
    let text = serde_json::to_string(state).expect("finite numbers");
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The digests of the learners' states after four rounds. They change only with a learner's results.
const DIGESTS: [(&str, u64); 14] = [
    ("rank-es", 0xb74e_e916_ee59_81a5),
    ("snes", 0x0975_a973_db53_12c8),
    ("openai-es", 0x8564_99a2_503e_f0ea),
    ("pgpe", 0xa191_96ba_d426_0cb4),
    ("cma-es", 0xa446_2648_570d_4706),
    ("sep-cma-es", 0xfa9f_3dd8_6924_b6cb),
    ("simple-ga", 0xc8ad_9938_0f69_0fb5),
    ("imitation", 0x7a66_f153_8405_9f97),
    ("shac", 0x4541_b431_df69_59db),
    ("dqn", 0x558e_5a44_92fe_8dab),
    ("ppo", 0xb073_21ea_5ea6_4a11),
    ("vtrace", 0x68e8_23ab_45b0_f3a5),
    ("population", 0x7ec8_59e9_08e4_e57b),
    ("follower", 0x71c9_4da3_7bf6_0fa1),
];

#[test]
fn states_keep_their_bits() {
    for described in all() {
        let mut learner = new(described);
        for _ in 0..4 {
            round(&mut *learner);
        }
        let digest = digest(&learner.state());
        let expect =
            DIGESTS.iter().find(|(name, _)| *name == described.name).expect("a line for each learner");
        assert_eq!(digest, expect.1, "{}: {digest:016x}", described.name);
    }
}

/// Settings in a state are the numbers, in the order, that the first versions wrote, so that their checkpoints resume.
#[test]
fn settings_are_numbers_in_the_order_of_older_states() {
    let imitation = &[600.0, 1200.0, 24.0, 150.0, 60.0, 1.0, 1.0, 0.003, 0.998][..];
    let shac = &[128.0, 1.0, 8.0, 1024.0, 32.0, 0.995, 0.95, 0.002, 0.99, 10.0, 20.0, 0.001, 0.05, 1.0][..];
    let ppo = &[4.0, 256.0, 16.0, 0.99, 0.95, 0.2, 0.0003, 0.5, 0.5, 0.01][..];
    let vtrace = &[
        50.0, 32.0, 1.0, 0.99, 0.0002, 1280.0, 0.5, 0.01, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 0.99, 0.0, 0.01,
    ][..];
    let dqn = |target: f64, huber: f64| {
        let counts = [1.0, target, 32.0, 4.0, 1000.0, 1e5, f64::from(1 << 30), 1.0, 1.0, huber];
        [&counts[..], &[0.1, 0.99, 500.0, 0.0005, 10.0, 0.0, 0.0, 0.4, 0.0]].concat()
    };
    let members = [16.0, 10.0, 0.0, 5.0, 1.0 / 3.0, 1.2];
    for (learner, settings, first, later) in [
        ("imitation", "", imitation, &[][..]),
        ("imitation", "clip = 2.0", imitation, &[2.0]),
        ("imitation", "in_turn = true", imitation, &[1.0, 1.0]),
        ("imitation", "stakes = true", imitation, &[1.0, 0.0, 1.0, 0.0]),
        ("imitation", "priority = 0.5", imitation, &[1.0, 0.0, 0.0, 0.0, 0.0, 0.5]),
        ("imitation", "turn = 5", imitation, &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0]),
        ("shac", "", shac, &[]),
        ("shac", "whole_episodes = false", shac, &[0.0, 0.0]),
        ("shac", "episode_clip = 2.0", shac, &[1.0, 2.0]),
        ("ppo", "", ppo, &[]),
        ("ppo", "reward_scale = 10.0", ppo, &[10.0]),
        ("vtrace", "", vtrace, &[]),
        ("vtrace", "value_rounds = 3", vtrace, &[3.0]),
        (
            "vtrace",
            "clip_by = 'value'\nreduce = 'mean'\noptimizer = { name = 'adam' }",
            &vtrace[..12],
            &[1.0, 1.0, 0.0, 0.9, 0.999, 1e-8],
        ),
        ("dqn", "", &dqn(0.0, 0.0), &[]),
        ("dqn", "target = 'before'\nloss = 'huber'\ntarget_temperature = 0.5", &dqn(2.0, 1.0), &[0.5]),
        ("population", "", &members, vtrace),
    ] {
        let described = LEARNERS.find(learner).expect("it is there");
        let settings: Table = settings.parse().expect("TOML");
        let built = built(described, &settings, vec![0.5; PARAMS], 1).expect(learner);
        let state = built.state();
        let numbers = StateReader(&state).any_f64s("settings").expect("numbers");
        assert_eq!(numbers, [first, later].concat(), "{learner}: {settings}");
    }
}

/// A batch in shares learns what a whole one does, but for rounding, and its state is another one's.
#[test]
fn a_batch_in_shares_means_the_same() {
    for learner in ["ppo", "dqn"] {
        let described = LEARNERS.find(learner).expect("it is there");
        let mut whole = new(described);
        let mut settings = table(described);
        settings.insert("shares".into(), 2.into());
        let mut shares = built(described, &settings, vec![0.5; PARAMS], 1).expect(learner);
        for _ in 0..3 {
            round(&mut *whole);
            round(&mut *shares);
        }
        assert_ne!(whole.weights(), [0.5; PARAMS]);
        for (one, two) in whole.weights().iter().zip(shares.weights()) {
            assert!((one - two).abs() < 1e-4, "{learner}: {one}, {two}");
        }
        let said = whole.restore(&shares.state()).expect_err("other settings").to_string();
        assert!(said.contains("settings"), "{said}");
        settings.insert("shares".into(), 0.into());
        let said = built(described, &settings, vec![0.5; PARAMS], 1).err().expect("none").to_string();
        assert!(said.contains("shares = 0; choose from 1 to 1000000"), "{said}");
    }
}
