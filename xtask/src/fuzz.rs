//! Damaged inputs for a time, and tests with memory checked.

use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::{cargo, command, root, run, skips};

/// Seconds for each target in a test run.
const IN_TESTS: u64 = 10;
/// Address space of a target, in KiB: what an input may take, and the program.
const MEMORY_KB: u64 = 4_000_000;

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
    run("fuzz", &mut limited)
}

/// Crates with unsafe code, and what of their tests runs with `AddressSanitizer`.
const SANITIZED: [&[&str]; 2] = [
    &["--package", "foveate-kernels", "--lib", "--tests"],
    &["--package", "foveate-gpu", "--lib", "--test", "network"],
];

/// `cargo xtask sanitize`: the tests of crates with unsafe code, with `AddressSanitizer`, in a target folder of their own.
pub(crate) fn sanitize() -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skips::add("sanitize", "AddressSanitizer is set up for Linux on x86-64 alone");
    }
    for what in SANITIZED {
        let mut test = cargo();
        // The sanitizer is an unstable flag of the stable compiler.
        test.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
        test.env("CARGO_TARGET_DIR", root().join("target/sanitize"));
        test.args(["test", "--target", "x86_64-unknown-linux-gnu"]).args(what).stdin(Stdio::null());
        run("cargo test with AddressSanitizer", &mut test)?;
    }
    Ok(())
}
