//! `cargo xtask docs`: the tables of results in README.md and docs/, from `results/`.

use std::fs;

use anyhow::{Context, Result};
use foveate_run::reproduce::documents;

use crate::root;

/// The text of `results/NAME.json`.
fn stored(name: &str) -> Option<String> {
    fs::read_to_string(root().join("results").join(format!("{name}.json"))).ok()
}

/// Writes every document that holds a result anew.
pub(crate) fn write() -> Result<()> {
    let mut pages = vec![root().join("README.md")];
    for entry in fs::read_dir(root().join("docs")).context("reading docs")? {
        pages.push(entry.context("reading docs")?.path());
    }
    for page in pages.into_iter().filter(|page| page.extension().is_some_and(|ending| ending == "md")) {
        let text = fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
        let written = documents::written(&text, &stored).with_context(|| page.display().to_string())?;
        if written != text {
            fs::write(&page, written).with_context(|| format!("writing {}", page.display()))?;
            eprintln!("wrote {}", page.display());
        }
    }
    Ok(())
}
