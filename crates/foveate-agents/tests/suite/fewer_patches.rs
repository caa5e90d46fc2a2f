//! Agents that are told about fewer patches than they select.

use foveate_agents::registry::{Init, initial_params, make, tensors};
use foveate_core::{ActContext, Agent, Image, Observation, SENSORS, Seed};
use serde_json::{Value, json};

/// What an agent does on three pictures beside two numbers, and how many patches its attention names.
fn drive(agent: &dyn Agent) -> (Vec<Vec<f64>>, usize) {
    let mut agent = agent.boxed_clone();
    let mut rng = Seed::root(8).rng();
    let (mut actions, mut selected) = (vec![], 0);
    agent.begin_episode(Seed::root(1));
    for _ in 0..3 {
        let rgb: Vec<u8> = (0..16 * 16 * 3).map(|_| rng.below(256) as u8).collect();
        let image = Observation::rgb(Image::new(16, 16, &rgb).expect("its size"));
        let parts = vec![(foveate_core::IMAGE, image), (SENSORS, Observation::Vector(&[0.5, -0.5]))];
        let decision = agent.act(Observation::Dict(&parts), &mut ActContext::default()).expect("it acts");
        actions.push(decision.action.to_vec());
        selected = decision.attention.map_or(0, |attention| attention.len());
    }
    (actions, selected)
}

fn agent(name: &str, config: &Value) -> Box<dyn Agent> {
    let mut agent = make(name, config).expect("an agent");
    let params = initial_params(name, config, Init::Torch, Seed::root(2)).expect("an agent");
    agent.set_params(&params).expect("its own");
    agent
}

/// Every agent that selects patches, with every controller.
fn agents() -> Vec<(&'static str, Value)> {
    let actions = json!([[-1.0, 1.0], [0.0, 1.0]]);
    let image = json!([16, 16]);
    let mut agents =
        vec![("attention-agent", json!({ "image": image, "top_k": 4, "hidden": 4, "actions": actions }))];
    for controller in [
        json!({ "kind": "linear" }),
        json!({ "kind": "mlp", "hidden": [5] }),
        json!({ "kind": "lstm", "hidden": 4 }),
    ] {
        for selection in [json!("best"), json!("best_in_place"), json!("least"), json!({ "apart": 4 })] {
            let values = json!({ "centre": true, "colour": true, "histogram": { "bins": 4 } });
            agents.push((
                "iap",
                json!({ "image": image, "patch": 2, "stride": 2, "top_k": 4, "values": values, "selection": selection,
                    "controller": controller, "actions": actions }),
            ));
        }
        let high = json!({ "image": image, "patch": 2, "stride": 2, "top_k": 4, "controller": controller });
        agents.push((
            "iap-hierarchical",
            json!({ "high": high, "sensors": 2, "duration": [1, 2], "actions": actions }),
        ));
    }
    agents
}

#[test]
fn every_agent_that_selects_patches_can_be_told_about_fewer() {
    for (name, config) in agents() {
        let mut agent = agent(name, &config);
        let params = agent.params();
        assert_eq!(agent.patches(), Some(4), "{name}");
        let whole = drive(&*agent);
        assert_eq!(whole.1, 4);
        let mut seen = vec![whole.0.clone()];
        for k in [3, 2, 1, 0] {
            agent.limit_patches(k).expect("it has patches");
            let (actions, selected) = drive(&*agent);
            assert_eq!(selected, k, "{name} {config}");
            assert!(!seen.contains(&actions), "{name} {config}: k = {k} changes nothing");
            seen.push(actions);
        }
        // Who knows nothing does the same whatever there is to see, unless it remembers.
        if config["controller"]["kind"] == "linear" {
            assert!(seen[4].iter().all(|action| *action == seen[4][0]), "{name} {config}: {:?}", seen[4]);
        }
        assert_eq!(agent.params(), params, "parameters stay as they are");
        for k in [4, 99] {
            agent.limit_patches(1).expect("it has patches");
            agent.limit_patches(k).expect("it has patches");
            assert_eq!(drive(&*agent), whole, "{name} {config}: all of them again");
        }
    }
}

/// The slow way: the weights of what must not be known are zero, and the bias has what the neutral values come to.
#[test]
fn a_neutral_value_is_the_middle_grey_or_even() {
    let values = json!({ "centre": true, "colour": true, "histogram": { "bins": 4 } });
    let neutral = [[0.5; 5].as_slice(), [0.25; 12].as_slice()].concat();
    let config = json!({ "image": [16, 16], "patch": 2, "stride": 2, "top_k": 3, "values": values,
        "controller": { "kind": "linear" }, "actions": [[-1.0, 1.0]] });
    let mut limited = agent("iap", &config);
    let tensors = tensors("iap", &config).expect("an agent");
    let start = |name: &str| {
        let before = tensors.iter().take_while(|tensor| tensor.name != name);
        before.map(foveate_core::TensorShape::len).sum::<usize>()
    };
    let (weight, bias) = (start("output.weight"), start("output.bias"));
    for k in 0..=3 {
        let mut params = limited.params();
        let known = k * neutral.len();
        let unknown = &mut params[weight + known..weight + 3 * neutral.len()];
        let sum: f32 = unknown.iter().zip(neutral.iter().cycle()).map(|(w, x)| w * x).sum();
        unknown.fill(0.0);
        params[bias] += sum;
        let mut edited = agent("iap", &config);
        edited.set_params(&params).expect("its own");
        limited.limit_patches(k).expect("it has patches");
        for (a, b) in drive(&*limited).0.concat().iter().zip(drive(&*edited).0.concat()) {
            assert!((a - b).abs() < 1e-6, "k = {k}: {a} for {b}");
        }
    }
}
