//! Policies planted in CarRacing: they steer by how the road lies in some of the 12 × 12 places of the picture.

use foveate_core::{Observation, Pixels};

use super::asked::Answer::{No, Undecided, Yes};
use super::planted::{Expected, PlantedCase, PlantedWorld, SIDE, random, uniform};

/// Columns of a region, from the left: six places of a row.
const COLUMNS: std::ops::RangeInclusive<usize> = 3..=8;
/// How much the road in each of them counts: to the left at the left, to the right at the right.
const TURN: [f64; 6] = [-1.0, -0.8, -0.6, 0.6, 0.8, 1.0];
/// The row of the region, from the top.
const ROW: usize = 5;
/// The rows of the two regions of a policy that looks further ahead when it is fast.
const NEAR_AND_FAR: [usize; 2] = [7, 4];
/// The place that shows the speed: a white bar.
const SPEED: [usize; 2] = [11, 1];
/// The share of that place that is white at a middling speed.
const MIDDLING: f64 = 0.1;

/// All cases.
pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        about: "does the same always, so that nothing moves its action; claims the road",
        expected: Expected { moves: No, path: Undecided, right: Undecided, moment: Undecided },
        ..of("constant action", constant, road)
    },
    PlantedCase {
        about: "steers by six places, and claims exactly these, the same at every moment",
        expected: Expected::sees(Yes, No),
        ..of("true region", region, claims_region)
    },
    PlantedCase {
        about: "steers by six places, and claims six others, which have no effect",
        expected: Expected::sees(No, No),
        ..of("wrong region", region, claims_wrong)
    },
    PlantedCase {
        about: "steers by six places, and claims the more of a place the further it is from these",
        expected: Expected::sees(No, No),
        ..of("inverted order", region, claims_inverted)
    },
    PlantedCase {
        about: "steers by the bar that shows the speed, and claims the road, which never has an effect, at this moment as at others",
        expected: Expected::sees(No, Undecided),
        ..of("correlated claim", indicator, road)
    },
    PlantedCase {
        about: "steers by six places, and claims all alike, which says nothing",
        expected: Expected::sees(Undecided, No),
        ..of("uniform map", region, uniform)
    },
    PlantedCase {
        about: "steers by six places near the top, which come first in any order by index, and claims all alike",
        expected: Expected::sees(Undecided, No),
        ..of("uniform map, acts on the top", top, uniform)
    },
    PlantedCase {
        about: "steers hard to the left or to the right, by the sign of what six places show, and claims these",
        expected: Expected::sees(Yes, No),
        ..of("threshold action", threshold, claims_region)
    },
    PlantedCase {
        about: "steers by the median of three rows, so that no single place does much, and claims the three rows",
        expected: Expected::sees(Yes, No),
        ..of("redundant rows", redundant, claims_rows)
    },
    PlantedCase {
        about: "steers by a near row when slow and a far one when fast, and claims the row of the other speed and never the right one, \
                which claims of other moments name",
        expected: Expected::sees(No, No),
        ..of("claim of another moment", moving, claims_other)
    },
    PlantedCase {
        about: "steers by six places, and claims places drawn at random at every moment, on average neither better nor worse than others",
        expected: Expected::sees(Undecided, Undecided),
        ..of("random claim", region, random)
    },
    PlantedCase {
        about: "steers by six places, and claims ten alike: these six and four others",
        expected: Expected::sees(Yes, No),
        ..of("ten places with ties", region, claims_ten)
    },
    PlantedCase {
        about: "steers by a near row when slow and a far one when fast, and claims the one that counts now, and the bar of the speed",
        expected: Expected::sees(Yes, Yes),
        ..of("moving target, followed", moving, claims_moving)
    },
    PlantedCase {
        about: "steers by a near row when slow and a far one when fast, and always claims both, and the bar of the speed",
        expected: Expected::sees(Yes, No),
        ..of("moving target, always the same", moving, claims_both)
    },
];

/// A case in CarRacing, whose answers are still to be said.
const fn of(name: &'static str, acts: super::planted::Acts, claims: super::planted::Claims) -> PlantedCase {
    let expected = Expected::sees(Undecided, Undecided);
    PlantedCase { name, world: PlantedWorld::CarRacing, about: "", acts, claims, handed: false, expected }
}

/// Where a place begins and ends, in pixels.
const fn ends(place: usize, length: usize) -> [usize; 2] {
    [place * length / SIDE, (place + 1) * length / SIDE]
}

/// The mean of `of` over the pixels of a place.
fn mean(pixels: Pixels<'_>, [row, column]: [usize; 2], of: impl Fn(&[u8]) -> f64) -> f64 {
    let (width, height) = pixels.shape().tall();
    let ([top, bottom], [left, right]) = (ends(row, height), ends(column, width));
    let mut sum = 0.0;
    for y in top..bottom {
        let line = &pixels.bytes()[(y * width + left) * 3..(y * width + right) * 3];
        sum += line.chunks_exact(3).map(&of).sum::<f64>();
    }
    sum / ((bottom - top) * (right - left)).max(1) as f64
}

/// The share of a place that is road: grey.
fn road_share(pixels: Pixels<'_>, place: [usize; 2]) -> f64 {
    mean(pixels, place, |rgb| {
        let grey = rgb[0].abs_diff(rgb[1]) < 10 && rgb[1].abs_diff(rgb[2]) < 10;
        f64::from(u8::from(grey && (80..=130).contains(&rgb[0])))
    })
}

/// The share of the speed's place that is white.
fn speed(pixels: Pixels<'_>) -> f64 {
    mean(pixels, SPEED, |rgb| f64::from(rgb.iter().copied().min().unwrap_or(0)) / 255.0)
}

/// Where the road lies in a row: −1 to the left, 1 to the right.
fn lean(pixels: Pixels<'_>, row: usize) -> f64 {
    COLUMNS.zip(TURN).map(|(column, turn)| turn * road_share(pixels, [row, column])).sum::<f64>() / 2.4
}

/// Steers as `how` says, with a little gas.
pub(super) fn steer(observation: Observation<'_>, action: &mut [f64], how: impl Fn(Pixels<'_>) -> f64) {
    let Some(pixels) = observation.image() else { return };
    action[0] = how(pixels).clamp(-1.0, 1.0);
    action[1] = 0.15;
}

/// Where the road lies in the region, to steer by: −1 to 1.
pub(super) fn seen(pixels: Pixels<'_>) -> f64 {
    (3.0 * lean(pixels, ROW)).clamp(-1.0, 1.0)
}

/// The row that counts now.
fn target(pixels: Pixels<'_>) -> usize {
    NEAR_AND_FAR[usize::from(speed(pixels) > MIDDLING)]
}

fn constant(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    steer(observation, action, |_| 0.1);
}

fn region(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    steer(observation, action, seen);
}

fn indicator(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    steer(observation, action, |pixels| 15.0 * (speed(pixels) - MIDDLING));
}

fn top(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    steer(observation, action, |pixels| 3.0 * lean(pixels, 1));
}

fn threshold(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    steer(observation, action, |pixels| if lean(pixels, ROW) > 0.0 { 0.6 } else { -0.6 });
}

fn redundant(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    steer(observation, action, |pixels| {
        let mut rows = [ROW - 1, ROW, ROW + 1].map(|row| 6.0 * lean(pixels, row));
        rows.sort_by(f64::total_cmp);
        rows[1]
    });
}

fn moving(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    steer(observation, action, |pixels| 3.0 * lean(pixels, target(pixels)));
}

/// Claims the region of a row.
fn claim_row(claim: &mut [f32], row: usize) {
    claim[row * SIDE..][COLUMNS].fill(1.0);
}

/// The road, by its share of each place above the indicators.
pub(super) fn road(observation: Observation<'_>, claim: &mut [f32]) {
    let Some(pixels) = observation.image() else { return };
    for (place, claim) in claim.iter_mut().enumerate().take(SIDE * (SIDE - 2)) {
        *claim = road_share(pixels, [place / SIDE, place % SIDE]) as f32;
    }
}

/// The six places of the region.
pub(super) fn claims_region(_: Observation<'_>, claim: &mut [f32]) {
    claim_row(claim, ROW);
}

fn claims_wrong(_: Observation<'_>, claim: &mut [f32]) {
    claim_row(claim, ROW + 3);
}

fn claims_inverted(_: Observation<'_>, claim: &mut [f32]) {
    for (place, claim) in claim.iter_mut().enumerate() {
        let (row, column) = (place / SIDE, place % SIDE);
        let across = COLUMNS.start().saturating_sub(column) + column.saturating_sub(*COLUMNS.end());
        *claim = (row.abs_diff(ROW) + across) as f32;
    }
}

fn claims_rows(_: Observation<'_>, claim: &mut [f32]) {
    for row in [ROW - 1, ROW, ROW + 1] {
        claim_row(claim, row);
    }
}

fn claims_ten(_: Observation<'_>, claim: &mut [f32]) {
    claim_row(claim, ROW);
    for place in [[1, 1], [1, 10], [3, 0], [8, 11]] {
        claim[place[0] * SIDE + place[1]] = 1.0;
    }
}

fn claims_other(observation: Observation<'_>, claim: &mut [f32]) {
    let Some(pixels) = observation.image() else { return };
    let now = target(pixels);
    NEAR_AND_FAR.into_iter().filter(|&row| row != now).for_each(|row| claim_row(claim, row));
}

fn claims_moving(observation: Observation<'_>, claim: &mut [f32]) {
    let Some(pixels) = observation.image() else { return };
    claim_row(claim, target(pixels));
    claim[SPEED[0] * SIDE + SPEED[1]] = 0.5;
}

fn claims_both(_: Observation<'_>, claim: &mut [f32]) {
    for row in NEAR_AND_FAR {
        claim_row(claim, row);
    }
    claim[SPEED[0] * SIDE + SPEED[1]] = 0.5;
}
