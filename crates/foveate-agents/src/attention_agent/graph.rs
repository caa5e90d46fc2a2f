//! The agent in a graph of ONNX.

use foveate_core::{EnvSpec, PolicyError};

use super::AttentionAgentConfig;
use crate::bottleneck::graph::{control, look};
use crate::controller::ControllerConfig;
use crate::descriptor::AgentConfig;
use crate::onnx::{Graph, OnnxModel, act, params};

/// The graph of an AttentionAgent.
pub(super) fn model(
    config: &AttentionAgentConfig,
    flat: &[f32],
    spec: &EnvSpec,
) -> Result<OnnxModel, PolicyError> {
    let params = params(config.tensors(), flat)?;
    let mut graph = Graph::new(&params);
    let values = look(&mut graph, spec, &config.bottleneck())?;
    let controller = ControllerConfig::Lstm { hidden: config.hidden };
    let raw = control(&mut graph, &controller, &values);
    act(&mut graph, spec, &raw, &config.actions)?;
    graph.finish(
        "attention-agent",
        "AttentionAgent (Tang, Nguyen and Ha 2020): patches vote, an LSTM acts on where the most important ones are",
    )
}
