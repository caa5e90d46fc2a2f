//! Compares the world with values from the reference, and tests its behaviour as an `Env`.

use foveate_core::{Action, Env, EnvError, Fact, Step};
use foveate_envs::car_racing::variants::Variants;
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, DEFAULT_SEED, PictureKind, Seeding};

fn build(config: CarRacingConfig) -> CarRacing {
    CarRacing::new(config).expect("the options fit")
}

/// Takes up to `steps` random actions drawn from `seed`, each held for 15 steps.
fn drive(env: &mut dyn Env, seed: u64, steps: usize) -> Vec<Step> {
    let mut rng = foveate_core::Seed::root(seed).rng();
    let mut action = [0.0; 3];
    (0..steps)
        .map_while(|step| {
            if step % 15 == 0 {
                action = [rng.uniform(-1.0, 1.0), rng.uniform(0.2, 1.0), 0.0];
            }
            env.step(Action::Continuous(&action)).ok()
        })
        .collect()
}

fn blind() -> CarRacingConfig {
    CarRacingConfig { picture: PictureKind::None, ..CarRacingConfig::default() }
}

fn number(fact: &Fact, path: &[&str]) -> f64 {
    match (fact, path) {
        (Fact::Number(x), []) => *x,
        (Fact::Group(group), [first, rest @ ..]) => {
            let (_, inner) = group.iter().find(|(name, _)| name == first).expect("the state has this fact");
            number(inner, rest)
        }
        _ => panic!("no number at {path:?} in {fact:?}"),
    }
}

/// CRC-32 (polynomial 0xedb88320) of the agent's picture.
fn frame_crc(env: &dyn Env) -> u32 {
    let Some(image) = env.observation().picture() else { panic!("the world shows pictures") };
    !image.rgb().iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

/// Frames and hull positions of Gymnasium 1.4.0's `CarRacing-v3` (box2d 2.3.10, pygame-ce 2.5.8) after the
/// reset and after 60 steps of (0.1, 0.3, 0). The platform's `sin` and `cos` must be glibc's for these bits.
#[test]
#[cfg_attr(
    not(all(target_os = "linux", target_env = "gnu")),
    ignore = "the bits of these frames are those of glibc\'s sin and cos"
)]
fn sixty_steps_end_where_gymnasium_ends() {
    for (seed, first, last, x, y) in [
        (0, 0xf6c1_5c6c, 0xf567_63f1, 232.942_443_847_656_25, -27.247_943_878_173_828),
        (1, 0xbea5_dde4, 0x89d9_c884, 231.220_748_901_367_2, -30.043_605_804_443_36),
        (2, 0x1493_4f30, 0x37c3_c7c3, 231.782_699_584_960_94, -27.965_593_338_012_695),
    ] {
        let mut env = build(CarRacingConfig::default());
        env.reset(Some(seed));
        assert_eq!(frame_crc(&env), first, "seed {seed}, first frame");
        for _ in 0..60 {
            env.step(Action::Continuous(&[0.1, 0.3, 0.0])).expect("the episode goes on");
        }
        let state = env.state();
        assert_eq!((number(&state, &["hull", "x"]), number(&state, &["hull", "y"])), (x, y), "seed {seed}");
        assert_eq!(frame_crc(&env), last, "seed {seed}, last frame");
    }
}

#[test]
fn a_copy_goes_on_bit_for_bit() {
    let random_looks = Variants::parse("color+noise").expect("they go together");
    for config in [
        blind(),
        CarRacingConfig { picture: PictureKind::Fast, domain_randomize: true, ..blind() },
        CarRacingConfig { variants: random_looks, ..CarRacingConfig::classic() },
    ] {
        let mut env = build(CarRacingConfig { max_steps: Some(150), ..config });
        env.reset(Some(5));
        drive(&mut env, 1, 60);
        let mut copy = env.boxed_clone();
        // Through the end of this episode and into the next tracks of the stream.
        for part in 0..3 {
            assert_eq!(drive(&mut env, part, 200), drive(&mut *copy, part, 200));
            assert_eq!(env.state(), copy.state());
            assert_eq!(env.observation(), copy.observation());
            env.reset(None);
            copy.reset(None);
            assert_eq!(env.state(), copy.state());
            assert_eq!(env.observation(), copy.observation());
        }
    }
}

/// A reset; the flag is Gymnasium's option `randomize`.
type Reset = (Option<u64>, bool);

/// The frames, steps and states after these resets, with 40 steps in each episode before the last; and the
/// last track's number.
fn shown(config: &CarRacingConfig, resets: &[Reset]) -> (Vec<Vec<u8>>, Vec<Step>, Vec<Fact>, u64) {
    let mut env = build(config.clone());
    for (i, &(seed, randomize)) in resets.iter().enumerate() {
        if i > 0 {
            drive(&mut env, i as u64, 40);
        }
        env.reset_with(seed, Some(randomize));
    }
    let (mut frames, mut steps, mut states) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..30 {
        let Some(image) = env.observation().picture() else { panic!("the world shows pictures") };
        frames.push(image.rgb().to_vec());
        states.push(env.state());
        let mut action = [0.0; 3];
        env.expert(&mut action).expect("it has one");
        action[0] += f64::from(step % 7) * 0.05;
        steps.push(env.step(Action::Continuous(&action)).expect("it goes on"));
    }
    (frames, steps, states, env.scene().track_id)
}

#[test]
fn a_seed_that_comes_again_makes_what_a_new_world_makes() {
    let variants = |text| Variants::parse(text).expect("they go together");
    let kind = |picture| CarRacingConfig { picture, ..CarRacingConfig::default() };
    let [again, other, next] = [(Some(5), true), (Some(7), true), (None, true)];
    for (name, config) in [
        ("exact", kind(PictureKind::Exact)),
        ("fast", kind(PictureKind::Fast)),
        ("classic", CarRacingConfig::classic()),
        ("colours", CarRacingConfig { domain_randomize: true, ..kind(PictureKind::Fast) }),
        ("looks", CarRacingConfig { variants: variants("color+fake-lane+noise"), ..kind(PictureKind::Fast) }),
    ] {
        let check = |resets: &[Reset], fresh: &[Reset]| {
            let (frames, steps, states, track) = shown(&config, resets);
            let expect = shown(&config, fresh);
            assert!(frames == expect.0, "{name}: frames after {resets:?}");
            assert_eq!((steps, states), (expect.1, expect.2), "{name}: {resets:?}");
            assert_ne!(track, expect.3, "{name}: different worlds have tracks of their own");
        };
        check(&[again, again, again], &[again]);
        check(&[again, other, again, again], &[again]);
        // The next episode of the random stream is the same, too.
        check(&[again, again, next], &[again, next]);
        check(&[again, again, next, next], &[again, next, next]);
        check(&[again, next, again, again], &[again]);
        // Without new colours, the track uses random numbers from an earlier position of the stream.
        let [kept, another] = [(Some(5), false), (Some(6), false)];
        check(&[again, kept], &[again, another, kept]);
        check(&[again, kept, kept], &[again, another, kept]);
        check(&[kept, again], &[again]);
        check(&[kept, kept, next], &[kept, next]);
    }
}

#[test]
fn a_seed_that_comes_again_at_once_keeps_its_track() {
    let mut env = build(blind());
    let mut track = |seed| {
        env.reset(seed);
        env.scene().track_id
    };
    let first = track(Some(3));
    assert_eq!(track(Some(3)), first);
    let second = track(None);
    assert_ne!(second, first, "a new track");
    let third = track(Some(3));
    assert!(third != first && third != second, "made again");
    assert_eq!(track(Some(3)), third);
    assert_ne!(track(Some(4)), third);
}

#[test]
fn one_seed_names_a_sequence_of_tracks() {
    let mut env = build(blind());
    let tracks = |env: &mut CarRacing, seed| {
        env.reset(seed);
        let first = env.track().points.clone();
        env.reset(None);
        (first, env.track().points.clone())
    };
    let (first, second) = tracks(&mut env, Some(9));
    assert_ne!(first, second);
    assert_eq!(tracks(&mut env, Some(9)), (first.clone(), second.clone()));
    assert_ne!(tracks(&mut env, Some(10)).0, first);

    // A reset without any seed uses the default seed.
    assert_eq!(tracks(&mut build(blind()), None), tracks(&mut env, Some(DEFAULT_SEED)));
    // Old Gym's random stream gives other tracks for the same seed.
    let old = CarRacingConfig { seeding: Seeding::Gym0153, ..blind() };
    assert_ne!(tracks(&mut build(old), Some(9)).0, first);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut env = build(blind());
    let mut discrete = build(CarRacingConfig { continuous: false, ..blind() });
    let mut old = build(CarRacingConfig { seeding: Seeding::Gym0153, ..blind() });
    let go = Action::Continuous(&[0.0, 0.5, 0.0]);
    let refused =
        |env: &mut CarRacing, action: Action<'_>| env.step(action).expect_err("it does not fit").to_string();

    assert_eq!(env.step(go), Err(EnvError::NeedsReset { env: "car-racing".into() }));
    for env in [&mut env, &mut discrete, &mut old] {
        env.reset(Some(1));
    }
    let before = env.state();
    for (action, message) in [
        (Action::Continuous(&[0.0, 0.5]), "an action of 2 numbers was given, car-racing takes 3"),
        (Action::Continuous(&[0.0; 4]), "an action of 4 numbers was given, car-racing takes 3"),
        (Action::Discrete(0), "car-racing does not take the action choice 0; it takes 3 numbers"),
        (Action::Continuous(&[0.0, f64::NAN, 0.0]), "action[1] is NaN; car-racing takes finite numbers only"),
        (
            Action::Continuous(&[0.0, 0.0, f64::NEG_INFINITY]),
            "action[2] is -inf; car-racing takes finite numbers only",
        ),
    ] {
        assert_eq!(refused(&mut env, action), message);
    }
    // Values beyond f32 are outside Gymnasium's action space; old Gym accepted any f64.
    assert!(refused(&mut env, Action::Continuous(&[1e300, 0.0, 0.0])).starts_with("action[0]"));
    assert!(old.step(Action::Continuous(&[1e300, 1e300, 1e300])).is_ok());
    assert_eq!(env.state(), before);

    assert_eq!(
        refused(&mut discrete, Action::Discrete(5)),
        "car-racing does not take the action choice 5; it takes a choice of 0 to 4"
    );
    assert!(refused(&mut discrete, go).contains("of 3 numbers"));
    assert!(discrete.step(Action::Discrete(4)).is_ok());
}

#[test]
fn the_time_limit_truncates_and_may_coincide_with_the_end() {
    let full_gas = Action::Continuous(&[0.0, 1.0, 0.0]);
    let mut free = build(CarRacingConfig { max_steps: None, ..blind() });
    free.reset(Some(6));
    let last = (1..2000)
        .find(|_| free.step(full_gas).is_ok_and(|step| step.is_over()))
        .expect("full gas leaves the field");
    for (limit, terminated, truncated) in
        [(last - 1, false, true), (last, true, true), (last + 1, true, false)]
    {
        let mut env = build(CarRacingConfig { max_steps: Some(limit), ..blind() });
        env.reset(Some(6));
        let steps: Vec<Step> = (0..last + 2).map_while(|_| env.step(full_gas).ok()).collect();
        let (end, before) = steps.split_last().expect("there were steps");
        assert!(before.iter().all(|step| !step.is_over()));
        assert_eq!((end.terminated, end.truncated), (terminated, truncated), "limit {limit}, end at {last}");
        assert_eq!(end.reward == -100.0, terminated);
        assert!(matches!(env.step(full_gas), Err(EnvError::NeedsReset { .. })));
    }
}

#[test]
fn rewards_add_up() {
    let mut env = build(blind());
    env.reset(Some(3));
    let steps = drive(&mut env, 2, 200);
    let Fact::Group(state) = env.state() else { panic!("the state is a group") };
    let count = |name| match state.iter().find(|(key, _)| *key == name) {
        Some((_, Fact::Count(n))) => *n as f64,
        other => panic!("{name} is {other:?}"),
    };
    let expected = count("tiles_visited") * 1000.0 / count("tiles") - 0.1 * steps.len() as f64;
    let total: f64 = steps.iter().map(|step| step.reward).sum();
    assert!(count("tiles_visited") > 5.0 && (total - expected).abs() < 1e-9, "{total} {expected}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for (config, part) in [
        (CarRacingConfig { max_steps: Some(0), ..blind() }, "max_steps"),
        (CarRacingConfig { lap_complete_percent: f64::NAN, ..blind() }, "lap_complete_percent"),
        (
            CarRacingConfig { domain_randomize: true, seeding: Seeding::Gym0153, ..blind() },
            "seeding=gymnasium",
        ),
    ] {
        let error = CarRacing::new(config).expect_err("they do not fit").to_string();
        assert!(error.contains(part), "{error}");
    }
}
