//! Compares whole episodes with the real Gymnasium: state, reward and flags after every step.

use foveate_core::{Action, Env, Fact};
use foveate_envs::car_racing::scene::Paint;
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind, Seeding};
use foveate_toy::oracle::{Oracle, Report};

#[test]
fn episodes_go_as_in_gymnasium() {
    let Some(mut oracle) = Oracle::start("oracle/episodes.py") else { return };
    let mut report = Report::default();
    let (mut episodes, mut steps, mut laps, mut strays, mut cuts) = (0, 0, 0, 0, 0);
    loop {
        let name = oracle.text();
        if name == "end" {
            break;
        }
        let (old, discrete) = (oracle.flag(), oracle.flag());
        let limit = oracle.count();
        let mut env = CarRacing::new(CarRacingConfig {
            seeding: if old { Seeding::Gym0153 } else { Seeding::Gymnasium },
            picture: PictureKind::None,
            continuous: !discrete,
            lap_complete_percent: oracle.number(),
            max_steps: Some(limit),
            ..CarRacingConfig::default()
        })
        .expect("the options fit");
        for episode in 0..oracle.count() {
            let mut step = 0;
            env.reset(oracle.seed());
            compare_state(&mut oracle, &env, &mut report, &|| format!("{name}, episode {episode}, reset"));
            while oracle.flag() {
                step += 1;
                let outcome = if discrete {
                    env.step(Action::Discrete(oracle.count()))
                } else {
                    env.step(Action::Continuous(&oracle.numbers::<3>()))
                }
                .unwrap_or_else(|error| panic!("{name}, episode {episode}, step {step}: {error}"));
                let place = || format!("{name}, episode {episode}, step {step}");
                compare_state(&mut oracle, &env, &mut report, &place);
                report.compare(outcome.reward, oracle.number(), || format!("{}, reward", place()));
                let flags = (outcome.terminated, outcome.truncated);
                assert_eq!(flags, (oracle.flag(), oracle.flag()), "{}: terminated, truncated", place());
                laps += u32::from(outcome.terminated && outcome.reward > -100.0 && step > 1);
                strays += u32::from(outcome.terminated && outcome.reward == -100.0);
                cuts += u32::from(outcome.truncated);
            }
            episodes += 1;
            steps += step;
        }
    }
    oracle.finish();
    eprintln!("{laps} laps completed, {strays} times off the field, {cuts} time limits");
    assert!(episodes >= 30 && laps >= 5 && strays >= 1 && cuts >= 5, "{episodes} episodes");
    report.finish(&format!("{episodes} episodes, {steps} steps"));
}

fn compare_state(oracle: &mut Oracle, env: &CarRacing, report: &mut Report, place: &dyn Fn() -> String) {
    let mut names = Vec::new();
    let mut ours = Vec::new();
    let state = env.state();
    for name in ["hull", "wheels", "wheel_omega", "wheel_phase", "joint_angle", "tiles_visited", "score", "t"]
    {
        let Fact::Group(group) = &state else { panic!("the state is a group") };
        let (_, fact) = group.iter().find(|(key, _)| *key == name).expect("the state has this fact");
        flatten(fact, &mut ours);
        names.resize(ours.len(), name);
    }
    let plain = Paint::Road { stripe: 0 };
    ours.push(env.scene().road.iter().filter(|quad| quad.paint == plain).count() as f64);
    names.push("tiles of plain colour");
    assert_eq!(ours.len(), 5 * 6 + 3 * 4 + 4);
    for (i, (ours, name)) in ours.into_iter().zip(names).enumerate() {
        report.compare(ours, oracle.number(), || format!("{}, {name} (number {i})", place()));
    }
}

/// All numbers of a fact in order.
fn flatten(fact: &Fact, into: &mut Vec<f64>) {
    match fact {
        Fact::Number(x) => into.push(*x),
        Fact::Count(n) => into.push(*n as f64),
        Fact::List(list) => list.iter().for_each(|fact| flatten(fact, into)),
        Fact::Group(group) => group.iter().for_each(|(_, fact)| flatten(fact, into)),
        Fact::Flag(_) | Fact::Text(_) | Fact::Named(_) => panic!("the state has no {fact:?} to compare"),
    }
}
