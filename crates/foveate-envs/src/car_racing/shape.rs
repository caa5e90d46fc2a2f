//! The car's polygons, as Box2D holds them.

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

/// Vertices in units of 0.02, through Box2D's gift-wrapping hull: from the right-most (ties: lowest) vertex
/// counter-clockwise, the farther of collinear candidates.
fn polygon(vertices: &[(i32, i32)]) -> Polygon {
    let points: Vec<[f32; 2]> =
        vertices.iter().map(|&(x, y)| [(f64::from(x) * 0.02) as f32, (f64::from(y) * 0.02) as f32]).collect();
    gift_wrap(&points)
}

/// Box2D 2.3's `b2PolygonShape::Set`, without vertex welding.
pub fn gift_wrap(points: &[[f32; 2]]) -> Polygon {
    let mut start = 0;
    for (i, p) in points.iter().enumerate() {
        let best = points[start];
        if p[0] > best[0] || (p[0] == best[0] && p[1] < best[1]) {
            start = i;
        }
    }
    let mut hull = Vec::with_capacity(points.len());
    let mut at = start;
    loop {
        hull.push(points[at]);
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
        if at == start || hull.len() >= points.len() {
            return hull;
        }
    }
}
