//! Agents that decide for several episodes at once decide as they would in each alone.

use foveate_agents::registry::{Init, initial_params, make};
use foveate_core::{ActContext, ActMode, Agent, AgentBatch, Image, Observation, Seed, Turn, episode_seed};
use serde_json::{Value, json};

const EPISODES: usize = 3;
const STEPS: usize = 5;

/// What is seen in a step of an episode: a picture, or three numbers.
fn seen(episode: usize, step: usize, picture: bool) -> (Vec<u8>, [f32; 3]) {
    let mut rng = Seed::root(9).child("episode", episode as u64).child("step", step as u64).rng();
    let rgb = (0..if picture { 16 * 16 * 3 } else { 0 }).map(|_| rng.below(256) as u8).collect();
    (rgb, [0; 3].map(|_| rng.uniform(-1.0, 1.0) as f32))
}

fn observe(seen: &(Vec<u8>, [f32; 3])) -> Observation<'_> {
    Image::new(16, 16, &seen.0).map_or(Observation::Vector(&seen.1), Observation::rgb)
}

/// The actions of every episode, one episode after the other.
fn alone(agent: &dyn Agent, picture: bool) -> Vec<Vec<Vec<f64>>> {
    let episode = |episode: usize| {
        let (mut agent, seed) = (agent.boxed_clone(), episode_seed(4, episode));
        agent.begin_episode(seed);
        let mut context = ActContext::new(seed, ActMode::Explore { epsilon: 0.0 });
        let mut act = |step| {
            let seen = seen(episode, step, picture);
            agent.act(observe(&seen), &mut context).expect("it acts").action.to_vec()
        };
        (0..STEPS).map(&mut act).collect()
    };
    (0..EPISODES).map(episode).collect()
}

/// The same of a batch, whose turns come in another order in every step.
fn together(batch: &mut dyn AgentBatch, picture: bool) -> Vec<Vec<Vec<f64>>> {
    let mut actions = vec![vec![]; EPISODES];
    let seed = |episode| episode_seed(4, episode);
    let mut contexts: Vec<_> =
        (0..EPISODES).map(|e| ActContext::new(seed(e), ActMode::Explore { epsilon: 0.0 })).collect();
    (0..EPISODES).for_each(|episode| batch.begin_episode(episode, seed(episode)));
    for step in 0..STEPS {
        let seen: Vec<_> = (0..EPISODES).map(|episode| seen(episode, step, picture)).collect();
        let mut turns: Vec<Turn<'_>> = contexts
            .iter_mut()
            .enumerate()
            .map(|(episode, context)| Turn { episode, observation: observe(&seen[episode]), context })
            .collect();
        turns.rotate_left(step % EPISODES);
        let order: Vec<usize> = turns.iter().map(|turn| turn.episode).collect();
        let mut took = |i: usize, decision: foveate_core::Decision<'_>| {
            actions[order[i]].push(decision.action.to_vec());
        };
        batch.act(&mut turns, &mut took).expect("it acts");
    }
    actions
}

/// An agent that overrides nothing, so that its batch is made of copies.
struct Plain(Box<dyn Agent>);

impl Agent for Plain {
    fn begin_episode(&mut self, episode: Seed) {
        self.0.begin_episode(episode);
    }
    fn act(
        &mut self,
        observation: Observation<'_>,
        context: &mut ActContext,
    ) -> Result<foveate_core::Decision<'_>, foveate_core::PolicyError> {
        self.0.act(observation, context)
    }
    fn tensors(&self) -> Vec<foveate_core::TensorShape> {
        self.0.tensors()
    }
    fn params(&self) -> Vec<f32> {
        self.0.params()
    }
    fn set_params(&mut self, flat: &[f32]) -> Result<(), foveate_core::PolicyError> {
        self.0.set_params(flat)
    }
    fn set_threads(&mut self, threads: &foveate_core::Threads) {
        self.0.set_threads(threads);
    }
    fn boxed_clone(&self) -> Box<dyn Agent> {
        Box::new(Plain(self.0.boxed_clone()))
    }
}

#[test]
fn a_batch_decides_as_each_episode_alone() {
    let actions = json!([[-1.0, 1.0], [0.0, 1.0]]);
    let pictures = json!({ "image": [16, 16], "top_k": 4, "hidden": 4, "actions": actions });
    let agents: [(&str, Value, bool); 4] = [
        ("attention-agent", pictures, true),
        ("iap", json!({ "image": [16, 16], "patch": 2, "stride": 2, "top_k": 4, "actions": actions }), true),
        (
            "controller",
            json!({ "observation": [[-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]], "controller": { "kind": "lstm", "hidden": 3 },
                "actions": actions }),
            false,
        ),
        ("random-actions", json!({ "actions": actions }), false),
    ];
    for (name, config, picture) in agents {
        let mut agent = make(name, &config).expect("an agent");
        let params = initial_params(name, &config, Init::Torch, Seed::root(2)).expect("an agent");
        agent.set_params(&params).expect("its own");
        let expect = alone(&*agent, picture);
        assert_ne!(expect[0], expect[1], "{name}: episodes differ");
        assert_eq!(together(&mut *agent.batch(EPISODES), picture), expect, "{name}");
        let plain = Plain(agent.boxed_clone());
        assert_eq!(together(&mut *plain.batch(EPISODES), picture), expect, "{name}, copies");
        // Other parameters are for all episodes.
        let mut batch = agent.batch(EPISODES);
        assert_eq!(batch.episodes(), EPISODES);
        let other: Vec<f32> = params.iter().map(|x| -x).collect();
        batch.set_params(&other).expect("as many");
        agent.set_params(&other).expect("as many");
        assert_eq!(together(&mut *batch, picture), alone(&*agent, picture), "{name}, other parameters");
    }
}

#[test]
fn the_first_error_ends_a_batch() {
    let agent = make("controller", &json!({ "observation": [[-1.0, 1.0]], "actions": [[0.0, 1.0]] }))
        .expect("an agent");
    let mut batch = agent.batch(2);
    let (mut first, mut second) = (ActContext::default(), ActContext::default());
    let mut turns = [
        Turn { episode: 1, observation: Observation::Vector(&[0.5]), context: &mut first },
        Turn { episode: 0, observation: Observation::Vector(&[0.5, 0.5]), context: &mut second },
    ];
    let mut decided = vec![];
    let outcome = batch.act(&mut turns, &mut |i, decision| decided.push((i, decision.action.len())));
    assert!(outcome.is_err());
    assert_eq!(decided, [(0, 1)]);
}
