//! The film of the shown episode, in memory: the world beside what the agent sees. The page draws the overlay itself.

use crate::page::PageFilm;
use foveate_core::{Env, EnvError, Image, ImageBuf};
use foveate_film::Mp4Film;

use super::StudyError;

/// The world's size in the film, which has the proportions of 3:2; multiples of 16 compress best.
const WORLD: [usize; 2] = [528, 352];

/// A film being made.
pub(super) struct FilmRecorder {
    film: Mp4Film,
    body: Vec<u8>,
    view: Option<ImageBuf>,
    frame: ImageBuf,
    fps: f64,
    seen: [usize; 4],
}

/// A film that is done.
pub(super) struct FinishedFilm {
    mp4: Vec<u8>,
    fps: f64,
    size: [usize; 2],
    world: Option<[usize; 4]>,
    seen: [usize; 4],
}

impl FilmRecorder {
    /// Starts a film of a world that was just reset and that shows pictures of this size.
    pub(super) fn new(env: &dyn Env, width: usize, height: usize) -> Result<Self, StudyError> {
        let mut view = ImageBuf::black(WORLD[0], WORLD[1]);
        let view = match env.render(&mut view) {
            Ok(()) => Some(view),
            Err(EnvError::NoView { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let left = view.as_ref().map_or(0, ImageBuf::width);
        // Films keep one colour for four pixels: at twice its size, a small picture keeps every colour it has.
        let times = 64_usize.div_ceil(width.min(height).max(1)).max(if height > WORLD[1] { 1 } else { 2 });
        let seen = [left, 0, width * times / 2 * 2, height * times / 2 * 2];
        let tall = view.as_ref().map_or(0, ImageBuf::height).max(seen[3]);
        let fps = env.spec().fps;
        let film = Mp4Film::new(left + seen[2], tall, fps)?;
        let frame = ImageBuf::black(left + seen[2], tall);
        Ok(FilmRecorder { film, body: Vec::new(), view, frame, fps, seen })
    }

    /// Adds a frame.
    pub(super) fn shoot(&mut self, env: &dyn Env, picture: Image<'_>) -> Result<(), StudyError> {
        if let Some(view) = &mut self.view {
            env.render(view)?;
            put(&mut self.frame, [0, 0, view.width(), view.height()], view.as_image());
        }
        put(&mut self.frame, self.seen, picture);
        Ok(self.film.frame(self.frame.as_image(), &mut self.body)?)
    }

    /// Ends the film.
    pub(super) fn finish(self) -> Result<FinishedFilm, StudyError> {
        let mut mp4 = self.film.finish()?;
        mp4.extend(self.body);
        Ok(FinishedFilm {
            mp4,
            fps: self.fps,
            size: [self.frame.width(), self.frame.height()],
            world: self.view.map(|view| [0, 0, view.width(), view.height()]),
            seen: self.seen,
        })
    }
}

impl FinishedFilm {
    /// The film in the form that the page needs.
    pub(super) fn film(&self) -> PageFilm<'_> {
        PageFilm { mp4: &self.mp4, fps: self.fps, size: self.size, world: self.world, seen: self.seen }
    }
}

/// Scales `picture` to a rectangle of `frame` by nearest neighbour.
fn put(frame: &mut ImageBuf, [left, top, width, height]: [usize; 4], picture: Image<'_>) {
    let columns = frame.width();
    for y in 0..height {
        let from = y * picture.height() / height;
        for x in 0..width {
            let pixel = picture.pixel(x * picture.width() / width, from);
            let at = ((top + y) * columns + left + x) * 3;
            frame.rgb_mut()[at..at + 3].copy_from_slice(&pixel);
        }
    }
}
