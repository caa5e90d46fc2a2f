//! The quadruped and its course. `FOVEATE_WORLDS_PYTHON` names a Python with mujoco, whose library is used.

use foveate_control::{Quadruped, QuadrupedConfig, QuadrupedError, Shown};
use foveate_core::{Action, Env, EnvError, Fact, Step};
use foveate_mujoco::{Library, Search};

fn library() -> Option<Library> {
    let python = foveate_toy::needs::worlds_python()?;
    let found = Search { library: None, python: Some(python) }.find().expect("mujoco is installed there");
    Some(Library::open(&found.path).expect("the pinned version"))
}

fn world(config: QuadrupedConfig) -> Option<Quadruped> {
    library().map(|library| Quadruped::new(&library, config).expect("a world"))
}

/// An episode of `seed` with what `choose` makes of the guide's action: return, steps, and the last step.
fn walk(world: &mut dyn Env, seed: u64, choose: &dyn Fn(&mut [f64])) -> (f64, usize, Step) {
    world.reset(Some(seed));
    let (mut total, mut steps) = (0.0, 0);
    loop {
        let mut action = [0.0; 17];
        world.expert(&mut action).expect("it has a guide");
        choose(&mut action);
        let step = world.step(Action::Continuous(&action)).expect("an action");
        (total, steps) = (total + step.reward, steps + 1);
        if step.is_over() {
            return (total, steps, step);
        }
    }
}

fn list(state: &Fact, name: &str) -> Vec<f64> {
    let Fact::Group(facts) = state else { panic!("{state:?}") };
    let (_, Fact::List(numbers)) = facts.iter().find(|(of, _)| *of == name).expect("there") else {
        panic!("{state:?}")
    };
    numbers
        .iter()
        .map(|number| if let Fact::Number(x) = number { *x } else { panic!("{number:?}") })
        .collect()
}

#[test]
fn the_guide_walks_through_the_gaps_and_whoever_walks_straight_on_does_not() {
    let Some(mut world) = world(QuadrupedConfig::default()) else { return };
    for seed in 0..5 {
        let (guided, steps, end) = walk(&mut world, seed, &|_| ());
        assert!(
            guided > 8.0 && guided <= 10.0 && steps == 1000 && end.truncated && !end.terminated,
            "{seed}: {guided}"
        );
        let (straight, steps, end) = walk(&mut world, seed, &|action| action[1..3].fill(0.0));
        assert!(straight < 6.0 && steps < 900 && end.terminated && !end.truncated, "{seed}: {straight}");
        // It ends at a wall, or beside or below the platform.
        let (state, near) = (world.state(), |x: f64, wall: usize| (x - 2.0 * wall as f64).abs() < 0.4);
        let positions = list(&state, "positions");
        assert!(
            (1..=6).any(|wall| near(positions[0], wall)) || positions[1].abs() > 1.0 || positions[2] < 0.62,
            "{positions:?}"
        );
        assert_eq!(
            world.step(Action::Continuous(&[0.0; 17])).expect_err("it is over"),
            EnvError::NeedsReset { env: "quadruped-walls".into() }
        );
    }
    // Nothing is gained by more than the speed that counts.
    let (capped, ..) = walk(&mut world, 0, &|_| ());
    let mut slow = QuadrupedConfig { most_speed: 0.1, ..QuadrupedConfig::default() };
    slow.shown = Shown::State;
    let mut slow = self::world(slow).expect("as above");
    let (slow, ..) = walk(&mut slow, 0, &|_| ());
    assert!(slow <= 2.0 && slow < capped / 3.0, "{slow} {capped}");
}

#[test]
fn episodes_depend_on_their_seed_alone_and_copies_go_on_alike() {
    let Some(mut world) = world(QuadrupedConfig { shown: Shown::Both, ..QuadrupedConfig::default() }) else {
        return;
    };
    let mut courses = Vec::new();
    for seed in [1, 2, 1] {
        walk(&mut world, seed, &|action| action[7] = 0.3);
        courses.push(format!("{:?}", world.state()));
    }
    assert_eq!(courses[0], courses[2]);
    assert_ne!(courses[0], courses[1]);
    world.reset(Some(3));
    let mut action = [0.0; 17];
    for _ in 0..33 {
        world.expert(&mut action).expect("it has a guide");
        world.step(Action::Continuous(&action)).expect("an action");
    }
    let mut copy = world.boxed_clone();
    for _ in 0..100 {
        world.expert(&mut action).expect("it has a guide");
        let steps =
            [&mut world as &mut dyn Env, &mut *copy].map(|world| world.step(Action::Continuous(&action)));
        assert_eq!(
            steps[0].as_ref().expect("an action").reward.to_bits(),
            steps[1].as_ref().expect("an action").reward.to_bits()
        );
        assert_eq!(format!("{:?}", world.state()), format!("{:?}", copy.state()));
    }
    let pictures = [&world as &dyn Env, &*copy].map(picture);
    assert_eq!(pictures[0], pictures[1]);
}

fn picture(world: &dyn Env) -> Vec<u8> {
    world.observation().image().expect("a picture").bytes().to_vec()
}

#[test]
fn the_camera_shows_the_gap_ahead_as_often_as_it_is_told_to() {
    let config = QuadrupedConfig {
        shown: Shown::Both,
        size: [64, 48],
        picture_every: 4,
        ..QuadrupedConfig::default()
    };
    let Some(mut world) = world(config) else { return };
    world.reset(Some(1));
    let mut last = picture(&world);
    assert_eq!(last.len(), 64 * 48 * 3);
    for step in 1..=40 {
        world.step(Action::Continuous(&[0.0; 17])).expect("an action");
        let now = picture(&world);
        assert_eq!(now != last, step % 4 == 0, "step {step}");
        last = now;
    }
    // The two ends of the gap: red on one side of the inner one.
    let mut points = Vec::new();
    world.gaze(&mut points).expect("a picture");
    let [inner, _] = &points[..] else { panic!("{points:?}") };
    let walls = list(&world.state(), "walls");
    let at = |dx: f32| {
        let (x, y) = (((inner.x + dx) * 64.0) as usize, (inner.y * 48.0) as usize - 2);
        let rgb = &last[3 * (64 * y + x)..][..3];
        rgb[0] / 2 > rgb[2]
    };
    let towards_wall = if walls[0] > 0.0 { -0.05 } else { 0.05 };
    assert!(at(towards_wall) && !at(-towards_wall), "{inner:?} {walls:?}");
}

#[test]
fn sizes_and_numbers_are_checked() {
    let Some(library) = library() else { return };
    let refused = |config| Quadruped::new(&library, config).err().expect("refused");
    let of = QuadrupedConfig::default();
    for (what, config) in [
        ("picture_every", QuadrupedConfig { picture_every: 0, ..of.clone() }),
        ("most_speed", QuadrupedConfig { most_speed: f64::NAN, ..of.clone() }),
    ] {
        let error = refused(config);
        assert!(matches!(&error, QuadrupedError::Range { what: of, .. } if *of == what), "{error}");
    }
    let error = refused(QuadrupedConfig { shown: Shown::Pixels, size: [100_000, 1], ..of });
    assert!(matches!(error, QuadrupedError::Picture(_)), "{error}");
}
