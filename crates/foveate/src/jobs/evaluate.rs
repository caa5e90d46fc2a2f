//! Evaluation: the returns of many episodes.

use foveate_core::ActMode;
use foveate_envs::registry::EnvRequest;
use foveate_registry::reference;
use foveate_run::RunError;
use foveate_run::evaluate::{self, AtLeast, EvalReport, EvalRequest, Labels, SeedRange, Seeds};
use foveate_run::job_cost::{JobCost, at_most, episodes_in_words};
use foveate_run::trust::WorldSpec;
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};

use crate::{Player, each_variant, labels};

/// Evaluates an agent over many episodes. The results do not depend on the number of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Evaluate {
    /// Number of episodes
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().episodes, conflicts_with = "seeds"))]
    pub episodes: usize,
    /// The seed of the world's random stream
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().seed, conflicts_with = "seeds"))]
    pub seed: u64,
    /// A seed for every episode, as in 0..20
    #[cfg_attr(feature = "command", arg(long, value_name = "FROM..TO"))]
    pub seeds: Option<SeedRange>,
    /// Threads; 0 for one per core
    #[cfg_attr(feature = "command", arg(long, default_value_t = 0))]
    pub workers: usize,
    /// Truncate episodes after this many steps
    #[cfg_attr(feature = "command", arg(long, value_name = "STEPS", alias = "steps"))]
    pub max_steps: Option<u64>,
    /// Draw the agent's actions, as in training, instead of taking the most probable ones; agents
    /// whose actions have no probabilities act as before
    #[cfg_attr(feature = "command", arg(long))]
    pub draw_actions: bool,
    /// Count the episodes with at least this score
    #[cfg_attr(feature = "command", arg(long, value_name = "SCORE", allow_negative_numbers = true))]
    pub at_least: Option<f64>,
    /// The world
    #[cfg_attr(feature = "command", command(flatten))]
    pub world: WorldSpec,
}

impl Default for Evaluate {
    fn default() -> Self {
        Evaluate {
            episodes: 100,
            seed: 1,
            seeds: None,
            workers: 0,
            max_steps: None,
            draw_actions: false,
            at_least: None,
            world: WorldSpec::default(),
        }
    }
}

impl Evaluate {
    /// The evaluation episodes.
    fn seeds(&self) -> Seeds {
        let Evaluate { seed, episodes, ref seeds, .. } = *self;
        seeds.clone().map_or(Seeds::Stream { seed, episodes }, Seeds::from)
    }

    /// Runs the episodes and summarises their returns.
    ///
    /// # Errors
    /// When the world cannot be built, when world or agent fail, or when a stop was requested.
    pub fn run(&self, player: &Player, stop: &Stop) -> Result<EvalReport, RunError> {
        self.run_in(&player.world, player, stop)
    }

    /// Evaluates the agent in the unchanged world and in each of its variants that needs no parameters. Calls
    /// `before` with a variant's label before its episodes start, and `told` with its report when they are
    /// done.
    ///
    /// # Errors
    /// Those of [`Evaluate::run`], and any error that `told` returns.
    pub fn run_each_variant<E: From<RunError>>(
        &self,
        player: &Player,
        stop: &Stop,
        before: &mut dyn FnMut(&Labels),
        told: &mut dyn FnMut(EvalReport) -> Result<(), E>,
    ) -> Result<(), E> {
        let all = each_variant(&player.world);
        let (worlds, episodes) = (all.len(), self.seeds().count());
        let limit = at_most(player.env(&player.world)?.spec().max_steps, self.max_steps);
        let each = format!("{}{limit}", episodes_in_words(episodes));
        let parts =
            format!("{each} in each of {worlds} worlds, {} in all", episodes_in_words(worlds * episodes));
        stop.announce(JobCost::of_episodes("eval", parts, worlds * episodes, self.workers));
        for variants in all {
            let request = EnvRequest { variants, ..player.world.clone() };
            before(&labels(&request, player.source.clone()));
            told(self.run_in(&request, player, stop)?)?;
        }
        Ok(())
    }

    fn run_in(&self, request: &EnvRequest, player: &Player, stop: &Stop) -> Result<EvalReport, RunError> {
        if let Some(score) = self.at_least.filter(|score| !score.is_finite()) {
            return Err(RunError::BadRequest { why: format!("at least {score} is no score; give a number") });
        }
        let (env, agent) = (player.env(request)?, player.agent()?);
        let Evaluate { workers, max_steps, draw_actions, .. } = *self;
        let asked = EvalRequest {
            env: &*env,
            agent: &*agent,
            labels: labels(request, player.source.clone()),
            seeds: self.seeds(),
            workers,
            max_steps,
            mode: if draw_actions { ActMode::Explore { epsilon: 0.0 } } else { ActMode::Greedy },
            // The scores to compare with are of whole episodes.
            reference: reference(request).filter(|_| max_steps.is_none()),
        };
        let mut report = evaluate::run(&asked, stop).map_err(|error| player.explained(error, request))?;
        report.at_least = self.at_least.map(|score| AtLeast::of(score, &report.returns));
        Ok(report)
    }
}
