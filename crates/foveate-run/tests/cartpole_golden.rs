//! Compares `CartPoleSwingUpHarder` with starts and an episode of an independent implementation, bit by bit.

use std::path::PathBuf;

use foveate_core::{Action, Env, Observation, TensorData};
use foveate_envs::cartpole_swingup::{CartPoleConfig, CartPoleSwingUp};
use foveate_run::npz;

#[test]
fn starts_and_an_episode_of_an_independent_implementation() {
    let data = std::env::var_os("FOVEATE_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let file = data.join("golden_attention_neuron_cartpole_pi.npz");
    if !file.exists() {
        eprintln!("skipped: no {}; set FOVEATE_DATA to the folder that has it", file.display());
        return;
    }
    let members = npz::read(&file).unwrap();
    let array = |name: &str| members.iter().find(|member| member.name == name).unwrap().array.data();
    let (TensorData::F64(starts), TensorData::F64(seen), TensorData::F32(actions), TensorData::F64(rewards)) =
        (array("init_states_seed1"), array("ep0_obs"), array("ep0_action"), array("ep0_reward"))
    else {
        panic!("actions are f32, all others f64");
    };

    let mut env = CartPoleSwingUp::new(CartPoleConfig::default());
    for (episode, start) in starts.chunks_exact(4).enumerate() {
        env.reset((episode == 0).then_some(1));
        let state = env.cart_pole();
        assert_eq!([state.x, state.x_dot, state.theta, state.theta_dot], start, "episode {episode}");
    }
    env.reset(Some(1));
    assert_eq!((actions.len(), rewards.len(), seen.len()), (200, 200, 1000));
    for (step, ((seen, &action), &reward)) in seen.chunks_exact(5).zip(actions).zip(rewards).enumerate() {
        let state = env.cart_pole();
        let exact = [state.x, state.x_dot, state.theta.cos(), state.theta.sin(), state.theta_dot];
        assert_eq!(exact, seen, "step {step}");
        let rounded = exact.map(|number| number as f32);
        assert_eq!(env.observation(), Observation::Vector(&rounded), "step {step}");
        let outcome = env.step(Action::Continuous(&[f64::from(action)])).unwrap();
        assert_eq!(outcome.reward.to_bits(), reward.to_bits(), "step {step}");
    }
}
