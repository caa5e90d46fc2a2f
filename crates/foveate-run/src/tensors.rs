//! SafeTensors files on disk: [`TensorFile`], and how one is read.

use std::path::Path;

pub use foveate_core::tensor_file::{MAX_FILE, MAX_HEADER, MAX_TENSORS, TensorFile, TensorsError};

use crate::error::RunError;
use crate::input;

/// Reads the file at `path`.
///
/// # Errors
/// When the file cannot be read, or for any [`TensorsError`].
pub fn read(path: &Path) -> Result<TensorFile, RunError> {
    let bytes = input::read(path, MAX_FILE)?.map_err(|bytes| TensorsError::TooLarge { bytes });
    bytes
        .and_then(|bytes| TensorFile::from_bytes(&bytes))
        .map_err(|source| RunError::Tensors { path: path.to_path_buf(), source })
}
