//! A requested world.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foveate_core::{Env, EnvSpec};
use foveate_envs::registry::EnvRequest;
use foveate_run::RunError;
use foveate_run::trust::{FileWorld, WorldSpec};
use foveate_run::worlds;

/// The requested world. The world recorded in a weight file can fill in what was not specified.
///
/// [`World::look`] keeps its instance for the next use of the same request: a worker process may take seconds
/// to start.
///
/// ```
/// let world = foveate::World::named("car-racing");
/// assert_eq!(world.spec(&world.own())?.max_steps, Some(1000));
/// # Ok::<(), foveate::Error>(())
/// ```
pub struct World {
    asked: WorldSpec,
    /// A world that was built and is not in use, with its request.
    made: Mutex<Option<(EnvRequest, Box<dyn Env>)>>,
}

impl World {
    /// The world that `asked` describes.
    pub fn new(asked: WorldSpec) -> Self {
        World { asked, made: Mutex::default() }
    }

    /// The world called `name`, with default options.
    pub fn named(name: &str) -> Self {
        World::new(WorldSpec::named(name))
    }

    /// What was asked for.
    pub const fn asked(&self) -> &WorldSpec {
        &self.asked
    }

    /// The request alone, without a weight file; without a name it is the default world.
    pub fn own(&self) -> EnvRequest {
        self.asked.request()
    }

    /// The request, completed from `noted`, the world that the weights were made for.
    ///
    /// # Errors
    /// When the weight file may not request that world, see [`FileWorld::accept`].
    pub fn request(&self, noted: Option<FileWorld>) -> Result<EnvRequest, RunError> {
        noted.map_or_else(|| Ok(self.own()), |noted| noted.accept(&self.asked))
    }

    fn kept(&self) -> MutexGuard<'_, Option<(EnvRequest, Box<dyn Env>)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds the world that `request` describes, or returns the instance kept by [`World::look`].
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn make(&self, request: &EnvRequest) -> Result<Box<dyn Env>, RunError> {
        match self.kept().take() {
            Some((made, env)) if made == *request => Ok(env),
            _ => worlds::make(request.clone()),
        }
    }

    /// The spec of the world that `request` describes.
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn spec(&self, request: &EnvRequest) -> Result<EnvSpec, RunError> {
        self.look(request, |env| Ok(env.spec().clone()))
    }

    /// Builds the world that `request` describes, calls `find` on it, and keeps it for [`World::make`].
    ///
    /// # Errors
    /// When it cannot be built, or when `find` fails.
    pub fn look<T>(
        &self,
        request: &EnvRequest,
        find: impl FnOnce(&mut dyn Env) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mut env = self.make(request)?;
        let found = find(&mut *env)?;
        *self.kept() = Some((request.clone(), env));
        Ok(found)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.kept();
        let made = made.as_ref().map(|(request, _)| request);
        f.debug_struct("World").field("asked", &self.asked).field("made", &made).finish()
    }
}
