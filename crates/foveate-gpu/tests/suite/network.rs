//! The kernels and passes on this machine's processor, beside the network of `foveate-agents`.

use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::s3ta::{Basis, S3taConfig, S3taStudent};
use foveate_core::{Model, Outputs, Seed};
use foveate_gpu::device::Memory;
use foveate_gpu::network::Network;

use crate::host::Host;

/// Few numbers, but every part of the network: an odd picture, so that padding is uneven.
fn small() -> S3taConfig {
    let layer = |filters, size, stride| foveate_agents::config::ConvolutionLayer { filters, size, stride };
    S3taConfig {
        view: [21, 18, 3],
        actions: 5,
        convolutions: vec![layer(6, 5, 3), layer(7, 4, 2)],
        channels: 12,
        keys: 3,
        heads: 2,
        frequencies: 2,
        basis: Basis::Mixed,
        query_hidden: vec![9, 8],
        answer_hidden: vec![11, 10],
        units: 13,
        trunk: 6,
        pixel_scale: 3.0,
        score_scale: 0.7,
        ..S3taConfig::default()
    }
}

fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = Seed::root(seed).rng();
    (0..len).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
}

fn close(what: &str, got: &[f32], expect: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expect.len(), "{what}");
    let largest = expect.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    for (i, (got, expect)) in got.iter().zip(expect).enumerate() {
        assert!((got - expect).abs() <= tolerance * largest.max(1e-3), "{what} {i}: {got}, not {expect}");
    }
}

/// What the two networks compute for the same pictures.
fn compare(config: &S3taConfig, steps: usize, batch: usize) {
    let device = Host::device();
    let network = Network::new(&device, config).expect("it is built");
    let mut student = S3taStudent::new(config).expect("it is built");
    let params = config.initial_params(Init::He, Seed::root(5));
    assert_eq!(network.params(), params.len());
    student.set_params(&params).expect("as many");
    network.set_params(&params).expect("as many");

    let pixels: usize = config.view.iter().product();
    let told_len = 1 + config.actions;
    let mut rng = Seed::root(6).rng();
    let pictures: Vec<u8> = (0..steps * batch * pixels).map(|_| rng.below(256) as u8).collect();
    let told = numbers(7, steps * batch * told_len);
    let inputs: Vec<f32> = pictures
        .chunks_exact(pixels)
        .zip(told.chunks_exact(told_len))
        .flat_map(|(picture, told)| {
            picture
                .iter()
                .map(|&x| f32::from(x) * (config.pixel_scale / 255.0))
                .chain(told.iter().copied())
                .collect::<Vec<_>>()
        })
        .collect();
    let (d_logits, d_values) = (numbers(8, steps * batch * config.actions), numbers(9, steps * batch));
    let memories = vec![0.0; student.memory_len() * batch];
    let expect = student.forward(steps, &inputs, &memories).clone();
    let mut gradient = vec![0.0; params.len()];
    student.backward(&d_logits, &d_values, &mut gradient);

    let on_device = Memory::bytes(&device, pictures.len()).expect("memory");
    network.ops().write_bytes(on_device.all_bytes(), &pictures).expect("written");
    let pass = network.pass(steps, batch, true).expect("it fits");
    pass.tell(network.ops(), &told, &vec![0; steps * batch]).expect("told");
    network.forward(&pass, on_device.all_bytes()).expect("computed");
    let (logits, values) = pass.outputs(network.ops()).expect("read");
    close("logit", &logits, &expect.outputs, 1e-4);
    close("value", &values, &expect.values, 1e-4);
    let got = network.backward(&pass, on_device.all_bytes(), &d_logits, &d_values).expect("computed");
    let mut at = 0;
    for tensor in config.tensors() {
        let range = at..at + tensor.len();
        assert!(gradient[range.clone()].iter().any(|&x| x != 0.0), "{} has no gradient", tensor.name);
        close(&tensor.name, &got[range.clone()], &gradient[range], 1e-4);
        at += tensor.len();
    }

    // One step after the other with states that are carried on: the same outputs.
    let states = network.states(batch).expect("memory");
    let acting = network.pass(1, batch, false).expect("it fits");
    for step in 0..steps {
        let rows = step * batch..(step + 1) * batch;
        let frames = on_device.all_bytes().part(rows.start * pixels, batch * pixels);
        let told = &told[rows.start * told_len..rows.end * told_len];
        acting.begin_at(network.ops(), &states, 0).expect("copied");
        acting.tell(network.ops(), told, &vec![0; batch]).expect("told");
        network.forward(&acting, frames).expect("computed");
        acting.end(network.ops(), &states).expect("copied");
        let (logits, values) = acting.outputs(network.ops()).expect("read");
        let outputs = rows.start * config.actions..rows.end * config.actions;
        close("acted logit", &logits, &expect.outputs[outputs], 1e-4);
        close("acted value", &values, &expect.values[rows], 1e-4);
    }
}

#[test]
fn outputs_and_gradients_are_those_of_the_agent() {
    compare(&small(), 4, 3);
    compare(&S3taConfig { trunk: 0, basis: Basis::Cosines, query_hidden: vec![9], ..small() }, 2, 1);
}

/// Two episodes, one after the other in a sequence, are two sequences that begin with zero states.
#[test]
fn a_fresh_step_begins_an_episode() {
    let (config, device) = (small(), Host::device());
    let network = Network::new(&device, &config).expect("it is built");
    network.set_params(&config.initial_params(Init::He, Seed::root(1))).expect("as many");
    let pixels: usize = config.view.iter().product();
    let mut rng = Seed::root(2).rng();
    let pictures: Vec<u8> = (0..4 * pixels).map(|_| rng.below(256) as u8).collect();
    let told = numbers(3, 4 * (1 + config.actions));
    let (d_logits, d_values) = (numbers(4, 4 * config.actions), numbers(5, 4));
    let on_device = Memory::bytes(&device, pictures.len()).expect("memory");
    network.ops().write_bytes(on_device.all_bytes(), &pictures).expect("written");
    let run = |steps: usize, rows: std::ops::Range<usize>, fresh: &[u8]| {
        let pass = network.pass(steps, 1, true).expect("it fits");
        let frames = on_device.all_bytes().part(rows.start * pixels, rows.len() * pixels);
        let width = 1 + config.actions;
        pass.tell(network.ops(), &told[rows.start * width..rows.end * width], fresh).expect("told");
        network.forward(&pass, frames).expect("computed");
        let outputs = pass.outputs(network.ops()).expect("read");
        let d_logits = &d_logits[rows.start * config.actions..rows.end * config.actions];
        let gradient = network.backward(&pass, frames, d_logits, &d_values[rows]).expect("computed");
        (outputs, gradient)
    };
    let (both, gradient) = run(4, 0..4, &[0, 0, 1, 0]);
    let (first, mut sum) = run(2, 0..2, &[0, 0]);
    let (second, other) = run(2, 2..4, &[0, 0]);
    sum.iter_mut().zip(&other).for_each(|(sum, x)| *sum += x);
    close("logit", &both.0, &[first.0, second.0].concat(), 1e-6);
    close("value", &both.1, &[first.1, second.1].concat(), 1e-6);
    close("gradient", &gradient, &sum, 1e-5);
}

#[test]
fn what_is_not_built_says_so() {
    let device = Host::device();
    for (config, word) in [
        (S3taConfig { peepholes: true, ..small() }, "peepholes"),
        (S3taConfig { normalise: true, ..small() }, "normalise"),
        (S3taConfig { units: 0, ..small() }, "units = 0"),
    ] {
        let error = Network::new(&device, &config).err().expect("refused").to_string();
        assert!(error.contains(word), "{error}");
    }
}
