//! An agent in its world.

use std::path::Path;
use std::sync::{Arc, Mutex};

use foveate_core::hint::Setting;
use foveate_core::{Agent, Env};
use foveate_envs::registry::EnvRequest;
use foveate_registry::gymnasium::{self, OnnxAgent};
use foveate_run::RunError;
use foveate_run::evaluate::Labels;
use foveate_run::explain::{AskedAgent, AskedTwice, OwnAgent};
use foveate_run::fit;
use foveate_run::stress::{Contender, Tested};
use foveate_run::trust::WorldSpec;
use foveate_run::weights::is_run;
use foveate_run::workers::Stop;

use crate::jobs::Explain;
use crate::kept::KeptAnswers;
use crate::loaded::is_onnx;
use crate::{LoadedAgent, World, labels};

/// An agent and the world that it acts in: what [jobs](crate::jobs) run on.
#[derive(Debug)]
pub struct Player {
    /// Its name beside others.
    pub name: String,
    /// The agent of a weight file, or one of the calling program.
    pub tested: Tested,
    /// The origin of its weights: a path, `car-racing champion`, `random weights of seed 7`.
    pub source: String,
    /// The world.
    pub world: EnvRequest,
    /// What reports know of an agent that is in no weight file, and ask of it.
    pub own: OwnAgent,
    /// A world that was built to see what fits it.
    built: World,
}

impl Player {
    /// The agent with the weights called `name`, as in [`LoadedAgent::load`], or the ONNX model of the file `name`, in the world of
    /// `spec`.
    ///
    /// # Errors
    /// Those of [`LoadedAgent::load`]; when the file is no ONNX model of a policy, or Python or onnxruntime are missing.
    pub fn load(name: Option<&Path>, spec: &WorldSpec) -> Result<Self, RunError> {
        if let Some(path) = name.filter(|path| is_onnx(path)) {
            return Player::onnx(path, spec);
        }
        let built = World::new(spec.clone());
        let loaded = LoadedAgent::load(name, &built)?;
        Ok(Player { built, ..loaded.into() })
    }

    /// The ONNX model of a file.
    fn onnx(path: &Path, spec: &WorldSpec) -> Result<Self, RunError> {
        if spec.id.is_none() {
            let why = format!(
                "{} is an ONNX model, which names no world; name it with {}",
                path.display(),
                Setting::World
            );
            return Err(RunError::BadRequest { why });
        }
        let mut world = spec.request();
        gymnasium::show_all(&mut world);
        let built = World::new(spec.clone());
        let found = built.spec(&world)?;
        let model = gymnasium::onnx(path, &world, &found)?;
        let own = OwnAgent { has_state: model.has_state(), ..OwnAgent::default() };
        let agent = Box::new(OnnxAgent::new(model, &found));
        Ok(Player { own, built, ..Player::own(path.display().to_string(), agent, world) })
    }

    /// Several agents, each with a name of its own; the champion when no name is given.
    ///
    /// # Errors
    /// Those of [`LoadedAgent::load`].
    pub fn load_all<P: AsRef<Path>>(names: &[P], spec: &WorldSpec) -> Result<Vec<Self>, RunError> {
        let mut players: Vec<Player> = vec![];
        for path in names.iter().map(AsRef::as_ref) {
            let stem = || path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let whole = path.display().to_string();
            let name = if is_run(path) { whole.clone() } else { stem() };
            let taken = players.iter().any(|other| other.name == name);
            let name = if taken { whole } else { name };
            players.push(Player { name, ..Player::load(Some(path), spec)? });
        }
        if players.is_empty() {
            players.push(Player::load(None, spec)?);
        }
        Ok(players)
    }

    /// An agent of the calling program, with its name.
    pub fn own(name: impl Into<String>, agent: Box<dyn Agent>, world: EnvRequest) -> Self {
        let name = name.into();
        let tested = Tested::Own(Arc::new(Mutex::new(agent)));
        let source = name.clone();
        Player {
            source,
            name,
            tested,
            world,
            own: OwnAgent::default(),
            built: World::new(WorldSpec::default()),
        }
    }

    /// Sets on how many threads an agent of a file works on one picture; results stay the same.
    pub fn set_image_threads(&mut self, threads: usize) {
        if let Tested::File(file) = &mut self.tested {
            file.image_threads = threads;
        }
    }

    /// The agent.
    ///
    /// # Errors
    /// When the weights do not fit its settings.
    pub fn agent(&self) -> Result<Box<dyn Agent>, RunError> {
        self.tested.agent()
    }

    /// The agent for a report in `env`, and what is known of it. One that is in no weight file is asked the same questions twice, and
    /// keeps its answers if these are the same and it has no state.
    ///
    /// # Errors
    /// When the weights do not fit the agent's settings, when world or agent fail, or when someone asked to stop.
    pub(crate) fn asked(
        &self,
        env: &dyn Env,
        job: &Explain,
        stop: &Stop,
    ) -> Result<(Box<dyn Agent>, Option<AskedAgent>), RunError> {
        let agent = self.agent()?;
        if matches!(self.tested, Tested::File(_)) {
            return Ok((agent, None));
        }
        let twice = AskedTwice::of(env, &*agent, job.seed, job.max_steps, &|| stop.asked())?;
        let asked = AskedAgent { own: self.own.clone(), twice };
        let keeps = !asked.remembers() && !self.own.has_attention;
        let agent = if keeps { Box::new(KeptAnswers::of(agent)) } else { agent };
        Ok((agent, Some(asked)))
    }

    /// The labels of its world and weights in reports and videos.
    pub fn labels(&self) -> Labels {
        labels(&self.world, self.source.clone())
    }

    /// Its column of a robustness test.
    pub(crate) fn contender(&self) -> Contender {
        Contender { name: self.name.clone(), tested: self.tested.clone(), source: self.source.clone() }
    }

    /// Builds `world`, which is its own or a changed one.
    pub(crate) fn env(&self, world: &EnvRequest) -> Result<Box<dyn Env>, RunError> {
        self.built.make(world)
    }

    /// An error in `world`, with the picture that fits the agent if that helps.
    pub(crate) fn explained(&self, error: RunError, world: &EnvRequest) -> RunError {
        match &self.tested {
            Tested::File(file) => fit::with_picture(error, world, file),
            Tested::Own(_) => error,
        }
    }
}

impl From<LoadedAgent> for Player {
    fn from(LoadedAgent { file, source, world }: LoadedAgent) -> Self {
        let built = World::new(WorldSpec::default());
        Player {
            name: source.clone(),
            tested: Tested::File(file),
            source,
            world,
            own: OwnAgent::default(),
            built,
        }
    }
}
