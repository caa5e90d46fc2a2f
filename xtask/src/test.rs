//! `cargo xtask test`: everything that must pass before a change lands.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::{browser, cargo, debian, gates, mnist, python, runner, skips};

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

/// The steps that an edit needs within minutes; the tests that lack another program are skipped, and counted.
const QUICK: &[(&str, Check)] = &[("fmt", fmt), ("clippy", clippy), ("tests", quick_tests)];

/// Runs all steps, or only the one called `only`.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let chosen: Vec<_> = STEPS.iter().filter(|(name, _)| only.is_none_or(|only| *name == only)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = STEPS.iter().map(|(name, _)| *name).collect();
        bail!("no step is called {:?}; choose from: {}", only.unwrap_or_default(), names.join(", "));
    }
    run_steps(chosen)
}

/// Runs the steps of an edit.
pub(crate) fn quick() -> Result<()> {
    run_steps(QUICK)
}

#[allow(clippy::disallowed_methods, reason = "tells how long each step took")]
fn run_steps<'a>(steps: impl IntoIterator<Item = &'a (&'a str, Check)>) -> Result<()> {
    skips::begin()?;
    let begin = Instant::now();
    let mut times = String::new();
    for (name, step) in steps {
        eprintln!("\n── {name} ──");
        let before = Instant::now();
        step()?;
        times += &format!(" {name} {:.0}", before.elapsed().as_secs_f64());
    }
    eprintln!("\n{:.0} s:{times}", begin.elapsed().as_secs_f64());
    skips::end()
}

fn fmt() -> Result<()> {
    crate::run("cargo fmt", cargo().args(["fmt", "--all", "--check"]))
}

/// With the feature `eigen`, which only adds code.
fn clippy() -> Result<()> {
    let all = ["clippy", "--workspace", "--all-targets", "--features", "foveate-cli/eigen", "--quiet"];
    crate::run("cargo clippy", cargo().args(all).args(["--", "--deny", "warnings"]))
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
    let mut all = runner::tests(&["--workspace"]);
    all.env("FOVEATE_PYTHON", &oracle).env("FOVEATE_WORLDS_PYTHON", &worlds);
    // On a machine that cannot have these, the tests that need them are skipped, and each of them is recorded.
    match browser::chromium() {
        Ok(chromium) => drop(all.env("FOVEATE_CHROMIUM", chromium)),
        Err(error) => eprintln!("no Chromium, so pages are not tested: {error:#}"),
    }
    match mnist::data() {
        Ok(folder) => drop(all.env("FOVEATE_MNIST", folder)),
        Err(error) => eprintln!("no MNIST, so the real digits are not tested: {error:#}"),
    }
    match python::torch() {
        Ok(python) => {
            all.env("FOVEATE_SITE_PYTHON", python::site(&python)?).env("FOVEATE_TORCH_PYTHON", python);
        }
        Err(error) => eprintln!("no PyTorch, so modules of agents and the site are not tested: {error:#}"),
    }
    match python::drawing(&worlds) {
        Ok(()) => drop(all.env("FOVEATE_WORLDS_DRAW", "egl")),
        Err(error) => eprintln!("no OpenGL, so what MuJoCo draws is not tested: {error:#}"),
    }
    for (program, package) in [("ffmpeg", "ffmpeg"), ("strace", "strace"), ("node", "nodejs")] {
        if let Err(error) = debian::program(program, package) {
            eprintln!("no {program}, so what needs it is not tested: {error:#}");
        }
    }
    runner::run_tests("tests", &mut all)?;
    // MuJoCo's worlds with other versions of it, each beside itself.
    for python in python::mujocos()? {
        // Of the workspace, so that nothing is compiled with other features.
        let mut mujoco = runner::tests(&["--workspace", "--test", "suite", "--"]);
        mujoco.args(["hostile::", "model_world::", "oracle_suite::", "quadruped::"]);
        mujoco.env("FOVEATE_WORLDS_PYTHON", python);
        runner::run_tests("tests with another MuJoCo", &mut mujoco)?;
    }
    // What users build by default is tested above, this is what a feature adds.
    let mut eigen = runner::tests(EIGEN);
    eigen.env("FOVEATE_PYTHON", &oracle);
    runner::run_tests("tests with eigenvectors", &mut eigen)?;
    runner::doctests()
}

/// What an edit needs within minutes: the tests that need no other program and are no longer than a few seconds.
fn quick_tests() -> Result<()> {
    runner::run_tests("quick tests", runner::tests(&["--workspace"]).args(runner::quick()))
}
