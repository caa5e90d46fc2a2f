//! What is said of an agent: its descriptor, its settings, and what it sees. The list of all is [`registry`](crate::registry).

use foveate_core::forms::{self, Setting};
use foveate_core::{
    Agent, Descriptor, EnvSpec, Model, ObservationSpace, PolicyError, Seed, TensorShape, near,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::layout::Layout;
use crate::onnx::OnnxModel;
use crate::torch::TorchModule;

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

    /// Makes the model by which the agent learns, of the same flat parameters; `None` for an agent that cannot learn by
    /// gradients.
    ///
    /// # Errors
    /// When it could with other settings.
    fn model(&self) -> Result<Option<Box<dyn Model>>, PolicyError> {
        Ok(None)
    }

    /// Makes the ONNX model of the agent with these parameters in a world of this shape; `None` for an agent without one.
    ///
    /// # Errors
    /// When it would have one with other settings, or the world shows or takes something else than the agent.
    fn onnx(&self, _params: &[f32], _spec: &EnvSpec) -> Result<Option<OnnxModel>, PolicyError> {
        Ok(None)
    }

    /// The agent's module of `PyTorch`; `None` for an agent without one.
    ///
    /// # Errors
    /// When it would have one with other settings.
    fn torch(&self) -> Result<Option<TorchModule>, PolicyError> {
        Ok(None)
    }
}

/// What an agent is to see of a world's picture: what wrappers around the world make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureView {
    /// True if the picture is grey.
    pub grey: bool,
    /// True if it holds the readouts that the world draws beside the scene, such as a speedometer.
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
