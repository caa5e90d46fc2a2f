//! Episodes, watched decision by decision.

use std::sync::{Mutex, PoisonError};

use crate::trajectory::{ActionScale, Trajectory};
use foveate_core::episode::{self, AfterStep, BeforeChoice, BeforeStep, EpisodeRules, Observer};
use foveate_core::{
    ActContext, Agent, Decision, Env, EnvSpec, EpisodeResult, EvaluateError, PatchGrid, PolicyError,
    RolloutJob, Seed, episode_seed,
};

use super::fields::Fields;
use super::probes::located;
use super::random_agent::random_weights;
use super::seen::{SeenPicture, pictures};
use super::{StudyError, StudyRequest};

/// A world that was just reset, and who drives.
pub(super) struct EpisodeStart {
    pub(super) env: Box<dyn Env>,
    pub(super) agent: Box<dyn Agent>,
    /// Which episode of which stream; for error messages.
    pub(super) job: RolloutJob,
    pub(super) max_steps: usize,
}

/// Worlds at the start of every episode of a stream, and who drives; each job takes copies.
pub(super) struct Starts(Vec<Mutex<EpisodeStart>>);

impl Starts {
    pub(super) fn new(
        env: &dyn Env,
        agent: &dyn Agent,
        env_seed: u64,
        episodes: usize,
        max_steps: Option<usize>,
    ) -> Self {
        let mut env = env.boxed_clone();
        let start = |episode: usize| {
            env.reset((episode == 0).then_some(env_seed));
            let (env, agent, job) =
                (env.boxed_clone(), agent.boxed_clone(), RolloutJob { genome: 0, episode, env_seed });
            Mutex::new(EpisodeStart { env, agent, job, max_steps: max_steps.unwrap_or(usize::MAX) })
        };
        Starts((0..episodes).map(start).collect())
    }

    /// Those of a study.
    pub(super) fn of(request: &StudyRequest<'_>) -> Self {
        Self::new(request.env, request.agent, request.seed, request.episodes, request.max_steps)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A copy of the start of an episode.
    pub(super) fn get(&self, episode: usize) -> EpisodeStart {
        self.0[episode].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An agent with random weights, for an episode.
    pub(super) fn random(&self, episode: usize, seed: Seed) -> Box<dyn Agent> {
        random_weights(&*self.get(episode).agent, seed.child("random weights", episode as u64))
    }
}

/// What `of` makes of an agent's first decision in a world; `None` where the agent does not fit it.
pub(super) fn first_decision<T>(
    env: &dyn Env,
    agent: &dyn Agent,
    seed: u64,
    of: impl FnOnce(&dyn Env, Decision<'_>) -> T,
) -> Option<T> {
    let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
    env.reset(Some(seed));
    agent.begin_episode(episode_seed(seed, 0));
    let decided = agent.act(env.observation(), &mut ActContext::default()).ok()?;
    Some(of(&*env, decided))
}

impl Clone for EpisodeStart {
    fn clone(&self) -> Self {
        let EpisodeStart { env, agent, job, max_steps } = self;
        EpisodeStart { env: env.boxed_clone(), agent: agent.boxed_clone(), job: *job, max_steps: *max_steps }
    }
}

/// A decision as it is taken.
pub(super) struct ObservedStep<'a> {
    /// The one, from 0.
    pub(super) step: usize,
    /// What it was taken on.
    pub(super) seen: &'a SeenPicture,
    /// The world before it.
    pub(super) env: &'a dyn Env,
    /// Agent and context as they were before the decision, if that was asked for.
    pub(super) before: Option<(Box<dyn Agent>, ActContext)>,
    /// What was decided, and where the agent looked.
    pub(super) decision: Decision<'a>,
    /// The places of the picture that importance and claim are over, if it attends to some.
    pub(super) grid: Option<PatchGrid>,
    /// `[n_patches]`: importance of the places of the picture; empty when it attends to none.
    pub(super) importance: &'a [f32],
    /// The places that it claims to matter, most important first.
    pub(super) claim: &'a [u32],
}

/// How actions of this world are compared.
pub(super) fn action_scale(spec: &EnvSpec) -> ActionScale {
    if spec.action.is_discrete() { ActionScale::Choices } else { ActionScale::Box(spec.action.bounds()) }
}

/// Plays the episode; attention over cells is located by `fields`. `look` is shown every decision, with the agent as it was before those that `keep` names. Gives
/// the episode and the start at its end.
pub(super) fn play(
    mut start: EpisodeStart,
    fields: Option<&Fields>,
    keep: &dyn Fn(usize) -> bool,
    look: &mut dyn FnMut(ObservedStep<'_>) -> Result<(), StudyError>,
) -> Result<(Trajectory, EpisodeStart), StudyError> {
    let mut watcher = Watcher { fields, keep, look, before: None, episode: Trajectory::default() };
    start.run(&mut watcher)?;
    Ok((watcher.episode, start))
}

impl EpisodeStart {
    /// Plays the episode.
    pub(super) fn run(
        &mut self,
        observer: &mut dyn Observer<StudyError>,
    ) -> Result<EpisodeResult, StudyError> {
        let rules = EpisodeRules { max_steps: self.max_steps as u64, ..EpisodeRules::WHOLE };
        let mut episode = episode::Episode::new(self.job, rules);
        episode.resume(&mut *self.agent);
        episode.finish(&mut *self.env, &mut *self.agent, observer)
    }
}

/// Writes an episode down and shows its decisions to someone.
struct Watcher<'a> {
    fields: Option<&'a Fields>,
    keep: &'a dyn Fn(usize) -> bool,
    look: &'a mut dyn FnMut(ObservedStep<'_>) -> Result<(), StudyError>,
    before: Option<(Box<dyn Agent>, ActContext)>,
    episode: Trajectory,
}

impl Observer<StudyError> for Watcher<'_> {
    fn before_choice(&mut self, now: BeforeChoice<'_>) -> Result<(), StudyError> {
        pictures(now.env)?;
        let kept = now.agent.filter(|_| (self.keep)(now.step as usize));
        self.before = kept.map(|agent| (agent.boxed_clone(), now.context.clone()));
        Ok(())
    }

    fn before_step(&mut self, BeforeStep { step, env, chosen }: BeforeStep<'_>) -> Result<(), StudyError> {
        let Some(decision) = chosen.decision else { return Ok(()) };
        let (mut selected, mut shares, mut importance) = (Vec::new(), Vec::new(), Vec::new());
        let grid = decision.attention.as_ref().and_then(|attention| attention.tokens().grid());
        let seen = SeenPicture::of(env, grid)?;
        let mut places = None;
        let attention = decision.attention.as_ref();
        if let Some(located) = attention.and_then(|attention| located(attention, &seen, self.fields)) {
            places = Some(located.grid);
            self.episode.grid = places;
            (selected, importance) = (located.claim, located.importance);
            let all: f32 = importance.iter().sum();
            let of = |&patch: &u32| importance.get(patch as usize).copied().unwrap_or(0.0);
            shares.extend(selected.iter().map(|patch| if all > 0.0 { of(patch) / all } else { 0.0 }));
        }
        self.episode.actions.push(decision.action.to_vec());
        self.episode.shares.push(shares);
        let (step, seen, before) = (step as usize, &seen, self.before.take());
        let (importance, claim) = (&importance[..], &selected[..]);
        (self.look)(ObservedStep { step, seen, env, before, decision, grid: places, importance, claim })?;
        self.episode.selected.push(selected);
        Ok(())
    }

    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), StudyError> {
        self.episode.rewards.push(step.outcome.reward);
        self.episode.ended = step.outcome.is_over();
        Ok(())
    }
}

pub(super) fn policy_error(job: RolloutJob, step: usize, source: PolicyError) -> StudyError {
    let RolloutJob { genome, episode, env_seed } = job;
    EvaluateError::Policy { genome, episode, env_seed, step: step as u64 + 1, source }.into()
}

/// What is called before a decision.
type BeforeDecision<'a> = dyn FnMut(usize, &dyn Env, &dyn Agent, &ActContext) -> Result<(), StudyError> + 'a;

/// Plays an episode again and calls `each` before the decisions at `steps`, with the agent and its context as they then
/// are.
pub(super) fn replay(
    start: EpisodeStart,
    steps: &[usize],
    each: &mut BeforeDecision<'_>,
) -> Result<(), StudyError> {
    start.until(steps).watch(steps, each)?;
    Ok(())
}

impl EpisodeStart {
    /// The same, truncated after the last of `steps`.
    pub(super) fn until(mut self, steps: &[usize]) -> Self {
        let last = steps.iter().max().map_or(0, |last| last + 1);
        self.max_steps = self.max_steps.min(last);
        self
    }

    /// Plays the episode and calls `each` before the decisions at `steps`.
    pub(super) fn watch(
        mut self,
        steps: &[usize],
        each: &mut BeforeDecision<'_>,
    ) -> Result<EpisodeResult, StudyError> {
        self.run(&mut Replayer { steps, each })
    }
}

struct Replayer<'a> {
    steps: &'a [usize],
    each: &'a mut BeforeDecision<'a>,
}

impl Observer<StudyError> for Replayer<'_> {
    fn before_choice(&mut self, now: BeforeChoice<'_>) -> Result<(), StudyError> {
        match now.agent {
            Some(agent) if self.steps.contains(&(now.step as usize)) => {
                (self.each)(now.step as usize, now.env, agent, now.context)
            }
            _ => Ok(()),
        }
    }
}
