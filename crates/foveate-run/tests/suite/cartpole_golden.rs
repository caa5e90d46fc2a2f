//! Compares `CartPoleSwingUpHarder` with starts and an episode of an independent implementation, bit by bit, and the
//! scores of the published agent with those that its authors give, on their random numbers.

use std::path::PathBuf;

use foveate_agents::attention_neuron::vectors::{VectorAgent, VectorConfig};
use foveate_agents::{AgentConfig, Layout};
use foveate_core::{ActContext, Action, Env, Observation, Policy, Seed, TensorData};
use foveate_envs::cartpole_swingup::{CartPoleConfig, CartPoleSwingUp};
use foveate_envs::random::Mt19937;
use foveate_run::import::import;
use foveate_run::npz;

/// The file of this name among the published ones; `None`, with a line that says so, where it is not.
fn published(name: &str) -> Option<PathBuf> {
    foveate_toy::needs::data(name)
}

/// NumPy's `RandomState.shuffle`.
fn shuffle(random: &mut Mt19937, numbers: &mut [usize]) {
    for i in (1..numbers.len()).rev() {
        let mask = u32::MAX >> (i as u32).leading_zeros();
        let drawn = loop {
            let drawn = (random.next_u32() & mask) as usize;
            if drawn <= i {
                break drawn;
            }
        };
        numbers.swap(i, drawn);
    }
}

/// NumPy's `RandomState.randn`: the polar method, which gives two numbers at once; `second` keeps the other one.
fn normal(random: &mut Mt19937, second: &mut Option<f64>) -> f64 {
    second.take().unwrap_or_else(|| {
        loop {
            let [x, y] = [(); 2].map(|()| 2.0 * random.next_f64() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                *second = Some(factor * x);
                return factor * y;
            }
        }
    })
}

/// Returns of the published agent on the 100 episodes of seed 1, with sensors shuffled in every episode and `channels`
/// sensors of noise, drawn as the authors' program draws them.
fn published_returns(agent: &VectorAgent, channels: usize) -> Vec<f64> {
    let mut env = CartPoleSwingUp::new(CartPoleConfig::default());
    let (mut random, mut second) = (Mt19937::seeded(1), None);
    let mut memory = agent.memory();
    let returns = (0..100).map(|episode| {
        env.reset((episode == 0).then_some(1));
        agent.reset(&mut memory, Seed::root(1));
        let mut order = [0, 1, 2, 3, 4];
        shuffle(&mut random, &mut order);
        let mut total = 0.0;
        loop {
            let Observation::Vector(sensors) = env.observation() else { panic!("five numbers") };
            let mut shown: Vec<f32> = order.iter().map(|&sensor| sensors[sensor]).collect();
            shown.extend((0..channels).map(|_| (0.1 * normal(&mut random, &mut second)) as f32));
            let decision =
                agent.act(Observation::Vector(&shown), &mut memory, &mut ActContext::default()).unwrap();
            let outcome = env.step(Action::Continuous(decision.action)).unwrap();
            total += outcome.reward;
            if outcome.terminated || outcome.truncated {
                break;
            }
        }
        // The observation after the last step has noise, too.
        for _ in 0..channels {
            normal(&mut random, &mut second);
        }
        total
    });
    returns.collect()
}

/// The authors give 516.57 ± 420.37, and 489.93 ± 410.20 with five sensors of noise. Sums in another order change single
/// episodes, which are chaotic.
#[test]
fn the_published_agent_scores_as_published_on_the_authors_random_numbers() {
    let Some(file) = published("attention_neuron_cartpole_pi.npz") else { return };
    let config = VectorConfig::cartpole_pi();
    let settings = config.to_value().unwrap();
    let imported = import(&file, "attention-neuron", &settings, Layout::Registration).unwrap();
    let mut agent = VectorAgent::new(config).unwrap();
    agent.set_params(imported.params()).unwrap();
    for (channels, mean, deviation) in [(0, 516.57, 420.37), (5, 489.93, 410.20)] {
        let returns = published_returns(&agent, channels);
        let ours = returns.iter().sum::<f64>() / 100.0;
        let spread = (returns.iter().map(|r| (r - ours).powi(2)).sum::<f64>() / 100.0).sqrt();
        assert!((ours / mean - 1.0).abs() < 0.03, "{channels} sensors of noise: {ours}, published {mean}");
        assert!((spread / deviation - 1.0).abs() < 0.03, "{channels} sensors of noise: ± {spread}");
    }
}

#[test]
fn starts_and_an_episode_of_an_independent_implementation() {
    let Some(file) = published("golden_attention_neuron_cartpole_pi.npz") else { return };
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
