//! Videos of an agent: the world as people see it, beside the agent's observation with its attention
//! overlaid.
//!
//! A video is encoded while the episode runs, so its length does not affect memory; the file gets its name
//! when it is complete.

mod film_writer;
mod filmed_episode;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use foveate_core::hint::Setting;
use foveate_core::{Agent, Env, EvaluateError};
use foveate_film::encode_png;
use foveate_train::decimals;

use crate::RunError;
use crate::atomic::AtomicFile;
use crate::evaluate::{self, Labels};
use crate::job_cost::{JobCost, at_most};
use crate::workers::Stop;
use film_writer::{FilmFormat, FilmWriter};
use filmed_episode::FilmedEpisode;
pub(crate) use filmed_episode::dials;

/// The step that a picture without `at` shows; for a shorter episode its last step.
const PICTURE_STEP: usize = 100;

/// A request for a video of an episode.
pub struct WatchRequest<'a> {
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// Their names in the title.
    pub labels: Labels,
    /// The seed of the world's random stream.
    pub seed: u64,
    /// Index of the episode in the random stream of the seed, from 0.
    pub episode: usize,
    /// Steps to record; `None` for the whole episode.
    pub steps: Option<usize>,
    /// Records every n-th step, so that the video plays at the same speed with fewer frames; 1 for all steps.
    pub every: usize,
    /// Width and height of the video in pixels, even; `None` for the format's default size.
    pub size: Option<(usize, usize)>,
    /// The file to write; its extension selects the format: `.mp4`, `.gif`, or `.png` for a picture of a
    /// single step.
    pub out: &'a Path,
    /// For a picture: the step to show; 0 is the world after its reset. `None` for step 100 or the last one.
    pub at: Option<usize>,
    /// Whether to measure how far each action changes without each thing that is attended to, and draw it as frames; only of agents
    /// whose attention has places in a picture and can be opened.
    pub effects: bool,
}

/// The result of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchReport {
    /// The file.
    pub file: PathBuf,
    /// Bytes in it.
    pub bytes: u64,
    /// Number of frames.
    pub frames: usize,
    /// Steps of the episode.
    pub steps: usize,
    /// Sum of rewards over these steps.
    pub score: f64,
    /// True if the world ended the episode within these steps.
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

/// Runs one episode and records it; calls `progress` with the number of steps so far.
///
/// Every frame shows one observation, the agent's attention in it, the resulting action, and the score so
/// far; the first frame is the world after its reset, the last one the final observation. When the user asks
/// to stop, the video ends there and is complete.
///
/// # Errors
/// When the file has another extension, the size is out of range, `at` is given for a video or is beyond the
/// episode's end, the world or the agent reports an error, or the file cannot be written. An old file is then
/// untouched.
pub fn run(
    request: &WatchRequest<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(usize),
) -> Result<WatchReport, RunError> {
    run_into(request, || AtomicFile::create(request.out), stop, progress)
}

/// As [`run`], into the file that `create` opens.
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
    let longest = request.env.spec().max_steps.into_iter().chain(request.steps);
    let longest =
        if kind == FilmFormat::Png { Some(request.at.unwrap_or(PICTURE_STEP)) } else { longest.min() };
    let drawn = if kind == FilmFormat::Png { "to the step to draw" } else { "to draw step by step" };
    let limit = at_most(longest, None);
    let parts = format!("1 episode{limit} {drawn}");
    stop.announce(JobCost::of_episodes("watch", parts, 1, 1));
    let progress = &mut |steps: usize| {
        // An episode may end early: what is left is the most that it can be.
        if let Some(longest) = longest {
            stop.reached(steps as f64 / longest.max(1) as f64);
        }
        progress(steps);
    };
    let film_error = |source| RunError::Film { path: request.out.to_path_buf(), source };
    // Errors of size or file are reported before the episode starts.
    let mut episode = FilmedEpisode::new(request, kind.size(), stop).map_err(film_error)?;
    if request.effects {
        episode.measure_effects(request);
    }
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
    stop.one_more();
    made.map_err(RunError::of_weights(&request.labels.weights))
}

/// Records the requested steps, and always the last one.
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

/// Runs the episode up to the step that the picture shows.
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
            "step {wanted} was asked for, but there are {0} steps to show; choose one from 0 to {0} with {1}",
            episode.steps(),
            Setting::At
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
