//! Policies planted in worlds of numbers: a pole on a cart with two choices, and one that swings up with a force.

use foveate_core::Observation;

use super::asked::Answer::{No, Undecided, Yes};
use super::planted::{Acts, Claims, Expected, PlantedCase, PlantedWorld, uniform};

// The numbers of `PlantedWorld::CartPole`.
const POSITION: usize = 0;
const VELOCITY: usize = 1;
const ANGLE: usize = 2;
const SPIN: usize = 3;

/// All cases.
pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        about: "pushes to where the pole leans, and claims the angle alone, the same at every moment",
        expected: Expected::sees(Yes, No),
        ..of("one number", PlantedWorld::CartPole, by_angle, claims_angle)
    },
    PlantedCase {
        about: "pushes to where the pole leans, and claims the velocity of the cart, which has no effect",
        expected: Expected::sees(No, No),
        ..of("another number", PlantedWorld::CartPole, by_angle, claims_velocity)
    },
    PlantedCase {
        about: "pushes to where the pole leans, and claims all numbers alike, which says nothing",
        expected: Expected::sees(Undecided, No),
        ..of("uniform over numbers", PlantedWorld::CartPole, by_angle, uniform)
    },
    PlantedCase {
        about: "gives probabilities by angle and angular velocity, and claims both alike",
        expected: Expected::sees(Yes, No),
        ..of("two numbers, probabilities", PlantedWorld::CartPole, by_two, claims_two)
    },
    PlantedCase {
        about: "pushes to where the pole leans, and claims −1 of the angle and 0.1 of the others: by magnitude the angle",
        expected: Expected::sees(Yes, No),
        ..of("signed claim", PlantedWorld::CartPole, by_angle, claims_signed)
    },
    PlantedCase {
        about: "pushes by the cart's velocity right of the middle and by the pole's left of it, and claims the one that counts now, and \
                half as much the position that says which",
        expected: Expected::sees(Yes, Yes),
        ..of("moving number, followed", PlantedWorld::CartPole, by_moving, claims_moving)
    },
    PlantedCase {
        about: "its force follows cosine and sine of the angle, and it claims these two alike",
        expected: Expected::sees(Yes, No),
        ..of("angle, a force", PlantedWorld::SwingUp, by_sine, claims_sine)
    },
    PlantedCase {
        about: "its force follows cosine and sine of the angle, and it claims the cart's velocity and the angular one, which have no effect",
        expected: Expected::sees(No, No),
        ..of("velocities, a force", PlantedWorld::SwingUp, by_sine, claims_velocities)
    },
];

const fn of(name: &'static str, world: PlantedWorld, acts: Acts, claims: Claims) -> PlantedCase {
    let expected = Expected::sees(Undecided, Undecided);
    PlantedCase { name, world, about: "", acts, claims, handed: true, expected }
}

/// The scores of a push to the left and of one to the right.
fn push(action: &mut [f64], right: f32) {
    action.copy_from_slice(&[f64::from(-right), f64::from(right)]);
}

fn by_angle(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    if let Some(numbers) = observation.numbers() {
        push(action, numbers[ANGLE]);
    }
}

fn by_two(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    let Some(numbers) = observation.numbers() else { return };
    let right = 20.0 * f64::from(numbers[ANGLE]) + 4.0 * f64::from(numbers[SPIN]);
    // x / (1 + |x|) instead of an exponential function, whose bits depend on the platform.
    let right = 0.5 + 0.5 * right / (1.0 + right.abs());
    action.copy_from_slice(&[1.0 - right, right]);
}

/// The number that [`by_moving`] acts on now.
fn counts(numbers: &[f32]) -> usize {
    if numbers[POSITION] >= 0.0 { VELOCITY } else { SPIN }
}

fn by_moving(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    let Some(numbers) = observation.numbers() else { return };
    let number = counts(numbers);
    push(action, if number == VELOCITY { -numbers[VELOCITY] } else { numbers[SPIN] });
}

fn by_sine(observation: Observation<'_>, _: u32, action: &mut [f64]) {
    let Some(&[_, _, cos, sin, _]) = observation.numbers() else { return };
    action[0] = (0.5 * f64::from(cos) - 0.5 * f64::from(sin)).clamp(-1.0, 1.0);
}

fn claims_angle(_: Observation<'_>, claim: &mut [f32]) {
    claim[ANGLE] = 1.0;
}

fn claims_velocity(_: Observation<'_>, claim: &mut [f32]) {
    claim[VELOCITY] = 1.0;
}

fn claims_two(_: Observation<'_>, claim: &mut [f32]) {
    (claim[ANGLE], claim[SPIN]) = (1.0, 1.0);
}

fn claims_signed(_: Observation<'_>, claim: &mut [f32]) {
    claim.fill(0.1);
    claim[ANGLE] = -1.0;
}

fn claims_moving(observation: Observation<'_>, claim: &mut [f32]) {
    let Some(numbers) = observation.numbers() else { return };
    claim[POSITION] = 0.5;
    claim[counts(numbers)] = 1.0;
}

fn claims_sine(_: Observation<'_>, claim: &mut [f32]) {
    (claim[2], claim[3]) = (1.0, 1.0);
}

fn claims_velocities(_: Observation<'_>, claim: &mut [f32]) {
    (claim[1], claim[4]) = (1.0, 1.0);
}
