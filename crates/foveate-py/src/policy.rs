//! Policies that are functions of Python, and what is claimed of them.

use std::sync::{Arc, Mutex, PoisonError};

use foveate::Agent;
use foveate::core::{
    ActContext, ActionSpace, Attention, Decision, EnvSpec, IMAGE, Observation, ObservationBuf,
    ObservationSpace, PolicyError, SENSORS, Seed, TensorShape, Threads, Tokens,
};
use foveate::run::explain::{ClaimMap, ClaimOfMoments, StudyError};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays;
use crate::errors::{Kind, raised};

/// The first exception of a Python function that was called in a job.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// Keeps the first exception.
pub(crate) fn keep(slot: &Raised, error: PyErr) {
    slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// What of an observation a map is about: the same that reports swap places of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// The part of an observation of several parts.
    part: Option<&'static str>,
    kind: MappedKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MappedKind {
    Picture,
    /// Rows and columns of a grid.
    Cells([usize; 2]),
    Numbers(usize),
    /// Neither: there is nothing to make a map of.
    Nothing,
}

impl Mapped {
    pub(crate) fn of(space: &ObservationSpace) -> Self {
        let kind = match space {
            &ObservationSpace::Grid { rows, columns, .. } => MappedKind::Cells([rows, columns]),
            space if space.image().is_some() => MappedKind::Picture,
            space if space.numbers() > 0 => MappedKind::Numbers(space.numbers()),
            _ => MappedKind::Nothing,
        };
        let part = match (space, kind) {
            (ObservationSpace::Dict(_), MappedKind::Picture) => Some(IMAGE),
            (ObservationSpace::Dict(_), MappedKind::Numbers(_)) => Some(SENSORS),
            _ => None,
        };
        Mapped { part, kind }
    }

    /// Appends the weights of a map to `weights`, and returns its rows and columns. `whose` names it in errors.
    ///
    /// # Errors
    /// `TypeError` for what is no array of numbers, `foveate.errors.OptionError` for a wrong shape or weights that are not finite.
    pub(crate) fn read(
        &self,
        whose: &str,
        map: &Bound<'_, PyAny>,
        weights: &mut Vec<f64>,
    ) -> PyResult<[usize; 2]> {
        let refused = |why: String| raised(map.py(), Kind::Option, why);
        if map.is_none() {
            let why = format!("{whose} returned None; it returns {}", self.wanted());
            return Err(PyTypeError::new_err(why));
        }
        let of_part;
        let map = match (self.part, map.cast::<PyDict>()) {
            (Some(part), Ok(maps)) => {
                of_part = maps.get_item(part)?.ok_or_else(|| {
                    refused(format!(
                        "{whose} has no map of {part:?}, the part of the observation that is judged"
                    ))
                })?;
                &of_part
            }
            _ => map,
        };
        let before = weights.len();
        let shape = arrays::numbers_of(map, whose, weights)?;
        let wrong = || refused(format!("{whose} has the shape {shape:?}; it returns {}", self.wanted()));
        let size = match (self.kind, &*shape) {
            (MappedKind::Picture, &[rows, columns]) if rows * columns > 0 => [rows, columns],
            (MappedKind::Cells([rows, columns]), &[r, c]) if [r, c] == [rows, columns] => [rows, columns],
            (MappedKind::Cells([rows, columns]), &[count]) if count == rows * columns => [rows, columns],
            (MappedKind::Numbers(wanted), &[count]) if count == wanted => [1, count],
            _ => return Err(wrong()),
        };
        if let Some(index) = weights[before..].iter().position(|weight| !weight.is_finite()) {
            let why = format!(
                "{whose} has the weight {} at its number {index}; weights are finite numbers",
                weights[before + index]
            );
            return Err(refused(why));
        }
        Ok(size)
    }

    fn wanted(&self) -> String {
        match self.kind {
            MappedKind::Picture => "rows and columns over the picture".into(),
            MappedKind::Cells([rows, columns]) => {
                format!("a weight for each cell, [{rows}, {columns}] or [{}]", rows * columns)
            }
            MappedKind::Numbers(count) => format!("a weight for each of {count} numbers, [{count}]"),
            MappedKind::Nothing => {
                "no map that could be judged: the observation has neither a picture nor sensors nor cells"
                    .into()
            }
        }
    }
}

/// Reads the state of a policy, and sets it.
pub(crate) type StateHooks = [Py<PyAny>; 2];

/// The functions of a policy.
pub(crate) struct Functions {
    /// From an observation to an action.
    pub(crate) act: Py<PyAny>,
    /// From an observation to a map.
    pub(crate) attend: Option<Py<PyAny>>,
    /// Called at the beginning of every episode.
    pub(crate) begin: Option<Py<PyAny>>,
    /// Without these the answers depend on the observation alone.
    pub(crate) state: Option<StateHooks>,
    /// True if the scores of choices are logits.
    pub(crate) logits: bool,
    /// The network that it asks, where that is known.
    pub(crate) network: Option<Network>,
}

/// The weights of a network of Python, which many agents share: each puts its own in before it asks.
pub(crate) struct Network {
    /// Names and shapes.
    pub(crate) tensors: Vec<TensorShape>,
    /// The network's own weights.
    pub(crate) own: Arc<[f32]>,
    /// Puts a row of weights in.
    pub(crate) set: Py<PyAny>,
    /// What is in the network now.
    pub(crate) loaded: Mutex<Arc<[f32]>>,
}

impl Network {
    fn load(&self, py: Python<'_>, weights: &Arc<[f32]>) -> PyResult<()> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&loaded, weights) && loaded[..] != weights[..] {
            self.set.bind(py).call1((PyArray1::from_slice(py, weights),))?;
            *loaded = Arc::clone(weights);
        }
        Ok(())
    }
}

/// Functions of Python as an agent: an observation in, an action out, and a map of what it attends to.
pub(crate) struct PythonPolicy {
    functions: Arc<Functions>,
    space: ActionSpace,
    mapped: Mapped,
    /// Of worlds of numbers, a name for each.
    sensors: Arc<[String]>,
    raised: Raised,
    /// The state at the end of its last call, which the next one begins with.
    state: Option<Arc<Py<PyAny>>>,
    /// Its network's weights; none where that is not known.
    weights: Arc<[f32]>,
    action: Vec<f64>,
    map: Vec<f32>,
    /// Rows and columns of the map.
    cells: [usize; 2],
}

impl PythonPolicy {
    pub(crate) fn new(functions: Functions, spec: &EnvSpec, sensors: &[&str], raised: Raised) -> Self {
        let named =
            |i: usize| sensors.get(i).map_or_else(|| format!("sensor {i}"), |name| (*name).to_owned());
        PythonPolicy {
            weights: functions
                .network
                .as_ref()
                .map_or_else(|| Arc::new([]) as Arc<[f32]>, |of| Arc::clone(&of.own)),
            functions: Arc::new(functions),
            space: spec.action.clone(),
            mapped: Mapped::of(&spec.observation),
            sensors: (0..spec.observation.numbers()).map(named).collect(),
            raised,
            state: None,
            action: vec![],
            map: vec![],
            cells: [0, 0],
        }
    }

    /// What of an observation its maps are about.
    pub(crate) const fn mapped(&self) -> &Mapped {
        &self.mapped
    }

    pub(crate) fn functions(&self) -> Arc<Functions> {
        Arc::clone(&self.functions)
    }

    /// Whether its state is read and set.
    pub(crate) fn has_state(&self) -> bool {
        self.functions.state.is_some()
    }

    /// Whether it gives a map of its own.
    pub(crate) fn has_attention(&self) -> bool {
        self.functions.attend.is_some()
    }

    /// Keeps the exception, and describes it.
    fn failed(&self, py: Python<'_>, what: &str, error: PyErr) -> PolicyError {
        let why = format!("the policy's {what} raised {}", error.value(py));
        keep(&self.raised, error);
        PolicyError::BadConfig { why }
    }

    fn decide(&mut self, py: Python<'_>, observation: Observation<'_>) -> Result<(), PolicyError> {
        let functions = Arc::clone(&self.functions);
        self.load(py)?;
        let shown =
            arrays::observation(py, observation).map_err(|error| self.failed(py, "observation", error))?;
        if let (Some([_, set]), Some(state)) = (&functions.state, &self.state) {
            set.bind(py).call1((&**state,)).map_err(|error| self.failed(py, "set_state", error))?;
        }
        let acted = functions.act.bind(py).call1((&shown,)).and_then(|action| self.take(&action));
        acted.map_err(|error| self.failed(py, "action", error))?;
        if let Some(attend) = &functions.attend {
            let map = attend.bind(py).call1((&shown,)).and_then(|map| self.take_map(&map));
            map.map_err(|error| self.failed(py, "attention", error))?;
        }
        self.read_state(py).map_err(|error| self.failed(py, "get_state", error))
    }

    /// Puts its weights into the network that all of its kind share.
    fn load(&self, py: Python<'_>) -> Result<(), PolicyError> {
        let Some(network) = &self.functions.network else { return Ok(()) };
        network.load(py, &self.weights).map_err(|error| self.failed(py, "module", error))
    }

    fn read_state(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some([get, _]) = &self.functions.state {
            self.state = Some(Arc::new(get.bind(py).call0()?.unbind()));
        }
        Ok(())
    }

    fn take(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = given.py();
        self.action.clear();
        if given.is_none() {
            let why = format!("the policy returned None; an action is {}", self.space.describe());
            return Err(PyTypeError::new_err(why));
        }
        if let &ActionSpace::Discrete { n } = &self.space
            && given.extract::<i64>().is_err()
        {
            // Not the number of a choice, so a score for each.
            let shape = arrays::numbers_of(given, "an action", &mut self.action)?;
            if shape != [n] {
                let message = format!(
                    "an action of shape {shape:?}; take {}, or a score for each of {n} choices, [{n}]",
                    self.space.describe()
                );
                return Err(raised(py, Kind::Action, message));
            }
            finite(py, &self.action)?;
            foveate::core::as_probabilities(&mut self.action, self.functions.logits);
            return Ok(());
        }
        let mut taken = self.space.zero();
        arrays::action(&self.space, given, &mut taken)?;
        match taken.as_action() {
            foveate::Action::Continuous(numbers) => {
                finite(py, numbers)?;
                self.action.extend_from_slice(numbers);
            }
            foveate::Action::Discrete(choice) => {
                if choice >= self.space.len() {
                    let message = format!("choice {choice}; take {}", self.space.describe());
                    return Err(raised(py, Kind::Action, message));
                }
                self.action.resize(self.space.len(), 0.0);
                self.action[choice] = 1.0;
            }
        }
        Ok(())
    }

    fn take_map(&mut self, map: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut weights = vec![];
        self.cells = self.mapped.read("an attention map", map, &mut weights)?;
        self.map.clear();
        self.map.extend(weights.iter().map(|&weight| weight as f32));
        Ok(())
    }
}

/// An error for numbers that are not finite.
fn finite(py: Python<'_>, numbers: &[f64]) -> PyResult<()> {
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(()),
        Some(index) => {
            let message =
                format!("an action whose number {index} is {}; take finite numbers", numbers[index]);
            Err(raised(py, Kind::Action, message))
        }
    }
}

impl Agent for PythonPolicy {
    fn begin_episode(&mut self, _: Seed) {
        Python::attach(|py| {
            let begun =
                self.functions.begin.as_ref().map_or(Ok(()), |begin| begin.bind(py).call0().map(drop));
            if let Err(error) = begun.and_then(|()| self.read_state(py)) {
                // The next decision reports it.
                keep(&self.raised, error);
            }
        });
    }

    fn act(&mut self, observation: Observation<'_>, _: &mut ActContext) -> Result<Decision<'_>, PolicyError> {
        Python::attach(|py| {
            if let Some(error) = &*self.raised.lock().unwrap_or_else(PoisonError::into_inner) {
                return Err(PolicyError::BadConfig { why: format!("the policy raised {}", error.value(py)) });
            }
            self.decide(py, observation)
        })?;
        let decision = Decision::new(&self.action);
        if self.functions.attend.is_none() {
            return Ok(decision);
        }
        let [rows, columns] = self.cells;
        let tokens = match self.mapped.kind {
            MappedKind::Picture => Tokens::Cells { rows, columns },
            MappedKind::Cells(_) => Tokens::Grid { rows, columns },
            MappedKind::Numbers(_) | MappedKind::Nothing => Tokens::Named(&self.sensors),
        };
        Ok(decision.with_attention(Attention::soft(tokens, 1, 1, &self.map)?))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.functions.network.as_ref().map_or(vec![], |network| network.tensors.clone())
    }

    fn params(&self) -> Vec<f32> {
        self.weights.to_vec()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.len() != self.weights.len() {
            let tensors = if self.weights.is_empty() { "none" } else { "those of its module" };
            return Err(PolicyError::ParamCount {
                wanted: self.weights.len(),
                given: flat.len(),
                tensors: tensors.into(),
            });
        }
        self.weights = flat.into();
        Ok(())
    }

    fn set_threads(&mut self, _: &Threads) {}

    fn boxed_clone(&self) -> Box<dyn Agent> {
        Box::new(PythonPolicy {
            functions: Arc::clone(&self.functions),
            space: self.space.clone(),
            mapped: self.mapped.clone(),
            sensors: Arc::clone(&self.sensors),
            raised: Arc::clone(&self.raised),
            state: self.state.clone(),
            weights: Arc::clone(&self.weights),
            action: self.action.clone(),
            map: self.map.clone(),
            cells: self.cells,
        })
    }
}

/// A claim that a function of Python makes: for a list of observations a list of maps.
pub(crate) struct PythonClaim {
    pub(crate) name: String,
    pub(crate) function: Py<PyAny>,
    pub(crate) mapped: Mapped,
    pub(crate) raised: Raised,
    /// Of whom it is claimed.
    pub(crate) of: Arc<Functions>,
}

impl PythonClaim {
    fn ask(&self, py: Python<'_>, agent: &dyn Agent, seen: &[&ObservationBuf]) -> PyResult<Vec<ClaimMap>> {
        if let Some(network) = &self.of.network {
            network.load(py, &agent.params().into())?;
        }
        let shown = seen.iter().map(|seen| arrays::observation(py, seen.as_observation()));
        let shown = PyList::new(py, shown.collect::<PyResult<Vec<_>>>()?)?;
        let whose = format!("the claim {:?}", self.name);
        let maps = self.function.bind(py).call1((shown,))?;
        let read = |map: PyResult<Bound<'_, PyAny>>| {
            let mut weights = vec![];
            let [rows, columns] = self.mapped.read(&whose, &map?, &mut weights)?;
            Ok(ClaimMap { rows, columns, weights })
        };
        maps.try_iter()?.map(read).collect()
    }
}

impl ClaimOfMoments for PythonClaim {
    fn name(&self) -> &str {
        &self.name
    }

    fn at(&self, agent: &dyn Agent, seen: &[&ObservationBuf]) -> Result<Vec<ClaimMap>, StudyError> {
        Python::attach(|py| {
            self.ask(py, agent, seen).map_err(|error| {
                let why = format!("the claim {:?} raised {}", self.name, error.value(py));
                keep(&self.raised, error);
                StudyError::Refused { why }
            })
        })
    }
}
