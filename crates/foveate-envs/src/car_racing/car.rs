//! The car: converts gas, brake and steering to forces on four wheels. Gymnasium's `car_dynamics.py`, in f64.

use super::scene::{WHEEL_RADIUS, Wheel};
use super::solver::Island;
use super::track::{TrackPoint, sign};

/// Seconds per step.
pub(super) const DT: f64 = 1.0 / 50.0;
const SIZE: f64 = 0.02;
const ENGINE_POWER: f64 = 100_000_000.0 * SIZE * SIZE;
const WHEEL_INERTIA: f64 = 4000.0 * SIZE * SIZE;
const FRICTION_LIMIT: f64 = 1_000_000.0 * SIZE * SIZE;
const GRASS_FRICTION: f64 = FRICTION_LIMIT * 0.6;
const STIFFNESS: f64 = 205_000.0 * SIZE * SIZE;
const BRAKE_FORCE: f64 = 15.0; // radians per second, per step
const WHEEL_OFFSETS: [[f64; 2]; 4] = [
    [-55.0 * SIZE, 80.0 * SIZE],
    [55.0 * SIZE, 80.0 * SIZE],
    [-55.0 * SIZE, -82.0 * SIZE],
    [55.0 * SIZE, -82.0 * SIZE],
];

/// The controls.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Controls {
    /// Target angle of the front wheels' joints; positive turns left.
    pub(super) steer: f64,
    /// Throttle; values outside 0 to 1 are clipped.
    pub(super) gas: f64,
    /// Brake; values of 0.9 and above lock the wheels. Not clipped.
    pub(super) brake: f64,
}

/// The car.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Car {
    /// Its five bodies.
    pub(super) island: Island,
    /// Rotation angle of each wheel, radians.
    pub(super) phase: [f64; 4],
    /// Angular velocity of each rolling wheel, radians per second.
    pub(super) omega: [f64; 4],
    /// Whether the wheel touches the road.
    pub(super) on_road: [bool; 4],
    gas: [f64; 4],
    brake: f64,
    steer: f64,
}

impl Car {
    /// A car at rest at the start of the track.
    pub(super) fn at(start: &TrackPoint) -> Self {
        Car { island: Island::place([start.x, start.y], start.beta, &WHEEL_OFFSETS), ..Car::default() }
    }

    /// Wheel `i` for drawing.
    pub(super) fn wheel(&self, i: usize) -> Wheel {
        Wheel { body: self.island.wheels[i].body, phase: self.phase[i], omega: self.omega[i] }
    }

    /// Sets the controls; the throttle opens by at most 0.1 per step and closes immediately.
    pub(super) fn control(&mut self, controls: &Controls) {
        self.steer = controls.steer;
        let gas = controls.gas.clamp(0.0, 1.0);
        for wheel in &mut self.gas[2..] {
            let mut rise = gas - *wheel;
            if rise > 0.1 {
                rise = 0.1;
            }
            *wheel += rise;
        }
        self.brake = controls.brake;
    }

    /// Computes the force on each wheel's centre and the target speed of each steering joint, from the state
    /// before the step.
    pub(super) fn drive(&mut self) -> ([[f32; 2]; 4], [f32; 4]) {
        let mut forces = [[0.0; 2]; 4];
        let mut speeds = [0.0; 4];
        for i in 0..4 {
            let steer = if i < 2 { self.steer } else { 0.0 };
            let off = steer - f64::from(self.island.joint_angle(i));
            speeds[i] = (sign(off) * (50.0 * off.abs()).min(3.0)) as f32;
            forces[i] = self.wheel_force(i);
        }
        (forces, speeds)
    }

    fn wheel_force(&mut self, i: usize) -> [f32; 2] {
        let body = &self.island.wheels[i].body;
        let friction_limit = if self.on_road[i] { FRICTION_LIMIT } else { GRASS_FRICTION };
        // World vectors of (0, 1) and (1, 0), rotated in f32 with all terms, so that zeros keep their sign.
        let along = [body.cos * 0.0 - body.sin * 1.0, body.sin * 0.0 + body.cos * 1.0].map(f64::from);
        let side = [body.cos * 1.0 - body.sin * 0.0, body.sin * 1.0 + body.cos * 0.0].map(f64::from);
        let velocity = body.velocity.map(f64::from);
        let forward_speed = along[0] * velocity[0] + along[1] * velocity[1];
        let side_speed = side[0] * velocity[0] + side[1] * velocity[1];

        let omega = &mut self.omega[i];
        *omega += DT * ENGINE_POWER * self.gas[i] / WHEEL_INERTIA / (omega.abs() + 5.0);
        if self.brake >= 0.9 {
            *omega = 0.0;
        } else if self.brake > 0.0 {
            let direction = -sign(*omega);
            let mut change = BRAKE_FORCE * self.brake;
            if change.abs() > omega.abs() {
                change = omega.abs();
            }
            *omega += direction * change;
        }
        self.phase[i] += *omega * DT;

        let rolling_speed = *omega * WHEEL_RADIUS;
        let mut forward = -forward_speed + rolling_speed;
        let mut sideways = -side_speed;
        forward *= STIFFNESS;
        sideways *= STIFFNESS;
        let force = (forward * forward + sideways * sideways).sqrt();
        if force.abs() > friction_limit {
            forward /= force;
            sideways /= force;
            forward *= friction_limit;
            sideways *= friction_limit;
        }
        *omega -= DT * forward * WHEEL_RADIUS / WHEEL_INERTIA;
        [(sideways * side[0] + forward * along[0]) as f32, (sideways * side[1] + forward * along[1]) as f32]
    }
}
