//! What a user may ask for.

use std::collections::BTreeMap;

use foveate_core::{Env, EnvError};

use super::ID;
use super::variants::{self, Variants};
use crate::registry::{EnvInfo, EnvRequest, Line};

/// Options by name: default and meaning; they are for the process that the game runs in.
const OPTIONS: [(&str, &str); 3] = [
    ("timeout", "seconds until a game that does not answer counts as hung (default: 60)"),
    ("start_timeout", "seconds until a game that does not begin counts as hung (default: 180)"),
    ("memory", "megabytes that a game may use before it is replaced (default: 4000)"),
];

/// How to make the world.
#[derive(Debug, Clone, PartialEq)]
pub struct TakeCoverConfig {
    /// How large the game draws its screen.
    pub picture: PictureKind,
    /// What is changed.
    pub variants: Variants,
    /// Options of the process that the game runs in.
    pub process: BTreeMap<String, String>,
}

/// How large the game draws its screen before it is made smaller to 96 × 96. All of them show the same part of the world;
/// sizes are chosen by what they cost and how near they come to the published picture, mostly in the status bar, whose
/// parts the engine scales by whole numbers on some screens only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureKind {
    /// As published.
    Exact,
    /// Nearly the same picture from a small screen.
    Near,
    /// A little less like it, from a smaller one.
    Fast,
}

impl PictureKind {
    /// All of them, the default first.
    pub const ALL: [PictureKind; 3] = [PictureKind::Exact, PictureKind::Near, PictureKind::Fast];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            PictureKind::Exact => "exact",
            PictureKind::Near => "near",
            PictureKind::Fast => "fast",
        }
    }

    /// What it is, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            PictureKind::Exact => "a screen of 640x480, as published, made smaller to 96x96",
            PictureKind::Near => "the same from a screen of 256x192, mean error below 3 of 255",
            PictureKind::Fast => "the same from a screen of 200x150, mean error below 4 of 255, for training",
        }
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

/// Reads what a user asks for.
///
/// # Errors
/// When there is no such picture, variant or option.
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
    Ok(TakeCoverConfig { picture, variants, process: request.options.clone() })
}

pub(crate) fn info() -> EnvInfo {
    EnvInfo {
        id: ID,
        about: "dodge fireballs in a corridor of Doom; the game is ViZDoom, a Python package: docs/take-cover.md",
        pictures: PictureKind::ALL.map(|kind| Line::new(kind.name(), kind.about())).to_vec(),
        variants: variants::catalogue(),
        options: OPTIONS.map(|(name, about)| Line::new(name, about)).to_vec(),
        solved_at: Some(750.0), // the threshold of the published environment
        instance: "episode",
    }
}

/// Its game is not in this crate.
pub(crate) fn make(_: &EnvRequest) -> Result<Box<dyn Env>, EnvError> {
    Err(EnvError::Outside {
        env: ID.into(),
        why: "its game runs in another process, which native worlds do not start; make it with foveate_run::worlds::make, \
              as the command does"
            .into(),
    })
}
