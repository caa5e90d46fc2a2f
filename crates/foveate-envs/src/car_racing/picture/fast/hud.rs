//! Instruments: a black bar with speed, wheels, steering, spin and the score.

use super::lens::{CELL_HEIGHT, CELL_WIDTH};
use crate::car_racing::picture::SIDE;
use crate::car_racing::scene::Scene;

/// First row of the instruments.
const FIRST_ROW: usize = 84;

/// Draws the rows below the world.
pub(super) fn draw(scene: &Scene<'_>, frame: &mut [u8]) {
    let bar = &mut frame[FIRST_ROW * SIDE * 3..];
    bar.fill(0);
    if !scene.indicators {
        return;
    }
    // Integer rectangles on the 1000 x 800 canvas, both ends included; later ones are drawn over earlier
    // ones.
    let speed = f64::from(scene.hull.velocity[0]).hypot(f64::from(scene.hull.velocity[1]));
    let mut vertical = |place: f64, scale: f64, value: f64, color: [u8; 3]| {
        if value.abs() > 1e-4 {
            rectangle(
                bar,
                [place * 25.0, (place + 1.0) * 25.0],
                [780.0 - 20.0 * (scale * value), 780.0],
                color,
            );
        }
    };
    vertical(5.0, 0.02, speed, [255; 3]);
    vertical(7.0, 0.01, scene.wheels[0].omega, [0, 0, 255]);
    vertical(8.0, 0.01, scene.wheels[1].omega, [0, 0, 255]);
    vertical(9.0, 0.01, scene.wheels[2].omega, [51, 0, 255]);
    vertical(10.0, 0.01, scene.wheels[3].omega, [51, 0, 255]);
    let mut horizontal = |place: f64, scale: f64, value: f64, color: [u8; 3]| {
        if value.abs() > 1e-4 {
            rectangle(bar, [place * 25.0, (place + scale * value) * 25.0], [720.0, 760.0], color);
        }
    };
    horizontal(20.0, -10.0, f64::from(scene.steering_angle), [0, 255, 0]);
    horizontal(30.0, -0.8, f64::from(scene.hull.spin), [255, 0, 0]);
}

/// Blends a rectangle into the bar.
fn rectangle(bar: &mut [u8], x: [f64; 2], y: [f64; 2], color: [u8; 3]) {
    let ends = |[a, b]: [f64; 2], cell: f32| {
        let (a, b) = (a as i32, b as i32);
        [a.min(b) as f32 / cell, a.max(b).saturating_add(1) as f32 / cell]
    };
    let ([left, right], [top, bottom]) = (ends(x, CELL_WIDTH), ends(y, CELL_HEIGHT));
    let cells = |low: f32, high: f32, first: usize| {
        (low.max(0.0) as usize).max(first)..((high.max(0.0) as usize) + 1).min(SIDE)
    };
    let (rows, columns) = (cells(top, bottom, FIRST_ROW), cells(left, right, 0));
    let share = |low: f32, high: f32, at: usize| (high.min(at as f32 + 1.0) - low.max(at as f32)).max(0.0);
    for row in rows {
        let down = share(top, bottom, row);
        for column in columns.clone() {
            let cover = down * share(left, right, column);
            let at = ((row - FIRST_ROW) * SIDE + column) * 3;
            for (byte, color) in bar[at..at + 3].iter_mut().zip(color) {
                // The content below was already darkened by the scaling; undo this before blending.
                let below = if *byte == 0 { 0.0 } else { f32::from(*byte) + 2.0 };
                let value = below + (f32::from(color) - below) * cover;
                *byte = super::tone(value);
            }
        }
    }
}
