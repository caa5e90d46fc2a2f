//! A quadruped that walks past walls, with MuJoCo's own library.

use std::path::PathBuf;

use foveate_control::{Quadruped, QuadrupedConfig};
use foveate_core::{Env, EnvError, EnvSpec};
use foveate_envs::registry::{Choice, EnvRequest, WorldDescriptor, WorldError};

use crate::control::{self, LIBRARY};
use crate::given::Given;

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 5] = [
    ("size", "of the picture in pixels, a side or WIDTHxHEIGHT, 1 to 2048 (default: 100)"),
    ("antialias", "whether edges in the picture are smooth; false is faster (default: true)"),
    ("picture_every", "control steps from one picture of the camera to the next, 1 to 1000 (default: 5)"),
    ("most_speed", "the speed above which more is worth nothing, 0.01 to 10 m/s (default: 0.5)"),
    (
        LIBRARY,
        "file of MuJoCo's library, or a folder with it (default: the one of FOVEATE_MUJOCO or of Python's package mujoco)",
    ),
];

/// Its entry in [`WORLDS`](crate::WORLDS).
pub(crate) static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    instance: "course",
    pictures: &const {
        Choice::all([
            ("state", "the trunk's posture, the joints and the phase of the gait, as numbers"),
            ("pixels", "what the camera at its head sees"),
            ("both", "a dict of `image`, the pixels, and `sensors`, the numbers"),
        ])
    },
    options: &const { Choice::all(OPTIONS) },
    actions: Quadruped::ACTIONS,
    sensors: Quadruped::SENSORS,
    has_expert: true,
    needs_library: true,
    code_options: &[LIBRARY],
    fallback_picture: Some("pixels"),
    spec: Some(spec),
    ..WorldDescriptor::new(
        Quadruped::NAME,
        "a robot on four legs walks past walls on a platform (Choromanski et al. 2021; needs MuJoCo's library)",
        make,
    )
};

fn config(request: &EnvRequest) -> Result<QuadrupedConfig, EnvError> {
    let mut config = QuadrupedConfig { shown: control::shown(request), ..QuadrupedConfig::default() };
    for given in Given::all(request) {
        match given.name {
            "size" => config.size = given.size()?,
            "antialias" => config.antialias = given.choice()?,
            "picture_every" => config.picture_every = given.count(QuadrupedConfig::MOST_STEPS)?,
            "most_speed" => config.most_speed = given.number([0.01, 10.0])?,
            _ => {}
        }
    }
    Ok(config)
}

fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    Ok(Quadruped::spec_of(&config(request)?))
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let config = config(request)?;
    let outside = |why: String| EnvError::Outside { env: request.id.clone(), why };
    let library = request.options.get(LIBRARY).map(PathBuf::from);
    let library = control::open(library).map_err(|error| outside(error.to_string()))?;
    Ok(Box::new(Quadruped::new(&library, config).map_err(WorldError::source_of)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let request = |name: &str, text: &str| EnvRequest {
            id: Quadruped::NAME.into(),
            picture: Some("both".into()),
            options: [(name.to_owned(), text.to_owned())].into(),
            ..EnvRequest::default()
        };
        assert_eq!(config(&request("picture_every", "2")).expect("fine").picture_every, 2);
        for (name, bad, part) in [
            ("size", "0", "size is a side"),
            ("antialias", "maybe", "antialias is true or false"),
            ("picture_every", "0", "picture_every is a whole number from 1 to 1000"),
            ("picture_every", "1001", "picture_every is a whole number"),
            ("most_speed", "nan", "most_speed is a number from 0.01 to 10"),
            ("most_speed", "0", "most_speed is a number"),
        ] {
            let said = spec(&request(name, bad)).expect_err(bad).to_string();
            assert!(said.contains(part) && said.lines().count() == 1, "{said}");
        }
    }
}
