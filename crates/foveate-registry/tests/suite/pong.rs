//! Pong's pictures and rewards, computed again by `OpenCV` and `NumPy`.

use std::fmt::Write;
use std::process::Command;

use foveate_core::{Action, Env, Seed, Step};
use foveate_envs::registry::EnvRequest;
use foveate_registry::make;
use sha2::{Digest, Sha256};

use crate::common::advised;

const SEED: u64 = 7;
const STEPS: usize = 300;

/// The choice in step `t`; the paddle moves both ways and stops.
const fn choice(t: usize) -> usize {
    t / 3 * 7 % 6
}

/// Reward, end and the picture's digest, as the script prints them.
fn line(env: &dyn Env, step: Step) -> String {
    let image = env.observation().image().expect("pictures");
    let shape = image.shape();
    assert_eq!((shape.frames, shape.height, shape.width, shape.channels), (4, 84, 84, 1));
    let Step { reward, terminated, truncated } = step;
    let mut line = format!("{reward:?} {} ", u8::from(terminated || truncated));
    for byte in Sha256::digest(image.bytes()) {
        let _ = write!(line, "{byte:02x}");
    }
    line
}

fn pong() -> Box<dyn Env> {
    make(&EnvRequest { id: "pong".into(), ..EnvRequest::default() }).expect("ale-py is there")
}

#[test]
fn its_expert_plays_the_same_whatever_it_remembers() {
    if foveate_toy::needs::python().is_none() {
        return;
    }
    let (mut fresh, mut used) = (pong(), pong());
    // 23 and 19 frames of nothing, so that the same states come again.
    used.reset(Some(13));
    advised(&mut *used, 500);
    fresh.reset(Some(2));
    used.reset(Some(2));
    assert_eq!(advised(&mut *fresh, 500), advised(&mut *used, 500));
}

#[test]
fn its_expert_wins_every_point() {
    if foveate_toy::needs::python().is_none() {
        return;
    }
    let mut env = pong();
    env.reset(Some(1));
    let rewards = advised(&mut *env, usize::MAX).into_iter().map(|(_, reward)| reward);
    let points: Vec<f64> = rewards.filter(|&reward| reward != 0.0).collect();
    assert_eq!(points, [1.0; 21]);
}

#[test]
fn pictures_are_those_of_opencv() {
    let Some(python) = foveate_toy::needs::python() else { return };
    let choices: Vec<String> = (0..STEPS).map(|t| choice(t).to_string()).collect();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pong.py");
    let idle = 1 + Seed::root(SEED).child("wrap", 0).child("noop", 0).rng().below(30);
    let args = ["-B", script, &SEED.to_string(), &idle.to_string(), &choices.join(" ")];
    let out = Command::new(&python).args(args).output().expect("Python starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let theirs = String::from_utf8(out.stdout).expect("text");

    let mut env = make(&EnvRequest { id: "pong".into(), ..EnvRequest::default() }).expect("ale-py is there");
    env.reset(Some(SEED));
    let mut lines = theirs.lines();
    assert_eq!(lines.next(), Some(&*line(&*env, Step::default())), "reset");
    let mut scored = 0.0;
    for (t, theirs) in lines.enumerate() {
        let step = env.step(Action::Discrete(choice(t))).expect("it goes on");
        assert_eq!(line(&*env, step), theirs, "step {t}");
        scored += step.reward.abs();
    }
    assert!(scored >= 2.0, "points were made");
    let image = env.observation();
    let image = image.image().expect("pictures");
    for frame in 0..4 {
        let frame = image.frame(frame).expect("four frames");
        assert!(frame[..840].iter().all(|&byte| byte == 0) && frame[840..].iter().any(|&byte| byte != 0));
    }
}
