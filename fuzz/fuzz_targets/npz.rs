//! Any bytes as an npz file: read or refused, never a panic.
#![no_main]

use foveate_run::npz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = npz::parse(bytes);
});
