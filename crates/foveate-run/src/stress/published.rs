//! Results that the papers report.

use foveate_agents::registry;
use foveate_envs::registry::Published as Scores;
use foveate_registry::{AGENTS, WORLDS};
use serde::{Deserialize, Serialize};

use super::Tested;
use crate::import::imported_as;

/// A published result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Mean return.
    pub mean: f64,
    /// Standard deviation over episodes.
    pub std: f64,
}

/// The published scores of these weights in `world`: those of the release that has the same kind of agent with the same
/// settings, and from whose file the weights were imported in its order; `None` for all other weights.
pub(super) fn scores(world: &str, tested: &Tested) -> Option<&'static Scores> {
    let Tested::File(file) = tested else { return None };
    let layout = imported_as(file)?;
    WORLDS.get(world)?.published.iter().find(|scores| {
        let [under, name] = scores.release;
        let weights = AGENTS.get(under).and_then(|agent| agent.published.iter().find(|w| w.name == name));
        weights.is_some_and(|weights| {
            (weights.agent, weights.layout) == (file.name(), layout)
                && registry::full_config(weights.agent, &(weights.settings)())
                    .is_ok_and(|config| config == *file.config())
        })
    })
}

/// The result in this variant; `original` is the unmodified world.
pub(super) fn in_variant(scores: &Scores, variant: &str) -> Option<Published> {
    let score = scores.scores.iter().find(|score| score.variant == variant)?;
    Some(Published { mean: score.mean, std: score.std })
}
