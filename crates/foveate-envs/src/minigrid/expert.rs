//! A scripted expert that sees the whole grid: the first action of a shortest way to the goal.
//!
//! It is an expert for imitation and a reference score, not an agent. The way is found by breadth-first search over cell,
//! direction, whether the key was taken, and whether the door was opened. Of several shortest ways it takes the one whose
//! first different action comes first in [`Act::ALL`].

use super::cell::{Cell, Cells, Color, DoorState, Kind};
use super::env::AHEAD;
use super::layout::Start;

/// An action on a way, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Forward,
    PickUp,
    Toggle,
    Left,
    Right,
}

impl Act {
    const ALL: [Act; 5] = [Act::Forward, Act::PickUp, Act::Toggle, Act::Left, Act::Right];
}

/// Where a way is: the agent, whether it took the key, and whether it opened the door.
#[derive(Debug, Clone, Copy)]
struct Place {
    x: usize,
    y: usize,
    direction: usize,
    taken: bool,
    opened: bool,
}

/// Buffers of the search.
#[derive(Debug, Clone, Default)]
pub(super) struct Expert {
    /// `[columns, rows, 4 directions, 2, 2]`: whether a place was reached.
    reached: Vec<bool>,
    /// Places in the order in which they were reached, each with the first action of its way.
    queue: Vec<(Place, Act)>,
}

impl Expert {
    /// The first action of a shortest way to the goal for an agent at `start` that carries `carried`; `None` when there is
    /// no way.
    ///
    /// A way may take one key, of the colour of the first locked door if there is one, and open one door.
    pub(super) fn act(&mut self, cells: &Cells, start: Start, carried: Cell) -> Option<Act> {
        let Expert { reached, queue } = self;
        reached.clear();
        reached.resize(cells.width() * cells.height() * 16, false);
        queue.clear();
        let holds = !carried.is(Kind::Empty);
        let size = cells.width() * cells.height();
        let mut all = (0..size).map(|at| cells.get([at % cells.width(), at / cells.width()]));
        let lock = all.find(|cell| cell.is(Kind::Door) && cell.codes[2] == LOCKED).map(|door| door.codes[1]);
        let index = |place: Place| {
            let Place { x, y, direction, taken, opened } = place;
            ((y * cells.width() + x) * 4 + direction) * 4 + usize::from(taken) * 2 + usize::from(opened)
        };
        let [x, y] = start.at;
        let first = Place { x, y, direction: start.direction, taken: false, opened: false };
        reached[index(first)] = true;
        let mut at = 0;
        let mut from = Some((first, None));
        while let Some((place, way)) = from {
            let [dx, dy] = AHEAD[place.direction];
            let front = [place.x.wrapping_add_signed(dx), place.y.wrapping_add_signed(dy)];
            let ahead = cells.get(front);
            // Only such a key is picked up, and leaves its cell.
            let fits = lock.is_none_or(|color| color == ahead.codes[1]);
            for act in Act::ALL {
                let turned = |by: usize| Some(Place { direction: (place.direction + by) % 4, ..place });
                let next = match act {
                    Act::Forward => {
                        let free = ahead.can_be_entered() && !ahead.is(Kind::Lava)
                            || place.taken && ahead.is(Kind::Key) && fits
                            || place.opened && ahead.is(Kind::Door);
                        free.then_some(Place { x: front[0], y: front[1], ..place })
                    }
                    Act::PickUp => (ahead.is(Kind::Key) && fits && !holds && !place.taken)
                        .then_some(Place { taken: true, ..place }),
                    Act::Toggle => {
                        let closed = ahead.is(Kind::Door) && !place.opened && ahead.codes[2] != OPEN;
                        let key = Cell::key(Color::ALL[usize::from(ahead.codes[1]) % 6]);
                        let taken = place.taken && lock == Some(ahead.codes[1]);
                        let fits = ahead.codes[2] != LOCKED || taken || carried == key;
                        (closed && fits).then_some(Place { opened: true, ..place })
                    }
                    Act::Left => turned(3),
                    Act::Right => turned(1),
                };
                let Some(next) = next else { continue };
                let way = way.unwrap_or(act);
                if act == Act::Forward && ahead.is(Kind::Goal) {
                    return Some(way);
                }
                if !std::mem::replace(&mut reached[index(next)], true) {
                    queue.push((next, way));
                }
            }
            from = queue.get(at).map(|&(place, way)| (place, Some(way)));
            at += 1;
        }
        None
    }
}

const OPEN: u8 = DoorState::Open as u8;
const LOCKED: u8 = DoorState::Locked as u8;

#[cfg(test)]
mod tests {
    use foveate_core::{Action, Env};

    use crate::minigrid::cell::{Cell, Color};
    use crate::minigrid::layout::{DoorKeyChanges, Layout};
    use crate::minigrid::{ActionSet, MiniGrid, MiniGridConfig, Shows};

    fn world(layout: Layout, actions: ActionSet) -> MiniGrid {
        let max_steps = layout.max_steps();
        MiniGrid::new(
            "test",
            MiniGridConfig {
                layout,
                shows: Shows::View,
                actions,
                max_steps,
                changes: DoorKeyChanges::default(),
            },
        )
    }

    /// Steps of the expert's episode, if it reaches the goal.
    fn steps(world: &mut MiniGrid, seed: u64) -> Option<usize> {
        world.reset(Some(seed));
        let mut advice = vec![0.0; world.spec().action.len()];
        for steps in 1.. {
            world.expert(&mut advice).expect("an episode runs");
            let choice = advice.iter().position(|&x| x == 1.0).expect("one action");
            let step = world.step(Action::Discrete(choice)).expect("it runs");
            if step.is_over() {
                return (step.reward > 0.0).then_some(steps);
            }
        }
        None
    }

    /// The start states of DoorKey-5x5 are equally likely, and their shortest solutions take 9.83 steps on average, 7 to 14.
    #[test]
    fn it_solves_door_key_in_as_few_steps_as_possible() {
        for actions in [ActionSet::All, ActionSet::Five] {
            let mut world = world(Layout::DoorKey { size: 5 }, actions);
            let mut starts = std::collections::BTreeMap::new();
            for seed in 0..1000 {
                let took = steps(&mut world, seed).expect("solved");
                world.reset(Some(seed));
                starts.insert(format!("{:?} {:?}", world.agent(), world.cells()), took);
            }
            let sum: usize = starts.values().sum();
            assert_eq!(starts.len(), 48);
            assert!((sum as f64 / 48.0 - 9.83).abs() < 0.005, "{sum} steps");
            assert_eq!((starts.values().min(), starts.values().max()), (Some(&7), Some(&14)));
        }
    }

    #[test]
    fn it_solves_every_world() {
        for layout in [
            Layout::DoorKey { size: 16 },
            Layout::Empty { size: 8, random: true },
            Layout::FourRooms,
            Layout::Crossing { size: 11, crossings: 5, lava: true },
            Layout::Crossing { size: 9, crossings: 1, lava: false },
        ] {
            let mut world = world(layout, ActionSet::All);
            (0..50).for_each(|seed| assert!(steps(&mut world, seed).is_some(), "{layout:?}, seed {seed}"));
        }
    }

    /// A key of another colour opens nothing: it says so by turning, to the end of the episode.
    #[test]
    fn a_world_without_a_way_has_no_solution_but_an_action() {
        let mut world = world(Layout::DoorKey { size: 5 }, ActionSet::Five);
        world.reset(Some(1));
        for at in 0..25 {
            let at = [at / 5, at % 5];
            if world.cells().get(at) == Cell::key(Color::Yellow) {
                world.set_cell(at, Cell::key(Color::Red));
            }
        }
        let mut advice = [0.0; 5];
        world.expert(&mut advice).expect("an episode runs");
        assert_eq!(advice, [1.0, 0.0, 0.0, 0.0, 0.0]);
        assert!(world.expert(&mut [0.0; 3]).is_err());
        assert!(self::world(Layout::FourRooms, ActionSet::All).expert(&mut [0.0; 7]).is_err(), "no episode");
    }
}
