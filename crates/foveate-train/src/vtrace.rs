//! V-trace (Espeholt et al. 2018, "IMPALA"): an actor-critic that corrects for the difference between the policy that acted and
//! the one that learns.
//!
//! Each round runs whole episodes, in which the agent draws its actions, and cuts them into unrolls of
//! [`unroll`](VtraceConfig::unroll) steps, each with the recurrent state that the agent had before it. The unrolls are dealt
//! out to batches at random, [`epochs`](VtraceConfig::epochs) times; every batch makes one step of the optimiser against the
//! gradient of
//!
//! ```text
//! Σ −log π(a_t) advantage_t + value_weight · (v_t − V_t)² / 2 − entropy_weight · entropy
//! ```
//!
//! through all steps of an unroll, with `targets` that are constants. In the first [`value_rounds`](VtraceConfig::value_rounds)
//! the cross entropy with the policy that acted stands in place of the policy's terms: it stays as it is while the values learn. The weights change from batch to batch while
//! the actions are those of the round's first weights: this lag, in updates, is logged as `policy_lag`, and the ratios of
//! probabilities correct for it.
//!
//! Episodes depend on their seeds and the weights of their round alone, so a run has the same bits for any number of workers and
//! after any kill.

#[cfg(test)]
mod oracle_tests;
mod targets;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use foveate_core::{
    ActionBuf, ActionDistribution, Experience, GradientParts, LastStep, LearnError, Learner, LossSums, Model,
    OutputKind, PartScratch, PolicyError, Predictions, Record, Seed, Unroll, lacking,
};
use foveate_learn::{Clip, OptimizerConfig, optimizer};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use self::targets::{Bounds, targets};
use crate::descent::Descent;
use crate::descriptor::{
    JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom, parse,
};
use crate::evolution::vectors;
use crate::fingerprint::SettingsOrder;
use crate::learning::{Learning, Measures, Method, Round, add, check_unroll, shuffle, transitions};
use crate::ppo::objective::{Taken, log_probability};

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "vtrace",
    summary: "actor-critic that corrects for old policies (IMPALA); the policy learns by the gradient of its return",
    learns_from: LearnsFrom::Policies,
    schedulable: true,
    parse: parse::<VtraceConfig>,
};

/// How losses of steps become that of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// Their sum, as published.
    #[default]
    Sum,
    /// Their mean.
    Mean,
}

/// What of a gradient is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClipBy {
    /// Its Euclidean norm; longer ones are scaled down.
    #[default]
    Norm,
    /// Every number.
    Value,
}

/// Settings of a [`Vtrace`]. The defaults are those that S3TA was published with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VtraceConfig {
    /// Factor per step of rewards to come, `0.0..=1.0`.
    pub discount: f64,
    /// Steps of an unroll, at least 1.
    pub unroll: usize,
    /// Unrolls per update, at least 1.
    pub batch: usize,
    /// Passes over the unrolls of a round, at least 1.
    pub epochs: usize,
    /// Step size of the optimiser, above 0.
    pub learning_rate: f64,
    /// Bound of a gradient, above 0.
    pub clip: f64,
    /// What it bounds.
    pub clip_by: ClipBy,
    /// How losses of steps become that of a batch.
    pub reduce: Reduce,
    /// Weight of the values' squared error, at least 0.
    pub value_weight: f64,
    /// Weight of the entropy, at least 0.
    pub entropy_weight: f64,
    /// ρ̄: bound of the ratios of probabilities in the values' targets, above 0.
    pub rho: f64,
    /// c̄: bound of the ratios in the traces, above 0.
    pub trace: f64,
    /// Bound of the ratios in the policy's gradient, above 0.
    pub policy_rho: f64,
    /// Rewards are clipped to ± this before anything is computed from them, above 0. Returns are reported as they are.
    pub reward_clip: f64,
    /// Rounds at the beginning in which the policy stays as it is and only the values learn, for weights whose policy is worth
    /// keeping and whose values are not, such as those of an imitation.
    #[serde(skip_serializing_if = "is_zero")]
    pub value_rounds: u64,
    /// The optimiser.
    pub optimizer: OptimizerConfig,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(rounds: &u64) -> bool {
    *rounds == 0
}

impl Default for VtraceConfig {
    fn default() -> Self {
        VtraceConfig {
            discount: 0.99,
            unroll: 50,
            batch: 32,
            epochs: 1,
            learning_rate: 0.0002,
            clip: 1280.0,
            clip_by: ClipBy::Norm,
            reduce: Reduce::Sum,
            value_weight: 0.5,
            entropy_weight: 0.01,
            rho: 1.0,
            trace: 1.0,
            policy_rho: 1.0,
            reward_clip: 1.0,
            value_rounds: 0,
            optimizer: OptimizerConfig::RmsProp {
                decay: 0.99,
                momentum: 0.0,
                epsilon: 0.01,
                tensorflow: true,
            },
        }
    }
}

/// Upper limit of counts; a larger number is a typing error.
const MOST: usize = 1_000_000;
const NEEDS: &str = "vtrace needs an agent that draws one of several choices and estimates values, such as s3ta or actor-critic; this one \
     does not";

/// See [`SettingsOrder`].
const ORDER: SettingsOrder = SettingsOrder {
    always: "unroll batch epochs discount learning_rate clip value_weight entropy_weight rho trace \
             policy_rho reward_clip clip_by reduce optimizer.kind optimizer.first optimizer.second \
             optimizer.epsilon",
    later: &[&[("value_rounds", 0.0)]],
    words: &[("clip_by", &["norm", "value"]), ("reduce", &["sum", "mean"])],
};

impl VtraceConfig {
    /// The settings as numbers, to detect a state that was saved with other settings.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let optimizer = match self.optimizer {
            OptimizerConfig::Adam { beta1, beta2, epsilon } => [0.0, beta1, beta2, epsilon],
            OptimizerConfig::RmsProp { decay, momentum, epsilon, tensorflow } => {
                [if tensorflow { 2.0 } else { 1.0 }, decay, momentum, epsilon]
            }
            OptimizerConfig::Sgd => [3.0, 0.0, 0.0, 0.0],
        };
        let mut settings = self.table();
        settings.remove("optimizer");
        let names = ["kind", "first", "second", "epsilon"].map(|name| format!("optimizer.{name}"));
        settings.extend(names.into_iter().zip(optimizer.map(Value::Float)));
        ORDER.numbers(settings)
    }

    const fn bounds(&self) -> Bounds {
        Bounds { rho: self.rho, trace: self.trace, policy: self.policy_rho }
    }
}

impl LearnerSettings for VtraceConfig {
    fn check(&self) -> Result<(), LearnError> {
        let refuse = |why: String| Err(LearnError::BadConfig { why });
        for (name, value) in [("unroll", self.unroll), ("batch", self.batch), ("epochs", self.epochs)] {
            if !(1..=MOST).contains(&value) {
                return refuse(format!("{name} = {value}; choose from 1 to {MOST}"));
            }
        }
        if !(0.0..=1.0).contains(&self.discount) {
            return refuse(format!("discount = {}; choose from 0 to 1", self.discount));
        }
        for (name, value) in [
            ("learning_rate", self.learning_rate),
            ("clip", self.clip),
            ("rho", self.rho),
            ("trace", self.trace),
            ("policy_rho", self.policy_rho),
            ("reward_clip", self.reward_clip),
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
        self.optimizer.check().or_else(|why| refuse(format!("optimizer: {why}")))
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("a plain table of numbers")
    }

    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(Vtrace::of_parts(self, parts)?))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let &JobSize { params, longest, tracks, observed, .. } = job;
        let steps = longest.saturating_mul(tracks);
        LearnerSize {
            memory: steps.saturating_mul(observed.saturating_add(512)).saturating_add(vectors(params)),
            saved: params.saturating_mul(24).saturating_add(1),
            what: format!("the steps of a round, up to {steps} of {observed} bytes each"),
            remedy: "lower max_steps, or the stage's tracks",
        }
    }
}

/// The method; see the [module documentation](self).
pub struct VtraceMethod {
    pub(crate) config: VtraceConfig,
    /// Number of choices.
    choices: usize,
}

/// The learner; see the [module documentation](self).
pub type Vtrace = Learning<VtraceMethod>;

/// The settings that a [population](crate::population) evolves: see [`Vtrace::evolved`].
pub(crate) const EVOLVED: [&str; 4] = ["learning_rate", "entropy_weight", "epsilon", "clip"];

/// What a member of a population takes over from another: weights, optimiser and evolved settings.
pub(crate) struct Heritage {
    descent: Descent,
    evolved: [f64; EVOLVED.len()],
}

/// What the actor did in steps that belong together: those of an unroll, or fewer, of one episode.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// `[steps]`
    pub choices: Vec<usize>,
    /// `[steps]`: the logarithms of their probabilities.
    pub logs: Vec<f64>,
    /// `[steps]`: clipped.
    pub rewards: Vec<f64>,
    /// True if the task ended with the last step. Otherwise there is more to come, whose value is estimated.
    pub terminated: bool,
    /// `[steps, choices]`: logits of the policy that the network keeps, in place of learning from the returns; empty where it
    /// learns from them.
    pub kept: Vec<f32>,
}

/// Consecutive steps of one episode, and what the actor did in them.
#[derive(Clone)]
struct Sequence {
    /// The steps. Its [memory](Unroll::memory) is the recurrent state before the first.
    unroll: Arc<Unroll>,
    /// The action of the step before the first, and its reward; `None` at the beginning of the episode.
    before: Option<(ActionBuf, f64)>,
    behaviour: Arc<Behaviour>,
}

/// The loss of a batch of unrolls.
struct Loss {
    sequences: Vec<Sequence>,
    choices: usize,
    config: VtraceConfig,
    /// What the loss of a step is multiplied by.
    scale: f64,
}

/// Places in the sums of [`VtraceConfig::differentiate`].
const LOSS: usize = 0;
const VALUE_LOSS: usize = 1;
const ENTROPY: usize = 2;
const CLIPPED: usize = 3;
const DIVERGENCE: usize = 4;
const TARGETS: usize = 5;
const SQUARES: usize = 6;
const STEPS: usize = 7;

/// What a log says of updates whose sums were added up: means over steps, but for the loss, which is that of an update, and the
/// share of the variance of all targets that the values explain, below 0 for a worse guess than their mean.
pub fn measures(sums: &LossSums, updates: u64) -> Vec<(&'static str, f64)> {
    let per_step = 1.0 / sums[STEPS].max(1.0);
    let variance = sums[SQUARES] * per_step - (sums[TARGETS] * per_step).powi(2);
    let explained = if variance > 0.0 { 1.0 - 2.0 * sums[VALUE_LOSS] * per_step / variance } else { 0.0 };
    vec![
        ("loss", sums[LOSS] / updates.max(1) as f64),
        ("entropy", sums[ENTROPY] * per_step),
        ("value_loss", sums[VALUE_LOSS] * per_step),
        ("clip_fraction", sums[CLIPPED] * per_step),
        ("kl", sums[DIVERGENCE] * per_step),
        ("explained_variance", explained),
    ]
}

impl GradientParts for Loss {
    fn count(&self) -> usize {
        self.sequences.len()
    }

    fn study(
        &self,
        part: usize,
        model: &mut dyn Model,
        scratch: &mut PartScratch,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let Loss { sequences, choices, config, scale } = self;
        let Sequence { unroll, before, behaviour } = &sequences[part];
        let network = model.outputs().ok_or_else(|| lacking("network"))?;
        if unroll.memory.len() != network.memory_len() {
            let why = format!(
                "an unroll with a recurrent state of {} numbers, where the network keeps {}",
                unroll.memory.len(),
                network.memory_len()
            );
            return Err(PolicyError::BadConfig { why });
        }
        let codes = &mut scratch.inputs;
        codes.clear();
        let first = before.as_ref().map(|(action, reward)| (action, *reward));
        let last =
            std::iter::once(first).chain(unroll.actions.iter().zip(unroll.rewards.iter().copied()).map(Some));
        for (last, observation) in last.zip(&unroll.observations) {
            let last = last.map_or(LastStep::default(), |(action, reward)| LastStep {
                action: Some(action.as_action()),
                reward,
            });
            network.encode(last, observation.as_observation(), codes)?;
        }
        let Predictions { outputs, values, .. } =
            network.forward(unroll.observations.len(), codes, &unroll.memory);
        scratch.clear_derivatives(outputs.len(), values.len());
        let PartScratch { d_outputs, d_values, .. } = scratch;
        let sums =
            config.differentiate(behaviour, *choices, *scale, (outputs, values), (d_outputs, d_values));
        network.backward(d_outputs, d_values, gradient);
        Ok(sums)
    }
}

impl VtraceConfig {
    /// The loss of steps that belong together, times `scale`, and its derivatives: by `choices` logits per step and by the
    /// value of each. `outputs` (`[steps + 1, choices]`, or without the last row) and `values` (`[steps + 1]`) are what the
    /// network computes; the row after the last step only says what is still to come, and its derivatives are left as they
    /// are.
    ///
    /// Returns sums for [`measures`].
    ///
    /// # Panics
    /// When a length does not fit.
    pub fn differentiate(
        &self,
        behaviour: &Behaviour,
        choices: usize,
        scale: f64,
        (outputs, values): (&[f32], &[f32]),
        (d_outputs, d_values): (&mut [f32], &mut [f32]),
    ) -> LossSums {
        let Behaviour { choices: taken, logs, rewards, terminated, kept } = behaviour;
        let n = choices;
        let (mut d_log, mut d_entropy) = (vec![0.0; n], vec![0.0; n]);
        let mut log_ratios = Vec::with_capacity(taken.len());
        for ((&choice, &log), outputs) in taken.iter().zip(logs).zip(outputs.chunks_exact(n)) {
            let (now, _) = log_probability(outputs, &Taken::Choice(choice), &mut d_log, &mut d_entropy);
            log_ratios.push(now - log);
        }
        let aims = targets(&log_ratios, rewards, values, *terminated, self.discount, self.bounds());
        let mut sums = LossSums::default();
        for (t, &choice) in taken.iter().enumerate() {
            let row = t * n..(t + 1) * n;
            let (log, entropy) =
                log_probability(&outputs[row.clone()], &Taken::Choice(choice), &mut d_log, &mut d_entropy);
            let (advantage, error) = (aims.advantages[t], f64::from(values[t]) - aims.values[t]);
            let mut loss = self.value_weight * 0.5 * error * error;
            if kept.is_empty() {
                loss -= log * advantage + self.entropy_weight * entropy;
                for ((to, d_log), d_entropy) in d_outputs[row].iter_mut().zip(&d_log).zip(&d_entropy) {
                    *to = (scale * (-advantage * d_log - self.entropy_weight * d_entropy)) as f32;
                }
            } else {
                let (now, then) = (probabilities(&outputs[row.clone()]), probabilities(&kept[row.clone()]));
                for ((to, now), then) in d_outputs[row].iter_mut().zip(now).zip(then) {
                    loss -= then * now.ln();
                    *to = (scale * (now - then)) as f32;
                }
            }
            d_values[t] = (scale * self.value_weight * error) as f32;
            let ratio = log_ratios[t].exp();
            sums[LOSS] += scale * loss;
            sums[VALUE_LOSS] += 0.5 * error * error;
            sums[TARGETS] += aims.values[t];
            sums[SQUARES] += aims.values[t] * aims.values[t];
            sums[ENTROPY] += entropy;
            sums[CLIPPED] += f64::from(u8::from(ratio > self.rho));
            sums[DIVERGENCE] += ratio - 1.0 - log_ratios[t];
        }
        sums[STEPS] = taken.len() as f64;
        sums
    }

    /// What the loss of a step is multiplied by in an update of so many steps.
    pub fn scale(&self, steps: usize) -> f64 {
        match self.reduce {
            Reduce::Sum => 1.0,
            Reduce::Mean => 1.0 / steps.max(1) as f64,
        }
    }

    /// The bound of gradients.
    pub const fn bound(&self) -> Clip {
        match self.clip_by {
            ClipBy::Norm => Clip::Norm(self.clip),
            ClipBy::Value => Clip::Value(self.clip),
        }
    }

    /// Bounds a gradient, and returns its norm before that.
    pub fn clip(&self, gradient: &mut [f32]) -> f64 {
        let norm = optimizer::norm(gradient);
        if norm.is_finite() {
            self.bound().apply(norm, gradient);
        }
        norm
    }

    /// The logarithm of the probability of a choice.
    pub fn log_probability(logits: &[f32], choice: usize) -> f64 {
        let (mut d_log, mut d_entropy) = (vec![0.0; logits.len()], vec![0.0; logits.len()]);
        log_probability(logits, &Taken::Choice(choice), &mut d_log, &mut d_entropy).0
    }
}

/// Softmax of a step's logits.
fn probabilities(logits: &[f32]) -> impl Iterator<Item = f64> + use<'_> {
    let most = logits.iter().fold(f64::NEG_INFINITY, |most, &x| most.max(f64::from(x)));
    let sum: f64 = logits.iter().map(|&x| (f64::from(x) - most).exp()).sum();
    logits.iter().map(move |&x| (f64::from(x) - most).exp() / sum)
}

fn refused(why: String) -> LearnError {
    LearnError::Experience { why }
}

impl Vtrace {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, `weights` are empty, not finite or not of the model's size, or the model does not draw
    /// one of several choices.
    pub fn new(
        config: VtraceConfig,
        weights: &[f64],
        seed: Seed,
        model: &dyn Model,
    ) -> Result<Self, LearnError> {
        config.check()?;
        let mut model = model.boxed_clone();
        let VtraceConfig { optimizer, learning_rate, .. } = config;
        let descent = Descent::single("vtrace", weights, seed, &mut *model, optimizer, learning_rate)?;
        let Some(OutputKind::Policy(ActionDistribution::Choices(choices))) =
            model.outputs().map(|network| network.kind())
        else {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        };
        let descent = descent.with_clip(config.bound());
        Ok(Learning::of(VtraceMethod { config, choices }, descent, model))
    }

    /// The learner with these settings and parts.
    ///
    /// # Errors
    /// As [`Vtrace::new`]; also without a model.
    pub(crate) fn of_parts(config: &VtraceConfig, parts: LearnerParts<'_>) -> Result<Self, LearnError> {
        let LearnerParts { weights, seed, model, fitness } = parts;
        let Some(model) = model else {
            return Err(LearnError::BadConfig { why: NEEDS.into() });
        };
        Ok(Vtrace::new(config.clone(), &weights, seed, model)?.with_fitness(fitness))
    }

    /// The values of the settings [`EVOLVED`]; an optimiser without ε has 0.
    pub(crate) const fn evolved(&self) -> [f64; EVOLVED.len()] {
        let VtraceConfig { learning_rate, entropy_weight, clip, optimizer, .. } = &self.method.config;
        let epsilon = match optimizer {
            OptimizerConfig::Adam { epsilon, .. } | OptimizerConfig::RmsProp { epsilon, .. } => *epsilon,
            OptimizerConfig::Sgd => 0.0,
        };
        [*learning_rate, *entropy_weight, epsilon, *clip]
    }

    /// Replaces these values.
    ///
    /// # Errors
    /// When one is out of its range; nothing is changed then.
    pub(crate) fn evolve(&mut self, evolved: [f64; EVOLVED.len()]) -> Result<(), LearnError> {
        let [learning_rate, entropy_weight, epsilon, clip] = evolved;
        let mut optimizer = self.method.config.optimizer;
        match &mut optimizer {
            OptimizerConfig::Adam { epsilon: own, .. } | OptimizerConfig::RmsProp { epsilon: own, .. } => {
                *own = epsilon;
            }
            OptimizerConfig::Sgd => {}
        }
        let config =
            VtraceConfig { learning_rate, clip, entropy_weight, optimizer, ..self.method.config.clone() };
        config.check()?;
        self.descent.set(learning_rate, config.bound(), optimizer);
        self.method.config = config;
        Ok(())
    }

    /// What another member takes over.
    pub(crate) fn heritage(&self) -> Heritage {
        Heritage { descent: self.descent.clone(), evolved: self.evolved() }
    }

    /// Takes over weights, optimiser and evolved settings.
    ///
    /// # Errors
    /// As [`Vtrace::evolve`].
    pub(crate) fn inherit(&mut self, from: &Heritage) -> Result<(), LearnError> {
        self.evolve(from.evolved)?;
        let mut descent = from.descent.clone();
        descent.seed = self.descent.seed;
        self.descent = descent;
        Ok(())
    }
}

impl VtraceMethod {
    /// What the actor did in an unroll of round `generation`.
    fn behaviour(&self, unroll: &Unroll, generation: u64) -> Result<Behaviour, LearnError> {
        check_unroll(unroll)?;
        let (n, steps) = (self.choices, unroll.len());
        if unroll.logits.len() != steps * n {
            return Err(refused(format!(
                "{} logits for {steps} steps with {n} choices; the agent that acts has to give them",
                unroll.logits.len()
            )));
        }
        let (mut choices, mut logs) = (Vec::with_capacity(steps), Vec::with_capacity(steps));
        let (mut d_log, mut d_entropy) = (vec![0.0; n], vec![0.0; n]);
        for (t, (action, logits)) in unroll.actions.iter().zip(unroll.logits.chunks_exact(n)).enumerate() {
            let choice = match action {
                ActionBuf::Discrete(choice) if *choice < n => *choice,
                other => {
                    let other = other.as_action();
                    return Err(refused(format!(
                        "action {other} in step {t}, where one of {n} choices is due"
                    )));
                }
            };
            let (log, _) = log_probability(logits, &Taken::Choice(choice), &mut d_log, &mut d_entropy);
            if !log.is_finite() {
                return Err(refused(format!("the probability of the action of step {t} is exp({log})")));
            }
            choices.push(choice);
            logs.push(log);
        }
        let bound = self.config.reward_clip;
        let rewards = unroll.rewards.iter().map(|reward| reward.clamp(-bound, bound)).collect();
        let stays = generation < self.config.value_rounds;
        let kept = if stays { unroll.logits.clone() } else { vec![] };
        Ok(Behaviour { choices, logs, rewards, terminated: unroll.terminated, kept })
    }

    /// All unrolls of a round, with what the actor did in them.
    fn sequences(&self, experience: Experience, generation: u64) -> Result<Vec<Sequence>, LearnError> {
        let mut all = Vec::new();
        for unrolls in transitions("vtrace", experience)? {
            if unrolls.is_empty() {
                return Err(refused("an episode without any unroll".into()));
            }
            let mut before = None;
            for unroll in unrolls {
                let behaviour = Arc::new(self.behaviour(&unroll, generation)?);
                let last = unroll.actions.last().cloned().zip(unroll.rewards.last().copied());
                all.push(Sequence { unroll: Arc::new(unroll), before, behaviour });
                before = last;
            }
        }
        Ok(all)
    }

    /// The loss of a batch of sequences.
    fn loss(&self, batch: &[Sequence]) -> Arc<dyn GradientParts> {
        let steps: usize = batch.iter().map(|sequence| sequence.unroll.len()).sum();
        let VtraceMethod { config, choices } = self;
        let scale = config.scale(steps);
        Arc::new(Loss { sequences: batch.to_vec(), choices: *choices, config: config.clone(), scale })
    }
}

impl Method for VtraceMethod {
    fn record(&self, _: &Descent) -> Record {
        Record::Transitions { unroll: self.config.unroll }
    }

    fn numbers(&self) -> Vec<f64> {
        self.config.numbers()
    }

    fn learn(&mut self, round: &mut Round<'_>, experience: Experience) -> Result<Measures, LearnError> {
        let Descent { seed, generation, .. } = *round.descent;
        let mut sequences = self.sequences(experience, generation)?;
        let (mut all, mut norms, mut lag, mut updates) = (LossSums::default(), 0.0, 0.0, 0_u64);
        for epoch in 0..self.config.epochs as u64 {
            shuffle(&mut sequences, seed.child("generation", generation).child("epoch", epoch));
            for batch in sequences.chunks(self.config.batch) {
                round.begin_update()?;
                let (sums, norm) = round.update(&self.loss(batch), 1)?;
                add(&mut all, &sums);
                norms += norm;
                lag += updates as f64 * sums[STEPS];
                updates += 1;
            }
        }
        let lag = lag / all[STEPS].max(1.0);
        let mut measures = measures(&all, updates);
        measures.insert(1, ("gradient_norm", norms / updates.max(1) as f64));
        measures.push(("policy_lag", lag));
        Ok(measures)
    }
}
