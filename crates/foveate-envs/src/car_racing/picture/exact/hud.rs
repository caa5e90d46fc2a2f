//! The bars at the bottom.

use super::place::{CANVAS_H, CANVAS_W, Shape};
use crate::car_racing::scene::Scene;

/// The bar of black and the indicators on it, in canvas pixels with y **down** from the top row.
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
    .filter(|(value, ..)| value.abs() > 1e-4)
    .map(|(_, corners, color)| Shape::cut(corners, color, false))
}
