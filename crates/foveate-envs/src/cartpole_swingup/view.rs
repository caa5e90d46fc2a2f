//! The world rendered for people: any size, smooth edges.
//!
//! The track with its two ends and a mark every 0.6 m, the cart, the pole (green when upright, red when
//! hanging), its angle to the upright line as a sector, and the force of the last step as an arrow. Agents
//! never receive this picture.

use std::f64::consts::PI;

use foveate_core::ImageBuf;

use super::physics::{CartPoleState, FORCE, HALF_TRACK, POLE};
use crate::canvas::{Canvas, Ink, Point};

/// Metres from the middle of the track to the edge of the picture.
const HALF_WIDTH: f64 = 2.75;
/// Metres that the picture shows upwards at least, and as many downwards.
const HALF_HEIGHT: f64 = 0.95;
/// Straight pieces of the angle's arc.
const PARTS: usize = 48;

const SKY: [[f32; 3]; 2] = [[247.0, 248.0, 250.0], [226.0, 231.0, 238.0]];
const RAIL: Ink = Ink::new([92, 101, 116]);
const END: Ink = Ink::new([196, 64, 56]);
const CART: Ink = Ink::new([46, 62, 84]);
const WHEEL: Ink = Ink::new([28, 34, 44]);
const HUB: Ink = Ink::new([236, 239, 243]);
const UPRIGHT: Ink = Ink::new([46, 62, 84]).at(0.35);
const ANGLE: Ink = Ink::new([76, 120, 200]).at(0.22);
const PUSH: Ink = Ink::new([240, 140, 32]);
const RAISED: [f32; 3] = [38.0, 158.0, 96.0];
const HANGING: [f32; 3] = [204.0, 72.0, 60.0];

/// Draws `state` into all of `view`, at any size, with the `force` of the last step in N.
pub(super) fn draw(state: CartPoleState, force: f64, view: &mut ImageBuf) {
    if view.width() == 0 || view.height() == 0 {
        return;
    }
    let mut canvas = Canvas::new(view);
    let [width, height] = canvas.size();
    canvas.paint_all(|[_, y]| {
        let share = y / height;
        std::array::from_fn(|c| (SKY[0][c] + (SKY[1][c] - SKY[0][c]) * share + 0.5) as u8)
    });
    let scale = (f64::from(width) / (2.0 * HALF_WIDTH)).min(f64::from(height) / (2.0 * HALF_HEIGHT));
    // Metres, y upwards from the pole's hub, to pixels.
    let at = |x: f64, y: f64| -> Point {
        [(f64::from(width) * 0.5 + x * scale) as f32, (f64::from(height) * 0.5 - y * scale) as f32]
    };
    let length = |metres: f64| (metres * scale) as f32;
    let mut pen = Pen { canvas: &mut canvas };

    // The rail lies below the wheels, the hub is on top of the cart.
    let rail = -0.235;
    pen.line(at(-HALF_TRACK, rail), at(HALF_TRACK, rail), length(0.03), RAIL);
    for mark in -4..=4 {
        let x = f64::from(mark) * 0.6;
        let deep = if mark % 2 == 0 { 0.09 } else { 0.06 };
        pen.line(at(x, rail), at(x, rail - deep), length(0.012), RAIL);
    }
    for end in [-HALF_TRACK, HALF_TRACK] {
        pen.line(at(end, rail - 0.05), at(end, rail + 0.3), length(0.045), END);
    }

    // The drawing stays readable when the cart left the track at high speed.
    let x = state.x.clamp(-HALF_WIDTH, HALF_WIDTH);
    let hub = at(x, 0.0);
    for wheel in [x - 0.14, x + 0.14] {
        pen.disc(at(wheel, rail + 0.07), length(0.06), WHEEL);
    }
    pen.canvas.round_rectangle(at(x - 0.25, 0.05), at(x + 0.25, -0.13), length(0.05), CART);

    let reach = POLE + 0.12;
    for dash in 0..6 {
        let [from, to] = [0.0, 0.5].map(|part| reach * (f64::from(dash) + part) / 6.0);
        pen.line(at(x, from), at(x, to), length(0.01), UPRIGHT);
    }
    // The short way round from upright to the pole; positive angles are to the left.
    let theta = (state.theta + PI).rem_euclid(2.0 * PI) - PI;
    let tip = |radius: f64, angle: f64| at(x - radius * angle.sin(), radius * angle.cos());
    let mut sector = [hub; PARTS + 2];
    for (i, point) in sector[1..].iter_mut().enumerate() {
        *point = tip(0.3, theta * i as f64 / PARTS as f64);
    }
    pen.canvas.fill(&sector, ANGLE);

    let raised = 0.5 * (state.theta.cos() as f32 + 1.0);
    let pole =
        Ink { rgb: std::array::from_fn(|c| HANGING[c] + (RAISED[c] - HANGING[c]) * raised), alpha: 1.0 };
    pen.line(hub, tip(POLE, state.theta), length(0.055), pole);
    pen.disc(tip(POLE, state.theta), length(0.055), pole);
    pen.disc(hub, length(0.04), HUB);

    let push = force / FORCE;
    if push.abs() > 0.005 {
        // It begins at the side of the cart and is half a metre long for the full force.
        let side = push.signum();
        let [from, to] = [0.3, 0.3 + 0.5 * push.abs()].map(|along| x + side * along);
        let head = (0.12_f64).min(0.5 * push.abs());
        let y = -0.04;
        pen.line(at(from, y), at(to - side * head, y), length(0.035), PUSH);
        pen.canvas.fill(&[at(to, y), at(to - side * head, y + 0.08), at(to - side * head, y - 0.08)], PUSH);
    }
}

/// Draws lines and discs with polygons.
struct Pen<'a, 'b> {
    canvas: &'a mut Canvas<'b>,
}

impl Pen<'_, '_> {
    /// A line with round ends, `wide` pixels wide.
    fn line(&mut self, from: Point, to: Point, wide: f32, ink: Ink) {
        let angle = (to[1] - from[1]).atan2(to[0] - from[0]);
        // Half a circle around each end.
        let points: [Point; 24] = std::array::from_fn(|i| {
            let (centre, turn) =
                if i < 12 { (to, i as f32 / 11.0) } else { (from, (i - 12) as f32 / 11.0 + 1.0) };
            let at = angle + (turn - 0.5) * std::f32::consts::PI;
            [centre[0] + wide * 0.5 * at.cos(), centre[1] + wide * 0.5 * at.sin()]
        });
        self.canvas.fill(&points, ink);
    }

    fn disc(&mut self, centre: Point, radius: f32, ink: Ink) {
        let points: [Point; 32] = std::array::from_fn(|i| {
            let at = i as f32 / 16.0 * std::f32::consts::PI;
            [centre[0] + radius * at.cos(), centre[1] + radius * at.sin()]
        });
        self.canvas.fill(&points, ink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(state: CartPoleState, force: f64, width: usize, height: usize) -> ImageBuf {
        let mut view = ImageBuf::black(width, height);
        draw(state, force, &mut view);
        view
    }

    /// Columns with a pixel of about this colour.
    fn columns(view: &ImageBuf, rgb: [u8; 3]) -> Vec<usize> {
        let image = view.as_image();
        let near = |p: [u8; 3]| p.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) < 12);
        (0..view.width()).filter(|&x| (0..view.height()).any(|y| near(image.pixel(x, y)))).collect()
    }

    #[test]
    fn the_picture_shows_cart_pole_and_force() {
        let state = CartPoleState { x: 1.0, x_dot: 0.0, theta: 0.0, theta_dot: 0.0 };
        let upright = drawn(state, 10.0, 600, 400);
        let pole = columns(&upright, [38, 158, 96]);
        let middle = 300.0 + 600.0 / (2.0 * HALF_WIDTH);
        assert!(pole.iter().all(|&x| (x as f64 - middle).abs() < 8.0) && !pole.is_empty(), "{pole:?}");
        let arrow = columns(&upright, [240, 140, 32]);
        assert!(arrow.iter().all(|&x| x as f64 > middle) && arrow.len() > 40, "{arrow:?}");
        assert!(columns(&drawn(state, 0.0, 600, 400), [240, 140, 32]).is_empty());
        // A quarter turn in the positive direction lies to the left.
        let lying = drawn(CartPoleState { theta: PI / 2.0, ..state }, 0.0, 600, 400);
        let pole = columns(&lying, [121, 115, 78]);
        assert!(pole.iter().all(|&x| (x as f64) < middle + 8.0) && pole.len() > 50, "{pole:?}");
    }

    #[test]
    fn any_size_and_any_state_can_be_drawn() {
        for (width, height) in [(1, 1), (7, 300), (300, 7), (64, 64)] {
            drawn(CartPoleState::HANGING, -3.0, width, height);
        }
        let wild = CartPoleState { x: -1e9, x_dot: 1e9, theta: 1e12, theta_dot: f64::MAX };
        drawn(wild, 10.0, 60, 40);
    }
}
