//! The colours of a frame, and the scaled value of each in a single-colour cell.

use super::cells::BANDS;
use super::shrink::{Axis, Overlap, part};
use crate::car_racing::picture::SIDE;

/// The palette is cleared when it has more colours than this.
const MOST: usize = 64;

/// `[84, 96, 3]` bytes.
type Flat = Box<[[[u8; 3]; SIDE]]>;

/// The colours seen so far, kept between frames.
#[derive(Debug, Clone, Default)]
pub(super) struct Palette {
    colors: Vec<[u8; 3]>,
    flats: Vec<Flat>,
}

impl Palette {
    /// Begins a frame: the only time at which old colours may be removed.
    pub(super) fn begin(&mut self) {
        if self.colors.len() > MOST {
            self.colors.clear();
            self.flats.clear();
        }
    }

    /// The index of a colour, if there is room for it.
    pub(super) fn number(&mut self, color: [u8; 3]) -> Option<u8> {
        if let Some(at) = self.colors.iter().position(|&c| c == color) {
            return Some(at as u8);
        }
        if self.colors.len() >= 250 {
            return None;
        }
        self.colors.push(color);
        self.flats.push(flat(color));
        Some((self.colors.len() - 1) as u8)
    }

    /// A colour as a pixel.
    pub(super) fn pixel(&self, number: u8) -> u32 {
        pixel(self.colors[usize::from(number)])
    }

    /// The scaled canvas in this colour alone.
    pub(super) fn flat(&self, number: u8) -> &[[[u8; 3]; SIDE]] {
        &self.flats[usize::from(number)]
    }
}

/// A colour as a pixel: bytes R, G, B, 0.
pub(super) fn pixel([r, g, b]: [u8; 3]) -> u32 {
    u32::from_le_bytes([r, g, b, 0])
}

fn flat(color: [u8; 3]) -> Flat {
    let mut out = vec![[[0; 3]; SIDE]; BANDS].into_boxed_slice();
    for (c, &value) in color.iter().enumerate() {
        let narrow = Axis::X.cells.map(|cell| shrunk(value, cell, Axis::X.recip));
        for (band, row) in out.iter_mut().enumerate() {
            for (pixel, narrow) in row.iter_mut().zip(narrow) {
                pixel[c] = shrunk(narrow, Axis::Y.cells[band], Axis::Y.recip);
            }
        }
    }
    out
}

fn shrunk(value: u8, cell: Overlap, recip: u32) -> u8 {
    let whole = u32::from(value) * (cell.end - cell.start) as u32;
    (((part(value, cell.head) + whole + part(value, cell.tail)) * recip) >> 16) as u8
}
