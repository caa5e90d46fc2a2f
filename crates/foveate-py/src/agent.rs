//! Agents from files.

use std::path::PathBuf;
use std::sync::Mutex;

use foveate::core::{ActContext, Attention, EnvSpec, PolicyError, Seed, TensorShape, Tokens, episode_seed};
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
