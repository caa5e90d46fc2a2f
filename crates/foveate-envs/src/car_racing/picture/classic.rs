//! The picture of Gym 0.15.3's `CarRacing-v0`, which the published agents of 2018 to 2020 saw.
//!
//! That version rendered a window of 1000 × 800 units through OpenGL directly into 96 × 96 pixels, without
//! anti-aliasing: each pixel has the colour at its centre. Its camera follows the velocity, not the hull, and
//! the indicators are always drawn. See [`ClassicPicture`].
//!
//! Sources: `car_racing.py` and `car_dynamics.py` of Gym 0.15.3; the fill rule is OpenGL's: a pixel belongs
//! to a polygon when its centre lies inside, and to exactly one of two polygons that share an edge.

mod canvas;
mod label;
mod road;

#[cfg(test)]
mod tests;

use self::canvas::{Canvas, Point, rgb};
use self::road::RoadIndex;
use super::{FRAME_BYTES, SIDE};
use crate::car_racing::scene::{
    Backdrop, Camera, Colors, GRASS_DIM, PLAYFIELD, Paint, Scene, WHEEL_HALF_WIDTH, Wheel,
};
use crate::car_racing::shape::{HULL, WHEEL};

/// Pixels per window unit, from left to right.
const PER_X: f64 = SIDE as f64 / 1000.0;
/// Pixels per window unit, from top to bottom.
const PER_Y: f64 = SIDE as f64 / 800.0;
/// Position of the hull, in pixels from the top left: the window's (500, 200), counted from below.
const HULL_AT: Point = [500.0 * PER_X, (800.0 - 200.0) * PER_Y];
/// Rows above the indicators, whose panel is 100 window units high.
const WORLD_ROWS: usize = 84;
/// Horizontal unit of the indicators' layout in window units: a 40th of the window.
const STEP_X: f64 = 1000.0 / 40.0;
const STEP_Y: f64 = 800.0 / 40.0;

const BLACK: u32 = 0;
const WHITE: u32 = rgb([255; 3]);
const RED: u32 = rgb([255, 0, 0]);
const HULL_RED: u32 = rgb([204, 0, 0]);
const STRIPE_GREY: u32 = rgb([77; 3]);

/// Draws the picture of Gym 0.15.3's `CarRacing-v0`.
///
/// It keeps the canvas and an index of the road between frames, and does not allocate once its buffers fit
/// the longest road.
#[derive(Debug, Clone, Default)]
pub struct ClassicPicture {
    /// Draws the score at the bottom left. Off by default: the original used a system font scaled
    /// down to about 12 × 5 pixels, which looked different on every machine; this label has its own digits,
    /// so it is an approximation. The published weights score about the same with and without it.
    pub label: bool,
    canvas: Canvas,
    road: RoadIndex,
}

impl ClassicPicture {
    /// A picture without the score label.
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws `scene` into `frame`, `[96, 96, 3]` bytes, row 0 on top.
    ///
    /// # Panics
    /// When `frame` has another length.
    pub fn draw(&mut self, scene: &Scene<'_>, frame: &mut [u8]) {
        assert_eq!(frame.len(), FRAME_BYTES, "a frame has 96 x 96 x 3 bytes");
        let view = View::of(scene);
        self.draw_ground(scene, &view);
        self.road.update(scene);
        self.road.draw(scene, &view, &mut self.canvas);
        self.draw_car(scene, &view);
        self.draw_indicators(scene);
        if self.label && scene.indicators {
            label::draw(scene.score, &mut self.canvas);
        }
        self.canvas.write(frame);
    }

    /// Draws field and grass squares, or the backdrop in their place; black outside.
    fn draw_ground(&mut self, scene: &Scene<'_>, view: &View) {
        let seen = view.world_box();
        let inside = |half: [f64; 2]| (0..2).all(|i| seen[0][i] > -half[i] && seen[1][i] < half[i]);
        let field = |half: [f64; 2]| {
            let [x, y] = half;
            [[-x, y], [x, y], [x, -y], [-x, -y]].map(|corner| view.pixel(corner))
        };
        if let Some(backdrop) = scene.backdrop {
            self.canvas.clear(BLACK);
            let half = [backdrop.width as f64 / 2.0, backdrop.height as f64 / 2.0];
            draw_backdrop(&backdrop, &field(half), view, &mut self.canvas);
            return;
        }
        let Colors { field: dark, grass, .. } = scene.colors;
        let half = [PLAYFIELD; 2];
        if inside(half) {
            self.canvas.clear(rgb(dark.map(round)));
        } else {
            self.canvas.clear(BLACK);
            self.canvas.fill(&field(half), rgb(dark.map(round)));
        }
        // Squares at even x and even y only, from -20 to 18.
        let grass = rgb(grass.map(round));
        let range = |i: usize| {
            let even = |x: f64| (x / (2.0 * GRASS_DIM)).floor().clamp(-11.0, 10.0) as i32;
            (even(seen[0][i]).max(-10)..=even(seen[1][i]).min(9)).map(|n| f64::from(2 * n))
        };
        for x in range(0) {
            for y in range(1) {
                let (left, low) = (GRASS_DIM * x, GRASS_DIM * y);
                let (right, high) = (GRASS_DIM * x + GRASS_DIM, GRASS_DIM * y + GRASS_DIM);
                let square = [[right, low], [left, low], [left, high], [right, high]];
                self.canvas.fill(&square.map(|corner| view.pixel(corner)), grass);
            }
        }
    }

    fn draw_car(&mut self, scene: &Scene<'_>, view: &View) {
        for wheel in &scene.wheels {
            let tyre = [0, 1, 2, 3].map(|i| view.pixel_f32(wheel.body.to_world(WHEEL[i])));
            self.canvas.fill(&tyre, BLACK);
            if let Some(stripe) = stripe(wheel) {
                let stripe = stripe.map(|corner| view.pixel_f32(wheel.body.to_world(corner)));
                self.canvas.fill(&stripe, STRIPE_GREY);
            }
        }
        let mut points = [[0.0; 2]; 8];
        for (i, polygon) in HULL.iter().enumerate() {
            if i == 3
                && let Some(blob) = scene.blob
            {
                let ([x, y], side) = (blob.corner, blob.side);
                let square = [[x, y], [x + side, y], [x + side, y + side], [x, y + side]];
                let square = square.map(|corner| view.pixel_f32(scene.hull.to_world(corner)));
                self.canvas.fill(&square, rgb(blob.rgb));
            }
            for (point, &vertex) in points.iter_mut().zip(polygon) {
                *point = view.pixel_f32(scene.hull.to_world(vertex));
            }
            self.canvas.fill(&points[..polygon.len()], HULL_RED);
        }
    }

    /// Draws the panel, the side bars and the seven indicators.
    fn draw_indicators(&mut self, scene: &Scene<'_>) {
        let canvas = &mut self.canvas;
        canvas.fill_rows(WORLD_ROWS..SIDE, BLACK);
        if scene.side_bars > 0.0 {
            let width = scene.side_bars;
            window_rectangle(canvas, [0.0, 5.0 * STEP_Y], [width, 800.0], BLACK);
            window_rectangle(canvas, [1000.0 - width, 5.0 * STEP_Y], [1000.0, 800.0], BLACK);
        }
        if !scene.indicators {
            return;
        }
        let mut vertical = |place: f64, value: f64, color: u32| {
            let corner = [place * STEP_X, STEP_Y + STEP_Y * value];
            window_rectangle(canvas, corner, [(place + 1.0) * STEP_X, STEP_Y], color);
        };
        let [vx, vy] = scene.hull.velocity.map(f64::from);
        vertical(5.0, 0.02 * (vx * vx + vy * vy).sqrt(), WHITE);
        let [front, rear] = [rgb([0, 0, 255]), rgb([51, 0, 255])];
        for ((place, wheel), color) in
            [7.0, 8.0, 9.0, 10.0].iter().zip(&scene.wheels).zip([front, front, rear, rear])
        {
            vertical(*place, 0.01 * wheel.omega, color);
        }
        let mut horizontal = |place: f64, value: f64, color: u32| {
            let corner = [place * STEP_X, 4.0 * STEP_Y];
            window_rectangle(canvas, corner, [(place + value) * STEP_X, 2.0 * STEP_Y], color);
        };
        horizontal(20.0, -10.0 * f64::from(scene.steering_angle), rgb([0, 255, 0]));
        horizontal(30.0, -0.8 * f64::from(scene.hull.spin), RED);
    }
}

/// The mapping from world to picture: `pixel = HULL_AT + matrix * (world - hull)`, y down.
struct View {
    hull: Point,
    /// Rows of the matrix.
    matrix: [Point; 2],
    /// Pixels per world unit in x and y, before the rotation.
    scale: Point,
}

impl View {
    fn of(scene: &Scene<'_>) -> Self {
        let [vx, vy] = scene.hull.velocity.map(f64::from);
        let angle =
            if (vx * vx + vy * vy).sqrt() > 0.5 { vx.atan2(vy) } else { -f64::from(scene.hull.angle) };
        let (sin, cos) = angle.sin_cos();
        let zoom = Camera::zoom_at(scene.t);
        let scale = [zoom * PER_X, zoom * PER_Y];
        View {
            hull: scene.hull.position.map(f64::from),
            matrix: [[scale[0] * cos, -scale[0] * sin], [-scale[1] * sin, -scale[1] * cos]],
            scale,
        }
    }

    /// World to pixels from the top left.
    fn pixel(&self, world: Point) -> Point {
        let [dx, dy] = [world[0] - self.hull[0], world[1] - self.hull[1]];
        let [x, y] = self.matrix;
        [x[0] * dx + x[1] * dy + HULL_AT[0], y[0] * dx + y[1] * dy + HULL_AT[1]]
    }

    /// The same for a point of a body, in f32.
    fn pixel_f32(&self, world: [f32; 2]) -> Point {
        self.pixel(world.map(f64::from))
    }

    /// Pixels from the top left to the world.
    fn world(&self, pixel: Point) -> Point {
        let [u, v] = [(pixel[0] - HULL_AT[0]) / self.scale[0], (pixel[1] - HULL_AT[1]) / self.scale[1]];
        let (cos, sin) = (self.matrix[0][0] / self.scale[0], -self.matrix[0][1] / self.scale[0]);
        [self.hull[0] + cos * u - sin * v, self.hull[1] - sin * u - cos * v]
    }

    /// Lower and upper corner of a box in the world that contains everything visible.
    fn world_box(&self) -> [Point; 2] {
        let [right, low] = [SIDE as f64, WORLD_ROWS as f64];
        let corners = [[0.0, 0.0], [right, 0.0], [0.0, low], [right, low]].map(|corner| self.world(corner));
        let over = |pick: fn(f64, f64) -> f64| {
            [0, 1].map(|i| corners.iter().map(|corner| corner[i]).reduce(pick).unwrap_or_default())
        };
        [over(f64::min), over(f64::max)]
    }
}

/// The colour of a piece of road.
fn paint(paint: Paint, colors: &Colors) -> u32 {
    match paint {
        // The published colour of stripe i is the road's colour plus 0.01 i.
        Paint::Road { stripe } => rgb(colors.road.map(|c| round(c + 2.55 * f64::from(stripe)))),
        Paint::White => WHITE,
        Paint::Red => RED,
        Paint::Rgb(own) => rgb(own),
    }
}

/// OpenGL's conversion of a colour: clamped and rounded.
fn round(channel: f64) -> u8 {
    (channel.clamp(0.0, 255.0) + 0.5) as u8
}

/// The grey stripe that shows the rotation of a wheel, in wheel coordinates; `None` while it is on the lower
/// side.
fn stripe(wheel: &Wheel) -> Option<[[f32; 2]; 4]> {
    let ends = [wheel.phase, wheel.phase + 1.2].map(|angle| (angle.sin() > 0.0, angle.cos()));
    if ends[0].0 && ends[1].0 {
        return None;
    }
    // An end on the lower side is drawn at the rim.
    let sign = |c: f64| if c == 0.0 { 0.0 } else { c.signum() };
    let [y1, y2] = ends.map(|(below, cos)| (27.0 * if below { sign(cos) } else { cos } * 0.02) as f32);
    let x = WHEEL_HALF_WIDTH as f32;
    Some([[-x, y1], [x, y1], [x, y2], [-x, y2]])
}

/// A rectangle between two opposite corners in window units, y up.
fn window_rectangle(canvas: &mut Canvas, a: Point, b: Point, color: u32) {
    let pixel = |[x, y]: Point| [x * PER_X, (800.0 - y) * PER_Y];
    canvas.fill_rectangle(pixel(a), pixel(b), color);
}

/// Draws the image that replaces the ground, between the corners `outline`.
///
/// Texels are interpolated like OpenGL's linear filter, which the published code used through pyglet's
/// defaults.
fn draw_backdrop(backdrop: &Backdrop<'_>, outline: &[Point; 4], view: &View, canvas: &mut Canvas) {
    let (width, height) = (backdrop.width, backdrop.height);
    if width == 0 || height == 0 || backdrop.rgb.len() < width * height * 3 {
        return; // empty backdrop
    }
    let origin = view.world([0.5, 0.5]);
    let [right, down] = [view.world([1.5, 0.5]), view.world([0.5, 1.5])];
    let per_column = [right[0] - origin[0], right[1] - origin[1]];
    let per_row = [down[0] - origin[0], down[1] - origin[1]];
    canvas.shade(outline, |column, row| {
        let (column, row) = (column as f64, row as f64);
        let x = origin[0] + column * per_column[0] + row * per_row[0];
        let y = origin[1] + column * per_column[1] + row * per_row[1];
        // In texels, relative to the centre of the first one.
        let u = (x + width as f64 / 2.0 - 0.5).clamp(0.0, (width - 1) as f64);
        let v = (height as f64 / 2.0 - y - 0.5).clamp(0.0, (height - 1) as f64);
        let (left, top) = (u as usize, v as usize);
        let (fu, fv) = ((u - left as f64) as f32, (v - top as f64) as f32);
        let (next, below) = ((left + 1).min(width - 1), (top + 1).min(height - 1));
        let texel = |x: usize, y: usize, c: usize| f32::from(backdrop.rgb[(y * width + x) * 3 + c]);
        rgb([0, 1, 2].map(|c| {
            let upper = texel(left, top, c) + fu * (texel(next, top, c) - texel(left, top, c));
            let lower = texel(left, below, c) + fu * (texel(next, below, c) - texel(left, below, c));
            (upper + fv * (lower - upper) + 0.5) as u8
        }))
    });
}
