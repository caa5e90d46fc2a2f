//! Compares all tasks with dm_control: the numbers of whole episodes bit by bit, and pictures.
//!
//! `FOVEATE_WORLDS_PYTHON` names a Python with dm_control and mujoco; without it the test prints that it was skipped.
//! `FOVEATE_CONTROL_EPISODES` is the number of seeds per task.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use foveate_control::{Control, ControlConfig, DistractionConfig, Shown, TASKS};
use foveate_core::{Action, Env, ImageBuf, Observation};
use foveate_mujoco::{Library, Search};

fn number(pipe: &mut impl Read) -> f64 {
    let mut bytes = [0; 8];
    pipe.read_exact(&mut bytes).expect("the script writes on; what it printed is above");
    f64::from_le_bytes(bytes)
}

/// The library beside the Python of the tests; `None`, with a note, where there is none.
fn library() -> Option<(PathBuf, Library)> {
    let python = foveate_toy::needs::worlds_python()?;
    let found =
        Search { library: None, python: Some(python.clone()) }.find().expect("mujoco is installed there");
    Some((python, Library::open(&found.path).expect("the pinned version")))
}

/// Starts the script, which must run the same version of MuJoCo.
fn script(python: &Path, library: &Library, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/suite.py");
    let mut child = Command::new(python)
        // With AVX-512, NumPy's exp and log1p differ from the C library's in the last bit; without, they are the same.
        .env("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_ICL AVX512_SPR")
        .args(["-B".as_ref(), script.as_os_str()])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = BufReader::with_capacity(1 << 20, child.stdout.take().expect("a pipe"));
    let theirs = number(&mut pipe) as u64;
    // 337 is 3.3.7, 3010000 is 3.10.0.
    let parts = if theirs < 1000 {
        [theirs / 100, theirs / 10 % 10, theirs % 10]
    } else {
        [theirs / 1_000_000, theirs / 1000 % 1000, theirs % 1000]
    };
    assert_eq!(library.version(), parts.map(|part| part.to_string()).join("."));
    (child, pipe)
}

#[test]
fn pictures_are_those_of_dm_control() {
    let Some((python, library)) = library() else { return };
    let check = "import os; os.environ.setdefault('MUJOCO_GL', 'egl'); import mujoco; \
                 mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'), 8, 8).render()";
    let drawn = Command::new(&python).args(["-B", "-c", check]).output().expect("it starts");
    if !drawn.status.success() {
        foveate_toy::needs::skip("dm_control cannot draw with MUJOCO_GL=egl");
        return;
    }
    // Foveate draws as 3.17 does, whose pictures 4.0 has, too; those of older versions are others.
    if library.version().starts_with("3.") && library.version() != "3.17.0" {
        return;
    }
    let (steps, every) = (40, 20);
    let (mut child, mut pipe) = script(&python, &library, &["pictures", "40", "20", "84x100"]);
    for task in TASKS {
        let config = ControlConfig { shown: Shown::Both, size: [100, 84], ..ControlConfig::default() };
        let mut env = Control::new(&library, task, config).expect("it is made");
        env.reset(Some(5));
        let mut theirs = vec![0; 100 * 84 * 3];
        let mut compare = |env: &Control, pipe: &mut BufReader<_>| {
            pipe.read_exact(&mut theirs).expect("a picture");
            let Some(ours) = env
                .observation()
                .picture()
                .or(env.observation().part("image").and_then(Observation::picture))
            else {
                panic!("{}: no picture", task.name)
            };
            let apart: Vec<u8> = ours.rgb().iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b)).collect();
            let mean = apart.iter().map(|&apart| f64::from(apart)).sum::<f64>() / apart.len() as f64;
            assert!(mean <= 0.5, "{}: the mean difference is {mean:.3} of 255", task.name);
            mean
        };
        let mut means = vec![compare(&env, &mut pipe)];
        for step in 1..=steps {
            let action: Vec<f64> = task.actions.iter().map(|_| number(&mut pipe)).collect();
            env.step(Action::Continuous(&action)).expect("a finite action");
            if step % every == 0 {
                means.push(compare(&env, &mut pipe));
            }
        }
        eprintln!("{}: mean differences {means:.3?} of 255", task.name);
        // People see the same.
        let mut view = ImageBuf::black(100, 84);
        env.render(&mut view).expect("it has a picture");
        let shown = env.observation().part("image").and_then(Observation::picture).expect("a picture");
        assert_eq!(view.as_image(), shown, "{}", task.name);
    }
    assert!(child.wait().expect("it was started here").success());
}

#[test]
fn distractions_change_pictures_and_no_physics() {
    let Some((_, library)) = library() else { return };
    for task in TASKS {
        let play = |text: &str, seed: u64| {
            let distractions = DistractionConfig::parse_all(task.name, &[text]).expect("fine");
            let config = ControlConfig {
                shown: Shown::Both,
                size: [64, 48],
                distractions,
                ..ControlConfig::default()
            };
            let mut env = Control::new(&library, task, config).expect("it is made");
            env.reset(Some(seed));
            let mut pictures = Vec::new();
            let mut numbers = Vec::new();
            for step in 0..12 {
                let action: Vec<f64> = (0..task.actions.len()).map(|i| ((step + i) as f64).sin()).collect();
                let reward = env.step(Action::Continuous(&action)).expect("a finite action").reward;
                let picture =
                    env.observation().part("image").and_then(Observation::picture).expect("a picture");
                pictures.push(picture.rgb().to_vec());
                numbers.extend(env.numbers());
                numbers.push(reward);
            }
            (pictures, numbers)
        };
        let plain = play("original", 3);
        for name in ["background", "colors", "camera", "distracting"] {
            let still = play(name, 3);
            assert_eq!(still.1, plain.1, "{} {name}: the physics", task.name);
            assert!(still.0.iter().zip(&plain.0).all(|(a, b)| a != b), "{} {name}: every picture", task.name);
            assert!(play(name, 3) == still, "{} {name}: the same seed", task.name);
            let dynamic = play(&format!("{name}:dynamic=true"), 3);
            assert_eq!(dynamic.1, plain.1, "{} {name}: the physics", task.name);
            assert!(dynamic.0.last() != still.0.last(), "{} {name}: it moves", task.name);
            // The base of a scale of nothing is the original, but for the background.
            if name == "camera" || name == "colors" {
                let none = play(&format!("{name}:level=0:dynamic=true"), 3);
                let apart = |(a, b): (&Vec<u8>, &Vec<u8>)| {
                    let sum: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
                    sum as f64 / a.len() as f64
                };
                let most = none.0.iter().zip(&plain.0).map(apart).fold(0.0, f64::max);
                assert!(most < 0.3, "{} {name}: {most:.3} of 255 without strength", task.name);
            }
        }
    }
}

#[test]
fn episodes_are_those_of_dm_control() {
    let Some((python, library)) = library() else { return };
    let episodes = std::env::var("FOVEATE_CONTROL_EPISODES").unwrap_or_else(|_| "2".into());
    let (mut child, mut pipe) = script(&python, &library, &["numbers", &episodes]);
    let mut worst = Vec::new();
    for task in TASKS {
        let mut env = Control::new(&library, task, ControlConfig::default()).expect("it is made");
        let (mut count, mut states, mut rewards, mut largest, mut total) =
            (0_u64, 0_u64, 0_u64, 0.0_f64, 0.0);
        let mut seen = 0;
        while number(&mut pipe) != 0.0 {
            let seed = number(&mut pipe);
            env.reset((seed >= 0.0).then_some(seed as u64));
            let mut compare = |env: &Control, pipe: &mut BufReader<_>| {
                for &ours in env.numbers() {
                    let theirs = number(pipe);
                    count += 1;
                    states += u64::from(ours != theirs || ours.is_nan());
                }
            };
            compare(&env, &mut pipe);
            for step in 0..1000 {
                let action: Vec<f64> = task.actions.iter().map(|_| number(&mut pipe)).collect();
                let outcome = env.step(Action::Continuous(&action)).expect("a finite action");
                compare(&env, &mut pipe);
                let reward = number(&mut pipe);
                rewards += u64::from(outcome.reward != reward);
                largest = largest.max((outcome.reward - reward).abs());
                total += reward;
                assert_eq!(outcome.truncated, step == 999, "{}", task.name);
                assert!(!outcome.terminated);
            }
            seen += 1;
        }
        eprintln!(
            "{}: {seen} episodes, {count} numbers of observations, {states} different; {} rewards, {rewards} different, by {largest:e} \
             at most; mean return {:.2}",
            task.name,
            1000 * seen,
            total / f64::from(seen)
        );
        worst.push((task.name, seen, states, rewards, largest));
    }
    assert!(child.wait().expect("it was started here").success());
    for (name, seen, states, rewards, largest) in worst {
        assert!(seen >= 2 && states == 0, "{name}: {states} numbers differ");
        assert!(rewards == 0, "{name}: {rewards} rewards differ, by {largest:e} at most");
    }
}
