//! S3TA on NVIDIA GPUs: the same network and parameters as `foveate_agents::s3ta`, acting in many worlds at once and learning by
//! V-trace.
//!
//! * [`device`]: what the network needs of an accelerator; [`cuda`] is the one that there is.
//! * [`ops`]: the kernels, with the lengths of arrays checked.
//! * [`network`]: forward and backward passes.
//! * [`training`]: worlds that are stepped while the GPU computes, and the learner.

pub mod cuda;
pub mod device;
pub mod network;
pub mod ops;
pub mod training;
