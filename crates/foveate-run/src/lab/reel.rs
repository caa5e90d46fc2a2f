//! The last seconds, kept small, and made into a film when someone asks.

use std::collections::VecDeque;
use std::sync::Arc;

use foveate_core::ImageBuf;
use foveate_film::{Dial, Mark, Mp4Film, Seen, Shot, Stage, StagePlan};

use super::runs;

/// Frames that are kept: ten seconds at 50 a second.
pub(super) const KEPT: usize = 500;
/// Bytes that are kept for a lane, whatever the pictures hold.
const MOST_BYTES: usize = 40 << 20;

/// One frame of one lane.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    pub(super) title: Arc<str>,
    /// The world as people see it, in [`runs`]; empty without.
    pub(super) view: Box<[u8]>,
    /// What the agent saw, in [`runs`]; empty without a picture.
    pub(super) seen: Box<[u8]>,
    pub(super) marks: Box<[Mark]>,
    pub(super) action: Box<[f64]>,
    pub(super) score: f64,
    pub(super) step: usize,
}

impl Moment {
    fn bytes(&self) -> usize {
        self.view.len() + self.seen.len() + size_of_val(&*self.marks) + size_of_val(&*self.action) + 256
    }
}

/// The last frames of a lane.
#[derive(Debug, Default)]
pub(super) struct Reel {
    moments: VecDeque<Arc<Moment>>,
    bytes: usize,
}

impl Reel {
    /// Adds a frame, dropping the oldest where there are too many.
    pub(super) fn push(&mut self, moment: Moment) {
        self.bytes += moment.bytes();
        self.moments.push_back(Arc::new(moment));
        while self.moments.len() > KEPT || self.bytes > MOST_BYTES {
            let Some(oldest) = self.moments.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    pub(super) fn moments(&self) -> Vec<Arc<Moment>> {
        self.moments.iter().cloned().collect()
    }
}

/// A film to be made; it knows all it needs, so that another thread can make it.
pub struct FilmOrder {
    pub(super) lanes: Vec<Vec<Arc<Moment>>>,
    pub(super) dials: Vec<Dial>,
    pub(super) max_steps: Option<usize>,
    pub(super) fps: f64,
}

impl FilmOrder {
    /// The film as an MP4 file, lanes one above the other.
    ///
    /// # Errors
    /// A line for the page.
    pub fn make(&self) -> Result<Vec<u8>, String> {
        let frames = self.lanes.iter().map(Vec::len).min().unwrap_or(0);
        if frames == 0 {
            return Err("nothing was driven yet; press play first".into());
        }
        let failed = |error: foveate_film::FilmError| error.to_string();
        let (width, height) = Stage::SIZE;
        let mut film = Mp4Film::new(width, height * self.lanes.len(), self.fps).map_err(failed)?;
        let mut whole = ImageBuf::black(width, height * self.lanes.len());
        let mut stages: Vec<Option<(Arc<str>, Stage)>> = self.lanes.iter().map(|_| None).collect();
        let mut body = Vec::new();
        for i in 0..frames {
            for (at, (lane, stage)) in self.lanes.iter().zip(&mut stages).enumerate() {
                let moment = &lane[lane.len() - frames + i];
                let part = self.compose(moment, stage).map_err(failed)?;
                let bytes = part.len();
                whole.rgb_mut()[at * bytes..(at + 1) * bytes].copy_from_slice(part);
            }
            film.frame(whole.as_image(), &mut body).map_err(failed)?;
        }
        let mut file = film.finish().map_err(failed)?;
        file.append(&mut body);
        Ok(file)
    }

    /// One lane's part of a frame.
    fn compose<'s>(
        &self,
        moment: &Moment,
        stage: &'s mut Option<(Arc<str>, Stage)>,
    ) -> Result<&'s [u8], foveate_film::FilmError> {
        // Another title is another episode, whose curve of the score begins anew.
        if stage.as_ref().is_none_or(|(title, _)| *title != moment.title) {
            let (width, height) = Stage::SIZE;
            *stage = Some((
                Arc::clone(&moment.title),
                Stage::new(StagePlan {
                    width,
                    height,
                    title: moment.title.to_string(),
                    seen_title: "what the agent sees".into(),
                    dials: self.dials.clone(),
                    max_steps: self.max_steps,
                })?,
            ));
        }
        let (_, stage) = stage.as_mut().expect("just made");
        let (view, seen) = (runs::unpack(&moment.view), runs::unpack(&moment.seen));
        let frame = stage.compose(&Shot {
            world: view.as_ref().map(ImageBuf::as_image),
            seen: seen
                .as_ref()
                .map_or(Seen::Numbers(&[]), |seen| Seen::Picture(seen.as_image(), &moment.marks)),
            action: &moment.action,
            score: moment.score,
            step: moment.step,
            time_s: moment.step as f64 / self.fps,
        });
        Ok(frame.rgb())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(step: usize, view: usize) -> Moment {
        Moment {
            title: "a world".into(),
            view: vec![0; view].into(),
            seen: [].into(),
            marks: [].into(),
            action: [].into(),
            score: 0.0,
            step,
        }
    }

    #[test]
    fn the_oldest_go_first() {
        let mut reel = Reel::default();
        for step in 0..KEPT + 7 {
            reel.push(moment(step, 10));
        }
        let steps: Vec<usize> = reel.moments().iter().map(|m| m.step).collect();
        assert_eq!((steps.len(), steps[0]), (KEPT, 7));
    }

    #[test]
    fn memory_is_bounded_by_bytes_too() {
        let mut reel = Reel::default();
        for step in 0..50 {
            reel.push(moment(step, 1 << 20));
            let held: usize = reel.moments().iter().map(|m| m.bytes()).sum();
            assert!(held <= MOST_BYTES && held == reel.bytes, "{held}");
        }
        assert_eq!(reel.moments().len(), 39);
    }

    #[test]
    fn of_nothing_no_film_is_made() {
        let order = FilmOrder { lanes: vec![vec![]], dials: vec![], max_steps: None, fps: 50.0 };
        assert!(order.make().expect_err("empty").contains("press play"));
    }
}
