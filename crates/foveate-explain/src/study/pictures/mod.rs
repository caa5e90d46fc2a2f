//! Analyses of an agent that attends to places of a picture, or to nothing.

mod covers;
mod erase;
mod interest;
mod looks;
mod positions;
mod saliency;

use foveate_core::ImageBuf;

use super::phases::Found;
#[cfg(test)]
pub(super) use covers::COVERING;
pub(super) use covers::True;
pub use covers::{Claim, Cost, Covers, Drive, Intervention, Method};
pub(super) use erase::{Erased, Without};
pub use erase::{Erasure, Erasures};
pub use interest::Interest;
pub(super) use interest::What;
pub use looks::Looks;
pub(super) use looks::Where;
pub use positions::{Encoded, Encodings};
pub(super) use positions::{Positions, Situations, encoded};
pub(super) use saliency::OtherMethod;
pub use saliency::{Agreement, Saliency};

pub(super) use erase::{decision, erasures, play_without};

fn mean_picture(found: &Found) -> ImageBuf {
    let bytes = found.mean_picture.iter().map(|&v| v.round() as u8).collect();
    let [width, height] = found.shown.picture;
    ImageBuf::from_rgb(width, height, bytes).unwrap_or_else(|| ImageBuf::black(width, height))
}
