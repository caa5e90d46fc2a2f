//! The solid shapes: where rays hit them, and their normals.
//!
//! All is in the camera's frame: x to the right, y up, z forward, the eye at the origin. A ray through a pixel has the direction
//! (x, y, 1), so the distance along it is the depth.

use crate::lanes::{LANES, V3, Wide, Wide3, Words, add, dot, mask, max, min, scale, select};
use crate::layer::any;

/// A solid in the camera's frame, with what all rays of a picture share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Solid {
    kind: Kind,
    /// Its centre.
    pub(crate) centre: V3,
    /// Its axes.
    axes: [V3; 3],
    /// As [`crate::Geom::size`].
    size: V3,
    /// `centre · centre - r²`, of shapes with a radius.
    power: f32,
    /// The centre along its axes.
    along: V3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sphere,
    Capsule,
    Ellipsoid,
    Cylinder,
    Box,
}

/// Where a ray can meet a solid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ends {
    /// The solid lies within the convex hull of two spheres with these centres …
    pub(crate) centres: [V3; 2],
    /// … and this radius.
    pub(crate) radius: f32,
}

impl Solid {
    /// A solid; `None` for a plane, and for what has no extent or is not finite.
    pub(crate) fn new(shape: crate::Shape, size: V3, centre: V3, axes: [V3; 3]) -> Option<Solid> {
        use crate::Shape;
        let kind = match shape {
            Shape::Plane => return None,
            Shape::Sphere => Kind::Sphere,
            Shape::Capsule => Kind::Capsule,
            Shape::Ellipsoid => Kind::Ellipsoid,
            Shape::Cylinder => Kind::Cylinder,
            Shape::Box => Kind::Box,
        };
        // Beyond these, squares of lengths leave single precision.
        let sound = |x: f32| x.abs() < 1e8;
        let positive = |x: f32| x > 1e-8 && x < 1e8;
        let extents = match kind {
            Kind::Sphere => [size[0]; 3],
            Kind::Capsule => [size[0], size[0], max(size[2], 1e-7)],
            Kind::Cylinder => [size[0], size[0], size[2]],
            Kind::Ellipsoid | Kind::Box => size,
        };
        let all_sound = centre.iter().chain(axes.iter().flatten()).all(|&x| sound(x));
        if !all_sound || !extents.iter().all(|&x| positive(x)) {
            return None;
        }
        let (mut axes, mut along) = (axes, axes.map(|axis| dot(axis, centre)));
        if kind == Kind::Ellipsoid {
            // The frame in which it is the unit sphere.
            axes = [0, 1, 2].map(|k| scale(axes[k], 1.0 / extents[k]));
            along = axes.map(|axis| dot(axis, centre));
        }
        let power = match kind {
            Kind::Sphere | Kind::Capsule => dot(centre, centre) - extents[0] * extents[0],
            Kind::Ellipsoid => dot(along, along) - 1.0,
            Kind::Cylinder => along[0] * along[0] + along[1] * along[1] - extents[0] * extents[0],
            Kind::Box => 0.0,
        };
        Some(Solid { kind, centre, axes, size: extents, power, along })
    }

    /// Returns whether its normal turns in all directions.
    #[inline(always)]
    pub(crate) fn is_round(&self) -> bool {
        !matches!(self.kind, Kind::Cylinder | Kind::Box)
    }

    /// Two spheres around it.
    pub(crate) fn ends(&self) -> Ends {
        let s = self.size;
        let (axis, half, radius) = match self.kind {
            Kind::Sphere => (self.axes[2], 0.0, s[0]),
            Kind::Capsule | Kind::Cylinder => (self.axes[2], s[2], s[0]),
            Kind::Ellipsoid => (self.axes[2], 0.0, max(s[0], max(s[1], s[2]))),
            Kind::Box => {
                let longest = if s[0] >= s[1] && s[0] >= s[2] {
                    0
                } else if s[1] >= s[2] {
                    1
                } else {
                    2
                };
                let (a, b) = (s[(longest + 1) % 3], s[(longest + 2) % 3]);
                (self.axes[longest], s[longest], (a * a + b * b).sqrt())
            }
        };
        let reach = scale(axis, half);
        Ends {
            centres: [crate::lanes::sub(self.centre, reach), add(self.centre, reach)],
            radius: radius * 1.0001,
        }
    }

    /// The radius of a sphere around its centre that holds it.
    pub(crate) fn radius(&self) -> f32 {
        let s = self.size;
        match self.kind {
            Kind::Sphere => s[0],
            Kind::Capsule => s[0] + s[2],
            Kind::Cylinder => (s[0] * s[0] + s[2] * s[2]).sqrt(),
            Kind::Ellipsoid => max(s[0], max(s[1], s[2])),
            Kind::Box => dot(s, s).sqrt(),
        }
    }

    /// The depth at which the rays through the pixels (x, y) hit; NaN or infinite where they do not.
    #[inline(always)]
    pub(crate) fn depth(&self, x: &Wide, y: &Wide) -> Wide {
        let mut depth = [f32::NAN; LANES];
        let (c, axes, s, power, along) = (self.centre, self.axes, self.size, self.power, self.along);
        match self.kind {
            Kind::Sphere => {
                for i in 0..LANES {
                    let dd = x[i] * x[i] + (y[i] * y[i] + 1.0);
                    let dc = c[0] * x[i] + (c[1] * y[i] + c[2]);
                    depth[i] = (dc - (dc * dc - dd * power).sqrt()) / dd;
                }
            }
            Kind::Ellipsoid => {
                for i in 0..LANES {
                    let d = axes.map(|axis| axis[0] * x[i] + (axis[1] * y[i] + axis[2]));
                    let dd = dot(d, d);
                    let dc = dot(d, along);
                    depth[i] = (dc - (dc * dc - dd * power).sqrt()) / dd;
                }
            }
            Kind::Capsule => {
                let a = axes[2];
                let (ca, half) = (along[2], s[2]);
                let mut in_caps = [0; LANES];
                for i in 0..LANES {
                    let dd = x[i] * x[i] + (y[i] * y[i] + 1.0);
                    let da = a[0] * x[i] + (a[1] * y[i] + a[2]);
                    let dc = c[0] * x[i] + (c[1] * y[i] + c[2]);
                    // The cylinder.
                    let across = dd - da * da;
                    let middle = dc - da * ca;
                    let square = middle * middle - across * (power - ca * ca);
                    let side = (middle - square.sqrt()) / across;
                    let z = side * da - ca;
                    // A NaN, too, is left to the caps.
                    let on_side = z.abs() <= half;
                    // Beyond the cylinder's ends, for now, at which of them.
                    depth[i] = select(on_side, side, select(square >= 0.0, z, f32::NAN));
                    in_caps[i] = mask((square >= 0.0) & !on_side);
                }
                if any(&in_caps) {
                    for i in 0..LANES {
                        let dd = x[i] * x[i] + (y[i] * y[i] + 1.0);
                        let da = a[0] * x[i] + (a[1] * y[i] + a[2]);
                        let dc = c[0] * x[i] + (c[1] * y[i] + c[2]);
                        // The cap beyond whose centre the cylinder is hit.
                        let shift = select(depth[i] > 0.0, half, -half);
                        let dc = dc + shift * da;
                        let cap_power = power + shift * (2.0 * ca + shift);
                        let cap = (dc - (dc * dc - dd * cap_power).sqrt()) / dd;
                        depth[i] = select(in_caps[i] != 0, cap, depth[i]);
                    }
                }
            }
            Kind::Cylinder => {
                for i in 0..LANES {
                    let d = axes.map(|axis| axis[0] * x[i] + (axis[1] * y[i] + axis[2]));
                    let across = d[0] * d[0] + d[1] * d[1];
                    let middle = d[0] * along[0] + d[1] * along[1];
                    let root = (middle * middle - across * power).sqrt();
                    let (in_side, out_side) = ((middle - root) / across, (middle + root) / across);
                    let (a, b) = ((along[2] - s[2]) / d[2], (along[2] + s[2]) / d[2]);
                    // A ray along the axis has no side: NaN, for which the caps count.
                    let enter = max(in_side, min(a, b));
                    let leave = min(out_side, max(a, b));
                    depth[i] = select((root >= 0.0) & (enter <= leave), enter, f32::NAN);
                }
            }
            Kind::Box => {
                for i in 0..LANES {
                    let mut enter = f32::NEG_INFINITY;
                    let mut leave = f32::INFINITY;
                    for k in 0..3 {
                        let d = axes[k][0] * x[i] + (axes[k][1] * y[i] + axes[k][2]);
                        let (a, b) = ((along[k] - s[k]) / d, (along[k] + s[k]) / d);
                        enter = max(min(a, b), enter);
                        leave = min(max(a, b), leave);
                    }
                    depth[i] = select(enter <= leave, enter, f32::NAN);
                }
            }
        }
        depth
    }

    /// The normal at points of its surface. Of spheres and capsules it grows with the distance to the centre, as it does on the
    /// flat faces that OpenGL draws for them.
    #[inline(always)]
    pub(crate) fn normal(&self, p: &Wide3) -> Wide3 {
        let mut n = [[0.0; LANES]; 3];
        let (c, axes, s) = (self.centre, self.axes, self.size);
        match self.kind {
            Kind::Sphere => {
                let inverse = 1.0 / s[0];
                for i in 0..LANES {
                    for k in 0..3 {
                        n[k][i] = (p[k][i] - c[k]) * inverse;
                    }
                }
            }
            Kind::Capsule => {
                let (inverse, a, half) = (1.0 / s[0], axes[2], s[2]);
                for i in 0..LANES {
                    let q = [p[0][i] - c[0], p[1][i] - c[1], p[2][i] - c[2]];
                    let z = max(min(dot(q, a), half), -half);
                    for k in 0..3 {
                        n[k][i] = (q[k] - z * a[k]) * inverse;
                    }
                }
            }
            Kind::Ellipsoid => {
                for i in 0..LANES {
                    let q = [p[0][i] - c[0], p[1][i] - c[1], p[2][i] - c[2]];
                    let l = [dot(q, axes[0]), dot(q, axes[1]), dot(q, axes[2])];
                    let mut g = [0.0; 3];
                    for k in 0..3 {
                        g[k] = l[0] * axes[0][k] + l[1] * axes[1][k] + l[2] * axes[2][k];
                    }
                    let inverse = 1.0 / dot(g, g).sqrt();
                    for k in 0..3 {
                        n[k][i] = g[k] * inverse;
                    }
                }
            }
            Kind::Cylinder => {
                let a = axes[2];
                for i in 0..LANES {
                    let q = [p[0][i] - c[0], p[1][i] - c[1], p[2][i] - c[2]];
                    let z = dot(q, a);
                    let side = [q[0] - z * a[0], q[1] - z * a[1], q[2] - z * a[2]];
                    let radius = dot(side, side).sqrt();
                    // The cap if the point is nearer to its plane than to the side.
                    let cap = s[2] - z.abs() < s[0] - radius;
                    let (up, inverse) = (select(z > 0.0, 1.0, -1.0), 1.0 / radius);
                    for k in 0..3 {
                        n[k][i] = select(cap, up * a[k], side[k] * inverse);
                    }
                }
            }
            Kind::Box => {
                for i in 0..LANES {
                    let q = [p[0][i] - c[0], p[1][i] - c[1], p[2][i] - c[2]];
                    let l = [dot(q, axes[0]), dot(q, axes[1]), dot(q, axes[2])];
                    let gap = [s[0] - l[0].abs(), s[1] - l[1].abs(), s[2] - l[2].abs()];
                    let x_first = (gap[0] <= gap[1]) & (gap[0] <= gap[2]);
                    let y_first = gap[1] <= gap[2];
                    for k in 0..3 {
                        let x = axes[0][k] * select(l[0] > 0.0, 1.0, -1.0);
                        let y = axes[1][k] * select(l[1] > 0.0, 1.0, -1.0);
                        let z = axes[2][k] * select(l[2] > 0.0, 1.0, -1.0);
                        n[k][i] = select(x_first, x, select(y_first, y, z));
                    }
                }
            }
        }
        n
    }

    /// Sets all bits of `hit` where the ray from `o` along `d` meets it between 0 and `end` times `d`, or begins
    /// inside of it; where `among` has no bits, it may leave them.
    #[inline(always)]
    pub(crate) fn shade(&self, o: &Wide3, d: &Wide3, end: f32, among: &Words, hit: &mut Words) {
        let (c, axes, s) = (self.centre, self.axes, self.size);
        match self.kind {
            Kind::Sphere => {
                let rr = s[0] * s[0];
                for i in 0..LANES {
                    let q = [c[0] - o[0][i], c[1] - o[1][i], c[2] - o[2][i]];
                    let d = [d[0][i], d[1][i], d[2][i]];
                    let (dd, dq) = (dot(d, d), dot(d, q));
                    let power = dot(q, q) - rr;
                    let t = (dq - (dq * dq - dd * power).sqrt()) / dd;
                    hit[i] |= mask(((t > 0.0) | (power < 0.0)) & (t < end));
                }
            }
            Kind::Capsule => {
                let (a, rr, half) = (axes[2], s[0] * s[0], s[2]);
                // Most rays miss the endless cylinder around it; that takes neither roots nor divisions.
                let mut meets = [0; LANES];
                for i in 0..LANES {
                    let q = [c[0] - o[0][i], c[1] - o[1][i], c[2] - o[2][i]];
                    let d = [d[0][i], d[1][i], d[2][i]];
                    let (da, qa) = (dot(d, a), dot(q, a));
                    let middle = dot(d, q) - da * qa;
                    let square = middle * middle - (dot(d, d) - da * da) * (dot(q, q) - rr - qa * qa);
                    meets[i] = among[i] & mask(square >= 0.0);
                }
                if !any(&meets) {
                    return;
                }
                for i in 0..LANES {
                    let q = [c[0] - o[0][i], c[1] - o[1][i], c[2] - o[2][i]];
                    let d = [d[0][i], d[1][i], d[2][i]];
                    let (dd, dq, da, qa) = (dot(d, d), dot(d, q), dot(d, a), dot(q, a));
                    let power = dot(q, q) - rr;
                    let across = dd - da * da;
                    let middle = dq - da * qa;
                    let root = (middle * middle - across * (power - qa * qa)).sqrt();
                    let side = (middle - root) / across;
                    let z = side * da - qa;
                    let shift = select(z > 0.0, half, -half);
                    let dq = dq + shift * da;
                    let cap = (dq - (dq * dq - dd * (power + shift * (2.0 * qa + shift))).sqrt()) / dd;
                    let t = select(z.abs() <= half, side, select(root >= 0.0, cap, f32::NAN));
                    let nearest = max(min(qa, half), -half);
                    let inside = power + nearest * (nearest - 2.0 * qa) < 0.0;
                    hit[i] |= mask(((t > 0.0) | inside) & (t < end));
                }
            }
            Kind::Ellipsoid => {
                for i in 0..LANES {
                    let q = [c[0] - o[0][i], c[1] - o[1][i], c[2] - o[2][i]];
                    let d = [d[0][i], d[1][i], d[2][i]];
                    let q = [dot(q, axes[0]), dot(q, axes[1]), dot(q, axes[2])];
                    let d = [dot(d, axes[0]), dot(d, axes[1]), dot(d, axes[2])];
                    let (dd, dq) = (dot(d, d), dot(d, q));
                    let power = dot(q, q) - 1.0;
                    let t = (dq - (dq * dq - dd * power).sqrt()) / dd;
                    hit[i] |= mask(((t > 0.0) | (power < 0.0)) & (t < end));
                }
            }
            Kind::Cylinder => {
                let rr = s[0] * s[0];
                for i in 0..LANES {
                    let q = [c[0] - o[0][i], c[1] - o[1][i], c[2] - o[2][i]];
                    let d = [d[0][i], d[1][i], d[2][i]];
                    let q = [dot(q, axes[0]), dot(q, axes[1]), dot(q, axes[2])];
                    let d = [dot(d, axes[0]), dot(d, axes[1]), dot(d, axes[2])];
                    let across = d[0] * d[0] + d[1] * d[1];
                    let middle = d[0] * q[0] + d[1] * q[1];
                    let root = (middle * middle - across * (q[0] * q[0] + q[1] * q[1] - rr)).sqrt();
                    let (a, b) = ((q[2] - s[2]) / d[2], (q[2] + s[2]) / d[2]);
                    let enter = max((middle - root) / across, min(a, b));
                    let leave = min((middle + root) / across, max(a, b));
                    hit[i] |= mask((root >= 0.0) & (enter <= leave) & (leave > 0.0) & (enter < end));
                }
            }
            Kind::Box => {
                for i in 0..LANES {
                    let q = [c[0] - o[0][i], c[1] - o[1][i], c[2] - o[2][i]];
                    let d = [d[0][i], d[1][i], d[2][i]];
                    let mut enter = 0.0;
                    let mut leave = end;
                    for k in 0..3 {
                        let (q, d) = (dot(q, axes[k]), dot(d, axes[k]));
                        let (a, b) = ((q - s[k]) / d, (q + s[k]) / d);
                        enter = max(min(a, b), enter);
                        leave = min(max(a, b), leave);
                    }
                    hit[i] |= mask(enter < leave);
                }
            }
        }
    }
}
