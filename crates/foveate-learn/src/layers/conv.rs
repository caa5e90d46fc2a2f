//! Convolution.

use foveate_core::TensorShape;
use foveate_kernels::Level;
use foveate_kernels::conv_gradient::ConvShape;
use foveate_kernels::elementwise::add_rows;
use foveate_kernels::gemm::{Axis, Gemm, View};
use foveate_kernels::winograd;

use super::winograd::Winograd;
use crate::layer::{Backward, Forward, Layer, len_of, one, tensor};

/// What lies around the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: the kernel stays inside, and the output has (size − kernel) / stride + 1 rows.
    Valid,
    /// Zeros, so that the output has ⌈size / stride⌉ rows. An odd one goes below and to the right, as in TensorFlow.
    Same,
}

/// Two-dimensional convolution: `[height, width, channels]` to `[height, width, outputs]`.
///
/// Tensors: `weight` `[outputs, kernel height, kernel width, channels]`, `bias` `[outputs]`. PyTorch has the channels
/// of the weight before the kernel's axes.
///
/// 3 × 3 pixels with a stride of 1 and [`Padding::Same`], 32 channels or more and 64 outputs or more, both multiples of 8, are
/// computed with fewer multiplications (Winograd); so is their gradient.
#[derive(Debug, Clone, Copy)]
pub struct Conv {
    outputs: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: Padding,
    bias: bool,
}

impl Conv {
    /// A square kernel of `side` pixels, stride 1, no padding.
    pub const fn new(outputs: usize, side: usize) -> Self {
        Conv { outputs, kernel: [side; 2], stride: [1; 2], padding: Padding::Valid, bias: true }
    }

    /// The same with a kernel of this height and width.
    #[must_use]
    pub const fn with_kernel(self, kernel: [usize; 2]) -> Self {
        Conv { kernel, ..self }
    }

    /// The same with this distance between outputs, in pixels, in both directions.
    #[must_use]
    pub const fn with_stride(self, stride: usize) -> Self {
        Conv { stride: [stride; 2], ..self }
    }

    /// The same with this padding.
    #[must_use]
    pub const fn with_padding(self, padding: Padding) -> Self {
        Conv { padding, ..self }
    }

    /// The same without a bias.
    #[must_use]
    pub const fn without_bias(self) -> Self {
        Conv { bias: false, ..self }
    }

    /// The same convolution with fewer multiplications, where that pays.
    fn winograd(&self, shape: &[usize]) -> Option<Winograd> {
        let Conv { outputs, kernel, stride, padding, .. } = *self;
        let fits = kernel == [3, 3] && stride == [1, 1] && padding == Padding::Same;
        let &[height, width, channels] = shape else { return None };
        let fewer = Winograd(winograd::WinogradShape { height, width, channels, outputs });
        (fits && fewer.suits()).then_some(fewer)
    }

    fn windows(&self, shape: &[usize]) -> Windows {
        let [from, kernel, stride] = [[shape[0], shape[1]], self.kernel, self.stride];
        Windows::new(from, shape[2], kernel, stride, self.padding)
    }
}

/// How windows lie on a picture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    from: [usize; 2],
    channels: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    /// Zeros above and to the left.
    before: [usize; 2],
    pub(crate) to: [usize; 2],
}

impl Windows {
    pub(crate) fn new(
        from: [usize; 2],
        channels: usize,
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: Padding,
    ) -> Self {
        let axis = |i: usize| match padding {
            Padding::Valid => (0, (from[i] - kernel[i]) / stride[i] + 1),
            Padding::Same => {
                let to = from[i].div_ceil(stride[i]);
                (((to - 1) * stride[i] + kernel[i]).saturating_sub(from[i]) / 2, to)
            }
        };
        let ((top, height), (left, width)) = (axis(0), axis(1));
        Windows { from, channels, kernel, stride, before: [top, left], to: [height, width] }
    }

    /// Windows in a sample.
    pub(crate) const fn count(&self) -> usize {
        self.to[0] * self.to[1]
    }

    /// Numbers in a window.
    const fn len(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.channels
    }

    /// Returns whether the windows are the pixels themselves.
    fn are_pixels(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1]
    }

    /// Calls `f` with a window, a row in it, the part of that row that lies inside the picture as a range of columns of
    /// the window, and the place of its first number in the picture.
    #[inline]
    pub(crate) fn for_each_row(&self, mut f: impl FnMut(usize, usize, std::ops::Range<usize>, usize)) {
        let ([height, width], [top, left]) = (self.from, self.before);
        for y in 0..self.to[0] {
            for x in 0..self.to[1] {
                let (first, column) = (y * self.stride[0], x * self.stride[1]);
                let begin = left.saturating_sub(column);
                let end = self.kernel[1].min((width + left).saturating_sub(column)).max(begin);
                for row in 0..self.kernel[0] {
                    let at = first + row;
                    if at >= top && at < height + top {
                        let place = ((at - top) * width + column + begin - left) * self.channels;
                        f(y * self.to[1] + x, row, begin..end, place);
                    }
                }
            }
        }
    }

    /// Height and width of the picture with the zeros around it.
    fn padded(&self) -> [usize; 2] {
        let axis = |i: usize| self.from[i].max((self.to[i] - 1) * self.stride[i] + self.kernel[i]);
        [axis(0), axis(1)]
    }

    /// Numbers in the padded picture; 0 if there is no padding.
    fn room(&self) -> usize {
        if self.padded() == self.from { 0 } else { self.padded().iter().product::<usize>() * self.channels }
    }

    /// How many pictures, with so many outputs for each window, are computed at once: as many as fit the caches, or one if it
    /// has to be padded. This changes no bit.
    fn together(&self, outputs: usize) -> usize {
        /// Numbers that a cache of the second level holds, of half a mebibyte, and room for others.
        const CACHED: usize = 1 << 16;
        let picture = self.from.iter().product::<usize>() * self.channels + self.count() * outputs;
        if self.room() == 0 { (CACHED / picture).max(1) } else { 1 }
    }

    /// [`Windows::together`] pictures or fewer, the one with zeros around it in `room` if there is padding, and where the
    /// windows begin in them.
    fn pad<'a>(&self, pictures: &'a [f32], room: &'a mut [f32]) -> (&'a [f32], Axis) {
        if self.room() == 0 {
            let len = self.from.iter().product::<usize>() * self.channels;
            return (pictures, self.corners(pictures.len() / len));
        }
        room.fill(0.0);
        self.for_each_padded_row(|row, padded| room[padded].copy_from_slice(&pictures[row]));
        (room, self.corners(1))
    }

    /// Calls `f` with the numbers of each row of a picture, and with their place in the padded one.
    fn for_each_padded_row(&self, mut f: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>)) {
        let ([height, width], [_, wide], [top, left]) = (self.from, self.padded(), self.before);
        let len = width * self.channels;
        for row in 0..height {
            let (inside, at) = (row * len, ((row + top) * wide + left) * self.channels);
            f(inside..inside + len, at..at + len);
        }
    }

    /// Where the windows begin in padded pictures.
    fn corners(&self, pictures: usize) -> Axis {
        let ([height, width], [down, right], [high, wide]) = (self.to, self.stride, self.padded());
        let one = Axis::nested([height, down * wide * self.channels], [width, right * self.channels]);
        one.repeated([pictures, high * wide * self.channels])
    }

    /// Adds the gradient with respect to padded pictures to `d_pictures`, for the gradient `dy`, `[windows, outputs]`, and the
    /// weight.
    fn add_pictures(
        &self,
        gemm: &mut Gemm,
        level: Level,
        dy: View<'_>,
        weight: &[f32],
        d_pictures: &mut [f32],
        corners: Axis,
    ) {
        let (c, k, inside) = (self.channels, self.len(), self.inside());
        // Each pixel of the kernel moves all windows alike, to places of which no two overlap.
        for pixel in 0..k / c {
            let weight = View::with_stride(&weight[pixel * c..], dy.cols(), c, k);
            let d_pictures = &mut d_pictures[inside.place(pixel * c)..];
            gemm.add_product_at(level, dy, weight, d_pictures, corners);
        }
    }

    /// Where the numbers of a window lie, from its corner on.
    fn inside(&self) -> Axis {
        let ([height, width], [_, wide]) = (self.kernel, self.padded());
        Axis::nested([height, wide * self.channels], [width * self.channels, 1])
    }
}

/// Returns whether so few numbers are zero that products of whole matrices are faster than lists of the others.
fn is_dense(dy: &[f32]) -> bool {
    let zeros = dy.iter().filter(|dy| **dy == 0.0).count();
    zeros < dy.len() / 4
}

/// Checks a kernel and its stride against a picture's shape.
pub(crate) fn check_windows(
    shape: &[usize],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: Padding,
) -> Result<(), String> {
    let [height, width, _] = *shape else {
        return Err(format!("it takes [height, width, channels], not {shape:?}"));
    };
    if kernel.contains(&0) || stride.contains(&0) {
        return Err(format!("a kernel of {kernel:?} and a stride of {stride:?}; all must be at least 1"));
    }
    if padding == Padding::Valid && (kernel[0] > height || kernel[1] > width) {
        return Err(format!("a kernel of {kernel:?} does not fit a picture of [{height}, {width}]"));
    }
    Ok(())
}

impl Layer for Conv {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let shape = one(inputs)?;
        check_windows(shape, self.kernel, self.stride, self.padding)?;
        let [height, width] = self.windows(shape).to;
        Ok(vec![height, width, self.outputs])
    }

    fn tensors(&self, inputs: &[&[usize]]) -> Vec<TensorShape> {
        let [height, width] = self.kernel;
        let weight = tensor("weight", [self.outputs, height, width, inputs[0][2]]);
        if self.bias { vec![weight, tensor("bias", [self.outputs])] } else { vec![weight] }
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, params, inputs, output, work, shapes, .. } = forward;
        let windows = self.windows(shapes[0]);
        let (n, k, count) = (self.outputs, windows.len(), windows.count());
        let (weight, bias) = params.split_at(n * k);
        let weight = View::new(weight, n, k).transposed();
        let product = |gemm: &mut Gemm, patches: View<'_>, output: &mut [f32]| {
            if self.bias {
                gemm.product_plus(level, patches, weight, bias, output);
            } else {
                gemm.product(level, patches, weight, output);
            }
        };
        if windows.are_pixels() {
            product(&mut work.gemm, View::new(inputs[0], inputs[0].len() / k, k), output);
            return;
        }
        if let Some(fewer) = self.winograd(shapes[0]) {
            let (_, room) = work.room(fewer.room());
            let bias = self.bias.then_some(bias);
            fewer.forward(level, (&params[..n * k], bias), inputs[0], output, room);
            return;
        }
        let (len, together) = (len_of(shapes[0]), windows.together(n));
        let (gemm, room) = work.room(windows.room());
        let pictures = inputs[0].chunks(together * len);
        for (pictures, output) in pictures.zip(output.chunks_mut(together * count * n)) {
            let (pictures, corners) = windows.pad(pictures, room);
            let patches = View::with_axes(pictures, corners, windows.inside());
            product(gemm, patches, output);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward { level, params, inputs, d_output, d_inputs: [dx, ..], d_params, work, shapes, .. } =
            backward;
        let windows = self.windows(shapes[0]);
        let (n, k, count) = (self.outputs, windows.len(), windows.count());
        let (d_weight, d_bias) = d_params.split_at_mut(n * k);
        if self.bias {
            add_rows(d_bias, d_output);
        }
        let len = len_of(shapes[0]);
        if windows.are_pixels() {
            let weight = View::new(&params[..n * k], n, k);
            let rows = inputs[0].len() / k;
            let dy = View::new(d_output, rows, n);
            work.gemm.add_product(level, dy.transposed(), View::new(inputs[0], rows, k), d_weight);
            if let Some(dx) = dx {
                work.gemm.add_product(level, dy, weight, dx);
            }
            return;
        }
        if let Some(fewer) = self.winograd(shapes[0]) {
            let (gemm, room) = work.room(fewer.room());
            let mut dx = dx.map(|dx| dx.chunks_exact_mut(len));
            for (picture, dy) in inputs[0].chunks_exact(len).zip(d_output.chunks_exact(count * n)) {
                let dx = dx.as_mut().and_then(Iterator::next);
                fewer.backward(level, gemm, &params[..n * k], picture, dy, d_weight, dx, room);
            }
            return;
        }
        let sizes = ConvShape {
            from: windows.padded(),
            channels: windows.channels,
            kernel: self.kernel,
            stride: self.stride,
            to: windows.to,
            filters: n,
        };
        if sizes.suits() {
            let (gemm, lists, room) = work.conv_room(windows.room());
            let inside = windows.inside();
            for (picture, dy) in inputs[0].chunks_exact(len).zip(d_output.chunks_exact(count * n)) {
                let (picture, corners) = windows.pad(picture, room);
                if is_dense(dy) {
                    let patches = View::with_axes(picture, corners, inside);
                    gemm.add_product(level, View::new(dy, count, n).transposed(), patches, d_weight);
                } else {
                    lists.add_weight(level, sizes, picture, dy, d_weight);
                }
            }
            let (Some(dx), weight) = (dx, &params[..n * k]) else { return };
            for (dx, dy) in dx.chunks_exact_mut(len).zip(d_output.chunks_exact(count * n)) {
                let padded = windows.room() > 0;
                let to = if padded { &mut *room } else { &mut *dx };
                if padded {
                    to.fill(0.0);
                }
                if is_dense(dy) {
                    windows.add_pictures(
                        gemm,
                        level,
                        View::new(dy, count, n),
                        weight,
                        to,
                        windows.corners(1),
                    );
                } else {
                    lists.add_picture(level, sizes, weight, dy, to);
                }
                if padded {
                    windows.for_each_padded_row(|row, padded| {
                        foveate_kernels::elementwise::add(&mut dx[row], &room[padded]);
                    });
                }
            }
            return;
        }
        let (size, together) = (windows.room(), windows.together(n));
        // The gradient of the weight is summed with its axes swapped: numbers of a window are neighbours in the picture, so
        // their products with a few filters need no copies.
        let (gemm, [room, turned]) = work.rooms([size, n * k]);
        let inside = windows.inside();
        turned.fill(0.0);
        let parts = inputs[0].chunks(together * len).zip(d_output.chunks(together * count * n));
        for (pictures, dy) in parts {
            let (pictures, corners) = windows.pad(pictures, room);
            let patches = View::with_axes(pictures, corners, inside).transposed();
            gemm.add_product(level, patches, View::new(dy, dy.len() / n, n), turned);
        }
        for (j, d_weight) in d_weight.chunks_exact_mut(k).enumerate() {
            for (d_weight, row) in d_weight.iter_mut().zip(turned.chunks_exact(n)) {
                *d_weight += row[j];
            }
        }
        let Some(dx) = dx else { return };
        let (gemm, d_room) = work.room(size);
        for (dx, dy) in dx.chunks_mut(together * len).zip(d_output.chunks(together * count * n)) {
            let corners = windows.corners(dx.len() / len);
            let dy = View::new(dy, dy.len() / n, n);
            let mut add = |d_pictures: &mut [f32]| {
                windows.add_pictures(gemm, level, dy, &params[..n * k], d_pictures, corners);
            };
            if size == 0 {
                add(dx);
            } else {
                d_room.fill(0.0);
                add(d_room);
                windows.for_each_padded_row(|row, padded| {
                    foveate_kernels::elementwise::add(&mut dx[row], &d_room[padded]);
                });
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], params: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let windows = self.windows(shapes[0]);
        let (n, k, count, c) = (self.outputs, windows.len(), windows.count(), shapes[0][2]);
        let mut y = vec![0.0; count * n];
        for window in y.chunks_exact_mut(n) {
            for (j, y) in window.iter_mut().enumerate() {
                *y = if self.bias { params[n * k + j] } else { 0.0 };
            }
        }
        windows.for_each_row(|window, row, columns, place| {
            for j in 0..n {
                for (i, x) in inputs[0][place..place + columns.len() * c].iter().enumerate() {
                    let at = (row * self.kernel[1] + columns.start) * c + i;
                    y[window * n + j] += params[j * k + at] * x;
                }
            }
        });
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, refused};

    #[test]
    fn the_gradient_is_that_of_the_function() {
        gradient(&Conv::new(3, 2), &[&[4, 5, 2]]);
        gradient(&Conv::new(4, 1), &[&[3, 2, 5]]);
        gradient(&Conv::new(2, 3).with_stride(2).without_bias(), &[&[7, 6, 3]]);
        gradient(&Conv::new(2, 3).with_padding(Padding::Same), &[&[4, 3, 2]]);
        gradient(&Conv::new(2, 4).with_padding(Padding::Same).with_stride(2), &[&[7, 6, 1]]);
        gradient(&Conv::new(2, 1).with_kernel([5, 2]).with_padding(Padding::Same), &[&[3, 3, 2]]);
        // Rows of the kernel that fill registers.
        gradient(&Conv::new(3, 2), &[&[4, 5, 8]]);
        gradient(&Conv::new(2, 4).with_padding(Padding::Same).with_stride(2), &[&[7, 6, 2]]);
        gradient(&Conv::new(3, 1).with_kernel([3, 2]).with_padding(Padding::Same), &[&[4, 3, 4]]);
        refused(&Conv::new(2, 3), &[&[2, 9, 1]], "does not fit a picture of [2, 9]");
        refused(&Conv::new(2, 0), &[&[2, 9, 1]], "at least 1");
        refused(&Conv::new(2, 2), &[&[2, 9]], "[height, width, channels]");
    }

    #[test]
    fn same_padding_is_tensorflows() {
        // 7 rows, kernel 4, stride 2: 4 outputs, 3 zeros of which 1 is above.
        let windows = Windows::new([7, 7], 1, [4, 4], [2, 2], Padding::Same);
        assert_eq!((windows.to, windows.before), ([4, 4], [1, 1]));
        let even = Windows::new([6, 6], 1, [3, 3], [2, 2], Padding::Same);
        assert_eq!((even.to, even.before), ([3, 3], [0, 0]), "the one zero is below");
    }
}
