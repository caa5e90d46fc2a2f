//! Reports on what an agent attends to.

use std::path::PathBuf;

use foveate_core::{Agent, Env};
use foveate_envs::registry::EnvRequest;
use foveate_registry::WORLDS;
use foveate_run::RunError;
use foveate_run::evaluate::Labels;
use foveate_run::explain::{self, AskedAgent, Comparison, ExplainRequest, Progress, Report, UNTRAINED};
use foveate_run::trust::WorldSpec;
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};

use crate::{Player, labels_with_options};

/// Reports what an agent attends to, and tests whether its actions depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Explain {
    /// Untrained agents of each kind that go through the same measurement
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().untrained, value_name = "N"))]
    pub untrained: usize,
    /// The seed of the world's random stream; its first episode is the one shown
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().seed))]
    pub seed: u64,
    /// Number of episodes
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().episodes))]
    pub episodes: usize,
    /// Tested decisions per episode
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().decisions, value_name = "N"))]
    pub decisions: usize,
    /// Truncate episodes after this many steps
    #[cfg_attr(feature = "command", arg(long, value_name = "STEPS", alias = "steps"))]
    pub max_steps: Option<usize>,
    /// Threads; 0 for one per core
    #[cfg_attr(feature = "command", arg(long, default_value_t = 0))]
    pub workers: usize,
    /// The folder to write; an older report there is replaced
    #[cfg_attr(feature = "command", arg(long, value_name = "FOLDER", default_value_os_t = Self::default().out))]
    pub out: PathBuf,
    /// The world
    #[cfg_attr(feature = "command", command(flatten))]
    pub world: WorldSpec,
}

impl Default for Explain {
    fn default() -> Self {
        Explain {
            untrained: UNTRAINED,
            seed: 1,
            episodes: 20,
            decisions: 30,
            max_steps: None,
            workers: 0,
            out: "report".into(),
            world: WorldSpec::default(),
        }
    }
}

impl Explain {
    /// Writes the report on what the agent attends to, and on whether it acts on that.
    ///
    /// # Errors
    /// When the world cannot be built, when world or agent fail; when the agent has no attention; when the folder cannot be
    /// written.
    pub fn run(
        &self,
        player: &Player,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, RunError> {
        self.with(player, &player.world, stop, |request| explain::run(request, stop, progress))
    }

    /// Compares what agents act on, each in its own world, and in that world with each of its shifts alone.
    ///
    /// # Errors
    /// As [`Explain::run`]; when an agent has nothing that could be swapped.
    pub fn compare(
        &self,
        players: &[Player],
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Comparison, RunError> {
        let mut rows = vec![];
        for player in players {
            let name = &player.name;
            let plain = EnvRequest { shifts: vec![], ..player.world.clone() };
            let shifted = player.world.shifts.iter().map(|shift| {
                (format!("{name} {shift}"), EnvRequest { shifts: vec![shift.clone()], ..plain.clone() })
            });
            let env = player.env(&plain)?;
            let (agent, asked) = player.asked(&*env, self, stop)?;
            let labels = |world: &EnvRequest| labels_with_options(world, player.source.clone());
            rows.push((name.clone(), env, agent.boxed_clone(), asked.clone(), labels(&plain)));
            for (name, world) in shifted {
                rows.push((name, player.env(&world)?, agent.boxed_clone(), asked.clone(), labels(&world)));
            }
        }
        let requests: Vec<(String, ExplainRequest<'_>)> = rows
            .iter()
            .map(|(name, env, agent, asked, labels)| {
                (name.clone(), self.request(&**env, &**agent, asked.as_ref(), labels.clone()))
            })
            .collect();
        explain::compare(&requests, stop, progress)
    }

    /// What `run` makes of the request for a report on the player in `world`.
    pub(super) fn with<T>(
        &self,
        player: &Player,
        world: &EnvRequest,
        stop: &Stop,
        run: impl FnOnce(&ExplainRequest<'_>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let env = player.env(world)?;
        let (agent, asked) = player.asked(&*env, self, stop)?;
        let labels = labels_with_options(world, player.source.clone());
        run(&self.request(&*env, &*agent, asked.as_ref(), labels))
            .map_err(|error| player.explained(error, world))
    }

    fn request<'a>(
        &'a self,
        env: &'a dyn Env,
        agent: &'a dyn Agent,
        asked: Option<&'a AskedAgent>,
        labels: Labels,
    ) -> ExplainRequest<'a> {
        let Explain { seed, episodes, decisions, untrained, max_steps, workers, ref out, .. } = *self;
        // Of an agent that is in no weight file there is an untrained one only if its weights are known, and it is compared by a claim.
        let none = |asked: &AskedAgent| agent.tensors().is_empty() || asked.own.claims.is_empty();
        let untrained = if asked.is_some_and(none) { 0 } else { untrained };
        let sensors = WORLDS.get(&env.spec().id).map_or(&[][..], |world| world.sensors);
        ExplainRequest {
            env,
            agent,
            labels,
            sensors,
            seed,
            episodes,
            decisions,
            untrained,
            max_steps,
            asked,
            workers,
            out,
        }
    }
}
