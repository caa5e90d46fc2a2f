//! Tasks of the DeepMind Control suite, with MuJoCo's own library.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use foveate_control::{Clip, Control, ControlConfig, DistractionConfig, Shown, TASKS, Task, catalogue, task};
use foveate_core::{Env, EnvError, EnvSpec, ImageBuf};
use foveate_envs::registry::{Choice, EnvRequest, Films, WantedFilms, WorldDescriptor, WorldError};
use foveate_gym::find_python;
use foveate_mujoco::{Found, Library, MujocoError, Search};

use crate::given::Given;

/// The option that names the library's file.
pub(crate) const LIBRARY: &str = "library";

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 4] = [
    ("repeat", "control steps for which an action is held, 1 to 100; their rewards are added (default: 1)"),
    ("size", "of the picture in pixels, a side or WIDTHxHEIGHT, 1 to 2048 (default: 100)"),
    (
        "antialias",
        "whether edges in the picture are smooth, as dm_control's are; false is faster (default: true)",
    ),
    (
        LIBRARY,
        "file of MuJoCo's library, or a folder with it (default: the one of FOVEATE_MUJOCO or of Python's package mujoco)",
    ),
];

const PICTURES: [Choice; 3] = Choice::all([
    ("state", "positions and velocities, as numbers"),
    ("pixels", "what dm_control's camera 0 sees"),
    ("both", "a dict of `image`, the pixels, and `sensors`, the numbers"),
]);

/// Their entries in [`WORLDS`](crate::WORLDS), in the order of [`TASKS`].
pub(crate) static DESCRIPTORS: [WorldDescriptor; 6] = [
    describe("a planar animal runs as fast as it can (DeepMind Control; needs MuJoCo's library)", 0),
    describe("a planar figure stands up and walks (DeepMind Control; needs MuJoCo's library)", 1),
    describe("a cart swings its pole up (DeepMind Control; needs MuJoCo's library)", 2),
    describe("a cup catches a ball on a string (DeepMind Control; needs MuJoCo's library)", 3),
    describe("an arm keeps its finger in a target (DeepMind Control; needs MuJoCo's library)", 4),
    describe("a finger keeps a body spinning (DeepMind Control; needs MuJoCo's library)", 5),
];

const fn describe(summary: &'static str, index: usize) -> WorldDescriptor {
    let task = TASKS[index];
    WorldDescriptor {
        pictures: &PICTURES,
        options: &const { Choice::all(OPTIONS) },
        variants: catalogue(),
        actions: task.actions,
        sensors: task.sensors,
        suite: Some("control"),
        needs_library: true,
        code_options: &[LIBRARY],
        fallback_picture: Some("pixels"),
        missing_films,
        spec: Some(spec),
        ..WorldDescriptor::new(task.name, summary, make)
    }
}

fn of(request: &EnvRequest) -> Result<(&'static Task, ControlConfig), EnvError> {
    let unknown =
        || EnvError::UnknownEnv { given: request.id.clone(), known: TASKS.map(|task| task.name).join(", ") };
    let task = task(&request.id).ok_or_else(unknown)?;
    let mut config = ControlConfig {
        shown: shown(request),
        distractions: DistractionConfig::parse_all(&request.id, &request.variants)?,
        ..ControlConfig::default()
    };
    for given in Given::all(request) {
        match given.name {
            "repeat" => config.repeat = given.count(ControlConfig::MOST_REPEATS as usize)? as u32,
            "size" => config.size = given.size()?,
            "antialias" => config.antialias = given.choice()?,
            _ => {}
        }
    }
    if config.shown == Shown::State && !config.distractions.is_empty() {
        let why = "variants change the picture; choose the picture pixels or both".into();
        return Err(EnvError::BadOption { env: request.id.clone(), why });
    }
    Ok((task, config))
}

/// What the observation of the requested picture is.
pub(crate) fn shown(request: &EnvRequest) -> Shown {
    match request.picture.as_deref() {
        Some("pixels") => Shown::Pixels,
        Some("both") => Shown::Both,
        _ => Shown::State,
    }
}

fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    let (task, config) = of(request)?;
    Ok(Control::spec_of(task, &config))
}

fn missing_films(request: &EnvRequest) -> Result<Option<WantedFilms>, EnvError> {
    if request.films.is_some() {
        return Ok(None);
    }
    let (_, config) = of(request)?;
    let missing = config.distractions.missing_films();
    Ok(missing.map(|(path, most)| WantedFilms { path: path.to_owned(), most }))
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let (task, mut config) = of(request)?;
    if let Some(films) = &request.films {
        config.distractions.load(&clips(films));
    }
    if let Some((folder, _)) = config.distractions.missing_films() {
        let why = format!("the pictures in {folder} are not loaded");
        return Err(EnvError::BadOption { env: request.id.clone(), why }.into());
    }
    let outside = |why: String| EnvError::Outside { env: request.id.clone(), why };
    let library = request.options.get(LIBRARY).map(PathBuf::from);
    let library = open(library).map_err(|error| outside(error.to_string()))?;
    Ok(Box::new(Control::new(&library, task, config).map_err(WorldError::source_of)?))
}

/// The clips of films; worlds that show the same films share them.
fn clips(films: &Films) -> Arc<[Arc<Clip>]> {
    struct Shared {
        films: Weak<[Arc<Vec<ImageBuf>>]>,
        clips: Weak<[Arc<Clip>]>,
    }
    static LAST: Mutex<Option<Shared>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = &*last
        && shared.films.upgrade().is_some_and(|of| Arc::ptr_eq(&of, films))
        && let Some(clips) = shared.clips.upgrade()
    {
        return clips;
    }
    let clips: Arc<[_]> = Clip::of_films(films).into();
    *last = Some(Shared { films: Arc::downgrade(films), clips: Arc::downgrade(&clips) });
    clips
}

/// Finds MuJoCo's library: in `named`, or where [`Search`] looks.
///
/// # Errors
/// As [`Search::find`].
pub fn find(named: Option<PathBuf>) -> Result<Found, MujocoError> {
    let python = find_python().ok().map(|python| python.path);
    Search { library: named, python }.find()
}

/// Finds and opens MuJoCo's library; a file is opened once.
///
/// # Errors
/// As [`Search::find`] and [`Library::open`].
pub fn open(named: Option<PathBuf>) -> Result<Library, MujocoError> {
    static OPEN: Mutex<BTreeMap<PathBuf, Library>> = Mutex::new(BTreeMap::new());
    let path = find(named)?.path;
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = open.get(&path) {
        return Ok(library.clone());
    }
    let library = Library::open(&path)?;
    open.insert(path, library.clone());
    Ok(library)
}

#[cfg(test)]
mod tests {
    use foveate_core::{ObservationSpace, PixelShape};

    use super::*;

    #[test]
    fn every_task_is_described_and_requests_are_checked() {
        for (world, task) in DESCRIPTORS.iter().zip(TASKS) {
            assert_eq!((world.name, world.actions, world.sensors), (task.name, task.actions, task.sensors));
        }
        let request = |options: &[(&str, &str)]| EnvRequest {
            id: "cheetah-run".into(),
            options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            ..EnvRequest::default()
        };
        assert_eq!(spec(&request(&[("repeat", "4")])).expect("fine").max_steps, Some(250));
        for (option, bad, part) in [
            ("repeat", "0", "repeat is a whole number from 1 to 100"),
            ("repeat", "101", "repeat is a whole number from 1 to 100"),
            ("repeat", "two", "repeat is a whole number from 1 to 100"),
            ("size", "0", "size is a side or WIDTHxHEIGHT"),
            ("size", "84x", "size is a side or WIDTHxHEIGHT"),
            ("size", "84x2049", "size is a side or WIDTHxHEIGHT"),
            ("antialias", "yes", "antialias is true or false"),
        ] {
            let said = spec(&request(&[(option, bad)])).expect_err(bad).to_string();
            assert!(said.contains(part) && said.lines().count() == 1, "{said}");
        }
        let mut seen = EnvRequest { picture: Some("pixels".into()), ..request(&[("size", "320x240")]) };
        let picture = ObservationSpace::Image(PixelShape::rgb(320, 240));
        assert_eq!(spec(&seen).expect("fine").observation, picture);
        seen.variants = vec!["background:folder=/nowhere".into()];
        let wanted = |path: &str, most| Some(WantedFilms { path: path.into(), most });
        assert_eq!(missing_films(&seen).expect("fine"), wanted("/nowhere", 4));
        seen.variants = vec!["background:level=medium:folder=/nowhere".into()];
        assert_eq!(missing_films(&seen).expect("fine"), wanted("/nowhere", 8));
        let films: Films = [ImageBuf::black(2, 2), ImageBuf::black(3, 3)].map(|p| Arc::new(vec![p])).into();
        let shared = clips(&films);
        assert!(shared.len() == 2 && Arc::ptr_eq(&shared, &clips(&films)));
        assert!(!Arc::ptr_eq(&shared, &clips(&films.iter().cloned().collect())));
        seen.picture = None;
        let said = spec(&seen).expect_err("numbers").to_string();
        assert!(said.contains("choose the picture pixels"), "{said}");
        let said = make(&request(&[(LIBRARY, "/nowhere")])).err().expect("no library").to_string();
        assert!(said.contains("there is none at /nowhere") && said.lines().count() == 1, "{said}");
        assert!(said.contains("pip install mujoco==3.17.0"), "{said}");
    }
}
