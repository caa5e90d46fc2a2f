//! Maps world units to canvas pixels and cells, with the reference's arithmetic.

use crate::car_racing::scene::{Camera, Scene};

/// Canvas pixels per cell from left to right.
pub(super) const CELL_WIDTH: f32 = 1000.0 / 96.0;
/// Canvas pixels per cell from top to bottom.
pub(super) const CELL_HEIGHT: f32 = 800.0 / 96.0;

/// The camera of one frame: `rotate(point, -hull angle) * zoom + offset`, y up, in f64.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lens {
    pub(super) zoom: f64,
    pub(super) sin: f64,
    pub(super) cos: f64,
    pub(super) offset: [f64; 2],
}

impl Lens {
    pub(super) fn new(scene: &Scene<'_>) -> Self {
        let zoom = Camera::zoom_at(scene.t);
        let (sin, cos) = (-f64::from(scene.hull.angle)).sin_cos();
        let x = -f64::from(scene.hull.position[0]) * zoom;
        let y = -f64::from(scene.hull.position[1]) * zoom;
        Lens { zoom, sin, cos, offset: [500.0 + (x * cos - y * sin), 200.0 + (x * sin + y * cos)] }
    }

    /// Canvas coordinates (y up) of a world point, before truncation to integers.
    #[inline]
    pub(super) fn canvas(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [
            (x * self.cos - y * self.sin) * self.zoom + self.offset[0],
            (x * self.sin + y * self.cos) * self.zoom + self.offset[1],
        ]
    }

    /// Centre of the whole pixel to which the reference moves a world point (truncated toward zero), y down.
    #[inline]
    pub(super) fn pixel(&self, point: [f64; 2]) -> [f32; 2] {
        let [x, y] = self.canvas(point);
        [x as i32 as f32 + 0.5, 799.5 - y as i32 as f32]
    }

    /// World coordinates of a canvas point (y down).
    pub(super) fn world(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let (x, y) = ((x - self.offset[0]) / self.zoom, (800.0 - y - self.offset[1]) / self.zoom);
        [x * self.cos + y * self.sin, y * self.cos - x * self.sin]
    }
}

/// How far the reference's polygons extend beyond their outline: [`push`] outwards or inwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Half a pixel outwards: the fill includes the pixels at both ends, and the smooth outline adds one
    /// more.
    Out,
    /// Half a pixel inwards: a neighbour drawn later extends into the polygon.
    In,
}

/// Moves the edges of a quadrilateral (pixel centres, y down) by the amount that the reference's fill and
/// smooth outline add, and converts pixels to cells. Returns the corners and the orientation (1 for
/// clockwise, -1 otherwise); `None` when it is not visible.
#[inline]
pub(super) fn grow(corners: [[f32; 2]; 4], reach: [Reach; 4]) -> Option<([[f32; 2]; 4], f32)> {
    let low = |k: usize| corners.iter().fold(f32::INFINITY, |m, c| m.min(c[k]));
    let high = |k: usize| corners.iter().fold(f32::NEG_INFINITY, |m, c| m.max(c[k]));
    if high(0) < -2.0 || low(0) > 1002.0 || high(1) < -2.0 || low(1) > 702.0 {
        return None;
    }
    let mut twice_area = 0.0;
    let mut edges = [([0.0; 2], 0.0); 4];
    for i in 0..4 {
        let [a, b] = [corners[i], corners[(i + 1) % 4]];
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        twice_area += a[0] * b[1] - a[1] * b[0];
        let (short, long) = (dx.abs().min(dy.abs()), dx.abs().max(dy.abs()));
        let push = if dx == 0.0 || dy == 0.0 {
            0.5
        } else if dy.abs() > dx.abs() {
            0.625
        } else {
            0.5 + 0.125 * (short / long) * (short / long)
        };
        let push = if reach[i] == Reach::Out { push } else { -push };
        edges[i] = ([dy, -dx], push * long);
    }
    let sign = if twice_area < 0.0 { -1.0 } else { 1.0 };
    let mut grown = [[0.0; 2]; 4];
    for i in 0..4 {
        let ([ax, ay], a) = edges[(i + 3) % 4];
        let ([bx, by], b) = edges[i];
        let det = ax * by - ay * bx;
        let [x, y] = if det == 0.0 {
            [0.0; 2]
        } else {
            [sign * (a * by - b * ay) / det, sign * (ax * b - bx * a) / det]
        };
        let x = corners[i][0] + x.clamp(-1.5, 1.5);
        let y = corners[i][1] + y.clamp(-1.5, 1.5);
        grown[i] = [x * (1.0 / CELL_WIDTH), y * (1.0 / CELL_HEIGHT)];
    }
    Some((grown, sign))
}
