//! What the agent sees: the 7 × 7 cells before it, without those that are hidden.

use std::sync::LazyLock;

use super::cell::{Cell, Cells};

/// Cells in a side of the view.
pub const VIEW: usize = 7;

/// Where the agent stands in its view: column 3 of the last row, looking towards row 0.
pub const AGENT: [usize; 2] = [3, 6];

/// The rules of sight, for one row of the view: by the cells of it that are seen from below and those that are
/// transparent, all cells of it that are seen, and those of the row above that are seen from it.
///
/// `[2^7 seen, 2^7 transparent]`, low byte: this row; high byte: the row above.
static ROWS: LazyLock<Box<[u16]>> = LazyLock::new(|| {
    let mut rows = Vec::with_capacity(1 << (2 * VIEW));
    for seen in 0..1_u16 << VIEW {
        for clear in 0..1_u16 << VIEW {
            let (mut row, mut above) = (seen, 0);
            // From left to right, then from right to left: light passes to the next cell and to the two above.
            for i in 0..VIEW - 1 {
                if row & clear & 1 << i != 0 {
                    row |= 1 << (i + 1);
                    above |= 0b11 << i;
                }
            }
            for i in (1..VIEW).rev() {
                if row & clear & 1 << i != 0 {
                    row |= 1 << (i - 1);
                    above |= 0b11 << (i - 1);
                }
            }
            rows.push(row | above << 8);
        }
    }
    rows.into()
});

/// The view of an agent: what is there, and which of it is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// `[column, row]`, column from the left, row from the far end: what is there, with the agent's own cell replaced by
    /// what it carries.
    pub cells: [[Cell; VIEW]; VIEW],
    /// For each row, the columns that are seen, as bits.
    seen: [u16; VIEW],
}

impl Sight {
    /// What an agent at `place` in memory sees that looks in `direction` (0 right, 1 down, 2 left, 3 up), and carries this.
    /// `through` makes all cells visible.
    #[inline]
    pub(super) fn of(grid: &Cells, place: usize, direction: usize, carried: Cell, through: bool) -> Sight {
        let strides = grid.strides();
        let (ahead, right) = (strides[direction], strides[(direction + 1) % 4]);
        let all = grid.all();
        let corner = place as isize + 6 * ahead - 3 * right;
        let mut cells = [[Cell::UNSEEN; VIEW]; VIEW];
        let mut clear = [0_u16; VIEW];
        for (i, column) in cells.iter_mut().enumerate() {
            for (j, cell) in column.iter_mut().enumerate() {
                *cell = all[(corner + i as isize * right - j as isize * ahead) as usize];
                clear[j] |= u16::from(!cell.opaque) << i;
            }
        }
        let mut seen = [0x7f; VIEW];
        if !through {
            let table = &*ROWS;
            let mut row = 1_u16 << AGENT[0];
            for j in (0..VIEW).rev() {
                let both = table[usize::from(row << VIEW | clear[j])];
                seen[j] = both & 0x7f;
                row = both >> 8;
            }
        }
        cells[AGENT[0]][AGENT[1]] = carried;
        Sight { cells, seen }
    }

    /// Returns whether the cell in this column and row is seen.
    pub const fn sees(&self, column: usize, row: usize) -> bool {
        self.seen[row] >> column & 1 == 1
    }

    /// The codes of all cells, `[column, row]`; zeros for those that are not seen.
    #[inline]
    fn codes(&self) -> impl Iterator<Item = [u8; 3]> {
        self.cells
            .as_flattened()
            .iter()
            .enumerate()
            .map(|(at, cell)| if self.sees(at / VIEW, at % VIEW) { cell.codes } else { Cell::UNSEEN.codes })
    }

    /// Writes the codes of all cells, `[column, row, 3]`.
    #[inline]
    pub(super) fn write(&self, codes: &mut [u8]) {
        for (cell, to) in self.codes().zip(codes.as_chunks_mut::<3>().0) {
            *to = cell;
        }
    }

    /// Writes the cells with a bit for each kind, colour and state: `[column, row, 11 + 6 + 3]`.
    pub(super) fn write_bits(&self, bits: &mut [u8]) {
        bits.fill(0);
        for (cell, to) in self.codes().zip(bits.as_chunks_mut::<ONE_HOT>().0) {
            let [kind, color, state] = cell.map(usize::from);
            to[kind] = 1;
            to[11 + color] = 1;
            to[17 + state] = 1;
        }
    }
}

/// Bits of a cell: 11 kinds, 6 colours, 3 states.
pub const ONE_HOT: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule written out cell by cell.
    fn plain(clear: &[[bool; VIEW]; VIEW]) -> [[bool; VIEW]; VIEW] {
        let mut seen = [[false; VIEW]; VIEW];
        seen[AGENT[0]][AGENT[1]] = true;
        for j in (0..VIEW).rev() {
            let order = (0..VIEW - 1).map(|i| (i, i + 1)).chain((1..VIEW).rev().map(|i| (i, i - 1)));
            for (i, next) in order {
                if seen[i][j] && clear[i][j] {
                    seen[next][j] = true;
                    if j > 0 {
                        seen[next][j - 1] = true;
                        seen[i][j - 1] = true;
                    }
                }
            }
        }
        seen
    }

    #[test]
    fn the_table_is_the_rule() {
        let mut rng = foveate_core::Seed::root(3).rng();
        for _ in 0..2000 {
            let mut grid = Cells::new(17, 17);
            for x in 0..17 {
                for y in 0..17 {
                    grid.set([x, y], if rng.uniform(0.0, 1.0) < 0.3 { Cell::WALL } else { Cell::GOAL });
                }
            }
            let clear: [[bool; VIEW]; VIEW] =
                std::array::from_fn(|i| std::array::from_fn(|j| !grid.get([5 + i, 2 + j]).opaque));
            let sight =
                Sight::of(&grid, grid.place([8, 8]), 3, Cell::key(super::super::cell::Color::Red), false);
            let expect = plain(&clear);
            for (i, column) in expect.iter().enumerate() {
                for (j, &expect) in column.iter().enumerate() {
                    if [i, j] != AGENT {
                        assert_eq!(sight.sees(i, j), expect, "column {i}, row {j}");
                    }
                }
            }
        }
    }
}
