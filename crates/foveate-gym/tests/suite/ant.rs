//! The ant compared with `pybullet_envs_gymnasium` itself.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use foveate_core::{Action, Env, Fact, ImageBuf};
use foveate_gym::ant::{self, Reward};
use foveate_gym::{Gym, GymWorld};

const STEPS: usize = 120;
const SEED: u64 = 5;

/// The Python with the simulator; prints a message if there is none.
fn python() -> Option<PathBuf> {
    foveate_toy::needs::worlds_python()
}

/// The action of step `t`; legs move, and some torques are beyond the limits of the space.
fn action(t: usize) -> [f64; 8] {
    std::array::from_fn(|i| f64::from((1.2 * (1.3 * i as f64 + 0.21 * t as f64).sin()) as f32))
}

fn world(reward: Reward) -> GymWorld {
    let gym = Gym::new(ant::settings(reward), Arc::new(|text: &str| eprintln!("{text}")));
    GymWorld::new(gym.expect("the simulator is there"))
}

/// Reward, end and observation of a step, as the script prints them.
fn line(env: &GymWorld, reward: f64, terminated: bool) -> String {
    let numbers = env.observation().numbers().expect("numbers");
    let bits: Vec<String> = numbers.iter().map(|x| format!("{:08x}", x.to_bits())).collect();
    format!("{:016x} {} {}", reward.to_bits(), u8::from(terminated), bits.join(" "))
}

#[test]
fn the_ant_is_that_of_the_package_with_both_rewards() {
    const NAME: &str = "the_ant_is_that_of_the_package_with_both_rewards";
    let Some(python) = python() else { return };
    if env::var_os("FOVEATE_TEST_AGAIN").is_none_or(|again| again != NAME) {
        // An environment variable selects the worker's Python, so this test runs itself as another process.
        let mut again = foveate_toy::test_alone(&format!("ant::{NAME}"));
        again.env("FOVEATE_PYTHON", python);
        assert!(again.env("FOVEATE_TEST_AGAIN", NAME).status().expect("a test can be started").success());
        return;
    }
    let actions: Vec<String> = (0..STEPS).flat_map(action).map(|x| format!("{x:?}")).collect();
    let out = Command::new(python)
        .args([
            "-B",
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ant.py"),
            &SEED.to_string(),
            &actions.join(" "),
        ])
        .output()
        .expect("Python starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    // Each step has two lines, one for each reward. The simulator prints lines of its own.
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("step ")).collect();
    assert!(lines.len() > 2 * STEPS / 2, "{text}");
    for (which, reward) in Reward::ALL.into_iter().enumerate() {
        let mut env = world(reward);
        // An episode does not depend on the one before.
        env.reset(Some(SEED + 1));
        env.step(Action::Continuous(&action(3))).expect("it goes on");
        env.reset(Some(SEED));
        for (t, theirs) in lines.iter().skip(which).step_by(2).enumerate() {
            let step = env.step(Action::Continuous(&action(t))).expect("it goes on");
            assert_eq!(line(&env, step.reward, step.terminated), *theirs, "{reward:?}, step {t}");
        }
        let Fact::Named(facts) = env.state() else { panic!("named facts") };
        assert!(facts.iter().any(|(name, fact)| name == "progress" && matches!(fact, Fact::Number(_))));
        let mut view = ImageBuf::black(480, 360);
        env.render(&mut view).expect("it is drawn without a display");
        let green = |p: &[u8; 3]| {
            let [red, green, blue] = p.map(i32::from);
            green > red + 40 && green > blue + 40
        };
        let colours = view.rgb().as_chunks::<3>().0.iter().filter(|p| green(p));
        assert!((1000..40_000).contains(&colours.count()), "a green torso is in the middle of the picture");
        assert_eq!(env.gym().replaced(), 0);
    }
}
