//! Targets, loss and gradient with S3TA against the same in JAX, in double precision.

use std::collections::BTreeMap;

use foveate_agents::registry::AgentConfig;
use foveate_agents::s3ta::{S3taConfig, S3taStudent};
use foveate_core::{EpisodeResult, ObservationBuf, PixelShape, PixelsBuf, Recording, add_gradients};

use super::*;
use foveate_toy::oracle::Oracle;

/// Ours is in single precision, the reference in double precision. A difference is relative to the largest number.
const TOLERANCE: f64 = 1e-4;

fn numbers(oracle: &mut Oracle, count: usize) -> Vec<f64> {
    (0..count).map(|_| oracle.number()).collect()
}

fn single(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&x| x as f32).collect()
}

/// Tensors by name, flat in the order of the agent's.
fn flat(oracle: &mut Oracle, config: &S3taConfig) -> Vec<f64> {
    let mut tensors = BTreeMap::new();
    for _ in 0..oracle.count() {
        let name = oracle.text();
        let axes = oracle.count();
        let shape: Vec<usize> = (0..axes).map(|_| oracle.count()).collect();
        let values = numbers(oracle, shape.iter().product());
        tensors.insert(name, (shape, values));
    }
    let take = |tensor: foveate_core::TensorShape| {
        let (shape, values) = tensors.remove(&tensor.name).expect("the same tensors");
        assert_eq!(shape, tensor.shape, "{}", tensor.name);
        values
    };
    config.tensors().into_iter().flat_map(take).collect()
}

#[track_caller]
fn close(ours: &[f64], theirs: &[f64], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let largest = theirs.iter().map(|x| x.abs()).fold(0.0, f64::max);
    let apart = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    eprintln!("{what}: {apart:.1e} apart, largest {largest:.2e}");
    assert!(largest > 0.0 && apart <= TOLERANCE * largest, "{what}: {apart} apart, largest {largest}");
}

/// An unroll, and what the reference has of it: the logarithms of the ratios, values, targets and advantages.
fn unroll(oracle: &mut Oracle, config: &S3taConfig, memory_len: usize) -> (Unroll, [Vec<f64>; 4]) {
    let (steps, terminated) = (oracle.count(), oracle.flag());
    let memory = single(&numbers(oracle, memory_len));
    let [height, width, channels] = config.view;
    let shape = PixelShape { frames: 1, height, width, channels };
    let mut observations = vec![];
    for _ in 0..=steps {
        let bytes: Vec<u8> = (0..height * width * channels).map(|_| oracle.count() as u8).collect();
        observations.push(ObservationBuf::Image(PixelsBuf::new(shape, bytes).expect("a picture")));
    }
    let actions = (0..steps).map(|_| ActionBuf::Discrete(oracle.count())).collect();
    let rewards = numbers(oracle, steps);
    let logits = single(&numbers(oracle, steps * config.actions));
    let theirs = [steps, steps + 1, steps, steps].map(|count| numbers(oracle, count));
    let unroll = Unroll {
        observations,
        actions,
        rewards,
        logits,
        memory,
        terminated,
        truncated: !terminated,
        ..Unroll::default()
    };
    (unroll, theirs)
}

#[test]
fn targets_loss_and_gradient_are_those_of_jax() {
    let Some(mut oracle) = Oracle::start("oracle/vtrace.py") else { return };
    let mut compared = vec![];
    loop {
        let name = oracle.text();
        if name == "end" {
            break;
        }
        let config: S3taConfig = serde_json::from_str(&oracle.text()).expect("an agent's configuration");
        let settings: VtraceConfig = serde_json::from_str(&oracle.text()).expect("a learner's configuration");
        let weights = flat(&mut oracle, &config);
        let mut student = S3taStudent::new(&config).expect("good");
        let memory_len = student.outputs().expect("it has some").memory_len();
        let (mut episodes, mut theirs) = (vec![], vec![]);
        for _ in 0..oracle.count() {
            let mut unrolls = vec![];
            for _ in 0..oracle.count() {
                let (unroll, of_unroll) = unroll(&mut oracle, &config, memory_len);
                unrolls.push(unroll);
                theirs.push(of_unroll);
            }
            episodes.push(Recording::Transitions(unrolls));
        }
        let mut learner = Vtrace::new(settings.clone(), &weights, Seed::root(1), &student).expect("fine");
        let experience = Experience {
            episodes: episodes.iter().map(|_| EpisodeResult::default()).collect(),
            recordings: episodes,
            ..Experience::default()
        };
        let batch = learner.method.sequences(experience, 0).expect("they fit");
        assert_eq!(batch.len(), theirs.len());
        for (Sequence { behaviour, .. }, [log_ratios, values, aims, advantages]) in batch.iter().zip(&theirs)
        {
            let ended = behaviour.terminated;
            let (rewards, values) = (&behaviour.rewards, single(values));
            let ours = targets(log_ratios, rewards, &values, ended, settings.discount, settings.bounds());
            close(&ours.values, aims, &format!("{name}, targets"));
            close(&ours.advantages, advantages, &format!("{name}, advantages"));
        }
        let (mut sums, mut gradient) = (LossSums::default(), vec![0.0; weights.len()]);
        let loss = learner.method.loss(&batch);
        learner.descent.give_to(&mut *learner.model).expect("finite");
        add_gradients(&mut *learner.model, &loss, &mut gradient, &mut |part| add(&mut sums, part))
            .expect("they fit");
        close(&[sums[LOSS]], &[oracle.number()], &format!("{name}, loss"));
        let (expect, gradient) =
            (flat(&mut oracle, &config), gradient.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>());
        let mut at = 0;
        for tensor in config.tensors() {
            let part = at..at + tensor.len();
            close(&gradient[part.clone()], &expect[part], &format!("{name}, gradient of {}", tensor.name));
            at += tensor.len();
        }
        compared.push(name);
    }
    oracle.finish();
    assert_eq!(compared.len(), 4, "{compared:?}");
}
