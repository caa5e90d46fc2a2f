//! One episode: an agent drives a world until something ends it.
//!
//! Nothing here allocates, save that a demonstration grows; what the world and the agent do is theirs.

mod demonstration;

use foveate_core::{
    ActContext, ActMode, Action, ActionSpace, Agent, Demonstration, DemonstrationPlan, Env, EnvError,
    EpisodeResult, EvaluateError, PolicyError, RolloutJob, episode_seed,
};

use self::demonstration::Pupil;

/// What ends an episode besides the world itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Steps after which the episode is over, if the world lets it go on for so long.
    pub max_steps: u64,
    /// Negative rewards in a row that are still put up with; one more cuts the episode. `None` for evaluations.
    ///
    /// `AttentionAgent` was trained with 20: the 21st consecutive step that costs something ends the rollout.
    pub patience: Option<u32>,
    /// The episode is a demonstration, and this is how it is driven.
    pub demonstration: Option<DemonstrationPlan>,
}

impl Rules {
    /// Until the world says so: for evaluations.
    pub const WHOLE: Rules = Rules { max_steps: u64::MAX, patience: None, demonstration: None };
}

/// Resets the world with the job's seed and drives one episode; a demonstration, if the rules want one, is written to `demonstration`.
///
/// `step` counts the steps begun, so that a caller who catches a panic knows where it happened.
///
/// # Errors
/// When the world or the agent refuses, or a reward or an action is not finite; the error names genome, episode, step.
pub fn run(
    env: &mut dyn Env,
    agent: &mut dyn Agent,
    job: RolloutJob,
    rules: Rules,
    step: &mut u64,
    demonstration: &mut Demonstration,
) -> Result<EpisodeResult, EvaluateError> {
    *step = 0;
    env.reset(Some(job.env_seed));
    // Every episode has a stream of its own here, whichever of the genome's episodes it is.
    let seed = episode_seed(job.env_seed, 0);
    agent.begin_episode(seed);
    let context = ActContext::new(seed, ActMode::Greedy);
    match rules.demonstration {
        None => drive_by(&mut Alone, env, (agent, context), job, rules, step),
        Some(plan) => {
            let mut pupil = Pupil::new(plan, job, env.spec(), demonstration);
            drive_by(&mut pupil, env, (agent, context), job, rules, step)
        }
    }
}

/// As [`run`], from a world that was reset by the caller and whose stream began with the job's seed; never a demonstration.
///
/// # Errors
/// As [`run`].
pub fn drive(
    env: &mut dyn Env,
    agent: &mut dyn Agent,
    job: RolloutJob,
    rules: Rules,
    step: &mut u64,
) -> Result<EpisodeResult, EvaluateError> {
    agent.begin_episode(job.episode_seed());
    let context = ActContext::new(job.episode_seed(), ActMode::Greedy);
    drive_by(&mut Alone, env, (agent, context), job, rules, step)
}

/// Whoever has the last word on what is done.
trait Hands {
    /// What to do now.
    fn act<'a>(
        &'a mut self,
        env: &mut dyn Env,
        agent: &'a mut dyn Agent,
        context: &mut ActContext,
    ) -> Result<&'a [f64], Refusal>;
}

/// Why there is nothing to do.
enum Refusal {
    Env(EnvError),
    Policy(PolicyError),
}

/// The agent drives, and no one else.
struct Alone;

impl Hands for Alone {
    fn act<'a>(
        &'a mut self,
        env: &mut dyn Env,
        agent: &'a mut dyn Agent,
        context: &mut ActContext,
    ) -> Result<&'a [f64], Refusal> {
        agent.act(env.observation(), context).map(|decision| decision.action).map_err(Refusal::Policy)
    }
}

fn drive_by(
    hands: &mut impl Hands,
    env: &mut dyn Env,
    (agent, mut context): (&mut dyn Agent, ActContext),
    job: RolloutJob,
    rules: Rules,
    step: &mut u64,
) -> Result<EpisodeResult, EvaluateError> {
    let RolloutJob { genome, episode, env_seed } = job;
    let broken = |step, what| EvaluateError::Broken { genome, episode, env_seed, step, what };
    let refused = |step, refusal| match refusal {
        Refusal::Policy(source) => EvaluateError::Policy { genome, episode, env_seed, step, source },
        Refusal::Env(source) => EvaluateError::Env { genome, episode, env_seed, step, source },
    };
    let discrete = matches!(env.spec().action, ActionSpace::Discrete { .. });
    let mut result = EpisodeResult::default();
    let mut in_the_red = 0;
    *step = 0;
    while result.steps < rules.max_steps {
        *step = result.steps + 1;
        let action = hands.act(env, agent, &mut context).map_err(|refusal| refused(*step, refusal))?;
        if let Some((i, x)) = action.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            return Err(broken(*step, format!("the agent's action[{i}] is {x}")));
        }
        let action =
            if discrete { Action::Discrete(first_largest(action)) } else { Action::Continuous(action) };
        let outcome = env.step(action).map_err(|source| refused(*step, Refusal::Env(source)))?;
        if !outcome.reward.is_finite() {
            return Err(broken(*step, format!("the reward is {}", outcome.reward)));
        }
        result.total += outcome.reward;
        result.steps += 1;
        if outcome.is_over() {
            result.terminated = outcome.terminated;
            result.truncated = outcome.truncated;
            return Ok(result);
        }
        in_the_red = if outcome.reward < 0.0 { in_the_red + 1 } else { 0 };
        if rules.patience.is_some_and(|patience| in_the_red > patience) {
            result.cut = true;
            return Ok(result);
        }
    }
    result.truncated = true;
    Ok(result)
}

/// Index of the largest number, the first of equals: how a row of scores becomes a choice.
pub(crate) fn first_largest(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{ToyAgent, ToyWorld, toy_agent};

    const JOB: RolloutJob = RolloutJob { genome: 3, episode: 1, env_seed: 5 };
    const TRAINING: Rules = Rules { max_steps: 1000, patience: Some(20), demonstration: None };

    /// Plays a world that pays `rewards` and then ends; checks (steps, total, how it ended).
    #[track_caller]
    fn check(name: &str, rewards: &[f64], rules: Rules, expect: (u64, f64, &str)) {
        let mut step = 99;
        let result = run(
            &mut ToyWorld::paying(rewards),
            &mut toy_agent(0.5),
            JOB,
            rules,
            &mut step,
            &mut Demonstration::default(),
        )
        .expect("nothing is broken");
        let how = match (result.terminated, result.truncated, result.cut) {
            (true, false, false) => "terminated",
            (false, true, false) => "truncated",
            (false, false, true) => "cut",
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!((result.steps, how), (expect.0, expect.2), "{name}");
        assert!((result.total - expect.1).abs() < 1e-9, "{name}: {}", result.total);
        assert_eq!(step, result.steps, "{name}");
    }

    #[test]
    fn episodes_end_when_they_should() {
        let red = |n: usize| vec![-0.1; n];
        check("20 in the red are put up with", &red(20), TRAINING, (20, -2.0, "terminated"));
        check("the 21st is not", &red(100), TRAINING, (21, -2.1, "cut"));
        check("an evaluation goes on", &red(100), Rules::WHOLE, (100, -10.0, "terminated"));
        check(
            "a gain starts the count again",
            &[red(20), vec![1.0], red(30)].concat(),
            TRAINING,
            (42, -3.1, "cut"),
        );
        check("zero is no loss", &[red(20), vec![0.0], red(20)].concat(), TRAINING, (41, -4.0, "terminated"));
        check("time limit", &vec![1.0; 50], Rules { max_steps: 30, ..Rules::WHOLE }, (30, 30.0, "truncated"));
        check(
            "the end at the limit is the world's",
            &[1.0; 30],
            Rules { max_steps: 30, ..Rules::WHOLE },
            (30, 30.0, "terminated"),
        );
        check("the end on the 21st is the world's", &red(21), TRAINING, (21, -2.1, "terminated"));
    }

    #[test]
    fn broken_rollouts_say_where() {
        let fail = |world: &mut ToyWorld, agent: &mut ToyAgent| {
            run(world, agent, JOB, TRAINING, &mut 0, &mut Demonstration::default())
                .expect_err("must fail")
                .to_string()
        };
        let nan = &[1.0, 1.0, f64::NAN, 1.0];
        assert_eq!(
            fail(&mut ToyWorld::paying(nan), &mut toy_agent(0.5)),
            "genome 3, episode 1 (seed 5), step 3: the reward is NaN"
        );
        assert_eq!(
            fail(&mut ToyWorld::default(), &mut toy_agent(f32::NAN)),
            "genome 3, episode 1 (seed 5), step 1: the agent's action[0] is NaN"
        );
    }

    #[test]
    fn an_episode_depends_on_its_seed_alone() {
        let (mut world, mut agent) = (ToyWorld::default(), toy_agent(0.3));
        let mut go = |seed| {
            run(
                &mut world,
                &mut agent,
                RolloutJob { env_seed: seed, ..JOB },
                TRAINING,
                &mut 0,
                &mut Demonstration::default(),
            )
            .expect("fine")
        };
        let first = go(1);
        assert_ne!(first, go(2));
        assert_eq!(first, go(1));
    }

    #[test]
    fn a_row_of_scores_becomes_a_choice() {
        for (scores, choice) in [(&[0.0][..], 0), (&[1.0, 3.0, 2.0], 1), (&[-5.0, -1.0, -1.0], 1)] {
            assert_eq!(first_largest(scores), choice);
        }
    }
}
