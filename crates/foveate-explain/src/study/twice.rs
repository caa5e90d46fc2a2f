//! Whether an agent gives the same answer to the same question.

use foveate_core::episode::{BeforeChoice, BeforeStep, Observer};
use foveate_core::{ActContext, Agent, Env, EnvSpec, EvaluateError, ObservationBuf, RolloutJob};
use serde::Serialize;

use super::play::{EpisodeStart, policy_error};
use super::{StudyError, StudyRequest};

/// Most steps of the episode that questions are taken from.
const STEPS: usize = 80;
/// Every so many steps a question is kept.
const EVERY: usize = 2;
/// Parts of the action's range within which two answers are the same: sums in another order differ by less.
const SAME: f64 = 1e-5;

/// An agent was asked the same questions twice: as they came in an episode, and again in the opposite order, each from the state
/// that the agent then had, as far as it says what its state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AskedTwice {
    /// Questions that were asked twice.
    pub questions: usize,
    /// Those that got two different answers.
    pub differed: usize,
    /// How often the agent was asked in all.
    pub asked: usize,
}

impl AskedTwice {
    /// Asks `agent` in an episode of at most 80 steps of `env`, which is reset with `seed`, and fewer with `max_steps`.
    ///
    /// # Errors
    /// When world or agent fail, or `stopped` says that someone asked to stop.
    pub fn of(
        env: &dyn Env,
        agent: &dyn Agent,
        seed: u64,
        max_steps: Option<usize>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, StudyError> {
        let job = RolloutJob { genome: 0, episode: 0, env_seed: seed };
        let (mut env, agent) = (env.boxed_clone(), agent.boxed_clone());
        env.reset(Some(seed));
        let max_steps = max_steps.map_or(STEPS, |steps| steps.min(STEPS));
        let mut first = First { questions: vec![], asked: 0, stopped };
        let mut start = EpisodeStart { env, agent, job, max_steps };
        start.run(&mut first)?;
        let spec = start.env.spec();
        let (questions, mut differed) = (first.questions.len(), 0);
        for Question { step, seen, mut agent, mut context, answer } in first.questions.into_iter().rev() {
            if stopped() {
                return Err(EvaluateError::Stopped.into());
            }
            let again = agent.act(seen.as_observation(), &mut context);
            let again = again.map_err(|error| policy_error(job, step, error))?;
            differed += usize::from(!same(spec, &answer, again.action));
        }
        Ok(AskedTwice { questions, differed, asked: first.asked + questions })
    }

    /// Whether the same question always got the same answer.
    pub const fn is_steady(self) -> bool {
        self.differed == 0
    }
}

/// What a function was asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AskedFunction {
    /// Whether it gave the same answers to the same questions.
    pub twice: AskedTwice,
    /// How often it could be asked beside playing; `None` for as often as the method wants.
    pub questions: Option<usize>,
    /// Claims of others that were judged.
    pub claims: usize,
    /// Networks of its kind with random weights that it was compared with.
    pub untrained: usize,
}

impl AskedFunction {
    /// What `request` says of its agent; `None` of an agent of a file.
    pub(in crate::study) fn of(request: &StudyRequest<'_>) -> Option<Self> {
        request.twice.map(|twice| AskedFunction {
            twice,
            questions: request.questions,
            claims: request.claims.len(),
            untrained: request.untrained,
        })
    }
}

/// Whether two answers are the same but for rounding: the same choice and scores, or the same numbers.
fn same(spec: &EnvSpec, a: &[f64], b: &[f64]) -> bool {
    let bounds = spec.action.bounds();
    let most = a.iter().chain(b).fold(1.0_f64, |most, x| most.max(x.abs()));
    let range = |i: usize| bounds.get(i).map(|[low, high]| high - low).filter(|range| range.is_finite());
    let near = |(i, (a, b)): (usize, (&f64, &f64))| (a - b).abs() <= SAME * range(i).unwrap_or(most);
    let chosen = |scores: &[f64]| spec.action.choose(scores).ok().map(|action| format!("{action:?}"));
    a.len() == b.len()
        && a.iter().zip(b).enumerate().all(near)
        && (!spec.action.is_discrete() || chosen(a) == chosen(b))
}

/// What is to be asked again.
struct Question {
    step: usize,
    seen: ObservationBuf,
    agent: Box<dyn Agent>,
    context: ActContext,
    answer: Vec<f64>,
}

/// The first asking.
struct First<'a> {
    questions: Vec<Question>,
    asked: usize,
    stopped: &'a dyn Fn() -> bool,
}

impl Observer<StudyError> for First<'_> {
    fn before_choice(&mut self, now: BeforeChoice<'_>) -> Result<(), StudyError> {
        if (self.stopped)() {
            return Err(EvaluateError::Stopped.into());
        }
        self.asked += 1;
        if let (Some(agent), 0) = (now.agent, now.step as usize % EVERY) {
            self.questions.push(Question {
                step: now.step as usize,
                seen: now.env.observation().into(),
                agent: agent.boxed_clone(),
                context: now.context.clone(),
                answer: vec![],
            });
        }
        Ok(())
    }

    fn before_step(&mut self, now: BeforeStep<'_>) -> Result<(), StudyError> {
        if let (Some(question), Some(decision)) = (self.questions.last_mut(), now.chosen.decision)
            && question.step == now.step as usize
        {
            question.answer = decision.action.to_vec();
        }
        Ok(())
    }
}
