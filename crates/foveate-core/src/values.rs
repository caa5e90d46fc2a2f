//! The values of actions, with gradients, for learners that learn from transitions.

use crate::{Observation, PolicyError};

/// The network of a policy without memory that gives every choice of a discrete action a value.
///
/// Observations are encoded as bytes, so that a replay buffer stores many of them.
pub trait ValueNetwork {
    /// Bytes of an encoded observation.
    fn encoded_len(&self) -> usize;

    /// Appends the encoding of `observation` to `codes`.
    ///
    /// # Errors
    /// [`PolicyError::ObservationShape`] when the network was built for another observation space.
    fn encode(&self, observation: Observation<'_>, codes: &mut Vec<u8>) -> Result<(), PolicyError>;

    /// Number of choices.
    fn choices(&self) -> usize;

    /// The values of all choices for a batch of encoded observations, `[batch, encoded_len]` → `[batch, choices]`.
    /// Allocates only for a batch that is larger than all before it.
    ///
    /// # Panics
    /// When the length of `codes` is no multiple of [`ValueNetwork::encoded_len`].
    fn values(&mut self, codes: &[u8]) -> &[f32];

    /// The same values, bit for bit, without what [`ValueNetwork::backward`] needs, which is cheaper for some networks.
    ///
    /// # Panics
    /// As [`ValueNetwork::values`].
    fn values_alone(&mut self, codes: &[u8]) -> &[f32] {
        self.values(codes)
    }

    /// Adds to `gradient` (`[n_params]`) that of a loss whose derivatives with respect to the last
    /// [`ValueNetwork::values`] are `d_values`, `[batch, choices]`.
    ///
    /// # Panics
    /// When a length differs from that of the last batch, or the last call was [`ValueNetwork::values_alone`].
    fn backward(&mut self, d_values: &[f32], gradient: &mut [f32]);
}
