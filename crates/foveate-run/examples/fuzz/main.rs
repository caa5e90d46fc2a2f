//! Damaged inputs, one after the other, for as long as is asked: `cargo xtask fuzz [TARGET] [--seconds N]`.
//!
//! Each input is read as the program reads it. A panic, a crash, an error of more than one line or an input that takes more than 20
//! seconds of processor time ends the program with an error, and the input stays where its first line says; with that file in the
//! place of the numbers, it reads this input alone. The damages depend on the seed alone. Coverage-guided targets are in `fuzz/`;
//! these here need no other compiler.

#![expect(clippy::print_stdout, reason = "a program whose output is its result")]

mod models;

use std::env;
use std::error::Error;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use foveate_core::{ImageBuf, Rng, Seed, Tensor, TensorData};
use foveate_film::{GifFilm, encode_png};
use foveate_registry::PRESETS;
use foveate_run::clock::{ProcessCpu, Wall};
use foveate_run::config::{TrainConfig, UserSettings};
use foveate_run::failure::Failure;
use foveate_run::fit;
use foveate_run::pictures;
use foveate_run::tensors::TensorFile;
use foveate_run::train::{self, ResumeRequest, TrainRequest};
use foveate_run::trust::WorldSpec;
use foveate_run::workers::Stop;
use foveate_train::{LEARNERS, LearnerDescriptor, LearnsFrom};
use sha2::{Digest, Sha256};

/// Seconds of processor time that one input may take, and of time.
const PATIENCE: [u64; 2] = [20, 200];

/// What reading an input gives: whether it was accepted, or the message of its refusal.
type Outcome = Result<(), String>;

/// Makes a bad input of a good one and all others.
type Damage = fn(&[u8], &[Vec<u8>], &mut Rng) -> Vec<u8>;

struct Target {
    name: &'static str,
    /// Makes the good inputs in a folder; they are damaged later. None where something is missing that they need.
    corpus: fn(&Path) -> Vec<Vec<u8>>,
    damage: Damage,
    read: fn(&Path, &[u8]) -> Outcome,
}

const TARGETS: [Target; 5] = [
    Target { name: "checkpoints", corpus: checkpoints, damage: tensors, read: resume },
    Target { name: "configurations", corpus: configurations, damage: text, read: configure },
    Target { name: "failures", corpus: failures, damage: text, read: repeat },
    Target { name: "models", corpus: models::corpus, damage: models::damage, read: models::run },
    Target { name: "pictures", corpus: picture_files, damage: bytes, read: show },
];

fn main() -> ExitCode {
    foveate_registry::compiler::hook();
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name, seconds, seed] => match (seconds.parse(), seed.parse()) {
            (Ok(seconds), Ok(seed)) => chosen(name).and_then(|targets| {
                targets
                    .iter()
                    .try_for_each(|target| in_folder(target, |folder| run(target, folder, seconds, seed)))
            }),
            _ => Err("seconds and seed are whole numbers".to_owned()),
        },
        [name, file] => chosen(name).and_then(|targets| {
            targets
                .iter()
                .try_for_each(|target| in_folder(target, |folder| again(target, folder, Path::new(file))))
        }),
        _ => Err("usage: fuzz TARGET|all SECONDS SEED, or fuzz TARGET FILE".to_owned()),
    };
    if let Err(why) = done {
        eprintln!("{why}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The targets of this name.
fn chosen(name: &str) -> Result<Vec<&'static Target>, String> {
    let chosen: Vec<&Target> = TARGETS.iter().filter(|target| name == "all" || name == target.name).collect();
    if chosen.is_empty() {
        let names = TARGETS.map(|target| target.name).join(", ");
        return Err(format!("no target is called {name:?}; choose from: {names}"));
    }
    Ok(chosen)
}

/// Does something in a new folder, which stays when it fails.
fn in_folder(target: &Target, work: impl FnOnce(&Path) -> Result<(), Box<dyn Error>>) -> Result<(), String> {
    let folder = env::temp_dir().join(format!("foveate-fuzz-{}-{}", target.name, std::process::id()));
    let done = || -> Result<(), Box<dyn Error>> {
        fs::create_dir_all(&folder)?;
        work(&folder)?;
        Ok(fs::remove_dir_all(&folder)?)
    };
    done().map_err(|why| format!("{}: {why}", target.name))
}

/// Reads one input, with all that its failure says.
fn again(target: &Target, folder: &Path, file: &Path) -> Result<(), Box<dyn Error>> {
    (target.corpus)(folder);
    let said = (target.read)(folder, &fs::read(file)?);
    println!("{}: {said:?}", target.name);
    Ok(())
}

/// The number of the input that is being read, for the watch.
static READING: AtomicU64 = AtomicU64::new(0);

fn run(target: &Target, folder: &Path, seconds: u64, seed: u64) -> Result<(), Box<dyn Error>> {
    let corpus = (target.corpus)(folder);
    if corpus.is_empty() {
        println!("{}: skipped", target.name);
        return Ok(());
    }
    let kept = folder.join("input");
    println!("{}: {} good inputs; the one that is read is {}", target.name, corpus.len(), kept.display());
    watch(target.name, kept.clone());
    panic::set_hook(Box::new(|_| {}));
    let mut rng = Seed::root(seed).child(target.name, 0).rng();
    let clock = Wall::start();
    let (mut count, mut accepted) = (0_u64, 0_u64);
    while clock.elapsed().as_secs() < seconds {
        let good = &corpus[rng.below(corpus.len() as u64) as usize];
        // The first inputs are the good ones.
        let input = match corpus.get(count as usize) {
            Some(good) => good.clone(),
            None => (target.damage)(good, &corpus, &mut rng),
        };
        fs::write(&kept, &input)?;
        count += 1;
        READING.store(count, Ordering::Relaxed);
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.read)(folder, &input)));
        match outcome {
            Ok(Ok(())) => accepted += 1,
            Ok(Err(said)) if count as usize <= corpus.len() => {
                return Err(format!("the good input {count} is refused: {said}").into());
            }
            Ok(Err(said)) if said.lines().count() == 1 => {}
            Ok(Err(said)) => {
                return Err(format!("input {count} ({}): not one line: {said:?}", kept.display()).into());
            }
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
                let said = said.unwrap_or_default();
                return Err(format!("input {count} ({}): it panics: {said}", kept.display()).into());
            }
        }
    }
    READING.store(0, Ordering::Relaxed);
    let _ = panic::take_hook();
    println!(
        "{}: {count} inputs in {seconds} s, {accepted} accepted, the others refused in one line",
        target.name
    );
    Ok(())
}

/// Ends the program when one input takes too long.
fn watch(name: &'static str, kept: PathBuf) {
    thread::spawn(move || {
        let (mut last, mut cpu, mut wall) = (0, ProcessCpu::start(), Wall::start());
        loop {
            thread::sleep(Duration::from_secs(1));
            let now = READING.load(Ordering::Relaxed);
            if now != last {
                (last, cpu, wall) = (now, ProcessCpu::start(), Wall::start());
            }
            let took = [cpu.elapsed().as_secs(), wall.elapsed().as_secs()];
            if now != 0 && (took[0] > PATIENCE[0] || took[1] > PATIENCE[1]) {
                eprintln!(
                    "{name}: input {now} ({}): it takes more than {} seconds, {} of the processor",
                    kept.display(),
                    took[1],
                    took[0]
                );
                std::process::exit(1);
            }
        }
    });
}

fn pick<'a, T>(from: &'a [T], rng: &mut Rng) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}

/// Damages bytes.
fn bytes(good: &[u8], all: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    const NUMBERS: [u32; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    let mut input = good.to_vec();
    for _ in 0..=rng.below(4) {
        if input.is_empty() {
            break;
        }
        // Headers are small: half of all damages are near the beginning.
        let most = if rng.below(2) == 0 { input.len() } else { input.len().min(64) };
        let at = rng.below(most as u64) as usize;
        match rng.below(8) {
            0 => input[at] ^= 1 << rng.below(8),
            1 => input[at] = rng.below(256) as u8,
            2 | 3 => {
                let number = pick(&NUMBERS, rng).to_be_bytes();
                let end = (at + 4).min(input.len());
                input[at..end].copy_from_slice(&number[..end - at]);
            }
            4 => input.truncate(at),
            5 => {
                let end = (at + 1 + rng.below(16) as usize).min(input.len());
                input.drain(at..end);
            }
            6 => {
                let other = pick(all, rng);
                let from = rng.below(other.len() as u64) as usize;
                let part = &other[from..(from + 1 + rng.below(64) as usize).min(other.len())];
                input.splice(at..at, part.iter().copied());
            }
            _ => {
                let end = (at + 1 + rng.below(64) as usize).min(input.len());
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
        }
    }
    input
}

/// Damages a text: words are exchanged, lines are removed and repeated.
fn text(good: &[u8], all: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    const WORDS: [&str; 24] = [
        "0",
        "-1",
        "1",
        "2",
        "0.5",
        "nan",
        "inf",
        "1e308",
        "-1e308",
        "9223372036854775807",
        "18446744073709551615",
        "4294967296",
        "true",
        "false",
        "\"\"",
        "\"name\"",
        "[]",
        "{}",
        "[[1, 0]]",
        "null",
        "\"cma-es\"",
        "\"relational\"",
        "{ generations = 1 }",
        "1979-05-27",
    ];
    if rng.below(8) == 0 {
        return bytes(good, all, rng);
    }
    let mut text = String::from_utf8_lossy(good).into_owned();
    for _ in 0..=rng.below(3) {
        let starts: Vec<usize> = text
            .char_indices()
            .filter(|&(i, c)| {
                let before = text[..i].chars().next_back();
                c.is_alphanumeric() && !before.is_some_and(|c| c.is_alphanumeric() || "_.-".contains(c))
            })
            .map(|(i, _)| i)
            .collect();
        if starts.is_empty() {
            break;
        }
        let at = *pick(&starts, rng);
        let length = text[at..].find(|c: char| !(c.is_alphanumeric() || "_.-".contains(c)));
        let end = length.map_or(text.len(), |length| at + length);
        let line = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |i| at + i + 1);
        match rng.below(6) {
            0 => text.replace_range(line..line_end, ""),
            1 => {
                let again = text[line..line_end].to_owned();
                text.insert_str(line, &again);
            }
            2 => {
                let other = String::from_utf8_lossy(pick::<Vec<u8>>(all, rng)).into_owned();
                let lines: Vec<&str> = other.lines().collect();
                if !lines.is_empty() {
                    text.insert_str(line, &format!("{}\n", pick(&lines, rng)));
                }
            }
            _ => text.replace_range(at..end, pick::<&str>(&WORDS, rng)),
        }
    }
    text.into_bytes()
}

/// The world and the preset in which a learner learns at once, and how much data one round has.
fn place(learner: &LearnerDescriptor) -> [&'static str; 3] {
    match learner.learns_from {
        LearnsFrom::Returns => ["car-racing", "evolution", "tracks = 1"],
        LearnsFrom::Demonstrations => ["door-key-5x5", "relational-imitation", "tracks = 2, updates = 1"],
        LearnsFrom::Derivatives => ["cartpole-swingup-harder", "cartpole-swingup", "tracks = 2"],
        LearnsFrom::Values => ["door-key-5x5", "relational", "tracks = 2"],
        LearnsFrom::Policies | LearnsFrom::Transitions => ["door-key-5x5", "door-key-ppo", "tracks = 2"],
    }
}

/// A checkpoint of a short run of each learner, behind the number of its run.
fn checkpoints(folder: &Path) -> Vec<Vec<u8>> {
    let one = |(i, learner): (usize, &LearnerDescriptor)| {
        let [world, preset, round] = place(learner);
        let sets = [
            "videos=false".to_owned(),
            "workers=1".to_owned(),
            format!("env.id={world}"),
            format!("recipe.algorithm={}", learner.name),
            "recipe.max_steps=5".to_owned(),
            format!("recipe.stage=[{{ name = \"only\", steps = 100000, {round} }}]"),
        ];
        let said = UserSettings::read(None, &sets, &WorldSpec::default())?;
        let fit::Configured { config, .. } = fit::configure(Some(preset), &said)?;
        let request = TrainRequest { config, runs: folder.to_path_buf(), name: Some(format!("run-{i}")) };
        // The run is asked to stop when its first line is in the log.
        let stop = Stop::default();
        train::run(&request, &mut Asks { stop: stop.clone() }, &stop)?;
        let checkpoints = fs::read_dir(folder.join(format!("run-{i}")).join("checkpoints"))?;
        let newest = checkpoints.flatten().map(|entry| entry.path()).max().ok_or("no checkpoint")?;
        Ok::<_, Box<dyn Error>>([&[i as u8][..], &fs::read(newest)?].concat())
    };
    let all = LEARNERS.iter().enumerate();
    all.map(|(i, learner)| {
        one((i, learner)).unwrap_or_else(|why| panic!("no run of {}: {why}", learner.name))
    })
    .collect()
}

struct Asks {
    stop: Stop,
}

impl foveate_run::progress::TrainObserver for Asks {
    fn event(&mut self, _: &foveate_run::progress::LogLine, _: u64, _: u64) {
        self.stop.ask();
    }
}

/// Damages the tensors of a checkpoint; its checksum is right.
fn tensors(good: &[u8], all: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let (run, file) = good.split_first().expect("a number and a file");
    let mut file = TensorFile::from_bytes(file).expect("a good file");
    for _ in 0..=rng.below(3) {
        if file.tensors.is_empty() {
            break;
        }
        let at = rng.below(file.tensors.len() as u64) as usize;
        let (name, tensor) = file.tensors[at].clone();
        match rng.below(10) {
            0 => drop(file.tensors.remove(at)),
            1 => file.tensors[at].0 = format!("{name}x"),
            2 => {
                let other = pick(all, rng);
                let other = TensorFile::from_bytes(&other[1..]).expect("a good file");
                if let Some((_, tensor)) = other.tensors.get(at) {
                    file.tensors[at].1 = tensor.clone();
                }
            }
            3 => {
                let with = rng.below(file.tensors.len() as u64) as usize;
                let one = file.tensors[with].1.clone();
                file.tensors[with].1 = tensor;
                file.tensors[at].1 = one;
            }
            _ => file.tensors[at].1 = damaged(&tensor, rng),
        }
    }
    if rng.below(20) == 0 {
        let key = *pick(&["log_lines", "log_bytes", "version", "build"], rng);
        file.metadata.insert(key.into(), pick(&["0", "-1", "18446744073709551615", ""], rng).to_string());
    }
    file.tensors.sort_by(|a, b| a.0.cmp(&b.0));
    file.tensors.dedup_by(|a, b| a.0 == b.0);
    file.metadata.remove("sha256");
    let digest = Sha256::digest(file.to_bytes());
    let hex = digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    file.metadata.insert("sha256".into(), hex);
    [&[*run][..], &file.to_bytes()].concat()
}

/// The tensor with other numbers, or another length, shape or type.
fn damaged(tensor: &Tensor, rng: &mut Rng) -> Tensor {
    const FLOATS: [f64; 10] =
        [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 1e-320, 4_294_967_296.0];
    const COUNTS: [u64; 8] = [0, 1, 2, 255, 1 << 32, 1 << 53, u64::MAX >> 1, u64::MAX];
    let mut data = tensor.clone().into_data();
    let mut shape = tensor.shape().to_vec();
    macro_rules! change {
        ($list:expr, $value:expr) => {{
            match rng.below(6) {
                0 => $list.clear(),
                1 => drop($list.pop()),
                2 => $list.push($value),
                3 => $list.fill($value),
                _ if $list.is_empty() => {}
                _ => {
                    let at = rng.below($list.len() as u64) as usize;
                    $list[at] = $value;
                }
            }
            if shape.iter().product::<usize>() != $list.len() {
                shape = vec![$list.len()];
            }
        }};
    }
    match &mut data {
        TensorData::F32(list) => change!(list, *pick(&FLOATS, rng) as f32),
        TensorData::F64(list) => change!(list, *pick(&FLOATS, rng)),
        TensorData::U64(list) => change!(list, *pick(&COUNTS, rng)),
        _ => {}
    }
    if rng.below(8) == 0 {
        shape.push(1);
    }
    if rng.below(12) == 0 {
        let len = shape.iter().product();
        data = TensorData::U64(vec![*pick(&COUNTS, rng); len]);
    }
    Tensor::new(shape, data).unwrap_or_else(|_| tensor.clone())
}

/// Resumes the run with this checkpoint alone, and learns one round more.
fn resume(folder: &Path, input: &[u8]) -> Outcome {
    let (run, file) = input.split_first().ok_or("nothing")?;
    let run = folder.join(format!("run-{run}"));
    let checkpoints = run.join("checkpoints");
    let said = |error: std::io::Error| error.to_string();
    for old in fs::read_dir(&checkpoints).map_err(said)?.flatten() {
        fs::remove_file(old.path()).map_err(said)?;
    }
    fs::write(checkpoints.join("00000001.safetensors"), file).map_err(said)?;
    let stop = Stop::default();
    let mut asks = Asks { stop: stop.clone() };
    let request = ResumeRequest { folder: run, allow_changes: true, ..ResumeRequest::default() };
    train::resume(&request, &mut asks, &stop).map(drop).map_err(|error| error.to_string())
}

/// The presets that need nothing of a world.
fn configurations(folder: &Path) -> Vec<Vec<u8>> {
    let texts = PRESETS.iter().map(|preset| preset.text.as_bytes().to_vec());
    let whole: Vec<_> = texts.filter(|text| configure(folder, text).is_ok()).collect();
    assert!(whole.len() > 5, "{} configurations to damage", whole.len());
    whole
}

/// Reads a configuration and its agent's settings.
fn configure(folder: &Path, input: &[u8]) -> Outcome {
    let file = folder.join("config.toml");
    fs::write(&file, input).map_err(|error| error.to_string())?;
    let config = TrainConfig::load("laptop", Some(&file), &[""; 0]).map_err(|error| error.to_string())?;
    let settings = config.agent.settings().map_err(|error| error.to_string())?;
    foveate_agents::registry::config(&config.agent.name, &settings).map_err(|error| error.to_string())?;
    TrainConfig::of_text(&config.to_toml(), &file).map(drop).map_err(|error| error.to_string())
}

fn failures(_: &Path) -> Vec<Vec<u8>> {
    let worlds = [
        r#"{"id":"car-racing","picture":"none","variants":[],"options":{"continuous":"true"}}"#,
        r#"{"id":"cartpole-swingup-harder","picture":"world","variants":[],"shifts":["noise-channels:2"]}"#,
    ];
    let actions = ["[[0.5,0.1,0.0],[0.0,1.0,0.0]]", "[[0.5],[1.0]]"];
    let one = |(world, actions): (&str, &str)| {
        format!(
            r#"{{"format":"foveate-failure-1","version":"","what":"x","purpose":null,"generation":1,"genome":0,"episode":0,
"env_seed":1,"step":1,"max_steps":5,"patience":null,"epsilon":0.0,"draw_actions":false,
"agent":{{"name":"random-actions","config":{{}}}},"weights":"","actions":{actions},
"env":{world}}}"#
        )
        .into_bytes()
    };
    worlds.into_iter().zip(actions).map(one).collect()
}

/// Repeats a failure in its native world, and traces it.
fn repeat(folder: &Path, input: &[u8]) -> Outcome {
    let file = folder.join("failure.json");
    fs::write(&file, input).map_err(|error| error.to_string())?;
    let mut failure = Failure::read(&file).map_err(|error| error.to_string())?;
    // A long rollout is as long as it says.
    failure.max_steps = failure.max_steps.min(20);
    failure.trace(&mut std::io::sink()).map_err(|error| error.to_string())?;
    // What is refused as an agent that does not fit is in one line, too.
    failure.again().map(drop).map_err(|error| error.to_string())
}

fn picture_files(_: &Path) -> Vec<Vec<u8>> {
    let picture = |value: u8| {
        let rgb = (0..3 * 12 * 9).map(|i| (i as u8).wrapping_mul(7).wrapping_add(value)).collect();
        ImageBuf::from_rgb(12, 9, rgb).expect("its size")
    };
    let mut gif = GifFilm::new(12, 9, 10.0).expect("a size");
    let mut film = vec![];
    for value in 0..4 {
        gif.frame(picture(50 * value).as_image(), &mut film).expect("its size");
    }
    gif.finish(&mut film).expect("frames");
    vec![encode_png(picture(3).as_image()).expect("a picture"), film]
}

/// Reads a picture, or a film.
fn show(folder: &Path, input: &[u8]) -> Outcome {
    let file = folder.join("picture");
    fs::write(&file, input).map_err(|error| error.to_string())?;
    let read = if input.starts_with(b"GIF") {
        pictures::load_film(&file).map(drop)
    } else {
        pictures::load_file(&file).map(drop)
    };
    read.map_err(|error| error.to_string())
}
