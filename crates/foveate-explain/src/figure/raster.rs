//! Sheets as pictures of pixels.

use foveate_core::ImageBuf;
use foveate_film::Face;

use super::{Anchor, Drawing, Ink, Shape};

/// Pixels per point of the sheet.
const SCALE: f64 = 2.0;
/// Height of a capital, in heights of a letter's line.
const CAP: f64 = 0.70;

/// What colour an ink has.
type Colors = fn(Ink) -> [u8; 3];

/// `drawing` at two pixels a point, on white paper.
pub fn raster(drawing: &Drawing) -> ImageBuf {
    painted(drawing, Ink::light)
}

/// `drawing` at two pixels a point, on a dark ground, as in films.
pub fn raster_dark(drawing: &Drawing) -> ImageBuf {
    painted(drawing, Ink::dark)
}

fn painted(drawing: &Drawing, colors: Colors) -> ImageBuf {
    let size = |points: f64| (points * SCALE).round().clamp(1.0, 8192.0) as usize;
    let mut image = ImageBuf::black(size(drawing.width), size(drawing.height));
    image.rgb_mut().as_chunks_mut::<3>().0.fill(colors(Ink::Paper));
    let mut faces = Faces::default();
    for shape in &drawing.shapes {
        draw(&mut image, shape, colors, &mut faces);
    }
    image
}

/// The sizes of letters of a drawing.
#[derive(Default)]
struct Faces(Vec<(f64, Face)>);

impl Faces {
    /// Letters with capitals of `cap` pixels. To make a face takes longer than to write with it.
    fn of(&mut self, cap: f64) -> &Face {
        let at = self.0.iter().position(|(known, _)| *known == cap).unwrap_or_else(|| {
            self.0.push((cap, Face::new(cap as f32, (cap * 0.145) as f32)));
            self.0.len() - 1
        });
        &self.0[at].1
    }
}

fn draw(image: &mut ImageBuf, shape: &Shape, colors: Colors, faces: &mut Faces) {
    let large = |(x, y): (f64, f64)| (x * SCALE, y * SCALE);
    match shape {
        Shape::Rect { place: [x, y, width, height], ink, opacity } => {
            let (left, top) = large((*x, *y));
            let (right, bottom) = large((x + width, y + height));
            cover(image, [left, top, right, bottom], colors(*ink), *opacity, |px, py| {
                overlap(px, left, right) * overlap(py, top, bottom)
            });
        }
        Shape::Line { points, ink, width, opacity } => {
            let points: Vec<_> = points.iter().map(|&p| large(p)).collect();
            line(image, &points, width * SCALE / 2.0, colors(*ink), *opacity);
        }
        Shape::Area { points, ink, opacity } => {
            let points: Vec<_> = points.iter().map(|&p| large(p)).collect();
            cover(image, bounds(&points), colors(*ink), *opacity, |px, py| inside(&points, px, py));
        }
        Shape::Dot { at, radius, ink } => {
            let ((x, y), r) = (large(*at), radius * SCALE);
            cover(
                image,
                [x - r - 1.0, y - r - 1.0, x + r + 1.0, y + r + 1.0],
                colors(*ink),
                1.0,
                |px, py| (r + 0.5 - (px + 0.5 - x).hypot(py + 0.5 - y)).clamp(0.0, 1.0),
            );
        }
        Shape::Text { at, size, anchor, ink, text, .. } => {
            let cap = size * CAP * SCALE;
            let face = faces.of(cap);
            let text = plain(text);
            let (x, y) = large(*at);
            let shift = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => f64::from(face.width(&text)) / 2.0,
                Anchor::End => f64::from(face.width(&text)),
            };
            face.write(image, (x - shift) as f32, (y - cap) as f32, &text, colors(*ink));
        }
        Shape::Picture { place: [x, y, width, height], image: picture } => {
            let (left, top) = large((*x, *y));
            let (right, bottom) = large((x + width, y + height));
            let [left, top, right, bottom] = [left, top, right, bottom].map(|v| v.round().max(0.0) as usize);
            for py in top..bottom.min(image.height()) {
                for px in left..right.min(image.width()) {
                    let from_x = (px - left) * picture.width() / (right - left);
                    let from_y = (py - top) * picture.height() / (bottom - top);
                    let at = (py * image.width() + px) * 3;
                    image.rgb_mut()[at..at + 3].copy_from_slice(&picture.as_image().pixel(from_x, from_y));
                }
            }
        }
    }
}

/// A polyline with round joints. Each pixel counts once, wherever the line crosses itself.
fn line(image: &mut ImageBuf, points: &[(f64, f64)], half: f64, colour: [u8; 3], opacity: f64) {
    let (width, height) = (image.width(), image.height());
    let mut coverage = vec![0.0_f32; width * height];
    for pair in points.windows(2) {
        let [left, top, right, bottom] = bounds(pair);
        let reach = half + 1.0;
        for y in range(top - reach, bottom + reach, height) {
            for x in range(left - reach, right + reach, width) {
                let near = half + 0.5 - distance(pair[0], pair[1], x as f64 + 0.5, y as f64 + 0.5);
                let at = &mut coverage[y * width + x];
                *at = at.max(near.clamp(0.0, 1.0) as f32);
            }
        }
    }
    for (pixel, share) in image.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(coverage) {
        if share > 0.0 {
            mix(pixel, colour, f64::from(share) * opacity);
        }
    }
}

fn cover(
    image: &mut ImageBuf,
    place: [f64; 4],
    colour: [u8; 3],
    opacity: f64,
    share: impl Fn(f64, f64) -> f64,
) {
    let (width, height) = (image.width(), image.height());
    let [left, top, right, bottom] = place;
    for y in range(top, bottom, height) {
        for x in range(left, right, width) {
            let part = share(x as f64, y as f64) * opacity;
            if part > 0.0 {
                let at = (y * width + x) * 3;
                mix(&mut image.rgb_mut()[at..at + 3], colour, part);
            }
        }
    }
}

fn range(from: f64, to: f64, limit: usize) -> std::ops::Range<usize> {
    let end = (to.ceil().max(0.0) as usize).min(limit);
    (from.floor().max(0.0) as usize).min(end)..end
}

fn mix(pixel: &mut [u8], colour: [u8; 3], part: f64) {
    for (byte, top) in pixel.iter_mut().zip(colour) {
        *byte = (f64::from(*byte) * (1.0 - part) + f64::from(top) * part).round() as u8;
    }
}

/// How much of the pixel that starts at `at` lies between two lines.
fn overlap(at: f64, from: f64, to: f64) -> f64 {
    ((at + 1.0).min(to) - at.max(from)).clamp(0.0, 1.0)
}

fn bounds(points: &[(f64, f64)]) -> [f64; 4] {
    points.iter().fold([f64::MAX, f64::MAX, f64::MIN, f64::MIN], |[l, t, r, b], &(x, y)| {
        [l.min(x), t.min(y), r.max(x), b.max(y)]
    })
}

fn distance((ax, ay): (f64, f64), (bx, by): (f64, f64), x: f64, y: f64) -> f64 {
    let (dx, dy) = (bx - ax, by - ay);
    let squared = dx * dx + dy * dy;
    let along = if squared > 0.0 { (((x - ax) * dx + (y - ay) * dy) / squared).clamp(0.0, 1.0) } else { 0.0 };
    (x - ax - along * dx).hypot(y - ay - along * dy)
}

/// How much of a pixel lies inside of a polygon, from sixteen points.
fn inside(points: &[(f64, f64)], px: f64, py: f64) -> f64 {
    let mut hits = 0;
    for i in 0..16 {
        let (x, y) = (px + (f64::from(i % 4) + 0.5) / 4.0, py + (f64::from(i / 4) + 0.5) / 4.0);
        let mut within = false;
        for (k, &(ax, ay)) in points.iter().enumerate() {
            let (bx, by) = points[(k + 1) % points.len()];
            if (ay > y) != (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax {
                within = !within;
            }
        }
        hits += i32::from(within);
    }
    f64::from(hits) / 16.0
}

/// The text in the characters that the typeface has.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '−' | '–' => out.push('-'),
            '\u{a0}' => out.push(' '),
            'σ' => out.push_str("sigma"),
            '…' => out.push_str("..."),
            '·' | '×' => out.push('x'),
            '±' => out.push_str("+/-"),
            '→' => out.push_str("->"),
            'Φ' => out.push_str("Phi"),
            '’' | '‘' => out.push('\''),
            '“' | '”' => out.push('"'),
            '≥' => out.push_str(">="),
            '≤' => out.push_str("<="),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_where_they_belong() {
        let mut sheet = Drawing::new(40.0, 30.0);
        sheet.rect([2.0, 3.0, 4.0, 5.0], Ink::Attention, 1.0);
        sheet.line(vec![(10.0, 5.0), (30.0, 5.0)], Ink::Control, 2.0, 1.0);
        sheet.area(vec![(10.0, 10.0), (20.0, 10.0), (20.0, 20.0), (10.0, 20.0)], Ink::Other, 1.0);
        sheet.dot((30.0, 20.0), 3.0, Ink::Loss);
        sheet.picture([34.0, 10.0, 4.0, 4.0], ImageBuf::from_rgb(1, 1, vec![1, 2, 3]).expect("one pixel"));
        let image = raster(&sheet);
        let dark = raster_dark(&sheet);
        assert_eq!(dark.as_image().pixel(8, 8), Ink::Attention.dark());
        assert_eq!(dark.as_image().pixel(3, 8), Ink::Paper.dark());
        assert_eq!((image.width(), image.height()), (80, 60));
        for (x, y, expect) in [
            (8, 8, Ink::Attention.light()),
            (3, 8, [255; 3]),
            (40, 10, Ink::Control.light()),
            (40, 14, [255; 3]),
            (30, 30, Ink::Other.light()),
            (60, 40, Ink::Loss.light()),
            (68, 40, [255; 3]),
            (70, 24, [1, 2, 3]),
        ] {
            assert_eq!(image.as_image().pixel(x, y), expect, "({x}, {y})");
        }
    }

    #[test]
    fn text_is_drawn_and_nothing_is_lost_off_the_sheet() {
        let mut sheet = Drawing::new(100.0, 20.0);
        sheet.text((50.0, 15.0), 12.0, Anchor::Middle, Ink::Text, "−1 … ±2");
        sheet.rect([-50.0, -50.0, 20.0, 20.0], Ink::Loss, 1.0);
        sheet.line(vec![(-10.0, -10.0), (500.0, 500.0)], Ink::Loss, 1.0, 1.0);
        assert!(raster(&sheet).rgb().iter().any(|&byte| byte < 100));
        assert_eq!(plain("−1 … ±2 Φ"), "-1 ... +/-2 Phi");
    }
}
