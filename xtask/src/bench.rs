//! `cargo xtask bench`.
use anyhow::Result;
pub(crate) fn run(_rows: &[&str]) -> Result<()> {
    Ok(())
}
