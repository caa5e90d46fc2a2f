//! The world and the agents of a lab, shared by all sessions.

use foveate_agents::stored_agent::WeightsError;
use foveate_core::hint;
use foveate_core::tensor_file::TensorsError;
use foveate_core::{Agent, Env, EnvError, PolicyError};
use foveate_envs::registry::{EnvRequest, WorldDescriptor, WorldError};
use foveate_envs::shift::Plan;

/// Builds a world without reading files.
pub type MakeWorld = fn(EnvRequest) -> Result<Box<dyn Env>, SessionError>;

/// Builds an agent.
pub type MakeAgent = Box<dyn Fn() -> Result<Box<dyn Agent>, PolicyError> + Send + Sync>;

/// An agent that a page can choose.
pub struct LabAgent {
    /// What to call it.
    pub name: String,
    /// Builds it.
    pub make: MakeAgent,
    /// Patches that its controller is told about; `None` for an agent that cannot be shown fewer.
    pub patches: Option<usize>,
}

/// The world and the agents of a lab.
pub struct LabSetup {
    /// The world as whoever opened the lab has it, with the pictures of a video, and without shifts.
    pub world: EnvRequest,
    /// What is known of it by its name.
    pub descriptor: Option<&'static WorldDescriptor>,
    /// Builds it.
    pub make: MakeWorld,
    /// The shifts of whoever opened the lab, with their pictures.
    pub plan: Plan,
    /// Agents; the first is the one that drives unless a page says otherwise. Never empty.
    pub agents: Vec<LabAgent>,
    /// The scenes that a page can change to, each by name and label. Empty where a page stays
    /// in its world.
    pub scenes: Scenes,
}

/// The scenes that a page can change to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scenes {
    /// The name of the present one.
    pub present: &'static str,
    /// All of them, each by name and label.
    pub all: &'static [(&'static str, &'static str)],
}

/// Why a session does not begin, or refuses what a page asks for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A request that cannot be fulfilled.
    #[error("{why}")]
    BadRequest {
        /// What is wrong and what to do instead.
        why: String,
    },
    /// An error of a world or a shift.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A world that cannot be built.
    #[error(transparent)]
    World(#[from] WorldError),
    /// An error of an agent.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A file that holds no tensors.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// A file of tensors that holds no agent.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

impl LabSetup {
    /// Reads shifts as a page writes them. No file is read: pictures are those that the lab was opened with.
    ///
    /// # Errors
    /// When a text is no shift, or wants other pictures.
    pub fn plan<S: AsRef<str>>(&self, texts: &[S]) -> Result<Plan, SessionError> {
        let mut plan = Plan::parse_all(texts)?;
        while let Some(missing) = plan.missing_pictures() {
            let known = self.plan.pictures(&missing).cloned();
            let why = || {
                format!(
                    "pages name no folders and no files; give the shift when the lab starts, with {}",
                    hint::Setting::Shift
                )
            };
            let pictures = known.ok_or_else(|| SessionError::BadRequest { why: why() })?;
            plan.set_pictures(&missing, &pictures);
        }
        Ok(plan)
    }

    /// The names of the world's pictures that agents can see, and what each is; its own first.
    pub fn pictures(&self) -> Vec<(String, String)> {
        let Some(world) = self.descriptor else { return vec![] };
        let first = world.pictures.first().map(|picture| picture.name.to_owned());
        if world.family.is_some() {
            // Another picture can be another shape, so a page cannot choose.
            let name = self.world.picture.clone().or(first).unwrap_or_default();
            return vec![(name, "the picture that the environment shows".to_owned())];
        }
        let pictures = world.pictures.iter().filter(|picture| picture.name != "none");
        pictures.map(|picture| (picture.name.to_owned(), picture.about.to_owned())).collect()
    }

    /// The name of the picture that is asked for.
    pub fn picture(&self) -> String {
        let own = || self.pictures().into_iter().next().map(|(name, _)| name);
        self.world.picture.clone().or_else(own).unwrap_or_default()
    }
}
