//! Errors of weight files.

use foveate_core::PolicyError;
use foveate_core::hint::Task;

/// The errors of a broken or unsupported weight file, beyond those of its [container](foveate_core::tensor_file).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// A SafeTensors file of another program, or another kind of file of this program.
    #[error(
        "this safetensors file holds no agent of ours ({found}); give one that {} or {} wrote",
        Task::Train,
        Task::Import
    )]
    Foreign {
        /// The declared format.
        found: String,
    },
    /// A metadata key is missing.
    #[error("its metadata lacks {key:?}; the file is broken, fetch it again")]
    MissingKey {
        /// The missing key.
        key: &'static str,
    },
    /// The configuration is not valid JSON.
    #[error("its configuration cannot be read ({why}); the file is broken, fetch it again")]
    Config {
        /// The reason.
        why: String,
    },
    /// A tensor of the agent is missing in the file.
    #[error("tensor {name:?} is missing; the file is broken, fetch it again")]
    MissingTensor {
        /// The tensor.
        name: String,
    },
    /// A tensor in the file does not belong to the agent.
    #[error("tensor {name:?} does not belong to this agent; the file is broken, fetch it again")]
    ForeignTensor {
        /// The tensor.
        name: String,
    },
    /// A tensor whose shape or type differs from the configuration.
    #[error(
        "tensor {name:?} is {given}, its configuration says {wanted}; the file is broken, fetch it again"
    )]
    Shape {
        /// The tensor.
        name: String,
        /// Expected type and shape.
        wanted: String,
        /// Actual type and shape.
        given: String,
    },
    /// The checksum of the weights is wrong.
    #[error("its weights are not those that were written (checksum); fetch it again")]
    Checksum,
    /// The agent cannot be built.
    #[error("{0}")]
    Agent(PolicyError),
}
