//! [`MiniGrid`] as an [`Env`].

use std::sync::Arc;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, Grid, GridView, ImageBuf, Observation,
    ObservationSpace, PixelShape, Pixels, StateEdit, Step,
};

use super::cell::{Cell, Cells, Color, DoorState, Kind};
use super::expert::{Act, Expert};
use super::layout::{DoorKeyChanges, Layout, Start};
use super::sight::{AGENT, ONE_HOT, Sight, VIEW};
use super::tiles::tile;
use crate::random::Pcg64;

/// Pixels in a side of a cell, in pictures that agents see.
const TILE: usize = 8;
/// The seed of a world that never got one.
const DEFAULT_SEED: u64 = 0;
/// Makes another seed of a seed.
const OWN: u64 = 0x6f77_6e20_7365_6564;

/// What the agent is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shows {
    /// The 7 × 7 cells before it, `[column, row, 3]`: kind, colour and state of each. The agent stands in column 3 of the
    /// last row.
    #[default]
    View,
    /// The same with a bit for each kind, colour and state, `[column, row, 20]`.
    OneHot,
    /// The whole grid, `[column, row, 3]`; the agent's cell shows its direction.
    Full,
    /// The 7 × 7 cells before it as a picture of 56 × 56 pixels.
    Picture,
    /// The whole grid as a picture with 8 × 8 pixels in a cell.
    FullPicture,
}

/// The actions that an agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ActionSet {
    /// The package's seven: left, right, forward, pick up, drop, toggle, done.
    #[default]
    All,
    /// Left, right, forward, pick up, toggle.
    Five,
}

/// The settings of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiniGridConfig {
    /// How it is laid out.
    pub layout: Layout,
    /// What the agent is shown.
    pub shows: Shows,
    /// The actions that it has.
    pub actions: ActionSet,
    /// Steps after which an episode is truncated; rewards depend on it, too.
    pub max_steps: usize,
    /// What is not as in the package; of `DoorKey` only.
    pub changes: DoorKeyChanges,
}

/// A world of cells.
///
/// * observation: see [`Shows`]
/// * action: a choice, see [`ActionSet`]
/// * reward: 1 − 0.9 · steps / limit at the goal, else 0
/// * end: terminated at the goal or in lava, truncated at the limit
#[derive(Clone)]
pub struct MiniGrid {
    pub(super) config: MiniGridConfig,
    pub(super) spec: EnvSpec,
    stream: Pcg64,
    /// Draws what the package does not have.
    own_stream: Pcg64,
    pub(super) cells: Cells,
    pub(super) at: [usize; 2],
    pub(super) direction: usize,
    pub(super) carried: Cell,
    steps: usize,
    pub(super) running: bool,
    shown: Vec<u8>,
    tiles: Option<Arc<Tiles>>,
    expert: Expert,
}

/// Steps to the right, down, left and up.
pub(super) const AHEAD: [[isize; 2]; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

impl MiniGrid {
    /// Builds the world called `id`; it must be reset before the first step.
    pub fn new(id: &str, config: MiniGridConfig) -> Self {
        let size = config.layout.size();
        let observation = match config.shows {
            Shows::View => ObservationSpace::Grid { rows: VIEW, columns: VIEW, channels: 3 },
            Shows::OneHot => ObservationSpace::Grid { rows: VIEW, columns: VIEW, channels: ONE_HOT },
            Shows::Full => ObservationSpace::Grid { rows: size, columns: size, channels: 3 },
            Shows::Picture => ObservationSpace::Image(PixelShape::rgb(VIEW * TILE, VIEW * TILE)),
            Shows::FullPicture => ObservationSpace::Image(PixelShape::rgb(size * TILE, size * TILE)),
        };
        let len = match &observation {
            ObservationSpace::Grid { rows, columns, channels } => rows * columns * channels,
            ObservationSpace::Image(shape) => shape.frame_len(),
            ObservationSpace::Vector { .. } | ObservationSpace::Dict(_) => 0,
        };
        let choices = match config.actions {
            ActionSet::All => 7,
            ActionSet::Five => 5,
        };
        let pictures = matches!(config.shows, Shows::Picture | Shows::FullPicture);
        let mut world = MiniGrid {
            config,
            spec: EnvSpec {
                id: id.into(),
                observation,
                action: ActionSpace::Discrete { n: choices },
                max_steps: Some(config.max_steps),
                fps: 10.0,
            },
            stream: Pcg64::seeded(DEFAULT_SEED),
            own_stream: Pcg64::seeded(DEFAULT_SEED ^ OWN),
            cells: Cells::new(size, size),
            at: [1, 1],
            direction: 0,
            carried: Cell::EMPTY,
            steps: 0,
            running: false,
            shown: vec![0; len],
            tiles: pictures.then(|| Arc::new(Tiles::new(TILE))),
            expert: Expert::default(),
        };
        world.look();
        world
    }

    /// The cells.
    pub const fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Replaces a cell, for interventions: what an agent does when an object is moved, recoloured or removed.
    ///
    /// # Panics
    /// When it lies outside of the grid.
    pub fn set_cell(&mut self, at: [usize; 2], cell: Cell) {
        self.cells.set(at, cell);
        self.look();
    }

    /// Where the agent is, and in which direction it looks: 0 right, 1 down, 2 left, 3 up.
    pub const fn agent(&self) -> Start {
        Start { at: self.at, direction: self.direction }
    }

    /// What the agent sees.
    #[inline]
    pub fn sight(&self) -> Sight {
        let place = self.cells.place(self.at);
        Sight::of(&self.cells, place, self.direction, self.carried, self.config.layout.sees_through())
    }

    /// The cell before the agent; a wall at the border.
    pub(super) fn front(&self) -> [usize; 2] {
        let [dx, dy] = AHEAD[self.direction];
        // A wall surrounds the grid, so nobody stands at its border.
        [self.at[0].wrapping_add_signed(dx), self.at[1].wrapping_add_signed(dy)]
    }

    /// Writes the observation.
    #[inline]
    pub(super) fn look(&mut self) {
        match self.config.shows {
            Shows::View => {
                let sight = self.sight();
                sight.write(&mut self.shown);
            }
            Shows::OneHot => {
                let sight = self.sight();
                sight.write_bits(&mut self.shown);
            }
            Shows::Full => {
                let size = self.cells.width();
                for (at, codes) in self.shown.as_chunks_mut::<3>().0.iter_mut().enumerate() {
                    *codes = self.cells.get([at / size, at % size]).codes;
                }
                let own = (self.at[0] * size + self.at[1]) * 3;
                let agent = [Kind::Agent as u8, Color::Red as u8, self.direction as u8];
                self.shown[own..own + 3].copy_from_slice(&agent);
            }
            Shows::Picture => {
                let sight = self.sight();
                let Some(tiles) = &self.tiles else { return };
                for (i, column) in sight.cells.iter().enumerate() {
                    for (j, &cell) in column.iter().enumerate() {
                        // The agent looks upwards in its own view. Cells that it does not see are drawn as empty ones.
                        let agent = ([i, j] == AGENT).then_some(3);
                        let seen = sight.sees(i, j);
                        let cell = if seen { cell } else { Cell::UNSEEN };
                        tiles.put(cell, agent, seen, [i, j], VIEW, &mut self.shown);
                    }
                }
            }
            Shows::FullPicture => {
                let lit = self.lit();
                let Some(tiles) = &self.tiles else { return };
                let size = self.cells.width();
                for x in 0..size {
                    for y in 0..size {
                        let agent = ([x, y] == self.at).then_some(self.direction);
                        tiles.put(self.cells.get([x, y]), agent, lit(x, y), [x, y], size, &mut self.shown);
                    }
                }
            }
        }
    }

    /// Which cells of the grid the agent sees.
    fn lit(&self) -> impl Fn(usize, usize) -> bool + use<> {
        let sight = self.sight();
        let (at, direction) = (self.at.map(|x| x as isize), self.direction);
        let (ahead, right) = (AHEAD[direction], AHEAD[(direction + 1) % 4]);
        move |x, y| {
            let [dx, dy] = [x as isize - at[0], y as isize - at[1]];
            let far = dx * ahead[0] + dy * ahead[1];
            let side = dx * right[0] + dy * right[1];
            let (i, j) = (side + AGENT[0] as isize, AGENT[1] as isize - far);
            let inside = (0..VIEW as isize).contains(&i) && (0..VIEW as isize).contains(&j);
            inside && sight.sees(i as usize, j as usize)
        }
    }
}

impl Env for MiniGrid {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.stream = Pcg64::seeded(seed);
            self.own_stream = Pcg64::seeded(seed ^ OWN);
        }
        let start = self.config.layout.lay(&mut self.cells, &mut self.stream);
        let changes = self.config.changes;
        if changes != DoorKeyChanges::default() && matches!(self.config.layout, Layout::DoorKey { .. }) {
            changes.apply(&mut self.cells, start, &mut self.own_stream, &mut self.expert);
        }
        (self.at, self.direction) = (start.at, start.direction);
        (self.carried, self.steps, self.running) = (Cell::EMPTY, 0, true);
        self.look();
    }

    #[inline]
    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        self.spec.action.check(&self.spec.id, action)?;
        let Action::Discrete(action) = action else { unreachable!("its space is one of choices") };
        let action = if self.config.actions == ActionSet::Five && action == 4 { 5 } else { action };
        self.steps += 1;
        let mut step = Step::default();
        let front = self.front();
        let ahead = self.cells.get(front);
        match action {
            0 => self.direction = (self.direction + 3) % 4,
            1 => self.direction = (self.direction + 1) % 4,
            2 if ahead.can_be_entered() => {
                self.at = front;
                if ahead.is(Kind::Goal) {
                    step.terminated = true;
                    step.reward = 1.0 - 0.9 * (self.steps as f64 / self.config.max_steps as f64);
                }
                step.terminated |= ahead.is(Kind::Lava);
            }
            3 if ahead.can_be_carried() && self.carried.is(Kind::Empty) => {
                self.carried = ahead;
                self.cells.set(front, Cell::EMPTY);
            }
            4 if ahead.is(Kind::Empty) && !self.carried.is(Kind::Empty) => {
                self.cells.set(front, self.carried);
                self.carried = Cell::EMPTY;
            }
            5 if ahead.is(Kind::Door) => {
                let color = Color::ALL[usize::from(ahead.codes[1])];
                let state = match ahead.codes[2] {
                    open if open == DoorState::Open as u8 => DoorState::Closed,
                    locked if locked == DoorState::Locked as u8 && self.carried != Cell::key(color) => {
                        DoorState::Locked
                    }
                    _ => DoorState::Open,
                };
                self.cells.set(front, Cell::door(color, state));
            }
            _ => {}
        }
        step.truncated = self.steps >= self.config.max_steps;
        self.running = !step.is_over();
        self.look();
        Ok(step)
    }

    fn observation(&self) -> Observation<'_> {
        match &self.spec.observation {
            &ObservationSpace::Grid { rows, columns, channels } => {
                Observation::Grid(Grid::new(rows, columns, channels, &self.shown).expect("as many codes"))
            }
            ObservationSpace::Image(shape) => {
                Observation::Image(Pixels::new(*shape, &self.shown).expect("as many bytes"))
            }
            ObservationSpace::Vector { .. } | ObservationSpace::Dict(_) => {
                unreachable!("it shows grids or pictures")
            }
        }
    }

    /// The whole grid, cells that the agent sees lighter; as large as fits the middle of `view`.
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let size = self.cells.width();
        let (width, height) = (view.width(), view.height());
        let side = width.min(height) / size;
        view.rgb_mut().fill(0);
        if side == 0 {
            return Ok(());
        }
        let (left, top) = ((width - side * size) / 2, (height - side * size) / 2);
        let lit = self.lit();
        for x in 0..size {
            for y in 0..size {
                let agent = ([x, y] == self.at).then_some(self.direction);
                let rgb = tile(self.cells.get([x, y]), agent, lit(x, y), side);
                for (row, pixels) in rgb.chunks_exact(side * 3).enumerate() {
                    let at = ((top + y * side + row) * width + left + x * side) * 3;
                    view.rgb_mut()[at..at + side * 3].copy_from_slice(pixels);
                }
            }
        }
        Ok(())
    }

    /// `agent` (column, row, direction), what it `carries`, and the codes of all `cells`, `[column, row, 3]`.
    fn state(&self) -> Fact {
        let numbers =
            |codes: &[u8]| Fact::List(codes.iter().map(|&code| Fact::Number(f64::from(code))).collect());
        let [x, y] = self.at;
        let size = self.cells.width();
        let cells: Vec<u8> =
            (0..size * size).flat_map(|at| self.cells.get([at / size, at % size]).codes).collect();
        Fact::Group(vec![
            ("agent", Fact::List([x, y, self.direction].map(|n| Fact::Number(n as f64)).to_vec())),
            ("carries", numbers(&self.carried.codes)),
            ("cells", numbers(&cells)),
        ])
    }

    /// The first action of a shortest way to the goal. Where there is none, because the agent or an intervention blocked it,
    /// it turns left.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        self.spec.action.check_len(&self.spec.id, action.len())?;
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        let act =
            self.expert.act(&self.cells, Start { at: self.at, direction: self.direction }, self.carried);
        let choice = match act {
            None | Some(Act::Left) => 0,
            Some(Act::Right) => 1,
            Some(Act::Forward) => 2,
            Some(Act::PickUp) => 3,
            // The last of the five, the sixth of the seven.
            Some(Act::Toggle) => action.len().min(6) - 1,
        };
        action.fill(0.0);
        action[choice] = 1.0;
        Ok(())
    }

    /// `None` when it shows pictures.
    fn grid_view(&self) -> Option<GridView> {
        self.view_of_cells()
    }

    fn edit_state(&mut self, edit: &StateEdit<'_>) -> Result<(), EnvError> {
        self.edit(edit)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

/// Tiles of all cells that worlds have, drawn once.
#[derive(Debug)]
struct Tiles {
    size: usize,
    /// `[kinds, colours, states, no agent and four directions, lit]`, `[size, size, 3]` each; empty until needed.
    tiles: Vec<std::sync::OnceLock<Vec<u8>>>,
}

impl Tiles {
    fn new(size: usize) -> Self {
        Tiles { size, tiles: (0..11 * 6 * 3 * 5 * 2).map(|_| std::sync::OnceLock::new()).collect() }
    }

    /// Copies a tile to column and row `[i, j]` of a picture `columns` tiles wide.
    fn put(
        &self,
        cell: Cell,
        agent: Option<usize>,
        lit: bool,
        [i, j]: [usize; 2],
        columns: usize,
        picture: &mut [u8],
    ) {
        let [kind, color, state] = cell.codes.map(usize::from);
        let number =
            ((kind * 6 + color) * 3 + state) * 10 + agent.map_or(0, |d| d + 1) * 2 + usize::from(lit);
        let tile = self.tiles[number].get_or_init(|| tile(cell, agent, lit, self.size));
        let row_len = self.size * 3;
        for (row, pixels) in tile.chunks_exact(row_len).enumerate() {
            let at = ((j * self.size + row) * columns + i) * row_len;
            picture[at..at + row_len].copy_from_slice(pixels);
        }
    }
}
