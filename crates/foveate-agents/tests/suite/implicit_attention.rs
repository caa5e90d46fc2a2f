//! IAP's block against its definition, kernel by kernel, and what it refuses.

use crate::block::{Block, distance};
use foveate_agents::bottleneck::Selection;
use foveate_agents::implicit_attention::hierarchical::{
    HierarchicalAttention, HierarchicalAttentionConfig, HighConfig,
};
use foveate_agents::implicit_attention::{ImplicitAttention, ImplicitAttentionConfig};
use foveate_agents::registry::{self, AgentConfig, Init};
use foveate_agents::{AttentionAgent, AttentionAgentConfig, Level};
use foveate_core::{
    ActContext, DEPTH, IMAGE, ImageBuf, Observation, PixelShape, Pixels, Policy, PolicyError, SENSORS, Seed,
};
use serde_json::{Value, json};

/// Every kernel, as configurations name them.
fn kernels() -> Vec<Value> {
    vec![
        json!({ "kernel": "softmax" }),
        json!({ "kernel": "softmax", "relative_error": 1e-4 }),
        json!({ "kernel": "softmax_kernel" }),
        json!({ "kernel": "softmax_kernel", "same_length": 1.4 }),
        json!({ "kernel": "relu" }),
        json!({ "kernel": "relu", "features": 6, "epsilon": 0.0 }),
        json!({ "kernel": "exp" }),
        json!({ "kernel": "elu" }),
        json!({ "kernel": "elu", "features": 5, "ensemble": "givens" }),
        json!({ "kernel": "trigonometric", "features": 9 }),
        json!({ "kernel": "positive", "ensemble": "independent" }),
        json!({ "kernel": "hyperbolic", "lengths": "constant" }),
        json!({ "kernel": "hybrid" }),
        json!({ "kernel": "hybrid", "features": 4, "hyperplanes": 3, "hyperbolic": true, "same_length": 1.4 }),
    ]
}

/// A picture of 12 × 10 pixels of many colours.
fn picture() -> ImageBuf {
    let rgb = (0..360_u32).map(|i| (i * i * 31 % 251) as u8).collect();
    ImageBuf::from_rgb(12, 10, rgb).expect("360 bytes")
}

/// The depths of its pixels.
fn depths() -> Vec<u8> {
    (0..120_u32).map(|i| (i * i * 17 % 239) as u8).collect()
}

/// A configuration for that picture, with `on_top` put on top.
fn small(on_top: Value) -> Value {
    let mut config = json!({ "image": [12, 10], "patch": 3, "stride": 2, "top_k": 4 });
    let Value::Object(on_top) = on_top else { panic!("a table") };
    config.as_object_mut().expect("a table").extend(on_top);
    config
}

fn config(on_top: Value) -> ImplicitAttentionConfig {
    serde_json::from_value(small(on_top)).expect("known keys")
}

/// An agent with drawn weights.
fn agent(config: ImplicitAttentionConfig, seed: u64) -> ImplicitAttention {
    let value = serde_json::to_value(&config).expect("numbers and texts");
    let params = registry::initial_params("iap", &value, Init::Torch, Seed::root(seed)).expect("valid");
    let mut agent = ImplicitAttention::new(config).expect("valid");
    agent.set_params(&params).expect("as many as there are");
    agent
}

#[test]
fn every_kernel_votes_as_defined() {
    for voting in kernels() {
        for aggregation in ["ones", "learned"] {
            if voting["kernel"] == "softmax" && aggregation == "learned" {
                continue;
            }
            let config = config(json!({ "voting": voting, "aggregation": aggregation, "query_dim": 5 }));
            let mut agent = agent(config.clone(), 3);
            let mut params = agent.params();
            if aggregation == "learned" {
                let start = 2 * (5 + 5 * 27);
                for (i, c) in params[start..start + agent.grid().len()].iter_mut().enumerate() {
                    *c = (i % 7) as f32 - 2.0;
                }
                agent.set_params(&params).expect("as many as there are");
            }
            let mut memory = agent.memory();
            let picture = picture();
            let decision = agent
                .act(Observation::rgb(picture.as_image()), &mut memory, &mut ActContext::default())
                .expect("its size");
            let attention = decision.attention.expect("this agent attends");
            let want = Block::of(&config, &params).importance(picture.as_image(), None);
            let apart = distance(attention.weights(), &want);
            assert!(apart < 2e-4, "{voting} {aggregation}: {apart}: {:?} for {want:?}", attention.weights());
            let mut order: Vec<u32> = (0..want.len() as u32).collect();
            order.sort_by(|&a, &b| want[b as usize].total_cmp(&want[a as usize]));
            assert_eq!(
                attention.selected().expect("it selects").tokens,
                &order[..4],
                "{voting} {aggregation}: {want:?}"
            );
        }
    }
}

#[test]
fn every_kernel_is_open_to_attention_agent_and_gives_the_same_bits_everywhere() {
    for voting in kernels() {
        let config: AttentionAgentConfig =
            serde_json::from_value(json!({ "voting": voting })).expect("known keys");
        let params = config.initial_params(Init::Torch, Seed::root(5));
        let frame = ImageBuf::from_rgb(96, 96, (0..27_648_u32).map(|i| (i / 7 * 13 % 256) as u8).collect());
        let frame = frame.expect("96 x 96 pixels");
        let mut first: Option<(Vec<f32>, Vec<f64>)> = None;
        for level in Level::available() {
            let mut agent = AttentionAgent::new(config.clone()).expect("valid").with_level(level);
            agent.set_params(&params).expect("as many as there are");
            let mut memory = agent.memory();
            let decision = agent
                .act(Observation::rgb(frame.as_image()), &mut memory, &mut ActContext::default())
                .expect("its size");
            let attention = decision.attention.expect("this agent attends");
            assert!(attention.weights().iter().all(|x| x.is_finite()), "{voting}");
            let seen = (attention.weights().to_vec(), decision.action.to_vec());
            assert_eq!(&seen, first.get_or_insert(seen.clone()), "{voting} on {level}");
        }
    }
}

#[test]
fn many_patches_vote_nearly_as_if_exactly() {
    // Single pixels of a picture without two alike: 4,800 of them.
    let rgb = (0..14_400_u64).map(|i| (i.wrapping_mul(6_364_136_223_846_793_005) >> 56) as u8).collect();
    let picture = ImageBuf::from_rgb(80, 60, rgb).expect("80 x 60 pixels");
    let look = |voting: Value| {
        let config = json!({
            "image": [80, 60], "patch": 2, "stride": 1, "top_k": 10, "voting": voting,
            "controller": { "kind": "linear" },
        });
        let agent = agent(serde_json::from_value(config).expect("known keys"), 3);
        let mut memory = agent.memory();
        let decision = agent
            .act(Observation::rgb(picture.as_image()), &mut memory, &mut ActContext::default())
            .expect("its size");
        let attention = decision.attention.expect("this agent attends");
        (attention.selected().expect("it selects").tokens.to_vec(), attention.weights().to_vec())
    };
    let (exact, importance) = look(json!({ "kernel": "softmax" }));
    let (near, estimate) = look(json!({ "kernel": "softmax", "relative_error": 1e-4 }));
    let apart = |(a, b): (&f32, &f32)| f64::from((a - b).abs() / a);
    let worst = importance.iter().zip(&estimate).map(apart).fold(0.0, f64::max);
    assert!(worst <= 1e-4, "{worst}");
    assert_eq!(near, exact);
    assert_ne!(estimate, importance, "it is an estimate");
}

#[test]
fn what_is_chosen_and_in_which_order() {
    let look = |selection: Value| {
        let agent = agent(config(json!({ "selection": selection })), 1);
        let mut memory = agent.memory();
        let picture = picture();
        let decision = agent
            .act(Observation::rgb(picture.as_image()), &mut memory, &mut ActContext::default())
            .expect("its size");
        let attention = decision.attention.expect("this agent attends");
        // What is shown by importance is by importance, whatever the controller is told first.
        let shown = attention.by_rank();
        let votes = |&patch: &u32| attention.weights()[patch as usize];
        assert!(shown.is_sorted_by(|a, b| votes(a) >= votes(b)), "{selection}: {shown:?}");
        assert_eq!(
            shown == attention.selected().expect("it selects").tokens,
            !["best_in_place", "least"].contains(&selection.as_str().unwrap_or_default()),
            "{selection}: {shown:?}"
        );
        (attention.selected().expect("it selects").tokens.to_vec(), attention.weights().to_vec())
    };
    let ((best, importance), (in_place, _), (least, _)) =
        (look(json!("best")), look(json!("best_in_place")), look(json!("least")));
    let of = |patches: &[u32]| patches.iter().map(|&i| importance[i as usize]).collect::<Vec<f32>>();
    assert!(of(&best).is_sorted_by(|a, b| a >= b), "{best:?}");
    assert!(of(&least).is_sorted_by(|a, b| a <= b), "{least:?}");
    let mut sorted = best.clone();
    sorted.sort_unstable();
    assert_eq!(in_place, sorted);
    let others = (0..20).filter(|i| !best.contains(i)).map(|i| importance[i as usize]);
    assert!(others.clone().all(|x| x <= of(&best)[3]) && of(&least)[3] <= importance[best[0] as usize]);
    assert_eq!(of(&least)[0], importance.iter().copied().fold(f32::MAX, f32::min));

    let (apart, _) = look(json!({ "apart": 4 }));
    let places = apart.iter().map(|&patch| agent(config(json!({})), 1).grid().corner(patch as usize));
    let places: Vec<(usize, usize)> = places.collect();
    for (i, a) in places.iter().enumerate() {
        assert!(places[..i].iter().all(|b| a.0.abs_diff(b.0) >= 4 || a.1.abs_diff(b.1) >= 4), "{places:?}");
    }
    assert_eq!(apart[0], best[0]);
    assert_eq!(look(json!({ "apart": 1 })).0, best, "every patch is a pixel away from every other");
    let refused = ImplicitAttentionConfig { selection: Selection::Apart(0), ..config(json!({})) }.check();
    assert!(refused.is_err_and(|error| error.to_string().contains("selection.apart")));
}

#[test]
fn the_controller_is_told_what_was_done_before() {
    let picture = picture();
    for (told, as_done) in [("values", [0.5f32, -1.0, 1.0]), ("choice", [0.0, 0.0, 1.0])] {
        let agent = agent(config(json!({ "last_action": told })), 3);
        let mut memory = agent.memory();
        let told_last = |memory: &_| agent.inputs(memory).last_chunk::<3>().copied();
        let act = |memory: &mut _| {
            let context = &mut ActContext::default();
            agent.act(Observation::rgb(picture.as_image()), memory, context).expect("fine").action.to_vec()
        };
        let first = act(&mut memory);
        assert_eq!(told_last(&memory), Some([0.0; 3]), "{told}");
        let raw = memory.raw().to_vec();
        // Its own action, which the world reports in its units, stays as it was.
        agent.acted(&first, &mut memory);
        act(&mut memory);
        let own = told_last(&memory).expect("three");
        if told == "values" {
            assert_eq!(own[..], raw);
        } else {
            let best = (0..3).find(|&i| raw.iter().all(|x| *x <= raw[i])).expect("one of three");
            assert_eq!(own, std::array::from_fn(|i| f32::from(u8::from(i == best))));
        }
        // Another acted: −1 ..= 1 and twice 0 ..= 1.
        agent.acted(&[0.5, 0.0, 1.0], &mut memory);
        act(&mut memory);
        assert_eq!(told_last(&memory), Some(as_done), "{told}");
        agent.reset(&mut memory, Seed::root(0));
        assert_eq!(act(&mut memory), first, "an episode begins anew");
    }
    let without = config(json!({}));
    assert_eq!(config(json!({ "last_action": "choice" })).inputs(), without.inputs() + without.actions.len());
    assert!(
        !without.to_value().expect("JSON").to_string().contains("last_action"),
        "files stay as they were"
    );
}

/// A picture with what is beside it.
fn parts<'a>(
    picture: &'a ImageBuf,
    depth: Option<&'a [u8]>,
    sensors: &'a [f32],
) -> Vec<(&'static str, Observation<'a>)> {
    let shape = PixelShape { frames: 1, height: 10, width: 12, channels: 1 };
    let depth = depth.map(|depth| Observation::Image(Pixels::new(shape, depth).expect("its size")));
    let mut parts = vec![(IMAGE, Observation::rgb(picture.as_image()))];
    parts.extend(depth.map(|depth| (DEPTH, depth)));
    parts.push((SENSORS, Observation::Vector(sensors)));
    parts
}

#[test]
fn depth_is_a_channel_and_sensors_are_told() {
    let config = config(json!({ "depth": true, "sensors": 3, "patch": 2 }));
    let agent = agent(config.clone(), 2);
    let (picture, depths) = (picture(), depths());
    let sensors = [0.5, -2.0, 7.0];
    let mut memory = agent.memory();
    let whole = parts(&picture, Some(&depths), &sensors);
    let seen = Observation::Dict(&whole);
    let decision = agent.act(seen, &mut memory, &mut ActContext::default()).expect("its shape");
    let importance = decision.attention.expect("this agent attends").weights().to_vec();
    let want = Block::of(&config, &agent.params()).importance(picture.as_image(), Some(&depths));
    assert!(distance(&importance, &want) < 2e-5, "{importance:?} for {want:?}");
    assert_eq!(memory.inputs()[8..], sensors);

    let refused = |observation: Observation<'_>, words: &str| {
        let said = agent
            .act(observation, &mut agent.memory(), &mut ActContext::default())
            .expect_err("another shape")
            .to_string();
        assert!(said.contains(words), "{said}");
    };
    refused(Observation::rgb(picture.as_image()), "3 numbers of sensors beside the picture");
    refused(Observation::Vector(&sensors), "the world shows 3 numbers");
    refused(
        Observation::Dict(&parts(&picture, None, &sensors)),
        "a picture of 12x10 with depth, the world shows a picture of 12x10 and 3 numbers",
    );
    refused(Observation::Dict(&parts(&picture, Some(&depths), &sensors[1..])), "and 2 numbers");
    refused(
        Observation::Dict(&parts(&picture, Some(&depths), &[0.0, f32::NAN, 0.0])),
        "number 1 of the sensors is NaN",
    );
    let large = ImageBuf::black(13, 10);
    refused(Observation::Dict(&parts(&large, Some(&depths), &sensors)), "13x10");
    // AttentionAgent takes the picture and leaves the rest.
    let config: AttentionAgentConfig = serde_json::from_value(small(json!({}))).expect("known keys");
    let agent = AttentionAgent::new(config).expect("valid");
    agent.act(seen, &mut agent.memory(), &mut ActContext::default()).expect("a picture of its size");
}

#[test]
fn single_pixels_and_their_colours() {
    let config = config(json!({
        "patch": 1, "stride": 1, "top_k": 120, "values": { "centre": false, "colour": true },
        "controller": { "kind": "linear" },
    }));
    let agent = agent(config, 4);
    let (mut memory, picture) = (agent.memory(), picture());
    let decision = agent
        .act(Observation::rgb(picture.as_image()), &mut memory, &mut ActContext::default())
        .expect("its size");
    let order =
        decision.attention.expect("this agent attends").selected().expect("it selects").tokens.to_vec();
    for (&pixel, colour) in order.iter().zip(memory.inputs().chunks_exact(3)) {
        let rgb = picture.as_image().pixel(pixel as usize % 12, pixel as usize / 12);
        assert_eq!(colour, rgb.map(|byte| (f64::from(byte) / 255.0) as f32), "pixel {pixel}");
    }
}

#[test]
fn a_single_patch() {
    for voting in kernels() {
        let config = config(json!({ "patch": 10, "stride": 5, "top_k": 1, "voting": voting }));
        assert_eq!(config.bottleneck().check().expect("valid").len(), 1);
        let agent = agent(config, 1);
        let (mut memory, picture) = (agent.memory(), picture());
        let decision = agent
            .act(Observation::rgb(picture.as_image()), &mut memory, &mut ActContext::default())
            .expect("its size");
        assert_eq!(
            decision.attention.expect("this agent attends").selected().expect("it selects").tokens,
            [0],
            "{voting}"
        );
    }
}

#[test]
fn controllers_compute_what_they_say() {
    for (controller, tensors) in [
        (json!({ "kind": "linear" }), 2),
        (json!({ "kind": "mlp", "hidden": [7, 20] }), 6),
        (json!({ "kind": "lstm", "hidden": 6 }), 6),
    ] {
        let config = config(json!({ "controller": controller }));
        let agent = agent(config.clone(), 6);
        assert_eq!(agent.tensors().len(), 4 + tensors);
        let (mut memory, picture) = (agent.memory(), picture());
        let block = Block::of(&config, &agent.params());
        let mut state = block.state();
        for step in 0..3 {
            let decision = agent
                .act(Observation::rgb(picture.as_image()), &mut memory, &mut ActContext::default())
                .expect("its size");
            let action = decision.action.to_vec();
            let want = block.act(memory.inputs(), &mut state);
            for ((&action, want), &[low, high]) in action.iter().zip(want).zip(&config.actions) {
                let want = f64::midpoint(low, high) + want * (high - low) / 2.0;
                assert!((action - want).abs() < 1e-5, "{controller}, step {step}: {action} for {want}");
            }
        }
    }
}

#[test]
fn a_command_holds_as_long_as_it_says() {
    let config = HierarchicalAttentionConfig {
        high: HighConfig { image: [12, 10], patch: 3, stride: 2, top_k: 2, ..Default::default() },
        command: 2,
        duration: [2, 6],
        sensors: 1,
        actions: vec![[-1.0, 1.0]],
    };
    let mut agent = HierarchicalAttention::new(config).expect("valid");
    let names: Vec<String> = agent.tensors().into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(
        names[4..],
        ["high.output.bias", "high.output.weight", "low.output.bias", "low.output.weight"]
    );
    let (first, other) = (picture(), ImageBuf::black(12, 10));
    // Of the bias of the high level, the first number is about how long.
    for (said, steps) in [(-20.0, 2), (0.0, 4), (20.0, 6)] {
        let mut params =
            registry::initial_params("iap-hierarchical", &small_hierarchical(), Init::Torch, Seed::root(1))
                .expect("valid");
        assert_eq!(params.len(), agent.params().len());
        let bias = 2 * (4 + 4 * 27);
        let weight = bias + 3;
        params[bias] = said;
        params[weight..weight + 4].fill(0.0);
        agent.set_params(&params).expect("as many as there are");
        let mut memory = agent.memory();
        let mut act = |picture: &ImageBuf, sensor: f32| {
            let sensors = [sensor];
            let whole = parts(picture, None, &sensors);
            let seen = Observation::Dict(&whole);
            let action =
                agent.act(seen, &mut memory, &mut ActContext::default()).expect("its shape").action[0];
            (action, memory.command().to_vec(), memory.left())
        };
        let (_, command, left) = act(&first, 0.0);
        assert_eq!(left, steps - 1);
        let mut actions = vec![];
        for i in 1..steps {
            // Another picture is not seen, another sensor is felt.
            let (action, held, left) = act(&other, i as f32 / 10.0);
            assert_eq!((held, left), (command.clone(), steps - 1 - i), "step {i} of {steps}");
            actions.push(action);
        }
        actions.dedup();
        assert_eq!(actions.len(), steps - 1, "the low level feels its sensor");
        let (_, next, left) = act(&other, 0.0);
        assert_eq!(left, steps - 1);
        assert_ne!(next, command, "the high level looks again");
    }
    // Forgetting the episode ends the command.
    let mut memory = agent.memory();
    let whole = parts(&first, None, &[0.0]);
    let seen = Observation::Dict(&whole);
    agent.act(seen, &mut memory, &mut ActContext::default()).expect("its shape");
    agent.reset(&mut memory, Seed::root(0));
    assert_eq!(memory.left(), 0);
}

fn small_hierarchical() -> Value {
    json!({
        "high": { "image": [12, 10], "patch": 3, "stride": 2, "top_k": 2 },
        "command": 2, "duration": [2, 6], "sensors": 1, "actions": [[-1.0, 1.0]],
    })
}

#[test]
fn what_learns_from_an_expert() {
    registry::model("iap", &json!({})).expect("its LSTM does");
    registry::model("attention-agent", &json!({ "voting": { "kernel": "hybrid" } })).expect("it too");
    for (agent, config) in [
        ("iap", json!({ "controller": { "kind": "linear" } })),
        ("iap", json!({ "controller": { "kind": "mlp", "hidden": [3] } })),
        ("iap-hierarchical", json!({})),
    ] {
        let Err(error) = registry::model(agent, &config) else { panic!("{agent} has no LSTM at its end") };
        assert!(error.to_string().contains("imitation"), "{error}");
    }
}

#[test]
fn votes_that_overflow_are_said() {
    for (kernel, fine) in [("positive", 2.0), ("trigonometric", 2.0), ("softmax_kernel", 2.0), ("exp", 2.0)] {
        let mut agent = agent(config(json!({ "voting": { "kernel": kernel } })), 1);
        let drawn = agent.params();
        let picture = picture();
        let mut act = |factor: f32| {
            agent.set_params(&drawn.iter().map(|w| w * factor).collect::<Vec<f32>>()).expect("finite");
            let mut memory = agent.memory();
            let seen = Observation::rgb(picture.as_image());
            agent
                .act(seen, &mut memory, &mut ActContext::default())
                .map(|decision| decision.attention.expect("this agent attends").weights().to_vec())
        };
        let importance = act(fine).expect("small weights are no trouble");
        assert!(importance.iter().all(|x| x.is_finite()), "{kernel}");
        let error = act(1e4).expect_err("e to the power of thousands");
        assert!(matches!(error, PolicyError::Votes { .. }), "{kernel}: {error:?}");
        let said = error.to_string();
        assert!(said.contains("patch") && said.contains("length"), "{kernel}: {said}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (agent, on_top, words) in [
        ("iap", json!({ "voting": { "kernel": "nothing" } }), "voting.kernel wants one of \"softmax\", "),
        ("iap", json!({ "voting": { "kernel": "relu", "hyperplanes": 2 } }), "unknown field `hyperplanes`"),
        ("iap", json!({ "voting": { "kernel": "relu", "epsilon": -1.0 } }), "voting.epsilon is -1"),
        ("iap", json!({ "voting": { "kernel": "positive", "features": 0 } }), "voting.features is 0"),
        ("iap", json!({ "voting": { "kernel": "hybrid", "features": 5000 } }), "voting.features is 5000"),
        ("iap", json!({ "voting": { "kernel": "hybrid", "hyperplanes": 0 } }), "voting.hyperplanes is 0"),
        ("iap", json!({ "voting": { "kernel": "hybrid", "same_length": 0.0 } }), "voting.same_length is 0"),
        ("iap", json!({ "voting": { "kernel": "hybrid", "same_length": 1e9 } }), "1.414"),
        ("iap", json!({ "voting": { "kernel": "softmax" }, "aggregation": "learned" }), "softmax_kernel"),
        (
            "iap",
            json!({ "voting": { "kernel": "softmax", "relative_error": 0.0 } }),
            "voting.relative_error is 0",
        ),
        ("iap", json!({ "controller": { "kind": "mlp", "hidden": [] } }), "controller.hidden names 0 layers"),
        ("iap", json!({ "controller": { "kind": "mlp", "hidden": [0] } }), "controller.hidden is 0"),
        ("iap", json!({ "controller": { "kind": "linear", "hidden": 3 } }), "unknown field `hidden`"),
        ("iap", json!({ "values": { "centre": false } }), "at least one of centre, colour"),
        ("iap", json!({ "sensors": 1_000_000 }), "sensors is 1000000"),
        ("iap", json!({ "top_k": 1000 }), "only 529 patches"),
        ("iap", json!({ "top_k": 0 }), "top_k is 0"),
        ("iap", json!({ "actions": [] }), "number of action dimensions is 0"),
        ("iap-hierarchical", json!({ "duration": [0, 3] }), "duration is [0, 3]"),
        ("iap-hierarchical", json!({ "duration": [5, 3] }), "duration is [5, 3]"),
        ("iap-hierarchical", json!({ "command": 0 }), "command is 0"),
        ("iap-hierarchical", json!({ "high": { "sensors": 3 } }), "unknown field `sensors`"),
        ("attention-agent", json!({ "voting": { "kernel": "softmax", "m": 1 } }), "unknown field `m`"),
    ] {
        let Err(error) = registry::make(agent, &on_top) else { panic!("{agent} takes {on_top}") };
        assert!(error.to_string().contains(words), "{on_top}: {error}");
        assert!(registry::full_config(agent, &on_top).is_err(), "{on_top}");
    }
}

#[test]
fn complete_configurations_come_back() {
    for voting in kernels() {
        let full = registry::full_config("iap", &json!({ "voting": voting })).expect("valid");
        assert_eq!(registry::full_config("iap", &full).expect("valid"), full);
        for (key, value) in voting.as_object().expect("a table") {
            assert_eq!(&full["voting"][key], value, "{full}");
        }
    }
    // Files of the published agent say nothing of voting, as they did before there was a choice.
    assert!(registry::full_config("attention-agent", &json!({})).expect("valid").get("voting").is_none());
}
