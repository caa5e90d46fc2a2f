//! The residue of prediction: quantisation of pixels to levels, reconstruction, and coding as bits.

use super::bits::BitWriter;
use super::cavlc;
use super::tables::Tables;
use super::transform::{Quantiser, ZIGZAG, forward, hadamard2, hadamard4, inverse};

/// Row-major index of the n-th 4 x 4 luma block in coding order: quadrants first, then blocks within.
pub(crate) const BLOCK_ORDER: [usize; 16] = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];

/// How a macroblock is quantised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantisers {
    /// Quantiser parameter of luma.
    pub(crate) qp: i32,
    pub(crate) luma: Quantiser,
    pub(crate) chroma: Quantiser,
    /// Cost of a bit in units of absolute difference.
    pub(crate) weight: u32,
    /// Drops levels that cost more bits than they improve the quality.
    pub(crate) frugal: bool,
}

/// A macroblock's levels. Blocks are row-major in the macroblock, levels row-major in the block.
pub(crate) struct Residue {
    luma: [[i32; 16]; 16],
    luma_means: [i32; 16],
    chroma: [[[i32; 16]; 4]; 2],
    chroma_means: [[i32; 4]; 2],
    /// True if DC coefficients are coded separately, as in intra 16 x 16.
    apart: bool,
    /// Bit mask of the luma quadrants that have levels.
    pub(crate) quadrants: u8,
    /// 0: no chroma levels, 1: only DC, 2: DC and AC.
    pub(crate) chroma_kind: u8,
}

impl Residue {
    pub(crate) fn new() -> Self {
        Residue {
            luma: [[0; 16]; 16],
            luma_means: [0; 16],
            chroma: [[[0; 16]; 4]; 2],
            chroma_means: [[0; 4]; 2],
            apart: false,
            quadrants: 0,
            chroma_kind: 0,
        }
    }

    /// The value of `coded_block_pattern`.
    pub(crate) fn pattern(&self) -> u8 {
        self.chroma_kind << 4 | self.quadrants
    }

    /// Quantises luma predicted from another picture.
    pub(crate) fn take_inter(&mut self, block: &[u8; 256], guess: &[u8; 256], q: &Quantisers) {
        self.apart = false;
        self.quadrants = 0;
        let mut scores = [0; 4];
        for (i, levels) in self.luma.iter_mut().enumerate() {
            subtract::<16>(block, guess, i % 4 * 4, i / 4 * 4, levels);
            forward(levels);
            if q.luma.quantise(levels, 0) {
                scores[i / 8 * 2 + i % 4 / 2] += worth(levels, 0);
            }
        }
        // A few isolated levels cost more bits than they improve the quality.
        let total: u32 = scores.iter().sum();
        for (quadrant, score) in scores.into_iter().enumerate() {
            if score > 0 && (!q.frugal || score >= QUADRANT_WORTH && total >= BLOCK_WORTH) {
                self.quadrants |= 1 << quadrant;
            } else {
                for i in 0..4 {
                    self.luma[quadrant / 2 * 8 + quadrant % 2 * 2 + i / 2 * 4 + i % 2] = [0; 16];
                }
            }
        }
    }

    /// Quantises luma predicted from its neighbours.
    pub(crate) fn take_intra(&mut self, block: &[u8; 256], guess: &[u8; 256], quantiser: &Quantiser) {
        self.apart = true;
        let mut any = false;
        for (i, levels) in self.luma.iter_mut().enumerate() {
            subtract::<16>(block, guess, i % 4 * 4, i / 4 * 4, levels);
            forward(levels);
            self.luma_means[i] = levels[0];
            levels[0] = 0;
            any |= quantiser.quantise(levels, 1);
        }
        hadamard4(&mut self.luma_means);
        for mean in &mut self.luma_means {
            *mean = (*mean + 1) >> 1;
        }
        quantiser.quantise_means(&mut self.luma_means);
        self.quadrants = if any { 15 } else { 0 };
    }

    /// Quantises both chroma planes.
    pub(crate) fn take_chroma(&mut self, blocks: [&[u8; 64]; 2], guesses: [&[u8; 64]; 2], q: &Quantisers) {
        self.chroma_kind = 0;
        for plane in 0..2 {
            let mut score = 0;
            for i in 0..4 {
                let levels = &mut self.chroma[plane][i];
                subtract::<8>(blocks[plane], guesses[plane], i % 2 * 4, i / 2 * 4, levels);
                forward(levels);
                self.chroma_means[plane][i] = levels[0];
                levels[0] = 0;
                if q.chroma.quantise(levels, 1) {
                    score += worth(levels, 1);
                }
            }
            hadamard2(&mut self.chroma_means[plane]);
            if q.chroma.quantise_means(&mut self.chroma_means[plane]) {
                self.chroma_kind = self.chroma_kind.max(1);
            }
            if score > 0 && (!q.frugal || score >= CHROMA_WORTH) {
                self.chroma_kind = 2;
            } else {
                self.chroma[plane] = [[0; 16]; 4];
            }
        }
    }

    /// Adds reconstructed luma to its prediction.
    pub(crate) fn add_luma(&self, guess: &mut [u8; 256], quantiser: &Quantiser) {
        let mut means = self.luma_means;
        if self.apart {
            hadamard4(&mut means);
            quantiser.restore_luma_means(&mut means);
        }
        for (i, levels) in self.luma.iter().enumerate() {
            let coded = self.quadrants >> (i / 8 * 2 + i % 4 / 2) & 1 == 1;
            if !coded && (!self.apart || means[i] == 0) {
                continue;
            }
            let mut values = *levels;
            quantiser.restore(&mut values, usize::from(self.apart));
            if self.apart {
                values[0] = means[i];
            }
            inverse(&mut values);
            add::<16>(guess, i % 4 * 4, i / 4 * 4, &values);
        }
    }

    /// Adds reconstructed chroma to its prediction.
    pub(crate) fn add_chroma(&self, plane: usize, guess: &mut [u8; 64], quantiser: &Quantiser) {
        if self.chroma_kind == 0 {
            return;
        }
        let mut means = self.chroma_means[plane];
        hadamard2(&mut means);
        quantiser.restore_chroma_means(&mut means);
        for (i, levels) in self.chroma[plane].iter().enumerate() {
            let mut values = *levels;
            quantiser.restore(&mut values, 1);
            values[0] = means[i];
            inverse(&mut values);
            add::<8>(guess, i % 2 * 4, i / 2 * 4, &values);
        }
    }

    /// Writes all levels in the order of the standard (7.3.5.3), and stores the counts for the neighbours.
    pub(crate) fn write(
        &self,
        writer: &mut BitWriter,
        tables: &Tables,
        counts: &mut Counts,
        column: usize,
        row: usize,
    ) {
        if self.apart {
            let context = counts.luma.context(column * 4, row * 4);
            cavlc::residual(writer, tables, &ZIGZAG.map(|i| self.luma_means[i]), context);
        }
        for (n, &i) in BLOCK_ORDER.iter().enumerate() {
            if self.quadrants >> (n / 4) & 1 == 0 {
                continue;
            }
            let (x, y) = (column * 4 + i % 4, row * 4 + i / 4);
            let context = counts.luma.context(x, y);
            let levels = ZIGZAG.map(|z| self.luma[i][z]);
            let total = cavlc::residual(writer, tables, &levels[usize::from(self.apart)..], context);
            counts.luma.set(x, y, total);
        }
        if self.chroma_kind > 0 {
            for means in &self.chroma_means {
                cavlc::residual(writer, tables, means, -1);
            }
        }
        if self.chroma_kind > 1 {
            for (plane, blocks) in self.chroma.iter().enumerate() {
                for (i, levels) in blocks.iter().enumerate() {
                    let (x, y) = (column * 2 + i % 2, row * 2 + i / 2);
                    let grid = &mut counts.chroma[plane];
                    let context = grid.context(x, y);
                    let total = cavlc::residual(writer, tables, &ZIGZAG.map(|z| levels[z])[1..], context);
                    counts.chroma[plane].set(x, y, total);
                }
            }
        }
    }
}

/// Levels with a smaller total value are dropped, per quadrant, macroblock or chroma plane.
const QUADRANT_WORTH: u32 = 4;
const BLOCK_WORTH: u32 = 6;
const CHROMA_WORTH: u32 = 7;

/// Value of a block's levels: low for a one at a high frequency, high for any level above one.
fn worth(levels: &[i32; 16], first: usize) -> u32 {
    let mut worth = 0;
    let mut zeros = 0;
    for &i in &ZIGZAG[first..] {
        match levels[i].abs() {
            0 => zeros += 1,
            1 => {
                worth += match zeros {
                    0 => 3,
                    1 | 2 => 2,
                    3..6 => 1,
                    _ => 0,
                };
                zeros = 0;
            }
            _ => return 9,
        }
    }
    worth
}

/// Differences of the 4 x 4 block at (x, y) in blocks of N x N.
fn subtract<const N: usize>(block: &[u8], guess: &[u8], x: usize, y: usize, out: &mut [i32; 16]) {
    for (row, to) in out.chunks_exact_mut(4).enumerate() {
        let at = (y + row) * N + x;
        for (value, (a, b)) in to.iter_mut().zip(block[at..at + 4].iter().zip(&guess[at..at + 4])) {
            *value = i32::from(*a) - i32::from(*b);
        }
    }
}

fn add<const N: usize>(guess: &mut [u8], x: usize, y: usize, values: &[i32; 16]) {
    for (row, from) in values.chunks_exact(4).enumerate() {
        let at = (y + row) * N + x;
        for (byte, value) in guess[at..at + 4].iter_mut().zip(from) {
            *byte = (i32::from(*byte) + value).clamp(0, 255) as u8;
        }
    }
}

/// Number of levels of every 4 x 4 block of a picture: the coding context of its neighbours.
pub(crate) struct Counts {
    pub(crate) luma: PlaneCounts,
    pub(crate) chroma: [PlaneCounts; 2],
}

impl Counts {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let chroma = || PlaneCounts::new(columns * 2, rows * 2);
        Counts { luma: PlaneCounts::new(columns * 4, rows * 4), chroma: [chroma(), chroma()] }
    }

    pub(crate) fn clear(&mut self) {
        self.luma.counts.fill(0);
        for grid in &mut self.chroma {
            grid.counts.fill(0);
        }
    }
}

/// The counts of one plane.
pub(crate) struct PlaneCounts {
    width: usize,
    counts: Vec<u8>,
}

impl PlaneCounts {
    fn new(width: usize, height: usize) -> Self {
        PlaneCounts { width, counts: vec![0; width * height] }
    }

    fn set(&mut self, x: usize, y: usize, total: usize) {
        self.counts[y * self.width + x] = total as u8;
    }

    /// The mean of the blocks to the left and above, as far as they exist.
    fn context(&self, x: usize, y: usize) -> i32 {
        let left = (x > 0).then(|| i32::from(self.counts[y * self.width + x - 1]));
        let above = (y > 0).then(|| i32::from(self.counts[(y - 1) * self.width + x]));
        match (left, above) {
            (Some(a), Some(b)) => (a + b + 1) >> 1,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => 0,
        }
    }
}
