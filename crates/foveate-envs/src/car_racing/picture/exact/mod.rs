//! The picture of Gymnasium 1.4.0's CarRacing-v3 with pygame-ce 2.5.8, byte for byte.
//!
//! The reference draws 1000 × 800 pixels bottom up, flips them, adds the bars and the score, and scales
//! everything to 96 × 96. This module does the same but skips pixels that do not affect the result: `place`
//! projects every polygon to whole canvas pixels, `spans` and `outline` compute which of them it covers, and
//! `painter` draws those pixels only in cells of the small picture that an edge crosses; the result of a cell
//! with one colour is known (`palette`). `cells` and `shrink` contain the scaling, `hud` the bars, `text` the
//! score's few pixels, and `reference` (in tests) the plain algorithm over all pixels.
//!
//! Equality with the reference was tested on x86-64 Linux with glibc; elsewhere `sin` and `cos` may differ in
//! the last bit, which occasionally moves a corner by one canvas pixel.
//!
//! Three elements are not in the reference: a backdrop replaces field and grass (each canvas pixel shows the
//! texel under its centre, black outside the backdrop); a blob is a polygon of the car, before the hull's
//! last one; side bars are black columns of the canvas, drawn over the car and above the bar of indicators.

mod cells;
mod hud;
mod outline;
mod painter;
mod palette;
mod place;
#[cfg(test)]
mod reference;
mod shrink;
mod spans;
mod text;

pub(super) use text::ScoreText;

use super::FRAME_BYTES;
use crate::car_racing::scene::Scene;

/// Draws the exact picture.
#[derive(Debug, Clone, Default)]
pub struct ExactPicture {
    placed: place::Placed,
    palette: palette::Palette,
    painter: painter::Painter,
    cells: cells::Cells,
    hud: hud::Hud,
    text: ScoreText,
}

impl ExactPicture {
    /// A picture that has drawn nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws `scene` into `frame`, `[96, 96, 3]` bytes.
    ///
    /// # Panics
    /// If `frame` has another length.
    pub fn draw(&mut self, scene: &Scene<'_>, frame: &mut [u8]) {
        assert_eq!(frame.len(), FRAME_BYTES, "a frame has 96 x 96 x 3 bytes");
        self.placed.place(scene);
        self.palette.begin();
        if let Some(backdrop) = &scene.backdrop {
            self.cells.show(backdrop, &self.placed.view);
        } else {
            let black = self.palette.number([0; 3]).unwrap_or(cells::MIXED);
            self.cells.clear(black);
        }
        for shape in &self.placed.shapes {
            self.painter.paint(shape, &mut self.palette, &mut self.cells);
        }
        // A bar may extend into the world.
        for bar in hud::bars(scene).skip(1).map(place::Shape::turned_over) {
            self.painter.paint(&bar, &mut self.palette, &mut self.cells);
        }
        self.cells.shrink(&self.palette, frame);
        self.hud.draw(scene, frame);
        if scene.indicators {
            self.text.draw(scene.score, frame);
        }
    }
}
