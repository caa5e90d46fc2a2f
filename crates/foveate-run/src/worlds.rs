//! Creates worlds, including the files they need.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use foveate_core::hint::{Setting, Task};
use foveate_core::{Env, EnvSpec};
use foveate_envs::registry::{Choice, EnvRequest, WantedFilms};
use foveate_envs::shift::{MissingPictures, Plan, Shifted};
use foveate_envs::wrap::{Wrapped, Wrappers};
use foveate_gym::Settings;
pub use foveate_gym::{Checked, Doctor, Family, Finding, Verdict};
use foveate_registry::control;
use foveate_registry::gymnasium::with_traceback;
pub use foveate_registry::{WORLDS, WRAP, default_world};
use serde::Serialize;

use crate::budget::Need;
use crate::data_files;
use crate::error::RunError;
use crate::pictures;
use crate::suggest;

/// The word for an episode of a world, in the singular: `track` in CarRacing, `episode` for worlds without
/// their own word.
pub fn instance(world: &str) -> &'static str {
    WORLDS.get(world).map_or("episode", |world| world.instance)
}

/// Builds the world of `request`, after reading the pictures for a `video` variant or a shift, and the files of a data set.
///
/// # Errors
/// When there is no such world, picture, variant, shift or option, when they cannot be combined, or when the
/// pictures of a video or the files cannot be read.
pub fn make(request: EnvRequest) -> Result<Box<dyn Env>, RunError> {
    make_around(request, Ok)
}

/// As [`make`], with what `around` makes of the world, before shifts and wrappers.
///
/// # Errors
/// As [`make`], and those of `around`.
pub(crate) fn make_around(
    mut request: EnvRequest,
    around: impl FnOnce(Box<dyn Env>) -> Result<Box<dyn Env>, RunError>,
) -> Result<Box<dyn Env>, RunError> {
    load_files(&mut request)?;
    let plan = plan(&std::mem::take(&mut request.shifts))?;
    // Without wrappers all shifts are in one place, in their order.
    let (before, after) =
        if request.options.contains_key(WRAP) { plan.split_at_wrappers() } else { (Plan::none(), plan) };
    let env = build_shifted(request, &before, around)?;
    if after.is_empty() { Ok(env) } else { Ok(Box::new(Shifted::new(env, &after)?)) }
}

/// Reads the pictures and files that `request` still needs.
///
/// # Errors
/// When they cannot be read.
pub fn load_files(request: &mut EnvRequest) -> Result<(), RunError> {
    let Some(world) = WORLDS.get(&request.id) else { return Ok(()) };
    if let Some(WantedFilms { path, most }) = (world.missing_films)(request)? {
        request.films = Some(pictures::load_films(Path::new(&path), most)?);
    }
    if let (Some(wanted_files), None) = (world.wanted_files, &request.files) {
        request.files = Some(data_files::load(&wanted_files(request)?)?);
    }
    Ok(())
}

/// As [`make`], without reading files that the request names, and without shifts.
///
/// # Errors
/// When there is no such world, picture, variant or option, when they cannot be combined, or when pictures
/// are missing.
pub fn build(request: EnvRequest) -> Result<Box<dyn Env>, RunError> {
    build_shifted(request, &Plan::none(), Ok)
}

/// As [`build`], with what `around` makes of the world, and shifts before the wrappers.
fn build_shifted(
    mut request: EnvRequest,
    before: &Plan,
    around: impl FnOnce(Box<dyn Env>) -> Result<Box<dyn Env>, RunError>,
) -> Result<Box<dyn Env>, RunError> {
    let wrappers = request.options.remove(WRAP).map(|text| text.parse::<Wrappers>()).transpose()?;
    let mut env = around(foveate_registry::world(&request.id).map_err(suggest::named)?.build(&request)?)?;
    if !before.is_empty() {
        env = Box::new(Shifted::new(env, before)?);
    }
    Ok(match wrappers {
        Some(wrappers) => {
            let bytes = Wrapped::bytes(&wrappers, env.spec());
            // Each worker has a copy, and a spare one.
            Need::default()
                .with(
                    "wrapped pictures",
                    3,
                    bytes,
                    format!("choose smaller pictures, or fewer on a stack, with {}", Setting::Wrap),
                )
                .fits_memory("this world")?;
            Box::new(Wrapped::new(env, wrappers)?)
        }
        None => env,
    })
}

/// Checks that the environment `gym:ID` follows Gymnasium's API, in episodes of up to `steps` steps, or as
/// many as time permits; each finding is reported immediately.
///
/// # Errors
/// When the name has no such prefix, an option is invalid, or the environment cannot be created.
pub fn check_env(
    env: &str,
    options: &BTreeMap<String, String>,
    steps: Option<u32>,
    tell: &mut dyn FnMut(&Finding),
) -> Result<Checked, RunError> {
    let Some(id) = env.strip_prefix(foveate_gym::PREFIX) else {
        let why = format!("{env:?} is no environment of Gymnasium; write gym:ID, as in gym:CarRacing-v3");
        return Err(RunError::BadRequest { why });
    };
    let options = options.iter().map(|(name, value)| (&**name, &**value));
    foveate_gym::check(&Settings::parse(id, options)?, steps, tell)
        .map_err(|error| with_traceback(error).into())
}

/// What is installed for Gymnasium environments, and which families of them work.
///
/// # Errors
/// When there is no Python that can host environments.
pub fn doctor() -> Result<Doctor, RunError> {
    foveate_gym::doctor().map_err(|error| with_traceback(error).into())
}

/// What is known about MuJoCo's library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mujoco {
    /// True if it can be used.
    pub works: bool,
    /// Its version.
    pub version: Option<String>,
    /// Its file.
    pub path: Option<String>,
    /// What led to the file, such as a variable or a folder.
    pub named_by: Option<String>,
    /// Why it does not work, with the command that helps; empty if it does.
    pub why: String,
}

/// Looks for MuJoCo's library, which the tasks of the DeepMind Control suite need, and opens it.
pub fn mujoco() -> Mujoco {
    let found = control::find(None);
    let opened = found.clone().and_then(|_| control::open(None));
    Mujoco {
        works: opened.is_ok(),
        version: opened.as_ref().ok().map(|library| library.version().to_owned()),
        path: found.as_ref().ok().map(|found| found.path.display().to_string()),
        named_by: found.ok().map(|found| found.by),
        why: opened.err().map(|error| error.to_string()).unwrap_or_default(),
    }
}

/// Checks that a world has a picture for an agent that needs one.
///
/// # Errors
/// When it has none; for a Gymnasium environment the error says how to get one.
pub fn needs_picture(spec: &EnvSpec) -> Result<(), RunError> {
    if spec.observation.picture().is_some() {
        return Ok(());
    }
    let remedy = picture_remedy(spec);
    let why = format!("{} shows numbers and no picture, which this agent looks at; {remedy}", spec.id);
    Err(RunError::BadRequest { why })
}

/// How to get a picture from a world that shows numbers, in words that suit any command with a world.
pub fn picture_remedy(spec: &EnvSpec) -> String {
    let world = WORLDS.get(&spec.id);
    if let Some(drawn) = world.and_then(|world| world.fallback_picture) {
        return format!("with {} it shows what it draws for people", Setting::Picture.to(drawn));
    }
    let shows = |picture: &&Choice| {
        let request =
            EnvRequest { id: spec.id.clone(), picture: Some(picture.name.into()), ..EnvRequest::default() };
        shape(&request).is_ok_and(|spec| spec.observation.picture().is_some())
    };
    // Others take long to build.
    let quick = world.filter(|world| !world.has_process && !world.needs_library);
    match quick.and_then(|world| world.pictures.iter().find(shows)) {
        Some(picture) => format!("with {} it shows one", Setting::Picture.to(picture.name)),
        None => format!("choose another world or picture, as {} shows them", Task::List),
    }
}

/// The shape of the world of `request`; the world is not created if its descriptor knows the shape.
///
/// # Errors
/// When there is no such world, or it cannot be created.
pub fn shape(request: &EnvRequest) -> Result<EnvSpec, RunError> {
    if let Some(spec) = WORLDS.get(&request.id).and_then(|world| world.spec)
        && !request.options.contains_key(WRAP)
    {
        return Ok(spec(request)?);
    }
    Ok(make(request.clone())?.spec().clone())
}

/// Parses shifts, and reads the pictures that they need.
///
/// # Errors
/// When a text is not a valid plan, or the pictures cannot be read.
pub fn plan<S: AsRef<str>>(texts: &[S]) -> Result<Plan, RunError> {
    let mut plan = Plan::parse_all(texts)?;
    while let Some(missing) = plan.missing_pictures() {
        let pictures = match &missing {
            MissingPictures::Folder(folder) => pictures::load_film(Path::new(folder))?,
            MissingPictures::File(file) => vec![pictures::load_file(Path::new(file))?],
        };
        plan.set_pictures(&missing, &Arc::new(pictures));
    }
    Ok(plan)
}
