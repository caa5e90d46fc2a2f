//! reacher-easy: an arm with two joints shall keep its finger in a target.

use std::f64::consts::PI;

use foveate_mujoco::MujocoError;

use crate::task::{Parts, Scenery, Task, radians};

/// Names of the actions.
pub(crate) const ACTIONS: &[&str] = &["shoulder", "wrist"];

/// Names of the observation's numbers.
pub(crate) const SENSORS: &[&str] =
    &["shoulder", "wrist", "to target x", "to target y", "shoulder speed", "wrist speed"];

pub(crate) const EASY: Task = Task {
    name: "reacher-easy",
    suite: ["reacher", "easy"],
    about: "an arm with two joints shall keep its finger in a target",
    xml: include_str!("../models/reacher.xml"),
    scenery: Scenery {
        camera: "fixed",
        moving_camera: false,
        root: "arm",
        placed_target: Some("target"),
        floor_opacity: 0.0,
        upper_half: false,
    },
    substeps: 1,
    runge_kutta: false,
    rate: 50.0,
    actions: ACTIONS,
    sensors: SENSORS,
    bodies: &["finger"],
    reads: &[],
    start,
    observe,
    reward,
};

/// Radii of target and finger, in m.
const RADII: [f64; 2] = [0.05, 0.01];

fn start(parts: &mut Parts<'_>) -> Result<(), MujocoError> {
    parts.draw_positions(&[Some([-PI, PI]), Some([radians(-160.0), radians(160.0)])])?;
    let angle = parts.random.uniform(0.0, 2.0 * PI);
    let radius = parts.random.uniform(0.05, 0.20);
    *parts.target = [radius * angle.sin(), radius * angle.cos()];
    Ok(())
}

/// From the finger to the target.
fn to_target(parts: &mut Parts<'_>) -> Result<[f64; 2], MujocoError> {
    let (finger, _) = parts.frame(0)?;
    Ok([parts.target[0] - finger[0], parts.target[1] - finger[1]])
}

fn observe(parts: &mut Parts<'_>, numbers: &mut [f64]) -> Result<(), MujocoError> {
    numbers[..2].copy_from_slice(parts.data.positions());
    numbers[2..4].copy_from_slice(&to_target(parts)?);
    numbers[4..].copy_from_slice(parts.data.velocities());
    Ok(())
}

fn reward(parts: &mut Parts<'_>, _: &[f64]) -> Result<f64, MujocoError> {
    let [x, y] = to_target(parts)?;
    let inside = (x * x + y * y).sqrt() <= RADII[0] + RADII[1];
    Ok(f64::from(u8::from(inside)))
}
