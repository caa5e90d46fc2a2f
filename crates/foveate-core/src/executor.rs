//! Running episodes: the work, who runs it, and the results.
//!
//! A [`Learner`](crate::Learner) or a training plan requests [`Work`]; an [`Executor`] runs it and returns
//! [`Experience`]. Both are plain values that serialise, with a version, so an executor may be threads, a
//! cluster or a batched evaluator on a GPU. A remote executor also needs the world and the agent by name: a
//! [`Setup`]. Setup and work together are an [`Order`]: everything that a machine with only the program needs
//! to know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::episode::{DemonstrationActor, Episode, EpisodeRules};
use crate::{
    ActMode, Agent, Demonstration, DemonstrationPlan, DifferentiatedEpisode, DifferentiatingActor, Env,
    EnvError, PolicyError, Population, Seed, StepEnds, TransitionRecorder, Unroll, episode_seed,
};

/// The version of [`Order`] and [`Experience`]; values of another version are refused, see [`Order::check`].
pub const WORK_VERSION: u32 = 2;

/// The purpose of a set of episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Training: the learner learns from them.
    Training,
    /// Validation: selects weights during the run.
    Validation,
    /// Final selection: selects the best of the validated weights at the end.
    Finals,
    /// Test: reports on the best weights; selects nothing.
    Report,
    /// Monitoring during the run; selects nothing.
    Evaluation,
}

impl Purpose {
    /// Its name, which is also the label of its branch in the seed tree: `training`, `validation`, ….
    pub const fn label(self) -> &'static str {
        match self {
            Purpose::Training => "training",
            Purpose::Validation => "validation",
            Purpose::Finals => "finals",
            Purpose::Report => "report",
            Purpose::Evaluation => "evaluation",
        }
    }

    /// True if agents explore in these episodes: they do for training, and for evaluation with `draw_actions` alone. ε-greedy
    /// policies take a random action with probability `epsilon` then.
    pub const fn mode(self, epsilon: f64, draw_actions: bool) -> ActMode {
        if self.trains() || draw_actions { ActMode::Explore { epsilon } } else { ActMode::Greedy }
    }

    /// Returns whether a learner learns from these episodes.
    pub const fn trains(self) -> bool {
        matches!(self, Purpose::Training)
    }
}

/// What is recorded of every episode besides its return.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// Nothing.
    #[default]
    Returns,
    /// The controller inputs of every step, and the action of the world's expert there.
    Demonstrations(DemonstrationPlan),
    /// The derivatives of every step, see [`DifferentiatedEpisode`].
    Derivatives,
    /// The derivatives of one window, drawn from those into which the episode is divided. The episode is truncated after it;
    /// when it ends before the window, nothing is recorded.
    Window {
        /// Steps of a window, at least 1. The last one may be shorter.
        steps: u64,
    },
    /// Observations, actions and rewards, in unrolls of at most this many steps.
    Transitions {
        /// Steps per unroll, at least 1.
        unroll: usize,
    },
}

/// Episodes to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Their purpose.
    pub purpose: Purpose,
    /// `[rows, n_params]`: the weights; every job gives the index of its row.
    pub weights: Population,
    /// The episodes.
    pub jobs: Vec<RolloutJob>,
    /// The rules that end an episode before the world does.
    pub rules: EpisodeRules,
    /// What is recorded of every episode.
    pub record: Record,
    /// Probability with which ε-greedy agents take a random action in training, 0 to 1.
    #[serde(default)]
    pub epsilon: f64,
    /// True if agents explore as in training whatever the purpose is, such as in validations of an agent that draws its actions.
    #[serde(default)]
    pub draw_actions: bool,
}

impl Work {
    /// Whether agents explore.
    pub const fn mode(&self) -> ActMode {
        self.purpose.mode(self.epsilon, self.draw_actions)
    }

    /// Checks work from outside: that the row of every job exists, that the unroll length is at least 1, and the range of ε.
    ///
    /// # Errors
    /// [`OrderError`] says what is invalid.
    pub fn check(&self) -> Result<(), OrderError> {
        let rows = self.weights.len();
        match self.jobs.iter().find(|job| job.genome >= rows) {
            Some(job) => Err(OrderError::Row { row: job.genome, rows }),
            None if self.record == (Record::Transitions { unroll: 0 }) => Err(OrderError::NoUnroll),
            None if !(0.0..=1.0).contains(&self.epsilon) => Err(OrderError::Epsilon { given: self.epsilon }),
            None => Ok(()),
        }
    }
}

/// The world and the agent of some [`Work`], by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The world.
    pub world: WorldSetup,
    /// The agent.
    pub agent: AgentSetup,
}

/// A world requested by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldSetup {
    /// Its registered name.
    pub id: String,
    /// Its picture; `None` for the world's default.
    pub picture: Option<String>,
    /// Its visual variants.
    pub variants: Vec<String>,
    /// Options by name.
    pub options: BTreeMap<String, String>,
    /// Shifts of its observations and actions.
    pub shifts: Vec<String>,
}

/// An agent requested by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSetup {
    /// Its registered name.
    pub name: String,
    /// Its settings as JSON; missing ones have their defaults.
    pub config: String,
}

/// Work with everything that a remote machine needs to run it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// [`WORK_VERSION`].
    pub version: u32,
    /// World and agent.
    pub setup: Setup,
    /// The episodes.
    pub work: Work,
}

impl Order {
    /// An order with the current version.
    pub const fn new(setup: Setup, work: Work) -> Self {
        Order { version: WORK_VERSION, setup, work }
    }

    /// Checks an order from outside: the version, and its [work](Work::check).
    ///
    /// # Errors
    /// [`OrderError`] says what is invalid.
    pub fn check(&self) -> Result<(), OrderError> {
        if self.version != WORK_VERSION {
            return Err(OrderError::Version { given: self.version });
        }
        self.work.check()
    }
}

/// Errors in an [`Order`] or an [`Experience`] from outside.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The version differs.
    #[error(
        "version {given} of work, this program reads version {WORK_VERSION}; use the same program on all machines"
    )]
    Version {
        /// The version that was given.
        given: u32,
    },
    /// A job refers to a row of weights that does not exist.
    #[error("a job asks for row {row} of the weights, there are {rows}; send all rows that jobs name")]
    Row {
        /// The row.
        row: usize,
        /// The number of rows.
        rows: usize,
    },
    /// ε is no probability.
    #[error("random actions with a probability of {given}; choose from 0 to 1")]
    Epsilon {
        /// The probability.
        given: f64,
    },
    /// The unroll length is 0.
    #[error("transitions in stretches of 0 steps; choose an unroll length of 1 or more")]
    NoUnroll,
    /// The wrong number of results.
    #[error("{given} {what} for {wanted} jobs; give one for each job, in their order")]
    Count {
        /// Results or recordings.
        what: &'static str,
        /// Jobs.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
}

/// The results of running [`Work`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experience {
    /// [`WORK_VERSION`].
    pub version: u32,
    /// The result of each episode, in the order of the jobs.
    pub episodes: Vec<EpisodeResult>,
    /// The recording of each episode, in the order of the jobs; empty for [`Record::Returns`].
    pub recordings: Vec<Recording>,
}

impl Default for Experience {
    fn default() -> Self {
        Experience { version: WORK_VERSION, episodes: Vec::new(), recordings: Vec::new() }
    }
}

impl Experience {
    /// Experience with the results of these episodes and no recordings.
    pub fn of_episodes(episodes: Vec<EpisodeResult>) -> Self {
        Experience { episodes, ..Experience::default() }
    }

    /// Checks that it belongs to `work`.
    ///
    /// # Errors
    /// [`OrderError`] says what is invalid.
    pub fn check(&self, work: &Work) -> Result<(), OrderError> {
        if self.version != WORK_VERSION {
            return Err(OrderError::Version { given: self.version });
        }
        let wanted = work.jobs.len();
        let recordings = if work.record == Record::Returns { 0 } else { wanted };
        if self.episodes.len() != wanted {
            return Err(OrderError::Count { what: "results", wanted, given: self.episodes.len() });
        }
        if self.recordings.len() != recordings {
            return Err(OrderError::Count {
                what: "recordings",
                wanted: recordings,
                given: self.recordings.len(),
            });
        }
        Ok(())
    }
}

/// The recording of one episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recording {
    /// From [`Record::Demonstrations`].
    Demonstration(Demonstration),
    /// From [`Record::Derivatives`] and [`Record::Window`].
    Differentiated(DifferentiatedEpisode),
    /// From [`Record::Transitions`], in order.
    Transitions(Vec<Unroll>),
}

/// Runs work: threads, a cluster, a batched evaluator on a GPU.
///
/// The result of a job depends only on the job, its weights, the rules and the record; an executor may run
/// jobs in any order, on any machine, in parallel, and returns the same bits. `foveate_run::workers` has an
/// example of an executor that sends work to other machines.
pub trait Executor {
    /// Runs every job of `work`; `experience.episodes[i]` belongs to `work.jobs[i]`, in whatever order they
    /// ran. The content of `experience` is overwritten and its memory reused.
    ///
    /// # Errors
    /// When a rollout fails: the error of the first failed job in the order of the jobs, with its episode and
    /// step. No job is skipped silently. A return that is not finite is also an error.
    fn execute(&mut self, work: &Work, experience: &mut Experience) -> Result<(), EvaluateError>;
}

/// Runs one episode from the world's reset to its end, and returns what `record` asks for; `None` for
/// [`Record::Returns`]. Every executor that steps worlds uses this function.
///
/// # Errors
/// Those of [`Episode::step`]; when the recording takes too much memory, see [`TransitionRecorder`].
pub fn run_episode(
    episode: &mut Episode,
    env: &mut dyn Env,
    agent: &mut dyn Agent,
    record: Record,
) -> Result<(EpisodeResult, Option<Recording>), EvaluateError> {
    match record {
        Record::Returns => Ok((episode.run(env, agent, &mut ())?, None)),
        Record::Demonstrations(plan) => {
            let mut demonstration = Demonstration::default();
            let space = &env.spec().action;
            let mut actor = DemonstrationActor::new(plan, episode.job(), space, agent, &mut demonstration);
            let result = episode.run(env, &mut actor, &mut ())?;
            Ok((result, Some(Recording::Demonstration(demonstration))))
        }
        Record::Derivatives | Record::Window { .. } => {
            let begin = match record {
                Record::Window { steps } => episode.keep_window(steps, env)?,
                _ => 0,
            };
            let mut recorded = DifferentiatedEpisode::default();
            let mut ends = StepEnds::new(episode.job(), begin);
            let mut actor = DifferentiatingActor::new(agent, &mut recorded, begin);
            let result = episode.run(env, &mut actor, &mut ends)?;
            ends.complete(&mut recorded);
            Ok((result, Some(Recording::Differentiated(recorded))))
        }
        Record::Transitions { unroll } => {
            let mut recorder = TransitionRecorder::new(episode.job(), unroll);
            let result = episode.run(env, agent, &mut recorder)?;
            Ok((result, Some(Recording::Transitions(recorder.into_unrolls()))))
        }
    }
}

/// Runs the jobs one by one on the caller's thread.
///
/// For tests, and for programs without threads; `foveate_run::workers` has the executor that uses all cores.
pub struct SerialExecutor {
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
}

impl SerialExecutor {
    /// An executor with copies of this world and this agent.
    pub fn new(env: &dyn Env, agent: &dyn Agent) -> Self {
        SerialExecutor { env: env.boxed_clone(), agent: agent.boxed_clone() }
    }
}

impl Executor for SerialExecutor {
    fn execute(&mut self, work: &Work, experience: &mut Experience) -> Result<(), EvaluateError> {
        experience.version = WORK_VERSION;
        experience.episodes.clear();
        experience.recordings.clear();
        for &job in &work.jobs {
            set_weights(&mut *self.agent, work.weights.genome(job.genome), job)?;
            let mut episode = Episode::new(job, work.rules).with_mode(work.mode());
            let (result, recording) =
                run_episode(&mut episode, &mut *self.env, &mut *self.agent, work.record)?;
            experience.episodes.push(result);
            experience.recordings.extend(recording);
        }
        Ok(())
    }
}

/// Sets the agent's weights to those of a job.
///
/// # Errors
/// When the agent rejects them; the error names the job, with step 0.
pub fn set_weights(agent: &mut dyn Agent, weights: &[f32], job: RolloutJob) -> Result<(), EvaluateError> {
    let RolloutJob { genome, episode, env_seed } = job;
    agent.set_params(weights).map_err(|source| EvaluateError::Policy {
        genome,
        episode,
        env_seed,
        step: 0,
        source,
    })
}

/// One episode to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RolloutJob {
    /// Its row of the population.
    pub genome: usize,
    /// Index among the genome's episodes.
    pub episode: usize,
    /// The seed for the world's reset.
    pub env_seed: u64,
}

impl RolloutJob {
    /// The agent's seed, where this is episode number `episode` of the stream seeded with `env_seed`.
    pub const fn episode_seed(&self) -> Seed {
        episode_seed(self.env_seed, self.episode)
    }
}

/// The result of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EpisodeResult {
    /// Sum of rewards, or the [score](Env::score) that the world makes of it.
    pub total: f64,
    /// Steps taken.
    pub steps: u64,
    /// Which of the world's [tasks](Env::task) it was of.
    pub task: usize,
    /// The world ended the episode because the task ended.
    pub terminated: bool,
    /// The world's time limit ended the episode.
    pub truncated: bool,
    /// The training rule for hopeless rollouts ended the episode; never set in an evaluation.
    pub cut: bool,
}

/// The error of a failed rollout.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The world returned an error.
    #[error("genome {genome}, episode {episode} (seed {env_seed}), step {step}: {source}")]
    Env {
        /// The genome.
        genome: usize,
        /// The episode.
        episode: usize,
        /// The world's seed.
        env_seed: u64,
        /// The step.
        step: u64,
        /// The reason.
        source: EnvError,
    },
    /// The policy returned an error.
    #[error("genome {genome}, episode {episode} (seed {env_seed}), step {step}: {source}")]
    Policy {
        /// The genome.
        genome: usize,
        /// The episode.
        episode: usize,
        /// The world's seed.
        env_seed: u64,
        /// The step.
        step: u64,
        /// The reason.
        source: PolicyError,
    },
    /// What runs the rollouts cannot: a cluster without machines, an answer that is none.
    #[error("{what}")]
    Executor {
        /// Why, and what to do.
        what: String,
    },
    /// A stop was requested before all jobs were done.
    #[error("stopped before all rollouts were done")]
    Stopped,
    /// The reward or the action was not finite, or the rollout panicked.
    #[error("genome {genome}, episode {episode} (seed {env_seed}), step {step}: {what}")]
    Broken {
        /// The genome.
        genome: usize,
        /// The episode.
        episode: usize,
        /// The world's seed.
        env_seed: u64,
        /// The step.
        step: u64,
        /// What happened.
        what: String,
    },
}

impl EvaluateError {
    /// The message for a rollout of weights outside any population: it names `weights` instead of a genome.
    ///
    /// ```
    /// use foveate_core::EvaluateError;
    /// let error = EvaluateError::Broken { genome: 0, episode: 3, env_seed: 7, step: 2, what: "the reward is NaN".into() };
    /// assert_eq!(error.about("best.safetensors"), "best.safetensors, episode 3 (seed 7), step 2: the reward is NaN");
    /// ```
    pub fn about(&self, weights: &str) -> String {
        let (EvaluateError::Env { episode, env_seed, step, .. }
        | EvaluateError::Policy { episode, env_seed, step, .. }
        | EvaluateError::Broken { episode, env_seed, step, .. }) = self
        else {
            return self.to_string();
        };
        let what = self.reason();
        format!("{weights}, episode {episode} (seed {env_seed}), step {step}: {what}")
    }

    /// The cause, without the place.
    pub fn reason(&self) -> String {
        match self {
            EvaluateError::Env { source, .. } => source.to_string(),
            EvaluateError::Policy { source, .. } => source.to_string(),
            EvaluateError::Broken { what, .. } => what.clone(),
            EvaluateError::Executor { .. } | EvaluateError::Stopped => self.to_string(),
        }
    }
}

/// An [`EvaluateError`] as a plain value, for sending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedJob {
    /// The job.
    pub job: RolloutJob,
    /// Index of the step.
    pub step: u64,
    /// The cause, without the place.
    pub what: String,
}

impl EvaluateError {
    /// The failed job, step and cause; `None` when no job failed.
    pub fn failed(&self) -> Option<FailedJob> {
        let (EvaluateError::Env { genome, episode, env_seed, step, .. }
        | EvaluateError::Policy { genome, episode, env_seed, step, .. }
        | EvaluateError::Broken { genome, episode, env_seed, step, .. }) = *self
        else {
            return None;
        };
        Some(FailedJob { job: RolloutJob { genome, episode, env_seed }, step, what: self.reason() })
    }
}

impl FailedJob {
    /// Converts it back to an error with the same message.
    pub fn into_error(self) -> EvaluateError {
        let FailedJob { job: RolloutJob { genome, episode, env_seed }, step, what } = self;
        EvaluateError::Broken { genome, episode, env_seed, step, what }
    }
}
