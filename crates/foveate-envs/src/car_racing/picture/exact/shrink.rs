//! Scales 1000 × 800 canvas pixels to 96 × 96: running sums in 14-bit fixed point.

use super::place::{CANVAS_H, CANVAS_W};
use crate::car_racing::picture::SIDE;

/// The assignment of one axis' pixels to cells.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// `[96]`
    pub(super) cells: [Overlap; SIDE],
    /// Sums are multiplied by this and divided by 2^16.
    pub(super) recip: u32,
}

/// The pixels of one cell: `head` of pixel `start - 1` is left over from the previous cell, pixels
/// `start..end` lie inside, `tail` of pixel `end` belongs to this cell; parts are in units of 2^-14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Overlap {
    pub(super) head: u32,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) tail: u32,
}

const ONE: u32 = 1 << 14;

impl Axis {
    /// The horizontal axis.
    pub(super) const X: Axis = Axis::new(CANVAS_W as u32);
    /// The vertical axis, from the top.
    pub(super) const Y: Axis = Axis::new(CANVAS_H as u32);

    const fn new(size: u32) -> Axis {
        let space = ONE * size / SIDE as u32;
        let mut cells = [Overlap { head: 0, start: 0, end: 0, tail: 0 }; SIDE];
        let mut i = 0;
        let mut pixel = 0;
        let mut head = 0;
        while i < SIDE {
            // A pixel is split when at most one pixel's worth of room is left.
            let room = space - head;
            let whole = (room - 1) / ONE;
            let tail = room - whole * ONE;
            cells[i] = Overlap { head, start: pixel, end: pixel + whole as usize, tail };
            pixel += whole as usize + 1;
            head = ONE - tail;
            i += 1;
        }
        Axis { cells, recip: (1 << 30) / space }
    }
}

/// Part of a pixel's value, in units of 2^-14.
pub(super) fn part(value: u8, fraction: u32) -> u32 {
    (u32::from(value) * 4 * fraction) >> 16
}
