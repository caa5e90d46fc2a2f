//! Pooling.

use crate::layer::{Backward, Forward, Layer, len_of, one};
use crate::layers::conv::{Padding, Windows, check_windows};

/// The largest number of each window and channel: `[height, width, channels]` to fewer rows and columns. The gradient
/// goes to the first of several largest ones.
#[derive(Debug, Clone, Copy)]
pub struct MaxPool {
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: Padding,
}

impl MaxPool {
    /// Square windows of `side` pixels, side by side, no padding.
    pub const fn new(side: usize) -> Self {
        MaxPool { kernel: [side; 2], stride: [side; 2], padding: Padding::Valid }
    }

    /// The same with this distance between windows.
    #[must_use]
    pub const fn with_stride(self, stride: usize) -> Self {
        MaxPool { stride: [stride; 2], ..self }
    }

    /// The same with this padding, which is never the largest.
    #[must_use]
    pub const fn with_padding(self, padding: Padding) -> Self {
        MaxPool { padding, ..self }
    }

    fn windows(&self, shape: &[usize]) -> Windows {
        Windows::new([shape[0], shape[1]], shape[2], self.kernel, self.stride, self.padding)
    }
}

/// Moves the gradient `dy` with respect to the largest numbers `y` to that of `x` where it has them, so that the first one
/// gets it.
#[inline(never)] // Inlined, the compiler no longer knows that these do not overlap.
fn take(x: &[f32], y: &[f32], dy: &mut [f32], dx: &mut [f32]) {
    // Selections in place of branches, which compilers turn to vectors.
    for (((&x, &y), dy), dx) in x.iter().zip(y).zip(dy).zip(dx) {
        *dx += if x == y { *dy } else { 0.0 };
        *dy = if x == y { 0.0 } else { *dy };
    }
}

impl Layer for MaxPool {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let shape = one(inputs)?;
        check_windows(shape, self.kernel, self.stride, self.padding)?;
        let [height, width] = self.windows(shape).to;
        Ok(vec![height, width, shape[2]])
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, .. } = forward;
        let (windows, c) = (self.windows(shapes[0]), shapes[0][2]);
        output.fill(f32::NEG_INFINITY);
        let pictures = inputs[0].chunks_exact(len_of(shapes[0]));
        for (picture, output) in pictures.zip(output.chunks_exact_mut(windows.count() * c)) {
            windows.for_each_row(|window, _, columns, place| {
                let output = &mut output[window * c..][..c];
                for pixel in picture[place..place + columns.len() * c].chunks_exact(c) {
                    for (y, &x) in output.iter_mut().zip(pixel) {
                        // NaN wins, so that it is seen.
                        *y = if x > *y || x.is_nan() { x } else { *y };
                    }
                }
            });
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { inputs, output, d_output, d_inputs: [dx, ..], shapes, .. } = backward;
        let Some(dx) = dx else { return };
        let (windows, c, len) = (self.windows(shapes[0]), shapes[0][2], len_of(shapes[0]));
        let out = windows.count() * c;
        for (sample, dx) in dx.chunks_exact_mut(len).enumerate() {
            let picture = &inputs[0][sample * len..][..len];
            let (y, dy) = (&output[sample * out..][..out], &mut d_output[sample * out..][..out]);
            windows.for_each_row(|window, _, columns, place| {
                let (y, dy) = (&y[window * c..][..c], &mut dy[window * c..][..c]);
                let pixels = picture[place..][..columns.len() * c].chunks_exact(c);
                for (pixel, dx) in pixels.zip(dx[place..].chunks_exact_mut(c)) {
                    take(pixel, y, dy, dx);
                }
            });
        }
    }

    fn reads_output(&self) -> bool {
        true
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let (windows, c) = (self.windows(shapes[0]), shapes[0][2]);
        let mut y = vec![f64::NEG_INFINITY; windows.count() * c];
        windows.for_each_row(|window, _, columns, place| {
            for i in 0..columns.len() * c {
                let y = &mut y[window * c + i % c];
                *y = y.max(inputs[0][place + i]);
            }
        });
        y
    }
}

/// The largest number of each feature over all tokens: `[tokens, features]` to `[features]`. The gradient goes to the
/// first of several largest ones.
#[derive(Debug, Clone, Copy)]
pub struct MaxOverTokens;

impl Layer for MaxOverTokens {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        match *one(inputs)? {
            [_, features] => Ok(vec![features]),
            ref shape => Err(format!("it takes [tokens, features], not {shape:?}")),
        }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, shapes, .. } = forward;
        let features = shapes[0][1];
        for (tokens, output) in
            inputs[0].chunks_exact(len_of(shapes[0])).zip(output.chunks_exact_mut(features))
        {
            output.copy_from_slice(&tokens[..features]);
            for token in tokens.chunks_exact(features).skip(1) {
                for (y, &x) in output.iter_mut().zip(token) {
                    *y = if x > *y || x.is_nan() { x } else { *y };
                }
            }
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { inputs, output, d_output, d_inputs: [dx, ..], shapes, .. } = backward;
        let Some(dx) = dx else { return };
        let (features, len) = (shapes[0][1], len_of(shapes[0]));
        for (sample, dy) in d_output.chunks_exact_mut(features).enumerate() {
            let y = &output[sample * features..][..features];
            let tokens = inputs[0][sample * len..][..len].chunks_exact(features);
            for (token, dx) in tokens.zip(dx[sample * len..].chunks_exact_mut(features)) {
                take(token, y, dy, dx);
            }
        }
    }

    fn reads_output(&self) -> bool {
        true
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let features = shapes[0][1];
        (0..features)
            .map(|j| inputs[0].chunks_exact(features).map(|token| token[j]).fold(f64::NEG_INFINITY, f64::max))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, refused};

    #[test]
    fn the_gradient_is_that_of_the_function() {
        gradient(&MaxPool::new(2), &[&[4, 6, 3]]);
        gradient(&MaxPool::new(3).with_stride(2).with_padding(Padding::Same), &[&[5, 6, 2]]);
        gradient(&MaxOverTokens, &[&[5, 3]]);
        refused(&MaxPool::new(3), &[&[2, 2, 1]], "does not fit");
        refused(&MaxOverTokens, &[&[2, 2, 1]], "[tokens, features]");
    }
}
