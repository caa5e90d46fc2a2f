//! Episodes in which every decision is opened, and may be changed, before it ends.

use foveate_core::episode::{Actor, ActorError, Chosen, Episode, EpisodeRules};
use foveate_core::{ActContext, Agent, Decision, Env, EpisodeResult, Observation, Opened, PolicyError, Seed};

use super::super::StudyError;
use super::super::play::EpisodeStart;

/// A decision as it ends.
pub(super) struct Look<'a> {
    /// The one, from 0.
    pub(super) step: usize,
    /// The world before it.
    pub(super) env: &'a dyn Env,
    /// What it was taken with.
    pub(super) context: &'a ActContext,
    /// What was attended to, before any change.
    pub(super) opened: &'a Opened,
    /// Probabilities of the choices.
    pub(super) probabilities: &'a [f64],
}

/// Writes the pixels that the agent sees in a step.
pub(super) type Show<'a> = dyn FnMut(usize, &dyn Env, &mut Vec<u8>) -> Result<(), StudyError> + 'a;

/// Plays an episode in which `change` may alter what every decision attends to; `look` is told about each. With `shown`, the
/// agent sees what that makes of the world's observation.
pub(super) fn drive(
    start: EpisodeStart,
    change: &mut impl FnMut(&mut Opened),
    shown: Option<&mut Show<'_>>,
    look: &mut impl FnMut(Look<'_>) -> Result<(), StudyError>,
) -> Result<EpisodeResult, StudyError> {
    let EpisodeStart { mut env, agent, job, max_steps } = start;
    let rules = EpisodeRules { max_steps: max_steps as u64, ..EpisodeRules::WHOLE };
    let mut episode = Episode::new(job, rules);
    let mut actor = OpeningActor {
        agent,
        change,
        shown,
        look,
        opened: Opened::default(),
        before: Opened::default(),
        action: vec![],
        bytes: vec![],
        failed: None,
    };
    episode.resume(&mut actor);
    let result = episode.finish(&mut *env, &mut actor, &mut ());
    match actor.failed {
        Some(error) => Err(error),
        None => result,
    }
}

struct OpeningActor<'a, 's, C, L> {
    agent: Box<dyn Agent>,
    change: &'a mut C,
    shown: Option<&'a mut Show<'s>>,
    look: &'a mut L,
    opened: Opened,
    before: Opened,
    action: Vec<f64>,
    bytes: Vec<u8>,
    /// An error that is no actor's, which ends the episode.
    failed: Option<StudyError>,
}

impl<C: FnMut(&mut Opened), L: FnMut(Look<'_>) -> Result<(), StudyError>> Actor
    for OpeningActor<'_, '_, C, L>
{
    fn begin_episode(&mut self, episode: Seed) {
        self.agent.begin_episode(episode);
    }

    fn act(
        &mut self,
        env: &mut dyn Env,
        step: u64,
        context: &mut ActContext,
    ) -> Result<Chosen<'_>, ActorError> {
        let OpeningActor { agent, change, shown, look, opened, before, action, bytes, failed } = self;
        let step = step as usize;
        let mut ended = |error: StudyError| {
            let why = error.to_string();
            *failed = Some(error);
            ActorError::Policy(PolicyError::BadConfig { why })
        };
        if let Some(shown) = shown {
            shown(step, env, bytes).map_err(&mut ended)?;
        }
        let observation = match shown {
            Some(_) => with_bytes(env.observation(), bytes),
            None => env.observation(),
        };
        if !agent.open(observation, context, opened)? {
            let why = "this agent cannot be opened at its attention".into();
            return Err(PolicyError::BadAttention { why }.into());
        }
        before.clone_from(opened);
        change(opened);
        let saw = context.clone();
        let decision = agent.resume(opened, context)?;
        let probabilities = probabilities(&decision);
        action.clear();
        action.extend_from_slice(decision.action);
        let now = Look { step, env, context: &saw, opened: before, probabilities: &probabilities };
        look(now).map_err(&mut ended)?;
        Ok(Decision::new(action).into())
    }
}

/// The same observation with other pixels.
pub(super) fn with_bytes<'a>(observation: Observation<'a>, bytes: &'a [u8]) -> Observation<'a> {
    let pixels = observation.image().and_then(|pixels| foveate_core::Pixels::new(pixels.shape(), bytes));
    pixels.map_or(observation, Observation::Image)
}

/// Probabilities of the choices: the softmax of the logits.
pub(super) fn probabilities(decision: &Decision<'_>) -> Vec<f64> {
    let Some(logits) = decision.logits else { return decision.action.to_vec() };
    let most = logits.iter().fold(f64::NEG_INFINITY, |most, &x| most.max(x.into()));
    let parts: Vec<f64> = logits.iter().map(|&x| (f64::from(x) - most).exp()).collect();
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|x| x / sum).collect()
}

/// Half the sum of differences: 0 for equal probabilities, 1 for choices that never agree.
pub(super) fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

/// Kullback-Leibler divergence of `b` from `a`, in nats.
pub(super) fn divergence(a: &[f64], b: &[f64]) -> f64 {
    let terms = a.iter().zip(b).filter(|(a, _)| **a > 0.0);
    terms.map(|(a, b)| a * (a / b.max(1e-300)).ln()).sum::<f64>().max(0.0)
}
