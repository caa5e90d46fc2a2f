//! The world `digits` on the real MNIST: `FOVEATE_MNIST` names the folder with its four files.

use foveate_core::{Action, Env};
use foveate_envs::registry::EnvRequest;
use foveate_run::worlds;

fn world(options: &[(&str, &str)]) -> Option<Box<dyn Env>> {
    let folder = foveate_toy::needs::mnist()?;
    let options = [("data", folder.to_str().expect("text"))].into_iter().chain(options.iter().copied());
    let options = options.map(|(name, value)| (name.into(), value.into()));
    let request = EnvRequest { id: "digits".into(), options: options.collect(), ..EnvRequest::default() };
    Some(worlds::make(request).expect("the data set"))
}

const UNCHANGED: [(&str, &str); 3] = [("rotation", "0"), ("shift", "0"), ("spots", "0")];

/// The label that the expert gives.
fn label(env: &mut dyn Env) -> usize {
    let mut scores = [0.0; 10];
    env.expert(&mut scores).expect("it knows");
    scores.iter().position(|&score| score == 1.0).expect("one is right")
}

/// The test set has 980, 1135, … pictures of each digit.
#[test]
fn ten_thousand_seeds_are_the_test_set() {
    let Some(mut env) = world(&[&UNCHANGED[..], &[("images", "test")]].concat()) else { return };
    let mut counts = [0; 10];
    let mut sum = 0_u64;
    for seed in 0..10_000 {
        env.reset(Some(seed));
        sum +=
            env.observation().image().expect("a picture").bytes().iter().map(|&x| u64::from(x)).sum::<u64>();
        let label = label(&mut *env);
        counts[label] += 1;
        assert_eq!(env.step(Action::Discrete(label)).expect("a digit").reward, 1.0);
    }
    assert_eq!(counts, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    let mean = sum as f64 / (10_000.0 * 784.0 * 255.0);
    // 0.13251 without the scaling to the brightest pixel.
    assert!((mean - 0.1325).abs() < 5e-4, "{mean}");
    let first: Vec<usize> = (0..5)
        .map(|seed| {
            env.reset(Some(seed));
            label(&mut *env)
        })
        .collect();
    assert_eq!(first, [7, 2, 1, 0, 4]);
}

/// Pictures that a test looks at.
const DRAWN: u64 = 5000;

/// Known mean of the training set's pixels: 0.1307.
#[test]
fn training_pictures_are_those_of_the_training_set() {
    let Some(mut env) = world(&UNCHANGED) else { return };
    let mut sum = 0_u64;
    for seed in 0..DRAWN {
        env.reset(Some(seed));
        sum +=
            env.observation().image().expect("a picture").bytes().iter().map(|&x| u64::from(x)).sum::<u64>();
    }
    let mean = sum as f64 / (DRAWN as f64 * 784.0 * 255.0);
    assert!((mean - 0.1307).abs() < 0.003, "{mean}");
}
