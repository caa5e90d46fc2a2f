//! An H.264 encoder for films of drawn worlds: constrained baseline profile, one slice per picture, written for this
//! project after ITU-T Recommendation H.264.
//!
//! What it uses: intra 16x16 prediction (vertical, horizontal, mean), inter 16x16 prediction from the picture before
//! to the quarter pixel, skipped macroblocks, CAVLC. What it leaves out: everything else, the deblocking filter
//! included; at the quality aimed for it has little to do.
//!
//! The encoder keeps the same picture that a decoder will have, bit for bit, and predicts from that: errors do not add
//! up. [`Encoder::shown`] gives it to whoever wants to compare.

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
