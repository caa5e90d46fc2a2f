//! Gradients of a convolution over pictures with channels last, which skip the zeros of the output's gradient.
//!
//! Behind a `ReLU`, much of that gradient is zero, and behind a maximum over 2 × 2 pixels, three quarters at least. So the
//! numbers that are not zero are listed first, each with the place of what it is multiplied by; and a piece of the result
//! stays in registers while a list is added to it. All pieces are a row of the kernel, whose numbers are neighbours.
//!
//! An element of the result is a chain of fused multiply-adds that starts at the element's old value, in an order that
//! depends on the sizes alone. So the bits are the same on every instruction set. A zero adds nothing, not even when it
//! meets an infinity.
//!
//! ```
//! use foveate_kernels::Level;
//! use foveate_kernels::conv_gradient::{ConvGradient, ConvShape};
//!
//! // One row of two pixels with eight channels, seen by one filter of one pixel.
//! let shape = ConvShape { from: [1, 2], channels: 8, kernel: [1, 1], stride: [1, 1], to: [1, 2], filters: 1 };
//! let (x, dy) = ([[1.0; 8], [2.0; 8]].concat(), [3.0, 0.5]);
//! let mut d_weight = [0.0; 8];
//! ConvGradient::default().add_weight(Level::best(), shape, &x, &dy, &mut d_weight);
//! assert_eq!(d_weight, [4.0; 8]);
//! ```

use crate::Level;
use crate::gemm::{Eight, Register, Sixteen};
use crate::lanes::{Block, Isa, Task, flat, flat_mut};

/// Sizes of a convolution without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Height and width of the picture.
    pub from: [usize; 2],
    /// Numbers in a pixel.
    pub channels: usize,
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Distance between windows, down and to the right.
    pub stride: [usize; 2],
    /// Rows and columns of windows.
    pub to: [usize; 2],
    /// Numbers in the output for each window.
    pub filters: usize,
}

impl ConvShape {
    /// Numbers in a row of the kernel.
    pub const fn row(&self) -> usize {
        self.kernel[1] * self.channels
    }

    /// Returns whether the functions here compute it: the rows of its kernel fill registers of eight numbers.
    pub const fn suits(&self) -> bool {
        let len = self.row();
        len > 0 && len.is_multiple_of(8)
    }

    /// Numbers in a picture, in the output and in the weight.
    fn lens(&self) -> [usize; 3] {
        let picture = self.from[0] * self.from[1] * self.channels;
        [picture, self.to[0] * self.to[1] * self.filters, self.filters * self.kernel[0] * self.row()]
    }

    fn check(&self, [picture, output, weight]: [usize; 3]) {
        assert!(self.suits(), "rows of a kernel that fill registers: {self:?}");
        let used = |i: usize| (self.to[i] - 1) * self.stride[i] + self.kernel[i];
        assert!(self.to.iter().all(|&to| to > 0) && self.filters > 0, "an output: {self:?}");
        assert!(used(0) <= self.from[0] && used(1) <= self.from[1], "windows inside the picture: {self:?}");
        assert_eq!(
            [picture, output, weight],
            self.lens(),
            "numbers of the picture, output and weight: {self:?}"
        );
        assert!([picture, output, weight].iter().all(|&len| len <= 1 << 30), "places of 32 bits: {self:?}");
    }
}

/// A number that is not zero, and the place of what it is multiplied by, as one number that is written at once.
#[derive(Debug, Clone, Copy, Default)]
struct Entry(u64);

impl Entry {
    #[inline(always)]
    const fn new(value: f32, place: u32) -> Self {
        Entry((place as u64) << 32 | value.to_bits() as u64)
    }

    #[inline(always)]
    const fn value(self) -> f32 {
        f32::from_bits(self.0 as u32)
    }

    #[inline(always)]
    const fn place(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns whether the number is neither zero nor negative zero.
    #[inline(always)]
    const fn counts(self) -> bool {
        (self.0 as u32) << 1 != 0
    }
}

/// Scratch space for the lists of numbers. It grows to the largest convolution.
#[derive(Debug, Clone, Default)]
pub struct ConvGradient {
    entries: Vec<Entry>,
    /// Where lists begin.
    starts: Vec<u32>,
    /// A copy of what the lists are multiplied by: few of its registers lie in two lines of a cache.
    copy: Vec<Block>,
}

impl ConvGradient {
    /// Adds the gradient with respect to the weight, `[filters, kernel height, kernel width, channels]`, to `d_weight`, for a
    /// picture `x` and the gradient `dy` with respect to the output, `[rows, columns, filters]`.
    ///
    /// # Panics
    /// When a length is wrong, or the shape does not [suit](ConvShape::suits).
    pub fn add_weight(
        &mut self,
        level: Level,
        shape: ConvShape,
        x: &[f32],
        dy: &[f32],
        d_weight: &mut [f32],
    ) {
        shape.check([x.len(), dy.len(), d_weight.len()]);
        self.reserve(shape.lens(), shape.filters);
        level.run(Weight { shape, x, dy, to: d_weight, lists: self });
    }

    /// Adds the gradient with respect to a picture to `dx`, for the weight and the gradient `dy` with respect to the output.
    ///
    /// # Panics
    /// As [`ConvGradient::add_weight`].
    pub fn add_picture(
        &mut self,
        level: Level,
        shape: ConvShape,
        weight: &[f32],
        dy: &[f32],
        dx: &mut [f32],
    ) {
        shape.check([dx.len(), dy.len(), weight.len()]);
        self.reserve(shape.lens(), shape.to[1] * (shape.to[0] + 1));
        level.run(Picture { shape, weight, dy, dx, lists: self });
    }

    fn reserve(&mut self, [picture, entries, weight]: [usize; 3], starts: usize) {
        let blocks = picture.max(weight).div_ceil(16);
        if self.copy.len() < blocks {
            self.copy.resize(blocks, Block::default());
        }
        // One more than is used: a zero is written, too, before it is passed over.
        if self.entries.len() <= entries {
            self.entries.resize(entries + 1, Entry::default());
        }
        if self.starts.len() <= starts {
            self.starts.resize(starts + 1, 0);
        }
    }
}

/// Numbers that stay in the first-level cache while lists go over them.
const CACHED: usize = 5 << 10;

/// The most registers of a piece.
const MOST: usize = 12;

/// Registers of the next piece, where `left` are left.
#[inline(always)]
const fn piece(left: usize) -> usize {
    match left {
        12 | 10 | 8 | 6 | 5 | 4 | 2 | 1 => left,
        19 | 20 => 10,
        9 | 13..=16 => 8,
        17.. => MOST,
        7 | 11 => 5,
        _ => 2,
    }
}

/// Adds every entry's value times the registers at its place in `from` to the numbers of `to`.
#[inline(always)]
fn chain<I: Isa, L: Register, const S: usize>(
    isa: I,
    entries: &[Entry],
    from: &[f32],
    base: usize,
    to: &mut [f32],
) {
    let to = &mut to[..S * L::N];
    let mut sums = [L::splat(isa, 0.0); S];
    for s in 0..S {
        sums[s] = L::load(isa, &to[s * L::N..]);
    }
    for entry in entries {
        let value = L::splat(isa, entry.value());
        let numbers = &from[entry.place().wrapping_add(base as u32) as usize..][..S * L::N];
        for s in 0..S {
            sums[s] = L::mul_add::<I>(value, L::load(isa, &numbers[s * L::N..]), sums[s]);
        }
    }
    for s in 0..S {
        L::store::<I>(sums[s], &mut to[s * L::N..]);
    }
}

/// [`chain`] for a number of registers that [`piece`] returns.
#[inline(always)]
fn chain_of<I: Isa, L: Register>(
    isa: I,
    registers: usize,
    entries: &[Entry],
    (from, base): (&[f32], usize),
    to: &mut [f32],
) {
    match registers {
        12 => chain::<I, L, 12>(isa, entries, from, base, to),
        10 => chain::<I, L, 10>(isa, entries, from, base, to),
        8 => chain::<I, L, 8>(isa, entries, from, base, to),
        6 => chain::<I, L, 6>(isa, entries, from, base, to),
        5 => chain::<I, L, 5>(isa, entries, from, base, to),
        4 => chain::<I, L, 4>(isa, entries, from, base, to),
        2 => chain::<I, L, 2>(isa, entries, from, base, to),
        _ => chain::<I, L, 1>(isa, entries, from, base, to),
    }
}

struct Weight<'a> {
    shape: ConvShape,
    x: &'a [f32],
    dy: &'a [f32],
    to: &'a mut [f32],
    lists: &'a mut ConvGradient,
}

impl Task for Weight<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if I::ROWS == 4 && self.shape.row().is_multiple_of(16) {
            self.with::<I, Sixteen>(isa);
        } else {
            self.with::<I, Eight>(isa);
        }
    }
}

impl Weight<'_> {
    #[inline(always)]
    fn with<I: Isa, L: Register>(self, isa: I) {
        let Weight { shape, x, dy, to: d_weight, lists: ConvGradient { entries, starts, copy } } = self;
        let ConvShape { from, channels, kernel, stride, to: [rows, columns], filters } = shape;
        let (wide, row) = (from[1] * channels, shape.row());
        let together = (CACHED / (wide * stride[0])).clamp(1, rows);
        flat_mut(copy)[..x.len()].copy_from_slice(x);
        let x = &flat(copy)[..x.len()];
        for first in (0..rows).step_by(together) {
            let last = rows.min(first + together);
            // Of every filter, what is not zero, and where its window begins.
            let mut len = 0;
            for filter in 0..filters {
                starts[filter] = len as u32;
                for y in first..last {
                    let dy = &dy[y * columns * filters..][..columns * filters];
                    let mut place = (y * stride[0] * wide) as u32;
                    for dy in dy.chunks_exact(filters) {
                        let value = dy[filter];
                        let entry = Entry::new(value, place);
                        entries[len] = entry;
                        len += usize::from(entry.counts());
                        place += (stride[1] * channels) as u32;
                    }
                }
            }
            starts[filters] = len as u32;
            for down in 0..kernel[0] {
                let mut at = 0;
                while at < row {
                    let registers = piece((row - at) / L::N);
                    for filter in 0..filters {
                        let list = &entries[starts[filter] as usize..starts[filter + 1] as usize];
                        let to = &mut d_weight[(filter * kernel[0] + down) * row + at..];
                        chain_of::<I, L>(isa, registers, list, (x, down * wide + at), to);
                    }
                    at += registers * L::N;
                }
            }
        }
    }
}

struct Picture<'a> {
    shape: ConvShape,
    weight: &'a [f32],
    dy: &'a [f32],
    dx: &'a mut [f32],
    lists: &'a mut ConvGradient,
}

impl Task for Picture<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if I::ROWS == 4 && self.shape.row().is_multiple_of(16) {
            self.with::<I, Sixteen>(isa);
        } else {
            self.with::<I, Eight>(isa);
        }
    }
}

impl Picture<'_> {
    #[inline(always)]
    fn with<I: Isa, L: Register>(self, isa: I) {
        let Picture { shape, weight, dy, dx, lists: ConvGradient { entries, starts, copy } } = self;
        let ConvShape { from, channels, kernel, stride, to: [rows, columns], filters } = shape;
        let (wide, row) = (from[1] * channels, shape.row());
        // The rows of the kernel one after the other, each of all filters.
        let slice = filters * row;
        let copy = &mut flat_mut(copy)[..weight.len()];
        for (at, from) in weight.chunks_exact(row).enumerate() {
            copy[at % kernel[0] * slice + at / kernel[0] * row..][..row].copy_from_slice(from);
        }
        let weight = &*copy;
        // Of every window, what is not zero, one column of windows after the other. The place is that of the weights for row
        // 0 of the picture, which may wrap around; for another row they lie a row of the kernel further on for each.
        let mut len = 0;
        for column in 0..columns {
            for y in 0..rows {
                starts[column * (rows + 1) + y] = len as u32;
                let mut place = 0_u32.wrapping_sub((y * stride[0] * slice) as u32);
                for &value in &dy[(y * columns + column) * filters..][..filters] {
                    let entry = Entry::new(value, place);
                    entries[len] = entry;
                    len += usize::from(entry.counts());
                    place = place.wrapping_add(row as u32);
                }
            }
            starts[column * (rows + 1) + rows] = len as u32;
        }
        // As many rows of the kernel at once as stay in the cache.
        let together = kernel[0].div_ceil(weight.len().div_ceil(CACHED));
        for first in (0..kernel[0]).step_by(together) {
            let last = kernel[0].min(first + together);
            for column in 0..columns {
                let starts = &starts[column * (rows + 1)..][..=rows];
                let dx = &mut dx[column * stride[1] * channels..];
                for y in first..(rows - 1) * stride[0] + last {
                    // The windows whose rows from `first` to `last` include this one.
                    let above = (y + 1).saturating_sub(last).div_ceil(stride[0]);
                    let below = rows.min((y - first) / stride[0] + 1);
                    let list = &entries[starts[above] as usize..starts[below] as usize];
                    let mut at = 0;
                    while at < row {
                        let registers = piece((row - at) / L::N);
                        let weight = (weight, y * slice + at);
                        chain_of::<I, L>(isa, registers, list, weight, &mut dx[y * wide + at..]);
                        at += registers * L::N;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [ConvShape; 6] = [
        ConvShape { from: [25, 25], channels: 16, kernel: [4, 4], stride: [1, 1], to: [22, 22], filters: 20 },
        ConvShape { from: [7, 6], channels: 20, kernel: [4, 4], stride: [1, 1], to: [4, 3], filters: 30 },
        ConvShape { from: [9, 8], channels: 10, kernel: [3, 4], stride: [1, 1], to: [7, 5], filters: 3 },
        ConvShape { from: [10, 11], channels: 4, kernel: [3, 2], stride: [2, 3], to: [4, 4], filters: 7 },
        ConvShape { from: [3, 9], channels: 24, kernel: [2, 7], stride: [3, 1], to: [1, 3], filters: 2 },
        // More rows of pixels than windows reach, and windows that are pixels.
        ConvShape { from: [4, 3], channels: 32, kernel: [1, 1], stride: [2, 1], to: [2, 3], filters: 5 },
    ];

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = foveate_core::Seed::root(seed).rng();
        (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
    }

    /// Half of them are zeros of either sign.
    fn half(n: usize, seed: u64) -> Vec<f32> {
        numbers(n, seed).iter().map(|&x| if x < 0.0 { 0.0 * x } else { x }).collect()
    }

    /// The gradients with respect to the weight and the picture, added to ones, in double precision.
    fn exact(shape: ConvShape, x: &[f32], weight: &[f32], dy: &[f32]) -> [Vec<f64>; 2] {
        let ConvShape { from, channels: c, kernel, stride, to, filters } = shape;
        let (mut d_weight, mut dx) = (vec![1.0; weight.len()], vec![1.0; x.len()]);
        for (at, &dy) in dy.iter().enumerate() {
            let (y, column, filter) = (at / filters / to[1], at / filters % to[1], at % filters);
            for i in 0..kernel[0] * shape.row() {
                let (down, right) = (i / shape.row(), i % shape.row());
                let pixel = ((y * stride[0] + down) * from[1] + column * stride[1]) * c + right;
                let at = filter * kernel[0] * shape.row() + i;
                d_weight[at] += f64::from(dy) * f64::from(x[pixel]);
                dx[pixel] += f64::from(dy) * f64::from(weight[at]);
            }
        }
        [d_weight, dx]
    }

    /// Runs a task in registers of sixteen numbers, as on processors that have 32 of them.
    struct Wide<T>(T);

    impl Task for Wide<Weight<'_>> {
        type Out = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            self.0.with::<I, Sixteen>(isa);
        }
    }

    impl Task for Wide<Picture<'_>> {
        type Out = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            self.0.with::<I, Sixteen>(isa);
        }
    }

    #[test]
    fn gradients_are_right_and_the_same_bits_everywhere() {
        let mut lists = ConvGradient::default();
        for shape in SHAPES {
            let [picture, output, weight] = shape.lens();
            let (x, w, dy) = (numbers(picture, 1), numbers(weight, 2), half(output, 3));
            let want = exact(shape, &x, &w, &dy);
            let mut first: Option<[Vec<f32>; 2]> = None;
            let mut same = |got: [Vec<f32>; 2], how: &str| {
                for (got, want) in got.iter().zip(&want) {
                    for (&got, want) in got.iter().zip(want) {
                        assert!((f64::from(got) - want).abs() < 2e-4, "{how}, {shape:?}: {got}, not {want}");
                    }
                }
                let bits = |xs: &[Vec<f32>; 2]| {
                    xs.each_ref().map(|xs| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
                };
                assert_eq!(bits(&got), bits(first.get_or_insert_with(|| got.clone())), "{how}, {shape:?}");
            };
            for level in Level::available() {
                let (mut d_weight, mut dx) = (vec![1.0; weight], vec![1.0; picture]);
                lists.add_weight(level, shape, &x, &dy, &mut d_weight);
                lists.add_picture(level, shape, &w, &dy, &mut dx);
                same([d_weight, dx], level.name());
            }
            if shape.row().is_multiple_of(16) {
                // The scratch space is as large as the calls before left it.
                let (mut d_weight, mut dx) = (vec![1.0; weight], vec![1.0; picture]);
                let (to, lists) = (&mut d_weight, &mut lists);
                Level::best().run(Wide(Weight { shape, x: &x, dy: &dy, to, lists }));
                Level::best().run(Wide(Picture { shape, weight: &w, dy: &dy, dx: &mut dx, lists }));
                same([d_weight, dx], "wide");
            }
        }
    }

    #[test]
    fn pieces_cover_every_row() {
        for registers in 1..=100 {
            let mut left = registers;
            while left > 0 {
                let next = piece(left);
                assert!([12, 10, 8, 6, 5, 4, 2, 1].contains(&next) && next <= left, "{next} of {left}");
                left -= next;
            }
        }
    }

    #[test]
    fn zeros_add_nothing_and_nan_is_seen() {
        let shape =
            ConvShape { from: [1, 2], channels: 8, kernel: [1, 1], stride: [1, 1], to: [1, 2], filters: 1 };
        let x = [[f32::INFINITY; 8], [2.0; 8]].concat();
        let mut lists = ConvGradient::default();
        let mut d_weight = [1.0; 8];
        lists.add_weight(Level::best(), shape, &x, &[-0.0, 3.0], &mut d_weight);
        assert_eq!(d_weight, [7.0; 8]);
        lists.add_weight(Level::best(), shape, &x, &[0.0, f32::NAN], &mut d_weight);
        assert!(d_weight.iter().all(|x| x.is_nan()));
    }

    #[test]
    fn scratch_space_is_kept() {
        let mut lists = ConvGradient::default();
        let [picture, output, weight] = SHAPES[0].lens();
        let (x, dy, mut d_weight) = (numbers(picture, 1), half(output, 2), vec![0.0; weight]);
        let mut grown = None;
        for _ in 0..2 {
            lists.add_weight(Level::best(), SHAPES[0], &x, &dy, &mut d_weight);
            let now = (lists.entries.capacity(), lists.starts.capacity(), lists.copy.capacity());
            assert_eq!(*grown.get_or_insert(now), now);
        }
    }

    #[test]
    #[should_panic(expected = "windows inside the picture")]
    fn windows_must_lie_in_the_picture() {
        let shape = ConvShape { from: [2, 2], ..SHAPES[5] };
        ConvGradient::default().add_weight(Level::best(), shape, &[], &[], &mut []);
    }

    #[test]
    #[should_panic(expected = "rows of a kernel that fill registers")]
    fn rows_must_fill_registers() {
        let shape = ConvShape { channels: 3, ..SHAPES[5] };
        ConvGradient::default().add_picture(Level::best(), shape, &[], &[], &mut []);
    }
}
