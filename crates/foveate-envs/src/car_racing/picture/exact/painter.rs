//! Draws polygons into the cells.
//!
//! For every band of rows, the painter determines which cells a polygon covers entirely (they get its colour)
//! and which only in part (they get pixels, unless they already have its colour); pixels are then drawn only
//! in the latter.
//!
//! Outline pixels inside the polygon are overwritten by its fill, so they need not be drawn; pixels of
//! single-colour cells are never read.

use super::cells::{BAND_ROWS, BANDS, COLUMNS, Cells, MIXED, Over, PAD};
use super::outline::{Course, Edge, SlantedEdge};
use super::palette::{Palette, pixel};
use super::place::{CANVAS_H, CANVAS_W, MAX_CORNERS, Shape, WORLD_H};
use super::spans;

/// Buffers of the painter.
#[derive(Debug, Clone)]
pub(super) struct Painter {
    /// First and last filled column of each row of the polygon, from its top.
    spans: Vec<[i32; 2]>,
    /// The polygon's coverage of each band.
    bands: [Band; BANDS],
}

impl Default for Painter {
    fn default() -> Self {
        Painter { spans: vec![[0; 2]; WORLD_H as usize], bands: [Band::default(); BANDS] }
    }
}

/// A polygon's coverage of a band, in columns; empty when the first exceeds the second.
#[derive(Debug, Clone, Copy, Default)]
struct Band {
    /// Columns with at least one painted row.
    touched: [i32; 2],
    /// Columns that are filled in all rows.
    covered: [i32; 2],
    /// Cells that are touched: first and last.
    cells: Option<[usize; 2]>,
    /// Cells that are covered: first and end.
    whole: [usize; 2],
}

/// A polygon being drawn.
struct Job<'a> {
    shape: &'a Shape,
    /// First and last row from the top, on the canvas above the bar of indicators.
    rows: [i32; 2],
    /// First and last band.
    bands: [usize; 2],
    /// Whether every row has exactly one span.
    simple: bool,
    edges: [Option<Edge>; MAX_CORNERS],
    number: Option<u8>,
    color: u32,
}

impl Painter {
    /// Draws a polygon over the current content.
    pub(super) fn paint(&mut self, shape: &Shape, palette: &mut Palette, cells: &mut Cells) {
        let (low, high) = spans::rows(shape);
        let rows @ [top, bottom] = [(CANVAS_H - 1 - high).max(0), (CANVAS_H - 1 - low).min(WORLD_H - 1)];
        let Some(bands) = BAND_ROWS.touched(top, bottom) else { return };
        let spans = &mut self.spans[..=(bottom - top) as usize];
        let simple =
            if shape.outlined { spans::ground(shape, top, spans) } else { spans::car(shape, top, spans) };
        let number = palette.number(shape.color);
        let edges = if shape.outlined { edges(shape) } else { [None; MAX_CORNERS] };
        let job = Job { shape, rows, bands, simple, edges, number, color: pixel(shape.color) };
        self.survey(&job);
        self.claim(&job, palette, cells);
        for edge in job.edges.iter().flatten() {
            self.outline(edge, &job, cells);
        }
        if simple {
            self.fill(&job, cells);
        } else {
            for row in top..=bottom {
                for &[a, b] in spans::fill(shape, CANVAS_H - 1 - row).as_slice() {
                    cells.fill(row, a.max(0), b.min(CANVAS_W - 1), job.color);
                }
            }
        }
    }

    /// Determines the polygon's coverage of each of its bands.
    fn survey(&mut self, job: &Job<'_>) {
        let &Job { rows: [top, bottom], bands: [first, last], .. } = job;
        if !job.simple {
            // All columns within the bounds count as touched.
            let xs = job.shape.corners().iter().map(|c| c[0]);
            let touched = [xs.clone().min().unwrap_or(0) - 1, xs.max().unwrap_or(0) + 1];
            self.bands[first..=last].fill(Band { touched, covered: [1, 0], ..Band::default() });
            return;
        }
        // Between corners both sides of the polygon are monotonic, so the first and the last row are
        // sufficient.
        let mut bent = [false; BANDS];
        for corner in job.shape.corners() {
            let row = CANVAS_H - 1 - corner[1];
            if let Some([b0, b1]) = BAND_ROWS.touched(row - 1, row + 1) {
                bent[b0..=b1].fill(true);
            }
        }
        for (band, bent) in (first..=last).zip(&bent[first..]) {
            let [y0, y1] = BAND_ROWS.extent[band];
            let rows = &self.spans[(y0.max(top) - top) as usize..=(y1.min(bottom) - top) as usize];
            let ([a0, b0], [a1, b1]) = (rows[0], rows[rows.len() - 1]);
            let (mut touched, mut covered) = ([a0.min(a1), b0.max(b1)], [a0.max(a1), b0.min(b1)]);
            if *bent || !job.shape.outlined {
                for &[a, b] in rows {
                    touched = [touched[0].min(a), touched[1].max(b)];
                    covered = [covered[0].max(a), covered[1].min(b)];
                }
            }
            if y0 < top || y1 > bottom {
                covered = [1, 0];
            }
            self.bands[band] = Band { touched, covered, ..Band::default() };
        }
        for edge in job.edges.iter().flatten() {
            let (from, to) = (CANVAS_H - 1 - edge.high[1], (CANVAS_H - 1 - edge.low[1]).min(WORLD_H - 1));
            let Some([b0, b1]) = BAND_ROWS.touched(from, to) else { continue };
            for band in b0.max(first)..=b1.min(last) {
                let [y0, y1] = BAND_ROWS.extent[band];
                let [x0, x1] = edge.reach(CANVAS_H - 1 - y1.min(to), CANVAS_H - 1 - y0.max(from));
                let touched = &mut self.bands[band].touched;
                *touched = [touched[0].min(x0), touched[1].max(x1)];
            }
        }
    }

    /// Sets covered cells to the polygon's colour, and converts partly covered cells to pixels.
    fn claim(&mut self, job: &Job<'_>, palette: &Palette, cells: &mut Cells) {
        for band in job.bands[0]..=job.bands[1] {
            let on = &mut self.bands[band];
            on.cells = COLUMNS.touched(on.touched[0], on.touched[1]);
            let Some([left, right]) = on.cells else { continue };
            let whole = COLUMNS.covered(on.covered[0], on.covered[1]);
            if let (Some(number), true) = (job.number, whole[0] < whole[1]) {
                cells.state[band][whole[0]..whole[1]].fill(number);
                on.whole = whole;
            } else {
                on.whole = [right + 1; 2];
            }
            for column in (left..on.whole[0]).chain(on.whole[1]..=right) {
                let state = cells.state[band][column];
                if state != MIXED && Some(state) != job.number {
                    cells.mix(band, column, palette.pixel(state));
                }
            }
        }
    }

    /// Draws an edge's pixels, at least those that lie outside the polygon's own span in mixed cells.
    fn outline(&self, edge: &Edge, job: &Job<'_>, cells: &mut Cells) {
        let over = Over::spread(job.color);
        let mut dot = |x: i32, y: i32, alpha: u32| {
            let row = CANVAS_H - 1 - y;
            if row < WORLD_H {
                cells.blend(row, x, Over::new(over, alpha));
            }
        };
        match edge.course() {
            Course::Straight => edge.dots(dot),
            Course::Steep(line) => {
                dot(edge.first[0], edge.first[1], 255);
                self.steep(edge, line, job, cells);
            }
            Course::Shallow(line) => {
                dot(edge.first[0], edge.first[1], 255);
                self.shallow(edge, line, job, cells);
            }
        }
    }

    /// The first and last column that the polygon fills in a row, if known.
    #[inline]
    fn span(&self, row: i32, job: &Job<'_>) -> [i32; 2] {
        if job.simple { self.spans[(row - job.rows[0]) as usize] } else { [i32::MAX, i32::MAX] }
    }

    fn steep(&self, edge: &Edge, line: SlantedEdge, job: &Job<'_>, cells: &mut Cells) {
        let over = Over::spread(job.color);
        let [x0, y0] = edge.low;
        // Rows from the top: step k lies in row `base - k`.
        let base = CANVAS_H - 1 - y0;
        let mut k = (base - (WORLD_H - 1)).max(1);
        while k < line.major {
            // Skip to the first row of the band, which the band above may share.
            let [above, band] = BAND_ROWS.of[(base - k) as usize].map(usize::from);
            let end = (base - BAND_ROWS.extent[above][0] + 1).min(line.major);
            let ends = [x0 + line.side * line.at(k).0, x0 + line.side * (line.at(end - 1).0 + 1)];
            let columns = COLUMNS.touched(ends[0].min(ends[1]), ends[0].max(ends[1]));
            let upper = usize::from(BAND_ROWS.of[(base - end + 1) as usize][0]);
            if !columns.is_some_and(|columns| cells.any_mixed([upper, band], columns)) {
                k = end;
                continue;
            }
            for k in k..end {
                let (across, near, far) = line.at(k);
                let row = base - k;
                let x = x0 + line.side * across;
                let [a, b] = self.span(row, job);
                let (near_out, far_out) = (x < a || x > b, x + line.side < a || x + line.side > b);
                let (at, alpha) = if near_out { (x, near) } else { (x + line.side, far) };
                cells.blend(row, at, Over::new(over, alpha));
                if near_out && far_out {
                    cells.blend(row, x + line.side, Over::new(over, far));
                }
            }
            k = end;
        }
    }

    fn shallow(&self, edge: &Edge, line: SlantedEdge, job: &Job<'_>, cells: &mut Cells) {
        let over = Over::spread(job.color);
        let [x0, y0] = edge.low;
        let base = CANVAS_H - 1 - y0;
        let mut k = 1;
        while k < line.major {
            // Skip to the end of the cell in the direction of the line.
            let [before, after] = COLUMNS.of[(x0 + line.side * k) as usize].map(usize::from);
            let end =
                if line.side > 0 { COLUMNS.extent[after][1] - x0 } else { x0 - COLUMNS.extent[before][0] };
            let end = (end + 1).min(line.major);
            let (from, to) = (base - line.at(end - 1).0 - 1, base - line.at(k).0);
            let other = COLUMNS.of[(x0 + line.side * (end - 1)) as usize].map(usize::from);
            let columns = [before.min(other[0]), after.max(other[1])];
            let bands = BAND_ROWS.touched(from, to);
            if !bands.is_some_and(|bands| cells.any_mixed(bands, columns)) {
                k = end;
                continue;
            }
            for k in k..end {
                let (across, near, far) = line.at(k);
                let x = x0 + line.side * k;
                let row = base - across;
                for (row, alpha) in [(row, near), (row - 1, far)] {
                    if row >= WORLD_H {
                        continue;
                    }
                    let [a, b] = self.span(row, job);
                    if x < a || x > b {
                        cells.blend(row, x, Over::new(over, alpha));
                    }
                }
            }
            k = end;
        }
    }

    /// Fills the parts of the spans that lie in mixed cells.
    fn fill(&self, job: &Job<'_>, cells: &mut Cells) {
        let &Job { rows: [top, bottom], bands: [first, last], color, .. } = job;
        for band in first..=last {
            let on = &self.bands[band];
            let Some([left, right]) = on.cells else { continue };
            let [y0, y1] = BAND_ROWS.extent[band];
            let rows = y0.max(top)..=y1.min(bottom);
            for [from, to] in [[left, on.whole[0]], [on.whole[1], right + 1]] {
                if from >= to || !cells.state[band][from..to].contains(&MIXED) {
                    continue;
                }
                let (x0, x1) = (COLUMNS.extent[from][0], COLUMNS.extent[to - 1][1]);
                for row in rows.clone() {
                    let [a, b] = self.spans[(row - top) as usize];
                    cells.fill(row, a.max(x0), b.min(x1), color);
                }
            }
        }
    }
}

/// The parts of a polygon's edges that lie on the canvas.
fn edges(shape: &Shape) -> [Option<Edge>; MAX_CORNERS] {
    let mut edges = [None; MAX_CORNERS];
    let corners = shape.corners();
    let mut before = corners[corners.len() - 1];
    for (edge, &corner) in edges.iter_mut().zip(corners) {
        *edge = Edge::cut(before, corner);
        before = corner;
    }
    edges
}

/// Outline pixels may lie one column outside the canvas.
const _: () = assert!(PAD >= 2);
