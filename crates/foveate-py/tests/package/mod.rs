//! The Python package with the module that was built beside the test.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Copies Python's sources, also those in folders.
fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a temporary folder");
    for file in fs::read_dir(from).expect("the sources").flatten() {
        let name = file.file_name();
        if file.path().is_dir() {
            copy_sources(&file.path(), &to.join(name));
        } else if [".py", ".pyi", "py.typed"].iter().any(|end| name.to_string_lossy().ends_with(end)) {
            fs::copy(file.path(), to.join(name)).expect("writable");
        }
    }
}

/// A folder to import `foveate` from, `name` below the build's temporary files.
pub(crate) fn folder(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let package = root.join("foveate");
    copy_sources(&here.join("python/foveate"), &package);
    let (built, module) = if cfg!(windows) {
        ("foveate_native.dll", "_native.pyd")
    } else if cfg!(target_os = "macos") {
        ("libfoveate_native.dylib", "_native.abi3.so")
    } else {
        ("libfoveate_native.so", "_native.abi3.so")
    };
    // It lies beside this program.
    let beside = env::current_exe().expect("a program");
    let built = beside.parent().expect("a folder").join(built);
    fs::copy(&built, package.join(module)).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    root
}
