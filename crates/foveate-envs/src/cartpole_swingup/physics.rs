//! The equations of motion, the starts and the reward, in the original's order of operations.

use std::f64::consts::PI;
use std::hint::black_box;

use crate::random::Mt19937;

pub(super) const GRAVITY: f64 = 9.82;
pub(super) const POLE_MASS: f64 = 0.5;
/// Cart and pole together.
const TOTAL_MASS: f64 = 1.0;
/// Length of the pole.
pub(super) const POLE: f64 = 0.6;
const MASS_LENGTH: f64 = POLE_MASS * POLE;
/// The force of action 1.
pub(super) const FORCE: f64 = 10.0;
const TIMESTEP_S: f64 = 0.01;
/// Friction between cart and track.
const FRICTION: f64 = 0.1;
/// The cart may be this far from the middle of the track.
pub const HALF_TRACK: f64 = 2.4;
/// Steps per second of simulated time.
pub(super) const FPS: f64 = 1.0 / TIMESTEP_S;

/// Position, angle and velocities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CartPoleState {
    /// Position of the cart; 0 is the middle of the track, positive is right.
    pub x: f64,
    /// Its velocity.
    pub x_dot: f64,
    /// Angle of the pole in radians, not wrapped; 0 is upright, positive is to the left.
    pub theta: f64,
    /// Its velocity.
    pub theta_dot: f64,
}

impl CartPoleState {
    /// At rest in the middle, the pole hanging down.
    pub(super) const HANGING: CartPoleState = CartPoleState { x: 0.0, x_dot: 0.0, theta: PI, theta_dot: 0.0 };

    /// A start: position anywhere on the track, velocities up to 10 either way, the pole in the lower half.
    pub(super) fn start(stream: &mut Mt19937) -> Self {
        let [x, x_dot, theta, theta_dot] = [(); 4].map(|()| stream.next_f64() * 2.0 - 1.0);
        CartPoleState {
            x: x * HALF_TRACK,
            x_dot: x_dot * 10.0,
            theta: PI + theta * (PI / 2.0),
            theta_dot: theta_dot * 10.0,
        }
    }

    /// The state after one step with `force`; `sin` and `cos` are those of the angle before it.
    ///
    /// Explicit Euler: positions move with the velocities before the step.
    #[inline]
    pub(super) fn moved(self, force: f64, sin: f64, cos: f64) -> Self {
        self.moved_with(force, sin, cos, Squares { spin: squared(self.theta_dot), cos: squared(cos) })
    }

    /// The same when the squares are known.
    #[inline(always)]
    pub(super) fn moved_with(self, force: f64, sin: f64, cos: f64, squares: Squares) -> Self {
        let CartPoleState { x, x_dot, theta, theta_dot } = self;
        let Squares { spin: spin_squared, cos: cos_squared } = squares;
        let push = force - FRICTION * x_dot;
        let x_change =
            (-2.0 * MASS_LENGTH * spin_squared * sin + 3.0 * POLE_MASS * GRAVITY * sin * cos + 4.0 * force
                - 4.0 * FRICTION * x_dot)
                / (4.0 * TOTAL_MASS - 3.0 * POLE_MASS * cos_squared);
        let theta_change = (-3.0 * MASS_LENGTH * spin_squared * sin * cos
            + 6.0 * TOTAL_MASS * GRAVITY * sin
            + 6.0 * push * cos)
            / (4.0 * POLE * TOTAL_MASS - 3.0 * MASS_LENGTH * cos_squared);
        CartPoleState {
            x: x + x_dot * TIMESTEP_S,
            x_dot: x_dot + x_change * TIMESTEP_S,
            theta: theta + theta_dot * TIMESTEP_S,
            theta_dot: theta_dot + theta_change * TIMESTEP_S,
        }
    }

    /// The derivatives of [`CartPoleState::moved`]: rows x, x', θ, θ', columns the same and the force.
    pub(super) fn slopes(self, force: f64, sin: f64, cos: f64) -> [[f64; 5]; 4] {
        let CartPoleState { x_dot, theta_dot, .. } = self;
        let (spin_squared, push) = (theta_dot * theta_dot, force - FRICTION * x_dot);
        // A change is `top / bottom`, its derivative `(top' − change * bottom') / bottom`.
        let bottom = 4.0 * TOTAL_MASS - 3.0 * POLE_MASS * cos * cos;
        let top =
            -2.0 * MASS_LENGTH * spin_squared * sin + 3.0 * POLE_MASS * GRAVITY * sin * cos + 4.0 * push;
        let of_x = |top_slope: f64, bottom_slope: f64| {
            (top_slope - top / bottom * bottom_slope) / bottom * TIMESTEP_S
        };
        let below = 4.0 * POLE * TOTAL_MASS - 3.0 * MASS_LENGTH * cos * cos;
        let above = -3.0 * MASS_LENGTH * spin_squared * sin * cos
            + 6.0 * TOTAL_MASS * GRAVITY * sin
            + 6.0 * push * cos;
        let of_theta =
            |slope: f64, below_slope: f64| (slope - above / below * below_slope) / below * TIMESTEP_S;
        let double = cos * cos - sin * sin;
        [
            [1.0, TIMESTEP_S, 0.0, 0.0, 0.0],
            [
                0.0,
                1.0 + of_x(-4.0 * FRICTION, 0.0),
                of_x(
                    -2.0 * MASS_LENGTH * spin_squared * cos + 3.0 * POLE_MASS * GRAVITY * double,
                    6.0 * POLE_MASS * cos * sin,
                ),
                of_x(-4.0 * MASS_LENGTH * theta_dot * sin, 0.0),
                of_x(4.0, 0.0),
            ],
            [0.0, 0.0, 1.0, TIMESTEP_S, 0.0],
            [
                0.0,
                of_theta(-6.0 * FRICTION * cos, 0.0),
                of_theta(
                    -3.0 * MASS_LENGTH * spin_squared * double + 6.0 * TOTAL_MASS * GRAVITY * cos
                        - 6.0 * push * sin,
                    6.0 * MASS_LENGTH * cos * sin,
                ),
                1.0 + of_theta(-6.0 * MASS_LENGTH * theta_dot * sin * cos, 0.0),
                of_theta(6.0 * cos, 0.0),
            ],
        ]
    }

    /// The derivatives of [`CartPoleState::reward`] with respect to position and angle.
    pub(super) fn reward_slopes(self) -> [f64; 2] {
        let (sin, cos) = self.theta.sin_cos();
        let scale = PI / 2.0 / HALF_TRACK;
        let (across_sin, across_cos) = (self.x * scale).sin_cos();
        [-0.5 * (cos + 1.0) * across_sin * scale, -0.5 * sin * across_cos]
    }

    /// 1 with the pole upright in the middle, 0 hanging or at an end of the track, below 0 beyond it; `cos` is
    /// that of the angle.
    #[inline]
    pub(super) fn reward(self, cos: f64) -> f64 {
        reward(cos, self.across().cos())
    }

    /// The angle whose cosine is the reward's second factor.
    #[inline(always)]
    pub(super) fn across(self) -> f64 {
        self.x / HALF_TRACK * (PI / 2.0)
    }

    /// Returns whether the cart left the track.
    #[inline]
    pub(super) fn is_off(self) -> bool {
        self.x < -HALF_TRACK || self.x > HALF_TRACK
    }
}

/// The reward; `across` is the cosine of [`CartPoleState::across`].
#[inline(always)]
pub(super) fn reward(cos: f64, across: f64) -> f64 {
    // Halving is exact, however it is written.
    0.5 * (cos + 1.0) * across
}

/// Squares that the equations of motion need.
#[derive(Clone, Copy)]
pub(super) struct Squares {
    /// Of the angular velocity.
    pub(super) spin: f64,
    /// Of the angle's cosine.
    pub(super) cos: f64,
}

/// A state, and sine and cosine of its angle.
///
/// The numbers lie apart in memory. Side by side, the compiler computes several of them in one register, and then the
/// next angle, which is known early, and its sine wait for the slowest of them: that makes a step a third slower.
#[derive(Debug, Clone)]
pub(super) struct Motion {
    x: Apart,
    x_dot: Apart,
    theta: Apart,
    theta_dot: Apart,
    sin: Apart,
    cos: Apart,
}

#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
struct Apart(f64);

impl Motion {
    #[inline]
    pub(super) fn new(state: CartPoleState) -> Self {
        let CartPoleState { x, x_dot, theta, theta_dot } = state;
        let (sin, cos) = theta.sin_cos();
        Motion {
            x: Apart(x),
            x_dot: Apart(x_dot),
            theta: Apart(theta),
            theta_dot: Apart(theta_dot),
            sin: Apart(sin),
            cos: Apart(cos),
        }
    }

    /// Takes one step with `force`.
    #[inline]
    pub(super) fn advance(&mut self, force: f64) {
        *self = Motion::new(self.state().moved(force, self.sin.0, self.cos.0));
    }

    #[inline]
    pub(super) const fn state(&self) -> CartPoleState {
        let &Motion {
            x: Apart(x),
            x_dot: Apart(x_dot),
            theta: Apart(theta),
            theta_dot: Apart(theta_dot),
            ..
        } = self;
        CartPoleState { x, x_dot, theta, theta_dot }
    }

    /// Sine and cosine of the angle.
    #[inline]
    pub(super) const fn sin_cos(&self) -> (f64, f64) {
        (self.sin.0, self.cos.0)
    }
}

/// `pow(x, 2)` as the C library computes it, which Python's `x ** 2` calls: in about one of a thousand cases
/// its last bit differs from that of `x * x`.
///
/// For numbers that are neither tiny nor huge, `pow` rounds a value that is within 0.0125 units in the last
/// place of the true square: 0.011 for its exponential function, the rest for its logarithm, whose relative
/// error is below 1.5 · 2^-68. So it is the correctly rounded product unless the true square lies that near the
/// middle between two numbers. Only then, in a twenty-fifth of all cases, is `pow` called.
///
/// The batch of worlds finds the error of the product with a fused multiply-add ([`super::libm`]); here it is
/// done in integers, because plain x86-64 has no such instruction and this code is compiled once.
#[inline]
fn squared(x: f64) -> f64 {
    /// Half the width of the interval around the middle, in units of 2^-64 of the last place.
    const NEAR: u64 = ((1_u128 << 64) / 50) as u64;
    /// 2^-20 to 2^20, by the exponent's bits.
    const EXPONENTS: std::ops::RangeInclusive<u64> = 1023 - 20..=1023 + 20;
    // The exact square of the significand has 105 or 106 bits, of which the first 53 are kept.
    let significand = x.to_bits() & ((1 << 52) - 1) | 1 << 52;
    let square = u128::from(significand) * u128::from(significand);
    let dropped = ((square as u64) << 11) << (1 - (square >> 105) as u32);
    let is_near = dropped.wrapping_sub((1 << 63) - NEAR) < 2 * NEAR;
    if is_near || !EXPONENTS.contains(&(x.to_bits() >> 52 & 0x7ff)) { power(x) } else { x * x }
}

/// The C library's `pow(x, 2)`.
#[cold]
#[inline(never)]
pub(super) fn power(x: f64) -> f64 {
    // Hidden from the compiler, which would write a multiplication.
    x.powf(black_box(2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_those_of_the_c_library() {
        let mut stream = Mt19937::gym_seeded(5);
        let mut unlike_products = 0;
        for i in 0..1_000_000 {
            let x = match i % 3 {
                0 => stream.next_f64() * 2.0 - 1.0,
                1 => (stream.next_f64() * 2.0 - 1.0) * 20.0,
                _ => (stream.next_f64() * 2.0 - 1.0) * 10.0_f64.powi((i % 200) - 100),
            };
            assert_eq!(squared(x).to_bits(), x.powf(black_box(2.0)).to_bits(), "{x:?}");
            unlike_products += u32::from(squared(x).to_bits() != (x * x).to_bits());
        }
        for x in [0.0, -0.0, 1.0, -1.0, f64::MIN_POSITIVE, 1e300, f64::INFINITY] {
            assert_eq!(squared(x).to_bits(), x.powf(black_box(2.0)).to_bits(), "{x:?}");
        }
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            assert!(unlike_products > 0, "glibc's pow is not a multiplication");
        }
    }
}
