//! Convolutions of 3 × 3 pixels with fewer multiplications (Winograd 1980; Lavin and Gray 2016, "Fast Algorithms for
//! Convolutional Neural Networks", F(2 × 2, 3 × 3)).
//!
//! The output is cut into tiles of 2 × 2. A tile depends on 4 × 4 pixels; these and the filter are transformed to 16 numbers each,
//! multiplied number by number, summed over channels, and transformed back: 16 multiplications for 4 outputs, where the
//! definition has 36. For many channels nearly all of that is 16 matrix products. The backward pass is the exact transpose of
//! each step, so it saves as much.
//!
//! All transforms are sums in a fixed order, so the bits are the same on every instruction set. They differ from those of the
//! definition by a few roundings.

#![allow(clippy::inline_always, reason = "compiled anew for every instruction set, see `Plain`")]
#![allow(clippy::needless_range_loop, reason = "places of small squares, several at a time")]

use foveate_kernels::Level;
use foveate_kernels::gemm::{Axis, Gemm, View};
use foveate_kernels::plain::Plain;
use foveate_kernels::winograd::{Places, WinogradShape};

/// Numbers that the transforms handle at a time.
const LANES: usize = 8;
/// Numbers of a transformed tile.
const PLACES: usize = 16;
/// Fewer channels or outputs do not pay for the transforms.
const LEAST: [usize; 2] = [32, 64];
/// Tiles that are multiplied together in the forward pass, of several pictures if they are small.
const TILES: usize = 160;

/// Numbers from one place of transformed tiles to the next, for so many of a place: 16 numbers that are written together
/// must not lie in one set of a cache.
const fn stride(len: usize) -> usize {
    len.next_multiple_of(1024) + 64
}

type Lane = [f32; LANES];

/// A convolution of 3 × 3 pixels, with zeros around the picture, at every pixel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Winograd(pub(crate) WinogradShape);

#[inline(always)]
fn lane(from: &[f32]) -> Lane {
    *from.first_chunk().expect("numbers of a lane")
}

#[inline(always)]
fn add(a: Lane, b: Lane) -> Lane {
    let mut sum = a;
    for i in 0..LANES {
        sum[i] += b[i];
    }
    sum
}

#[inline(always)]
fn sub(a: Lane, b: Lane) -> Lane {
    let mut difference = a;
    for i in 0..LANES {
        difference[i] -= b[i];
    }
    difference
}

#[inline(always)]
fn half(a: Lane) -> Lane {
    let mut half = a;
    for x in &mut half {
        *x *= 0.5;
    }
    half
}

/// A transform of a few numbers in one direction.
trait Transform<const FROM: usize, const TO: usize> {
    fn apply(x: [Lane; FROM]) -> [Lane; TO];
}

/// Of pixels: 4 to 4.
struct Pixels;
/// Its transpose.
struct PixelsBack;
/// Of filters: 3 to 4.
struct Filters;
/// Its transpose.
struct FiltersBack;
/// Of gradients of outputs: 2 to 4. Its transpose makes the outputs.
struct Outputs;

impl Transform<4, 4> for Pixels {
    #[inline(always)]
    fn apply([a, b, c, d]: [Lane; 4]) -> [Lane; 4] {
        [sub(a, c), add(b, c), sub(c, b), sub(b, d)]
    }
}

impl Transform<4, 4> for PixelsBack {
    #[inline(always)]
    fn apply([a, b, c, d]: [Lane; 4]) -> [Lane; 4] {
        [a, add(sub(b, c), d), add(sub(b, a), c), sub([0.0; LANES], d)]
    }
}

impl Transform<3, 4> for Filters {
    #[inline(always)]
    fn apply([a, b, c]: [Lane; 3]) -> [Lane; 4] {
        let ends = add(a, c);
        [a, half(add(ends, b)), half(sub(ends, b)), c]
    }
}

impl Transform<4, 3> for FiltersBack {
    #[inline(always)]
    fn apply([a, b, c, d]: [Lane; 4]) -> [Lane; 3] {
        let middle = half(add(b, c));
        [add(a, middle), half(sub(b, c)), add(middle, d)]
    }
}

impl Transform<2, 4> for Outputs {
    #[inline(always)]
    fn apply([a, b]: [Lane; 2]) -> [Lane; 4] {
        [a, add(a, b), sub(a, b), sub([0.0; LANES], b)]
    }
}

/// In both directions: of every row, then of every column.
#[inline(always)]
fn square<T: Transform<FROM, TO>, const FROM: usize, const TO: usize>(
    x: [[Lane; FROM]; FROM],
) -> [[Lane; TO]; TO] {
    let mut rows = [[[0.0; LANES]; TO]; FROM];
    for i in 0..FROM {
        rows[i] = T::apply(x[i]);
    }
    let mut y = [[[0.0; LANES]; TO]; TO];
    for j in 0..TO {
        let mut column = [[0.0; LANES]; FROM];
        for i in 0..FROM {
            column[i] = rows[i][j];
        }
        let column = T::apply(column);
        for i in 0..TO {
            y[i][j] = column[i];
        }
    }
    y
}

/// `[outputs, 3, 3, channels]` to `[16, outputs, channels]`; this and the others leave a gap behind each of the 16, see [`stride`].
struct ToFilters<'a>(Winograd, &'a [f32], &'a mut [f32]);

impl Plain for ToFilters<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let ToFilters(Winograd(WinogradShape { channels: c, outputs: n, .. }), weight, to) = self;
        for (output, weight) in weight.chunks_exact(9 * c).enumerate() {
            for at in (0..c).step_by(LANES) {
                let mut x = [[[0.0; LANES]; 3]; 3];
                for i in 0..9 {
                    x[i / 3][i % 3] = lane(&weight[i * c + at..]);
                }
                let y = square::<Filters, 3, 4>(x);
                for place in 0..PLACES {
                    to[place * stride(n * c) + output * c + at..][..LANES]
                        .copy_from_slice(&y[place / 4][place % 4]);
                }
            }
        }
    }
}

/// Adds the gradient of the weight, from that of the transformed filters.
struct FromFilters<'a>(Winograd, &'a [f32], &'a mut [f32]);

impl Plain for FromFilters<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let FromFilters(Winograd(WinogradShape { channels: c, outputs: n, .. }), from, d_weight) = self;
        for (output, d_weight) in d_weight.chunks_exact_mut(9 * c).enumerate() {
            for at in (0..c).step_by(LANES) {
                let mut x = [[[0.0; LANES]; 4]; 4];
                for place in 0..PLACES {
                    x[place / 4][place % 4] = lane(&from[place * stride(n * c) + output * c + at..]);
                }
                let y = square::<FiltersBack, 4, 3>(x);
                for i in 0..9 {
                    let to = &mut d_weight[i * c + at..][..LANES];
                    to.copy_from_slice(&add(lane(to), y[i / 3][i % 3]));
                }
            }
        }
    }
}

/// Pictures `[pictures, height, width, channels]` to `[16, pictures · tiles, channels]`.
struct ToPixels<'a>(Winograd, &'a [f32], &'a mut [f32]);

impl Plain for ToPixels<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let ToPixels(of, from, to) = self;
        let (Winograd(WinogradShape { height, width, channels: c, .. }), [down, across]) = (of, of.tiles());
        let all = from.len() / (height * width) / c * down * across;
        for tile in 0..all {
            let picture = &from[tile / (down * across) * height * width * c..][..height * width * c];
            let (row, column) = (tile / across % down * 2, tile % across * 2);
            for at in (0..c).step_by(LANES) {
                let mut x = [[[0.0; LANES]; 4]; 4];
                for i in 0..4 {
                    for j in 0..4 {
                        // One more than the pixel, which may lie outside.
                        let (y, z) = (row + i, column + j);
                        if y >= 1 && y <= height && z >= 1 && z <= width {
                            x[i][j] = lane(&picture[((y - 1) * width + z - 1) * c + at..]);
                        }
                    }
                }
                let y = square::<Pixels, 4, 4>(x);
                for place in 0..PLACES {
                    to[place * stride(all * c) + tile * c + at..][..LANES]
                        .copy_from_slice(&y[place / 4][place % 4]);
                }
            }
        }
    }
}

/// Adds the gradient of one picture, from that of its transformed tiles.
struct FromPixels<'a>(Winograd, &'a [f32], &'a mut [f32]);

impl Plain for FromPixels<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let FromPixels(of, from, picture) = self;
        let (Winograd(WinogradShape { height, width, channels: c, .. }), [down, across]) = (of, of.tiles());
        let all = down * across;
        for tile in 0..all {
            let (row, column) = (tile / across * 2, tile % across * 2);
            for at in (0..c).step_by(LANES) {
                let mut x = [[[0.0; LANES]; 4]; 4];
                for place in 0..PLACES {
                    x[place / 4][place % 4] = lane(&from[place * stride(all * c) + tile * c + at..]);
                }
                let d = square::<PixelsBack, 4, 4>(x);
                for i in 0..4 {
                    for j in 0..4 {
                        let (y, z) = (row + i, column + j);
                        if y >= 1 && y <= height && z >= 1 && z <= width {
                            let to = &mut picture[((y - 1) * width + z - 1) * c + at..][..LANES];
                            to.copy_from_slice(&add(lane(to), d[i][j]));
                        }
                    }
                }
            }
        }
    }
}

/// The gradient of one picture's output, `[height, width, outputs]`, to `[16, tiles, outputs]`.
struct ToOutputs<'a>(Winograd, &'a [f32], &'a mut [f32]);

impl Plain for ToOutputs<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let ToOutputs(of, from, to) = self;
        let (Winograd(WinogradShape { height, width, outputs: n, .. }), [down, across]) = (of, of.tiles());
        let all = down * across;
        for tile in 0..all {
            let (row, column) = (tile / across * 2, tile % across * 2);
            for at in (0..n).step_by(LANES) {
                let mut x = [[[0.0; LANES]; 2]; 2];
                for i in 0..2.min(height - row) {
                    for j in 0..2.min(width - column) {
                        x[i][j] = lane(&from[((row + i) * width + column + j) * n + at..]);
                    }
                }
                let y = square::<Outputs, 2, 4>(x);
                for place in 0..PLACES {
                    to[place * stride(all * n) + tile * n + at..][..LANES]
                        .copy_from_slice(&y[place / 4][place % 4]);
                }
            }
        }
    }
}

impl Winograd {
    /// Returns whether it is computed so: there are enough channels and outputs, and they fill lanes.
    pub(crate) const fn suits(self) -> bool {
        let Winograd(WinogradShape { channels, outputs, .. }) = self;
        channels >= LEAST[0]
            && outputs >= LEAST[1]
            && channels.is_multiple_of(LANES)
            && outputs.is_multiple_of(LANES)
    }

    /// Rows and columns of tiles.
    const fn tiles(self) -> [usize; 2] {
        self.0.tiles()
    }

    const fn count(self) -> usize {
        let [down, across] = self.tiles();
        down * across
    }

    /// Pictures that the forward pass handles together. This changes no bit.
    const fn together(self) -> usize {
        let together = TILES / self.count();
        if together == 0 { 1 } else { together }
    }

    /// Numbers in the transformed filters, pixels and outputs of so many pictures.
    fn sizes(self, pictures: usize) -> [usize; 3] {
        let Winograd(WinogradShape { channels, outputs, .. }) = self;
        let tiles = pictures * self.count();
        [outputs * channels, tiles * channels, tiles * outputs].map(|len| PLACES * stride(len))
    }

    /// Numbers of scratch space.
    pub(crate) fn room(self) -> usize {
        let [filters, pixels, _] = self.sizes(self.together());
        // Backward there is one picture, and the gradients of filters and pixels take the places of these.
        let [_, of_one, outputs] = self.sizes(1);
        filters + (pixels + self.0.room()).max(of_one + outputs)
    }

    /// Computes the outputs of pictures `[pictures, height, width, channels]`.
    pub(crate) fn forward(
        self,
        level: Level,
        (weight, bias): (&[f32], Option<&[f32]>),
        pictures: &[f32],
        output: &mut [f32],
        room: &mut [f32],
    ) {
        let Winograd(WinogradShape { height, width, channels: c, outputs: n }) = self;
        let (cells, together) = (height * width, self.together());
        let (filters, room) = room.split_at_mut(self.sizes(1)[0]);
        level.run_plain(ToFilters(self, weight, filters));
        let parts = pictures.chunks(together * cells * c).zip(output.chunks_mut(together * cells * n));
        for (pictures, output) in parts {
            let tiles = pictures.len() / (cells * c) * self.count();
            let (pixels, room) = room.split_at_mut(PLACES * stride(tiles * c));
            level.run_plain(ToPixels(self, pictures, pixels));
            let pixels = Places { numbers: pixels, stride: stride(tiles * c) };
            let filters = Places { numbers: filters, stride: stride(n * c) };
            self.0.outputs(level, pixels, filters, bias, output, room);
        }
    }

    /// Adds the gradients with respect to the weight and, where it is wanted, to one picture.
    #[allow(clippy::too_many_arguments, reason = "what a backward pass of a layer gets, without the batch")]
    pub(crate) fn backward(
        self,
        level: Level,
        gemm: &mut Gemm,
        weight: &[f32],
        picture: &[f32],
        dy: &[f32],
        d_weight: &mut [f32],
        d_picture: Option<&mut [f32]>,
        room: &mut [f32],
    ) {
        let Winograd(WinogradShape { channels: c, outputs: n, .. }) = self;
        let ([filters, pixels, outputs], tiles) = (self.sizes(1), self.count());
        let (filters, room) = room.split_at_mut(filters);
        let (pixels, room) = room.split_at_mut(pixels);
        let outputs = &mut room[..outputs];
        level.run_plain(ToPixels(self, picture, pixels));
        level.run_plain(ToOutputs(self, dy, outputs));
        for ((filters, pixels), outputs) in filters
            .chunks_exact_mut(stride(n * c))
            .zip(pixels.chunks_exact(stride(tiles * c)))
            .zip(outputs.chunks_exact(stride(tiles * n)))
        {
            let outputs = View::with_stride(outputs, tiles, n, n).transposed();
            let pixels = View::with_stride(pixels, tiles, c, c);
            gemm.product_at(level, outputs, pixels, None, filters, Axis::every(n, c));
        }
        level.run_plain(FromFilters(self, filters, d_weight));
        let Some(d_picture) = d_picture else { return };
        level.run_plain(ToFilters(self, weight, filters));
        for ((filters, pixels), outputs) in filters
            .chunks_exact(stride(n * c))
            .zip(pixels.chunks_exact_mut(stride(tiles * c)))
            .zip(outputs.chunks_exact(stride(tiles * n)))
        {
            let outputs = View::with_stride(outputs, tiles, n, n);
            let filters = View::with_stride(filters, n, c, c);
            gemm.product_at(level, outputs, filters, None, pixels, Axis::every(tiles, c));
        }
        level.run_plain(FromPixels(self, pixels, d_picture));
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = Seed::root(seed).rng();
        (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
    }

    #[track_caller]
    fn close(got: &[f32], want: &[f64], what: &str) {
        assert_eq!(got.len(), want.len(), "{what}");
        let largest = want.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            assert!((f64::from(*got) - want).abs() < 2e-6 * largest, "{what}, {i}: {got}, not {want}");
        }
    }

    /// Outputs and gradients by the definition, in double precision: every product of a pixel and a weight.
    fn plain(of: Winograd, weight: &[f32], bias: &[f32], x: &[f32], dy: &[f32]) -> [Vec<f64>; 3] {
        let Winograd(WinogradShape { height, width, channels: c, outputs: n }) = of;
        let cells = height * width;
        let (mut y, mut dw, mut dx) = (vec![], vec![1.0; weight.len()], vec![1.0; x.len()]);
        for picture in 0..x.len() / (cells * c) {
            for cell in 0..cells {
                for output in 0..n {
                    let mut sum = f64::from(bias[output]);
                    let slope = f64::from(dy[(picture * cells + cell) * n + output]);
                    for tap in 0..9 {
                        let (row, column) = (cell / width + tap / 3, cell % width + tap % 3);
                        if row == 0 || row > height || column == 0 || column > width {
                            continue;
                        }
                        let pixel = (picture * cells + (row - 1) * width + column - 1) * c;
                        for channel in 0..c {
                            let at = (output * 9 + tap) * c + channel;
                            let (w, x) = (f64::from(weight[at]), f64::from(x[pixel + channel]));
                            sum += w * x;
                            dw[at] += slope * x;
                            dx[pixel + channel] += slope * w;
                        }
                    }
                    y.push(sum);
                }
            }
        }
        [y, dw, dx]
    }

    #[test]
    fn it_is_the_convolution_and_its_gradient() {
        for (height, width, channels, outputs, pictures) in
            [(1, 1, 8, 32, 1), (4, 6, 8, 40, 2), (5, 3, 16, 32, 3), (27, 20, 32, 64, 1), (2, 7, 40, 72, 25)]
        {
            let of = Winograd(WinogradShape { height, width, channels, outputs });
            let cells = height * width;
            let (weight, bias) = (numbers(9 * channels * outputs, 1), numbers(outputs, 2));
            let (x, dy) = (numbers(pictures * cells * channels, 3), numbers(pictures * cells * outputs, 4));
            let [want, want_dw, want_dx] = plain(of, &weight, &bias, &x, &dy);
            let mut first = None;
            for level in Level::available() {
                let mut gemm = Gemm::default();
                // Scratch space of any content.
                let mut room = vec![f32::NAN; of.room()];
                let mut y = vec![f32::NAN; want.len()];
                of.forward(level, (&weight, Some(&bias)), &x, &mut y, &mut room);
                let (mut dw, mut dx) = (vec![1.0; weight.len()], vec![1.0; x.len()]);
                for picture in 0..pictures {
                    let here = picture * cells * channels..(picture + 1) * cells * channels;
                    let dy = &dy[picture * cells * outputs..][..cells * outputs];
                    let (x, dx) = (&x[here.clone()], Some(&mut dx[here]));
                    of.backward(level, &mut gemm, &weight, x, dy, &mut dw, dx, &mut room);
                }
                close(&y, &want, "outputs");
                close(&dw, &want_dw, "gradient of the weight");
                close(&dx, &want_dx, "gradient of the picture");
                // One picture after the other gives the same bits.
                let mut alone = vec![f32::NAN; want.len()];
                for (x, y) in x.chunks(cells * channels).zip(alone.chunks_mut(cells * outputs)) {
                    of.forward(level, (&weight, Some(&bias)), x, y, &mut room);
                }
                assert_eq!(alone, y, "{level}");
                let all = (y, dw, dx);
                assert!(*first.get_or_insert_with(|| all.clone()) == all, "{level} differs");
            }
        }
    }
}
