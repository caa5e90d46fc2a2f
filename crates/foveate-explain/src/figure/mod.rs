//! Figures: what is drawn, and the numbers that it is drawn from.

mod axes;
mod count;
mod drawing;
mod raster;
mod round_axis;
mod svg;
mod table;

pub use axes::{LETTERS, Margins, Plot, Scale, short};
pub use count::{count_steps, steps_tick};
pub use drawing::{Anchor, Drawing, Ink, Shape};
pub use raster::{raster, raster_dark};
pub use round_axis::RoundAxis;
pub use svg::{Dress, plain_svg, style_rules, svg, variables};
pub use table::{Cell, DataTable};

/// A figure of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in files: lower case, with dashes.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: String,
    /// What to see in it, for people.
    pub caption: String,
    /// True if it takes the whole width of the page.
    pub wide: bool,
    /// What is drawn.
    pub drawing: Drawing,
    /// The numbers behind it.
    pub table: DataTable,
}
