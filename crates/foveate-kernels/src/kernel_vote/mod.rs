//! Attention without row normalisation: `importance_i = Σ_j c_j 𝒦(q_i, k_j)`, for kernels that are not
//! softmax.
//!
//! * [`FeatureMap`]: kernels that are a product of features, 𝒦(q, k) = φ(q)·φ(k). [`KernelVotes`] sums the
//!   features of all keys once and multiplies the features of every query with the sums: time O(L · M),
//!   memory O(M) in addition to queries and keys.
//! * [`PairVotes`]: 𝒦 = exp(q·k) computed pair by pair, in time O(L²), memory O(L): the kernel that random
//!   features estimate.
//!
//! **No row is rescaled individually**, because that would change which patch matters most. Overflow is
//! avoided by constants, powers of two, which are factored out of each feature and multiplied back into the
//! sums over the keys, so that all importances share one factor: [`KernelVotes::exponent`]. It is 0 as long
//! as the numbers allow it. Vectors that are too long for single precision are an error that contains the
//! length; see [`VoteError`].
//!
//! Accuracy: an exponential feature e^t has a relative error of about 3e-7 + |t| · 2e-7, because t itself is
//! rounded; sums over patches add a few 1e-7.
//!
//! Source: Choromanski et al. 2021, "Unlocking Pixels for Reinforcement Learning via Implicit Attention",
//! equations 1 to 9.
//!
//! Results are bit-identical on every instruction set: sums over patches have sixteen parts, one per lane,
//! each in order of the patches, added in a fixed tree.

mod compute;
mod error;
mod features;
mod map;
mod pairs;
mod vectors;

pub use compute::KernelVotes;
pub use error::{Side, VoteError};
pub use map::{Elementwise, FeatureMap, Positive};
pub use pairs::PairVotes;

/// Largest binary exponent of a feature; up to it, a feature has two correct digits.
const LARGEST: f32 = 16_384.0;

/// Largest binary exponent for which no constant is factored out: products of two features and sums over 2^20
/// patches stay well within the range of single precision.
const SAFE: f32 = 40.0;

/// 2^n for a whole number n; 0 where the result is below the normal numbers.
fn power_of_two(n: f32) -> f32 {
    debug_assert!(n.fract() == 0.0 && n <= 127.0, "2^{n}");
    if n < -126.0 { 0.0 } else { f32::from_bits(((n as i32 + 127) as u32) << 23) }
}
