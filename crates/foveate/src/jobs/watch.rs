//! A film of an episode.

use std::path::PathBuf;

use foveate_run::RunError;
use foveate_run::trust::WorldSpec;
use foveate_run::watch::{self, WatchReport, WatchRequest};
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};

use crate::Player;

/// Records an episode: the world, the agent's observation, and what the agent attends to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Watch {
    /// The seed of the world's random stream
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().seed))]
    pub seed: u64,
    /// Number of the episode in that stream; 0 is the first
    #[cfg_attr(feature = "command", arg(long, default_value_t = 0))]
    pub episode: usize,
    /// Steps to record [default: the whole episode]
    #[cfg_attr(feature = "command", arg(long, alias = "max-steps"))]
    pub steps: Option<usize>,
    /// Width and height in pixels, even
    #[cfg_attr(feature = "command", arg(long, value_name = "WIDTHxHEIGHT", value_parser = size))]
    pub size: Option<(usize, usize)>,
    /// The file; `.mp4` and `.gif` are videos, `.png` is a picture of one step
    #[cfg_attr(feature = "command", arg(long, value_name = "FILE", default_value_os_t = Self::default().out))]
    pub out: PathBuf,
    /// For a picture: the step it shows; 0 is the reset [default: 100]
    #[cfg_attr(feature = "command", arg(long, value_name = "STEP"))]
    pub at: Option<usize>,
    /// Frame what the agent attends to by its measured effect on the action, where that can be measured
    #[cfg_attr(feature = "command", arg(long = "no-effects", action = clap::ArgAction::SetFalse, help = "Frame what the agent attends to by its rank, without measuring what changes its actions"))]
    pub effects: bool,
    /// The world
    #[cfg_attr(feature = "command", command(flatten))]
    pub world: WorldSpec,
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            seed: 1,
            episode: 0,
            steps: None,
            size: None,
            out: "drive.mp4".into(),
            at: None,
            effects: true,
            world: WorldSpec::default(),
        }
    }
}

impl Watch {
    /// Records the episode. Calls `progress` with the number of recorded steps.
    ///
    /// # Errors
    /// When the world cannot be built, when world or agent fail, when the file cannot be written.
    pub fn run(
        &self,
        player: &Player,
        stop: &Stop,
        progress: &mut dyn FnMut(usize),
    ) -> Result<WatchReport, RunError> {
        let (env, agent) = (player.env(&player.world)?, player.agent()?);
        let Watch { seed, episode, steps, size, ref out, at, effects, .. } = *self;
        let labels = player.labels();
        let request = WatchRequest {
            env: &*env,
            agent: &*agent,
            labels,
            seed,
            episode,
            steps,
            every: 1,
            size,
            out,
            at,
            effects,
        };
        watch::run(&request, stop, progress).map_err(|error| player.explained(error, &player.world))
    }
}

/// `960x540`
#[cfg(feature = "command")]
fn size(text: &str) -> Result<(usize, usize), String> {
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    sides.ok_or_else(|| "write it as 960x540".into())
}
