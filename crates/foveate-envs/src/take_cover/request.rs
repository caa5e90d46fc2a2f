//! What a user may ask for.

use std::collections::BTreeMap;

use foveate_core::{Env, EnvError, EnvSpec};

use super::ID;
use super::variants::{self, Variants};
use crate::registry::{Choice, EnvRequest, Published, PublishedScore, WorldDescriptor, WorldError};

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

    /// Name and meaning.
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

/// All of its entry in the registry of worlds but how to make it: its game runs in another process, which nothing here
/// starts.
pub const fn descriptor(make: fn(&EnvRequest) -> Result<Box<dyn Env>, WorldError>) -> WorldDescriptor {
    WorldDescriptor {
        pictures: &PICTURES,
        variants: variants::catalogue(),
        options: &const { Choice::all(OPTIONS) },
        actions: &["move"],
        presets: &[ID],
        solved_at: Some(750.0), // the threshold of the published environment
        published: Some(Published {
            source: "AttentionAgent on DoomTakeCover (here: picture exact), 100 episodes: Tang, Nguyen and Ha, \
                     Neuroevolution of Self-Interpretable Agents, GECCO 2020",
            scores: &[
                PublishedScore { variant: "original", mean: 1125.0, std: 589.0 },
                PublishedScore { variant: "higher-walls", mean: 934.0, std: 560.0 },
                PublishedScore { variant: "floor-texture", mean: 1120.0, std: 613.0 },
                PublishedScore { variant: "hovering-text", mean: 1035.0, std: 627.0 },
            ],
        }),
        // The high ends are measured (docs/take-cover.md), the low ends are those less a tenth.
        speeds: &[("fast", [1900.0, 2068.0]), ("near", [1400.0, 1516.0]), ("exact", [290.0, 302.0])],
        has_expert: true,
        has_process: true,
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

/// Its shape, which needs no game.
fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    config(request)?;
    Ok(super::spec())
}
