//! `cargo xtask bench`: our speed beside what people use today.
//!
//! Every ratio compares two measurements of the same run on the same machine: CPU seconds, one thread. A reference
//! is run first, its actions and frames are kept, and ours replays them, so that both do the same work; the returns
//! of the episodes must agree to the bit, or there is no table.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{attention, capture, cargo, command, python, root, run as run_step};

const ROWS: [&str; 6] = ["world", "forward", "attention", "train", "evolve", "bridge"];

/// Measures the chosen rows (all when none is chosen) and prints the table.
pub(crate) fn run(rows: &[&str]) -> Result<()> {
    if let Some(unknown) = rows.iter().find(|row| !ROWS.contains(row)) {
        bail!("no row is called {unknown:?}; choose from: {}", ROWS.join(", "));
    }
    let wanted = |row: &str| rows.is_empty() || rows.contains(&row);
    let python =
        python::environment(".venv-bench", &["python/requirements-bench.txt"], python::Dependencies::Found)?;
    run_step("cargo build", cargo().args(["build", "--release", "--quiet", "--package", "foveate-cli"]))?;
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;

    let mut table = Table::default();
    if wanted("world") {
        // The reference drives first: the actions that it records are what everyone replays.
        eprintln!("running Gymnasium and EnvPool …");
        let world = json("world.py", command(&python).arg("bench/reference/world.py").arg(&folder))?;
        let ours = foveate(&["bench", "world", "--actions", path(&folder)?, "--json"])?;
        world_rows(&world, &ours, &mut table)?;
    }
    if wanted("forward") {
        forward_rows(&python, &mut table)?;
    }
    if wanted("attention") {
        attention::rows(&python, &mut table)?;
    }
    if wanted("train") {
        train_rows(&python, &mut table)?;
    }
    if wanted("evolve") {
        evolve_rows(&python, &mut table)?;
    }
    if wanted("bridge") {
        bridge_rows(&python, &mut table)?;
    }
    table.print();
    Ok(())
}

/// CPU time of a step through the bridge, all processes together, beside Gymnasium's vector environments: a trivial
/// environment that shows 96 × 96 × 3 bytes.
fn bridge_rows(python: &Path, table: &mut Table) -> Result<()> {
    const STEPS: &str = "20000";
    let toys = root().join("crates/foveate-gym/tests/toys");
    for workers in ["1", "2"] {
        eprintln!("running {workers} of Gymnasium's workers, then ours …");
        let mut reference = command(python);
        reference.arg("bench/reference/bridge.py").arg(&toys).args([STEPS, workers]);
        let theirs = json("bridge.py", &mut reference)?;
        let mut ours = cargo();
        ours.args(["run", "--release", "--quiet", "-p", "foveate-gym", "--example", "bridge", "--"]);
        ours.args(["foveate_toys:Toys/Trivial-v0", STEPS, workers, &format!("path={}", path(&toys)?)]);
        let us = number(&json("the bridge example", ours.env("FOVEATE_PYTHON", python))?, "us")?;
        for (key, name) in [
            ("async_shared", "AsyncVectorEnv, shared memory"),
            ("async_pickled", "AsyncVectorEnv, pickled"),
            ("sync", "SyncVectorEnv, in one process"),
            ("envpool", "EnvPool's CartPole, 4 numbers, in threads"),
        ] {
            let reference = number(&theirs[key], "us")?;
            let what = format!("a step of gym:ID, 96x96x3, {workers} workers");
            table.row(&what, "CPU µs", us, name, reference, reference / us);
        }
    }
    Ok(())
}

/// Steps per CPU second of every picture, beside Gymnasium and EnvPool.
fn world_rows(theirs: &Value, ours: &Value, table: &mut Table) -> Result<()> {
    let steps = number(theirs, "steps")?;
    let gymnasium = steps / number(theirs, "gymnasium_cpu_s")?;
    let expected: Vec<f64> =
        list(theirs, "episodes")?.iter().map(|episode| number(episode, "return")).collect::<Result<_>>()?;
    for timing in list(ours, "world")? {
        let picture = timing["picture"].as_str().context("a timing names its picture")?;
        if picture != "classic" {
            let returns: Vec<f64> = list(timing, "returns")?
                .iter()
                .map(|value| value.as_f64().context("a return"))
                .collect::<Result<_>>()?;
            ensure!(
                returns == expected,
                "{picture}: the same actions gave the returns {returns:?}, Gymnasium's are {expected:?}"
            );
        }
        let speed = number(timing, "steps")? / number(timing, "cpu_s")?;
        let what = match picture {
            "none" => "CarRacing, physics alone".to_string(),
            picture => format!("CarRacing, picture {picture}"),
        };
        table.row(&what, "steps/CPU-s", speed, "Gymnasium", gymnasium, speed / gymnasium);
        if picture == "fast"
            && let Some(cpu) = theirs["envpool_cpu_s"].as_f64()
        {
            table.row(&what, "steps/CPU-s", speed, "EnvPool", steps / cpu, speed * cpu / steps);
        }
    }
    Ok(())
}

/// Microseconds per decision of every instruction set, beside NumPy and PyTorch, on the same frames and weights.
fn forward_rows(python: &Path, table: &mut Table) -> Result<()> {
    let data = std::env::var_os("FOVEATE_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let (frames, weights) =
        (data.join("golden_attention_agent_carracing.npz"), data.join("attention_agent_carracing.npz"));
    let ours = json(
        "the forward example",
        cargo().args([
            "run",
            "--release",
            "--quiet",
            "-p",
            "foveate-agents",
            "--example",
            "forward",
            "--",
            "--json",
        ]),
    )?;
    eprintln!("running numpy and torch …");
    let mut reference = command(python);
    reference.arg("bench/reference/attention_agent_forward.py");
    // Published weights and golden frames when they are there, else both sides draw the same.
    if frames.exists() && weights.exists() {
        reference.arg(&frames).arg("--weights").arg(&weights);
    }
    let theirs = json("attention_agent_forward.py", &mut reference)?;
    ensure!(
        ours["chosen_sum"] == theirs["chosen_sum"],
        "the patches chosen by ours sum to {}, by numpy to {}",
        ours["chosen_sum"],
        theirs["chosen_sum"]
    );
    for level in ["avx512", "avx2", "neon", "portable"] {
        let Some(us) = ours[format!("{level}_us")].as_f64() else { continue };
        for (name, key) in [("numpy", "numpy_us"), ("torch", "torch_us")] {
            if let Some(reference) = theirs[key].as_f64() {
                table.row(
                    &format!("AttentionAgent forward, {level}"),
                    "CPU µs",
                    us,
                    name,
                    reference,
                    reference / us,
                );
            }
        }
    }
    Ok(())
}

/// Steps of training per CPU second, evolution included, beside the Python stacks.
fn train_rows(python: &Path, table: &mut Table) -> Result<()> {
    eprintln!("running Gymnasium and EnvPool with pycma (some minutes) …");
    let champion = "champions/car-racing.safetensors";
    let theirs = json("train.py", command(python).arg("bench/reference/train.py").arg(champion))?;
    let driven = foveate(&["eval", "--seeds", "0..2", "--json"])?;
    // Rounding may change a gaze here and there; another agent, track or rule would change everything.
    for (ours, theirs) in list(&driven, "returns")?.iter().zip(list(&theirs, "checks")?) {
        let (ours, theirs) = (ours.as_f64().context("a return")?, theirs.as_f64().context("a return")?);
        ensure!(
            (ours - theirs).abs() < 150.0,
            "the champion reaches {theirs} in Gymnasium where it reaches {ours} here: not the same work"
        );
    }
    for timing in list(&foveate(&["bench", "train", "--json"])?, "train")? {
        let start = timing["start"].as_str().context("a timing names its start")?;
        let what = match start {
            "fresh" => "Training, first generations",
            _ => "Training, around trained weights",
        };
        let speed = number(timing, "steps")? / number(timing, "cpu_s")?;
        for (key, name) in
            [("gymnasium", "Gymnasium + PyTorch + pycma"), ("envpool", "EnvPool + NumPy + pycma")]
        {
            let reference = &theirs[key][start];
            let (steps, rollouts) = (number(reference, "steps")?, number(reference, "rollouts")?);
            let (cpu, evolution) = (number(reference, "cpu_s")?, number(reference, "evolution_cpu_s")?);
            table.row(what, "steps/CPU-s", speed, name, steps / cpu, speed * cpu / steps);
            eprintln!(
                "{what}, {name}: {steps} steps, {:.0} a rollout (ours {:.0}); {:.1} without pycma's time",
                steps / rollouts,
                number(timing, "steps")? / number(timing, "rollouts")?,
                steps / (cpu - evolution),
            );
        }
    }
    Ok(())
}

/// CPU seconds of CMA-ES per generation and its memory, beside pycma, averaged over the generations that one
/// factorisation of the covariance matrix lasts.
fn evolve_rows(python: &Path, table: &mut Table) -> Result<()> {
    eprintln!("running pycma …");
    let ours = foveate(&["bench", "evolve", "--json"])?;
    let timings = list(&ours, "evolve")?;
    let timing = timings.first().context("no timing of CMA-ES")?;
    let size = |key: &str| Ok::<_, anyhow::Error>(timing[key].as_u64().context("a count")?.to_string());
    let theirs = json(
        "cma_es.py",
        command(python).arg("bench/reference/cma_es.py").args([
            size("params")?,
            size("population")?,
            size("interval")?,
        ]),
    )?;
    for timing in timings {
        let form = timing["form"].as_str().context("a timing names its form")?;
        let what = format!("CMA-ES, n = {}, population {}, {form}", size("params")?, size("population")?);
        let (cpu, reference) = (number(timing, "cpu_s")?, number(&theirs, "cpu_s")?);
        table.row(&what, "CPU s a generation", cpu, "pycma", reference, reference / cpu);
        if let Some(peak) = timing["peak_mb"].as_f64() {
            let reference = number(&theirs, "peak_mb")?;
            table.row(&what, "MB at most", peak, "pycma", reference, reference / peak);
        }
    }
    Ok(())
}

/// The table, printed when all of it is there.
#[derive(Default)]
pub(crate) struct Table(Vec<[String; 6]>);

impl Table {
    pub(crate) fn row(
        &mut self,
        what: &str,
        unit: &str,
        ours: f64,
        reference: &str,
        theirs: f64,
        ratio: f64,
    ) {
        let figure = |x: f64| match x {
            ..1.0 => format!("{x:.2}"),
            ..100.0 => format!("{x:.1}"),
            _ => format!("{x:.0}"),
        };
        self.0.push([
            what.to_string(),
            unit.to_string(),
            figure(ours),
            reference.to_string(),
            figure(theirs),
            format!("{ratio:.1}×"),
        ]);
    }

    #[expect(clippy::print_stdout, reason = "the table is what this command is for")]
    fn print(&self) {
        println!("| what | unit | Foveate | reference | its figure | ratio |\n|---|---|---:|---|---:|---:|");
        for row in &self.0 {
            println!("| {} |", row.join(" | "));
        }
    }
}

/// Runs the release binary and reads its JSON.
fn foveate(args: &[&str]) -> Result<Value> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    json("foveate", command(target.join("release/foveate")).args(args))
}

pub(crate) fn json(name: &str, command: &mut std::process::Command) -> Result<Value> {
    let text = capture(name, command)?;
    serde_json::from_str(&text).with_context(|| format!("{name} printed no JSON: {text:?}"))
}

pub(crate) fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

pub(crate) fn number(value: &Value, key: &str) -> Result<f64> {
    value[key].as_f64().with_context(|| format!("no number {key:?} in {value}"))
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("no list {key:?} in {value}"))
}
