//! Gradients of the return through policy and world, with a critic (SHAC: Xu et al. 2022, "Accelerated policy learning with
//! parallel differentiable simulation").
//!
//! For worlds that give the derivatives of their steps. Each round has three steps:
//!
//! 1. The current weights run whole episodes, and the derivatives of every step are recorded.
//! 2. The critic, a network of two hidden layers, learns the value of observations by TD(λ); after a termination it is 0.
//!    All values come from a slow copy of the critic, the target network.
//! 3. Episodes are divided into windows of `horizon` steps; without
//!    [`whole_episodes`](ShortHorizonConfig::whole_episodes), only one window of each is recorded, so that a step learns from
//!    many starts. The policy follows the gradient of the discounted rewards of a
//!    window and of the value after it, by backpropagation through the agent, its memory and the world's equations. The
//!    windows keep these gradients from growing without bound in a world that is chaotic over longer times. Gradients with
//!    a norm above 1 are clipped to 1. A termination has no derivative; with
//!    [`terminal_slope`](ShortHorizonConfig::terminal_slope) the last window of an episode that terminated follows the slope
//!    of the critic, too, which falls towards states in which episodes end.
//!
//! The agent does not explore, so the policy that learns is the one that is evaluated. The result, [`Learner::weights`], is a
//! moving average of the weights over the updates.

#[cfg(test)]
mod tests;

use foveate_core::{
    DifferentiatedEpisode, Episodes, Experience, LearnError, Learner, PolicyError, Progress, Record,
    Recording, Seed, StateDict, StateReader, StopRequest, Student, Tensor, Windows, Work,
};
use foveate_evolve::Optimizer;
use foveate_kernels::Level;
use foveate_learn::{
    Activations, Builder, Function, Linear, Network, Node, OptimizerConfig, loss, optimizer,
};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::descent::{Descent, rounded};
use crate::evolution::vectors;
use crate::imitation::below;
use crate::learners::{JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom};
use crate::recipe::Fitness;

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "shac",
    summary: "gradients of the return through the agent and the world's own equations, with a critic; no evolution",
    learns_from: LearnsFrom::Derivatives,
    schedulable: true,
    parse: |_, table| {
        let config: ShortHorizonConfig =
            table.clone().try_into().map_err(|error: toml::de::Error| error.message().trim().to_owned())?;
        Ok(Box::new(config))
    },
};

/// Settings of a [`ShortHorizon`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShortHorizonConfig {
    /// Steps of a window, at least 1.
    pub horizon: usize,
    /// Factor per step of rewards to come, above 0 and below 1.
    pub discount: f64,
    /// λ of the critic's targets, `0.0..=1.0`.
    pub trace: f64,
    /// Steps of Adam per round, at least 1. The windows of an episode are dealt out to them in turn, so that each step learns
    /// from many episodes.
    pub updates: usize,
    /// Adam's step size, above 0.
    pub learning_rate: f64,
    /// Share of the old average that each step of Adam keeps, `0.0..1.0`.
    pub averaging: f64,
    /// Bound of the derivatives of the return with respect to the world's state and to the agent's memory, above 0.
    pub clip: f64,
    /// Whether the critic's slope counts where an episode terminated, as in all other windows.
    pub terminal_slope: bool,
    /// Bound of the norm of the gradient of a single episode, 0 for none. Where the world is chaotic, a few episodes have
    /// gradients a hundred times those of the others, and decide the direction of a step alone.
    #[serde(skip_serializing_if = "is_zero")]
    pub episode_clip: f64,
    /// Whether whole episodes are recorded. If not, one window of each is, drawn from all that the limit of its steps allows;
    /// episodes that end before their window teach nothing.
    #[serde(skip_serializing_if = "is_true")]
    pub whole_episodes: bool,
    /// Rounds in which the critic alone learns.
    pub critic_rounds: u64,
    /// Steps of Adam of the critic per round, at least 1.
    pub critic_updates: usize,
    /// Observations per step of the critic, at least 1.
    pub critic_batch: usize,
    /// The critic's step size, above 0.
    pub critic_learning_rate: f64,
    /// Units of each of the critic's hidden layers, at least 1.
    pub critic_units: usize,
    /// Share of the critic that its target network takes over per round, above 0, at most 1.
    pub critic_target: f64,
}

impl Default for ShortHorizonConfig {
    fn default() -> Self {
        ShortHorizonConfig {
            horizon: 128,
            discount: 0.995,
            trace: 0.95,
            updates: 1,
            learning_rate: 0.002,
            averaging: 0.99,
            clip: 10.0,
            terminal_slope: true,
            episode_clip: 0.0,
            whole_episodes: true,
            critic_rounds: 20,
            critic_updates: 8,
            critic_batch: 1024,
            critic_learning_rate: 0.001,
            critic_units: 32,
            critic_target: 0.05,
        }
    }
}

/// Settings that came later are written only where they are used, so that recipes keep their digests.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(clip: &f64) -> bool {
    *clip == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_true(whole: &bool) -> bool {
    *whole
}

/// Upper limit of every count; a larger number is a typing error.
const MOST: usize = 100_000;
/// Observations whose values are computed at once.
const AT_ONCE: usize = 1024;

impl ShortHorizonConfig {
    /// The settings as numbers, to detect a state that was saved with other settings.
    fn numbers(&self) -> Vec<f64> {
        let &ShortHorizonConfig { discount, trace, learning_rate, averaging, clip, critic_rounds, .. } = self;
        let sizes = [self.horizon, self.updates, self.critic_updates, self.critic_batch, self.critic_units];
        let rates = [self.critic_learning_rate, self.critic_target, f64::from(u8::from(self.terminal_slope))];
        let others = [discount, trace, learning_rate, averaging, clip, critic_rounds as f64];
        let mut numbers = [&sizes.map(|n| n as f64)[..], &others, &rates].concat();
        // Settings that came later count only where they are used, so that older states still fit.
        if !self.whole_episodes || self.episode_clip > 0.0 {
            numbers.extend([f64::from(u8::from(self.whole_episodes)), self.episode_clip]);
        }
        numbers
    }
}

impl ShortHorizonConfig {
    /// What the gradient of an episode is multiplied by.
    fn scale(&self, gradient: &[f32]) -> f32 {
        let norm = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt();
        if self.episode_clip > 0.0 && norm > self.episode_clip {
            (self.episode_clip / norm) as f32
        } else {
            1.0
        }
    }
}

impl LearnerSettings for ShortHorizonConfig {
    fn check(&self) -> Result<(), LearnError> {
        let refuse = |why: String| Err(LearnError::BadConfig { why });
        for (name, value) in [
            ("horizon", self.horizon),
            ("updates", self.updates),
            ("critic_updates", self.critic_updates),
            ("critic_batch", self.critic_batch),
            ("critic_units", self.critic_units),
        ] {
            if !(1..=MOST).contains(&value) {
                return refuse(format!("{name} = {value}; choose from 1 to {MOST}"));
            }
        }
        for (name, value) in [
            ("learning_rate", self.learning_rate),
            ("critic_learning_rate", self.critic_learning_rate),
            ("clip", self.clip),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return refuse(format!("{name} = {value}; it must be above 0"));
            }
        }
        let ShortHorizonConfig { discount, trace, averaging, critic_target, episode_clip, .. } = *self;
        if !(episode_clip >= 0.0 && episode_clip.is_finite()) {
            return refuse(format!("episode_clip = {episode_clip}; it must be at least 0, for none 0"));
        }
        if !(discount > 0.0 && discount < 1.0) {
            return refuse(format!("discount = {discount}; it must be above 0 and below 1"));
        }
        if !(0.0..=1.0).contains(&trace) {
            return refuse(format!("trace = {trace}; choose from 0 to 1"));
        }
        if !(0.0..1.0).contains(&averaging) {
            return refuse(format!("averaging = {averaging}; it must be at least 0 and below 1"));
        }
        if !(critic_target > 0.0 && critic_target <= 1.0) {
            return refuse(format!("critic_target = {critic_target}; it must be above 0 and at most 1"));
        }
        Ok(())
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("a plain table of numbers")
    }

    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let LearnerParts { weights, seed, student, fitness } = parts;
        let Some(student) = student else {
            let why = "shac needs an agent that learns by gradients; this one has no part that does".into();
            return Err(LearnError::BadConfig { why });
        };
        let mut learner = ShortHorizon::new(self.clone(), weights, seed, student.boxed_clone())?;
        learner.fitness = fitness;
        Ok(Box::new(learner))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let &JobSize { params, longest, demonstrated, .. } = job;
        // An episode with its derivatives; the number of episodes is not known here.
        let episode = longest.saturating_mul(demonstrated).saturating_mul(64);
        LearnerSize {
            memory: episode.saturating_mul(64).saturating_add(vectors(params)),
            saved: params
                .saturating_mul(64)
                .saturating_add((self.critic_units as u64).saturating_pow(2) * 32),
            what: format!("episodes of {longest} steps with their derivatives"),
            remedy: "lower the stage's tracks or max_steps",
        }
    }
}

/// The value of observations, in units where the return of a window is.
struct Critic {
    network: Network,
    input: Node,
    value: Node,
    /// `[n_params]`
    params: Vec<f32>,
    /// `[n_params]`: a slow copy, which all targets and derivatives come from.
    target: Vec<f32>,
    optimizer: optimizer::Optimizer,
    /// For each number of an observation what is subtracted, and what it is multiplied with then; from the first round.
    scale: Vec<[f32; 2]>,
    acts: Activations,
    /// `[at most AT_ONCE, numbers]`: scaled observations. Scratch.
    seen: Vec<f32>,
    gradient: Vec<f32>,
}

impl Critic {
    fn new(numbers: usize, units: usize, batch: usize, seed: Seed) -> Self {
        let mut builder = Builder::default();
        let input = builder.state("observation", [numbers]);
        let mut x = input;
        for name in ["first", "second"] {
            x = builder.layer(name, Linear::new(units), [x]);
            x = builder.map(Function::Tanh, x);
        }
        let value = builder.layer("value", Linear::new(1), [x]);
        let network = builder.build(&[value]).expect("numbers and units are within their limits");
        let params = network.initial(seed.child("critic", 0));
        Critic {
            acts: network.activations(batch.max(AT_ONCE)),
            optimizer: optimizer::Optimizer::new(OptimizerConfig::default(), params.len()),
            target: params.clone(),
            gradient: vec![0.0; params.len()],
            scale: vec![[0.0, 1.0]; numbers],
            seen: vec![],
            network,
            input,
            value,
            params,
        }
    }

    /// What learning changes.
    fn learnt(&self) -> (Vec<f32>, Vec<f32>, optimizer::Optimizer) {
        (self.params.clone(), self.target.clone(), self.optimizer.clone())
    }

    /// Sets the scale to that of these observations.
    fn fit_scale(&mut self, episodes: &[DifferentiatedEpisode]) {
        let numbers = self.scale.len();
        let all = || episodes.iter().flat_map(|episode| episode.observations.chunks_exact(numbers));
        let count = all().count().max(1) as f64;
        for (i, scale) in self.scale.iter_mut().enumerate() {
            let mean = all().map(|seen| f64::from(seen[i])).sum::<f64>() / count;
            let variance = all().map(|seen| (f64::from(seen[i]) - mean).powi(2)).sum::<f64>() / count;
            *scale = [mean as f32, 1.0 / variance.sqrt().max(1e-3) as f32];
        }
    }

    /// Writes the scaled observations to the scratch space; returns how many there are.
    fn see<'a>(&mut self, observations: impl Iterator<Item = &'a [f32]>) -> usize {
        self.seen.clear();
        for observation in observations {
            self.seen.extend(observation.iter().zip(&self.scale).map(|(x, [mean, by])| (x - mean) * by));
        }
        self.seen.len() / self.scale.len()
    }

    /// Appends the target network's values of `observations` to `values`.
    fn values(&mut self, level: Level, observations: &[f32], values: &mut Vec<f32>) {
        let numbers = self.scale.len();
        for some in observations.chunks(AT_ONCE * numbers) {
            let count = self.see(some.chunks_exact(numbers));
            self.network.forward(level, &self.target, &[&self.seen], count, &mut self.acts);
            values.extend_from_slice(&self.acts.get(self.value)[..count]);
        }
    }

    /// The target network's derivatives of the value with respect to each of these observations, at most `AT_ONCE`:
    /// `[observations, numbers]`.
    fn slopes<'a>(
        &mut self,
        level: Level,
        observations: impl Iterator<Item = &'a [f32]>,
        slopes: &mut Vec<f32>,
    ) {
        let count = self.see(observations);
        self.network.forward(level, &self.target, &[&self.seen], count, &mut self.acts);
        self.acts.clear_gradients();
        self.acts.gradient_mut(self.value)[..count].fill(1.0);
        self.gradient.fill(0.0);
        self.network.backward(level, &self.target, &mut self.acts, &mut self.gradient);
        let by = self.scale.iter().map(|[_, by]| by).cycle();
        slopes.extend(self.acts.gradient(self.input).iter().zip(by).map(|(d, by)| d * by));
    }

    /// A step of Adam towards `targets` of the observations that are in the scratch space.
    fn learn(&mut self, level: Level, rate: f64, targets: &[f32]) {
        let count = targets.len();
        self.network.forward(level, &self.params, &[&self.seen], count, &mut self.acts);
        self.acts.clear_gradients();
        let (given, gradient) = self.acts.output_and_gradient(self.value);
        loss::squared_error(&given[..count], targets, 1.0 / count as f32, &mut gradient[..count]);
        self.gradient.fill(0.0);
        self.network.backward(level, &self.params, &mut self.acts, &mut self.gradient);
        self.optimizer.step(rate, &self.gradient, &mut self.params);
    }

    /// Moves the target network towards the critic.
    fn follow(&mut self, share: f64) {
        for (to, &from) in self.target.iter_mut().zip(&self.params) {
            *to += (share as f32) * (from - *to);
        }
    }
}

/// The learner; see the [module documentation](self).
pub struct ShortHorizon {
    config: ShortHorizonConfig,
    student: Box<dyn Student>,
    level: Level,
    descent: Descent,
    /// Made with the first round, which says how many numbers an observation has.
    critic: Option<Critic>,
    /// How the returns of a round are reduced to the reported number.
    fitness: Fitness,
    /// Of the last round with an update: the mean norm of its gradients.
    norm: Option<f64>,
    /// Set when the user asks to stop.
    stop: StopRequest,
}

impl ShortHorizon {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `weights` are empty, not finite or not of the student's size.
    pub fn new(
        config: ShortHorizonConfig,
        weights: Vec<f64>,
        seed: Seed,
        mut student: Box<dyn Student>,
    ) -> Result<Self, LearnError> {
        config.check()?;
        let adam = |params| Optimizer::adam(params, config.learning_rate, 0.9, 0.99);
        Ok(ShortHorizon {
            descent: Descent::new("shac", weights, seed, &mut *student, adam)?,
            critic: None,
            fitness: Fitness::Mean,
            norm: None,
            stop: StopRequest::default(),
            level: Level::best(),
            student,
            config,
        })
    }

    /// The critic's part of a round: TD(λ) towards the values of its target network.
    fn teach_critic(
        &self,
        critic: &mut Critic,
        episodes: &[DifferentiatedEpisode],
    ) -> Result<(), LearnError> {
        let ShortHorizonConfig { discount, trace, critic_updates, critic_batch, .. } = self.config;
        let targets: Vec<Vec<f32>> = episodes
            .iter()
            .map(|episode| {
                let mut values = vec![];
                critic.values(self.level, &episode.observations, &mut values);
                if episode.terminated {
                    values[episode.steps] = 0.0;
                }
                let mut beyond = f64::from(values[episode.steps]);
                let mut targets = vec![0.0; episode.steps];
                for (t, target) in targets.iter_mut().enumerate().rev() {
                    let mixed = (1.0 - trace) * f64::from(values[t + 1]) + trace * beyond;
                    beyond = (1.0 - discount) * f64::from(episode.rewards[t]) + discount * mixed;
                    *target = beyond as f32;
                }
                targets
            })
            .collect();
        // Episodes are drawn in proportion to their steps.
        let ends: Vec<usize> = episodes
            .iter()
            .scan(0, |end, episode| {
                *end += episode.steps;
                Some(*end)
            })
            .collect();
        let steps = ends.last().copied().unwrap_or(0);
        let mut wanted = Vec::with_capacity(critic_batch);
        for number in 0..critic_updates as u64 {
            self.stop.check()?;
            let Descent { seed, generation, .. } = self.descent;
            let mut rng = seed.child("generation", generation).child("critic", number).rng();
            wanted.clear();
            let drawn: Vec<(usize, usize)> = (0..critic_batch)
                .map(|_| {
                    let step = below(&mut rng, steps);
                    let of = ends.partition_point(|&end| end <= step);
                    (of, step + episodes[of].steps - ends[of])
                })
                .collect();
            wanted.extend(drawn.iter().map(|&(of, t)| targets[of][t]));
            let numbers = critic.scale.len();
            critic.see(drawn.iter().map(|&(of, t)| &episodes[of].observations[t * numbers..][..numbers]));
            critic.learn(self.level, self.config.critic_learning_rate, &wanted);
        }
        critic.follow(self.config.critic_target);
        Ok(())
    }

    /// Step `number` of Adam of the policy, on its share of the windows. Returns the gradient's norm, 0 without a window.
    fn update(
        &mut self,
        critic: &mut Critic,
        episodes: &[DifferentiatedEpisode],
        number: usize,
        step: &mut [f64],
    ) -> Result<f64, PolicyError> {
        let ShortHorizonConfig { horizon, discount, updates, averaging, clip, terminal_slope, .. } =
            self.config;
        if self.student.set_params(&rounded(&self.descent.current)).is_err() {
            self.descent.give_up();
            return Ok(f64::NAN);
        }
        let (mut gradient, mut own) = (vec![0.0; step.len()], vec![0.0; step.len()]);
        let (mut dealt, mut count) = (0, 0);
        let (mut ends, mut values, mut chosen) = (vec![], vec![], vec![]);
        for (index, episode) in episodes.iter().enumerate() {
            // The first window is a whole one: the critic does not see what the agent remembers, which differs most in the
            // first steps.
            ends.clear();
            ends.extend((horizon..episode.steps).step_by(horizon).chain([episode.steps]));
            chosen.clear();
            chosen.extend((0..ends.len()).map(|window| (window + index) % updates == number));
            let counted = chosen.iter().filter(|&&chosen| chosen).count();
            dealt += counted;
            if counted == 0 {
                continue;
            }
            let numbers = critic.scale.len();
            values.clear();
            for some in ends.chunks(AT_ONCE) {
                let seen = some.iter().map(|&end| &episode.observations[end * numbers..][..numbers]);
                critic.slopes(self.level, seen, &mut values);
            }
            let mut from = 0;
            for (&end, slopes) in ends.iter().zip(values.chunks_exact_mut(numbers)) {
                // After a termination the value is 0 everywhere, but the critic's slope leads away from such states.
                let flat = !terminal_slope && episode.terminated && end == episode.steps;
                let factor = if flat { 0.0 } else { discount.powf((end - from) as f64) };
                for slope in slopes {
                    *slope = (f64::from(*slope) * factor) as f32;
                }
                from = end;
            }
            let windows = Windows { ends: &ends, values: &values, chosen: &chosen, discount, clip };
            own.fill(0.0);
            self.student.study_world(episode, &windows, &mut own)?;
            // Where the world is chaotic, a gradient may overflow; the others still count.
            if own.iter().all(|g: &f32| g.is_finite()) {
                count += counted;
                let scale = self.config.scale(&own);
                for (sum, g) in gradient.iter_mut().zip(&own) {
                    *sum += scale * g;
                }
            }
        }
        if count == 0 && dealt > 0 {
            self.descent.give_up();
        } else if count > 0 {
            return Ok(self.descent.step(&gradient, count, averaging, step));
        }
        Ok(0.0)
    }

    fn learn(&mut self, critic: &mut Critic, episodes: &[DifferentiatedEpisode]) -> Result<(), LearnError> {
        let generation = self.descent.generation;
        self.teach_critic(critic, episodes)?;
        let mut step = vec![0.0; self.descent.current.len()];
        if generation >= self.config.critic_rounds {
            let mut norm = 0.0;
            for number in 0..self.config.updates {
                self.stop.check()?;
                norm += self
                    .update(critic, episodes, number, &mut step)
                    .map_err(|error| LearnError::Gradient { generation, why: error.to_string() })?;
            }
            self.norm = Some(norm / self.config.updates as f64);
        }
        let value = critic.params.iter().chain(&critic.target).find(|x| !x.is_finite());
        if let Some(value) = value {
            return Err(LearnError::Diverged {
                generation,
                what: format!("a weight of the critic is {value}"),
            });
        }
        self.descent.check()
    }
}

impl Learner for ShortHorizon {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        let record = if self.config.whole_episodes {
            Record::Derivatives
        } else {
            Record::Window { steps: self.config.horizon as u64 }
        };
        self.descent.work(episodes, record)
    }

    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError> {
        let returns = self.descent.returns("shac", &experience)?;
        let episodes = differentiated(experience.recordings, self.config.whole_episodes)?;
        let Some(numbers) = episodes.first().map(DifferentiatedEpisode::numbers) else {
            // Every episode ended before its window.
            return Ok(self.descent.end_round(self.fitness, &returns));
        };
        if let Some(other) = episodes.iter().find(|episode| episode.numbers() != numbers) {
            let why = format!("observations of {numbers} and of {} numbers in one round", other.numbers());
            return Err(LearnError::Experience { why });
        }
        if let Some(known) = self.critic.as_ref().filter(|known| known.scale.len() != numbers) {
            let why = format!("observations of {numbers} numbers; those before had {}", known.scale.len());
            return Err(LearnError::Experience { why });
        }
        let before = self.descent.clone();
        let learnt = self.critic.as_ref().map(Critic::learnt);
        let mut critic = self.critic.take().unwrap_or_else(|| {
            let ShortHorizonConfig { critic_units, critic_batch, .. } = self.config;
            let mut critic = Critic::new(numbers, critic_units, critic_batch, self.descent.seed);
            critic.fit_scale(&episodes);
            critic
        });
        if let Err(error) = self.learn(&mut critic, &episodes) {
            self.descent = before;
            self.critic = learnt.map(|learnt| {
                (critic.params, critic.target, critic.optimizer) = learnt;
                critic
            });
            return Err(error);
        }
        self.critic = Some(critic);
        Ok(self.descent.end_round(self.fitness, &returns))
    }

    fn stop_when(&mut self, asked: &StopRequest) {
        self.stop = asked.clone();
    }

    fn weights(&self) -> &[f64] {
        &self.descent.average
    }

    fn centre(&self) -> &[f64] {
        &self.descent.current
    }

    fn generation(&self) -> u64 {
        self.descent.generation
    }

    fn measures(&self) -> Vec<(&'static str, f64)> {
        self.norm.into_iter().map(|norm| ("gradient_norm", norm)).collect()
    }

    fn state(&self) -> StateDict {
        let mut state = self.descent.state(self.config.numbers());
        if let Some(critic) = &self.critic {
            state.insert("critic.scale".into(), Tensor::from(critic.scale.as_flattened().to_vec()));
            state.insert("critic.params".into(), Tensor::from(critic.params.clone()));
            state.insert("critic.target".into(), Tensor::from(critic.target.clone()));
            let optimizer = critic.optimizer.state();
            state.extend(optimizer.into_iter().map(|(name, tensor)| (format!("critic.{name}"), tensor)));
        }
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        let bad = |why: String| Err(LearnError::BadState { why });
        let saved = StateReader(state);
        let descent = self.descent.restored(saved, &self.config.numbers())?;
        let mut critic = None;
        if state.contains_key("critic.scale") {
            let scale = saved.f32s("critic.scale", 2)?;
            let numbers = scale.len() / 2;
            if !(1..=MOST).contains(&numbers) {
                return bad(format!("a critic of {numbers} numbers; 1 to {MOST} are possible"));
            }
            let ShortHorizonConfig { critic_units, critic_batch, .. } = self.config;
            // Before a network of this size is allocated.
            let weights = saved.f32s("critic.params", 1)?.len();
            if weights < numbers.saturating_mul(critic_units) {
                return bad(format!(
                    "a critic of {numbers} numbers and {critic_units} units with {weights} weights"
                ));
            }
            let mut known = Critic::new(numbers, critic_units, critic_batch, descent.seed);
            known.scale = scale.as_chunks().0.to_vec();
            for (name, to) in [("params", &mut known.params), ("target", &mut known.target)] {
                let numbers = saved.f32s(&format!("critic.{name}"), 1)?;
                if numbers.len() != to.len() {
                    return bad(format!("a critic of {} weights; {} are due", numbers.len(), to.len()));
                }
                to.copy_from_slice(numbers);
            }
            let of_critic = state.iter().filter_map(|(name, tensor)| {
                Some((name.strip_prefix("critic.").filter(|name| name.starts_with("optimizer."))?, tensor))
            });
            let of_critic = of_critic.map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
            known.optimizer.restore(&of_critic)?;
            critic = Some(known);
        } else if descent.generation > 0 && self.config.whole_episodes {
            return bad("it has no critic".into());
        }
        (self.descent, self.critic) = (descent, critic);
        Ok(())
    }
}

/// The episodes of a round, checked; at least one, unless they may have ended before the steps to record.
fn differentiated(recordings: Vec<Recording>, whole: bool) -> Result<Vec<DifferentiatedEpisode>, LearnError> {
    let refused = |why: String| LearnError::Experience { why };
    if recordings.is_empty() {
        return Err(refused("a round of shac without any episode".into()));
    }
    let episode = |recording| match recording {
        Recording::Differentiated(episode) => {
            if !whole && episode.steps == 0 {
                return Ok(None);
            }
            episode.check().map_err(refused)?;
            Ok(Some(episode))
        }
        Recording::Demonstration(_) | Recording::Transitions(_) => {
            Err(refused("shac learns from the derivatives of steps, not from other recordings".into()))
        }
    };
    recordings.into_iter().filter_map(|recording| episode(recording).transpose()).collect()
}
