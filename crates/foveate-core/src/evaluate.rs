//! Turning genomes into returns.

use crate::{EnvError, PolicyError, Population};

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
