//! Agents by name.
//!
//! An agent is a file that ends with its [`AgentDescriptor`]; [`AGENTS`] is the list of them. To add one, write the file,
//! name it in `lib.rs` and in the list. A program that uses this library adds its own with [`Registry::register`].

use foveate_core::forms::{self, Setting};
use foveate_core::{
    Agent, Descriptor, EnvSpec, ObservationSpace, PolicyError, Registry, RegistryError, Seed, Student,
    TensorShape, near,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use crate::fit::picture;
use crate::layout::Layout;
use crate::{
    actor_critic, attention_agent, attention_neuron, controller_agent, implicit_attention, random_actions,
    relational, s3ta,
};

/// Every agent. The first one that sees what a world shows is the usual one for it.
pub static AGENTS: Registry<AgentDescriptor> = Registry::new(
    "agent",
    &[
        &attention_agent::DESCRIPTOR,
        &implicit_attention::DESCRIPTOR,
        &implicit_attention::hierarchical::DESCRIPTOR,
        &controller_agent::DESCRIPTOR,
        &attention_neuron::DESCRIPTOR,
        &relational::classifier::DESCRIPTOR,
        &relational::agent::DESCRIPTOR,
        &s3ta::DESCRIPTOR,
        &actor_critic::DESCRIPTOR,
        &random_actions::DESCRIPTOR,
    ],
);

/// An agent that can be made by name.
#[derive(Debug, Clone, Copy)]
pub struct AgentDescriptor {
    /// Its name, as in `--agent`.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// What it acts on.
    pub sees: Sees,
    /// Reads and completes its settings, usually with [`read`].
    pub read: fn(&Value) -> Result<Box<dyn AgentConfig>, PolicyError>,
    /// The settings that fit it to a world of this shape. The second argument is the range of every number that the
    /// world shows, `[low, high]`, when the agent sees [`Sees::Numbers`] there; otherwise it is empty.
    pub fit: fn(&EnvSpec, &[[f64; 2]]) -> Value,
    /// Weights that its authors published.
    pub published: &'static [PublishedWeights],
}

/// Published weights: one flat vector in a file that does not say what they are.
#[derive(Debug, Clone, Copy)]
pub struct PublishedWeights {
    /// Name of the published file, without its ending.
    pub name: &'static str,
    /// Number of parameters, by which the file is recognised.
    pub params: usize,
    /// The agent that they are for, which may be another than the one under which they were published.
    pub agent: &'static str,
    /// Its settings that differ from the defaults.
    pub settings: fn() -> Value,
    /// Their order in the file.
    pub layout: Layout,
    /// The world in which they were trained.
    pub world: PublishedWorld,
    /// Mean and standard deviation of the returns that were published with them.
    pub score: [f64; 2],
    /// SHA-256 of the numbers in single precision, little-endian, where it is known: it tells the file from others of as many
    /// numbers.
    pub sha256: Option<&'static str>,
}

/// The world of [`PublishedWeights`].
#[derive(Debug, Clone, Copy)]
pub struct PublishedWorld {
    /// Its name, as in `--env`.
    pub id: &'static str,
    /// Name of the picture; `None` for the world's default.
    pub picture: Option<&'static str>,
    /// Options by name.
    pub options: &'static [(&'static str, &'static str)],
}

/// The published weights of `params` numbers, each with the agent under which they were published: `agent`, or any.
pub fn published(agent: Option<&str>, params: usize) -> Vec<(&'static str, &'static PublishedWeights)> {
    let agents = AGENTS.iter().filter(|other| agent.is_none_or(|name| name == other.name));
    let all = agents.flat_map(|agent| agent.published.iter().map(|weights| (agent.name, weights)));
    all.filter(|(_, weights)| weights.params == params).collect()
}

impl AgentDescriptor {
    /// What it acts on in a world that shows this: never one of two.
    pub fn sees_in(&self, observation: &ObservationSpace) -> Sees {
        match self.sees {
            Sees::PictureOrNumbers | Sees::Anything if observation.picture().is_some() => Sees::Picture,
            Sees::Anything if matches!(observation, ObservationSpace::Grid { .. }) => Sees::Grid,
            Sees::PictureOrNumbers | Sees::Anything => Sees::Numbers,
            one => one,
        }
    }

    /// Every setting with its form and its default.
    pub fn settings(&self) -> Vec<Setting> {
        forms::settings(&Value::Object(Map::new()), &|config| self.complete(config))
    }

    /// Which setting of `config` has the wrong form, by its name after `prefix`, and what it wants; `None` when none has.
    pub fn refusal(&self, config: &Value, prefix: &str) -> Option<String> {
        forms::refusal(config, &|config| self.complete(config), prefix)
    }

    fn complete(&self, config: &Value) -> Result<Value, String> {
        let config = (self.read)(config).map_err(|error| error.to_string())?;
        config.to_value().map_err(|error| error.to_string())
    }
}

impl Descriptor for AgentDescriptor {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// What an agent acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// A picture; other sensors beside it only when its settings say so.
    Picture,
    /// Numbers, those beside a picture included.
    Numbers,
    /// A picture where the world shows one, else numbers; [`AgentDescriptor::sees_in`] says which.
    PictureOrNumbers,
    /// A grid of cells.
    Grid,
    /// A picture or a grid where the world shows one, else numbers; [`AgentDescriptor::sees_in`] says which.
    Anything,
    /// Nothing: it does the same whatever is shown.
    Nothing,
}

impl Sees {
    /// In words.
    pub const fn describe(self) -> &'static str {
        match self {
            Sees::Picture => "a picture",
            Sees::Numbers => "numbers",
            Sees::PictureOrNumbers => "a picture or numbers",
            Sees::Grid => "a grid of cells",
            Sees::Anything => "numbers, a grid of cells or a picture",
            Sees::Nothing => "nothing",
        }
    }
}

/// The complete settings of an agent, read and not yet checked.
pub trait AgentConfig: Send + Sync {
    /// Checks that an agent can be made of them.
    ///
    /// # Errors
    /// [`PolicyError::BadConfig`] with what is wrong and what to do.
    fn check(&self) -> Result<(), PolicyError>;

    /// The settings with every default written out.
    ///
    /// # Errors
    /// When a value has no form in JSON.
    fn to_value(&self) -> Result<Value, serde_json::Error>;

    /// Name and shape of every parameter tensor, in the order of the flat vector.
    fn tensors(&self) -> Vec<TensorShape>;

    /// Makes the agent, with zeros for parameters.
    ///
    /// # Errors
    /// As [`AgentConfig::check`].
    fn make(&self) -> Result<Box<dyn Agent>, PolicyError>;

    /// How the agent sees a picture that the world shows as it is; `None` for an agent that takes what the world shows.
    fn view(&self) -> Option<PictureView> {
        None
    }

    /// How many parameters the agent has: the numbers in [`AgentConfig::tensors`].
    fn param_count(&self) -> usize {
        self.tensors().iter().map(TensorShape::len).sum()
    }

    /// First parameters, `[n_params]`.
    fn initial_params(&self, init: Init, seed: Seed) -> Vec<f32> {
        draw(&self.tensors(), init, seed)
    }

    /// Makes the student that trains the last part of the agent, of the same flat parameters; `None` for an agent that
    /// cannot learn from an expert.
    ///
    /// # Errors
    /// When it could with other settings.
    fn student(&self) -> Result<Option<Box<dyn Student>>, PolicyError> {
        Ok(None)
    }
}

/// What an agent is to see of a world's picture: what wrappers around the world make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureView {
    /// Whether the picture is grey.
    pub grey: bool,
    /// Whether it holds the readouts that the world draws beside the scene, such as a speedometer.
    pub readouts: bool,
    /// How many of the last pictures it sees at once.
    pub frames: usize,
}

/// Where parameters start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Init {
    /// Uniform in ±1/√(inputs) for linear and convolutional layers and ±1/√(hidden units) for the LSTM, as PyTorch
    /// does by default.
    #[default]
    Torch,
    /// After He et al. 2015: weights normal with the standard deviation √(2 / inputs), biases zero; features keep their
    /// size through layers with `ReLU`.
    He,
    /// Zeros.
    Zeros,
}

/// The agent called `name`.
///
/// # Errors
/// [`PolicyError::UnknownAgent`] with the known names.
pub fn find(name: &str) -> Result<&'static AgentDescriptor, PolicyError> {
    AGENTS.find(name).map_err(|error| match error {
        RegistryError::Unknown { given, known, .. } => PolicyError::UnknownAgent { given, known },
        other => PolicyError::BadConfig { why: other.to_string() },
    })
}

/// The usual agent for a world of this shape: the first of [`AGENTS`] that sees a picture where there is one, a grid where
/// there is one, and numbers elsewhere.
///
/// # Errors
/// When there is no such agent.
pub fn usual(spec: &EnvSpec) -> Result<&'static AgentDescriptor, PolicyError> {
    let sees = match spec.observation {
        ObservationSpace::Grid { .. } => Sees::Grid,
        _ if spec.observation.picture().is_some() => Sees::Picture,
        _ => Sees::Numbers,
    };
    AGENTS.iter().find(|agent| agent.sees == sees).ok_or_else(|| PolicyError::BadConfig {
        why: format!("no agent sees {}; register one that does", sees.describe()),
    })
}

/// The settings of the agent called `name`: `config` as JSON, `null` or `{}` for the defaults. TOML and other formats get
/// here through [`serde_json::to_value`].
///
/// # Errors
/// When there is no such agent, or the settings have unknown or impossible entries.
pub fn config(name: &str, config: &Value) -> Result<Box<dyn AgentConfig>, PolicyError> {
    let agent = find(name)?;
    let config = (agent.read)(config).map_err(|error| {
        let refused = agent.refusal(config, "").map(|why| PolicyError::BadConfig { why });
        named(name, refused.unwrap_or(error))
    })?;
    config.check()?;
    Ok(config)
}

/// Makes the agent called `name`; `config` is as in [`config`].
///
/// # Errors
/// As [`config`].
pub fn make(name: &str, config: &Value) -> Result<Box<dyn Agent>, PolicyError> {
    self::config(name, config)?.make()
}

/// Makes the student that trains the last part of the agent called `name`, of the same flat parameters.
///
/// # Errors
/// As [`config`]; when the agent has no part that learns from an expert.
pub fn student(name: &str, config: &Value) -> Result<Box<dyn Student>, PolicyError> {
    let student = self::config(name, config)?.student().map_err(|error| named(name, error))?;
    student.ok_or_else(|| PolicyError::BadConfig {
        why: format!(
            "agent {name} cannot learn from an expert; leave out stages with algorithm = \"imitation\""
        ),
    })
}

/// The complete configuration that `name` and `config` stand for: every default written out.
///
/// # Errors
/// As [`config`].
pub fn full_config(name: &str, config: &Value) -> Result<Value, PolicyError> {
    let config = self::config(name, config)?;
    config.to_value().map_err(|error| PolicyError::BadConfig { why: format!("agent {name}: {error}") })
}

/// Name and shape of every tensor of the agent called `name`, without making it.
///
/// # Errors
/// As [`config`].
pub fn tensors(name: &str, config: &Value) -> Result<Vec<TensorShape>, PolicyError> {
    Ok(self::config(name, config)?.tensors())
}

/// First parameters for the agent called `name`, in the order of its flat vector.
///
/// # Errors
/// As [`config`].
pub fn initial_params(name: &str, config: &Value, init: Init, seed: Seed) -> Result<Vec<f32>, PolicyError> {
    Ok(self::config(name, config)?.initial_params(init, seed))
}

/// First parameters for `tensors`, each drawn by itself.
pub fn draw(tensors: &[TensorShape], init: Init, seed: Seed) -> Vec<f32> {
    let layer = |tensor: &TensorShape| tensor.name.rsplit_once('.').map_or("", |(layer, _)| layer).to_owned();
    // PyTorch takes the hidden size for all tensors of an LSTM, and the weight's inputs for a bias.
    let inputs_of = |tensor: &TensorShape| {
        let layer = layer(tensor);
        let weight = [format!("{layer}.weight_hh"), format!("{layer}.weight")];
        let weight = tensors.iter().find(|other| weight.contains(&other.name));
        weight.map_or(1, |weight| weight.shape[1..].iter().product())
    };
    let mut params = Vec::with_capacity(tensors.iter().map(TensorShape::len).sum());
    for (index, tensor) in tensors.iter().enumerate() {
        let mut rng = seed.child("tensor", index as u64).rng();
        let inputs = inputs_of(tensor) as f64;
        params.extend((0..tensor.len()).map(|_| match init {
            Init::Torch => rng.uniform(-1.0 / inputs.sqrt(), 1.0 / inputs.sqrt()) as f32,
            Init::He if tensor.shape.len() > 1 => (rng.normal() * (2.0 / inputs).sqrt()) as f32,
            Init::He | Init::Zeros => 0.0,
        }));
    }
    params
}

/// Reads settings of type `C`; `null` stands for the defaults. For [`AgentDescriptor::read`].
///
/// # Errors
/// When an entry is unknown or of the wrong type, with its key.
pub fn read<C>(config: &Value) -> Result<Box<dyn AgentConfig>, PolicyError>
where
    C: AgentConfig + DeserializeOwned + Default + 'static,
{
    if config.is_null() {
        return Ok(Box::new(C::default()));
    }
    let read: Result<C, _> = serde_path_to_error::deserialize(config);
    read.map(|config| Box::new(config) as Box<dyn AgentConfig>).map_err(|error| {
        let (key, error) = (error.path(), error.inner().to_string());
        let hint =
            near::unknown_word(&error).map_or_else(String::new, |(given, known)| near::hint_of(given, known));
        let remedy = if hint.is_empty() { " correct it" } else { &*hint };
        PolicyError::BadConfig { why: format!("{key}: {error};{remedy}") }
    })
}

/// `error` with the agent's name.
fn named(name: &str, error: PolicyError) -> PolicyError {
    match error {
        PolicyError::BadConfig { why } => PolicyError::BadConfig { why: format!("agent {name}: {why}") },
        other => other,
    }
}
