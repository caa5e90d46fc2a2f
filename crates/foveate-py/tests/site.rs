//! The tests of the site, its notebooks and the callbacks for other tools, in a Python that has these.
//!
//! `FOVEATE_SITE_PYTHON` names it; without it the tests are skipped with a message.

mod package;

use std::path::Path;
use std::process::Command;

#[test]
fn the_site_and_the_callbacks() {
    let Some(python) = foveate_toy::needs::site_python() else { return };
    let done = Command::new(&python)
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--confcutdir=.."])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/site"))
        .env("PYTHONPATH", package::folder("package-site"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Worlds of Gymnasium run in the same one.
        .env("FOVEATE_PYTHON", &python)
        .status()
        .expect("FOVEATE_SITE_PYTHON names a Python that starts");
    assert!(done.success(), "pytest: {done}");
}
