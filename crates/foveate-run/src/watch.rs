//! Films of an agent driving: the world as people see it, beside what the agent sees and where it looks.
//!
//! A film is encoded while the episode runs, so that its length does not matter to memory; the file takes its name
//! only once it is whole.

mod film_writer;
mod filmed_episode;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use foveate_core::{Agent, Env, EvaluateError};
use foveate_film::encode_png;
use foveate_train::decimals;

use crate::RunError;
use crate::atomic::AtomicFile;
use crate::evaluate::{self, Labels};
use crate::workers::Stop;
use film_writer::{FilmFormat, FilmWriter};
use filmed_episode::FilmedEpisode;
pub(crate) use filmed_episode::dials;

/// Of a picture without `at`: the step that it shows, or the last one of a shorter episode.
const PICTURE_STEP: usize = 100;

/// An episode to be filmed.
pub struct WatchRequest<'a> {
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// What to call them in the title.
    pub labels: Labels,
    /// The world is seeded once with this.
    pub seed: u64,
    /// Which episode of the random stream that the seed starts: 0 is the first.
    pub episode: usize,
    /// Steps to film; `None` for the whole episode.
    pub steps: Option<usize>,
    /// Films every so many steps, so that it plays at the same speed with fewer frames; 1 for all of them.
    pub every: usize,
    /// Width and height of the film in pixels, even; `None` for the size that suits the format.
    pub size: Option<(usize, usize)>,
    /// The file to write; its ending chooses the format: `.mp4`, `.gif`, or `.png` for a picture of a single step.
    pub out: &'a Path,
    /// For a picture: which step it shows; 0 is the world just reset. `None` for step 100 or the last one.
    pub at: Option<usize>,
}

/// What was filmed.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchReport {
    /// The file.
    pub file: PathBuf,
    /// Bytes in it.
    pub bytes: u64,
    /// Frames composed.
    pub frames: usize,
    /// Steps of the episode that were played.
    pub steps: usize,
    /// Sum of rewards over these steps.
    pub score: f64,
    /// The world ended the episode within these steps.
    pub ended: bool,
}

impl fmt::Display for WatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.ended { "to the end" } else { "not to the end" };
        let size = match self.bytes {
            0..1_000_000 => format!("{} kB", self.bytes.div_ceil(1000)),
            bytes => format!("{:.1} MB", bytes as f64 / 1e6),
        };
        let (file, steps, score, d) =
            (self.file.display(), self.steps, self.score, decimals(self.score.abs()));
        write!(f, "{file}: {size}; {steps} steps, {how}; score {score:.d$}")
    }
}

/// Plays one episode and films it, calling `progress` with the steps played so far.
///
/// Every frame shows one observation, where the agent looked in it, the action it then chose, and the score so far;
/// the first frame is the world just reset, the last one the final observation. When someone asks to stop, the film
/// ends there and is whole.
///
/// # Errors
/// When the ending of the file is none of the three, the size is out of range, `at` is asked of a film or lies beyond
/// the episode's end, the world or the agent refuses, or the file cannot be written. An old file is then untouched.
pub fn run(
    request: &WatchRequest<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(usize),
) -> Result<WatchReport, RunError> {
    run_into(request, || AtomicFile::create(request.out), stop, progress)
}

/// As [`run`], into the file that `create` begins.
pub(crate) fn run_into(
    request: &WatchRequest<'_>,
    create: impl FnOnce() -> Result<AtomicFile, RunError>,
    stop: &Stop,
    progress: &mut dyn FnMut(usize),
) -> Result<WatchReport, RunError> {
    let kind = FilmFormat::of(request.out)?;
    if request.at.is_some() && kind != FilmFormat::Png {
        return Err(RunError::BadRequest {
            why: "a step can be chosen for a .png only; name a .png file or leave the step out".into(),
        });
    }
    evaluate::check_episodes(request.episode)?;
    let film_error = |source| RunError::Film { path: request.out.to_path_buf(), source };
    // Whatever is wrong with size or file is said before anything is driven.
    let episode = FilmedEpisode::new(request, kind.size(), stop).map_err(film_error)?;
    if request.episode > 0 && stop.asked() {
        return Err(EvaluateError::Stopped.into());
    }
    let file = create()?;
    let made = if kind == FilmFormat::Png {
        picture(request, episode, file, stop, progress)
    } else {
        let fps = request.env.spec().fps / request.every.max(1) as f64;
        let writer = FilmWriter::new(kind, episode.size(), fps, file, request.out)?;
        film(request, episode, writer, stop, progress)
    };
    made.map_err(RunError::of_weights(&request.labels.weights))
}

/// Films the steps that were asked for, and always the last.
fn film(
    request: &WatchRequest<'_>,
    mut episode: FilmedEpisode,
    mut writer: FilmWriter,
    stop: &Stop,
    progress: &mut dyn FnMut(usize),
) -> Result<WatchReport, RunError> {
    let last = request.steps.unwrap_or(usize::MAX);
    loop {
        let done = episode.is_over() || episode.steps() >= last;
        let filmed = done || episode.steps().is_multiple_of(request.every.max(1));
        if filmed {
            writer.frame(episode.compose()?.as_image())?;
        }
        progress(episode.steps());
        if done || stop.asked() {
            if !filmed {
                writer.frame(episode.compose()?.as_image())?;
            }
            break;
        }
        episode.step()?;
    }
    let (frames, bytes) = writer.finish()?;
    Ok(episode.report(request.out, bytes, frames))
}

/// Plays up to the step that the picture is to show.
fn picture(
    request: &WatchRequest<'_>,
    mut episode: FilmedEpisode,
    mut file: AtomicFile,
    stop: &Stop,
    progress: &mut dyn FnMut(usize),
) -> Result<WatchReport, RunError> {
    let wanted = request.at.unwrap_or(PICTURE_STEP);
    let last = request.steps.unwrap_or(usize::MAX);
    while episode.steps() < wanted.min(last) && !episode.is_over() && !stop.asked() {
        episode.step()?;
        progress(episode.steps());
    }
    if request.at.is_some_and(|at| at > episode.steps()) && !stop.asked() {
        let why = format!(
            "step {wanted} was asked for, but there are {} steps to show; choose --at 0 to {0}",
            episode.steps()
        );
        return Err(RunError::BadRequest { why });
    }
    let film_error = |source| RunError::Film { path: request.out.to_path_buf(), source };
    let bytes = encode_png(episode.compose()?.as_image()).map_err(film_error)?;
    file.write_all(&bytes).map_err(RunError::io("write", request.out))?;
    file.commit()?;
    Ok(episode.report(request.out, bytes.len() as u64, 1))
}

#[cfg(test)]
mod tests;
