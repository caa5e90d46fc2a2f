//! The agent that learns nothing: every number of its action is drawn evenly from its range.
//!
//! What is drawn depends on the seed and on all that was seen in the episode, so that the same episode always gets the
//! same actions, whoever drives it and whatever was driven before, and different episodes get different ones.

use foveate_core::{Decision, Mixed, Observation, Policy, PolicyError, Seed, TensorShape};
use serde::{Deserialize, Serialize};

use crate::config::MAX_ACTIONS;

/// What the actions are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomActionsConfig {
    /// `[low, high]` per action dimension. Of scores for a choice, each range alike makes each choice as likely.
    pub actions: Vec<[f64; 2]>,
    /// Another seed gives other actions.
    pub seed: u64,
}

impl Default for RandomActionsConfig {
    fn default() -> Self {
        RandomActionsConfig { actions: vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]], seed: 0 }
    }
}

impl RandomActionsConfig {
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let bad = |why| Err(PolicyError::BadConfig { why });
        if !(1..=MAX_ACTIONS).contains(&self.actions.len()) {
            return bad(format!("actions has {} ranges; give 1 to {MAX_ACTIONS}", self.actions.len()));
        }
        match self.actions.iter().find(|[low, high]| !(low <= high && (high - low).is_finite())) {
            Some([low, high]) => bad(format!("actions holds [{low}, {high}]; give a finite low, then high")),
            None => Ok(()),
        }
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

/// All that was seen, in one number, and the last action.
#[derive(Debug, Clone)]
pub struct RandomMemory {
    seen: Seed,
    action: Vec<f64>,
}

impl Policy for RandomActions {
    type Memory = RandomMemory;

    fn memory(&self) -> RandomMemory {
        let seen = Seed::root(self.config.seed);
        RandomMemory { seen, action: vec![0.0; self.config.actions.len()] }
    }

    fn reset(&self, memory: &mut RandomMemory) {
        memory.seen = Seed::root(self.config.seed);
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut RandomMemory,
    ) -> Result<Decision<'m>, PolicyError> {
        memory.seen = memory.seen.child("seen", digest(observation));
        let mut rng = memory.seen.rng();
        for (x, [low, high]) in memory.action.iter_mut().zip(&self.config.actions) {
            *x = rng.uniform(*low, *high);
        }
        Ok(Decision { action: &memory.action, gaze: None })
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

/// An observation in one number (FNV-1a on eight bytes at a time, in four lanes, for a picture is long).
fn digest(observation: Observation<'_>) -> u64 {
    fn add(hash: u64, word: u64) -> u64 {
        let hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        // Whole words leave the low bits to the low bytes alone.
        hash ^ (hash >> 32)
    }
    fn bytes(hash: u64, bytes: &[u8]) -> u64 {
        let (blocks, rest) = bytes.as_chunks::<32>();
        let mut lanes = [hash, hash ^ 1, hash ^ 2, hash ^ 3];
        for block in blocks {
            for (lane, word) in lanes.iter_mut().zip(block.as_chunks().0) {
                *lane = add(*lane, u64::from_le_bytes(*word));
            }
        }
        let hash = lanes.into_iter().fold(hash, add);
        rest.iter().fold(hash, |hash, &byte| add(hash, u64::from(byte)))
    }
    fn numbers(hash: u64, numbers: &[f32]) -> u64 {
        numbers.iter().fold(hash, |hash, x| add(hash, u64::from(x.to_bits())))
    }
    let start = 0xcbf2_9ce4_8422_2325;
    match observation {
        Observation::Image(image) => bytes(start, image.rgb()),
        Observation::Vector(vector) => numbers(start, vector),
        Observation::Mixed(Mixed { image, depth, sensors }) => {
            numbers(bytes(bytes(start, image.rgb()), depth.unwrap_or_default()), sensors)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The actions of an episode that shows these numbers.
    fn play(policy: &RandomActions, memory: &mut RandomMemory, shown: &[f32]) -> Vec<Vec<f64>> {
        policy.reset(memory);
        let mut act = |x: &f32| policy.act(Observation::Vector(&[*x]), memory).expect("fine").action.to_vec();
        shown.iter().map(&mut act).collect()
    }

    #[test]
    fn an_episode_has_its_actions_and_another_has_others() {
        let make = |seed| {
            let actions = vec![[-1.0, 1.0], [2.0, 3.0], [5.0, 5.0]];
            RandomActions::new(RandomActionsConfig { actions, seed }).expect("fine")
        };
        let policy = make(1);
        let mut memory = policy.memory();
        let shown: Vec<f32> = (0..2000).map(|t| (t / 2) as f32).collect();
        let first = play(&policy, &mut memory, &shown);
        let mut other = shown.clone();
        other[0] = 7.0;
        let second = play(&policy, &mut memory, &other);
        assert_eq!(play(&policy, &mut memory, &shown), first, "whatever was played before");
        assert_ne!(play(&make(2), &mut memory, &shown), first, "another seed");
        for (t, (a, b)) in first.iter().zip(&second).enumerate() {
            assert_ne!(a, b, "step {t}: what was seen once counts for the whole episode");
        }
        assert_ne!(first[0], first[1], "the same is seen, and yet another action");
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
    fn every_byte_of_a_picture_counts() {
        let mut picture = foveate_core::ImageBuf::black(7, 5);
        let mut seen = std::collections::BTreeSet::from([digest(Observation::Image(picture.as_image()))]);
        let bytes = picture.rgb().len();
        for i in 0..bytes {
            picture.rgb_mut()[i] = 1;
            seen.insert(digest(Observation::Image(picture.as_image())));
            picture.rgb_mut()[i] = 0;
        }
        assert_eq!(seen.len(), bytes + 1);
    }

    #[test]
    fn impossible_ranges_are_refused() {
        for actions in [vec![], vec![[1.0, 0.0]], vec![[f64::NEG_INFINITY, 0.0]], vec![[f64::NAN, 0.0]]] {
            assert!(RandomActions::new(RandomActionsConfig { actions, seed: 0 }).is_err());
        }
    }
}
