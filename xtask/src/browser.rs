//! A browser for the tests of pages.

use std::path::PathBuf;

use anyhow::Result;

use crate::{capture, command, run};

/// A Chromium on the path; where it is missing and this is Debian as root, its package is installed. `None` where
/// neither is: the tests that need it then say so.
pub(crate) fn chromium() -> Result<Option<PathBuf>> {
    if let Some(found) = on_path() {
        return Ok(Some(found));
    }
    let root = capture("id", command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || capture("apt-get", command("apt-get").arg("--version")).is_err() {
        eprintln!("no Chromium here: pages are not tested. On Debian: apt-get install chromium");
        return Ok(None);
    }
    eprintln!("installing Debian's chromium …");
    let install = ["install", "--yes", "--quiet", "--no-install-recommends", "chromium"];
    let mut apt = command("apt-get");
    if run("apt-get install", apt.args(install).env("DEBIAN_FRONTEND", "noninteractive")).is_err() {
        // The list of packages may be old.
        run("apt-get update", command("apt-get").args(["update", "--quiet"]))?;
        run("apt-get install", command("apt-get").args(install).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(on_path())
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.exists())
}
