//! Errors of votes with kernels.

use std::fmt;

/// The query or the key of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What the patch attends to.
    Query,
    /// What the patch offers to others.
    Key,
}

/// The error that prevents the votes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum VoteError {
    /// The longest query or key is so long that e to such a power has no correct digit in single precision.
    TooLong {
        /// Whether it is the longest query or the longest key.
        side: Side,
        /// Index of its patch.
        patch: usize,
        /// Its length, after scaling.
        norm: f32,
        /// The largest length that this kernel supports.
        limit: f32,
    },
    /// A weight of the votes is infinite or NaN.
    Weight {
        /// Index of the weighted patch.
        patch: usize,
        /// The weight.
        value: f32,
    },
    /// An importance exceeds the range of single precision.
    Overflow {
        /// The first patch concerned.
        patch: usize,
        /// Length of the longest query, after scaling.
        query_norm: f32,
        /// Length of the longest key, after scaling.
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
