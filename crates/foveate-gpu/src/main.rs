//! `foveate-gpu`: trains and evaluates S3TA on an NVIDIA GPU.
//!
//! ```sh
//! cargo run --release -p foveate-gpu -- train atari --option game=pong --name pong-gpu
//! ```

#![allow(clippy::print_stdout, reason = "a command prints its results")]

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand};
use foveate_agents::registry::{AgentConfig as _, Init};
use foveate_agents::s3ta::{S3taConfig, S3taStudent};
use foveate_core::{Env, Model as _, Outputs as _, Seed, StateDict, Tensor};
use foveate_envs::registry::EnvRequest;
use foveate_gpu::cuda::{Cuda, Precision};
use foveate_gpu::device::{Device, Memory};
use foveate_gpu::network::Network;
use foveate_gpu::training::{self, Sizes, Training};
use foveate_learn::Optimizer;
use foveate_run::clock::Wall;
use foveate_run::config::{TrainConfig, UserSettings};
use foveate_run::folder::FolderHandle;
use foveate_run::interrupt::stop_on_ctrl_c;
use foveate_run::lock::Lock;
use foveate_run::tensors::TensorFile;
use foveate_run::trust::{WorldOptions, WorldSpec};
use foveate_run::weights::AgentFile;
use foveate_run::{fit, initial, worlds};
use foveate_train::vtrace::VtraceConfig;
use serde_json::json;

/// Trains and evaluates S3TA on an NVIDIA GPU.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Which GPU.
    #[arg(long, global = true, default_value_t = 0)]
    gpu: usize,
    /// How products of matrices are computed.
    #[arg(long, global = true, value_enum, default_value_t)]
    precision: Precision,
}

#[derive(Subcommand)]
enum Command {
    /// Train by V-trace; settings are those of `foveate train`.
    Train(Train),
    /// Play episodes with trained weights, all at once.
    Eval(Evaluate),
    /// Compare outputs and gradients with those of the processor, and measure the time of both.
    Check(Check),
}

/// A world.
#[derive(Args, Clone)]
struct World {
    /// An option of the world, such as game=pong.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// A picture of the world.
    #[arg(long)]
    picture: Option<String>,
    /// Accept the world that the file names even if it runs code.
    #[arg(long = "trust-world")]
    trusted: bool,
}

#[derive(Args)]
struct Train {
    /// The world; atari if the run is new. A run that goes on keeps its own.
    world: Option<String>,
    #[command(flatten)]
    of: World,
    /// A preset of s3ta: s3ta-small, s3ta.
    #[arg(long, default_value = "s3ta-small")]
    preset: String,
    /// A file with settings.
    #[arg(long)]
    config: Option<PathBuf>,
    /// A setting, such as `recipe.stage.0.learning_rate=0.001`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// The folder runs/NAME is made; an existing one is resumed.
    #[arg(long)]
    name: String,
    /// Worlds that are played at once.
    #[arg(long, default_value_t = 128)]
    worlds: usize,
    /// Threads that step them; 0 for one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Stop after so many minutes.
    #[arg(long)]
    minutes: Option<f64>,
}

#[derive(Args)]
struct Evaluate {
    /// A weight file of s3ta.
    weights: PathBuf,
    /// The world; by default the one that the weights were trained in.
    #[arg(long)]
    env: Option<String>,
    #[command(flatten)]
    of: World,
    /// Episodes, each in a world of its own.
    #[arg(long, default_value_t = 64)]
    episodes: usize,
    /// Steps after which an episode is truncated.
    #[arg(long)]
    max_steps: Option<usize>,
    /// Draw actions instead of taking the most probable one.
    #[arg(long)]
    sample: bool,
    /// The seed of the episodes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads that step the worlds; 0 for one per core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

#[derive(Args)]
struct Check {
    /// Steps of a sequence.
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Sequences.
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// The network of s3ta-small instead of the published one.
    #[arg(long)]
    small: bool,
    /// Write weights, pictures and outputs here, for `bench/reference/s3ta_gpu.py`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Leave out the processor: only times, nothing is compared.
    #[arg(long)]
    only_gpu: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let device = || -> Result<Arc<dyn Device>> { Ok(Arc::new(Cuda::new(cli.gpu, cli.precision)?)) };
    match &cli.command {
        Command::Train(train) => run_training(train, &device),
        Command::Eval(evaluate) => run_evaluation(evaluate, &device),
        Command::Check(check) => run_check(check, &device()?),
    }
}

/// Names of runs are names of folders.
fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        bail!("--name {name:?}: use letters, digits, -, _ and .");
    }
    Ok(())
}

type Open<'a> = &'a dyn Fn() -> Result<Arc<dyn Device>>;

fn flags(id: Option<&str>, world: &World) -> Result<WorldSpec> {
    let mut options = WorldOptions::default();
    for option in &world.options {
        let Some((name, value)) = option.split_once('=') else {
            bail!("--option {option}: write NAME=VALUE, such as game=pong");
        };
        options.insert(name.to_owned(), value.to_owned());
    }
    Ok(WorldSpec {
        id: id.map(str::to_owned),
        picture: world.picture.clone(),
        options,
        trust: world.trusted,
        ..WorldSpec::default()
    })
}

fn threads(given: usize) -> usize {
    if given > 0 { given } else { foveate_run::workers::default_workers() }
}

/// What is to be trained: its settings, the agent's, the world.
struct Task {
    config: TrainConfig,
    agent: S3taConfig,
    request: EnvRequest,
    env: Box<dyn Env>,
}

/// `folder` is the run's, if there is one already.
fn task(train: &Train, folder: Option<&FolderHandle>) -> Result<Task> {
    let (config, env) = if let Some(folder) = folder.filter(|folder| folder.has(CONFIG)) {
        let path = folder.path().join(CONFIG);
        let Ok(text) = folder.read(CONFIG, MAX_CONFIG)? else {
            bail!("{} is longer than {MAX_CONFIG} bytes, so it is no configuration", path.display());
        };
        let mut config = TrainConfig::of_text(&String::from_utf8(text)?, &path)?;
        if train.config.is_some() || !train.sets.is_empty() {
            bail!(
                "{} is there already and goes on with its own settings; leave out --config and --set, or choose another --name",
                folder.path().display()
            );
        }
        if let Some(world) = train.world.as_ref().filter(|&world| *world != config.env.id) {
            bail!(
                "{} is trained in {}, not in {world}; choose another --name",
                folder.path().display(),
                config.env.id
            );
        }
        config.env.set_flags(flags(train.world.as_deref(), &train.of)?);
        (config, None)
    } else {
        let flags = flags(Some(train.world.as_deref().unwrap_or("atari")), &train.of)?;
        let said = UserSettings::read(train.config.as_deref(), &train.sets, &flags)?;
        let configured = fit::configure(Some(&train.preset), &said)?;
        (configured.config, configured.world)
    };
    if config.agent.name != "s3ta" {
        bail!("the agent is {}; s3ta alone is built for GPUs", config.agent.name);
    }
    let agent: S3taConfig = serde_json::from_value(config.agent.settings()?).context("agent.config")?;
    let request = config.env.request()?;
    let env = match env {
        Some(env) => env,
        None => worlds::make(request.clone())?,
    };
    Ok(Task { config, agent, request, env })
}

/// The learner's settings after so many steps.
fn learner(config: &TrainConfig, steps: u64) -> Result<VtraceConfig> {
    let [stage] = &config.recipe.stages[..] else {
        bail!("{} stages; on a GPU a recipe has one", config.recipe.stages.len());
    };
    let learner = stage.learner(&config.recipe.algorithm, steps)?;
    if learner.descriptor().name != "vtrace" {
        bail!("the learner is {}; vtrace alone is built for GPUs", learner.descriptor().name);
    }
    let settings: VtraceConfig = learner.table().clone().try_into()?;
    if settings.value_rounds > 0 {
        bail!("value_rounds = {}; GPUs have no rounds, so it must be 0", settings.value_rounds);
    }
    Ok(settings)
}

const CONFIG: &str = "config.toml";
/// Longer files are no configurations.
const MAX_CONFIG: u64 = 1 << 20;
const STATE: &str = "state.safetensors";
/// Longer ones are not read.
const MAX_STATE: u64 = 1 << 32;
const WEIGHTS: &str = "last.safetensors";

fn run_training(train: &Train, open: Open<'_>) -> Result<()> {
    check_name(&train.name)?;
    let path = Path::new("runs").join(&train.name);
    let Task { config, agent, request, env } = task(train, FolderHandle::open(&path).ok().as_ref())?;
    let settings = learner(&config, 0)?;
    let device = open()?;
    let network = Network::new(&device, &agent)?;
    let folder = FolderHandle::open_or_create(&path)?;
    let _lock = Lock::take(&folder)?;
    let seed = Seed::root(config.seed);
    let (params, optimizer, done, part) = if folder.has(STATE) {
        restored(&folder, &settings, network.params())
            .with_context(|| folder.path().join(STATE).display().to_string())?
    } else {
        let fresh = initial::fresh(&config.recipe.init, "s3ta", &config.agent.settings()?)?;
        let params = fresh(seed.child("params", 0));
        let optimizer = Optimizer::new(settings.optimizer, params.len());
        (params, optimizer, [0; 2], 0)
    };
    folder.write(CONFIG, config.to_toml())?;
    let sizes = Sizes {
        worlds: train.worlds,
        threads: threads(train.threads),
        max_steps: usize::try_from(config.recipe.max_steps).ok(),
    };
    let started = Wall::start();
    println!(
        "training s3ta ({} parameters) in {} on {}, {} worlds; everything goes to {}",
        network.params(),
        env.spec().id,
        device.name(),
        sizes.worlds,
        folder.path().display()
    );
    let mut training = Training::new(&network, &*env, &settings, sizes, (params, optimizer), seed, part)?;
    [training.steps, training.updates] = done;
    let mut log = folder.open_to_append("log.jsonl")?;
    let stop = stop_on_ctrl_c()?;
    let end = config.recipe.stages[0].steps;
    let limit = train.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    let shown_every = Duration::from_secs(if std::io::stdout().is_terminal() { 5 } else { 60 });
    let (mut shown, mut saved, mut logged) = (Wall::start(), Wall::start(), (Wall::start(), training.steps));
    let mut outcome = Ok(());
    while training.steps < end && !stop.asked() && limit.is_none_or(|limit| started.elapsed() < limit) {
        let now = learner(&config, training.steps)?;
        outcome = training.turn(&now);
        if outcome.is_err() {
            break;
        }
        if logged.0.elapsed() >= Duration::from_secs(5) && training.updates > done[1] {
            let rate = (training.steps - logged.1) as f64 / logged.0.elapsed().as_secs_f64();
            logged = (Wall::start(), training.steps);
            let mut line = json!({
                "event": "updates", "mode": "free-running", "steps": training.steps, "updates": training.updates,
                "seconds": started.elapsed().as_secs_f64(), "steps_per_second": rate,
                "return": training.returns.mean(), "episodes": training.returns.episodes,
                "learning_rate": now.learning_rate,
            });
            for (name, value) in training.measures() {
                line[name] = value.into();
            }
            writeln!(log, "{line}")?;
            if shown.elapsed() >= shown_every {
                shown = Wall::start();
                let mean = training.returns.mean().map_or("none yet".into(), |mean| format!("{mean:.1}"));
                println!(
                    "{:.0} s: {} steps, {} updates, {rate:.0} steps/s, last returns {mean} ({} episodes), entropy {:.3}",
                    started.elapsed().as_secs_f64(),
                    training.steps,
                    training.updates,
                    training.returns.episodes,
                    line["entropy"].as_f64().unwrap_or(f64::NAN),
                );
            }
        }
        if saved.elapsed() >= Duration::from_mins(1) {
            saved = Wall::start();
            save(&folder, &training, &agent, &request, part)?;
        }
    }
    save(&folder, &training, &agent, &request, part)?;
    outcome?;
    let mean = training.returns.mean().map_or("none".into(), |mean| format!("{mean:.2}"));
    println!(
        "{} steps in {:.0} s; mean of the last {} returns in training {mean}; weights are {}",
        training.steps - done[0],
        started.elapsed().as_secs_f64(),
        training.returns.recent.len(),
        folder.path().join(WEIGHTS).display()
    );
    Ok(())
}

/// Saves weights and state; a file is complete or not there.
fn save(
    folder: &FolderHandle,
    training: &Training<'_>,
    agent: &S3taConfig,
    request: &EnvRequest,
    part: u64,
) -> Result<()> {
    let file = AgentFile::new("s3ta", &serde_json::to_value(agent)?, training.params.clone())?
        .made_for(request)
        .note("source", format!("foveate-gpu train, {} steps", training.steps));
    folder.write(WEIGHTS, file.to_bytes())?;
    let mut state = StateDict::from([
        ("params".to_owned(), Tensor::from(training.params.clone())),
        ("counts".to_owned(), Tensor::from(vec![training.steps, training.updates, part])),
    ]);
    state.extend(training.optimizer.state());
    let file = TensorFile { metadata: BTreeMap::default(), tensors: state.into_iter().collect() };
    Ok(folder.write(STATE, file.to_bytes())?)
}

/// Parameters, optimiser, steps and updates, and the number of this part.
type State = (Vec<f32>, Optimizer, [u64; 2], u64);

fn restored(folder: &FolderHandle, settings: &VtraceConfig, count: usize) -> Result<State> {
    let bytes = match folder.read(STATE, MAX_STATE)? {
        Ok(bytes) => bytes,
        Err(size) => bail!("{size} bytes; at most {MAX_STATE} are read"),
    };
    let file = TensorFile::from_bytes(&bytes)?;
    let state: StateDict = file.tensors.into_iter().collect();
    let saved = foveate_core::StateReader(&state);
    let params = saved.f32s("params", 1)?.to_vec();
    if params.len() != count {
        bail!("it has {} parameters, {count} are due; the settings have changed", params.len());
    }
    let counts = saved.counts("counts", 3)?;
    let mut optimizer = Optimizer::new(settings.optimizer, count);
    optimizer.restore(&state)?;
    Ok((params, optimizer, [counts[0], counts[1]], counts[2] + 1))
}

fn run_evaluation(evaluate: &Evaluate, open: Open<'_>) -> Result<()> {
    let file = AgentFile::load(&evaluate.weights)?;
    let name = evaluate.weights.display().to_string();
    if file.name() != "s3ta" {
        bail!("{name} holds weights of {}; s3ta alone is built for GPUs", file.name());
    }
    let request = match &evaluate.env {
        Some(id) => flags(Some(id), &evaluate.of)?.request(),
        None => match file.world(&name) {
            Some(world) => world.accept(&flags(None, &evaluate.of)?)?,
            None => bail!("{name} does not say which world it was trained in; name one with --env"),
        },
    };
    let agent: S3taConfig = serde_json::from_value(file.config().clone())?;
    let device = open()?;
    let network = Network::new(&device, &agent)?;
    network.set_params(file.params())?;
    let env = worlds::make(request)?;
    let sizes = Sizes {
        worlds: evaluate.episodes,
        threads: threads(evaluate.threads),
        max_steps: evaluate.max_steps,
    };
    let seed = Seed::root(evaluate.seed).child("evaluation", 0);
    let returns = training::evaluate(&network, &*env, sizes, !evaluate.sample, seed)?;
    let summary = foveate_train::Summary::of(&returns);
    println!("{}", json!({ "returns": returns, "mean": summary.mean, "std": summary.std }));
    Ok(())
}

fn run_check(check: &Check, device: &Arc<dyn Device>) -> Result<()> {
    let layer = |filters, size, stride| foveate_agents::config::ConvolutionLayer { filters, size, stride };
    let config = if check.small {
        S3taConfig {
            actions: 6,
            convolutions: vec![layer(16, 8, 4), layer(32, 4, 2)],
            channels: 32,
            frequencies: 2,
            score_scale: 0.5,
            query_hidden: vec![64],
            answer_hidden: vec![128],
            units: 128,
            trunk: 64,
            ..S3taConfig::default()
        }
    } else {
        S3taConfig::default()
    };
    let (steps, batch) = (check.steps, check.batch);
    let network = Network::new(device, &config)?;
    let params = config.initial_params(Init::He, Seed::root(1));
    network.set_params(&params)?;
    let (pixels, told_len, rows): (usize, usize, usize) =
        (config.view.iter().product(), 1 + config.actions, steps * batch);
    let mut rng = Seed::root(2).rng();
    let pictures: Vec<u8> = (0..rows * pixels).map(|_| rng.below(256) as u8).collect();
    let told = vec![0.0; rows * told_len];
    let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect() };
    let (d_logits, d_values) = (numbers(rows * config.actions), numbers(rows));
    let ops = network.ops();
    let on_device = Memory::bytes(device, pictures.len())?;
    ops.write_bytes(on_device.all_bytes(), &pictures)?;
    let pass = network.pass(steps, batch, true)?;
    pass.tell(ops, &told, &vec![0; rows])?;
    let learn = || -> Result<(Vec<f32>, Vec<f32>, Vec<f32>)> {
        network.forward(&pass, on_device.all_bytes())?;
        let (logits, values) = pass.outputs(ops)?;
        let gradient = network.backward(&pass, on_device.all_bytes(), &d_logits, &d_values)?;
        Ok((logits, values, gradient))
    };
    let (logits, values, gradient) = learn()?;
    let fastest = |f: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let begin = Wall::start();
            f()?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        Ok(best)
    };
    let learning = rows as f64 / fastest(&mut || learn().map(|_| ()))?;
    let acting = network.pass(1, batch, false)?;
    acting.tell(ops, &told[..batch * told_len], &vec![0; batch])?;
    let acted = batch as f64
        / fastest(&mut || {
            network.forward(&acting, on_device.all_bytes().part(0, batch * pixels))?;
            acting.outputs(ops)?;
            Ok(())
        })?;
    let mut report = json!({
        "device": device.name(), "steps": steps, "batch": batch, "parameters": network.params(),
        "learning_steps_per_second": learning, "acting_steps_per_second": acted,
    });
    if let Some(out) = &check.out {
        let out = FolderHandle::open_or_create(out)?;
        let bytes = |x: &[f32]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        for (name, data) in [
            ("params", bytes(&params)),
            ("pictures", pictures.clone()),
            ("d_logits", bytes(&d_logits)),
            ("d_values", bytes(&d_values)),
            ("logits", bytes(&logits)),
            ("gradient", bytes(&gradient)),
        ] {
            out.write(name, data)?;
        }
    }
    if !check.only_gpu {
        let mut student = S3taStudent::new(&config)?;
        student.set_params(&params)?;
        let inputs: Vec<f32> = pictures
            .chunks_exact(pixels)
            .flat_map(|picture| {
                picture
                    .iter()
                    .map(|&x| f32::from(x) * (config.pixel_scale / 255.0))
                    .chain(std::iter::repeat_n(0.0, told_len))
            })
            .collect();
        let memories = vec![0.0; student.memory_len() * batch];
        let begin = Wall::start();
        let expect = student.forward(steps, &inputs, &memories).clone();
        let mut wanted = vec![0.0; params.len()];
        student.backward(&d_logits, &d_values, &mut wanted);
        report["processor_learning_steps_per_second"] = (rows as f64 / begin.elapsed().as_secs_f64()).into();
        report["logits_differ_by"] = relative(&logits, &expect.outputs).into();
        report["values_differ_by"] = relative(&values, &expect.values).into();
        report["gradient_differs_by"] = relative(&gradient, &wanted).into();
        println!("{report:#}");
        for what in ["logits_differ_by", "values_differ_by", "gradient_differs_by"] {
            let away = report[what].as_f64().unwrap_or(f64::NAN);
            if away.is_nan() || away > 1e-3 {
                bail!("{what} {away:.1e} of their norm; 1e-3 is allowed, with --precision f32");
            }
        }
        return Ok(());
    }
    println!("{report:#}");
    Ok(())
}

/// The norm of the difference, divided by that of what is expected.
fn relative(got: &[f32], expect: &[f32]) -> f64 {
    let norm = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|x| x * x).sum::<f64>().sqrt();
    let pairs = got.iter().zip(expect);
    norm(&mut pairs.map(|(a, b)| f64::from(a - b))) / norm(&mut expect.iter().map(|&x| f64::from(x)))
}
