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

use std::sync::Arc;

use foveate_core::{
    DifferentiatedEpisode, Experience, GradientParts, LearnError, Learner, LossSums, Model, PartScratch,
    PolicyError, Record, Recording, Seed, StateDict, StateReader, Tensor, Windows,
};
use foveate_evolve::Optimizer;
use foveate_kernels::Level;
use foveate_learn::{
    Activations, Builder, Function, Linear, Network, Node, OptimizerConfig, loss, optimizer,
};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::descent::Descent;
use crate::descriptor::{
    JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom, parse,
};
use crate::evolution::vectors;
use crate::fingerprint::SettingsOrder;
use crate::imitation::below;
use crate::learning::{Learning, Measures, Method, Round, add};

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "shac",
    summary: "gradients of the return through the agent and the world's own equations, with a critic; no evolution",
    learns_from: LearnsFrom::Derivatives,
    schedulable: true,
    parse: parse::<ShortHorizonConfig>,
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
    /// True if the critic's slope counts where an episode terminated, as in all other windows.
    pub terminal_slope: bool,
    /// Bound of the norm of the gradient of a single episode, 0 for none. Where the world is chaotic, a few episodes have
    /// gradients a hundred times those of the others, and decide the direction of a step alone.
    #[serde(skip_serializing_if = "is_zero")]
    pub episode_clip: f64,
    /// True if whole episodes are recorded. If not, one window of each is, drawn from all that the limit of its steps allows;
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

/// See [`SettingsOrder`].
const ORDER: SettingsOrder = SettingsOrder {
    always: "horizon updates critic_updates critic_batch critic_units discount trace learning_rate \
             averaging clip critic_rounds critic_learning_rate critic_target terminal_slope",
    later: &[&[("whole_episodes", 1.0), ("episode_clip", 0.0)]],
    words: &[],
};

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
        let LearnerParts { weights, seed, model, fitness } = parts;
        let Some(model) = model else {
            let why = "shac needs an agent that learns by gradients; this one has no part that does".into();
            return Err(LearnError::BadConfig { why });
        };
        let learner = ShortHorizon::new(self.clone(), weights, seed, model.boxed_clone())?;
        Ok(Box::new(learner.with_fitness(fitness)))
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

/// The method; see the [module documentation](self).
pub struct ShortHorizonMethod {
    pub(crate) config: ShortHorizonConfig,
    level: Level,
    /// Made with the first round, which says how many numbers an observation has.
    critic: Option<Critic>,
    /// What the critic of a round that fails goes back to; `None` where there was no critic.
    before: Option<(Vec<f32>, Vec<f32>, optimizer::Optimizer)>,
    /// Of the last round with an update: the mean norm of its gradients.
    norm: Option<f64>,
}

/// The learner; see the [module documentation](self).
pub type ShortHorizon = Learning<ShortHorizonMethod>;

impl ShortHorizon {
    /// Starts at `weights`; all randomness derives from `seed`.
    ///
    /// # Errors
    /// When a setting is invalid, or `weights` are empty, not finite or not of the model's size.
    pub fn new(
        config: ShortHorizonConfig,
        weights: Vec<f64>,
        seed: Seed,
        mut model: Box<dyn Model>,
    ) -> Result<Self, LearnError> {
        config.check()?;
        let adam = |params| Optimizer::adam(params, config.learning_rate, 0.9, 0.99);
        let descent = Descent::double("shac", weights, seed, &mut *model, adam, config.averaging)?;
        let level = Level::best();
        let method = ShortHorizonMethod { config, level, critic: None, before: None, norm: None };
        Ok(Learning::of(method, descent, model))
    }
}

/// Windows of the episodes of a round, each episode a part.
struct EpisodeWindows {
    config: ShortHorizonConfig,
    episodes: Arc<Vec<DifferentiatedEpisode>>,
    windows: Vec<OwnWindows>,
}

/// Windows of an episode.
struct OwnWindows {
    /// Which of the episodes.
    episode: usize,
    /// See [`Windows`].
    ends: Vec<usize>,
    /// See [`Windows`].
    values: Vec<f32>,
    /// See [`Windows`].
    chosen: Vec<bool>,
}

/// The place in the sums of [`EpisodeWindows`] of the number of windows with a gradient.
const WINDOWS: usize = 1;

impl GradientParts for EpisodeWindows {
    fn count(&self) -> usize {
        self.windows.len()
    }

    fn study(
        &self,
        part: usize,
        model: &mut dyn Model,
        _: &mut PartScratch,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let OwnWindows { episode, ends, values, chosen } = &self.windows[part];
        let ShortHorizonConfig { discount, clip, .. } = self.config;
        let windows = Windows { ends, values, chosen, discount, clip };
        model.study_world(&self.episodes[*episode], &windows, gradient)?;
        let mut sums = LossSums::default();
        // Where the world is chaotic, a gradient may overflow; the others still count.
        if gradient.iter().all(|g: &f32| g.is_finite()) {
            sums[WINDOWS] = chosen.iter().filter(|&&chosen| chosen).count() as f64;
            let scale = self.config.scale(gradient);
            if scale != 1.0 {
                for g in gradient.iter_mut() {
                    *g *= scale;
                }
            }
        } else {
            gradient.fill(0.0);
        }
        Ok(sums)
    }
}

impl ShortHorizonMethod {
    /// The critic's part of a round: TD(λ) towards the values of its target network.
    fn teach_critic(
        &self,
        round: &Round<'_>,
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
            round.stop.check()?;
            let Descent { seed, generation, .. } = *round.descent;
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
        &self,
        round: &mut Round<'_>,
        critic: &mut Critic,
        episodes: &Arc<Vec<DifferentiatedEpisode>>,
        number: usize,
    ) -> Result<f64, LearnError> {
        let ShortHorizonConfig { horizon, discount, updates, terminal_slope, .. } = self.config;
        round.begin_update()?;
        let mut windows = vec![];
        for (index, episode) in episodes.iter().enumerate() {
            // The first window is a whole one: the critic does not see what the agent remembers, which differs most in the
            // first steps.
            let ends: Vec<usize> = (horizon..episode.steps).step_by(horizon).chain([episode.steps]).collect();
            let chosen: Vec<bool> =
                (0..ends.len()).map(|window| (window + index) % updates == number).collect();
            if !chosen.contains(&true) {
                continue;
            }
            let numbers = critic.scale.len();
            let mut values = vec![];
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
            windows.push(OwnWindows { episode: index, ends, values, chosen });
        }
        if windows.is_empty() {
            return Ok(0.0);
        }
        let (config, episodes) = (self.config.clone(), Arc::clone(episodes));
        let parts: Arc<dyn GradientParts> = Arc::new(EpisodeWindows { config, episodes, windows });
        let mut sums = LossSums::default();
        round.add_gradients(&parts, &mut |of_episode| add(&mut sums, of_episode))?;
        if sums[WINDOWS] == 0.0 {
            return Err(round.descent.diverged("no episode has a finite gradient"));
        }
        round.descent.step(0.0, sums[WINDOWS] as usize, round.gradient)
    }

    fn teach(
        &mut self,
        round: &mut Round<'_>,
        critic: &mut Critic,
        episodes: &Arc<Vec<DifferentiatedEpisode>>,
    ) -> Result<(), LearnError> {
        let generation = round.descent.generation;
        self.teach_critic(round, critic, episodes)?;
        if generation >= self.config.critic_rounds {
            let mut norm = 0.0;
            for number in 0..self.config.updates {
                norm += self.update(round, critic, episodes, number)?;
            }
            self.norm = Some(norm / self.config.updates as f64);
        }
        match critic.params.iter().chain(&critic.target).find(|x| !x.is_finite()) {
            None => Ok(()),
            Some(value) => {
                Err(LearnError::Diverged { generation, what: format!("a weight of the critic is {value}") })
            }
        }
    }
}

impl Method for ShortHorizonMethod {
    fn record(&self, _: &Descent) -> Record {
        if self.config.whole_episodes {
            Record::Derivatives
        } else {
            Record::Window { steps: self.config.horizon as u64 }
        }
    }

    fn numbers(&self) -> Vec<f64> {
        ORDER.numbers(self.config.table())
    }

    fn learn(&mut self, round: &mut Round<'_>, experience: Experience) -> Result<Measures, LearnError> {
        let episodes = differentiated(experience.recordings, self.config.whole_episodes)?;
        if let Some(numbers) = episodes.first().map(DifferentiatedEpisode::numbers) {
            if let Some(other) = episodes.iter().find(|episode| episode.numbers() != numbers) {
                let why =
                    format!("observations of {numbers} and of {} numbers in one round", other.numbers());
                return Err(LearnError::Experience { why });
            }
            if let Some(known) = self.critic.as_ref().filter(|known| known.scale.len() != numbers) {
                let why =
                    format!("observations of {numbers} numbers; those before had {}", known.scale.len());
                return Err(LearnError::Experience { why });
            }
            let mut critic = self.critic.take().unwrap_or_else(|| {
                let ShortHorizonConfig { critic_units, critic_batch, .. } = self.config;
                let mut critic = Critic::new(numbers, critic_units, critic_batch, round.descent.seed);
                critic.fit_scale(&episodes);
                critic
            });
            let taught = self.teach(round, &mut critic, &Arc::new(episodes));
            self.critic = Some(critic);
            taught?;
        }
        // Otherwise every episode ended before its window.
        Ok(self.norm.into_iter().map(|norm| ("gradient_norm", norm)).collect())
    }

    fn begin(&mut self) {
        self.before = self.critic.as_ref().map(Critic::learnt);
    }

    fn end(&mut self, learnt: bool) {
        let before = self.before.take();
        if !learnt {
            self.critic = before.and_then(|before| {
                let mut critic = self.critic.take()?;
                (critic.params, critic.target, critic.optimizer) = before;
                Some(critic)
            });
        }
    }

    fn save(&self, state: &mut StateDict) {
        if let Some(critic) = &self.critic {
            state.insert("critic.scale".into(), Tensor::from(critic.scale.as_flattened().to_vec()));
            state.insert("critic.params".into(), Tensor::from(critic.params.clone()));
            state.insert("critic.target".into(), Tensor::from(critic.target.clone()));
            let optimizer = critic.optimizer.state();
            state.extend(optimizer.into_iter().map(|(name, tensor)| (format!("critic.{name}"), tensor)));
        }
    }

    fn restore(&mut self, state: &StateDict, descent: &Descent) -> Result<(), LearnError> {
        let bad = |why: String| Err(LearnError::BadState { why });
        let saved = StateReader(state);
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
        self.critic = critic;
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
