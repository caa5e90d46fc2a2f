//! The analyses of a report: a file each, and their list.

pub mod asked;
pub mod cell_edits;
pub mod covers;
pub mod edited_worlds;
pub mod erasures;
pub mod interest;
pub mod looks;
pub mod matters;
pub mod message;
pub mod minute;
pub mod node_links;
pub mod positions;
pub mod saliency;
pub mod sensor_codes;
pub mod sensor_effects;

use super::finding::Analysis;

/// All analyses of a report, in the order of the page; each may build on those above it.
pub const ANALYSES: &[&dyn Analysis] = &[
    &matters::Matters,
    &minute::InAMinute,
    &asked::AskedOfFunction,
    &looks::Where,
    &interest::What,
    &covers::CoversTest,
    &erasures::Without,
    &positions::Positions,
    &saliency::OtherMethod,
    &sensor_codes::WhichSensors,
    &sensor_effects::SensorsTest,
    &message::MessageOfSensors,
    &node_links::WhichCells,
    &cell_edits::CellsTest,
    &edited_worlds::WholeEpisodes,
];
