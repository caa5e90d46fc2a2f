//! A built-in typeface, available at any size.

mod glyphs;

use foveate_core::ImageBuf;

use glyphs::{FIRST, GLYPHS, OTHERS};

/// Units of the drawing grid from the baseline to the top of a capital.
const CAP_UNITS: f32 = 20.0;
/// Units above the capitals and below the baseline that a glyph may use.
const ABOVE_UNITS: f32 = 4.0;
const BELOW_UNITS: f32 = 8.0;
/// Space between two glyphs, in units.
const SPACING_UNITS: f32 = 5.6;

/// A typeface at one size and weight: every glyph as a coverage mask, ready to be drawn on a picture.
#[derive(Debug, Clone)]
pub struct Face {
    masks: Vec<Mask>,
    cap_px: f32,
    rows: usize,
    above_px: usize,
    tracking_px: f32,
}

#[derive(Debug, Clone)]
struct Mask {
    /// `[rows, columns]`: 255 where the pen covers the pixel.
    coverage: Vec<u8>,
    columns: usize,
    advance_px: f32,
}

impl Face {
    /// A face whose capitals are `cap_px` pixels high, drawn with a round pen `pen_px` pixels wide.
    ///
    /// Sizes are clamped to 3 to 400 pixels, pens to between half a pixel and half a capital.
    pub fn new(cap_px: f32, pen_px: f32) -> Self {
        let cap_px = cap_px.clamp(3.0, 400.0);
        let pen_px = pen_px.clamp(0.5, cap_px / 2.0);
        let unit = cap_px / CAP_UNITS;
        let above_px = (ABOVE_UNITS * unit).ceil() as usize + 1;
        let below_px = (BELOW_UNITS * unit).ceil() as usize + 1;
        let rows = above_px + cap_px.ceil() as usize + below_px;
        let masks = GLYPHS
            .iter()
            .chain(OTHERS.iter().map(|(_, glyph)| glyph))
            .map(|glyph| {
                let advance_px = (glyph.width + SPACING_UNITS) * unit;
                let columns = advance_px.ceil() as usize + 1;
                let left = SPACING_UNITS / 2.0;
                let segments: Vec<Segment> =
                    segments(glyph.strokes).iter().map(|s| s.placed(left, unit, above_px as f32)).collect();
                Mask { coverage: cover(&segments, columns, rows, pen_px), columns, advance_px }
            })
            .collect();
        Face { masks, cap_px, rows, above_px, tracking_px: 0.0 }
    }

    /// The same face with `px` more pixels between letters.
    #[must_use]
    pub fn tracked(mut self, px: f32) -> Self {
        self.tracking_px = px;
        self
    }

    /// Height of a capital in pixels.
    pub fn cap_px(&self) -> f32 {
        self.cap_px
    }

    /// Width of `text` in pixels.
    pub fn width(&self, text: &str) -> f32 {
        text.chars().map(|c| self.mask(c).advance_px + self.tracking_px).sum()
    }

    /// Draws `text` in `color` onto `image`: its first letter starts at `x`, the top of its capitals is at
    /// `y`.
    ///
    /// Parts outside the picture are clipped; characters missing in the face become `?`.
    pub fn write(&self, image: &mut ImageBuf, x: f32, y: f32, text: &str, color: [u8; 3]) {
        let mut pen = x;
        for c in text.chars() {
            let mask = self.mask(c);
            self.lay(image, mask, pen.round() as i64, y.round() as i64 - self.above_px as i64, color);
            pen += mask.advance_px + self.tracking_px;
        }
    }

    /// [`Face::write`], with `x` as the end of the text.
    pub fn write_right(&self, image: &mut ImageBuf, x: f32, y: f32, text: &str, color: [u8; 3]) {
        self.write(image, x - self.width(text), y, text, color);
    }

    fn mask(&self, c: char) -> &Mask {
        let other = || OTHERS.iter().position(|(other, _)| *other == c).map(|at| GLYPHS.len() + at);
        let index = match u8::try_from(c) {
            Ok(byte) if c.is_ascii() => byte.checked_sub(FIRST).map(usize::from),
            _ => other(),
        };
        let index = index.filter(|&index| c.is_ascii() == (index < GLYPHS.len())).unwrap_or(usize::MAX);
        self.masks.get(index).unwrap_or(&self.masks[usize::from(b'?' - FIRST)])
    }

    fn lay(&self, image: &mut ImageBuf, mask: &Mask, x: i64, y: i64, color: [u8; 3]) {
        let (width, height) = (image.width() as i64, image.height() as i64);
        let rgb = image.rgb_mut();
        for row in 0..self.rows as i64 {
            if !(0..height).contains(&(y + row)) {
                continue;
            }
            for column in 0..mask.columns as i64 {
                let alpha = mask.coverage[row as usize * mask.columns + column as usize];
                if alpha != 0 && (0..width).contains(&(x + column)) {
                    let at = ((y + row) * width + x + column) as usize * 3;
                    crate::canvas::blend(&mut rgb[at..at + 3], color, alpha);
                }
            }
        }
    }
}

/// A straight segment of a stroke.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    from: (f32, f32),
    to: (f32, f32),
}

impl Segment {
    fn placed(self, left: f32, unit: f32, top_px: f32) -> Self {
        let place = |(x, y): (f32, f32)| ((x + left) * unit, y * unit + top_px);
        Segment { from: place(self.from), to: place(self.to) }
    }

    fn distance(self, x: f32, y: f32) -> f32 {
        let (dx, dy) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        let (px, py) = (x - self.from.0, y - self.from.1);
        let length2 = dx * dx + dy * dy;
        let along = if length2 > 0.0 { ((px * dx + py * dy) / length2).clamp(0.0, 1.0) } else { 0.0 };
        (px - along * dx).hypot(py - along * dy)
    }
}

/// Coverage of every pixel by a round pen that follows `segments`.
fn cover(segments: &[Segment], columns: usize, rows: usize, pen_px: f32) -> Vec<u8> {
    let mut coverage = vec![0; columns * rows];
    for row in 0..rows {
        for column in 0..columns {
            let (x, y) = (column as f32 + 0.5, row as f32 + 0.5);
            let distance = segments.iter().map(|s| s.distance(x, y)).fold(f32::INFINITY, f32::min);
            let inside = (pen_px / 2.0 - distance + 0.5).clamp(0.0, 1.0);
            coverage[row * columns + column] = (inside * 255.0).round() as u8;
        }
    }
    coverage
}

/// Segments per curve; enough for capitals of 400 px.
const CURVE_PIECES: u16 = 10;

/// Parses strokes in the notation of [`glyphs`].
fn segments(strokes: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut tokens = strokes.split_whitespace().peekable();
    let mut command = "M";
    let mut at = (0.0_f32, 0.0_f32);
    while let Some(&token) = tokens.peek() {
        if matches!(token, "M" | "L" | "Q") {
            command = token;
            tokens.next();
            continue;
        }
        let mut point = || {
            let mut number =
                || tokens.next().and_then(|t| t.parse().ok()).expect("the glyphs are well-formed");
            (number(), number())
        };
        match command {
            "M" => at = point(),
            "L" => {
                let to = point();
                segments.push(Segment { from: at, to });
                at = to;
            }
            _ => {
                let (bend, to, start) = (point(), point(), at);
                for piece in 1..=CURVE_PIECES {
                    let t = f32::from(piece) / f32::from(CURVE_PIECES);
                    let mix = |a: f32, b: f32, c: f32| {
                        (1.0 - t) * ((1.0 - t) * a + t * b) + t * ((1.0 - t) * b + t * c)
                    };
                    let next = (mix(start.0, bend.0, to.0), mix(start.1, bend.1, to.1));
                    segments.push(Segment { from: at, to: next });
                    at = next;
                }
            }
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_its_own_drawing_within_bounds() {
        let mut seen = std::collections::BTreeMap::new();
        let ascii = GLYPHS.iter().enumerate().map(|(i, glyph)| (char::from(FIRST + i as u8), glyph));
        for (c, glyph) in ascii.chain(OTHERS.iter().map(|(c, glyph)| (*c, glyph))) {
            let drawn = segments(glyph.strokes);
            assert_eq!(drawn.is_empty(), c == ' ', "{c:?}");
            for (x, y) in drawn.iter().flat_map(|s| [s.from, s.to]) {
                assert!((0.0..=glyph.width).contains(&x), "{c:?} leaves its width at x = {x}");
                assert!(
                    (-ABOVE_UNITS..=CAP_UNITS + BELOW_UNITS).contains(&y),
                    "{c:?} leaves its height at y = {y}"
                );
            }
            assert_eq!(seen.insert(glyph.strokes, c), None, "{c:?} looks like another character");
        }
        let widths: Vec<f32> = (b'0'..=b'9').map(|d| GLYPHS[usize::from(d - FIRST)].width).collect();
        assert!(widths.iter().all(|&w| w == widths[0]), "digits are equally wide: {widths:?}");
    }

    #[test]
    fn a_bar_is_drawn_where_it_belongs() {
        let face = Face::new(20.0, 2.0);
        let mut image = ImageBuf::black(40, 40);
        face.write(&mut image, 10.0, 8.0, "I", [200, 100, 50]);
        // Left side bearing 2.8 px: the pen runs from y = 8 to y = 28 around x = 12.8.
        for (x, y, lit) in [
            (12, 18, true),
            (13, 18, true),
            (10, 18, false),
            (16, 18, false),
            (12, 4, false),
            (12, 32, false),
        ] {
            let pixel = image.as_image().pixel(x, y);
            assert_eq!(pixel[0] > 100, lit, "({x}, {y}) is {pixel:?}");
        }
    }

    #[test]
    fn writing_beyond_the_edges_is_cut_off() {
        let face = Face::new(12.0, 1.5);
        let mut image = ImageBuf::black(8, 8);
        face.write(&mut image, -30.0, -9.0, "cut off \u{2192} here", [255; 3]);
        face.write_right(&mut image, 400.0, 300.0, "far away", [255; 3]);
    }

    #[test]
    fn what_is_missing_becomes_a_question_mark() {
        let face = Face::new(12.0, 1.5);
        let draw = |text| {
            let mut image = ImageBuf::black(16, 20);
            face.write(&mut image, 0.0, 4.0, text, [255; 3]);
            image
        };
        assert_eq!(draw("\u{e9}"), draw("?"));
        assert_eq!(draw("\n"), draw("?"));
        assert_ne!(draw("a"), draw("?"));
    }
}
