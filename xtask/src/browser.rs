//! A browser for the tests of pages.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::debian;

/// A Chromium on the path; where it is missing it is installed if that can be done.
///
/// # Errors
/// When it cannot: the tests that need it then say so.
pub(crate) fn chromium() -> Result<PathBuf> {
    if let Some(found) = on_path() {
        return Ok(found);
    }
    debian::install(&["chromium"])?;
    on_path().context("chromium was installed and is not on the PATH")
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.exists())
}
