//! cartpole-swingup: a cart shall swing its pole up and keep it there.

use std::f64::consts::PI;

use foveate_mujoco::MujocoError;

use crate::rewards::{gaussian_around, gaussian_around_in_array, quadratic_around};
use crate::task::{Parts, Scenery, Task};

/// Names of the actions.
pub(crate) const ACTIONS: &[&str] = &["force"];

/// Names of the observation's numbers.
pub(crate) const SENSORS: &[&str] = &["x", "cos angle", "sin angle", "velocity", "angular velocity"];

pub(crate) const SWINGUP: Task = Task {
    name: "cartpole-swingup",
    suite: ["cartpole", "swingup"],
    about: "a cart shall swing its pole up from below and keep it there, near the middle",
    xml: include_str!("../models/cartpole.xml"),
    scenery: Scenery {
        camera: "fixed",
        moving_camera: false,
        root: "cart",
        placed_target: None,
        floor_opacity: 0.3,
        upper_half: true,
    },
    substeps: 1,
    runge_kutta: true,
    rate: 100.0,
    actions: ACTIONS,
    sensors: SENSORS,
    bodies: &["pole_1"],
    reads: &[],
    start,
    observe,
    reward,
};

fn start(parts: &mut Parts<'_>) -> Result<(), MujocoError> {
    let x = 0.01 * parts.random.normal();
    let angle = PI + 0.01 * parts.random.normal();
    parts.data.set_positions(&[x, angle])?;
    let velocities = [(); 2].map(|()| 0.01 * parts.random.normal());
    parts.data.set_velocities(&velocities)
}

fn observe(parts: &mut Parts<'_>, numbers: &mut [f64]) -> Result<(), MujocoError> {
    let (_, rotation) = parts.frame(0)?;
    numbers[0] = parts.data.positions()[0];
    numbers[1] = rotation[8];
    numbers[2] = rotation[2];
    numbers[3..].copy_from_slice(parts.data.velocities());
    Ok(())
}

fn reward(parts: &mut Parts<'_>, controls: &[f64]) -> Result<f64, MujocoError> {
    let (_, rotation) = parts.frame(0)?;
    let upright = (rotation[8] + 1.0) / 2.0;
    let centred = (1.0 + gaussian_around(parts.data.positions()[0], 2.0)) / 2.0;
    let small_control = (4.0 + quadratic_around(controls[0])) / 5.0;
    let small_velocity = (1.0 + gaussian_around_in_array(parts.data.velocities()[1], 5.0)) / 2.0;
    Ok(upright * small_control * small_velocity * centred)
}
