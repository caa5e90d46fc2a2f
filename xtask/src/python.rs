//! Python environments for the tests and benchmarks that run real Python software.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::{capture, command, debian, root, run};

/// What the tests compare with.
pub(crate) fn oracle() -> Result<PathBuf> {
    environment(
        ".venv-oracle",
        &["python/requirements-oracle.txt", "python/requirements-evolve.txt"],
        Dependencies::Listed,
    )
}

/// Worlds from elsewhere, hosted by the bridge; apart, for MuJoCo and its like must not settle what the oracle runs.
pub(crate) fn worlds() -> Result<PathBuf> {
    environment(".venv-worlds", &["python/requirements-worlds.txt"], Dependencies::Listed)
}

/// What builds the site and runs its notebooks, on top of `torch`, the Python of [`torch`].
pub(crate) fn site(torch: &Path) -> Result<PathBuf> {
    let requirements = ["python/requirements-site.txt"];
    environment_on(Some(torch), ".venv-site", &requirements, Dependencies::Listed)
}

/// Other versions of MuJoCo than that of [`worlds`], each with its dm_control.
pub(crate) fn mujocos() -> Result<Vec<PathBuf>> {
    let of = |version: &str| {
        let requirements = format!("python/requirements-mujoco-{version}.txt");
        environment(&format!(".venv-mujoco-{version}"), &[&requirements], Dependencies::Listed)
    };
    ["3.3", "3.10", "4.0"].map(of).into_iter().collect()
}

/// Puts the native module that cargo built with `profile` where the sources of the Python package look for it; returns the
/// folder of the package.
pub(crate) fn link_module(profile: &str) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let (built, name) = if cfg!(windows) {
        ("foveate_native.dll", "_native.pyd")
    } else if cfg!(target_os = "macos") {
        ("libfoveate_native.dylib", "_native.abi3.so")
    } else {
        ("libfoveate_native.so", "_native.abi3.so")
    };
    let (built, sources) = (target.join(profile).join(built), root().join("crates/foveate-py/python"));
    let module = sources.join("foveate").join(name);
    // A copy beside it, renamed: an interpreter may have the old one loaded.
    let fresh = module.with_extension("new");
    fs::copy(&built, &fresh).with_context(|| format!("copying {}", built.display()))?;
    fs::rename(&fresh, &module).with_context(|| format!("writing {}", module.display()))?;
    Ok(sources)
}

/// Whether MuJoCo can draw without a screen; installs what Mesa needs for it where that can be done.
///
/// # Errors
/// When it cannot: the tests that need it then say so.
pub(crate) fn drawing(worlds: &Path) -> Result<()> {
    let probe = || {
        let mut python = command(worlds);
        python.args(["-c", "import mujoco; mujoco.GLContext(8, 8).make_current()"]).env("MUJOCO_GL", "egl");
        python.stderr(Stdio::null());
        run("drawing with EGL", &mut python)
    };
    if probe().is_ok() {
        return Ok(());
    }
    debian::install(&["libegl1", "libgl1", "libopengl0", "libgl1-mesa-dri"])?;
    probe()
}

/// An interpreter with `PyTorch` and NumPy: Debian's, for the wheels of `PyTorch` bring gigabytes of CUDA.
///
/// # Errors
/// When there is none: the tests that need it then say so.
pub(crate) fn torch() -> Result<PathBuf> {
    let python = PathBuf::from("/usr/bin/python3");
    let probe = || {
        let mut python = command(&python);
        python.args(["-c", "import numpy, torch"]).stderr(Stdio::null());
        run("importing PyTorch", &mut python)
    };
    if probe().is_err() {
        debian::install(&["python3-torch", "python3-numpy"])?;
        probe()?;
    }
    Ok(python)
}

/// Whether requirements list what the packages in them need.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependencies {
    /// All that is imported is listed, and nothing else is to be installed.
    Listed,
    /// pip finds the rest.
    Found,
}

/// Makes (or finds) the environment `name` with what the files `requirements` pin; returns its interpreter.
///
/// The environment carries a copy of its requirements and is made anew when they change.
pub(crate) fn environment(name: &str, requirements: &[&str], dependencies: Dependencies) -> Result<PathBuf> {
    environment_on(None, name, requirements, dependencies)
}

/// [`environment`], with the packages of the interpreter `below` beneath those of its own.
fn environment_on(
    below: Option<&Path>,
    name: &str,
    requirements: &[&str],
    dependencies: Dependencies,
) -> Result<PathBuf> {
    let folder = root().join(name);
    let mut wanted = String::new();
    for file in requirements {
        wanted += &fs::read_to_string(root().join(file)).with_context(|| format!("reading {file}"))?;
    }
    let stamp = folder.join("foveate-requirements.txt");
    let python = if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") };
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    eprintln!("making {name} with what {} pins …", requirements.join(" and "));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing the outdated {}", folder.display()))?;
    }
    let base = base_interpreter()?;
    let mut pip;
    if let Some(below) = below {
        let without_pip = ["-m", "venv", "--system-site-packages", "--without-pip"];
        run("python -m venv", command(below).args(without_pip).arg(&folder))?;
        // Debian's Python has no pip for an environment; that of another one installs into it.
        pip = command(&base);
        pip.args(["-m", "pip", "--python"]).arg(&python);
    } else {
        run("python -m venv", command(&base).args(["-m", "venv"]).arg(&folder))?;
        pip = command(&python);
        pip.args(["-m", "pip"]);
    }
    pip.args(["install", "--quiet", "--disable-pip-version-check"]);
    if dependencies == Dependencies::Listed {
        pip.arg("--no-deps");
    }
    for file in requirements {
        pip.args(["-r", file]);
    }
    run("pip install", &mut pip)?;
    fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    Ok(python)
}

/// A Python that is new enough for Gymnasium 1.4.0 and old enough for the Box2D wheel.
pub(crate) fn base_interpreter() -> Result<String> {
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
