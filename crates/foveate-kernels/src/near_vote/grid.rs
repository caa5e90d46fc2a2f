//! Conversion between points and the nodes of their cells.

use super::MOST_AXES;
use super::cells::{Cell, Side};
use super::series::{Chebyshev, MOST_NODES};
use crate::lanes::{Block, Isa, Lanes};

/// Chebyshev polynomials of sixteen points, axis by axis.
type Polynomials = [[Block; MOST_NODES]; MOST_AXES];

/// Maximum number of accumulators of a cell; see `MOST_OF_CELL`.
const MOST: usize = 2000;

impl Side {
    /// Converts weights of points, `[distinct]`, to weights of nodes: every polynomial has the same weighted
    /// sum over both.
    #[allow(clippy::large_stack_arrays, reason = "128 kB, so that nothing is allocated")]
    #[inline(always)]
    pub(super) fn gather<I: Isa>(&self, isa: I, chebyshev: &Chebyshev, points: &[f32], nodes: &mut [Block]) {
        nodes[..self.nodes().div_ceil(16)].fill(Block::default());
        let mut sums = [Block::default(); MOST];
        let mut totals = [0.0; MOST];
        let mut all = [[Block::default(); MOST_NODES]; MOST_AXES];
        for cell in &self.cells {
            let size = cell.nodes(self.dim);
            if cell.is_direct() {
                for (i, &point) in self.order[cell.start..cell.end].iter().enumerate() {
                    let node = cell.node + i;
                    nodes[node / 16].0[node % 16] = points[point as usize];
                }
                continue;
            }
            let sums = &mut sums[..size];
            sums.fill(Block::default());
            for which in self.order[cell.start..cell.end].chunks(16) {
                self.polynomials(isa, cell, which, &mut all);
                let mut weights = Block::default();
                for (to, &point) in weights.0.iter_mut().zip(which) {
                    *to = points[point as usize];
                }
                let weight = isa.load16(&weights.0);
                let (last, inner) = self.inner(cell);
                let mut odometer = Odometer::new(isa);
                for sums in sums.chunks_exact_mut(inner) {
                    let product = odometer.next(isa, &all, &cell.shape, last).mul(weight);
                    for (sum, polynomial) in sums.iter_mut().zip(&all[last]) {
                        isa.load16(&polynomial.0).mul_add(product, isa.load16(&sum.0)).store(&mut sum.0);
                    }
                }
            }
            for (total, sum) in totals.iter_mut().zip(sums.iter()) {
                *total = isa.load16(&sum.0).sum();
            }
            chebyshev.change(&cell.shape[..self.dim], &mut totals[..size], true);
            for (i, &total) in totals[..size].iter().enumerate() {
                let node = cell.node + i;
                nodes[node / 16].0[node % 16] = total;
            }
        }
    }

    /// Converts values at nodes to values at points, `[distinct]`, with the interpolating polynomials.
    #[inline(always)]
    pub(super) fn spread<I: Isa>(&self, isa: I, chebyshev: &Chebyshev, nodes: &[Block], points: &mut [f32]) {
        let mut coefficients = [0.0; MOST];
        let mut all = [[Block::default(); MOST_NODES]; MOST_AXES];
        for cell in &self.cells {
            if cell.is_direct() {
                for (i, &point) in self.order[cell.start..cell.end].iter().enumerate() {
                    let node = cell.node + i;
                    points[point as usize] = nodes[node / 16].0[node % 16];
                }
                continue;
            }
            let coefficients = &mut coefficients[..cell.nodes(self.dim)];
            for (i, to) in coefficients.iter_mut().enumerate() {
                let node = cell.node + i;
                *to = nodes[node / 16].0[node % 16];
            }
            chebyshev.change(&cell.shape[..self.dim], coefficients, false);
            for which in self.order[cell.start..cell.end].chunks(16) {
                self.polynomials(isa, cell, which, &mut all);
                let (last, inner) = self.inner(cell);
                let mut odometer = Odometer::new(isa);
                let mut total = isa.splat16(0.0);
                for coefficients in coefficients.chunks_exact(inner) {
                    let mut sum = isa.splat16(0.0);
                    for (&c, polynomial) in coefficients.iter().zip(&all[last]) {
                        sum = isa.load16(&polynomial.0).mul_add(isa.splat16(c), sum);
                    }
                    total = odometer.next(isa, &all, &cell.shape, last).mul_add(sum, total);
                }
                let mut values = [0.0; 16];
                total.store(&mut values);
                for (&value, &point) in values.iter().zip(which) {
                    points[point as usize] = value;
                }
            }
        }
    }

    /// The last axis and its number of nodes.
    #[inline(always)]
    fn inner(&self, cell: &Cell) -> (usize, usize) {
        (self.dim - 1, usize::from(cell.shape[self.dim - 1]))
    }

    /// Evaluates `T_0`, `T_1`, … at up to sixteen points along each axis.
    #[inline(always)]
    fn polynomials<I: Isa>(&self, isa: I, cell: &Cell, which: &[u32], all: &mut Polynomials) {
        for axis in 0..self.dim {
            let mut x = Block([cell.centre[axis]; 16]);
            for (to, &point) in x.0.iter_mut().zip(which) {
                *to = self.points[point as usize].0[axis];
            }
            let x = isa.load16(&x.0).sub(isa.splat16(cell.centre[axis]));
            let x = x.mul(isa.splat16(1.0 / cell.half[axis]));
            let double = x.add(x);
            let (mut before, mut now) = (x, isa.splat16(1.0));
            for to in &mut all[axis][..usize::from(cell.shape[axis])] {
                now.store(&mut to.0);
                let next = double.mul(now).sub(before);
                (before, now) = (now, next);
            }
        }
    }
}

/// Enumerates products of one polynomial per axis, except the last axis, in the order of a grid.
struct Odometer<V> {
    index: [u8; MOST_AXES],
    /// Products over the axes up to this one.
    products: [V; MOST_AXES],
    /// The first axis whose product is not up to date.
    stale: usize,
}

impl<V: Lanes<16>> Odometer<V> {
    #[inline(always)]
    fn new<I: Isa<V16 = V>>(isa: I) -> Self {
        Odometer { index: [0; MOST_AXES], products: [isa.splat16(1.0); MOST_AXES], stale: 0 }
    }

    /// The next product over the axes before `last`.
    #[inline(always)]
    fn next<I: Isa<V16 = V>>(&mut self, isa: I, all: &Polynomials, shape: &[u8], last: usize) -> V {
        if last == 0 {
            return isa.splat16(1.0);
        }
        for axis in self.stale..last {
            let factor = isa.load16(&all[axis][usize::from(self.index[axis])].0);
            self.products[axis] = if axis == 0 { factor } else { self.products[axis - 1].mul(factor) };
        }
        for axis in (0..last).rev() {
            self.stale = axis;
            self.index[axis] += 1;
            if self.index[axis] < shape[axis] {
                break;
            }
            self.index[axis] = 0;
        }
        self.products[last - 1]
    }
}
