//! Charts: the report's figures, each from the numbers that it keeps as its table, and plots that are files of their own.

mod attention;
mod conditions;
mod dots;
mod learning;
mod lines;
mod looks;
mod pictures;
mod positions;
mod time;

pub use attention::attention_figure;
pub use conditions::{AgentMean, ConditionRow, ConditionsHead, Panel, condition_means, condition_panels};
pub use dots::{DotPlot, DotRow, Series, curves, dots};
pub use learning::{ComparedRun, LearningCurve, Mean, RunGroup, compared_runs, learning_curve};
pub use lines::{LinePlot, LineScale, line_plot};
pub(crate) use looks::glow;
pub use looks::{around, attention_map, hold_lengths, importance, over_time, region_shares};
pub use pictures::{Card, SaliencyRow, cards, patch_samples, saliency_maps};
pub use positions::{PositionsPanel, positions};
pub use time::traces;

/// The 95 % interval of a mean, if there is one.
pub type Interval = Option<[f64; 2]>;

/// Width of a figure that has half of the page, and of one that has all of it.
pub(crate) const HALF: f64 = 500.0;
pub(crate) const WHOLE: f64 = 1040.0;

/// A part as per cent, as short as it can be said.
pub fn percent(part: f64) -> String {
    let hundred = 100.0 * part;
    let text = if hundred.abs() >= 10.0 || hundred == 0.0 {
        format!("{hundred:.0}")
    } else if hundred.abs() >= 1.0 {
        format!("{hundred:.1}")
    } else {
        format!("{hundred:.2}")
    };
    format!("{}\u{a0}%", text.replace('-', "−"))
}
