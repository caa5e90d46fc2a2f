//! Queries or keys of sixteen patches, with one vector of lanes per element.

use super::Side;
use crate::lanes::{Block, Eight, Isa, Lanes};

/// Location of queries and keys. `D` is their length when it is known at compile time, else 0.
#[derive(Clone, Copy)]
pub(super) struct Vectors<'a, const D: usize> {
    /// `[patches, per_row, 8]`
    pub(super) embedded: &'a [Eight],
    pub(super) patches: usize,
    pub(super) dim: usize,
    /// The length to which all vectors are scaled, if set.
    pub(super) same_length: Option<f32>,
}

impl<const D: usize> Vectors<'_, D> {
    #[inline(always)]
    pub(super) const fn dim(&self) -> usize {
        if D == 0 { self.dim } else { D }
    }

    /// Writes `side` of the patches 16 `block` .. 16 `block` + 16 to `to`, `[dim, 16]`, padded with the last
    /// patch.
    #[inline(always)]
    pub(super) fn load<I: Isa>(&self, isa: I, side: Side, block: usize, to: &mut [Block]) {
        let row = self.per_row();
        let mut rows = [&[] as &[Eight]; 16];
        if let Some(all) = self.embedded.get(block * 16 * row..(block + 1) * 16 * row) {
            // Slicing once avoids a bounds check per row.
            for lane in 0..16 {
                rows[lane] = &all[lane * row..(lane + 1) * row];
            }
        } else {
            for (lane, to) in rows.iter_mut().enumerate() {
                *to = self.row((block * 16 + lane).min(self.patches - 1));
            }
        }
        self.columns(isa, side, &rows, to);
    }

    /// Writes `side` of the patches `which` to `to`, `[dim, 16]`, padded with the last patch.
    #[inline(always)]
    pub(super) fn gather<I: Isa>(&self, isa: I, side: Side, which: &[u32], to: &mut [Block]) {
        let mut rows = [&[] as &[Eight]; 16];
        for (lane, to) in rows.iter_mut().enumerate() {
            *to = self.row(which[lane.min(which.len() - 1)] as usize);
        }
        self.columns(isa, side, &rows, to);
    }

    /// Number of groups of eight numbers per patch.
    #[inline(always)]
    const fn per_row(&self) -> usize {
        (2 * self.dim()).div_ceil(8)
    }

    #[inline(always)]
    fn row(&self, patch: usize) -> &[Eight] {
        let row = self.per_row();
        &self.embedded[patch * row..(patch + 1) * row]
    }

    #[inline(always)]
    fn columns<I: Isa>(&self, isa: I, side: Side, rows: &[&[Eight]; 16], to: &mut [Block]) {
        let dim = self.dim();
        let first = if side == Side::Query { 0 } else { dim };
        for eight in first / 8..=(first + dim - 1) / 8 {
            let mut loaded = [isa.splat8(0.0); 16];
            for (to, row) in loaded.iter_mut().zip(rows) {
                *to = isa.load8(&row[eight].0);
            }
            let columns = isa.transpose(loaded);
            for (t, column) in columns.iter().enumerate() {
                let number = eight * 8 + t;
                if (first..first + dim).contains(&number) {
                    column.store(&mut to[number - first].0);
                }
            }
        }
        if let Some(length) = self.same_length {
            rescale(isa, length, &mut to[..dim]);
        }
    }
}

/// Scales every column of `vectors`, `[dim, 16]`, to `length`; zero vectors stay zero.
#[inline(always)]
fn rescale<I: Isa>(isa: I, length: f32, vectors: &mut [Block]) {
    let (zero, one) = (isa.splat16(0.0), isa.splat16(1.0));
    // Dividing by the largest number first prevents overflow and underflow of the squares.
    let mut largest = zero;
    for x in vectors.iter() {
        largest = isa.load16(&x.0).copy_sign(one).max(largest);
    }
    let largest = zero.select_lt(largest, largest, one);
    let mut square = zero;
    for x in vectors.iter_mut() {
        let shrunk = isa.load16(&x.0).div(largest);
        square = shrunk.mul_add(shrunk, square);
        shrunk.store(&mut x.0);
    }
    let square = zero.select_lt(square, square, one);
    let factor = isa.splat16(length).div(square.sqrt());
    for x in vectors {
        isa.load16(&x.0).mul(factor).store(&mut x.0);
    }
}

/// The squared lengths of `vectors`, `[dim, 16]`.
#[inline(always)]
pub(super) fn squares<I: Isa>(isa: I, vectors: &[Block]) -> I::V16 {
    let mut square = isa.splat16(0.0);
    for x in vectors {
        let x = isa.load16(&x.0);
        square = x.mul_add(x, square);
    }
    square
}

/// One row of a matrix times each of `vectors`, `[dim, 16]`.
#[inline(always)]
pub(super) fn products<I: Isa>(isa: I, row: &[f32], vectors: &[Block]) -> I::V16 {
    let mut product = isa.splat16(0.0);
    for (&w, x) in row.iter().zip(vectors) {
        product = isa.load16(&x.0).mul_add(isa.splat16(w), product);
    }
    product
}
