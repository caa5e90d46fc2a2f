//! The rows `learn`, `q-learning` and `s3ta`: learning by gradients beside `PyTorch`, on the same weights and batches.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::{Table, binary, example, json, number, path, reference};

/// Largest relative difference of a loss.
const LOSS: f64 = 1e-4;
/// Largest relative difference of a gradient, by its norm: rounding decides which of two nearly equal nodes is the largest and
/// takes the gradient.
const GRADIENT: f64 = 1e-3;

/// Milliseconds of a step on the same weights and batch.
pub(crate) fn rows(python: &Path, folder: &Path, table: &mut Table) -> Result<()> {
    let mut ours = example("foveate-run", "learning");
    eprintln!("learning …");
    let ours = json("the learning example", ours.arg(path(folder)?).arg("--json"))?;
    eprintln!("learning with PyTorch …");
    let theirs = json("learning.py", reference(python, "learning.py").arg(path(folder)?))?;
    for (key, what) in [
        ("book_standard", "Q-learning, network of the book, batch 50, double Q-learning"),
        ("book_book", "Q-learning, network of the book, batch 50, target of the book"),
        (
            "book_standard_repeated",
            "Q-learning, network of the book, batch 50 with repetitions, double Q-learning",
        ),
        (
            "book_book_repeated",
            "Q-learning, network of the book, batch 50 with repetitions, target of the book",
        ),
        ("preset", "Q-learning, network of the preset `relational`, batch 64"),
        ("preset_repeated", "Q-learning, network of the preset `relational`, batch 64 with repetitions"),
        ("digits", "Digits, relational network, batch 300"),
        ("digits_baseline", "Digits, convolutional network, batch 300"),
    ] {
        let (ours, theirs) = (&ours[key], &theirs[key]);
        let (loss, other) = (number(ours, "loss")?, number(theirs, "loss")?);
        ensure!(
            (loss - other).abs() <= LOSS * other.abs(),
            "{what}: the loss is {loss} here and {other} in PyTorch"
        );
        let difference = number(theirs, "difference")?;
        ensure!(
            difference <= GRADIENT,
            "{what}: the gradients differ by {difference} of their norm; at most {GRADIENT} is rounding"
        );
        eprintln!("{what}: losses {loss} and {other}, gradients {difference:.1e} apart");
        let ms = number(ours, "us")? / 1e3;
        for (key, name) in [("torch_us", "PyTorch"), ("compiled_us", "PyTorch, compiled")] {
            if let Some(us) = theirs[key].as_f64() {
                table.row(&format!("{what}, a step"), "CPU ms", ms, name, us / 1e3, us / 1e3 / ms);
            } else if let Some(why) = theirs["compiled_why"].as_str() {
                eprintln!("no row for {name}: {why}");
            }
        }
    }
    Ok(())
}

/// Frames per CPU second of S3TA, acting and learning on the same weights and pictures.
pub(crate) fn s3ta_rows(python: &Path, folder: &Path, table: &mut Table) -> Result<()> {
    let mut ours = example("foveate-agents", "s3ta");
    eprintln!("S3TA …");
    let ours = json("the s3ta example", ours.arg(path(folder)?).arg("--json"))?;
    eprintln!("S3TA with PyTorch …");
    let theirs = json("s3ta.py", reference(python, "s3ta.py").arg(path(folder)?))?;
    for (network, what) in [("full", "S3TA, 210×160×3, 18 actions"), ("small", "S3TA, preset `s3ta-small`")]
    {
        let logits = number(&theirs, &format!("{network}_logits"))?;
        let gradient = number(&theirs, &format!("{network}_gradient"))?;
        ensure!(
            logits <= LOSS && gradient <= GRADIENT,
            "{what}: logits are {logits} apart and gradients {gradient} of their norm; not the same network"
        );
        eprintln!("{what}: logits {logits:.1e} and gradients {gradient:.1e} apart");
        for (key, work) in [
            ("act_1", "acting, 1 episode"),
            ("act_16", "acting, 16 episodes together"),
            ("learn", "learning, 4 unrolls"),
        ] {
            let key = format!("{network}_{key}");
            let (ours, theirs) = (number(&ours, &key)?, number(&theirs, &key)?);
            let what = format!("{what}, {work}");
            table.row(&what, "frames/CPU-s", ours, "PyTorch", theirs, ours / theirs);
        }
    }
    Ok(())
}

/// CPU seconds of a training of 50,000 environment steps: ours is run whole, of the reference's a share.
pub(crate) fn training_rows(python: &Path, table: &mut Table) -> Result<()> {
    const STEPS: f64 = 50_000.0;
    eprintln!("deep Q-learning (some minutes) …");
    let ours = json("the q_learning example", example("foveate-run", "q_learning").arg(STEPS.to_string()))?;
    eprintln!("deep Q-learning with PyTorch and minigrid …");
    let theirs = json("q_learning.py", &mut reference(python, "q_learning.py"))?;
    let filling = number(&theirs, "fill_cpu_s")?;
    let (steps, updates) = (number(&theirs, "steps")?, number(&theirs, "updates")?);
    ensure!(
        updates == (steps / 2.0).floor(),
        "{updates} updates in {steps} steps; the preset makes one for two"
    );
    let per_step = number(&theirs, "cpu_s")? / steps;
    let whole = filling + per_step * (STEPS - number(&theirs, "fill_steps")?);
    let spent = number(&ours, "cpu_s")? * STEPS / number(&ours, "steps")?;
    let what = "Deep Q-learning, preset `relational` in `door-key-5x5`, 50,000 steps";
    table.row(
        what,
        "CPU s",
        spent,
        &format!("PyTorch and minigrid, from {steps} steps"),
        whole,
        whole / spent,
    );
    let acting =
        |side: &Value, steps: f64| Ok::<_, anyhow::Error>(1e6 * number(side, "acting_cpu_s")? / steps);
    let (mine, other) = (acting(&ours, number(&ours, "steps")?)?, acting(&theirs, steps)?);
    table.row(
        &format!("{what}, a step without learning"),
        "CPU µs",
        mine,
        "PyTorch and minigrid",
        other,
        other / mine,
    );
    Ok(())
}

/// A training by policy gradients: the word of `ppo.py`, its title, what `train` gets, its steps, and the score that counts.
const PPO: [(&str, &str, &[&str], u32, f64); 3] = [
    (
        "door-key",
        "`door-key-5x5` as bits, two trunks of 64 and 64",
        &["door-key-5x5", "--preset", "door-key-ppo"],
        150_000,
        0.9,
    ),
    (
        "numbers",
        "`cartpole-swingup-harder`, two trunks of 128 and 64",
        &["--config", "bench/ppo_numbers.toml"],
        160_000,
        200.0,
    ),
    (
        "pictures",
        "`car-racing`, 48×48×4, two convolutions",
        &["car-racing", "--preset", "car-racing-ppo", "--no-videos"],
        20_000,
        f64::INFINITY,
    ),
];

/// What keeps validations, whose share differs, out of a training.
const WITHOUT_VALIDATIONS: [&str; 5] = [
    "recipe.selection.every=10000000",
    "recipe.selection.tracks=1",
    "recipe.selection.final_tracks=1",
    "recipe.selection.report_tracks=1",
    "recipe.selection.evaluation_tracks=0",
];

/// Whole trainings by PPO on one thread: steps per CPU second, and CPU seconds to a score, beside a loop in `PyTorch` and
/// Stable-Baselines3 that step the same worlds in a batch through the package.
pub(crate) fn ppo_rows(python: &Path, folder: &Path, table: &mut Table) -> Result<()> {
    let mut build = crate::cargo();
    build.args(["build", "--release", "--quiet", "--package", "foveate-py"]);
    crate::run("cargo build --package foveate-py", &mut build)?;
    let sources = crate::python::link_module("release")?;
    for (task, title, args, steps, score) in PPO {
        eprintln!("PPO, {task} …");
        let mut ours = binary();
        ours.arg("train").args(args).args([
            "--workers",
            "1",
            "--seed",
            "1",
            "--name",
            task,
            "--runs",
            path(folder)?,
        ]);
        ours.args(["--steps", &steps.to_string()]);
        for key in WITHOUT_VALIDATIONS {
            ours.args(["--set", key]);
        }
        crate::capture("foveate train", &mut ours)?;
        let log = fs::read_to_string(folder.join(task).join("log.jsonl"))
            .context("reading the log of a training")?;
        let events: Vec<Value> =
            log.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("reading a log")?;
        let last =
            events.iter().rfind(|event| event["event"] == "report").context("a log without a report")?;
        let speed = number(last, "steps")? / number(last, "cpu_seconds")?;
        let reached = reached(&events, score)?;
        for (library, name) in [("torch", "a loop in PyTorch"), ("sb3", "Stable-Baselines3")] {
            eprintln!("PPO, {task}, {name} …");
            let mut theirs = reference(python, "ppo.py");
            theirs.args([task, library, &steps.to_string()]).env("PYTHONPATH", &sources);
            if score.is_finite() {
                theirs.arg(score.to_string());
            }
            let theirs = json("ppo.py", &mut theirs)?;
            let figure = number(&theirs, "steps")? / number(&theirs, "cpu_s")?;
            let what = format!("PPO, {title}, whole training");
            table.row(&what, "steps/CPU-s", speed, name, figure, speed / figure);
            if let (Some(reached), Some(other)) = (reached, theirs["score_cpu_s"].as_f64()) {
                let what = format!("PPO, {title}, to a mean return of {score}");
                table.row(&what, "CPU s", reached, name, other, other / reached);
            }
        }
    }
    Ok(())
}

/// CPU seconds until the mean return of the last 100 training episodes, or of the last rounds with as many, reached `score`.
fn reached(events: &[Value], score: f64) -> Result<Option<f64>> {
    let rounds: Vec<(f64, f64, f64)> = events
        .iter()
        .filter(|event| event["event"] == "generation")
        .map(|event| {
            let episodes = event["trained_on"].as_array().map_or(1, Vec::len);
            Ok((number(event, "mean")?, episodes as f64, number(event, "cpu_seconds")?))
        })
        .collect::<Result<_>>()?;
    for end in 1..=rounds.len() {
        let (mut sum, mut episodes) = (0.0, 0.0);
        for &(mean, count, _) in rounds[..end].iter().rev() {
            sum += mean * count;
            episodes += count;
            if episodes >= 100.0 {
                break;
            }
        }
        if episodes >= 100.0 && sum / episodes >= score {
            return Ok(Some(rounds[end - 1].2));
        }
    }
    Ok(None)
}
