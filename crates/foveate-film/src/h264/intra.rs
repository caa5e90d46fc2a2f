//! Prediction of a macroblock from its neighbours above and to the left (ITU-T H.264, 8.3.3 and 8.3.4).

use super::picture::{Picture, Plane};

/// How a 16 x 16 luma block is predicted; the numbers are those of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every column repeats the pixel above the block.
    Vertical = 0,
    /// Every row repeats the pixel to the left of the block.
    Horizontal = 1,
    /// The mean of the neighbouring pixels.
    Mean = 2,
}

/// The best mode available at (x, y), by sum of absolute differences: (mode, difference).
pub(crate) fn best(
    plane: &Plane,
    block: &[u8; 256],
    x: usize,
    y: usize,
    guess: &mut [u8; 256],
) -> (Mode, u32) {
    let mut best: Option<(Mode, u32)> = None;
    let mut trial = [0; 256];
    for mode in [Mode::Mean, Mode::Vertical, Mode::Horizontal] {
        if (mode == Mode::Vertical && y == 0) || (mode == Mode::Horizontal && x == 0) {
            continue;
        }
        luma(plane, x, y, mode, &mut trial);
        let difference = block.iter().zip(&trial).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        if best.is_none_or(|(_, least)| difference < least) {
            best = Some((mode, difference));
            *guess = trial;
        }
    }
    best.unwrap_or((Mode::Mean, u32::MAX))
}

fn luma(plane: &Plane, x: usize, y: usize, mode: Mode, out: &mut [u8; 256]) {
    let above = (y > 0).then(|| plane.at(x as isize, y as isize - 1));
    let left = |row: usize| plane.bytes[plane.at(x as isize - 1, (y + row) as isize)];
    match mode {
        Mode::Vertical => {
            let start = above.unwrap_or(0);
            for row in out.chunks_exact_mut(16) {
                row.copy_from_slice(&plane.bytes[start..start + 16]);
            }
        }
        Mode::Horizontal => {
            for (i, row) in out.chunks_exact_mut(16).enumerate() {
                row.fill(left(i));
            }
        }
        Mode::Mean => {
            let top = above.map(|start| sum(&plane.bytes[start..start + 16]));
            let side = (x > 0).then(|| (0..16).map(|i| u32::from(left(i))).sum::<u32>());
            out.fill(match (top, side) {
                (Some(a), Some(b)) => (a + b + 16) >> 5,
                (Some(one), None) | (None, Some(one)) => (one + 8) >> 4,
                (None, None) => 128,
            } as u8);
        }
    }
}

/// Mean prediction of an 8 x 8 chroma block: each quarter is predicted from the neighbours adjacent to it.
pub(crate) fn chroma_means(picture: &Picture, plane: usize, x: usize, y: usize, out: &mut [u8; 64]) {
    let plane = &picture.planes[plane];
    let top = |i: usize| {
        (y > 0).then(|| {
            let start = plane.at((x + i * 4) as isize, y as isize - 1);
            sum(&plane.bytes[start..start + 4])
        })
    };
    let side = |j: usize| {
        (x > 0).then(|| {
            let at = |row| plane.bytes[plane.at(x as isize - 1, (y + j * 4 + row) as isize)];
            (0..4).map(|row| u32::from(at(row))).sum::<u32>()
        })
    };
    for (j, i) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        // Off the diagonal, one side is used if it exists: above for the right quarter, left for the lower
        // quarter.
        let (first, second) = match (j, i) {
            (0, 1) => (top(1).or_else(|| side(0)), None),
            (1, 0) => (side(1).or_else(|| top(0)), None),
            _ => (top(i), side(j)),
        };
        let mean = match (first, second) {
            (Some(a), Some(b)) => (a + b + 4) >> 3,
            (Some(one), None) | (None, Some(one)) => (one + 2) >> 2,
            (None, None) => 128,
        };
        for row in 0..4 {
            out[(j * 4 + row) * 8 + i * 4..][..4].fill(mean as u8);
        }
    }
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().map(|&b| u32::from(b)).sum()
}
