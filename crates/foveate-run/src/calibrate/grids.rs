//! Policies planted in `DoorKey`: they choose by what one cell of the view shows.

use foveate_core::{Grid, Observation};

use super::asked::Answer::{No, Undecided, Yes};
use super::planted::{Acts, Claims, Expected, PlantedCase, PlantedWorld, uniform};

/// Cells in a side of the view.
const VIEW: usize = 7;
/// Column and row of the cell before the agent.
const FRONT: [usize; 2] = [3, 5];
/// Column and row of a cell beside it, where something else may lie.
const BESIDE: [usize; 2] = [2, 5];
/// Codes of what a cell holds.
const EMPTY: u8 = 1;
const WALL: u8 = 2;
const KEY: u8 = 5;
/// Choices.
const LEFT: usize = 0;
const RIGHT: usize = 1;
const FORWARD: usize = 2;

/// All cases.
pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        about: "chooses by the cell before it, and claims this cell, the same at every moment",
        expected: Expected::sees(Yes, No),
        ..of("cell in front", by_front, claims_front)
    },
    PlantedCase {
        about: "chooses by the cell before it, and claims the one beside that, which has no effect",
        expected: Expected::sees(No, No),
        ..of("cell in front, claims another", by_front, claims_beside)
    },
    PlantedCase {
        about: "chooses by the cell before it, and claims all cells alike, which says nothing",
        expected: Expected::sees(Undecided, No),
        ..of("uniform over cells", by_front, uniform)
    },
    PlantedCase {
        about: "chooses by where the key lies in its view, and claims the key's cell, and without a key all cells alike",
        expected: Expected::sees(Yes, Yes),
        ..of("cell of the key", by_key, claims_key)
    },
    PlantedCase {
        about: "chooses by where the key lies in its view, and claims all cells but the key's, which claims of other moments name",
        expected: Expected::sees(No, No),
        ..of("cell of the key, claims all others", by_key, claims_others)
    },
];

const fn of(name: &'static str, acts: Acts, claims: Claims) -> PlantedCase {
    let expected = Expected::sees(Undecided, Undecided);
    PlantedCase { name, world: PlantedWorld::DoorKey, about: "", acts, claims, handed: false, expected }
}

fn cells(observation: Observation<'_>) -> Option<Grid<'_>> {
    match observation {
        Observation::Grid(grid) => Some(grid),
        _ => None,
    }
}

/// What a cell holds.
fn holds(grid: Grid<'_>, [column, row]: [usize; 2]) -> u8 {
    grid.cell(column, row).and_then(|codes| codes.first().copied()).unwrap_or(0)
}

/// The first cell that holds a key.
fn key(grid: Grid<'_>) -> Option<[usize; 2]> {
    (0..VIEW * VIEW).map(|cell| [cell / VIEW, cell % VIEW]).find(|&cell| holds(grid, cell) == KEY)
}

const fn index([column, row]: [usize; 2]) -> usize {
    column * VIEW + row
}

fn by_front(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    let Some(grid) = cells(observation) else { return };
    let choice = match holds(grid, FRONT) {
        EMPTY => FORWARD,
        WALL => RIGHT,
        _ => LEFT,
    };
    action[choice] = 2.0;
}

fn by_key(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    let Some(grid) = cells(observation) else { return };
    let choice = match key(grid) {
        None | Some(FRONT) => LEFT,
        Some([column, _]) if column < FRONT[0] => LEFT,
        Some([column, _]) if column > FRONT[0] => RIGHT,
        Some(_) => FORWARD,
    };
    action[choice] = 2.0;
}

fn claims_front(_: Observation<'_>, claim: &mut [f32]) {
    claim[index(FRONT)] = 1.0;
}

fn claims_beside(_: Observation<'_>, claim: &mut [f32]) {
    claim[index(BESIDE)] = 1.0;
}

fn claims_key(observation: Observation<'_>, claim: &mut [f32]) {
    match cells(observation).and_then(key) {
        Some(cell) => claim[index(cell)] = 1.0,
        None => claim.fill(1.0),
    }
}

fn claims_others(observation: Observation<'_>, claim: &mut [f32]) {
    claim.fill(1.0);
    if let Some(cell) = cells(observation).and_then(key) {
        claim[index(cell)] = 0.0;
    }
}
