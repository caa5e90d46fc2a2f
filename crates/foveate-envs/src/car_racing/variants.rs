//! Visual variants of the world as data: they change what is drawn, never the physics.
//!
//! A [`Variants`] value is a list of [`Variant`]s that a user names, configures and combines in one line of
//! text: `bar`, `bar:width=50`, `color+blob:side=4:x=10`. [`VariantState`] is the run-time part in a world:
//! it draws the random numbers and sets the fields of a [`Scene`](super::scene::Scene), so that every picture
//! shows the variants without knowing their names.
//!
//! Sources: Tang, Nguyen and Ha, "Neuroevolution of Self-Interpretable Agents" (2020), its published
//! environments `CarRacingColor-v0`, `CarRacingBar-v0`, `CarRacingBlob-v0`, and its later extension package
//! (color3, noise, video).

mod catalogue;
mod parse;
mod state;

use std::fmt;
use std::sync::Arc;

use foveate_core::{EnvError, ImageBuf};

pub use catalogue::{Parameter, VariantInfo, catalogue};
pub use state::VariantState;

use super::scene::Blob;

/// The name of this world in errors.
const ENV: &str = "car-racing";

/// One visual change of the world, with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Variant {
    /// Road and dark grass each brightened or darkened by one random number per episode.
    Color {
        /// Largest change, as a share of full brightness.
        amplitude: f64,
    },
    /// Road and dark grass each tinted by three random numbers per episode.
    Color3 {
        /// Largest change of a channel, as a share of full brightness.
        amplitude: f64,
    },
    /// Black bars at the left and right edge of the picture, above the indicators.
    Bar {
        /// Width of each in thousandths of the picture's width.
        width: f64,
    },
    /// A square that moves with the car.
    Blob(Blob),
    /// Random texels in place of the ground, redrawn every frame.
    Noise {
        /// Texels along each side, one per world unit.
        size: usize,
    },
    /// A sequence of images in place of the ground, one per frame, in a loop.
    Video {
        /// The folder of the images; crates that may read files fill `frames` from it.
        folder: String,
        /// The images.
        frames: Arc<Vec<ImageBuf>>,
    },
    /// A second lane beside the road that has no physical effect.
    FakeLane(FakeLane),
}

/// Position and colour of a fake lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FakeLane {
    /// On which side of the road, in driving direction.
    pub side: Side,
    /// Distance between the edge of the road and the near edge of the lane, in world units.
    pub gap: f64,
    /// Width in world units; the road is 13.3 wide.
    pub width: f64,
    /// Colour.
    pub rgb: [u8; 3],
}

/// A side of the road, in driving direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// To the left.
    Left,
    /// To the right.
    Right,
}

impl Variant {
    /// The name that users type.
    pub const fn name(&self) -> &'static str {
        match self {
            Variant::Color { .. } => "color",
            Variant::Color3 { .. } => "color3",
            Variant::Bar { .. } => "bar",
            Variant::Blob(_) => "blob",
            Variant::Noise { .. } => "noise",
            Variant::Video { .. } => "video",
            Variant::FakeLane(_) => "fake-lane",
        }
    }
}

/// A combination of variants; an empty one is the published world.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Variants(Vec<Variant>);

impl Variants {
    /// No variants: the published world.
    pub const fn none() -> Self {
        Variants(Vec::new())
    }

    /// Combines variants.
    ///
    /// # Errors
    /// When two of them change the same property: the same variant twice, `color` with `color3`, `noise` with
    /// `video`.
    pub fn new(list: Vec<Variant>) -> Result<Self, EnvError> {
        for (i, a) in list.iter().enumerate() {
            for b in &list[..i] {
                if let Some(what) = clash(a, b) {
                    let (a, b) = (a.name(), b.name());
                    return Err(bad(format!("variants {b} and {a} both change {what}; keep one of them")));
                }
            }
        }
        Ok(Variants(list))
    }

    /// Parses `bar`, `color+bar:width=50`, `blob,noise`; `original` and the empty text mean no variant.
    ///
    /// Variants are separated by `+` or `,`, their parameters by `:`. The parameter `folder` of `video` takes
    /// the rest of the text with any characters, so it must come last.
    ///
    /// # Errors
    /// [`EnvError::UnknownOption`], which lists the known names, for a variant or parameter that does not
    /// exist; [`EnvError::BadOption`] for a value out of range or for incompatible variants.
    pub fn parse(text: &str) -> Result<Self, EnvError> {
        Self::parse_all(&[text])
    }

    /// Parses several texts, each in the syntax of [`Variants::parse`], into one combination.
    ///
    /// # Errors
    /// Those of [`Variants::parse`].
    pub fn parse_all<S: AsRef<str>>(texts: &[S]) -> Result<Self, EnvError> {
        let mut list = Vec::new();
        for text in texts {
            parse::parse(text.as_ref(), &mut list)?;
        }
        Self::new(list)
    }

    /// The variants, in the order given.
    pub fn list(&self) -> &[Variant] {
        &self.0
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that `picture` shows all of them.
    ///
    /// # Errors
    /// [`EnvError::BadOption`], which names the variant and the pictures that show it.
    pub fn check_picture(&self, picture: &str) -> Result<(), EnvError> {
        for variant in &self.0 {
            let info = catalogue::info(variant);
            if !info.pictures.contains(&picture) {
                return Err(bad(format!(
                    "picture {picture} does not show the variant {}; these do: {}",
                    info.name,
                    info.pictures.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// The folder of `video` when its images are not loaded yet.
    pub fn missing_video(&self) -> Option<&str> {
        self.0.iter().find_map(|variant| match variant {
            Variant::Video { folder, frames } if frames.is_empty() => Some(folder.as_str()),
            _ => None,
        })
    }

    /// Sets the images of `video`; without a `video` it does nothing.
    pub fn set_video(&mut self, images: &Arc<Vec<ImageBuf>>) {
        for variant in &mut self.0 {
            if let Variant::Video { frames, .. } = variant {
                *frames = Arc::clone(images);
            }
        }
    }
}

/// The property that both variants change, if any.
fn clash(a: &Variant, b: &Variant) -> Option<&'static str> {
    let what = |v: &Variant| match v {
        Variant::Color { .. } | Variant::Color3 { .. } => "the colours of road and grass",
        Variant::Bar { .. } => "the bars at the edges",
        Variant::Blob(_) => "the square beside the car",
        Variant::Noise { .. } | Variant::Video { .. } => "the ground",
        Variant::FakeLane(_) => "the lane beside the road",
    };
    (what(a) == what(b)).then(|| what(a))
}

/// The error for options that exist but are invalid.
fn bad(why: String) -> EnvError {
    EnvError::BadOption { env: ENV.into(), why }
}

/// Writes the syntax of [`Variants::parse`]: names in order, with every parameter that differs from its
/// default.
impl fmt::Display for Variants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("original");
        }
        // The folder of a video extends to the end of the text when it is parsed, so the video comes last.
        let is_video = |v: &&Variant| matches!(v, Variant::Video { .. });
        let rest = self.0.iter().filter(|v| !is_video(v)).chain(self.0.iter().filter(is_video));
        for (i, variant) in rest.enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            parse::write(variant, f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
