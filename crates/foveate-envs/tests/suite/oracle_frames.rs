//! Compares the agent's picture with the real Gymnasium, byte for byte, over whole episodes.

use foveate_core::{Action, Env};
use foveate_envs::car_racing::picture::FRAME_BYTES;
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind};
use foveate_toy::oracle::Oracle;

#[test]
fn frames_are_gymnasiums() {
    let Some(mut oracle) = Oracle::start("oracle/watched.py") else { return };
    let mut tally = Tally::default();
    let mut strays = 0;
    loop {
        let name = oracle.text();
        if name == "end" {
            break;
        }
        let mut env = CarRacing::new(CarRacingConfig {
            picture: PictureKind::Exact,
            domain_randomize: oracle.flag(),
            continuous: oracle.flag(),
            max_steps: None,
            ..CarRacingConfig::default()
        })
        .expect("the options fit");
        let continuous = env.config().continuous;
        for episode in 0..oracle.count() {
            let seed = oracle.seed();
            env.reset_with(seed, Some(oracle.flag()));
            tally.compare(&mut oracle, &env, &|| format!("{name}, episode {episode}, reset"));
            let mut step = 0;
            while oracle.flag() {
                step += 1;
                let place = || format!("{name}, episode {episode}, step {step}");
                let outcome = if continuous {
                    env.step(Action::Continuous(&oracle.numbers::<3>()))
                } else {
                    env.step(Action::Discrete(oracle.count()))
                }
                .unwrap_or_else(|error| panic!("{}: {error}", place()));
                let expected = (oracle.number(), oracle.flag());
                assert_eq!(
                    (outcome.reward, outcome.terminated),
                    expected,
                    "{}: the world itself differs",
                    place()
                );
                strays += u32::from(outcome.reward == -100.0);
                tally.compare(&mut oracle, &env, &place);
            }
        }
    }
    oracle.finish();
    let Tally { frames, different } = tally;
    eprintln!("{frames} frames compared, {different} different");
    assert!(frames >= 3000 && strays >= 1, "{frames} frames, {strays} times off the field");
    assert_eq!(different, 0, "of {frames} frames, {different} differ");
}

#[derive(Default)]
struct Tally {
    frames: u32,
    different: u32,
}

impl Tally {
    fn compare(&mut self, oracle: &mut Oracle, env: &CarRacing, place: &dyn Fn() -> String) {
        let mut theirs = vec![0; FRAME_BYTES];
        oracle.raw(&mut theirs);
        let Some(image) = env.observation().picture() else { panic!("the world shows pictures") };
        self.frames += 1;
        let mut unequal =
            image.rgb().iter().zip(&theirs).enumerate().filter(|(_, (ours, theirs))| ours != theirs);
        let Some((first, (ours, byte))) = unequal.next() else { return };
        self.different += 1;
        if self.different <= 20 {
            let (row, column, channel) = (first / 288, first % 288 / 3, first % 3);
            eprintln!(
                "{}: {} bytes differ, the first in row {row}, column {column}, channel {channel}: {ours} here, {byte} \
                 in the reference",
                place(),
                1 + unequal.count(),
            );
        }
    }
}
