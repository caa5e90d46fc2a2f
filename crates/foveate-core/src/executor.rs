//! Running episodes: what is asked for, who runs it, and what comes back.
//!
//! A [`Learner`](crate::Learner) or a training plan asks for [`Work`], an [`Executor`] runs it and gives back
//! [`Experience`]. Both are plain values that serialise, with a version, so an executor may be threads, a cluster or a
//! batched evaluator on a GPU. An executor elsewhere also needs the world and the agent by name: a [`Setup`]. With the
//! work that is an [`Order`], all that a machine must know that has nothing but the program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::episode::{DemonstrationActor, Episode, EpisodeRules};
use crate::{
    ActMode, Agent, Demonstration, DemonstrationPlan, Env, EnvError, PolicyError, Population, Seed,
    TransitionRecorder, Unroll, episode_seed,
};

/// The version of [`Order`] and [`Experience`]; values of another version are refused, see [`Order::check`].
pub const WORK_VERSION: u32 = 1;

/// What episodes are run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To learn from.
    Training,
    /// To choose weights while the run goes on.
    Validation,
    /// To choose the best of the chosen weights in the end.
    Finals,
    /// To report on the best weights; nothing is chosen.
    Report,
    /// To watch while the run goes on; nothing is chosen.
    Evaluation,
}

impl Purpose {
    /// Its name, which is also that of its branch in the tree of seeds: `training`, `validation`, ….
    pub const fn label(self) -> &'static str {
        match self {
            Purpose::Training => "training",
            Purpose::Validation => "validation",
            Purpose::Finals => "finals",
            Purpose::Report => "report",
            Purpose::Evaluation => "evaluation",
        }
    }

    /// Whether agents explore in these episodes: to learn from them they do, to be judged they do not.
    pub const fn mode(self) -> ActMode {
        if self.trains() { ActMode::Explore } else { ActMode::Greedy }
    }

    /// Whether a learner learns from these episodes.
    pub const fn trains(self) -> bool {
        matches!(self, Purpose::Training)
    }
}

/// What is kept of every episode besides its return.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// Nothing.
    #[default]
    Returns,
    /// What the part of the policy that learns was told in every step, and what the world's expert would have done there.
    Demonstrations(DemonstrationPlan),
    /// Observations, actions and rewards, in stretches of at most so many steps.
    Transitions {
        /// Steps of a stretch, at least 1.
        unroll: usize,
    },
}

/// Episodes to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// What for.
    pub purpose: Purpose,
    /// `[rows, n_params]`: the weights; a job names its row.
    pub weights: Population,
    /// The episodes.
    pub jobs: Vec<RolloutJob>,
    /// What ends an episode besides the world itself.
    pub rules: EpisodeRules,
    /// What is kept of every episode.
    pub record: Record,
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

/// A world as it is asked for by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldSetup {
    /// Its registered name.
    pub id: String,
    /// Its picture; `None` for the world's own.
    pub picture: Option<String>,
    /// Variants of its looks.
    pub variants: Vec<String>,
    /// Options by name.
    pub options: BTreeMap<String, String>,
    /// Shifts of what it shows and takes.
    pub shifts: Vec<String>,
}

/// An agent as it is asked for by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSetup {
    /// Its registered name.
    pub name: String,
    /// Its settings as JSON; what is left out is at its default.
    pub config: String,
}

/// Work with all that a machine elsewhere needs to run it.
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
    /// An order of this version.
    pub const fn new(setup: Setup, work: Work) -> Self {
        Order { version: WORK_VERSION, setup, work }
    }

    /// Checks what came from elsewhere: the version, that every job names a row of the weights, that stretches have a
    /// length.
    ///
    /// # Errors
    /// [`OrderError`] says what does not fit.
    pub fn check(&self) -> Result<(), OrderError> {
        if self.version != WORK_VERSION {
            return Err(OrderError::Version { given: self.version });
        }
        let rows = self.work.weights.len();
        match self.work.jobs.iter().find(|job| job.genome >= rows) {
            Some(job) => Err(OrderError::Row { row: job.genome, rows }),
            None if self.work.record == (Record::Transitions { unroll: 0 }) => Err(OrderError::NoUnroll),
            None => Ok(()),
        }
    }
}

/// What can be wrong with an [`Order`] or an [`Experience`] from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// Another version.
    #[error(
        "version {given} of work, this program reads version {WORK_VERSION}; use the same program on all machines"
    )]
    Version {
        /// The version that was given.
        given: u32,
    },
    /// A job of weights that are not there.
    #[error("a job asks for row {row} of the weights, there are {rows}; send all rows that jobs name")]
    Row {
        /// The row.
        row: usize,
        /// How many rows there are.
        rows: usize,
    },
    /// Stretches of no steps.
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

/// What came back from running [`Work`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experience {
    /// [`WORK_VERSION`].
    pub version: u32,
    /// How each episode went, in the order of the jobs.
    pub episodes: Vec<EpisodeResult>,
    /// What was kept of each, in the order of the jobs; none for [`Record::Returns`].
    pub recordings: Vec<Recording>,
}

impl Default for Experience {
    fn default() -> Self {
        Experience { version: WORK_VERSION, episodes: Vec::new(), recordings: Vec::new() }
    }
}

impl Experience {
    /// Returns alone, of these episodes.
    pub fn of_episodes(episodes: Vec<EpisodeResult>) -> Self {
        Experience { episodes, ..Experience::default() }
    }

    /// Checks that it answers `work`.
    ///
    /// # Errors
    /// [`OrderError`] says what does not fit.
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

/// What was kept of one episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recording {
    /// Of [`Record::Demonstrations`].
    Demonstration(Demonstration),
    /// Of [`Record::Transitions`], in order.
    Transitions(Vec<Unroll>),
}

/// Runs work: threads, a cluster, a batched evaluator on a GPU.
///
/// What a job gives depends on the job, its weights, the rules and the record alone; an executor may run jobs in any order,
/// anywhere, several at once, and gives the same bits. `foveate_run::workers` has an example of an executor that sends
/// work elsewhere.
pub trait Executor {
    /// Runs every job of `work`; `experience.episodes[i]` belongs to `work.jobs[i]`, whatever ran first. What was in
    /// `experience` is overwritten, its room used again.
    ///
    /// # Errors
    /// When a rollout fails: of all jobs that failed the first in the order of the jobs, with its episode and step.
    /// Nothing is skipped silently. A return that is not finite is a failure, too.
    fn execute(&mut self, work: &Work, experience: &mut Experience) -> Result<(), EvaluateError>;
}

/// Runs one episode from the world's reset to its end, and keeps what `record` asks for; `None` for
/// [`Record::Returns`]. Every executor that drives worlds does it with this.
///
/// # Errors
/// As [`Episode::step`]; or when what is kept takes too much memory, see [`TransitionRecorder`].
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
        Record::Transitions { unroll } => {
            let mut recorder = TransitionRecorder::new(episode.job(), unroll);
            let result = episode.run(env, agent, &mut recorder)?;
            Ok((result, Some(Recording::Transitions(recorder.into_unrolls()))))
        }
    }
}

/// Runs one job after the other on the caller's thread.
///
/// For tests, and for programs that may have no threads; `foveate_run::workers` has the executor that uses all cores.
pub struct SerialExecutor {
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
}

impl SerialExecutor {
    /// With copies of this world and this agent.
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
            let mut episode = Episode::new(job, work.rules).with_mode(work.purpose.mode());
            let (result, recording) =
                run_episode(&mut episode, &mut *self.env, &mut *self.agent, work.record)?;
            experience.episodes.push(result);
            experience.recordings.extend(recording);
        }
        Ok(())
    }
}

/// Gives the agent the weights of a job.
///
/// # Errors
/// When the agent refuses them; the error names the job, with step 0.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutJob {
    /// Row of the population.
    pub genome: usize,
    /// Which of the genome's episodes.
    pub episode: usize,
    /// The seed that the world is reset with.
    pub env_seed: u64,
}

impl RolloutJob {
    /// The agent's seed where `env_seed` began a stream and this is episode number `episode` of it.
    pub const fn episode_seed(&self) -> Seed {
        episode_seed(self.env_seed, self.episode)
    }
}

/// How an episode went.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EpisodeResult {
    /// Sum of rewards.
    pub total: f64,
    /// Steps taken.
    pub steps: u64,
    /// The task itself ended.
    pub terminated: bool,
    /// The world's time limit ended the episode.
    pub truncated: bool,
    /// The training rule for hopeless rollouts ended it; never so in an evaluation.
    pub cut: bool,
}

/// A rollout that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The world refused.
    #[error("genome {genome}, episode {episode} (seed {env_seed}), step {step}: {source}")]
    Env {
        /// Which genome.
        genome: usize,
        /// Which episode.
        episode: usize,
        /// The world's seed.
        env_seed: u64,
        /// Which step.
        step: u64,
        /// Why.
        source: EnvError,
    },
    /// The policy refused.
    #[error("genome {genome}, episode {episode} (seed {env_seed}), step {step}: {source}")]
    Policy {
        /// Which genome.
        genome: usize,
        /// Which episode.
        episode: usize,
        /// The world's seed.
        env_seed: u64,
        /// Which step.
        step: u64,
        /// Why.
        source: PolicyError,
    },
    /// Someone asked to stop before all jobs were done.
    #[error("stopped before all rollouts were done")]
    Stopped,
    /// The reward or the action was not finite, or the rollout panicked.
    #[error("genome {genome}, episode {episode} (seed {env_seed}), step {step}: {what}")]
    Broken {
        /// Which genome.
        genome: usize,
        /// Which episode.
        episode: usize,
        /// The world's seed.
        env_seed: u64,
        /// Which step.
        step: u64,
        /// What happened.
        what: String,
    },
}

impl EvaluateError {
    /// The message for a rollout of weights that belong to no population: it names `weights` instead of a genome.
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

    /// What went wrong, without saying where.
    pub fn reason(&self) -> String {
        match self {
            EvaluateError::Env { source, .. } => source.to_string(),
            EvaluateError::Policy { source, .. } => source.to_string(),
            EvaluateError::Broken { what, .. } => what.clone(),
            EvaluateError::Stopped => self.to_string(),
        }
    }
}

/// An [`EvaluateError`] as a plain value that can be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedJob {
    /// The job.
    pub job: RolloutJob,
    /// In which step.
    pub step: u64,
    /// What happened, without saying where.
    pub what: String,
}

impl EvaluateError {
    /// Which job failed, where, and why; `None` when someone asked to stop.
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
    /// An error that says the same as the one that this came from.
    pub fn into_error(self) -> EvaluateError {
        let FailedJob { job: RolloutJob { genome, episode, env_seed }, step, what } = self;
        EvaluateError::Broken { genome, episode, env_seed, step, what }
    }
}
