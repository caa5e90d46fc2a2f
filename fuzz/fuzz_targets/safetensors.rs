//! Any bytes as a weight file: read or refused, never a panic; what is read can be written and read again.
#![no_main]

use foveate_run::tensors::TensorFile;
use foveate_run::weights::AgentFile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = TensorFile::from_bytes(bytes) else { return };
    // Bytes, not values: NaN is not equal to itself.
    let written = file.to_bytes();
    let again = TensorFile::from_bytes(&written).expect("our own file").to_bytes();
    assert!(again == written);
    let _ = AgentFile::from_tensors(file);
});
