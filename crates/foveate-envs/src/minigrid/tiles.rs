//! Pictures of cells, those of the package byte for byte.

use std::f64::consts::FRAC_PI_2;

use super::cell::{Cell, Color, DoorState, Kind};

/// Points in a side of a pixel.
const FINE: usize = 3;

/// Draws a cell into `size` × `size` pixels, `[size, size, 3]`: what it holds, an agent that looks in `agent`'s direction on
/// top of it, and lighter if `lit`.
pub fn tile(cell: Cell, agent: Option<usize>, lit: bool, size: usize) -> Vec<u8> {
    let side = size * FINE;
    let mut canvas = Canvas { side, rgb: vec![0; side * side * 3] };
    let grey = [100.0; 3];
    canvas.fill(grey, rectangle(0.0, 0.031, 0.0, 1.0));
    canvas.fill(grey, rectangle(0.0, 1.0, 0.0, 0.031));
    draw(&mut canvas, cell);
    if let Some(direction) = agent {
        let angle = -FRAC_PI_2 * direction as f64;
        let (sin, cos) = (angle.sin(), angle.cos());
        let inside = triangle([0.12, 0.19], [0.87, 0.50], [0.12, 0.81]);
        canvas.fill([255.0, 0.0, 0.0], |x, y| {
            let (x, y) = (x - 0.5, y - 0.5);
            inside(0.5 + x * cos - y * sin, 0.5 + y * cos + x * sin)
        });
    }
    if lit {
        for byte in &mut canvas.rgb {
            *byte = (f64::from(*byte) + 0.3 * f64::from(255 - *byte)).clamp(0.0, 255.0) as u8;
        }
    }
    canvas.shrunk(size)
}

fn draw(canvas: &mut Canvas, cell: Cell) {
    let color = Color::ALL[usize::from(cell.codes[1])].rgb().map(f64::from);
    let black = [0.0; 3];
    if cell.is(Kind::Goal) || cell.is(Kind::Wall) {
        canvas.fill(color, rectangle(0.0, 1.0, 0.0, 1.0));
    } else if cell.is(Kind::Floor) {
        canvas.fill(color.map(|c| c / 2.0), rectangle(0.031, 1.0, 0.031, 1.0));
    } else if cell.is(Kind::Lava) {
        canvas.fill([255.0, 128.0, 0.0], rectangle(0.0, 1.0, 0.0, 1.0));
        for i in 0..3 {
            let low = 0.3 + 0.2 * f64::from(i);
            let high = 0.4 + 0.2 * f64::from(i);
            for pair in [[0.1, low], [0.3, high], [0.5, low], [0.7, high], [0.9, low]].windows(2) {
                canvas.fill(black, line(pair[0], pair[1], 0.03));
            }
        }
    } else if cell.is(Kind::Door) {
        match cell.codes[2] {
            open if open == DoorState::Open as u8 => {
                canvas.fill(color, rectangle(0.88, 1.00, 0.00, 1.00));
                canvas.fill(black, rectangle(0.92, 0.96, 0.04, 0.96));
            }
            locked if locked == DoorState::Locked as u8 => {
                canvas.fill(color, rectangle(0.00, 1.00, 0.00, 1.00));
                canvas.fill(color.map(|c| 0.45 * c), rectangle(0.06, 0.94, 0.06, 0.94));
                canvas.fill(color, rectangle(0.52, 0.75, 0.50, 0.56));
            }
            _ => {
                canvas.fill(color, rectangle(0.00, 1.00, 0.00, 1.00));
                canvas.fill(black, rectangle(0.04, 0.96, 0.04, 0.96));
                canvas.fill(color, rectangle(0.08, 0.92, 0.08, 0.92));
                canvas.fill(black, rectangle(0.12, 0.88, 0.12, 0.88));
                canvas.fill(color, circle(0.75, 0.50, 0.08));
            }
        }
    } else if cell.is(Kind::Key) {
        canvas.fill(color, rectangle(0.50, 0.63, 0.31, 0.88));
        canvas.fill(color, rectangle(0.38, 0.50, 0.59, 0.66));
        canvas.fill(color, rectangle(0.38, 0.50, 0.81, 0.88));
        canvas.fill(color, circle(0.56, 0.28, 0.190));
        canvas.fill(black, circle(0.56, 0.28, 0.064));
    } else if cell.is(Kind::Ball) {
        canvas.fill(color, circle(0.5, 0.5, 0.31));
    } else if cell.is(Kind::Box) {
        canvas.fill(color, rectangle(0.12, 0.88, 0.12, 0.88));
        canvas.fill(black, rectangle(0.18, 0.82, 0.18, 0.82));
        canvas.fill(color, rectangle(0.16, 0.84, 0.47, 0.53));
    }
}

/// A tile with some points in every pixel.
struct Canvas {
    side: usize,
    rgb: Vec<u8>,
}

impl Canvas {
    /// Gives all points inside a shape this colour.
    fn fill(&mut self, color: [f64; 3], inside: impl Fn(f64, f64) -> bool) {
        let color = color.map(|c| c as u8);
        let share = |i: usize| (i as f64 + 0.5) / self.side as f64;
        for y in 0..self.side {
            for x in 0..self.side {
                if inside(share(x), share(y)) {
                    self.rgb[(y * self.side + x) * 3..][..3].copy_from_slice(&color);
                }
            }
        }
    }

    /// The mean of the points of every pixel, rounded down.
    fn shrunk(&self, size: usize) -> Vec<u8> {
        let mut out = vec![0; size * size * 3];
        for (at, byte) in out.iter_mut().enumerate() {
            let (x, y, c) = (at / 3 % size, at / 3 / size, at % 3);
            // First the columns, then the rows, as two means in double precision.
            let row = |dy: usize| -> f64 {
                let point = |dx: usize| self.rgb[((y * FINE + dy) * self.side + x * FINE + dx) * 3 + c];
                (0..FINE).map(|dx| f64::from(point(dx))).sum::<f64>() / FINE as f64
            };
            *byte = ((0..FINE).map(row).sum::<f64>() / FINE as f64) as u8;
        }
        out
    }
}

fn rectangle(left: f64, right: f64, top: f64, bottom: f64) -> impl Fn(f64, f64) -> bool {
    move |x, y| x >= left && x <= right && y >= top && y <= bottom
}

fn circle(cx: f64, cy: f64, r: f64) -> impl Fn(f64, f64) -> bool {
    move |x, y| (x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r
}

/// Corners in single precision, as in the package.
fn triangle(a: [f32; 2], b: [f32; 2], c: [f32; 2]) -> impl Fn(f64, f64) -> bool {
    let minus = |p: [f32; 2], q: [f32; 2]| [p[0] - q[0], p[1] - q[1]];
    let dot = |p: [f32; 2], q: [f32; 2]| p[0] * q[0] + p[1] * q[1];
    let (v0, v1) = (minus(c, a), minus(b, a));
    let (d00, d01, d11) = (dot(v0, v0), dot(v0, v1), dot(v1, v1));
    let scale = 1.0 / (d00 * d11 - d01 * d01);
    let wide = |p: [f32; 2]| p.map(f64::from);
    let (v0, v1, a) = (wide(v0), wide(v1), wide(a));
    let [d00, d01, d11, scale] = [d00, d01, d11, scale].map(f64::from);
    move |x, y| {
        let v2 = [x - a[0], y - a[1]];
        let d02 = v0[0] * v2[0] + v0[1] * v2[1];
        let d12 = v1[0] * v2[0] + v1[1] * v2[1];
        let u = (d11 * d02 - d01 * d12) * scale;
        let v = (d00 * d12 - d01 * d02) * scale;
        u >= 0.0 && v >= 0.0 && u + v < 1.0
    }
}

/// A line with round ends of radius `r`; its ends in single precision, as in the package.
fn line(from: [f64; 2], to: [f64; 2], r: f64) -> impl Fn(f64, f64) -> bool {
    let [p0, p1] = [from, to].map(|p| p.map(|x| x as f32));
    let along = [p1[0] - p0[0], p1[1] - p0[1]];
    let length = (along[0] * along[0] + along[1] * along[1]).sqrt();
    let along = along.map(|x| f64::from(x / length));
    let (p0, length) = (p0.map(f64::from), f64::from(length));
    let bounds = [0, 1].map(|i| [from[i].min(to[i]) - r, from[i].max(to[i]) + r]);
    move |x, y| {
        if x < bounds[0][0] || x > bounds[0][1] || y < bounds[1][0] || y > bounds[1][1] {
            return false;
        }
        let t = ((x - p0[0]) * along[0] + (y - p0[1]) * along[1]).clamp(0.0, length);
        let (dx, dy) = (x - (p0[0] + t * along[0]), y - (p0[1] + t * along[1]));
        (dx * dx + dy * dy).sqrt() <= r
    }
}
