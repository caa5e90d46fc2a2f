//! Instruments: score, speed, wheels, steering and spin on a dark strip.

use crate::canvas::{Canvas, Ink};
use crate::car_racing::scene::Scene;

const STRIP: Ink = Ink::new([12, 14, 18]).at(0.72);
const TRACK: Ink = Ink::new([255, 255, 255]).at(0.14);
const MARK: Ink = Ink::new([255, 255, 255]).at(0.45);
const WHITE: Ink = Ink::new([240, 241, 238]);
const FRONT: Ink = Ink::new([88, 150, 255]);
const REAR: Ink = Ink::new([156, 122, 255]);
const STEERING: Ink = Ink::new([78, 214, 128]);
const SPIN: Ink = Ink::new([255, 106, 84]);

/// Smallest height of a strip with distinguishable content.
const LEAST_HEIGHT: f32 = 7.0;
/// Smallest height of a legible digit.
const LEAST_DIGIT: f32 = 6.0;

/// Height of the strip for an image of this size.
pub(super) fn strip_height([width, height]: [f32; 2]) -> f32 {
    let strip = 46.0 * unit([width, height]);
    if strip < LEAST_HEIGHT { 0.0 } else { strip }
}

/// The length of one pixel at 600 × 400, scaled to this size.
fn unit([width, height]: [f32; 2]) -> f32 {
    (width / 600.0).min(height / 400.0)
}

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>) {
    let size = canvas.size();
    let strip = strip_height(size);
    if strip == 0.0 {
        return;
    }
    let (u, top) = (unit(size), size[1] - strip);
    canvas.fill(&[[0.0, top], [size[0], top], size, [0.0, size[1]]], STRIP);
    if !scene.indicators {
        return;
    }
    // The content of the strip is 560 units wide and centred.
    let left = 0.5 * size[0] - 280.0 * u;
    let at = |x: f32, y: f32| [left + x * u, top + y * u];

    if 24.0 * u >= LEAST_DIGIT {
        score(scene.score, at(0.0, 11.0), 24.0 * u, canvas);
    }
    let speed = scene.hull.velocity[0].hypot(scene.hull.velocity[1]);
    let bar = |canvas: &mut Canvas<'_>, x: f32, y: f32, wide: f32, from: f32, to: f32, ink: Ink| {
        let (from, to) = (from.clamp(0.0, 1.0), to.clamp(0.0, 1.0));
        canvas.round_rectangle(at(x, y), at(x + wide, y + 8.0), 4.0 * u, TRACK);
        let (low, high) = (from.min(to), from.max(to));
        canvas.round_rectangle(at(x + wide * low, y), at(x + wide * high, y + 8.0), 4.0 * u, ink);
    };
    bar(canvas, 130.0, 19.0, 150.0, 0.0, speed / 100.0, WHITE);
    for quarter in [0.25, 0.5, 0.75] {
        let x = 130.0 + 150.0 * quarter;
        canvas.fill(&[at(x - 0.5, 29.0), at(x + 0.5, 29.0), at(x + 0.5, 33.0), at(x - 0.5, 33.0)], MARK);
    }
    for (i, wheel) in scene.wheels.iter().enumerate() {
        let x = 306.0 + 14.0 * i as f32;
        canvas.round_rectangle(at(x, 9.0), at(x + 8.0, 37.0), 3.0 * u, TRACK);
        let full = (wheel.omega.abs() as f32 / 200.0).clamp(0.0, 1.0);
        let ink = if i < 2 { FRONT } else { REAR };
        canvas.round_rectangle(at(x, 37.0 - 28.0 * full), at(x + 8.0, 37.0), 3.0 * u, ink);
    }
    // A right turn points to the right, so the sign is inverted: angles grow to the left.
    let turns = [(11.0, scene.steering_angle / -0.84, STEERING), (27.0, scene.hull.spin / -8.0, SPIN)];
    for (y, value, ink) in turns {
        bar(canvas, 390.0, y, 170.0, 0.5, 0.5 + value, ink);
        canvas
            .fill(&[at(474.5, y - 2.0), at(475.5, y - 2.0), at(475.5, y + 10.0), at(474.5, y + 10.0)], MARK);
    }
}

/// Segments of each digit, bit 0 on top, then clockwise, bit 6 in the middle.
const SEGMENTS: [u8; 10] = [0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f];
const MINUS: u8 = 0x40;
/// Start and end of the segments, in a digit 1 wide and 2 high.
const ENDS: [[[f32; 2]; 2]; 7] = [
    [[0.0, 0.0], [1.0, 0.0]],
    [[1.0, 0.0], [1.0, 1.0]],
    [[1.0, 1.0], [1.0, 2.0]],
    [[0.0, 2.0], [1.0, 2.0]],
    [[0.0, 1.0], [0.0, 2.0]],
    [[0.0, 0.0], [0.0, 1.0]],
    [[0.0, 1.0], [1.0, 1.0]],
];

/// Writes the score, `height` pixels high, from the left.
fn score(score: f64, [left, top]: [f32; 2], height: f32, canvas: &mut Canvas<'_>) {
    let thick = 0.08 * height;
    let tall = height - 2.0 * thick;
    let wide = 0.46 * tall;
    let rounded =
        if score.is_finite() { score.round_ties_even().clamp(-9_999_999.0, 99_999_999.0) } else { 0.0 };
    let text = format!("{rounded:.0}");
    let mut x = left + thick + 0.05 * tall;
    for c in text.chars() {
        let segments = match c.to_digit(10) {
            Some(digit) => SEGMENTS[digit as usize],
            None => MINUS,
        };
        for (i, [a, b]) in ENDS.iter().enumerate() {
            if segments & (1 << i) == 0 {
                continue;
            }
            // Digits are slightly slanted, as on instruments.
            let place = |[px, py]: [f32; 2]| {
                let lean = 0.09 * tall * (1.0 - py * 0.5);
                [x + px * wide + lean, top + thick + py * 0.5 * tall]
            };
            segment(place(*a), place(*b), thick, canvas);
        }
        x += wide + 4.2 * thick;
    }
}

/// A bar with pointed ends, slightly shorter than the distance between its end points.
fn segment(a: [f32; 2], b: [f32; 2], thick: f32, canvas: &mut Canvas<'_>) {
    let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
    let length = dx.hypot(dy);
    let (ex, ey) = (dx / length, dy / length);
    let point = |base: [f32; 2], along: f32, across: f32| {
        [base[0] + ex * along - ey * across, base[1] + ey * along + ex * across]
    };
    let (gap, half) = (0.16 * thick, thick);
    let points = [
        point(a, gap, 0.0),
        point(a, gap + half, half),
        point(b, -gap - half, half),
        point(b, -gap, 0.0),
        point(b, -gap - half, -half),
        point(a, gap + half, -half),
    ];
    canvas.fill(&points, WHITE);
}
