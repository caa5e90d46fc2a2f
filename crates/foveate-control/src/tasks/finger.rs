//! finger-spin: a finger shall keep a body on a hinge spinning.

use std::f64::consts::PI;

use foveate_mujoco::MujocoError;

use crate::task::{Parts, Scenery, Task, radians};

/// Names of the actions.
pub(crate) const ACTIONS: &[&str] = &["proximal", "distal"];

/// Names of the observation's numbers.
pub(crate) const SENSORS: &[&str] = &[
    "proximal",
    "distal",
    "tip x",
    "tip z",
    "proximal speed",
    "distal speed",
    "hinge speed",
    "touch above",
    "touch below",
];

pub(crate) const SPIN: Task = Task {
    name: "finger-spin",
    suite: ["finger", "spin"],
    about: "a finger shall keep a body on a hinge spinning; the reward is sparse",
    xml: include_str!("../models/finger.xml"),
    scenery: Scenery {
        camera: "cam0",
        moving_camera: false,
        root: "proximal",
        placed_target: None,
        floor_opacity: 0.3,
        upper_half: true,
    },
    substeps: 2,
    runge_kutta: false,
    rate: 50.0,
    actions: ACTIONS,
    sensors: SENSORS,
    bodies: &[],
    reads: &[
        "proximal",
        "distal",
        "tip",
        "spinner",
        "proximal_velocity",
        "distal_velocity",
        "hinge_velocity",
        "touchtop",
        "touchbottom",
    ],
    start,
    observe,
    reward,
};

/// Range of both joints of the finger, in degrees.
const RANGE: [f64; 2] = [-110.0, 110.0];
/// Attempts to find a start without contact, after which the original fails; then the last one is taken.
const ATTEMPTS: u32 = 1000;
/// Faster than this, in rad/s, counts as spinning.
const SPINNING: f64 = 15.0;

fn start(parts: &mut Parts<'_>) -> Result<(), MujocoError> {
    let joint = Some(RANGE.map(radians));
    for _ in 0..ATTEMPTS {
        parts.draw_positions(&[joint, joint, Some([-PI, PI])])?;
        parts.data.forward()?;
        if parts.contacts()? == 0 {
            break;
        }
    }
    Ok(())
}

fn observe(parts: &mut Parts<'_>, numbers: &mut [f64]) -> Result<(), MujocoError> {
    let (tip, spinner): ([f64; 3], [f64; 3]) = (parts.sensor(2)?, parts.sensor(3)?);
    let mut one = |index| Ok::<_, MujocoError>(parts.sensor::<1>(index)?[0]);
    numbers.copy_from_slice(&[
        one(0)?,
        one(1)?,
        tip[0] - spinner[0],
        tip[2] - spinner[2],
        one(4)?,
        one(5)?,
        one(6)?,
        one(7)?.ln_1p(),
        one(8)?.ln_1p(),
    ]);
    Ok(())
}

fn reward(parts: &mut Parts<'_>, _: &[f64]) -> Result<f64, MujocoError> {
    let [speed] = parts.sensor(6)?;
    Ok(f64::from(u8::from(speed <= -SPINNING)))
}
