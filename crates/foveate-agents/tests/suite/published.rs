//! Published weights: where each tensor lies in the flat vector of the file.

use foveate_agents::registry::{self, published};
use foveate_agents::{AGENTS, attention_neuron};
use foveate_core::TensorShape;

/// Fails unless tensor by tensor the numbers of the published file `name` lie at the offsets of `table`.
#[track_caller]
fn check(name: &str, params: usize, table: &[(&str, usize)]) {
    let [(under, weights)] = published(Some("attention-neuron"), params)[..] else {
        panic!("not one file: {name}")
    };
    assert_eq!((under, weights.name), ("attention-neuron", name));
    let settings = (weights.settings)();
    let tensors = registry::tensors(weights.agent, &settings).expect("valid settings");
    assert_eq!(tensors.iter().map(TensorShape::len).sum::<usize>(), params, "{name}");
    assert_eq!(tensors.len(), table.len(), "{name}: {tensors:?}");
    // Every number is its place in the file.
    let counting: Vec<f32> = (0..params).map(|i| i as f32).collect();
    let ours = weights.layout.to_ours(&tensors, &counting).expect("as many");
    let mut at = 0;
    for tensor in &tensors {
        let &(_, start) = table
            .iter()
            .find(|(named, _)| *named == tensor.name)
            .unwrap_or_else(|| panic!("{name}: no offset for {}", tensor.name));
        let expect: Vec<f32> = (start..start + tensor.len()).map(|i| i as f32).collect();
        assert_eq!(ours[at..at + tensor.len()], expect, "{name}: {}", tensor.name);
        at += tensor.len();
    }
    let mut agent = registry::make(weights.agent, &settings).expect("valid settings");
    agent.set_params(&ours.iter().map(|x| (x * 0.37).sin()).collect::<Vec<_>>()).expect("as many");
}

#[test]
fn every_tensor_lies_where_the_release_has_it() {
    check(
        "cartpole_pi",
        913,
        &[
            ("lstm.weight_ih", 0),
            ("lstm.weight_hh", 64),
            ("lstm.bias_ih", 320),
            ("lstm.bias_hh", 352),
            ("query.weight", 384),
            ("key.weight", 640),
            ("output.weight", 896),
            ("output.bias", 912),
        ],
    );
    check(
        "ant_pi",
        2504,
        &[
            ("lstm.weight_ih", 0),
            ("lstm.weight_hh", 288),
            ("lstm.bias_ih", 544),
            ("lstm.bias_hh", 576),
            ("query.weight", 608),
            ("query.bias", 864),
            ("key.weight", 896),
            ("key.bias", 1152),
            ("hidden0.weight", 1184),
            ("hidden0.bias", 2208),
            ("output.weight", 2240),
            ("output.bias", 2496),
        ],
    );
    check(
        "ant_mlp",
        2248,
        &[
            ("hidden0.weight", 0),
            ("hidden0.bias", 896),
            ("hidden1.weight", 928),
            ("hidden1.bias", 1952),
            ("output.weight", 1984),
            ("output.bias", 2240),
        ],
    );
    check(
        "carracing",
        3667,
        &[
            ("query.weight", 0),
            ("query.bias", 588),
            ("key.weight", 592),
            ("key.bias", 1180),
            ("lstm.weight_ih", 1184),
            ("lstm.weight_hh", 2464),
            ("lstm.bias_ih", 3488),
            ("lstm.bias_hh", 3552),
            ("output.weight", 3616),
            ("output.bias", 3664),
        ],
    );
    check(
        "carracing_pi",
        7212,
        &[
            ("query.weight", 0),
            ("query.bias", 128),
            ("key.weight", 144),
            ("key.bias", 1920),
            ("value.weight", 1936),
            ("value.bias", 4240),
            ("latent_query.weight", 4256),
            ("latent_query.bias", 4320),
            ("latent_key.weight", 4324),
            ("latent_key.bias", 4388),
            ("lstm.weight_ih", 4392),
            ("lstm.weight_hh", 5672),
            ("lstm.bias_ih", 6696),
            ("lstm.bias_hh", 6760),
            ("output.weight", 6824),
            ("output.bias", 6872),
            ("smoothing0.weight", 6875),
            ("smoothing0.bias", 7179),
            ("smoothing1.weight", 7195),
            ("smoothing1.bias", 7211),
        ],
    );
    check(
        "puzzle_pong",
        1_687_726,
        &[
            ("query.weight", 0),
            ("query.bias", 256),
            ("key.weight", 288),
            ("key.bias", 3936),
            ("value.weight", 3968),
            ("value.bias", 8576),
            ("value_norm.weight", 8608),
            ("value_norm.bias", 8644),
            ("message_norm.weight", 8680),
            ("message_norm.bias", 8712),
            ("conv0.weight", 8744),
            ("conv0.bias", 41_512),
            ("conv1.weight", 41_576),
            ("conv1.bias", 78_440),
            ("hidden0.weight", 78_504),
            ("hidden0.bias", 1_684_136),
            ("output.weight", 1_684_648),
            ("output.bias", 1_687_720),
        ],
    );
}

#[test]
fn a_number_of_weights_and_their_order_name_one_file() {
    for agent in AGENTS.iter() {
        for (i, weights) in agent.published.iter().enumerate() {
            assert!(
                agent.published[..i]
                    .iter()
                    .all(|other| (other.params, other.layout) != (weights.params, weights.layout)),
                "{}: {}",
                agent.name,
                weights.name
            );
            assert!(AGENTS.get(weights.agent).is_some(), "{}", weights.agent);
        }
    }
    assert_eq!(attention_neuron::DESCRIPTOR.published.len(), 6);
    assert!(published(None, 7).is_empty() && published(Some("iap"), 913).is_empty());
}
