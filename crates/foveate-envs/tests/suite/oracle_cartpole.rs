//! Compares `CartPoleSwingUpHarder` with its equations in Python and NumPy, step by step, bit by bit.

use foveate_core::{Action, Env, Observation};
use foveate_envs::cartpole_swingup::{CartPoleConfig, CartPoleState, CartPoleSwingUp};
use foveate_toy::oracle::{Oracle, Report};

#[test]
fn starts_steps_and_rewards_are_pythons() {
    let Some(mut oracle) = Oracle::start("oracle/cartpole_swingup.py") else { return };
    let mut env = CartPoleSwingUp::new(CartPoleConfig::default());
    let mut report = Report::default();
    let (mut episodes, mut steps, mut full) = (0, 0, 0);
    while oracle.flag() {
        let [high, low] = oracle.numbers::<2>();
        env.reset((high >= 0.0).then_some((high as u64) << 32 | low as u64));
        compare(&mut oracle, &env, &mut report, &format!("start of episode {episodes}"));
        loop {
            let action = oracle.number();
            let outcome = env.step(Action::Continuous(&[action])).expect("a finite action");
            let place = format!("episode {episodes}, step {steps}");
            compare(&mut oracle, &env, &mut report, &place);
            report.compare(outcome.reward, oracle.number(), || format!("{place}, reward"));
            let ends = (oracle.flag(), oracle.flag());
            assert_eq!((outcome.terminated, outcome.truncated), ends, "{place}");
            steps += 1;
            if outcome.is_over() {
                full += u32::from(outcome.truncated);
                break;
            }
        }
        episodes += 1;
    }
    oracle.finish();
    assert!(
        episodes >= 300 && steps > 30_000 && full > 20,
        "{episodes} episodes, {steps} steps, {full} full"
    );
    report.finish(&format!("{episodes} episodes, {full} of 1000 steps, {steps} steps"));
}

fn compare(oracle: &mut Oracle, env: &CartPoleSwingUp, report: &mut Report, place: &str) {
    let CartPoleState { x, x_dot, theta, theta_dot } = env.cart_pole();
    let Observation::Vector(seen) = env.observation() else { panic!("numbers") };
    for (ours, theirs) in [x, x_dot, theta, theta_dot].into_iter().zip(oracle.numbers::<4>()) {
        report.compare(ours, theirs, || format!("{place}, state"));
    }
    for (&ours, theirs) in seen.iter().zip(oracle.numbers::<5>()) {
        report.compare(f64::from(ours), f64::from(theirs as f32), || format!("{place}, observation"));
    }
}
