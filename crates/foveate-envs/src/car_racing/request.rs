//! Builds a [`CarRacing`] from a user's request.

use foveate_core::{Env, EnvError};

use super::config::{CarRacingConfig, PictureKind, Seeding};
use super::variants::{self, Variants};
use super::{CarRacing, ID};
use crate::registry::{
    Champion, Choice, EnvRequest, Published, PublishedScore, WantedFilms, WorldDescriptor, WorldError,
};

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 7] = [
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
    (
        "round_actions",
        "true or false: actions are rounded to single precision first (default: true with seeding gymnasium, else false)",
    ),
    ("max_steps", "steps after which an episode is truncated, or none (default: 1000)"),
];

/// The source of the scores of AttentionNeuron's release.
const SENSORY: &str = "AttentionNeuron's release on gym's CarRacing-v0 (here: picture classic), 100 episodes, the patches of \
                       carracing_pi shuffled in every episode: test logs of the authors' repository of Tang and Ha, The \
                       Sensory Neuron as a Transformer, NeurIPS 2021";

/// Its entry in the registry of worlds.
pub static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    instance: "track",
    pictures: &[
        PictureKind::Exact.choice(),
        PictureKind::Fast.choice(),
        PictureKind::Classic.choice(),
        PictureKind::None.choice(),
    ],
    variants: variants::catalogue(),
    options: &Choice::all(OPTIONS),
    actions: &["steer", "gas", "brake"],
    choices: &["nothing", "right", "left", "gas", "brake"],
    solved_at: Some(900.0), // the reward threshold that Gymnasium registers
    published: &[
        Published {
            release: ["attention-agent", "CarRacing/model"],
            source: "AttentionAgent on gym's CarRacing-v0 (here: picture classic), 100 episodes: Tang, Nguyen and Ha, \
                 Neuroevolution of Self-Interpretable Agents, GECCO 2020, and its authors' repository (color3, noise)",
            scores: &[
                score("original", 914.0, 15.0),
                score("color", 866.0, 112.0),
                score("color3", 673.0, 372.0),
                score("bar", 900.0, 35.0),
                score("blob", 898.0, 53.0),
                score("noise", -58.0, 12.0),
            ],
        },
        Published {
            release: ["attention-agent", "simplified_aa"],
            source: "AttentionAgent's branch simplified_aa, 100 episodes: log of the authors' repository",
            scores: &[score("original", 854.34, 94.46)],
        },
        Published {
            release: ["attention-neuron", "carracing"],
            source: SENSORY,
            scores: &[score("original", 895.59, 60.83)],
        },
        Published {
            release: ["attention-neuron", "carracing_pi"],
            source: SENSORY,
            scores: &[score("original", 846.60, 94.21)],
        },
    ],
    // `fast` was measured at both ends (docs/runs.md: the first generations of preset `paper`; README: around
    // trained weights). `classic` and `none` are faster worlds, and are assumed to be at least as fast.
    // `exact` is derived from the README's speeds of the world alone and of the agent.
    speeds: &[
        ("fast", [8800.0, 14500.0]),
        ("classic", [8800.0, 14500.0]),
        ("none", [8800.0, 14500.0]),
        ("exact", [3500.0, 4000.0]),
    ],
    patience: Some(20), // as in AttentionAgent's training
    has_expert: true,
    default_agents_fit: true,
    hide_readouts: Some("blank:bottom=12"),
    champions: &[
        Champion {
            name: ID,
            about: "AttentionAgent",
            weights: include_bytes!("../../../../champions/car-racing.safetensors"),
            as_trained: false,
        },
        Champion {
            name: "car-racing-attention-neuron",
            about: "AttentionNeuron, whose patches may come in any order",
            weights: include_bytes!("../../../../champions/car-racing-attention-neuron.safetensors"),
            as_trained: true,
        },
    ],
    missing_films,
    ..WorldDescriptor::new(
        ID,
        "a car on a random closed track seen from above, after Gymnasium's CarRacing-v3",
        make,
    )
};

const fn score(variant: &'static str, mean: f64, std: f64) -> PublishedScore {
    PublishedScore { variant, mean, std }
}

/// The folder of a video that is not loaded yet. If no folder is given, building the world reports the error.
fn missing_films(request: &EnvRequest) -> Result<Option<WantedFilms>, EnvError> {
    if request.films.is_some() {
        return Ok(None);
    }
    let variants = Variants::parse_all(&request.variants)?;
    let folder = variants.missing_video().filter(|folder| !folder.is_empty());
    Ok(folder.map(|path| WantedFilms { path: path.to_owned(), most: 1 }))
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
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
            "round_actions" => config.round_actions = Some(flag("round_actions", value)?),
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
    if let Some(video) = request.films.as_ref().and_then(|films| films.first()) {
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
