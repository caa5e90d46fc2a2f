//! `cargo xtask test`: everything that must pass before a change lands.

use anyhow::{Result, bail};

use crate::{browser, cargo, debian, gates, mnist, python, skips};

type Check = fn() -> Result<()>;

/// The crate that the feature `eigen` changes, with it.
const EIGEN: &[&str] = &["--package", "foveate-evolve", "--features", "eigen"];

const STEPS: &[(&str, Check)] = &[
    ("fmt", fmt),
    ("clippy", clippy),
    ("doc", doc),
    ("deny", gates::deny),
    ("miri", gates::miri),
    ("python", environments),
    ("tests", tests),
    ("fuzz", crate::fuzz::step),
];

/// Runs all steps, or only the one called `only`.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let chosen: Vec<_> = STEPS.iter().filter(|(name, _)| only.is_none_or(|only| *name == only)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = STEPS.iter().map(|(name, _)| *name).collect();
        bail!("no step is called {:?}; choose from: {}", only.unwrap_or_default(), names.join(", "));
    }
    skips::begin()?;
    for (name, step) in chosen {
        eprintln!("\n── {name} ──");
        step()?;
    }
    skips::end()
}

fn fmt() -> Result<()> {
    crate::run("cargo fmt", cargo().args(["fmt", "--all", "--check"]))
}

/// Of the default build; with the feature `eigen`, of the crate that it changes.
fn clippy() -> Result<()> {
    for what in [&["--workspace"][..], EIGEN] {
        let mut cargo = cargo();
        cargo.arg("clippy").args(what).args(["--all-targets", "--quiet", "--", "--deny", "warnings"]);
        crate::run("cargo clippy", &mut cargo)?;
    }
    // The command has the feature, too, and hands it on.
    crate::run(
        "cargo check",
        cargo().args(["check", "--package", "foveate-cli", "--features", "eigen", "--quiet"]),
    )
}

fn doc() -> Result<()> {
    crate::run(
        "cargo doc",
        cargo().args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

fn environments() -> Result<()> {
    python::oracle()?;
    python::worlds()?;
    python::mujocos().map(drop)
}

fn tests() -> Result<()> {
    let (oracle, worlds) = (python::oracle()?, python::worlds()?);
    let mut cargo = cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    // All of it is compiled once; what would be kept for the next edit costs time and disk.
    cargo.env("CARGO_INCREMENTAL", "0");
    cargo.env("FOVEATE_PYTHON", oracle).env("FOVEATE_WORLDS_PYTHON", &worlds);
    cargo.env(skips::RECORD, skips::record());
    // On a machine that cannot have these, the tests that need them are skipped, and each of them is recorded.
    match browser::chromium() {
        Ok(chromium) => drop(cargo.env("FOVEATE_CHROMIUM", chromium)),
        Err(error) => eprintln!("no Chromium, so pages are not tested: {error:#}"),
    }
    match mnist::data() {
        Ok(folder) => drop(cargo.env("FOVEATE_MNIST", folder)),
        Err(error) => eprintln!("no MNIST, so the real digits are not tested: {error:#}"),
    }
    match python::drawing(&worlds) {
        Ok(()) => drop(cargo.env("FOVEATE_WORLDS_DRAW", "egl")),
        Err(error) => eprintln!("no OpenGL, so what MuJoCo draws is not tested: {error:#}"),
    }
    for program in ["ffmpeg", "strace"] {
        if let Err(error) = debian::program(program) {
            eprintln!("no {program}, so what needs it is not tested: {error:#}");
        }
    }
    crate::run("cargo test", &mut cargo)?;
    // MuJoCo's worlds with other versions of it, each beside itself.
    for python in python::mujocos()? {
        let mut cargo = crate::cargo();
        // Of the workspace, so that nothing is compiled with other features.
        cargo.args(["test", "--workspace", "--no-fail-fast"]);
        for test in ["hostile", "suite"] {
            cargo.args(["--test", test]);
        }
        cargo.env("CARGO_INCREMENTAL", "0").env("FOVEATE_WORLDS_PYTHON", python);
        cargo.env(skips::RECORD, skips::record());
        crate::run("cargo test, with another MuJoCo", &mut cargo)?;
    }
    // What users build by default is tested above, this is what a feature adds.
    let mut eigen = crate::cargo();
    eigen.arg("test").args(EIGEN).arg("--no-fail-fast").env("FOVEATE_PYTHON", python::oracle()?);
    eigen.env(skips::RECORD, skips::record());
    crate::run("cargo test, with eigenvectors", &mut eigen)
}
