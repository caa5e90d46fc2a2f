//! Published experiments: what was published, what was measured here, and what the two say together.
//!
//! An [`Experiment`] is a value in a file. Measurements are [`Measured`] episodes; [`Judged`] compares them with what was published
//! by tests in [`verdict`]. What runs an experiment is `foveate::jobs::Reproduce`.

pub mod documents;
mod experiment;
mod folder;
mod limit;
mod measured;
mod table;
#[cfg(test)]
mod tests;
pub mod verdict;

pub use experiment::{
    Arm, Condition, Evaluation, Experiment, FigureKind, Measure, Number, Numbers, Paper, PublishedNumber,
    Row, Rule, Trained,
};
pub use folder::{
    Begun, ExperimentFolder, begun, evaluation_key, evaluation_name, file_name, find_weights, is_evaluated,
    run_name,
};
pub use limit::Limit;
pub use measured::{FORMAT, Judged, JudgedRow, Machine, Measured, read};
pub use verdict::{Ours, Verdict};
