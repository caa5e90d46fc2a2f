//! The report's figures, each from the numbers that it keeps as its table.

mod attention;
mod dots;
mod looks;
mod pictures;
mod time;

pub use attention::attention_figure;
pub use dots::{Row, Rows, Series, curves, dots};
pub(crate) use looks::glow;
pub use looks::{around, gaze_map, hold_lengths, importance, over_time, region_shares};
pub use pictures::{Card, SaliencyRow, cards, patch_samples, saliency_maps};
pub use time::traces;

/// Width of a figure that has half of the page, and of one that has all of it.
const HALF: f64 = 500.0;
const WHOLE: f64 = 1040.0;

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
