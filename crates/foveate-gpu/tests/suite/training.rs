//! Training on this machine's processor in place of a GPU.

use foveate_agents::config::ConvolutionLayer;
use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::s3ta::S3taConfig;
use foveate_core::{Env, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_gpu::network::Network;
use foveate_gpu::training::{Sizes, Training, evaluate};
use foveate_learn::Optimizer;
use foveate_run::worlds;
use foveate_train::vtrace::VtraceConfig;

use crate::host::Host;

fn world() -> Box<dyn Env> {
    let request =
        EnvRequest { id: "door-key-5x5".into(), picture: Some("rgb".into()), ..EnvRequest::default() };
    worlds::make(request).expect("a native world")
}

fn agent(env: &dyn Env) -> S3taConfig {
    let layer = |filters, size, stride| ConvolutionLayer { filters, size, stride };
    let shape = env.spec().observation.image().expect("a picture");
    S3taConfig {
        view: [shape.height, shape.width, shape.channels],
        actions: env.spec().action.len(),
        convolutions: vec![layer(4, 8, 8), layer(4, 2, 1)],
        channels: 6,
        keys: 2,
        heads: 2,
        frequencies: 1,
        query_hidden: vec![8],
        answer_hidden: vec![8],
        units: 8,
        trunk: 0,
        ..S3taConfig::default()
    }
}

fn learner() -> VtraceConfig {
    VtraceConfig { unroll: 5, batch: 2, learning_rate: 0.01, ..VtraceConfig::default() }
}

fn sizes(worlds: usize, threads: usize) -> Sizes {
    // Short, so that unrolls hold ends of episodes.
    Sizes { worlds, threads, max_steps: Some(7) }
}

/// Parameters, steps and finished episodes after some turns.
fn train(threads: usize) -> (Vec<f32>, u64, u64) {
    let env = world();
    let config = agent(&*env);
    let network = Network::new(&Host::device(), &config).expect("it is built");
    let params = config.initial_params(Init::He, Seed::root(1));
    let optimizer = Optimizer::new(learner().optimizer, params.len());
    let mut training =
        Training::new(&network, &*env, &learner(), sizes(8, threads), (params, optimizer), Seed::root(2), 0)
            .expect("it fits");
    // Two groups: each sees 16 pictures, so it makes 15 steps and three unrolls of two batches.
    for _ in 0..2 * 16 {
        training.turn(&learner()).expect("a turn");
    }
    assert_eq!(training.updates, 2 * 3 * 2);
    let measures = training.measures();
    for (name, value) in &measures {
        assert!(value.is_finite(), "{name} = {value}");
    }
    let entropy = measures.iter().find(|(name, _)| *name == "entropy").expect("measured").1;
    assert!(entropy > 0.5 && entropy <= (config.actions as f64).ln() + 1e-9, "{entropy}");
    (training.params, training.steps, training.returns.episodes)
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (params, steps, episodes) = train(1);
    // 7 steps, a reset, and 7 steps again: two episodes, both truncated.
    assert_eq!((steps, episodes), (8 * 14, 16));
    assert_eq!(train(5), (params, steps, episodes));
}

#[test]
fn an_evaluation_is_one_episode_of_each_world() {
    let env = world();
    let config = agent(&*env);
    let network = Network::new(&Host::device(), &config).expect("it is built");
    network.set_params(&config.initial_params(Init::He, Seed::root(1))).expect("as many");
    let play = |worlds, threads, greedy| {
        evaluate(&network, &*env, sizes(worlds, threads), greedy, Seed::root(3)).expect("played")
    };
    let few = play(3, 1, false);
    assert_eq!(few, play(5, 2, false)[..3]);
    assert!(few.iter().all(|x| (0.0..=1.0).contains(x)), "{few:?}");
    assert_eq!(play(2, 1, true).len(), 2);
}

#[test]
fn worlds_are_a_multiple_of_two_batches() {
    let env = world();
    let config = agent(&*env);
    let network = Network::new(&Host::device(), &config).expect("it is built");
    let params = config.initial_params(Init::He, Seed::root(1));
    let optimizer = Optimizer::new(learner().optimizer, params.len());
    let refused =
        Training::new(&network, &*env, &learner(), sizes(6, 1), (params, optimizer), Seed::root(2), 0);
    let error = refused.err().expect("refused").to_string();
    assert!(error.contains("6 worlds") && error.contains("multiple of 4"), "{error}");
}
