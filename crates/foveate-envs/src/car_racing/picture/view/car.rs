//! The car rendered for people: the shapes of the physics, with a shadow, a cockpit and a helmet.

use super::lens::Lens;
use crate::canvas::{Canvas, Ink, Point};
use crate::car_racing::picture::fast::stripe;
use crate::car_racing::scene::{Body, Scene};
use crate::car_racing::shape;

const TYRE: Ink = Ink::new([22, 22, 25]);
const STRIPE: Ink = Ink::new([92, 92, 98]);
const BODY: Ink = Ink::new([206, 28, 34]);
const NOSE: Ink = Ink::new([226, 46, 48]);
const WING: Ink = Ink::new([142, 16, 24]);
const COCKPIT: Ink = Ink::new([38, 12, 16]);
const HELMET: Ink = Ink::new([250, 206, 74]);
const SHADOW: Ink = Ink::new([0, 0, 0]).at(0.11);

/// Draws the car; a blob comes just before the rear wing, the hull's last polygon.
pub(super) fn draw(scene: &Scene<'_>, lens: &Lens, canvas: &mut Canvas<'_>) {
    shadow(scene, lens, canvas);
    for wheel in &scene.wheels {
        polygon(&wheel.body, &shape::WHEEL, TYRE, lens, canvas);
        if let Some(stripe) = stripe(wheel) {
            polygon(&wheel.body, &stripe, STRIPE, lens, canvas);
        }
    }
    let hull = &scene.hull;
    for (i, part) in shape::HULL.iter().enumerate() {
        if let (3, Some(blob)) = (i, scene.blob) {
            let ([x, y], side) = (blob.corner, blob.side);
            let square = [[x, y], [x + side, y], [x + side, y + side], [x, y + side]];
            polygon(hull, &square, Ink::new(blob.rgb), lens, canvas);
        }
        polygon(hull, part, [WING, NOSE, BODY, WING][i], lens, canvas);
    }
    let cockpit = [[-0.26, 0.34], [0.26, 0.34], [0.34, -0.1], [0.26, -0.72], [-0.26, -0.72], [-0.34, -0.1]];
    polygon(hull, &cockpit, COCKPIT, lens, canvas);
    let helmet: [[f32; 2]; 16] = std::array::from_fn(|i| {
        let angle = i as f32 * (std::f32::consts::TAU / 16.0);
        [0.21 * angle.cos(), -0.3 + 0.23 * angle.sin()]
    });
    polygon(hull, &helmet, HELMET, lens, canvas);
}

/// A soft shadow, slightly to the right and below in the picture.
fn shadow(scene: &Scene<'_>, lens: &Lens, canvas: &mut Canvas<'_>) {
    for grow in [0.16, 0.08, 0.0] {
        let mut cast = |body: &Body, [half_width, front, rear]: [f32; 3]| {
            let (w, f, r) = (half_width + grow, front + grow, rear - grow);
            let corners = [[-w, f], [w, f], [w, r], [-w, r]].map(|corner| {
                let [x, y] = lens.pixel(body.to_world(corner).map(f64::from));
                let drop = 0.22 * lens.zoom as f32;
                [x + drop, y + drop]
            });
            canvas.fill(&corners, SHADOW);
        };
        cast(&scene.hull, [0.62, 2.5, -2.4]);
        for wheel in &scene.wheels {
            cast(&wheel.body, [0.28, 0.54, -0.54]);
        }
    }
}

fn polygon(body: &Body, corners: &[[f32; 2]], ink: Ink, lens: &Lens, canvas: &mut Canvas<'_>) {
    let mut points: [Point; 16] = [[0.0; 2]; 16];
    for (point, &corner) in points.iter_mut().zip(corners) {
        *point = lens.pixel(body.to_world(corner).map(f64::from));
    }
    canvas.fill(&points[..corners.len().min(16)], ink);
}
