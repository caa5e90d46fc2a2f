//! Episodes, watched decision by decision.

use foveate_core::{
    ActContext, ActMode, Action, ActionSpace, Agent, Decision, Env, EnvError, EnvSpec, EvaluateError, Image,
    Observation, PolicyError, RolloutJob,
};
use foveate_explain::episode::{ActionScale, Episode};

use super::study::claim;
use crate::RunError;
use crate::rollout::first_largest;

/// A world that was just reset, and who drives.
pub(super) struct Seat {
    pub(super) env: Box<dyn Env>,
    pub(super) agent: Box<dyn Agent>,
    /// Which episode of which stream; for error messages.
    pub(super) job: RolloutJob,
    pub(super) max_steps: usize,
}

impl Clone for Seat {
    fn clone(&self) -> Self {
        let Seat { env, agent, job, max_steps } = self;
        Seat { env: env.boxed_clone(), agent: agent.boxed_clone(), job: *job, max_steps: *max_steps }
    }
}

/// A decision as it is taken.
pub(super) struct Moment<'a> {
    /// Which one, from 0.
    pub(super) step: usize,
    /// What it was taken on.
    pub(super) picture: Image<'a>,
    /// The world before it.
    pub(super) env: &'a dyn Env,
    /// The agent and its context as they were before it decided, if that was asked for.
    pub(super) before: Option<(Box<dyn Agent>, ActContext)>,
    /// What was decided, and where the agent looked.
    pub(super) decision: Decision<'a>,
}

/// How actions of this world are compared.
pub(super) fn action_scale(spec: &EnvSpec) -> ActionScale {
    match &spec.action {
        ActionSpace::Box { low, high } => {
            ActionScale::Box(low.iter().zip(high).map(|(&low, &high)| [low, high]).collect())
        }
        ActionSpace::Discrete { .. } => ActionScale::Choices,
    }
}

/// Plays the episode; `look` is shown every decision, with the agent as it was before those that `keep` names. Gives
/// the episode and the seat at its end.
pub(super) fn play(
    mut seat: Seat,
    keep: &dyn Fn(usize) -> bool,
    look: &mut dyn FnMut(Moment<'_>) -> Result<(), RunError>,
) -> Result<(Episode, Seat), RunError> {
    let mut episode = Episode::default();
    seat.agent.begin_episode(seat.job.episode_seed());
    let mut context = ActContext::new(seat.job.episode_seed(), ActMode::Greedy);
    while episode.len() < seat.max_steps && !episode.ended {
        let step = episode.len();
        let before = keep(step).then(|| (seat.agent.boxed_clone(), context.clone()));
        let picture = picture(&*seat.env)?;
        let decision = match seat.agent.act(Observation::Image(picture), &mut context) {
            Ok(decision) => decision,
            Err(source) => return Err(policy_error(seat.job, step, source)),
        };
        let action = decision.action.to_vec();
        if let Some((i, x)) = action.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            return Err(broken(seat.job, step, format!("the agent's action[{i}] is {x}")));
        }
        let (mut selected, mut shares) = (Vec::new(), Vec::new());
        if let Some(attention) = &decision.attention
            && let Some(grid) = attention.tokens().grid()
        {
            episode.grid = Some(grid);
            selected = claim(attention);
            let importance = attention.importance();
            let all: f32 = importance.iter().sum();
            let of = |&patch: &u32| importance.get(patch as usize).copied().unwrap_or(0.0);
            shares.extend(selected.iter().map(|patch| if all > 0.0 { of(patch) / all } else { 0.0 }));
        }
        look(Moment { step, picture, env: &*seat.env, before, decision })?;
        let outcome = act(&mut *seat.env, &action).map_err(|source| env_error(seat.job, step, source))?;
        if !outcome.reward.is_finite() {
            return Err(broken(seat.job, step, format!("the reward is {}", outcome.reward)));
        }
        episode.actions.push(action);
        episode.rewards.push(outcome.reward);
        episode.selected.push(selected);
        episode.shares.push(shares);
        episode.ended = outcome.is_over();
    }
    Ok((episode, seat))
}

/// What the world shows, which must be a picture.
pub(super) fn picture(env: &dyn Env) -> Result<Image<'_>, RunError> {
    match env.observation() {
        Observation::Image(image) => Ok(image),
        Observation::Vector(_) | Observation::Mixed(_) => Err(RunError::BadRequest {
            why: format!(
                "{} shows {}, and what is explained here is pictures; choose a world, or an option of it, that \
                 shows pictures alone",
                env.spec().id,
                env.spec().observation.describe()
            ),
        }),
    }
}

/// One step with `action`, which may be a row of scores.
pub(super) fn act(env: &mut dyn Env, action: &[f64]) -> Result<foveate_core::Step, EnvError> {
    match env.spec().action {
        ActionSpace::Discrete { .. } => env.step(Action::Discrete(first_largest(action))),
        ActionSpace::Box { .. } => env.step(Action::Continuous(action)),
    }
}

pub(super) fn env_error(job: RolloutJob, step: usize, source: EnvError) -> RunError {
    let RolloutJob { genome, episode, env_seed } = job;
    EvaluateError::Env { genome, episode, env_seed, step: step as u64 + 1, source }.into()
}

pub(super) fn policy_error(job: RolloutJob, step: usize, source: PolicyError) -> RunError {
    let RolloutJob { genome, episode, env_seed } = job;
    EvaluateError::Policy { genome, episode, env_seed, step: step as u64 + 1, source }.into()
}

pub(super) fn broken(job: RolloutJob, step: usize, what: String) -> RunError {
    let RolloutJob { genome, episode, env_seed } = job;
    EvaluateError::Broken { genome, episode, env_seed, step: step as u64 + 1, what }.into()
}
