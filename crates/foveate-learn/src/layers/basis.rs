//! Where a cell lies, as fixed channels; numbers that are the same for every sample; norms of groups of channels.

use std::f64::consts::PI;

use foveate_core::TensorShape;
use foveate_kernels::elementwise::add;

use crate::layer::{Backward, Forward, Layer, one, tensor};

/// The functions of one coordinate that a [`SpatialBasis`] multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Frequencies {
    /// cos(π u p) and sin(π u p) for u = 1 … n, with p = index / size: every cell has the same norm.
    #[default]
    Mixed,
    /// cos(π u p) for u = 0 … n − 1 and sin(π u p) for u = 1 … n: with a constant channel.
    MixedFromZero,
    /// cos(π u p) for u = 1 … 2 n alone, with p = (index + 1) / size.
    Cosines,
}

impl Frequencies {
    /// Function `index` of `2 n` at cell `at` of `size`.
    fn value(self, index: usize, n: usize, at: usize, size: usize) -> f64 {
        let p = at as f64 / size as f64;
        match self {
            Frequencies::Mixed if index < n => (PI * (index + 1) as f64 * p).cos(),
            Frequencies::MixedFromZero if index < n => (PI * index as f64 * p).cos(),
            Frequencies::Mixed | Frequencies::MixedFromZero => (PI * (index - n + 1) as f64 * p).sin(),
            Frequencies::Cosines => (PI * (index + 1) as f64 * (p + 1.0 / size as f64)).cos(),
        }
    }
}

/// Appends (2 n)² channels to a picture that say where a cell lies: products of one function of the row and one of the column
/// (Mott et al. 2019, section 2.2): `[height, width, channels]` to `[height, width, channels + 4 n²]`. Channel `2 n r + s` is
/// function `r` of the row times function `s` of the column.
#[derive(Debug, Clone, Copy)]
pub struct SpatialBasis {
    n: usize,
    frequencies: Frequencies,
}

impl SpatialBasis {
    /// `n` frequencies of each kind and axis: 4 give 64 channels.
    pub const fn new(n: usize, frequencies: Frequencies) -> Self {
        SpatialBasis { n, frequencies }
    }

    /// How many channels it appends.
    pub const fn channels(&self) -> usize {
        4 * self.n * self.n
    }

    /// `[height, width, channels]`: the appended channels.
    pub fn of(&self, height: usize, width: usize) -> Vec<f64> {
        let functions = |size: usize| -> Vec<f64> {
            (0..size)
                .flat_map(|at| (0..2 * self.n).map(move |i| self.frequencies.value(i, self.n, at, size)))
                .collect()
        };
        let (rows, columns) = (functions(height), functions(width));
        let mut basis = Vec::with_capacity(height * width * self.channels());
        for row in rows.chunks_exact(2 * self.n) {
            for column in columns.chunks_exact(2 * self.n) {
                basis.extend(row.iter().flat_map(|r| column.iter().map(move |s| r * s)));
            }
        }
        basis
    }
}

impl Layer for SpatialBasis {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match *one(inputs)? {
            [height, width, channels] if self.n > 0 => Ok(vec![height, width, channels + self.channels()]),
            ref shape => Err(format!(
                "{} frequencies of each kind for {shape:?}; it takes [height, width, channels] and at least one frequency",
                self.n
            )),
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, work, .. } = forward;
        let [height, width, c] = [shapes[0][0], shapes[0][1], shapes[0][2]];
        let (n, all) = (self.channels(), c + self.channels());
        // Sines and cosines once for each pass and axis, and one product for each number: less than a convolution.
        let functions = 2 * self.n;
        let (_, [rows, columns]) = work.rooms([height * functions, width * functions]);
        for (room, size) in [(&mut *rows, height), (&mut *columns, width)] {
            for (at, room) in room.chunks_exact_mut(functions).enumerate() {
                for (i, x) in room.iter_mut().enumerate() {
                    *x = self.frequencies.value(i, self.n, at, size) as f32;
                }
            }
        }
        let pixels = inputs[0].chunks_exact(c).zip(output.chunks_exact_mut(all));
        for (at, (from, to)) in pixels.enumerate() {
            let (row, column) = (at / width % height, at % width);
            to[..c].copy_from_slice(from);
            let columns = &columns[column * functions..][..functions];
            for (to, r) in to[c..c + n].chunks_exact_mut(functions).zip(&rows[row * functions..]) {
                for (to, s) in to.iter_mut().zip(columns) {
                    *to = r * s;
                }
            }
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { d_output, d_inputs: [dx, ..], shapes, .. } = backward;
        let Some(dx) = dx else { return };
        let c = shapes[0][2];
        for (dx, dy) in dx.chunks_exact_mut(c).zip(d_output.chunks_exact(c + self.channels())) {
            add(dx, &dy[..c]);
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let basis = self.of(shapes[0][0], shapes[0][1]);
        let cells = inputs[0].chunks_exact(shapes[0][2]).zip(basis.chunks_exact(self.channels()));
        cells.flat_map(|(pixel, basis)| [pixel, basis].concat()).collect()
    }
}

/// A tensor of parameters, `value`, whatever the input: the same for every sample.
#[derive(Debug, Clone)]
pub struct Learned {
    shape: Vec<usize>,
}

impl Learned {
    /// Of this shape.
    pub fn new(shape: impl Into<Vec<usize>>) -> Self {
        Learned { shape: shape.into() }
    }
}

impl Layer for Learned {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        one(inputs)?;
        Ok(self.shape.clone())
    }

    fn tensors(&self, _: &[&[usize]]) -> Vec<TensorShape> {
        vec![tensor("value", self.shape.clone())]
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { params, output, .. } = forward;
        for sample in output.chunks_exact_mut(params.len()) {
            sample.copy_from_slice(params);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { d_output, d_params, .. } = backward;
        for sample in d_output.chunks_exact(d_params.len()) {
            add(d_params, sample);
        }
    }

    fn exact(&self, _: &[&[usize]], params: &[f64], _: &[&[f64]]) -> Vec<f64> {
        params.to_vec()
    }
}

/// Euclidean norms of equal groups of features: `[tokens, features]` to `[groups, tokens]`.
#[derive(Debug, Clone, Copy)]
pub struct GroupNorms {
    groups: usize,
}

/// Added to the sum of squares, so that the norm of zeros has a gradient: 0.
const LEAST_SQUARE: f32 = 1e-12;

impl GroupNorms {
    /// This many groups of neighbouring features.
    pub const fn new(groups: usize) -> Self {
        GroupNorms { groups }
    }
}

impl Layer for GroupNorms {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match *one(inputs)? {
            [tokens, features] if self.groups > 0 && features % self.groups == 0 => {
                Ok(vec![self.groups, tokens])
            }
            ref shape => Err(format!(
                "{} groups of {shape:?}; it takes [tokens, features] with a multiple of as many features",
                self.groups
            )),
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, .. } = forward;
        let [tokens, features] = [shapes[0][0], shapes[0][1]];
        let samples = inputs[0].chunks_exact(tokens * features);
        for (x, y) in samples.zip(output.chunks_exact_mut(self.groups * tokens)) {
            for (token, x) in x.chunks_exact(features).enumerate() {
                for (group, x) in x.chunks_exact(features / self.groups).enumerate() {
                    let squares = x.iter().fold(LEAST_SQUARE, |sum, x| sum + x * x);
                    y[group * tokens + token] = squares.sqrt();
                }
            }
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { inputs, output, d_output, d_inputs: [dx, ..], shapes, .. } = backward;
        let Some(dx) = dx else { return };
        let [tokens, features] = [shapes[0][0], shapes[0][1]];
        let (size, out) = (features / self.groups, self.groups * tokens);
        for (sample, dx) in dx.chunks_exact_mut(tokens * features).enumerate() {
            let x = &inputs[0][sample * tokens * features..][..tokens * features];
            let (y, dy) = (&output[sample * out..][..out], &d_output[sample * out..][..out]);
            for (at, (dx, x)) in dx.chunks_exact_mut(size).zip(x.chunks_exact(size)).enumerate() {
                let place = at % self.groups * tokens + at / self.groups;
                let slope = dy[place] / y[place];
                for (dx, x) in dx.iter_mut().zip(x) {
                    *dx += slope * x;
                }
            }
        }
    }

    fn reads_output(&self) -> bool {
        true
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let [tokens, features] = [shapes[0][0], shapes[0][1]];
        let mut y = vec![0.0; self.groups * tokens];
        for (at, x) in inputs[0].chunks_exact(features / self.groups).enumerate() {
            let squares: f64 = x.iter().map(|x| x * x).sum();
            y[at % self.groups * tokens + at / self.groups] = (squares + f64::from(LEAST_SQUARE)).sqrt();
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, refused};

    #[test]
    fn the_gradient_is_that_of_the_function() {
        for frequencies in [Frequencies::Mixed, Frequencies::MixedFromZero, Frequencies::Cosines] {
            gradient(&SpatialBasis::new(2, frequencies), &[&[3, 5, 2]]);
        }
        gradient(&Learned::new([2, 3]), &[&[4]]);
        gradient(&GroupNorms::new(2), &[&[5, 6]]);
        gradient(&GroupNorms::new(1), &[&[3, 4]]);
        refused(&SpatialBasis::new(0, Frequencies::Mixed), &[&[3, 5, 2]], "at least one frequency");
        refused(&GroupNorms::new(4), &[&[3, 6]], "4 groups of [3, 6]");
    }

    /// Rank of `[rows, columns]` by elimination with full pivoting.
    fn rank(mut matrix: Vec<f64>, columns: usize) -> usize {
        let rows = matrix.len() / columns;
        for step in 0..columns {
            let rest = (step..rows).flat_map(|i| (step..columns).map(move |j| (i, j)));
            let size = |&(i, j): &(usize, usize)| matrix[i * columns + j].abs();
            let Some((i, j)) = rest.max_by(|a, b| size(a).total_cmp(&size(b))) else { return step };
            if size(&(i, j)) < 1e-9 {
                return step;
            }
            for k in 0..columns {
                matrix.swap(step * columns + k, i * columns + k);
            }
            for k in 0..rows {
                matrix.swap(k * columns + step, k * columns + j);
            }
            for i in step + 1..rows {
                let factor = matrix[i * columns + step] / matrix[step * columns + step];
                for k in step..columns {
                    matrix[i * columns + k] -= factor * matrix[step * columns + k];
                }
            }
        }
        columns
    }

    /// Specification of S3TA, section 2: rank, and least and largest norm of a cell.
    #[test]
    fn the_basis_of_27_by_20_cells_has_full_rank() {
        for (frequencies, least, most) in [
            (Frequencies::Mixed, 4.0, 4.0),
            (Frequencies::MixedFromZero, 4.0, 4.95),
            (Frequencies::Cosines, 3.03, 8.0),
        ] {
            let basis = SpatialBasis::new(4, frequencies).of(27, 20);
            let norms = || basis.chunks_exact(64).map(|cell| cell.iter().map(|x| x * x).sum::<f64>().sqrt());
            let (low, high) = (norms().fold(f64::MAX, f64::min), norms().fold(0.0, f64::max));
            assert!(
                (low - least).abs() < 0.01 && (high - most).abs() < 0.01,
                "{frequencies:?}: {low}, {high}"
            );
            assert_eq!(rank(basis.clone(), 64), 64, "{frequencies:?}");
        }
    }
}
