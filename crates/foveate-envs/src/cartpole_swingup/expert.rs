//! A scripted expert that sees the exact state: it pumps energy into the pole, catches it near the top, and brakes
//! before an end of the track.
//!
//! It is an expert for imitation and a reference score, not an agent. Its three parts:
//!
//! 1. **Brake** with the full force when the cart, slowing down at a fixed rate, would stop beyond the track.
//! 2. **Balance** near the top by the linear quadratic regulator of the equations of motion, linearised there. Near
//!    means that the regulator's cost of the state is low.
//! 3. **Swing up** elsewhere: push so that the energy of the pole rises (Åström and Furuta 2000, "Swinging up a pendulum
//!    by energy control"), and towards the middle of the track.
//!
//! The numbers of [`Law`] are the result of a search (CMA-ES) for the highest mean return on 1,024 starts; the
//! regulator follows from its costs.

use std::f64::consts::PI;

use super::physics::{CartPoleState, FORCE, GRAVITY, HALF_TRACK, POLE, POLE_MASS};

/// The numbers of the expert's law.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Law {
    /// The regulator's gain: the force is −gain · [x, x', θ, θ'], in N.
    gain: [f64; 4],
    /// The regulator's cost of a state z is z · cost z.
    cost: [[f64; 4]; 4],
    /// It balances below this cost.
    near: f64,
    /// Force for energy, per J · rad/s, N.
    pump: f64,
    /// Energy beyond that of the upright pole at which pumping ends, J.
    surplus: f64,
    /// Force towards the middle per metre, and against the velocity per metre per second, N.
    middle: [f64; 2],
    /// Deceleration that braking counts on, metres per second squared.
    deceleration: f64,
    /// Distance to the end of the track at which the cart has to stop, metres.
    margin: f64,
}

/// Costs per step of the squares of x, x', θ and θ', from which [`Law::gain`] and [`Law::cost`] follow.
#[cfg(test)]
const STATE_COSTS: [f64; 4] = [2.2, 0.03, 14.4, 0.13];
/// Cost per step of the square of the force, N².
#[cfg(test)]
const FORCE_COST: f64 = 0.0088;

const LAW: Law = Law {
    gain: [-13.740_163_415_817, -13.348_083_774_859, 70.965_363_161_776, 12.067_932_838_902],
    cost: [
        [212.121_089_266_950, 99.697_168_444_115, -193.225_156_369_122, -43.881_730_977_993],
        [99.697_168_444_115, 75.365_022_907_607, -140.491_156_743_749, -33.987_488_650_188],
        [-193.225_156_369_122, -140.491_156_743_749, 512.321_581_901_726, 75.792_849_031_109],
        [-43.881_730_977_993, -33.987_488_650_188, 75.792_849_031_109, 16.914_731_347_200],
    ],
    near: 355.0,
    pump: 66.0,
    surplus: 1.1,
    middle: [140.0, 100.0],
    deceleration: 6.3,
    margin: 0.43,
};

/// The expert's force in this state, −[`FORCE`] to `FORCE`, in N.
pub(super) fn force(state: CartPoleState) -> f64 {
    let CartPoleState { x, x_dot, theta, theta_dot } = state;
    // The world does not wrap the angle.
    let theta = (theta + PI).rem_euclid(2.0 * PI) - PI;
    let z = [x, x_dot, theta, theta_dot];
    let balance = -dot(LAW.gain, z);
    let near = dot(LAW.cost.map(|row| dot(row, z)), z) < LAW.near;
    let saves = near && balance.abs() < FORCE;
    let to_the_end = HALF_TRACK - LAW.margin - x_dot.signum() * x;
    let force = if !saves && x_dot * x_dot / (2.0 * LAW.deceleration) > to_the_end {
        -FORCE * x_dot.signum()
    } else if near {
        balance
    } else {
        // Of the pole alone: a rod around its end, 0 upright at rest.
        let inertia = POLE_MASS * POLE * POLE / 3.0;
        let energy =
            inertia * theta_dot * theta_dot / 2.0 + POLE_MASS * GRAVITY * POLE / 2.0 * (theta.cos() - 1.0);
        LAW.pump * (LAW.surplus - energy) * theta_dot * theta.cos()
            - LAW.middle[0] * x
            - LAW.middle[1] * x_dot
    };
    force.clamp(-FORCE, FORCE)
}

fn dot(a: [f64; 4], b: [f64; 4]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{CartPoleConfig, CartPoleSwingUp};
    use super::*;
    use crate::random::Mt19937;
    use foveate_core::{Action, Env};

    /// Each column is the difference quotient of a step of the world around the upright rest.
    fn linearised() -> ([[f64; 4]; 4], [f64; 4]) {
        const H: f64 = 1e-5;
        let moved = |[x, x_dot, theta, theta_dot]: [f64; 4], force: f64| {
            let state = CartPoleState { x, x_dot, theta, theta_dot };
            let CartPoleState { x, x_dot, theta, theta_dot } = state.moved(force, theta.sin(), theta.cos());
            [x, x_dot, theta, theta_dot]
        };
        let slope =
            |plus: [f64; 4], minus: [f64; 4]| std::array::from_fn(|i| (plus[i] - minus[i]) / (2.0 * H));
        let columns: [[f64; 4]; 4] = std::array::from_fn(|j| {
            let at = |h: f64| moved(std::array::from_fn(|i| if i == j { h } else { 0.0 }), 0.0);
            slope(at(H), at(-H))
        });
        let of_state = std::array::from_fn(|i| columns.map(|column| column[i]));
        (of_state, slope(moved([0.0; 4], H), moved([0.0; 4], -H)))
    }

    #[test]
    fn the_regulator_solves_the_riccati_equation() {
        let (a, b) = linearised();
        let mut p: [[f64; 4]; 4] =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { STATE_COSTS[i] } else { 0.0 }));
        let mut gain = [0.0; 4];
        for _ in 0..5000 {
            let pb = p.map(|row| dot(row, b));
            let scale = FORCE_COST + dot(b, pb);
            gain = std::array::from_fn(|j| (0..4).map(|i| pb[i] * a[i][j]).sum::<f64>() / scale);
            let closed: [[f64; 4]; 4] =
                std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] - b[i] * gain[j]));
            let pa: [[f64; 4]; 4] =
                std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| p[i][k] * a[k][j]).sum()));
            p = std::array::from_fn(|i| {
                std::array::from_fn(|j| {
                    let carried: f64 = (0..4).map(|k| pa[k][i] * closed[k][j]).sum();
                    carried + if i == j { STATE_COSTS[i] } else { 0.0 }
                })
            });
        }
        for i in 0..4 {
            assert!((gain[i] - LAW.gain[i]).abs() < 1e-3, "{gain:?}");
            for j in 0..4 {
                assert!((p[i][j] - LAW.cost[i][j]).abs() < 1e-2, "{p:?}");
            }
        }
    }

    #[test]
    fn the_expert_scores_as_documented() {
        // The 100 starts of seed 1, as an evaluation plays them.
        let mut env = CartPoleSwingUp::new(CartPoleConfig::default());
        let mut seed = Some(1);
        let (mut total, mut saved) = (0.0, 0);
        for _ in 0..100 {
            env.reset(seed.take());
            let mut action = [0.0];
            loop {
                env.expert(&mut action).expect("it runs");
                let step = env.step(Action::Continuous(&action)).expect("an action in its range");
                total += step.reward;
                if step.is_over() {
                    saved += u32::from(!step.terminated);
                    break;
                }
            }
        }
        assert!((total / 100.0 - 631.8).abs() < 5.0, "{}", total / 100.0);
        assert!((67..=69).contains(&saved), "{saved}");
    }

    #[test]
    fn whole_turns_do_not_change_the_force() {
        let mut stream = Mt19937::gym_seeded(3);
        for _ in 0..100 {
            let state = CartPoleState::start(&mut stream);
            let turned = CartPoleState { theta: state.theta + 6.0 * PI, ..state };
            assert!((force(state) - force(turned)).abs() < 1e-6, "{state:?}");
            assert!(force(state).abs() <= FORCE);
        }
        assert_eq!(force(CartPoleState { x: 0.0, x_dot: 0.0, theta: 0.0, theta_dot: 0.0 }), 0.0);
    }
}
