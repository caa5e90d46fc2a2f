//! The configuration of a CarRacing world.

use foveate_core::EnvError;

use super::ID;
use super::variants::Variants;
use crate::registry::Choice;

/// How to build a [`CarRacing`](super::CarRacing).
///
/// ```
/// use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind};
/// let config = CarRacingConfig { picture: PictureKind::None, ..CarRacingConfig::default() };
/// let env = CarRacing::new(config)?;
/// # Ok::<(), foveate_core::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CarRacingConfig {
    /// Which reference's tracks and rules to use.
    pub seeding: Seeding,
    /// The picture of the observation.
    pub picture: PictureKind,
    /// Continuous actions (steering, gas and brake) if true; else five choices: nothing, right, left, gas,
    /// brake.
    pub continuous: bool,
    /// Random colours of road and ground at every reset.
    pub domain_randomize: bool,
    /// Share of tiles after which tile 0 ends the lap. As in the reference, this rule never applies at its
    /// default of 0.95: it checks only the first visit of tile 0, which happens in the reset itself. Old Gym
    /// does not have this rule.
    pub lap_complete_percent: f64,
    /// Steps after which an episode is truncated.
    pub max_steps: Option<usize>,
    /// True if the `classic` picture shows the score, which only approximates the original text; the other
    /// pictures always show it.
    pub label: bool,
    /// Whether actions are first rounded to f32, the type of Gymnasium's action space; `None` as the [seeding](Seeding) says.
    /// Gymnasium itself does not round an action of doubles that a caller passes to it.
    pub round_actions: Option<bool>,
    /// Visual variants.
    pub variants: Variants,
}

impl Default for CarRacingConfig {
    /// Gymnasium's `CarRacing-v3`, byte for byte.
    fn default() -> Self {
        CarRacingConfig {
            seeding: Seeding::Gymnasium,
            picture: PictureKind::Exact,
            continuous: true,
            domain_randomize: false,
            lap_complete_percent: 0.95,
            max_steps: Some(1000),
            label: false,
            round_actions: None,
            variants: Variants::none(),
        }
    }
}

impl CarRacingConfig {
    /// Gym 0.15.3's `CarRacing-v0`, in which AttentionAgent was trained: its seeding, its rules, its picture.
    pub fn classic() -> Self {
        CarRacingConfig {
            seeding: Seeding::Gym0153,
            picture: PictureKind::Classic,
            ..CarRacingConfig::default()
        }
    }

    pub(super) fn check(&self) -> Result<(), EnvError> {
        let bad = |why: &str| Err(EnvError::BadOption { env: ID.into(), why: why.into() });
        if self.domain_randomize && self.seeding == Seeding::Gym0153 {
            return bad("domain_randomize needs seeding=gymnasium; old Gym had no random colours");
        }
        if self.max_steps == Some(0) {
            return bad("max_steps must be at least 1, or none");
        }
        if !self.lap_complete_percent.is_finite() {
            return bad("lap_complete_percent must be a finite number");
        }
        if self.label && self.picture != PictureKind::Classic {
            return bad("label is for picture classic; exact and fast write the score in any case");
        }
        self.variants.check_picture(self.picture.name())
    }
}

/// The reference for the random stream of the tracks and for the rules that end the episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seeding {
    /// Gymnasium's `CarRacing-v3`. Actions are first rounded to f32, because its action space is f32.
    Gymnasium,
    /// Gym 0.15.3's `CarRacing-v0`: the same seed gives another track, and only visiting every tile ends a
    /// lap. Actions are not rounded.
    Gym0153,
}

/// The picture of the observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureKind {
    /// Gymnasium's frames, byte for byte.
    Exact,
    /// Approximately Gymnasium's frames, drawn directly at 96 × 96, for training.
    Fast,
    /// Gym 0.15.3's frames: point-sampled, with the camera along the velocity.
    Classic,
    /// A black frame, for uses that need only the physics.
    None,
}

impl PictureKind {
    /// All pictures, in the order of `foveate list`.
    pub const ALL: [PictureKind; 4] =
        [PictureKind::Exact, PictureKind::Fast, PictureKind::Classic, PictureKind::None];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            PictureKind::Exact => "exact",
            PictureKind::Fast => "fast",
            PictureKind::Classic => "classic",
            PictureKind::None => "none",
        }
    }

    /// Its description, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            PictureKind::Exact => "Gymnasium's CarRacing-v3 frames, byte for byte",
            PictureKind::Fast => "nearly the same frames, several times faster, for training",
            PictureKind::Classic => "gym 0.15.3's CarRacing-v0: its frames, its tracks per seed, its rules",
            PictureKind::None => "a black frame: physics alone",
        }
    }

    /// Its name and description.
    pub(crate) const fn choice(self) -> Choice {
        Choice { name: self.name(), about: self.about() }
    }
}
