//! Single quadrilaterals: field, grass, a blob.

use super::layer::Layer;
use super::lens::{Lens, Reach, grow};
use crate::car_racing::scene::{Blob, Body, GRASS_DIM, PLAYFIELD};

/// Corners of the visible area of the world, canvas pixels, y down.
const VIEW: [[f64; 2]; 4] = [[0.0, 0.0], [1000.0, 0.0], [1000.0, 700.0], [0.0, 700.0]];

/// Adds the grass squares that may be visible.
pub(super) fn grass(lens: &Lens, layer: &mut Layer<1>) {
    let view = VIEW.map(|corner| lens.world(corner));
    let range = |k: usize| {
        let low = view.iter().fold(f64::INFINITY, |m, p| m.min(p[k]));
        let high = view.iter().fold(f64::NEG_INFINITY, |m, p| m.max(p[k]));
        // Squares start at even multiples of their side, from -20 to 18.
        let first = ((low / GRASS_DIM - 1.2) * 0.5).ceil().clamp(-10.0, 10.0) as i32;
        let last = ((high / GRASS_DIM + 0.2) * 0.5).floor().clamp(-11.0, 9.0) as i32;
        first..last + 1
    };
    for i in range(0) {
        for j in range(1) {
            let (x, y) = (GRASS_DIM * f64::from(2 * i), GRASS_DIM * f64::from(2 * j));
            let (right, up) = (x + GRASS_DIM, y + GRASS_DIM);
            let corners = [[right, y], [x, y], [x, up], [right, up]].map(|corner| lens.pixel(corner));
            if let Some((points, sign)) = grow(corners, [Reach::Out; 4]) {
                layer.polygon(&points, [sign]);
            }
        }
    }
}

/// Returns whether the field fills the view.
pub(super) fn field_fills(lens: &Lens) -> bool {
    let edge = PLAYFIELD - 2.0 / lens.zoom;
    VIEW.iter().all(|&corner| {
        let [x, y] = lens.world(corner);
        x.abs() < edge && y.abs() < edge
    })
}

/// Adds the field.
pub(super) fn field(lens: &Lens, layer: &mut Layer<1>) {
    let b = PLAYFIELD;
    let corners = [[b, b], [b, -b], [-b, -b], [-b, b]].map(|corner| lens.pixel(corner));
    if let Some((points, sign)) = grow(corners, [Reach::Out; 4]) {
        layer.polygon(&points, [sign]);
    }
}

/// Adds the blob. It rotates with the camera, so its edges are parallel to rows and columns.
pub(super) fn blob(blob: &Blob, hull: &Body, lens: &Lens, layer: &mut Layer<1>) {
    let ([x, y], side) = (blob.corner, blob.side);
    let corners = [[x, y], [x + side, y], [x + side, y + side], [x, y + side]];
    let corners = corners.map(|corner| lens.pixel(hull.to_world(corner).map(f64::from)));
    if let Some((points, sign)) = grow(corners, [Reach::Out; 4]) {
        layer.polygon(&points, [sign]);
    }
}
