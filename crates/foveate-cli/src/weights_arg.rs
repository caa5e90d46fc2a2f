//! The argument that chooses who drives, shared by several commands.

use std::path::{Path, PathBuf};

use clap::Args;
use foveate_agents::registry::{Init, find, initial_params, usual};
use foveate_core::{Env, EnvSpec, Seed};
use foveate_run::RunError;
use foveate_run::champion::champion;
use foveate_run::fit;
use foveate_run::weights::{AgentFile, exists, load_weights_or_run};

use crate::world_args::WorldArgs;

/// The agent that has no weights, which may stand where weights are named.
const RANDOM_ACTIONS: &str = "random-actions";

/// Whose weights.
#[derive(Debug, Args)]
pub(crate) struct WeightsArg {
    /// A weight file, the folder of a run (its best weights), `random` (`random:7` for seed 7) for an untrained agent
    /// that fits the world, or `random-actions` for random actions [default: the champion, a trained agent that comes
    /// with Foveate]
    #[arg(value_name = "WEIGHTS|RUN")]
    weights: Option<PathBuf>,
    /// Threads that share the work on one picture; useful with thousands of patches, results stay the same
    #[arg(long, value_name = "THREADS", help_heading = "Agent", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    image_threads: u16,
}

impl WeightsArg {
    /// The weights, and what to call them.
    pub(crate) fn load(&self, world: &WorldArgs) -> Result<(AgentFile, String), RunError> {
        let (mut file, source) = self.find(world)?;
        file.image_threads = self.image_threads.into();
        Ok((file, source))
    }

    fn find(&self, world: &WorldArgs) -> Result<(AgentFile, String), RunError> {
        self.weights.as_deref().map_or_else(|| champion(&world.own().id), |path| load(path, world))
    }
}

/// The weights that `path` or a name like `random:7` stands for, and what to call them.
pub(crate) fn load(path: &Path, world: &WorldArgs) -> Result<(AgentFile, String), RunError> {
    let Some((made_up, seed)) = made_up(path).filter(|_| !exists(path)) else {
        return load_weights_or_run(path).map(|(file, path)| (file, path.display().to_string()));
    };
    let request = world.own();
    let (file, what) = match made_up {
        MadeUp::Weights => (world.look(&request, |env| untrained(env, seed))?, "weights"),
        MadeUp::Actions => (random_actions(&world.spec(&request)?, seed)?, "actions"),
    };
    Ok((file.made_for(&request), format!("random {what} of seed {seed}")))
}

/// Who drives without ever having learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MadeUp {
    /// An agent of random weights.
    Weights,
    /// No one: actions are drawn.
    Actions,
}

/// What `random`, `random:7`, `random-actions` and `random-actions:7` stand for, with the seed.
fn made_up(path: &Path) -> Option<(MadeUp, u64)> {
    let text = path.to_str()?;
    let (name, seed) = text.split_once(':').map_or((text, Some(0)), |(name, seed)| (name, seed.parse().ok()));
    match name {
        "random" => Some((MadeUp::Weights, seed?)),
        RANDOM_ACTIONS => Some((MadeUp::Actions, seed?)),
        _ => None,
    }
}

/// An agent that never learnt, of a shape that fits the world: an `AttentionAgent`, or a plain controller where there is
/// no picture.
fn untrained(world: &mut dyn Env, seed: u64) -> Result<AgentFile, RunError> {
    let agent = usual(world.spec())?;
    let settings = fit::settings(agent, world)?;
    let params = initial_params(agent.name, &settings, Init::Torch, Seed::root(seed))?;
    Ok(AgentFile::new(agent.name, &settings, params)?)
}

/// Actions drawn from what the world takes.
fn random_actions(world: &EnvSpec, seed: u64) -> Result<AgentFile, RunError> {
    let agent = find(RANDOM_ACTIONS)?;
    let mut settings = (agent.fit)(world, &[]);
    settings["seed"] = seed.into();
    Ok(AgentFile::new(agent.name, &settings, vec![])?)
}

#[cfg(test)]
mod tests {
    use foveate_envs::registry::EnvRequest;

    use foveate_run::worlds;

    use super::*;

    #[test]
    fn random_weights_have_a_seed() {
        let (weights, actions) = (MadeUp::Weights, MadeUp::Actions);
        for (text, expect) in [
            ("random", Some((weights, 0))),
            ("random:7", Some((weights, 7))),
            ("random-actions", Some((actions, 0))),
            ("random-actions:7", Some((actions, 7))),
            ("random:x", None),
            ("randomly", None),
            ("a", None),
        ] {
            assert_eq!(made_up(Path::new(text)), expect, "{text}");
        }
    }

    #[test]
    fn an_untrained_agent_fits_the_world() {
        let request = EnvRequest { id: "car-racing".into(), ..EnvRequest::default() };
        let mut world = worlds::make(request).expect("a native one");
        let mut made = |seed| untrained(&mut *world, seed).expect("fine");
        let (a, b) = (made(1), made(2));
        assert_eq!(a.params().len(), 3667, "the published shape");
        let request = EnvRequest { id: "take-cover".into(), ..EnvRequest::default() };
        let spec = worlds::shape(&request).expect("it is known without a game");
        let settings = fit::picture_settings(usual(&spec).expect("one"), &spec).expect("a picture");
        let tensors = foveate_agents::registry::tensors("attention-agent", &settings).expect("fine");
        let count: usize = tensors.iter().map(foveate_core::TensorShape::len).sum();
        assert_eq!(count, 3633, "the published shape");
        assert_ne!(a.params(), b.params());
    }
}
