//! Agents for other programs.

use std::path::PathBuf;

use foveate_core::EnvSpec;
use foveate_run::RunError;
use foveate_run::evaluate::EvalReport;
use foveate_run::export::{self, ExportKind, ExportWorld, Exported};
use foveate_run::stress::Tested;
use foveate_run::trust::WorldSpec;
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};

use super::Evaluate;
use crate::Player;

/// Writes an agent as a model that runs without Foveate: from the observation of its world to the action, with its attention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Export {
    /// What to write
    #[cfg_attr(feature = "command", arg(long, value_name = "KIND", value_enum, default_value_t))]
    pub to: ExportKind,
    /// What to create; nothing may be there [default: in this folder, the weights' name with the ending of the kind]
    #[cfg_attr(feature = "command", arg(long, value_name = "FILE|FOLDER"))]
    pub out: Option<PathBuf>,
    /// Of a hub's folder: episodes of the evaluation on its card
    #[cfg_attr(feature = "command", arg(long, value_name = "N", default_value_t = Self::default().episodes))]
    pub episodes: usize,
    /// The world
    #[cfg_attr(feature = "command", command(flatten))]
    pub world: WorldSpec,
}

impl Default for Export {
    fn default() -> Self {
        Export { to: ExportKind::default(), out: None, episodes: 100, world: WorldSpec::default() }
    }
}

/// The world of an agent that is exported.
struct World<'a> {
    player: &'a Player,
    episodes: usize,
    stop: &'a Stop,
}

impl ExportWorld for World<'_> {
    fn spec(&mut self) -> Result<EnvSpec, RunError> {
        Ok(self.player.env(&self.player.world)?.spec().clone())
    }

    fn evaluated(&mut self) -> Result<EvalReport, RunError> {
        Evaluate { episodes: self.episodes, ..Evaluate::default() }.run(self.player, self.stop)
    }
}

impl Export {
    /// Writes the agent.
    ///
    /// # Errors
    /// When the agent has no such form, the world cannot be built or does not fit it, the evaluation for a hub's card fails or `stop`
    /// asks to end it, or the output is there already or cannot be written.
    pub fn run(&self, player: &Player, stop: &Stop) -> Result<Exported, RunError> {
        let Tested::File(file) = &player.tested else {
            return Err(RunError::BadRequest {
                why: format!("{} is no agent of a weight file; export weights", player.name),
            });
        };
        // A folder says in which world its scores are.
        let noted = file.about("world").is_some() || self.to != ExportKind::Hub;
        let file = if noted { file.clone() } else { file.clone().made_for(&player.world) };
        let out = self.out.clone().unwrap_or_else(|| self.to.named(&player.source));
        let mut world = World { player, episodes: self.episodes, stop };
        export::export(&file, self.to, &out, &mut world)
            .map_err(|error| player.explained(error, &player.world))
    }
}
