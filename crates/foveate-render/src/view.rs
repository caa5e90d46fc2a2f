//! The camera's frame, and which pixels a thing can cover.

use std::ops::Range;

use crate::lanes::{V3, cross, dot, scale, sub, unit};
use crate::solid::Ends;
use crate::{Camera, RenderError};

/// The camera's frame and its pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct View {
    /// Right, up and forward in the world.
    pub(crate) axes: [V3; 3],
    pub(crate) position: V3,
    pub(crate) near: f32,
    pub(crate) far: f32,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Side of a pixel at depth 1.
    pub(crate) pixel: f32,
}

impl View {
    pub(crate) fn new(camera: &Camera, width: usize, height: usize) -> Result<View, RenderError> {
        let forward = unit(camera.forward);
        let right = unit(cross(forward, camera.up));
        let up = cross(right, forward);
        let finite = right.iter().chain(&up).chain(&camera.position).all(|x| x.is_finite() && x.abs() < 1e8);
        let in_range = |x: f32| x > 1e-6 && x < 1e6;
        if !finite || !in_range(camera.half_height) || !in_range(camera.near) || camera.far.is_nan() {
            return Err(RenderError::Camera {
                position: camera.position,
                forward: camera.forward,
                up: camera.up,
                half_height: camera.half_height,
                near: camera.near,
                far: camera.far,
            });
        }
        Ok(View {
            axes: [right, up, forward],
            position: camera.position,
            near: camera.near,
            far: camera.far.min(1e8),
            width,
            height,
            pixel: 2.0 * camera.half_height / height as f32,
        })
    }

    /// A direction of the world in the camera's frame.
    pub(crate) fn turn(&self, direction: V3) -> V3 {
        self.axes.map(|axis| dot(axis, direction))
    }

    /// A point of the world in the camera's frame.
    pub(crate) fn place(&self, point: V3) -> V3 {
        self.turn(sub(point, self.position))
    }

    /// The columns of a rotation in the camera's frame.
    pub(crate) fn turn_axes(&self, rotation: &[f32; 9]) -> [V3; 3] {
        [0, 1, 2].map(|k| self.turn([rotation[k], rotation[3 + k], rotation[6 + k]]))
    }

    /// The x of rays through the point `x` of a row, in pixels from the left edge of the picture.
    #[inline(always)]
    pub(crate) fn ray_x(&self, x: f32) -> f32 {
        (x - 0.5 * self.width as f32) * self.pixel
    }

    /// The y of rays through the point `y` of a column, in pixels from the top edge.
    #[inline(always)]
    pub(crate) fn ray_y(&self, y: f32) -> f32 {
        (0.5 * self.height as f32 - y) * self.pixel
    }

    /// Where a point in the camera's frame is in the picture, in pixels.
    fn project(&self, point: V3) -> [f32; 2] {
        let scale = 1.0 / (point[2] * self.pixel);
        [0.5 * self.width as f32 + point[0] * scale, 0.5 * self.height as f32 - point[1] * scale]
    }

    /// A circle that the picture of a sphere lies within.
    fn circle(&self, centre: V3, radius: f32) -> Circle {
        let square = dot(centre, centre) - radius * radius;
        if centre[2] + radius < self.near {
            return Circle::Nothing;
        }
        // Tangents of the angle to the axis and of half the angle that the sphere covers.
        let aside = (centre[0] * centre[0] + centre[1] * centre[1]).sqrt() / centre[2];
        let half = radius / square.sqrt();
        let left = 1.0 - aside * half;
        // A NaN, too, means that it may be anywhere.
        if !(square > 0.0 && centre[2] > 0.0 && left > 0.05) {
            return Circle::Anywhere;
        }
        let outer = (aside + half) / left;
        let radius = (outer - aside) / self.pixel;
        let at = self.project(centre);
        if at[0].abs() < 1e6 && at[1].abs() < 1e6 && radius < 1e6 {
            Circle::Disc(at, radius)
        } else {
            Circle::Anywhere
        }
    }

    /// The pixels that a solid between two spheres can cover.
    pub(crate) fn hull(&self, ends: Ends) -> Hull {
        match ends.centres.map(|centre| self.circle(centre, ends.radius)) {
            [Circle::Nothing, Circle::Nothing] => Hull { rows: 0..0, discs: None },
            [Circle::Disc(a, ra), Circle::Disc(b, rb)] => {
                // A pixel more on each side: samples beside a pixel's centre belong to its neighbours' edges.
                let radius = ra.max(rb) + 1.0;
                let top = (a[1].min(b[1]) - radius).clamp(0.0, self.height as f32) as usize;
                let bottom = (a[1].max(b[1]) + radius + 1.0).clamp(0.0, self.height as f32) as usize;
                Hull { rows: top..bottom.max(top), discs: Some((a, b, radius)) }
            }
            _ => Hull::all(self),
        }
    }
}

enum Circle {
    /// Behind the camera.
    Nothing,
    /// Centre and radius in pixels.
    Disc([f32; 2], f32),
    Anywhere,
}

/// Pixels around what may be seen of a solid, of its mirror image or of its shadow.
#[derive(Debug, Clone)]
pub(crate) struct Hull {
    /// Rows that it may cover.
    pub(crate) rows: Range<usize>,
    /// The centres of two circles and their radius, in pixels; `None` if it may cover all of its rows.
    discs: Option<([f32; 2], [f32; 2], f32)>,
}

impl Hull {
    /// The whole picture.
    pub(crate) fn all(view: &View) -> Hull {
        Hull { rows: 0..view.height, discs: None }
    }

    /// The pixels of row `y` that it may cover.
    #[inline(always)]
    pub(crate) fn span(&self, y: usize, width: usize) -> Range<usize> {
        if !self.rows.contains(&y) {
            return 0..0;
        }
        let Some((a, b, radius)) = self.discs else { return 0..width };
        let y = y as f32 + 0.5;
        // The part of the line between the centres that is within the radius of this row.
        let along = b[1] - a[1];
        let (from, to) = if along.abs() < 1e-3 {
            (0.0, 1.0)
        } else {
            let (s, t) = ((y - radius - a[1]) / along, (y + radius - a[1]) / along);
            (s.min(t).clamp(0.0, 1.0), s.max(t).clamp(0.0, 1.0))
        };
        let (s, t) = (a[0] + from * (b[0] - a[0]), a[0] + to * (b[0] - a[0]));
        let left = (s.min(t) - radius).clamp(0.0, width as f32) as usize;
        let right = (s.max(t) + radius + 1.0).clamp(0.0, width as f32) as usize;
        left..right.max(left)
    }
}

/// The picture of a rectangle: a convex polygon.
#[derive(Debug, Clone)]
pub(crate) struct Polygon {
    /// Its corners in pixels.
    corners: [[f32; 2]; 6],
    count: usize,
    pub(crate) rows: Range<usize>,
}

impl Polygon {
    /// The part of a rectangle before the near plane, in the picture.
    pub(crate) fn new(view: &View, rectangle: [V3; 4]) -> Polygon {
        let mut corners = [[0.0; 2]; 6];
        let mut count = 0;
        let near = view.near * 0.9;
        for i in 0..4 {
            let (a, b) = (rectangle[i], rectangle[(i + 1) % 4]);
            if a[2] >= near {
                corners[count] = view.project(a);
                count += 1;
            }
            if (a[2] >= near) != (b[2] >= near) {
                let part = (near - a[2]) / (b[2] - a[2]);
                let cut: V3 = std::array::from_fn(|k| a[k] + part * (b[k] - a[k]));
                corners[count] = view.project([cut[0], cut[1], near]);
                count += 1;
            }
        }
        let known = &corners[..count];
        let top = known.iter().map(|c| c[1]).fold(f32::INFINITY, f32::min);
        let bottom = known.iter().map(|c| c[1]).fold(f32::NEG_INFINITY, f32::max);
        let height = view.height as f32;
        let rows = if count == 0 {
            0..0
        } else {
            let top = (top - 1.5).clamp(0.0, height) as usize;
            top..((bottom + 2.0).clamp(0.0, height) as usize).max(top)
        };
        Polygon { corners, count, rows }
    }

    /// Its part in some rows.
    pub(crate) fn within(mut self, rows: &Range<usize>) -> Polygon {
        let top = self.rows.start.max(rows.start);
        self.rows = top..self.rows.end.min(rows.end).max(top);
        self
    }

    /// The pixels of row `y` that it may cover.
    pub(crate) fn span(&self, y: usize, width: usize) -> Range<usize> {
        if !self.rows.contains(&y) {
            return 0..0;
        }
        // The polygon's extent in a band around the row's samples.
        let (top, bottom) = (y as f32 - 0.5, y as f32 + 1.5);
        let (mut left, mut right) = (f32::INFINITY, f32::NEG_INFINITY);
        for i in 0..self.count {
            let (a, b) = (self.corners[i], self.corners[(i + 1) % self.count]);
            let (a, b) = if a[1] <= b[1] { (a, b) } else { (b, a) };
            if a[1] > bottom || b[1] < top {
                continue;
            }
            let slope = (b[0] - a[0]) / (b[1] - a[1]).max(1e-6);
            let start = if a[1] < top { a[0] + (top - a[1]) * slope } else { a[0] };
            let end = if b[1] > bottom { a[0] + (bottom - a[1]) * slope } else { b[0] };
            left = left.min(start.min(end));
            right = right.max(start.max(end));
        }
        let left = (left - 1.5).clamp(0.0, width as f32) as usize;
        let right = (right + 2.0).clamp(0.0, width as f32) as usize;
        left..right.max(left)
    }
}

/// A point mirrored in the plane through `at` with the unit normal `normal`.
pub(crate) fn mirror_point(point: V3, at: V3, normal: V3) -> V3 {
    sub(point, scale(normal, 2.0 * dot(normal, sub(point, at))))
}

/// A direction mirrored in a plane with the unit normal `normal`.
pub(crate) fn mirror_direction(direction: V3, normal: V3) -> V3 {
    sub(direction, scale(normal, 2.0 * dot(normal, direction)))
}
