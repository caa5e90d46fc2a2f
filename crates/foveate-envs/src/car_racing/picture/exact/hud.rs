//! The indicators at the bottom.

use super::cells::{BANDS, COLUMNS, high, narrow_cell};
use super::palette::pixel;
use super::place::{CANVAS_H, CANVAS_W, Shape, WORLD_H};
use super::shrink::{Axis, Overlap};
use crate::car_racing::picture::SIDE;
use crate::car_racing::scene::Scene;

/// The black bar and its indicators, in canvas pixels with y **down** from the top row.
pub(super) fn bars(scene: &Scene<'_>) -> impl Iterator<Item = Shape> {
    const W: f64 = CANVAS_W as f64;
    const H: f64 = CANVAS_H as f64;
    const S: f64 = W / 40.0;
    const U: f64 = H / 40.0;
    const BLUE: [u8; 3] = [0, 0, 255];
    const VIOLET: [u8; 3] = [51, 0, 255];

    let upright = |place: f64, value: f64| {
        let top = H - (U + U * value);
        [[place * S, top], [(place + 1.0) * S, top], [(place + 1.0) * S, H - U], [place * S, H - U]]
    };
    let lying = |place: f64, value: f64| {
        let end = (place + value) * S;
        [[place * S, H - 4.0 * U], [end, H - 4.0 * U], [end, H - 2.0 * U], [place * S, H - 2.0 * U]]
    };
    let [vx, vy] = scene.hull.velocity.map(f64::from);
    let speed = (vx * vx + vy * vy).sqrt();
    let omega = scene.wheels.map(|w| w.omega);
    let (steering, spin) = (f64::from(scene.steering_angle), f64::from(scene.hull.spin));
    let ground = [[W, H], [W, H - 5.0 * U], [0.0, H - 5.0 * U], [0.0, H]];
    [
        (1.0, ground, [0, 0, 0]),
        (speed, upright(5.0, 0.02 * speed), [255, 255, 255]),
        (omega[0], upright(7.0, 0.01 * omega[0]), BLUE),
        (omega[1], upright(8.0, 0.01 * omega[1]), BLUE),
        (omega[2], upright(9.0, 0.01 * omega[2]), VIOLET),
        (omega[3], upright(10.0, 0.01 * omega[3]), VIOLET),
        (steering, lying(20.0, -10.0 * steering), [0, 255, 0]),
        (spin, lying(30.0, -0.8 * spin), [255, 0, 0]),
    ]
    .into_iter()
    .take(if scene.indicators { BARS } else { 1 })
    .filter(|(value, ..)| value.abs() > 1e-4)
    .map(|(_, corners, color)| Shape::cut(&corners, color, false))
}

/// Pixels left and right of the canvas that a window of pixels may extend over.
const PAD: usize = 16;
const BARS: usize = 8;

/// A bar: first and last column, first and last row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bar {
    x: [i32; 2],
    y: [i32; 2],
    color: u32,
}

/// Scales the rows of the indicator bar directly into the frame.
#[derive(Debug, Clone)]
pub(super) struct Hud {
    pixels: [u32; CANVAS_W as usize + 2 * PAD],
    narrow: [[u16; 4]; SIDE],
}

impl Default for Hud {
    fn default() -> Self {
        Hud { pixels: [0; CANVAS_W as usize + 2 * PAD], narrow: [[0; 4]; SIDE] }
    }
}

impl Hud {
    /// Draws the lowest rows of `frame`. All bars are rectangles, so a row differs from the one above only
    /// where a bar begins or ends.
    pub(super) fn draw(&mut self, scene: &Scene<'_>, frame: &mut [u8]) {
        let mut bars = [Bar::default(); BARS];
        let mut n = 0;
        // The first shape is the black background.
        for shape in self::bars(scene).skip(1) {
            let (mut x, mut y) = ([i32::MAX, i32::MIN], [i32::MAX, i32::MIN]);
            for &[cx, cy] in shape.corners() {
                (x, y) = ([x[0].min(cx), x[1].max(cx)], [y[0].min(cy), y[1].max(cy)]);
            }
            x = [x[0].max(0), x[1].min(CANVAS_W - 1)];
            if x[0] <= x[1] && y[1] >= WORLD_H && y[0] < CANVAS_H {
                bars[n] = Bar { x, y: [y[0].max(WORLD_H), y[1]], color: pixel(shape.color) };
                n += 1;
            }
        }
        let bars = &bars[..n];
        self.pixels.fill(0);
        self.narrow.fill([0; 4]);
        let mut sum = [[0u16; 4]; SIDE];
        let mut cell = BANDS;
        for y in WORLD_H..CANVAS_H {
            for bar in bars.iter().filter(|b| b.y[0] == y || b.y[1] + 1 == y) {
                self.update(bar.x, y, bars);
            }
            // A row belongs to one cell, or is split between two consecutive cells.
            let Overlap { end, tail, .. } = Axis::Y.cells[cell];
            if (y as usize) < end {
                add(&mut sum, &self.narrow);
                continue;
            }
            add_part(&mut sum, &self.narrow, tail as u16);
            let out = &mut frame[cell * SIDE * 3..][..SIDE * 3];
            for (out, sum) in out.chunks_exact_mut(3).zip(&sum) {
                (0..3).for_each(|c| out[c] = high(sum[c], Axis::Y.recip as u16) as u8);
            }
            sum.fill([0; 4]);
            cell += 1;
            if cell < SIDE {
                add_part(&mut sum, &self.narrow, Axis::Y.cells[cell].head as u16);
            } else {
                break;
            }
        }
    }

    /// Redraws columns `x` as they are in row `y`.
    fn update(&mut self, x: [i32; 2], y: i32, bars: &[Bar]) {
        self.pixels[PAD + x[0] as usize..=PAD + x[1] as usize].fill(0);
        for bar in bars.iter().filter(|b| b.y[0] <= y && y <= b.y[1]) {
            let (a, b) = (bar.x[0].max(x[0]), bar.x[1].min(x[1]));
            if a <= b {
                self.pixels[PAD + a as usize..=PAD + b as usize].fill(bar.color);
            }
        }
        let Some([first, last]) = COLUMNS.touched(x[0], x[1]) else { return };
        for column in first..=last {
            let window =
                self.pixels[PAD + Axis::X.cells[column].start - 1..].first_chunk().expect("there is a pad");
            self.narrow[column] = narrow_cell(window, column);
        }
    }
}

fn add(sum: &mut [[u16; 4]; SIDE], row: &[[u16; 4]; SIDE]) {
    for (sum, row) in sum.as_flattened_mut().iter_mut().zip(row.as_flattened()) {
        *sum += row;
    }
}

fn add_part(sum: &mut [[u16; 4]; SIDE], row: &[[u16; 4]; SIDE], weight: u16) {
    for (sum, row) in sum.as_flattened_mut().iter_mut().zip(row.as_flattened()) {
        *sum += high(row * 4, weight);
    }
}
