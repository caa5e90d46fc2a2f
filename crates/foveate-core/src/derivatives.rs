//! Derivatives of a world's steps, for learners that follow the gradient of the return through world and policy.
//!
//! A world whose equations are smooth gives the derivatives of a step ([`Env::derivatives`]); an episode with those of
//! all its steps is a [`DifferentiatedEpisode`]. Learners never see the world itself.

use serde::{Deserialize, Serialize};

use crate::episode::{Actor, ActorError, AfterStep, Chosen, Observer, RawAction};
use crate::{ActContext, Agent, Env, EpisodeResult, EvaluateError, PolicyError, RolloutJob, Seed};

/// The derivatives of one step with respect to the state before it, a vector of the world's choice, and to the action.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepDerivatives {
    /// `[states, states + actions]`: those of the next state.
    pub state: Vec<f64>,
    /// `[states + actions]`: those of the reward.
    pub reward: Vec<f64>,
    /// `[numbers, states]`: those of the observation before the step.
    pub observation: Vec<f64>,
}

/// An episode with the derivatives of its steps; the agent's own actions, without exploration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DifferentiatedEpisode {
    /// Steps before the recorded ones, of which only `inputs` are recorded.
    #[serde(default)]
    pub begin: usize,
    /// Number of recorded steps; 0 when the episode ended before them.
    pub steps: usize,
    /// Length of the state.
    pub states: usize,
    /// `[begin + steps, inputs]`: the numbers of [`Agent::study_inputs`].
    pub inputs: Vec<f32>,
    /// `[steps + 1, numbers]`: the observation before each step, and the final one.
    pub observations: Vec<f32>,
    /// `[steps]`
    pub rewards: Vec<f32>,
    /// `[steps, states, states + actions]`, see [`StepDerivatives::state`].
    pub state: Vec<f32>,
    /// `[steps, states + actions]`, see [`StepDerivatives::reward`].
    pub reward: Vec<f32>,
    /// `[steps + 1, numbers, states]`, see [`StepDerivatives::observation`].
    pub observation: Vec<f32>,
    /// The task ended with the last step; the value beyond is zero.
    pub terminated: bool,
}

impl DifferentiatedEpisode {
    /// Length of an observation, which must be as long in every step.
    pub fn numbers(&self) -> usize {
        self.observations.len() / self.steps.saturating_add(1)
    }

    /// Length of an action.
    pub fn actions(&self) -> usize {
        (self.reward.len() / self.steps.max(1)).saturating_sub(self.states)
    }

    /// Checks that all lengths belong together.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn check(&self) -> Result<(), String> {
        let (steps, states) = (self.steps, self.states);
        let (numbers, actions) = (self.numbers(), self.actions());
        let wide = states.saturating_add(actions);
        let seen = steps.saturating_add(1).saturating_mul(numbers);
        for (what, len, wanted) in [
            ("observations", self.observations.len(), seen),
            ("rewards", self.rewards.len(), steps),
            ("derivatives of the state", self.state.len(), steps.saturating_mul(states).saturating_mul(wide)),
            ("derivatives of the reward", self.reward.len(), steps.saturating_mul(wide)),
            ("derivatives of the observation", self.observation.len(), seen.saturating_mul(states)),
        ] {
            if len != wanted || steps == 0 || states == 0 || actions == 0 || numbers == 0 {
                return Err(format!(
                    "an episode of {steps} steps, {states} states, {actions} actions and {numbers} numbers with {len} \
                     {what}, not {wanted}"
                ));
            }
        }
        let all =
            [&self.inputs, &self.observations, &self.rewards, &self.state, &self.reward, &self.observation];
        if !all.into_iter().flatten().all(|x| x.is_finite()) {
            return Err("an episode with numbers that are not finite".into());
        }
        Ok(())
    }
}

/// How an episode is divided for [`Model::study_world`](crate::Model::study_world).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windows<'a> {
    /// The step after the last one of each window, ascending, from 1; the last is the number of steps.
    pub ends: &'a [usize],
    /// `[ends, numbers]`: the derivative of the value after each window with respect to the observation there.
    pub values: &'a [f32],
    /// `[ends]`: which windows count; the others add nothing.
    pub chosen: &'a [bool],
    /// Factor per step of rewards to come, above 0 and below 1.
    pub discount: f64,
    /// Bound of the derivatives with respect to the world's state and to the policy's memory, above 0.
    pub clip: f64,
}

impl Windows<'_> {
    /// The sum of the discounted rewards of the chosen windows, in the units of [`Model::study_world`](crate::Model::study_world),
    /// without the values after them.
    pub fn returns(&self, episode: &DifferentiatedEpisode) -> f64 {
        let from = std::iter::once(0).chain(self.ends.iter().copied());
        from.zip(self.ends)
            .zip(self.chosen)
            .filter(|(_, chosen)| **chosen)
            .flat_map(|((from, &to), _)| episode.rewards[from..to].iter().enumerate())
            .map(|(t, &reward)| (1.0 - self.discount) * self.discount.powf(t as f64) * f64::from(reward))
            .sum()
    }
}

/// Backpropagation through the world: from the derivatives of the negative return with respect to the policy's inputs of a
/// step to those with respect to its outputs of the step before.
pub struct ThroughWorld<'a> {
    episode: &'a DifferentiatedEpisode,
    windows: Windows<'a>,
    /// The action's change per change of the policy's output.
    scale: Vec<f64>,
    /// Index of the window of the step after the one that is due.
    window: usize,
    /// `(1 − discount) discount^t` of the step that is due, in its window.
    factor: f64,
    /// `[states]`: derivative with respect to the state after the step that is due.
    pulled: Vec<f64>,
    /// `[states]`: scratch.
    before: Vec<f64>,
}

impl<'a> ThroughWorld<'a> {
    /// Begins at the end of the episode; `scale` (`[actions]`) are the changes of the actions per change of the policy's
    /// outputs.
    ///
    /// # Errors
    /// When lengths contradict each other.
    pub fn new(
        episode: &'a DifferentiatedEpisode,
        windows: Windows<'a>,
        scale: Vec<f64>,
    ) -> Result<Self, PolicyError> {
        let Windows { ends, values, chosen, discount, .. } = windows;
        let ascending =
            ends.windows(2).all(|pair| pair[0] < pair[1]) && ends.first().is_some_and(|&first| first > 0);
        let why = episode.check().err().or_else(|| {
            let fits = ascending
                && ends.last() == Some(&episode.steps)
                && values.len() == ends.len() * episode.numbers()
                && chosen.len() == ends.len()
                && scale.len() == episode.actions()
                && discount > 0.0
                && discount < 1.0;
            (!fits).then(|| {
                format!("windows that end at {ends:?} of {} steps, discount {discount}", episode.steps)
            })
        });
        if let Some(why) = why {
            return Err(PolicyError::BadConfig { why });
        }
        let (pulled, before) = (vec![0.0; episode.states], vec![0.0; episode.states]);
        Ok(ThroughWorld { episode, windows, scale, window: ends.len(), factor: 0.0, pulled, before })
    }

    /// The bound of derivatives that are passed from step to step.
    pub const fn clip(&self) -> f64 {
        self.windows.clip
    }

    /// Writes to `pull` (`[actions]`) the derivative with respect to the outputs of step `t`. `next` holds those with respect
    /// to the inputs of step `t + 1`: the numbers of the observation, then, where the policy sees it, its own output of step
    /// `t`; it is not read at the last step. Steps must come from the last to the first. Returns whether `t` and `t + 1` are
    /// in the same window.
    pub fn pull(&mut self, t: usize, next: &[f32], pull: &mut [f32]) -> bool {
        let ThroughWorld { episode, windows, scale, window, factor, pulled, before } = self;
        let (states, numbers, n) = (episode.states, episode.numbers(), scale.len());
        let Windows { ends, values, chosen, discount, clip } = *windows;
        let begins = |window: usize| if window == 0 { 0 } else { ends[window - 1] };
        let is_last = t + 1 == begins(*window);
        // Through the observation after the step: to the policy's next decision, or to the value after the window.
        let (seen, sign) = if is_last {
            *window -= 1;
            let (length, counts) = (t - begins(*window), f64::from(u8::from(chosen[*window])));
            *factor = (1.0 - discount) * discount.powf(length as f64) * counts;
            pulled.fill(0.0);
            (&values[*window * numbers..][..numbers], -counts)
        } else {
            *factor /= discount;
            (&next[..numbers], 1.0)
        };
        let observation = &episode.observation[(t + 1) * numbers * states..][..numbers * states];
        for (&d, row) in seen.iter().zip(observation.chunks_exact(states)) {
            for (to, &slope) in pulled.iter_mut().zip(row) {
                *to += sign * f64::from(d) * f64::from(slope);
            }
        }
        let most = pulled.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        if most > clip {
            for x in &mut *pulled {
                *x *= clip / most;
            }
        }
        // Through the step.
        let wide = states + n;
        let rows = &episode.state[t * states * wide..][..states * wide];
        let reward = &episode.reward[t * wide..][..wide];
        let mut own = next.get(numbers..).unwrap_or_default().iter();
        for (i, (pull, scale)) in pull.iter_mut().zip(scale).enumerate() {
            let column = rows.chunks_exact(wide).map(|row| f64::from(row[states + i]));
            let through: f64 = pulled.iter().zip(column).map(|(d, slope)| d * slope).sum();
            *pull = ((through - *factor * f64::from(reward[states + i])) * *scale) as f32;
            if !is_last {
                *pull += own.next().unwrap_or(&0.0);
            }
        }
        for (before, &slope) in before.iter_mut().zip(reward) {
            *before = -*factor * f64::from(slope);
        }
        for (d, row) in pulled.iter().zip(rows.chunks_exact(wide)) {
            for (to, &slope) in before.iter_mut().zip(row) {
                *to += d * f64::from(slope);
            }
        }
        std::mem::swap(pulled, before);
        !is_last
    }
}

/// Acts with the agent and records a [`DifferentiatedEpisode`], but for what only the end of a step tells, which a
/// [`StepEnds`] records.
pub struct DifferentiatingActor<'a> {
    agent: &'a mut dyn Agent,
    episode: &'a mut DifferentiatedEpisode,
    begin: u64,
    derivatives: StepDerivatives,
    action: Vec<f64>,
}

impl<'a> DifferentiatingActor<'a> {
    /// An actor for one episode, which records from step `begin` on; clears `episode`.
    pub fn new(agent: &'a mut dyn Agent, episode: &'a mut DifferentiatedEpisode, begin: u64) -> Self {
        *episode = DifferentiatedEpisode::default();
        let derivatives = StepDerivatives::default();
        DifferentiatingActor { agent, episode, begin, derivatives, action: vec![] }
    }
}

impl Actor for DifferentiatingActor<'_> {
    fn begin_episode(&mut self, episode: Seed) {
        self.agent.begin_episode(episode);
    }

    fn act(
        &mut self,
        env: &mut dyn Env,
        step: u64,
        context: &mut ActContext,
    ) -> Result<Chosen<'_>, ActorError> {
        let DifferentiatingActor { agent, episode, begin, derivatives, action } = self;
        let decision = agent.act(env.observation(), context)?;
        action.clear();
        action.extend_from_slice(decision.action);
        let Some(numbers) = env.observation().numbers() else {
            let why = "gradients through a world need observations that are numbers; this one shows pictures"
                .into();
            return Err(PolicyError::BadConfig { why }.into());
        };
        let inputs = agent.study_inputs()?;
        if inputs.numbers.is_empty() || !inputs.picture.is_empty() {
            let why =
                "this agent cannot learn through a world's equations; attention-neuron on numbers can".into();
            return Err(PolicyError::BadConfig { why }.into());
        }
        let single = |from: &[f64], to: &mut Vec<f32>| to.extend(from.iter().map(|&x| x as f32));
        episode.inputs.extend_from_slice(inputs.numbers);
        if step < *begin {
            episode.begin += 1;
            return Ok(Chosen { action: RawAction::Outputs(action), decision: None });
        }
        env.derivatives(action, derivatives)?;
        episode.observations.extend_from_slice(numbers);
        single(&derivatives.state, &mut episode.state);
        single(&derivatives.reward, &mut episode.reward);
        single(&derivatives.observation, &mut episode.observation);
        episode.states = derivatives.observation.len() / numbers.len().max(1);
        episode.steps += 1;
        Ok(Chosen { action: RawAction::Outputs(action), decision: None })
    }

    fn agent(&self) -> Option<&dyn Agent> {
        Some(&*self.agent)
    }
}

/// Records the rewards of an episode, its final observation and that one's derivatives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepEnds {
    job: RolloutJob,
    begin: u64,
    rewards: Vec<f32>,
    last: Vec<f32>,
    derivatives: StepDerivatives,
    terminated: bool,
}

impl StepEnds {
    /// A recorder for the episode of this job, from step `begin` on.
    pub fn new(job: RolloutJob, begin: u64) -> Self {
        StepEnds { job, begin, ..StepEnds::default() }
    }

    /// Adds what it recorded to the episode.
    pub fn complete(self, episode: &mut DifferentiatedEpisode) {
        let StepEnds { rewards, last, derivatives, terminated, .. } = self;
        episode.rewards = rewards;
        episode.observations.extend(last);
        episode.observation.extend(derivatives.observation.iter().map(|&x| x as f32));
        episode.terminated = terminated;
    }
}

impl Observer for StepEnds {
    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), EvaluateError> {
        if step.step >= self.begin {
            self.rewards.push(step.outcome.reward as f32);
        }
        Ok(())
    }

    fn end(&mut self, env: &dyn Env, result: EpisodeResult) -> Result<(), EvaluateError> {
        self.terminated = result.terminated;
        if self.rewards.is_empty() {
            return Ok(());
        }
        let RolloutJob { genome, episode, env_seed } = self.job;
        let zeros = vec![0.0; env.spec().action.bounds().len()];
        let step = result.steps;
        env.derivatives(&zeros, &mut self.derivatives).map_err(|source| EvaluateError::Env {
            genome,
            episode,
            env_seed,
            step,
            source,
        })?;
        self.last.extend_from_slice(env.observation().numbers().unwrap_or_default());
        Ok(())
    }
}
