//! Projects all polygons of the world to whole canvas pixels.

use std::f64::consts::{FRAC_PI_2, TAU};

use super::palette::pixel;
use crate::car_racing::scene::{
    Backdrop, Body, Camera, Colors, GRASS_DIM, PLAYFIELD, Paint, Scene, WHEEL_HALF_WIDTH,
};
use crate::car_racing::shape;

/// Width of the reference's canvas.
pub(super) const CANVAS_W: i32 = 1000;
/// Its height.
pub(super) const CANVAS_H: i32 = 800;
/// Rows above the black bar; canvas row `y` of the world shows up in row `CANVAS_H - 1 - y`.
pub(super) const WORLD_H: i32 = 700;

const WHEEL_COLOR: [u8; 3] = [0, 0, 0];
const WHEEL_WHITE: [u8; 3] = [77, 77, 77];
const HULL_COLOR: [u8; 3] = [204, 0, 0]; // int(0.8 * 255)
const KERB_WHITE: [u8; 3] = [255, 255, 255];
const KERB_RED: [u8; 3] = [255, 0, 0];

/// Maximum number of corners of a polygon in the picture.
pub(super) const MAX_CORNERS: usize = 8;

/// A polygon in canvas pixels, y up from the bottom row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    corners: [[i32; 2]; MAX_CORNERS],
    n: usize,
    /// Its colour.
    pub(super) color: [u8; 3],
    /// True if it is drawn like ground and road (outline, then fill) or like the car (fill with another
    /// rule).
    pub(super) outlined: bool,
}

impl Shape {
    /// The corners, each in the order of the reference.
    pub(super) fn corners(&self) -> &[[i32; 2]] {
        &self.corners[..self.n]
    }

    /// The same polygon with y counted from the opposite end of the canvas.
    pub(super) fn turned_over(mut self) -> Shape {
        self.corners[..self.n].iter_mut().for_each(|c| c[1] = CANVAS_H - 1 - c[1]);
        self
    }

    /// A polygon with its corners truncated to whole pixels, toward zero.
    pub(super) fn cut(corners: &[[f64; 2]], color: [u8; 3], outlined: bool) -> Shape {
        let mut shape = Shape { corners: [[0; 2]; MAX_CORNERS], n: corners.len(), color, outlined };
        for (cut, &[x, y]) in shape.corners.iter_mut().zip(corners) {
            *cut = [x as i32, y as i32];
        }
        shape
    }
}

/// The camera of one frame.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct View {
    turn: Turn,
    zoom: f64,
    shift: [f64; 2],
}

/// A rotation with the arithmetic of pygame's vectors.
#[derive(Debug, Clone, Copy, Default)]
enum Turn {
    /// An exact multiple of a right angle.
    Right(u8),
    /// By an angle: its sine and cosine.
    By(f64, f64),
    #[default]
    Unset,
}

impl Turn {
    fn new(angle: f64) -> Turn {
        const EPSILON: f64 = 1e-6;
        let mut angle = angle % TAU;
        if angle < 0.0 {
            angle += TAU;
        }
        if (angle + EPSILON) % FRAC_PI_2 < 2.0 * EPSILON {
            Turn::Right(((angle + EPSILON) / FRAC_PI_2) as u8 % 4)
        } else {
            Turn::By(angle.sin(), angle.cos())
        }
    }

    fn apply(self, [x, y]: [f64; 2]) -> [f64; 2] {
        match self {
            Turn::Right(1) => [-y, x],
            Turn::Right(2) => [-x, -y],
            Turn::Right(3) => [y, -x],
            Turn::Right(_) | Turn::Unset => [x, y],
            Turn::By(sin, cos) => [cos * x - sin * y, sin * x + cos * y],
        }
    }
}

impl View {
    /// The camera that follows the hull.
    pub(super) fn new(scene: &Scene<'_>) -> View {
        let zoom = Camera::zoom_at(scene.t);
        let turn = Turn::new(-f64::from(scene.hull.angle));
        let [x, y] = scene.hull.position.map(f64::from);
        let [dx, dy] = turn.apply([-x * zoom, -y * zoom]);
        View { turn, zoom, shift: [f64::from(CANVAS_W) / 2.0 + dx, f64::from(CANVAS_H) / 4.0 + dy] }
    }

    /// Maps a point of the world to the canvas.
    pub(super) fn project(&self, point: [f64; 2]) -> [f64; 2] {
        let [x, y] = self.turn.apply(point);
        [x * self.zoom + self.shift[0], y * self.zoom + self.shift[1]]
    }

    /// Maps a point of the canvas to the world.
    #[cfg(test)]
    pub(super) fn unproject(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let (x, y) = ((x - self.shift[0]) / self.zoom, (y - self.shift[1]) / self.zoom);
        match self.turn {
            Turn::Right(1) => [y, -x],
            Turn::Right(2) => [-x, -y],
            Turn::Right(3) => [-y, x],
            Turn::Right(_) | Turn::Unset => [x, y],
            Turn::By(sin, cos) => [cos * x + sin * y, cos * y - sin * x],
        }
    }
}

/// The backdrop under the pixels of the canvas: [`texel`] for all of them, with the common divisions and
/// products of a row or a column computed once. The sums are the same, in the same order.
#[derive(Debug)]
pub(super) struct Texels<'a> {
    backdrop: &'a Backdrop<'a>,
    view: &'a View,
    /// Contribution of a pixel's column to its world position.
    columns: [[f64; 2]; CANVAS_W as usize],
}

impl<'a> Texels<'a> {
    pub(super) fn new(backdrop: &'a Backdrop<'a>, view: &'a View) -> Self {
        let columns = std::array::from_fn(|x| {
            let x = (x as f64 + 0.5 - view.shift[0]) / view.zoom;
            match view.turn {
                Turn::Right(1) => [0.0, -x],
                Turn::Right(2) => [-x, 0.0],
                Turn::Right(3) => [0.0, x],
                Turn::Right(_) | Turn::Unset => [x, 0.0],
                Turn::By(sin, cos) => [cos * x, -(sin * x)],
            }
        });
        Texels { backdrop, view, columns }
    }

    /// The colours of row `y`, counted up from the bottom; black outside the backdrop.
    pub(super) fn row(&self, y: i32, to: &mut [u32]) {
        let &Texels { backdrop, view, columns } = &self;
        let y = (f64::from(y) + 0.5 - view.shift[1]) / view.zoom;
        let [along, across] = match view.turn {
            Turn::Right(1) => [y, 0.0],
            Turn::Right(2) => [0.0, -y],
            Turn::Right(3) => [-y, 0.0],
            Turn::Right(_) | Turn::Unset => [0.0, y],
            Turn::By(sin, cos) => [sin * y, cos * y],
        };
        let (width, height) = (backdrop.width as f64, backdrop.height as f64);
        let (half_width, half_height) = (width / 2.0, height / 2.0);
        for (to, [x, y]) in to.iter_mut().zip(columns) {
            let (right, down) = (x + along + half_width, half_height - (across + y));
            // The values are not negative, so truncation is the floor; the ceiling minus one differs from it
            // only for integers. A side of a backdrop fits i32, whose conversions are fast.
            *to = if right >= 0.0 && right < width && down > 0.0 && down <= height {
                let whole = down as i32;
                let row = whole - i32::from(f64::from(whole) == down);
                let at = (row as usize * backdrop.width + right as i32 as usize) * 3;
                backdrop.rgb.get(at..at + 3).map_or(pixel([0; 3]), |rgb| pixel([rgb[0], rgb[1], rgb[2]]))
            } else {
                pixel([0; 3])
            };
        }
    }
}

/// The backdrop's texel under a canvas pixel (y up from the bottom row); black outside the backdrop.
#[cfg(test)]
pub(super) fn texel(backdrop: &Backdrop<'_>, view: &View, [x, y]: [i32; 2]) -> [u8; 3] {
    let [x, y] = view.unproject([f64::from(x) + 0.5, f64::from(y) + 0.5]);
    let column = (x + backdrop.width as f64 / 2.0).floor();
    let row = (backdrop.height as f64 / 2.0 - y).ceil() - 1.0;
    if column < 0.0 || row < 0.0 || column >= backdrop.width as f64 || row >= backdrop.height as f64 {
        return [0; 3];
    }
    let at = (row as usize * backdrop.width + column as usize) * 3;
    backdrop.rgb.get(at..at + 3).map_or([0; 3], |rgb| [rgb[0], rgb[1], rgb[2]])
}

/// All polygons of a scene that lie on the canvas, in drawing order.
#[derive(Debug, Clone, Default)]
pub(super) struct Placed {
    /// The polygons.
    pub(super) shapes: Vec<Shape>,
    /// The camera that placed them.
    pub(super) view: View,
}

impl Placed {
    /// Places a scene's polygons; those outside the visible rows are omitted.
    pub(super) fn place(&mut self, scene: &Scene<'_>) {
        self.shapes.clear();
        self.view = View::new(scene);
        let [x, y] = scene.hull.position.map(f64::from);
        // The distance from the hull at (500, 200) to the farthest visible corner of the canvas is 781
        // pixels.
        let sight = 785.0 / self.view.zoom;
        if scene.backdrop.is_none() {
            let b = PLAYFIELD;
            self.ground(&[[b, b], [b, -b], [-b, -b], [-b, b]], whole(scene.colors.field));
            let color = whole(scene.colors.grass);
            for i in (-20..20).step_by(2) {
                let left = GRASS_DIM * f64::from(i);
                let right = left + GRASS_DIM;
                if left > x + sight || right < x - sight {
                    continue;
                }
                for j in (-20..20).step_by(2) {
                    let low = GRASS_DIM * f64::from(j);
                    let high = low + GRASS_DIM;
                    if low <= y + sight && high >= y - sight {
                        self.ground(&[[right, low], [left, low], [left, high], [right, high]], color);
                    }
                }
            }
        }
        for quad in scene.road {
            let [[x0, y0], [x1, y1], [x2, y2], [x3, y3]] = quad.corners;
            let reach = sight
                + (x1 - x0).abs().max((x2 - x0).abs()).max((x3 - x0).abs())
                + (y1 - y0).abs().max((y2 - y0).abs()).max((y3 - y0).abs());
            let (dx, dy) = (x0 - x, y0 - y);
            if dx * dx + dy * dy <= reach * reach {
                self.ground(&quad.corners, paint(quad.paint, &scene.colors));
            }
        }
        self.place_car(scene);
        let bar = scene.side_bars.round().clamp(0.0, f64::from(CANVAS_W));
        if bar >= 1.0 {
            for (left, right) in [(0.0, bar - 1.0), (f64::from(CANVAS_W) - bar, f64::from(CANVAS_W) - 1.0)] {
                let high = f64::from(CANVAS_H - 1);
                self.push(Shape::cut(
                    &[[left, 0.0], [right, 0.0], [right, high], [left, high]],
                    [0; 3],
                    false,
                ));
            }
        }
    }

    fn place_car(&mut self, scene: &Scene<'_>) {
        for wheel in &scene.wheels {
            self.part(&wheel.body, &shape::WHEEL, WHEEL_COLOR);
            if let Some(ends) = stripe(wheel.phase) {
                let (w, [near, far]) = (WHEEL_HALF_WIDTH as f32, [ends[0] as f32, ends[1] as f32]);
                self.part(&wheel.body, &[[-w, near], [w, near], [w, far], [-w, far]], WHEEL_WHITE);
            }
        }
        for (i, part) in shape::HULL.iter().enumerate() {
            if let (3, Some(blob)) = (i, scene.blob) {
                let ([x, y], s) = (blob.corner, blob.side);
                self.part(&scene.hull, &[[x, y], [x + s, y], [x + s, y + s], [x, y + s]], blob.rgb);
            }
            self.part(&scene.hull, part, HULL_COLOR);
        }
    }

    /// Adds a polygon of the ground.
    fn ground(&mut self, corners: &[[f64; 2]; 4], color: [u8; 3]) {
        let mut placed = [[0.0; 2]; 4];
        for (placed, &corner) in placed.iter_mut().zip(corners) {
            *placed = self.view.project(corner);
        }
        self.push(Shape::cut(&placed, color, true));
    }

    /// Adds a polygon fixed to a body.
    fn part(&mut self, body: &Body, corners: &[[f32; 2]], color: [u8; 3]) {
        let mut placed = [[0.0; 2]; MAX_CORNERS];
        for (placed, &corner) in placed.iter_mut().zip(corners) {
            let [x, y] = body.to_world(corner);
            *placed = self.view.project([f64::from(x), f64::from(y)]);
        }
        self.push(Shape::cut(&placed[..corners.len()], color, false));
    }

    /// Adds a polygon if it may touch the visible rows.
    fn push(&mut self, shape: Shape) {
        let ([mut x0, mut y0], [mut x1, mut y1]) = ([i32::MAX; 2], [i32::MIN; 2]);
        for &[x, y] in shape.corners() {
            (x0, x1) = (x0.min(x), x1.max(x));
            (y0, y1) = (y0.min(y), y1.max(y));
        }
        // An outline extends one pixel beyond its corners.
        if x1 >= -1 && x0 <= CANVAS_W && y1 >= CANVAS_H - WORLD_H - 1 && y0 <= CANVAS_H {
            self.shapes.push(shape);
        }
    }
}

/// The white stripe of a wheel at a phase: its start and end along the wheel; `None` when it is not visible.
fn stripe(phase: f64) -> Option<[f64; 2]> {
    let (a1, a2) = (phase, phase + 1.2);
    let (s1, s2) = (a1.sin(), a2.sin());
    if s1 > 0.0 && s2 > 0.0 {
        return None;
    }
    let end = |sin: f64, cos: f64| if sin > 0.0 { sign(cos) } else { cos };
    // 27 * c * 0.02, multiplied in the reference's order.
    Some([27.0 * end(s1, a1.cos()) * 0.02, 27.0 * end(s2, a2.cos()) * 0.02])
}

/// numpy's sign: 0 for 0.
fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

fn paint(paint: Paint, colors: &Colors) -> [u8; 3] {
    match paint {
        Paint::Road { stripe } => whole(colors.road.map(|c| c + 0.01 * f64::from(stripe) * 255.0)),
        Paint::White => KERB_WHITE,
        Paint::Red => KERB_RED,
        Paint::Rgb(rgb) => rgb,
    }
}

fn whole(color: [f64; 3]) -> [u8; 3] {
    color.map(|c| c as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_texels_are_those_of_single_pixels() {
        let texels: Vec<u8> = (0..90 * 70 * 3).map(|i| (i * 37 % 251) as u8).collect();
        let backdrop = Backdrop { width: 90, height: 70, rgb: &texels };
        let turns = [0, 1, 2, 3].map(Turn::Right).into_iter();
        for turn in turns.chain([Turn::Unset, Turn::By(0.6, 0.8), Turn::By(-0.6, -0.8), Turn::new(2.1)]) {
            let mut seen = 0;
            // With the integer zoom of the second view, pixel centres fall on the edges of texels.
            for (zoom, shift) in [(16.2, [497.3, 201.9]), (4.0, [500.5, 200.5]), (1.3, [33.0, 590.0])] {
                let view = View { turn, zoom, shift };
                let rows = Texels::new(&backdrop, &view);
                let mut row = vec![7; CANVAS_W as usize];
                for y in [0, 1, 2, 77, 200, 399, 400, CANVAS_H - 1] {
                    rows.row(y, &mut row);
                    for (x, &found) in (0..).zip(&row) {
                        assert_eq!(found, pixel(texel(&backdrop, &view, [x, y])), "{view:?} {x} {y}");
                        seen += usize::from(found != pixel([0; 3]));
                    }
                }
            }
            assert!(seen > 1000, "{turn:?} shows {seen} texels");
        }
    }
}
