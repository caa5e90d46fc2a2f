//! Damaged inputs for a time, and tests with memory checked.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{capture, cargo, command, python, root, run, skips};

/// Seconds for each target in a test run.
const IN_TESTS: u64 = 10;
/// Address space of a target, in KiB: what an input may take, and the program.
const MEMORY_KB: u64 = 4_000_000;
/// The target that needs MuJoCo.
const MODELS: &str = "models";

/// The step of a test run.
pub(crate) fn step() -> Result<()> {
    fuzz("all", IN_TESTS, 1)
}

/// `cargo xtask fuzz [TARGET] [--seconds N] [--seed N]`
pub(crate) fn command_line(words: &[&str]) -> Result<()> {
    let (mut target, mut seconds, mut seed) = ("all", IN_TESTS, 1);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let given = words.next().with_context(|| format!("{word} needs a number"))?;
            given.parse().with_context(|| format!("{word} {given} is no whole number"))
        };
        match *word {
            "--seconds" => seconds = number()?,
            "--seed" => seed = number()?,
            flag if flag.starts_with('-') => bail!("no flag {flag}; there are --seconds and --seed"),
            name => target = name,
        }
    }
    fuzz(target, seconds, seed)
}

fn fuzz(target: &str, seconds: u64, seed: u64) -> Result<()> {
    let mut build = cargo();
    build
        .args(["build", "--profile", "test", "--workspace", "--example", "fuzz", "--quiet"])
        .env("CARGO_INCREMENTAL", "0");
    run("cargo build", &mut build)?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let mut limited = command("sh");
    limited.arg("-c").arg(format!("ulimit -v {MEMORY_KB}; exec \"$0\" \"$@\""));
    limited
        .arg(folder.join("debug/examples/fuzz"))
        .arg(target)
        .arg(seconds.to_string())
        .arg(seed.to_string());
    if ["all", MODELS].contains(&target) {
        limited.env("FOVEATE_WORLDS_PYTHON", python::worlds()?).env(skips::RECORD, skips::record());
    }
    run("fuzz", &mut limited)
}

/// The target of what is built with `AddressSanitizer`.
const SANITIZED_TARGET: &str = "x86_64-unknown-linux-gnu";
/// Crates with unsafe code, and what of their tests runs with `AddressSanitizer`.
const SANITIZED: [&[&str]; 2] = [
    &["--package", "foveate-kernels", "--lib", "--tests"],
    &["--package", "foveate-gpu", "--test", "network", "--test", "training"],
];
/// Tests of the Python package that are left out: they are of programs that other projects built, and take long.
const NOT_SANITIZED: [&str; 2] = ["test_ray.py", "test_peers.py"];

/// `cargo xtask sanitize`: the tests of crates with unsafe code, and of the package for Python, with `AddressSanitizer`, in a target
/// folder of their own.
pub(crate) fn sanitize() -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skips::add("sanitize", "AddressSanitizer is set up for Linux on x86-64 alone");
    }
    for what in SANITIZED {
        run("cargo test with AddressSanitizer", sanitized().args(what))?;
    }
    let left_out = NOT_SANITIZED.map(|file| format!("--ignore-glob=*{file}"));
    let mut package = sanitized();
    package
        .args(["--package", "foveate-py", "--test", "python"])
        .env("FOVEATE_PYTHON", python::oracle()?)
        .env("FOVEATE_WORLDS_PYTHON", python::worlds()?)
        .env("FOVEATE_ASAN", asan_library()?)
        .env("PYTEST_ADDOPTS", left_out.join(" "));
    run("cargo test of the Python package with AddressSanitizer", &mut package)
}

fn sanitized() -> Command {
    let mut test = cargo();
    // The sanitizer is an unstable flag of the stable compiler.
    test.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
    test.env("CARGO_TARGET_DIR", root().join("target/sanitize")).env("CARGO_INCREMENTAL", "0");
    test.args(["test", "--target", SANITIZED_TARGET]).stdin(Stdio::null());
    test
}

/// The sanitizer's own functions as a library, which an interpreter that was built without them loads first. The compiler brings
/// them as an archive, which is for programs alone.
fn asan_library() -> Result<PathBuf> {
    let mut rustc = command("rustc");
    rustc.args(["--print", "target-libdir", "--target", SANITIZED_TARGET]);
    let folder = PathBuf::from(capture("rustc", &mut rustc)?.trim());
    let files = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let is_archive = |path: &PathBuf| path.to_string_lossy().ends_with("_rt.asan.a");
    let archive = files.flatten().map(|file| file.path()).find(is_archive);
    let archive = archive.with_context(|| format!("{} has no AddressSanitizer", folder.display()))?;
    let target = root().join("target/sanitize");
    // It ends the program when a file called libasan.so is loaded, because that would be another one.
    let (copy, library) = (target.join("asan.a"), target.join("asan.so"));
    fs::copy(&archive, &copy).with_context(|| format!("copying {}", archive.display()))?;
    // What runs before a program's own code cannot be in a library.
    run("ar", command("ar").arg("d").arg(&copy).arg("asan_preinit.cpp.o"))?;
    let mut link = command("cc");
    link.arg("-shared").arg("-o").arg(&library).arg("-Wl,--whole-archive").arg(&copy);
    link.args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lrt", "-lm"]);
    run("cc", &mut link)?;
    Ok(library)
}
