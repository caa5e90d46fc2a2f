//! What lies in which cell, for people and reports, and changes of the state.

use foveate_core::{Env, EnvError, GridObject, GridView, ImageBuf, StateEdit, ViewCell};

use super::cell::{Cell, Color, Kind};
use super::env::{AHEAD, MiniGrid, Shows};
use super::sight::{AGENT, VIEW};
use super::tiles::tile;

/// Pixels in a side of a cell, in the view as people see it.
const TILE: usize = 16;

impl MiniGrid {
    /// What the observation shows, cell by cell; `None` when it is a picture.
    pub(super) fn view_of_cells(&self) -> Option<GridView> {
        let [width, height] = [self.cells.width(), self.cells.height()];
        let (size, agent) = match self.config.shows {
            Shows::View | Shows::OneHot => ([VIEW; 2], AGENT),
            Shows::Full => ([width, height], self.at),
            Shows::Picture | Shows::FullPicture => return None,
        };
        let full = self.config.shows == Shows::Full;
        let sight = self.sight();
        let (ahead, right) = (AHEAD[self.direction], AHEAD[(self.direction + 1) % 4]);
        // Observations are `[column, row]`.
        let places = (0..size[0]).flat_map(|i| (0..size[1]).map(move |j| [i, j]));
        let mut picture = ImageBuf::black(size[0] * TILE, size[1] * TILE);
        let cells: Vec<ViewCell> = places
            .map(|[i, j]| {
                let in_world = if full {
                    Some([i, j])
                } else {
                    let (side, far) = (i as isize - AGENT[0] as isize, AGENT[1] as isize - j as isize);
                    let at = |axis: usize| {
                        self.at[axis].checked_add_signed(ahead[axis] * far + right[axis] * side)
                    };
                    let [x, y] = [at(0), at(1)];
                    x.zip(y).filter(|&(x, y)| x < width && y < height).map(|(x, y)| [x, y])
                };
                let (cell, seen) =
                    if full { (self.cells.get([i, j]), true) } else { (sight.cells[i][j], sight.sees(i, j)) };
                let stands = [i, j] == agent;
                let facing = stands.then_some(if full { self.direction } else { 3 });
                let drawn = tile(if seen { cell } else { Cell::UNSEEN }, facing, seen, TILE);
                for (row, pixels) in drawn.chunks_exact(TILE * 3).enumerate() {
                    let at = ((j * TILE + row) * size[0] * TILE + i * TILE) * 3;
                    picture.rgb_mut()[at..at + TILE * 3].copy_from_slice(pixels);
                }
                ViewCell { in_view: [i, j], in_world, content: seen.then(|| cell.describe()) }
            })
            .collect();
        let index = |[i, j]: [usize; 2]| i * size[1] + j;
        let front = self.front();
        let cell_of = |at: [usize; 2]| {
            cells.iter().position(|cell| cell.in_world == Some(at) && cell.content.is_some())
        };
        let agent = index(agent);
        let mut objects = vec![];
        for y in 0..height {
            for x in 0..width {
                let cell = self.cells.get([x, y]);
                if cell.is_object() {
                    // What lies under the agent is not shown.
                    let shown = cell_of([x, y]).filter(|&shown| shown != agent);
                    objects.push(GridObject {
                        kind: cell.kind().name(),
                        name: cell.describe(),
                        in_world: Some([x, y]),
                        cell: shown,
                    });
                }
            }
        }
        if self.carried.is_object() {
            objects.push(GridObject {
                kind: self.carried.kind().name(),
                name: self.carried.describe(),
                in_world: None,
                // A complete view does not show what the agent carries.
                cell: (!full).then_some(agent),
            });
        }
        // Each kind stays at its place in the list, whether it lies somewhere or is carried.
        objects.sort_by_key(|object| Kind::ALL.iter().position(|kind| kind.name() == object.kind));
        let front = cells.iter().position(|cell| cell.in_world == Some(front));
        Some(GridView { size, cells, agent, front, objects, colors: &Color::NAMES, picture })
    }

    /// See [`Env::edit_state`].
    pub(super) fn edit(&mut self, edit: &StateEdit<'_>) -> Result<(), EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: self.spec().id.clone() });
        }
        let edited = self.try_edit(edit);
        edited.map_err(|why| EnvError::BadEdit {
            env: self.spec().id.clone(),
            edit: edit.to_string(),
            why,
        })?;
        self.look();
        Ok(())
    }

    /// Edits the cells, or says why that is impossible.
    fn try_edit(&mut self, edit: &StateEdit<'_>) -> Result<(), String> {
        match *edit {
            StateEdit::Remove(at) => {
                let cell = self.inner(at)?;
                if cell.is(Kind::Empty) {
                    return Err("that cell is empty; choose one that holds an object or a wall".into());
                }
                self.cells.set(at, Cell::EMPTY);
            }
            StateEdit::Move { from, to } => {
                let object = self.object(from)?;
                let other = self.inner(to)?;
                if self.at == to || self.at == from {
                    let [x, y] = self.at;
                    return Err(format!("the agent stands in cell ({x},{y}); choose another"));
                }
                if !other.is(Kind::Empty) && !other.is(Kind::Wall) {
                    let ([x, y], held) = (to, other.describe());
                    return Err(format!("cell ({x},{y}) holds a {held}; choose an empty cell or a wall"));
                }
                self.cells.set(to, object);
                self.cells.set(from, other);
            }
            StateEdit::Recolor { at, color } => {
                let object = self.object(at)?;
                let Some(color) = Color::named(color) else {
                    return Err(format!("{color:?} is no colour; choose from: {}", Color::NAMES.join(", ")));
                };
                self.cells.set(at, object.recolored(color));
            }
            StateEdit::Block(at) => {
                let cell = self.inner(at)?;
                if !cell.is(Kind::Empty) {
                    return Err(format!("that cell holds a {}; choose an empty one", cell.describe()));
                }
                if self.at == at {
                    return Err("the agent stands there; choose another cell".into());
                }
                self.cells.set(at, Cell::WALL);
            }
            _ => return Err("MiniGrid's worlds do not know this kind of edit".into()),
        }
        Ok(())
    }

    /// What a cell within the outer walls holds.
    fn inner(&self, [x, y]: [usize; 2]) -> Result<Cell, String> {
        let [width, height] = [self.cells.width(), self.cells.height()];
        if x >= width || y >= height {
            return Err(format!("cell ({x},{y}) lies outside of the {width}x{height} cells"));
        }
        if x == 0 || y == 0 || x + 1 == width || y + 1 == height {
            return Err(format!("cell ({x},{y}) belongs to the outer wall, which stays"));
        }
        Ok(self.cells.get([x, y]))
    }

    /// The object in a cell.
    fn object(&self, at: [usize; 2]) -> Result<Cell, String> {
        let [x, y] = at;
        match self.inner(at)? {
            cell if cell.is_object() => Ok(cell),
            cell if cell.is(Kind::Empty) => {
                Err(format!("cell ({x},{y}) is empty; choose one with an object"))
            }
            cell => Err(format!("cell ({x},{y}) is a {}; choose one with an object", cell.describe())),
        }
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::{Action, Observation};

    use super::super::env::{ActionSet, MiniGridConfig};
    use super::super::layout::{DoorKeyChanges, Layout};
    use super::*;

    fn world(shows: Shows, seed: u64) -> MiniGrid {
        let layout = Layout::DoorKey { size: 6 };
        let config = MiniGridConfig {
            layout,
            shows,
            actions: ActionSet::Five,
            max_steps: layout.max_steps(),
            changes: DoorKeyChanges::default(),
        };
        let mut world = MiniGrid::new("door-key-6x6", config);
        world.reset(Some(seed));
        world
    }

    fn place(world: &MiniGrid, kind: &str) -> [usize; 2] {
        let objects = world.grid_view().expect("cells").objects;
        objects
            .iter()
            .find(|object| object.kind == kind)
            .and_then(|object| object.in_world)
            .expect("it lies somewhere")
    }

    fn codes(world: &MiniGrid) -> Vec<u8> {
        match world.observation() {
            Observation::Grid(grid) => grid.codes().to_vec(),
            other => panic!("{}", other.describe()),
        }
    }

    /// What the view says of a cell is what the observation has there, in every state of an episode.
    #[test]
    fn the_view_says_what_the_observation_shows() {
        for shows in [Shows::View, Shows::Full] {
            for seed in 0..20 {
                let mut world = world(shows, seed);
                let mut rng = foveate_core::Seed::root(seed).rng();
                for _ in 0..40 {
                    let view = world.grid_view().expect("cells");
                    let codes = codes(&world);
                    assert_eq!(view.cells.len() * 3, codes.len());
                    for (at, (cell, codes)) in view.cells.iter().zip(codes.as_chunks::<3>().0).enumerate() {
                        if at == view.agent && shows == Shows::Full {
                            continue;
                        }
                        let held = Cell { codes: *codes, opaque: false };
                        let expect = (!held.is(Kind::Unseen)).then(|| held.describe());
                        assert_eq!(cell.content, expect, "{shows:?}, seed {seed}, cell {at}");
                        if let (Some(place), true) = (cell.in_world, at != view.agent && expect.is_some()) {
                            assert_eq!(world.cells().get(place).describe(), held.describe());
                        }
                    }
                    for (object, cell) in view.visible() {
                        assert_eq!(view.cells[cell].content.as_ref(), Some(&object.name));
                    }
                    let front = view.cells[view.front.expect("before it")].in_world;
                    assert_eq!(front, Some(world.front()));
                    if world.step(Action::Discrete(rng.below(5) as usize)).expect("it runs").is_over() {
                        break;
                    }
                }
            }
        }
        assert_eq!(world(Shows::Picture, 1).grid_view(), None);
    }

    /// An edit is no change of a picture: the agent is blocked by what was put before it, the door opens for a key of its
    /// new colour only, and an object elsewhere is found there.
    #[test]
    fn the_world_continues_from_the_edited_state() {
        let forward = Action::Discrete(2);
        // A wall before the agent blocks it; taken away again, it does not.
        let mut blocked = (0..50)
            .map(|seed| world(Shows::View, seed))
            .find(|world| world.cells().get(world.front()).is(Kind::Empty))
            .expect("some agent has room");
        let (front, before) = (blocked.front(), blocked.clone());
        blocked.edit_state(&StateEdit::Block(front)).expect("it is empty");
        blocked.step(forward).expect("it runs");
        assert_eq!(blocked.agent().at, before.agent().at);
        blocked.edit_state(&StateEdit::Remove(front)).expect("a wall within");
        blocked.step(forward).expect("it runs");
        assert_eq!(blocked.agent().at, front);

        // The expert, who knows the rules, solves a world whose key lies elsewhere, and none whose key does not fit.
        for (color, solvable) in [("yellow", true), ("blue", false)] {
            let mut world = world(Shows::View, 3);
            let key = place(&world, "key");
            let free = (1..5)
                .flat_map(|x| (1..5).map(move |y| [x, y]))
                .find(|&at| {
                    at[0] < place(&world, "door")[0]
                        && world.cells().get(at).is(Kind::Empty)
                        && at != world.agent().at
                })
                .expect("room for a key");
            world.edit_state(&StateEdit::Move { from: key, to: free }).expect("free");
            world.edit_state(&StateEdit::Recolor { at: free, color }).expect("a colour");
            assert_eq!(place(&world, "key"), free);
            let mut advice = [0.0; 5];
            let mut reward = 0.0;
            for _ in 0..60 {
                world.expert(&mut advice).expect("it runs");
                let choice = advice.iter().position(|&x| x == 1.0).expect("one action");
                let step = world.step(Action::Discrete(choice)).expect("it runs");
                reward = step.reward;
                if step.is_over() {
                    break;
                }
            }
            assert_eq!(reward > 0.0, solvable, "{color}");
        }
    }

    #[test]
    fn an_edit_leaves_the_step_count_and_the_random_stream_alone() {
        let (mut edited, mut plain) = (world(Shows::OneHot, 5), world(Shows::OneHot, 5));
        let goal = place(&edited, "goal");
        edited.edit_state(&StateEdit::Recolor { at: goal, color: "red" }).expect("a colour");
        assert_eq!(place(&edited, "goal"), goal);
        edited.edit_state(&StateEdit::Recolor { at: goal, color: "green" }).expect("a colour");
        assert_eq!(codes(&edited), codes(&plain));
        edited.reset(None);
        plain.reset(None);
        assert_eq!(codes(&edited), codes(&plain));
    }

    #[test]
    fn impossible_edits_say_why_in_a_line_and_change_nothing() {
        let mut world = world(Shows::View, 3);
        let (key, door, goal) = (place(&world, "key"), place(&world, "door"), place(&world, "goal"));
        let own = world.agent().at;
        let before = codes(&world);
        for (edit, why) in [
            (StateEdit::Remove([9, 2]), "cell (9,2) lies outside of the 6x6 cells"),
            (StateEdit::Remove([0, 2]), "cell (0,2) belongs to the outer wall, which stays"),
            (StateEdit::Remove(own), "that cell is empty; choose one that holds an object or a wall"),
            (
                StateEdit::Move { from: [door[0], if door[1] == 1 { 2 } else { 1 }], to: key },
                "is a wall; choose one with an object",
            ),
            (StateEdit::Move { from: key, to: goal }, "holds a goal; choose an empty cell or a wall"),
            (StateEdit::Move { from: key, to: own }, "the agent stands in cell"),
            (StateEdit::Recolor { at: own, color: "red" }, "is empty; choose one with an object"),
            (StateEdit::Recolor { at: key, color: "pink" }, "\"pink\" is no colour; choose from: red, green"),
            (StateEdit::Block(door), "that cell holds a locked yellow door; choose an empty one"),
            (StateEdit::Block(own), "the agent stands there; choose another cell"),
        ] {
            let said = world.edit_state(&edit).expect_err(why).to_string();
            assert!(said.contains(why) && said.starts_with("door-key-6x6: cannot "), "{said}");
            assert!(!said.contains('\n'));
        }
        assert_eq!(codes(&world), before);
        while !world.step(Action::Discrete(0)).expect("it runs").is_over() {}
        assert!(matches!(world.edit_state(&StateEdit::Remove(key)), Err(EnvError::NeedsReset { .. })));
    }
}
