//! How each world is laid out, with random numbers in the package's order.

use super::cell::{Cell, Cells, Color, DoorState, Kind};
use super::expert::Expert;
use crate::random::Pcg64;

/// A kind of world, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A wall with a locked door divides the room; the key lies on the agent's side, the goal on the other.
    DoorKey {
        /// Cells in a side, walls included.
        size: usize,
    },
    /// An empty room with a goal.
    Empty {
        /// Cells in a side, walls included.
        size: usize,
        /// True if the agent starts anywhere.
        random: bool,
    },
    /// Four rooms with openings between them, 19 × 19 cells.
    FourRooms,
    /// Rivers of lava, or walls, each with an opening.
    Crossing {
        /// Cells in a side, walls included; odd.
        size: usize,
        /// Number of rivers.
        crossings: usize,
        /// Lava, else walls.
        lava: bool,
    },
}

/// A colour of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Always this one.
    Fixed(Color),
    /// Another one in each episode, uniformly.
    Random,
}

/// Changes of `DoorKey` that the package does not have; the default is the package's world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorKeyChanges {
    /// The colour of door and key.
    pub color: Paint,
    /// The colour of a second key in the agent's room, which does not fit the door; `None` for no second key.
    pub second_key: Option<Paint>,
}

impl Default for DoorKeyChanges {
    fn default() -> Self {
        DoorKeyChanges { color: Paint::Fixed(Color::Yellow), second_key: None }
    }
}

impl DoorKeyChanges {
    /// Applies them to a `DoorKey` world that was just laid out, with random numbers of a stream of their own, so that the
    /// layout is the package's.
    ///
    /// The second key lies in a free cell left of the door, drawn uniformly from those that leave a way to the goal without
    /// moving it; where there is none, as in half of the starts of 5 × 5, there is no second key.
    pub(super) fn apply(self, cells: &mut Cells, start: Start, stream: &mut Pcg64, search: &mut Expert) {
        let others = |taken: Option<Color>| Color::ALL.into_iter().filter(move |&color| Some(color) != taken);
        let mut any = |taken: Option<Color>| {
            let place = draw(stream, 0, others(taken).count());
            others(taken).nth(place).unwrap_or(Color::Yellow)
        };
        let second = |of: Option<Paint>| match of {
            Some(Paint::Fixed(color)) => Some(color),
            Some(Paint::Random) | None => None,
        };
        let color = match self.color {
            Paint::Fixed(color) => color,
            Paint::Random => any(second(self.second_key)),
        };
        let mut door_at = 0;
        for x in 0..cells.width() {
            for y in 0..cells.height() {
                let cell = cells.get([x, y]);
                if cell.is(Kind::Door) || cell.is(Kind::Key) {
                    cells.set([x, y], cell.recolored(color));
                }
                if cell.is(Kind::Door) {
                    door_at = x;
                }
            }
        }
        let second = match self.second_key {
            None => return,
            Some(Paint::Fixed(color)) => color,
            Some(Paint::Random) => any(Some(color)),
        };
        let mut free: Vec<[usize; 2]> = vec![];
        for x in 0..door_at {
            for y in 0..cells.height() {
                let at = [x, y];
                if cells.get(at) != Cell::EMPTY || at == start.at {
                    continue;
                }
                cells.set(at, Cell::key(second));
                if search.act(cells, start, Cell::EMPTY).is_some() {
                    free.push(at);
                }
                cells.set(at, Cell::EMPTY);
            }
        }
        if !free.is_empty() {
            cells.set(free[draw(stream, 0, free.len())], Cell::key(second));
        }
    }
}

/// Where the agent starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Column and row.
    pub at: [usize; 2],
    /// 0 right, 1 down, 2 left, 3 up.
    pub direction: usize,
}

impl Layout {
    /// Cells in a side, walls included.
    pub const fn size(self) -> usize {
        match self {
            Layout::DoorKey { size } | Layout::Empty { size, .. } | Layout::Crossing { size, .. } => size,
            Layout::FourRooms => 19,
        }
    }

    /// Steps after which an episode is truncated.
    pub const fn max_steps(self) -> usize {
        match self {
            Layout::DoorKey { size } => 10 * size * size,
            Layout::Empty { size, .. } | Layout::Crossing { size, .. } => 4 * size * size,
            Layout::FourRooms => 100,
        }
    }

    /// Returns whether the agent sees through walls.
    pub const fn sees_through(self) -> bool {
        matches!(self, Layout::Empty { .. })
    }

    /// Lays out `cells`, of [`Layout::size`], with random numbers of `stream`.
    pub fn lay(self, cells: &mut Cells, stream: &mut Pcg64) -> Start {
        cells.clear();
        match self {
            Layout::DoorKey { size } => door_key(size, cells, stream),
            Layout::Empty { size, random } => {
                cells.set([size - 2, size - 2], Cell::GOAL);
                if random { place_agent(cells, stream, size) } else { Start { at: [1, 1], direction: 0 } }
            }
            Layout::FourRooms => four_rooms(cells, stream),
            Layout::Crossing { size, crossings, lava } => crossing(size, crossings, lava, cells, stream),
        }
    }
}

/// Uniform in `low..high`.
fn draw(stream: &mut Pcg64, low: usize, high: usize) -> usize {
    low + stream.integers((high - low) as u32) as usize
}

/// A free cell left of column `columns`, other than `taken`.
fn free(cells: &Cells, stream: &mut Pcg64, columns: usize, taken: Option<[usize; 2]>) -> [usize; 2] {
    loop {
        let at = [draw(stream, 0, columns), draw(stream, 0, cells.height())];
        if cells.get(at) == Cell::EMPTY && Some(at) != taken {
            return at;
        }
    }
}

fn place_agent(cells: &Cells, stream: &mut Pcg64, columns: usize) -> Start {
    let at = free(cells, stream, columns, None);
    Start { at, direction: draw(stream, 0, 4) }
}

fn door_key(size: usize, cells: &mut Cells, stream: &mut Pcg64) -> Start {
    cells.set([size - 2, size - 2], Cell::GOAL);
    let wall = draw(stream, 2, size - 2);
    for y in 0..size {
        cells.set([wall, y], Cell::WALL);
    }
    let start = place_agent(cells, stream, wall);
    let row = draw(stream, 1, size - 2);
    cells.set([wall, row], Cell::door(Color::Yellow, DoorState::Locked));
    let key = free(cells, stream, wall, Some(start.at));
    cells.set(key, Cell::key(Color::Yellow));
    start
}

fn four_rooms(cells: &mut Cells, stream: &mut Pcg64) -> Start {
    const ROOM: usize = 9;
    for j in 0..2 {
        for i in 0..2 {
            let [left, top] = [i * ROOM, j * ROOM];
            let [right, bottom] = [left + ROOM, top + ROOM];
            if i == 0 {
                for y in top..bottom {
                    cells.set([right, y], Cell::WALL);
                }
                let y = draw(stream, top + 1, bottom);
                cells.set([right, y], Cell::EMPTY);
            }
            if j == 0 {
                for x in left..right {
                    cells.set([x, bottom], Cell::WALL);
                }
                let x = draw(stream, left + 1, right);
                cells.set([x, bottom], Cell::EMPTY);
            }
        }
    }
    let start = place_agent(cells, stream, cells.width());
    let goal = free(cells, stream, cells.width(), Some(start.at));
    cells.set(goal, Cell::GOAL);
    start
}

/// `Generator.shuffle` of a list: Fisher and Yates from the end.
fn shuffle<T>(stream: &mut Pcg64, list: &mut [T]) {
    for i in (1..list.len()).rev() {
        list.swap(i, stream.interval(i as u32) as usize);
    }
}

fn crossing(size: usize, crossings: usize, lava: bool, cells: &mut Cells, stream: &mut Pcg64) -> Start {
    cells.set([size - 2, size - 2], Cell::GOAL);
    // Whether a river is vertical, and its column or row.
    let mut rivers: Vec<(bool, usize)> = [true, false]
        .into_iter()
        .flat_map(|vertical| (2..size - 2).step_by(2).map(move |at| (vertical, at)))
        .collect();
    shuffle(stream, &mut rivers);
    rivers.truncate(crossings);
    let of = |wanted: bool| {
        let mut places: Vec<usize> =
            rivers.iter().filter(|(vertical, _)| *vertical == wanted).map(|(_, at)| *at).collect();
        places.sort_unstable();
        places
    };
    let (columns, rows) = (of(true), of(false));
    let river = if lava { Cell::LAVA } else { Cell::WALL };
    for along in 1..size - 1 {
        for &y in &rows {
            cells.set([along, y], river);
        }
        for &x in &columns {
            cells.set([x, along], river);
        }
    }
    // The order in which a way to the goal crosses them; true crosses a vertical one.
    let mut path = [vec![true; columns.len()], vec![false; rows.len()]].concat();
    shuffle(stream, &mut path);
    let [columns, rows] = [columns, rows].map(|places| [&[0], &places[..], &[size - 1]].concat());
    let [mut i, mut j] = [0, 0];
    for vertical in path {
        let at = if vertical {
            let y = draw(stream, rows[j] + 1, rows[j + 1]);
            i += 1;
            [columns[i], y]
        } else {
            let x = draw(stream, columns[i] + 1, columns[i + 1]);
            j += 1;
            [x, rows[j]]
        };
        cells.set(at, Cell::EMPTY);
    }
    Start { at: [1, 1], direction: 0 }
}
