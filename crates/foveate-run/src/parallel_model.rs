//! Computes the gradients of the parts of an update on all cores.
//!
//! An update takes about a millisecond on one thread, too little to start threads for. So a
//! [`ParallelModel`] keeps its threads, each with a copy of the model, during the whole run; they sleep
//! while there is no work. All threads, the caller's included, take parts in turn and write the gradient
//! of a part into its own buffer. The caller adds these in the order of the parts, so the result is
//! bit-identical for any number of threads. What a part is, the learner decides, see [`GradientParts`].

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foveate_core::{
    DifferentiatedEpisode, Distributed, GradientParts, LossSums, Model, Outputs, PartScratch, PolicyError,
    Student, Taught, Windows, add_learnt,
};

use crate::pool::{Pool, lock, message};

/// A model that divides the parts of an update among threads; see the [module](self). Clones share the
/// threads, which end with the last clone.
pub struct ParallelModel {
    /// The caller's own copy.
    replica: Replica,
    /// `[n_params]`: the most recent weights.
    flat: Vec<f32>,
    pool: Arc<Mutex<Pool<GradientQueue>>>,
    /// Most threads, the caller's included.
    threads: usize,
}

/// A model, and the version of its weights.
struct Replica {
    model: Box<dyn Model>,
    /// An unchanged copy, for use after a panic has left the other in an unknown state.
    spare: Box<dyn Model>,
    /// [`Batch::version`] of its weights; `None` if it has none.
    version: Option<u64>,
    scratch: PartScratch,
}

/// State shared by all threads.
struct GradientQueue {
    /// A thread holds it for reading while it computes a part.
    batch: RwLock<Batch>,
    /// Number of the next free part in its turn; it is set to 0 while `batch` is locked for writing.
    next: AtomicUsize,
}

/// The parts and weights of a turn, and the results.
#[derive(Default)]
struct Batch {
    /// `[n_params]`
    flat: Vec<f32>,
    /// Increases with every change of `flat`.
    version: u64,
    learns: Range<usize>,
    parts: Option<Arc<dyn GradientParts>>,
    /// Those of them that are computed in this turn.
    turn: Range<usize>,
    /// One result per part of a turn; there may be more.
    answers: Vec<Mutex<PartGradient>>,
}

#[derive(Default)]
struct PartGradient {
    /// `[n_params]`; zero outside of the trained parameters.
    gradient: Vec<f32>,
    /// What is known of the part; or the reason why there is nothing; `None` until the part is complete.
    outcome: Option<Result<LossSums, String>>,
}

impl ParallelModel {
    /// Uses at most `threads` threads (at least one, the caller's), and fewer if the system refuses some.
    /// They start with the first computation of gradients; set weights before that.
    #[expect(clippy::needless_pass_by_value, reason = "each thread gets a copy; the original ends here")]
    pub fn new(model: Box<dyn Model>, threads: usize) -> Self {
        let shared = GradientQueue { batch: RwLock::default(), next: AtomicUsize::new(0) };
        let pool = Arc::new(Mutex::new(Pool::new("replica", threads, shared)));
        ParallelModel { replica: Replica::new(&*model), flat: Vec::new(), pool, threads }
    }
}

impl Distributed for ParallelModel {
    /// Converts a panic during a part into an error.
    fn add_gradients(
        &mut self,
        parts: &Arc<dyn GradientParts>,
        gradient: &mut [f32],
        receive: &mut dyn FnMut(&LossSums),
    ) -> Result<(), PolicyError> {
        let ParallelModel { replica, flat, pool, .. } = self;
        gradient.fill(0.0);
        if replica.version.is_none() {
            // A clone, or a model that a panic left without weights.
            replica.model.set_params(flat)?;
            replica.version = Some(0);
        }
        let count = parts.count();
        if count == 1 {
            // No thread has to be woken, and nothing to be added.
            let sums = replica.study(&**parts, 0, gradient);
            receive(&sums.map_err(|why| PolicyError::Study { piece: 0, why })?);
            return Ok(());
        }
        let mut pool = lock(pool);
        pool.start(count, || {
            let mut replica = Replica::new(&*replica.spare);
            move |shared: &GradientQueue| replica.work(shared)
        });
        let at_once = parts.at_once().max(2 * pool.most()).min(count).max(1);
        let mut batch = pool.shared().write();
        batch.prepare(flat, replica.model.learns(), at_once);
        batch.parts = Some(Arc::clone(parts));
        replica.version = Some(batch.version);
        drop(batch);
        let mut studied = Ok(());
        for first in (0..count).step_by(at_once) {
            if studied.is_err() {
                break;
            }
            let turn = first..count.min(first + at_once);
            let jobs = turn.len();
            pool.shared().begin(turn);
            let died = pool.turn(jobs, |shared| replica.work(shared)).err();
            studied = pool.shared().read().add_to(gradient, receive, died.as_deref());
        }
        // Releases what was learnt from.
        pool.shared().write().parts = None;
        studied
    }
}

impl Replica {
    fn new(model: &dyn Model) -> Self {
        let (model, spare) = (model.boxed_clone(), model.boxed_clone());
        Replica { model, spare, version: None, scratch: PartScratch::default() }
    }

    /// Computes parts until none is left.
    fn work(&mut self, shared: &GradientQueue) {
        let batch = shared.read();
        let Some(parts) = &batch.parts else { return };
        loop {
            let index = shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = batch.turn.clone().nth(index) else { return };
            let mut answer = lock(&batch.answers[index]);
            let PartGradient { gradient, outcome } = &mut *answer;
            *outcome = None;
            gradient[batch.learns.clone()].fill(0.0);
            if self.version != Some(batch.version) {
                if let Err(error) = self.model.set_params(&batch.flat) {
                    *outcome = Some(Err(error.to_string()));
                    continue;
                }
                self.version = Some(batch.version);
            }
            *outcome = Some(self.study(&**parts, part, gradient));
        }
    }

    /// Computes a part; the error says why not.
    fn study(
        &mut self,
        parts: &dyn GradientParts,
        part: usize,
        gradient: &mut [f32],
    ) -> Result<LossSums, String> {
        let Replica { model, scratch, .. } = self;
        match catch_unwind(AssertUnwindSafe(|| parts.study(part, &mut **model, scratch, gradient))) {
            Ok(studied) => studied.map_err(|error| error.to_string()),
            Err(panic) => {
                (self.model, self.version) = (self.spare.boxed_clone(), None);
                Err(format!("panicked: {}", message(&*panic)))
            }
        }
    }
}

impl Batch {
    /// Sets the weights, and allocates `answers` results.
    fn prepare(&mut self, flat: &[f32], learns: Range<usize>, answers: usize) {
        self.flat.clear();
        self.flat.extend_from_slice(flat);
        self.version += 1;
        self.learns = learns;
        if self.answers.len() < answers {
            self.answers.resize_with(answers, Mutex::default);
        }
        for answer in &mut self.answers {
            answer.get_mut().unwrap_or_else(PoisonError::into_inner).gradient.resize(flat.len(), 0.0);
        }
    }

    /// Adds the gradients of a turn to `gradient`, in order, and passes what is known of the parts to `receive`. `died` is the
    /// message of a thread that died.
    fn add_to(
        &self,
        gradient: &mut [f32],
        receive: &mut dyn FnMut(&LossSums),
        died: Option<&str>,
    ) -> Result<(), PolicyError> {
        for (part, answer) in self.turn.clone().zip(&self.answers) {
            let answer = lock(answer);
            let failed = |why: String| PolicyError::Study { piece: part, why };
            match &answer.outcome {
                Some(Ok(of_part)) => receive(of_part),
                Some(Err(why)) => return Err(failed(why.clone())),
                None => {
                    return Err(failed(format!("its thread died: {}", died.unwrap_or("no one knows why"))));
                }
            }
            add_learnt(gradient, &answer.gradient, &self.learns);
        }
        Ok(())
    }
}

impl GradientQueue {
    /// These parts are the jobs of the next turn.
    fn begin(&self, turn: Range<usize>) {
        let mut batch = self.write();
        batch.turn = turn;
        self.next.store(0, Ordering::Relaxed);
    }

    fn write(&self) -> RwLockWriteGuard<'_, Batch> {
        self.batch.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Batch> {
        self.batch.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for ParallelModel {
    fn learns(&self) -> Range<usize> {
        self.replica.model.learns()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.replica.model.set_params(flat)?;
        self.replica.version = Some(0);
        self.flat.clear();
        self.flat.extend_from_slice(flat);
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        let Replica { model, spare, .. } = &self.replica;
        let replica = Replica { model: model.boxed_clone(), ..Replica::new(&**spare) };
        Box::new(ParallelModel {
            replica,
            flat: self.flat.clone(),
            pool: Arc::clone(&self.pool),
            threads: self.threads,
        })
    }

    fn outputs(&mut self) -> Option<&mut dyn Outputs> {
        self.replica.model.outputs()
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        self.replica.model.student()
    }

    fn taught(&self, what: Taught) -> Option<Box<dyn Model>> {
        let model = self.replica.model.taught(what)?;
        Some(Box::new(ParallelModel::new(model, self.threads)))
    }

    fn study_world(
        &mut self,
        episode: &DifferentiatedEpisode,
        windows: &Windows<'_>,
        gradient: &mut [f32],
    ) -> Result<f64, PolicyError> {
        self.replica.model.study_world(episode, windows, gradient)
    }

    fn distributed(&mut self) -> Option<&mut dyn Distributed> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use foveate_agents::registry::{self, Init, initial_params};
    use foveate_core::{
        Demonstration, EpisodeResult, Experience, LearnError, Learner, Piece, Pieces, Recording, Seed,
        Unroll, add_gradients,
    };
    use foveate_train::imitation::{Imitation, ImitationConfig};
    use foveate_train::{Fitness, LEARNERS, LearnerParts};
    use serde_json::Value;

    use super::*;
    use foveate_toy::ToyStudent;

    const AGENT: &str = "attention-agent";

    fn real() -> Box<dyn Model> {
        registry::model(AGENT, &Value::Null).expect("it exists")
    }

    fn params(seed: u64) -> Vec<f32> {
        initial_params(AGENT, &Value::Null, Init::Torch, Seed::root(seed)).expect("the defaults are good")
    }

    /// Random numbers for a student of this shape.
    fn demonstration(of: &mut dyn Model, seed: u64, steps: usize) -> Demonstration {
        let of = of.student().expect("it learns from demonstrations");
        let mut rng = Seed::root(seed).rng();
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(-0.5, 0.5) as f32).collect() };
        let inputs = draw(of.inputs() * steps);
        Demonstration { inputs, actions: draw(of.actions() * steps), steps, ..Demonstration::default() }
    }

    /// The gradient of these pieces, and their errors.
    fn study(
        model: &mut dyn Model,
        pieces: &[Piece],
        dropout: Option<(f64, Seed)>,
        params: usize,
    ) -> Result<(Vec<f32>, Vec<f64>), PolicyError> {
        let parts: Arc<dyn GradientParts> = Arc::new(Pieces { pieces: pieces.to_vec(), burn_in: 2, dropout });
        // What was there before does not count.
        let (mut gradient, mut errors) = (vec![7.0; params], vec![]);
        add_gradients(model, &parts, &mut gradient, &mut |sums| errors.push(sums[0]))?;
        Ok((gradient, errors))
    }

    /// The states after two rounds of imitation, with more segments than are computed at once.
    fn rounds(learner: Box<dyn Model>) -> Vec<foveate_core::StateDict> {
        let config = ImitationConfig { updates: 3, pieces: 40, piece: 20, ..Default::default() };
        let demonstration = |i: u64| demonstration(&mut *real(), i, 30 + (i % 10) as usize);
        let mean = params(1).into_iter().map(f64::from).collect();
        let mut learner = Imitation::new(config, mean, Seed::root(2), learner).expect("fine");
        let mut round = |round: u64| {
            let recordings = (0..4_u64).map(|i| Recording::Demonstration(demonstration(10 * round + i)));
            let episodes = vec![EpisodeResult::default(); 4];
            let experience =
                Experience { recordings: recordings.collect(), ..Experience::of_episodes(episodes) };
            learner.receive(experience).expect("fine");
            learner.state()
        };
        vec![round(0), round(1)]
    }

    #[test]
    fn any_number_of_threads_gives_the_bits_of_none() {
        let expect = rounds(real());
        assert_ne!(expect[0], expect[1]);
        for threads in [0, 1, 2, 3, 16] {
            assert!(rounds(Box::new(ParallelModel::new(real(), threads))) == expect, "{threads} threads");
        }
    }

    #[test]
    fn any_number_of_threads_leaves_out_the_same_patches() {
        let settings = serde_json::json!({
            "senses": "picture", "image": [12, 12], "frames": 2, "codes": [2, 3], "learns": "all",
            "actions": [[0.0, 1.0], [0.0, 1.0]], "head": { "kind": "dense", "hidden": [4] },
        });
        let fresh = || registry::model("attention-neuron", &settings).expect("it learns");
        let mut alone = fresh();
        let flat = initial_params("attention-neuron", &settings, Init::Torch, Seed::root(1)).expect("good");
        let mut demonstration = demonstration(&mut *alone, 1, 10);
        demonstration.inputs.fill(15.0);
        for step in 0..10 {
            let picture: Vec<u8> = (0..144).map(|i| (i * (step + 3) * 31 % 251) as u8).collect();
            demonstration.pictures.push(&picture);
        }
        let demonstration = Arc::new(demonstration);
        let pieces: Vec<Piece> =
            (0..9).map(|i| Piece { demonstration: Arc::clone(&demonstration), steps: i..i + 1 }).collect();
        let study = |model: &mut dyn Model, seed: Option<u64>| {
            model.set_params(&flat).expect("as many");
            study(model, &pieces, seed.map(|seed| (0.5, Seed::root(seed))), flat.len()).expect("good")
        };
        let expect = [None, Some(1), Some(2)].map(|seed| study(&mut *alone, seed));
        assert!(expect[0] != expect[1] && expect[1] != expect[2]);
        for threads in [1, 2, 5] {
            let mut group = ParallelModel::new(fresh(), threads);
            let got = [None, Some(1), Some(2)].map(|seed| study(&mut group, seed));
            assert!(got == expect, "{threads} threads");
        }
    }

    #[test]
    fn a_panic_is_an_error_and_the_group_lives_on() {
        let mut alone = ToyStudent::new();
        let mut piece = |seed: u64, from: usize, steps: usize| Piece {
            demonstration: Arc::new(demonstration(&mut alone, seed, steps)),
            steps: from..steps,
        };
        let good: Vec<Piece> = (0..9).map(|i| piece(i, i as usize, 10)).collect();
        let mut bad = good.clone();
        for place in [4, 7] {
            bad[place] = piece(99, 0, 1);
        }
        let flat = [0.3, -0.2, 0.1];
        alone.set_params(&flat).expect("three");
        let expect = study(&mut alone, &good, None, 3).expect("fine");
        assert!(expect.1.len() == 9 && expect.1.iter().all(|&error| error > 0.0));
        assert!(expect.0.iter().all(|&g| g != 0.0));
        for threads in [1, 2, 5] {
            let mut group = ParallelModel::new(Box::new(ToyStudent::new().panicking()), threads);
            group.set_params(&flat).expect("three");
            for _ in 0..5 {
                let why = "panicked: too short".to_owned();
                let failed = study(&mut group, &bad, None, 3).expect_err("it panics");
                assert_eq!(failed, PolicyError::Study { piece: 4, why: why.clone() });
                // A part that is alone is computed by the caller's model.
                let failed = study(&mut group, &bad[4..5], None, 3).expect_err("it panics");
                assert_eq!(failed, PolicyError::Study { piece: 0, why });
                assert_eq!(study(&mut group, &good, None, 3), Ok(expect.clone()), "{threads} threads");
                // A clone has the same weights, and shares the threads.
                let mut copy = group.boxed_clone();
                assert_eq!(study(&mut *copy, &good, None, 3), Ok(expect.clone()), "copy, {threads} threads");
            }
            let nothing = study(&mut group, &[], None, 3).expect("nothing to do");
            assert_eq!(nothing, (vec![0.0; 3], vec![]));
        }
    }

    /// Which threads computed something.
    struct Watched {
        parts: usize,
        threads: Mutex<Vec<std::thread::ThreadId>>,
        meet: std::sync::Barrier,
    }

    impl GradientParts for Watched {
        fn count(&self) -> usize {
            self.parts
        }

        fn study(
            &self,
            part: usize,
            _: &mut dyn Model,
            _: &mut PartScratch,
            gradient: &mut [f32],
        ) -> Result<LossSums, PolicyError> {
            self.meet.wait();
            lock(&self.threads).push(std::thread::current().id());
            gradient[0] = part as f32;
            Ok([part as f64; 8])
        }
    }

    /// Parts that wait for one another are only finished by threads that compute at the same time.
    #[test]
    fn parts_are_computed_at_the_same_time() {
        let mut group = ParallelModel::new(Box::new(ToyStudent::new()), 3);
        group.set_params(&[0.1; 3]).expect("three");
        let watched =
            Arc::new(Watched { parts: 3, threads: Mutex::default(), meet: std::sync::Barrier::new(3) });
        let (mut gradient, mut order) = ([0.0; 3], vec![]);
        let parts: Arc<dyn GradientParts> = Arc::clone(&watched) as _;
        add_gradients(&mut group, &parts, &mut gradient, &mut |sums| order.push(sums[0])).expect("fine");
        let mut threads = lock(&watched.threads).clone();
        threads.sort_by_key(|id| format!("{id:?}"));
        threads.dedup();
        assert_eq!((threads.len(), gradient[0], order), (3, 3.0, vec![0.0, 1.0, 2.0]));
    }

    type StateAndLog = (foveate_core::StateDict, Vec<(&'static str, f64)>);

    /// Two rounds of a learner by an agent's outputs, with this many threads: the state and the log.
    fn outputs_rounds(
        learner: &str,
        settings: &str,
        agent: &Value,
        threads: usize,
    ) -> Result<StateAndLog, LearnError> {
        use foveate_core::{ActionBuf, ObservationBuf};
        let name = if learner == "dqn" { "relational" } else { "actor-critic" };
        let model = ParallelModel::new(registry::model(name, agent).expect("it learns"), threads);
        let weights = initial_params(name, agent, Init::Torch, Seed::root(1)).expect("good");
        let weights = weights.into_iter().map(f64::from).collect();
        let parts =
            LearnerParts { weights, seed: Seed::root(2), model: Some(&model), fitness: Fitness::Mean };
        let settings = settings.parse().expect("TOML");
        let described = LEARNERS.find(learner).expect("it is there");
        let mut learner = described.settings(&settings).expect("good").build(parts)?;
        for round in 0..2 {
            let mut rng = Seed::root(3).child("round", round).rng();
            let mut episode = || {
                let steps = 30;
                let mut see = || match name {
                    "relational" => {
                        let codes = (0..75).map(|_| rng.below(4) as u8).collect();
                        ObservationBuf::Grid(foveate_core::GridBuf::new(5, 5, 3, codes).expect("as many"))
                    }
                    _ => ObservationBuf::Vector((0..6).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()),
                };
                let observations = (0..=steps).map(|_| see()).collect();
                let actions = (0..steps).map(|_| ActionBuf::Discrete(rng.below(3) as usize)).collect();
                let rewards = (0..steps).map(|_| rng.uniform(0.0, 1.0)).collect();
                Recording::Transitions(vec![Unroll {
                    observations,
                    actions,
                    rewards,
                    logits: vec![0.0; 3 * steps],
                    memory: vec![0.0; 8],
                    truncated: true,
                    ..Unroll::default()
                }])
            };
            let recordings = (0..3).map(|_| episode()).collect();
            let episodes = vec![EpisodeResult::default(); 3];
            learner.receive(Experience { recordings, ..Experience::of_episodes(episodes) })?;
        }
        Ok((learner.state(), learner.measures()))
    }

    /// PPO and DQN have the same bits on one thread and on many, with and without memory; they depend on the number of shares.
    #[test]
    fn outputs_learn_with_the_bits_of_one_thread() {
        let dense = serde_json::json!({
            "observation": vec![[-1.0, 1.0]; 6], "actions": vec![[0.0, 1.0]; 3], "hidden": [8],
        });
        let mut lstm = dense.clone();
        lstm["lstm"] = 4.into();
        let grid = serde_json::json!({ "view": [5, 5], "actions": 3, "filters": [4, 4], "features": 8 });
        for (learner, agent, settings) in [
            ("ppo", &dense, "batch = 32\nepochs = 2"),
            ("ppo", &lstm, "batch = 32\nepochs = 2\nsegment = 7"),
            ("vtrace", &lstm, "batch = 3"),
            ("dqn", &grid, "first = 10\nbatch = 9\nsteps_per_update = 10\npriority = 0.5"),
        ] {
            let mut by_shares = vec![];
            for shares in if learner == "vtrace" { &[0][..] } else { &[1, 4] } {
                let settings = match shares {
                    0 => settings.to_owned(),
                    shares => format!("{settings}\nshares = {shares}"),
                };
                let expect = outputs_rounds(learner, &settings, agent, 1).expect("fine");
                for threads in [2, 5] {
                    let got = outputs_rounds(learner, &settings, agent, threads).expect("fine");
                    assert!(got == expect, "{learner}, {shares} shares, {threads} threads");
                }
                by_shares.push(expect);
            }
            if let [one, four] = &by_shares[..] {
                // The sums are rounded elsewhere, and mean the same.
                assert_ne!(one.0, four.0, "{learner}");
                for ((name, one), (_, four)) in one.1.iter().zip(&four.1) {
                    assert!((one - four).abs() < 1e-3 * (1.0 + one.abs()), "{learner}: {name} {one} {four}");
                }
            }
        }
    }

    #[test]
    fn threads_begin_with_work_and_end_with_the_last_copy() {
        let mut group = ParallelModel::new(Box::new(ToyStudent::new()), 4);
        let demonstration = Arc::new(demonstration(&mut group, 1, 10));
        let pieces = vec![Piece { demonstration: Arc::clone(&demonstration), steps: 0..10 }; 3];
        let pool = Arc::downgrade(&group.pool);
        let threads = || pool.upgrade().map(|pool| lock(&pool).threads());
        group.set_params(&[0.1; 3]).expect("three");
        let copy = group.boxed_clone();
        study(&mut group, &pieces[..1], None, 3).expect("fine");
        assert_eq!(threads(), Some(0), "one piece wakes no one");
        study(&mut group, &pieces, None, 3).expect("fine");
        assert_eq!(threads(), Some(2), "as many as pieces, this one included");
        drop(pieces);
        assert_eq!(Arc::strong_count(&demonstration), 1, "no demonstration is kept");
        drop(group);
        assert_eq!(threads(), Some(2));
        drop(copy);
        assert_eq!(threads(), None);
    }
}
