//! The agent in a graph of ONNX.

use foveate_core::{EnvSpec, ObservationSpace, PolicyError, SENSORS};

use super::{ImplicitAttentionConfig, LastAction};
use crate::bottleneck::graph::{control, look};
use crate::descriptor::AgentConfig;
use crate::onnx::{Graph, OnnxModel, PortNumbers, act, first_largest, misfit, one_hot, params, sizes};

/// The graph of an IAP agent.
pub(super) fn model(
    config: &ImplicitAttentionConfig,
    flat: &[f32],
    spec: &EnvSpec,
) -> Result<OnnxModel, PolicyError> {
    let params = params(config.tensors(), flat)?;
    let mut graph = Graph::new(&params);
    let values = look(&mut graph, spec, &config.bottleneck())?;
    let mut told = vec![values];
    if config.sensors > 0 {
        if spec.observation.part(SENSORS).map(ObservationSpace::numbers) != Some(config.sensors) {
            return Err(misfit(spec, &format!("{} numbers of sensors beside the picture", config.sensors)));
        }
        let about = "what other sensors say";
        told.push(graph.input(SENSORS, PortNumbers::F32, &sizes(&[config.sensors]), about));
    }
    let actions = sizes(&[config.actions.len()]);
    if config.last_action != LastAction::None {
        told.push(graph.state("before", &actions));
    }
    let told = graph.concat(&told.iter().collect::<Vec<_>>(), 0);
    let raw = control(&mut graph, &config.controller, &told);
    match config.last_action {
        LastAction::None => {}
        LastAction::Values => graph.next_state("before", &actions, &raw),
        LastAction::Choice => {
            let choice = first_largest(&mut graph, &raw);
            let choice = one_hot(&mut graph, &choice, config.actions.len());
            graph.next_state("before", &actions, &choice);
        }
    }
    act(&mut graph, spec, &raw, &config.actions)?;
    graph.finish(
        "iap",
        "IAP (Choromanski et al. 2021): patches vote in linear time, a controller acts on the most important ones",
    )
}
