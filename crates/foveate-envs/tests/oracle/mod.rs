//! A Python script that runs the real reference, and the pipe it talks through.
//!
//! `FOVEATE_PYTHON` names a Python with the pinned packages; without it the tests say that they were skipped.
#![allow(dead_code, unreachable_pub)] // every test file uses its part of this

use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running script.
pub struct Oracle {
    child: Child,
    pipe: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts `oracle/<script>`; `None`, with a line that says so, when there is no Python for it.
    pub fn start(script: &str) -> Option<Oracle> {
        let Some(python) = std::env::var_os("FOVEATE_PYTHON") else {
            eprintln!(
                "skipped: FOVEATE_PYTHON is not set, so {script} has nothing to run in; run cargo xtask test"
            );
            return None;
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle").join(script);
        let mut child = Command::new(python)
            .args(["-B".as_ref(), path.as_os_str()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("FOVEATE_PYTHON names a Python that starts");
        let pipe = BufReader::with_capacity(1 << 20, child.stdout.take().expect("its output was asked for"));
        Some(Oracle { child, pipe })
    }

    /// Fills `bytes`.
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

    /// The next number, which is a count.
    pub fn count(&mut self) -> usize {
        let number = self.number();
        assert!(number.fract() == 0.0 && (0.0..1e9).contains(&number), "{number} is not a count");
        number as usize
    }

    /// The next number, which is a seed or less than zero for none.
    pub fn seed(&mut self) -> Option<u64> {
        let number = self.number();
        (number >= 0.0).then_some(number as u64)
    }

    /// The next number, which is 0 or 1.
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

    /// Waits for the end, which must be a good one.
    pub fn finish(mut self) {
        let mut rest = Vec::new();
        self.pipe.read_to_end(&mut rest).expect("the pipe can be read");
        let status = self.child.wait().expect("the script was started here");
        assert!(status.success() && rest.is_empty(), "{status}, {} bytes unread", rest.len());
    }
}

impl Drop for Oracle {
    /// A test that failed leaves no script behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Counts what was compared and prints the first differences.
///
/// On Linux with glibc, where the reference's wheels are built, numbers must be equal to the bit. Elsewhere `sin`,
/// `cos` and `atan2` may round otherwise; with another library's, runs of 1,000 steps stayed within 0.0008 units of
/// place and 0.004 of speed, so numbers may then differ by `TOLERANCE` of their size.
#[derive(Default)]
pub struct Report {
    pub compared: u64,
    pub different: u64,
    pub largest: f64,
}

const TOLERANCE: f64 = if cfg!(all(target_os = "linux", target_env = "gnu")) { 0.0 } else { 0.02 };

impl Report {
    /// Compares one number; `place` says where it is when it differs.
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

    /// Prints the tally; fails when anything differed.
    pub fn finish(self, what: &str) {
        let Report { compared, different, largest } = self;
        eprintln!("{what}: {compared} numbers compared, {different} different, by {largest:e} at most");
        assert!(compared > 0 && different == 0, "{what}: {different} of {compared} differ");
    }
}
