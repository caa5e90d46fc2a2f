//! Agents by name.
//!
//! An agent is a file that ends with its [`AgentDescriptor`]; [`AGENTS`] is the list of them. To add one, write the file,
//! name it in `lib.rs` and in the list. A program that uses this library adds its own with [`Registry::register`].

use foveate_core::{
    Agent, EnvSpec, Model, ObservationSpace, PolicyError, Registry, RegistryError, Seed, TensorShape,
};
use serde_json::Value;

pub use crate::descriptor::{
    AgentConfig, AgentDescriptor, Init, PictureView, PublishedWeights, PublishedWorld, Sees, draw, read,
};
pub use crate::fit::picture;
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

/// The published weights of `params` numbers, each with the agent under which they were published: `agent`, or any.
pub fn published(agent: Option<&str>, params: usize) -> Vec<(&'static str, &'static PublishedWeights)> {
    let agents = AGENTS.iter().filter(|other| agent.is_none_or(|name| name == other.name));
    let all = agents.flat_map(|agent| agent.published.iter().map(|weights| (agent.name, weights)));
    all.filter(|(_, weights)| weights.params == params).collect()
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

/// Makes the model by which the agent called `name` learns, of the same flat parameters.
///
/// # Errors
/// As [`config`]; when the agent has no part that learns by gradients.
pub fn model(name: &str, config: &Value) -> Result<Box<dyn Model>, PolicyError> {
    let model = self::config(name, config)?.model().map_err(|error| named(name, error))?;
    model.ok_or_else(|| PolicyError::BadConfig {
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

/// `error` with the agent's name.
fn named(name: &str, error: PolicyError) -> PolicyError {
    match error {
        PolicyError::BadConfig { why } => PolicyError::BadConfig { why: format!("agent {name}: {why}") },
        other => other,
    }
}
