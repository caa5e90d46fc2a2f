//! Cells and the grid of them.

/// What a cell holds: kind, colour and state in the package's codes, and whether one cannot see past it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Cell {
    /// Kind, colour, state.
    pub codes: [u8; 3],
    /// True if it hides what is behind.
    pub opaque: bool,
}

/// The kind of what a cell holds, by its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Never seen.
    Unseen = 0,
    /// Nothing.
    Empty = 1,
    /// A wall.
    Wall = 2,
    /// A coloured floor.
    Floor = 3,
    /// A door.
    Door = 4,
    /// A key.
    Key = 5,
    /// A ball.
    Ball = 6,
    /// A box.
    Box = 7,
    /// The goal.
    Goal = 8,
    /// Lava.
    Lava = 9,
    /// The agent, in complete views.
    Agent = 10,
}

impl Kind {
    /// All kinds, by their codes.
    pub(super) const ALL: [Kind; 11] = [
        Kind::Unseen,
        Kind::Empty,
        Kind::Wall,
        Kind::Floor,
        Kind::Door,
        Kind::Key,
        Kind::Ball,
        Kind::Box,
        Kind::Goal,
        Kind::Lava,
        Kind::Agent,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Unseen => "unseen",
            Kind::Empty => "empty",
            Kind::Wall => "wall",
            Kind::Floor => "floor",
            Kind::Door => "door",
            Kind::Key => "key",
            Kind::Ball => "ball",
            Kind::Box => "box",
            Kind::Goal => "goal",
            Kind::Lava => "lava",
            Kind::Agent => "agent",
        }
    }
}

/// A colour, by its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Color {
    /// Red.
    Red = 0,
    /// Green.
    Green = 1,
    /// Blue.
    Blue = 2,
    /// Purple.
    Purple = 3,
    /// Yellow.
    Yellow = 4,
    /// Grey.
    Grey = 5,
}

impl Color {
    /// All colours, by their codes.
    pub const ALL: [Color; 6] =
        [Color::Red, Color::Green, Color::Blue, Color::Purple, Color::Yellow, Color::Grey];

    /// The names of all colours, by their codes.
    pub const NAMES: [&'static str; 6] = ["red", "green", "blue", "purple", "yellow", "grey"];

    /// The colour of this name.
    pub fn named(name: &str) -> Option<Color> {
        Color::NAMES.iter().position(|&known| known == name).map(|code| Color::ALL[code])
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        Color::NAMES[self as usize]
    }

    /// Red, green and blue.
    pub const fn rgb(self) -> [u8; 3] {
        match self {
            Color::Red => [255, 0, 0],
            Color::Green => [0, 255, 0],
            Color::Blue => [0, 0, 255],
            Color::Purple => [112, 39, 195],
            Color::Yellow => [255, 255, 0],
            Color::Grey => [100, 100, 100],
        }
    }
}

/// The state of a door: open, closed or locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DoorState {
    /// One can walk and see through.
    Open = 0,
    /// It opens when toggled.
    Closed = 1,
    /// It opens with a key of its colour.
    Locked = 2,
}

impl Cell {
    /// Nothing.
    pub const EMPTY: Cell = Cell::new(Kind::Empty, Color::Red);
    /// Not seen.
    pub const UNSEEN: Cell = Cell::new(Kind::Unseen, Color::Red);
    /// A grey wall.
    pub const WALL: Cell = Cell { opaque: true, ..Cell::new(Kind::Wall, Color::Grey) };
    /// The green goal.
    pub const GOAL: Cell = Cell::new(Kind::Goal, Color::Green);
    /// Lava.
    pub const LAVA: Cell = Cell::new(Kind::Lava, Color::Red);

    const fn new(kind: Kind, color: Color) -> Self {
        Cell { codes: [kind as u8, color as u8, 0], opaque: false }
    }

    /// A key of this colour.
    pub const fn key(color: Color) -> Self {
        Cell::new(Kind::Key, color)
    }

    /// A ball of this colour.
    pub const fn ball(color: Color) -> Self {
        Cell::new(Kind::Ball, color)
    }

    /// A door of this colour.
    pub const fn door(color: Color, state: DoorState) -> Self {
        let opaque = !matches!(state, DoorState::Open);
        Cell { codes: [Kind::Door as u8, color as u8, state as u8], opaque }
    }

    /// What it holds: its kind.
    pub fn kind(self) -> Kind {
        Kind::ALL.get(usize::from(self.codes[0])).copied().unwrap_or(Kind::Unseen)
    }

    /// Its colour.
    pub fn color(self) -> Color {
        Color::ALL.get(usize::from(self.codes[1])).copied().unwrap_or(Color::Grey)
    }

    /// Returns whether it is an object: neither empty, unseen, a wall, a floor nor the agent.
    pub const fn is_object(self) -> bool {
        self.codes[0] >= Kind::Door as u8 && self.codes[0] <= Kind::Lava as u8
    }

    /// What it holds, for people: `wall`, `yellow key`, `locked yellow door`. Goal and lava are named without the colour
    /// that the package gives them.
    pub fn describe(self) -> String {
        let (kind, color) = (self.kind(), self.color());
        match kind {
            Kind::Door => {
                let state = ["open ", "closed ", "locked "].get(usize::from(self.codes[2])).unwrap_or(&"");
                format!("{state}{} door", color.name())
            }
            Kind::Goal if color == Color::Green => kind.name().into(),
            Kind::Lava if color == Color::Red => kind.name().into(),
            _ if self.is_object() => format!("{} {}", color.name(), kind.name()),
            _ => kind.name().into(),
        }
    }

    /// The same in another colour.
    #[must_use]
    pub const fn recolored(self, color: Color) -> Cell {
        Cell { codes: [self.codes[0], color as u8, self.codes[2]], ..self }
    }

    /// Returns whether it holds something of this kind.
    pub const fn is(self, kind: Kind) -> bool {
        self.codes[0] == kind as u8
    }

    /// Returns whether the agent can walk onto it.
    pub const fn can_be_entered(self) -> bool {
        let open = self.codes[2] == DoorState::Open as u8;
        self.is(Kind::Empty)
            || self.is(Kind::Floor)
            || self.is(Kind::Goal)
            || self.is(Kind::Lava)
            || (self.is(Kind::Door) && open)
    }

    /// Returns whether the agent can pick it up.
    pub const fn can_be_carried(self) -> bool {
        self.is(Kind::Key) || self.is(Kind::Ball) || self.is(Kind::Box)
    }
}

/// Cells around the grid that count as walls, so that no view leaves the memory.
const MARGIN: usize = 7;

/// A grid of cells; x to the right, y downwards, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    width: usize,
    height: usize,
    /// `[height + 2 * MARGIN, width + 2 * MARGIN]`
    all: Vec<Cell>,
}

impl Cells {
    /// Empty cells with walls around them.
    pub fn new(width: usize, height: usize) -> Self {
        let mut cells = Cells { width, height, all: vec![] };
        cells.all.resize((width + 2 * MARGIN) * (height + 2 * MARGIN), Cell::WALL);
        cells.clear();
        cells
    }

    /// Empties all cells but the walls at the border.
    pub fn clear(&mut self) {
        self.all.fill(Cell::WALL);
        for y in 1..self.height.saturating_sub(1) {
            for x in 1..self.width.saturating_sub(1) {
                self.set([x, y], Cell::EMPTY);
            }
        }
    }

    /// Number of columns.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub const fn height(&self) -> usize {
        self.height
    }

    /// The place of a cell in memory.
    pub(super) const fn place(&self, [x, y]: [usize; 2]) -> usize {
        (y + MARGIN) * (self.width + 2 * MARGIN) + x + MARGIN
    }

    /// The distance in memory to the neighbour in each direction: right, down, left, up.
    pub(super) const fn strides(&self) -> [isize; 4] {
        let row = (self.width + 2 * MARGIN) as isize;
        [1, row, -1, -row]
    }

    /// All cells in memory.
    pub(super) fn all(&self) -> &[Cell] {
        &self.all
    }

    /// The cell at column x and row y.
    ///
    /// # Panics
    /// When it lies far outside.
    pub fn get(&self, at: [usize; 2]) -> Cell {
        self.all[self.place(at)]
    }

    /// Replaces the cell at column x and row y.
    ///
    /// # Panics
    /// When it lies outside.
    pub fn set(&mut self, at: [usize; 2], cell: Cell) {
        assert!(at[0] < self.width && at[1] < self.height, "{at:?} lies outside of the grid");
        let place = self.place(at);
        self.all[place] = cell;
    }
}
