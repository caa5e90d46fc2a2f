//! The plain algorithm: every pixel of the canvas, in order. The tests compare the optimised one with it.

use super::place::{CANVAS_H, CANVAS_W, Placed, Shape};
use super::shrink::{Axis, part};
use super::{ExactPicture, hud, outline, place, spans};
use crate::car_racing::picture::{FRAME_BYTES, SIDE};
use crate::car_racing::scene::{Backdrop, Blob, Body, Colors, Paint, RoadQuad, Scene, Wheel};

/// `[800][1000]` pixels, row 0 on top.
struct Canvas(Vec<[u8; 3]>);

impl Canvas {
    /// The pixel at `x`, `y` rows from the top, if it exists.
    fn at(&mut self, x: i32, y: i32) -> Option<&mut [u8; 3]> {
        let inside = (0..CANVAS_W).contains(&x) && (0..CANVAS_H).contains(&y);
        inside.then(|| &mut self.0[(y * CANVAS_W + x) as usize])
    }

    /// Draws a polygon; `row` maps its rows to the canvas'.
    fn paint(&mut self, shape: &Shape, row: impl Fn(i32) -> i32) {
        let corners = shape.corners();
        if shape.outlined {
            let mut before = corners[corners.len() - 1];
            for &corner in corners {
                if let Some(edge) = outline::Edge::cut(before, corner) {
                    edge.dots(|x, y, alpha| {
                        if let Some(pixel) = self.at(x, row(y)) {
                            *pixel = std::array::from_fn(|c| blend(pixel[c], shape.color[c], alpha));
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

/// Blends a channel with a colour of some alpha.
fn blend(under: u8, over: u8, alpha: u32) -> u8 {
    if alpha == 255 {
        over
    } else {
        ((u32::from(under) * (256 - alpha) + u32::from(over) * alpha) >> 8) as u8
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

/// The plain algorithm's frame of a scene, without the score.
fn plain(scene: &Scene<'_>) -> Vec<u8> {
    let mut placed = Placed::default();
    placed.place(scene);
    let mut frame = vec![0; FRAME_BYTES];
    draw(scene, &placed, &mut frame);
    frame
}

/// Random numbers from 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / f64::from(1 << 24)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
}

fn body(random: &mut Random, near: [f32; 2], spread: f64) -> Body {
    let angle = random.between(-10.0, 10.0) as f32;
    Body {
        position: near.map(|p| p + random.between(-spread, spread) as f32),
        angle,
        sin: angle.sin(),
        cos: angle.cos(),
        velocity: [random.between(-60.0, 60.0) as f32, random.between(-60.0, 60.0) as f32],
        spin: random.between(-9.0, 9.0) as f32,
    }
}

/// Quads of any shape around a point, including crossed ones; some are axis-aligned rectangles.
fn quads(random: &mut Random, near: [f32; 2], n: usize) -> Vec<RoadQuad> {
    let near = near.map(f64::from);
    let any = |random: &mut Random| {
        let centre = near.map(|p| p + random.between(-40.0, 40.0));
        let size = random.between(0.01, 12.0);
        let mut corners = [[0.0; 2]; 4].map(|_| centre.map(|c| c + random.between(-size, size)));
        if random.next() < 0.2 {
            let [[x0, y0], _, [x1, y1], _] = corners;
            corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
        }
        let paint = match (random.next() * 6.0) as u8 {
            0 => Paint::White,
            1 => Paint::Red,
            2 => Paint::Rgb([0; 3].map(|_: u8| (random.next() * 256.0) as u8)),
            n => Paint::Road { stripe: n - 3 },
        };
        RoadQuad { corners, paint }
    };
    (0..n).map(|_| any(random)).collect()
}

#[test]
fn cells_show_what_the_whole_canvas_shows() {
    let mut random = Random(7);
    let mut picture = ExactPicture::new();
    let texels: Vec<u8> = (0..90 * 70 * 3).map(|_| (random.next() * 256.0) as u8).collect();
    let backdrop = Backdrop { width: 90, height: 70, rgb: &texels };
    for round in 0..160 {
        let wide = if round % 4 == 0 { 360.0 } else { 30.0 };
        let hull = Body { ..body(&mut random, [0.0; 2], wide) };
        // The reference's first steps have angles without rounding.
        let hull = if round % 5 == 0 { Body { angle: 0.0, sin: 0.0, cos: 1.0, ..hull } } else { hull };
        let road = quads(&mut random, hull.position, 60);
        let mut wheel = || Wheel {
            body: body(&mut random, hull.position, 3.0),
            phase: random.between(-9.0, 9.0),
            omega: random.between(-450.0, 450.0),
        };
        let wheels = [wheel(), wheel(), wheel(), wheel()];
        let scene = Scene {
            road: &road,
            track_id: 1,
            t: if round % 3 == 0 { random.next() } else { 2.0 },
            hull,
            wheels,
            steering_angle: random.between(-0.5, 0.5) as f32,
            score: f64::NAN,
            colors: Colors { road: [0.0; 3].map(|_| random.between(0.0, 210.0)), ..Colors::default() },
            backdrop: (round % 40 == 1).then_some(backdrop),
            side_bars: if round % 7 == 0 { 75.0 } else { 0.0 },
            indicators: true,
            blob: (round % 3 == 1).then_some(Blob { corner: [0.42, 0.15], side: 0.16, rgb: [255, 0, 9] }),
        };
        let mut frame = vec![0; FRAME_BYTES];
        picture.draw(&scene, &mut frame);
        let plain = plain(&scene);
        let differing: Vec<usize> = (0..FRAME_BYTES).filter(|&i| frame[i] != plain[i]).collect();
        assert!(
            differing.is_empty(),
            "round {round}: {} bytes differ, first {:?}",
            differing.len(),
            &differing[..1]
        );
    }
}
