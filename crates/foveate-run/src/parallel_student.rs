//! Computes the gradients of demonstrations, and of sequences of transitions, on all cores.
//!
//! An update of imitation takes about a millisecond on one thread, too little to start threads for. So a
//! [`ParallelStudent`] keeps its threads, each with a copy of the student, during the whole run; they sleep
//! while there is no work. All threads, the caller's included, take segments in turn and write the gradient
//! of a segment into its own buffer. The caller adds these in the order of the segments, so the result is
//! bit-identical for any number of threads. A segment is a piece of a demonstration, or a sequence.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foveate_core::{
    ActorCritic, Demonstration, DifferentiatedEpisode, LossSums, Piece, PolicyError, Seed, Sequence,
    SequenceLoss, SequenceScratch, Student, ValueNetwork, Windows, no_actor_critic, study_sequence,
};

use crate::pool::{Pool, lock, message};

/// Minimum number of pieces between two synchronisations of all threads; each needs a buffer for a
/// gradient.
pub(crate) const SEGMENTS_PER_TURN: usize = 32;
/// The same of sequences, which take longer, of networks that are larger.
const SEQUENCES_PER_TURN: usize = 4;

/// A student that divides the segments of an update among threads; see the [module](self). Clones share the
/// threads, which end with the last clone.
pub struct ParallelStudent {
    /// The caller's own copy.
    replica: Replica,
    /// `[n_params]`: the most recent weights.
    flat: Vec<f32>,
    /// The latest share and seed of [`Student::drop_patches`].
    dropout: Option<(f64, Seed)>,
    pool: Arc<Mutex<Pool<GradientQueue>>>,
    /// Most threads, the caller's included.
    threads: usize,
}

/// A student, and the version of its weights.
struct Replica {
    student: Box<dyn Student>,
    /// An unchanged copy, for use after a panic has left the other in an unknown state.
    spare: Box<dyn Student>,
    /// [`Batch::version`] of its weights; 0 if they differ from those of any batch.
    version: u64,
    scratch: SequenceScratch,
}

/// State shared by all threads.
struct GradientQueue {
    /// A thread holds it for reading while it computes a segment.
    batch: RwLock<Batch>,
    /// Index of the next free segment; it is set to 0 while `batch` is locked for writing.
    next: AtomicUsize,
}

/// The segments and weights of a turn, and the results.
#[derive(Default)]
struct Batch {
    /// `[n_params]`
    flat: Vec<f32>,
    /// Of [`Student::drop_patches`].
    dropout: Option<(f64, Seed)>,
    /// Increases with every change of `flat`.
    version: u64,
    learns: Range<usize>,
    segments: Segments,
    /// One result per segment of a turn; there may be more.
    answers: Vec<Mutex<PieceGradient>>,
}

/// What the gradients of a turn are of.
enum Segments {
    Pieces {
        pieces: Vec<Piece>,
        burn_in: usize,
    },
    Sequences {
        sequences: Vec<Sequence>,
        /// Number of the first of them.
        first: usize,
        loss: Arc<dyn SequenceLoss>,
    },
}

impl Default for Segments {
    fn default() -> Self {
        Segments::Pieces { pieces: vec![], burn_in: 0 }
    }
}

impl Segments {
    /// Releases all, and keeps the room of pieces, so that an update of many short turns allocates nothing.
    fn clear(&mut self) {
        match self {
            Segments::Pieces { pieces, .. } => pieces.clear(),
            Segments::Sequences { .. } => *self = Segments::default(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Segments::Pieces { pieces, .. } => pieces.len(),
            Segments::Sequences { sequences, .. } => sequences.len(),
        }
    }
}

#[derive(Default)]
struct PieceGradient {
    /// `[n_params]`; zero outside of the trained parameters.
    gradient: Vec<f32>,
    /// What a loss returned, of a piece its error in the first place; or the reason why there is nothing; `None` until the
    /// segment is complete.
    outcome: Option<Result<LossSums, String>>,
}

impl ParallelStudent {
    /// Uses at most `threads` threads (at least one, the caller's), and fewer if the system refuses some.
    /// They start with the first computation of gradients; set weights before that.
    pub fn new(student: Box<dyn Student>, threads: usize) -> Self {
        let shared = GradientQueue { batch: RwLock::default(), next: AtomicUsize::new(0) };
        let pool = Pool::new("replica", threads, shared);
        let spare = student.boxed_clone();
        let replica = Replica { student, spare, version: 0, scratch: SequenceScratch::default() };
        ParallelStudent {
            replica,
            flat: Vec::new(),
            dropout: None,
            pool: Arc::new(Mutex::new(pool)),
            threads,
        }
    }
}

impl ParallelStudent {
    /// Adds the gradients of `count` segments to `gradient`, at least `per_turn` at once; `fill` writes those of these numbers.
    /// `receive` gets what the losses of each returned, in order.
    fn study_segments(
        &mut self,
        count: usize,
        per_turn: usize,
        fill: impl Fn(Range<usize>, &mut Segments),
        gradient: &mut [f32],
        mut receive: impl FnMut(&LossSums),
    ) -> Result<(), PolicyError> {
        let ParallelStudent { replica, flat, dropout, pool, .. } = self;
        let mut pool = lock(pool);
        pool.start(count, || {
            let mut replica = Replica::new(&*replica.spare);
            move |shared: &GradientQueue| replica.work(shared)
        });
        let at_once = per_turn.max(2 * pool.most()).min(count).max(1);
        if replica.version == 0 {
            // A clone, or a student that a panic left without weights.
            replica.student.set_params(flat)?;
            replica.drop_patches(*dropout);
        }
        let mut batch = pool.shared().write();
        batch.prepare(flat, *dropout, replica.student.learns(), at_once);
        replica.version = batch.version;
        drop(batch);
        let mut studied = Ok(());
        for first in (0..count).step_by(at_once) {
            if studied.is_err() {
                break;
            }
            let range = first..count.min(first + at_once);
            let jobs = range.len();
            pool.shared().begin(|segments| fill(range, segments));
            let died = pool.turn(jobs, |shared| replica.work(shared)).err();
            studied = pool.shared().read().add_to(gradient, first, &mut receive, died.as_deref());
        }
        // Releases what was learnt from.
        pool.shared().write().segments.clear();
        studied
    }
}

impl Replica {
    fn new(student: &dyn Student) -> Self {
        let scratch = SequenceScratch::default();
        Replica { student: student.boxed_clone(), spare: student.boxed_clone(), version: 0, scratch }
    }

    /// Computes segments until none is left.
    fn work(&mut self, shared: &GradientQueue) {
        let batch = shared.read();
        loop {
            let index = shared.next.fetch_add(1, Ordering::Relaxed);
            if index >= batch.segments.len() {
                return;
            }
            let mut answer = lock(&batch.answers[index]);
            let PieceGradient { gradient, outcome } = &mut *answer;
            *outcome = None;
            let studied = catch_unwind(AssertUnwindSafe(|| self.study(&batch, index, gradient)));
            *outcome = Some(match studied {
                Ok(studied) => studied.map_err(|error| error.to_string()),
                Err(panic) => {
                    (self.student, self.version) = (self.spare.boxed_clone(), 0);
                    Err(format!("panicked: {}", message(&*panic)))
                }
            });
        }
    }

    fn drop_patches(&mut self, dropout: Option<(f64, Seed)>) {
        if let Some((share, seed)) = dropout {
            self.student.drop_patches(share, seed);
        }
    }

    fn study(&mut self, batch: &Batch, index: usize, gradient: &mut [f32]) -> Result<LossSums, PolicyError> {
        if self.version != batch.version {
            self.student.set_params(&batch.flat)?;
            self.drop_patches(batch.dropout);
            self.version = batch.version;
        }
        gradient[batch.learns.clone()].fill(0.0);
        match &batch.segments {
            Segments::Pieces { pieces, burn_in } => {
                let Piece { demonstration, steps } = &pieces[index];
                let mut sums = LossSums::default();
                sums[0] = self.student.study(demonstration, steps.clone(), *burn_in, gradient);
                Ok(sums)
            }
            Segments::Sequences { sequences, first, loss } => {
                let Some(network) = self.student.actor_critic() else { return Err(no_actor_critic()) };
                let number = first + index;
                study_sequence(network, &sequences[index], number, &**loss, &mut self.scratch, gradient)
            }
        }
    }
}

impl Batch {
    /// Sets the weights, and allocates `answers` results.
    fn prepare(&mut self, flat: &[f32], dropout: Option<(f64, Seed)>, learns: Range<usize>, answers: usize) {
        self.flat.clear();
        self.flat.extend_from_slice(flat);
        self.version += 1;
        self.dropout = dropout;
        self.learns = learns;
        if self.answers.len() < answers {
            self.answers.resize_with(answers, Mutex::default);
        }
        for answer in &mut self.answers {
            answer.get_mut().unwrap_or_else(PoisonError::into_inner).gradient.resize(flat.len(), 0.0);
        }
    }
}

impl GradientQueue {
    /// The segments that `fill` writes are the jobs of the next turn.
    fn begin(&self, fill: impl FnOnce(&mut Segments)) {
        let mut batch = self.write();
        fill(&mut batch.segments);
        self.next.store(0, Ordering::Relaxed);
    }

    fn write(&self) -> RwLockWriteGuard<'_, Batch> {
        self.batch.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Batch> {
        self.batch.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Adds the gradients of a turn to `gradient`, in order, and passes what the losses returned to `receive`; its first
    /// segment has the index `first`. `died` is the message of a thread that died.
    fn add_to(
        &self,
        gradient: &mut [f32],
        first: usize,
        receive: &mut impl FnMut(&LossSums),
        died: Option<&str>,
    ) -> Result<(), PolicyError> {
        let gradient = &mut gradient[self.learns.clone()];
        for (i, answer) in self.answers[..self.segments.len()].iter().enumerate() {
            let answer = lock(answer);
            let failed = |why: String| PolicyError::Study { piece: first + i, why };
            match &answer.outcome {
                Some(Ok(of_segment)) => receive(of_segment),
                Some(Err(why)) => return Err(failed(why.clone())),
                None => {
                    return Err(failed(format!("its thread died: {}", died.unwrap_or("no one knows why"))));
                }
            }
            for (to, from) in gradient.iter_mut().zip(&answer.gradient[self.learns.clone()]) {
                *to += from;
            }
        }
        Ok(())
    }
}

impl Student for ParallelStudent {
    fn inputs(&self) -> usize {
        self.replica.student.inputs()
    }

    fn picture(&self) -> usize {
        self.replica.student.picture()
    }

    fn actions(&self) -> usize {
        self.replica.student.actions()
    }

    fn learns(&self) -> Range<usize> {
        self.replica.student.learns()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.replica.student.set_params(flat)?;
        self.flat.clear();
        self.flat.extend_from_slice(flat);
        Ok(())
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        self.replica.student.study(demonstration, piece, burn_in, gradient)
    }

    fn drop_patches(&mut self, share: f64, seed: Seed) -> bool {
        self.dropout = Some((share, seed));
        self.replica.student.drop_patches(share, seed)
    }

    fn study_world(
        &mut self,
        episode: &DifferentiatedEpisode,
        windows: &Windows<'_>,
        gradient: &mut [f32],
    ) -> Result<f64, PolicyError> {
        self.replica.student.study_world(episode, windows, gradient)
    }

    fn value_network(&mut self) -> Option<&mut dyn ValueNetwork> {
        self.replica.student.value_network()
    }

    fn actor_critic(&mut self) -> Option<&mut dyn ActorCritic> {
        self.replica.student.actor_critic()
    }

    /// Converts a panic during a segment into an error.
    fn study_all(
        &mut self,
        pieces: &[Piece],
        burn_in: usize,
        gradient: &mut [f32],
        errors: &mut Vec<f64>,
    ) -> Result<(), PolicyError> {
        let fill = |range: Range<usize>, segments: &mut Segments| {
            segments.clear();
            if let Segments::Pieces { pieces: held, burn_in: held_burn_in } = segments {
                held.extend_from_slice(&pieces[range]);
                *held_burn_in = burn_in;
            }
        };
        errors.clear();
        self.study_segments(pieces.len(), SEGMENTS_PER_TURN, fill, gradient, |sums| errors.push(sums[0]))
    }

    /// Converts a panic during a sequence into an error.
    fn study_sequences(
        &mut self,
        sequences: &[Sequence],
        loss: &Arc<dyn SequenceLoss>,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let fill = |range: Range<usize>, segments: &mut Segments| {
            *segments = Segments::Sequences {
                first: range.start,
                sequences: sequences[range].to_vec(),
                loss: Arc::clone(loss),
            };
        };
        let mut sums = LossSums::default();
        let add = |of_sequence: &LossSums| {
            sums.iter_mut().zip(of_sequence).for_each(|(sum, x)| *sum += x);
        };
        self.study_segments(sequences.len(), SEQUENCES_PER_TURN, fill, gradient, add)?;
        Ok(sums)
    }

    fn gaze_student(&self) -> Option<Box<dyn Student>> {
        let student = self.replica.student.gaze_student()?;
        Some(Box::new(ParallelStudent::new(student, self.threads)))
    }

    fn names_student(&self) -> Option<Box<dyn Student>> {
        let student = self.replica.student.names_student()?;
        Some(Box::new(ParallelStudent::new(student, self.threads)))
    }

    fn boxed_clone(&self) -> Box<dyn Student> {
        Box::new(ParallelStudent {
            replica: Replica {
                student: self.replica.student.boxed_clone(),
                spare: self.replica.spare.boxed_clone(),
                version: 0,
                scratch: SequenceScratch::default(),
            },
            flat: self.flat.clone(),
            dropout: self.dropout,
            pool: Arc::clone(&self.pool),
            threads: self.threads,
        })
    }
}

#[cfg(test)]
mod tests {
    use foveate_agents::registry::{Init, initial_params, student};
    use foveate_core::{EpisodeResult, Experience, Learner, Recording, Seed};
    use foveate_train::imitation::{Imitation, ImitationConfig};
    use serde_json::Value;

    use super::*;
    use foveate_toy::ToyStudent;

    const AGENT: &str = "attention-agent";

    fn real() -> Box<dyn Student> {
        student(AGENT, &Value::Null).expect("it exists")
    }

    fn params(seed: u64) -> Vec<f32> {
        initial_params(AGENT, &Value::Null, Init::Torch, Seed::root(seed)).expect("the defaults are good")
    }

    /// Random numbers for a student of this shape.
    fn demonstration(of: &dyn Student, seed: u64, steps: usize) -> Demonstration {
        let mut rng = Seed::root(seed).rng();
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(-0.5, 0.5) as f32).collect() };
        let inputs = draw(of.inputs() * steps);
        Demonstration { inputs, actions: draw(of.actions() * steps), steps, ..Demonstration::default() }
    }

    /// The states after two rounds of imitation, with more segments than are computed at once.
    fn rounds(learner: Box<dyn Student>) -> Vec<foveate_core::StateDict> {
        let config =
            ImitationConfig { updates: 3, pieces: SEGMENTS_PER_TURN + 8, piece: 20, ..Default::default() };
        let demonstration = |i: u64| demonstration(&*real(), i, 30 + (i % 10) as usize);
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
            assert!(rounds(Box::new(ParallelStudent::new(real(), threads))) == expect, "{threads} threads");
        }
    }

    #[test]
    fn any_number_of_threads_leaves_out_the_same_patches() {
        let settings = serde_json::json!({
            "senses": "picture", "image": [12, 12], "frames": 2, "codes": [2, 3], "learns": "all",
            "actions": [[0.0, 1.0], [0.0, 1.0]], "head": { "kind": "dense", "hidden": [4] },
        });
        let mut alone = student("attention-neuron", &settings).expect("it learns");
        let flat = initial_params("attention-neuron", &settings, Init::Torch, Seed::root(1)).expect("good");
        let mut demonstration = demonstration(&*alone, 1, 10);
        demonstration.inputs.fill(15.0);
        for step in 0..10 {
            let picture: Vec<u8> = (0..144).map(|i| (i * (step + 3) * 31 % 251) as u8).collect();
            demonstration.pictures.push(&picture);
        }
        let demonstration = Arc::new(demonstration);
        let pieces: Vec<Piece> =
            (0..9).map(|i| Piece { demonstration: Arc::clone(&demonstration), steps: i..i + 1 }).collect();
        let study = |student: &mut dyn Student, seed: Option<u64>| {
            student.set_params(&flat).expect("as many");
            if let Some(seed) = seed {
                assert!(student.drop_patches(0.5, Seed::root(seed)));
            }
            let (mut gradient, mut errors) = (vec![0.0; flat.len()], vec![]);
            student.study_all(&pieces, 0, &mut gradient, &mut errors).expect("good");
            (gradient, errors)
        };
        let expect = [None, Some(1), Some(2)].map(|seed| study(&mut *alone, seed));
        assert!(expect[0] != expect[1] && expect[1] != expect[2]);
        for threads in [1, 2, 5] {
            let fresh = student("attention-neuron", &settings).expect("it learns");
            let mut group = ParallelStudent::new(fresh, threads);
            let got = [None, Some(1), Some(2)].map(|seed| study(&mut group, seed));
            assert!(got == expect, "{threads} threads");
            assert!(study(&mut *group.boxed_clone(), None) == expect[2], "a copy with {threads} threads");
        }
    }

    #[test]
    fn a_panic_is_an_error_and_the_group_lives_on() {
        let mut alone = ToyStudent::new();
        let good: Vec<Piece> = (0..9)
            .map(|i| Piece { demonstration: Arc::new(demonstration(&alone, i, 10)), steps: i as usize..10 })
            .collect();
        let mut bad = good.clone();
        for place in [4, 7] {
            bad[place] = Piece { demonstration: Arc::new(demonstration(&alone, 99, 1)), steps: 0..1 };
        }
        let flat = [0.3, -0.2, 0.1];
        let mut expect = [0.0; 3];
        alone.set_params(&flat).expect("three");
        let (mut error, mut errors) = (vec![], vec![]);
        alone.study_all(&good, 2, &mut expect, &mut error).expect("fine");
        assert!(
            error.len() == 9 && error.iter().all(|&error| error > 0.0) && expect.iter().all(|&g| g != 0.0)
        );
        for threads in [1, 2, 5] {
            let mut group = ParallelStudent::new(Box::new(ToyStudent::new().panicking()), threads);
            group.set_params(&flat).expect("three");
            for _ in 0..5 {
                let failed = group.study_all(&bad, 2, &mut [0.0; 3], &mut errors).expect_err("it panics");
                let why = "panicked: too short".to_owned();
                assert_eq!(failed, PolicyError::Study { piece: 4, why });
                let mut gradient = [0.0; 3];
                assert_eq!(group.study_all(&good, 2, &mut gradient, &mut errors), Ok(()));
                assert_eq!((&errors, gradient), (&error, expect), "{threads} threads");
                // A clone has the same weights, and shares the threads.
                let (mut copy, mut gradient) = (group.boxed_clone(), [0.0; 3]);
                assert_eq!(copy.study_all(&good, 2, &mut gradient, &mut errors), Ok(()));
                assert_eq!((&errors, gradient), (&error, expect), "copy with {threads} threads");
            }
            assert_eq!(group.study_all(&[], 2, &mut [0.0; 3], &mut errors), Ok(()));
            assert!(errors.is_empty());
        }
    }

    /// A loss that is linear in what the network computes.
    struct Linear;

    impl SequenceLoss for Linear {
        fn differentiate(
            &self,
            index: usize,
            predictions: &foveate_core::Predictions,
            d_outputs: &mut [f32],
            d_values: &mut [f32],
        ) -> LossSums {
            let mut sums = LossSums::default();
            for (at, (d, x)) in d_outputs.iter_mut().zip(&predictions.outputs).enumerate() {
                *d = 1.0 / (1 + at + index) as f32;
                sums[0] += f64::from(*d * x);
            }
            d_values.fill(0.5);
            sums[1] = index as f64;
            sums
        }
    }

    #[test]
    fn sequences_are_learnt_from_with_the_bits_of_one_thread() {
        use foveate_core::{ActionBuf, ObservationBuf, Unroll};
        let unroll = |seed: u64| {
            let mut rng = Seed::root(seed).rng();
            let mut see = || ObservationBuf::Vector(vec![rng.uniform(-1.0, 1.0) as f32]);
            let steps = 2 + seed as usize % 3;
            let observations = (0..=steps).map(|_| see()).collect();
            let (actions, rewards) = (vec![ActionBuf::Discrete(0); steps], vec![0.0; steps]);
            Arc::new(Unroll { observations, actions, rewards, ..Unroll::default() })
        };
        let good: Vec<Sequence> = (0..11).map(|i| Sequence { unroll: unroll(i), before: None }).collect();
        let mut bad = good.clone();
        bad[6].unroll = Arc::new(Unroll { memory: vec![1.0], ..Unroll::clone(&good[6].unroll) });
        let loss: Arc<dyn SequenceLoss> = Arc::new(Linear);
        let mut alone = ToyStudent::new();
        let flat = [0.3, -0.2, 0.1];
        alone.set_params(&flat).expect("three");
        let mut expect = [0.0; 3];
        let sums = alone.study_sequences(&good, &loss, &mut expect).expect("fine");
        assert!(sums[1] == 55.0 && expect.iter().any(|&g| g != 0.0), "{sums:?} {expect:?}");
        for threads in [1, 2, 7] {
            let mut group = ParallelStudent::new(Box::new(ToyStudent::new()), threads);
            group.set_params(&flat).expect("three");
            for _ in 0..3 {
                let failed = group.study_sequences(&bad, &loss, &mut [0.0; 3]).expect_err("another memory");
                assert!(failed.to_string().contains("a recurrent state of 1 numbers"), "{failed}");
                let mut gradient = [0.0; 3];
                assert_eq!(group.study_sequences(&good, &loss, &mut gradient), Ok(sums));
                assert_eq!(gradient, expect, "{threads} threads");
            }
        }
    }

    #[test]
    fn threads_begin_with_work_and_end_with_the_last_copy() {
        let mut group = ParallelStudent::new(Box::new(ToyStudent::new()), 4);
        let demonstration = Arc::new(demonstration(&group, 1, 10));
        let pieces = vec![Piece { demonstration: Arc::clone(&demonstration), steps: 0..10 }; 3];
        let pool = Arc::downgrade(&group.pool);
        let threads = || pool.upgrade().map(|pool| lock(&pool).threads());
        group.set_params(&[0.1; 3]).expect("three");
        let copy = group.boxed_clone();
        assert_eq!(threads(), Some(0));
        group.study_all(&pieces, 0, &mut [0.0; 3], &mut vec![]).expect("fine");
        assert_eq!(threads(), Some(2), "as many as pieces, this one included");
        drop(pieces);
        assert_eq!(Arc::strong_count(&demonstration), 1, "no demonstration is kept");
        drop(group);
        assert_eq!(threads(), Some(2));
        drop(copy);
        assert_eq!(threads(), None);
    }
}
