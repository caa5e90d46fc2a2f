//! The argument that chooses who drives, shared by several commands.

use std::path::PathBuf;

use clap::Args;
use foveate_run::RunError;
use foveate_run::champion::champion;
use foveate_run::weights::{AgentFile, load_weights_or_run};

use crate::world_args::WorldArgs;

/// Whose weights.
#[derive(Debug, Args)]
pub(crate) struct WeightsArg {
    /// A weight file, or the folder of a run (its best weights) [default: the trained champion that comes with Foveate]
    #[arg(value_name = "WEIGHTS|RUN")]
    weights: Option<PathBuf>,
}

impl WeightsArg {
    /// The weights, and what to call them.
    pub(crate) fn load(&self, world: &WorldArgs) -> Result<(AgentFile, String), RunError> {
        match &self.weights {
            Some(path) => load_weights_or_run(path).map(|(file, path)| (file, path.display().to_string())),
            None => champion(&world.request(None).id),
        }
    }
}
