//! Explanations: what an agent attends to, in pictures and numbers, and tests of whether it acts on that.
//!
//! * [`overlay`](overlay()): what was attended to, laid over the picture: for selected patches [`whiten`], the published
//!   look, whiter the more important they were; for soft attention [`heat_map`].
//! * [`attention_overlay`]: [`whiten`], enlarged.
//! * [`attention_marks`]: the same patches as rectangles with an opacity, for whoever draws frames around them.
//! * [`charts::attention_figure`]: attention of any kind as a figure: bars for named tokens, a table for each head of
//!   nodes that attend to nodes.
//! * [`node_maps`](node_maps()): in grid worlds, where the agent's cell, the cell before it and the objects attend to.
//! * [`PictureEditor`]: pictures with a [`Mask`] covered, kept alone, or a patch moved.
//! * [`looks`]: where it attends; [`interest`]: to what; [`faithful`]: whether it acts on that; [`saliency`]: perturbation
//!   saliency, an independent method.
//! * [`measures`]: what measures of other tools are made of.
//! * [`figure`]: figures with the numbers behind them.
//! * [`page`]: the report as one HTML page.
//! * [`study`](mod@study): plays, tests and drives episodes, and makes the whole report of them.
//!
//! **Invariant:** nothing is read or written here, and no thread is started: the caller hands in a
//! [`Scheduler`](study::Scheduler). Worlds are stepped by the episode driver of `foveate-core` alone.

mod blur;
pub mod charts;
mod enlarge;
pub mod estimate;
pub mod faithful;
pub mod figure;
pub mod interest;
mod intervene;
mod least_squares;
pub mod looks;
mod mask;
pub mod measures;
mod node_maps;
mod original_order;
mod overlay;
pub mod page;
pub mod saliency;
pub mod study;
pub mod text;
pub mod trajectory;

use foveate_core::Image;

/// The pictures of a stack of `parts` of equal height, one below the other.
fn parts_of(stack: Image<'_>, parts: usize) -> impl Iterator<Item = Image<'_>> {
    let (width, height) = (stack.width(), stack.height() / parts);
    let part = move |rgb| Image::new(width, height, rgb).expect("a part of it");
    stack.rgb().chunks_exact((width * height * 3).max(1)).map(part)
}

pub use blur::gaussian_blur;
pub use enlarge::enlarge_bilinear;
pub use intervene::{BLUR_PX, Fill, PictureEditor, change_size, mean_colour};
pub use mask::{Mask, shuffled};
pub use node_maps::{MapNode, map_nodes, node_maps, node_maps_picture};
pub use original_order::{OriginalOrder, sensor_names};
pub use overlay::{
    AttentionMark, attended_picture, attention_marks, attention_overlay, effect_marks, heat_map, overlay,
    whiten,
};
