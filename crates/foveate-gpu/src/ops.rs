//! The kernels with the lengths of their arrays checked: nothing outside this file passes an address to a device.
//!
//! Every function panics when a length is wrong, which is a mistake of the network and not of its input, and returns an error
//! when the device refuses.
#![allow(unsafe_code, reason = "each launch is preceded by checks of its arrays' lengths")]

use std::sync::Arc;

use crate::device::{Args, Bytes, Device, DeviceError, Matrix, Numbers, Sizes};

type Done = Result<(), DeviceError>;

/// How windows lie on pictures: TensorFlow's SAME padding, an odd row below and an odd column to the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Rows, columns and channels of a picture.
    pub from: [usize; 3],
    /// Side of a window.
    pub side: usize,
    /// Pixels from one to the next.
    pub stride: usize,
    /// Rows and columns of windows.
    pub to: [usize; 2],
    before: [usize; 2],
}

impl Windows {
    /// Windows of `side` pixels every `stride`.
    pub fn same(from: [usize; 3], side: usize, stride: usize) -> Self {
        let axis = |size: usize| {
            let to = size.div_ceil(stride);
            (((to - 1) * stride + side).saturating_sub(size) / 2, to)
        };
        let ((top, height), (left, width)) = (axis(from[0]), axis(from[1]));
        Windows { from, side, stride, to: [height, width], before: [top, left] }
    }

    /// Windows of a picture.
    pub const fn count(&self) -> usize {
        self.to[0] * self.to[1]
    }

    /// Numbers of a window.
    pub const fn len(&self) -> usize {
        self.side * self.side * self.from[2]
    }

    /// Returns whether windows have no numbers.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of a picture.
    pub const fn pixels(&self) -> usize {
        self.from[0] * self.from[1] * self.from[2]
    }

    fn sizes(&self) -> [i32; 12] {
        let [height, width, channels] = self.from;
        let [down, across] = self.to;
        let [top, left] = self.before;
        sizes([height, width, channels, self.side, self.side, self.stride, top, left, down, across])
    }
}

fn int(n: usize) -> i32 {
    i32::try_from(n).expect("sizes that a kernel is given fit 31 bits")
}

fn sizes<const N: usize>(given: [usize; N]) -> [i32; 12] {
    std::array::from_fn(|i| given.get(i).map_or(0, |&n| int(n)))
}

/// A device with checked calls.
#[derive(Clone)]
pub struct Ops {
    device: Arc<dyn Device>,
}

/// The sizes of a network's attention.
#[derive(Debug, Clone, Copy)]
pub struct Attention {
    /// Heads.
    pub heads: usize,
    /// Cells of the picture.
    pub cells: usize,
    /// Channels that are keys.
    pub keys: usize,
    /// All channels.
    pub channels: usize,
    /// Channels of the spatial basis.
    pub basis: usize,
    /// Numbers that say what the last step was.
    pub told: usize,
    /// What scores are multiplied by.
    pub scale: f32,
}

impl Attention {
    /// Numbers of a query.
    pub const fn width(&self) -> usize {
        self.keys + self.basis
    }

    /// Numbers of what the layers after the attention see.
    pub const fn seen(&self) -> usize {
        self.heads * (self.channels - self.keys + self.basis + self.width()) + self.told
    }

    fn gather_sizes(&self) -> [i32; 12] {
        sizes([self.heads, self.keys, self.channels, self.basis, self.width(), self.told])
    }
}

impl Ops {
    /// On this device.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Ops { device }
    }

    /// The device.
    pub const fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    fn launch(
        &self,
        kernel: &'static str,
        arrays: &[u64],
        sizes: [i32; 12],
        number: f32,
        threads: usize,
    ) -> Done {
        let mut args = Args { sizes, numbers: [number, 0.0], threads: int(threads), ..Args::default() };
        args.arrays[..arrays.len()].copy_from_slice(arrays);
        // SAFETY: every caller in this file has compared the lengths of its arrays with the sizes and threads.
        unsafe { self.device.launch(kernel, &args) }
    }

    /// Copies numbers to the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn write(&self, to: Numbers<'_>, from: &[f32]) -> Done {
        assert_eq!(to.len, from.len(), "numbers");
        // SAFETY: numbers are four bytes each, and as many bytes as the place has.
        unsafe {
            let bytes = std::slice::from_raw_parts(from.as_ptr().cast::<u8>(), 4 * from.len());
            self.device.upload(to.at, bytes)
        }
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn write_bytes(&self, to: Bytes<'_>, from: &[u8]) -> Done {
        assert_eq!(to.len, from.len(), "bytes");
        // SAFETY: as many bytes as the place has.
        unsafe { self.device.upload(to.at, from) }
    }

    /// Copies numbers from the device.
    ///
    /// # Errors
    /// What the driver says, also of an earlier call.
    pub fn read(&self, from: Numbers<'_>) -> Result<Vec<f32>, DeviceError> {
        let mut numbers = vec![0.0_f32; from.len];
        // SAFETY: numbers are four bytes each, of which every pattern is a number, and as many bytes as the place has.
        unsafe {
            let bytes = std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast::<u8>(), 4 * from.len);
            self.device.download(from.at, bytes)?;
        }
        Ok(numbers)
    }

    /// Copies numbers on the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn copy(&self, to: Numbers<'_>, from: Numbers<'_>) -> Done {
        assert_eq!(to.len, from.len, "numbers");
        // SAFETY: as many bytes as both places have.
        unsafe { self.device.copy(to.at, from.at, 4 * to.len) }
    }

    /// Copies bytes on the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn copy_bytes(&self, to: Bytes<'_>, from: Bytes<'_>) -> Done {
        assert_eq!(to.len, from.len, "bytes");
        // SAFETY: as many bytes as both places have.
        unsafe { self.device.copy(to.at, from.at, to.len) }
    }

    /// Sets numbers to 0.
    ///
    /// # Errors
    /// What the driver says.
    pub fn clear(&self, at: Numbers<'_>) -> Done {
        // SAFETY: as many bytes as the place has.
        unsafe { self.device.clear(at.at, 4 * at.len) }
    }

    /// The windows of pictures of bytes, multiplied by `factor`: `[frames, windows, numbers of a window]`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn windows_of_bytes(
        &self,
        windows: &Windows,
        pictures: Bytes<'_>,
        factor: f32,
        to: Numbers<'_>,
    ) -> Done {
        let frames = pictures.len / windows.pixels();
        assert_eq!(pictures.len, frames * windows.pixels(), "pictures");
        let threads = frames * windows.count() * windows.len();
        assert_eq!(to.len, threads, "windows");
        self.launch("windows_of_bytes", &[to.at, pictures.at], windows.sizes(), factor, threads)
    }

    /// The windows of pictures; those that are `fresh`, if it is given, count as zeros.
    ///
    /// # Errors
    /// What the driver says.
    pub fn windows(
        &self,
        windows: &Windows,
        pictures: Numbers<'_>,
        fresh: Option<Bytes<'_>>,
        to: Numbers<'_>,
    ) -> Done {
        let frames = pictures.len / windows.pixels();
        assert_eq!(pictures.len, frames * windows.pixels(), "pictures");
        assert!(fresh.is_none_or(|fresh| fresh.len == frames), "fresh pictures");
        let threads = frames * windows.count() * windows.len();
        assert_eq!(to.len, threads, "windows");
        let fresh = fresh.map_or(0, |fresh| fresh.at);
        self.launch("windows", &[to.at, pictures.at, fresh], windows.sizes(), 0.0, threads)
    }

    /// The gradient of pictures from that of their windows.
    ///
    /// # Errors
    /// What the driver says.
    pub fn pictures_of_windows(&self, windows: &Windows, d_windows: Numbers<'_>, to: Numbers<'_>) -> Done {
        let frames = to.len / windows.pixels();
        assert_eq!(to.len, frames * windows.pixels(), "pictures");
        assert_eq!(d_windows.len, frames * windows.count() * windows.len(), "windows");
        self.launch("pictures_of_windows", &[to.at, d_windows.at], windows.sizes(), 0.0, to.len)
    }

    /// Adds a bias to every row, then relu if wanted.
    ///
    /// # Errors
    /// What the driver says.
    pub fn add_bias(&self, rows: Numbers<'_>, bias: Numbers<'_>, relu: bool) -> Done {
        assert_eq!(rows.len % bias.len, 0, "rows of {} numbers", bias.len);
        let sizes = sizes([bias.len, usize::from(relu)]);
        self.launch("add_bias", &[rows.at, bias.at], sizes, 0.0, rows.len)
    }

    /// The gradient through relu, whose outputs are given.
    ///
    /// # Errors
    /// What the driver says.
    pub fn relu_backward(&self, d: Numbers<'_>, outputs: Numbers<'_>) -> Done {
        assert_eq!(d.len, outputs.len, "outputs");
        self.launch("relu_backward", &[d.at, outputs.at], [0; 12], 0.0, d.len)
    }

    /// to += from.
    ///
    /// # Errors
    /// What the driver says.
    pub fn add(&self, to: Numbers<'_>, from: Numbers<'_>) -> Done {
        assert_eq!(to.len, from.len, "numbers");
        self.launch("add", &[to.at, from.at], [0; 12], 0.0, to.len)
    }

    /// to = from, with zeros in the rows that are `fresh`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn keep(&self, to: Numbers<'_>, from: Numbers<'_>, fresh: Bytes<'_>) -> Done {
        assert_eq!(to.len, from.len, "numbers");
        assert_eq!(to.len % fresh.len, 0, "rows");
        self.launch("keep", &[to.at, from.at, fresh.at], sizes([to.len / fresh.len]), 0.0, to.len)
    }

    /// The gates of LSTMs of `units` units; sums become gates. States are `[rows, units]`, and `fresh` has a byte for each
    /// sequence, of which every one has as many rows.
    ///
    /// # Errors
    /// What the driver says.
    #[allow(clippy::too_many_arguments, reason = "the parts of a cell")]
    pub fn gates(
        &self,
        units: usize,
        forget_bias: f32,
        sums: Numbers<'_>,
        last: Numbers<'_>,
        fresh: Bytes<'_>,
        [h, c, tanh_c]: [Numbers<'_>; 3],
    ) -> Done {
        let rows = cells(units, fresh, sums, &[last, h, c, tanh_c]);
        let arrays = [sums.at, last.at, fresh.at, h.at, c.at, tanh_c.at];
        self.launch("gates", &arrays, sizes([units, rows]), forget_bias, h.len)
    }

    /// Their gradient: gates become the gradient of the sums, and `d_c`, that of c, becomes that of the last c.
    ///
    /// # Errors
    /// What the driver says.
    #[allow(clippy::too_many_arguments, reason = "the parts of a cell")]
    pub fn gates_backward(
        &self,
        units: usize,
        gates: Numbers<'_>,
        last: Numbers<'_>,
        fresh: Bytes<'_>,
        [tanh_c, d_h, d_c]: [Numbers<'_>; 3],
    ) -> Done {
        let rows = cells(units, fresh, gates, &[last, tanh_c, d_h, d_c]);
        let arrays = [gates.at, last.at, fresh.at, tanh_c.at, d_h.at, d_c.at];
        self.launch("gates_backward", &arrays, sizes([units, rows]), 0.0, d_h.len)
    }

    /// Adds contents to `scores`, `[batch, heads, cells]`, which hold the places' part, and scales them.
    ///
    /// # Errors
    /// What the driver says.
    pub fn scores(&self, of: &Attention, scores: Numbers<'_>, queries: Numbers<'_>, h: Numbers<'_>) -> Done {
        let batch = h.len / (of.cells * of.channels);
        assert_eq!(h.len, batch * of.cells * of.channels, "cells");
        assert_eq!(queries.len, batch * of.heads * of.width(), "queries");
        assert_eq!(scores.len, batch * of.heads * of.cells, "scores");
        let sizes = sizes([of.heads, of.cells, of.keys, of.width(), of.channels]);
        self.launch("scores", &[scores.at, queries.at, h.at], sizes, of.scale, scores.len)
    }

    /// Softmax of rows of `len` numbers, in place.
    ///
    /// # Errors
    /// What the driver says.
    pub fn softmax(&self, rows: Numbers<'_>, len: usize) -> Done {
        assert_eq!(rows.len % len, 0, "rows of {len} numbers");
        self.launch("softmax", &[rows.at], sizes([len]), 0.0, rows.len / len)
    }

    /// Its gradient, times `scale`, in place of that of the weights.
    ///
    /// # Errors
    /// What the driver says.
    pub fn softmax_backward(&self, d: Numbers<'_>, weights: Numbers<'_>, len: usize, scale: f32) -> Done {
        assert_eq!(d.len, weights.len, "weights");
        assert_eq!(d.len % len, 0, "rows of {len} numbers");
        self.launch("softmax_backward", &[d.at, weights.at], sizes([len]), scale, d.len / len)
    }

    /// Puts answers, queries and what the last step was in one row for each sequence.
    ///
    /// # Errors
    /// What the driver says.
    pub fn gather_answers(&self, of: &Attention, to: Numbers<'_>, from: [Numbers<'_>; 4]) -> Done {
        let batch = answers(of, to, &from);
        assert_eq!(from[3].len, batch * of.told, "last steps");
        let arrays = [to.at, from[0].at, from[1].at, from[2].at, from[3].at];
        self.launch("gather_answers", &arrays, of.gather_sizes(), 0.0, to.len)
    }

    /// Its gradient: that of contents, places and queries.
    ///
    /// # Errors
    /// What the driver says.
    pub fn scatter_answers(&self, of: &Attention, from: Numbers<'_>, to: [Numbers<'_>; 3]) -> Done {
        let batch = answers(of, from, &to);
        let threads = batch * of.heads * (of.channels + of.basis + of.width());
        let arrays = [from.at, to[0].at, to[1].at, to[2].at];
        self.launch("scatter_answers", &arrays, of.gather_sizes(), 0.0, threads)
    }

    /// The gradient of cells, `[batch, cells, channels]`, from scores, queries, weights and contents.
    ///
    /// # Errors
    /// What the driver says.
    pub fn cells_backward(
        &self,
        of: &Attention,
        d_h: Numbers<'_>,
        [d_scores, queries, weights, d_contents]: [Numbers<'_>; 4],
    ) -> Done {
        let batch = d_h.len / (of.cells * of.channels);
        assert_eq!(d_h.len, batch * of.cells * of.channels, "cells");
        for scores in [d_scores, weights] {
            assert_eq!(scores.len, batch * of.heads * of.cells, "scores");
        }
        assert_eq!(queries.len, batch * of.heads * of.width(), "queries");
        assert_eq!(d_contents.len, batch * of.heads * of.channels, "contents");
        let sizes = sizes([of.heads, of.cells, of.keys, of.width(), of.channels]);
        let arrays = [d_h.at, d_scores.at, queries.at, weights.at, d_contents.at];
        self.launch("cells_backward", &arrays, sizes, 0.0, d_h.len)
    }

    /// Adds to the gradient of queries that of contents, `[rows, channels]`, and places, `[rows, basis]`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn queries_backward(
        &self,
        of: &Attention,
        d: Numbers<'_>,
        contents: Numbers<'_>,
        places: Numbers<'_>,
    ) -> Done {
        let rows = d.len / of.width();
        assert_eq!(d.len, rows * of.width(), "queries");
        assert_eq!((contents.len, places.len), (rows * of.channels, rows * of.basis), "sums over cells");
        let sizes = sizes([of.keys, of.width(), of.channels, of.basis]);
        self.launch("queries_backward", &[d.at, contents.at, places.at], sizes, 0.0, d.len)
    }

    /// Adds the sum of all rows to `to`; `room` has space for sums of blocks.
    ///
    /// # Errors
    /// What the driver says.
    pub fn add_rows(&self, to: Numbers<'_>, rows: Numbers<'_>, room: Numbers<'_>) -> Done {
        let columns = to.len;
        let mut count = rows.len / columns;
        assert_eq!(rows.len, count * columns, "rows of {columns} numbers");
        let mut from = rows;
        let mut rest = room;
        while count > 1 {
            let block = count.isqrt().clamp(2, 256);
            let blocks = count.div_ceil(block);
            let sums = rest.part(0, blocks * columns);
            rest = rest.part(sums.len, rest.len - sums.len);
            self.launch("sum_rows", &[sums.at, from.at], sizes([columns, block, count]), 0.0, sums.len)?;
            (from, count) = (sums, blocks);
        }
        self.add(to, from.part(0, columns))
    }

    /// C = A B or C += A B; see [`Product`].
    ///
    /// # Errors
    /// What the library says.
    pub fn product(&self, product: Product<'_>) -> Done {
        let Product { a, b, c, sizes, add } = product;
        let Sizes { m, n, k, batch } = sizes;
        check(a, [m, k], batch);
        check(b, [k, n], batch);
        check(c, [m, n], batch);
        let matrix = |of: Operand<'_>| Matrix {
            at: of.of.at,
            stride: of.stride,
            transposed: of.transposed,
            apart: of.apart,
        };
        // SAFETY: all three lie inside their numbers.
        unsafe { self.device.product(matrix(a), matrix(b), matrix(c), sizes, add) }
    }
}

fn check(of: Operand<'_>, [rows, columns]: [usize; 2], batch: usize) {
    let [rows, columns] = if of.transposed { [columns, rows] } else { [rows, columns] };
    assert!(columns <= of.stride, "rows of {columns} numbers, {} apart", of.stride);
    let end = of.apart * (batch - 1) + (rows - 1) * of.stride + columns;
    assert!(end <= of.of.len, "{batch} matrices of {rows} x {columns} in {} numbers", of.of.len);
}

/// Rows for each sequence.
fn cells(units: usize, fresh: Bytes<'_>, sums: Numbers<'_>, states: &[Numbers<'_>]) -> usize {
    assert_eq!(sums.len % (4 * units * fresh.len), 0, "sums of {units} units");
    for state in states {
        assert_eq!(4 * state.len, sums.len, "state");
    }
    sums.len / (4 * units * fresh.len)
}

/// Sequences in rows of answers.
fn answers(of: &Attention, rows: Numbers<'_>, parts: &[Numbers<'_>]) -> usize {
    let batch = rows.len / of.seen();
    assert_eq!(rows.len, batch * of.seen(), "answers");
    for (part, len) in parts.iter().zip([of.channels, of.basis, of.width()]) {
        assert_eq!(part.len, batch * of.heads * len, "parts of answers");
    }
    batch
}

/// A matrix in numbers on the device.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    of: Numbers<'a>,
    stride: usize,
    transposed: bool,
    apart: usize,
}

impl<'a> Operand<'a> {
    /// Rows of `columns` numbers each.
    pub const fn new(of: Numbers<'a>, columns: usize) -> Self {
        Operand { of, stride: columns, transposed: false, apart: 0 }
    }

    /// Its transpose.
    #[must_use]
    pub const fn transposed(self) -> Self {
        Operand { transposed: !self.transposed, ..self }
    }

    /// The first of several, so many numbers apart.
    #[must_use]
    pub const fn every(self, apart: usize) -> Self {
        Operand { apart, ..self }
    }
}

/// A product of matrices: C = A B, or C += A B.
#[derive(Debug, Clone, Copy)]
pub struct Product<'a> {
    /// `[m, k]`
    pub a: Operand<'a>,
    /// `[k, n]`
    pub b: Operand<'a>,
    /// `[m, n]`
    pub c: Operand<'a>,
    /// The sizes.
    pub sizes: Sizes,
    /// Adds to C.
    pub add: bool,
}
