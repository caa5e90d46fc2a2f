//! Compares all tasks with dm_control, whole episodes, bit by bit.
//!
//! `FOVEATE_WORLDS_PYTHON` names a Python with dm_control and mujoco; without it the test prints that it was skipped.
//! `FOVEATE_CONTROL_EPISODES` is the number of seeds per task.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foveate_control::{Control, ControlConfig, TASKS};
use foveate_core::{Action, Env};
use foveate_mujoco::{Library, Search};

fn number(pipe: &mut impl Read) -> f64 {
    let mut bytes = [0; 8];
    pipe.read_exact(&mut bytes).expect("the script writes on; what it printed is above");
    f64::from_le_bytes(bytes)
}

#[test]
fn episodes_are_those_of_dm_control() {
    let Some(python) = std::env::var_os("FOVEATE_WORLDS_PYTHON").map(PathBuf::from) else {
        eprintln!("skipped: FOVEATE_WORLDS_PYTHON names no Python with dm_control; run cargo xtask test");
        return;
    };
    let found =
        Search { library: None, python: Some(python.clone()) }.find().expect("mujoco is installed there");
    let library = Library::open(&found.path).expect("the pinned version");
    let episodes = std::env::var("FOVEATE_CONTROL_EPISODES").unwrap_or_else(|_| "2".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/suite.py");
    let mut child = Command::new(python)
        // With AVX-512, NumPy's exp and log1p differ from the C library's in the last bit; without, they are the same.
        .env("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_ICL AVX512_SPR")
        .args(["-B".as_ref(), script.as_os_str(), episodes.as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = BufReader::with_capacity(1 << 20, child.stdout.take().expect("a pipe"));
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
