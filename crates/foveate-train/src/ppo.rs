//! Proximal policy optimisation: a policy learns by the gradient of its own return (PPO: Schulman et al. 2017, the clipped
//! objective, equation 7).
//!
//! Each round runs whole episodes, in which the agent draws its actions from its distribution. Advantages come from
//! generalised advantage estimation (Schulman et al. 2016) and are normalised to mean 0 and deviation 1 over the round. The
//! episodes are then cut into segments of [`segment`](PpoConfig::segment) steps (of 1 step for an agent without memory), and
//! Adam goes [`epochs`](PpoConfig::epochs) times over all of them, in random batches, against the gradient of
//!
//! ```text
//! −min(ratio · A, clip(ratio, 1 − ε, 1 + ε) · A) + value_weight · (V − target)² / 2 − entropy_weight · entropy
//! ```
//!
//! averaged over the steps of the batch, with ratio = π(action) / π(action when it was taken) and target = A + V as they were
//! before the round. An agent with memory starts each segment with the memory that it had there, and the gradient flows
//! through the steps of the segment (truncated backpropagation through time).
//!
//! The task's end and a truncation are different: after the one there is nothing to come; after the other the value of the
//! last observation, which the recordings keep, stands for it.

pub(crate) mod objective;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use foveate_core::{
    ActionBuf, ActionDistribution, Experience, GradientParts, LastStep, LearnError, Learner, LossSums, Model,
    Outputs, PartScratch, PolicyError, Predictions, Record, Seed, SparseRows, Unroll, lacking,
};
use foveate_learn::{Clip, OptimizerConfig};
use serde::{Deserialize, Serialize};
use toml::Table;

use self::objective::{Taken, advantages, explained_variance, log_probability, taken};
use crate::descent::Descent;
use crate::descriptor::{
    JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom, parse,
};
use crate::evolution::vectors;
use crate::fingerprint::SettingsOrder;
use crate::learning::{Learning, Measures, Method, Round, add, check_unroll, shuffle, transitions};

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "ppo",
    summary: "proximal policy optimisation: the policy learns by the gradient of its return; no evolution",
    learns_from: LearnsFrom::Policies,
    schedulable: true,
    parse: parse::<PpoConfig>,
};

/// Settings of a [`Ppo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// Factor per step of rewards to come, `0.0..=1.0`.
    pub discount: f64,
    /// λ of the advantage estimation, `0.0..=1.0`: 0 trusts the values, 1 the returns.
    pub lambda: f64,
    /// ε of the objective, above 0: beyond 1 ± ε a ratio of probabilities gains nothing more.
    pub clip_ratio: f64,
    /// Passes over the steps of a round, at least 1.
    pub epochs: usize,
    /// Steps per update, at least 1.
    pub batch: usize,
    /// Steps of a segment of an agent with memory, at least 1; for one without, every step stands by itself.
    pub segment: usize,
    /// Adam's step size, above 0.
    pub learning_rate: f64,
    /// Largest Euclidean norm of a gradient, above 0; longer ones are scaled down.
    pub clip: f64,
    /// Weight of the values' squared error, at least 0.
    pub value_weight: f64,
    /// Weight of the entropy, at least 0: more of it keeps the policy random for longer.
    pub entropy_weight: f64,
    /// What rewards are multiplied by before anything is computed from them, above 0. Where values share layers with the
    /// policy, returns to come of the order of 1 let both learn.
    #[serde(skip_serializing_if = "is_one")]
    pub reward_scale: f64,
    /// Parts of a batch whose gradients are computed by themselves, at the same time where there are several cores, at least 1.
    /// Results depend on this number, not on the number of cores. Left out of the configuration where it is 1.
    #[serde(skip_serializing_if = "is_whole")]
    pub shares: usize,
}

/// Returns whether a batch is not divided into shares.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_whole(shares: &usize) -> bool {
    *shares == 1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(scale: &f64) -> bool {
    *scale == 1.0
}

impl Default for PpoConfig {
    fn default() -> Self {
        PpoConfig {
            discount: 0.99,
            lambda: 0.95,
            clip_ratio: 0.2,
            epochs: 4,
            batch: 256,
            segment: 16,
            learning_rate: 0.0003,
            clip: 0.5,
            value_weight: 0.5,
            entropy_weight: 0.01,
            reward_scale: 1.0,
            shares: 1,
        }
    }
}

/// Upper limit of counts; a larger number is a typing error.
const MOST: usize = 1_000_000;
/// Numbers of encoded observations that the caches hold.
const CACHED: usize = 1 << 18;
/// Encodings of whose numbers one in so many, or more, is not zero are not kept without their zeros.
const LEAST_ZEROS: usize = 4;
/// Steps of an unroll: an episode is one, unless it is longer.
const UNROLL: usize = 1 << 20;
/// Added to the deviation of the advantages, so that equal ones become zeros.
const LEAST_DEVIATION: f64 = 1e-8;
/// Adam's ε; larger than published, as usual for policy gradients.
const ADAM_EPSILON: f64 = 1e-5;
const NEEDS: &str =
    "ppo needs an agent that draws its actions and estimates values, such as actor-critic; this one does not";

/// See [`SettingsOrder`].
const ORDER: SettingsOrder = SettingsOrder {
    always: "epochs batch segment discount lambda clip_ratio learning_rate clip value_weight \
             entropy_weight",
    later: &[&[("reward_scale", 1.0)]],
    words: &[],
};

impl LearnerSettings for PpoConfig {
    fn check(&self) -> Result<(), LearnError> {
        let refuse = |why: String| Err(LearnError::BadConfig { why });
        for (name, value) in [
            ("epochs", self.epochs),
            ("batch", self.batch),
            ("segment", self.segment),
            ("shares", self.shares),
        ] {
            if !(1..=MOST).contains(&value) {
                return refuse(format!("{name} = {value}; choose from 1 to {MOST}"));
            }
        }
        for (name, value) in [("discount", self.discount), ("lambda", self.lambda)] {
            if !(0.0..=1.0).contains(&value) {
                return refuse(format!("{name} = {value}; choose from 0 to 1"));
            }
        }
        for (name, value) in [
            ("clip_ratio", self.clip_ratio),
            ("learning_rate", self.learning_rate),
            ("clip", self.clip),
            ("reward_scale", self.reward_scale),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return refuse(format!("{name} = {value}; it must be above 0"));
            }
        }
        for (name, value) in [("value_weight", self.value_weight), ("entropy_weight", self.entropy_weight)] {
            if !(value >= 0.0 && value.is_finite()) {
                return refuse(format!("{name} = {value}; it must be at least 0"));
            }
        }
        Ok(())
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("a plain table of numbers")
    }

    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let LearnerParts { weights, seed, model, fitness } = parts;
        let Some(model) = model else {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        };
        Ok(Box::new(Ppo::new(self.clone(), &weights, seed, model)?.with_fitness(fitness)))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let &JobSize { params, longest, tracks, observed, .. } = job;
        let step = observed.saturating_add(512);
        let steps = longest.saturating_mul(tracks);
        LearnerSize {
            memory: steps.saturating_mul(step).saturating_add(vectors(params)),
            saved: params.saturating_mul(24).saturating_add(1),
            what: format!("the steps of a round, up to {steps} of {observed} bytes each"),
            remedy: "lower max_steps, or the stage's tracks",
        }
    }
}

/// The method; see the [module documentation](self).
pub struct PpoMethod {
    pub(crate) config: PpoConfig,
}

/// The learner; see the [module documentation](self).
pub type Ppo = Learning<PpoMethod>;

/// The steps of a round, of all episodes one after the other.
#[derive(Default)]
struct Rollouts {
    /// What was recorded of the episodes.
    episodes: Vec<Unroll>,
    /// `[steps]`: the episode of each, and its number in that.
    places: Vec<(usize, usize)>,
    /// `[steps]`: the logarithms of their probabilities when they were taken.
    logs: Vec<f64>,
    /// `[steps]`
    values: Vec<f32>,
    /// `[steps, memory_len]`: the memory before each step.
    memories: Vec<f32>,
    /// `[steps]`
    advantages: Vec<f64>,
    /// `[steps]`: advantage and value before the advantages were normalised.
    targets: Vec<f64>,
    /// First step and number of steps of each segment.
    segments: Vec<(usize, usize)>,
    /// `[steps]`: the encoded observations, of a network that reads them without their zeros.
    rows: SparseRows,
}

/// Scratch space in which episodes are added.
#[derive(Default)]
struct Scratch {
    inputs: Vec<f32>,
    part: Predictions,
    followed: Predictions,
}

/// The loss of a batch, in shares whose gradients are computed by themselves.
struct Loss {
    config: PpoConfig,
    distribution: ActionDistribution,
    rollouts: Arc<Rollouts>,
    /// Of the batch: first step and number of steps of each.
    segments: Vec<(usize, usize)>,
    /// Segments of a share; the last has the rest.
    per_share: usize,
    /// 1 / the steps of the batch.
    share: f64,
}

/// Places in the sums of a [`Loss`]; the first is the loss itself.
const ENTROPY: usize = 1;
const VALUE_LOSS: usize = 2;
const CLIPPED: usize = 3;
const DIVERGENCE: usize = 4;

/// The network of a model; [`Ppo::new`] made sure that there is one, with a distribution.
fn network(model: &mut dyn Model) -> (&mut dyn Outputs, ActionDistribution) {
    let network = model.outputs().expect("checked when the learner was made");
    let distribution = network.kind().distribution().expect("checked when the learner was made");
    (network, distribution)
}

/// Steps of a network without memory that are computed at a time.
fn together(network: &dyn Outputs) -> usize {
    (CACHED / network.encoded_len().max(1)).max(8)
}

fn refused(why: String) -> LearnError {
    LearnError::Experience { why }
}

impl Ppo {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, `weights` are empty, not finite or not of the model's size, or the model does not draw
    /// actions.
    pub fn new(
        config: PpoConfig,
        weights: &[f64],
        seed: Seed,
        model: &dyn Model,
    ) -> Result<Self, LearnError> {
        config.check()?;
        let mut model = model.boxed_clone();
        let adam = OptimizerConfig::Adam { beta1: 0.9, beta2: 0.999, epsilon: ADAM_EPSILON };
        let descent = Descent::single("ppo", weights, seed, &mut *model, adam, config.learning_rate)?;
        if model.outputs().and_then(|network| network.kind().distribution()).is_none() {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        }
        let descent = descent.with_clip(Clip::Norm(config.clip));
        Ok(Learning::of(PpoMethod { config }, descent, model))
    }
}

impl PpoMethod {
    /// The loss of a batch of segments.
    fn loss(
        &self,
        model: &mut dyn Model,
        rollouts: &Arc<Rollouts>,
        batch: &[(usize, usize)],
    ) -> Arc<dyn GradientParts> {
        let steps: usize = batch.iter().map(|(_, len)| len).sum();
        Arc::new(Loss {
            config: self.config.clone(),
            distribution: network(model).1,
            rollouts: Arc::clone(rollouts),
            segments: batch.to_vec(),
            per_share: batch.len().div_ceil(self.config.shares).max(1),
            share: 1.0 / steps.max(1) as f64,
        })
    }

    /// Adds an unroll of an episode, at the weights with which it was recorded.
    fn add(
        &self,
        round: &mut Round<'_>,
        unroll: Unroll,
        rollouts: &mut Rollouts,
        scratch: &mut Scratch,
    ) -> Result<(), LearnError> {
        let PpoConfig { discount, lambda, segment, reward_scale, .. } = self.config;
        let (network, distribution) = network(round.model);
        let memory = network.memory_len();
        check_unroll(&unroll)?;
        let n = unroll.len();
        let per_step = distribution.outputs();
        let Scratch { inputs, part, followed } = scratch;
        followed.outputs.clear();
        followed.values.clear();
        followed.memories.clear();
        let encode = |error: PolicyError| refused(error.to_string());
        let rows = &mut rollouts.rows;
        for observation in &unroll.observations[..if memory == 0 { n } else { 0 }] {
            // Not worth it in this round, for the network or for a grid with few zeros.
            if rows.width() == 0 {
                break;
            }
            let kept = network.encode_row(observation.as_observation(), rows).map_err(encode)?;
            if !kept || rows.kept() > rows.len() * rows.width() / LEAST_ZEROS {
                rows.clear(0);
            }
        }
        // What it computed when it acted, in the same bits, was recorded of choices.
        let recorded = unroll.logits.len() == n * per_step && unroll.values.len() == n;
        let known = if recorded && memory == 0 && matches!(distribution, ActionDistribution::Choices(_)) {
            followed.outputs.extend_from_slice(&unroll.logits);
            followed.values.extend_from_slice(&unroll.values);
            n
        } else {
            0
        };
        // Without memory, some steps at a time: their encodings take more room than what was recorded.
        let together = if memory == 0 { together(network) } else { unroll.observations.len() };
        for observations in unroll.observations[known..].chunks(together) {
            inputs.clear();
            for observation in observations {
                network.encode(LastStep::default(), observation.as_observation(), inputs).map_err(encode)?;
            }
            network.follow(inputs, part);
            followed.outputs.extend_from_slice(&part.outputs);
            followed.values.extend_from_slice(&part.values);
            followed.memories.extend_from_slice(&part.memories);
        }
        let Predictions { outputs, values, memories } = followed;
        let (mut d_log, mut d_entropy) = (vec![0.0; per_step], vec![0.0; per_step]);
        for (t, (action, outputs)) in unroll.actions.iter().zip(outputs.chunks_exact(per_step)).enumerate() {
            let action = action.as_action();
            let Some(taken) = taken(distribution, action) else {
                let due = match distribution {
                    ActionDistribution::Choices(n) => format!("one of {n} choices is due"),
                    ActionDistribution::Normal(n) => format!("{n} finite numbers are due"),
                };
                return Err(refused(format!("action {action} in step {t}, where {due}")));
            };
            let (log, _) = log_probability(outputs, &taken, &mut d_log, &mut d_entropy);
            if !log.is_finite() || !values[t].is_finite() {
                let Descent { generation, .. } = *round.descent;
                let what =
                    format!("step {t}: the probability of the action is exp({log}), its value {}", values[t]);
                return Err(LearnError::Diverged { generation, what });
            }
            rollouts.logs.push(log);
        }
        let first = rollouts.places.len();
        rollouts.places.extend((0..n).map(|t| (rollouts.episodes.len(), t)));
        let rewards: Vec<f64> = unroll.rewards.iter().map(|reward| reward * reward_scale).collect();
        advantages(&rewards, values, unroll.terminated, discount, lambda, &mut rollouts.advantages);
        rollouts.values.extend_from_slice(&values[..n]);
        let targets = rollouts.advantages[first..].iter().zip(&*values).map(|(a, &v)| a + f64::from(v));
        rollouts.targets.extend(targets);
        rollouts.memories.extend_from_slice(&memories[..n * memory]);
        let segment = if memory == 0 { 1 } else { segment };
        rollouts.segments.extend((0..n).step_by(segment).map(|t| (first + t, segment.min(n - t))));
        rollouts.episodes.push(unroll);
        Ok(())
    }

    /// All episodes of a round.
    fn rollouts(&self, round: &mut Round<'_>, experience: Experience) -> Result<Rollouts, LearnError> {
        round.descent.give_to(round.model)?;
        let (mut rollouts, mut scratch) = (Rollouts::default(), Scratch::default());
        rollouts.rows.clear(network(round.model).0.encoded_len());
        for unrolls in transitions("ppo", experience)? {
            let [unroll] = <[Unroll; 1]>::try_from(unrolls).map_err(|unrolls| {
                refused(format!(
                    "an episode in {} unrolls; ppo takes episodes of at most {UNROLL} steps in one",
                    unrolls.len()
                ))
            })?;
            self.add(round, unroll, &mut rollouts, &mut scratch)?;
        }
        let n = rollouts.advantages.len().max(1) as f64;
        let mean = rollouts.advantages.iter().sum::<f64>() / n;
        let variance = rollouts.advantages.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / n;
        for advantage in &mut rollouts.advantages {
            *advantage = (*advantage - mean) / (variance.sqrt() + LEAST_DEVIATION);
        }
        Ok(rollouts)
    }
}

impl GradientParts for Loss {
    fn count(&self) -> usize {
        self.segments.len().div_ceil(self.per_share)
    }

    fn study(
        &self,
        part: usize,
        model: &mut dyn Model,
        scratch: &mut PartScratch,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let segments = self.segments.chunks(self.per_share).nth(part).expect("a share of the batch");
        let network = model.outputs().ok_or_else(|| lacking("network"))?;
        // Without memory, as many steps at a time as the caches hold; the sums go on where they were, so no bit changes.
        let together = if network.memory_len() > 0 { segments.len() } else { together(network) };
        let mut sums = LossSums::default();
        for segments in segments.chunks(together.max(1)) {
            self.study_segments(segments, network, scratch, &mut sums, gradient)?;
        }
        Ok(sums)
    }
}

impl Loss {
    /// Adds the gradient of some segments to `gradient`, and numbers about them to `sums`.
    fn study_segments(
        &self,
        segments: &[(usize, usize)],
        network: &mut dyn Outputs,
        scratch: &mut PartScratch,
        sums: &mut LossSums,
        gradient: &mut [f32],
    ) -> Result<(), PolicyError> {
        let Loss { config, distribution, rollouts, share, .. } = self;
        let &PpoConfig { clip_ratio, segment, value_weight, entropy_weight, .. } = config;
        let (width, memory) = (network.encoded_len(), network.memory_len());
        let (steps, count) = (if memory == 0 { 1 } else { segment }, segments.len());

        let PartScratch { inputs, memories, .. } = scratch;
        let Predictions { outputs, values, .. } = if rollouts.rows.is_empty() {
            // [steps, segments]: what lies behind the end of a short segment is zeros.
            inputs.clear();
            memories.clear();
            for t in 0..steps {
                for &(first, len) in segments {
                    if t < len {
                        let (episode, step) = rollouts.places[first + t];
                        let observation = &rollouts.episodes[episode].observations[step];
                        network.encode(LastStep::default(), observation.as_observation(), inputs)?;
                    } else {
                        inputs.resize(inputs.len() + width, 0.0);
                    }
                }
            }
            for &(first, _) in segments {
                memories.extend_from_slice(&rollouts.memories[first * memory..][..memory]);
            }
            network.forward(steps, inputs, memories)
        } else {
            let chosen: Vec<usize> = segments.iter().map(|&(first, _)| first).collect();
            network.forward_rows(&rollouts.rows, &chosen)
        };
        let per_step = distribution.outputs();
        let (mut d_log, mut d_entropy) = (vec![0.0; per_step], vec![0.0; per_step]);
        scratch.clear_derivatives(outputs.len(), values.len());
        let PartScratch { d_outputs, d_values, .. } = scratch;
        for (place, &(first, len)) in segments.iter().enumerate() {
            for t in 0..len {
                let (row, step) = (t * count + place, first + t);
                let outputs = &outputs[row * per_step..][..per_step];
                let (episode, at) = rollouts.places[step];
                let taken = match &rollouts.episodes[episode].actions[at] {
                    ActionBuf::Discrete(choice) => Taken::Choice(*choice),
                    ActionBuf::Continuous(numbers) => Taken::Numbers(numbers),
                };
                let (log, entropy) = log_probability(outputs, &taken, &mut d_log, &mut d_entropy);
                let (advantage, ratio) = (rollouts.advantages[step], (log - rollouts.logs[step]).exp());
                let free = ratio * advantage;
                let bounded = ratio.clamp(1.0 - clip_ratio, 1.0 + clip_ratio) * advantage;
                // Where the bounded one is smaller, it is constant.
                let slope = if free <= bounded { -free } else { 0.0 };
                let error = f64::from(values[row]) - rollouts.targets[step];
                sums[0] += share
                    * (value_weight * 0.5 * error * error - free.min(bounded) - entropy_weight * entropy);
                sums[ENTROPY] += share * entropy;
                sums[VALUE_LOSS] += share * 0.5 * error * error;
                sums[CLIPPED] += share * f64::from(u8::from((ratio - 1.0).abs() > clip_ratio));
                sums[DIVERGENCE] += share * (ratio - 1.0 - (log - rollouts.logs[step]));
                for ((to, d_log), d_entropy) in
                    d_outputs[row * per_step..][..per_step].iter_mut().zip(&d_log).zip(&d_entropy)
                {
                    *to = (share * (slope * d_log - entropy_weight * d_entropy)) as f32;
                }
                d_values[row] = (share * value_weight * error) as f32;
            }
        }
        network.backward(d_outputs, d_values, gradient);
        Ok(())
    }
}

impl Method for PpoMethod {
    fn record(&self, _: &Descent) -> Record {
        Record::Transitions { unroll: UNROLL }
    }

    fn numbers(&self) -> Vec<f64> {
        ORDER.numbers(self.config.table())
    }

    fn learn(&mut self, round: &mut Round<'_>, experience: Experience) -> Result<Measures, LearnError> {
        let mut rollouts = self.rollouts(round, experience)?;
        let explained = explained_variance(&rollouts.values, &rollouts.targets);
        let mut segments = std::mem::take(&mut rollouts.segments);
        let rollouts = Arc::new(rollouts);
        let steps = segments
            .first()
            .map_or(1, |_| if rollouts.memories.is_empty() { 1 } else { self.config.segment });
        let per_batch = (self.config.batch / steps).max(1);
        let (mut all, mut norms, mut updates) = (LossSums::default(), 0.0, 0_u64);
        let seed = round.descent.seed.child("generation", round.descent.generation);
        for epoch in 0..self.config.epochs as u64 {
            shuffle(&mut segments, seed.child("epoch", epoch));
            for batch in segments.chunks(per_batch) {
                round.begin_update()?;
                let loss = self.loss(round.model, &rollouts, batch);
                let (sums, norm) = round.update(&loss, 1)?;
                add(&mut all, &sums);
                norms += norm;
                updates += 1;
            }
        }
        let per = 1.0 / updates.max(1) as f64;
        Ok(vec![
            ("loss", all[0] * per),
            ("gradient_norm", norms * per),
            ("entropy", all[ENTROPY] * per),
            ("value_loss", all[VALUE_LOSS] * per),
            ("clip_fraction", all[CLIPPED] * per),
            ("kl", all[DIVERGENCE] * per),
            ("explained_variance", explained),
        ])
    }
}
