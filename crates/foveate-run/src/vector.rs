//! Many worlds of one kind stepped together, on several threads.
//!
//! The results do not depend on the number of threads: each world has its own random stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foveate_core::{ActionBuf, Env, EnvError, EnvSpec, ImageBuf, Observation};
use foveate_envs::lane::{Autoreset, Lane, LaneStep, LastObservation};

use crate::pool::Pool;
use crate::workers::{MOST_WORKERS, default_workers};

/// Worlds that are stepped together.
pub struct VectorWorld {
    pool: Pool<Lanes>,
    spec: EnvSpec,
}

/// What the threads share.
struct Lanes {
    slots: Vec<Mutex<Slot>>,
    /// The next slot of this turn that nobody has taken.
    next: AtomicUsize,
}

/// A world, and its part of a turn.
struct Slot {
    lane: Lane,
    task: Task,
    action: ActionBuf,
    outcome: Result<LaneStep, EnvError>,
}

#[derive(Clone, Copy)]
enum Task {
    Nothing,
    Reset(Option<u64>),
    Step,
}

/// Why worlds could not be stepped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// A world returned an error. The others have been stepped.
    #[error("world {index} of the batch: {source}")]
    World {
        /// Which world, counted from 0.
        index: usize,
        /// Its error.
        source: EnvError,
    },
    /// The request does not fit the worlds.
    #[error("{why}")]
    BadRequest {
        /// What is wrong, with the numbers, and what to do.
        why: String,
    },
    /// A world panicked; the worlds are unusable.
    #[error("a world failed: {message}; please report this with the seed and the actions")]
    Panicked {
        /// The panic's message.
        message: String,
    },
}

/// An action for each world.
#[derive(Debug, Clone, Copy)]
pub enum Actions<'a> {
    /// `[worlds, numbers]`, row-major.
    Numbers(&'a [f64]),
    /// `[worlds]`
    Choices(&'a [usize]),
}

/// Where [`VectorWorld::observe`] writes: `[worlds]` observations one after the other.
#[derive(Debug)]
pub enum Batch<'a> {
    /// For pictures and grids.
    Bytes(&'a mut [u8]),
    /// For vectors.
    Numbers(&'a mut [f32]),
}

/// The largest number of worlds in a batch.
const MOST_WORLDS: usize = 1 << 16;

impl VectorWorld {
    /// `count` copies of `env`. `threads` is the number of threads, 0 for one per core; `max_steps` are the steps after which
    /// an episode is truncated, unless the world ends it before.
    ///
    /// # Errors
    /// When `count` or `threads` is out of range, or when observations have several parts.
    pub fn new(
        env: &dyn Env,
        count: usize,
        threads: usize,
        autoreset: Autoreset,
        max_steps: Option<usize>,
    ) -> Result<Self, VectorError> {
        let refused = |why: String| Err(VectorError::BadRequest { why });
        if count == 0 || count > MOST_WORLDS {
            return refused(format!("{count} worlds in a batch; choose a number from 1 to {MOST_WORLDS}"));
        }
        if threads > MOST_WORKERS {
            return refused(format!("{threads} threads; choose a number from 0 to {MOST_WORKERS}"));
        }
        if matches!(env.observation(), Observation::Dict(_)) {
            return refused(format!(
                "observations of {} have several parts, which no single array holds; step such worlds one by one",
                env.spec().id
            ));
        }
        let slots = (0..count).map(|_| {
            Mutex::new(Slot {
                lane: Lane::new(env.boxed_clone(), autoreset, max_steps),
                task: Task::Nothing,
                action: env.spec().action.zero(),
                outcome: Ok(LaneStep::default()),
            })
        });
        let lanes = Lanes { slots: slots.collect(), next: AtomicUsize::new(0) };
        let threads = if threads == 0 { default_workers() } else { threads };
        Ok(VectorWorld { pool: Pool::new("world", threads.min(count), lanes), spec: env.spec().clone() })
    }

    /// A copy in which the same episodes run, on as many threads of its own.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copied = |index| {
            let Slot { lane, action, outcome, .. } = &*self.slot(index);
            let (lane, action, outcome) = (lane.clone(), action.clone(), outcome.clone());
            Mutex::new(Slot { lane, task: Task::Nothing, action, outcome })
        };
        let lanes = Lanes { slots: (0..self.count()).map(copied).collect(), next: AtomicUsize::new(0) };
        VectorWorld { pool: Pool::new("world", self.threads(), lanes), spec: self.spec.clone() }
    }

    /// The spec of each world.
    pub const fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Number of worlds.
    pub fn count(&self) -> usize {
        self.pool.shared().slots.len()
    }

    /// Number of threads, that of the caller included.
    pub fn threads(&self) -> usize {
        self.pool.most()
    }

    /// Resets worlds: all, or those of `mask` (`[worlds]`). `seeds` is `[worlds]`; without a seed a world's random stream
    /// continues. `options` holds for these resets alone, see [`Env::reset_option`].
    ///
    /// # Errors
    /// When the lengths do not fit, when worlds do not know an option (they are then unchanged), or when one panics.
    pub fn reset(
        &mut self,
        seeds: &[Option<u64>],
        mask: Option<&[bool]>,
        options: &[(String, String)],
    ) -> Result<(), VectorError> {
        let count = self.count();
        for (what, given) in [("seeds", Some(seeds.len())), ("values of the mask", mask.map(<[bool]>::len))] {
            if let Some(given) = given.filter(|&given| given != count) {
                let why = format!("{given} {what} for {count} worlds; give one for each");
                return Err(VectorError::BadRequest { why });
            }
        }
        for (index, &seed) in seeds.iter().enumerate() {
            let mut slot = self.slot(index);
            slot.task = Task::Nothing;
            if mask.is_none_or(|mask| mask[index]) {
                for (name, value) in options {
                    let known = slot.lane.reset_option(name, value);
                    known.map_err(|source| VectorError::World { index, source })?;
                }
                slot.task = Task::Reset(seed);
            }
        }
        self.turn()
    }

    /// Steps every world once, as its [`Autoreset`] says.
    ///
    /// # Errors
    /// When there are not as many actions as worlds, or the kind of action is wrong: no world is then stepped. The error of
    /// the first world that returned one; the others are then stepped.
    pub fn step(&mut self, actions: Actions<'_>) -> Result<(), VectorError> {
        let count = self.count();
        let (given, wanted) = match actions {
            Actions::Numbers(numbers) => (numbers.len(), count * self.spec.action.len()),
            Actions::Choices(choices) => (choices.len(), count),
        };
        let fits = self.spec.action.is_discrete() == matches!(actions, Actions::Choices(_));
        if given != wanted || !fits {
            let why = format!(
                "{given} values for {count} worlds; {} takes {} in each",
                self.spec.id,
                self.spec.action.describe()
            );
            return Err(VectorError::BadRequest { why });
        }
        let width = self.spec.action.len();
        for index in 0..count {
            let mut slot = self.slot(index);
            slot.task = Task::Step;
            slot.action.set(match actions {
                Actions::Numbers(numbers) => {
                    foveate_core::Action::Continuous(&numbers[index * width..(index + 1) * width])
                }
                Actions::Choices(choices) => foveate_core::Action::Discrete(choices[index]),
            });
        }
        self.turn()
    }

    /// Runs the task of every slot.
    fn turn(&mut self) -> Result<(), VectorError> {
        let count = self.count();
        self.pool.shared().next.store(0, Ordering::Relaxed);
        self.pool.start(count, || |lanes: &Lanes| lanes.work());
        self.pool.turn(count, Lanes::work).map_err(|message| VectorError::Panicked { message })?;
        for index in 0..count {
            if let Err(source) = &self.slot(index).outcome {
                return Err(VectorError::World { index, source: source.clone() });
            }
        }
        Ok(())
    }

    fn slot(&self, index: usize) -> MutexGuard<'_, Slot> {
        lock(&self.pool.shared().slots[index])
    }

    /// Calls `each` with the outcome of every world's last step, in their order.
    pub fn outcomes(&self, mut each: impl FnMut(usize, LaneStep)) {
        for index in 0..self.count() {
            if let Ok(step) = &self.slot(index).outcome {
                each(index, *step);
            }
        }
    }

    /// Writes all observations.
    ///
    /// # Errors
    /// When `batch` has another length or type.
    pub fn observe(&self, batch: Batch<'_>) -> Result<(), VectorError> {
        let misfit = || VectorError::BadRequest {
            why: format!("the array of observations does not hold {} of {}", self.count(), self.spec.id),
        };
        match batch {
            Batch::Bytes(bytes) => {
                let each = self.size(bytes.len()).ok_or_else(misfit)?;
                for (index, place) in bytes.chunks_exact_mut(each).enumerate() {
                    match self.slot(index).lane.observation() {
                        Observation::Image(pixels) if pixels.bytes().len() == each => {
                            place.copy_from_slice(pixels.bytes());
                        }
                        Observation::Grid(grid) if grid.codes().len() == each => {
                            place.copy_from_slice(grid.codes());
                        }
                        _ => return Err(misfit()),
                    }
                }
            }
            Batch::Numbers(numbers) => {
                let each = self.size(numbers.len()).ok_or_else(misfit)?;
                for (index, place) in numbers.chunks_exact_mut(each).enumerate() {
                    match self.slot(index).lane.observation() {
                        Observation::Vector(shown) if shown.len() == each => place.copy_from_slice(shown),
                        _ => return Err(misfit()),
                    }
                }
            }
        }
        Ok(())
    }

    /// The size of each part of `len` values, one part for every world.
    fn size(&self, len: usize) -> Option<usize> {
        let count = self.count();
        (len.is_multiple_of(count) && len > 0).then_some(len / count)
    }

    /// The final observation of the episode that ended in the last step of a world; only with [`Autoreset::SameStep`].
    pub fn last_observation(&self, index: usize) -> LastObservation {
        self.slot(index).lane.last_observation().clone()
    }

    /// Renders a world for people.
    ///
    /// # Errors
    /// Those of [`Env::render`].
    pub fn render(&self, index: usize, view: &mut ImageBuf) -> Result<(), VectorError> {
        self.slot(index).lane.render(view).map_err(|source| VectorError::World { index, source })
    }
}

impl Lanes {
    /// Takes slots until none is left.
    fn work(&self) {
        while let Some(slot) = self.slots.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let slot = &mut *lock(slot);
            slot.outcome = match slot.task {
                Task::Nothing => Ok(LaneStep::default()),
                Task::Reset(seed) => {
                    slot.lane.reset(seed).map(|()| LaneStep { is_reset: true, ..LaneStep::default() })
                }
                Task::Step => slot.lane.advance(slot.action.as_action()),
            };
            slot.task = Task::Nothing;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use foveate_envs::registry::EnvRequest;

    use super::*;

    fn world(id: &str) -> Box<dyn Env> {
        crate::worlds::make(EnvRequest { id: id.into(), ..EnvRequest::default() }).expect("a native one")
    }

    fn worlds(count: usize, threads: usize, autoreset: Autoreset) -> VectorWorld {
        let env = world("cartpole-swingup-harder");
        VectorWorld::new(&*env, count, threads, autoreset, Some(7)).expect("it fits")
    }

    /// All observations, rewards and flags of 40 steps.
    fn played(threads: usize, autoreset: Autoreset) -> (Vec<f32>, Vec<LaneStep>) {
        let mut worlds = worlds(5, threads, autoreset);
        worlds.reset(&[1, 2, 3, 4, 5].map(Some), None, &[]).expect("they reset");
        let (mut shown, mut steps) = (vec![], vec![]);
        for t in 0..40 {
            let actions: Vec<f64> = (0..5).map(|i| f64::from((t * 7 + i * 3) % 11) / 5.0 - 1.0).collect();
            worlds.step(Actions::Numbers(&actions)).expect("they run");
            let mut batch = vec![0.0; 25];
            worlds.observe(Batch::Numbers(&mut batch)).expect("5 numbers each");
            shown.extend(batch);
            worlds.outcomes(|_, step| steps.push(step));
        }
        (shown, steps)
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        for autoreset in [Autoreset::NextStep, Autoreset::SameStep] {
            let one = played(1, autoreset);
            assert!(one.1.iter().any(|step| step.step.truncated));
            for threads in [2, 3, 16] {
                assert_eq!(played(threads, autoreset), one, "{threads} threads, {autoreset:?}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_numbers() {
        let env = world("cartpole-swingup-harder");
        let refused = |count, threads| {
            let made = VectorWorld::new(&*env, count, threads, Autoreset::NextStep, None);
            made.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(
            refused(0, 1).starts_with("0 worlds in a batch; choose a number from 1 to"),
            "{}",
            refused(0, 1)
        );
        assert!(refused(usize::MAX, 1).contains("choose a number from 1 to 65536"));
        assert!(refused(1, 5000).starts_with("5000 threads"), "{}", refused(1, 5000));
        let mut two = worlds(2, 1, Autoreset::Disabled);
        let said = |outcome: Result<(), VectorError>| {
            outcome.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let early = said(two.step(Actions::Numbers(&[0.0, 0.0])));
        assert!(
            early.starts_with("world 0 of the batch: the episode of cartpole-swingup-harder is over"),
            "{early}"
        );
        assert!(said(two.reset(&[None], None, &[])).starts_with("1 seeds for 2 worlds"));
        assert!(said(two.reset(&[None; 2], Some(&[true; 3]), &[])).starts_with("3 values of the mask"));
        let option = [("randomize".to_owned(), "true".to_owned())];
        assert!(
            said(two.reset(&[None; 2], None, &option)).contains("has no option of a reset \"randomize\"")
        );
        two.reset(&[None; 2], None, &[]).expect("they reset");
        assert!(said(two.step(Actions::Numbers(&[0.0]))).starts_with("1 values for 2 worlds"));
        assert!(said(two.step(Actions::Choices(&[0, 1]))).contains("takes 1 number in each"));
        let infinite = said(two.step(Actions::Numbers(&[0.0, f64::NAN])));
        assert!(infinite.starts_with("world 1 of the batch: action[0] is NaN"), "{infinite}");
        assert!(said(two.observe(Batch::Bytes(&mut [0; 10]))).contains("does not hold 2 of"));
        assert!(said(two.observe(Batch::Numbers(&mut [0.0; 9]))).contains("does not hold 2 of"));
    }

    #[test]
    fn a_mask_resets_some() {
        let mut two = worlds(2, 2, Autoreset::Disabled);
        let shown = |worlds: &VectorWorld| {
            let mut batch = vec![0.0; 10];
            worlds.observe(Batch::Numbers(&mut batch)).expect("5 numbers each");
            batch
        };
        two.reset(&[Some(1), Some(2)], None, &[]).expect("they reset");
        let first = shown(&two);
        two.step(Actions::Numbers(&[1.0, 1.0])).expect("they run");
        let then = shown(&two);
        two.reset(&[Some(1), Some(2)], Some(&[false, true]), &[]).expect("one resets");
        assert_eq!(shown(&two), [&then[..5], &first[5..]].concat());
        assert_ne!(then, first);
    }
}
