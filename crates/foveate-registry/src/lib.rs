//! Registries: lists of everything in Foveate that is found by name.
//!
//! * [`WORLDS`]: worlds, each a [`WorldDescriptor`]; [`make`] builds one.
//! * [`AGENTS`]: agents, each an [`AgentDescriptor`] in the file of its paper.
//! * [`SHIFTS`]: distribution shifts of a world's observations and actions.
//! * [`PRESETS`]: training configurations, each for certain worlds.
//! * [`EXPERIMENTS`]: published experiments that can be repeated.
//!
//! The command line, tables, completions, the lab and the contract tests read these lists. To add an entry,
//! add a file or folder and one line here; a program that uses Foveate as a library adds its own entries with
//! [`Registry::register`](foveate_core::Registry::register).
//!
//! **Invariant:** only these lists refer to a world, agent or shift by name.

mod ant;
mod atari;
pub mod control;
mod experiments;
mod given;
pub mod gymnasium;
mod mjcf;
mod pong;
mod presets;
mod quadruped;
mod take_cover;

use std::slice::from_ref;

use foveate_core::{Env, EnvError, EnvSpec, Registry};
use foveate_envs::registry::EnvRequest;
use foveate_envs::shift::{Plan, Shifted};
use foveate_envs::wrap::{Wrapped, Wrappers};
use foveate_envs::{car_racing, cartpole_swingup, digits, minigrid};

pub use experiments::{EXPERIMENTS, ExperimentText, PAPERS};
pub use foveate_agents::registry::{AGENTS, AgentDescriptor};
pub use foveate_envs::registry::{ReferenceScores, WorldDescriptor, WorldError};
pub use foveate_envs::shift::SHIFTS;
pub use foveate_mujoco::compiler;
pub use presets::{OTHERS, PRESETS, Preset, presets_of};

/// All worlds. The first one is the default.
pub static WORLDS: Registry<WorldDescriptor> = Registry::new("world", &ALL);

/// The worlds, a list for each suite.
const LISTS: &[&[WorldDescriptor]] = &[
    from_ref(&car_racing::DESCRIPTOR),
    from_ref(&cartpole_swingup::DESCRIPTOR),
    &minigrid::DESCRIPTORS,
    &control::DESCRIPTORS,
    from_ref(&quadruped::DESCRIPTOR),
    from_ref(&digits::DESCRIPTOR),
    from_ref(&take_cover::DESCRIPTOR),
    from_ref(&ant::DESCRIPTOR),
    from_ref(&pong::DESCRIPTOR),
    from_ref(&atari::DESCRIPTOR),
    from_ref(&gymnasium::DESCRIPTOR),
    from_ref(&mjcf::DESCRIPTOR),
];

static ALL: [&WorldDescriptor; count(LISTS)] = {
    let mut all = [&car_racing::DESCRIPTOR; count(LISTS)];
    let (mut list, mut filled) = (0, 0);
    while list < LISTS.len() {
        let mut i = 0;
        while i < LISTS[list].len() {
            all[filled] = &LISTS[list][i];
            (filled, i) = (filled + 1, i + 1);
        }
        list += 1;
    }
    all
};

const fn count(lists: &[&[WorldDescriptor]]) -> usize {
    let (mut list, mut count) = (0, 0);
    while list < lists.len() {
        count += lists[list].len();
        list += 1;
    }
    count
}

/// The option, common to all worlds, that adds wrappers, as in `grey+resize:84x84`; shifts apply to the
/// wrappers' output.
pub const WRAP: &str = "wrap";

/// Looks up the world called `name`.
///
/// # Errors
/// [`EnvError::UnknownEnv`], which lists the worlds that are not families.
pub fn world(name: &str) -> Result<&'static WorldDescriptor, EnvError> {
    WORLDS.get(name).ok_or_else(|| {
        let known: Vec<&str> =
            WORLDS.iter().filter(|world| world.family.is_none()).map(|world| world.name).collect();
        EnvError::UnknownEnv { given: name.into(), known: known.join(", ") }
    })
}

/// The default world: the first of [`WORLDS`].
pub fn default_world() -> &'static WorldDescriptor {
    WORLDS.iter().next().unwrap_or(&car_racing::DESCRIPTOR)
}

/// Makes the world that `request` describes, with its wrappers and shifts. Reads no files: the images of a
/// video and the files of a data set must already be in the request.
///
/// ```
/// use foveate_core::Action;
/// use foveate_envs::registry::EnvRequest;
///
/// let mut world = foveate_registry::make(&EnvRequest { id: "car-racing".into(), ..EnvRequest::default() })?;
/// world.reset(Some(7));
/// let step = world.step(Action::Continuous(&[0.0, 0.5, 0.0]))?;
/// assert!(!step.is_over());
/// # Ok::<(), foveate_registry::WorldError>(())
/// ```
///
/// # Errors
/// [`EnvError::UnknownEnv`] when there is no such world; those of [`WorldDescriptor::build`]; an error when
/// wrappers or shifts cannot be parsed or do not fit the world.
pub fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let mut request = request.clone();
    let wrappers = request.options.remove(WRAP).map(|text| text.parse::<Wrappers>()).transpose()?;
    let env = world(&request.id)?.build(&request)?;
    Ok(dress(env, wrappers, Plan::parse_all(&request.shifts)?)?)
}

/// A name for each number or choice of the actions of the world with this spec: the world's own names, if it has as many, or
/// else numbered ones.
pub fn action_names(spec: &EnvSpec) -> Vec<String> {
    match WORLDS.get(&spec.id) {
        Some(world) => world.action_names(spec),
        None => spec.action.names(&[]),
    }
}

/// The scores by which returns in the world that `request` describes are normalised. `None` where there are none, and where
/// wrappers change rewards or end episodes early, because the reference scores are of whole episodes and unchanged rewards.
pub fn reference(request: &EnvRequest) -> Option<ReferenceScores> {
    let wrappers = match request.options.get(WRAP) {
        Some(text) => text.parse::<Wrappers>().ok()?,
        None => Wrappers::default(),
    };
    let whole = !wrappers.clip && !wrappers.lives && wrappers.limit.is_none();
    (WORLDS.get(&request.id)?.reference)(request).filter(|_| whole)
}

/// Applies `wrappers` and `plan` to `env`: shifts apply to the output of the wrappers, except for those that replace
/// colours of the world's own picture, which come before them.
fn dress(env: Box<dyn Env>, wrappers: Option<Wrappers>, plan: Plan) -> Result<Box<dyn Env>, EnvError> {
    let shifted = |env: Box<dyn Env>, plan: &Plan| -> Result<Box<dyn Env>, EnvError> {
        Ok(if plan.is_empty() { env } else { Box::new(Shifted::new(env, plan)?) })
    };
    let Some(wrappers) = wrappers else { return shifted(env, &plan) };
    let (before, after) = plan.split_at_wrappers();
    let env = Wrapped::new(shifted(env, &before)?, wrappers)?;
    shifted(Box::new(env), &after)
}
