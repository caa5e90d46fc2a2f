//! The world and the agents of a lab, shared by all sessions.

use foveate_agents::registry::{Init, initial_params};
use foveate_core::hint;
use foveate_core::{ActContext, Agent, Env, ObservationSpace, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_envs::shift::Plan;

use foveate_registry::WORLDS;
use foveate_run::champion::champion;
use foveate_run::weights::AgentFile;
use foveate_run::{RunError, worlds};

/// An agent that a page can choose.
pub struct LabAgent {
    /// What to call it.
    pub name: String,
    /// Its weights.
    pub file: AgentFile,
    /// Patches that its controller is told about; `None` for an agent that cannot be shown fewer.
    pub patches: Option<usize>,
}

/// The world and the agents of a lab.
pub struct LabSetup {
    /// The world as the command line has it, with the pictures of a video, and without shifts.
    pub world: EnvRequest,
    /// The shifts of the command line, with their pictures.
    pub plan: Plan,
    /// Agents; the first is the one that drives unless a page says otherwise. Never empty.
    pub agents: Vec<LabAgent>,
}

impl LabSetup {
    /// The agents `named`, then the world's champion, if it sees the world as they do, and an untrained agent, so that there is always one to compare with.
    ///
    /// # Errors
    /// When the world cannot be made, or nobody is named and it has no champion.
    pub fn new(mut world: EnvRequest, named: Vec<(AgentFile, String)>) -> Result<Self, RunError> {
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
                Ok(LabAgent { name, file, patches: agent.patches() })
            })
            .collect::<Result<_, RunError>>()?;
        Ok(LabSetup { world, plan, agents })
    }

    /// Reads shifts as a page writes them. No file is read: pictures are those that the command line named.
    ///
    /// # Errors
    /// When a text is no shift, or wants other pictures.
    pub fn plan<S: AsRef<str>>(&self, texts: &[S]) -> Result<Plan, RunError> {
        let mut plan = Plan::parse_all(texts)?;
        while let Some(missing) = plan.missing_pictures() {
            let known = self.plan.pictures(&missing).cloned();
            let why = || {
                format!(
                    "pages name no folders and no files; give the shift when the lab starts, with {}",
                    hint::Setting::Shift
                )
            };
            let pictures = known.ok_or_else(|| RunError::BadRequest { why: why() })?;
            plan.set_pictures(&missing, &pictures);
        }
        Ok(plan)
    }

    /// The names of the world's pictures that agents can see, and what each is; its own first.
    pub fn pictures(&self) -> Vec<(String, String)> {
        let Some(world) = WORLDS.get(&self.world.id) else { return vec![] };
        let first = world.pictures.first().map(|picture| picture.name.to_owned());
        if world.family.is_some() {
            // Another picture can be another shape, so a page cannot choose.
            let name = self.world.picture.clone().or(first).unwrap_or_default();
            return vec![(name, "the picture that the environment shows".to_owned())];
        }
        let pictures = world.pictures.iter().filter(|picture| picture.name != "none");
        pictures.map(|picture| (picture.name.to_owned(), picture.about.to_owned())).collect()
    }

    /// The name of the picture that the command line asks for.
    pub fn picture(&self) -> String {
        let own = || self.pictures().into_iter().next().map(|(name, _)| name);
        self.world.picture.clone().or_else(own).unwrap_or_default()
    }
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
