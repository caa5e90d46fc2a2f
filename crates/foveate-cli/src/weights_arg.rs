//! The argument that selects the agent's weights, shared by several commands.

use std::path::PathBuf;

use clap::Args;
use foveate::{Error, LoadedAgent, Player, World, WorldSpec};

use crate::help;

/// Selects the weights.
#[derive(Debug, Args)]
pub(crate) struct WeightsArg {
    #[arg(value_name = "WEIGHTS|RUN", help = help::weights())]
    weights: Option<PathBuf>,
    /// Threads that share the work on one picture; useful with thousands of patches, results stay the same
    #[arg(long, value_name = "THREADS", help_heading = "Agent", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    image_threads: u16,
}

impl WeightsArg {
    /// The weights' name, if one is given.
    pub(crate) fn name(&self) -> Option<&std::path::Path> {
        self.weights.as_deref()
    }

    /// Loads the weights, with their world.
    pub(crate) fn load(&self, world: &WorldSpec) -> Result<LoadedAgent, Error> {
        let mut loaded = LoadedAgent::load(self.weights.as_deref(), &World::new(world.clone()))?;
        loaded.file.image_threads = self.image_threads.into();
        Ok(loaded)
    }

    /// What jobs run on.
    pub(crate) fn player(&self, world: &WorldSpec) -> Result<Player, Error> {
        let mut player = Player::load(self.weights.as_deref(), world)?;
        player.set_image_threads(self.image_threads.into());
        Ok(player)
    }
}
