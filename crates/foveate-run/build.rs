//! The id of a build: a hash of everything that the digits of a run depend on.
//!
//! "The same version" of a run must mean the same program. The hash is over the sources and manifests of this crate and
//! of those that it is made of, presets and scripts included, and over the exact versions of the dependencies. Profile
//! and machine are left out, as no digit depends on them, and so are tests and the command line: only what this crate is
//! rebuilt for anyway is read, so that nothing is built more often than without the id.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = here.join("../..");
    let mut parts = vec![root.join("Cargo.lock")];
    if let Ok(crates) = fs::read_dir(root.join("crates")) {
        for entry in crates.flatten().filter(|entry| entry.file_name() != "foveate-cli") {
            parts.extend(["src", "presets", "Cargo.toml", "build.rs"].map(|part| entry.path().join(part)));
        }
    }
    let mut files = Vec::new();
    for part in parts.into_iter().filter(|part| part.exists()) {
        collect(&part, &mut files);
    }
    // Names as the repository has them, so that the id does not depend on where it lies.
    let name = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    let mut files: Vec<_> = files.into_iter().map(|path| (name(&path), path)).collect();
    files.sort();
    let mut hash = Fnv::new();
    for (name, path) in &files {
        // A new file counts once one of these names it.
        println!("cargo::rerun-if-changed={}", path.display());
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        hash.add(name.as_bytes());
        hash.add(&bytes);
    }
    let Fnv(hash) = hash;
    println!("cargo::rustc-env=FOVEATE_BUILD={:08x}", (hash >> 32) ^ (hash & 0xffff_ffff));
}

/// Every file below, but no tests, and none that an editor or Python put there.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == "tests"
        || name == "tests.rs"
        || name.starts_with('.')
        || name.starts_with("__")
        || name.ends_with('~')
    {
        return;
    }
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) => files.push(path.to_path_buf()),
    }
}

/// FNV-1a with 64 bits: builds are told apart, nothing is signed.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// Adds `bytes` and their number, so that no two lists of files run into one.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
