//! Compares Atari with Foveate's wrappers to Gymnasium's `AtariPreprocessing`.

use std::fmt::Write;
use std::process::Command;
use std::sync::Arc;

use foveate_core::{Action, ActionSpace, Env, Step};
use foveate_envs::wrap::Wrapped;
use foveate_gym::{Gym, GymWorld, Settings};
use sha2::{Digest, Sha256};

use crate::common::python;

fn line(env: &dyn Env, step: Step) -> String {
    let image = env.observation().image().expect("a picture").to_image();
    let Step { reward, terminated, truncated } = step;
    let mut line = format!("{reward:?} {} {} ", u8::from(terminated), u8::from(truncated));
    for byte in Sha256::digest(image.rgb()) {
        let _ = write!(line, "{byte:02x}");
    }
    line
}

#[track_caller]
fn check(id: &str, grey: bool, lives: bool, steps: u64, ends: bool) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/atari.py");
    let words = [if grey { "grey" } else { "rgb" }, if lives { "lives" } else { "all" }];
    let out = Command::new(std::env::var_os("FOVEATE_PYTHON").expect("it is set"))
        .args(["-B", script, id, words[0], words[1], &steps.to_string()])
        .output()
        .expect("Python starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let theirs = String::from_utf8(out.stdout).expect("text");

    let options = [("arg.frameskip", "1"), ("arg.repeat_action_probability", "0.0")];
    let settings = Settings::parse(id, options).expect("fine");
    let gym = Gym::new(settings, Arc::new(|_: &str| ())).expect("ale-py is there");
    let text = format!(
        "repeat:4+max+resize:84x84:area{}{}",
        if grey { "+grey:ale" } else { "" },
        if lives { "+lives" } else { "" }
    );
    let mut env = Wrapped::new(Box::new(GymWorld::new(gym)), text.parse().expect("fine")).expect("they fit");
    let ActionSpace::Discrete { n } = env.spec().action else { panic!("choices") };
    env.reset(Some(5));
    let mut lines = theirs.lines().enumerate();
    assert_eq!(
        lines.next().map(|(_, line)| line.to_owned()),
        Some(line(&env, Step::default())),
        "{id} {text}"
    );
    let mut last = Step::default();
    for (t, theirs) in lines {
        let choice = ((t as u64 - 1) / 3 * 7 + 1) as usize % n;
        last = env.step(Action::Discrete(choice)).expect("it goes on");
        assert_eq!(line(&env, last), theirs, "{id} {text}, step {t}");
    }
    assert_eq!(last.is_over(), ends, "{id} {text}");
}

#[test]
fn our_wrappers_are_gymnasiums_atari_preprocessing() {
    if !python() {
        return;
    }
    check("ALE/Pong-v5", true, false, 200, false);
    check("ALE/Breakout-v5", true, true, 400, true);
    check("ALE/Seaquest-v5", false, false, 150, false);
}
