//! Exact area coverage of polygons, accumulated as differences along each column.
//!
//! For each cell it crosses and the one below, an edge adds the change of the area under the edge from one
//! row to the next. A running sum along a column then gives the coverage of every cell. Rows that no edge
//! touches need no work: they equal the row above. Font rasterisers use the same signed-area accumulation;
//! here it runs along columns, so that a whole row of sums advances at once.

use crate::car_racing::picture::SIDE;
use foveate_kernels::coverage::{BLOCK, take};

/// Rows that show the world; the twelve rows below show the instruments.
pub(super) const ROWS: usize = 84;
/// Blocks per row.
pub(super) const BLOCKS: usize = SIDE / BLOCK;

/// `N` quantities per cell: differences along the columns.
#[derive(Debug, Clone)]
pub(super) struct Layer<const N: usize> {
    /// `[ROWS + 2, SIDE]`; all zero between frames.
    cells: Vec<[f32; N]>,
    /// Per row, a bit mask of the blocks that are not zero.
    touched: [u16; ROWS + 2],
}

impl<const N: usize> Layer<N> {
    pub(super) fn new() -> Self {
        Layer { cells: vec![[0.0; N]; (ROWS + 2) * SIDE], touched: [0; ROWS + 2] }
    }

    /// Adds the differences of `row` to `sums` (`[BLOCKS, BLOCK]` cells), sets them to zero, and returns
    /// which blocks changed.
    pub(super) fn take(&mut self, row: usize, sums: &mut [[[f32; N]; BLOCK]; BLOCKS]) -> u16 {
        let (deltas, _) = self.cells[row * SIDE..(row + 1) * SIDE].as_chunks_mut::<BLOCK>();
        take(self.touched[row], sums, deltas);
        self.touched[row]
    }

    /// Sets everything below the last row, and the record of changed blocks, to zero.
    pub(super) fn finish(&mut self) {
        for row in ROWS..ROWS + 2 {
            if self.touched[row] != 0 {
                self.cells[row * SIDE..(row + 1) * SIDE].fill([0.0; N]);
            }
        }
        self.touched = [0; ROWS + 2];
    }

    /// Adds a closed polygon. `points` are in cells, x to the right, y down. Clockwise polygons count with
    /// `weight`, others with its negative.
    pub(super) fn polygon(&mut self, points: &[[f32; 2]], weight: [f32; N]) {
        let mut from = points[points.len() - 1];
        for &to in points {
            self.edge(from, to, weight);
            from = to;
        }
    }

    /// Adds the area below the edge, positive when the edge runs to the right.
    pub(super) fn edge(&mut self, from: [f32; 2], to: [f32; 2], weight: [f32; N]) {
        let (mut a, mut b, weight) = if from[0] < to[0] {
            (from, to, weight)
        } else if from[0] > to[0] {
            (to, from, weight.map(|w| -w))
        } else {
            return;
        };
        let width = SIDE as f32;
        let bottom = ROWS as f32;
        if b[0] <= 0.0 || a[0] >= width || (a[1] >= bottom && b[1] >= bottom) {
            return;
        }
        let slope = (b[1] - a[1]) / (b[0] - a[0]);
        if a[0] < 0.0 {
            a = [0.0, a[1] - a[0] * slope];
        }
        if b[0] > width {
            b = [width, b[1] + (width - b[0]) * slope];
        }
        // Parts above the picture cover their columns from the first row on.
        if a[1] < 0.0 || b[1] < 0.0 {
            if a[1] <= 0.0 && b[1] <= 0.0 {
                self.flat(a[0], b[0], weight);
                return;
            }
            let cut = (a[0] - a[1] / slope).clamp(a[0], b[0]);
            if a[1] < 0.0 {
                self.flat(a[0], cut, weight);
                a = [cut, 0.0];
            } else {
                self.flat(cut, b[0], weight);
                b = [cut, 0.0];
            }
        }
        if a[1] > bottom || b[1] > bottom {
            if a[1] >= bottom && b[1] >= bottom {
                return;
            }
            let cut = (a[0] + (bottom - a[1]) / slope).clamp(a[0], b[0]);
            if a[1] > bottom {
                a = [cut, bottom];
            } else {
                b = [cut, bottom];
            }
        }
        self.inside(a, b, weight);
    }

    /// Adds an edge along the top of the picture from `x0` to `x1`.
    fn flat(&mut self, x0: f32, x1: f32, weight: [f32; N]) {
        if x1 > x0 {
            self.inside([x0, 0.0], [x1, 0.0], weight);
        }
    }

    /// Adds an edge within the picture, with `a` left of `b`.
    #[inline]
    fn inside(&mut self, a: [f32; 2], b: [f32; 2], weight: [f32; N]) {
        let run = b[0] - a[0];
        if run <= 0.0 {
            return;
        }
        let slope = (b[1] - a[1]) / run;
        let mut column = a[0] as i32;
        let mut from = a;
        let mut row = a[1] as i32;
        while column < SIDE as i32 {
            let right = (column + 1) as f32;
            let done = right >= b[0];
            let to = if done { b } else { [right, a[1] + (right - a[0]) * slope] };
            let next_row = to[1] as i32;
            let d = to[0] - from[0];
            let (at, first, last) = (column as usize, row.min(next_row) as usize, row.max(next_row) as usize);
            if first == last {
                let below = d * (0.5 * (from[1] + to[1]) - row as f32);
                self.add_both(first, at, [d - below, below], weight);
            } else {
                self.steep(at, d, [from[1].min(to[1]), from[1].max(to[1])], [first, last], weight);
            }
            if done {
                return;
            }
            (from, row) = (to, next_row);
            column += 1;
        }
    }

    /// Adds the part of an edge within one column, `d` wide, that runs between `low` in row `first` and
    /// `high` in a later row `last`.
    #[inline]
    fn steep(
        &mut self,
        column: usize,
        d: f32,
        [low, high]: [f32; 2],
        [first, last]: [usize; 2],
        weight: [f32; N],
    ) {
        // Area under the edge, row by row: quadratic in the first and last row, linear between them.
        let per_row = d / (high - low);
        let into = 1.0 - (low - first as f32);
        let mut done = 0.5 * per_row * into * into;
        self.add(first, column, done, weight);
        let mut reached = per_row * (into + 0.5);
        for row in first + 1..last {
            self.add(row, column, reached - done, weight);
            done = reached;
            reached += per_row;
        }
        let tail = high - last as f32;
        let reached = d - 0.5 * per_row * tail * tail;
        self.add(last, column, reached - done, weight);
        self.add(last + 1, column, d - reached, weight);
        self.touch(first, last + 1, column);
    }

    #[inline]
    fn add(&mut self, row: usize, column: usize, amount: f32, weight: [f32; N]) {
        let cell = &mut self.cells[row * SIDE + column];
        for (c, w) in cell.iter_mut().zip(weight) {
            *c += amount * w;
        }
    }

    /// Adds to a cell and to the one below it.
    #[inline]
    fn add_both(&mut self, row: usize, column: usize, amounts: [f32; 2], weight: [f32; N]) {
        let cells = &mut self.cells[row * SIDE + column..=(row + 1) * SIDE + column];
        for (at, amount) in [0, SIDE].into_iter().zip(amounts) {
            for (c, w) in cells[at].iter_mut().zip(weight) {
                *c += amount * w;
            }
        }
        let bit = 1 << (column / BLOCK);
        let touched = &mut self.touched[row..row + 2];
        touched[0] |= bit;
        touched[1] |= bit;
    }

    #[inline]
    fn touch(&mut self, first: usize, last: usize, column: usize) {
        let bit = 1 << (column / BLOCK);
        for touched in &mut self.touched[first..=last] {
            *touched |= bit;
        }
    }
}
