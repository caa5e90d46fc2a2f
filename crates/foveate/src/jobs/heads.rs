//! Analyses of attention heads.

use std::path::PathBuf;

use foveate_envs::registry::EnvRequest;
use foveate_registry::WORLDS;
use foveate_run::RunError;
use foveate_run::explain::{self, HEADS, Progress, Report};
use foveate_run::trust::WorldSpec;
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};

use super::Explain;
use crate::Player;

/// Analyses the heads of an agent that attends to the cells of a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Heads {
    /// The analysis
    #[cfg_attr(feature = "command", arg(value_parser = clap::builder::PossibleValuesParser::new(HEADS.iter().map(|analysis| analysis.name()))))]
    pub analysis: String,
    /// The seed of the world's random stream; its first episode is the one shown
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().seed))]
    pub seed: u64,
    /// Number of episodes
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().episodes))]
    pub episodes: usize,
    /// Decisions per episode that are perturbed, for saliency
    #[cfg_attr(feature = "command", arg(long, default_value_t = Self::default().decisions, value_name = "N"))]
    pub decisions: usize,
    /// Play an Atari game with sticky actions, with probability 0.25 where nothing else says how often
    #[cfg_attr(feature = "command", arg(long = "no-sticky", action = clap::ArgAction::SetFalse, help = foveate_run::command::NO_STICKY))]
    pub sticky: bool,
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

impl Default for Heads {
    fn default() -> Self {
        Heads {
            analysis: HEADS[0].name().into(),
            seed: 1,
            episodes: 15,
            decisions: 4,
            sticky: true,
            max_steps: None,
            workers: 0,
            out: "heads".into(),
            world: WorldSpec::default(),
        }
    }
}

impl Heads {
    /// Runs the analysis, and writes figures and numbers.
    ///
    /// Where a game's actions may stick and nothing says how often, `sticky` makes them stick with probability 0.25: a game that
    /// goes the same way each time says little about an agent.
    ///
    /// # Errors
    /// As [`Explain::run`]; when the agent has no such heads.
    pub fn run(
        &self,
        player: &Player,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, RunError> {
        let Heads { ref analysis, seed, episodes, decisions, sticky, max_steps, workers, ref out, .. } =
            *self;
        let names = || HEADS.iter().map(|analysis| analysis.name()).collect::<Vec<_>>().join(", ");
        let analysis =
            *HEADS.iter().find(|known| known.name() == analysis).ok_or_else(|| RunError::BadRequest {
                why: format!("no analysis is called {analysis:?}; choose from {}", names()),
            })?;
        let (untrained, out, world) = (0, out.clone(), WorldSpec::default());
        let study = Explain { untrained, seed, episodes, decisions, max_steps, workers, out, world };
        let mut played = player.world.clone();
        let chance = stick(&mut played, sticky);
        study.with(player, &played, stop, |request| explain::heads(request, analysis, chance, stop, progress))
    }
}

/// The option of a world whose actions may stick, and the probability that ALE's v5 games have.
const STICKY: (&str, &str) = ("sticky", "0.25");

/// Makes the actions of a game stick, if it has that option, nothing sets it and `wanted`; returns the probability with which
/// they stick, `None` where there is no such option.
fn stick(world: &mut EnvRequest, wanted: bool) -> Option<f64> {
    let (option, usual) = STICKY;
    WORLDS.get(&world.id)?.options.iter().find(|choice| choice.name == option)?;
    if wanted && !world.options.contains_key(option) {
        world.options.insert(option.to_owned(), usual.to_owned());
    }
    world.options.get(option).map_or(Some(0.0), |given| given.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_of_games_stick_unless_something_says_otherwise() {
        let world = |id: &str, options: &[(&str, &str)]| EnvRequest {
            id: id.into(),
            options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            ..EnvRequest::default()
        };
        for (id, options, wanted, chance) in [
            ("atari", &[][..], true, Some(0.25)),
            ("atari", &[("game", "breakout")], true, Some(0.25)),
            ("pong", &[], true, Some(0.25)),
            ("atari", &[("sticky", "0.05")], true, Some(0.05)),
            ("atari", &[("sticky", "0")], true, Some(0.0)),
            ("atari", &[], false, Some(0.0)),
            ("pong", &[("sticky", "0.1")], false, Some(0.1)),
            ("door-key-5x5", &[], true, None),
            ("car-racing", &[], true, None),
        ] {
            let mut played = world(id, options);
            assert_eq!(stick(&mut played, wanted), chance, "{id} {options:?} {wanted}");
            let set = played.options.get("sticky").and_then(|text| text.parse().ok());
            assert!(set == chance || chance == Some(0.0), "{played:?}");
        }
    }
}
