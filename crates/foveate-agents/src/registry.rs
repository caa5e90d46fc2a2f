//! Agents by name.

use foveate_core::{Agent, PolicyAgent, PolicyError, Seed, Student, TensorShape, near};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::controller::ControllerConfig;
use crate::controller_agent::{ControllerAgent, ControllerAgentConfig};
use crate::implicit_attention::hierarchical::{HierarchicalAttention, HierarchicalAttentionConfig};
use crate::implicit_attention::{ImplicitAttention, ImplicitAttentionConfig};
use crate::narrow::narrowed;
use crate::{AttentionAgent, AttentionAgentConfig, LstmStudent, RandomActions, RandomActionsConfig};

/// An agent that can be made by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentInfo {
    /// Its name, as in `--agent`.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
}

const ATTENTION_AGENT: AgentInfo = AgentInfo {
    name: "attention-agent",
    summary: "softmax attention votes for a few patches, an LSTM acts on where they are (Tang et al. 2020)",
};

const IMPLICIT_ATTENTION: AgentInfo = AgentInfo {
    name: "iap",
    summary: "votes in linear time over patches down to one pixel, any controller (Choromanski et al. 2021)",
};

const HIERARCHICAL_ATTENTION: AgentInfo = AgentInfo {
    name: "iap-hierarchical",
    summary: "a high level looks and commands, a low level acts on command and sensors (Choromanski et al. 2021)",
};

const CONTROLLER: AgentInfo = AgentInfo {
    name: "controller",
    summary: "a linear policy, an MLP or an LSTM on the numbers that a world shows, without attention",
};

const RANDOM_ACTIONS: AgentInfo = AgentInfo {
    name: "random-actions",
    summary: "draws its actions evenly and has nothing to learn, for comparison",
};

/// Every agent there is.
pub const fn list() -> &'static [AgentInfo] {
    &[ATTENTION_AGENT, IMPLICIT_ATTENTION, HIERARCHICAL_ATTENTION, CONTROLLER, RANDOM_ACTIONS]
}

/// Where parameters start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Init {
    /// Uniform in ±1/√(inputs) for linear and convolutional layers and ±1/√(hidden units) for the LSTM, as PyTorch
    /// does by default.
    #[default]
    Torch,
    /// Zeros.
    Zeros,
}

/// Makes the agent called `name`. `config` is its configuration as JSON, `null` or `{}` for the defaults; TOML and
/// other formats get here through [`serde_json::to_value`].
///
/// # Errors
/// When there is no such agent, or the configuration has unknown or impossible entries.
pub fn make(name: &str, config: &Value) -> Result<Box<dyn Agent>, PolicyError> {
    Ok(match parse(name, config)? {
        Known::Attention(config) => Box::new(PolicyAgent::new(AttentionAgent::new(config)?)),
        Known::Implicit(config) => Box::new(PolicyAgent::new(ImplicitAttention::new(config)?)),
        Known::Hierarchical(config) => Box::new(PolicyAgent::new(HierarchicalAttention::new(config)?)),
        Known::Controller(config) => Box::new(PolicyAgent::new(ControllerAgent::new(config)?)),
        Known::Random(config) => Box::new(PolicyAgent::new(RandomActions::new(config)?)),
    })
}

/// Makes the student that trains the last part of the agent called `name`, of the same flat parameters.
///
/// # Errors
/// As [`make`]; when the agent has no part that learns from an expert.
pub fn student(name: &str, config: &Value) -> Result<Box<dyn Student>, PolicyError> {
    let of = parse(name, config)?;
    of.check()?;
    match of {
        Known::Attention(config) => Ok(Box::new(LstmStudent::new(&config)?)),
        Known::Implicit(config) => match config.controller {
            ControllerConfig::Lstm { hidden } => {
                Ok(Box::new(LstmStudent::of(config.tensors(), config.inputs(), hidden, config.actions)))
            }
            ControllerConfig::Linear {} | ControllerConfig::Mlp { .. } => Err(PolicyError::BadConfig {
                why: format!(
                    "agent {name}: only an LSTM learns from an expert; set controller.kind = \"lstm\" or leave out \
                     stages with algorithm = \"imitation\""
                ),
            }),
        },
        Known::Hierarchical(_) | Known::Controller(_) | Known::Random(_) => Err(PolicyError::BadConfig {
            why: format!(
                "agent {name} cannot learn from an expert; leave out stages with algorithm = \"imitation\""
            ),
        }),
    }
}

/// The complete configuration that `name` and `config` stand for: every default written out.
///
/// # Errors
/// As [`make`].
pub fn full_config(name: &str, config: &Value) -> Result<Value, PolicyError> {
    let config = parse(name, config)?;
    config.check()?;
    config.to_value().map_err(|error| PolicyError::BadConfig { why: format!("agent {name}: {error}") })
}

/// Name and shape of every tensor of the agent called `name`, without making it.
///
/// # Errors
/// As [`make`].
pub fn tensors(name: &str, config: &Value) -> Result<Vec<TensorShape>, PolicyError> {
    let config = parse(name, config)?;
    config.check()?;
    Ok(config.tensors())
}

/// `params` of the agent called `name`, with a controller that is told about the first `k` of the patches that it
/// chooses only; of the others it is told a neutral value, as that they are in the middle of the picture. `None` for an
/// agent that looks at nothing.
///
/// # Errors
/// As [`make`]; when `params` are not as many as the agent has.
pub fn fewer_patches(
    name: &str,
    config: &Value,
    params: &[f32],
    k: usize,
) -> Result<Option<Vec<f32>>, PolicyError> {
    let known = parse(name, config)?;
    known.check()?;
    let tensors = known.tensors();
    let wanted: usize = tensors.iter().map(TensorShape::len).sum();
    if params.len() != wanted {
        return Err(PolicyError::BadConfig {
            why: format!("agent {name}: {} parameters, {wanted} are due", params.len()),
        });
    }
    let narrowed = |bottleneck, controller| narrowed(params, &tensors, bottleneck, controller, k);
    Ok(match &known {
        Known::Attention(config) => {
            let lstm = ControllerConfig::Lstm { hidden: config.hidden };
            Some(narrowed(&config.bottleneck(), (&lstm, "")))
        }
        Known::Implicit(config) => Some(narrowed(&config.bottleneck(), (&config.controller, ""))),
        Known::Hierarchical(config) => {
            Some(narrowed(&config.bottleneck(), (&config.high.controller, "high.")))
        }
        Known::Controller(_) | Known::Random(_) => None,
    })
}

/// First parameters for the agent called `name`, in the order of its flat vector.
///
/// # Errors
/// As [`make`].
pub fn initial_params(name: &str, config: &Value, init: Init, seed: Seed) -> Result<Vec<f32>, PolicyError> {
    Ok(draw(&tensors(name, config)?, init, seed))
}

/// First parameters for an AttentionAgent of a valid configuration.
pub fn initial_attention_params(config: &AttentionAgentConfig, init: Init, seed: Seed) -> Vec<f32> {
    draw(&config.tensors(), init, seed)
}

/// First parameters for `tensors`.
fn draw(tensors: &[TensorShape], init: Init, seed: Seed) -> Vec<f32> {
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
        if tensor.name == "aggregation.weight" {
            // All votes count alike until it is learnt otherwise; without any there would be nothing to learn from.
            params.resize(params.len() + tensor.len(), 1.0);
            continue;
        }
        let bound = match init {
            Init::Torch => 1.0 / (inputs_of(tensor) as f64).sqrt(),
            Init::Zeros => 0.0,
        };
        let mut rng = seed.child("tensor", index as u64).rng();
        params.extend((0..tensor.len()).map(|_| rng.uniform(-bound, bound) as f32));
    }
    params
}

/// The configuration of an agent there is.
enum Known {
    Attention(AttentionAgentConfig),
    Implicit(ImplicitAttentionConfig),
    Hierarchical(HierarchicalAttentionConfig),
    Controller(ControllerAgentConfig),
    Random(RandomActionsConfig),
}

impl Known {
    fn check(&self) -> Result<(), PolicyError> {
        match self {
            Known::Attention(config) => config.check().map(drop),
            Known::Implicit(config) => config.check().map(drop),
            Known::Hierarchical(config) => config.check(),
            Known::Controller(config) => config.check(),
            Known::Random(config) => config.check(),
        }
    }

    fn tensors(&self) -> Vec<TensorShape> {
        match self {
            Known::Attention(config) => config.tensors(),
            Known::Implicit(config) => config.tensors(),
            Known::Hierarchical(config) => config.tensors(),
            Known::Controller(config) => config.tensors(),
            Known::Random(_) => vec![],
        }
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        fn value(config: &impl Serialize) -> Result<Value, serde_json::Error> {
            serde_json::to_value(config)
        }
        match self {
            Known::Attention(config) => value(config),
            Known::Implicit(config) => value(config),
            Known::Hierarchical(config) => value(config),
            Known::Controller(config) => value(config),
            Known::Random(config) => value(config),
        }
    }
}

/// The configuration of the agent called `name`.
fn parse(name: &str, config: &Value) -> Result<Known, PolicyError> {
    match name {
        _ if name == ATTENTION_AGENT.name => settings(name, config).map(Known::Attention),
        _ if name == IMPLICIT_ATTENTION.name => settings(name, config).map(Known::Implicit),
        _ if name == HIERARCHICAL_ATTENTION.name => settings(name, config).map(Known::Hierarchical),
        _ if name == CONTROLLER.name => settings(name, config).map(Known::Controller),
        _ if name == RANDOM_ACTIONS.name => settings(name, config).map(Known::Random),
        _ => {
            let known: Vec<&str> = list().iter().map(|agent| agent.name).collect();
            Err(PolicyError::UnknownAgent { given: name.to_owned(), known: known.join(", ") })
        }
    }
}

/// Reads the settings of the agent called `name`.
fn settings<C: DeserializeOwned + Default>(name: &str, config: &Value) -> Result<C, PolicyError> {
    if config.is_null() {
        return Ok(C::default());
    }
    serde_path_to_error::deserialize(config).map_err(|error| {
        let (key, error) = (error.path(), error.inner().to_string());
        let hint =
            near::unknown_word(&error).map_or_else(String::new, |(given, known)| near::hint_of(given, known));
        let remedy = if hint.is_empty() { " correct it" } else { &*hint };
        PolicyError::BadConfig { why: format!("agent {name}: {key}: {error};{remedy}") }
    })
}
