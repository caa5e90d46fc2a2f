//! The car: drawn at whole canvas pixels in a small window, then box-filtered.
//!
//! The car is small, so all its cells contain edges, and exact coverage would not reproduce the reference's
//! rounding. One bit per canvas pixel and colour is cheap: a row of the window is one word. Only changes of
//! bits along a row need additions.

use super::layer::BLOCKS;
use super::lens::{CELL_HEIGHT, CELL_WIDTH, Lens};
use super::spans::fill;
use crate::car_racing::scene::{Body, Scene, WHEEL_HALF_WIDTH, WHEEL_RADIUS, Wheel};
use crate::car_racing::shape;
use foveate_kernels::coverage::BLOCK;

/// Left edge of the window, canvas pixels.
const LEFT: i32 = 468;
/// Pixels per row: one bit of the word stays free for the end of a run.
const WIDTH: i32 = 63;
/// Upper edge of the window, canvas pixels, y down.
const TOP: i32 = 536;
/// Rows of the window.
const HEIGHT: usize = 128;
/// First column of cells that the window touches.
const FIRST_COLUMN: usize = 44;
/// First row of cells that the window touches.
pub(super) const FIRST_ROW: usize = 64;
/// Columns of cells.
const COLUMNS: usize = 8;
/// Rows of cells.
const ROWS: usize = 16;
/// The blocks of columns that the window touches.
pub(super) const BLOCKS_MASK: u16 = 1 << (FIRST_COLUMN / BLOCK) | 1 << ((FIRST_COLUMN + COLUMNS - 1) / BLOCK);

/// The pixels of one colour: one word per row of the window, bit 0 on the left.
type Mask = [u64; HEIGHT];
/// The coverage of one colour: per cell, the change from its left neighbour; the last column takes the rest.
type Changes = [[f32; COLUMNS + 2]; ROWS];
const NO_CHANGES: Changes = [[0.0; COLUMNS + 2]; ROWS];
/// A row of cells: per cell R, G, B to add, and the share of the ground that stays visible.
pub(super) type Row = [[f32; 4]; COLUMNS];

/// The car of one frame.
#[derive(Debug, Clone)]
pub(super) struct Car {
    hull: Hull,
    black: Mask,
    grey: Mask,
    cells: [Row; ROWS],
    /// Bit mask of the rows that are not empty.
    rows: u32,
}

/// The hull's pixels. They depend on its corners' pixels, which do not move while the camera does not zoom.
#[derive(Debug, Clone)]
struct Hull {
    corners: [[[i32; 2]; 8]; 4],
    red: Mask,
    changes: Changes,
}

impl Car {
    pub(super) fn new() -> Self {
        let hull = Hull { corners: [[[0; 2]; 8]; 4], red: [0; HEIGHT], changes: NO_CHANGES };
        Car { hull, black: [0; HEIGHT], grey: [0; HEIGHT], cells: [[[0.0; 4]; COLUMNS]; ROWS], rows: 0 }
    }

    /// Draws wheels, stripes and hull, and filters them.
    pub(super) fn draw(&mut self, scene: &Scene<'_>, lens: &Lens) {
        self.black = [0; HEIGHT];
        self.grey = [0; HEIGHT];
        for wheel in &scene.wheels {
            let ends = corners(&wheel.body, &shape::WHEEL, lens);
            paint(&ends[..4], |row, span| {
                self.black[row] |= span;
                self.grey[row] &= !span;
            });
            if let Some(stripe) = stripe(wheel) {
                let ends = corners(&wheel.body, &stripe, lens);
                paint(&ends[..4], |row, span| {
                    self.grey[row] |= span;
                    self.black[row] &= !span;
                });
            }
        }
        self.hull.update(&scene.hull, lens);
        self.filter();
    }

    /// The car's cells in row `row` of the picture.
    pub(super) fn row(&self, row: usize) -> Option<&Row> {
        let row = row.checked_sub(FIRST_ROW)?;
        self.cells.get(row).filter(|_| self.rows & (1 << row) != 0)
    }

    /// Coverage of the hull's last polygon, which lies above a blob; same layout as the car's rows.
    pub(super) fn tail(&self) -> [Row; ROWS] {
        let mut mask = [0; HEIGHT];
        paint(&self.hull.corners[3][..4], |row, span| mask[row] |= span);
        let mut changes = NO_CHANGES;
        for (row, &mask) in mask.iter().enumerate() {
            add_row(&mut changes, row, mask);
        }
        changes.map(|row| {
            let mut red = 0.0;
            std::array::from_fn(|column| {
                red += row[column];
                [204.0 * red, 0.0, 0.0, 1.0 - red]
            })
        })
    }

    /// Computes the share of each colour in every cell.
    fn filter(&mut self) {
        let (mut black, mut grey) = (NO_CHANGES, NO_CHANGES);
        for row in 0..HEIGHT {
            let red = self.hull.red[row];
            add_row(&mut black, row, self.black[row] & !red);
            add_row(&mut grey, row, self.grey[row] & !red);
        }
        self.rows = 0;
        for (row, cells) in self.cells.iter_mut().enumerate() {
            if [&black[row], &grey[row], &self.hull.changes[row]]
                .iter()
                .all(|changes| **changes == NO_CHANGES[0])
            {
                continue;
            }
            self.rows |= 1 << row;
            let mut sums = [0.0; 3];
            for (column, cell) in cells.iter_mut().enumerate() {
                sums[0] += black[row][column];
                sums[1] += grey[row][column];
                sums[2] += self.hull.changes[row][column];
                let [black, grey, red] = sums;
                *cell = [77.0 * grey + 204.0 * red, 77.0 * grey, 77.0 * grey, 1.0 - black - grey - red];
            }
        }
    }
}

/// Blends a row of the car over the current content: R, G, B (premultiplied) and coverage.
pub(super) fn cover(row: &Row, over: &mut [[[f32; 4]; BLOCK]; BLOCKS]) {
    for (over, &[r, g, b, keep]) in window(over).iter_mut().zip(row) {
        let [or, og, ob, cover] = *over;
        *over = [or * keep + r, og * keep + g, ob * keep + b, 1.0 - (1.0 - cover) * keep];
    }
}

/// The window's cells of a row.
pub(super) fn window(over: &mut [[[f32; 4]; BLOCK]; BLOCKS]) -> &mut Row {
    let cells = &mut over.as_flattened_mut()[FIRST_COLUMN..FIRST_COLUMN + COLUMNS];
    cells.try_into().expect("COLUMNS cells")
}

impl Hull {
    fn update(&mut self, body: &Body, lens: &Lens) {
        let mut ends = [[[0; 2]; 8]; 4];
        for (ends, polygon) in ends.iter_mut().zip(shape::HULL.iter()) {
            *ends = corners(body, polygon, lens);
        }
        if ends == self.corners {
            return;
        }
        self.corners = ends;
        self.red = [0; HEIGHT];
        for (ends, polygon) in ends.iter().zip(shape::HULL.iter()) {
            paint(&ends[..polygon.len().min(8)], |row, span| self.red[row] |= span);
        }
        self.changes = NO_CHANGES;
        for row in 0..HEIGHT {
            add_row(&mut self.changes, row, self.red[row]);
        }
    }
}

/// Corners of a polygon in whole canvas pixels, y up.
fn corners(body: &Body, polygon: &[[f32; 2]], lens: &Lens) -> [[i32; 2]; 8] {
    let mut ends = [[0; 2]; 8];
    for (end, &corner) in ends.iter_mut().zip(polygon) {
        // A body far from the hull is outside the window in any case.
        *end = lens.canvas(body.to_world(corner).map(f64::from)).map(|v| v.clamp(-1e6, 1e6) as i32);
    }
    ends
}

/// Calls `set(row of the window, bits)` for the spans of a polygon.
fn paint(ends: &[[i32; 2]], mut set: impl FnMut(usize, u64)) {
    fill(ends, |y, x0, x1| {
        let row = 799 - y - TOP;
        let (a, b) = ((x0 - LEFT).max(0), (x1 - LEFT).min(WIDTH - 1));
        if a <= b && (0..HEIGHT as i32).contains(&row) {
            set(row as usize, (u64::MAX >> (63 - (b - a))) << a);
        }
    });
}

/// Adds the contribution of a row of pixels to the one or two rows of cells that it overlaps.
fn add_row(changes: &mut Changes, row: usize, mask: u64) {
    let Place { cell, near, far } = DOWN[row];
    let mut ends = mask ^ (mask << 1);
    let mut sign = 1.0;
    while ends != 0 {
        let at = &ACROSS[ends.trailing_zeros() as usize];
        let amount = sign * near;
        changes[cell][at.cell] += amount * at.near;
        changes[cell][at.cell + 1] += amount * at.far;
        if far > 0.0 {
            let amount = sign * far;
            changes[cell + 1][at.cell] += amount * at.near;
            changes[cell + 1][at.cell + 1] += amount * at.far;
        }
        sign = -sign;
        ends &= ends - 1;
    }
}

/// Maps a position in the window to cells.
#[derive(Clone, Copy)]
struct Place {
    cell: usize,
    near: f32,
    far: f32,
}

/// For a run that starts at pixel `i`: its first cell, the part of that cell right of the start, and the
/// remainder, which is added to the next cell.
const ACROSS: [Place; 64] = {
    let mut places = [Place { cell: 0, near: 0.0, far: 0.0 }; 64];
    let mut i = 0;
    while i < 64 {
        let at = (LEFT + i as i32) as f32 / CELL_WIDTH - FIRST_COLUMN as f32;
        let cell = at as usize;
        places[i] = Place { cell, near: 1.0 - (at - cell as f32), far: at - cell as f32 };
        i += 1;
    }
    places
};

/// For row `i`: its first row of cells, its share of that row, and its share of the next one.
const DOWN: [Place; HEIGHT] = {
    let mut places = [Place { cell: 0, near: 0.0, far: 0.0 }; HEIGHT];
    let mut i = 0;
    while i < HEIGHT {
        let top = (TOP + i as i32) as f32 / CELL_HEIGHT - FIRST_ROW as f32;
        let cell = top as usize;
        let height = 1.0 / CELL_HEIGHT;
        let room = (cell + 1) as f32 - top;
        // A tiny remainder is a rounding error, not a second row.
        let far = if room + 1e-4 < height { height - room } else { 0.0 };
        places[i] = Place { cell, near: height - far, far };
        i += 1;
    }
    places
};

/// The light stripe of a rolling wheel, in wheel coordinates, when it is on the upper side (`Car.draw`).
pub(in crate::car_racing::picture) fn stripe(wheel: &Wheel) -> Option<[[f32; 2]; 4]> {
    let (a1, a2) = (wheel.phase, wheel.phase + 1.2);
    let (s1, mut c1) = a1.sin_cos();
    let (s2, mut c2) = a2.sin_cos();
    if s1 > 0.0 && s2 > 0.0 {
        return None;
    }
    let sign = |v: f64| if v == 0.0 { 0.0 } else { v.signum() };
    if s1 > 0.0 {
        c1 = sign(c1);
    }
    if s2 > 0.0 {
        c2 = sign(c2);
    }
    let (w, y1, y2) = (WHEEL_HALF_WIDTH as f32, (WHEEL_RADIUS * c1) as f32, (WHEEL_RADIUS * c2) as f32);
    Some([[-w, y1], [w, y1], [w, y2], [-w, y2]])
}
