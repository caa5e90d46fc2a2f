//! Gates that need more than a stable toolchain: each runs where its tool is installed and is skipped where it is not.

use std::process::Stdio;

use anyhow::Result;

use crate::{cargo, command, run, skips};

/// Licenses, sources and bans of all dependencies, and what is known against them.
pub(crate) fn deny() -> Result<()> {
    if !works(&["deny", "--version"]) {
        return skips::add("deny", "cargo-deny is not installed; cargo install cargo-deny --locked");
    }
    run("cargo deny", cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    // The advisories lie in a repository of their own, which not every machine can reach.
    if works(&["deny", "fetch", "db"]) {
        run("cargo deny", cargo().args(["deny", "--offline", "check", "advisories"]))
    } else {
        skips::add(
            "deny",
            "the database of advisories cannot be fetched; run this step where there is a network",
        )
    }
}

/// Kernels that Miri can interpret in a minute: those of coverage on SSE2 and without vectors, and pixels.
const INTERPRETED: [&str; 2] = ["coverage", "pixels"];

/// Undefined behaviour in the kernels, as far as Miri knows their instructions.
pub(crate) fn miri() -> Result<()> {
    let nightly = || {
        let mut command = command("cargo");
        // The cargo that runs us speaks for its own toolchain.
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").arg("+nightly");
        command
    };
    let installed =
        nightly().args(["miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        return skips::add(
            "miri",
            "Miri is not installed; rustup toolchain install nightly --component miri,rust-src",
        );
    }
    let mut miri = nightly();
    miri.args(["miri", "test", "--package", "foveate-kernels", "--lib", "--quiet", "--"]).args(INTERPRETED);
    run("cargo miri", &mut miri)
}

/// Returns whether cargo does this without complaint.
fn works(args: &[&str]) -> bool {
    let status = cargo().args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
