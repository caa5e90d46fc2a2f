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
}

impl Ink {
    /// The inks of data, in the order in which series take them.
    pub const SERIES: [Ink; 5] = [Ink::Control, Ink::Other, Ink::Loss, Ink::Extra, Ink::Attention];
    /// All inks.
    pub const ALL: [Ink; 8] =
        [Ink::Text, Ink::Muted, Ink::Grid, Ink::Attention, Ink::Control, Ink::Other, Ink::Loss, Ink::Extra];

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

    /// Adds a picture.
    pub fn picture(&mut self, place: [f64; 4], image: ImageBuf) {
        self.shapes.push(Shape::Picture { place, image });
    }
}
