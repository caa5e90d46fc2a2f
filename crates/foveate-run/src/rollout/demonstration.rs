//! An episode as a demonstration: every step is written down with what the world's expert would have done there.

use foveate_core::{
    ActContext, ActionSpace, Agent, Demonstration, DemonstrationPlan, Env, EnvSpec, PolicyError, Rng,
    RolloutJob, Seed,
};

use super::{Hands, Refusal};

/// Steps that a push lasts.
const PUSH_STEPS: std::ops::Range<u64> = 5..17;
/// Standard deviation of a push, as a share of the action's range.
const PUSH: f64 = 0.3;

/// Drives as the plan says and writes the demonstration.
pub(super) struct Pupil<'l> {
    plan: DemonstrationPlan,
    rng: Rng,
    /// Lowest and highest of every action.
    range: Vec<[f64; 2]>,
    /// What the push that is under way adds to every action, and how many steps it still lasts.
    push: Vec<f64>,
    left: u64,
    /// What the expert would do.
    advice: Vec<f64>,
    /// What is done.
    action: Vec<f64>,
    demonstration: &'l mut Demonstration,
}

impl<'l> Pupil<'l> {
    /// The pushes depend on the job's seed alone.
    pub(super) fn new(
        plan: DemonstrationPlan,
        job: RolloutJob,
        spec: &EnvSpec,
        demonstration: &'l mut Demonstration,
    ) -> Self {
        *demonstration = Demonstration::default();
        let range: Vec<[f64; 2]> = match &spec.action {
            ActionSpace::Box { low, high } => low.iter().zip(high).map(|(&low, &high)| [low, high]).collect(),
            // Scores that a choice is made from; worlds of choices have no expert so far.
            ActionSpace::Discrete { n } => vec![[0.0, 1.0]; *n],
        };
        let zeros = vec![0.0; range.len()];
        Pupil {
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

    /// What the push under way, if any, makes of the action.
    fn disturb(&mut self) {
        let Pupil { plan, rng, range, push, left, action, .. } = self;
        // Drawn in every step, so that what happens in one does not shift the others.
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

impl Hands for Pupil<'_> {
    fn act<'a>(
        &'a mut self,
        env: &mut dyn Env,
        agent: &'a mut dyn Agent,
        context: &mut ActContext,
    ) -> Result<&'a [f64], Refusal> {
        env.expert(&mut self.advice).map_err(Refusal::Env)?;
        let decision = agent.act(env.observation(), context).map_err(Refusal::Policy)?;
        let by = if self.plan.expert_drives { &self.advice[..] } else { decision.action };
        if by.len() != self.action.len() {
            let why = format!("the agent gives {} actions, the world takes {}", by.len(), self.action.len());
            return Err(Refusal::Policy(PolicyError::BadConfig { why }));
        }
        self.action.copy_from_slice(by);
        if agent.inputs().is_empty() {
            let why =
                "this agent has no part that learns by gradients, so there are no demonstrations for it"
                    .into();
            return Err(Refusal::Policy(PolicyError::BadConfig { why }));
        }
        self.demonstration.inputs.extend_from_slice(agent.inputs());
        self.demonstration.actions.extend(self.advice.iter().map(|&x| x as f32));
        self.demonstration.steps += 1;
        if self.action.iter().all(|x| x.is_finite()) {
            self.disturb();
        }
        Ok(&self.action)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rules, run};
    use super::*;
    use crate::toy::{ToyWorld, toy_agent};

    fn demonstration(expert_drives: bool, pushes: f64, seed: u64) -> (Demonstration, f64) {
        let rules =
            Rules { demonstration: Some(DemonstrationPlan { expert_drives, pushes }), ..Rules::WHOLE };
        let job = RolloutJob { genome: 0, episode: 0, env_seed: seed };
        let mut demonstration = Demonstration { steps: 7, ..Demonstration::default() };
        let result =
            run(&mut ToyWorld::default(), &mut toy_agent(0.1), job, rules, &mut 0, &mut demonstration)
                .expect("fine");
        assert_eq!(demonstration.steps as u64, result.steps);
        assert_eq!(
            (demonstration.inputs.len(), demonstration.actions.len()),
            (2 * demonstration.steps, demonstration.steps)
        );
        (demonstration, result.total)
    }

    #[test]
    fn every_step_holds_what_was_told_and_what_the_expert_would_do() {
        for (expert_drives, pushes) in [(true, 0.0), (false, 0.0), (false, 20.0)] {
            let (demonstration, _) = demonstration(expert_drives, pushes, 4);
            for (inputs, &action) in demonstration.inputs.chunks(2).zip(&demonstration.actions) {
                assert_eq!(inputs[1], 1.0);
                assert!((action + 3.0 * inputs[0]).abs() < 1e-5, "{inputs:?}: {action}");
            }
        }
        // An expert keeps the ball in the middle, a learner that knows nothing loses it.
        assert!(demonstration(true, 0.0, 4).1 > 50.0 && demonstration(false, 0.0, 4).1 < 30.0);
    }

    #[test]
    fn pushes_disturb_and_depend_on_the_seed_alone() {
        let quiet = demonstration(true, 0.0, 4);
        let pushed = demonstration(true, 10.0, 4);
        assert_ne!(quiet.0.inputs, pushed.0.inputs);
        assert_eq!(pushed, demonstration(true, 10.0, 4));
        assert_ne!(pushed.0.inputs, demonstration(true, 10.0, 5).0.inputs);
    }
}
