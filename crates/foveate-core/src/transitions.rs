//! Transitions: what was seen, done and paid, step by step, for learners that need more than returns.

use serde::{Deserialize, Serialize};

use crate::episode::{AfterStep, BeforeStep, Observer, RawAction};
use crate::{Action, ActionBuf, Env, EpisodeResult, EvaluateError, Observation, ObservationBuf, RolloutJob};

/// A stretch of an episode: at least one step, and the observation after the last one.
///
/// The stretches of an episode follow one another without a gap: the last observation of one is the first of the next.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Unroll {
    /// `[steps + 1]`: what each action was chosen on, and what the last one led to.
    pub observations: Vec<ObservationBuf>,
    /// `[steps]`: what the world was given.
    pub actions: Vec<ActionBuf>,
    /// `[steps]`
    pub rewards: Vec<f64>,
    /// `[steps, choices]`: of a policy that has them, else empty.
    pub logits: Vec<f32>,
    /// `[steps]`: the return that the policy expected, of a policy that estimates one, else empty.
    pub values: Vec<f32>,
    /// The task ended with the last step; the value beyond is zero.
    pub terminated: bool,
    /// The episode was ended with the last step by a limit or a training rule; learners bootstrap from the final observation.
    pub truncated: bool,
}

/// One step of an [`Unroll`], borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition<'a> {
    /// What the action was chosen on.
    pub observation: Observation<'a>,
    /// What the world was given.
    pub action: Action<'a>,
    /// What it paid.
    pub reward: f64,
    /// What the action led to, at the end of an episode, too.
    pub next: Observation<'a>,
    /// The task ended with this step.
    pub terminated: bool,
    /// The episode was ended with this step by a limit or a training rule.
    pub truncated: bool,
    /// `[choices]`; empty for a policy without logits.
    pub logits: &'a [f32],
    /// The return that the policy expected; `None` for a policy that estimates none.
    pub value: Option<f32>,
}

impl Unroll {
    /// How many steps.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether there are none; never so in a recording.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Step `index`; `None` behind the last.
    pub fn get(&self, index: usize) -> Option<Transition<'_>> {
        let last = index + 1 == self.len();
        let choices = self.logits.len() / self.len().max(1);
        Some(Transition {
            observation: self.observations.get(index)?.as_observation(),
            action: self.actions.get(index)?.as_action(),
            reward: *self.rewards.get(index)?,
            next: self.observations.get(index + 1)?.as_observation(),
            terminated: last && self.terminated,
            truncated: last && self.truncated,
            logits: self.logits.get(index * choices..(index + 1) * choices)?,
            value: self.values.get(index).copied(),
        })
    }

    /// All steps in order.
    pub fn iter(&self) -> impl Iterator<Item = Transition<'_>> {
        (0..self.len()).map_while(|index| self.get(index))
    }
}

/// Writes the transitions of an episode, in bounded memory.
#[derive(Debug, Clone)]
pub struct TransitionRecorder {
    job: RolloutJob,
    unroll: usize,
    unrolls: Vec<Unroll>,
    /// Bytes that the observations take.
    bytes: usize,
    most_bytes: usize,
}

/// Bytes of observations that one episode may take by default.
const MOST_BYTES: usize = 1 << 30;

impl TransitionRecorder {
    /// For one episode, in stretches of `unroll` steps, 0 for stretches of one step. Observations may take 1 GiB.
    pub fn new(job: RolloutJob, unroll: usize) -> Self {
        TransitionRecorder {
            job,
            unroll: unroll.max(1),
            unrolls: Vec::new(),
            bytes: 0,
            most_bytes: MOST_BYTES,
        }
    }

    /// The same with another bound on the bytes of observations.
    #[must_use]
    pub const fn within(mut self, most_bytes: usize) -> Self {
        self.most_bytes = most_bytes;
        self
    }

    /// What was written.
    pub fn into_unrolls(self) -> Vec<Unroll> {
        self.unrolls
    }

    /// Stores an observation at the end of the last stretch.
    fn see(&mut self, step: u64, observation: Observation<'_>) -> Result<(), EvaluateError> {
        self.bytes = self.bytes.saturating_add(bytes(observation));
        if self.bytes > self.most_bytes {
            let what = format!(
                "its recorded observations take more than {} bytes; shorten the episodes (max_steps), or record smaller \
                 observations",
                self.most_bytes
            );
            return Err(self.broken(step, what));
        }
        if let Some(unroll) = self.unrolls.last_mut() {
            unroll.observations.push(observation.into());
        }
        Ok(())
    }

    fn broken(&self, step: u64, what: String) -> EvaluateError {
        let RolloutJob { genome, episode, env_seed } = self.job;
        EvaluateError::Broken { genome, episode, env_seed, step: step + 1, what }
    }
}

/// What an observation takes when it is stored.
fn bytes(observation: Observation<'_>) -> usize {
    let own = match observation {
        Observation::Image(pixels) => pixels.bytes().len(),
        Observation::Vector(numbers) => 4 * numbers.len(),
        Observation::Grid(grid) => grid.codes().len(),
        Observation::Dict(parts) => (0..parts.count())
            .filter_map(|i| parts.part(i))
            .map(|(name, part)| name.len() + bytes(part))
            .sum(),
    };
    own + size_of::<ObservationBuf>()
}

impl Observer for TransitionRecorder {
    fn before_step(&mut self, step: BeforeStep<'_>) -> Result<(), EvaluateError> {
        let BeforeStep { step, env, chosen } = step;
        if self.unrolls.last().is_none_or(|unroll| unroll.len() == self.unroll) {
            // What ends one stretch begins the next.
            if !self.unrolls.is_empty() {
                self.see(step, env.observation())?;
            }
            self.unrolls.push(Unroll::default());
        }
        self.see(step, env.observation())?;
        let action: ActionBuf = match chosen.action {
            RawAction::Choice(choice) => ActionBuf::Discrete(choice),
            RawAction::Outputs(outputs) => {
                let action = env.spec().action.choose(outputs);
                action.map_err(|error| self.broken(step, error.to_string()))?.into()
            }
        };
        let Some(unroll) = self.unrolls.last_mut() else { return Ok(()) };
        unroll.actions.push(action);
        if let Some(decision) = chosen.decision {
            unroll.logits.extend_from_slice(decision.logits.unwrap_or_default());
            unroll.values.extend(decision.value);
        }
        Ok(())
    }

    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), EvaluateError> {
        if let Some(unroll) = self.unrolls.last_mut() {
            unroll.rewards.push(step.outcome.reward);
        }
        Ok(())
    }

    fn end(&mut self, env: &dyn Env, result: EpisodeResult) -> Result<(), EvaluateError> {
        self.see(result.steps, env.observation())?;
        if let Some(unroll) = self.unrolls.last_mut() {
            (unroll.terminated, unroll.truncated) = (result.terminated, result.truncated || result.cut);
        }
        Ok(())
    }
}
