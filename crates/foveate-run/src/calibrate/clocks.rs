//! Policies with a memory: a clock that counts the steps of the episode, alone and beside what they see.

use foveate_core::Observation;

use super::asked::Answer::{No, Undecided, Yes};
use super::pictures::{claims_region, road, seen, steer};
use super::planted::{Acts, Claims, Expected, PlantedCase, PlantedWorld};

/// Steps after which the clock turns to the other side.
const HALF: u32 = 12;

/// All cases.
pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        about: "steers by a clock alone, so that nothing it sees moves its action; claims the road",
        expected: Expected { moves: No, path: No, right: Undecided, moment: Undecided },
        ..of("clock", clock, road)
    },
    PlantedCase {
        about: "steers by six places, and a little by a clock; claims the places, the same at every moment",
        expected: Expected::sees(Yes, No),
        ..of("sight and some memory", mostly_sight, claims_region)
    },
    PlantedCase {
        about: "steers by a clock, and a little by six places; claims the places, the same at every moment",
        expected: Expected { moves: Yes, path: No, right: Yes, moment: No },
        ..of("memory and some sight", mostly_clock, claims_region)
    },
];

const fn of(name: &'static str, acts: Acts, claims: Claims) -> PlantedCase {
    let expected = Expected::sees(Undecided, Undecided);
    PlantedCase { name, world: PlantedWorld::CarRacing, about: "", acts, claims, handed: false, expected }
}

/// To the left or to the right, in turn.
const fn side(step: u32) -> f64 {
    if (step / HALF).is_multiple_of(2) { -1.0 } else { 1.0 }
}

fn clock(observation: Observation<'_>, step: u32, action: &mut [f64]) {
    steer(observation, action, |_| 0.5 * side(step));
}

fn mostly_sight(observation: Observation<'_>, step: u32, action: &mut [f64]) {
    steer(observation, action, |pixels| 0.95 * seen(pixels) + 0.05 * side(step));
}

fn mostly_clock(observation: Observation<'_>, step: u32, action: &mut [f64]) {
    steer(observation, action, |pixels| 0.45 * seen(pixels) + 0.55 * side(step));
}
