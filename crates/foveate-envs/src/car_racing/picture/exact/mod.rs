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

use std::cell::RefCell;

pub(super) use text::ScoreText;

use super::{FRAME_BYTES, SIDE};
use crate::car_racing::scene::Scene;

/// Draws the exact picture.
#[derive(Debug, Clone, Default)]
pub struct ExactPicture {
    hud: hud::Hud,
    text: ScoreText,
}

/// What is needed while a frame is drawn, and colours that frames have in common.
#[derive(Debug, Default)]
struct Workspace {
    placed: place::Placed,
    palette: palette::Palette,
    painter: painter::Painter,
    cells: cells::Cells,
}

thread_local! {
    /// The pictures of one thread share a workspace, which so stays in the processor's cache when many worlds take
    /// turns. No picture depends on what it holds before.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
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
        WORKSPACE.with_borrow_mut(|workspace| workspace.draw(scene, frame));
        self.hud.draw(scene, frame);
        if scene.indicators {
            self.text.draw(scene.score, frame);
        }
    }
}

impl Workspace {
    /// Draws everything above the bar of indicators.
    fn draw(&mut self, scene: &Scene<'_>, frame: &mut [u8]) {
        let Workspace { placed, palette, painter, cells } = self;
        placed.place(scene);
        palette.begin();
        painter.begin();
        let black = palette.number([0; 3]).unwrap_or(cells::MIXED);
        for shape in &placed.shapes {
            painter.add(shape, palette);
        }
        // A bar may extend into the world.
        for bar in hud::bars(scene).skip(1).map(place::Shape::turned_over) {
            painter.add(&bar, palette);
        }
        painter.sort();
        let texels = scene.backdrop.as_ref().map(|backdrop| place::Texels::new(backdrop, &placed.view));
        let (rows, _) = frame.as_chunks_mut::<{ SIDE * 3 }>();
        for (band, row) in rows[..cells::BANDS].iter_mut().enumerate() {
            cells.begin(band, black);
            if let Some(texels) = &texels {
                cells.show(texels);
            }
            painter.paint(band, palette, cells);
            cells.shrink(palette, row);
        }
    }
}
