//! The score text: only the pixels that are visible in the small picture.
//!
//! The reference writes the score with a 42-pixel bold font on the canvas; about sixty pixels of the scaled
//! picture remain of it. No glyph outline is stored here: `score_cells.bin` holds the **measured** values of
//! those pixels, for every combination of a cell and the one or two digits touching it that occurs in the
//! scores from -2000 to 1100. `oracle/score_cells.py` repeats the measurement. The position of a digit
//! follows from its advance and the pair kerning below, measured in the same way. A score outside that range
//! shows a single digit where two would touch one cell.

use std::io::Write;

use crate::car_racing::picture::SIDE;

/// Records of a little-endian key and five grey levels, sorted by key.
const CELLS: &[u8] = include_bytes!("score_cells.bin");
const RECORD: usize = 9;
/// First row of the picture that the text touches.
const FIRST_ROW: usize = 87;
const ROWS: usize = 5;
const COLUMNS: usize = 12;
/// Horizontal centre of the text on the canvas.
const CENTRE_X: i32 = 60;
/// Maximum length of the text.
const MAX_CHARS: usize = 12;

/// Extra space between two digits in 1/64 canvas pixel: rows for the left one, columns for the right one.
const KERNING: [[i32; 10]; 10] = [
    [156, 0, 196, 202, 0, 212, 0, 0, 175, 215],
    [0, -228, 0, 0, 0, 0, 0, -175, 0, 0],
    [226, 0, 0, 188, 0, 0, 207, 0, 188, 245],
    [188, 0, 164, 234, 0, 237, 177, 0, 207, 210],
    [239, 0, 159, 247, 0, 239, 231, 0, 261, 215],
    [0, 0, 0, 196, 0, 207, 0, 0, 169, 207],
    [177, 0, 0, 220, 0, 234, 167, 0, 196, 218],
    [0, 0, 0, 0, -167, 0, 0, 0, 0, 0],
    [175, 0, 185, 218, 0, 228, 164, 0, 191, 231],
    [0, 0, 188, 175, 0, 185, 0, 0, 0, 188],
];
/// Index of the minus sign among the characters.
const MINUS: usize = 10;

/// The text of one score as grey levels; cached until the text changes.
#[derive(Debug, Clone, Default)]
pub(in crate::car_racing::picture) struct ScoreText {
    chars: [u8; MAX_CHARS],
    cells: [[u8; ROWS]; COLUMNS],
}

impl ScoreText {
    /// Draws the score over the lower left corner of `frame`.
    pub(in crate::car_racing::picture) fn draw(&mut self, score: f64, frame: &mut [u8]) {
        let mut chars = [0; MAX_CHARS];
        // Longer text is cut off.
        let _ = write!(&mut chars[..], "{score:04.0}");
        if chars != self.chars {
            self.cells = cells(&chars);
            self.chars = chars;
        }
        for (x, column) in self.cells.iter().enumerate() {
            for (y, &grey) in column.iter().enumerate().filter(|&(_, &grey)| grey > 0) {
                frame[((FIRST_ROW + y) * SIDE + x) * 3..][..3].fill(grey);
            }
        }
    }
}

/// A digit (or minus) and the position of its origin on the canvas.
#[derive(Clone, Copy, Default)]
struct Placed {
    char: usize,
    x: i32,
}

impl Placed {
    /// First column of ink and the one after the last.
    fn ink(self) -> [i32; 2] {
        match self.char {
            1 => [3, 16],
            2 => [1, 21],
            MINUS => [1, 12],
            _ => [1, 22],
        }
        .map(|x| self.x + x)
    }
}

fn cells(chars: &[u8]) -> [[u8; ROWS]; COLUMNS] {
    let mut placed = [Placed::default(); MAX_CHARS];
    let mut n = 0;
    let mut pen = 0;
    let mut before = MINUS;
    for &c in chars {
        let char = match c {
            b'0'..=b'9' => usize::from(c - b'0'),
            b'-' => MINUS,
            _ => continue,
        };
        if n > 0 && before != MINUS && char != MINUS {
            pen += KERNING[before][char];
        }
        placed[n] = Placed { char, x: pen >> 6 };
        pen += 64 * if char == MINUS { 13 } else { 23 };
        before = char;
        n += 1;
    }
    let left = CENTRE_X - (pen >> 6) / 2;
    placed[..n].iter_mut().for_each(|p| p.x += left);
    std::array::from_fn(|cell| cell_levels(cell as i32, &placed[..n]))
}

/// The levels of one column of cells.
fn cell_levels(cell: i32, placed: &[Placed]) -> [u8; ROWS] {
    const ONE: i32 = 1 << 14;
    const SPACE: i32 = ONE * 1000 / SIDE as i32;
    let mut touching = [None; 2];
    let mut n = 0;
    for &p in placed {
        let [first, end] = p.ink();
        if first * ONE < (cell + 1) * SPACE && end * ONE > cell * SPACE && n < 2 {
            touching[n] = Some(p);
            n += 1;
        }
    }
    let half = |p: Option<Placed>| p.map_or(15, |p| p.char as u32 | ((p.x + 32) as u32) << 4) & 0x3FFF;
    let levels = |a, b| find(cell as u32 | half(a) << 4 | half(b) << 18);
    levels(touching[0], touching[1])
        .or_else(|| levels(touching[0], None))
        .or_else(|| levels(touching[1], None))
        .unwrap_or_default()
}

fn find(key: u32) -> Option<[u8; ROWS]> {
    let (mut low, mut high) = (0, CELLS.len() / RECORD);
    while low < high {
        let middle = usize::midpoint(low, high);
        let (at, levels) = CELLS[middle * RECORD..][..RECORD].split_first_chunk::<4>()?;
        match u32::from_le_bytes(*at).cmp(&key) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => return levels.try_into().ok(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(score: f64, text: &str) {
        let mut drawn = ScoreText::default();
        drawn.draw(score, &mut vec![0; 96 * 96 * 3]);
        let len = drawn.chars.iter().position(|&c| c == 0).unwrap_or(MAX_CHARS);
        assert_eq!(std::str::from_utf8(&drawn.chars[..len]), Ok(text));
    }

    #[test]
    fn scores_are_written_as_python_writes_them() {
        for (score, text) in [
            (0.0, "0000"),
            (-0.4, "-000"),
            (-0.5, "-000"),
            (0.5, "0000"),
            (1.5, "0002"),
            (2.5, "0002"),
            (-1.5, "-002"),
            (999.5, "1000"),
            (-1000.0, "-1000"),
            (12345.0, "12345"),
            (1e30, "100000000000"),
        ] {
            check(score, text);
        }
    }

    #[test]
    fn the_table_is_sorted() {
        let keys: Vec<u32> =
            CELLS.chunks_exact(RECORD).map(|r| u32::from_le_bytes(r[..4].try_into().unwrap())).collect();
        assert!(keys.len() > 2000 && keys.is_sorted() && CELLS.len().is_multiple_of(RECORD));
    }
}
