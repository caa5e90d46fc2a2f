//! The cells of the small picture's upper part: each has a single colour or a mix of pixels.
//!
//! A cell that one polygon covers entirely has a single colour, and its scaled value is precomputed. Only
//! cells that an edge crosses need canvas pixels; the pixels of other cells are never read. One band of cells
//! is drawn at a time, with the ten rows of pixels that it needs, so that they stay in the first-level cache.

use foveate_kernels::pixels::{self, Reciprocals, Weights};

use super::palette::Palette;
use super::place::{CANVAS_H, CANVAS_W, Texels, WORLD_H};
use super::shrink::{Axis, Overlap};
use crate::car_racing::picture::SIDE;

/// Rows of cells above the bar of indicators.
pub(super) const BANDS: usize = 84;
/// Canvas columns left and right of the visible ones, so that a pixel just outside needs no bounds check.
pub(super) const PAD: i32 = 24;
const STRIDE: usize = (CANVAS_W + 2 * PAD) as usize;
/// A row of pixels; the first [`PAD`] ones lie left of the canvas.
pub(super) type Row = [u32; STRIDE];
/// State of a cell with pixels of different colours.
pub(super) const MIXED: u8 = 255;

/// The extent of all cells along an axis.
#[derive(Debug)]
pub(super) struct CellAxis<const PIXELS: usize> {
    /// First and last pixel of a cell, including those that it shares with its neighbours.
    pub(super) extent: [[i32; 2]; SIDE],
    /// First and last cell that contains a pixel.
    pub(super) of: [[u8; 2]; PIXELS],
}

/// Columns of cells.
pub(super) static COLUMNS: CellAxis<{ CANVAS_W as usize }> = CellAxis::new(&Axis::X);
/// Rows of cells.
pub(super) static BAND_ROWS: CellAxis<{ WORLD_H as usize }> = CellAxis::new(&Axis::Y);

impl<const PIXELS: usize> CellAxis<PIXELS> {
    const fn new(axis: &Axis) -> Self {
        let mut grid = CellAxis { extent: [[0; 2]; SIDE], of: [[SIDE as u8, 0]; PIXELS] };
        let mut i = 0;
        while i < SIDE {
            let Overlap { head, start, end, .. } = axis.cells[i];
            if start >= PIXELS {
                break; // It may contain a part of the last pixel, but too small to be visible.
            }
            let mut pixel = if head > 0 { start - 1 } else { start };
            grid.extent[i] = [pixel as i32, end as i32];
            while pixel <= end && pixel < PIXELS {
                if grid.of[pixel][0] as usize == SIDE {
                    grid.of[pixel][0] = i as u8;
                }
                grid.of[pixel][1] = i as u8;
                pixel += 1;
            }
            i += 1;
        }
        grid
    }

    /// The cells that pixels `a..=b` touch, after clipping to the canvas. `None` when the range is outside.
    pub(super) fn touched(&self, a: i32, b: i32) -> Option<[usize; 2]> {
        let (a, b) = (a.max(0), b.min(PIXELS as i32 - 1));
        (a <= b).then(|| [usize::from(self.of[a as usize][0]), usize::from(self.of[b as usize][1])])
    }

    /// The cells that lie completely within pixels `a..=b`, `[first, end)`.
    pub(super) fn covered(&self, a: i32, b: i32) -> [usize; 2] {
        let last = PIXELS as i32 - 1;
        if a > b || a > last || b < 0 {
            return [0, 0];
        }
        let first = if a <= 0 {
            0
        } else {
            let j = usize::from(self.of[a as usize][0]);
            j + usize::from(self.extent[j][0] < a)
        };
        let end = if b >= last {
            usize::from(self.of[last as usize][1]) + 1
        } else {
            let j = usize::from(self.of[b as usize][1]);
            j + usize::from(self.extent[j][1] <= b)
        };
        [first, end.max(first)]
    }
}

/// One band of cells, and the pixels of the mixed ones among them.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    /// The content of each cell: an index of the palette, or [`MIXED`].
    pub(super) state: [u8; SIDE],
    band: usize,
    /// The pixels' rows, from the one above the band's first whole row.
    pixels: Vec<Row>,
}

impl Default for Cells {
    fn default() -> Self {
        Cells { state: [0; SIDE], band: 0, pixels: vec![[0; STRIDE]; pixels::HEIGHT] }
    }
}

impl Cells {
    /// Turns to a band: all of its cells have one colour.
    pub(super) fn begin(&mut self, band: usize, state: u8) {
        self.band = band;
        self.state = [state; SIDE];
    }

    /// Fills the cells with a backdrop.
    pub(super) fn show(&mut self, texels: &Texels<'_>) {
        self.state = [MIXED; SIDE];
        let [y0, y1] = BAND_ROWS.extent[self.band];
        for (row, pixels) in (y0..).zip(self.rows([y0, y1.min(WORLD_H - 1)])) {
            texels.row(CANVAS_H - 1 - row, &mut pixels[PAD as usize..][..CANVAS_W as usize]);
        }
    }

    /// The pixels of some of the band's rows, from the top.
    pub(super) fn rows(&mut self, rows: [i32; 2]) -> &mut [Row] {
        let first = (rows[0] + 1 - Axis::Y.cells[self.band].start as i32) as usize;
        &mut self.pixels[first..first + (rows[1] + 1 - rows[0]).max(0) as usize]
    }

    /// Returns whether any of the cells is mixed.
    pub(super) fn any_mixed(&self, [first, last]: [usize; 2]) -> bool {
        self.state[first..=last].contains(&MIXED)
    }

    /// Converts a single-colour cell to pixels.
    pub(super) fn mix(&mut self, column: usize, color: u32) {
        self.state[column] = MIXED;
        let [y0, y1] = BAND_ROWS.extent[self.band];
        let [x0, x1] = COLUMNS.extent[column];
        let at = (x0 + PAD) as usize;
        // Lengths known at compile time are faster.
        let wide = x1 - x0 == 11;
        for pixels in self.rows([y0, y1]) {
            if wide {
                pixels[at..at + 12].fill(color);
            } else {
                pixels[at..at + 11].fill(color);
            }
        }
    }

    /// Scales the cells into their row of the frame, `[96, 3]` bytes.
    pub(super) fn shrink(&self, palette: &Palette, row: &mut [u8]) {
        let (out, _) = row.as_chunks_mut::<3>();
        for (column, (&state, out)) in self.state.iter().zip(out).enumerate() {
            *out = if state == MIXED { self.shrunk(column) } else { palette.flat(state)[self.band][column] };
        }
    }

    /// The scaled colour of a mixed cell.
    fn shrunk(&self, column: usize) -> [u8; 3] {
        let first = Axis::X.cells[column].start + PAD as usize - 1;
        let (x, y) = (&WEIGHTS_X[column], &WEIGHTS_Y[self.band]);
        let [r, g, b, _] = pixels::shrink(&self.pixels.as_flattened()[first..], STRIDE, x, y, RECIPROCALS);
        [r, g, b]
    }
}

/// Fills columns `a..=b` of a row.
pub(super) fn fill(pixels: &mut Row, a: i32, b: i32, color: u32) {
    if a <= b {
        paint(&mut pixels[(a + PAD) as usize..=(b + PAD) as usize], color);
    }
}

/// Fills a few pixels. Stores that overlap take fewer branches than ones that do not.
#[inline]
fn paint(pixels: &mut [u32], color: u32) {
    const WIDE: usize = 8;
    let (chunks, _) = pixels.as_chunks_mut::<WIDE>();
    if chunks.is_empty() {
        if let Some(first) = pixels.first_chunk_mut::<4>() {
            *first = [color; 4];
            if let Some(last) = pixels.last_chunk_mut::<4>() {
                *last = [color; 4];
            }
        } else {
            for pixel in pixels {
                *pixel = color;
            }
        }
        return;
    }
    chunks.fill([color; WIDE]);
    if let Some(last) = pixels.last_chunk_mut::<WIDE>() {
        *last = [color; WIDE];
    }
}

const RECIPROCALS: Reciprocals = Reciprocals { x: Axis::X.recip as u16, y: Axis::Y.recip as u16 };
static WEIGHTS_X: [Weights; SIDE] = weights_x();
static WEIGHTS_Y: [Weights; SIDE] = weights_y();

/// A cell has 9 or 10 whole pixels in x, 7 or 8 in y; only the pixels that are always whole need no weight.
const fn weights(cell: Overlap, plain: usize) -> [u16; 3] {
    let n = cell.end - cell.start;
    assert!(n == plain || n == plain + 1);
    if n == plain {
        [cell.head as u16, cell.tail as u16, 0]
    } else {
        [cell.head as u16, pixels::ONE, cell.tail as u16]
    }
}

const fn weights_x() -> [Weights; SIDE] {
    let mut all = [Weights::across(0, 0, 0); SIDE];
    let mut i = 0;
    while i < SIDE {
        let [a, b, c] = weights(Axis::X.cells[i], 9);
        all[i] = Weights::across(a, b, c);
        i += 1;
    }
    all
}

const fn weights_y() -> [Weights; SIDE] {
    let mut all = [Weights::down(0, 0, 0); SIDE];
    let mut i = 0;
    while i < SIDE {
        let [a, b, c] = weights(Axis::Y.cells[i], 7);
        all[i] = Weights::down(a, b, c);
        i += 1;
    }
    all
}

/// Scales a row of one column's pixels to one value.
pub(super) fn narrow_cell(row: &[u32; pixels::WIDTH], column: usize) -> [u16; 4] {
    pixels::narrow(row, &WEIGHTS_X[column], RECIPROCALS.x)
}

/// Upper half of a product.
pub(super) fn high(a: u16, b: u16) -> u16 {
    ((u32::from(a) * u32::from(b)) >> 16) as u16
}

/// A colour to blend over others, with an opacity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Over {
    weighted: u64,
    keep: u64,
}

impl Over {
    /// `alpha` in 256ths; 255 replaces the colour below.
    pub(super) fn new(color: u64, alpha: u32) -> Over {
        let alpha = u64::from(alpha) + u64::from(alpha == 255);
        Over { weighted: color * alpha, keep: 256 - alpha }
    }

    /// Three channels, 16 bits apart.
    pub(super) fn spread(pixel: u32) -> u64 {
        u64::from(pixel & 0x00FF_00FF) | u64::from(pixel & 0xFF00) << 24
    }

    /// Blends the colour into a pixel. Columns just outside the canvas are allowed.
    #[inline]
    pub(super) fn blend(self, pixels: &mut Row, x: i32) {
        let pixel = &mut pixels[(x + PAD) as usize];
        *pixel = self.over(*pixel);
    }

    fn over(self, under: u32) -> u32 {
        // At most 255 * 256 in each 16 bits.
        let mixed = (Self::spread(under) * self.keep + self.weighted) >> 8;
        mixed as u32 & 0x00FF_00FF | (mixed >> 24) as u32 & 0xFF00
    }
}
