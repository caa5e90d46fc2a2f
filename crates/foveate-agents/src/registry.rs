//! Agents by name.

use foveate_core::{Agent, Apprentice, PolicyError, Seat, Seed, TensorShape};
use serde_json::Value;

use crate::{AttentionAgent, AttentionAgentConfig, LstmApprentice};

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

/// Every agent there is.
pub const fn list() -> &'static [AgentInfo] {
    &[ATTENTION_AGENT]
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
    Ok(Box::new(Seat::new(AttentionAgent::new(parse(name, config)?)?)))
}

/// Makes the apprentice that trains the last part of the agent called `name`, of the same flat parameters.
///
/// # Errors
/// As [`make`].
pub fn apprentice(name: &str, config: &Value) -> Result<Box<dyn Apprentice>, PolicyError> {
    Ok(Box::new(LstmApprentice::new(&parse(name, config)?)?))
}

/// The complete configuration that `name` and `config` stand for: every default written out.
///
/// # Errors
/// As [`make`].
pub fn full_config(name: &str, config: &Value) -> Result<Value, PolicyError> {
    let config = parse(name, config)?;
    config.check()?;
    serde_json::to_value(config)
        .map_err(|error| PolicyError::BadConfig { why: format!("agent {name}: {error}") })
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

/// First parameters for the agent called `name`, in the order of its flat vector.
///
/// # Errors
/// As [`make`].
pub fn initial_params(name: &str, config: &Value, init: Init, seed: Seed) -> Result<Vec<f32>, PolicyError> {
    let config = parse(name, config)?;
    config.check()?;
    Ok(initial_attention_params(&config, init, seed))
}

/// First parameters for an AttentionAgent of a valid configuration.
pub fn initial_attention_params(config: &AttentionAgentConfig, init: Init, seed: Seed) -> Vec<f32> {
    let tensors = config.tensors();
    let mut params = Vec::with_capacity(config.param_count());
    let inputs_of = |tensor: &TensorShape| match tensor.name.split('.').next() {
        // PyTorch takes the hidden size for all tensors of an LSTM, and the weight's inputs for a bias.
        Some("lstm" | "output") => config.hidden,
        Some("conv") => config.features.conv.map_or(1, |conv| conv.size * conv.size * 3),
        _ => config.patch_len(),
    };
    for (index, tensor) in tensors.iter().enumerate() {
        let bound = match init {
            Init::Torch => 1.0 / (inputs_of(tensor) as f64).sqrt(),
            Init::Zeros => 0.0,
        };
        let mut rng = seed.child("tensor", index as u64).rng();
        params.extend((0..tensor.len()).map(|_| rng.uniform(-bound, bound) as f32));
    }
    params
}

/// The configuration of the agent called `name`.
fn parse(name: &str, config: &Value) -> Result<AttentionAgentConfig, PolicyError> {
    if name != ATTENTION_AGENT.name {
        let known: Vec<&str> = list().iter().map(|agent| agent.name).collect();
        return Err(PolicyError::UnknownAgent { given: name.to_owned(), known: known.join(", ") });
    }
    if config.is_null() {
        return Ok(AttentionAgentConfig::default());
    }
    serde_path_to_error::deserialize(config).map_err(|error| {
        let (key, error) = (error.path(), error.inner());
        PolicyError::BadConfig { why: format!("agent {name}: {key}: {error}; correct it") }
    })
}
