//! Runs a Python script with the real reference, and reads its output through a pipe.
//!
//! `FOVEATE_PYTHON` names a Python with the pinned packages; without it the tests print that they were
//! skipped.

use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::needs;

/// A running script.
pub struct Oracle {
    child: Child,
    pipe: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts `script`, a path from the package's folder; `None`, recorded, when no Python is configured for it.
    ///
    /// # Panics
    /// When that Python does not start.
    pub fn start(script: &str) -> Option<Oracle> {
        let python = needs::python()?;
        // Cargo sets it to the package whose tests run.
        let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        let path = Path::new(&package).join(script);
        let mut child = Command::new(python)
            .args(["-B".as_ref(), path.as_os_str()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("FOVEATE_PYTHON names a Python that starts");
        let pipe = BufReader::with_capacity(1 << 20, child.stdout.take().expect("its output was asked for"));
        Some(Oracle { child, pipe })
    }

    /// Reads `bytes.len()` bytes.
    pub fn raw(&mut self, bytes: &mut [u8]) {
        if let Err(error) = self.pipe.read_exact(bytes) {
            let status = self.child.wait();
            panic!("the script ended early ({error}, {status:?}); what it printed is above");
        }
    }

    /// The next number.
    pub fn number(&mut self) -> f64 {
        let [number] = self.numbers();
        number
    }

    /// The next number as a count.
    pub fn count(&mut self) -> usize {
        let number = self.number();
        assert!(number.fract() == 0.0 && (0.0..1e9).contains(&number), "{number} is not a count");
        number as usize
    }

    /// The next number as a seed; a negative number means none.
    pub fn seed(&mut self) -> Option<u64> {
        let number = self.number();
        (number >= 0.0).then_some(number as u64)
    }

    /// The next number as a flag: 0 or 1.
    pub fn flag(&mut self) -> bool {
        self.number() != 0.0
    }

    /// The next `N` numbers.
    pub fn numbers<const N: usize>(&mut self) -> [f64; N] {
        [(); N].map(|()| {
            let mut bytes = [0; 8];
            self.raw(&mut bytes);
            f64::from_le_bytes(bytes)
        })
    }

    /// The next text.
    pub fn text(&mut self) -> String {
        (0..self.count()).map(|_| self.number() as u8 as char).collect()
    }

    /// Waits for the script to end; panics when it failed.
    pub fn finish(mut self) {
        let mut rest = Vec::new();
        self.pipe.read_to_end(&mut rest).expect("the pipe can be read");
        let status = self.child.wait().expect("the script was started here");
        assert!(status.success() && rest.is_empty(), "{status}, {} bytes unread", rest.len());
    }
}

impl Drop for Oracle {
    /// Stops the script when a test failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Counts the comparisons and prints the first differences.
///
/// On Linux with glibc, which the reference's wheels are built for, numbers must be bit-identical. Elsewhere
/// `sin`, `cos` and `atan2` may round differently; with another library, runs of 1,000 steps stayed within
/// 0.0008 units of position and 0.004 of speed, so there numbers may differ by a relative `TOLERANCE`.
#[derive(Default)]
pub struct Report {
    /// Numbers compared.
    pub compared: u64,
    /// How many of them differ.
    pub different: u64,
    /// The largest difference.
    pub largest: f64,
}

const TOLERANCE: f64 = if cfg!(all(target_os = "linux", target_env = "gnu")) { 0.0 } else { 0.02 };

impl Report {
    /// Compares one number; `place` describes its position when it differs.
    pub fn compare(&mut self, ours: f64, theirs: f64, place: impl FnOnce() -> String) {
        self.compared += 1;
        if ours.to_bits() == theirs.to_bits() || (ours - theirs).abs() <= TOLERANCE * theirs.abs().max(1.0) {
            return;
        }
        self.different += 1;
        self.largest = self.largest.max((ours - theirs).abs());
        if self.different <= 20 {
            eprintln!("{}: {ours:?} here, {theirs:?} in the reference", place());
        }
    }

    /// Prints the counts; panics when anything differed.
    pub fn finish(self, what: &str) {
        let Report { compared, different, largest } = self;
        eprintln!("{what}: {compared} numbers compared, {different} different, by {largest:e} at most");
        assert!(compared > 0 && different == 0, "{what}: {different} of {compared} differ");
    }
}
