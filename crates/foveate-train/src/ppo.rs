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

use foveate_core::{
    ActionBuf, ActionDistribution, ActorCritic, Episodes, Experience, LearnError, Learner, Predictions,
    Progress, Record, Recording, Seed, StateDict, StopRequest, Student, Unroll, Work,
};
use foveate_learn::{Clip, OptimizerConfig, optimizer};
use serde::{Deserialize, Serialize};
use toml::Table;

use self::objective::{Taken, advantages, explained_variance, log_probability, taken};
use crate::descent::{self, Learnt};
use crate::evolution::vectors;
use crate::learners::{JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom};
use crate::recipe::Fitness;

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "ppo",
    summary: "proximal policy optimisation: the policy learns by the gradient of its return; no evolution",
    learns_from: LearnsFrom::Policies,
    schedulable: true,
    parse: |_, table| {
        let config: PpoConfig =
            table.clone().try_into().map_err(|error: toml::de::Error| error.message().trim().to_owned())?;
        Ok(Box::new(config))
    },
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
        }
    }
}

/// Upper limit of counts; a larger number is a typing error.
const MOST: usize = 1_000_000;
/// Steps of an unroll: an episode is one, unless it is longer.
const UNROLL: usize = 1 << 20;
/// Added to the deviation of the advantages, so that equal ones become zeros.
const LEAST_DEVIATION: f64 = 1e-8;
/// Adam's ε; larger than published, as usual for policy gradients.
const ADAM_EPSILON: f64 = 1e-5;
const NEEDS: &str =
    "ppo needs an agent that draws its actions and estimates values, such as actor-critic; this one does not";

impl PpoConfig {
    /// The settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64> {
        let counts = [self.epochs, self.batch, self.segment].map(|n| n as f64);
        let numbers = [
            self.discount,
            self.lambda,
            self.clip_ratio,
            self.learning_rate,
            self.clip,
            self.value_weight,
            self.entropy_weight,
        ];
        let mut all = [&counts[..], &numbers].concat();
        // A setting that came later counts only where it is used, so that older states still fit.
        if self.reward_scale != 1.0 {
            all.push(self.reward_scale);
        }
        all
    }
}

impl LearnerSettings for PpoConfig {
    fn check(&self) -> Result<(), LearnError> {
        let refuse = |why: String| Err(LearnError::BadConfig { why });
        for (name, value) in [("epochs", self.epochs), ("batch", self.batch), ("segment", self.segment)] {
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
        let LearnerParts { weights, seed, student, fitness } = parts;
        let Some(student) = student else {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        };
        let mut learner = Ppo::new(self.clone(), &weights, seed, student)?;
        learner.fitness = fitness;
        Ok(Box::new(learner))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let &JobSize { params, longest, tracks, observed, .. } = job;
        // Bytes of the observation as it was recorded, and as the numbers that the network gets.
        let step = observed.saturating_mul(5).saturating_add(512);
        let steps = longest.saturating_mul(tracks);
        LearnerSize {
            memory: steps.saturating_mul(step).saturating_add(vectors(params)),
            saved: params.saturating_mul(24).saturating_add(1),
            what: format!("the steps of a round, up to {steps} of {observed} bytes each"),
            remedy: "lower max_steps, or the stage's tracks",
        }
    }
}

/// The learner; see the [module documentation](self).
pub struct Ppo {
    config: PpoConfig,
    seed: Seed,
    student: Box<dyn Student>,
    learnt: Learnt,
    /// `[n_params]`: the same as [`Learnt::params`].
    current: Vec<f64>,
    /// How the returns of a round are reduced to the reported number.
    fitness: Fitness,
    measures: Vec<(&'static str, f64)>,
    /// Set when the user asks to stop.
    stop: StopRequest,
}

/// The steps of a round, of all episodes one after the other.
#[derive(Default)]
struct Rollouts {
    /// `[steps, encoded_len]`
    inputs: Vec<f32>,
    /// `[steps]`
    actions: Vec<ActionBuf>,
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
}

/// Buffers of an update.
#[derive(Default)]
struct Scratch {
    inputs: Vec<f32>,
    memories: Vec<f32>,
    d_outputs: Vec<f32>,
    d_values: Vec<f32>,
    d_log: Vec<f64>,
    d_entropy: Vec<f64>,
    gradient: Vec<f32>,
}

/// Sums over the updates of a round.
#[derive(Default)]
struct Sums {
    updates: u64,
    loss: f64,
    norm: f64,
    entropy: f64,
    value_loss: f64,
    clipped: f64,
    divergence: f64,
}

/// The network of a student; [`Ppo::new`] made sure that there is one.
fn network(student: &mut dyn Student) -> &mut dyn ActorCritic {
    student.actor_critic().expect("checked when the learner was made")
}

fn refused(why: String) -> LearnError {
    LearnError::Experience { why }
}

impl Ppo {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, `weights` are empty, not finite or not of the student's size, or the student does not draw
    /// actions.
    pub fn new(
        config: PpoConfig,
        weights: &[f64],
        seed: Seed,
        student: &dyn Student,
    ) -> Result<Self, LearnError> {
        config.check()?;
        let mut student = student.boxed_clone();
        descent::check_start("ppo", weights, &mut *student)?;
        if student.actor_critic().is_none() {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        }
        let adam = OptimizerConfig::Adam { beta1: 0.9, beta2: 0.999, epsilon: ADAM_EPSILON };
        let learnt = Learnt::new(weights, adam);
        Ok(Ppo {
            config,
            seed,
            student,
            current: learnt.weights(),
            learnt,
            fitness: Fitness::Mean,
            measures: vec![],
            stop: StopRequest::default(),
        })
    }

    /// Adds an unroll of an episode, at the weights with which it was recorded. `predictions` is scratch space.
    fn add(
        &mut self,
        unroll: &Unroll,
        rollouts: &mut Rollouts,
        predictions: &mut Predictions,
    ) -> Result<(), LearnError> {
        let PpoConfig { discount, lambda, segment, reward_scale, .. } = self.config;
        let network = network(&mut *self.student);
        let (width, distribution, memory) =
            (network.encoded_len(), network.distribution(), network.memory_len());
        let n = unroll.len();
        if n == 0 || unroll.observations.len() != n + 1 || unroll.rewards.len() != n {
            return Err(refused(format!(
                "an unroll of {n} steps with {} observations and {} rewards",
                unroll.observations.len(),
                unroll.rewards.len()
            )));
        }
        if let Some((t, reward)) = unroll.rewards.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            return Err(refused(format!("the reward of step {t} is {reward}")));
        }
        let begin = rollouts.inputs.len();
        for observation in &unroll.observations {
            network
                .encode(observation.as_observation(), &mut rollouts.inputs)
                .map_err(|error| refused(error.to_string()))?;
        }
        network.follow(&rollouts.inputs[begin..], predictions);
        let Predictions { outputs, values, memories } = predictions;
        let per_step = distribution.outputs();
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
                let Learnt { generation, .. } = self.learnt;
                let what =
                    format!("step {t}: the probability of the action is exp({log}), its value {}", values[t]);
                return Err(LearnError::Diverged { generation, what });
            }
            rollouts.logs.push(log);
        }
        let first = rollouts.actions.len();
        rollouts.inputs.truncate(begin + n * width);
        rollouts.actions.extend_from_slice(&unroll.actions);
        let rewards: Vec<f64> = unroll.rewards.iter().map(|reward| reward * reward_scale).collect();
        advantages(&rewards, values, unroll.terminated, discount, lambda, &mut rollouts.advantages);
        rollouts.values.extend_from_slice(&values[..n]);
        let targets = rollouts.advantages[first..].iter().zip(&*values).map(|(a, &v)| a + f64::from(v));
        rollouts.targets.extend(targets);
        rollouts.memories.extend_from_slice(&memories[..n * memory]);
        let segment = if memory == 0 { 1 } else { segment };
        rollouts.segments.extend((0..n).step_by(segment).map(|t| (first + t, segment.min(n - t))));
        Ok(())
    }

    /// All episodes of a round.
    fn rollouts(&mut self, experience: &Experience) -> Result<Rollouts, LearnError> {
        if experience.recordings.len() != experience.episodes.len() {
            let (given, wanted) = (experience.recordings.len(), experience.episodes.len());
            return Err(refused(format!("{given} recordings of {wanted} episodes")));
        }
        let diverged = |error: foveate_core::PolicyError| LearnError::Diverged {
            generation: self.learnt.generation,
            what: error.to_string(),
        };
        self.student.set_params(&self.learnt.params).map_err(diverged)?;
        let (mut rollouts, mut predictions) = (Rollouts::default(), Predictions::default());
        for recording in &experience.recordings {
            let Recording::Transitions(unrolls) = recording else {
                return Err(refused("ppo learns from transitions, not from other recordings".into()));
            };
            let [unroll] = &unrolls[..] else {
                return Err(refused(format!(
                    "an episode in {} unrolls; ppo takes episodes of at most {UNROLL} steps in one",
                    unrolls.len()
                )));
            };
            self.add(unroll, &mut rollouts, &mut predictions)?;
        }
        let n = rollouts.advantages.len().max(1) as f64;
        let mean = rollouts.advantages.iter().sum::<f64>() / n;
        let variance = rollouts.advantages.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / n;
        for advantage in &mut rollouts.advantages {
            *advantage = (*advantage - mean) / (variance.sqrt() + LEAST_DEVIATION);
        }
        Ok(rollouts)
    }

    /// A step of Adam on these segments; `number` counts the batches of the round.
    fn update(
        &mut self,
        number: u64,
        rollouts: &Rollouts,
        segments: &[(usize, usize)],
        scratch: &mut Scratch,
        sums: &mut Sums,
    ) -> Result<(), LearnError> {
        let PpoConfig { clip_ratio, segment, learning_rate, clip, value_weight, entropy_weight, .. } =
            self.config;
        let Ppo { learnt, student, .. } = self;
        let place = format!("update {} (batch {number} of the round)", learnt.updates);
        let diverged = |what: String| LearnError::Diverged {
            generation: learnt.generation,
            what: format!("{place}: {what}"),
        };
        student.set_params(&learnt.params).map_err(|error| diverged(error.to_string()))?;
        let network = network(&mut **student);
        let (width, distribution, memory) =
            (network.encoded_len(), network.distribution(), network.memory_len());
        let (steps, count) = (if memory == 0 { 1 } else { segment }, segments.len());
        let Scratch { inputs, memories, d_outputs, d_values, d_log, d_entropy, gradient } = scratch;

        // [steps, segments]: what lies behind the end of a short segment is zeros.
        inputs.clear();
        inputs.resize(steps * count * width, 0.0);
        memories.clear();
        let mut valid = 0;
        for (place, &(first, len)) in segments.iter().enumerate() {
            for t in 0..len {
                inputs[(t * count + place) * width..][..width]
                    .copy_from_slice(&rollouts.inputs[(first + t) * width..][..width]);
            }
            memories.extend_from_slice(&rollouts.memories[first * memory..][..memory]);
            valid += len;
        }
        let Predictions { outputs, values, .. } = network.forward(steps, inputs, memories);
        let (per_step, share) = (distribution.outputs(), 1.0 / valid.max(1) as f64);
        for buffer in [&mut *d_log, &mut *d_entropy] {
            buffer.clear();
            buffer.resize(per_step, 0.0);
        }
        d_outputs.clear();
        d_outputs.resize(outputs.len(), 0.0);
        d_values.clear();
        d_values.resize(values.len(), 0.0);
        let (mut loss, mut entropy_sum, mut value_loss, mut clipped, mut divergence) =
            (0.0, 0.0, 0.0, 0.0, 0.0);
        for (place, &(first, len)) in segments.iter().enumerate() {
            for t in 0..len {
                let (row, step) = (t * count + place, first + t);
                let outputs = &outputs[row * per_step..][..per_step];
                let taken = match &rollouts.actions[step] {
                    ActionBuf::Discrete(choice) => Taken::Choice(*choice),
                    ActionBuf::Continuous(numbers) => Taken::Numbers(numbers),
                };
                let (log, entropy) = log_probability(outputs, &taken, d_log, d_entropy);
                let (advantage, ratio) = (rollouts.advantages[step], (log - rollouts.logs[step]).exp());
                let free = ratio * advantage;
                let bounded = ratio.clamp(1.0 - clip_ratio, 1.0 + clip_ratio) * advantage;
                // Where the bounded one is smaller, it is constant.
                let slope = if free <= bounded { -free } else { 0.0 };
                let error = f64::from(values[row]) - rollouts.targets[step];
                loss += share
                    * (value_weight * 0.5 * error * error - free.min(bounded) - entropy_weight * entropy);
                entropy_sum += share * entropy;
                value_loss += share * 0.5 * error * error;
                clipped += share * f64::from(u8::from((ratio - 1.0).abs() > clip_ratio));
                divergence += share * (ratio - 1.0 - (log - rollouts.logs[step]));
                for ((to, d_log), d_entropy) in
                    d_outputs[row * per_step..][..per_step].iter_mut().zip(&*d_log).zip(&*d_entropy)
                {
                    *to = (share * (slope * d_log - entropy_weight * d_entropy)) as f32;
                }
                d_values[row] = (share * value_weight * error) as f32;
            }
        }
        if !loss.is_finite() {
            return Err(diverged(format!("the loss is {loss}")));
        }
        gradient.clear();
        gradient.resize(learnt.params.len(), 0.0);
        network.backward(d_outputs, d_values, gradient);
        let norm = optimizer::norm(gradient);
        if !norm.is_finite() {
            return Err(diverged(format!("the norm of the gradient is {norm}")));
        }
        Clip::Norm(clip).apply(norm, gradient);
        learnt.optimizer.step(learning_rate, gradient, &mut learnt.params);
        learnt.updates += 1;
        if let Some((parameter, value)) = learnt.params.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            let what = format!("{place}: the weight of parameter {parameter} is {value}");
            return Err(LearnError::Diverged { generation: learnt.generation, what });
        }
        sums.updates += 1;
        sums.loss += loss;
        sums.norm += norm;
        sums.entropy += entropy_sum;
        sums.value_loss += value_loss;
        sums.clipped += clipped;
        sums.divergence += divergence;
        Ok(())
    }

    fn learn(&mut self, experience: &Experience) -> Result<(), LearnError> {
        let mut rollouts = self.rollouts(experience)?;
        let explained = explained_variance(&rollouts.values, &rollouts.targets);
        let mut segments = std::mem::take(&mut rollouts.segments);
        let steps = segments
            .first()
            .map_or(1, |_| if rollouts.memories.is_empty() { 1 } else { self.config.segment });
        let per_batch = (self.config.batch / steps).max(1);
        let (mut scratch, mut sums) = (Scratch::default(), Sums::default());
        let mut number = 0;
        for epoch in 0..self.config.epochs as u64 {
            let mut rng = self.seed.child("generation", self.learnt.generation).child("epoch", epoch).rng();
            for i in (1..segments.len()).rev() {
                segments.swap(i, rng.below(i as u64 + 1) as usize);
            }
            for batch in segments.chunks(per_batch) {
                self.stop.check()?;
                self.update(number, &rollouts, batch, &mut scratch, &mut sums)?;
                number += 1;
            }
        }
        let per = 1.0 / sums.updates.max(1) as f64;
        self.measures = vec![
            ("loss", sums.loss * per),
            ("gradient_norm", sums.norm * per),
            ("entropy", sums.entropy * per),
            ("value_loss", sums.value_loss * per),
            ("clip_fraction", sums.clipped * per),
            ("kl", sums.divergence * per),
            ("explained_variance", explained),
        ];
        Ok(())
    }
}

impl Learner for Ppo {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        descent::work(&self.current, episodes, Record::Transitions { unroll: UNROLL })
    }

    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError> {
        let returns = descent::returns("ppo", self.learnt.generation, &experience)?;
        let before = self.learnt.clone();
        if let Err(error) = self.learn(&experience) {
            self.learnt = before;
            return Err(error);
        }
        self.learnt.generation += 1;
        self.current = self.learnt.weights();
        Ok(descent::progress(self.learnt.generation, self.fitness, &returns))
    }

    fn stop_when(&mut self, asked: &StopRequest) {
        self.stop = asked.clone();
    }

    fn weights(&self) -> &[f64] {
        &self.current
    }

    fn generation(&self) -> u64 {
        self.learnt.generation
    }

    fn measures(&self) -> Vec<(&'static str, f64)> {
        self.measures.clone()
    }

    fn state(&self) -> StateDict {
        self.learnt.state(self.config.numbers(), self.seed)
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        self.learnt = self.learnt.restored(state, &self.config.numbers(), self.seed)?;
        self.current = self.learnt.weights();
        Ok(())
    }
}
