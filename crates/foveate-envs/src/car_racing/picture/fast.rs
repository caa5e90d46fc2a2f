//! The picture for training: approximates Gymnasium's frames, computed directly at 96 × 96.
//!
//! Gymnasium draws 1000 × 800 pixels and scales them down. This picture instead computes the exact area that
//! every polygon covers in each cell: polygons are widened by the half pixel that the original's fill and
//! outline add, and vertices lie on the same whole canvas pixels. It differs from the exact picture by less
//! than 0.1 of 255 on average, mostly at kerbs.
//!
//! [`FastPicture::draw`] works on rows from the top, in blocks of eight cells; a block that no edge touches
//! is copied from the row above. Except for the platform's sine and cosine, all arithmetic is plain and in a
//! fixed order, so equal scenes give equal bytes on every processor.

mod backdrop;
mod car;
mod ground;
mod hud;
mod layer;
mod lens;
mod road;
mod spans;

use super::exact::ScoreText;
use super::{FRAME_BYTES, SIDE};
use crate::car_racing::scene::Scene;
use backdrop::Sampler;
pub(super) use car::stripe;

use car::Car;
use foveate_kernels::coverage::{BLOCK, Ground, blend};
use layer::{BLOCKS, Layer, ROWS};
use lens::{CELL_WIDTH, Lens};
use road::RoadIndex;

/// Draws the fast picture. Holds buffers and the index of the current track; neither affects the result.
#[derive(Debug, Clone)]
pub struct FastPicture {
    grass: Layer<1>,
    field: Layer<1>,
    road: Layer<4>,
    index: RoadIndex,
    blob: Layer<1>,
    car: Car,
    score: ScoreText,
}

impl Default for FastPicture {
    fn default() -> Self {
        Self::new()
    }
}

impl FastPicture {
    /// A picture that has drawn nothing yet.
    pub fn new() -> Self {
        FastPicture {
            grass: Layer::new(),
            field: Layer::new(),
            road: Layer::new(),
            index: RoadIndex::default(),
            blob: Layer::new(),
            car: Car::new(),
            score: ScoreText::default(),
        }
    }

    /// Draws `scene` into `frame`, `[96, 96, 3]` bytes. The same scene always gives the same bytes.
    ///
    /// # Panics
    /// When `frame` is not [`FRAME_BYTES`] long.
    pub fn draw(&mut self, scene: &Scene<'_>, frame: &mut [u8]) {
        assert_eq!(frame.len(), FRAME_BYTES, "a frame is [96, 96, 3] bytes");
        let lens = Lens::new(scene);
        let bounded = scene.backdrop.is_none() && !ground::field_fills(&lens);
        if bounded {
            ground::field(&lens, &mut self.field);
        }
        if scene.backdrop.is_none() {
            ground::grass(&lens, &mut self.grass);
        }
        self.index.draw(scene, &lens, &mut self.road);
        if let Some(blob) = scene.blob {
            ground::blob(&blob, &scene.hull, &lens, &mut self.blob);
        }
        self.car.draw(scene, &lens);
        self.resolve(scene, &lens, bounded, frame);
        hud::draw(scene, frame);
        if scene.indicators {
            self.score.draw(scene.score, frame);
        }
    }

    /// Adds up the layers, row by row, and writes the world's part of the frame.
    fn resolve(&mut self, scene: &Scene<'_>, lens: &Lens, bounded: bool, frame: &mut [u8]) {
        let sampler = scene.backdrop.map(|backdrop| (Sampler::new(lens, &backdrop), backdrop));
        let blob = scene.blob.map(|blob| (blob.rgb.map(f32::from), self.car.tail()));
        let bars = scene.side_bars.round().clamp(0.0, 1000.0) as f32 / CELL_WIDTH;
        let field_color = scene.colors.field.map(|c| c as u8 as f32);
        let grass_color = scene.colors.grass.map(|c| c as u8 as f32);
        let ground = if sampler.is_some() {
            Ground { base: [0.0; 3], lift: [0.0; 3] }
        } else {
            Ground { base: field_color, lift: [0, 1, 2].map(|k| grass_color[k] - field_color[k]) }
        };
        let extras = bounded || sampler.is_some() || blob.is_some() || bars > 0.0;
        let mut grass = [[[0.0; 1]; BLOCK]; BLOCKS];
        let mut field = [[[0.0; 1]; BLOCK]; BLOCKS];
        let mut road = [[[0.0; 4]; BLOCK]; BLOCKS];
        let mut spot = [[[0.0; 1]; BLOCK]; BLOCKS];
        // The road and the layers above it; only valid in fresh blocks.
        let mut over = [[[0.0; 4]; BLOCK]; BLOCKS];
        for row in 0..ROWS {
            let (above, here) = frame.split_at_mut(row * SIDE * 3);
            let out = &mut here[..SIDE * 3];
            let mut fresh = self.grass.take(row, &mut grass) | self.road.take(row, &mut road);
            if bounded {
                fresh |= self.field.take(row, &mut field);
            }
            if blob.is_some() {
                fresh |= self.blob.take(row, &mut spot);
            }
            if row == 0 {
                fresh = ALL_BLOCKS;
            } else {
                out.copy_from_slice(&above[(row - 1) * SIDE * 3..]);
            }
            let car_row = self.car.row(row);
            if car_row.is_some() || self.car.row(row.wrapping_sub(1)).is_some() {
                fresh |= car::BLOCKS_MASK;
            }
            if sampler.is_some() {
                fresh = ALL_BLOCKS;
            }
            if extras {
                for block in (0..BLOCKS).filter(|block| fresh >> block & 1 == 1) {
                    over[block] = road[block];
                    share_out(&mut over[block]);
                    if bounded {
                        beyond_the_field(&mut over[block], &field[block], field_color);
                    }
                }
                if let Some((sampler, backdrop)) = &sampler {
                    sampler.lay_under(row, backdrop, &mut over);
                }
                if let Some(car) = car_row {
                    car::cover(car, &mut over);
                }
                if let Some((color, tail)) = &blob {
                    lay_over(&mut over, &spot, *color);
                    if let Some(tail) = row.checked_sub(car::FIRST_ROW).and_then(|row| tail.get(row)) {
                        car::cover(tail, &mut over);
                    }
                }
                if bars > 0.0 {
                    side_bars(bars, &mut over);
                }
                blend(fresh, &ground, &grass, &over, BIAS, out);
            } else if let Some(car) = car_row {
                let below = *car::window(&mut road);
                share_out(car::window(&mut road));
                car::cover(car, &mut road);
                blend(fresh, &ground, &grass, &road, BIAS, out);
                *car::window(&mut road) = below;
            } else {
                blend(fresh, &ground, &grass, &road, BIAS, out);
            }
        }
        self.grass.finish();
        self.field.finish();
        self.road.finish();
        self.blob.finish();
    }
}

/// Every block of a row.
const ALL_BLOCKS: u16 = u16::MAX >> (16 - BLOCKS);

/// The scaling truncates twice, so a flat colour loses exactly 2; the remaining half level rounds to nearest.
const BIAS: f32 = 1.502;

/// The byte value after the reference's scaling.
fn tone(value: f32) -> u8 {
    // Adding 2^23 rounds to the nearest integer and leaves it in the low bits.
    ((value - BIAS).max(0.0) + 8_388_608.0).to_bits() as u8
}

/// Normalises cells where quads overlap because the track crosses itself.
fn share_out(over: &mut [[f32; 4]]) {
    for cell in over {
        if cell[3] > 1.001 {
            let share = 1.0 / cell[3];
            *cell = cell.map(|v| v * share);
        }
    }
}

/// Blends one colour over the current content.
fn lay_over(over: &mut [[[f32; 4]; BLOCK]; BLOCKS], shares: &[[[f32; 1]; BLOCK]; BLOCKS], color: [f32; 3]) {
    for (cell, &[share]) in over.as_flattened_mut().iter_mut().zip(shares.as_flattened()) {
        let ([r, g, b, cover], keep) = (*cell, 1.0 - share);
        let add = color.map(|c| c * share);
        *cell = [r * keep + add[0], g * keep + add[1], b * keep + add[2], 1.0 - (1.0 - cover) * keep];
    }
}

/// Draws black bars, `width` cells wide, at both sides.
fn side_bars(width: f32, over: &mut [[[f32; 4]; BLOCK]; BLOCKS]) {
    let cells = over.as_flattened_mut();
    for i in 0..cells.len() {
        let from_edge = i.min(cells.len() - 1 - i) as f32;
        let keep = (1.0 - (width - from_edge)).clamp(0.0, 1.0);
        let [r, g, b, cover] = cells[i];
        cells[i] = [r * keep, g * keep, b * keep, 1.0 - (1.0 - cover) * keep];
    }
}

/// Makes cells outside the field black.
fn beyond_the_field(over: &mut [[f32; 4]; BLOCK], field: &[[f32; 1]; BLOCK], color: [f32; 3]) {
    for (cell, &[field]) in over.iter_mut().zip(field) {
        let missing = (1.0 - field) * (1.0 - cell[3]);
        for (value, color) in cell.iter_mut().zip(color) {
            *value -= missing * color;
        }
    }
}
