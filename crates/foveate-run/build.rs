//! The build id: a hash of everything that affects the results of a run.
//!
//! "The same version" of a run must mean the same program. The hash covers the sources and manifests of this
//! crate and of its workspace dependencies, including presets and scripts, and the exact versions of the
//! other dependencies. Profile and machine are excluded, since no result depends on them, and so are tests
//! and the command line: only files that trigger a rebuild of this crate anyway are read, so the id causes no
//! additional builds.

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
    // Paths relative to the repository, so that the id does not depend on its location.
    let name = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    let mut files: Vec<_> = files.into_iter().map(|path| (name(&path), path)).collect();
    files.sort();
    let mut hash = Fnv::new();
    for (name, path) in &files {
        // A new file takes effect when one of these files refers to it.
        println!("cargo::rerun-if-changed={}", path.display());
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        hash.add(name.as_bytes());
        hash.add(&bytes);
    }
    let Fnv(hash) = hash;
    println!("cargo::rustc-env=FOVEATE_BUILD={:08x}", (hash >> 32) ^ (hash & 0xffff_ffff));
}

/// Collects all files below `path`, except tests and files of editors and Python.
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

/// FNV-1a with 64 bits: it distinguishes builds; it is not a signature.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// Adds `bytes` and their number, so that different lists of files do not give the same input.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
