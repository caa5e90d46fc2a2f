//! Shapes on a sheet, in the order in which they are drawn.

use foveate_core::ImageBuf;

/// What a shape is drawn with. The sheet says *what* it means; light and dark themes say how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ink {
    /// Text and whatever is as strong.
    Text,
    /// Text of less weight: axis labels.
    Muted,
    /// Grid lines and the ground of bars.
    Grid,
    /// What the figure is about.
    Attention,
    /// What it is compared with.
    Control,
    /// A second thing that it is compared with.
    Other,
    /// Losses.
    Loss,
    /// A fifth colour, for action dimensions.
    Extra,
    /// The ground that everything is drawn on.
    Paper,
    /// One of many series that mean nothing in particular; colours repeat after [`Ink::LINES`].
    Line(u8),
}

/// Colours of [`Ink::Line`] on white paper: told apart by colour-blind people next to each other.
const LINE_COLOURS: [[u8; 3]; 8] = [
    [0x35, 0x66, 0xb0],
    [0xd0, 0x54, 0x1b],
    [0x2b, 0x8a, 0x5a],
    [0x8a, 0x3f, 0xa0],
    [0xb0, 0x8a, 0x00],
    [0xc2, 0x30, 0x7a],
    [0x3a, 0xa6, 0xd6],
    [0x1d, 0x22, 0x2b],
];

impl Ink {
    /// The inks of data, in the order in which series take them.
    pub const SERIES: [Ink; 5] = [Ink::Control, Ink::Other, Ink::Loss, Ink::Extra, Ink::Attention];
    /// All inks that a style sheet gives a colour; those of lines keep theirs.
    pub const ALL: [Ink; 9] = [
        Ink::Text,
        Ink::Muted,
        Ink::Grid,
        Ink::Attention,
        Ink::Control,
        Ink::Other,
        Ink::Loss,
        Ink::Extra,
        Ink::Paper,
    ];
    /// Different colours of [`Ink::Line`].
    pub const LINES: usize = LINE_COLOURS.len();

    /// The ink of series number `i`.
    pub const fn line(i: usize) -> Ink {
        Ink::Line((i % Ink::LINES) as u8)
    }

    /// Its name in style sheets.
    pub const fn name(self) -> &'static str {
        match self {
            Ink::Text => "text",
            Ink::Muted => "muted",
            Ink::Grid => "grid",
            Ink::Attention => "gaze",
            Ink::Control => "control",
            Ink::Other => "other",
            Ink::Loss => "loss",
            Ink::Extra => "extra",
            Ink::Paper => "paper",
            Ink::Line(_) => "line",
        }
    }

    /// Its colour on white paper.
    pub const fn light(self) -> [u8; 3] {
        match self {
            Ink::Text => [0x1d, 0x22, 0x2b],
            Ink::Muted => [0x65, 0x6d, 0x7a],
            Ink::Grid => [0xe3, 0xe6, 0xeb],
            Ink::Attention => [0xd9, 0x77, 0x06],
            Ink::Control => [0x2f, 0x6f, 0xc4],
            Ink::Other => [0x1f, 0x91, 0x63],
            Ink::Loss => [0xcc, 0x3d, 0x47],
            Ink::Extra => [0x8a, 0x4f, 0xc0],
            Ink::Paper => [0xff; 3],
            Ink::Line(i) => LINE_COLOURS[i as usize % LINE_COLOURS.len()],
        }
    }

    /// Its colour on a dark ground.
    pub const fn dark(self) -> [u8; 3] {
        match self {
            Ink::Text => [0xe6, 0xea, 0xf0],
            Ink::Muted => [0x93, 0x9d, 0xac],
            Ink::Grid => [0x2c, 0x34, 0x40],
            Ink::Attention => [0xff, 0xb6, 0x4d],
            Ink::Control => [0x6c, 0xb6, 0xff],
            Ink::Other => [0x60, 0xcb, 0x8c],
            Ink::Loss => [0xf0, 0x71, 0x78],
            Ink::Extra => [0xc7, 0x92, 0xea],
            Ink::Paper => [0x15, 0x1a, 0x21],
            Ink::Line(_) => self.light(),
        }
    }
}

/// Which point of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// A shape; lengths in points of the sheet, y downwards.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A filled rectangle.
    Rect {
        /// Left, top, width, height.
        place: [f64; 4],
        /// Its colour.
        ink: Ink,
        /// 0.0 is invisible, 1.0 solid.
        opacity: f64,
    },
    /// A line through points.
    Line {
        /// At least two.
        points: Vec<(f64, f64)>,
        /// Its colour.
        ink: Ink,
        /// Its width.
        width: f64,
        /// 0.0 is invisible, 1.0 solid.
        opacity: f64,
    },
    /// A filled polygon.
    Area {
        /// Its corners.
        points: Vec<(f64, f64)>,
        /// Its colour.
        ink: Ink,
        /// 0.0 is invisible, 1.0 solid.
        opacity: f64,
    },
    /// A filled circle.
    Dot {
        /// Its middle.
        at: (f64, f64),
        /// Its radius.
        radius: f64,
        /// Its colour.
        ink: Ink,
    },
    /// A line of text.
    Text {
        /// Where the anchor is; y is the baseline.
        at: (f64, f64),
        /// Height of the letters.
        size: f64,
        /// Which point is at `at`.
        anchor: Anchor,
        /// Its colour.
        ink: Ink,
        /// The text.
        text: String,
        /// It names a place on an axis and is no finding.
        tick: bool,
    },
    /// A picture, each of its pixels a sharp rectangle.
    Picture {
        /// Left, top, width, height.
        place: [f64; 4],
        /// Its pixels.
        image: ImageBuf,
    },
}

/// A sheet with shapes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// What is on it, the first at the bottom.
    pub shapes: Vec<Shape>,
}

impl Drawing {
    /// An empty sheet.
    pub fn new(width: f64, height: f64) -> Self {
        Drawing { width, height, shapes: Vec::new() }
    }

    /// Adds a rectangle.
    pub fn rect(&mut self, place: [f64; 4], ink: Ink, opacity: f64) {
        self.shapes.push(Shape::Rect { place, ink, opacity });
    }

    /// Adds a line.
    pub fn line(&mut self, points: Vec<(f64, f64)>, ink: Ink, width: f64, opacity: f64) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line { points, ink, width, opacity });
        }
    }

    /// Adds a line of dashes.
    pub fn dashed(&mut self, points: &[(f64, f64)], ink: Ink, width: f64) {
        const DASH: f64 = 5.0;
        const GAP: f64 = 4.0;
        // How far the present dash, or gap, still goes.
        let (mut drawing, mut left) = (true, DASH);
        let mut dash: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
        for two in points.windows(2) {
            let ((mut x, mut y), (to_x, to_y)) = (two[0], two[1]);
            loop {
                let length = (to_x - x).hypot(to_y - y);
                if length <= left || !length.is_finite() {
                    left -= length;
                    if drawing {
                        dash.push((to_x, to_y));
                    }
                    break;
                }
                (x, y) = (x + (to_x - x) * left / length, y + (to_y - y) * left / length);
                if drawing {
                    dash.push((x, y));
                    self.line(std::mem::take(&mut dash), ink, width, 1.0);
                } else {
                    dash = vec![(x, y)];
                }
                drawing = !drawing;
                left = if drawing { DASH } else { GAP };
            }
        }
        self.line(dash, ink, width, 1.0);
    }

    /// Adds a polygon.
    pub fn area(&mut self, points: Vec<(f64, f64)>, ink: Ink, opacity: f64) {
        if points.len() > 2 {
            self.shapes.push(Shape::Area { points, ink, opacity });
        }
    }

    /// Adds a circle.
    pub fn dot(&mut self, at: (f64, f64), radius: f64, ink: Ink) {
        self.shapes.push(Shape::Dot { at, radius, ink });
    }

    /// Adds text.
    pub fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, ink: Ink, text: impl Into<String>) {
        self.shapes.push(Shape::Text { at, size, anchor, ink, text: text.into(), tick: false });
    }

    /// Adds the name of a place on an axis.
    pub fn tick(&mut self, at: (f64, f64), size: f64, anchor: Anchor, text: impl Into<String>) {
        self.shapes.push(Shape::Text { at, size, anchor, ink: Ink::Muted, text: text.into(), tick: true });
    }

    /// Adds everything that is on another sheet, moved by `(x, y)`.
    pub fn add(&mut self, other: Drawing, (dx, dy): (f64, f64)) {
        for mut shape in other.shapes {
            match &mut shape {
                Shape::Rect { place: [x, y, ..], .. } | Shape::Picture { place: [x, y, ..], .. } => {
                    (*x, *y) = (*x + dx, *y + dy);
                }
                Shape::Dot { at, .. } | Shape::Text { at, .. } => *at = (at.0 + dx, at.1 + dy),
                Shape::Line { points, .. } | Shape::Area { points, .. } => {
                    for at in points {
                        *at = (at.0 + dx, at.1 + dy);
                    }
                }
            }
            self.shapes.push(shape);
        }
    }

    /// Whether a box (left, top, width, height) covers any data: a shape other than text, and other than those in the inks
    /// of axes, grids and paper. Of an area, the rectangle around it counts.
    pub fn covers_data(&self, [x, y, width, height]: [f64; 4]) -> bool {
        let covers = |from: (f64, f64), to: (f64, f64), thick: f64| {
            crosses([x - thick, y - thick, x + width + thick, y + height + thick], from, to)
        };
        self.shapes.iter().any(|shape| match shape {
            Shape::Text { .. }
            | Shape::Rect { ink: Ink::Muted | Ink::Grid | Ink::Paper, .. }
            | Shape::Line { ink: Ink::Muted | Ink::Grid | Ink::Paper, .. }
            | Shape::Area { ink: Ink::Muted | Ink::Grid | Ink::Paper, .. }
            | Shape::Dot { ink: Ink::Muted | Ink::Grid | Ink::Paper, .. } => false,
            Shape::Line { points, width, .. } => {
                points.windows(2).any(|two| covers(two[0], two[1], width / 2.0))
            }
            Shape::Dot { at, radius, .. } => covers(*at, *at, *radius),
            Shape::Rect { place, .. } | Shape::Picture { place, .. } => {
                place[0] <= x + width
                    && x <= place[0] + place[2]
                    && place[1] <= y + height
                    && y <= place[1] + place[3]
            }
            Shape::Area { points, .. } => {
                let overlaps = |from: f64, to: f64, of: fn(&(f64, f64)) -> f64| {
                    points.iter().any(|at| of(at) >= from) && points.iter().any(|at| of(at) <= to)
                };
                overlaps(x, x + width, |at| at.0) && overlaps(y, y + height, |at| at.1)
            }
        })
    }

    /// Adds a picture.
    pub fn picture(&mut self, place: [f64; 4], image: ImageBuf) {
        self.shapes.push(Shape::Picture { place, image });
    }
}

/// Whether the straight line from `(x, y)` to `to` touches the box from `(left, top)` to `(right, bottom)`; a line with an
/// end that is not finite touches nothing.
fn crosses([left, top, right, bottom]: [f64; 4], (x, y): (f64, f64), to: (f64, f64)) -> bool {
    // The part of the line that is inside, from 0 at its beginning to 1 at its end, axis by axis.
    let (mut first, mut last) = (0.0_f64, 1.0_f64);
    for (at, along, low, high) in [(x, to.0 - x, left, right), (y, to.1 - y, top, bottom)] {
        if !along.is_finite() || along == 0.0 && !(low..=high).contains(&at) {
            return false;
        }
        if along != 0.0 {
            let (one, other) = ((low - at) / along, (high - at) / along);
            (first, last) = (first.max(one.min(other)), last.min(one.max(other)));
        }
    }
    first <= last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_box_covers() {
        let place = [10.0, 20.0, 30.0, 10.0];
        let check = |draw: &dyn Fn(&mut Drawing), expect: bool| {
            let mut sheet = Drawing::new(100.0, 100.0);
            draw(&mut sheet);
            assert_eq!(sheet.covers_data(place), expect, "{:?}", sheet.shapes);
        };
        let line = |from, to, ink| move |sheet: &mut Drawing| sheet.line(vec![from, to], ink, 2.0, 1.0);
        let ink = Ink::line(3);
        check(&|_| (), false);
        for (from, to, expect) in [
            ((0.0, 0.0), (100.0, 100.0), true),
            ((0.0, 25.0), (100.0, 25.0), true),
            ((20.0, 0.0), (20.0, 19.5), true), // half its width
            ((20.0, 0.0), (20.0, 18.0), false),
            ((0.0, 25.0), (8.0, 25.0), false),
            ((0.0, 30.0), (8.0, 100.0), false),
            ((0.0, 25.0), (50.0, 75.0), false),
            ((15.0, 22.0), (16.0, 23.0), true),
            ((15.0, 22.0), (15.0, 22.0), true),
            ((15.0, f64::NAN), (15.0, 22.0), false),
            ((f64::NEG_INFINITY, 25.0), (20.0, 25.0), false),
            ((-1e300, 25.0), (1e300, 25.0), true),
        ] {
            check(&line(from, to, ink), expect);
            check(&line(from, to, Ink::Grid), false);
        }
        for (x, y, expect) in [(25.0, 25.0, true), (7.5, 25.0, true), (6.5, 25.0, false), (25.0, 33.5, false)]
        {
            check(&|sheet| sheet.dot((x, y), 3.0, ink), expect);
            check(&|sheet| sheet.rect([x - 3.0, y - 3.0, 6.0, 6.0], ink, 1.0), expect);
            check(&|sheet| sheet.rect([x - 3.0, y - 3.0, 6.0, 6.0], Ink::Paper, 1.0), false);
            check(&|sheet| sheet.text((x, y), 12.0, Anchor::Start, ink, "name"), false);
            let corners = vec![(x - 3.0, y - 3.0), (x + 3.0, y - 3.0), (x, y + 3.0)];
            check(&|sheet| sheet.area(corners.clone(), ink, 1.0), expect);
        }
        check(&|sheet| sheet.rect([0.0, 0.0, 100.0, 100.0], ink, 1.0), true);
    }

    #[test]
    fn dashes_follow_the_line_and_its_corners() {
        let mut sheet = Drawing::new(10.0, 10.0);
        sheet.dashed(&[(0.0, 0.0), (7.0, 0.0), (7.0, 20.0)], Ink::Text, 1.0);
        let lines: Vec<&Vec<(f64, f64)>> = sheet
            .shapes
            .iter()
            .map(|shape| match shape {
                Shape::Line { points, .. } => points,
                other => panic!("{other:?}"),
            })
            .collect();
        // 5 of line, 4 of gap, three times over.
        let expect = [[(0.0, 0.0), (5.0, 0.0)], [(7.0, 2.0), (7.0, 7.0)], [(7.0, 11.0), (7.0, 16.0)]];
        assert_eq!(lines.len(), 3, "{lines:?}");
        for (line, expect) in lines.iter().zip(expect) {
            assert!(line.iter().zip(expect).all(|(a, b)| (a.0 - b.0).hypot(a.1 - b.1) < 1e-9), "{lines:?}");
        }
    }

    #[test]
    fn a_sheet_is_laid_on_another_at_its_place() {
        let mut part = Drawing::new(10.0, 10.0);
        part.dot((1.0, 2.0), 3.0, Ink::Text);
        part.rect([1.0, 2.0, 3.0, 4.0], Ink::Text, 1.0);
        part.line(vec![(0.0, 0.0), (1.0, 1.0)], Ink::Text, 1.0, 1.0);
        let mut expect = Drawing::new(50.0, 50.0);
        expect.dot((11.0, 22.0), 3.0, Ink::Text);
        expect.rect([11.0, 22.0, 3.0, 4.0], Ink::Text, 1.0);
        expect.line(vec![(10.0, 20.0), (11.0, 21.0)], Ink::Text, 1.0, 1.0);
        let mut whole = Drawing::new(50.0, 50.0);
        whole.add(part, (10.0, 20.0));
        assert_eq!(whole, expect);
    }
}
