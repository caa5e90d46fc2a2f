//! Explanations put to the test: one report on what an agent looks at, and on whether that is what it acts on.
//!
//! Episodes are played and watched; decisions are taken again on pictures that were changed, each from the very state
//! in which it was taken; episodes are driven again with the change in every step. What comes out is a folder with one
//! page that needs nothing else, and every figure with its data.

mod files;
mod film;
mod jobs;
mod play;

use std::fmt;
use std::path::{Path, PathBuf};

use foveate_core::{Agent, Env, EvaluateError, RolloutJob};
use foveate_explain::episode::{ActionScale, Dimension, Episode};
use foveate_explain::page::{Mood, Page, Section, Tile, player_data};
use foveate_film::encode_png;
use serde::Serialize;

use crate::RunError;
use crate::evaluate::Labels;
use crate::workers::{Stop, default_workers};
use files::Folder;
use film::{Camera, Reel};
use jobs::ordered;
use play::{Seat, action_scale, picture, play};

/// A report to be made.
pub struct ExplainRequest<'a> {
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// What to call them.
    pub labels: Labels,
    /// The world is seeded once with this; the first episode of its stream is the one that is shown.
    pub seed: u64,
    /// Episodes that the statistics are over.
    pub episodes: usize,
    /// Decisions per episode that are put to the test.
    pub decisions: usize,
    /// Steps after which an episode is over, if the world lets it go on for so long.
    pub max_steps: Option<usize>,
    /// Threads; 0 for as many as there are cores.
    pub workers: usize,
    /// The folder to make; an older report there is replaced.
    pub out: &'a Path,
}

/// How far the making of a report is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub what: &'static str,
    /// The part of all work that is done, in 0.0..=1.0.
    pub done: f64,
}

/// What the report found, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainReport {
    /// The folder.
    pub folder: PathBuf,
    /// Bytes of the page.
    pub bytes: usize,
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Its variants.
    pub variant: String,
    /// Where the weights came from.
    pub weights: String,
    /// The seed of the stream.
    pub seed: u64,
    /// Score of the episode that is shown.
    pub score: f64,
    /// Its steps.
    pub steps: usize,
}

impl fmt::Display for ExplainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = self.folder.join("index.html");
        write!(
            f,
            "{}: {:.1} MB; {} steps, score {:.1}",
            page.display(),
            self.bytes as f64 / 1e6,
            self.steps,
            self.score
        )
    }
}

/// The shown episode.
struct Shown {
    episode: Episode,
    /// `[n_patches]` importance at every step.
    maps: Vec<Vec<f32>>,
    reel: Reel,
    picture: [usize; 2],
}

/// Makes the report, calling `progress` now and then.
///
/// # Errors
/// When the world shows no picture, an episode fails, someone asks to stop, or the folder cannot be made. What was at
/// its place is then untouched.
pub fn run(
    request: &ExplainRequest<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<ExplainReport, RunError> {
    if request.episodes == 0 || request.decisions == 0 {
        let why = "a report needs at least 1 episode and 1 decision; raise --episodes or --decisions".into();
        return Err(RunError::BadRequest { why });
    }
    let folder = Folder::create(request.out)?;
    let workers = if request.workers == 0 { default_workers() } else { request.workers };
    let mut env = request.env.boxed_clone();
    env.reset(Some(request.seed));
    picture(&*env)?;
    let seat = Seat {
        env,
        agent: request.agent.boxed_clone(),
        job: RolloutJob { genome: 0, episode: 0, env_seed: request.seed },
        max_steps: request.max_steps.unwrap_or(usize::MAX),
    };
    progress(Progress { what: "filming", done: 0.0 });
    let filmed = ordered(std::iter::once(seat), workers, stop, |seat| show(seat, stop), &mut || {})?;
    let [shown] = &filmed[..] else { return Err(EvaluateError::Stopped.into()) };

    let spec = request.env.spec();
    let dimensions: Vec<Dimension> = crate::watch::dials(spec)
        .into_iter()
        .map(|dial| Dimension { name: dial.name, low: dial.low, high: dial.high })
        .collect();
    let film = shown.reel.film();
    let page = Page {
        title: format!("What the {} looks at", request.labels.weights),
        subtitle: subtitle(request),
        tiles: vec![Tile {
            value: format!("{:.0}", shown.episode.score()),
            name: "score of this episode".into(),
            note: format!("{} steps", shown.episode.len()),
            mood: Mood::Plain,
        }],
        summary: vec![],
        data: player_data(&film, &shown.episode, &shown.maps, shown.picture, &dimensions),
        film,
        sections: Vec::<Section>::new(),
        notes: vec![],
    };
    let png = |image: foveate_core::Image<'_>| encode_png(image).unwrap_or_default();
    let html = page.html(&png);
    let report = ExplainReport {
        folder: request.out.to_path_buf(),
        bytes: html.len(),
        env: request.labels.env.clone(),
        picture: request.labels.picture.clone(),
        variant: request.labels.variant.clone(),
        weights: request.labels.weights.clone(),
        seed: request.seed,
        score: shown.episode.score(),
        steps: shown.episode.len(),
    };
    folder.add("index.html", html.as_bytes())?;
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    folder.add(files::MARK, json.as_bytes())?;
    folder.commit()?;
    Ok(report)
}

fn subtitle(request: &ExplainRequest<'_>) -> String {
    let Labels { env, picture, variant, weights } = &request.labels;
    format!("{weights} · {env}, picture {picture}, variant {variant} · seed {}", request.seed)
}

/// Plays and films the episode that the page shows.
fn show(seat: Seat, stop: &Stop) -> Result<Shown, RunError> {
    let scale = action_scale(seat.env.spec());
    let first = picture(&*seat.env)?;
    let size = [first.width(), first.height()];
    let mut camera = Camera::new(&*seat.env, size[0], size[1])?;
    let mut maps = Vec::new();
    let (mut episode, end) = play(seat, &|_| false, &mut |moment| {
        if stop.asked() {
            return Err(EvaluateError::Stopped.into());
        }
        camera.shoot(moment.env, moment.picture)?;
        maps.extend(moment.decision.gaze.map(|gaze| gaze.importance.to_vec()));
        Ok(())
    })?;
    camera.shoot(&*end.env, picture(&*end.env)?)?;
    if scale == ActionScale::Choices {
        for action in &mut episode.actions {
            *action = scale.shown(action);
        }
    }
    Ok(Shown { episode, maps, reel: camera.finish()?, picture: size })
}
