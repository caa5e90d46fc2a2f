//! The world against figures from the reference, and its behaviour as an `Env`.

use foveate_core::{Action, Env, Fact};
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind};

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

/// Hull position of Gymnasium 1.4.0's `CarRacing-v3` after 60 steps of (0.1, 0.3, 0).
#[test]
fn sixty_steps_end_where_gymnasium_ends() {
    for (seed, x, y) in [
        (0, 232.942_443_847_656_25, -27.247_943_878_173_828),
        (1, 231.220_748_901_367_2, -30.043_605_804_443_36),
        (2, 231.782_699_584_960_94, -27.965_593_338_012_695),
    ] {
        let mut env = CarRacing::new(blind()).expect("the options fit");
        env.reset(Some(seed));
        for _ in 0..60 {
            env.step(Action::Continuous(&[0.1, 0.3, 0.0])).expect("the episode goes on");
        }
        let state = env.state();
        assert_eq!((number(&state, &["hull", "x"]), number(&state, &["hull", "y"])), (x, y), "seed {seed}");
    }
}
