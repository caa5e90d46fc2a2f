//! walker-walk: a planar figure with two legs shall walk upright at 1 m/s.

use std::f64::consts::PI;

use foveate_mujoco::MujocoError;

use crate::rewards::{gaussian_above, linear_above};
use crate::task::{Parts, Scenery, Task, radians};

/// Names of the actions.
pub(crate) const ACTIONS: &[&str] =
    &["right hip", "right knee", "right ankle", "left hip", "left knee", "left ankle"];

/// Names of the observation's numbers.
pub(crate) const SENSORS: &[&str] = &[
    "torso cos",
    "torso sin",
    "right thigh cos",
    "right thigh sin",
    "right leg cos",
    "right leg sin",
    "right foot cos",
    "right foot sin",
    "left thigh cos",
    "left thigh sin",
    "left leg cos",
    "left leg sin",
    "left foot cos",
    "left foot sin",
    "height",
    "vertical speed",
    "forward speed",
    "pitch speed",
    "right hip speed",
    "right knee speed",
    "right ankle speed",
    "left hip speed",
    "left knee speed",
    "left ankle speed",
];

pub(crate) const WALK: Task = Task {
    name: "walker-walk",
    suite: ["walker", "walk"],
    about: "a planar figure with two legs shall stand up and walk at 1 m/s",
    xml: include_str!("../models/walker.xml"),
    scenery: Scenery {
        camera: "side",
        moving_camera: true,
        root: "torso",
        placed_target: None,
        floor_opacity: 1.0,
        upper_half: true,
    },
    substeps: 10,
    runge_kutta: false,
    rate: 40.0,
    actions: ACTIONS,
    sensors: SENSORS,
    bodies: &["torso", "right_thigh", "right_leg", "right_foot", "left_thigh", "left_leg", "left_foot"],
    reads: &["torso_subtreelinvel"],
    start,
    observe,
    reward,
};

/// Ranges of hip, knee and ankle, in degrees.
const LEG: [[f64; 2]; 3] = [[-20.0, 100.0], [-150.0, 0.0], [-45.0, 45.0]];
/// Height of the torso that counts as standing, in m.
const STANDING: f64 = 1.2;

fn start(parts: &mut Parts<'_>) -> Result<(), MujocoError> {
    let [hip, knee, ankle] = LEG.map(|degrees| Some(degrees.map(radians)));
    parts.draw_positions(&[None, None, Some([-PI, PI]), hip, knee, ankle, hip, knee, ankle])
}

fn observe(parts: &mut Parts<'_>, numbers: &mut [f64]) -> Result<(), MujocoError> {
    for body in 0..7 {
        let (_, rotation) = parts.frame(body)?;
        numbers[2 * body] = rotation[0];
        numbers[2 * body + 1] = rotation[2];
    }
    numbers[14] = parts.frame(0)?.0[2];
    numbers[15..].copy_from_slice(parts.data.velocities());
    Ok(())
}

fn reward(parts: &mut Parts<'_>, _: &[f64]) -> Result<f64, MujocoError> {
    let (place, rotation) = parts.frame(0)?;
    let [speed, _, _] = parts.sensor(0)?;
    let standing = gaussian_above(place[2], STANDING, STANDING / 2.0);
    let upright = (1.0 + rotation[8]) / 2.0;
    let stand = (3.0 * standing + upright) / 4.0;
    let walk = linear_above(speed, 1.0, 0.5, 0.5);
    Ok(stand * (5.0 * walk + 1.0) / 6.0)
}
