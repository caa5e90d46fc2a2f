//! Tests CarRacing's expert: it finishes laps, recovers from any position, and returns errors for invalid
//! requests.

use foveate_core::{Action, Env, EnvError};
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind};

fn world() -> CarRacing {
    let config = CarRacingConfig { picture: PictureKind::None, ..CarRacingConfig::default() };
    CarRacing::new(config).expect("the defaults")
}

/// Runs an episode with `driver`'s actions, and with the expert's from step `from` on; returns the return and
/// the number of steps.
fn episode(
    env: &mut CarRacing,
    seed: u64,
    from: usize,
    mut driver: impl FnMut(usize) -> [f64; 3],
) -> (f64, usize) {
    env.reset(Some(seed));
    let (mut total, mut steps) = (0.0, 0);
    loop {
        let mut action = driver(steps);
        if steps >= from {
            env.expert(&mut action).expect("under way");
        }
        let step = env.step(Action::Continuous(&action)).expect("under way");
        total += step.reward;
        steps += 1;
        if step.is_over() {
            return (total, steps);
        }
    }
}

#[test]
fn it_finishes_every_lap_with_time_to_spare() {
    let mut env = world();
    let returns: Vec<f64> = (0..50).map(|seed| episode(&mut env, seed, 0, |_| [0.0; 3]).0).collect();
    let mean = returns.iter().sum::<f64>() / returns.len() as f64;
    let least = returns.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(mean > 910.0 && least > 850.0, "mean {mean}, least {least}: {returns:?}");
}

#[test]
fn it_comes_back_from_where_others_leave_it() {
    let mut env = world();
    // Full gas and full steering for two seconds: the car spins on the grass, at any angle.
    for seed in 0..20 {
        let side = if seed % 2 == 0 { 1.0 } else { -1.0 };
        let (total, steps) = episode(&mut env, seed, 100, |t| [side * f64::from(t > 20), 0.8, 0.0]);
        assert!(total > 400.0, "seed {seed}: {total} after {steps} steps");
    }
}

#[test]
fn asking_changes_nothing_and_copies_agree() {
    let (mut asked, mut alone) = (world(), world());
    for env in [&mut asked, &mut alone] {
        env.reset(Some(3));
    }
    for t in 0..120 {
        let (mut first, mut second) = ([0.0; 3], [0.0; 3]);
        let mut copy = asked.boxed_clone();
        asked.expert(&mut first).expect("under way");
        copy.expert(&mut second).expect("under way");
        assert_eq!(first, second, "step {t}");
        let action = [(f64::from(t) / 9.0).sin(), 0.4, 0.0];
        let steps = [&mut asked, &mut alone].map(|env| env.step(Action::Continuous(&action)).expect("fine"));
        assert_eq!(steps[0], steps[1], "step {t}");
        assert_eq!(asked.state(), alone.state(), "step {t}");
    }
}

#[test]
fn what_it_cannot_do_it_says() {
    let mut env = world();
    assert!(matches!(env.expert(&mut [0.0; 3]), Err(EnvError::NeedsReset { .. })));
    env.reset(Some(1));
    let error = env.expert(&mut [0.0; 2]).expect_err("two numbers").to_string();
    assert!(error.contains("2 numbers") && error.contains("takes 3"), "{error}");
    let config =
        CarRacingConfig { continuous: false, picture: PictureKind::None, ..CarRacingConfig::default() };
    let mut env = CarRacing::new(config).expect("choices");
    env.reset(Some(1));
    let error = env.expert(&mut [0.0; 3]).expect_err("choices").to_string();
    assert!(error.contains("no expert"), "{error}");
}
