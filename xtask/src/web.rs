//! `cargo xtask web`: the module of the lab in the browser, from the sources.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use flate2::{Compression, write::GzEncoder};

use crate::{cargo, command, root, run};

const TARGET: &str = "wasm32-unknown-unknown";
/// The compiler for WebAssembly of Debian and Ubuntu, which builds the standard library from its sources.
const PACKAGED: [&str; 2] = ["/usr/bin/cargo", "/usr/bin/rustc"];
/// Its sources, of the same version.
const SOURCES: &str = "/usr/lib/rustlib/src/rust/library/std";

/// Builds the module and writes `crates/foveate-web/foveate.wasm.gz`.
pub(crate) fn build() -> Result<()> {
    let target = root().join("target/wasm");
    let mut build = if target_of_rustup() { cargo() } else { packaged()? };
    build.args(["build", "--profile", "wasm", "--package", "foveate-web", "--lib", "--target", TARGET]);
    build.arg("--target-dir").arg(&target);
    build.env("RUSTFLAGS", "-C target-feature=+simd128 -C link-arg=--strip-all");
    run("cargo build for WebAssembly", &mut build)?;
    let built = target.join(TARGET).join("wasm/foveate_web.wasm");
    let module = std::fs::read(&built).with_context(|| format!("reading {}", built.display()))?;
    let mut packed = GzEncoder::new(vec![], Compression::best());
    packed.write_all(&module).context("compressing the module")?;
    let packed = packed.finish().context("compressing the module")?;
    let path = root().join("crates/foveate-web/foveate.wasm.gz");
    std::fs::write(&path, &packed).with_context(|| format!("writing {}", path.display()))?;
    eprintln!("{}: {} kB, unpacked {} kB", path.display(), packed.len() / 1000, module.len() / 1000);
    Ok(())
}

/// Whether rustup has the standard library for WebAssembly.
fn target_of_rustup() -> bool {
    let mut list = command("rustup");
    list.args(["target", "list", "--installed"]).stderr(Stdio::null());
    list.output().is_ok_and(|out| String::from_utf8_lossy(&out.stdout).lines().any(|line| line == TARGET))
}

/// The packaged compiler, which builds the standard library, too.
fn packaged() -> Result<std::process::Command> {
    let [cargo, rustc] = PACKAGED;
    if !Path::new(SOURCES).exists() || !Path::new(cargo).exists() {
        bail!(
            "there is no standard library for WebAssembly here: rustup target add {TARGET}; or, as root on Debian: apt-get install \
             rustc-web cargo-web rust-web-src lld"
        );
    }
    let mut build = command(cargo);
    // The cargo that runs us speaks for its own toolchain.
    build.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
    build.arg("-Zbuild-std=std,panic_abort");
    build.env(
        "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER",
        linker().context("apt-get install lld: a linker")?,
    );
    Ok(build)
}

/// A linker for WebAssembly: the newest on the path, such as `wasm-ld-22`.
fn linker() -> Option<String> {
    let works = |name: &String| {
        command(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let versions = (14..40).rev().map(|version| format!("wasm-ld-{version}"));
    versions.chain(["wasm-ld".to_owned()]).find(works)
}
