//! What the papers report.

use serde::{Deserialize, Serialize};

/// A published result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Mean return.
    pub mean: f64,
    /// Standard deviation over episodes.
    pub std: f64,
}

/// Who measured CarRacing's rows, with what.
const CAR_RACING: &str = "AttentionAgent on gym's CarRacing-v0 (here: picture classic), 100 episodes: Tang, \
                                     Nguyen and Ha, Neuroevolution of Self-Interpretable Agents, GECCO 2020, and its \
                                     authors' repository (color3, noise)";

/// The same for `DoomTakeCover`.
const TAKE_COVER: &str = "AttentionAgent on DoomTakeCover (here: picture exact), 100 episodes: Tang, Nguyen and Ha, \
                          Neuroevolution of Self-Interpretable Agents, GECCO 2020";

/// Who measured the rows of this world, with what.
pub(super) fn source(world: &str) -> &'static str {
    if world == "take-cover" { TAKE_COVER } else { CAR_RACING }
}

/// World, variant, mean, standard deviation.
const RESULTS: &[(&str, &str, f64, f64)] = &[
    ("car-racing", "original", 914.0, 15.0),
    ("car-racing", "color", 866.0, 112.0),
    ("car-racing", "color3", 673.0, 372.0),
    ("car-racing", "bar", 900.0, 35.0),
    ("car-racing", "blob", 898.0, 53.0),
    ("car-racing", "noise", -58.0, 12.0),
    ("take-cover", "original", 1125.0, 589.0),
    ("take-cover", "higher-walls", 934.0, 560.0),
    ("take-cover", "floor-texture", 1120.0, 613.0),
    ("take-cover", "hovering-text", 1035.0, 627.0),
];

/// What was published about an agent in this variant of this world; `original` is the world as it is.
pub fn published(world: &str, variant: &str) -> Option<Published> {
    let result = RESULTS.iter().find(|(w, v, ..)| *w == world && *v == variant);
    result.map(|&(_, _, mean, std)| Published { mean, std })
}
