//! Results that the papers report.

use foveate_registry::WORLDS;
use serde::{Deserialize, Serialize};

/// A published result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Mean return.
    pub mean: f64,
    /// Standard deviation over episodes.
    pub std: f64,
}

/// The source of the published rows of this world.
pub(super) fn source(world: &str) -> Option<&'static str> {
    Some(WORLDS.get(world)?.published?.source)
}

/// The published result of an agent in this variant of this world; `original` is the unmodified world.
pub fn published(world: &str, variant: &str) -> Option<Published> {
    let published = WORLDS.get(world)?.published?;
    let score = published.scores.iter().find(|score| score.variant == variant)?;
    Some(Published { mean: score.mean, std: score.std })
}
