//! Queries and keys of all patches.

use crate::lanes::Eight;

/// Queries and keys saturate at ± this, so that their products stay finite for any weights.
pub(crate) const LIMIT: f32 = 1e15;

/// A query and a key of `dim` numbers each for every patch.
#[derive(Debug, Clone)]
pub struct Embedded {
    dim: usize,
    /// `[patches, per_row, 8]`: the query, the key, and zero padding.
    rows: Vec<Eight>,
}

impl Embedded {
    /// Zeros for `patches` patches.
    ///
    /// # Panics
    /// When `dim` is zero.
    pub fn new(patches: usize, dim: usize) -> Self {
        assert!(dim > 0, "queries need a length of at least 1");
        Embedded { dim, rows: vec![Eight::default(); patches * (2 * dim).div_ceil(8)] }
    }

    /// Number of patches.
    pub const fn patches(&self) -> usize {
        self.rows.len() / self.per_row()
    }

    /// Length of a query, and of a key.
    pub const fn dim(&self) -> usize {
        self.dim
    }

    /// Sets the query and the key of `patch`; numbers beyond ±1e15 and NaN saturate.
    ///
    /// # Panics
    /// When `patch` is out of range, or a slice does not have `dim` numbers.
    pub fn set(&mut self, patch: usize, query: &[f32], key: &[f32]) {
        assert_eq!((query.len(), key.len()), (self.dim, self.dim), "lengths of query and key");
        let per_row = self.per_row();
        let row = self.rows[patch * per_row..(patch + 1) * per_row].iter_mut().flat_map(|eight| &mut eight.0);
        for (to, &from) in row.zip(query.iter().chain(key)) {
            *to = if from < LIMIT { from.max(-LIMIT) } else { LIMIT };
        }
    }

    /// Number of groups of eight numbers per patch.
    pub(crate) const fn per_row(&self) -> usize {
        (2 * self.dim).div_ceil(8)
    }

    /// `[patches, per_row, 8]`
    pub(crate) fn rows(&self) -> &[Eight] {
        &self.rows
    }

    /// `[patches, per_row, 8]`
    pub(crate) fn rows_mut(&mut self) -> &mut [Eight] {
        &mut self.rows
    }
}
