//! Patches that show the same bytes as the patch to their left or above: in a drawn picture, half of them.

use crate::lanes::{Eight, Isa};

/// What a picture and its patches measure, in bytes and rows of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of a row of pixels.
    pub(crate) line: usize,
    /// Bytes from a patch to the next one on the right.
    pub(crate) step: usize,
    /// Bytes of a row of pixels in a patch.
    pub(crate) span: usize,
    /// Rows of pixels of a patch.
    pub(crate) patch: usize,
    /// Rows of pixels from a patch to the next one below.
    pub(crate) stride: usize,
    /// Patches of a row.
    pub(crate) columns: usize,
}

/// Where the result of a patch comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// It is to be computed.
    Fresh,
    /// The patch to the left shows the same.
    Left,
    /// The patch above shows the same.
    Above,
}

/// Which patches of a picture repeat a neighbour.
#[derive(Debug, Clone)]
pub(crate) struct Repeats {
    sizes: Sizes,
    /// `[height, words]`: a bit for every byte of a row of pixels from the second patch on, 1 where the byte one step to
    /// the left is the same.
    left: Vec<u32>,
    /// `[height, words]`: a bit for every byte, 1 where the byte one stride above is the same.
    above: Vec<u32>,
    /// `[2, words]`: the rows of pixels under a row of patches together, left and above.
    both: [Vec<u32>; 2],
    /// Of the patches since [`Repeats::begin`].
    sources: Vec<Source>,
    /// The numbers of those that repeat none, ascending.
    fresh: Vec<u32>,
}

impl Repeats {
    /// Room for up to `lines` rows of pixels.
    pub(crate) fn new(sizes: Sizes, lines: usize) -> Self {
        // One word more, so that 64 bits can be read anywhere.
        let words = sizes.line.div_ceil(32) + 1;
        let patches = (lines / sizes.stride + 1) * sizes.columns;
        Repeats {
            sizes,
            left: vec![0; lines * words],
            above: vec![0; lines * words],
            both: [vec![0; words], vec![0; words]],
            sources: Vec::with_capacity(patches),
            fresh: Vec::with_capacity(patches),
        }
    }

    /// As given to [`Repeats::new`].
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Compares the rows of `pixels`, which begin with those under a first row of patches.
    #[inline(always)]
    pub(crate) fn compare<I: Isa>(&mut self, isa: I, pixels: &[u8]) {
        let Sizes { line, step, stride, .. } = self.sizes;
        let words = self.both[0].len();
        let masks = self.left.chunks_exact_mut(words).zip(self.above.chunks_exact_mut(words));
        for (y, (bytes, (left, above))) in pixels.chunks_exact(line).zip(masks).enumerate() {
            equal(isa, &bytes[step.min(line)..], bytes, left);
            if y >= stride {
                equal(isa, bytes, &pixels[(y - stride) * line..], above);
            }
        }
    }

    /// Forgets which patches repeat which.
    pub(crate) fn begin(&mut self) {
        self.sources.clear();
        self.fresh.clear();
    }

    /// Finds out what the patches of `row`, counted from the first that was compared, repeat.
    #[inline(always)]
    pub(crate) fn find(&mut self, row: usize) {
        let Sizes { step, span, patch, stride, columns, .. } = self.sizes;
        let words = self.both[0].len();
        for (masks, both) in [&self.left, &self.above].into_iter().zip(&mut self.both) {
            both.fill(u32::MAX);
            for mask in masks.chunks_exact(words).skip(row * stride).take(patch) {
                both.iter_mut().zip(mask).for_each(|(both, bits)| *both &= bits);
            }
        }
        for column in 0..columns {
            let source = if column > 0 && all(&self.both[0], (column - 1) * step, span) {
                Source::Left
            } else if row > 0 && all(&self.both[1], column * step, span) {
                Source::Above
            } else {
                self.fresh.push(self.sources.len() as u32);
                Source::Fresh
            };
            self.sources.push(source);
        }
    }

    /// The patches that repeat no neighbour, numbered from the first one since [`Repeats::begin`], ascending.
    pub(crate) fn fresh(&self) -> &[u32] {
        &self.fresh
    }

    /// Copies the results of the patches that repeat a neighbour, and tells of whom they are twins. `out` is
    /// `[patches, per_row, 8]` and ends, as `twins` does, with the patches since [`Repeats::begin`]; the first patch has
    /// the number `number`.
    pub(crate) fn copy(&self, per_row: usize, out: &mut [Eight], twins: &mut [u32], number: usize) {
        let first = twins.len() - self.sources.len();
        for (patch, source) in (first..).zip(&self.sources) {
            let from = match source {
                Source::Fresh => patch,
                Source::Left => patch - 1,
                Source::Above => patch - self.sizes.columns,
            };
            twins[patch] = (number + from) as u32;
            if from < patch {
                out.copy_within(from * per_row..(from + 1) * per_row, patch * per_row);
            }
        }
    }
}

/// A bit in `to` for each byte of `a`: whether that of `b` is equal.
#[inline(always)]
fn equal<I: Isa>(isa: I, a: &[u8], b: &[u8], to: &mut [u32]) {
    let (a, a_rest) = a.as_chunks::<32>();
    let (b, b_rest) = b[..a.len() * 32 + a_rest.len()].as_chunks::<32>();
    let (to, to_rest) = to.split_at_mut(a.len());
    for (to, (a, b)) in to.iter_mut().zip(a.iter().zip(b)) {
        *to = isa.equal32(a, b);
    }
    let (mut a, mut b) = ([0; 32], [0; 32]);
    a[..a_rest.len()].copy_from_slice(a_rest);
    b[..b_rest.len()].copy_from_slice(b_rest);
    to_rest[0] = isa.equal32(&a, &b);
}

/// Whether `count` bits from bit `at` on are all 1.
#[inline(always)]
fn all(words: &[u32], at: usize, count: usize) -> bool {
    let (mut at, mut left) = (at, count);
    while left > 0 {
        let word = u64::from(words[at / 32]) | u64::from(words[at / 32 + 1]) << 32;
        let bits = left.min(32);
        let wanted = (1_u64 << bits) - 1;
        if word >> (at % 32) & wanted != wanted {
            return false;
        }
        (at, left) = (at + bits, left - bits);
    }
    true
}
