//! Networks with gradients: layers with an explicit forward and backward pass over one flat vector of parameters.
//!
//! * [`Builder`] puts layers together in the order in which they compute; [`Network`] computes outputs and gradients for
//!   a batch.
//! * [`Layer`] is the contract of a layer; each file of [`layers`] holds some.
//! * [`Unrolled`] repeats a network over time; [`loss`] and [`optimizer`] hold what training needs besides.
//! * [`check`] compares gradients with finite differences in double precision.
//!
//! All results are bit-identical on every instruction set, and depend neither on threads nor on sizes of caches.
//!
//! **Invariant:** a network knows tensors, not worlds, agents or files; it starts no thread.

pub mod check;
mod layer;
pub mod layers;
pub mod loss;
mod network;
pub mod optimizer;
mod unroll;

pub use foveate_kernels::Level;
pub use foveate_kernels::elementwise::Function;
pub use layer::{Backward, Forward, Layer, MAX_INPUTS, Work};
pub use layers::*;
pub use network::{Activations, Builder, Network, NetworkError, NetworkWeights, Node, Prepared};
pub use optimizer::{Clip, Optimizer, OptimizerConfig};
pub use unroll::{StateNodes, Unrolled};
