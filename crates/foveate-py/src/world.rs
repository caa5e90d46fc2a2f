//! A world, and a batch of worlds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use foveate::WorldSpec;
use foveate::core::{Action, ActionBuf, ActionSpace, Env, EnvError, EnvSpec, ImageBuf, ObservationSpace};
use foveate::envs::lane::{Autoreset, Lane};
use foveate::run::interrupt::supervised;
use foveate::run::vector::{Actions, Batch, VectorWorld};
use foveate::run::worlds;
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays;
use crate::errors::{Kind, caught, of_world, of_worlds, raised};
use crate::given::Given;
use crate::jobs::EVERY;

/// The lock on `of`, or an exception when another thread holds it: a world is one episode, which two threads cannot step.
pub(crate) fn hold<'a, T>(py: Python<'_>, of: &'a Mutex<T>, what: &str) -> PyResult<MutexGuard<'a, T>> {
    match of.try_lock() {
        Ok(held) => Ok(held),
        Err(TryLockError::Poisoned(held)) => Ok(held.into_inner()),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another thread uses this {what} now; make one for each thread");
            Err(raised(py, Kind::Busy, message))
        }
    }
}

/// Largest side of a rendered picture in pixels.
const MOST_PIXELS: usize = 8192;

/// An empty picture to render into.
fn view(py: Python<'_>, width: usize, height: usize) -> PyResult<ImageBuf> {
    if (1..=MOST_PIXELS).contains(&width) && (1..=MOST_PIXELS).contains(&height) {
        return Ok(ImageBuf::black(width, height));
    }
    let message = format!("a picture of {width}x{height} pixels; choose sides from 1 to {MOST_PIXELS}");
    Err(raised(py, Kind::Option, message))
}

/// A description of a world: its name, spaces, limit of steps and frame rate.
pub(crate) fn described<'py>(py: Python<'py>, spec: &EnvSpec) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("id", &spec.id)?;
    dict.set_item("observation", observations(py, &spec.observation)?)?;
    let action = match &spec.action {
        ActionSpace::Box { low, high } => ("box", low.clone(), high.clone()).into_pyobject(py)?.into_any(),
        ActionSpace::Discrete { n } => ("discrete", n).into_pyobject(py)?.into_any(),
    };
    dict.set_item("action", action)?;
    dict.set_item("max_steps", spec.max_steps)?;
    dict.set_item("picture", spec.observation.picture().is_some())?;
    dict.set_item("fps", spec.fps)?;
    Ok(dict)
}

/// `("bytes", shape)`, `("numbers", shape)` or `("dict", {name: ...})`.
fn observations<'py>(py: Python<'py>, space: &ObservationSpace) -> PyResult<Bound<'py, PyAny>> {
    let bytes = |shape: Vec<usize>| Ok(("bytes", shape).into_pyobject(py)?.into_any());
    match space {
        ObservationSpace::Image(shape) => {
            let all = [shape.frames, shape.height, shape.width, shape.channels];
            bytes(all[usize::from(shape.frames == 1)..].to_vec())
        }
        ObservationSpace::Grid { rows, columns, channels } => bytes(vec![*rows, *columns, *channels]),
        ObservationSpace::Vector { len } => Ok(("numbers", vec![*len]).into_pyobject(py)?.into_any()),
        ObservationSpace::Dict(parts) => {
            let dict = PyDict::new(py);
            for (name, part) in parts {
                dict.set_item(name, observations(py, part)?)?;
            }
            Ok(("dict", dict).into_pyobject(py)?.into_any())
        }
    }
}

/// Builds a world on a thread of its own, without the interpreter's lock; a signal's exception ends that, and is raised.
fn made(py: Python<'_>, world: Given<WorldSpec>) -> PyResult<Box<dyn Env>> {
    let request = world.0.request();
    let mut signal: Option<PyErr> = None;
    let go_on = &mut || {
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "the method itself is not general enough"
        )]
        let checked = Python::attach(|py| py.check_signals());
        if let Err(error) = checked {
            signal.get_or_insert(error);
        }
        signal.is_none()
    };
    let made = caught(py, || py.detach(|| supervised(EVERY, go_on, |_| worlds::make(request))))?;
    signal.map_or(Ok(()), Err)?;
    made.map_err(|error| raised(py, Kind::Option, error.to_string()))
}

/// One world; `foveate.envs.World` is Gymnasium's interface to it.
#[pyclass(frozen, module = "foveate._native")]
pub(crate) struct World {
    one: Mutex<One>,
    spec: EnvSpec,
    /// True if a step takes so long that other threads of the interpreter should run meanwhile.
    long: bool,
}

#[derive(Clone)]
struct One {
    lane: Lane,
    action: ActionBuf,
    journal: Journal<Option<u64>>,
}

/// A reset: its seed, its options, and the number of steps that follow.
type Reset<S> = (S, Vec<(String, String)>, usize);

/// What happened to a world since its random stream was last seeded, from which another process makes the same state.
/// `S` is the seed of a reset, or those of a batch with the mask of the worlds that were reset.
#[derive(Clone)]
struct Journal<S> {
    resets: Vec<Reset<S>>,
    /// The numbers of all actions, or their choices.
    actions: Vec<f64>,
    /// True if something is missing: it was too much to keep, or a step failed midway.
    lost: bool,
    most: usize,
}

/// Most numbers of a journal of one world, and of a batch: 4 and 16 MiB.
const MOST_OF_ONE: usize = 1 << 19;
const MOST_OF_MANY: usize = 1 << 21;
/// What a reset without options takes, in numbers.
const RESET_COSTS: usize = 8;

impl<S> Journal<S> {
    const fn new(most: usize) -> Self {
        Journal { resets: vec![], actions: vec![], lost: false, most }
    }

    /// A reset; `anew` when it seeds every random stream, so that nothing before matters.
    fn reset(&mut self, seed: S, options: &[(String, String)], anew: bool) {
        if anew {
            *self = Journal::new(self.most);
        }
        self.resets.push((seed, options.to_vec(), 0));
        self.bound();
    }

    fn step<'a>(&mut self, numbers: impl IntoIterator<Item = &'a f64>) {
        if let Some((.., steps)) = self.resets.last_mut().filter(|_| !self.lost) {
            *steps += 1;
            self.actions.extend(numbers);
            self.bound();
        }
    }

    fn bound(&mut self) {
        let size = |(_, options, _): &(S, Vec<(String, String)>, usize)| {
            RESET_COSTS
                + options.iter().map(|(name, value)| RESET_COSTS + name.len() + value.len()).sum::<usize>()
        };
        // Options are few and short; a reset's size is asked for once.
        let resets = self.resets.len() * RESET_COSTS + self.resets.last().map_or(0, size);
        if self.lost || self.actions.len() + resets > self.most {
            self.lose();
        }
    }

    fn lose(&mut self) {
        (self.resets, self.actions, self.lost) = (vec![], vec![], true);
    }
}

#[pymethods]
impl World {
    #[new]
    fn new(py: Python<'_>, world: Given<WorldSpec>) -> PyResult<Self> {
        let env = made(py, world)?;
        let spec = env.spec().clone();
        let long = spec.observation.picture().is_some();
        let (action, lane) = (spec.action.zero(), Lane::new(env, Autoreset::Disabled, None));
        let one = One { action, lane, journal: Journal::new(MOST_OF_ONE) };
        Ok(World { one: Mutex::new(one), spec, long })
    }

    /// A description, see `described`.
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        described(py, &self.spec)
    }

    /// Starts an episode and returns its first observation.
    #[pyo3(signature = (seed, options))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seed: Option<u64>,
        options: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut one = hold(py, &self.one, "world")?;
        let One { lane, journal, .. } = &mut *one;
        for (name, value) in &options {
            lane.reset_option(name, value).map_err(|error| of_world(py, &error))?;
        }
        let reset = |lane: &mut Lane| lane.reset(seed);
        let reset = caught(py, || if self.long { py.detach(|| reset(lane)) } else { reset(lane) })?;
        reset.map_err(|error| of_world(py, &error))?;
        journal.reset(seed, &options, seed.is_some());
        arrays::observation(py, one.lane.observation())
    }

    /// Steps the world: observation, reward, terminated, truncated.
    fn step<'py>(
        &self,
        py: Python<'py>,
        action: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, f64, bool, bool)> {
        let mut one = hold(py, &self.one, "world")?;
        let One { lane, action: taken, journal } = &mut *one;
        arrays::action(&self.spec.action, action, taken)?;
        let step = |lane: &mut Lane| lane.step(taken.as_action());
        let step = caught(py, || if self.long { py.detach(|| step(lane)) } else { step(lane) })?;
        let step = step.map_err(|error| {
            // An action that does not fit, or no episode to step, changes nothing.
            if !matches!(error, EnvError::NeedsReset { .. }) && !is_of_action(&error) {
                journal.lose();
            }
            of_world(py, &error)
        })?;
        match taken.as_action() {
            Action::Continuous(numbers) => journal.step(numbers),
            Action::Discrete(choice) => journal.step(&[choice as f64]),
        }
        Ok((arrays::observation(py, lane.observation())?, step.reward, step.terminated, step.truncated))
    }

    /// The world as people see it, `uint8 [height, width, 3]`.
    fn render<'py>(&self, py: Python<'py>, width: usize, height: usize) -> PyResult<Bound<'py, PyAny>> {
        let one = hold(py, &self.one, "world")?;
        let mut view = view(py, width, height)?;
        let lane = &one.lane;
        let drawn = caught(py, || lane.render(&mut view))?;
        drawn.map_err(|error| of_world(py, &error))?;
        Ok(arrays::array(py, &[height, width, 3], view.rgb())?.into_any())
    }

    /// A copy in which the same episode runs.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let one = hold(py, &self.one, "world")?;
        let copied = caught(py, || one.clone())?;
        Ok(World { one: Mutex::new(copied), spec: self.spec.clone(), long: self.long })
    }

    /// What [`World::replay`] takes: of each reset its seed, its options and the number of steps that follow, and all actions.
    /// `None` when that is not known.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Option<History<'py, Option<u64>>>> {
        let one = hold(py, &self.one, "world")?;
        let Journal { resets, actions, lost, .. } = &one.journal;
        Ok((!lost).then(|| (resets.clone(), PyArray1::from_slice(py, actions))))
    }

    /// Does what happened to another world.
    fn replay(&self, py: Python<'_>, resets: Vec<Reset<Option<u64>>>, actions: Vec<f64>) -> PyResult<()> {
        let mut one = hold(py, &self.one, "world")?;
        let One { lane, action: taken, journal } = &mut *one;
        let width = if self.spec.action.is_discrete() { 1 } else { self.spec.action.len() };
        if resets
            .iter()
            .map(|(.., steps)| *steps)
            .try_fold(0, usize::checked_add)
            .and_then(|all| all.checked_mul(width))
            != Some(actions.len())
        {
            return Err(raised(py, Kind::Option, "the saved world has another number of actions than steps"));
        }
        let mut actions = actions.chunks_exact(width.max(1));
        for (seed, options, steps) in resets {
            for (name, value) in &options {
                lane.reset_option(name, value).map_err(|error| of_world(py, &error))?;
            }
            let reset = caught(py, || py.detach(|| lane.reset(seed)))?;
            reset.map_err(|error| of_world(py, &error))?;
            journal.reset(seed, &options, seed.is_some());
            for numbers in actions.by_ref().take(steps) {
                if self.spec.action.is_discrete() {
                    *taken = ActionBuf::Discrete(numbers[0] as usize);
                } else {
                    *taken = ActionBuf::Continuous(numbers.to_vec());
                }
                let step = caught(py, || py.detach(|| lane.step(taken.as_action())))?;
                step.map_err(|error| of_world(py, &error))?;
                journal.step(numbers);
            }
            py.check_signals()?;
        }
        Ok(())
    }

    /// The current observation again.
    fn observation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrays::observation(py, hold(py, &self.one, "world")?.lane.observation())
    }
}

/// What happened to a world: resets and actions; see [`World::history`].
type History<'py, S> = (Vec<(S, Vec<(String, String)>, usize)>, Bound<'py, PyArray1<f64>>);

/// Returns whether an error says that an action does not fit.
const fn is_of_action(error: &EnvError) -> bool {
    matches!(
        error,
        EnvError::ActionLength { .. } | EnvError::ActionKind { .. } | EnvError::ActionNotFinite { .. }
    )
}

/// How often this process was forked.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Called in the child after a fork, in which no thread but one is left.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A batch of worlds; `foveate.envs.VectorEnv` is Gymnasium's interface to it.
#[pyclass(frozen, module = "foveate._native")]
pub(crate) struct Worlds {
    all: Mutex<Option<Many>>,
    /// [`FORKS`] when it was made.
    born: u64,
}

struct Many {
    worlds: VectorWorld,
    numbers: Vec<f64>,
    choices: Vec<usize>,
    journal: Journal<BatchReset>,
}

/// The seeds of a reset of a batch, and its mask.
type BatchReset = (Vec<Option<u64>>, Option<Vec<bool>>);

/// Rewards, terminations and truncations of a batch, and the indices of the worlds whose episode ended.
type Outcomes<'py> =
    (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray1<bool>>, Vec<usize>);

#[pymethods]
impl Worlds {
    #[new]
    fn new(
        py: Python<'_>,
        world: Given<WorldSpec>,
        count: usize,
        threads: usize,
        autoreset: &str,
        max_steps: Option<usize>,
    ) -> PyResult<Self> {
        let autoreset = match autoreset {
            "NextStep" => Autoreset::NextStep,
            "SameStep" => Autoreset::SameStep,
            "Disabled" => Autoreset::Disabled,
            other => {
                let message =
                    format!("no autoreset mode is called {other:?}; choose NextStep, SameStep or Disabled");
                return Err(raised(py, Kind::Option, message));
            }
        };
        let env = made(py, world)?;
        let worlds = caught(py, || VectorWorld::new(&*env, count, threads, autoreset, max_steps))?;
        let worlds = worlds.map_err(|error| of_worlds(py, &error))?;
        let journal = Journal::new(MOST_OF_MANY);
        let many = Many { worlds, numbers: vec![], choices: vec![], journal };
        Ok(Worlds { all: Mutex::new(Some(many)), born: FORKS.load(Ordering::Relaxed) })
    }

    /// A description of each world, see `described`.
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut held = self.held(py)?;
        described(py, open(py, &mut held)?.worlds.spec())
    }

    /// Number of threads that step the worlds.
    fn threads(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(open(py, &mut self.held(py)?)?.worlds.threads())
    }

    /// Resets all worlds, or those of `mask`, and writes all observations to `batch`.
    fn reset(
        &self,
        py: Python<'_>,
        seeds: Vec<Option<u64>>,
        mask: Option<Vec<bool>>,
        options: Vec<(String, String)>,
        batch: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut held = self.held(py)?;
        let Many { worlds, journal, .. } = open(py, &mut held)?;
        let reset = caught(py, || py.detach(|| worlds.reset(&seeds, mask.as_deref(), &options)))?;
        reset.map_err(|error| of_worlds(py, &error))?;
        let anew = mask.is_none() && seeds.iter().all(Option::is_some);
        journal.reset((seeds, mask), &options, anew);
        observe(py, worlds, batch)
    }

    /// Steps all worlds and writes all observations to `batch`.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        batch: &Bound<'py, PyAny>,
    ) -> PyResult<Outcomes<'py>> {
        let mut held = self.held(py)?;
        let Many { worlds, numbers, choices, journal } = open(py, &mut held)?;
        numbers.clear();
        choices.clear();
        let (count, space) = (worlds.count(), worlds.spec().action.clone());
        let (shape, wanted) = match &space {
            ActionSpace::Box { low, .. } => (arrays::numbers(actions, numbers)?, vec![count, low.len()]),
            ActionSpace::Discrete { .. } => (arrays::choices(actions, &space, choices)?, vec![count]),
        };
        if shape != wanted {
            let message = format!("actions of shape {shape:?} for {count} worlds; their shape is {wanted:?}");
            return Err(raised(py, Kind::Action, message));
        }
        let actions = if space.is_discrete() { Actions::Choices(choices) } else { Actions::Numbers(numbers) };
        let stepped = caught(py, || py.detach(|| worlds.step(actions)))?;
        stepped.map_err(|error| {
            // The others were stepped.
            journal.lose();
            of_worlds(py, &error)
        })?;
        if space.is_discrete() {
            let choices: Vec<f64> = choices.iter().map(|&choice| choice as f64).collect();
            journal.step(&choices);
        } else {
            journal.step(&*numbers);
        }
        observe(py, worlds, batch)?;
        let (mut rewards, mut terminated, mut truncated) = (vec![], vec![], vec![]);
        let mut over = vec![];
        worlds.outcomes(|index, outcome| {
            rewards.push(outcome.step.reward);
            terminated.push(outcome.step.terminated);
            truncated.push(outcome.step.truncated);
            over.extend(outcome.step.is_over().then_some(index));
        });
        Ok((
            PyArray1::from_vec(py, rewards),
            PyArray1::from_vec(py, terminated),
            PyArray1::from_vec(py, truncated),
            over,
        ))
    }

    /// The final observation of the episode that ended in the last step of world `index`, without its shape.
    fn last_observation<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut held = self.held(py)?;
        let worlds = &open(py, &mut held)?.worlds;
        if index >= worlds.count() {
            let message = format!("world {index} of {}; they count from 0", worlds.count());
            return Err(raised(py, Kind::Option, message));
        }
        let last = worlds.last_observation(index);
        Ok(if last.numbers.is_empty() {
            PyArray1::from_vec(py, last.bytes).into_any()
        } else {
            PyArray1::from_vec(py, last.numbers).into_any()
        })
    }

    /// World `index` as people see it, `uint8 [height, width, 3]`.
    fn render<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        width: usize,
        height: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut held = self.held(py)?;
        let worlds = &open(py, &mut held)?.worlds;
        if index >= worlds.count() {
            let message = format!("world {index} of {}; they count from 0", worlds.count());
            return Err(raised(py, Kind::Option, message));
        }
        let mut view = view(py, width, height)?;
        let drawn = caught(py, || worlds.render(index, &mut view))?;
        drawn.map_err(|error| of_worlds(py, &error))?;
        Ok(arrays::array(py, &[height, width, 3], view.rgb())?.into_any())
    }

    /// A copy in which the same episodes run, with threads of its own.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let mut held = self.held(py)?;
        let Many { worlds, journal, .. } = open(py, &mut held)?;
        let worlds = caught(py, || worlds.copy())?;
        let many = Many { worlds, numbers: vec![], choices: vec![], journal: journal.clone() };
        Ok(Worlds { all: Mutex::new(Some(many)), born: FORKS.load(Ordering::Relaxed) })
    }

    /// As [`World::history`], with the seeds and the mask of every reset of the batch.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Option<History<'py, BatchReset>>> {
        let mut held = self.held(py)?;
        let Journal { resets, actions, lost, .. } = &open(py, &mut held)?.journal;
        Ok((!lost).then(|| (resets.clone(), PyArray1::from_slice(py, actions))))
    }

    /// Ends the threads. Later calls raise.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let many = hold(py, &self.all, "batch of worlds")?.take();
        if self.is_of_this_process() {
            py.detach(|| drop(many));
        } else {
            std::mem::forget(many);
        }
        Ok(())
    }
}

impl Worlds {
    fn is_of_this_process(&self) -> bool {
        self.born == FORKS.load(Ordering::Relaxed)
    }

    fn held(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Many>>> {
        if !self.is_of_this_process() {
            let message = "these worlds were made before this process was forked, and their threads stayed behind; \
                           make them after the fork";
            return Err(raised(py, Kind::Fork, message));
        }
        hold(py, &self.all, "batch of worlds")
    }
}

/// In a forked process the threads to wait for do not exist.
impl Drop for Worlds {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            let all = self.all.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::forget(all.take());
        }
    }
}

fn open<'a>(py: Python<'_>, held: &'a mut MutexGuard<'_, Option<Many>>) -> PyResult<&'a mut Many> {
    held.as_mut().ok_or_else(|| raised(py, Kind::Foveate, "these worlds are closed; make new ones"))
}

/// Writes the observations of all worlds to an array of the user's.
fn observe(py: Python<'_>, worlds: &VectorWorld, batch: &Bound<'_, PyAny>) -> PyResult<()> {
    let written = if let Ok(bytes) = batch.cast::<PyArrayDyn<u8>>() {
        worlds.observe(Batch::Bytes(bytes.try_readwrite()?.as_slice_mut()?))
    } else {
        let numbers = batch.cast::<PyArrayDyn<f32>>()?;
        worlds.observe(Batch::Numbers(numbers.try_readwrite()?.as_slice_mut()?))
    };
    written.map_err(|error| of_worlds(py, &error))
}
