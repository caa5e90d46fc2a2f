//! Objects that cover a part of the picture.

use std::ops::Range;

use foveate_core::{Image, Rng, Seed};

use super::operator::{Moment, Operator, Picture};

/// Stickers of an episode.
const STICKERS: usize = 4;
/// Cells of a sticker's pattern, in each direction.
const CELLS: usize = 8;

/// A rectangle.
#[derive(Debug, Clone)]
pub(super) struct Bar;

impl Operator for Bar {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let [x, y] = [0, 1].map(|knob| now.number(knob, 0.5));
        let (width, height) = (now.number(2, now.amount), now.number(3, 1.0));
        let rgb = now.color(4).unwrap_or_default();
        let columns = span(x, width, picture.width);
        for row in span(y, height, picture.height) {
            paint(picture, row, columns.clone(), rgb);
        }
    }
}

/// A disc.
#[derive(Debug, Clone)]
pub(super) struct Blob;

impl Operator for Blob {
    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let centre = [now.number(0, 0.5) * picture.width as f64, now.number(1, 0.5) * picture.height as f64];
        let radius = now.number(2, now.amount) * picture.width as f64 / 2.0;
        let rgb = now.color(3).unwrap_or_default();
        for row in pixels(centre[1] - radius, centre[1] + radius, picture.height) {
            // A pixel belongs to the disc when its middle does.
            let dy = row as f64 + 0.5 - centre[1];
            let half = (radius * radius - dy * dy).max(0.0).sqrt();
            paint(picture, row, pixels(centre[0] - half, centre[0] + half, picture.width), rgb);
        }
    }
}

/// Rectangles with random patterns of two colours, in places that are drawn in every episode.
#[derive(Debug, Clone, Default)]
pub(super) struct Stickers {
    stickers: [Sticker; STICKERS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Sticker {
    /// Its middle, in shares of the picture.
    centre: [f64; 2],
    /// In shares of the largest width and height.
    size: [f64; 2],
    /// In pixels of a picture 96 wide.
    cell: f64,
    colors: [[u8; 3]; 2],
    /// Bit `CELLS * y + x`: which of the colours a cell has. The pattern goes on beyond its cells.
    pattern: u64,
}

impl Sticker {
    fn draw(rng: &mut Rng) -> Self {
        Sticker {
            centre: [(); 2].map(|()| rng.next_f64()),
            size: [(); 2].map(|()| rng.uniform(0.3, 1.0)),
            cell: rng.uniform(1.0, 6.0),
            colors: [(); 2].map(|()| [(); 3].map(|()| rng.below(256) as u8)),
            pattern: rng.next_u64(),
        }
    }
}

impl Operator for Stickers {
    fn begin(&mut self, _: Image<'_>, dice: Seed) {
        let mut rng = dice.rng();
        self.stickers = self.stickers.map(|_| Sticker::draw(&mut rng));
    }

    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        for sticker in &self.stickers {
            let [x, y] = sticker.centre;
            let [width, height] = [sticker.size[0] * now.amount, sticker.size[1] * now.amount / 2.0];
            let columns = span(x, width, picture.width);
            let rows = span(y, height, picture.height);
            let cell = (sticker.cell * picture.scale()).max(1.0);
            let at = |pixels: usize| (pixels as f64 / cell) as usize % CELLS;
            for row in rows.clone() {
                for column in columns.clone() {
                    let bit = CELLS * at(row - rows.start) + at(column - columns.start);
                    let color = sticker.colors[(sticker.pattern >> bit & 1) as usize];
                    paint(picture, row, column..column + 1, color);
                }
            }
        }
    }
}

/// The pixels of a stretch that is `length` long around `centre`, both in shares of `pixels`.
fn span(centre: f64, length: f64, side: usize) -> Range<usize> {
    let side_px = side as f64;
    pixels((centre - length / 2.0) * side_px, (centre + length / 2.0) * side_px, side)
}

/// The pixels whose middles lie between `from` and `to`.
fn pixels(from: f64, to: f64, side: usize) -> Range<usize> {
    let at = |x: f64| (x - 0.5).ceil().clamp(0.0, side as f64) as usize;
    at(from)..at(to)
}

fn paint(picture: &mut Picture<'_>, row: usize, columns: Range<usize>, rgb: [u8; 3]) {
    let first = row * picture.width;
    for pixel in picture.rgb[(first + columns.start) * 3..(first + columns.end) * 3].chunks_exact_mut(3) {
        pixel.copy_from_slice(&rgb);
    }
}
