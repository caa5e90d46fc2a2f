//! The setup of a served lab: its world with all files read, the agents that were named, and others beside them.

use foveate_agents::registry::{Init, initial_params};
use foveate_core::{ActContext, Agent, Env, ObservationSpace, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_registry::WORLDS;
use foveate_run::champion::champion;
use foveate_run::weights::AgentFile;
use foveate_run::{RunError, worlds};
use foveate_web::{LabAgent, LabSetup, Scenes, SessionError};

/// The agents `named`, then the world's champion, if it sees the world as they do, and an untrained agent, so that there is always one to compare with.
///
/// # Errors
/// When the world cannot be made, or nobody is named and it has no champion.
pub fn lab_setup(mut world: EnvRequest, named: Vec<(AgentFile, String)>) -> Result<LabSetup, RunError> {
    // Whatever is wrong with the world is said before any page asks, and all files are read now: a page can name
    // none.
    let plan = worlds::plan(&std::mem::take(&mut world.shifts))?;
    worlds::load_files(&mut world)?;
    let env = worlds::build(world.clone())?;
    let mut files = named;
    match champion(&world.id) {
        // The world may be seen through wrappers that the champion was not trained with.
        Ok((file, name))
            if files.is_empty()
                || (files.iter().all(|(known, _)| known.sha256() != file.sha256())
                    && check_sees(&*env, &mut *file.agent()?).is_ok()) =>
        {
            files.push((file, name));
        }
        Err(error) if files.is_empty() => return Err(error),
        _ => {}
    }
    let (first, _) = &files[0];
    let fresh = initial_params(first.name(), first.config(), Init::Torch, Seed::root(0))?;
    files.push((AgentFile::new(first.name(), first.config(), fresh)?, "untrained".to_owned()));
    let agents = files
        .into_iter()
        .map(|(file, name)| {
            let mut agent = file.agent()?;
            check_sees(&*env, &mut *agent)?;
            Ok(LabAgent { name, patches: agent.patches(), make: Box::new(move || file.agent()) })
        })
        .collect::<Result<_, RunError>>()?;
    Ok(LabSetup { descriptor: WORLDS.get(&world.id), world, make, plan, agents, scenes: Scenes::default() })
}

/// Builds a world whose files are read.
fn make(request: EnvRequest) -> Result<Box<dyn Env>, SessionError> {
    worlds::build(request).map_err(|error| SessionError::BadRequest { why: error.to_string() })
}

/// Refuses a world without picture, numbers and cells, and an agent that cannot see this world.
fn check_sees(env: &dyn Env, agent: &mut dyn Agent) -> Result<(), RunError> {
    let mut env = env.boxed_clone();
    let observation = &env.spec().observation;
    let cells = matches!(observation, ObservationSpace::Grid { .. });
    if observation.picture().is_none() && observation.numbers() == 0 && !cells {
        return Err(RunError::BadRequest {
            why: format!(
                "{} shows {}, and the lab shows pictures and numbers; {}",
                env.spec().id,
                observation.describe(),
                worlds::picture_remedy(env.spec())
            ),
        });
    }
    env.reset(Some(0));
    agent.act(env.observation(), &mut ActContext::default())?;
    Ok(())
}
