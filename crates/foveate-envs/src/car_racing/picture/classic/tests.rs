//! Compares the picture with a slow painter that tests, for every pixel, which polygons contain its centre.

use foveate_core::{Rng, Seed};

use super::*;
use crate::car_racing::scene::{Blob, Body, RoadQuad};

/// A scene with owned data.
#[derive(Clone)]
struct Owned {
    road: Vec<RoadQuad>,
    backdrop: Option<(usize, usize, Vec<u8>)>,
    rest: Rest,
}

#[derive(Clone, Copy)]
struct Rest {
    t: f64,
    hull: Body,
    wheels: [Wheel; 4],
    steering_angle: f32,
    colors: Colors,
    side_bars: f64,
    blob: Option<Blob>,
}

impl Owned {
    fn scene(&self, track_id: u64) -> Scene<'_> {
        let Rest { t, hull, wheels, steering_angle, colors, side_bars, blob } = self.rest;
        let backdrop = self.backdrop.as_ref().map(|(width, height, rgb)| Backdrop {
            width: *width,
            height: *height,
            rgb,
        });
        Scene {
            indicators: true,
            road: &self.road,
            track_id,
            t,
            hull,
            wheels,
            steering_angle,
            score: 123.0,
            colors,
            backdrop,
            side_bars,
            blob,
        }
    }
}

fn body(position: [f64; 2], angle: f64, rng: &mut Rng) -> Body {
    Body {
        position: position.map(|p| p as f32),
        angle: angle as f32,
        sin: (angle as f32).sin(),
        cos: (angle as f32).cos(),
        velocity: [rng.uniform(-60.0, 60.0) as f32, rng.uniform(-60.0, 60.0) as f32],
        spin: rng.uniform(-3.0, 3.0) as f32,
    }
}

/// A winding closed road with kerbs and a few invalid pieces, and a car somewhere on it.
fn random_scene(seed: u64) -> Owned {
    let mut rng = Seed::root(seed).rng();
    let rng = &mut rng;
    let n = 200 + rng.below(150) as usize;
    let wave = [rng.uniform(10.0, 60.0), rng.uniform(0.0, 6.0), rng.uniform(2.0, 6.0).round()];
    let point = |i: usize| {
        let angle = std::f64::consts::TAU * (i % n) as f64 / n as f64;
        let radius = 180.0 + wave[0] * (wave[2] * angle + wave[1]).sin();
        (angle, [radius * angle.cos(), radius * angle.sin()])
    };
    let corner = |i: usize, offset: f64| {
        let (angle, [x, y]) = point(i);
        [x + offset * angle.cos(), y + offset * angle.sin()]
    };
    let mut road = Vec::new();
    for i in 0..n {
        let before = (i + n - 1) % n;
        let edges = |a: f64, b: f64| [corner(i, a), corner(i, b), corner(before, b), corner(before, a)];
        road.push(RoadQuad { corners: edges(-6.67, 6.67), paint: Paint::Road { stripe: (i % 3) as u8 } });
        if rng.below(4) == 0 {
            let side = if rng.below(2) == 0 { 1.0 } else { -1.0 };
            let paint = if i % 2 == 0 { Paint::White } else { Paint::Red };
            road.push(RoadQuad { corners: edges(side * 6.67, side * 8.0), paint });
        }
    }
    let at = rng.below(n as u64) as usize;
    let (angle, [x, y]) = point(at);
    let mut near = |spread: f64| [x + rng.uniform(-spread, spread), y + rng.uniform(-spread, spread)];
    for paint in [[255, 255, 0], [0, 255, 255], [90, 0, 90], [0, 0, 1]] {
        // Corners in any order: concave, crossed, or without area.
        let first = near(30.0);
        let corners = [first, near(30.0), if paint == [0, 0, 1] { first } else { near(30.0) }, near(30.0)];
        road.push(RoadQuad { corners, paint: Paint::Rgb(paint) });
    }
    let position = near(20.0);
    let turn = angle + rng.uniform(-3.0, 3.0);
    let mut hull = body(position, turn, rng);
    if rng.below(3) == 0 {
        hull.velocity = [0.3, -0.3]; // too slow for the camera to follow
    }
    let wheels = [[-1.1, 1.6], [1.1, 1.6], [-1.1, -1.64], [1.1, -1.64]].map(|at| Wheel {
        body: body(
            hull.to_world(at.map(|a: f64| a as f32)).map(f64::from),
            turn + rng.uniform(-0.4, 0.4),
            rng,
        ),
        phase: rng.uniform(-20.0, 20.0),
        omega: rng.uniform(-30.0, 150.0),
    });
    let colored = rng.below(3) == 0;
    let mut color = || [0; 3].map(|_| rng.uniform(-20.0, 280.0));
    let colors =
        if colored { Colors { road: color(), field: color(), grass: color() } } else { Colors::default() };
    let blob = Blob { corner: [21.0, 7.6], side: 8.0, rgb: [204, 0, 0] };
    let (width, height) = (1 + rng.below(500) as usize, 1 + rng.below(500) as usize);
    Owned {
        road,
        backdrop: (rng.below(4) == 0)
            .then(|| (width, height, (0..width * height * 3).map(|_| rng.below(256) as u8).collect())),
        rest: Rest {
            t: if rng.below(3) == 0 { rng.uniform(0.02, 1.0) } else { 1.0 + rng.uniform(0.0, 19.0) },
            hull,
            wheels,
            steering_angle: rng.uniform(-0.4, 0.4) as f32,
            colors,
            side_bars: if rng.below(2) == 0 { 0.0 } else { rng.uniform(0.0, 300.0) },
            blob: (rng.below(2) == 0).then_some(blob),
        },
    }
}

/// The slow painter: window coordinates, one pixel at a time.
struct Painter<'a> {
    scene: Scene<'a>,
    angle: f64,
    zoom: f64,
    /// Corners of the road's pieces in the window, and whether they are convex.
    road: Vec<(Vec<Point>, bool)>,
    squares: Vec<Vec<Point>>,
}

impl<'a> Painter<'a> {
    fn new(scene: &Scene<'a>) -> Self {
        let [vx, vy] = scene.hull.velocity.map(f64::from);
        let angle = if vx.hypot(vy) > 0.5 { f64::atan2(vx, vy) } else { -f64::from(scene.hull.angle) };
        let zoom = 0.6 * f64::max(1.0 - scene.t, 0.0) + 16.2 * scene.t.min(1.0);
        let mut painter = Painter { scene: *scene, angle, zoom, road: Vec::new(), squares: Vec::new() };
        for quad in scene.road {
            let at = painter.windows(&quad.corners);
            let convex = convex(&at);
            painter.road.push((at, convex));
        }
        let k = 2000.0 / 6.0 / 20.0;
        for x in (-20..20).step_by(2).map(|x| k * f64::from(x)) {
            for y in (-20..20).step_by(2).map(|y| k * f64::from(y)) {
                let square = painter.windows(&[[x, y], [x + k, y], [x + k, y + k], [x, y + k]]);
                painter.squares.push(square);
            }
        }
        painter
    }

    fn windows(&self, polygon: &[Point]) -> Vec<Point> {
        polygon.iter().map(|&corner| self.window(corner)).collect()
    }

    /// World to window, in the reference's order: a translation, a rotation, a scale.
    fn window(&self, [x, y]: Point) -> Point {
        let (sin, cos) = self.angle.sin_cos();
        let [sx, sy] = self.scene.hull.position.map(f64::from);
        let zoom = self.zoom;
        let translation =
            [500.0 - (sx * zoom * cos - sy * zoom * sin), 200.0 - (sx * zoom * sin + sy * zoom * cos)];
        [
            translation[0] + (x * zoom * cos - y * zoom * sin),
            translation[1] + (x * zoom * sin + y * zoom * cos),
        ]
    }

    fn holds(&self, polygon: &[Point], p: Point) -> bool {
        holds(&self.windows(polygon), p)
    }

    fn pixel(&self, column: usize, row: usize) -> [u8; 3] {
        let p = [(column as f64 + 0.5) / 0.096, (95 - row) as f64 / 0.12 + 0.5 / 0.12];
        self.indicators(p).or_else(|| self.car(p)).or_else(|| self.road(p)).unwrap_or_else(|| self.ground(p))
    }

    fn ground(&self, p: Point) -> [u8; 3] {
        let square = |half: Point| {
            let [x, y] = half;
            [[-x, -y], [x, -y], [x, y], [-x, y]]
        };
        if let Some(backdrop) = self.scene.backdrop {
            let half = [backdrop.width as f64 / 2.0, backdrop.height as f64 / 2.0];
            return if self.holds(&square(half), p) { self.texel(&backdrop, p) } else { [0; 3] };
        }
        if !self.holds(&square([2000.0 / 6.0; 2]), p) {
            return [0; 3];
        }
        let light = self.squares.iter().any(|square| holds(square, p));
        let Colors { field, grass, .. } = self.scene.colors;
        (if light { grass } else { field }).map(|c| c.round().clamp(0.0, 255.0) as u8)
    }

    /// Bilinear interpolation over all neighbouring texels.
    fn texel(&self, backdrop: &Backdrop<'_>, p: Point) -> [u8; 3] {
        let (sin, cos) = self.angle.sin_cos();
        let d = [(p[0] - 500.0) / self.zoom, (p[1] - 200.0) / self.zoom];
        let x = f64::from(self.scene.hull.position[0]) + cos * d[0] + sin * d[1];
        let y = f64::from(self.scene.hull.position[1]) - sin * d[0] + cos * d[1];
        let (u, v) = (x + backdrop.width as f64 / 2.0 - 0.5, backdrop.height as f64 / 2.0 - y - 0.5);
        let clamp = |at: f64, n: usize| (at.max(0.0) as usize).min(n - 1);
        let mut sum = [0.0; 3];
        for (column, row) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            let (tx, ty) = (u.floor() + column, v.floor() + row);
            let weight = (1.0 - (u - tx).abs()) * (1.0 - (v - ty).abs());
            let at = (clamp(ty, backdrop.height) * backdrop.width + clamp(tx, backdrop.width)) * 3;
            (0..3).for_each(|c| sum[c] += weight * f64::from(backdrop.rgb[at + c]));
        }
        sum.map(|c| c.round() as u8)
    }

    fn road(&self, p: Point) -> Option<[u8; 3]> {
        let hit = |(at, convex): &(Vec<Point>, bool)| {
            let triangle = |corners: [usize; 3]| holds(&corners.map(|i| at[i]), p);
            if *convex { holds(at, p) } else { triangle([0, 1, 3]) || triangle([1, 2, 3]) }
        };
        let quad = &self.scene.road[self.road.iter().rposition(hit)?];
        Some(match quad.paint {
            Paint::Road { stripe } => {
                self.scene.colors.road.map(|c| (c + 2.55 * f64::from(stripe)).round().clamp(0.0, 255.0) as u8)
            }
            Paint::White => [255; 3],
            Paint::Red => [255, 0, 0],
            Paint::Rgb(own) => own,
        })
    }

    fn car(&self, p: Point) -> Option<[u8; 3]> {
        let hits = |body: &Body, polygon: &[[f32; 2]]| {
            let world: Vec<Point> = polygon.iter().map(|&v| body.to_world(v).map(f64::from)).collect();
            self.holds(&world, p)
        };
        let hull = &self.scene.hull;
        if hits(hull, &HULL[3]) {
            return Some([204, 0, 0]);
        }
        if let Some(Blob { corner: [x, y], side, rgb }) = self.scene.blob
            && hits(hull, &[[x, y], [x + side, y], [x + side, y + side], [x, y + side]])
        {
            return Some(rgb);
        }
        if HULL[..3].iter().any(|polygon| hits(hull, polygon)) {
            return Some([204, 0, 0]);
        }
        self.scene.wheels.iter().rev().find_map(|wheel| {
            if stripe(wheel).is_some_and(|stripe| hits(&wheel.body, &stripe)) {
                return Some([77; 3]);
            }
            hits(&wheel.body, &WHEEL).then_some([0; 3])
        })
    }

    fn indicators(&self, [x, y]: Point) -> Option<[u8; 3]> {
        let Scene { hull, wheels, steering_angle, side_bars, .. } = &self.scene;
        let (s, h) = (25.0, 20.0);
        let within = |v: f64, a: f64, b: f64| a.min(b) < v && v < a.max(b);
        let vertical =
            |place: f64, value: f64| within(x, place * s, (place + 1.0) * s) && within(y, h, h + h * value);
        let horizontal =
            |place: f64, value: f64| within(x, place * s, (place + value) * s) && within(y, 2.0 * h, 4.0 * h);
        let speed = f64::from(hull.velocity[0]).hypot(f64::from(hull.velocity[1]));
        let omega = |i: usize| 0.01 * wheels[i].omega;
        [
            (horizontal(30.0, -0.8 * f64::from(hull.spin)), [255, 0, 0]),
            (horizontal(20.0, -10.0 * f64::from(*steering_angle)), [0, 255, 0]),
            (vertical(10.0, omega(3)) || vertical(9.0, omega(2)), [51, 0, 255]),
            (vertical(8.0, omega(1)) || vertical(7.0, omega(0)), [0, 0, 255]),
            (vertical(5.0, 0.02 * speed), [255; 3]),
            (y < 100.0 || x < *side_bars || x > 1000.0 - side_bars, [0; 3]),
        ]
        .into_iter()
        .find_map(|(hit, color)| hit.then_some(color))
    }
}

/// Returns whether `p` is on the same side of all edges.
fn holds(polygon: &[Point], p: Point) -> bool {
    let sides = (0..polygon.len()).map(|i| {
        let (a, b) = (polygon[i], polygon[(i + 1) % polygon.len()]);
        (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
    });
    let (mut left, mut right) = (false, false);
    for side in sides {
        left |= side > 0.0;
        right |= side < 0.0;
    }
    // Edges of zero length, and edges whose line passes through `p`, give no side, so at least one edge must
    // give one.
    left != right
}

fn convex(quad: &[Point]) -> bool {
    let turns: Vec<f64> = (0..4)
        .map(|i| {
            let (a, b, c) = (quad[i], quad[(i + 1) % 4], quad[(i + 2) % 4]);
            (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
        })
        .collect();
    turns.iter().all(|&t| t > 0.0) || turns.iter().all(|&t| t < 0.0)
}

fn draw(picture: &mut ClassicPicture, owned: &Owned, track_id: u64) -> Vec<u8> {
    let mut frame = vec![7; FRAME_BYTES];
    picture.draw(&owned.scene(track_id), &mut frame);
    frame
}

/// Compares every pixel; texels may differ by one because of rounding.
#[track_caller]
fn check_scene(seed: u64, owned: &Owned, frame: &[u8]) {
    let painter = Painter::new(&owned.scene(0));
    let slack = u8::from(owned.backdrop.is_some());
    let mut wrong = Vec::new();
    for row in 0..SIDE {
        for column in 0..SIDE {
            let at = (row * SIDE + column) * 3;
            let (drawn, expected) = (&frame[at..at + 3], painter.pixel(column, row));
            if drawn.iter().zip(expected).any(|(&a, b)| a.abs_diff(b) > slack) {
                wrong.push(format!("({column}, {row}): drawn {drawn:?}, centre is {expected:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "scene {seed}: {} pixels, first {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
}

#[test]
fn every_pixel_has_the_colour_of_its_centre() {
    let mut picture = ClassicPicture::new();
    for seed in 0..30 {
        let owned = random_scene(seed);
        let frame = draw(&mut picture, &owned, seed);
        check_scene(seed, &owned, &frame);
    }
}

#[test]
fn copies_and_fresh_pictures_draw_the_same() {
    let mut picture = ClassicPicture::new();
    for seed in 100..110 {
        let owned = random_scene(seed);
        // The number of the reset stays the same: the road data itself must show that the road changed.
        let frame = draw(&mut picture, &owned, 3);
        assert_eq!(frame, draw(&mut ClassicPicture::new(), &owned, 9));
        assert_eq!(frame, draw(&mut picture.clone(), &owned, 3));
    }
}

#[test]
fn the_label_stays_in_its_corner() {
    let owned = random_scene(5);
    let plain = draw(&mut ClassicPicture::new(), &owned, 0);
    let labelled = draw(&mut ClassicPicture { label: true, ..ClassicPicture::new() }, &owned, 0);
    let changed: Vec<(usize, usize)> = (0..SIDE * SIDE)
        .filter(|i| plain[i * 3..i * 3 + 3] != labelled[i * 3..i * 3 + 3])
        .map(|i| (i % SIDE, i / SIDE))
        .collect();
    assert!(changed.len() > 10, "{changed:?}");
    assert!(changed.iter().all(|&(x, y)| (1..15).contains(&x) && (87..93).contains(&y)), "{changed:?}");
}

#[test]
fn broken_numbers_draw_something() {
    for value in [f32::NAN, f32::INFINITY, -1e30] {
        let mut owned = random_scene(7);
        owned.rest.hull.position = [value, 1.0];
        draw(&mut ClassicPicture::new(), &owned, 0);
        owned.rest.hull.velocity = [value, value];
        owned.rest.t = f64::from(value);
        owned.rest.wheels[0].omega = f64::from(value);
        owned.rest.wheels[1].phase = f64::from(value);
        draw(&mut ClassicPicture::new(), &owned, 0);
    }
}
