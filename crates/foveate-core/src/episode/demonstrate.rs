//! Demonstrations: records, for every step, the action of the world's expert.

use super::{Actor, ActorError, Chosen, RawAction};
use crate::{
    ActContext, ActionSpace, Agent, Demonstration, DemonstrationPlan, Env, PolicyError, Rng, RolloutJob,
    Seed, StudyInputs,
};

/// Range of a push's duration in steps.
const PUSH_STEPS: std::ops::Range<u64> = 5..17;
/// Standard deviation of a push, as a share of the action's range.
const PUSH: f64 = 0.3;

/// Acts with the agent or the world's expert, as the plan says, and records a [`Demonstration`] of the
/// expert's actions.
pub struct DemonstrationActor<'a> {
    agent: &'a mut dyn Agent,
    plan: DemonstrationPlan,
    rng: Rng,
    /// Lower and upper bound of every action.
    range: Vec<[f64; 2]>,
    /// What the current push adds to every action; `left` is the number of steps that it still lasts.
    push: Vec<f64>,
    left: u64,
    /// The expert's action.
    advice: Vec<f64>,
    /// The action taken.
    action: Vec<f64>,
    demonstration: &'a mut Demonstration,
}

impl<'a> DemonstrationActor<'a> {
    /// An actor for one episode in a world with the action space `space`. Clears `demonstration`. The pushes
    /// depend on the job's seed alone.
    pub fn new(
        plan: DemonstrationPlan,
        job: RolloutJob,
        space: &ActionSpace,
        agent: &'a mut dyn Agent,
        demonstration: &'a mut Demonstration,
    ) -> Self {
        *demonstration = Demonstration::default();
        // Scores of choices range from 0 to 1.
        let range = space.bounds();
        let zeros = vec![0.0; range.len()];
        DemonstrationActor {
            agent,
            plan,
            rng: Seed::root(job.env_seed).child("pushes", 0).rng(),
            push: zeros.clone(),
            left: 0,
            advice: zeros.clone(),
            action: zeros,
            range,
            demonstration,
        }
    }

    /// Adds the current push, if any, to the action.
    fn disturb(&mut self) {
        let DemonstrationActor { plan, rng, range, push, left, action, .. } = self;
        // Drawn in every step, so that one push does not shift the random numbers of the others.
        let begins = rng.next_f64() < plan.pushes / 100.0;
        if begins && *left == 0 {
            *left = PUSH_STEPS.start + rng.below(PUSH_STEPS.end - PUSH_STEPS.start);
            for (push, [low, high]) in push.iter_mut().zip(&*range) {
                *push = PUSH * (high - low) * rng.normal();
            }
        }
        if *left > 0 {
            *left -= 1;
            for ((action, push), [low, high]) in action.iter_mut().zip(push).zip(&*range) {
                *action = (*action + *push).clamp(*low, *high);
            }
        }
    }
}

impl Actor for DemonstrationActor<'_> {
    fn begin_episode(&mut self, episode: Seed) {
        self.agent.begin_episode(episode);
    }

    fn act(&mut self, env: &mut dyn Env, _: u64, context: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        env.expert(&mut self.advice)?;
        let by = if self.plan.expert_drives {
            self.agent.observe(env.observation(), context)?;
            &self.advice[..]
        } else {
            self.agent.act(env.observation(), context)?.action
        };
        if by.len() != self.action.len() {
            let why = format!("the agent gives {} actions, the world takes {}", by.len(), self.action.len());
            return Err(PolicyError::BadConfig { why }.into());
        }
        self.action.copy_from_slice(by);
        let StudyInputs { numbers, picture } = self.agent.study_inputs()?;
        if numbers.is_empty() && picture.is_empty() {
            let why =
                "this agent has no part that learns by gradients, so there are no demonstrations for it"
                    .into();
            return Err(PolicyError::BadConfig { why }.into());
        }
        self.demonstration.inputs.extend_from_slice(numbers);
        if !picture.is_empty() {
            self.demonstration.pictures.push(picture);
        }
        self.demonstration.actions.extend(self.advice.iter().map(|&x| x as f32));
        self.demonstration.steps += 1;
        if self.action.iter().all(|x| x.is_finite()) {
            self.disturb();
        }
        Ok(Chosen { action: RawAction::Outputs(&self.action), decision: None })
    }

    fn agent(&self) -> Option<&dyn Agent> {
        Some(&*self.agent)
    }
}
