//! A world, and a batch of worlds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use foveate::core::{ActionBuf, ActionSpace, EnvSpec, ImageBuf, ObservationSpace};
use foveate::envs::lane::{Autoreset, Lane};
use foveate::run::vector::{Actions, Batch, VectorWorld};
use foveate::run::worlds;
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays;
use crate::errors::{Kind, caught, of_world, of_worlds, raised};
use crate::request::WorldArgs;

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

/// One world; `foveate.envs.World` is Gymnasium's interface to it.
#[pyclass(frozen, module = "foveate._native")]
pub(crate) struct World {
    one: Mutex<One>,
    spec: EnvSpec,
    /// Whether a step takes so long that other threads of the interpreter should run meanwhile.
    long: bool,
}

struct One {
    lane: Lane,
    action: ActionBuf,
}

#[pymethods]
impl World {
    #[new]
    fn new(py: Python<'_>, world: WorldArgs) -> PyResult<Self> {
        let request = world.request();
        let made = caught(py, || py.detach(|| worlds::make(request)))?;
        let env = made.map_err(|error| raised(py, Kind::Option, error.to_string()))?;
        let spec = env.spec().clone();
        let long = spec.observation.picture().is_some();
        let one = One { action: spec.action.zero(), lane: Lane::new(env, Autoreset::Disabled, None) };
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
        let lane = &mut one.lane;
        for (name, value) in &options {
            lane.reset_option(name, value).map_err(|error| of_world(py, &error))?;
        }
        let reset = |lane: &mut Lane| lane.reset(seed);
        caught(py, || if self.long { py.detach(|| reset(lane)) } else { reset(lane) })?;
        arrays::observation(py, one.lane.observation())
    }

    /// Steps the world: observation, reward, terminated, truncated.
    fn step<'py>(
        &self,
        py: Python<'py>,
        action: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, f64, bool, bool)> {
        let mut one = hold(py, &self.one, "world")?;
        let One { lane, action: taken } = &mut *one;
        arrays::action(&self.spec.action, action, taken)?;
        let step = |lane: &mut Lane| lane.step(taken.as_action());
        let step = caught(py, || if self.long { py.detach(|| step(lane)) } else { step(lane) })?;
        let step = step.map_err(|error| of_world(py, &error))?;
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

    /// The current observation again.
    fn observation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrays::observation(py, hold(py, &self.one, "world")?.lane.observation())
    }
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
}

/// Rewards, terminations and truncations of a batch, and the indices of the worlds whose episode ended.
type Outcomes<'py> =
    (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray1<bool>>, Vec<usize>);

#[pymethods]
impl Worlds {
    #[new]
    fn new(
        py: Python<'_>,
        world: WorldArgs,
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
        let request = world.request();
        let made = caught(py, || py.detach(|| worlds::make(request)))?;
        let env = made.map_err(|error| raised(py, Kind::Option, error.to_string()))?;
        let worlds = caught(py, || VectorWorld::new(&*env, count, threads, autoreset, max_steps))?;
        let worlds = worlds.map_err(|error| of_worlds(py, &error))?;
        let many = Many { worlds, numbers: vec![], choices: vec![] };
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
        let Many { worlds, .. } = open(py, &mut held)?;
        let reset = caught(py, || py.detach(|| worlds.reset(&seeds, mask.as_deref(), &options)))?;
        reset.map_err(|error| of_worlds(py, &error))?;
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
        let Many { worlds, numbers, choices } = open(py, &mut held)?;
        numbers.clear();
        choices.clear();
        let (count, space) = (worlds.count(), worlds.spec().action.clone());
        let (shape, wanted) = match &space {
            ActionSpace::Box { low, .. } => (arrays::numbers(actions, numbers)?, vec![count, low.len()]),
            ActionSpace::Discrete { .. } => {
                let given = py.import("foveate._arrays")?.getattr("choices")?.call1((actions,))?;
                let given = given.cast::<PyArrayDyn<i64>>()?;
                for choice in given.try_readonly()?.to_vec()? {
                    choices.push(usize::try_from(choice).map_err(|_| {
                        let message = format!("choice {choice}; take {}", space.describe());
                        raised(py, Kind::Action, message)
                    })?);
                }
                (given.shape().to_vec(), vec![count])
            }
        };
        if shape != wanted {
            let message = format!("actions of shape {shape:?} for {count} worlds; their shape is {wanted:?}");
            return Err(raised(py, Kind::Action, message));
        }
        let actions = if space.is_discrete() { Actions::Choices(choices) } else { Actions::Numbers(numbers) };
        let stepped = caught(py, || py.detach(|| worlds.step(actions)))?;
        stepped.map_err(|error| of_worlds(py, &error))?;
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
