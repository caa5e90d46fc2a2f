//! Deep Q-learning: the values of actions learn from transitions in a replay buffer.
//!
//! DQN (Mnih et al. 2015) with its usual parts: a target network, double Q-learning (van Hasselt et al. 2016), returns of
//! several steps and prioritised replay (Schaul et al. 2016), each a setting.
//!
//! Each round runs whole episodes with the current weights, in which the agent takes random actions with probability
//! [`epsilon`](DqnConfig::epsilon); their transitions enter the replay buffer, and the network makes as many steps of Adam as
//! [`steps_per_update`](DqnConfig::steps_per_update) asks for. A transition's target is
//! `reward + discount · Q'(next, a*)`, with the target network Q'.
//!
//! A truncated episode is not the end of the task: its last transition has a value beyond, unless
//! [`bootstrap_truncated`](DqnConfig::bootstrap_truncated) is off.

mod replay;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use foveate_core::{
    Action, ActionBuf, Episodes, Experience, LearnError, Learner, Progress, Record, Recording, Seed,
    StateDict, StateReader, StopRequest, Student, Tensor, Unroll, ValueNetwork, Work,
};
use foveate_learn::{Clip, Optimizer, OptimizerConfig, optimizer};
use serde::{Deserialize, Serialize};
use toml::Table;

use self::replay::{Entry, MOST as MOST_REPLAY, Replay};
use crate::descent;
use crate::evolution::vectors;
use crate::learners::{JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom};
use crate::recipe::Fitness;

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "dqn",
    summary: "deep Q-learning: the values of actions learn from a replay buffer, by gradients; no evolution",
    learns_from: LearnsFrom::Values,
    schedulable: true,
    parse: |_, table| {
        let config: DqnConfig =
            table.clone().try_into().map_err(|error: toml::de::Error| error.message().trim().to_owned())?;
        Ok(Box::new(config))
    },
};

/// Which action's value, in the target network, counts for the state after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The action that the network values most in the state after the step: double Q-learning.
    #[default]
    Double,
    /// The action that the target network values most: DQN as first published.
    Single,
    /// The action that the network values most in the state *before* the step, as the code of "Deep Reinforcement Learning
    /// in Action", chapter 10, has it.
    Before,
}

/// How far off a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The squared error.
    #[default]
    Squared,
    /// Huber's loss: linear beyond an error of 1.
    Huber,
}

/// Settings of a [`Dqn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DqnConfig {
    /// Probability of a random action in training, `0.0..=1.0`.
    pub epsilon: f64,
    /// Factor per step of rewards to come, `0.0..=1.0`.
    pub discount: f64,
    /// Steps whose rewards a transition sums, at least 1.
    pub n_step: usize,
    /// The action whose value counts after a step.
    pub target: Target,
    /// For agents that draw their actions: what comes after a step counts as the mean of the target network's values, by a
    /// softmax of the values that `target` compares, divided by this (expected Sarsa, van Seijen et al. 2009). 0 for the value of
    /// the best action alone.
    pub target_temperature: f64,
    /// Updates between copies of the network to the target network, at least 1.
    pub target_every: u64,
    /// The loss of an error.
    pub loss: Loss,
    /// Transitions per update, at least 1.
    pub batch: usize,
    /// Environment steps per update, at least 1.
    pub steps_per_update: usize,
    /// Transitions before the first update.
    pub first: usize,
    /// Adam's step size, above 0.
    pub learning_rate: f64,
    /// Largest Euclidean norm of a gradient, above 0; longer ones are scaled down.
    pub clip: f64,
    /// Share of the old average of the weights that each update keeps, `0.0..1.0`; the averaged weights are the result. 0 for
    /// the weights themselves.
    pub averaging: f64,
    /// Most transitions in the replay buffer, at least 1.
    pub capacity: usize,
    /// Most bytes of observations in the replay buffer.
    pub capacity_bytes: usize,
    /// Exponent α of priorities, `0.0..=1.0`: transitions are drawn in proportion to |error|^α; 0 for all alike.
    pub priority: f64,
    /// Exponent β of the weights that correct for priorities, `0.0..=1.0`.
    pub priority_correction: f64,
    /// How often a transition with a positive reward enters the buffer, at least 1.
    pub rewarding_copies: usize,
    /// The reward that the learner puts in place of a reward of 0.
    pub zero_reward: f64,
    /// Whether a truncated episode has a value beyond its end.
    pub bootstrap_truncated: bool,
}

impl Default for DqnConfig {
    fn default() -> Self {
        DqnConfig {
            epsilon: 0.1,
            discount: 0.99,
            n_step: 1,
            target: Target::Double,
            target_temperature: 0.0,
            target_every: 500,
            loss: Loss::Squared,
            batch: 32,
            steps_per_update: 4,
            first: 1000,
            learning_rate: 0.0005,
            clip: 10.0,
            averaging: 0.0,
            capacity: 100_000,
            capacity_bytes: 1 << 30,
            priority: 0.0,
            priority_correction: 0.4,
            rewarding_copies: 1,
            zero_reward: 0.0,
            bootstrap_truncated: true,
        }
    }
}

/// Upper limit of counts; a larger number is a typing error.
const MOST: usize = 1_000_000;
/// Steps of an unroll: an episode is one, unless it is longer.
const UNROLL: usize = 1 << 20;
/// Added to every error, so that each transition has a priority.
const LEAST_PRIORITY: f64 = 1e-6;

impl DqnConfig {
    /// The settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64> {
        let target = match self.target {
            Target::Double => 0,
            Target::Single => 1,
            Target::Before => 2,
        };
        let counts = [
            self.n_step,
            target,
            self.batch,
            self.steps_per_update,
            self.first,
            self.capacity,
            self.capacity_bytes,
            self.rewarding_copies,
            usize::from(self.bootstrap_truncated),
            usize::from(self.loss == Loss::Huber),
        ];
        let numbers = [
            self.epsilon,
            self.discount,
            self.target_every as f64,
            self.learning_rate,
            self.clip,
            self.averaging,
            self.priority,
            self.priority_correction,
            self.zero_reward,
        ];
        // States that were saved before there was a temperature have none.
        let temperature = Some(self.target_temperature).filter(|&temperature| temperature > 0.0);
        [&counts.map(|n| n as f64)[..], &numbers, temperature.as_slice()].concat()
    }

    /// Transitions that the replay buffer holds, of observations of `width` bytes.
    fn capacity(&self, width: usize) -> usize {
        self.capacity.min(self.capacity_bytes / (2 * width.max(1))).max(1)
    }
}

impl LearnerSettings for DqnConfig {
    fn check(&self) -> Result<(), LearnError> {
        let refuse = |why: String| Err(LearnError::BadConfig { why });
        for (name, value, most) in [
            ("n_step", self.n_step, MOST),
            ("target_every", usize::try_from(self.target_every).unwrap_or(usize::MAX), MOST),
            ("batch", self.batch, MOST),
            ("steps_per_update", self.steps_per_update, MOST),
            ("capacity", self.capacity, MOST_REPLAY),
            ("capacity_bytes", self.capacity_bytes, 1 << 40),
            ("rewarding_copies", self.rewarding_copies, MOST),
        ] {
            if !(1..=most).contains(&value) {
                return refuse(format!("{name} = {value}; choose from 1 to {most}"));
            }
        }
        for (name, value) in [
            ("epsilon", self.epsilon),
            ("target_temperature", self.target_temperature),
            ("discount", self.discount),
            ("priority", self.priority),
            ("priority_correction", self.priority_correction),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return refuse(format!("{name} = {value}; choose from 0 to 1"));
            }
        }
        for (name, value) in [("learning_rate", self.learning_rate), ("clip", self.clip)] {
            if !(value > 0.0 && value.is_finite()) {
                return refuse(format!("{name} = {value}; it must be above 0"));
            }
        }
        if !(0.0..1.0).contains(&self.averaging) {
            return refuse(format!("averaging = {}; it must be at least 0 and below 1", self.averaging));
        }
        if !self.zero_reward.is_finite() || self.zero_reward.abs() > 1e6 {
            return refuse(format!("zero_reward = {}; choose from -1e6 to 1e6", self.zero_reward));
        }
        if self.first > self.capacity {
            return refuse(format!(
                "first = {}, but the replay buffer holds {}; choose a smaller number or a larger capacity",
                self.first, self.capacity
            ));
        }
        Ok(())
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("a plain table of numbers")
    }

    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let LearnerParts { weights, seed, student, fitness } = parts;
        let Some(student) = student else {
            let why =
                "dqn needs an agent that values its actions, such as relational; this one does not".into();
            return Err(LearnError::BadConfig { why });
        };
        let mut learner = Dqn::new(self.clone(), &weights, seed, student)?;
        learner.fitness = fitness;
        Ok(Box::new(learner))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let &JobSize { params, longest, .. } = job;
        // Observations are unknown here; the settings bound them.
        let replay = self.capacity_bytes.min(self.capacity.saturating_mul(2 << 10)) as u64;
        LearnerSize {
            // A checkpoint is written from a copy of the buffer.
            memory: replay
                .saturating_mul(2)
                .saturating_add(longest.saturating_mul(4 << 10))
                .saturating_add(KnownValues::MOST_BYTES as u64)
                .saturating_add(vectors(params)),
            saved: replay.saturating_add(params.saturating_mul(32)),
            what: format!("the last {} transitions", self.capacity),
            remedy: "lower the stage's capacity or capacity_bytes",
        }
    }
}

/// The learner; see the [module documentation](self).
pub struct Dqn {
    config: DqnConfig,
    seed: Seed,
    /// Has the weights [`Dqn::params`].
    online: Box<dyn Student>,
    /// Has the weights of the target network.
    target: Box<dyn Student>,
    known: KnownValues,
    learnt: Learnt,
    /// `[n_params]`: the same as [`Learnt::params`].
    current: Vec<f64>,
    /// How the returns of a round are reduced to the reported number.
    fitness: Fitness,
    measures: Vec<(&'static str, f64)>,
    /// Set when the user asks to stop.
    stop: StopRequest,
}

/// What learning changes.
#[derive(Clone)]
struct Learnt {
    generation: u64,
    updates: u64,
    /// Environment steps that have not led to an update yet.
    pending: usize,
    /// `[n_params]`
    params: Vec<f32>,
    /// `[n_params]`: the weights of the target network.
    target: Vec<f32>,
    /// `[n_params]`: moving average of the weights.
    average: Vec<f64>,
    optimizer: Optimizer,
    replay: Replay,
}

/// Buffers of an update, and the sums that are reported.
#[derive(Default)]
struct Scratch {
    drawn: Vec<usize>,
    before: Vec<u8>,
    after: Vec<u8>,
    /// `[batch, choices]`: values of the states after the steps in the target network.
    beyond: Vec<f32>,
    targets: Vec<f32>,
    /// `[batch, choices]`, and behind them those of the states after the steps, if the target needs them.
    values: Vec<f32>,
    /// Of the same shape as `values`.
    slopes: Vec<f32>,
    gradient: Vec<f32>,
    loss: f64,
    norm: f64,
    value: f64,
}

/// Values of observations in a network whose weights change rarely: each observation is computed once. This changes no bit:
/// a value does not depend on the batch in which it is computed.
#[derive(Default)]
struct KnownValues {
    /// Of the network that computed the values.
    weights: Vec<f32>,
    values: BTreeMap<Box<[u8]>, Box<[f32]>>,
    unknown: Vec<u8>,
}

impl KnownValues {
    /// Most bytes of observations, values and nodes of the map; all are forgotten before there are more.
    const MOST_BYTES: usize = 32 << 20;

    /// Writes the values of the encoded observations `codes` to `to`, `[batch, choices]`. `network` has the weights `weights`.
    fn write(&mut self, network: &mut dyn ValueNetwork, weights: &[f32], codes: &[u8], to: &mut Vec<f32>) {
        let KnownValues { weights: known, values, unknown } = self;
        if known[..] != *weights {
            values.clear();
            weights.clone_into(known);
        }
        let (width, choices) = (network.encoded_len(), network.choices());
        let most = Self::MOST_BYTES / (width + 4 * choices + 64);
        if values.len() + codes.len() / width > most {
            values.clear();
        }
        unknown.clear();
        for code in codes.chunks_exact(width).filter(|&code| !values.contains_key(code)) {
            unknown.extend_from_slice(code);
        }
        if !unknown.is_empty() {
            let computed = network.values_alone(unknown).chunks_exact(choices);
            for (code, computed) in unknown.chunks_exact(width).zip(computed) {
                values.insert(code.into(), computed.into());
            }
        }
        to.clear();
        for code in codes.chunks_exact(width) {
            to.extend_from_slice(&values[code]);
        }
    }
}

/// The mean of `values` by the shares that a softmax gives to `scores / temperature`.
fn mean_by_softmax(scores: &[f32], temperature: f64, values: &[f32]) -> f32 {
    let largest = f64::from(scores.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let (mut sum, mut total) = (0.0, 0.0);
    for (&score, &value) in scores.iter().zip(values) {
        let share = ((f64::from(score) - largest) / temperature).exp();
        sum += share * f64::from(value);
        total += share;
    }
    (sum / total) as f32
}

/// Index of the largest value; of the first of several.
fn best(values: &[f32]) -> usize {
    let mut best = 0;
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}

/// The network of a student; [`Dqn::new`] made sure that there is one.
fn network(student: &mut dyn Student) -> &mut dyn ValueNetwork {
    student.value_network().expect("checked when the learner was made")
}

impl Dqn {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, `weights` are empty, not finite or not of the student's size, or the student does not value
    /// actions.
    pub fn new(
        config: DqnConfig,
        weights: &[f64],
        seed: Seed,
        student: &dyn Student,
    ) -> Result<Self, LearnError> {
        config.check()?;
        let (mut online, target) = (student.boxed_clone(), student.boxed_clone());
        descent::check_start("dqn", weights, &mut *online)?;
        let params = descent::rounded(weights);
        let Some(values) = online.value_network() else {
            let why =
                "dqn needs an agent that values its actions, such as relational; this one does not".into();
            return Err(LearnError::BadConfig { why });
        };
        let width = values.encoded_len();
        let current: Vec<f64> = params.iter().map(|&weight| f64::from(weight)).collect();
        Ok(Dqn {
            seed,
            online,
            target,
            known: KnownValues::default(),
            learnt: Learnt {
                generation: 0,
                updates: 0,
                pending: 0,
                target: params.clone(),
                average: current.clone(),
                optimizer: Optimizer::new(OptimizerConfig::default(), params.len()),
                replay: Replay::new(config.capacity(width), width, config.priority > 0.0),
                params,
            },
            current,
            fitness: Fitness::Mean,
            measures: vec![],
            stop: StopRequest::default(),
            config,
        })
    }

    /// Adds the transitions of an episode to the replay buffer; returns their number.
    fn remember(&mut self, unroll: &Unroll) -> Result<usize, LearnError> {
        let DqnConfig { discount, n_step, rewarding_copies, zero_reward, bootstrap_truncated, .. } =
            self.config;
        let refused = |why: String| LearnError::Experience { why };
        let values = network(&mut *self.online);
        let (width, choices) = (values.encoded_len(), values.choices());
        let mut seen = Vec::with_capacity(unroll.observations.len() * width);
        for observation in &unroll.observations {
            values
                .encode(observation.as_observation(), &mut seen)
                .map_err(|error| refused(error.to_string()))?;
        }
        let n = unroll.len();
        if seen.len() != (n + 1) * width || unroll.rewards.len() != n {
            return Err(refused(format!(
                "an unroll of {n} steps with {} observations and {} rewards",
                unroll.observations.len(),
                unroll.rewards.len()
            )));
        }
        let at = |step: usize| &seen[step * width..][..width];
        for (t, action) in unroll.actions.iter().enumerate() {
            let action = match ActionBuf::as_action(action) {
                Action::Discrete(choice) if choice < choices => choice,
                other => {
                    return Err(refused(format!("action {other} where one of {choices} choices is due")));
                }
            };
            let end = (t + n_step).min(n);
            let (mut reward, mut factor) = (0.0, 1.0);
            for &given in &unroll.rewards[t..end] {
                reward += factor * if given == 0.0 { zero_reward } else { given };
                factor *= discount;
            }
            let over = end == n && (unroll.terminated || unroll.truncated && !bootstrap_truncated);
            let entry = Entry {
                before: at(t),
                action,
                reward: reward as f32,
                discount: if over { 0.0 } else { factor as f32 },
                after: at(end),
            };
            if !entry.reward.is_finite() {
                return Err(refused(format!("rewards from step {t} on sum to {reward}")));
            }
            let copies = if unroll.rewards[t] > 0.0 { rewarding_copies } else { 1 };
            (0..copies).for_each(|_| self.learnt.replay.push(entry));
        }
        Ok(n)
    }

    /// A step of Adam on a random batch.
    fn update(&mut self, number: u64, scratch: &mut Scratch) -> Result<(), LearnError> {
        let DqnConfig {
            target,
            target_temperature,
            loss,
            batch,
            learning_rate,
            clip,
            averaging,
            priority_correction,
            priority,
            ..
        } = self.config;
        let Dqn { learnt, online, target: target_net, known, seed, .. } = self;
        let diverged = |what: String| LearnError::Diverged { generation: learnt.generation, what };
        let place = format!("update {} (batch {number} of the round)", learnt.updates);
        for (student, params) in [(&mut *online, &learnt.params), (&mut *target_net, &learnt.target)] {
            student.set_params(params).map_err(|error| diverged(format!("{place}: {error}")))?;
        }
        let Scratch { drawn, before, after, beyond, targets, values, slopes, gradient, .. } = scratch;
        let mut rng = seed.child("generation", learnt.generation).child("update", number).rng();
        drawn.clear();
        before.clear();
        after.clear();
        for _ in 0..batch {
            let index = learnt.replay.draw(&mut rng);
            let entry = learnt.replay.get(index);
            drawn.push(index);
            before.extend_from_slice(entry.before);
            after.extend_from_slice(entry.after);
        }
        let (online, target_net) = (network(&mut **online), network(&mut **target_net));
        let choices = online.choices();
        if target == Target::Double {
            // Together, because the network computes equal observations once.
            before.extend_from_slice(after);
        }
        values.clear();
        values.extend_from_slice(online.values(before));
        known.write(target_net, &learnt.target, after, beyond);
        let compared = match target {
            Target::Double => &values[batch * choices..],
            Target::Before => &values[..],
            Target::Single => &beyond[..],
        };
        targets.clear();
        let rows = compared.chunks_exact(choices).zip(beyond.chunks_exact(choices));
        for (&index, (compared, beyond)) in drawn.iter().zip(rows) {
            let entry = learnt.replay.get(index);
            let value = match target_temperature {
                0.0 => beyond[best(compared)],
                temperature => mean_by_softmax(compared, temperature, beyond),
            };
            targets.push(entry.reward + entry.discount * value);
        }

        // Weights that correct for priorities, relative to the largest of the batch.
        let share = 1.0 / batch as f64;
        let frequency = |index: usize| learnt.replay.priority(index) / learnt.replay.total();
        let correction =
            |index: usize| (learnt.replay.len() as f64 * frequency(index)).powf(-priority_correction);
        let prioritised = priority > 0.0;
        let largest =
            if prioritised { drawn.iter().map(|&i| correction(i)).fold(0.0, f64::max) } else { 1.0 };
        slopes.clear();
        slopes.resize(values.len(), 0.0);
        let (mut total, mut mean) = (0.0, 0.0);
        for (row, (&index, &wanted)) in drawn.iter().zip(&*targets).enumerate() {
            let at = row * choices + learnt.replay.get(index).action;
            let error = f64::from(values[at] - wanted);
            let weight = if prioritised { correction(index) / largest } else { 1.0 } * share;
            let (one, slope) = match loss {
                Loss::Squared => (error * error, 2.0 * error),
                Loss::Huber if error.abs() <= 1.0 => (error * error / 2.0, error),
                Loss::Huber => (error.abs() - 0.5, error.signum()),
            };
            total += one * weight;
            slopes[at] = (slope * weight) as f32;
            mean += f64::from(values[at]) * share;
        }
        if !total.is_finite() {
            return Err(diverged(format!("{place}: the loss is {total}")));
        }
        gradient.clear();
        gradient.resize(learnt.params.len(), 0.0);
        online.backward(slopes, gradient);
        let norm = optimizer::norm(gradient);
        if !norm.is_finite() {
            return Err(diverged(format!("{place}: the norm of the gradient is {norm}")));
        }
        Clip::Norm(clip).apply(norm, gradient);
        learnt.optimizer.step(learning_rate, gradient, &mut learnt.params);
        learnt.updates += 1;
        if prioritised {
            for (row, (&index, &wanted)) in drawn.iter().zip(&*targets).enumerate() {
                let at = row * choices + learnt.replay.get(index).action;
                let error = f64::from(values[at] - wanted).abs();
                learnt.replay.set_priority(index, (error + LEAST_PRIORITY).powf(priority));
            }
        }
        // In the first updates the average weighs all weights equally.
        let keep = averaging.min(1.0 - 1.0 / learnt.updates as f64);
        for (average, &weight) in learnt.average.iter_mut().zip(&learnt.params) {
            *average = keep * *average + (1.0 - keep) * f64::from(weight);
        }
        (scratch.loss, scratch.norm, scratch.value) =
            (scratch.loss + total, scratch.norm + norm, scratch.value + mean);
        Ok(())
    }

    fn learn(&mut self, experience: &Experience) -> Result<(), LearnError> {
        let DqnConfig { steps_per_update, first, target_every, .. } = self.config;
        let mut steps = 0;
        if experience.recordings.len() != experience.episodes.len() {
            let (given, wanted) = (experience.recordings.len(), experience.episodes.len());
            return Err(LearnError::Experience { why: format!("{given} recordings of {wanted} episodes") });
        }
        for recording in &experience.recordings {
            let Recording::Transitions(unrolls) = recording else {
                let why = "dqn learns from transitions, not from other recordings".into();
                return Err(LearnError::Experience { why });
            };
            for unroll in unrolls {
                steps += self.remember(unroll)?;
            }
        }
        let mut scratch = Scratch::default();
        let mut done = 0_u64;
        if self.learnt.replay.len() > first {
            self.learnt.pending += steps;
            while self.learnt.pending >= steps_per_update {
                if self.learnt.updates.is_multiple_of(target_every) {
                    self.learnt.target.copy_from_slice(&self.learnt.params);
                }
                self.stop.check()?;
                self.update(done, &mut scratch)?;
                self.learnt.pending -= steps_per_update;
                done += 1;
            }
        }
        let Learnt { generation, params, .. } = &self.learnt;
        if let Some((parameter, value)) = params.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            let what = format!("the weight of parameter {parameter} is {value}");
            return Err(LearnError::Diverged { generation: *generation, what });
        }
        self.measures = vec![("epsilon", self.config.epsilon), ("replay", self.learnt.replay.len() as f64)];
        if done > 0 {
            let per = 1.0 / done as f64;
            let Scratch { loss, norm, value, .. } = scratch;
            self.measures.extend([
                ("loss", loss * per),
                ("gradient_norm", norm * per),
                ("value", value * per),
            ]);
        }
        Ok(())
    }
}

impl Learner for Dqn {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        let record = Record::Transitions { unroll: UNROLL };
        Work { epsilon: self.config.epsilon, ..descent::work(&self.current, episodes, record) }
    }

    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError> {
        let returns = descent::returns("dqn", self.learnt.generation, &experience)?;
        // The buffer is large, so it undoes its own changes instead of being copied.
        let learnt = &mut self.learnt;
        let replay = std::mem::replace(&mut learnt.replay, Replay::new(1, 0, false));
        let before = learnt.clone();
        learnt.replay = replay;
        learnt.replay.begin();
        if let Err(error) = self.learn(&experience) {
            let mut replay = std::mem::replace(&mut self.learnt, before).replay;
            replay.undo();
            self.learnt.replay = replay;
            return Err(error);
        }
        self.learnt.replay.keep();
        self.learnt.generation += 1;
        for (to, &from) in self.current.iter_mut().zip(&self.learnt.params) {
            *to = from.into();
        }
        Ok(descent::progress(self.learnt.generation, self.fitness, &returns))
    }

    fn stop_when(&mut self, asked: &StopRequest) {
        self.stop = asked.clone();
    }

    fn weights(&self) -> &[f64] {
        if self.config.averaging > 0.0 { &self.learnt.average } else { &self.current }
    }

    fn centre(&self) -> &[f64] {
        &self.current
    }

    fn generation(&self) -> u64 {
        self.learnt.generation
    }

    fn measures(&self) -> Vec<(&'static str, f64)> {
        self.measures.clone()
    }

    fn state(&self) -> StateDict {
        let Learnt { generation, updates, pending, params, target, average, optimizer, replay } =
            &self.learnt;
        let mut state = StateDict::from([
            ("settings".into(), Tensor::from(self.config.numbers())),
            ("seed".into(), Tensor::from(vec![self.seed.value()])),
            ("counts".into(), Tensor::from(vec![*generation, *updates, *pending as u64])),
            ("params".into(), Tensor::from(params.clone())),
            ("target".into(), Tensor::from(target.clone())),
            ("average".into(), Tensor::from(average.clone())),
        ]);
        state.extend(optimizer.state());
        replay.save(&mut state);
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        let bad = |why: String| Err(LearnError::BadState { why });
        let saved = StateReader(state);
        descent::check_saved(saved, &self.config.numbers(), self.seed)?;
        let counts = saved.counters("counts", 3)?;
        let count = self.current.len();
        let numbers = |name: &str| -> Result<Vec<f32>, LearnError> {
            let numbers = saved.f32s(name, 1)?;
            if numbers.len() != count {
                return Err(LearnError::BadState {
                    why: format!("{name} has {} numbers, {count} are due", numbers.len()),
                });
            }
            Ok(numbers.to_vec())
        };
        let (params, target) = (numbers("params")?, numbers("target")?);
        let average = saved.f64s("average", count)?.to_vec();
        let mut optimizer = self.learnt.optimizer.clone();
        optimizer.restore(state)?;
        let replay = self.learnt.replay.restored(saved, network(&mut *self.online).choices())?;
        let Ok(pending) = usize::try_from(counts[2]) else { return bad(format!("{} steps wait", counts[2])) };
        if pending >= self.config.steps_per_update {
            return bad(format!("{pending} steps wait for an update after {}", self.config.steps_per_update));
        }
        self.current = params.iter().map(|&weight| f64::from(weight)).collect();
        self.learnt = Learnt {
            generation: counts[0],
            updates: counts[1],
            pending,
            params,
            target,
            average,
            optimizer,
            replay,
        };
        Ok(())
    }
}
