//! `mjcf:FILE`: a user's own model of MuJoCo as a world.

use std::path::{Path, PathBuf};

use foveate_control::{Expression, ModelConfig, ModelWorld};
use foveate_core::{Env, EnvError};
use foveate_envs::registry::{Choice, EnvRequest, Family, WorldDescriptor, WorldError};
use foveate_mujoco::{Limits, Model};

use crate::control;
use crate::given::Given;
use crate::gymnasium::tell;

/// The prefix of these worlds' names.
const PREFIX: &str = "mjcf:";

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 12] = [
    ("camera", "name of the camera (default: the model's first)"),
    ("size", "of the picture in pixels, a side or WIDTHxHEIGHT, 1 to 2048 (default: 100)"),
    ("antialias", "whether edges in the picture are smooth; false is faster (default: true)"),
    ("repeat", "steps of the simulation for which an action is held, 1 to 1000 (default: 1)"),
    ("steps", "actions after which an episode is truncated, 1 to 1000000 (default: 1000)"),
    ("noise", "largest random change of every position at the start, 0 to 10 (default: 0.01)"),
    (
        "keyframe",
        "in which episodes start, its name or its number from 0 (default: the model's initial state)",
    ),
    ("reward", "of an action: a sensor, or a formula as in torso_velocity[0] - 0.1*effort (default: 0)"),
    ("end", "a formula that terminates the episode when it is above 0, as in height < 0.3 (default: never)"),
    ("start_timeout", "seconds that compiling the model may take, 1 to 3600 (default: 8)"),
    ("memory", "megabytes that compiling the model may take, 1 to 65536 (default: 768)"),
    (
        control::LIBRARY,
        "file of MuJoCo's library, or a folder with it (default: the one of FOVEATE_MUJOCO or of Python's package mujoco)",
    ),
];

/// Its entry in [`WORLDS`](crate::WORLDS).
pub(crate) static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    family: Some(Family {
        prefix: PREFIX,
        members: "any model of MuJoCo",
        needs: "MuJoCo's library",
        suggest,
    }),
    pictures: &const {
        Choice::all([
            ("state", "positions and velocities of the joints, as numbers"),
            ("pixels", "what the camera sees"),
            ("both", "a dict of `image`, the pixels, and `sensors`, the numbers"),
        ])
    },
    options: &const { Choice::all(OPTIONS) },
    needs_library: true,
    // Its name is a file's, which MuJoCo reads with all that it includes.
    runs_code: true,
    file_options: &[
        "camera",
        "size",
        "antialias",
        "repeat",
        "steps",
        "noise",
        "keyframe",
        "reward",
        "end",
        "start_timeout",
        "memory",
    ],
    fallback_picture: Some("pixels"),
    ..WorldDescriptor::new(
        "mjcf:FILE",
        "a model of your own, with a formula of its sensors as reward (needs MuJoCo's library); docs/control.md",
        make,
    )
};

/// The world of a model's file that is named without the prefix.
fn suggest(given: &str) -> Option<String> {
    let is_model = Path::new(given).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml"));
    (is_model && given.len() <= 200 && !given.starts_with(PREFIX)).then(|| format!("{PREFIX}{given}"))
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let file = request.id.strip_prefix(PREFIX).unwrap_or_default();
    if let Some(variant) = request.variants.first() {
        let given = variant.clone();
        let known = "none".into();
        return Err(EnvError::UnknownOption { env: request.id.clone(), what: "variant", given, known }.into());
    }
    let (config, limits) = config(request)?;
    let library = request.options.get(control::LIBRARY).map(PathBuf::from);
    let outside = |why: String| EnvError::Outside { env: request.id.clone(), why };
    let library = control::open(library).map_err(|error| outside(error.to_string()))?;
    let model =
        Model::from_file(&library, Path::new(file), limits).map_err(|error| outside(error.to_string()))?;
    for warning in model.warnings() {
        tell(&format!("note: {}: {warning}", request.id));
    }
    let world = ModelWorld::new(&request.id, &model, config).map_err(|error| outside(error.to_string()))?;
    let left_out = world.left_out().map_err(|error| outside(error.to_string()))?;
    if left_out > 0 {
        tell(&format!(
            "note: {}: {left_out} things are not in its picture, because meshes, height fields and the like cannot be drawn",
            request.id
        ));
    }
    Ok(Box::new(world))
}

fn config(request: &EnvRequest) -> Result<(ModelConfig, Limits), EnvError> {
    let mut limits = Limits::default();
    let mut config = ModelConfig { shown: control::shown(request), ..ModelConfig::default() };
    for given in Given::all(request) {
        let formula = || {
            Expression::parse(given.text).map_err(|error| EnvError::BadOption {
                env: request.id.clone(),
                why: format!("{}: {error}", given.name),
            })
        };
        match given.name {
            "camera" => config.camera = Some(given.text.to_owned()),
            "size" => config.size = given.size()?,
            "antialias" => config.antialias = given.choice()?,
            "repeat" => config.repeat = given.count(ModelWorld::MOST_REPEATS as usize)? as u32,
            "steps" => config.max_steps = given.count(ModelWorld::MOST_STEPS)?,
            "noise" => config.noise = given.number([0.0, 10.0])?,
            "keyframe" => config.keyframe = Some(given.text.to_owned()),
            "reward" => config.reward = Some(formula()?),
            "end" => config.end = Some(formula()?),
            "start_timeout" => limits.seconds = given.count(3600)? as u32,
            "memory" => limits.megabytes = given.count(65536)? as u32,
            control::LIBRARY => {}
            name => {
                let known = OPTIONS.map(|(name, _)| name).join(", ");
                let env = request.id.clone();
                return Err(EnvError::UnknownOption { env, what: "option", given: name.to_owned(), known });
            }
        }
    }
    Ok((config, limits))
}

#[cfg(test)]
mod tests {
    use foveate_control::Shown;

    use super::*;

    fn request(options: &[(&str, &str)]) -> EnvRequest {
        EnvRequest {
            id: "mjcf:robot.xml".into(),
            options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            ..EnvRequest::default()
        }
    }

    #[test]
    fn options_are_read_and_checked() {
        let options =
            [("size", "320x240"), ("repeat", "5"), ("reward", "speed - 0.1*effort"), ("memory", "99")];
        let (good, limits) = config(&request(&options)).expect("fine");
        assert_eq!(limits, Limits { megabytes: 99, ..Limits::default() });
        assert_eq!((good.size, good.repeat, good.shown), ([320, 240], 5, Shown::State));
        assert_eq!(good.reward.expect("there").sensors(), ["speed"]);
        for (option, bad, part) in [
            ("size", "0x5", "size is a side or WIDTHxHEIGHT"),
            ("repeat", "0", "repeat is a whole number from 1 to 1000"),
            ("steps", "-4", "steps is a whole number from 1 to 1000000"),
            ("start_timeout", "0", "start_timeout is a whole number from 1 to 3600"),
            ("memory", "1e9", "memory is a whole number from 1 to 65536"),
            ("noise", "NaN", "noise is a number from 0 to 10"),
            ("antialias", "1", "antialias is true or false"),
            ("reward", "speed +", "reward: \"speed +\" is no formula"),
            ("end", "sin(1)", "no function \"sin\""),
            ("arg.x", "1", "has no option \"arg.x\""),
        ] {
            let said = config(&request(&[(option, bad)])).expect_err(bad).to_string();
            assert!(said.contains(part) && said.lines().count() == 1, "{said}");
        }
    }
}
