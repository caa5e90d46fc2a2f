//! Runs the published CarRacing weights in the world they were trained in: an end-to-end test from the random
//! stream to the score.

use foveate_agents::{AttentionAgent, AttentionAgentConfig};
use foveate_core::{ActContext, ActMode, Action, Agent, Env, PolicyAgent, TensorData, episode_seed};
use foveate_envs::car_racing::variants::Variants;
use foveate_envs::car_racing::{CarRacing, CarRacingConfig};
use foveate_run::npz;

/// The published weights, in their published order, which is the agent's own; `None` without the file.
fn weights() -> Option<Vec<f32>> {
    let file = foveate_toy::needs::data("attention_agent_carracing.npz")?;
    let members = npz::read(&file).unwrap();
    let TensorData::F32(weights) = members[0].array.data() else { panic!("the weights are f32") };
    Some(weights.clone())
}

/// Tiles, steps and return of the first `n` episodes of seed 1.
fn drive(weights: &[f32], variants: &str, n: usize) -> Vec<(usize, usize, f64)> {
    let mut agent = PolicyAgent::new(AttentionAgent::new(AttentionAgentConfig::default()).unwrap());
    agent.set_params(weights).unwrap();
    let variants = Variants::parse(variants).unwrap();
    let mut env = CarRacing::new(CarRacingConfig { variants, ..CarRacingConfig::classic() }).unwrap();
    (0..n)
        .map(|episode| {
            env.reset((episode == 0).then_some(1));
            agent.begin_episode(episode_seed(0, 0));
            let mut context = ActContext::new(episode_seed(0, 0), ActMode::Greedy);
            let (mut steps, mut total) = (0, 0.0);
            loop {
                let action = agent.act(env.observation(), &mut context).unwrap().action;
                let step = env.step(Action::Continuous(action)).unwrap();
                (steps, total) = (steps + 1, total + step.reward);
                if step.is_over() {
                    return (env.track().points.len(), steps, total);
                }
            }
        })
        .collect()
}

#[test]
fn the_published_weights_drive_the_first_laps() {
    let Some(weights) = weights() else { return };
    for variants in ["original", "color", "bar", "blob"] {
        let episodes = drive(&weights, variants, 3);
        let tiles: Vec<usize> = episodes.iter().map(|episode| episode.0).collect();
        assert_eq!(tiles, [276, 277, 316], "the tracks of Gym's seed 1");
        for (tiles, steps, total) in episodes {
            assert!(total > 880.0, "{variants}: {total} in {steps} steps of {tiles} tiles");
            // All tiles together give 1000, minus 0.1 per step.
            let lap = 1000.0 - 0.1 * steps as f64;
            assert!(steps == 1000 || (total - lap).abs() < 1e-6, "{variants}: {total} in {steps} steps");
        }
    }
}

#[test]
fn noise_and_a_fake_lane_lead_them_astray_as_published() {
    let Some(weights) = weights() else { return };
    for variants in ["noise", "fake-lane"] {
        for (_, steps, total) in drive(&weights, variants, 2) {
            assert!(steps == 1000 && total < 0.0, "{variants}: {total} in {steps} steps");
        }
    }
}
