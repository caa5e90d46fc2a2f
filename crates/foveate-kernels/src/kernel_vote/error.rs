//! What can go wrong when kernels vote.

use std::fmt;

/// Which of its two vectors a patch is looked at with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What it seeks.
    Query,
    /// What it offers.
    Key,
}

/// Why there are no votes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum VoteError {
    /// The longest query or key is so long that e to such a power has no correct digit in single precision.
    TooLong {
        /// The longest query, or the longest key.
        side: Side,
        /// Its patch.
        patch: usize,
        /// Its length, after scaling.
        norm: f32,
        /// The longest that this kernel takes.
        limit: f32,
    },
    /// A number that votes are weighted with is infinite or NaN.
    Weight {
        /// The patch that it weights.
        patch: usize,
        /// The number.
        value: f32,
    },
    /// An importance left the range of single precision.
    Overflow {
        /// The first patch without one.
        patch: usize,
        /// The longest query, after scaling.
        query_norm: f32,
        /// The longest key, after scaling.
        key_norm: f32,
    },
}

impl fmt::Display for VoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            VoteError::TooLong { side, patch, norm, limit } => {
                let side = match side {
                    Side::Query => "query",
                    Side::Key => "key",
                };
                write!(
                    f,
                    "the {side} of patch {patch} has length {norm:.4e}, up to {limit:.4e} this kernel can tell apart; \
                     lower the weights or the scale, or bring all to the same length"
                )
            }
            VoteError::Weight { patch, value } => {
                write!(f, "the vote of patch {patch} is weighted with {value}; weights must be finite")
            }
            VoteError::Overflow { patch, query_norm, key_norm } => write!(
                f,
                "the importance of patch {patch} overflows, with queries up to length {query_norm:.4e} and keys up to \
                 {key_norm:.4e}; lower the weights or the scale"
            ),
        }
    }
}

impl std::error::Error for VoteError {}
