//! Random actions, as a baseline: every number of an action is drawn uniformly from its range.
//!
//! The draws depend on the agent's seed and on the episode's seed, never on observations: an episode gets the same actions
//! on every worker and after any other episodes, and different episodes get different actions.

use foveate_core::{
    ActContext, Agent, Decision, Observation, Policy, PolicyAgent, PolicyError, Rng, Seed, TensorShape,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::MAX_ACTIONS;
use crate::descriptor::{self, AgentConfig, AgentDescriptor, Sees};

/// The settings of random actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomActionsConfig {
    /// `[low, high]` per action dimension. For a world of choices, equal ranges make all choices equally likely.
    pub actions: Vec<[f64; 2]>,
    /// The seed of the draws.
    pub seed: u64,
}

impl Default for RandomActionsConfig {
    fn default() -> Self {
        RandomActionsConfig { actions: vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]], seed: 0 }
    }
}

/// Draws its actions.
#[derive(Debug, Clone)]
pub struct RandomActions {
    config: RandomActionsConfig,
}

impl RandomActions {
    /// # Errors
    /// When a range is empty or not finite.
    pub fn new(config: RandomActionsConfig) -> Result<Self, PolicyError> {
        config.check()?;
        Ok(RandomActions { config })
    }
}

/// The random generator of the episode, and the last action.
#[derive(Debug, Clone)]
pub struct RandomMemory {
    rng: Rng,
    action: Vec<f64>,
}

impl Policy for RandomActions {
    type Memory = RandomMemory;

    fn memory(&self) -> RandomMemory {
        let rng = Seed::root(self.config.seed).rng();
        RandomMemory { rng, action: vec![0.0; self.config.actions.len()] }
    }

    fn reset(&self, memory: &mut RandomMemory, episode: Seed) {
        memory.rng = episode.child("random actions", self.config.seed).rng();
    }

    fn act<'m>(
        &self,
        _: Observation<'_>,
        memory: &'m mut RandomMemory,
        // It has a generator of its own, which also depends on the configured seed.
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let RandomMemory { rng, action } = memory;
        for (x, [low, high]) in action.iter_mut().zip(&self.config.actions) {
            *x = rng.uniform(*low, *high);
        }
        Ok(Decision::new(action))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![]
    }

    fn params(&self) -> Vec<f32> {
        vec![]
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.is_empty() {
            return Ok(());
        }
        Err(PolicyError::ParamCount { wanted: 0, given: flat.len(), tensors: "none".into() })
    }
}

impl AgentConfig for RandomActionsConfig {
    fn check(&self) -> Result<(), PolicyError> {
        let bad = |why| Err(PolicyError::BadConfig { why });
        if !(1..=MAX_ACTIONS).contains(&self.actions.len()) {
            return bad(format!("actions has {} ranges; give 1 to {MAX_ACTIONS}", self.actions.len()));
        }
        match self.actions.iter().find(|[low, high]| !(low <= high && (high - low).is_finite())) {
            Some([low, high]) => bad(format!("actions holds [{low}, {high}]; give a finite low, then high")),
            None => Ok(()),
        }
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![]
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        Ok(Box::new(PolicyAgent::new(RandomActions::new(self.clone())?)))
    }
}

/// Its entry in [`AGENTS`](crate::registry::AGENTS).
pub static DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "random-actions",
    summary: "draws its actions evenly and has nothing to learn, for comparison",
    sees: Sees::Nothing,
    read: descriptor::read::<RandomActionsConfig>,
    fit: |spec, _| json!({ "actions": spec.action.bounds() }),
    published: &[],
};

#[cfg(test)]
mod tests {
    use foveate_core::episode_seed;

    use super::*;

    const STEPS: usize = 2000;

    /// The actions of the episode with this seed, in which the world always shows the same.
    fn play(policy: &RandomActions, memory: &mut RandomMemory, episode: Seed) -> Vec<Vec<f64>> {
        policy.reset(memory, episode);
        let mut act = |_| {
            policy
                .act(Observation::Vector(&[0.5]), memory, &mut ActContext::default())
                .expect("fine")
                .action
                .to_vec()
        };
        (0..STEPS).map(&mut act).collect()
    }

    #[test]
    fn an_episode_has_its_actions_and_another_has_others() {
        let make = |seed| {
            let actions = vec![[-1.0, 1.0], [2.0, 3.0], [5.0, 5.0]];
            RandomActions::new(RandomActionsConfig { actions, seed }).expect("fine")
        };
        let policy = make(1);
        let mut memory = policy.memory();
        let first = play(&policy, &mut memory, episode_seed(3, 0));
        let others = [
            ("the next of the stream", play(&policy, &mut memory, episode_seed(3, 1))),
            ("another stream", play(&policy, &mut memory, episode_seed(4, 0))),
            ("another agent", play(&make(2), &mut memory, episode_seed(3, 0))),
        ];
        assert_eq!(play(&policy, &mut memory, episode_seed(3, 0)), first, "whatever was played before");
        for (name, other) in &others {
            for (t, (a, b)) in first.iter().zip(other).enumerate() {
                assert_ne!(a, b, "{name}, step {t}");
            }
        }
        for (i, (low, high)) in [(-1.0, 1.0), (2.0, 3.0), (5.0, 5.0)].into_iter().enumerate() {
            let drawn: Vec<f64> = first.iter().map(|action| action[i]).collect();
            assert!(drawn.iter().all(|x| (low..=high).contains(x)), "{i}");
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            // Four standard errors.
            let near = 4.0 * (high - low) / (12.0 * drawn.len() as f64).sqrt();
            assert!((mean - f64::midpoint(low, high)).abs() <= near, "{i}: {mean}");
        }
    }

    #[test]
    fn impossible_ranges_are_refused() {
        for actions in [vec![], vec![[1.0, 0.0]], vec![[f64::NEG_INFINITY, 0.0]], vec![[f64::NAN, 0.0]]] {
            assert!(RandomActions::new(RandomActionsConfig { actions, seed: 0 }).is_err());
        }
    }
}
