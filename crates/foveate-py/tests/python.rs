//! The tests of the Python package, on the module that was built beside this test.
//!
//! `FOVEATE_PYTHON` names a Python with the pinned packages; without it the tests are skipped with a message. The package is a
//! folder of its own under the build's temporary files, so that nothing in the sources changes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A folder to import `foveate` from.
fn package() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
    let package = root.join("foveate");
    fs::create_dir_all(&package).expect("a temporary folder");
    for file in fs::read_dir(here.join("python/foveate")).expect("the sources").flatten() {
        let name = file.file_name();
        if [".py", ".pyi", "py.typed"].iter().any(|end| name.to_string_lossy().ends_with(end)) {
            fs::copy(file.path(), package.join(name)).expect("writable");
        }
    }
    let (built, name) = if cfg!(windows) {
        ("foveate_native.dll", "_native.pyd")
    } else if cfg!(target_os = "macos") {
        ("libfoveate_native.dylib", "_native.abi3.so")
    } else {
        ("libfoveate_native.so", "_native.abi3.so")
    };
    // It lies beside this program.
    let beside = env::current_exe().expect("a program");
    let built = beside.parent().expect("a folder").join(built);
    fs::copy(&built, package.join(name)).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    root
}

#[test]
fn the_package_for_python() {
    let Some(python) = foveate_toy::needs::python() else { return };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let done = Command::new(python)
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"])
        .arg(tests)
        .env("PYTHONPATH", package())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .expect("FOVEATE_PYTHON names a Python that starts");
    assert!(done.success(), "pytest: {done}");
}
