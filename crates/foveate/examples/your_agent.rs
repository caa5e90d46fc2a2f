//! An agent of your own: a policy, here one linear layer, that acts in the world of `your_world.rs`.
//!
//! Run: `cargo run --release -p foveate --example your_agent`
//! Time: less than a second
//! Output:
//! ```text
//! weights [0.0, 0.0, 0.0]: return -29.30
//! weights [-1.0, 1.0, 0.0]: return -1.43
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

#[path = "your_world.rs"]
pub(crate) mod your_world;

use foveate::core::episode::{Episode, EpisodeRules};
use foveate::core::{ActContext, Decision, EvaluateError, Policy, PolicyAgent, PolicyError, TensorShape};
use foveate::{Agent, Observation, Seed, WORLDS, World};
use serde::{Deserialize, Serialize};

/// A linear layer from `inputs` numbers to one action; the last weight is the bias.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Linear {
    pub(crate) inputs: usize,
    #[serde(skip)]
    pub(crate) weights: Vec<f32>,
}

impl Policy for Linear {
    type Memory = [f64; 1]; // the last action; a recurrent policy keeps its state here

    fn memory(&self) -> [f64; 1] {
        [0.0]
    }

    fn reset(&self, _: &mut [f64; 1], _: Seed) {}

    fn act<'m>(
        &self,
        seen: Observation<'_>,
        memory: &'m mut [f64; 1],
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Some(numbers) = seen.numbers().filter(|numbers| numbers.len() == self.inputs) else {
            let wanted = format!("{} numbers", self.inputs);
            return Err(PolicyError::ObservationShape { wanted, given: seen.describe() });
        };
        memory[0] = numbers.iter().chain(&[1.0]).zip(&self.weights).map(|(x, w)| f64::from(x * w)).sum();
        Ok(Decision::new(memory))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![TensorShape { name: "weight".into(), shape: vec![1, self.inputs + 1] }]
    }

    fn params(&self) -> Vec<f32> {
        self.weights.clone()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.weights = flat.to_vec();
        Ok(())
    }
}

#[allow(dead_code, reason = "train_it includes this file")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    WORLDS.register(your_world::descriptor())?;
    let world = World::named("line");
    let mut env = world.make(&world.own())?;
    for weights in [vec![0.0; 3], vec![-1.0, 1.0, 0.0]] {
        let mut agent = PolicyAgent::new(Linear { inputs: 2, weights });
        let agent: &mut dyn Agent = &mut agent;
        let mut episode = Episode::of_seed(1, EpisodeRules::WHOLE);
        let result: Result<_, EvaluateError> = episode.run(&mut *env, agent, &mut ());
        println!("weights {:?}: return {:.2}", agent.params(), result?.total);
    }
    Ok(())
}
