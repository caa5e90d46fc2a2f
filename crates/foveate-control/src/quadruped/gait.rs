//! The gait: a trajectory generator that turns a few parameters into angles of the twelve motors, to which an agent adds its own
//! (Iscen et al. 2018, "Policies Modulating Trajectory Generators").

use std::f64::consts::{PI, TAU};

/// Numbers of an action: five parameters, then a residual for each motor.
pub(crate) const ACTIONS: usize = 5 + MOTORS;
/// Hip, thigh and calf of each leg, in the order of [`LEGS`].
pub(crate) const MOTORS: usize = 12;
/// Where in the period of the gait each leg is: front left, front right, rear left, rear right. Diagonal legs move together.
const LEGS: [f64; 4] = [0.0, 0.5, 0.5, 0.0];

/// Periods per second at a time scale of 1.
const RATE: f64 = 1.5;
/// Largest time scale.
const FASTEST: f64 = 3.0;
/// Largest intensity, and how much it changes in a control step.
const INTENSITY: [f64; 2] = [1.5, 0.1];
/// Range of the walking height.
const HEIGHT: [f64; 2] = [-0.5, 1.0];
/// The largest ratio between the speeds of swing and stance, and how much it changes in a control step. The smallest is the inverse.
const RATIO: [f64; 2] = [5.0, 0.4];
/// A residual's largest size, in rad.
const RESIDUAL: f64 = 0.15;

/// Swing of a leg at an intensity of 1, in rad.
const SWING: f64 = 0.35;
/// Extension at an intensity of 1, as a share of [`LIFT`]: in stance, in swing.
const EXTENSION: [f64; 2] = [-0.02, 0.9];
/// A unit of extension, in m.
const LIFT: f64 = 0.14;
/// Length of a leg at height 0, and what a unit of height adds, in m.
const LENGTH: [f64; 2] = [0.25, 0.06];
/// Shortest and longest leg, in m. Fully stretched, it is twice [`LINK`] long.
const LENGTHS: [f64; 2] = [0.12, 0.36];
/// Length of thigh and of calf, in m.
const LINK: f64 = 0.2;

/// The state of the generator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gait {
    /// From 0 to 2 π; below π the first leg stands.
    phase: f64,
    /// Of the left and of the right legs.
    intensity: [f64; 2],
    height: f64,
    ratio: f64,
}

impl Default for Gait {
    fn default() -> Self {
        Gait { phase: 0.0, intensity: [0.0; 2], height: middle(HEIGHT), ratio: 1.0 }
    }
}

fn middle([low, high]: [f64; 2]) -> f64 {
    (low + high) / 2.0
}

/// `to`, or as far towards it as `most` allows.
fn towards(from: f64, to: f64, most: f64) -> f64 {
    from + (to - from).clamp(-most, most)
}

impl Gait {
    /// Cosine and sine of the phase, each from 0 to 1.
    pub(crate) fn observed(&self) -> [f64; 2] {
        [(self.phase.cos() + 1.0) / 2.0, (self.phase.sin() + 1.0) / 2.0]
    }

    /// Moves on by a control step of `seconds` and returns the angles of the motors, in rad. The numbers of `action` are from -1
    /// to 1: time scale, intensity of the left legs, of the right legs, walking height, ratio of speeds (as a logarithm), residuals.
    pub(crate) fn advance(&mut self, action: &[f64; ACTIONS], seconds: f64) -> [f64; MOTORS] {
        let action = action.map(|number| number.clamp(-1.0, 1.0));
        let scaled = |number: f64, [low, high]: [f64; 2]| low + (high - low) * (number + 1.0) / 2.0;
        let [most, change] = INTENSITY;
        for (intensity, number) in self.intensity.iter_mut().zip(&action[1..]) {
            *intensity = towards(*intensity, scaled(*number, [0.0, most]), change);
        }
        self.height = towards(self.height, scaled(action[3], HEIGHT), 1.0);
        let [most, change] = RATIO;
        self.ratio = towards(self.ratio, most.powf(action[4]), change);
        let periods = scaled(action[0], [0.0, FASTEST]) * RATE * seconds;
        let speed =
            if self.phase < PI { (self.ratio + 1.0) / (2.0 * self.ratio) } else { (self.ratio + 1.0) / 2.0 };
        self.phase = (self.phase + periods * speed * TAU).rem_euclid(TAU);
        let mut angles = self.angles();
        for (angle, residual) in angles.iter_mut().zip(&action[5..]) {
            *angle += RESIDUAL * residual;
        }
        angles
    }

    /// The angles of the motors without residuals.
    pub(crate) fn angles(&self) -> [f64; MOTORS] {
        let mut angles = [0.0; MOTORS];
        for (leg, (angles, offset)) in angles.chunks_exact_mut(3).zip(LEGS).enumerate() {
            let phase = (self.phase + offset * TAU) % TAU;
            let intensity = self.intensity[leg % 2];
            let swing = SWING * intensity * phase.cos();
            let extension = EXTENSION[usize::from(phase >= PI)] * intensity * phase.sin();
            let length = LENGTH[0] + LENGTH[1] * self.height + LIFT * extension;
            let calf = -2.0 * (length.clamp(LENGTHS[0], LENGTHS[1]) / (2.0 * LINK)).acos();
            angles.copy_from_slice(&[0.0, -swing - calf / 2.0, calf]);
        }
        angles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_leg_moves_back_and_a_swinging_one_is_short() {
        let mut gait = Gait::default();
        let mut action = [0.0; ACTIONS];
        for _ in 0..20 {
            gait.advance(&action, 0.0);
        }
        assert_eq!(gait.intensity, [0.75; 2]);
        // Length and direction of the first leg, from its thigh and calf.
        let leg =
            |angles: [f64; MOTORS]| [2.0 * LINK * (angles[2] / 2.0).cos(), -angles[1] - angles[2] / 2.0];
        action[0] = 1.0 / 3.0; // two periods, of 1.5 per second
        let mut legs = Vec::new();
        for _ in 0..100 {
            legs.push((gait.phase, leg(gait.advance(&action, 1.0 / 300.0))));
        }
        let stance = legs.iter().filter(|(phase, _)| *phase < PI - 0.1);
        let swing = legs.iter().filter(|(phase, _)| *phase > PI + 0.1);
        assert!(stance.clone().count() > 30 && swing.clone().count() > 30);
        let lengths = |legs: Vec<&(f64, [f64; 2])>| {
            legs.iter().map(|(_, [length, _])| *length).fold(f64::NAN, f64::min)
        };
        let [standing, swinging] = [lengths(stance.clone().collect()), lengths(swing.collect())];
        assert!(standing > 0.25 && swinging < standing - 0.08, "{standing} {swinging}");
        let directions: Vec<f64> = stance.map(|(_, [_, direction])| *direction).collect();
        assert!(directions.windows(2).all(|pair| pair[1] < pair[0]), "{directions:?}");
        assert!((directions[0] - SWING * 0.75).abs() < 0.01, "{}", directions[0]);
    }

    #[test]
    fn whatever_is_asked_for_the_angles_are_within_the_joints_ranges() {
        let mut random = foveate_core::Seed::root(1).rng();
        let mut gait = Gait::default();
        for _ in 0..10_000 {
            let action = [(); ACTIONS].map(|()| random.uniform(-2.0, 2.0));
            for leg in gait.advance(&action, 0.02).chunks_exact(3) {
                assert!(
                    leg[0].abs() <= 0.8 && (-1.05..4.19).contains(&leg[1]) && (-2.7..-0.75).contains(&leg[2]),
                    "{leg:?}"
                );
            }
            assert!(
                (0.0..TAU).contains(&gait.phase) && gait.observed().iter().all(|x| (0.0..=1.0).contains(x))
            );
            assert!((0.19..=5.0).contains(&gait.ratio));
        }
    }
}
