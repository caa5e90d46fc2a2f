//! An H.264 encoder for films of rendered worlds: constrained baseline profile, one slice per picture,
//! written for this project from ITU-T Recommendation H.264.
//!
//! Supported: intra 16x16 prediction (vertical, horizontal, mean), inter 16x16 prediction from the previous
//! picture with quarter-pixel precision, skipped macroblocks, CAVLC. Everything else is omitted, including
//! the deblocking filter, which has little effect at the chosen quality.
//!
//! The encoder keeps the decoded picture, bit for bit, and predicts from it, so errors do not accumulate.
//! [`Encoder::shown`] returns it for comparison.

mod bits;
mod cavlc;
mod encoder;
mod intra;
mod motion;
mod params;
mod picture;
mod residue;
mod tables;
mod transform;

pub(crate) use encoder::{Encoder, QP};
pub(crate) use params::{Format, PROFILE, PROFILE_FLAGS};
