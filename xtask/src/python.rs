//! Python environments for the tests and benchmarks that run real Python software.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{capture, command, root, run};

/// Makes (or finds) the environment `name` with exactly what `requirements` pins; returns its interpreter.
///
/// The environment carries a copy of its requirements and is made anew when they change.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let folder = root().join(name);
    let wanted =
        fs::read_to_string(root().join(requirements)).with_context(|| format!("reading {requirements}"))?;
    let stamp = folder.join("foveate-requirements.txt");
    let python = if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") };
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    eprintln!("making {name} with what {requirements} pins …");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing the outdated {}", folder.display()))?;
    }
    let base = base_interpreter()?;
    run("python -m venv", command(&base).args(["-m", "venv"]).arg(&folder))?;
    run(
        "pip install",
        command(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            requirements,
        ]),
    )?;
    fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    Ok(python)
}

/// A Python that is new enough for Gymnasium 1.4.0 and old enough for the Box2D wheel.
fn base_interpreter() -> Result<String> {
    let mut seen = Vec::new();
    for name in ["python3.11", "python3.12", "python3.13", "python3", "python"] {
        let probe = "import sys, venv; print('%d.%d' % sys.version_info[:2])";
        let Ok(version) = capture(name, command(name).args(["-c", probe])) else { continue };
        let version = version.trim();
        if matches!(version, "3.11" | "3.12" | "3.13") {
            return Ok(name.to_string());
        }
        seen.push(format!("{name} is {version}"));
    }
    bail!(
        "the comparison with the real Gymnasium needs Python 3.11, 3.12 or 3.13 with its venv module; found: {}. \
         Install one (Debian: apt-get install python3 python3-venv)",
        if seen.is_empty() { "none".to_string() } else { seen.join(", ") }
    )
}
