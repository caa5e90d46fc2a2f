//! AttentionNeuron on numbers: the published CartPole weights against an independent implementation in `NumPy`, and
//! what the agent promises about the order and the number of its sensors.

use crate::common;

use foveate_agents::attention_neuron::vectors::{Activation, VectorAgent, VectorConfig, VectorMemory};
use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::{AgentDescriptor, Layout, attention_neuron};
use foveate_core::{ActContext, Observation, Opened, Policy, PolicyError, Seed, Tokens};
use foveate_kernels::Level;
use proptest::prelude::*;

/// Acts once; returns the action.
fn act(agent: &VectorAgent, memory: &mut VectorMemory, seen: &[f32]) -> Vec<f64> {
    agent
        .act(Observation::Vector(seen), memory, &mut ActContext::default())
        .expect("any number of numbers")
        .action
        .to_vec()
}

#[test]
fn published_cartpole_weights() {
    let Some(weights) = foveate_toy::needs::data("attention_neuron_cartpole_pi.npz") else { return };
    let Some(golden) = foveate_toy::needs::data("golden_attention_neuron_cartpole_pi.npz") else { return };
    let flat = common::read_npz(&weights)["params"].f32();
    let golden = common::read_npz(&golden);
    let seen: Vec<f32> = golden["ep0_obs"].f64().iter().map(|&x| x as f32).collect();
    let action = golden["ep0_action"].f32();
    let message = golden.get("ep0_message").map(common::Array::f32);
    assert_eq!(golden["ep0_obs"].shape, [200, 5]);

    let config = VectorConfig::cartpole_pi();
    let params = Layout::Registration.to_ours(&config.tensors(), &flat).expect("913 numbers");
    for level in Level::available() {
        let mut agent = VectorAgent::new(config.clone()).expect("valid").with_level(level);
        agent.set_params(&params).expect("finite");
        let mut memory = agent.memory();
        for t in 0..200 {
            let got = act(&agent, &mut memory, &seen[5 * t..5 * (t + 1)]);
            let want = f64::from(action[t]);
            // f32 sums in another order, of numbers up to 10; the action of one step is an input of the next.
            assert!((got[0] - want).abs() < 1e-4, "{level}, step {t}: action {got:?}, reference {want}");
            let wants = message.iter().flat_map(|message| &message[16 * t..16 * (t + 1)]);
            for (i, (got, want)) in memory.message().iter().zip(wants).enumerate() {
                assert!((got - want).abs() < 1e-4, "{level}, step {t}: message[{i}] {got}, reference {want}");
            }
        }
    }
}

fn drawn(config: &VectorConfig, seed: u64) -> VectorAgent {
    let mut agent = VectorAgent::new(config.clone()).expect("valid");
    agent.set_params(&config.initial_params(Init::Torch, Seed::root(seed))).expect("its own");
    agent
}

/// Step t of an episode of `n` numbers.
fn shown(n: usize, t: usize, seed: u64) -> Vec<f32> {
    let mut rng = Seed::root(seed).child("shown", t as u64).rng();
    (0..n).map(|_| rng.uniform(-3.0, 3.0) as f32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// From reset on permuted, the actions have the same bits and the attention is permuted likewise; so it is on every
    /// instruction set; sensors that show 0 change nothing.
    #[test]
    fn sensors_may_come_in_any_order(
        n in 1..40_usize,
        seed in 0..1000_u64,
        ant in any::<bool>(),
        activation in prop::sample::select(vec![Activation::Tanh, Activation::Sigmoid, Activation::Softmax]),
        keys in prop::collection::vec(any::<u64>(), 40),
    ) {
        let published = if ant { VectorConfig::ant_pi() } else { VectorConfig::cartpole_pi() };
        let config = VectorConfig { activation, ..published };
        let agent = drawn(&config, seed);
        let portable = agent.clone().with_level(Level::PORTABLE);
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| keys[i]);
        let (mut plain, mut permuted, mut more) = (agent.memory(), agent.memory(), agent.memory());
        for t in 0..12 {
            let seen = shown(n, t, seed);
            let other: Vec<f32> = order.iter().map(|&i| seen[i]).collect();
            let action = act(&agent, &mut plain, &seen);
            prop_assert_eq!(&act(&portable, &mut permuted, &other), &action);
            prop_assert_eq!(plain.message(), permuted.message());
            if activation != Activation::Softmax {
                let with_zeros = [&[0.0], &seen[..], &[0.0, 0.0]].concat();
                prop_assert_eq!(&act(&agent, &mut more, &with_zeros), &action);
            }
        }
        let (context, seen) = (&mut ActContext::default(), shown(n, 12, seed));
        let other: Vec<f32> = order.iter().map(|&i| seen[i]).collect();
        let plain = agent.act(Observation::Vector(&seen), &mut plain, context).expect("fine").attention.expect("some");
        let permuted =
            portable.act(Observation::Vector(&other), &mut permuted, context).expect("fine").attention.expect("some");
        prop_assert_eq!((plain.heads(), plain.queries(), plain.tokens().len()), (1, config.codes, n));
        for code in 0..config.codes {
            let (plain, permuted) = (plain.row(0, code).expect("a row"), permuted.row(0, code).expect("a row"));
            for (place, &i) in order.iter().enumerate() {
                prop_assert_eq!(plain[i], permuted[place]);
            }
        }
    }
}

#[test]
fn the_number_of_sensors_may_change_between_episodes_only() {
    let config = VectorConfig {
        sensors: ["x", "x'", "cosθ"].map(String::from).to_vec(),
        ..VectorConfig::cartpole_pi()
    };
    let agent = drawn(&config, 3);
    let mut memory = agent.memory();
    let play = |memory: &mut VectorMemory, n: usize| -> Vec<Vec<f64>> {
        agent.reset(memory, Seed::root(1));
        (0..6).map(|t| act(&agent, memory, &shown(n, t, 5))).collect()
    };
    let [five, seven, two] = [5, 7, 2].map(|n| play(&mut memory, n));
    assert_ne!(five, seven);
    assert_eq!(play(&mut memory, 7), seven);
    assert_eq!(play(&mut memory, 2), two);
    assert_eq!(play(&mut memory, 5), five);
    let mut names = |n: usize| {
        agent.reset(&mut memory, Seed::root(1));
        let decision = agent
            .act(Observation::Vector(&shown(n, 0, 5)), &mut memory, &mut ActContext::default())
            .expect("fine");
        match decision.attention.expect("it attends").tokens() {
            Tokens::Named(names) => names.join(" "),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(names(5), "x x' cosθ sensor 3 sensor 4");
    assert_eq!(names(2), "x x'");
    assert_eq!(names(3), "x x' cosθ");

    let refused = |memory: &mut VectorMemory, seen: &[f32]| -> PolicyError {
        agent.act(Observation::Vector(seen), memory, &mut ActContext::default()).expect_err("not so")
    };
    let mut memory = agent.memory();
    for (seen, why) in [
        (&[][..], "built for 1 to 65536 numbers, the world shows 0 numbers"),
        (&[0.0, f32::NAN], "number 1 of the sensors is NaN"),
        (&[f32::NEG_INFINITY], "number 0 of the sensors is -inf"),
    ] {
        let said = refused(&mut memory, seen).to_string();
        assert!(said.contains(why), "{said}");
    }
    act(&agent, &mut memory, &[1.0, 2.0]);
    let said = refused(&mut memory, &[1.0, 2.0, 3.0]).to_string();
    assert!(said.contains("the 2 numbers with which this episode began"), "{said}");
}

/// Opening a decision and resuming it is deciding, to the bit; what is resumed decides.
/// What was done in place of a decision is the last action of the next step; being told the own action changes no bit.
#[test]
fn the_last_action_is_what_was_done() {
    let config = VectorConfig {
        actions: vec![[-3.0, 5.0]],
        sensors: vec!["a".into(), "b".into()],
        ..VectorConfig::cartpole_pi()
    };
    let agent = drawn(&config, 3);
    let next = |done: Option<f64>| {
        let mut memory = agent.memory();
        let own = act(&agent, &mut memory, &[0.5, -1.0])[0];
        let told = done.unwrap_or(own);
        agent.acted(&[told], &mut memory);
        let action = act(&agent, &mut memory, &[0.25, 2.0])[0];
        let shown = agent.study_inputs(&memory).expect("two sensors").numbers[2];
        (own, shown, action)
    };
    let mut memory = agent.memory();
    let untold = [[0.5, -1.0], [0.25, 2.0]].map(|seen| act(&agent, &mut memory, &seen)[0]);
    let (own, shown, action) = next(None);
    assert_eq!([own, action], untold);
    assert!((f64::from(shown) - (own - 1.0) / 4.0).abs() < 1e-6, "{shown}, {own}");
    let (_, shown, other) = next(Some(3.0));
    assert_eq!(shown, 0.5);
    assert_ne!(other, action);
    assert_eq!([next(Some(-7.0)).1, next(Some(5.0)).1], [-1.0, 1.0]);
}

#[test]
fn a_decision_can_be_opened() {
    for activation in [Activation::Tanh, Activation::Sigmoid, Activation::Softmax] {
        for level in Level::available() {
            let config = VectorConfig { activation, layers: vec![6], ..VectorConfig::default() };
            let agent = drawn(&config, 4).with_level(level);
            let (mut whole, mut parts) = (agent.memory(), agent.memory());
            let (mut opened, mut context) = (Opened::default(), ActContext::default());
            for t in 0..6 {
                let seen = shown(7, t, 3);
                let observation = Observation::Vector(&seen);
                assert!(agent.open(observation, &mut parts, &context, &mut opened).expect("numbers"));
                let decision = agent.act(observation, &mut whole, &mut context).expect("numbers");
                assert_eq!((opened.units, opened.readers, opened.hard), (7, 16, false));
                assert_eq!(opened.means, activation == Activation::Softmax);
                assert_eq!(opened.tokens, [0, 1, 2, 3, 4, 5, 6]);
                assert_eq!((opened.weights.len(), &opened.values), (16 * 7, &seen));
                let weights = decision.attention.expect("attention").weights().to_vec();
                if !opened.means {
                    assert_eq!(opened.weights, weights);
                }
                for (sensor, claim) in opened.claim().into_iter().enumerate() {
                    let sum: f32 = weights[sensor..].iter().step_by(7).map(|weight| weight.abs()).sum();
                    assert!((claim - sum).abs() < 1e-5, "{claim}, {sum}");
                }
                let action = decision.action.to_vec();
                let mut changed = opened.clone();
                changed.values[2] += 1.0;
                let mut other = parts.clone();
                let swapped = agent.resume(&changed, &mut other, &mut context).expect("as many");
                assert_ne!(swapped.action, action, "{activation:?}");
                let mut changed = opened.clone();
                changed.weights.iter_mut().step_by(7).for_each(|weight| *weight = 0.0);
                let mut other = parts.clone();
                let swapped = agent.resume(&changed, &mut other, &mut context).expect("as many");
                assert_ne!(swapped.action, action, "{activation:?}");
                let resumed = agent.resume(&opened, &mut parts, &mut context).expect("its own");
                assert_eq!(resumed.action, action, "{activation:?}, {level}, step {t}");
                assert_eq!(resumed.attention.expect("attention").weights(), weights);
                assert_eq!((whole.raw(), whole.message()), (parts.raw(), parts.message()));
                for wrong in [
                    Opened { values: seen[1..].to_vec(), ..opened.clone() },
                    Opened { weights: vec![], ..opened.clone() },
                ] {
                    let said = agent
                        .resume(&wrong, &mut parts.clone(), &mut context)
                        .expect_err("too few")
                        .to_string();
                    assert!(said.contains("where the agent takes 112 and 7"), "{said}");
                }
            }
        }
    }
}

#[test]
fn impossible_settings_are_refused() {
    let read: fn(&_) -> _ = attention_neuron::DESCRIPTOR.read;
    let AgentDescriptor { name, .. } = attention_neuron::DESCRIPTOR;
    assert_eq!(name, "attention-neuron");
    for (settings, why) in [
        (serde_json::json!({ "codes": 0 }), "codes is 0"),
        (serde_json::json!({ "key_dim": 70_000 }), "key_dim is 70000"),
        (serde_json::json!({ "layers": vec![1; 65] }), "layers names 65 layers"),
        (serde_json::json!({ "layers": [0] }), "layers is 0"),
        (serde_json::json!({ "codes": 65_536, "query_dim": 65_536, "message_dim": 1 }), "lower codes"),
        (serde_json::json!({ "actions": [] }), "action dimensions is 0"),
    ] {
        let config: Box<dyn AgentConfig> = read(&settings).expect("well-formed");
        let said = config.check().expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
    }
}
