//! One episode of a worker: what [`Episode`] drives, with what a generation asks for.

use foveate_core::episode::{DemonstrationActor, Episode};
use foveate_core::{Agent, Demonstration, DemonstrationPlan, Env, EpisodeResult, EvaluateError};

/// Resets the world and drives `episode` to its end; with a `plan`, a demonstration is written.
///
/// # Errors
/// As [`Episode::step`].
pub fn run(
    episode: &mut Episode,
    env: &mut dyn Env,
    agent: &mut dyn Agent,
    plan: Option<DemonstrationPlan>,
    demonstration: &mut Demonstration,
) -> Result<EpisodeResult, EvaluateError> {
    match plan {
        None => episode.run(env, agent, &mut ()),
        Some(plan) => {
            let space = &env.spec().action;
            let mut actor = DemonstrationActor::new(plan, episode.job(), space, agent, demonstration);
            episode.run(env, &mut actor, &mut ())
        }
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::RolloutJob;
    use foveate_train::Rules;

    use super::*;
    use crate::toy::{ToyWorld, toy_agent};

    fn demonstration(expert_drives: bool, pushes: f64, seed: u64) -> (Demonstration, f64) {
        let plan = Some(DemonstrationPlan { expert_drives, pushes });
        let job = RolloutJob { genome: 0, episode: 0, env_seed: seed };
        let mut demonstration = Demonstration { steps: 7, ..Demonstration::default() };
        let mut episode = Episode::new(job, Rules::WHOLE.episode());
        let (mut world, mut agent) = (ToyWorld::default(), toy_agent(0.1));
        let result = run(&mut episode, &mut world, &mut agent, plan, &mut demonstration).expect("fine");
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
