//! The last seconds of a session, compressed, and encoded as a film on request.

use std::collections::VecDeque;
use std::sync::Arc;

use foveate_core::ImageBuf;
use foveate_film::{AgentView, Dial, FrameComposer, FrameContent, FrameSettings, Mark, Mp4Film, PictureKind};

use crate::run_length;

/// Frames that are kept: ten seconds at 50 a second.
pub(super) const KEPT: usize = 500;
/// Bytes that are kept for a runner, whatever the pictures hold.
const MOST_BYTES: usize = 40 << 20;

/// One frame of one runner.
#[derive(Debug, Clone)]
pub(super) struct RecordedFrame {
    pub(super) title: Arc<str>,
    /// The view for people, [run-length encoded](run_length); empty without.
    pub(super) view: Box<[u8]>,
    /// What the agent saw, [run-length encoded](run_length); empty without a picture.
    pub(super) seen: Box<[u8]>,
    /// What that shows.
    pub(super) kind: PictureKind,
    /// The numbers that the agent saw, of a world without a picture.
    pub(super) numbers: RecordedNumbers,
    pub(super) marks: Box<[Mark]>,
    pub(super) action: Box<[f64]>,
    pub(super) score: f64,
    pub(super) step: usize,
}

/// What is shown of an observation that is numbers alone.
#[derive(Debug, Clone)]
pub(super) enum RecordedNumbers {
    /// The numbers.
    Plain(Vec<f32>),
    /// The names of the numbers in the order shown, and the weights that attention gives them, `[queries, names]`.
    Attended { names: Vec<String>, weights: Vec<f32> },
}

impl RecordedNumbers {
    fn bytes(&self) -> usize {
        match self {
            RecordedNumbers::Plain(numbers) => size_of_val(&**numbers),
            RecordedNumbers::Attended { names, weights } => {
                let text: usize = names.iter().map(|name| name.len() + size_of::<String>()).sum();
                size_of_val(&**weights) + text
            }
        }
    }
}

impl RecordedFrame {
    fn bytes(&self) -> usize {
        let fixed = size_of_val(&*self.marks) + size_of_val(&*self.action) + 256;
        self.view.len() + self.seen.len() + self.numbers.bytes() + fixed
    }
}

/// The last frames of a runner.
#[derive(Debug, Default)]
pub(super) struct Recording {
    frames: VecDeque<Arc<RecordedFrame>>,
    bytes: usize,
}

impl Recording {
    /// Adds a frame, dropping the oldest where there are too many.
    pub(super) fn push(&mut self, frame: RecordedFrame) {
        self.bytes += frame.bytes();
        self.frames.push_back(Arc::new(frame));
        while self.frames.len() > KEPT || self.bytes > MOST_BYTES {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    pub(super) fn frames(&self) -> Vec<Arc<RecordedFrame>> {
        self.frames.iter().cloned().collect()
    }
}

/// A film to encode; holds everything it needs, so that another thread can do it.
pub struct FilmJob {
    pub(super) runners: Vec<Vec<Arc<RecordedFrame>>>,
    pub(super) dials: Vec<Dial>,
    pub(super) max_steps: Option<usize>,
    pub(super) fps: f64,
}

impl FilmJob {
    /// The film as an MP4 file, runners one above the other.
    ///
    /// # Errors
    /// A line for the page.
    pub fn make(&self) -> Result<Vec<u8>, String> {
        let frames = self.runners.iter().map(Vec::len).min().unwrap_or(0);
        if frames == 0 {
            return Err("nothing was driven yet; press play first".into());
        }
        let failed = |error: foveate_film::FilmError| error.to_string();
        let (width, height) = FrameComposer::SIZE;
        let mut film = Mp4Film::new(width, height * self.runners.len(), self.fps).map_err(failed)?;
        let mut whole = ImageBuf::black(width, height * self.runners.len());
        let mut composers: Vec<Option<(Arc<str>, FrameComposer)>> =
            self.runners.iter().map(|_| None).collect();
        let mut body = Vec::new();
        for i in 0..frames {
            for (at, (runner, composer)) in self.runners.iter().zip(&mut composers).enumerate() {
                let frame = &runner[runner.len() - frames + i];
                let part = self.compose(frame, composer).map_err(failed)?;
                let bytes = part.len();
                whole.rgb_mut()[at * bytes..(at + 1) * bytes].copy_from_slice(part);
            }
            film.frame(whole.as_image(), &mut body).map_err(failed)?;
        }
        let mut file = film.finish().map_err(failed)?;
        file.append(&mut body);
        Ok(file)
    }

    /// One runner's part of a frame.
    fn compose<'s>(
        &self,
        frame: &RecordedFrame,
        composer: &'s mut Option<(Arc<str>, FrameComposer)>,
    ) -> Result<&'s [u8], foveate_film::FilmError> {
        // Another title is another episode, whose curve of the score begins anew.
        if composer.as_ref().is_none_or(|(title, _)| *title != frame.title) {
            let (width, height) = FrameComposer::SIZE;
            *composer = Some((
                Arc::clone(&frame.title),
                FrameComposer::new(FrameSettings {
                    width,
                    height,
                    title: frame.title.to_string(),
                    dials: self.dials.clone(),
                    max_steps: self.max_steps,
                })?,
            ));
        }
        let (_, composer) = composer.as_mut().expect("just made");
        let (view, seen) = (run_length::unpack(&frame.view), run_length::unpack(&frame.seen));
        let frame = composer.compose(&FrameContent {
            world: view.as_ref().map(ImageBuf::as_image),
            seen: match (&seen, &frame.numbers) {
                (Some(seen), _) => AgentView::picture(frame.kind, seen.as_image(), &frame.marks),
                (None, RecordedNumbers::Plain(numbers)) => AgentView::Numbers(numbers),
                (None, RecordedNumbers::Attended { names, weights }) => {
                    AgentView::Attended { names, weights }
                }
            },
            action: &frame.action,
            score: frame.score,
            step: frame.step,
            time_s: frame.step as f64 / self.fps,
        });
        Ok(frame.rgb())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(step: usize, view: usize) -> RecordedFrame {
        RecordedFrame {
            title: "a world".into(),
            view: vec![0; view].into(),
            seen: [].into(),
            kind: PictureKind::Observation,
            numbers: RecordedNumbers::Plain(vec![]),
            marks: [].into(),
            action: [].into(),
            score: 0.0,
            step,
        }
    }

    #[test]
    fn the_oldest_go_first() {
        let mut recording = Recording::default();
        for step in 0..KEPT + 7 {
            recording.push(frame(step, 10));
        }
        let steps: Vec<usize> = recording.frames().iter().map(|m| m.step).collect();
        assert_eq!((steps.len(), steps[0]), (KEPT, 7));
    }

    #[test]
    fn memory_is_bounded_by_bytes_too() {
        let mut recording = Recording::default();
        for step in 0..50 {
            recording.push(frame(step, 1 << 20));
            let held: usize = recording.frames().iter().map(|m| m.bytes()).sum();
            assert!(held <= MOST_BYTES && held == recording.bytes, "{held}");
        }
        assert_eq!(recording.frames().len(), 39);
    }

    #[test]
    fn of_nothing_no_film_is_made() {
        let order = FilmJob { runners: vec![vec![]], dials: vec![], max_steps: None, fps: 50.0 };
        assert!(order.make().expect_err("empty").contains("press play"));
    }
}
