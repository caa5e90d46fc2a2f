//! The products of Winograd's convolution of 3 × 3 pixels, and the way back to its outputs (Lavin and Gray 2016, "Fast Algorithms
//! for Convolutional Neural Networks", F(2 × 2, 3 × 3)).
//!
//! A tile of 2 × 2 outputs is made of 16 sums over channels. They stay in registers and in the nearest cache until they are
//! outputs, so few of them are ever in memory. A sum is a chain of fused multiply-adds over the channels in ascending order,
//! which starts at zero, and the way back adds in a fixed order: the bits are the same on every instruction set.

use crate::Level;
use crate::gemm::{Eight, Register, Sixteen, View, pack_right};
use crate::lanes::{Isa, Task};

/// Numbers of a transformed tile, and of a transformed filter.
const PLACES: usize = 16;
/// The most outputs that are computed together; a layer has as many.
const MOST_TOGETHER: usize = 32;
/// Registers of outputs that are computed together.
const REGISTERS: usize = 2;

/// Sixteen matrices, each a row of `channels` numbers per tile or per output.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The numbers of the sixteen, one after the other.
    pub numbers: &'a [f32],
    /// From the beginning of one to that of the next.
    pub stride: usize,
}

/// Sizes of a convolution of 3 × 3 pixels, with zeros around the picture, at every pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WinogradShape {
    /// Rows of a picture.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Numbers of a pixel.
    pub channels: usize,
    /// Numbers of an output, at least 32.
    pub outputs: usize,
}

impl WinogradShape {
    /// Rows and columns of tiles of a picture.
    pub const fn tiles(self) -> [usize; 2] {
        [self.height.div_ceil(2), self.width.div_ceil(2)]
    }

    /// Numbers of scratch space.
    pub const fn room(self) -> usize {
        PLACES * self.channels * MOST_TOGETHER
    }

    /// Computes the outputs of pictures, `[pictures, height, width, outputs]`, each plus its number of the bias.
    ///
    /// * `pixels`: transformed tiles, `[16, pictures · tiles, channels]`
    /// * `filters`: transformed filters, `[16, outputs, channels]`
    /// * `room`: scratch space of [`WinogradShape::room`] numbers or more
    ///
    /// # Panics
    /// When the sizes do not fit together, or there are fewer than 32 outputs.
    pub fn outputs(
        self,
        level: Level,
        pixels: Places<'_>,
        filters: Places<'_>,
        bias: Option<&[f32]>,
        to: &mut [f32],
        room: &mut [f32],
    ) {
        let WinogradShape { height, width, channels, outputs } = self;
        assert!(outputs >= MOST_TOGETHER, "{outputs} outputs, where {MOST_TOGETHER} are computed together");
        let picture = height * width * outputs;
        assert!(picture > 0 && to.len().is_multiple_of(picture), "numbers of whole pictures");
        let [down, across] = self.tiles();
        let tiles = to.len() / picture * down * across;
        for (places, rows) in [(pixels, tiles), (filters, outputs)] {
            assert!(places.stride >= rows * channels, "a place holds {rows} rows of {channels} numbers");
            assert!(places.numbers.len() >= (PLACES - 1) * places.stride + rows * channels, "sixteen places");
        }
        assert!(bias.is_none_or(|bias| bias.len() == outputs), "numbers of the bias and outputs");
        assert!(room.len() >= self.room(), "scratch space of {} numbers, not {}", self.room(), room.len());
        level.run(Outputs { of: self, tiles, pixels, filters, bias, to, panel: room });
    }
}

struct Outputs<'a> {
    of: WinogradShape,
    tiles: usize,
    pixels: Places<'a>,
    filters: Places<'a>,
    bias: Option<&'a [f32]>,
    to: &'a mut [f32],
    /// The filters of some outputs, `[16, channels, outputs]`.
    panel: &'a mut [f32],
}

impl Task for Outputs<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        // As many sums as the registers hold, of 32 or of 16.
        if I::ROWS == 4 {
            self.in_blocks::<I, Sixteen, 8>(isa);
        } else {
            self.in_blocks::<I, Eight, 6>(isa);
        }
    }
}

impl Outputs<'_> {
    /// `R` tiles and two registers of outputs at a time.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "places, tiles and registers, several arrays at a time")]
    fn in_blocks<I: Isa, L: Register, const R: usize>(self, isa: I) {
        let Outputs { of, tiles, pixels, filters, bias, to, panel } = self;
        let WinogradShape { height, width, channels: c, outputs: n } = of;
        let [down, across] = of.tiles();
        let together = REGISTERS * L::N;
        let mut sums = [[[L::splat(isa, 0.0); REGISTERS]; R]; PLACES];
        for first in (0..n).step_by(together) {
            // The last outputs may be computed twice, with the same sums.
            let first = first.min(n - together);
            for (place, panel) in panel[..PLACES * c * together].chunks_exact_mut(c * together).enumerate() {
                let of_place = &filters.numbers[place * filters.stride..][..n * c];
                let filters = View::new(of_place, n, c).transposed();
                for w in 0..REGISTERS {
                    let columns = (first + w * L::N, L::N);
                    pack_right::<I, L>(isa, filters, (0, c), columns, &mut panel[w * L::N..], together);
                }
            }
            let mut more = [L::splat(isa, 0.0); REGISTERS];
            if let Some(bias) = bias {
                for w in 0..REGISTERS {
                    more[w] = L::load(isa, &bias[first + w * L::N..]);
                }
            }
            for begin in (0..tiles).step_by(R) {
                let count = R.min(tiles - begin);
                for (place, panel) in panel[..PLACES * c * together].chunks_exact(c * together).enumerate() {
                    let of_place = &pixels.numbers[place * pixels.stride..][..tiles * c];
                    // After the last tile it is repeated, with the same sums.
                    let mut rows = [&[] as &[f32]; R];
                    for r in 0..R {
                        rows[r] = &of_place[(begin + r.min(count - 1)) * c..][..c];
                    }
                    sums[place] = chains::<I, L, R>(isa, rows, panel, c);
                }
                for r in 0..count {
                    let tile = begin + r;
                    let (row, column) = (tile / across % down * 2, tile % across * 2);
                    let picture =
                        &mut to[tile / (down * across) * height * width * n..][..height * width * n];
                    for w in 0..REGISTERS {
                        let mut x = [L::splat(isa, 0.0); PLACES];
                        for place in 0..PLACES {
                            x[place] = sums[place][r][w];
                        }
                        let y = back::<I, L>(isa, x);
                        for i in 0..2.min(height - row) {
                            for j in 0..2.min(width - column) {
                                let at = ((row + i) * width + column + j) * n + first + w * L::N;
                                L::store::<I>(L::add::<I>(y[2 * i + j], more[w]), &mut picture[at..]);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The sums of `R` tiles over `c` channels.
#[inline(always)]
fn chains<I: Isa, L: Register, const R: usize>(
    isa: I,
    rows: [&[f32]; R],
    panel: &[f32],
    c: usize,
) -> [[L::V<I>; REGISTERS]; R] {
    let mut own = [[L::splat(isa, 0.0); REGISTERS]; R];
    for (k, filters) in panel.chunks_exact(REGISTERS * L::N).take(c).enumerate() {
        let mut columns = [L::splat(isa, 0.0); REGISTERS];
        for w in 0..REGISTERS {
            columns[w] = L::load(isa, &filters[w * L::N..]);
        }
        for r in 0..R {
            let x = L::splat(isa, rows[r][k]);
            for w in 0..REGISTERS {
                own[r][w] = L::mul_add::<I>(x, columns[w], own[r][w]);
            }
        }
    }
    own
}

/// The 2 × 2 outputs of 4 × 4 sums, without the bias.
#[inline(always)]
fn back<I: Isa, L: Register>(isa: I, x: [L::V<I>; PLACES]) -> [L::V<I>; 4] {
    let mut rows = [L::splat(isa, 0.0); 8];
    for i in 0..4 {
        let [a, b, c, d] = [x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]];
        rows[2 * i] = L::add::<I>(L::add::<I>(a, b), c);
        rows[2 * i + 1] = L::sub::<I>(L::sub::<I>(b, c), d);
    }
    let mut y = [L::splat(isa, 0.0); 4];
    for j in 0..2 {
        let [a, b, c, d] = [rows[j], rows[2 + j], rows[4 + j], rows[6 + j]];
        y[j] = L::add::<I>(L::add::<I>(a, b), c);
        y[2 + j] = L::sub::<I>(L::sub::<I>(b, c), d);
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = foveate_core::Seed::root(seed).rng();
        (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
    }

    /// The chains and the way back, written out.
    fn plain(of: WinogradShape, pixels: Places<'_>, filters: Places<'_>, bias: &[f32], to: &mut [f32]) {
        let WinogradShape { height, width, channels: c, outputs: n } = of;
        let [down, across] = of.tiles();
        for (i, y) in to.iter_mut().enumerate() {
            let (output, cell) = (i % n, i / n);
            let (picture, row, column) = (cell / (height * width), cell / width % height, cell % width);
            let tile = (picture * down + row / 2) * across + column / 2;
            let sums: [f32; PLACES] = std::array::from_fn(|place| {
                let x = &pixels.numbers[place * pixels.stride + tile * c..][..c];
                let w = &filters.numbers[place * filters.stride + output * c..][..c];
                x.iter().zip(w).fold(0.0, |sum, (x, w)| x.mul_add(*w, sum))
            });
            let pick =
                |x: [f32; 4], second: bool| if second { x[1] - x[2] - x[3] } else { x[0] + x[1] + x[2] };
            let rows = [0, 1, 2, 3].map(|i| {
                let row = [0, 1, 2, 3].map(|j| sums[4 * i + j]);
                pick(row, column % 2 == 1)
            });
            *y = pick(rows, row % 2 == 1) + bias[output];
        }
    }

    /// Runs in the blocks of processors with 32 registers.
    struct Wide<'a>(Outputs<'a>);

    impl Task for Wide<'_> {
        type Out = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            self.0.in_blocks::<I, Sixteen, 8>(isa);
        }
    }

    #[test]
    fn every_level_adds_the_same_chains() {
        for (height, width, channels, outputs, pictures) in
            [(1, 1, 1, 32, 1), (4, 6, 3, 40, 2), (5, 3, 17, 33, 3), (11, 11, 32, 128, 2), (2, 7, 40, 63, 25)]
        {
            let of = WinogradShape { height, width, channels, outputs };
            let tiles = pictures * of.tiles().iter().product::<usize>();
            let stride = |rows: usize| rows * channels + 5;
            let (pixels, filters) =
                (numbers(PLACES * stride(tiles), 1), numbers(PLACES * stride(outputs), 2));
            let pixels = Places { numbers: &pixels, stride: stride(tiles) };
            let filters = Places { numbers: &filters, stride: stride(outputs) };
            let bias = numbers(outputs, 3);
            let mut want = vec![0.0; pictures * height * width * outputs];
            plain(of, pixels, filters, &bias, &mut want);
            for level in Level::available() {
                let (mut got, mut room) = (vec![f32::NAN; want.len()], vec![f32::NAN; of.room()]);
                of.outputs(level, pixels, filters, Some(&bias), &mut got, &mut room);
                assert_eq!(got, want, "{level}: {of:?}");
            }
            let (mut got, mut panel) = (vec![f32::NAN; want.len()], vec![f32::NAN; of.room()]);
            let (bias, to) = (Some(&bias[..]), &mut got[..]);
            let task = Wide(Outputs { of, tiles, pixels, filters, bias, to, panel: &mut panel });
            Level::best().run(task);
            assert_eq!(got, want, "in the blocks of 32 registers: {of:?}");
        }
    }

    #[test]
    #[should_panic(expected = "sixteen places")]
    fn all_sixteen_places_are_needed() {
        let of = WinogradShape { height: 2, width: 2, channels: 1, outputs: 32 };
        let (pixels, filters) = (vec![0.0; 15], vec![0.0; 16 * 32]);
        let pixels = Places { numbers: &pixels, stride: 1 };
        let filters = Places { numbers: &filters, stride: 32 };
        of.outputs(Level::best(), pixels, filters, None, &mut vec![0.0; 4 * 32], &mut vec![0.0; of.room()]);
    }
}
