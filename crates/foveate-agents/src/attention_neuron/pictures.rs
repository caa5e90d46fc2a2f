//! AttentionNeuron on pictures: every patch is a sensor.

use foveate_core::{EnvSpec, PolicyError};
use serde_json::{Value, json};

use crate::config::bad;
use crate::registry::AgentConfig;

/// Reads the settings of an agent that senses a picture.
///
/// # Errors
/// Always: the agent for pictures is not built.
pub(super) fn read(_: &Value) -> Result<Box<dyn AgentConfig>, PolicyError> {
    bad("senses = \"picture\" is not built yet; choose senses = \"numbers\" in a world that shows numbers")
}

/// The settings for a world with a picture of this shape.
pub(super) fn fit(spec: &EnvSpec) -> Value {
    json!({ "senses": "picture", "actions": spec.action.bounds() })
}
