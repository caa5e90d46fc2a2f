//! The plain way: every pixel of the canvas, in order.

use super::place::{CANVAS_H, CANVAS_W, Placed, Shape};
use super::shrink::{Axis, part};
use super::{hud, outline, place, spans};
use crate::car_racing::picture::SIDE;
use crate::car_racing::scene::Scene;

/// `[800][1000]` pixels, row 0 on top.
struct Canvas(Vec<[u8; 3]>);

impl Canvas {
    /// The pixel at `x`, `y` rows from the top, if there is one.
    fn at(&mut self, x: i32, y: i32) -> Option<&mut [u8; 3]> {
        let inside = (0..CANVAS_W).contains(&x) && (0..CANVAS_H).contains(&y);
        inside.then(|| &mut self.0[(y * CANVAS_W + x) as usize])
    }

    /// Paints a polygon; `row` maps its rows to the canvas'.
    fn paint(&mut self, shape: &Shape, row: impl Fn(i32) -> i32) {
        let corners = shape.corners();
        if shape.outlined {
            let mut before = corners[corners.len() - 1];
            for &corner in corners {
                if let Some(edge) = outline::Edge::cut(before, corner) {
                    edge.dots(|x, y, alpha| {
                        if let Some(pixel) = self.at(x, row(y)) {
                            *pixel = std::array::from_fn(|c| outline::blend(pixel[c], shape.color[c], alpha));
                        }
                    });
                }
                before = corner;
            }
        }
        let (low, high) = spans::rows(shape);
        for y in low.max(0)..=high.min(CANVAS_H - 1) {
            for &[a, b] in spans::fill(shape, y).as_slice() {
                for x in a.max(0)..=b.min(CANVAS_W - 1) {
                    if let Some(pixel) = self.at(x, row(y)) {
                        *pixel = shape.color;
                    }
                }
            }
        }
    }
}

/// Draws a placed scene into `frame`.
pub(super) fn draw(scene: &Scene<'_>, placed: &Placed, frame: &mut [u8]) {
    let mut canvas = Canvas(vec![[0; 3]; (CANVAS_W * CANVAS_H) as usize]);
    if let Some(backdrop) = &scene.backdrop {
        for (i, pixel) in canvas.0.iter_mut().enumerate() {
            let (x, y) = (i as i32 % CANVAS_W, CANVAS_H - 1 - i as i32 / CANVAS_W);
            *pixel = place::texel(backdrop, &placed.view, [x, y]);
        }
    }
    for shape in &placed.shapes {
        canvas.paint(shape, |y| CANVAS_H - 1 - y);
    }
    for bar in hud::bars(scene) {
        canvas.paint(&bar, |y| y);
    }
    shrink(&canvas, frame);
}

fn shrink(canvas: &Canvas, frame: &mut [u8]) {
    let narrow: Vec<[[u8; 3]; SIDE]> =
        canvas.0.chunks_exact(CANVAS_W as usize).map(|row| line(&Axis::X, |i| row[i])).collect();
    for x in 0..SIDE {
        for (y, pixel) in line(&Axis::Y, |i| narrow[i][x]).into_iter().enumerate() {
            frame[(y * SIDE + x) * 3..][..3].copy_from_slice(&pixel);
        }
    }
}

fn line(axis: &Axis, pixel: impl Fn(usize) -> [u8; 3]) -> [[u8; 3]; SIDE] {
    axis.cells.map(|cell| {
        std::array::from_fn(|c| {
            let mut sum = part(pixel(cell.end)[c], cell.tail);
            if cell.head > 0 {
                sum += part(pixel(cell.start - 1)[c], cell.head);
            }
            sum += (cell.start..cell.end).map(|i| u32::from(pixel(i)[c])).sum::<u32>();
            ((sum * axis.recip) >> 16) as u8
        })
    })
}
