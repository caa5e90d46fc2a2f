//! Agents from files, and policies that are functions of Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use foveate::core::{
    ActContext, ActionSpace, Decision, EnvSpec, Observation, PolicyError, TensorShape, Threads, Tokens,
    episode_seed,
};
use foveate::core::{Attention, Seed};
use foveate::envs::registry::Champion;
use foveate::run::champion::champions;
use foveate::run::tensors::TensorFile;
use foveate::run::weights::AgentFile;
use foveate::{EnvRequest, LoadedAgent, World, WorldSpec};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays;
use crate::errors::{Kind, caught, of_run, raised};
use crate::given::Given;
use crate::world::{described, hold};

/// A trained agent with its memory; `foveate.Agent` is its interface.
#[pyclass(frozen, module = "foveate._native")]
pub(crate) struct Agent {
    pub(crate) loaded: LoadedAgent,
    spec: EnvSpec,
    acting: Mutex<Acting>,
}

struct Acting {
    agent: Box<dyn foveate::Agent>,
    context: ActContext,
    attention: Option<Seen>,
}

/// What the last decision attended to.
struct Seen {
    kind: &'static str,
    shape: Vec<usize>,
    names: Vec<String>,
    /// `[heads, queries, tokens]`
    weights: Vec<f32>,
    dims: [usize; 3],
    selected: Option<(Vec<u32>, Vec<u32>)>,
}

impl Seen {
    fn of(attention: &Attention<'_>) -> Self {
        let tokens = attention.tokens();
        let (kind, shape, names) = match tokens {
            Tokens::Patches(grid) => {
                ("patches", vec![grid.rows(), grid.columns(), grid.patch(), grid.stride()], vec![])
            }
            Tokens::Cells { rows, columns } => ("cells", vec![rows, columns], vec![]),
            Tokens::Grid { rows, columns } => ("grid", vec![rows, columns], vec![]),
            Tokens::Named(names) => ("named", vec![names.len()], names.to_vec()),
        };
        Seen {
            kind,
            shape,
            names,
            weights: attention.weights().to_vec(),
            dims: [attention.heads(), attention.queries(), tokens.len()],
            selected: attention.selected().map(|chosen| (chosen.tokens.to_vec(), chosen.ranks.to_vec())),
        }
    }
}

#[pymethods]
impl Agent {
    /// Loads the weights called `name`, for the world of `world` where the file leaves it open.
    #[new]
    fn new(py: Python<'_>, name: Option<PathBuf>, world: Given<WorldSpec>) -> PyResult<Self> {
        let world = World::new(world.0);
        let loaded = caught(py, || py.detach(|| LoadedAgent::load(name.as_deref(), &world)))?;
        Agent::of(py, loaded.map_err(|error| of_run(py, &error))?)
    }

    /// An agent of the bytes of its weight file, as pickles have them.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8], source: String, world: Given<WorldSpec>) -> PyResult<Self> {
        let refused = |error: &dyn std::fmt::Display| raised(py, Kind::Option, error.to_string());
        let tensors = TensorFile::from_bytes(bytes).map_err(|error| refused(&error))?;
        let file = AgentFile::from_tensors(tensors).map_err(|error| refused(&error))?;
        Agent::of(py, LoadedAgent { file, source, world: world.0.request() })
    }

    /// What [`Agent::from_bytes`] takes: the weight file, its origin, and the world as keyword arguments.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, &str, Bound<'py, PyDict>)> {
        let EnvRequest { id, picture, variants, options, shifts, .. } = self.loaded.world.clone();
        let world = PyDict::new(py);
        world.set_item("world", id)?;
        world.set_item("picture", picture)?;
        world.set_item("variants", variants)?;
        world.set_item("options", options)?;
        world.set_item("shifts", shifts)?;
        world.set_item("trust", false)?;
        Ok((PyBytes::new(py, &self.loaded.file.to_bytes()), &self.loaded.source, world))
    }

    /// Kind, origin, world, number of parameters, and the description of the world.
    fn about<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let about = PyDict::new(py);
        about.set_item("kind", self.loaded.file.name())?;
        about.set_item("source", &self.loaded.source)?;
        about.set_item("world", &self.loaded.world.id)?;
        about.set_item("parameters", self.loaded.file.params().len())?;
        about.set_item("picture", &self.loaded.world.picture)?;
        about.set_item("spec", described(py, &self.spec)?)?;
        Ok(about)
    }

    /// Returns whether these are the bytes of a file with the same weights.
    fn is_of(&self, bytes: &[u8]) -> bool {
        let file =
            TensorFile::from_bytes(bytes).ok().and_then(|tensors| AgentFile::from_tensors(tensors).ok());
        file.is_some_and(|file| {
            file.name() == self.loaded.file.name() && file.params() == self.loaded.file.params()
        })
    }

    /// The bytes of the file of the champion that this is; `None` of another agent.
    fn champion<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let named = |champion: &&Champion| self.loaded.source == format!("{} champion", champion.name);
        let champion = champions().find(named).filter(|champion| self.is_of(champion.weights))?;
        Some(PyBytes::new(py, champion.weights))
    }

    /// All parameters by name.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let mut rest = self.loaded.file.params();
        for TensorShape { name, shape } in self.loaded.file.tensors() {
            let (values, others) = rest.split_at(shape.iter().product());
            dict.set_item(name, arrays::array(py, shape, values)?)?;
            rest = others;
        }
        Ok(dict)
    }

    /// Begins an episode.
    fn reset(&self, py: Python<'_>, seed: u64, episode: usize) -> PyResult<()> {
        hold(py, &self.acting, "agent")?.begin(episode_seed(seed, episode));
        Ok(())
    }

    /// Decides: numbers, or a choice.
    fn act<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyAny>,
        reward: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut acting = hold(py, &self.acting, "agent")?;
        let shown = arrays::given(py, &self.spec.observation, observation)?;
        let Acting { agent, context, attention } = &mut *acting;
        context.reward = reward;
        let space = &self.spec.action;
        let decided = caught(py, || {
            py.detach(|| -> Result<_, PolicyError> {
                let decision = agent.act(shown.as_observation(), context)?;
                Ok((decision.action.to_vec(), decision.attention.as_ref().map(Seen::of)))
            })
        })?;
        let refused = |error: PolicyError| raised(py, Kind::Foveate, error.to_string());
        let (outputs, seen) = decided.map_err(refused)?;
        *attention = seen;
        match space.choose(&outputs).map_err(refused)? {
            foveate::Action::Discrete(choice) => {
                context.choice = Some(choice);
                Ok(choice.into_pyobject(py)?.into_any())
            }
            foveate::Action::Continuous(numbers) => {
                Ok(arrays::array(py, &[numbers.len()], numbers)?.into_any())
            }
        }
    }

    /// What the last decision attended to, as keyword arguments of `foveate.Attention`; `None` without attention.
    fn attention<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let acting = hold(py, &self.acting, "agent")?;
        let Some(Seen { kind, shape, names, weights, dims, selected }) = &acting.attention else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("tokens", kind)?;
        dict.set_item("shape", shape.clone())?;
        dict.set_item("names", names.clone())?;
        dict.set_item("weights", arrays::array(py, dims, weights)?)?;
        let (tokens, ranks) = selected.as_ref().map(|(tokens, ranks)| (&**tokens, &**ranks)).unzip();
        for (name, values) in [("selected", tokens), ("ranks", ranks)] {
            dict.set_item(
                name,
                values.map(|values| arrays::array(py, &[values.len()], values)).transpose()?,
            )?;
        }
        Ok(Some(dict))
    }
}

impl Acting {
    fn begin(&mut self, episode: Seed) {
        self.agent.begin_episode(episode);
        (self.context, self.attention) = (ActContext::new(episode, foveate::core::ActMode::Greedy), None);
    }
}

impl Agent {
    fn of(py: Python<'_>, loaded: LoadedAgent) -> PyResult<Self> {
        let spec = caught(py, || py.detach(|| foveate::run::worlds::shape(&loaded.world)))?;
        let spec = spec.map_err(|error| of_run(py, &error))?;
        let agent = loaded.agent().map_err(|error| of_run(py, &error))?;
        let mut acting = Acting { agent, context: ActContext::default(), attention: None };
        acting.begin(episode_seed(0, 0));
        Ok(Agent { loaded, spec, acting: Mutex::new(acting) })
    }
}

/// The first exception of a Python function that was called in a job.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// Functions of Python as an agent: an observation in, an action out, and a map of what it attends to.
pub(crate) struct PythonPolicy {
    act: Arc<Py<PyAny>>,
    attend: Option<Arc<Py<PyAny>>>,
    begin: Option<Arc<Py<PyAny>>>,
    space: ActionSpace,
    /// Of worlds of numbers, a name for each.
    sensors: Arc<[String]>,
    raised: Raised,
    action: Vec<f64>,
    weights: Vec<f32>,
    /// Rows and columns of the map over the picture.
    cells: [usize; 2],
}

impl PythonPolicy {
    pub(crate) fn new(
        act: Py<PyAny>,
        attend: Option<Py<PyAny>>,
        begin: Option<Py<PyAny>>,
        spec: &EnvSpec,
        sensors: &[&str],
        raised: Raised,
    ) -> Self {
        let named =
            |i: usize| sensors.get(i).map_or_else(|| format!("sensor {i}"), |name| (*name).to_owned());
        PythonPolicy {
            act: Arc::new(act),
            attend: attend.map(Arc::new),
            begin: begin.map(Arc::new),
            space: spec.action.clone(),
            sensors: (0..spec.observation.numbers()).map(named).collect(),
            raised,
            action: vec![],
            weights: vec![],
            cells: [0, 0],
        }
    }

    /// Keeps the exception, and describes it.
    fn failed(&self, py: Python<'_>, what: &str, error: PyErr) -> PolicyError {
        let why = format!("the policy's {what} raised {}", error.value(py));
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        PolicyError::BadConfig { why }
    }

    fn decide(&mut self, py: Python<'_>, observation: Observation<'_>) -> Result<(), PolicyError> {
        let shown =
            arrays::observation(py, observation).map_err(|error| self.failed(py, "observation", error))?;
        let acted = self.act.bind(py).call1((&shown,)).and_then(|action| self.take(&action));
        acted.map_err(|error| self.failed(py, "action", error))?;
        if let Some(attend) = self.attend.clone() {
            let map = attend.bind(py).call1((&shown,)).and_then(|map| self.take_map(&map, observation));
            map.map_err(|error| self.failed(py, "attention", error))?;
        }
        Ok(())
    }

    fn take(&mut self, action: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut taken = self.space.zero();
        arrays::action(&self.space, action, &mut taken)?;
        self.action.clear();
        match taken.as_action() {
            foveate::Action::Continuous(numbers) => self.action.extend_from_slice(numbers),
            foveate::Action::Discrete(choice) => {
                if choice >= self.space.len() {
                    let message = format!("choice {choice}; take {}", self.space.describe());
                    return Err(raised(action.py(), Kind::Action, message));
                }
                self.action.resize(self.space.len(), 0.0);
                self.action[choice] = 1.0;
            }
        }
        Ok(())
    }

    fn take_map(&mut self, map: &Bound<'_, PyAny>, observation: Observation<'_>) -> PyResult<()> {
        let mut numbers = vec![];
        let shape = arrays::numbers(map, &mut numbers)?;
        let wrong = |wanted: String| {
            let message = format!("an attention map of shape {shape:?}; {wanted}");
            Err(raised(map.py(), Kind::Option, message))
        };
        match (observation.image().is_some(), &*shape) {
            (true, &[rows, columns]) if rows * columns > 0 => self.cells = [rows, columns],
            (true, _) => return wrong("that of a picture has rows and columns".into()),
            (false, &[count]) if count == self.sensors.len() && count > 0 => {}
            (false, _) => {
                return wrong(format!("that of {} sensors has one number for each", self.sensors.len()));
            }
        }
        if let Some(index) = numbers.iter().position(|number| !number.is_finite()) {
            return wrong(format!("its number {index} is {}", numbers[index]));
        }
        self.weights.clear();
        self.weights.extend(numbers.iter().map(|&number| number as f32));
        Ok(())
    }
}

impl foveate::Agent for PythonPolicy {
    fn begin_episode(&mut self, _: Seed) {
        if let Some(begin) = &self.begin {
            Python::attach(|py| {
                if let Err(error) = begin.bind(py).call0() {
                    // The next decision reports it.
                    self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
        }
    }

    fn act(&mut self, observation: Observation<'_>, _: &mut ActContext) -> Result<Decision<'_>, PolicyError> {
        if self.raised.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Err(PolicyError::BadConfig { why: "the policy has raised an exception".into() });
        }
        Python::attach(|py| self.decide(py, observation))?;
        let decision = Decision::new(&self.action);
        if self.attend.is_none() {
            return Ok(decision);
        }
        let [rows, columns] = self.cells;
        let tokens = if observation.image().is_some() {
            Tokens::Cells { rows, columns }
        } else {
            Tokens::Named(&self.sensors)
        };
        Ok(decision.with_attention(Attention::soft(tokens, 1, 1, &self.weights)?))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![]
    }

    fn params(&self) -> Vec<f32> {
        vec![]
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.is_empty() {
            return Ok(());
        }
        Err(PolicyError::ParamCount { wanted: 0, given: flat.len(), tensors: "none".into() })
    }

    fn set_threads(&mut self, _: &Threads) {}

    fn boxed_clone(&self) -> Box<dyn foveate::Agent> {
        Box::new(PythonPolicy {
            act: Arc::clone(&self.act),
            attend: self.attend.clone(),
            begin: self.begin.clone(),
            space: self.space.clone(),
            sensors: Arc::clone(&self.sensors),
            raised: Arc::clone(&self.raised),
            action: self.action.clone(),
            weights: self.weights.clone(),
            cells: self.cells,
        })
    }
}
