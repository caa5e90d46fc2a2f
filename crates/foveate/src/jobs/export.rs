//! Agents for other programs.

use std::path::PathBuf;

use foveate_run::RunError;
use foveate_run::export::{self, ExportKind, Exported};
use foveate_run::stress::Tested;
use foveate_run::trust::WorldSpec;
use serde::{Deserialize, Serialize};

use crate::Player;

/// Writes an agent as a model that runs without Foveate: from the observation of its world to the action, with its attention.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Export {
    /// What to write
    #[cfg_attr(feature = "command", arg(long, value_name = "KIND", value_enum, default_value_t))]
    pub to: ExportKind,
    /// What to create; nothing may be there [default: in this folder, the weights' name with the ending of the kind]
    #[cfg_attr(feature = "command", arg(long, value_name = "FILE|FOLDER"))]
    pub out: Option<PathBuf>,
    /// The world
    #[cfg_attr(feature = "command", command(flatten))]
    pub world: WorldSpec,
}

impl Export {
    /// Writes the agent.
    ///
    /// # Errors
    /// When the agent has no such form, the world cannot be built or does not fit it, or the output is there already or cannot be
    /// written.
    pub fn run(&self, player: &Player) -> Result<Exported, RunError> {
        let Tested::File(file) = &player.tested else {
            return Err(RunError::BadRequest {
                why: format!("{} is no agent of a weight file; export weights", player.name),
            });
        };
        let out = self.out.clone().unwrap_or_else(|| self.to.named(&player.source));
        let mut spec = || Ok(player.env(&player.world)?.spec().clone());
        export::export(file, self.to, &out, &mut spec).map_err(|error| player.explained(error, &player.world))
    }
}
