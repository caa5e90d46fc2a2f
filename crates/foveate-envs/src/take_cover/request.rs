//! Builds the configuration from a user's request.

use std::collections::BTreeMap;

use foveate_core::{Env, EnvError, EnvSpec};

use super::ID;
use super::variants::{self, Variants};
use crate::registry::{Champion, Choice, EnvRequest, Published, PublishedScore, WorldDescriptor, WorldError};

/// Options by name: default and description; all but the first configure the process that runs the game.
const OPTIONS: [(&str, &str); 4] = [
    (
        ACTIONS,
        "number: from -1 for left to 1 for right, nothing between; choices: left, nothing, right (default: number)",
    ),
    ("timeout", "seconds until a game that does not answer counts as hung (default: 60)"),
    ("start_timeout", "seconds until a game that does not begin counts as hung (default: 180)"),
    ("memory", "megabytes that a game may use before it is replaced (default: 4000)"),
];

const ACTIONS: &str = "actions";

/// The configuration of the world.
#[derive(Debug, Clone, PartialEq)]
pub struct TakeCoverConfig {
    /// The size of the game's screen.
    pub picture: PictureKind,
    /// The variants.
    pub variants: Variants,
    /// True if actions are choices.
    pub choices: bool,
    /// Options of the process that runs the game.
    pub process: BTreeMap<String, String>,
}

/// The size of the game's screen before it is scaled down to 96 × 96. All sizes show the same part of the
/// world. They differ in speed and in similarity to the published picture, mostly in the status bar, which
/// the engine scales by whole numbers on some screens only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureKind {
    /// The published size.
    Exact,
    /// Nearly the same picture from a smaller screen.
    Near,
    /// A less similar picture from the smallest screen.
    Fast,
}

impl PictureKind {
    /// All sizes, the default first.
    pub const ALL: [PictureKind; 3] = [PictureKind::Exact, PictureKind::Near, PictureKind::Fast];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            PictureKind::Exact => "exact",
            PictureKind::Near => "near",
            PictureKind::Fast => "fast",
        }
    }

    /// Its description, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            PictureKind::Exact => "a screen of 640x480, as published, made smaller to 96x96",
            PictureKind::Near => "the same from a screen of 256x192, mean error below 3 of 255",
            PictureKind::Fast => "the same from a screen of 200x150, mean error below 4 of 255, for training",
        }
    }

    /// Its name and description.
    const fn choice(self) -> Choice {
        Choice { name: self.name(), about: self.about() }
    }

    /// Width and height of the screen.
    pub const fn screen(self) -> [usize; 2] {
        match self {
            PictureKind::Exact => [640, 480],
            PictureKind::Near => [256, 192],
            PictureKind::Fast => [200, 150],
        }
    }
}

/// Parses a user's request.
///
/// # Errors
/// When the picture, a variant or an option does not exist.
pub fn config(request: &EnvRequest) -> Result<TakeCoverConfig, EnvError> {
    let unknown = |what, given: &str, known: Vec<&str>| EnvError::UnknownOption {
        env: ID.into(),
        what,
        given: given.into(),
        known: known.join(", "),
    };
    let picture = match &request.picture {
        None => PictureKind::Exact,
        Some(name) => PictureKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| unknown("picture", name, PictureKind::ALL.map(PictureKind::name).to_vec()))?,
    };
    if let Some(name) = request.options.keys().find(|name| OPTIONS.iter().all(|(known, _)| known != name)) {
        return Err(unknown("option", name, OPTIONS.map(|(known, _)| known).to_vec()));
    }
    let variants = Variants::parse_all(&request.variants)?;
    let mut process = request.options.clone();
    let choices = match process.remove(ACTIONS).as_deref() {
        None | Some("number") => false,
        Some("choices") => true,
        Some(other) => return Err(unknown("actions", other, vec!["number", "choices"])),
    };
    Ok(TakeCoverConfig { picture, variants, choices, process })
}

/// Its entry in the registry of worlds, with `make` from the caller: the game runs in another process, and
/// this crate starts none.
pub const fn descriptor(make: fn(&EnvRequest) -> Result<Box<dyn Env>, WorldError>) -> WorldDescriptor {
    WorldDescriptor {
        pictures: &PICTURES,
        variants: variants::catalogue(),
        options: &const { Choice::all(OPTIONS) },
        actions: &["move"],
        choices: &["left", "nothing", "right"],
        solved_at: Some(750.0), // the threshold of the published environment
        published: &[Published {
            release: ["attention-agent", "TakeCover/model"],
            source: "AttentionAgent on DoomTakeCover (here: picture exact), 100 episodes: Tang, Nguyen and Ha, \
                     Neuroevolution of Self-Interpretable Agents, GECCO 2020",
            scores: &[
                PublishedScore { variant: "original", mean: 1125.0, std: 589.0 },
                PublishedScore { variant: "higher-walls", mean: 934.0, std: 560.0 },
                PublishedScore { variant: "floor-texture", mean: 1120.0, std: 613.0 },
                PublishedScore { variant: "hovering-text", mean: 1035.0, std: 627.0 },
            ],
        }],
        // The high ends are measured (docs/take-cover.md); the low ends are about a tenth lower.
        speeds: &[("fast", [1900.0, 2068.0]), ("near", [1400.0, 1516.0]), ("exact", [290.0, 302.0])],
        has_expert: true,
        has_process: true,
        champions: &[Champion {
            name: ID,
            about: "IAP with an LSTM, which sees what is in six patches",
            weights: include_bytes!("../../../../champions/take-cover.safetensors"),
            as_trained: true,
        }],
        spec: Some(spec),
        ..WorldDescriptor::new(
            ID,
            "dodge fireballs in a corridor of Doom; the game is ViZDoom, a Python package: docs/take-cover.md",
            make,
        )
    }
}

const PICTURES: [Choice; 3] =
    [PictureKind::Exact.choice(), PictureKind::Near.choice(), PictureKind::Fast.choice()];

/// Its spec, without starting the game.
fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    Ok(super::spec(config(request)?.choices))
}
