//! Divides queries, or keys, into cells that a grid can represent.

use super::series::{Chebyshev, MOST_NODES, error};
use super::{MOST_AXES, Point};
use crate::lanes::Block;

/// Cells with fewer points than this are not divided further.
const SMALL: usize = 24;

/// Largest depth of the divisions.
const DEEPEST: usize = 20;

/// Cost of a node, relative to one point's part in one node: it is combined twice with about a thousand nodes
/// of the other side.
const NODE: usize = 5000;

/// Cost of the search for a division, per point, in the same unit.
const LOOK: usize = 800;

/// Maximum number of nodes of a cell.
const MOST_OF_CELL: usize = 2000;

/// One side of the votes: its points, and the cells and nodes that represent them.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) dim: usize,
    /// `[distinct]`: coordinates along the axes, relative to the middle.
    pub(super) points: Vec<Point>,
    count: usize,
    /// Largest distance from the middle, along each axis.
    reach: [f32; MOST_AXES],
    /// Indices of the points, grouped by cell.
    pub(super) order: Vec<u32>,
    pub(super) cells: Vec<Cell>,
    nodes: usize,
    /// Number of points that may still be examined in the search for cells.
    patience: usize,
    /// `[nodes / 16, dim, 16]`
    pub(super) grid: Vec<Block>,
}

/// A group of points that are close together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// Start of its points in `order`.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Index of its first node.
    pub(super) node: usize,
    /// Number of nodes along each axis; 0 if the points themselves are the nodes.
    pub(super) shape: [u8; MOST_AXES],
    pub(super) centre: [f32; MOST_AXES],
    pub(super) half: [f32; MOST_AXES],
}

impl Cell {
    pub(super) fn nodes(&self, dim: usize) -> usize {
        if self.is_direct() { self.end - self.start } else { count(&self.shape[..dim]) }
    }

    pub(super) const fn is_direct(&self) -> bool {
        self.shape[0] == 0
    }

    /// Its cost.
    fn work(&self, dim: usize) -> usize {
        let points = if self.is_direct() { 0 } else { self.end - self.start };
        self.nodes(dim) * (NODE + points)
    }
}

fn count(shape: &[u8]) -> usize {
    shape.iter().map(|&n| usize::from(n)).product()
}

impl Side {
    /// Allocates space for `patches` points of `dim` numbers.
    pub(super) fn new(patches: usize, dim: usize) -> Self {
        Side {
            dim,
            points: vec![Point::default(); patches],
            count: 0,
            reach: [0.0; MOST_AXES],
            order: vec![0; patches],
            // A cell has at least half as many points as the smallest one that may be divided, except after
            // rare uneven divisions.
            cells: Vec::with_capacity(patches / 2 + 64),
            nodes: 0,
            patience: 0,
            grid: vec![Block::default(); (patches.div_ceil(16) + 1) * dim],
        }
    }

    /// Sets `count` points; returns the middle between the extremes of each axis, which is the new origin.
    #[inline(always)]
    pub(super) fn place(
        &mut self,
        count: usize,
        point: impl Fn(usize) -> [f64; MOST_AXES],
    ) -> [f64; MOST_AXES] {
        let (mut low, mut high) = ([f64::MAX; MOST_AXES], [f64::MIN; MOST_AXES]);
        for row in 0..count {
            let x = point(row);
            for axis in 0..MOST_AXES {
                low[axis] = low[axis].min(x[axis]);
                high[axis] = high[axis].max(x[axis]);
            }
        }
        let mut middle = [0.0; MOST_AXES];
        for axis in 0..MOST_AXES {
            middle[axis] = f64::midpoint(low[axis], high[axis]);
            // Rounded up.
            self.reach[axis] = ((high[axis] - low[axis]) * 0.500_001) as f32;
        }
        for (row, to) in self.points[..count].iter_mut().enumerate() {
            let x = point(row);
            for axis in 0..MOST_AXES {
                to.0[axis] = (x[axis] - middle[axis]) as f32;
            }
        }
        self.count = count;
        middle
    }

    pub(super) fn reach(&self) -> &[f32] {
        &self.reach[..self.dim]
    }

    pub(super) fn point(&self, row: usize) -> &[f32] {
        &self.points[row].0[..self.dim]
    }

    pub(super) const fn nodes(&self) -> usize {
        self.nodes
    }

    /// `[nodes / 16, dim, 16]`
    pub(super) fn grid(&self) -> &[Block] {
        &self.grid[..self.nodes.div_ceil(16) * self.dim]
    }

    /// Total over the cells of points times nodes.
    pub(super) fn work(&self) -> f64 {
        let grids = self.cells.iter().filter(|cell| !cell.is_direct());
        grids.map(|cell| (cell.nodes(self.dim) * (cell.end - cell.start)) as f64).sum()
    }

    /// Divides the points into cells and places their nodes, so that interpolation against any vector within
    /// `other` along each axis has a relative error of at most `bound`. Returns the rest of `patience`, the
    /// number of points that may be examined; `None` if that is not enough, or if there would be too many
    /// cells.
    pub(super) fn cut(
        &mut self,
        bound: f64,
        other: &[f32],
        chebyshev: &Chebyshev,
        patience: usize,
    ) -> Option<usize> {
        self.patience = patience;
        self.cells.clear();
        for (i, to) in self.order[..self.count].iter_mut().enumerate() {
            *to = i as u32;
        }
        self.cut_range(0, self.count, bound, other, 0)?;
        let mut node = 0;
        let dim = self.dim;
        // The unused rest of the last block is set to zeros.
        for cell in &mut self.cells {
            cell.node = node;
            let mut put = |x: &dyn Fn(usize) -> f32| {
                for axis in 0..dim {
                    self.grid[node / 16 * dim + axis].0[node % 16] = x(axis);
                }
                node += 1;
            };
            if cell.is_direct() {
                for &point in &self.order[cell.start..cell.end] {
                    put(&|axis| self.points[point as usize].0[axis]);
                }
            } else {
                let mut index = [0; MOST_AXES];
                for _ in 0..count(&cell.shape[..dim]) {
                    put(&|axis| {
                        let nodes = chebyshev.nodes(usize::from(cell.shape[axis]));
                        cell.centre[axis] + cell.half[axis] * nodes[index[axis]] as f32
                    });
                    for axis in (0..dim).rev() {
                        index[axis] += 1;
                        if index[axis] < usize::from(cell.shape[axis]) {
                            break;
                        }
                        index[axis] = 0;
                    }
                }
            }
        }
        self.nodes = node;
        for unused in node..node.next_multiple_of(16) {
            for axis in 0..dim {
                self.grid[unused / 16 * dim + axis].0[unused % 16] = 0.0;
            }
        }
        Some(self.patience)
    }

    /// Adds the cheapest cells for the points `start` .. `end` of the order; returns their cost.
    fn cut_range(
        &mut self,
        start: usize,
        end: usize,
        bound: f64,
        other: &[f32],
        depth: usize,
    ) -> Option<usize> {
        self.patience = self.patience.checked_sub(end - start)?;
        let (mut low, mut high) = ([f32::MAX; MOST_AXES], [f32::MIN; MOST_AXES]);
        for &point in &self.order[start..end] {
            for (axis, &x) in self.points[point as usize].0.iter().enumerate() {
                low[axis] = if x < low[axis] { x } else { low[axis] };
                high[axis] = if x > high[axis] { x } else { high[axis] };
            }
        }
        let mut cell = Cell {
            start,
            end,
            node: 0,
            shape: [0; MOST_AXES],
            centre: [0.0; MOST_AXES],
            half: [0.0; MOST_AXES],
        };
        let mut reach = [0.0; MOST_AXES];
        let mut widest = 0;
        for axis in 0..self.dim {
            cell.centre[axis] = f32::midpoint(low[axis], high[axis]);
            // Measured from the rounded centre, rounded up, and never zero, because it is a divisor.
            let half = (high[axis] - cell.centre[axis]).max(cell.centre[axis] - low[axis]);
            cell.half[axis] = half * 1.000_001 + 1e-20;
            reach[axis] = f64::from(cell.half[axis]) * f64::from(other[axis]) * std::f64::consts::LN_2;
            widest = if reach[axis] > reach[widest] { axis } else { widest };
        }
        if let Some(shape) = shape(&reach[..self.dim], bound)
            && count(&shape[..self.dim]) < (end - start).min(MOST_OF_CELL)
        {
            cell.shape = shape;
        }
        let work = cell.work(self.dim);
        let cells = self.cells.len();
        // If the possible gain is small, the search is skipped.
        if end - start >= SMALL && depth < DEEPEST && work > LOOK * (end - start) {
            let middle = self.part(start, end, widest, cell.centre[widest]);
            if middle > start && middle < end {
                let parts = self.cut_range(start, middle, bound, other, depth + 1)?
                    + self.cut_range(middle, end, bound, other, depth + 1)?;
                if parts < work {
                    return Some(parts);
                }
                self.cells.truncate(cells);
            }
        }
        if self.cells.len() == self.cells.capacity() {
            return None;
        }
        self.cells.push(cell);
        Some(work)
    }

    /// Moves the points below `limit` on `axis` to the front; returns where the others start.
    fn part(&mut self, start: usize, end: usize, axis: usize, limit: f32) -> usize {
        let mut middle = start;
        for i in start..end {
            let below = self.points[self.order[i] as usize].0[axis] < limit;
            self.order.swap(i, middle);
            // Branch-free, because the branch would be unpredictable.
            if !below {
                self.order.swap(i, middle);
            }
            middle += usize::from(below);
        }
        middle
    }
}

/// The smallest grid whose errors along all axes add up to at most `bound`.
fn shape(reach: &[f64], bound: f64) -> Option<[u8; MOST_AXES]> {
    let mut shape = [0; MOST_AXES];
    let mut errors = [0.0; MOST_AXES];
    for (axis, &r) in reach.iter().enumerate() {
        shape[axis] = 1;
        errors[axis] = error(r, 1);
    }
    // Π (1 + e) − 1 ≤ bound where Σ e ≤ bound (1 − bound).
    while errors.iter().sum::<f64>() > bound * (1.0 - bound) {
        let worst =
            (0..reach.len()).fold(0, |worst, axis| if errors[axis] > errors[worst] { axis } else { worst });
        if usize::from(shape[worst]) == MOST_NODES {
            return None;
        }
        shape[worst] += 1;
        errors[worst] = error(reach[worst], usize::from(shape[worst]));
    }
    Some(shape)
}
