//! The car's polygons and masses, as in Box2D.

use std::sync::LazyLock;

/// A convex polygon in body coordinates; vertices in Box2D's order.
pub type Polygon = Vec<[f32; 2]>;

/// The hull's four polygons, in drawing order.
pub static HULL: LazyLock<[Polygon; 4]> = LazyLock::new(|| {
    [
        &[(-60, 130), (60, 130), (60, 110), (-60, 110)][..],
        &[(-15, 120), (15, 120), (20, 20), (-20, 20)],
        &[(25, 20), (50, -10), (50, -40), (20, -90), (-20, -90), (-50, -40), (-50, -10), (-25, 20)],
        &[(-50, -120), (50, -120), (50, -90), (-50, -90)],
    ]
    .map(polygon)
});

/// A wheel's polygon.
pub static WHEEL: LazyLock<Polygon> =
    LazyLock::new(|| polygon(&[(-14, 27), (14, 27), (14, -27), (-14, -27)]));

/// Vertices in units of 0.02, ordered by Box2D's gift wrapping: counter-clockwise from the rightmost (on a
/// tie, lowest) vertex, taking the farther of collinear candidates.
fn polygon(vertices: &[(i32, i32)]) -> Polygon {
    let points: Vec<[f32; 2]> =
        vertices.iter().map(|&(x, y)| [(f64::from(x) * 0.02) as f32, (f64::from(y) * 0.02) as f32]).collect();
    gift_wrap(&points)
}

/// Box2D 2.3's `b2PolygonShape::Set`, without vertex welding.
pub fn gift_wrap(points: &[[f32; 2]]) -> Polygon {
    let mut hull = Vec::with_capacity(points.len());
    gift_wrap_each(points, |point| hull.push(point));
    hull
}

/// Calls `take` with every vertex of the hull in [`gift_wrap`]'s order.
pub(super) fn gift_wrap_each(points: &[[f32; 2]], mut take: impl FnMut([f32; 2])) {
    let mut start = 0;
    for (i, p) in points.iter().enumerate() {
        let best = points[start];
        if p[0] > best[0] || (p[0] == best[0] && p[1] < best[1]) {
            start = i;
        }
    }
    let mut at = start;
    for _ in 0..points.len() {
        take(points[at]);
        let mut end = 0;
        for j in 1..points.len() {
            if end == at {
                end = j;
                continue;
            }
            let r = [points[end][0] - points[at][0], points[end][1] - points[at][1]];
            let v = [points[j][0] - points[at][0], points[j][1] - points[at][1]];
            let cross = r[0] * v[1] - r[1] * v[0];
            if cross < 0.0 || (cross == 0.0 && v[0] * v[0] + v[1] * v[1] > r[0] * r[0] + r[1] * r[1]) {
                end = j;
            }
        }
        at = end;
        if at == start {
            return;
        }
    }
}

/// The mass properties of a body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mass {
    /// One over its mass.
    pub(super) per_unit_force: f32,
    /// One over its rotational inertia about the centre of mass.
    pub(super) per_unit_torque: f32,
    /// Centre of mass in body coordinates.
    pub(super) center: [f32; 2],
}

/// Mass, first moment per mass and inertia about the body's origin of one polygon:
/// `b2PolygonShape::ComputeMass`.
fn weigh(polygon: &[[f32; 2]], density: f32) -> (f32, [f32; 2], f32) {
    const THIRD: f32 = 1.0 / 3.0;
    let (mut sx, mut sy) = (0.0_f32, 0.0_f32);
    for p in polygon {
        sx += p[0];
        sy += p[1];
    }
    let share = 1.0 / polygon.len() as f32;
    sx *= share;
    sy *= share;
    let (mut area, mut inertia) = (0.0_f32, 0.0_f32);
    let (mut cx, mut cy) = (0.0_f32, 0.0_f32);
    for (i, p) in polygon.iter().enumerate() {
        let q = polygon[if i + 1 < polygon.len() { i + 1 } else { 0 }];
        let (ax, ay) = (p[0] - sx, p[1] - sy);
        let (bx, by) = (q[0] - sx, q[1] - sy);
        let cross = ax * by - ay * bx;
        let triangle = 0.5 * cross;
        area += triangle;
        cx += triangle * THIRD * (ax + bx);
        cy += triangle * THIRD * (ay + by);
        let along_x = ax * ax + bx * ax + bx * bx;
        let along_y = ay * ay + by * ay + by * by;
        inertia += (0.25 * THIRD * cross) * (along_x + along_y);
    }
    let mass = density * area;
    cx *= 1.0 / area;
    cy *= 1.0 / area;
    let (x, y) = (cx + sx, cy + sy);
    let about_origin = density * inertia + mass * ((x * x + y * y) - (cx * cx + cy * cy));
    (mass, [x, y], about_origin)
}

/// The mass of a body with several polygons, summed in Box2D's order: the last one first.
fn body_mass(polygons: &[Polygon], density: f32) -> (Mass, f32, f32) {
    let (mut mass, mut inertia, mut center) = (0.0_f32, 0.0_f32, [0.0_f32; 2]);
    for polygon in polygons.iter().rev() {
        let (m, c, i) = weigh(polygon, density);
        mass += m;
        center[0] += m * c[0];
        center[1] += m * c[1];
        inertia += i;
    }
    let per_unit_force = 1.0 / mass;
    center[0] *= per_unit_force;
    center[1] *= per_unit_force;
    let about_center = inertia - mass * (center[0] * center[0] + center[1] * center[1]);
    (Mass { per_unit_force, per_unit_torque: 1.0 / about_center, center }, mass, inertia)
}

/// The hull's mass: density 1.
pub(super) static HULL_MASS: LazyLock<Mass> = LazyLock::new(|| body_mass(&*HULL, 1.0).0);
/// A wheel's mass: density 0.1.
pub(super) static WHEEL_MASS: LazyLock<Mass> =
    LazyLock::new(|| body_mass(std::slice::from_ref(&WHEEL), 0.1).0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_weigh_what_box2d_says() {
        let (hull, mass, inertia) = body_mass(&*HULL, 1.0);
        assert_eq!((mass, inertia), (7.06, 18.260_365));
        assert!((hull.center[0] - 1.47745e-9).abs() < 1e-14 && (hull.center[1] + 0.082_530_9).abs() < 1e-7);
        let (wheel, mass, inertia) = body_mass(std::slice::from_ref(&WHEEL), 0.1);
        assert_eq!((mass, inertia), (0.060_480_006, 0.007_459_201));
        assert_eq!(wheel.center, [0.0, 0.0]);
    }

    #[test]
    fn the_hull_of_points_drops_what_lies_inside_or_on_an_edge() {
        let points = [[0.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.0, 0.5], [2.0, 2.0], [0.0, 2.0]];
        assert_eq!(gift_wrap(&points), [[2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [0.0, 0.0]]);
    }
}
