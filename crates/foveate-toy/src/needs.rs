//! The programs and files from outside that some tests need, and the record of tests that lack one.
//!
//! A test that lacks something calls [`skip`] and returns; `cargo test` counts it as passed. `cargo xtask test` reads the record,
//! lists the skipped tests in its last lines, and fails in continuous integration unless the need is one of the few that may be
//! missing there.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// The variable that names the file to which [`skip`] adds a line.
pub const RECORD: &str = "FOVEATE_SKIPPED";

/// The Python with the packages of `python/requirements-oracle.txt`, which `FOVEATE_PYTHON` names.
#[track_caller]
pub fn python() -> Option<PathBuf> {
    named(
        "FOVEATE_PYTHON",
        "a Python with Gymnasium, NumPy and the other packages of python/requirements-oracle.txt",
    )
}

/// The Python with the packages of `python/requirements-worlds.txt`, which `FOVEATE_WORLDS_PYTHON` names.
#[track_caller]
pub fn worlds_python() -> Option<PathBuf> {
    named(
        "FOVEATE_WORLDS_PYTHON",
        "a Python with MuJoCo, dm_control, ViZDoom and the other packages of python/requirements-worlds.txt",
    )
}

/// The Python with `PyTorch` and NumPy, which `FOVEATE_TORCH_PYTHON` names.
#[track_caller]
pub fn torch_python() -> Option<PathBuf> {
    named("FOVEATE_TORCH_PYTHON", "a Python with PyTorch and NumPy")
}

/// The Python with `PyTorch` and the packages of `python/requirements-site.txt`, which `FOVEATE_SITE_PYTHON` names.
#[track_caller]
pub fn site_python() -> Option<PathBuf> {
    named("FOVEATE_SITE_PYTHON", "a Python with PyTorch and the packages of python/requirements-site.txt")
}

/// The folder with MNIST's four files, which `FOVEATE_MNIST` names.
#[track_caller]
pub fn mnist() -> Option<PathBuf> {
    named("FOVEATE_MNIST", "the folder with MNIST's four files")
}

/// The file `name` of the published weights and golden data: in the folder `FOVEATE_DATA`, else in `../shared/data` beside the
/// workspace.
#[track_caller]
pub fn data(name: &str) -> Option<PathBuf> {
    let folder = env::var_os("FOVEATE_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let file = folder.join(name);
    if file.exists() {
        return Some(file);
    }
    skip(&format!("FOVEATE_DATA names no folder with {name}"));
    None
}

/// A path that the variable `name` names.
#[track_caller]
fn named(name: &str, what: &str) -> Option<PathBuf> {
    let value = env::var_os(name).filter(|value| !value.is_empty());
    if value.is_none() {
        skip(&format!("{name} does not name {what}; cargo xtask test sets it"));
    }
    value.map(PathBuf::from)
}

/// Says that the calling test is skipped, and records it in the file that [`RECORD`] names: one line with the file of the test, its
/// name and the need.
#[track_caller]
pub fn skip(need: &str) {
    let place = Location::caller();
    let thread = std::thread::current();
    let line = format!("{} {}: {need}\n", place.file(), thread.name().unwrap_or("?"));
    eprint!("skipped: {line}");
    if let Some(record) = env::var_os(RECORD) {
        let file = OpenOptions::new().append(true).create(true).open(&record);
        // One write of one line: tests of several processes append at once.
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{}: {error}", record.display()));
    }
}
