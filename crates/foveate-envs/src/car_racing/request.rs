//! From what a user typed to a [`CarRacing`].

use foveate_core::{Env, EnvError};

use super::config::{CarRacingConfig, PictureKind, Seeding};
use super::variants::{self, Variants};
use super::{CarRacing, ID};
use crate::registry::{EnvInfo, EnvRequest, Line};

/// Options by name: default and meaning.
const OPTIONS: [(&str, &str); 6] = [
    (
        "seeding",
        "gymnasium or gym0153: whose tracks and rules (default: gym0153 with picture classic, else gymnasium)",
    ),
    ("continuous", "true or false: three numbers or five choices (default: true)"),
    ("domain_randomize", "true or false: new colours at every reset (default: false)"),
    ("lap_complete_percent", "share of tiles for Gymnasium's lap rule, 0 to 1 (default: 0.95)"),
    (
        "label",
        "true or false: the score in picture classic, nearly as the original wrote it (default: false)",
    ),
    ("max_steps", "steps after which an episode is truncated, or none (default: 1000)"),
];

pub(crate) fn info() -> EnvInfo {
    EnvInfo {
        id: ID,
        about: "a car on a random closed track seen from above, after Gymnasium's CarRacing-v3",
        pictures: PictureKind::ALL.map(|kind| Line::new(kind.name(), kind.about())).to_vec(),
        variants: variants::catalogue(),
        options: OPTIONS.map(|(name, about)| Line::new(name, about)).to_vec(),
        solved_at: Some(900.0), // the reward threshold that Gymnasium registers
        instance: "track",
    }
}

pub(crate) fn make(request: &EnvRequest) -> Result<Box<dyn Env>, EnvError> {
    Ok(Box::new(CarRacing::new(config(request)?)?))
}

fn config(request: &EnvRequest) -> Result<CarRacingConfig, EnvError> {
    let mut config = match &request.picture {
        None => CarRacingConfig::default(),
        Some(name) => match choose("picture", name, PictureKind::ALL.map(|kind| (kind.name(), kind)))? {
            PictureKind::Classic => CarRacingConfig::classic(),
            picture => CarRacingConfig { picture, ..CarRacingConfig::default() },
        },
    };
    for (name, value) in &request.options {
        match name.as_str() {
            "seeding" => {
                let known = [("gymnasium", Seeding::Gymnasium), ("gym0153", Seeding::Gym0153)];
                config.seeding = choose("seeding", value, known)?;
            }
            "continuous" => config.continuous = flag("continuous", value)?,
            "domain_randomize" => config.domain_randomize = flag("domain_randomize", value)?,
            "label" => config.label = flag("label", value)?,
            "lap_complete_percent" => config.lap_complete_percent = number(name, "a number", value)?,
            "max_steps" if value == "none" => config.max_steps = None,
            "max_steps" => config.max_steps = Some(number(name, "a whole number or none", value)?),
            _ => {
                let known = OPTIONS.map(|(name, _)| name).join(", ");
                return Err(EnvError::UnknownOption {
                    env: ID.into(),
                    what: "option",
                    given: name.clone(),
                    known,
                });
            }
        }
    }
    config.variants = Variants::parse_all(&request.variants)?;
    if let Some(video) = &request.video {
        config.variants.set_video(video);
    }
    Ok(config)
}

fn choose<T, const N: usize>(
    what: &'static str,
    given: &str,
    known: [(&'static str, T); N],
) -> Result<T, EnvError> {
    let names = known.each_ref().map(|(name, _)| *name).join(", ");
    known
        .into_iter()
        .find(|(name, _)| *name == given)
        .map(|(_, value)| value)
        .ok_or_else(|| EnvError::UnknownOption { env: ID.into(), what, given: given.into(), known: names })
}

fn flag(what: &'static str, given: &str) -> Result<bool, EnvError> {
    choose(what, given, [("true", true), ("false", false)])
}

fn number<T: std::str::FromStr>(name: &str, what: &str, given: &str) -> Result<T, EnvError> {
    given
        .parse()
        .map_err(|_| EnvError::BadOption { env: ID.into(), why: format!("{name} is {what}, not {given:?}") })
}
