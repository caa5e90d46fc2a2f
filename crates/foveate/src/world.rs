//! A world that was asked for.

use std::cell::RefCell;
use std::fmt;

use foveate_core::{Env, EnvSpec};
use foveate_envs::registry::EnvRequest;
use foveate_run::RunError;
use foveate_run::trust::{FileWorld, WorldFlags};
use foveate_run::worlds;

/// What was said about a world. It may be completed by what weights say of the world that they were made for.
///
/// The same world asked for twice is made once: a worker process may take seconds to begin.
///
/// ```
/// let world = foveate::World::named("car-racing");
/// assert_eq!(world.spec(&world.own())?.max_steps, Some(1000));
/// # Ok::<(), foveate::Error>(())
/// ```
pub struct World {
    flags: WorldFlags,
    /// A world that was made and is not in use, with what was asked for.
    made: RefCell<Option<(EnvRequest, Box<dyn Env>)>>,
}

impl World {
    /// The world that `flags` describe.
    pub fn new(flags: WorldFlags) -> Self {
        World { flags, made: RefCell::default() }
    }

    /// The world called `name` as it is.
    pub fn named(name: &str) -> Self {
        World::new(WorldFlags { id: Some(name.to_owned()), ..WorldFlags::default() })
    }

    /// What was said.
    pub const fn flags(&self) -> &WorldFlags {
        &self.flags
    }

    /// What was said, alone; without a name it is the default world.
    pub fn own(&self) -> EnvRequest {
        self.flags.request()
    }

    /// What was said, on top of `noted`, the world that weights were made for.
    ///
    /// # Errors
    /// When the note may not ask for that, see [`FileWorld::accept`].
    pub fn request(&self, noted: Option<FileWorld>) -> Result<EnvRequest, RunError> {
        noted.map_or_else(|| Ok(self.own()), |noted| noted.accept(&self.flags))
    }

    /// Makes the world that `request` describes, or hands out the one that was made to look at.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(&self, request: &EnvRequest) -> Result<Box<dyn Env>, RunError> {
        match self.made.take() {
            Some((made, env)) if made == *request => Ok(env),
            _ => worlds::make(request.clone()),
        }
    }

    /// The shape of the world that `request` describes.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn spec(&self, request: &EnvRequest) -> Result<EnvSpec, RunError> {
        self.look(request, |env| Ok(env.spec().clone()))
    }

    /// Finds something out about the world that `request` describes, which is kept for [`World::make`].
    ///
    /// # Errors
    /// When it cannot be made, or `find` fails.
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
