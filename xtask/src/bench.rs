//! `cargo xtask bench`: our speed beside what people use today.
//!
//! Every ratio compares two measurements of the same run on the same machine: CPU seconds, one thread. Both sides do
//! the same work: Gymnasium's actions are replayed by ours, and the returns of the episodes must agree to the bit;
//! frames and weights that ours writes are read by the references, and the patches chosen must be the same; else there
//! is no table. Where the fastest of several passes counts, both sides have as many, or as much time for them.
//! `docs/speed.md` says what each row compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{attention, capture, cargo, command, learn, python, root, run as run_step};

const ROWS: [&str; 15] = [
    "world",
    "cartpole",
    "minigrid",
    "forward",
    "sensors",
    "attention",
    "train",
    "evolve",
    "learn",
    "q-learning",
    "ppo",
    "s3ta",
    "bridge",
    "package",
    "control",
];
/// Those that the command measures.
const BY_COMMAND: [&str; 5] = ["world", "forward", "train", "evolve", "ppo"];
/// Beside the rows: the pictures of `attention` replace those of the documentation.
const PICTURES: &str = "pictures";
/// What every reference runs with: memory of a size that it needs again and again is not given back to the system in
/// between. Without it `PyTorch` takes one of two times, from process to process.
const MEMORY: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "33554432"), ("MALLOC_TRIM_THRESHOLD_", "1073741824")];
/// Instruction sets by name, and their titles.
const LEVELS: [(&str, &str); 4] =
    [("avx512", "AVX-512"), ("avx2", "AVX2"), ("neon", "NEON"), ("portable", "portable")];
const CHAMPION: &str = "champions/car-racing.safetensors";

/// Measures the chosen rows (all when none is chosen) and prints the table.
pub(crate) fn run(rows: &[&str]) -> Result<()> {
    let (words, rows): (Vec<&str>, Vec<&str>) = rows.iter().partition(|row| **row == PICTURES);
    if let Some(unknown) = rows.iter().find(|row| !ROWS.contains(row)) {
        bail!("no row is called {unknown:?}; choose from: {}, {PICTURES}", ROWS.join(", "));
    }
    let wanted = |row: &str| rows.is_empty() || rows.contains(&row);
    let requirements = ["python/requirements-oracle.txt", "python/requirements-bench.txt"];
    let python = if rows.iter().all(|row| *row == "control") && !rows.is_empty() {
        PathBuf::new() // it has an environment of its own
    } else {
        python::environment(".venv-bench", &requirements, python::Dependencies::Found)?
    };
    if BY_COMMAND.iter().any(|row| wanted(row)) {
        run_step(
            "cargo build",
            cargo().args([
                "build",
                "--release",
                "--quiet",
                "--package",
                "foveate-cli",
                "--features",
                "eigen",
            ]),
        )?;
    }
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;

    let mut table = Table::default();
    if wanted("world") {
        // The reference drives first: the actions that it records are what everyone replays.
        eprintln!("running Gymnasium and EnvPool …");
        let world = json("world.py", reference(&python, "world.py").arg(&folder).arg(CHAMPION))?;
        let ours = foveate(&["bench", "world", "--passes", "2", "--actions", path(&folder)?, "--json"])?;
        world_rows(&world, &ours, &mut table)?;
    }
    if wanted("cartpole") {
        cartpole_rows(&python, &empty(folder.join("cartpole"))?, &mut table)?;
    }
    if wanted("minigrid") {
        minigrid_rows(&python, &empty(folder.join("minigrid"))?, &mut table)?;
    }
    if wanted("forward") {
        forward_rows(&python, &folder, &mut table)?;
    }
    if wanted("sensors") {
        sensors_rows(&python, &mut table)?;
        picture_rows(&python, &mut table)?;
    }
    if wanted("attention") {
        attention::rows(&python, &folder, !words.is_empty(), &mut table)?;
    }
    if wanted("train") {
        train_rows(&python, &mut table)?;
    }
    if wanted("evolve") {
        evolve_rows(&python, &mut table)?;
    }
    if wanted("learn") {
        learn::rows(&python, &empty(folder.join("learn"))?, &mut table)?;
    }
    if wanted("q-learning") {
        learn::training_rows(&python, &mut table)?;
    }
    if wanted("ppo") {
        learn::ppo_rows(&python, &empty(folder.join("ppo"))?, &mut table)?;
    }
    if wanted("s3ta") {
        learn::s3ta_rows(&python, &empty(folder.join("s3ta"))?, &mut table)?;
    }
    if wanted("bridge") {
        bridge_rows(&python, &mut table)?;
    }
    if wanted("package") {
        package_rows(&python, &folder, &mut table)?;
    }
    if wanted("control") {
        control_rows(&mut table)?;
    }
    table.print();
    Ok(())
}

/// A program of `bench/reference`, ready to run.
pub(crate) fn reference(python: &Path, program: &str) -> Command {
    let mut reference = command(python);
    reference.arg(format!("bench/reference/{program}")).envs(MEMORY);
    reference
}

/// Pictures of the DeepMind Control suite beside software OpenGL, the mean difference in the row's name; and whole steps of an agent
/// that sees them, beside a step of `dm_control` that draws.
fn control_rows(table: &mut Table) -> Result<()> {
    let worlds = python::worlds()?;
    eprintln!("drawing with dm_control and by ourselves …");
    let mut frames = example("foveate-render", "frames");
    let frames = json("the frames example", frames.arg("20").env("FOVEATE_WORLDS_PYTHON", &worlds))?;
    for row in list(&frames, "pictures")? {
        let [ours, plain, theirs] = ["ms", "plain_ms", "opengl_ms"].map(|key| number(row, key));
        let (ours, plain, theirs) = (ours?, plain?, theirs?);
        let (task, size) = (row["task"].as_str().unwrap_or("?"), row["size"].as_str().unwrap_or("?"));
        let what =
            format!("A picture of {task}, {size}, mean difference {:.2} of 255", number(row, "error")?);
        table.row(&what, "CPU ms", ours, "dm_control, software OpenGL", theirs, theirs / ours);
        table.row(
            &format!("{what}; without anti-aliasing"),
            "CPU ms",
            plain,
            "the same",
            theirs,
            theirs / plain,
        );
    }
    let mut steps = example("foveate-registry", "pixel_steps");
    let environment = worlds.parent().and_then(Path::parent).context("an interpreter in an environment")?;
    let steps = json("the pixel_steps example", steps.env("FOVEATE_MUJOCO", environment))?;
    for row in list(&steps, "steps")? {
        let (whole, world) = (number(row, "ms")?, number(row, "world_ms")?);
        let what = format!(
            "A step of {} and a decision of IAP with ReLU features, 100x100",
            row["task"].as_str().unwrap_or("?")
        );
        table.row(&what, "CPU ms", whole, "of it the world", world, world / whole);
    }
    Ok(())
}

/// CPU time of a step through the bridge, all processes together, beside Gymnasium's vector environments: a trivial
/// environment that shows 96 × 96 × 3 bytes. Twice: on the machine as it is, and with every core kept awake.
fn bridge_rows(python: &Path, table: &mut Table) -> Result<()> {
    const STEPS: &str = "20000";
    let toys = root().join("crates/foveate-gym/tests/toys");
    for condition in ["machine as it is", "beside a busy loop"] {
        let _loops =
            if condition == "beside a busy loop" { BusyLoops::start()? } else { BusyLoops::default() };
        for workers in ["1", "2"] {
            eprintln!("{condition}: running {workers} of Gymnasium's workers, then ours …");
            let theirs = json("bridge.py", reference(python, "bridge.py").arg(&toys).args([STEPS, workers]))?;
            let mut ours = example("foveate-gym", "bridge");
            ours.args(["foveate_toys:Toys/Trivial-v0", STEPS, workers, &format!("path={}", path(&toys)?)]);
            let us = number(&json("the bridge example", ours.env("FOVEATE_PYTHON", python))?, "us")?;
            let plural = if workers == "1" { "" } else { "s" };
            for (key, name) in [
                ("sync", "SyncVectorEnv, in one process"),
                ("async_shared", "AsyncVectorEnv, shared memory"),
                ("async_pickled", "AsyncVectorEnv, pickled"),
                ("envpool", "EnvPool's CartPole, 4 numbers, in threads"),
            ] {
                let reference = number(&theirs[key], "us")?;
                let what = format!("A step of `gym:ID`, 96×96×3, {workers} worker{plural}, {condition}");
                table.row(&what, "CPU µs", us, name, reference, reference / us);
            }
        }
    }
    Ok(())
}

/// `CarRacing` through the package for Python: batches on two threads beside Gymnasium's processes and `EnvPool`'s threads, and what a
/// call from Python adds to a step.
fn package_rows(python: &Path, folder: &Path, table: &mut Table) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--release", "--quiet", "--package", "foveate-py"]);
    crate::run("cargo build --package foveate-py", &mut build)?;
    let sources = crate::python::link_module("release")?;
    if !folder.join("actions_0.jsonl").exists() {
        eprintln!("recording drives in Gymnasium …");
        json("world.py", reference(python, "world.py").arg(folder).arg(CHAMPION))?;
    }
    eprintln!("running batches of worlds from Python …");
    let theirs = json("package.py", reference(python, "package.py").arg(folder).env("PYTHONPATH", sources))?;
    let ours = foveate(&["bench", "world", "--passes", "3", "--actions", path(folder)?, "--json"])?;
    let worlds = number(&theirs, "worlds")?;
    for picture in ["exact", "fast", "classic"] {
        for (key, name) in [("gymnasium", "Gymnasium, `async`"), ("envpool", "EnvPool, 2 threads")] {
            if theirs[key].is_null() {
                continue;
            }
            for (clock, unit) in [("wall", "steps/s"), ("cpu", "steps/CPU-s")] {
                let (speed, figure) = (number(&theirs[picture], clock)?, number(&theirs[key], clock)?);
                let what = format!("{worlds} CarRacing from Python, 2 threads, `{picture}`");
                table.row(&what, unit, speed, name, figure, speed / figure);
            }
        }
    }
    // The steps of the quickest of the pictures that both play: beside those of `exact` a call is too short to be measured.
    for timing in list(&ours, "world")?.iter().filter(|timing| timing["picture"] == "fast") {
        let native = 1e6 * number(timing, "cpu_s")? / number(timing, "steps")?;
        for (key, what) in [("class", "the class"), ("make", "`gymnasium.make`")] {
            let through = number(&theirs["single_fast"], key)?;
            let what = format!("A step of CarRacing `fast` through {what}, less the native step");
            table.row(&what, "CPU µs", through - native, "native step", native, native / (through - native));
        }
    }
    let pole = number(&theirs["pole"], "class")?;
    table.row("A step of CartPoleSwingUpHarder through the class", "CPU µs", pole, "limit", 5.0, 5.0 / pole);
    Ok(())
}

/// A process for every core that computes nothing, at the lowest priority, so that no core sleeps and none has to be
/// woken. They end with this value, and with this process.
#[derive(Default)]
struct BusyLoops(Vec<std::process::Child>);

impl BusyLoops {
    fn start() -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let this = std::env::current_exe().context("finding this program")?;
        let mut loops = BusyLoops::default();
        for _ in 0..cores {
            let mut nice = Command::new("nice");
            nice.args(["-n", "19"]).arg(&this).arg(BUSY).stdin(std::process::Stdio::piped());
            loops.0.push(nice.spawn().context("starting a busy loop with nice")?);
        }
        Ok(loops)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The word with which this program is a busy loop.
pub(crate) const BUSY: &str = "busy-loop";

/// Keeps a core busy until the standard input ends, as it does when whoever started it is gone.
pub(crate) fn busy_loop() {
    std::thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// Steps per CPU second: physics alone beside Gymnasium that draws nothing, every picture beside Gymnasium as it is, and
/// `fast` beside `EnvPool`.
fn world_rows(theirs: &Value, ours: &Value, table: &mut Table) -> Result<()> {
    let steps = number(theirs, "steps")?;
    let drawing = steps / number(theirs, "gymnasium_cpu_s")?;
    let not_drawing = steps / number(theirs, "gymnasium_not_drawing_cpu_s")?;
    let expected: Vec<f64> =
        list(theirs, "episodes")?.iter().map(|episode| number(episode, "return")).collect::<Result<_>>()?;
    for timing in list(ours, "world")? {
        let picture = timing["picture"].as_str().context("a timing names its picture")?;
        // `classic` has other tracks, and drives of its own on them.
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
        let (what, reference, figure) = match picture {
            "none" => ("CarRacing, physics alone".to_string(), "Gymnasium, not drawing", not_drawing),
            picture => (format!("CarRacing, picture `{picture}`"), "Gymnasium", drawing),
        };
        table.row(&what, "steps/CPU-s", speed, reference, figure, speed / figure);
        let envpool = &theirs["envpool"];
        if picture == "fast" && !envpool.is_null() {
            let figure = number(envpool, "steps")? / number(envpool, "cpu_s")?;
            table.row(&what, "steps/CPU-s", speed, "EnvPool", figure, speed / figure);
        }
    }
    Ok(())
}

/// Microseconds per decision of every instruction set, beside `NumPy` and `PyTorch`, on the same frames and weights:
/// the champion's on a lap, and the published ones on golden frames where they are there.
fn forward_rows(python: &Path, folder: &Path, table: &mut Table) -> Result<()> {
    let passes = ["bench", "forward", "--passes", "30", "--json", "--write", path(folder)?];
    let timings = foveate(&passes)?;
    let timings = list(&timings, "forward")?;
    let mut ours = serde_json::Map::new();
    for timing in timings {
        let level = timing["level"].as_str().context("a timing names its instruction set")?;
        ours.insert(format!("{level}_us"), timing["us"].clone());
        ours.insert("chosen_sum".into(), timing["chosen_sum"].clone());
    }
    let files = [folder.join("frames.u8"), folder.join("params.f32")];
    forward_of("champion on a lap", &Value::Object(ours), &files, python, table)?;

    let data = data();
    let files =
        ["golden_attention_agent_carracing.npz", "attention_agent_carracing.npz"].map(|f| data.join(f));
    if files.iter().all(|file| file.exists()) {
        let mut ours = example("foveate-agents", "forward");
        let ours = json("the forward example", ours.arg("--json").env("FOVEATE_DATA", &data))?;
        forward_of("published weights on golden frames", &ours, &files, python, table)?;
    }

    Ok(())
}

/// The folder of published weights and golden frames, which may be missing.
fn data() -> PathBuf {
    std::env::var_os("FOVEATE_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from)
}

/// An example program of a crate, in a release build, ready to run.
pub(crate) fn example(package: &str, name: &str) -> Command {
    let mut example = cargo();
    example.args(["run", "--release", "--quiet", "-p", package, "--example", name, "--"]);
    example
}

/// Steps of `cartpole-swingup-harder` per CPU second, by itself and in the loop of all episodes, beside the same world
/// in Python: the same actions, whose returns and last observations must be equal to the bit.
fn cartpole_rows(python: &Path, folder: &Path, table: &mut Table) -> Result<()> {
    eprintln!("running CartPoleSwingUpHarder in Python …");
    let theirs = json("cartpole.py", reference(python, "cartpole.py").arg(folder))?;
    let ours = json("the cartpole example", example("foveate-envs", "cartpole").arg(folder).arg("--json"))?;
    for (episode, (mine, seen)) in
        list(&theirs, "episodes")?.iter().zip(list(&ours, "returns")?.iter().zip(list(&ours, "seen")?))
    {
        ensure!(
            episode["return"] == *mine && episode["seen"] == *seen,
            "the actions of seed {} gave the return {mine} and a last observation of sum {seen}; in Python {} and {}",
            episode["seed"],
            episode["return"],
            episode["seen"]
        );
    }
    let steps = number(&ours, "steps")?;
    ensure!(steps == number(&theirs, "steps")?, "other numbers of steps");
    for (key, way) in [
        ("step", "`step` and `observation`"),
        ("episode", "steps of an episode"),
        ("batch", "100 worlds in one batch"),
    ] {
        let speed = steps / number(&ours, &format!("{key}_cpu_s"))?;
        for (key, name) in [
            ("gymnasium", "Python, `gymnasium.make`"),
            ("class", "Python, the class alone"),
            ("plain", "Python, plain floats"),
        ] {
            let figure = steps / number(&theirs, &format!("{key}_cpu_s"))?;
            let what = format!("`cartpole-swingup-harder`, {way}");
            table.row(&what, "steps/CPU-s", speed, name, figure, speed / figure);
        }
    }
    Ok(())
}

/// Steps of MiniGrid's worlds per CPU second, with their observation, beside the package: the same actions, whose returns
/// and observations must be equal.
fn minigrid_rows(python: &Path, folder: &Path, table: &mut Table) -> Result<()> {
    eprintln!("running MiniGrid in Python …");
    let theirs = json("mini_grid.py", reference(python, "mini_grid.py").arg(folder))?;
    let ours = json("the minigrid example", example("foveate-envs", "minigrid").arg(folder).arg("--json"))?;
    for (world, theirs) in theirs.as_object().context("mini_grid.py names its worlds")? {
        let ours = &ours[world];
        let (returns, shown) = (list(ours, "returns")?, list(ours, "shown")?);
        let episodes = list(theirs, "episodes")?;
        ensure!(
            returns.len() == episodes.len(),
            "{world}: {} episodes, the package's are {}",
            returns.len(),
            episodes.len()
        );
        for (i, (episode, (mine, seen))) in episodes.iter().zip(returns.iter().zip(shown)).enumerate() {
            ensure!(
                episode["return"] == *mine && episode["shown"] == *seen,
                "{world}: the actions of episode {i} gave the return {mine} and observations of sum {seen}; in Python {} \
                 and {}",
                episode["return"],
                episode["shown"]
            );
        }
        let steps = number(theirs, "steps")?;
        let speed = steps / number(ours, "cpu_s")?;
        let what = format!("`{world}`, `step` and `observation`");
        for (key, name) in
            [("gymnasium", "minigrid, `gymnasium.make`"), ("class", "minigrid, the class alone")]
        {
            let figure = steps / number(theirs, &format!("{key}_cpu_s"))?;
            table.row(&what, "steps/CPU-s", speed, name, figure, speed / figure);
        }
        let pool = &theirs["envpool"];
        if !pool.is_null() {
            let figure = number(pool, "steps")? / number(pool, "cpu_s")?;
            table.row(&what, "steps/CPU-s", speed, "EnvPool, 64 worlds together", figure, speed / figure);
        }
    }
    Ok(())
}

/// Makes the folder, without what an earlier run left in it.
fn empty(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

/// The time of a decision of AttentionNeuron on pictures beside NumPy and PyTorch: the published CarRacing agent on
/// golden pictures, where they are there, and the architecture of the Pong agent.
fn picture_rows(python: &Path, table: &mut Table) -> Result<()> {
    let data = data();
    let files = ["golden_attention_neuron_carracing_pi.npz", "attention_neuron_carracing_pi.npz"];
    let files = files.map(|file| data.join(file));
    eprintln!("running NumPy and PyTorch on pictures …");
    let mut reference = reference(python, "attention_neuron_pictures.py");
    if files.iter().all(|file| file.exists()) {
        reference.args(files);
    }
    let theirs = json("attention_neuron_pictures.py", &mut reference)?;
    let mut ours = example("foveate-agents", "picture_forward");
    let ours = json("the picture_forward example", ours.arg("--json").env("FOVEATE_DATA", data))?;
    for (agent, work) in
        [("carracing", "CarRacing, 96×96×4, 1,024 codes"), ("pong", "Pong, 84×84×4, 400 codes")]
    {
        let sums = |from: &'_ Value| from[format!("{agent}_sums")].as_array().cloned();
        let Some(others) = sums(&theirs) else { continue };
        let mine = sums(&ours).with_context(|| format!("{work}: the example gives no sums"))?;
        ensure!(mine.len() == others.len(), "{work}: {} stacks here, {} in NumPy", mine.len(), others.len());
        // None where rounding decides which codes are chosen.
        let known =
            mine.iter().zip(&others).filter_map(|(mine, other)| Some((mine.as_f64()?, other.as_f64()?)));
        let known: Vec<(f64, f64)> = known.collect();
        ensure!(2 * known.len() >= mine.len(), "{work}: {} of {} stacks compare", known.len(), mine.len());
        for (mine, other) in known {
            ensure!(
                (mine - other).abs() < 0.01,
                "{work}: outputs of a stack sum to {mine}, in NumPy to {other}"
            );
        }
        neuron_rows(agent, work, &ours, &theirs, table);
    }
    Ok(())
}

/// The same on numbers: the published architectures for CartPole and Ant.
fn sensors_rows(python: &Path, table: &mut Table) -> Result<()> {
    eprintln!("running NumPy and PyTorch on sensors …");
    let theirs = json("attention_neuron_numbers.py", &mut reference(python, "attention_neuron_numbers.py"))?;
    let ours =
        json("the numbers_forward example", example("foveate-agents", "numbers_forward").arg("--json"))?;
    for (agent, work) in [("cartpole", "CartPole, 5 numbers"), ("ant", "Ant, 28 numbers")] {
        let sum = |from: &Value| number(from, &format!("{agent}_sum"));
        let (mine, other) = (sum(&ours)?, sum(&theirs)?);
        // Rounding differs, and the action of a step is an input of the next.
        ensure!((mine - other).abs() < 0.01, "{work}: outputs sum to {mine} here and to {other} in NumPy");
        neuron_rows(agent, work, &ours, &theirs, table);
    }
    Ok(())
}

/// The rows of one AttentionNeuron.
fn neuron_rows(agent: &str, work: &str, ours: &Value, theirs: &Value, table: &mut Table) {
    for (level, title) in LEVELS {
        let Some(us) = ours[format!("{agent}_{level}_us")].as_f64() else { continue };
        for (name, key) in [("NumPy", "numpy"), ("PyTorch", "torch")] {
            if let Some(reference) = theirs[format!("{agent}_{key}_us")].as_f64() {
                let what = format!("AttentionNeuron forward, {work}, {title}");
                table.row(&what, "CPU µs", us, name, reference, reference / us);
            }
        }
    }
}

/// The rows of one set of frames and weights.
fn forward_of(
    work: &str,
    ours: &Value,
    [frames, weights]: &[PathBuf; 2],
    python: &Path,
    table: &mut Table,
) -> Result<()> {
    eprintln!("running NumPy and PyTorch, {work} …");
    let mut reference = reference(python, "attention_agent_forward.py");
    let theirs = json("attention_agent_forward.py", reference.arg(frames).arg(weights))?;
    ensure!(
        ours["chosen_sum"] == theirs["chosen_sum"],
        "{work}: the patches chosen by ours sum to {}, by NumPy to {}",
        ours["chosen_sum"],
        theirs["chosen_sum"]
    );
    for (level, title) in LEVELS {
        let Some(us) = ours[format!("{level}_us")].as_f64() else { continue };
        for (name, key) in [
            ("NumPy, as usually written", "numpy"),
            ("NumPy, tuned", "numpy_tuned"),
            ("PyTorch", "torch"),
            ("PyTorch, compiled", "torch_compiled"),
        ] {
            if let Some(reference) = theirs[format!("{key}_us")].as_f64() {
                let what = format!("AttentionAgent forward, {work}, {title}");
                table.row(&what, "CPU µs", us, name, reference, reference / us);
            } else if level == "avx2" || level == "neon" {
                eprintln!("no row for {name}: {}", theirs[format!("{key}_why")]);
            }
        }
    }
    Ok(())
}

/// Steps of training per CPU second beside the Python stacks, with and without the time of the strategy: theirs is
/// `pycma` with its full covariance matrix, ours that of the preset.
fn train_rows(python: &Path, table: &mut Table) -> Result<()> {
    eprintln!("running Gymnasium and EnvPool with pycma (some minutes) …");
    let theirs = json("train.py", reference(python, "train.py").arg(CHAMPION))?;
    let driven = foveate(&["eval", "--seeds", "0..2", "--json"])?;
    // Rounding may change a gaze here and there; another agent, track or rule would change everything.
    for (ours, theirs) in list(&driven, "returns")?.iter().zip(list(&theirs, "checks")?) {
        let (ours, theirs) = (ours.as_f64().context("a return")?, theirs.as_f64().context("a return")?);
        ensure!(
            (ours - theirs).abs() < 150.0,
            "the champion reaches {theirs} in Gymnasium where it reaches {ours} here: not the same work"
        );
    }
    for timing in list(&foveate(&["bench", "train", "--passes", "1", "--json"])?, "train")? {
        let start = timing["start"].as_str().context("a timing names its start")?;
        let what = match start {
            "fresh" => "Training, first generations",
            _ => "Training, around trained weights",
        };
        for (key, name) in [("gymnasium", "Gymnasium + PyTorch"), ("envpool", "EnvPool + tuned NumPy")] {
            let reference = &theirs[key][start];
            let speed = |side: &Value, strategy: bool| {
                let spared = if strategy { 0.0 } else { number(side, "evolution_cpu_s")? };
                Ok::<_, anyhow::Error>(number(side, "steps")? / (number(side, "cpu_s")? - spared))
            };
            for (strategy, what, name) in [
                (true, what.to_string(), format!("{name} + pycma")),
                (false, format!("{what}, without the strategy"), name.to_string()),
            ] {
                let (ours, theirs) = (speed(timing, strategy)?, speed(reference, strategy)?);
                table.row(&what, "steps/CPU-s", ours, &name, theirs, ours / theirs);
            }
            eprintln!(
                "{what}, {name}: {:.0} steps a rollout, ours {:.0}",
                number(reference, "steps")? / number(reference, "rollouts")?,
                number(timing, "steps")? / number(timing, "rollouts")?,
            );
        }
    }
    Ok(())
}

/// CPU seconds of CMA-ES per generation and its memory, beside pycma, averaged over the generations that one
/// factorisation of the covariance matrix lasts; in every form that this build has.
fn evolve_rows(python: &Path, table: &mut Table) -> Result<()> {
    eprintln!("running pycma …");
    let ours = foveate(&["bench", "evolve", "--passes", "2", "--json"])?;
    let timings = list(&ours, "evolve")?;
    let timing = timings.first().context("no timing of CMA-ES")?;
    let size = |key: &str| Ok::<_, anyhow::Error>(timing[key].as_u64().context("a count")?.to_string());
    let theirs = json(
        "cma_es.py",
        reference(python, "cma_es.py").args([size("params")?, size("population")?, size("interval")?]),
    )?;
    for timing in timings {
        let form = timing["form"].as_str().context("a timing names its form")?;
        let what = format!("CMA-ES, n = {}, population {}, `{form}`", size("params")?, size("population")?);
        let (cpu, reference) = (number(timing, "cpu_s")?, number(&theirs, "cpu_s")?);
        table.row(&what, "CPU s/generation", cpu, "pycma", reference, reference / cpu);
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
    json("foveate", binary().args(args))
}

/// The release binary, ready to run.
pub(crate) fn binary() -> Command {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    command(target.join("release/foveate"))
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
