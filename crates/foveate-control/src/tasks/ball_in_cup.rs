//! ball-in-cup-catch: a cup on a string with a ball shall catch the ball.

use foveate_mujoco::MujocoError;

use crate::task::{Parts, Scenery, Task};

/// Names of the actions.
pub(crate) const ACTIONS: &[&str] = &["force x", "force z"];

/// Names of the observation's numbers.
pub(crate) const SENSORS: &[&str] =
    &["cup x", "cup z", "ball x", "ball z", "cup speed x", "cup speed z", "ball speed x", "ball speed z"];

pub(crate) const CATCH: Task = Task {
    name: "ball-in-cup-catch",
    suite: ["ball_in_cup", "catch"],
    about: "a cup shall swing a ball on a string up and catch it; the reward is sparse",
    xml: include_str!("../models/ball_in_cup.xml"),
    scenery: Scenery {
        camera: "cam0",
        moving_camera: false,
        root: "cup",
        placed_target: None,
        floor_opacity: 0.3,
        upper_half: true,
    },
    substeps: 10,
    runge_kutta: false,
    rate: 50.0,
    actions: ACTIONS,
    sensors: SENSORS,
    bodies: &["cup", "ball"],
    reads: &[],
    start,
    observe,
    reward,
};

/// The target's place in the cup, in m.
const TARGET: [f64; 3] = [0.0, 0.0, -0.05];
/// Half the target's sides, and the ball's radius, in m.
const HALF_SIDE: f64 = 0.05;
const RADIUS: f64 = 0.025;

fn start(parts: &mut Parts<'_>) -> Result<(), MujocoError> {
    loop {
        let x = parts.random.uniform(-0.2, 0.2);
        let z = parts.random.uniform(0.2, 0.5);
        let [cup_x, cup_z] = [0, 1].map(|i| parts.data.positions()[i]);
        parts.data.set_positions(&[cup_x, cup_z, x, z])?;
        parts.data.forward()?;
        if parts.contacts()? == 0 {
            return Ok(());
        }
    }
}

fn observe(parts: &mut Parts<'_>, numbers: &mut [f64]) -> Result<(), MujocoError> {
    numbers[..4].copy_from_slice(parts.data.positions());
    numbers[4..].copy_from_slice(parts.data.velocities());
    Ok(())
}

fn reward(parts: &mut Parts<'_>, _: &[f64]) -> Result<f64, MujocoError> {
    let target = parts.point(0, TARGET)?;
    let (ball, _) = parts.frame(1)?;
    let inside = [0, 2].into_iter().all(|axis| (target[axis] - ball[axis]).abs() < HALF_SIDE - RADIUS);
    Ok(f64::from(u8::from(inside)))
}
