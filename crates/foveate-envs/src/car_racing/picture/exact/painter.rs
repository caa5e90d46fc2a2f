//! Paints polygons into the cells.
//!
//! For every band of rows a polygon says which cells it covers entirely (they become its colour) and which only in
//! part (they get pixels, unless it is of their colour already); pixels are then painted in the latter alone.

use super::cells::{BAND_ROWS, BANDS, COLUMNS, Cells, MIXED, PAD};
use super::outline::Edge;
use super::palette::{Palette, pixel};
use super::place::{CANVAS_H, CANVAS_W, Shape, WORLD_H};
use super::spans;

/// Scratch space of the painter.
#[derive(Debug, Clone, Default)]
pub(super) struct Painter {
    /// First and last filled column of each row, from the top.
    spans: Vec<[i32; 2]>,
    /// Per band, the columns that are touched and the columns that are covered in all its rows.
    bands: Vec<Band>,
}

/// What a polygon does to a band, in columns; empty where the first exceeds the second.
#[derive(Debug, Clone, Copy)]
struct Band {
    touched: [i32; 2],
    covered: [i32; 2],
    /// Cells that are covered.
    cells: [usize; 2],
}

impl Painter {
    /// Paints a polygon over what is there.
    pub(super) fn paint(&mut self, shape: &Shape, palette: &mut Palette, cells: &mut Cells) {
        let (low, high) = spans::rows(shape);
        let (top, bottom) = ((CANVAS_H - 1 - high).max(0), (CANVAS_H - 1 - low).min(WORLD_H - 1));
        let Some([first, last]) = BAND_ROWS.touched(top, bottom) else { return };
        let number = palette.number(shape.color);
        self.spans.clear();
        self.spans.resize((bottom - top + 1) as usize, [i32::MAX, i32::MIN]);
        let simple = number.is_some()
            && if shape.outlined {
                spans::ground(shape, top, &mut self.spans)
            } else {
                spans::car(shape, top, &mut self.spans)
            };
        let mut edges = [None; 8];
        if shape.outlined {
            let corners = shape.corners();
            let mut before = corners[corners.len() - 1];
            for (edge, &corner) in edges.iter_mut().zip(corners) {
                *edge = Edge::cut(before, corner);
                before = corner;
            }
        }
        self.survey(shape, [first, last], top, simple, &edges);
        let color = pixel(shape.color);
        self.claim([first, last], number, color, palette, cells);
        for edge in edges.iter().flatten() {
            self.outline(edge, top, simple, color, cells);
        }
        if simple {
            self.fill([first, last], top, color, cells);
        } else {
            for row in top..=bottom {
                for &[a, b] in spans::fill(shape, CANVAS_H - 1 - row).as_slice() {
                    cells.fill(row, a.max(0), b.min(CANVAS_W - 1), color);
                }
            }
        }
    }

    /// Finds out what the polygon does to each of its bands.
    fn survey(
        &mut self,
        shape: &Shape,
        [first, last]: [usize; 2],
        top: i32,
        simple: bool,
        edges: &[Option<Edge>],
    ) {
        self.bands.clear();
        let bottom = top + self.spans.len() as i32 - 1;
        if !simple {
            // Whatever lies within the bounds counts as touched.
            let xs = shape.corners().iter().map(|c| c[0]);
            let touched = [xs.clone().min().unwrap_or(0) - 1, xs.max().unwrap_or(0) + 1];
            self.bands.resize(last + 1 - first, Band { touched, covered: [1, 0], cells: [0, 0] });
            return;
        }
        for band in first..=last {
            let [y0, y1] = BAND_ROWS.extent[band];
            let rows = &self.spans[(y0.max(top) - top) as usize..=(y1.min(bottom) - top) as usize];
            let (mut touched, mut covered) = ([i32::MAX, i32::MIN], [i32::MIN, i32::MAX]);
            for &[a, b] in rows {
                touched = [touched[0].min(a), touched[1].max(b)];
                covered = [covered[0].max(a), covered[1].min(b)];
            }
            if y0 < top || y1 > bottom {
                covered = [1, 0];
            }
            self.bands.push(Band { touched, covered, cells: [0, 0] });
        }
        for edge in edges.iter().flatten() {
            let (from, to) = (CANVAS_H - 1 - edge.high[1], (CANVAS_H - 1 - edge.low[1]).min(WORLD_H - 1));
            let Some([b0, b1]) = BAND_ROWS.touched(from, to) else { continue };
            for band in b0.max(first)..=b1.min(last) {
                let [y0, y1] = BAND_ROWS.extent[band];
                let [x0, x1] = edge.reach(CANVAS_H - 1 - y1.min(to), CANVAS_H - 1 - y0.max(from));
                let touched = &mut self.bands[band - first].touched;
                *touched = [touched[0].min(x0), touched[1].max(x1)];
            }
        }
    }

    /// Gives covered cells the polygon's colour, and cells that it touches pixels.
    fn claim(
        &mut self,
        [first, last]: [usize; 2],
        number: Option<u8>,
        color: u32,
        palette: &Palette,
        cells: &mut Cells,
    ) {
        for band in first..=last {
            let on = &mut self.bands[band - first];
            let Some([left, right]) = COLUMNS.touched(on.touched[0], on.touched[1]) else { continue };
            let [c0, c1] = COLUMNS.covered(on.covered[0], on.covered[1]);
            on.cells = [c0, c1];
            let states = &mut cells.state[band];
            if let (Some(number), true) = (number, c0 < c1) {
                states[c0..c1].fill(number);
            }
            let (to, from) = if c0 < c1 { (c0, c1) } else { (right + 1, right + 1) };
            for column in (left..to).chain(from..right + 1) {
                let state = cells.state[band][column];
                if state != MIXED && Some(state) != number {
                    cells.mix(band, column, palette.pixel(state));
                }
            }
        }
        let _ = color;
    }

    /// Draws an edge's pixels that lie outside the polygon's own span.
    fn outline(&self, edge: &Edge, top: i32, simple: bool, color: u32, cells: &mut Cells) {
        edge.dots(|x, y, alpha| {
            let row = CANVAS_H - 1 - y;
            if !(0..WORLD_H).contains(&row) || x < -1 || x > CANVAS_W {
                return;
            }
            if simple {
                let [a, b] = self.spans[(row - top) as usize];
                if a <= x && x <= b {
                    return;
                }
            }
            cells.blend(row, x, color, alpha);
        });
    }

    /// Fills the parts of the spans that lie in cells with pixels.
    fn fill(&self, [first, last]: [usize; 2], top: i32, color: u32, cells: &mut Cells) {
        let bottom = top + self.spans.len() as i32 - 1;
        for band in first..=last {
            let on = &self.bands[band - first];
            let Some([left, right]) = COLUMNS.touched(on.touched[0], on.touched[1]) else { continue };
            let [y0, y1] = BAND_ROWS.extent[band];
            let [c0, c1] = on.cells;
            let parts = if c0 < c1 { [[left, c0], [c1, right + 1]] } else { [[left, right + 1], [0, 0]] };
            for [from, to] in parts {
                if from >= to || !cells.state[band][from..to].contains(&MIXED) {
                    continue;
                }
                let (x0, x1) = (COLUMNS.extent[from][0], COLUMNS.extent[to - 1][1]);
                for row in y0.max(top)..=y1.min(bottom) {
                    let [a, b] = self.spans[(row - top) as usize];
                    cells.fill(row, a.max(x0), b.min(x1), color);
                }
            }
        }
    }
}

/// Numbers of bands and pads that the painter relies on.
const _: () = assert!(BANDS == 84 && PAD >= 2);
