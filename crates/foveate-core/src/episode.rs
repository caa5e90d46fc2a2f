//! Episodes: the only loop that steps a world.
//!
//! An [`Episode`] holds the progress of an episode and the rules that end it. Three parties take part:
//!
//! * the world, an [`Env`];
//! * an [`Actor`], which chooses the action of every step: an agent, an expert with an agent that learns from
//!   it ([`DemonstrationActor`]), recorded actions ([`RecordedActor`]), a constant action ([`RawAction`]), or
//!   a custom actor that gives the agent a changed observation;
//! * an [`Observer`], which receives every step: a video, attention statistics, a trajectory. `&mut ()`
//!   ignores all of it.
//!
//! [`Episode::run`] runs from the reset to the end, [`Episode::step`] takes one step. Both always check that
//! outputs and rewards are finite. Nothing here allocates, except that a demonstration grows.

mod demonstrate;

use serde::{Deserialize, Serialize};

use crate::{
    ActContext, ActMode, Action, Agent, Decision, Env, EnvError, EpisodeResult, EvaluateError, PolicyError,
    RolloutJob, Seed, Step, episode_seed,
};

pub use demonstrate::DemonstrationActor;

/// The rules that end an episode before the world does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeRules {
    /// Steps after which the episode is truncated, if the world has not ended it before.
    pub max_steps: u64,
    /// Tolerated number of consecutive negative rewards; one more cuts the episode. `None` for evaluations.
    ///
    /// `AttentionAgent` was trained with 20: the 21st consecutive negative reward ends the rollout.
    pub patience: Option<u32>,
}

impl EpisodeRules {
    /// No limit but the world's own: for evaluations.
    pub const WHOLE: EpisodeRules = EpisodeRules { max_steps: u64::MAX, patience: None };
}

impl Default for EpisodeRules {
    fn default() -> Self {
        EpisodeRules::WHOLE
    }
}

/// An action as an actor returns it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RawAction<'a> {
    /// One number for each dimension of an [`ActionSpace::Box`](crate::ActionSpace::Box), or one score for
    /// each choice; see [`ActionSpace::choose`](crate::ActionSpace::choose).
    Outputs(&'a [f64]),
    /// A choice of an [`ActionSpace::Discrete`](crate::ActionSpace::Discrete).
    Choice(usize),
}

/// A [`RawAction`] and, when an agent was asked, the agent's decision.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    /// The action to take.
    pub action: RawAction<'a>,
    /// The agent's decision with its attention. Its action may differ from `action` when a person or an
    /// expert acts instead.
    pub decision: Option<Decision<'a>>,
}

impl<'a> From<Decision<'a>> for Chosen<'a> {
    fn from(decision: Decision<'a>) -> Self {
        Chosen { action: RawAction::Outputs(decision.action), decision: Some(decision) }
    }
}

/// Why an actor returned no action.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ActorError {
    /// The world or its expert returned an error.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// The agent returned an error.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// Chooses the action of every step.
pub trait Actor {
    /// Called at the start of the episode with this seed; see [`episode_seed`].
    fn begin_episode(&mut self, episode: Seed) {
        let _ = episode;
    }

    /// Chooses the action of step `step`, counted from 0, in a world that awaits it. `context` is that of the
    /// episode.
    ///
    /// # Errors
    /// When the agent or the world's expert returns an error.
    fn act(
        &mut self,
        env: &mut dyn Env,
        step: u64,
        context: &mut ActContext,
    ) -> Result<Chosen<'_>, ActorError>;

    /// The agent that decides, in its state before the decision; `None` when there is none.
    fn agent(&self) -> Option<&dyn Agent> {
        None
    }
}

/// The agent acts on the world's observation.
impl Actor for dyn Agent + '_ {
    fn begin_episode(&mut self, episode: Seed) {
        Agent::begin_episode(self, episode);
    }

    fn act(&mut self, env: &mut dyn Env, _: u64, context: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        Ok(Agent::act(self, env.observation(), context)?.into())
    }

    fn agent(&self) -> Option<&dyn Agent> {
        Some(self)
    }
}

/// A constant action.
impl Actor for RawAction<'_> {
    fn act(&mut self, _: &mut dyn Env, _: u64, _: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        Ok(Chosen { action: *self, decision: None })
    }
}

/// Recorded outputs, `[steps][outputs]`, one row per step.
#[derive(Debug, Clone, Copy)]
pub struct RecordedActor<'a>(pub &'a [Vec<f64>]);

impl RecordedActor<'_> {
    /// Ends the episode after the last recorded action, or before when the world ends it.
    pub const fn rules(&self) -> EpisodeRules {
        EpisodeRules { max_steps: self.0.len() as u64, patience: None }
    }
}

impl Actor for RecordedActor<'_> {
    fn act(&mut self, _: &mut dyn Env, step: u64, _: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        let Some(outputs) = usize::try_from(step).ok().and_then(|step| self.0.get(step)) else {
            let why = format!("{} actions were recorded; none for step {}", self.0.len(), step + 1);
            return Err(PolicyError::BadConfig { why }.into());
        };
        Ok(Chosen { action: RawAction::Outputs(outputs), decision: None })
    }
}

/// The state of a step before its action is chosen.
#[derive(Clone, Copy)]
pub struct BeforeChoice<'a> {
    /// Index of the step, counted from 0.
    pub step: u64,
    /// The world before the step, with its current observation.
    pub env: &'a dyn Env,
    /// The agent in its state before the decision; `None` when no agent decides.
    pub agent: Option<&'a dyn Agent>,
    /// The context that the agent will decide with.
    pub context: &'a ActContext,
}

/// The state of a step before it is taken.
#[derive(Clone, Copy)]
pub struct BeforeStep<'a> {
    /// Index of the step, counted from 0.
    pub step: u64,
    /// The world before the step, with its current observation.
    pub env: &'a dyn Env,
    /// The action to take, and the agent's decision.
    pub chosen: Chosen<'a>,
}

/// The state of a step after it was taken.
#[derive(Clone, Copy)]
pub struct AfterStep<'a> {
    /// Index of the step, counted from 0.
    pub step: u64,
    /// The world after the step.
    pub env: &'a dyn Env,
    /// The outcome of the step. It is checked after the observers have received it, so that a trace includes
    /// the step that failed.
    pub outcome: Step,
}

/// Receives the events of an episode. An error ends the episode.
pub trait Observer<E = EvaluateError> {
    /// Called before the actor chooses.
    ///
    /// # Errors
    /// When the observer cannot continue.
    fn before_choice(&mut self, step: BeforeChoice<'_>) -> Result<(), E> {
        let _ = step;
        Ok(())
    }

    /// Called when an action was chosen, its numbers are finite, and the world has not been stepped yet.
    ///
    /// # Errors
    /// When the observer cannot continue.
    fn before_step(&mut self, step: BeforeStep<'_>) -> Result<(), E> {
        let _ = step;
        Ok(())
    }

    /// Called after the world was stepped.
    ///
    /// # Errors
    /// When the observer cannot continue.
    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), E> {
        let _ = step;
        Ok(())
    }

    /// Called when the episode is over; `env` has the final observation.
    ///
    /// # Errors
    /// When the observer cannot continue.
    fn end(&mut self, env: &dyn Env, result: EpisodeResult) -> Result<(), E> {
        let _ = (env, result);
        Ok(())
    }
}

/// Ignores all events.
impl<E> Observer<E> for () {}

/// Records the outputs of every step, including a step that fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ActionRecorder {
    /// `[steps][outputs]`
    pub actions: Vec<Vec<f64>>,
}

impl<E> Observer<E> for ActionRecorder {
    fn before_step(&mut self, step: BeforeStep<'_>) -> Result<(), E> {
        if let RawAction::Outputs(outputs) = step.chosen.action {
            self.actions.push(outputs.to_vec());
        }
        Ok(())
    }
}

/// An episode: its job, its rules, and its progress.
#[derive(Debug, Clone)]
pub struct Episode {
    job: RolloutJob,
    rules: EpisodeRules,
    context: ActContext,
    result: EpisodeResult,
    /// Steps begun, including one that failed or panicked.
    begun: u64,
    /// Consecutive negative rewards.
    negative: u32,
    over: bool,
}

impl Episode {
    /// An episode that has not begun, in evaluation mode (the agent does not explore).
    pub fn new(job: RolloutJob, rules: EpisodeRules) -> Self {
        let (context, result) = (ActContext::default(), EpisodeResult::default());
        Episode { job, rules, context, result, begun: 0, negative: 0, over: false }
    }

    /// The same in this mode: with or without exploration.
    #[must_use]
    pub fn with_mode(mut self, mode: ActMode) -> Self {
        self.context.mode = mode;
        self
    }

    /// An episode outside any population, in a world that is reset with `seed`.
    pub fn of_seed(seed: u64, rules: EpisodeRules) -> Self {
        Episode::new(RolloutJob { genome: 0, episode: 0, env_seed: seed }, rules)
    }

    /// The job of this episode.
    pub const fn job(&self) -> RolloutJob {
        self.job
    }

    /// The result so far.
    pub const fn result(&self) -> EpisodeResult {
        self.result
    }

    /// Returns whether the episode is over, for any reason.
    pub const fn is_over(&self) -> bool {
        self.over
    }

    /// Steps begun, so that a caller who catches a panic knows in which step it happened; during a step it is
    /// one more than the number of steps taken.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// The agent's context, for a caller that runs the agent outside of [`Episode::step`].
    pub const fn context(&mut self) -> &mut ActContext {
        &mut self.context
    }

    /// Resets the world with the job's seed and begins the episode. It is number 0 of its own seed stream,
    /// whatever its index among the genome's episodes.
    pub fn reset(&mut self, env: &mut dyn Env, actor: &mut (impl Actor + ?Sized)) {
        self.clear();
        env.reset(Some(self.job.env_seed));
        self.start(actor, episode_seed(self.job.env_seed, 0));
    }

    /// Begins the episode in a world that the caller has reset: episode number `job.episode` of the stream
    /// seeded with `job.env_seed`.
    pub fn resume(&mut self, actor: &mut (impl Actor + ?Sized)) {
        self.clear();
        self.start(actor, self.job.episode_seed());
    }

    /// Divides the episode into windows of `steps` steps, draws one of them, truncates the episode at its end, and returns its
    /// begin. It may lie beyond the end of the episode.
    ///
    /// # Errors
    /// When neither the rules nor the world limit the episode's steps.
    pub(crate) fn keep_window(&mut self, steps: u64, env: &dyn Env) -> Result<u64, EvaluateError> {
        let of_world = env.spec().max_steps.map_or(u64::MAX, |steps| steps as u64);
        let limit = of_world.min(self.rules.max_steps);
        if limit == u64::MAX {
            let why = format!(
                "one window of an episode needs a limit of the episode's steps, and {} has none; set max_steps",
                env.spec().id
            );
            let RolloutJob { genome, episode, env_seed } = self.job;
            let source = PolicyError::BadConfig { why };
            return Err(EvaluateError::Policy { genome, episode, env_seed, step: 0, source });
        }
        let mut rng = episode_seed(self.job.env_seed, 0).child("window", 0).rng();
        let (steps, limit) = (steps.max(1), limit.max(1));
        let windows = limit.div_ceil(steps);
        let begin = rng.below(windows) * steps;
        self.rules.max_steps = limit.min(begin.saturating_add(steps));
        Ok(begin)
    }

    fn clear(&mut self) {
        *self = Episode::new(self.job, self.rules).with_mode(self.context.mode);
    }

    fn start(&mut self, actor: &mut (impl Actor + ?Sized), seed: Seed) {
        actor.begin_episode(seed);
        self.context = ActContext::new(seed, self.context.mode);
        if self.rules.max_steps == 0 {
            (self.over, self.result.truncated) = (true, true);
        }
    }

    /// Resets the world with the job's seed and runs the episode to its end.
    ///
    /// # Errors
    /// Those of [`Episode::step`].
    pub fn run<E: From<EvaluateError>>(
        &mut self,
        env: &mut dyn Env,
        actor: &mut (impl Actor + ?Sized),
        observer: &mut (impl Observer<E> + ?Sized),
    ) -> Result<EpisodeResult, E> {
        self.reset(env, actor);
        self.finish(env, actor, observer)
    }

    /// Runs the rest of the episode.
    ///
    /// # Errors
    /// Those of [`Episode::step`].
    pub fn finish<E: From<EvaluateError>>(
        &mut self,
        env: &mut dyn Env,
        actor: &mut (impl Actor + ?Sized),
        observer: &mut (impl Observer<E> + ?Sized),
    ) -> Result<EpisodeResult, E> {
        while !self.over {
            self.step(env, actor, observer)?;
        }
        if !self.result.total.is_finite() {
            let what = format!("the return is {}", self.result.total);
            return Err(self.broken_at(self.result.steps, what).into());
        }
        observer.end(env, self.result)?;
        Ok(self.result)
    }

    /// Takes one step. This is the only place that steps a world.
    ///
    /// # Errors
    /// When the world, the actor or the observer returns an error, or when an output or the reward is not
    /// finite; the error names genome, episode, seed and step. A step of a finished episode gives the world's
    /// error.
    pub fn step<E: From<EvaluateError>>(
        &mut self,
        env: &mut dyn Env,
        actor: &mut (impl Actor + ?Sized),
        observer: &mut (impl Observer<E> + ?Sized),
    ) -> Result<Step, E> {
        if self.over {
            let source = EnvError::NeedsReset { env: env.spec().id.clone() };
            return Err(self.refused(source.into()).into());
        }
        let step = self.result.steps;
        self.begun = step + 1;
        let (agent, context) = (actor.agent(), &self.context);
        observer.before_choice(BeforeChoice { step, env, agent, context })?;
        let chosen = match actor.act(env, step, &mut self.context) {
            Ok(chosen) => chosen,
            Err(error) => return Err(self.refused(error).into()),
        };
        let action = match chosen.action {
            RawAction::Choice(choice) => Action::Discrete(choice),
            RawAction::Outputs(outputs) => {
                if let Some((i, x)) = outputs.iter().enumerate().find(|(_, x)| !x.is_finite()) {
                    return Err(self.broken_at(self.begun, format!("the agent's action[{i}] is {x}")).into());
                }
                env.spec().action.choose(outputs).map_err(|source| self.refused(source.into()))?
            }
        };
        observer.before_step(BeforeStep { step, env, chosen })?;
        let choice = match action {
            Action::Discrete(choice) => Some(choice),
            Action::Continuous(_) => None,
        };
        let outcome = env.step(action).map_err(|source| self.refused(source.into()))?;
        observer.after_step(AfterStep { step, env, outcome })?;
        if !outcome.reward.is_finite() {
            return Err(self.broken_at(self.begun, format!("the reward is {}", outcome.reward)).into());
        }
        self.count(outcome);
        if self.over {
            self.result.total = env.score(self.result.total);
            self.result.task = env.task();
        }
        self.context.reward = outcome.reward;
        self.context.choice = choice;
        Ok(outcome)
    }

    /// Counts a step and applies the rules.
    fn count(&mut self, outcome: Step) {
        let EpisodeRules { max_steps, patience } = self.rules;
        self.result.total += outcome.reward;
        self.result.steps += 1;
        self.negative = if outcome.reward < 0.0 { self.negative + 1 } else { 0 };
        self.over = true;
        if outcome.is_over() {
            (self.result.terminated, self.result.truncated) = (outcome.terminated, outcome.truncated);
        } else if patience.is_some_and(|patience| self.negative > patience) {
            self.result.cut = true;
        } else if self.result.steps >= max_steps {
            self.result.truncated = true;
        } else {
            self.over = false;
        }
    }

    /// The error of this episode when its next or current step fails with an actor's `error`.
    pub fn refused(&self, error: ActorError) -> EvaluateError {
        let (RolloutJob { genome, episode, env_seed }, step) = (self.job, self.result.steps + 1);
        match error {
            ActorError::Env(source) => EvaluateError::Env { genome, episode, env_seed, step, source },
            ActorError::Policy(source) => EvaluateError::Policy { genome, episode, env_seed, step, source },
        }
    }

    /// The error of this episode when the current step fails with `what`, such as a panic.
    pub fn broken(&self, what: String) -> EvaluateError {
        self.broken_at(self.begun, what)
    }

    fn broken_at(&self, step: u64, what: String) -> EvaluateError {
        let RolloutJob { genome, episode, env_seed } = self.job;
        EvaluateError::Broken { genome, episode, env_seed, step, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ActionSpace, EnvSpec, Fact, ImageBuf, Observation, ObservationSpace, Policy, PolicyAgent, TensorShape,
    };

    const JOB: RolloutJob = RolloutJob { genome: 3, episode: 1, env_seed: 5 };
    const TRAINING: EpisodeRules = EpisodeRules { max_steps: 1000, patience: Some(20) };

    /// A world that gives a list of rewards, terminates after the last, and stores the choices made.
    #[derive(Clone)]
    struct Payer {
        spec: EnvSpec,
        rewards: Vec<f64>,
        choices: Vec<usize>,
        at: usize,
    }

    fn payer(rewards: &[f64], action: ActionSpace) -> Payer {
        let spec = EnvSpec {
            id: "payer".into(),
            observation: ObservationSpace::Vector { len: 1 },
            action,
            max_steps: None,
            fps: 1.0,
        };
        Payer { spec, rewards: rewards.to_vec(), choices: vec![], at: 0 }
    }

    fn numbers() -> ActionSpace {
        ActionSpace::Box { low: vec![-1.0; 3], high: vec![1.0; 3] }
    }

    impl Env for Payer {
        fn spec(&self) -> &EnvSpec {
            &self.spec
        }
        fn reset(&mut self, _: Option<u64>) {
            (self.at, self.choices) = (0, vec![]);
        }
        fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
            if let Action::Discrete(choice) = action {
                self.choices.push(choice);
            }
            self.at += 1;
            let terminated = self.at == self.rewards.len();
            Ok(Step { reward: self.rewards[self.at - 1], terminated, truncated: false })
        }
        fn observation(&self) -> Observation<'_> {
            Observation::Vector(&[0.0])
        }
        fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
            Ok(())
        }
        fn state(&self) -> Fact {
            Fact::Count(self.at as u64)
        }
        fn expert(&mut self, _: &mut [f64]) -> Result<(), EnvError> {
            Err(EnvError::NoExpert { env: "payer".into() })
        }
        fn boxed_clone(&self) -> Box<dyn Env> {
            Box::new(self.clone())
        }
    }

    /// An actor that returns the same three numbers in every step.
    #[derive(Clone)]
    pub(super) struct Constant(pub [f64; 3]);

    impl Policy for Constant {
        type Memory = [f64; 3];
        fn memory(&self) -> [f64; 3] {
            self.0
        }
        fn reset(&self, _: &mut [f64; 3], _: Seed) {}
        fn act<'m>(
            &self,
            _: Observation<'_>,
            memory: &'m mut [f64; 3],
            _: &mut ActContext,
        ) -> Result<Decision<'m>, PolicyError> {
            Ok(Decision::new(memory))
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

    fn run(
        env: &mut dyn Env,
        outputs: [f64; 3],
        rules: EpisodeRules,
    ) -> Result<EpisodeResult, EvaluateError> {
        let agent: &mut dyn Agent = &mut PolicyAgent::new(Constant(outputs));
        let mut episode = Episode::new(JOB, rules);
        let result = episode.run(env, agent, &mut ())?;
        assert_eq!((episode.begun(), episode.result()), (result.steps, result));
        Ok(result)
    }

    /// Runs a world that gives `rewards` and then ends; checks (steps, total, how it ended).
    #[track_caller]
    fn check(name: &str, rewards: &[f64], rules: EpisodeRules, expect: (u64, f64, &str)) {
        let result = run(&mut payer(rewards, numbers()), [0.5; 3], rules).expect("nothing is broken");
        let how = match (result.terminated, result.truncated, result.cut) {
            (true, false, false) => "terminated",
            (false, true, false) => "truncated",
            (false, false, true) => "cut",
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!((result.steps, how), (expect.0, expect.2), "{name}");
        assert!((result.total - expect.1).abs() < 1e-9, "{name}: {}", result.total);
    }

    #[test]
    fn episodes_end_when_they_should() {
        let red = |n: usize| vec![-0.1; n];
        let whole = EpisodeRules::WHOLE;
        let short = EpisodeRules { max_steps: 30, ..whole };
        check("20 in the red are put up with", &red(20), TRAINING, (20, -2.0, "terminated"));
        check("the 21st is not", &red(100), TRAINING, (21, -2.1, "cut"));
        check("an evaluation goes on", &red(100), whole, (100, -10.0, "terminated"));
        let gain = [red(20), vec![1.0], red(30)].concat();
        check("a gain starts the count again", &gain, TRAINING, (42, -3.1, "cut"));
        check("zero is no loss", &[red(20), vec![0.0], red(20)].concat(), TRAINING, (41, -4.0, "terminated"));
        check("time limit", &vec![1.0; 50], short, (30, 30.0, "truncated"));
        check("the end at the limit is the world's", &[1.0; 30], short, (30, 30.0, "terminated"));
        check("the end on the 21st is the world's", &red(21), TRAINING, (21, -2.1, "terminated"));
        check("no step at all", &red(3), EpisodeRules { max_steps: 0, ..whole }, (0, 0.0, "truncated"));
    }

    #[test]
    fn what_is_not_finite_is_an_error_that_says_where() {
        let whole = EpisodeRules::WHOLE;
        let said = |env: &mut Payer, outputs| run(env, outputs, whole).expect_err("broken").to_string();
        for (rewards, what) in [
            (&[1.0, 1.0, f64::NAN, 1.0][..], "step 3: the reward is NaN"),
            (&[f64::INFINITY], "step 1: the reward is inf"),
            (&[1e308, 1e308], "step 2: the return is inf"),
        ] {
            let expect = format!("genome 3, episode 1 (seed 5), {what}");
            assert_eq!(said(&mut payer(rewards, numbers()), [0.0; 3]), expect);
        }
        for space in [numbers(), ActionSpace::Discrete { n: 3 }] {
            for (outputs, what) in
                [([f64::NAN; 3], "action[0] is NaN"), ([0.0, 2.0, f64::INFINITY], "action[2] is inf")]
            {
                let mut env = payer(&[1.0; 3], space.clone());
                let expect = format!("genome 3, episode 1 (seed 5), step 1: the agent's {what}");
                assert_eq!(said(&mut env, outputs), expect);
                assert_eq!((env.at, env.choices), (0, vec![]), "the world was not stepped");
            }
        }
    }

    #[test]
    fn the_largest_score_is_chosen_the_first_of_equals() {
        for (scores, choice) in [([1.0, 3.0, 2.0], 1), ([-5.0, -1.0, -1.0], 1), ([0.0; 3], 0)] {
            let mut env = payer(&[1.0, 1.0], ActionSpace::Discrete { n: 3 });
            run(&mut env, scores, EpisodeRules::WHOLE).expect("finite");
            assert_eq!(env.choices, [choice; 2]);
        }
    }

    /// Records the events it receives.
    struct Log(Vec<String>);

    impl Observer for Log {
        fn before_choice(&mut self, now: BeforeChoice<'_>) -> Result<(), EvaluateError> {
            let BeforeChoice { step, env, agent, .. } = now;
            self.0.push(format!("choice {step} {:?} {}", env.state(), agent.is_some()));
            Ok(())
        }
        fn before_step(&mut self, step: BeforeStep<'_>) -> Result<(), EvaluateError> {
            self.0.push(format!("{:?} {:?}", step.chosen.action, step.env.state()));
            Ok(())
        }
        fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), EvaluateError> {
            self.0.push(format!("paid {} {:?}", step.outcome.reward, step.env.state()));
            Ok(())
        }
        fn end(&mut self, _: &dyn Env, result: EpisodeResult) -> Result<(), EvaluateError> {
            self.0.push(format!("end {}", result.total));
            Ok(())
        }
    }

    #[test]
    fn observers_see_every_step_in_order_the_one_that_fails_included() {
        let mut log = Log(vec![]);
        let agent: &mut dyn Agent = &mut PolicyAgent::new(Constant([0.5; 3]));
        let whole = EpisodeRules::WHOLE;
        Episode::of_seed(0, whole).run(&mut payer(&[2.0], numbers()), agent, &mut log).expect("fine");
        let expect =
            ["choice 0 Count(0) true", "Outputs([0.5, 0.5, 0.5]) Count(0)", "paid 2 Count(1)", "end 2"];
        assert_eq!(log.0, expect);
        log.0.clear();
        let mut held = RawAction::Choice(1);
        let broken = Episode::of_seed(0, whole).run(&mut payer(&[f64::NAN], numbers()), &mut held, &mut log);
        assert!(broken.is_err());
        assert_eq!(log.0, ["choice 0 Count(0) false", "Choice(1) Count(0)", "paid NaN Count(1)"]);
    }

    #[test]
    fn recorded_actions_are_driven_again_and_no_further() {
        let mut env = payer(&[1.0; 9], numbers());
        let mut recorder = ActionRecorder::default();
        let rows = [vec![0.1; 3], vec![0.2; 3]];
        let mut actor = RecordedActor(&rows);
        let mut episode = Episode::of_seed(0, actor.rules());
        let result = episode.run::<EvaluateError>(&mut env, &mut actor, &mut recorder).expect("finite");
        assert_eq!((result.steps, result.truncated, &recorder.actions[..]), (2, true, &rows[..]));
        let said =
            episode.step::<EvaluateError>(&mut env, &mut actor, &mut ()).expect_err("over").to_string();
        assert!(said.contains("call reset first"), "{said}");
        let mut longer = Episode::of_seed(0, EpisodeRules::WHOLE);
        let said =
            longer.run::<EvaluateError>(&mut env, &mut actor, &mut ()).expect_err("too few").to_string();
        assert!(said.contains("2 actions were recorded; none for step 3"), "{said}");
    }
}
