//! Contract tests for every registered world.
//!
//! Worlds that run in a separate process are tested where their dependencies are installed: `FOVEATE_PYTHON`
//! names a Python with gymnasium, `FOVEATE_WORLDS_PYTHON` one with vizdoom.

use std::env;
use std::sync::Arc;

use foveate_core::{
    Action, ActionBuf, ActionSpace, Env, EnvError, ImageBuf, ObservationBuf, Rng, Seed, Step,
};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{WORLDS, WorldDescriptor, make};

/// Number of steps compared.
const STEPS: usize = 40;

/// Results of the steps: observation, reward bits, terminated, truncated.
type Trace = Vec<(ObservationBuf, u64, bool, bool)>;

/// The observation, byte for byte.
fn seen(env: &dyn Env) -> ObservationBuf {
    env.observation().into()
}

fn entry(env: &dyn Env, step: Step) -> (ObservationBuf, u64, bool, bool) {
    (seen(env), step.reward.to_bits(), step.terminated, step.truncated)
}

/// Worlds without randomness: every episode begins in the same state.
const BEGIN_ALIKE: [&str; 3] = ["empty-5x5", "empty-8x8", "empty-16x16"];

/// The actions that every test takes.
fn actions(space: &ActionSpace) -> Vec<ActionBuf> {
    let mut rng: Rng = Seed::root(4).child("contract", 0).rng();
    (0..STEPS).map(|_| space.sample(&mut rng)).collect()
}

/// Steps through `actions` until the episode ends.
fn drive(env: &mut dyn Env, actions: &[ActionBuf]) -> Trace {
    let mut trace = Trace::new();
    for action in actions {
        let step = env.step(action.as_action()).expect("an action of its space");
        assert!(step.reward.is_finite());
        trace.push(entry(env, step));
        if step.is_over() {
            break;
        }
    }
    trace
}

/// The first observation of seed `seed`, and the steps after it.
fn episode(env: &mut dyn Env, seed: u64, actions: &[ActionBuf]) -> (ObservationBuf, Trace) {
    env.reset(Some(seed));
    let first = seen(env);
    (first, drive(env, actions))
}

/// Runs all checks on the world that `request` describes.
fn check(world: &WorldDescriptor, request: &EnvRequest) {
    let place = format!("{} {:?}", request.id, request.picture);
    let mut env = make(request).unwrap_or_else(|error| panic!("{place}: {error}"));
    let spec = env.spec().clone();
    assert_eq!(spec.id, request.id, "{place}");
    assert!(!spec.action.is_empty() && spec.fps > 0.0, "{place}");
    assert_eq!(*make(request).expect("again").spec(), spec, "{place}: made twice it is the same");
    if let Some(shape) = world.spec {
        assert_eq!(shape(request).expect("its shape is known"), spec, "{place}");
    }
    let zero = spec.action.zero();
    let needs_reset = |env: &mut dyn Env| {
        let said = env.step(zero.as_action()).expect_err("no episode is under way");
        assert!(matches!(said, EnvError::NeedsReset { .. }), "{place}: {said}");
    };
    needs_reset(&mut *env);

    // The same seed and actions give the same episode; another seed gives another episode.
    let actions = actions(&spec.action);
    let whole = episode(&mut *env, 3, &actions);
    assert!(episode(&mut *env, 3, &actions) == whole, "{place}: the same seed in the same world");
    let mut other = make(request).expect("again");
    assert!(episode(&mut *other, 3, &actions) == whole, "{place}: the same seed in another world");
    assert_eq!(env.state(), other.state(), "{place}: states are equal where histories are");
    let another = episode(&mut *env, 4, &actions);
    if request.picture.as_deref() != Some("none") && !BEGIN_ALIKE.contains(&world.name) {
        assert!(another != whole, "{place}: another seed");
    }
    // A reset without a seed continues the random stream.
    let streams = [(); 2].map(|()| {
        env.reset(Some(3));
        env.reset(None);
        (seen(&*env), drive(&mut *env, &actions))
    });
    assert!(streams[0] == streams[1], "{place}: the second episode of a stream");

    // The observation has the shape that the spec declares.
    env.reset(Some(3));
    let shown = |env: &dyn Env| {
        let numbers = env.observation().numbers().unwrap_or_default();
        assert!(numbers.iter().all(|x| x.is_finite()), "{place}");
        env.observation().space()
    };
    assert_eq!(shown(&*env), spec.observation, "{place}");

    // A copy continues like the original, and neither affects the other.
    let at = if whole.1.len() == 1 { 0 } else { (whole.1.len() / 2).max(1) };
    drive(&mut *env, &actions[..at]);
    let mut copy = env.boxed_clone();
    assert!(drive(&mut *copy, &actions[at..]) == whole.1[at..], "{place}: a copy");
    assert_eq!(shown(&*env), spec.observation, "{place}");
    // Rendering does not change the state.
    for (width, height) in [(64, 48), (97, 31)] {
        let mut view = ImageBuf::black(width, height);
        match env.render(&mut view) {
            // A world in another process may return a black picture.
            Ok(()) => {
                let drawn = view.rgb().iter().any(|&byte| byte != 0);
                assert!(drawn || world.has_process, "{place}: something is drawn");
            }
            Err(error) => assert!(matches!(error, EnvError::NoView { .. }), "{place}: {error}"),
        }
    }
    assert_eq!(env.state(), env.state(), "{place}");
    refuses(&mut *env, &spec.action, &place);
    assert!(drive(&mut *env, &actions[at..]) == whole.1[at..], "{place}: as if nothing had been asked");

    expert(world, &mut *env, &place);
    end(&mut *env, &place);
    needs_reset(&mut *env);
    env.reset(Some(3));
    assert!(seen(&*env) == whole.0, "{place}: an episode can begin after the end of another");
}

/// Invalid actions are rejected and change nothing.
fn refuses(env: &mut dyn Env, space: &ActionSpace, place: &str) {
    let before = seen(env);
    let mut refused = |action: Action<'_>| {
        let said = env.step(action).expect_err("no action of its own").to_string();
        assert!(!said.is_empty() && said.lines().count() == 1, "{place}: {said}");
    };
    match space {
        ActionSpace::Box { low, .. } => {
            refused(Action::Discrete(0));
            refused(Action::Continuous(&vec![0.0; low.len() + 1]));
            refused(Action::Continuous(&vec![0.0; low.len() - 1]));
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let mut action = vec![0.0; low.len()];
                action[low.len() - 1] = bad;
                refused(Action::Continuous(&action));
            }
        }
        ActionSpace::Discrete { n } => {
            refused(Action::Discrete(*n));
            refused(Action::Discrete(usize::MAX));
            refused(Action::Continuous(&[0.0]));
            refused(Action::Continuous(&vec![f64::NAN; *n]));
        }
    }
    assert!(seen(env) == before, "{place}: a refused action changes nothing");
}

/// The expert's actions lie in the action space, or the world has no expert.
fn expert(world: &WorldDescriptor, env: &mut dyn Env, place: &str) {
    let space = env.spec().action.clone();
    env.reset(Some(5));
    let mut action = vec![0.0; space.len()];
    let asked = env.expert(&mut action);
    // CarRacing's expert returns continuous actions, so a discrete action space has none.
    if !world.has_expert || (world.name == "car-racing" && space.is_discrete()) {
        assert!(matches!(asked, Err(EnvError::NoExpert { .. })), "{place}: {asked:?}");
        return;
    }
    asked.unwrap_or_else(|error| panic!("{place}: {error}"));
    for (x, [low, high]) in action.iter().zip(space.bounds()) {
        assert!((low..=high).contains(x), "{place}: the expert does {action:?}");
    }
    let said = env.expert(&mut vec![0.0; space.len() + 1]).expect_err("too long");
    assert!(matches!(said, EnvError::ActionLength { .. }), "{place}: {said}");
}

/// An episode is truncated at its limit or terminated before it, and the last observation remains.
fn end(env: &mut dyn Env, place: &str) {
    let limit = env.spec().max_steps;
    let zero = env.spec().action.zero();
    env.reset(Some(6));
    for number in 1..=limit.unwrap_or(STEPS) {
        let step = env.step(zero.as_action()).expect("doing nothing is an action");
        if step.is_over() {
            assert_eq!(
                step.truncated,
                Some(number) == limit,
                "{place}: {step:?} in step {number} of {limit:?}"
            );
            assert!(step.terminated || step.truncated, "{place}");
            assert!(seen(env) == seen(env), "{place}: the final observation can be read again");
            return;
        }
    }
    panic!("{place}: the episode went on beyond {limit:?} steps");
}

/// A request for a world with a picture and options.
fn request(id: &str, picture: &str, options: &[(&str, &str)]) -> EnvRequest {
    EnvRequest {
        id: id.into(),
        picture: Some(picture.into()),
        options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
        files: (id == "digits").then(digits),
        ..EnvRequest::default()
    }
}

/// Three pictures and their labels as `digits` reads them.
fn digits() -> Arc<Vec<Vec<u8>>> {
    let mut pictures = vec![0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 28, 0, 0, 0, 28];
    pictures.extend((0..3 * 28 * 28).map(|i| if i % 5 == 0 { (i % 256) as u8 } else { 0 }));
    Arc::new(vec![pictures, vec![0, 0, 8, 1, 0, 0, 0, 3, 4, 0, 9]])
}

#[test]
fn worlds_in_this_process_keep_their_promises() {
    let mut asked = 0;
    for world in WORLDS.iter().filter(|world| !world.has_process && !world.needs_library) {
        let limited = world.options.iter().any(|option| option.name == "max_steps");
        let short: &[(&str, &str)] = if limited { &[("max_steps", "60")] } else { &[] };
        for picture in world.pictures {
            check(world, &request(world.name, picture.name, short));
            asked += 1;
        }
    }
    assert!(asked >= 4, "CarRacing with each of its pictures");
}

#[test]
fn choices_keep_their_promises() {
    let world = WORLDS.find("car-racing").expect("it is there");
    check(world, &request("car-racing", "none", &[("continuous", "false"), ("max_steps", "60")]));
}

#[test]
fn wrapped_and_shifted_worlds_keep_their_promises() {
    let world = WORLDS.find("car-racing").expect("it is there");
    let mut wrapped =
        request("car-racing", "fast", &[("max_steps", "60"), ("wrap", "grey+resize:48x48+stack:2")]);
    check(world, &wrapped);
    wrapped.options.remove("wrap");
    wrapped.shifts = vec!["noise:2+sticky:3".into()];
    check(world, &wrapped);
}

#[test]
fn environments_of_gymnasium_keep_their_promises() {
    if foveate_toy::needs::python().is_none() {
        return;
    }
    let world = WORLDS.find("gym:ID").expect("it is there");
    let toys = concat!(env!("CARGO_MANIFEST_DIR"), "/../foveate-gym/tests/toys");
    for toy in ["Picture", "Mixed"] {
        check(world, &request(&format!("gym:foveate_toys:Toys/{toy}-v0"), "world", &[("path", toys)]));
    }
}

/// Runs the checks on a world whose packages the Python of `FOVEATE_WORLDS_PYTHON` has. An environment
/// variable selects the worker's Python, so the test `name` runs itself as another process.
fn with_packages(name: &str, check: fn()) {
    const AGAIN: &str = "FOVEATE_TEST_AGAIN";
    if env::var_os(AGAIN).is_some_and(|again| again == name) {
        check();
        return;
    }
    let Some(python) = foveate_toy::needs::worlds_python() else { return };
    let mut again = foveate_toy::test_alone(&format!("worlds::{name}"));
    again.env("FOVEATE_PYTHON", python).env(AGAIN, name);
    assert!(again.status().expect("a test can be started").success());
}

#[test]
fn take_cover_keeps_its_promises() {
    with_packages("take_cover_keeps_its_promises", || {
        let world = WORLDS.find("take-cover").expect("it is there");
        for picture in ["exact", "fast"] {
            check(world, &request("take-cover", picture, &[]));
        }
    });
}

#[test]
fn tasks_of_the_control_suite_keep_their_promises() {
    with_packages("tasks_of_the_control_suite_keep_their_promises", || {
        let suite = |world: &&WorldDescriptor| world.needs_library && !world.variants.is_empty();
        for world in WORLDS.iter().filter(suite) {
            check(world, &request(world.name, "state", &[]));
            check(world, &request(world.name, "both", &[("repeat", "8"), ("size", "40x30")]));
            let mut seen =
                request(world.name, "pixels", &[("repeat", "4"), ("size", "32"), ("antialias", "false")]);
            check(world, &seen);
            seen.variants = vec!["distracting:level=hard:dynamic=true".into()];
            check(world, &seen);
        }
    });
}

#[test]
fn the_quadruped_keeps_its_promises() {
    with_packages("the_quadruped_keeps_its_promises", || {
        let world = WORLDS.find("quadruped-walls").expect("it is there");
        check(world, &request(world.name, "state", &[]));
        check(world, &request(world.name, "both", &[("picture_every", "3"), ("size", "40x30")]));
        check(world, &request(world.name, "pixels", &[("antialias", "false"), ("most_speed", "1")]));
    });
}

#[test]
fn the_ant_keeps_its_promises() {
    with_packages("the_ant_keeps_its_promises", || {
        let world = WORLDS.find("ant").expect("it is there");
        for reward in ["evaluation", "training"] {
            check(world, &request("ant", "world", &[("reward", reward)]));
        }
    });
}

#[test]
fn pong_keeps_its_promises() {
    with_packages("pong_keeps_its_promises", || {
        check(WORLDS.find("pong").expect("it is there"), &request("pong", "world", &[]));
    });
}

#[test]
fn atari_keeps_its_promises() {
    with_packages("atari_keeps_its_promises", || {
        let world = WORLDS.find("atari").expect("it is there");
        check(world, &request("atari", "world", &[]));
        let options = [("game", "breakout"), ("sticky", "0.25"), ("actions", "full")];
        check(world, &request("atari", "world", &options));
    });
}
