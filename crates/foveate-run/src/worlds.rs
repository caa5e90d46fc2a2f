//! Worlds with everything they need from files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use foveate_core::{Env, EnvError, EnvSpec, ImageBuf};
use foveate_envs::car_racing;
use foveate_envs::car_racing::variants::Variants;
use foveate_envs::registry::{self, EnvRequest};
use foveate_envs::shift::{Plan, Shifted};
use foveate_envs::take_cover::hovering_text::{self, HoveringText};
use foveate_envs::take_cover::variants::Variants as TakeCoverVariants;
use foveate_envs::take_cover::{self, TakeCover};
use foveate_envs::wrap::{Wrapped, Wrappers};
use foveate_film::Face;
pub use foveate_gym::{Checked, Doctor, Family, Finding, Verdict};
use foveate_gym::{Gym, GymError, GymWorld, Settings};
use serde_json::{Value, json};

use crate::budget::Need;
use crate::error::RunError;
use crate::pictures;
use crate::suggest;

/// What the picture of a Gymnasium environment is called that it shows in its observations.
pub const GYM_PICTURE: &str = "world";

/// What the picture of a Gymnasium environment is called that it draws for people.
pub const GYM_RENDER: &str = "render";

/// The option of every world that puts wrappers before it, as in `grey+resize:84x84`; shifts happen to what they show.
pub const WRAP: &str = "wrap";

/// What the episodes of a world are called in texts, for one of them: `track` in CarRacing, `episode` wherever the
/// world has no word of its own.
pub fn instance(world: &str) -> &'static str {
    registry::list().into_iter().find(|env| env.id == world).map_or("episode", |env| env.instance)
}

/// Builds the world that `request` describes, after reading the pictures that a `video` variant or a shift asks for.
///
/// # Errors
/// When there is no such world, picture, variant, shift or option, when they do not go together, or when the pictures of
/// a video cannot be read.
pub fn make(mut request: EnvRequest) -> Result<Box<dyn Env>, RunError> {
    load_video(&mut request)?;
    let plan = plan(&std::mem::take(&mut request.shifts))?;
    let env = build(request)?;
    if plan.is_empty() { Ok(env) } else { Ok(Box::new(Shifted::new(env, &plan)?)) }
}

/// Reads the pictures of a `video` variant, if there is one that has none yet.
///
/// # Errors
/// When they cannot be read.
pub fn load_video(request: &mut EnvRequest) -> Result<(), RunError> {
    if request.video.is_none() && request.id == car_racing::ID {
        let variants = Variants::parse_all(&request.variants)?;
        // Without a folder the world itself says what is missing.
        if let Some(folder) = variants.missing_video().filter(|folder| !folder.is_empty()) {
            request.video = Some(Arc::new(pictures::load_folder(Path::new(folder))?));
        }
    }
    Ok(())
}

/// As [`make`], without reading a file that the request names, and without shifts.
///
/// # Errors
/// When there is no such world, picture, variant or option, when they do not go together, or when pictures are missing.
pub fn build(mut request: EnvRequest) -> Result<Box<dyn Env>, RunError> {
    let wrappers = request.options.remove(WRAP).map(|text| text.parse::<Wrappers>()).transpose()?;
    let env: Box<dyn Env> = match request.id.strip_prefix(foveate_gym::PREFIX) {
        Some(id) => Box::new(GymWorld::new(gym(id, &request)?)),
        None if request.id == take_cover::ID => Box::new(self::take_cover(&request)?),
        None => registry::make(&request).map_err(suggest::named)?,
    };
    Ok(match wrappers {
        Some(wrappers) => {
            let bytes = Wrapped::bytes(&wrappers, env.spec());
            // Whoever drives has a copy, and a spare one.
            Need::default()
                .with(
                    "wrapped pictures",
                    3,
                    bytes,
                    "choose smaller pictures, or fewer on a stack, with --wrap",
                )
                .fits_memory("this world")?;
            Box::new(Wrapped::new(env, wrappers)?)
        }
        None => env,
    })
}

/// Starts the Gymnasium environment `id`. Whenever one of its workers has to be replaced, stderr says so.
///
/// # Errors
/// When the request asks for what only native worlds have, or the environment cannot be made.
pub fn gym(id: &str, request: &EnvRequest) -> Result<Arc<Gym>, RunError> {
    let unknown = |what, given: &str, known: &str| EnvError::UnknownOption {
        env: request.id.clone(),
        what,
        given: given.to_owned(),
        known: known.to_owned(),
    };
    let drawn = match request.picture.as_deref() {
        None | Some(GYM_PICTURE) => false,
        Some(GYM_RENDER) => true,
        Some(other) => return Err(unknown("picture", other, &format!("{GYM_PICTURE}, {GYM_RENDER}")).into()),
    };
    if let Some(variant) = request.variants.first() {
        return Err(unknown("variant", variant, "none; --env-arg changes the environment").into());
    }
    let options = request.options.iter().map(|(name, value)| (&**name, &**value));
    start(Settings { drawn, ..Settings::parse(id, options)? })
}

/// Starts an environment, or finds it among those that run: worlds that differ in what stands before them, as the rows of
/// a table under many shifts do, share its processes. Whenever one of its workers has to be replaced, stderr says so.
fn start(settings: Settings) -> Result<Arc<Gym>, RunError> {
    static RUNNING: Mutex<Vec<Weak<Gym>>> = Mutex::new(Vec::new());
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.retain(|gym| gym.strong_count() > 0);
    if let Some(gym) = running.iter().filter_map(Weak::upgrade).find(|gym| *gym.settings() == settings) {
        return Ok(gym);
    }
    let notice = |text: &str| eprintln!("note: {text}");
    let gym = Gym::new(settings, Arc::new(notice)).map_err(with_story)?;
    running.push(Arc::downgrade(&gym));
    Ok(gym)
}

/// `DoomTakeCover`: a game in a worker process and what stands before it here.
fn take_cover(request: &EnvRequest) -> Result<TakeCover, RunError> {
    let config = take_cover::request::config(request)?;
    let map = config.variants.change_map().then(|| changed_map(&config.variants)).transpose()?;
    let mut settings = foveate_gym::take_cover::settings(config.picture.screen(), map.as_deref());
    settings.set(config.process.iter().map(|(name, value)| (&**name, &**value)))?;
    let game = GymWorld::new(start(settings)?);
    let text = config.variants.hovering_text.then(text_over_the_screen);
    Ok(TakeCover::new(Box::new(game), text)?)
}

/// The map that comes with ViZDoom, changed.
fn changed_map(variants: &TakeCoverVariants) -> Result<Vec<u8>, RunError> {
    /// Longest map that is read; it has 2,704 bytes.
    const MAX_MAP: u64 = 1 << 20;
    let path = foveate_gym::take_cover::find_map().map_err(with_story)?;
    let bad = |why: String| RunError::BadRequest {
        why: format!("{}: {why}; install vizdoom anew", path.display()),
    };
    let file = crate::npz::read_bounded(&path, MAX_MAP)?
        .map_err(|size| bad(format!("{size} bytes are no map of take_cover")))?;
    variants.apply(&file).map_err(|error| bad(error.to_string()))
}

/// The words of the published variant in our own letters.
fn text_over_the_screen() -> HoveringText {
    /// Height of a capital and width of the pen, in pixels: as large as fits the box, as bold as the published letters.
    const LETTERS: (f32, f32) = (33.0, 3.8);
    const WORDS: &str = "Attention Agent";
    let [width, height] = hovering_text::SIZE;
    let mut picture = ImageBuf::black(width, height);
    let face = Face::new(LETTERS.0, LETTERS.1);
    let (x, y) = ((width as f32 - face.width(WORDS)) / 2.0, (height as f32 - LETTERS.0) / 2.0 - 3.0);
    face.write(&mut picture, x, y, WORDS, [255; 3]);
    HoveringText::new(picture.as_image()).expect("its size is that of a text")
}

/// Whether the environment `gym:ID` keeps Gymnasium's promises, in episodes of up to `steps` steps, or as many as there is
/// time for; each finding is told as soon as it is made.
///
/// # Errors
/// When the name is another, an option makes no sense, or the environment cannot be made.
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
    foveate_gym::check(&Settings::parse(id, options)?, steps, tell).map_err(with_story)
}

/// What is installed for Gymnasium environments, and which families of them work.
///
/// # Errors
/// When there is no Python that could host any.
pub fn doctor() -> Result<Doctor, RunError> {
    foveate_gym::doctor().map_err(with_story)
}

/// Shows Python's traceback, if there is one; the error itself is one line.
fn with_story(error: GymError) -> RunError {
    if let GymError::Refused { story, .. } = &error
        && !story.is_empty()
    {
        eprintln!("{}", story.trim_end());
    }
    error.into()
}

/// The options of a Gymnasium environment: name and meaning.
pub fn gym_options() -> impl Iterator<Item = (&'static str, &'static str)> {
    Settings::options()
}

/// Whether every copy of the world called `id` may have a process of its own.
pub(crate) fn has_process(id: &str) -> bool {
    id == take_cover::ID || id.starts_with(foveate_gym::PREFIX)
}

/// Whether a world has the picture that an agent looks at.
///
/// # Errors
/// When it has none; of an environment of Gymnasium it says how to get one.
pub fn needs_picture(spec: &EnvSpec) -> Result<(), RunError> {
    if spec.observation.picture().is_some() {
        return Ok(());
    }
    let remedy = picture_remedy(spec);
    let why = format!("{} shows numbers and no picture, which this agent looks at; {remedy}", spec.id);
    Err(RunError::BadRequest { why })
}

/// How a world that shows numbers comes to show a picture, in words for any command that takes a world.
pub fn picture_remedy(spec: &EnvSpec) -> &'static str {
    if spec.id.starts_with(foveate_gym::PREFIX) {
        "with --picture render it shows what it draws for people"
    } else {
        "choose another world or picture, as `foveate list` shows them"
    }
}

/// The shape of the world that `request` describes; that of `DoomTakeCover` is known without its game.
///
/// # Errors
/// When there is no such world, or it cannot be made.
pub fn shape(request: &EnvRequest) -> Result<EnvSpec, RunError> {
    if request.id == take_cover::ID && !request.options.contains_key(WRAP) {
        take_cover::request::config(request)?;
        return Ok(take_cover::spec());
    }
    Ok(make(request.clone())?.spec().clone())
}

/// Settings that fit an agent with a picture to a world: `image`, one entry of `actions` for each number or choice, and
/// a `stride` that leaves it no more patches than it has on the usual picture of 96 × 96.
pub fn fitted(spec: &EnvSpec) -> Value {
    let actions = spec.action.bounds();
    let Some((width, height)) = spec.observation.picture() else { return json!({ "actions": actions }) };
    let patches =
        |stride: usize| (width.saturating_sub(7) / stride + 1) * (height.saturating_sub(7) / stride + 1);
    let stride = if patches(4) < 64 {
        (1..4).rev().find(|&stride| patches(stride) >= 64).unwrap_or(1)
    } else {
        (4..4096).find(|&stride| patches(stride) <= 529).unwrap_or(4096)
    };
    json!({ "image": [width, height], "stride": stride, "actions": actions })
}

/// Reads shifts, and the pictures that they ask for.
///
/// # Errors
/// When a text is no plan, or the pictures cannot be read.
pub fn plan<S: AsRef<str>>(texts: &[S]) -> Result<Plan, RunError> {
    let mut plan = Plan::parse_all(texts)?;
    while let Some(folder) = plan.missing_folder().map(str::to_owned) {
        plan.set_pictures(&folder, &Arc::new(pictures::load_folder(Path::new(&folder))?));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_over_the_screen_are_as_large_as_the_published_ones() {
        let text = text_over_the_screen();
        let mut screen = ImageBuf::black(640, 480);
        text.draw(&mut screen);
        let pixels = screen.rgb().as_chunks::<3>().0;
        let letters = || (0..pixels.len()).filter(|&i| pixels[i] == [0, 255, 255]);
        let (left, right) = (letters().map(|i| i % 640).min(), letters().map(|i| i % 640).max());
        assert!(
            (150..165).contains(&left.expect("letters")) && (495..510).contains(&right.expect("letters"))
        );
        // 14.7 % of the published picture is not exactly black.
        let share = letters().count() as f64 / (360.0 * 80.0);
        assert!((share - 0.147).abs() < 0.01, "{share}");
    }
}
