//! Contacts between wheels and tiles: a grid of tiles and Box2D 2.3's overlap test between convex polygons.
//!
//! Tiles are sensors, so only *whether* they touch matters. The boxes of Box2D's broad phase always contain
//! the shapes, so a pair touches exactly when the overlap test is true; any index that finds all candidates
//! is sufficient.

use super::scene::{Body, RoadQuad};
use super::shape::gift_wrap_each;

/// Side of a grid cell.
const CELL: f32 = 8.0;
/// The grid covers `-REACH` to `REACH`; objects outside are stored in the cells at the edge.
const REACH: f32 = 360.0;
const COLUMNS: usize = (2.0 * REACH / CELL) as usize;
/// Two skins of 0.01 and the tolerance of the overlap test, with a margin for rounding.
const MARGIN: f32 = 0.022;
/// The skins that Box2D adds around both polygons.
const SKINS: f32 = 0.01 + 0.01;

/// A tile in Box2D's form: a convex polygon in world coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tile {
    corners: [[f32; 2]; 4],
    count: usize,
    bounds: Bounds,
}

impl Tile {
    fn new(quad: &RoadQuad) -> Self {
        let points = quad.corners.map(|[x, y]| [x as f32, y as f32]);
        let mut tile = Tile { bounds: Bounds::of(&points), ..Tile::default() };
        gift_wrap_each(&points, |point| {
            tile.corners[tile.count] = point;
            tile.count += 1;
        });
        tile
    }

    /// Box2D's polygon of this tile.
    fn corners(&self) -> &[[f32; 2]] {
        &self.corners[..self.count]
    }

    /// Returns whether `polygon`, attached to `body`, touches the tile.
    pub(super) fn touches(&self, body: &Body, polygon: &[[f32; 2]], bounds: &Bounds) -> bool {
        self.bounds.near(bounds) && overlap(self.corners(), polygon, body)
    }
}

/// An axis-aligned box.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Bounds {
    low: [f32; 2],
    high: [f32; 2],
}

impl Bounds {
    /// The bounding box of `points`.
    pub(super) fn of(points: &[[f32; 2]]) -> Self {
        let nothing = Bounds { low: [f32::MAX; 2], high: [f32::MIN; 2] };
        points.iter().fold(nothing, |bounds, &p| bounds.with(&Bounds { low: p, high: p }))
    }

    /// The bounding box of `polygon`, transformed by `body`.
    pub(super) fn of_body(body: &Body, polygon: &[[f32; 2]]) -> Self {
        let nothing = Bounds { low: [f32::MAX; 2], high: [f32::MIN; 2] };
        polygon.iter().map(|&p| body.to_world(p)).fold(nothing, |b, p| b.with(&Bounds { low: p, high: p }))
    }

    /// The bounding box of both.
    #[must_use]
    pub(super) fn with(&self, other: &Bounds) -> Self {
        let each = |k: usize| (self.low[k].min(other.low[k]), self.high[k].max(other.high[k]));
        let ((lx, hx), (ly, hy)) = (each(0), each(1));
        Bounds { low: [lx, ly], high: [hx, hy] }
    }

    fn near(&self, other: &Bounds) -> bool {
        (0..2).all(|k| self.low[k] <= other.high[k] + MARGIN && other.low[k] <= self.high[k] + MARGIN)
    }

    fn cells(&self) -> impl Iterator<Item = usize> + use<> {
        let cell = |x: f32| ((x + REACH) / CELL).clamp(0.0, (COLUMNS - 1) as f32) as usize;
        let columns = cell(self.low[0] - MARGIN)..=cell(self.high[0] + MARGIN);
        let rows = cell(self.low[1] - MARGIN)..=cell(self.high[1] + MARGIN);
        rows.flat_map(move |row| columns.clone().map(move |column| row * COLUMNS + column))
    }
}

/// A spatial index of a track's tiles.
#[derive(Debug, Clone, Default)]
pub(super) struct TileIndex {
    /// The tiles in order.
    pub(super) tiles: Vec<Tile>,
    /// Tiles of cell `c` are `entries[starts[c]..starts[c + 1]]`, in increasing order.
    starts: Vec<u16>,
    entries: Vec<u16>,
}

impl TileIndex {
    /// Indexes the tiles of a track.
    pub(super) fn build<'a>(&mut self, quads: impl Iterator<Item = &'a RoadQuad>) {
        self.tiles.clear();
        self.tiles.extend(quads.map(Tile::new));
        let cells = COLUMNS * COLUMNS;
        self.starts.clear();
        self.starts.resize(cells + 1, 0);
        for tile in &self.tiles {
            for cell in tile.bounds.cells() {
                self.starts[cell] += 1;
            }
        }
        // End offsets; they become start offsets as the entries are inserted from the back.
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.entries.clear();
        self.entries.resize(usize::from(end), 0);
        for (i, tile) in self.tiles.iter().enumerate().rev() {
            for cell in tile.bounds.cells() {
                self.starts[cell] -= 1;
                self.entries[usize::from(self.starts[cell])] = i as u16;
            }
        }
    }

    /// Calls `each` with every tile that may be near `bounds` until it returns false; a tile may be passed
    /// more than once.
    pub(super) fn near(&self, bounds: &Bounds, mut each: impl FnMut(usize, &Tile) -> bool) {
        for cell in bounds.cells() {
            let range = usize::from(self.starts[cell])..usize::from(self.starts[cell + 1]);
            for &i in &self.entries[range] {
                let i = usize::from(i);
                if !each(i, &self.tiles[i]) {
                    return;
                }
            }
        }
    }
}

/// A vertex of the simplex in the Minkowski difference: the two points, their difference, its weight.
#[derive(Clone, Copy, Default)]
struct Vertex {
    a: [f32; 2],
    b: [f32; 2],
    w: [f32; 2],
    weight: f32,
    from: (usize, usize),
}

fn sub(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

fn dot(a: [f32; 2], b: [f32; 2]) -> f32 {
    a[0] * b[0] + a[1] * b[1]
}

fn cross(a: [f32; 2], b: [f32; 2]) -> f32 {
    a[0] * b[1] - a[1] * b[0]
}

/// The vertex farthest along `direction`; on a tie, the first one.
fn support(polygon: &[[f32; 2]], direction: [f32; 2]) -> usize {
    let mut best = 0;
    let mut far = dot(polygon[0], direction);
    for (i, &p) in polygon.iter().enumerate().skip(1) {
        let value = dot(p, direction);
        if value > far {
            best = i;
            far = value;
        }
    }
    best
}

/// `b2TestOverlap` of a static polygon in world coordinates and one attached to `body`: the GJK distance of
/// Box2D 2.3, started at vertex 0 of both polygons. The early exit for lack of progress is left out, because
/// that version never takes it.
fn overlap(fixed: &[[f32; 2]], carried: &[[f32; 2]], body: &Body) -> bool {
    let vertex = |i: usize, j: usize| {
        let (a, b) = (fixed[i], body.to_world(carried[j]));
        Vertex { a, b, w: sub(b, a), weight: 1.0, from: (i, j) }
    };
    let mut simplex = [vertex(0, 0), Vertex::default(), Vertex::default()];
    let mut count = 1;
    for _ in 0..20 {
        let seen = simplex.map(|v| v.from);
        let seen_count = count;
        match count {
            2 => count = closest_on_segment(&mut simplex),
            3 => count = closest_on_triangle(&mut simplex),
            _ => {}
        }
        if count == 3 {
            break;
        }
        let direction = if count == 1 {
            [-simplex[0].w[0], -simplex[0].w[1]]
        } else {
            let along = sub(simplex[1].w, simplex[0].w);
            if cross(along, [-simplex[0].w[0], -simplex[0].w[1]]) > 0.0 {
                [-along[1], along[0]]
            } else {
                [along[1], -along[0]]
            }
        };
        if dot(direction, direction) < f32::EPSILON * f32::EPSILON {
            break;
        }
        let local = [
            body.cos * direction[0] + body.sin * direction[1],
            -body.sin * direction[0] + body.cos * direction[1],
        ];
        let next = vertex(support(fixed, [-direction[0], -direction[1]]), support(carried, local));
        simplex[count] = next;
        if seen[..seen_count].contains(&next.from) {
            break;
        }
        count += 1;
    }
    if count == 3 {
        return true; // the origin is inside: both witness points are the same
    }
    let witness = |point: fn(&Vertex) -> [f32; 2]| {
        let p = point(&simplex[0]);
        if count == 1 {
            return p;
        }
        let q = point(&simplex[1]);
        let (s, t) = (simplex[0].weight, simplex[1].weight);
        [s * p[0] + t * q[0], s * p[1] + t * q[1]]
    };
    let apart = sub(witness(|v| v.a), witness(|v| v.b));
    let distance = dot(apart, apart).sqrt();
    // The distance without the skins is below the tolerance of `b2TestOverlap`.
    distance <= SKINS || distance - SKINS < 10.0 * f32::EPSILON
}

/// Reduces a segment to the part closest to the origin; returns the number of remaining vertices.
fn closest_on_segment(simplex: &mut [Vertex; 3]) -> usize {
    let (w1, w2) = (simplex[0].w, simplex[1].w);
    let e12 = sub(w2, w1);
    let d12_2 = -dot(w1, e12);
    if d12_2 <= 0.0 {
        simplex[0].weight = 1.0;
        return 1;
    }
    let d12_1 = dot(w2, e12);
    if d12_1 <= 0.0 {
        simplex[1].weight = 1.0;
        simplex[0] = simplex[1];
        return 1;
    }
    let inverse = 1.0 / (d12_1 + d12_2);
    simplex[0].weight = d12_1 * inverse;
    simplex[1].weight = d12_2 * inverse;
    2
}

/// Reduces a triangle to the part closest to the origin; returns the number of remaining vertices, 3 when the
/// origin is inside.
fn closest_on_triangle(simplex: &mut [Vertex; 3]) -> usize {
    let [w1, w2, w3] = [simplex[0].w, simplex[1].w, simplex[2].w];
    let e12 = sub(w2, w1);
    let (d12_1, d12_2) = (dot(w2, e12), -dot(w1, e12));
    let e13 = sub(w3, w1);
    let (d13_1, d13_2) = (dot(w3, e13), -dot(w1, e13));
    let e23 = sub(w3, w2);
    let (d23_1, d23_2) = (dot(w3, e23), -dot(w2, e23));
    let n = cross(e12, e13);
    let (d123_1, d123_2, d123_3) = (n * cross(w2, w3), n * cross(w3, w1), n * cross(w1, w2));
    let mut keep_one = |i: usize| {
        simplex[0] = simplex[i];
        simplex[0].weight = 1.0;
        1
    };
    if d12_2 <= 0.0 && d13_2 <= 0.0 {
        return keep_one(0);
    }
    if d12_1 > 0.0 && d12_2 > 0.0 && d123_3 <= 0.0 {
        let inverse = 1.0 / (d12_1 + d12_2);
        simplex[0].weight = d12_1 * inverse;
        simplex[1].weight = d12_2 * inverse;
        return 2;
    }
    if d13_1 > 0.0 && d13_2 > 0.0 && d123_2 <= 0.0 {
        let inverse = 1.0 / (d13_1 + d13_2);
        simplex[0].weight = d13_1 * inverse;
        simplex[1] = simplex[2];
        simplex[1].weight = d13_2 * inverse;
        return 2;
    }
    if d12_1 <= 0.0 && d23_2 <= 0.0 {
        return keep_one(1);
    }
    if d13_1 <= 0.0 && d23_1 <= 0.0 {
        return keep_one(2);
    }
    if d23_1 > 0.0 && d23_2 > 0.0 && d123_1 <= 0.0 {
        let inverse = 1.0 / (d23_1 + d23_2);
        simplex[1].weight = d23_1 * inverse;
        simplex[0] = simplex[2];
        simplex[0].weight = d23_2 * inverse;
        return 2;
    }
    3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::car_racing::scene::Paint;

    fn tile(x: f64, y: f64) -> RoadQuad {
        RoadQuad {
            corners: [[x, y], [x + 4.0, y], [x + 4.0, y + 2.0], [x, y + 2.0]],
            paint: Paint::Road { stripe: 0 },
        }
    }

    fn body(x: f32, y: f32, angle: f32) -> Body {
        Body { position: [x, y], angle, sin: angle.sin(), cos: angle.cos(), ..Body::default() }
    }

    #[test]
    fn polygons_touch_within_their_skins() {
        let square = [[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]];
        let tile = Tile::new(&tile(0.0, 0.0));
        for (x, y, angle, expected) in [
            (2.0, 1.0, 0.3, true),
            (-1.0, 1.0, 0.0, true),
            (-1.019, 1.0, 0.0, true),
            (-1.021, 1.0, 0.0, false),
            (-1.4, 1.0, std::f32::consts::FRAC_PI_4, true),
            (-1.44, 1.0, std::f32::consts::FRAC_PI_4, false),
            (5.5, 3.5, 0.0, false),
            (4.5, 2.5, 0.0, true),
        ] {
            let body = body(x, y, angle);
            let bounds = Bounds::of_body(&body, &square);
            assert_eq!(tile.touches(&body, &square, &bounds), expected, "at {x}, {y}, turned by {angle}");
        }
    }

    #[test]
    fn the_grid_finds_what_a_search_of_all_tiles_finds() {
        let mut random = foveate_core::Seed::root(4).rng();
        let mut place = || random.uniform(-380.0, 380.0);
        let quads: Vec<RoadQuad> = (0..300).map(|_| tile(place(), place())).collect();
        let mut grid = TileIndex::default();
        grid.build(quads.iter());
        let polygon = [[40.0, -40.0], [40.0, 40.0], [-40.0, 40.0], [-40.0, -40.0]];
        let mut hits = 0;
        for k in 0..200 {
            let body = body(place() as f32, place() as f32, k as f32);
            let bounds = Bounds::of_body(&body, &polygon);
            let mut found = vec![false; quads.len()];
            grid.near(&bounds, |i, tile| {
                found[i] |= tile.touches(&body, &polygon, &bounds);
                true
            });
            let all: Vec<bool> = grid.tiles.iter().map(|t| overlap(t.corners(), &polygon, &body)).collect();
            assert_eq!(found, all);
            hits += all.iter().filter(|&&hit| hit).count();
        }
        assert!(hits > 500, "{hits}");
    }
}
