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
use std::sync::{Arc, Mutex, PoisonError};

use foveate_core::{
    Action, ActionBuf, Experience, GradientParts, LastStep, LearnError, Learner, LossSums, Model, OutputKind,
    Outputs, PartScratch, PolicyError, Predictions, Record, Seed, StateDict, StateReader, Tensor, Unroll,
    lacking,
};
use foveate_learn::{Clip, OptimizerConfig};
use serde::{Deserialize, Serialize};
use toml::Table;

use self::replay::{Entry, MOST as MOST_REPLAY, Replay};
use crate::descent::{Descent, f32s};
use crate::descriptor::{
    JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom, parse,
};
use crate::evolution::vectors;
use crate::fingerprint::SettingsOrder;
use crate::learning::{Learning, Measures, Method, Round, add, check_unroll, transitions};
use crate::ppo::is_whole;

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "dqn",
    summary: "deep Q-learning: the values of actions learn from a replay buffer, by gradients; no evolution",
    learns_from: LearnsFrom::Values,
    schedulable: true,
    parse: parse::<DqnConfig>,
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
    /// True if a truncated episode has a value beyond its end.
    pub bootstrap_truncated: bool,
    /// Parts of a batch whose gradients are computed by themselves, at the same time where there are several cores, at least 1.
    /// Results depend on this number, not on the number of cores. Left out of the configuration where it is 1.
    #[serde(skip_serializing_if = "is_whole")]
    pub shares: usize,
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
            shares: 1,
        }
    }
}

/// Upper limit of counts; a larger number is a typing error.
const MOST: usize = 1_000_000;
/// Steps of an unroll: an episode is one, unless it is longer.
const UNROLL: usize = 1 << 20;
/// Added to every error, so that each transition has a priority.
const LEAST_PRIORITY: f64 = 1e-6;
const NEEDS: &str = "dqn needs an agent that values its actions, such as relational; this one does not";

/// See [`SettingsOrder`].
const ORDER: SettingsOrder = SettingsOrder {
    always: "n_step target batch steps_per_update first capacity capacity_bytes rewarding_copies \
             bootstrap_truncated loss epsilon discount target_every learning_rate clip averaging priority \
             priority_correction zero_reward",
    later: &[&[("target_temperature", 0.0)]],
    words: &[("target", &["double", "single", "before"]), ("loss", &["squared", "huber"])],
};

impl DqnConfig {
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
            ("shares", self.shares, MOST),
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
        let LearnerParts { weights, seed, model, fitness } = parts;
        let Some(model) = model else {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        };
        Ok(Box::new(Dqn::new(self.clone(), &weights, seed, model)?.with_fitness(fitness)))
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

/// The method; see the [module documentation](self).
pub struct DqnMethod {
    pub(crate) config: DqnConfig,
    /// Has the weights of the target network.
    target: Box<dyn Model>,
    known: KnownValues,
    learnt: Learnt,
    /// What a round that fails goes back to; the buffer, which is large, undoes its own changes.
    before: Option<Vec<f32>>,
}

/// The learner; see the [module documentation](self).
pub type Dqn = Learning<DqnMethod>;

/// What learning changes besides the weights.
struct Learnt {
    /// `[n_params]`: the weights of the target network.
    target: Vec<f32>,
    replay: Replay,
}

/// The loss of a batch, in shares whose gradients are computed by themselves.
struct Batch {
    config: DqnConfig,
    /// Transitions of a share; the last has the rest.
    per_share: usize,
    /// `[batch]`: places in the replay buffer.
    drawn: Vec<usize>,
    /// `[batch, encoded_len]`
    before: Vec<f32>,
    /// `[batch, encoded_len]`
    after: Vec<f32>,
    /// `[batch, choices]`: values of the states after the steps in the target network.
    beyond: Vec<f32>,
    /// `[batch]`
    actions: Vec<usize>,
    /// `[batch]`
    rewards: Vec<f32>,
    /// `[batch]`
    discounts: Vec<f32>,
    /// `[batch]`: what the error of a transition is multiplied by, for their mean.
    weights: Vec<f64>,
    /// `[batch]`: how far off the values are, once the gradient is computed.
    errors: Mutex<Vec<f64>>,
}

/// The place in the sums of a [`Batch`] of the mean value; the first is the loss.
const VALUE: usize = 1;

impl GradientParts for Batch {
    fn count(&self) -> usize {
        self.drawn.len().div_ceil(self.per_share)
    }

    fn study(
        &self,
        part: usize,
        model: &mut dyn Model,
        scratch: &mut PartScratch,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let DqnConfig { target, target_temperature, loss, .. } = self.config;
        let network = model.outputs().ok_or_else(|| lacking("network"))?;
        let (width, choices) = (network.encoded_len(), network.kind().outputs());
        let first = part * self.per_share;
        let rows = first..self.drawn.len().min(first + self.per_share);
        let count = rows.len();
        let numbers = rows.start * width..rows.end * width;
        let PartScratch { inputs, .. } = scratch;
        inputs.clear();
        inputs.extend_from_slice(&self.before[numbers.clone()]);
        if target == Target::Double {
            // Together, because the network computes equal observations once.
            inputs.extend_from_slice(&self.after[numbers]);
        }
        let values = &network.forward(1, inputs, &[]).outputs;
        let beyond = &self.beyond[rows.start * choices..rows.end * choices];
        let compared = match target {
            Target::Double => &values[count * choices..],
            Target::Before => &values[..],
            Target::Single => beyond,
        };
        scratch.clear_derivatives(values.len(), 0);
        let mut sums = LossSums::default();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let after = compared.chunks_exact(choices).zip(beyond.chunks_exact(choices));
        for (row, (of, (compared, beyond))) in rows.zip(after).enumerate() {
            let value = match target_temperature {
                0.0 => beyond[best(compared)],
                temperature => mean_by_softmax(compared, temperature, beyond),
            };
            let wanted = self.rewards[of] + self.discounts[of] * value;
            let at = row * choices + self.actions[of];
            let error = f64::from(values[at] - wanted);
            let (one, slope) = match loss {
                Loss::Squared => (error * error, 2.0 * error),
                Loss::Huber if error.abs() <= 1.0 => (error * error / 2.0, error),
                Loss::Huber => (error.abs() - 0.5, error.signum()),
            };
            sums[0] += one * self.weights[of];
            scratch.d_outputs[at] = (slope * self.weights[of]) as f32;
            sums[VALUE] += f64::from(values[at]) * (1.0 / self.drawn.len() as f64);
            errors[of] = error.abs();
        }
        drop(errors);
        network.backward(&scratch.d_outputs, &[], gradient);
        Ok(sums)
    }
}

/// Values of observations in a network whose weights change rarely: each observation is computed once. This changes no bit:
/// a value does not depend on the batch in which it is computed.
#[derive(Default)]
struct KnownValues {
    /// Of the network that computed the values.
    weights: Vec<f32>,
    values: BTreeMap<Box<[u8]>, Box<[f32]>>,
    unknown: Vec<u8>,
    inputs: Vec<f32>,
    predictions: Predictions,
}

impl KnownValues {
    /// Most bytes of observations, values and nodes of the map; all are forgotten before there are more.
    const MOST_BYTES: usize = 32 << 20;

    /// Writes the values of the encoded observations `codes` to `to`, `[batch, choices]`. `network` has the weights `weights`.
    fn write(&mut self, network: &mut dyn Outputs, weights: &[f32], codes: &[u8], to: &mut Vec<f32>) {
        let KnownValues { weights: known, values, unknown, inputs, predictions } = self;
        if known[..] != *weights {
            values.clear();
            weights.clone_into(known);
        }
        let (width, choices) = (bytes_of(network), network.kind().outputs());
        let most = Self::MOST_BYTES / (width + 4 * choices + 64);
        if values.len() + codes.len() / width > most {
            values.clear();
        }
        unknown.clear();
        for code in codes.chunks_exact(width).filter(|&code| !values.contains_key(code)) {
            unknown.extend_from_slice(code);
        }
        if !unknown.is_empty() {
            inputs.clear();
            from_bytes(network, unknown, inputs);
            network.follow(inputs, predictions);
            let computed = predictions.outputs.chunks_exact(choices);
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

/// Bytes of an encoded observation in the replay buffer: one for each number that fits it, else four.
fn bytes_of(network: &dyn Outputs) -> usize {
    network.encoded_len() * if network.encodes_bytes() { 1 } else { size_of::<f32>() }
}

/// Appends encoded observations as the replay buffer keeps them.
fn to_bytes(network: &dyn Outputs, codes: &[f32], bytes: &mut Vec<u8>) {
    if network.encodes_bytes() {
        bytes.extend(codes.iter().map(|&code| code as u8));
    } else {
        bytes.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
    }
}

/// Appends encoded observations from the replay buffer.
fn from_bytes(network: &dyn Outputs, bytes: &[u8], codes: &mut Vec<f32>) {
    if network.encodes_bytes() {
        codes.extend(bytes.iter().map(|&code| f32::from(code)));
    } else {
        codes.extend(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
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

/// The network of a model; [`Dqn::new`] made sure that there is one.
fn network(model: &mut dyn Model) -> &mut dyn Outputs {
    model.outputs().expect("checked when the learner was made")
}

impl Dqn {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, `weights` are empty, not finite or not of the model's size, or the model does not value
    /// actions.
    pub fn new(
        config: DqnConfig,
        weights: &[f64],
        seed: Seed,
        model: &dyn Model,
    ) -> Result<Self, LearnError> {
        config.check()?;
        let (mut online, target) = (model.boxed_clone(), model.boxed_clone());
        let (adam, rate) = (OptimizerConfig::default(), config.learning_rate);
        let mut descent = Descent::single("dqn", weights, seed, &mut *online, adam, rate)?
            .with_clip(Clip::Norm(config.clip))
            .with_average(config.averaging);
        // Environment steps that have not led to an update yet.
        descent.counts = vec![0];
        let Some(values) = online.outputs().filter(|it| matches!(it.kind(), OutputKind::Values(_))) else {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        };
        let width = bytes_of(values);
        let learnt = Learnt {
            target: descent.params().to_vec(),
            replay: Replay::new(config.capacity(width), width, config.priority > 0.0),
        };
        let method = DqnMethod { config, target, known: KnownValues::default(), learnt, before: None };
        Ok(Learning::of(method, descent, online))
    }
}

impl DqnMethod {
    /// Adds the transitions of an episode to the replay buffer; returns their number.
    fn remember(&mut self, values: &mut dyn Outputs, unroll: &Unroll) -> Result<usize, LearnError> {
        let DqnConfig { discount, n_step, rewarding_copies, zero_reward, bootstrap_truncated, .. } =
            self.config;
        let refused = |why: String| LearnError::Experience { why };
        let (width, choices) = (bytes_of(values), values.kind().outputs());
        let mut codes = Vec::with_capacity(unroll.observations.len() * values.encoded_len());
        for observation in &unroll.observations {
            values
                .encode(LastStep::default(), observation.as_observation(), &mut codes)
                .map_err(|error| refused(error.to_string()))?;
        }
        let mut seen = Vec::with_capacity(unroll.observations.len() * width);
        to_bytes(values, &codes, &mut seen);
        check_unroll(unroll)?;
        let n = unroll.len();
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

    /// A random batch, the update `number` of the round.
    fn batch(&mut self, round: &mut Round<'_>, number: u64) -> Result<Batch, LearnError> {
        let &DqnConfig { batch, priority, priority_correction, shares, .. } = &self.config;
        let DqnMethod { target, known, learnt, .. } = self;
        let Learnt { target: weights, replay } = learnt;
        target.set_params(weights).map_err(|error| round.descent.diverged(error))?;
        let seed = round.descent.seed.child("generation", round.descent.generation);
        let mut rng = seed.child("update", number).rng();
        let network = network(&mut **target);
        let room = batch * network.encoded_len();
        let mut drawn = Batch {
            config: self.config.clone(),
            per_share: batch.div_ceil(shares).max(1),
            drawn: Vec::with_capacity(batch),
            before: Vec::with_capacity(room),
            after: Vec::with_capacity(room),
            beyond: vec![],
            actions: Vec::with_capacity(batch),
            rewards: Vec::with_capacity(batch),
            discounts: Vec::with_capacity(batch),
            weights: vec![],
            errors: Mutex::new(vec![0.0; batch]),
        };
        let mut after = Vec::with_capacity(batch * bytes_of(network));
        for _ in 0..batch {
            let index = replay.draw(&mut rng);
            let entry = replay.get(index);
            drawn.drawn.push(index);
            from_bytes(network, entry.before, &mut drawn.before);
            from_bytes(network, entry.after, &mut drawn.after);
            after.extend_from_slice(entry.after);
            drawn.actions.push(entry.action);
            drawn.rewards.push(entry.reward);
            drawn.discounts.push(entry.discount);
        }
        known.write(network, weights, &after, &mut drawn.beyond);

        // Weights that correct for priorities, relative to the largest of the batch.
        let share = 1.0 / batch as f64;
        drawn.weights = vec![share; batch];
        if priority > 0.0 {
            let frequency = |index: usize| replay.priority(index) / replay.total();
            let correction =
                |index: usize| (replay.len() as f64 * frequency(index)).powf(-priority_correction);
            let largest = drawn.drawn.iter().map(|&i| correction(i)).fold(0.0, f64::max);
            for (weight, &index) in drawn.weights.iter_mut().zip(&drawn.drawn) {
                *weight = correction(index) / largest * share;
            }
        }
        Ok(drawn)
    }
}

impl Method for DqnMethod {
    fn record(&self, _: &Descent) -> Record {
        Record::Transitions { unroll: UNROLL }
    }

    fn epsilon(&self) -> f64 {
        self.config.epsilon
    }

    fn numbers(&self) -> Vec<f64> {
        ORDER.numbers(self.config.table())
    }

    fn learn(&mut self, round: &mut Round<'_>, experience: Experience) -> Result<Measures, LearnError> {
        let DqnConfig { steps_per_update, first, target_every, priority, epsilon, .. } = self.config;
        let mut steps = 0;
        for unrolls in transitions("dqn", experience)? {
            for unroll in unrolls {
                steps += self.remember(network(round.model), &unroll)? as u64;
            }
        }
        let (mut all, mut norms, mut done) = (LossSums::default(), 0.0, 0_u64);
        if self.learnt.replay.len() > first {
            round.descent.counts[0] += steps;
            while round.descent.counts[0] >= steps_per_update as u64 {
                if round.descent.updates.is_multiple_of(target_every) {
                    self.learnt.target.copy_from_slice(round.descent.params());
                }
                round.begin_update()?;
                let batch = Arc::new(self.batch(round, done)?);
                let (sums, norm) = round.update(&(Arc::clone(&batch) as Arc<dyn GradientParts>), 1)?;
                if priority > 0.0 {
                    let errors = batch.errors.lock().unwrap_or_else(PoisonError::into_inner);
                    for (&index, error) in batch.drawn.iter().zip(&*errors) {
                        self.learnt.replay.set_priority(index, (error + LEAST_PRIORITY).powf(priority));
                    }
                }
                add(&mut all, &sums);
                norms += norm;
                round.descent.counts[0] -= steps_per_update as u64;
                done += 1;
            }
        }
        let mut measures = vec![("epsilon", epsilon), ("replay", self.learnt.replay.len() as f64)];
        if done > 0 {
            let per = 1.0 / done as f64;
            measures.extend([
                ("loss", all[0] * per),
                ("gradient_norm", norms * per),
                ("value", all[VALUE] * per),
            ]);
        }
        Ok(measures)
    }

    fn begin(&mut self) {
        self.before = Some(self.learnt.target.clone());
        self.learnt.replay.begin();
    }

    fn end(&mut self, learnt: bool) {
        let before = self.before.take();
        if learnt {
            self.learnt.replay.keep();
        } else {
            self.learnt.replay.undo();
            self.learnt.target = before.unwrap_or_default();
        }
    }

    fn save(&self, state: &mut StateDict) {
        state.insert("target".into(), Tensor::from(self.learnt.target.clone()));
        self.learnt.replay.save(state);
    }

    fn restore(&mut self, state: &StateDict, descent: &Descent) -> Result<(), LearnError> {
        let bad = |why: String| Err(LearnError::BadState { why });
        let saved = StateReader(state);
        let target = f32s(saved, "target", descent.len())?;
        let replay = self.learnt.replay.restored(saved, network(&mut *self.target).kind().outputs())?;
        let pending = descent.counts[0];
        if pending >= self.config.steps_per_update as u64 {
            return bad(format!("{pending} steps wait for an update after {}", self.config.steps_per_update));
        }
        self.learnt = Learnt { target, replay };
        Ok(())
    }
}
