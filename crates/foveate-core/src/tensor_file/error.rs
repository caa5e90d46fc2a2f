//! Errors of SafeTensors files.

use crate::hint::Task;

/// Larger files are rejected.
pub const MAX_FILE: u64 = 1 << 30;
/// Longer headers are rejected.
pub const MAX_HEADER: usize = 4 << 20;
/// More tensors are rejected.
pub const MAX_TENSORS: usize = 4096;

/// The errors of a broken or unsupported SafeTensors file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorsError {
    /// The file is too large.
    #[error("the file has {bytes} bytes, read are at most {MAX_FILE}; is it the right file?")]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// It does not start as a SafeTensors file does.
    #[error("this is not a safetensors file; give one that {} or {} wrote", Task::Train, Task::Import)]
    NotTensors,
    /// The declared length of the header exceeds the file, or any real header.
    #[error(
        "the header claims {claimed} bytes where {available} are left (at most {MAX_HEADER}); the file is truncated or foreign, fetch it again"
    )]
    HeaderLength {
        /// Bytes claimed.
        claimed: u64,
        /// Bytes present.
        available: usize,
    },
    /// The header does not follow the format.
    #[error("the header cannot be read: {why}; the file is broken, fetch it again")]
    Header {
        /// The reason.
        why: String,
    },
    /// A name occurs twice.
    #[error("the header holds {name:?} twice; the file is broken, fetch it again")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// More tensors than in any real file.
    #[error("the header claims {count} tensors, read are at most {MAX_TENSORS}; is it the right file?")]
    TooMany {
        /// The count.
        count: usize,
    },
    /// An unsupported type.
    #[error(
        "tensor {name:?} is of type {dtype:?}, read are F32, F64, U64 and U8; is it a file of this program?"
    )]
    Dtype {
        /// The tensor.
        name: String,
        /// Its type.
        dtype: String,
    },
    /// Too many dimensions, or more values than any memory holds.
    #[error("tensor {name:?} has the impossible shape {shape:?}; the file is broken, fetch it again")]
    Shape {
        /// The tensor.
        name: String,
        /// Its dimensions.
        shape: Vec<u64>,
    },
    /// The byte count of a tensor does not match its shape.
    #[error(
        "tensor {name:?} has {given} bytes, its shape takes {wanted}; the file is broken, fetch it again"
    )]
    Size {
        /// The tensor.
        name: String,
        /// Bytes that the shape requires.
        wanted: u64,
        /// Bytes of its data.
        given: u64,
    },
    /// A tensor does not start at the end of the previous one.
    #[error(
        "tensor {name:?} starts at byte {start}, the one before it ends at {free}; the file is broken, fetch it again"
    )]
    Layout {
        /// The tensor.
        name: String,
        /// Its start offset.
        start: u64,
        /// The expected offset.
        free: u64,
    },
    /// The file ends before the end of its tensors.
    #[error("the file is truncated: its tensors take {wanted} bytes, {given} are there; fetch it again")]
    Truncated {
        /// Bytes that the tensors require.
        wanted: u64,
        /// Bytes present.
        given: usize,
    },
    /// Bytes after the last tensor.
    #[error("the file is over-long: its tensors take {wanted} bytes, {given} are there; fetch it again")]
    OverLong {
        /// Bytes that the tensors require.
        wanted: u64,
        /// Bytes present.
        given: usize,
    },
}
