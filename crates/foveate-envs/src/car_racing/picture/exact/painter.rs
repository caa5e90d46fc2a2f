//! Draws polygons into the cells.
//!
//! For every band of rows, the painter determines which cells a polygon covers entirely (they get its colour)
//! and which only in part (they get pixels, unless they already have its colour); pixels are then drawn only
//! in the latter.
//!
//! Outline pixels inside the polygon are overwritten by its fill, so they need not be drawn; pixels of
//! single-colour cells are never read.

use foveate_kernels::pixels::HEIGHT;

use super::cells::{self, BAND_ROWS, BANDS, COLUMNS, Cells, MIXED, Over, PAD};
use super::outline::{Course, Edge, SlantedEdge};
use super::palette::{Palette, pixel};
use super::place::{CANVAS_H, CANVAS_W, Shape, WORLD_H};
use super::spans;

/// The polygons of a frame, prepared to be drawn band by band.
#[derive(Debug, Clone, Default)]
pub(super) struct Painter {
    jobs: Vec<Job>,
    /// First and last filled column of each row of each polygon, from its top.
    spans: Vec<[i32; 2]>,
    /// The coverage of each band of each polygon.
    coverage: Vec<Coverage>,
    /// The outlines' edges.
    edges: Vec<Outline>,
    /// The polygons of each band in drawing order: those of band `i` from `starts[i]` to `starts[i + 1]`.
    members: Vec<u32>,
    starts: Vec<u32>,
}

/// A polygon's coverage of a band, in columns; empty when the first exceeds the second.
#[derive(Debug, Clone, Copy)]
struct Coverage {
    /// Columns with at least one painted row.
    touched: [i32; 2],
    /// Columns that are filled in all rows.
    covered: [i32; 2],
}

/// A polygon to draw.
#[derive(Debug, Clone)]
struct Job {
    shape: Shape,
    /// First and last row from the top, on the canvas above the bar of indicators.
    rows: [i32; 2],
    /// First and last band.
    bands: [usize; 2],
    /// True if every row has exactly one span.
    simple: bool,
    /// Where its spans, its coverage and its edges begin, and where its edges end.
    spans: usize,
    coverage: usize,
    edges: [usize; 2],
    number: Option<u8>,
    color: u32,
}

/// An edge of an outline.
#[derive(Debug, Clone, Copy)]
struct Outline {
    edge: Edge,
    course: Course,
    /// First and last row from the top.
    rows: [i32; 2],
}

impl Painter {
    /// Begins a frame.
    pub(super) fn begin(&mut self) {
        self.jobs.clear();
        self.spans.clear();
        self.coverage.clear();
        self.edges.clear();
    }

    /// Adds a polygon over those before it.
    pub(super) fn add(&mut self, shape: &Shape, palette: &mut Palette) {
        let (low, high) = spans::rows(shape);
        let rows @ [top, bottom] = [(CANVAS_H - 1 - high).max(0), (CANVAS_H - 1 - low).min(WORLD_H - 1)];
        let Some(bands) = BAND_ROWS.touched(top, bottom) else { return };
        let (spans, coverage, edges) = (self.spans.len(), self.coverage.len(), self.edges.len());
        self.spans.resize(spans + (bottom - top) as usize + 1, [0; 2]);
        let filled = &mut self.spans[spans..];
        let simple =
            if shape.outlined { spans::ground(shape, top, filled) } else { spans::car(shape, top, filled) };
        if shape.outlined {
            let corners = shape.corners();
            let mut before = corners[corners.len() - 1];
            for &corner in corners {
                if let Some(edge) = Edge::cut(before, corner) {
                    let rows = [CANVAS_H - 1 - edge.high[1], CANVAS_H - 1 - edge.low[1]];
                    self.edges.push(Outline { edge, course: edge.course(), rows });
                }
                before = corner;
            }
        }
        let edges = [edges, self.edges.len()];
        let (number, color) = (palette.number(shape.color), pixel(shape.color));
        let job = Job { shape: *shape, rows, bands, simple, spans, coverage, edges, number, color };
        self.survey(&job);
        self.jobs.push(job);
    }

    /// Sorts the polygons by the bands that they touch.
    pub(super) fn sort(&mut self) {
        self.starts.clear();
        self.starts.resize(BANDS + 2, 0);
        // Counted two places ahead: the second pass moves every start by one band.
        for job in &self.jobs {
            self.starts[job.bands[0] + 2..=job.bands[1] + 2].iter_mut().for_each(|n| *n += 1);
        }
        for band in 2..self.starts.len() {
            self.starts[band] += self.starts[band - 1];
        }
        self.members.clear();
        self.members.resize(self.coverage.len(), 0);
        for (index, job) in self.jobs.iter().enumerate() {
            for start in &mut self.starts[job.bands[0] + 1..=job.bands[1] + 1] {
                self.members[*start as usize] = index as u32;
                *start += 1;
            }
        }
    }

    /// Draws the polygons' parts in the band of `cells`.
    pub(super) fn paint(&self, band: usize, palette: &Palette, cells: &mut Cells) {
        let [first, end] = [self.starts[band], self.starts[band + 1]];
        for &index in &self.members[first as usize..end as usize] {
            let job = &self.jobs[index as usize];
            let on = self.coverage[job.coverage + band - job.bands[0]];
            let Some(touched @ [left, right]) = COLUMNS.touched(on.touched[0], on.touched[1]) else {
                continue;
            };
            let whole = claim(job, on, touched, palette, cells);
            if !cells.any_mixed(touched) {
                continue;
            }
            let [y0, y1] = BAND_ROWS.extent[band];
            let rows = [y0, y1.min(WORLD_H - 1)];
            for outline in &self.edges[job.edges[0]..job.edges[1]] {
                let rows = [rows[0].max(outline.rows[0]), rows[1].min(outline.rows[1])];
                if rows[0] <= rows[1] {
                    self.outline(outline, rows, job, cells);
                }
            }
            let rows = [rows[0].max(job.rows[0]), rows[1].min(job.rows[1])];
            if !job.simple {
                for (row, pixels) in (rows[0]..).zip(cells.rows(rows)) {
                    for &[a, b] in spans::fill(&job.shape, CANVAS_H - 1 - row).as_slice() {
                        cells::fill(pixels, a.max(0), b.min(CANVAS_W - 1), job.color);
                    }
                }
                continue;
            }
            // The parts of the spans that lie in mixed cells.
            for [from, to] in [[left, whole[0]], [whole[1], right + 1]] {
                if from >= to || !cells.any_mixed([from, to - 1]) {
                    continue;
                }
                let (x0, x1) = (COLUMNS.extent[from][0], COLUMNS.extent[to - 1][1]);
                for (&[a, b], pixels) in self.spans(rows, job).iter().zip(cells.rows(rows)) {
                    cells::fill(pixels, a.max(x0), b.min(x1), job.color);
                }
            }
        }
    }

    /// Determines the polygon's coverage of each of its bands.
    fn survey(&mut self, job: &Job) {
        let &Job { rows: [top, bottom], bands: [first, last], .. } = job;
        if !job.simple {
            // All columns within the bounds count as touched.
            let xs = job.shape.corners().iter().map(|c| c[0]);
            let touched = [xs.clone().min().unwrap_or(0) - 1, xs.max().unwrap_or(0) + 1];
            self.coverage.resize(job.coverage + last - first + 1, Coverage { touched, covered: [1, 0] });
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
        let spans = &self.spans[job.spans..];
        for (band, bent) in (first..=last).zip(&bent[first..]) {
            let [y0, y1] = BAND_ROWS.extent[band];
            let rows = &spans[(y0.max(top) - top) as usize..=(y1.min(bottom) - top) as usize];
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
            self.coverage.push(Coverage { touched, covered });
        }
        let coverage = &mut self.coverage[job.coverage..];
        for &Outline { edge, rows: [from, to], .. } in &self.edges[job.edges[0]..job.edges[1]] {
            let to = to.min(WORLD_H - 1);
            let Some([b0, b1]) = BAND_ROWS.touched(from, to) else { continue };
            let lean = edge.lean();
            for band in b0.max(first)..=b1.min(last) {
                let [y0, y1] = BAND_ROWS.extent[band];
                let [x0, x1] = edge.reach(lean, CANVAS_H - 1 - y1.min(to), CANVAS_H - 1 - y0.max(from));
                let touched = &mut coverage[band - first].touched;
                *touched = [touched[0].min(x0), touched[1].max(x1)];
            }
        }
    }

    /// Draws an edge's pixels in some of its rows, at least those that lie outside the polygon's own span in mixed
    /// cells.
    fn outline(&self, outline: &Outline, rows: [i32; 2], job: &Job, cells: &mut Cells) {
        let &Outline { edge, course, .. } = outline;
        let over = Over::spread(job.color);
        let line = match course {
            Course::Straight => {
                let (x0, x1) = (edge.low[0].min(edge.high[0]), edge.low[0].max(edge.high[0]));
                return cells.rows(rows).iter_mut().for_each(|pixels| cells::fill(pixels, x0, x1, job.color));
            }
            Course::Steep(line) | Course::Shallow(line) => line,
        };
        let first = CANVAS_H - 1 - edge.first[1];
        if rows[0] <= first && first <= rows[1] {
            Over::new(over, 255).blend(&mut cells.rows([first; 2])[0], edge.first[0]);
        }
        let (x0, base) = (edge.low[0], CANVAS_H - 1 - edge.low[1]);
        if let Course::Steep(_) = course {
            self.steep(x0, base, line, rows, job, cells);
        } else {
            self.shallow(x0, base, line, rows, job, cells);
        }
    }

    /// The first and last columns that the polygon fills in some rows, if known.
    fn spans(&self, rows: [i32; 2], job: &Job) -> &[[i32; 2]] {
        if job.simple {
            let first = job.spans + (rows[0] - job.rows[0]) as usize;
            &self.spans[first..=first + (rows[1] - rows[0]) as usize]
        } else {
            &UNKNOWN[..=(rows[1] - rows[0]) as usize]
        }
    }

    /// The part of a steep line in some rows: it begins in column `x0` and in row `base`, from where it goes up.
    fn steep(&self, x0: i32, base: i32, line: SlantedEdge, rows: [i32; 2], job: &Job, cells: &mut Cells) {
        let over = Over::spread(job.color);
        // Step k lies in row `base - k`.
        let (from, end) = ((base - rows[1]).max(1), (base - rows[0] + 1).min(line.major));
        if from >= end {
            return;
        }
        let ends = [x0 + line.side * line.at(from).0, x0 + line.side * (line.at(end - 1).0 + 1)];
        let columns = COLUMNS.touched(ends[0].min(ends[1]), ends[0].max(ends[1]));
        if !columns.is_some_and(|columns| cells.any_mixed(columns)) {
            return;
        }
        let rows = [base - end + 1, base - from];
        let spans = self.spans(rows, job).iter().rev();
        for ((&[a, b], pixels), (across, near, far)) in
            spans.zip(cells.rows(rows).iter_mut().rev()).zip(line.steps(from))
        {
            let x = x0 + line.side * across;
            let (near_out, far_out) = (x < a || x > b, x + line.side < a || x + line.side > b);
            let (at, alpha) = if near_out { (x, near) } else { (x + line.side, far) };
            Over::new(over, alpha).blend(pixels, at);
            if near_out && far_out {
                Over::new(over, far).blend(pixels, x + line.side);
            }
        }
    }

    /// The part of a shallow line in some rows: it begins in column `x0` and in row `base`, from where it goes up.
    fn shallow(&self, x0: i32, base: i32, line: SlantedEdge, rows: [i32; 2], job: &Job, cells: &mut Cells) {
        let over = Over::spread(job.color);
        // Step k lies in row `base - across`, and in the one above.
        let (from, end) = (line.reaches(base - 1 - rows[1]).max(1), line.reaches(base + 1 - rows[0]));
        let end = end.min(line.major);
        if from >= end {
            return;
        }
        let ends = [x0 + line.side * from, x0 + line.side * (end - 1)];
        let columns = COLUMNS.touched(ends[0].min(ends[1]), ends[0].max(ends[1]));
        if !columns.is_some_and(|columns| cells.any_mixed(columns)) {
            return;
        }
        let rows = [rows[0].max(base - line.at(end - 1).0 - 1), rows[1].min(base - line.at(from).0)];
        let (spans, pixels) = (self.spans(rows, job), cells.rows(rows));
        for (k, (across, near, far)) in (from..end).zip(line.steps(from)) {
            let x = x0 + line.side * k;
            let row = base - across - rows[0];
            for (row, alpha) in [(row, near), (row - 1, far)] {
                // Rows outside are negative or too large.
                if let (Some(&[a, b]), Some(pixels)) = (spans.get(row as usize), pixels.get_mut(row as usize))
                    && (x < a || x > b)
                {
                    Over::new(over, alpha).blend(pixels, x);
                }
            }
        }
    }
}

/// Spans of rows in which nothing counts as filled.
const UNKNOWN: [[i32; 2]; HEIGHT] = [[i32::MAX, i32::MAX]; HEIGHT];

/// Sets covered cells to the polygon's colour, and converts partly covered cells to pixels. Returns the first and the
/// end of the covered ones.
fn claim(
    job: &Job,
    on: Coverage,
    [left, right]: [usize; 2],
    palette: &Palette,
    cells: &mut Cells,
) -> [usize; 2] {
    let mut whole = COLUMNS.covered(on.covered[0], on.covered[1]);
    if let (Some(number), true) = (job.number, whole[0] < whole[1]) {
        cells.state[whole[0]..whole[1]].fill(number);
    } else {
        whole = [right + 1; 2];
    }
    for column in (left..whole[0]).chain(whole[1]..=right) {
        let state = cells.state[column];
        if state != MIXED && Some(state) != job.number {
            cells.mix(column, palette.pixel(state));
        }
    }
    whole
}

/// Outline pixels may lie one column outside the canvas.
const _: () = assert!(PAD >= 2);
