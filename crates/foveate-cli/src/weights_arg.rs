//! The argument that chooses who drives, shared by several commands.

use std::path::{Path, PathBuf};

use clap::Args;
use foveate_agents::registry::Init;
use foveate_core::Seed;
use foveate_envs::registry::EnvRequest;
use foveate_run::RunError;
use foveate_run::champion::champion;
use foveate_run::weights::{AgentFile, load_weights_or_run};
use foveate_run::worlds;

use crate::world_args::WorldArgs;

/// Whose weights.
#[derive(Debug, Args)]
pub(crate) struct WeightsArg {
    /// A weight file, the folder of a run (its best weights), or `random` (`random:7` for seed 7): an agent that never
    /// learnt, of a shape that fits the world [default: the trained champion that comes with Foveate]
    #[arg(value_name = "WEIGHTS|RUN")]
    weights: Option<PathBuf>,
    /// Threads that share the work on one picture; only thousands of patches gain by it, and digits stay the same
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
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
        match &self.weights {
            Some(path) if random_seed(path).is_some() && !path.exists() => {
                let seed = random_seed(path).unwrap_or_default();
                let request = world.request(None);
                let file = untrained(&request, seed)?.made_for(&request);
                Ok((file, format!("random weights of seed {seed}")))
            }
            Some(path) => load_weights_or_run(path).map(|(file, path)| (file, path.display().to_string())),
            None => champion(&world.request(None).id),
        }
    }
}

/// The seed in `random` or `random:7`.
fn random_seed(path: &Path) -> Option<u64> {
    match path.to_str()?.strip_prefix("random")? {
        "" => Some(0),
        rest => rest.strip_prefix(':')?.parse().ok(),
    }
}

/// An `AttentionAgent` that never learnt, of a shape that fits the world.
fn untrained(world: &EnvRequest, seed: u64) -> Result<AgentFile, RunError> {
    const AGENT: &str = "attention-agent";
    let settings = worlds::fitted(worlds::make(world.clone())?.spec());
    let params = foveate_agents::registry::initial_params(AGENT, &settings, Init::Torch, Seed::root(seed))?;
    Ok(AgentFile::new(AGENT, &settings, params)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_weights_have_a_seed() {
        for (text, seed) in
            [("random", Some(0)), ("random:7", Some(7)), ("random:x", None), ("randomly", None), ("a", None)]
        {
            assert_eq!(random_seed(Path::new(text)), seed, "{text}");
        }
    }

    #[test]
    fn an_untrained_agent_fits_the_world() {
        let world = EnvRequest { id: "car-racing".into(), ..EnvRequest::default() };
        let (a, b) = (untrained(&world, 1).expect("fine"), untrained(&world, 2).expect("fine"));
        assert_eq!(a.params().len(), 3667, "the published shape");
        assert_ne!(a.params(), b.params());
    }
}
