//! What a function of the calling program acts on.
//!
//! A function may be slow, it has no weights, and attends to nothing that could be seen at every step. So its decisions are taken
//! again with parts of others alone, within a number of questions, and the first episode is filmed.

use std::any::Any;
use std::cell::RefCell;

use foveate_core::{EvaluateError, Observation};

use super::cost::Meter;
use super::film::{FilmRecorder, FinishedFilm};
use super::finding::{Bench, EpisodeShown};
use super::play::{EpisodeStart, Starts, action_scale, play};
use super::swaps;
use super::twice::AskedFunction;
use super::{Scheduler, StudyError, StudyRequest};
use crate::trajectory::Trajectory;

/// Swaps parts of decisions, and films an episode.
pub(super) fn measure<'a>(
    request: &StudyRequest<'_>,
    scheduler: &'a dyn Scheduler,
    mut meter: Meter<'a>,
) -> Result<Bench<'a>, StudyError> {
    let filming = meter.part(super::cost::FILMING);
    let Some(swapped) = swaps::first_part(request, scheduler, &mut meter)? else {
        return Err(swaps::nothing_to_swap(request));
    };
    let mut head = swaps::head(&request.labels, request.seed, &swapped.measured);
    let mut shown = EpisodeShown { verb: "acts on", ..EpisodeShown::default() };
    let start = Starts::of(request).get(0);
    head.pictured = matches!(start.env.observation(), Observation::Image(_));
    if head.pictured {
        let (mut episode, film, picture) = film(start, &|| scheduler.stopped())?;
        let scale = action_scale(request.env.spec());
        for action in &mut episode.actions {
            *action = scale.shown(action);
        }
        shown = EpisodeShown { episode, film: Some(film), picture, seen: "what it sees", ..shown };
    }
    meter.finish(filming);
    let mut measured: Vec<Box<dyn Any>> = vec![Box::new(swapped)];
    measured.extend(AskedFunction::of(request).map(|asked| Box::new(asked) as Box<dyn Any>));
    let (dimensions, meter) = (request.dimensions.clone(), RefCell::new(meter));
    Ok(Bench { head, dimensions, shown, measured, scheduler, meter })
}

/// Plays an episode with a camera.
fn film(
    start: EpisodeStart,
    stopped: &dyn Fn() -> bool,
) -> Result<(Trajectory, FinishedFilm, [usize; 2]), StudyError> {
    let (mut camera, mut picture) = (None, [1, 1]);
    let (episode, end) = play(start, None, &|_| false, &mut |moment| {
        if stopped() {
            return Err(EvaluateError::Stopped.into());
        }
        let camera = match &mut camera {
            Some(camera) => camera,
            none => {
                picture = moment.seen.size();
                none.insert(FilmRecorder::new(moment.env, picture[0], picture[1])?)
            }
        };
        camera.shoot(moment.env, moment.seen.newest())
    })?;
    let Some(mut camera) = camera else { return Err(EvaluateError::Stopped.into()) };
    camera.shoot(&*end.env, super::seen::SeenPicture::of(&*end.env, None)?.newest())?;
    Ok((episode, camera.finish()?, picture))
}
