//! A requested world.

use std::cell::RefCell;
use std::fmt;

use foveate_core::{Env, EnvSpec};
use foveate_envs::registry::EnvRequest;
use foveate_run::RunError;
use foveate_run::trust::{FileWorld, WorldFlags};
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
    flags: WorldFlags,
    /// A world that was built and is not in use, with its request.
    made: RefCell<Option<(EnvRequest, Box<dyn Env>)>>,
}

impl World {
    /// The world that `flags` describe.
    pub fn new(flags: WorldFlags) -> Self {
        World { flags, made: RefCell::default() }
    }

    /// The world called `name`, with default options.
    pub fn named(name: &str) -> Self {
        World::new(WorldFlags { id: Some(name.to_owned()), ..WorldFlags::default() })
    }

    /// The requested options.
    pub const fn flags(&self) -> &WorldFlags {
        &self.flags
    }

    /// The request alone, without a weight file; without a name it is the default world.
    pub fn own(&self) -> EnvRequest {
        self.flags.request()
    }

    /// The request, completed from `noted`, the world that the weights were made for.
    ///
    /// # Errors
    /// When the weight file may not request that world, see [`FileWorld::accept`].
    pub fn request(&self, noted: Option<FileWorld>) -> Result<EnvRequest, RunError> {
        noted.map_or_else(|| Ok(self.own()), |noted| noted.accept(&self.flags))
    }

    /// Builds the world that `request` describes, or returns the instance kept by [`World::look`].
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn make(&self, request: &EnvRequest) -> Result<Box<dyn Env>, RunError> {
        match self.made.take() {
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
        *self.made.borrow_mut() = Some((request.clone(), env));
        Ok(found)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.borrow();
        let made = made.as_ref().map(|(request, _)| request);
        f.debug_struct("World").field("flags", &self.flags).field("made", &made).finish()
    }
}
