//! Ground and road rendered for people.

use super::lens::Lens;
use crate::canvas::{Canvas, Ink, Point};
use crate::car_racing::scene::{Backdrop, GRASS_DIM, PLAYFIELD, Paint, Scene};

/// The colour beyond the field.
const NOTHING: [u8; 3] = [16, 18, 22];
const KERB_WHITE: Ink = Ink::new([232, 232, 226]);
const KERB_RED: Ink = Ink::new([204, 46, 44]);
/// The painted line along the edge of the road.
const LINE: Ink = Ink::new([236, 236, 228]).at(0.75);

/// Draws field and grass, or the backdrop.
pub(super) fn ground(scene: &Scene<'_>, lens: &Lens, canvas: &mut Canvas<'_>) {
    if let Some(backdrop) = &scene.backdrop {
        canvas.paint_all(|at| texel(backdrop, lens.world(at)));
        return;
    }
    canvas.paint_all(|_| NOTHING);
    let square = |x: f64, y: f64, side: f64| {
        [[x, y], [x + side, y], [x + side, y + side], [x, y + side]].map(|corner| lens.pixel(corner))
    };
    canvas.fill(&square(-PLAYFIELD, -PLAYFIELD, 2.0 * PLAYFIELD), soft(scene.colors.field, 0.84));
    let grass = soft(scene.colors.grass, 0.84);
    for i in -10..10 {
        for j in -10..10 {
            let (x, y) = (GRASS_DIM * f64::from(2 * i), GRASS_DIM * f64::from(2 * j));
            canvas.fill(&square(x, y, GRASS_DIM), grass);
        }
    }
}

/// Draws road and kerbs.
pub(super) fn road(scene: &Scene<'_>, lens: &Lens, canvas: &mut Canvas<'_>) {
    let stripes = [0.0, 1.0, 2.0].map(|i| soft(scene.colors.road.map(|c| c + 2.55 * i), 0.66));
    for quad in scene.road {
        let [a, b, c, d] = quad.corners.map(|corner| lens.pixel(corner));
        // Every piece extends one pixel below the previous one, so that no seam is visible.
        let (c, d) = (beyond(b, c, 1.0), beyond(a, d, 1.0));
        match quad.paint {
            Paint::Road { stripe } => {
                canvas.fill(&[a, b, c, d], stripes[usize::from(stripe.min(2))]);
                for (from, to) in [(0.022, 0.04), (0.96, 0.978)] {
                    let line =
                        [between(a, b, from), between(a, b, to), between(d, c, to), between(d, c, from)];
                    canvas.fill(&line, LINE);
                }
            }
            // Kerbs lie on the edge of the road.
            Paint::White => canvas.fill(&[beyond(b, a, 0.8), b, c, beyond(c, d, 0.8)], KERB_WHITE),
            Paint::Red => canvas.fill(&[beyond(b, a, 0.8), b, c, beyond(c, d, 0.8)], KERB_RED),
            Paint::Rgb(rgb) => canvas.fill(&[a, b, c, d], soft(rgb.map(f64::from), 0.66)),
        }
    }
}

/// A softer colour: half the saturation and `light` times the brightness.
fn soft(rgb: [f64; 3], light: f64) -> Ink {
    let grey = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2];
    Ink::new(rgb.map(|c| ((0.62 * c + 0.38 * grey) * light).clamp(0.0, 255.0) as u8))
}

/// The point `by` pixels beyond `to` on the line from `from`.
fn beyond(from: Point, to: Point, by: f32) -> Point {
    let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
    let scale = by / dx.hypot(dy).max(1e-3);
    [to[0] + dx * scale, to[1] + dy * scale]
}

fn between(a: Point, b: Point, share: f32) -> Point {
    [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share]
}

/// The backdrop at a point of the world, interpolated between texels; black outside the backdrop.
fn texel(backdrop: &Backdrop<'_>, [x, y]: [f64; 2]) -> [u8; 3] {
    let (width, height) = (backdrop.width as f64, backdrop.height as f64);
    let (u, v) = (x + 0.5 * width, 0.5 * height - y);
    if u < 0.0 || v < 0.0 || u >= width || v >= height {
        return NOTHING;
    }
    let (u, v) = ((u - 0.5).clamp(0.0, width - 1.0), (v - 0.5).clamp(0.0, height - 1.0));
    let at = |column: usize, row: usize, k: usize| {
        let (column, row) = (column.min(backdrop.width - 1), row.min(backdrop.height - 1));
        f64::from(backdrop.rgb[(row * backdrop.width + column) * 3 + k])
    };
    let (column, row) = (u as usize, v as usize);
    let (fx, fy) = (u - column as f64, v - row as f64);
    [0, 1, 2].map(|k| {
        let upper = at(column, row, k) * (1.0 - fx) + at(column + 1, row, k) * fx;
        let lower = at(column, row + 1, k) * (1.0 - fx) + at(column + 1, row + 1, k) * fx;
        (upper * (1.0 - fy) + lower * fy + 0.5) as u8
    })
}
