//! A column-major matrix.

use std::ops::{Index, IndexMut};

use foveate_kernels::matrix::{Mat, MatMut};

/// A column-major matrix, `[rows, cols]`; columns can be added.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    data: Vec<f64>,
    rows: usize,
    cols: usize,
}

impl Matrix {
    pub(super) fn zeros(rows: usize, cols: usize) -> Self {
        Matrix { data: vec![0.0; rows * cols], rows, cols }
    }

    /// A square matrix with `value(i)` in row and column i, else 0.
    pub(super) fn diagonal(n: usize, value: impl Fn(usize) -> f64) -> Self {
        let mut matrix = Matrix::zeros(n, n);
        for i in 0..n {
            matrix[(i, i)] = value(i);
        }
        matrix
    }

    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    pub(super) const fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn col(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    pub(super) fn col_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// All numbers, column by column.
    pub(super) fn as_slice(&self) -> &[f64] {
        &self.data
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    pub(super) fn view(&self) -> Mat<'_> {
        Mat::new(&self.data, self.rows, self.cols, self.rows)
    }

    pub(super) fn view_mut(&mut self) -> MatMut<'_> {
        MatMut::new(&mut self.data, self.rows, self.cols, self.rows)
    }

    /// Appends `factor · column` as a column on the right; the capacity remains when columns are cleared.
    pub(super) fn push(&mut self, factor: f64, column: &[f64]) {
        debug_assert_eq!(column.len(), self.rows, "a column");
        self.data.extend(column.iter().map(|x| factor * x));
        self.cols += 1;
    }

    /// Removes all columns.
    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.cols = 0;
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.col(j)[i]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.col_mut(j)[i]
    }
}
