//! Turning genomes into returns.

use crate::{EnvError, PolicyError, Population, Seed, episode_seed};

/// Whoever turns genomes into returns: threads today, machines tomorrow.
pub trait Evaluator {
    /// Runs every job of `jobs` on its genome of `population`; `results[i]` belongs to `jobs[i]`, whatever ran first.
    ///
    /// # Errors
    /// When a rollout fails; the error names the genome, the episode and the step. Nothing is skipped silently.
    fn evaluate(
        &mut self,
        population: &Population,
        jobs: &[RolloutJob],
        results: &mut Vec<EpisodeResult>,
    ) -> Result<(), EvaluateError>;
}

/// One episode to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
