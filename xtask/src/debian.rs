//! Packages of Debian that some tests need.

use std::process::Stdio;

use anyhow::{Result, bail};

use crate::{capture, command, run};

/// Makes sure that `program` is on the path; installs its package where it is not.
///
/// # Errors
/// As [`install`].
pub(crate) fn program(program: &str, package: &str) -> Result<()> {
    let version = command(program)
        .arg("-version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if version.is_ok() { Ok(()) } else { install(&[package]) }
}

/// Installs packages where this is Debian and we are root.
///
/// # Errors
/// When it is not, or a package cannot be had; the error names the command to run by hand.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let root = capture("id", command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || capture("apt-get", command("apt-get").arg("--version")).is_err() {
        bail!("on Debian, as root: apt-get install {names}");
    }
    eprintln!("installing Debian's {names} …");
    let install = || {
        let mut apt = command("apt-get");
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
        run("apt-get install", apt.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    if install().is_err() {
        // The list of packages may be old.
        run("apt-get update", command("apt-get").args(["update", "--quiet"]))?;
        install()?;
    }
    Ok(())
}
