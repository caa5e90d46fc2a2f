//! cheetah-run: a planar animal with two legs shall run at 10 m/s.

use foveate_mujoco::MujocoError;

use crate::rewards::linear_above;
use crate::task::{Parts, Scenery, Task, radians};

/// Names of the actions.
pub(crate) const ACTIONS: &[&str] =
    &["back thigh", "back shin", "back foot", "front thigh", "front shin", "front foot"];

/// Names of the observation's numbers.
pub(crate) const SENSORS: &[&str] = &[
    "height",
    "pitch",
    "back thigh",
    "back shin",
    "back foot",
    "front thigh",
    "front shin",
    "front foot",
    "forward speed",
    "vertical speed",
    "pitch speed",
    "back thigh speed",
    "back shin speed",
    "back foot speed",
    "front thigh speed",
    "front shin speed",
    "front foot speed",
];

pub(crate) const RUN: Task = Task {
    name: "cheetah-run",
    suite: ["cheetah", "run"],
    about: "a planar animal shall run as fast as it can, up to 10 m/s",
    xml: include_str!("../models/cheetah.xml"),
    scenery: Scenery {
        camera: "side",
        moving_camera: true,
        root: "torso",
        placed_target: None,
        floor_opacity: 1.0,
        upper_half: true,
    },
    substeps: 1,
    runge_kutta: false,
    rate: 100.0,
    actions: ACTIONS,
    sensors: SENSORS,
    bodies: &[],
    reads: &["torso_subtreelinvel"],
    start,
    observe,
    reward,
};

/// Ranges of the six joints, in degrees.
const RANGES: [[f64; 2]; 6] =
    [[-30.0, 60.0], [-50.0, 50.0], [-230.0, 50.0], [-57.0, 0.40], [-70.0, 50.0], [-28.0, 28.0]];
/// Steps in which the animal falls to the floor before the episode.
const SETTLING: u32 = 200;

fn start(parts: &mut Parts<'_>) -> Result<(), MujocoError> {
    let mut ranges = [None; 9];
    for (range, degrees) in ranges[3..].iter_mut().zip(RANGES) {
        *range = Some(degrees.map(radians));
    }
    parts.draw_positions(&ranges)?;
    // The first half step uses what was computed before the positions were drawn, as the original does.
    parts.data.step_from_half(SETTLING)?;
    parts.data.set_time(0.0)
}

fn observe(parts: &mut Parts<'_>, numbers: &mut [f64]) -> Result<(), MujocoError> {
    numbers[..8].copy_from_slice(&parts.data.positions()[1..]);
    numbers[8..].copy_from_slice(parts.data.velocities());
    Ok(())
}

fn reward(parts: &mut Parts<'_>, _: &[f64]) -> Result<f64, MujocoError> {
    let [speed, _, _] = parts.sensor(0)?;
    Ok(linear_above(speed, 10.0, 10.0, 0.0))
}
