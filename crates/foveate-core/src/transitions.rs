//! Transitions: observations, actions and rewards, step by step, for learners that need more than returns.

use serde::{Deserialize, Serialize};

use crate::episode::{AfterStep, BeforeChoice, BeforeStep, Observer, RawAction};
use crate::{Action, ActionBuf, Env, EpisodeResult, EvaluateError, Observation, ObservationBuf, RolloutJob};

/// An unroll: consecutive steps of an episode, at least one, and the observation after the last one.
///
/// The unrolls of an episode follow one another without a gap: the last observation of one is the first of
/// the next.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Unroll {
    /// `[steps + 1]`: the observation before each action, and the one after the last action.
    pub observations: Vec<ObservationBuf>,
    /// `[steps]`: the actions taken.
    pub actions: Vec<ActionBuf>,
    /// `[steps]`
    pub rewards: Vec<f64>,
    /// `[steps, choices]`: the policy's logits; empty when it has none.
    pub logits: Vec<f32>,
    /// `[steps]`: the policy's value estimates; empty when it has none.
    pub values: Vec<f32>,
    /// The policy's [recurrent state](crate::Policy::recurrent_state) before the first step; empty when learners need none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<f32>,
    /// The task ended with the last step; the value beyond is zero.
    pub terminated: bool,
    /// A limit or a training rule ended the episode with the last step; learners bootstrap from the final
    /// observation.
    pub truncated: bool,
}

/// One step of an [`Unroll`], borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition<'a> {
    /// The observation before the action.
    pub observation: Observation<'a>,
    /// The action taken.
    pub action: Action<'a>,
    /// The reward.
    pub reward: f64,
    /// The observation after the action, also at the end of an episode.
    pub next: Observation<'a>,
    /// The task ended with this step.
    pub terminated: bool,
    /// A limit or a training rule ended the episode with this step.
    pub truncated: bool,
    /// `[choices]`; empty for a policy without logits.
    pub logits: &'a [f32],
    /// The policy's value estimate; `None` when it has none.
    pub value: Option<f32>,
}

impl Unroll {
    /// Number of steps.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Returns whether there are no steps; never true in a recording.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Step `index`; `None` beyond the last.
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

/// Records the transitions of an episode, in bounded memory.
#[derive(Debug, Clone)]
pub struct TransitionRecorder {
    job: RolloutJob,
    unroll: usize,
    unrolls: Vec<Unroll>,
    /// The recurrent state before the next step, if an unroll begins with it.
    memory: Vec<f32>,
    /// Bytes used by observations and recurrent states.
    bytes: usize,
    most_bytes: usize,
}

/// Default limit of the observations' size in one episode, in bytes.
const MOST_BYTES: usize = 1 << 30;

impl TransitionRecorder {
    /// A recorder for one episode, with unrolls of `unroll` steps (0 counts as 1). Observations may use 1
    /// GiB.
    pub fn new(job: RolloutJob, unroll: usize) -> Self {
        TransitionRecorder {
            job,
            unroll: unroll.max(1),
            unrolls: Vec::new(),
            memory: Vec::new(),
            bytes: 0,
            most_bytes: MOST_BYTES,
        }
    }

    /// The same with another limit on the bytes of observations.
    #[must_use]
    pub const fn within(mut self, most_bytes: usize) -> Self {
        self.most_bytes = most_bytes;
        self
    }

    /// Returns the recorded unrolls.
    pub fn into_unrolls(self) -> Vec<Unroll> {
        self.unrolls
    }

    /// Returns whether an unroll begins with the next step.
    fn begins_unroll(&self) -> bool {
        self.unrolls.last().is_none_or(|unroll| unroll.len() == self.unroll)
    }

    /// Stores an observation at the end of the last unroll.
    fn see(&mut self, step: u64, observation: Observation<'_>) -> Result<(), EvaluateError> {
        self.count(step, bytes(observation))?;
        if let Some(unroll) = self.unrolls.last_mut() {
            unroll.observations.push(observation.into());
        }
        Ok(())
    }

    /// Counts `bytes` more.
    fn count(&mut self, step: u64, bytes: usize) -> Result<(), EvaluateError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most_bytes {
            let what = format!(
                "its recorded observations take more than {} bytes; shorten the episodes (max_steps), or record smaller \
                 observations",
                self.most_bytes
            );
            return Err(self.broken(step, what));
        }
        Ok(())
    }

    fn broken(&self, step: u64, what: String) -> EvaluateError {
        let RolloutJob { genome, episode, env_seed } = self.job;
        EvaluateError::Broken { genome, episode, env_seed, step: step + 1, what }
    }
}

/// Size of a stored observation in bytes.
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
    fn before_choice(&mut self, step: BeforeChoice<'_>) -> Result<(), EvaluateError> {
        if self.begins_unroll()
            && let Some(agent) = step.agent
        {
            self.memory.clear();
            agent.recurrent_state(&mut self.memory);
            self.count(step.step, size_of_val(&*self.memory))?;
        }
        Ok(())
    }

    fn before_step(&mut self, step: BeforeStep<'_>) -> Result<(), EvaluateError> {
        let BeforeStep { step, env, chosen } = step;
        if self.begins_unroll() {
            // The last observation of an unroll is the first of the next.
            if !self.unrolls.is_empty() {
                self.see(step, env.observation())?;
            }
            let memory = std::mem::take(&mut self.memory);
            self.unrolls.push(Unroll { memory, ..Unroll::default() });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::{Episode, EpisodeRules};
    use crate::{
        ActContext, ActionSpace, Agent, Decision, EnvError, EnvSpec, Fact, ImageBuf, ObservationSpace,
        Policy, PolicyAgent, PolicyError, Seed, Step, TensorShape,
    };

    const JOB: RolloutJob = RolloutJob { genome: 2, episode: 1, env_seed: 5 };

    /// A world that shows the number of steps taken, rewards ten times that number, and ends after `ends`
    /// steps.
    #[derive(Clone)]
    struct Counter {
        spec: EnvSpec,
        shown: [f32; 1],
        ends: usize,
        truncates: bool,
    }

    fn counter(ends: usize, truncates: bool) -> Counter {
        let spec = EnvSpec {
            id: "counter".into(),
            observation: ObservationSpace::Vector { len: 1 },
            action: ActionSpace::Discrete { n: 2 },
            max_steps: None,
            fps: 1.0,
        };
        Counter { spec, shown: [0.0], ends, truncates }
    }

    impl Env for Counter {
        fn spec(&self) -> &EnvSpec {
            &self.spec
        }
        fn reset(&mut self, _: Option<u64>) {
            self.shown = [0.0];
        }
        fn step(&mut self, _: Action<'_>) -> Result<Step, EnvError> {
            self.shown[0] += 1.0;
            let over = self.shown[0] as usize >= self.ends;
            let reward = 10.0 * f64::from(self.shown[0]);
            Ok(Step { reward, terminated: over && !self.truncates, truncated: over && self.truncates })
        }
        fn observation(&self) -> Observation<'_> {
            Observation::Vector(&self.shown)
        }
        fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
            Err(EnvError::NoView { env: "counter".into(), why: "there is nothing to see".into() })
        }
        fn state(&self) -> Fact {
            Fact::Number(self.shown[0].into())
        }
        fn boxed_clone(&self) -> Box<dyn Env> {
            Box::new(self.clone())
        }
    }

    /// Chooses 1 on odd observations; its logits are the observation, its value is the negated observation.
    #[derive(Clone)]
    struct Odd {
        estimates: bool,
    }

    impl Policy for Odd {
        type Memory = ([f64; 2], [f32; 2]);
        fn memory(&self) -> Self::Memory {
            ([0.0; 2], [0.0; 2])
        }
        fn reset(&self, memory: &mut Self::Memory, _: Seed) {
            *memory = self.memory();
        }
        fn recurrent_state(&self, memory: &Self::Memory, state: &mut Vec<f32>) {
            state.extend(self.estimates.then_some(memory.1[0]));
        }
        fn act<'m>(
            &self,
            observation: Observation<'_>,
            memory: &'m mut Self::Memory,
            context: &mut ActContext,
        ) -> Result<Decision<'m>, PolicyError> {
            let seen = observation.numbers().unwrap_or_default()[0];
            // The reward of the step before.
            assert_eq!(context.reward, 10.0 * f64::from(seen));
            *memory = ([0.5, f64::from(seen % 2.0)], [seen; 2]);
            let decision = Decision::new(&memory.0);
            if self.estimates {
                return Ok(Decision { logits: Some(&memory.1), value: Some(-seen), ..decision });
            }
            Ok(decision)
        }
        fn tensors(&self) -> Vec<TensorShape> {
            vec![]
        }
        fn params(&self) -> Vec<f32> {
            vec![]
        }
        fn set_params(&mut self, _: &[f32]) -> Result<(), PolicyError> {
            Ok(())
        }
    }

    fn record(
        mut world: Counter,
        rules: EpisodeRules,
        estimates: bool,
        mut recorder: TransitionRecorder,
    ) -> Result<Vec<Unroll>, EvaluateError> {
        let agent: &mut dyn Agent = &mut PolicyAgent::new(Odd { estimates });
        Episode::new(JOB, rules).run(&mut world, agent, &mut recorder)?;
        Ok(recorder.into_unrolls())
    }

    #[test]
    fn every_step_is_kept_and_so_is_the_final_observation() {
        for (steps, unroll, lengths) in
            [(5, 2, &[2, 2, 1][..]), (4, 2, &[2, 2]), (3, 9, &[3]), (2, 1, &[1, 1]), (1, 1, &[1])]
        {
            let recorder = TransitionRecorder::new(JOB, unroll);
            let unrolls = record(counter(steps, false), EpisodeRules::WHOLE, true, recorder).expect("fine");
            assert_eq!(unrolls.iter().map(Unroll::len).collect::<Vec<_>>(), lengths, "{steps} by {unroll}");
            let transitions: Vec<Transition<'_>> = unrolls.iter().flat_map(Unroll::iter).collect();
            assert_eq!(transitions.len(), steps);
            for (t, transition) in transitions.iter().enumerate() {
                let (seen, next) = ([t as f32], [t as f32 + 1.0]);
                let expect = Transition {
                    observation: Observation::Vector(&seen),
                    action: Action::Discrete(t % 2),
                    reward: 10.0 * (t as f64 + 1.0),
                    next: Observation::Vector(&next),
                    terminated: t + 1 == steps,
                    truncated: false,
                    logits: &[seen[0]; 2],
                    value: Some(-seen[0]),
                };
                assert_eq!(*transition, expect, "step {t} of {steps} by {unroll}");
            }
            assert_eq!(unrolls[0].get(unroll), None);
            // The recurrent state before an unroll is here the observation of the step before.
            let begins = (0..steps).step_by(unroll).map(|t| vec![t.saturating_sub(1) as f32]);
            assert!(begins.eq(unrolls.iter().map(|unroll| unroll.memory.clone())), "{steps} by {unroll}");
        }
    }

    #[test]
    fn how_an_episode_ended_stands_in_its_last_stretch_alone() {
        let whole = EpisodeRules::WHOLE;
        let limit = EpisodeRules { max_steps: 3, ..whole };
        for (world, rules, terminated) in [
            (counter(4, false), whole, true),
            (counter(4, true), whole, false),
            (counter(9, false), limit, false),
        ] {
            let unrolls = record(world, rules, false, TransitionRecorder::new(JOB, 2)).expect("fine");
            assert_eq!(unrolls.len(), 2);
            assert!(!unrolls[0].terminated && !unrolls[0].truncated);
            assert_eq!((unrolls[1].terminated, unrolls[1].truncated), (terminated, !terminated));
            // A policy without logits and values records none.
            let first = unrolls[0].get(0).expect("a step");
            assert_eq!((first.logits, first.value), (&[][..], None));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let each = 4 + size_of::<ObservationBuf>();
        let of = |bytes| {
            let recorder = TransitionRecorder::new(JOB, 100).within(bytes);
            record(counter(9, false), EpisodeRules::WHOLE, false, recorder)
        };
        assert_eq!(of(10 * each).expect("nine steps and the end").len(), 1);
        let said = of(10 * each - 1).expect_err("one too many").to_string();
        assert!(
            said.starts_with("genome 2, episode 1 (seed 5), step 10: its recorded observations"),
            "{said}"
        );
        assert!(said.contains(&format!("more than {} bytes; shorten", 10 * each - 1)), "{said}");
    }

    #[test]
    fn a_recording_survives_serialisation() {
        let recorder = TransitionRecorder::new(JOB, 2);
        let unrolls = record(counter(5, false), EpisodeRules::WHOLE, true, recorder).expect("fine");
        let text = serde_json::to_string(&unrolls).expect("plain values");
        assert_eq!(serde_json::from_str::<Vec<Unroll>>(&text).expect("its own"), unrolls);
    }
}
