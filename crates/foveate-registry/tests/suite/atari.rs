//! Atari's games, compared with ale-py's own environments.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use foveate_core::{Action, ActionSpace, Env, EnvError, ObservationSpace, PixelShape, Seed, Step};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{WORLDS, WorldError, make};
use sha2::{Digest, Sha256};

use crate::common::advised;

/// The Python with ale-py; prints a message where there is none.
fn python() -> Option<PathBuf> {
    foveate_toy::needs::python()
}

/// What the script prints with these arguments.
fn script(python: &Path, args: &[String]) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/atari.py");
    let out = Command::new(python).args(["-B", file]).args(args).output().expect("Python starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

fn request(options: &[(&str, &str)]) -> EnvRequest {
    EnvRequest {
        id: "atari".into(),
        options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
        ..EnvRequest::default()
    }
}

fn atari(options: &[(&str, &str)]) -> Box<dyn Env> {
    make(&request(options)).expect("ale-py is there")
}

/// Reward, end and the picture's digest, as the script prints them.
fn line(env: &dyn Env, step: Step) -> String {
    let image = env.observation().image().expect("a picture");
    let Step { reward, terminated, truncated } = step;
    assert!(!truncated, "the episode is short");
    let mut line = format!("{reward:?} {} ", u8::from(terminated));
    for byte in Sha256::digest(image.bytes()) {
        let _ = write!(line, "{byte:02x}");
    }
    line
}

/// The choice in step `t` of a game with `n` of them: another one every third step.
fn choice(t: usize, n: usize) -> usize {
    Seed::root(1).child("choice", t as u64 / 3).rng().below(n as u64) as usize
}

/// How many frames of doing nothing an episode begins with.
fn idle(seed: u64) -> u64 {
    1 + Seed::root(seed).child("wrap", 0).child("noop", 0).rng().below(30)
}

/// The lines of up to `steps` steps.
fn episode(env: &mut dyn Env, seed: u64, steps: usize) -> Vec<String> {
    let ActionSpace::Discrete { n } = env.spec().action else { panic!("choices") };
    env.reset(Some(seed));
    let mut lines = vec![line(env, Step::default())];
    for t in 0..steps {
        let step = env.step(Action::Discrete(choice(t, n))).expect("it goes on");
        lines.push(line(env, step));
        if step.is_over() {
            break;
        }
    }
    lines
}

/// Compares an episode of `options` with one of ale-py's environment `theirs`, frame by frame; `ends` says whether the
/// game is over within `steps`. Returns the lines.
#[track_caller]
fn check(
    python: &Path,
    options: &[(&str, &str)],
    (theirs, seed, sticky): (&str, u64, &str),
    steps: usize,
    ends: bool,
) -> Vec<String> {
    let mut env = atari(options);
    let ActionSpace::Discrete { n } = env.spec().action else { panic!("choices") };
    let mut args = vec![theirs.to_owned(), seed.to_string(), idle(seed).to_string(), sticky.to_owned()];
    args.extend((0..steps).map(|t| choice(t, n).to_string()));
    let ours = episode(&mut *env, seed, steps);
    let theirs: Vec<String> = script(python, &args).lines().map(str::to_owned).collect();
    let differs = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    assert_eq!((differs, ours.len()), (None, theirs.len()), "{options:?}: the first step that differs");
    assert_eq!(ours.len() <= steps, ends, "{options:?}");
    let rewards = ours.iter().filter(|line| !line.starts_with("0.0 ")).count();
    assert!(rewards >= 1, "{options:?}: no step with a reward");
    ours
}

#[test]
fn episodes_are_those_of_ale_py() {
    let Some(python) = python() else { return };
    // Five lives are lost, the last of which ends the episode.
    let plain = check(&python, &[("game", "breakout")], ("Breakout", 3, "0"), 1000, true);
    let options = [("game", "breakout"), ("sticky", "0.25")];
    let sticky = check(&python, &options, ("Breakout", 3, "0.25"), 1000, true);
    assert!(plain[0] == sticky[0], "nothing was done yet that could stick");
    assert!(plain != sticky, "some actions stick");
    // The rewards of four frames add up.
    check(&python, &[("game", "ms_pacman")], ("MsPacman", 4, "0"), 120, false);
}

#[test]
fn a_seed_determines_an_episode() {
    if python().is_none() {
        return;
    }
    let sticky = || atari(&[("game", "breakout"), ("sticky", "0.25")]);
    let same = (2..1000).find(|&seed| idle(seed) == idle(1)).expect("one of 30");
    let mut env = sticky();
    let first = episode(&mut *env, 1, 80);
    let other = episode(&mut *env, same, 80);
    assert!(first[0] == other[0] && first != other, "the seed decides which actions stick");
    assert!(episode(&mut *env, 1, 80) == first, "the same seed after another episode");
    assert!(episode(&mut *sticky(), 1, 80) == first, "the same seed in another world");
    // Where nothing sticks, the seed decides how long nothing is done.
    let mut env = atari(&[("game", "space_invaders")]);
    let mut start = |seed| episode(&mut *env, seed, 0);
    let one = start(1);
    let fewer = (2..1000).find(|&seed| idle(seed).abs_diff(idle(1)) >= 8).expect("another");
    assert_eq!(start(same), one, "as many frames");
    assert_ne!(start(fewer), one, "other frames");
}

/// From the third reset on a game is not loaded again, except where its state after a seed is not as expected.
#[test]
fn a_game_that_was_reset_is_as_one_that_was_loaded() {
    if python().is_none() {
        return;
    }
    for game in ["seaquest", "berzerk"] {
        let sticky = || atari(&[("game", game), ("sticky", "0.25")]);
        let mut env = sticky();
        for seed in 1..=4 {
            let ours = episode(&mut *env, seed, 40);
            assert_eq!(ours, episode(&mut *sticky(), seed, 40), "{game}, seed {seed}");
        }
    }
}

#[test]
fn the_screen_is_shown_as_it_is() {
    if python().is_none() {
        return;
    }
    for (options, choices) in [
        (&[("game", "breakout")][..], 4),
        (&[("game", "breakout"), ("actions", "full"), ("frame", "max")], 18),
    ] {
        let env = atari(options);
        let spec = env.spec();
        let shape = PixelShape { frames: 1, height: 210, width: 160, channels: 3 };
        assert_eq!(spec.observation, ObservationSpace::Image(shape));
        assert_eq!(spec.action, ActionSpace::Discrete { n: choices });
        assert_eq!((spec.max_steps, spec.fps), (Some(27_000), 15.0));
    }
    // Shots in Space Invaders flicker, so the last frame alone does not show all of them.
    let mut last = atari(&[("game", "space_invaders")]);
    let mut larger = atari(&[("game", "space_invaders"), ("frame", "max")]);
    let (last, larger) = (episode(&mut *last, 1, 30), episode(&mut *larger, 1, 30));
    assert_eq!(last[0], larger[0]);
    assert_ne!(last, larger);
}

#[test]
fn every_game_is_in_ale_py() {
    let Some(python) = python() else { return };
    let Err(WorldError::Env(EnvError::UnknownOption { known, .. })) = make(&request(&[("game", "?")])) else {
        panic!("no game is called ?")
    };
    let names: Vec<String> = known.split(", ").map(str::to_owned).collect();
    let said = script(&python, &[&["games".to_owned()], &*names].concat());
    let spec =
        WORLDS.find("atari").expect("it is there").spec.expect("its shape is known without an emulator");
    let ours = names.iter().map(|name| {
        let spec = spec(&request(&[("game", name)])).expect("a game");
        let shape = spec.observation.image().expect("a picture");
        let ActionSpace::Discrete { n } = spec.action else { panic!("choices") };
        format!("{name} {} {} {n}", shape.height, shape.width)
    });
    assert_eq!(said.lines().collect::<Vec<_>>(), ours.collect::<Vec<_>>());
}

/// Choices and rewards of so many steps of an episode in which the expert acts.
fn advised_from(env: &mut dyn Env, seed: u64, steps: usize) -> Vec<(usize, f64)> {
    env.reset(Some(seed));
    advised(env, steps)
}

#[test]
fn the_expert_of_breakout_plays_well_although_actions_stick() {
    if python().is_none() {
        return;
    }
    let sticky = [("game", "breakout"), ("sticky", "0.25")];
    let (mut one, mut other) = (atari(&sticky), atari(&[&sticky[..], &[("actions", "full")]].concat()));
    let played = advised_from(&mut *one, 3, 1000);
    assert!(played.iter().map(|(_, reward)| reward).sum::<f64>() >= 31.0, "more than a person: {played:?}");
    // The same whatever it saw before, and with all 18 choices, where upwards comes before right and left.
    advised_from(&mut *other, 1, 50);
    let among_all: Vec<(usize, f64)> =
        played.iter().map(|&(choice, reward)| (choice + usize::from(choice > 1), reward)).collect();
    assert_eq!(advised_from(&mut *other, 3, 1000), among_all);
    assert_ne!(advised_from(&mut *other, 4, 1000), played);
}

#[test]
fn the_expert_of_pong_wins_although_actions_stick() {
    if python().is_none() {
        return;
    }
    let options = [("game", "pong"), ("sticky", "0.05")];
    let played = advised_from(&mut *atari(&options), 3, 6000);
    let won = |sign: f64| played.iter().filter(|(_, reward)| *reward == sign).count();
    assert!(won(1.0) >= 10 && won(1.0) >= 2 * won(-1.0), "{} to {}", won(1.0), won(-1.0));
    // The same whatever it saw before.
    let mut other = atari(&options);
    advised_from(&mut *other, 1, 50);
    assert_eq!(advised_from(&mut *other, 3, 500), played[..500]);
}

#[test]
fn games_without_an_expert_say_so() {
    if python().is_none() {
        return;
    }
    let mut env = atari(&[("game", "seaquest")]);
    env.reset(Some(1));
    let mut scores = vec![0.0; env.spec().action.len()];
    assert!(matches!(env.expert(&mut scores), Err(EnvError::NoExpert { .. })));
    // Pong's expert in this world does what it does in that of AttentionNeuron's agent.
    let mut pong = make(&EnvRequest { id: "pong".into(), ..EnvRequest::default() }).expect("ale-py is there");
    assert_eq!(advised_from(&mut *atari(&[]), 2, 60), advised_from(&mut *pong, 2, 60));
}
