//! What a job says while it runs, and who is told.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use foveate::run::progress::{LogLine, Note, TrainObserver};
use foveate::run::workers::Stop;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Turns of the caller's thread between two reports of how many episodes are done.
const TURNS: usize = 10;

/// Events of a job, which its thread adds and the caller's thread takes: a function of Python is called on no other thread.
#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<VecDeque<Value>>,
    /// Counts the episodes of the job, with what was told.
    counted: Mutex<Option<(Stop, Told)>>,
}

/// What was told of a job that is counted.
#[derive(Default)]
struct Told {
    cost: bool,
    episodes: (usize, usize),
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Events {
    /// Adds an event.
    pub(crate) fn add(&self, event: Value) {
        lock(&self.queue).push_back(event);
    }

    /// Adds an event of a job that is counted, with the seconds that are left, once they can be told.
    pub(crate) fn add_timed(&self, mut event: Value) {
        if let Some((stop, _)) = &*lock(&self.counted) {
            event["left"] = json!(stop.time().and_then(|(_, left)| left));
        }
        self.add(event);
    }

    /// The job announces its cost to `stop`, which counts its episodes.
    pub(crate) fn count(&self, stop: &Stop) {
        *lock(&self.counted) = Some((stop.clone(), Told::default()));
    }

    /// The cost of the job, once it is known, and in some `turn`s the number of episodes that are done.
    fn counted(&self, turn: Option<usize>) -> (Option<Value>, Option<Value>) {
        let mut counted = lock(&self.counted);
        let Some((stop, told)) = &mut *counted else { return (None, None) };
        let cost = stop.cost().filter(|_| !told.cost).map(|cost| {
            told.cost = true;
            let text = crate::words::with_keywords(&cost.line(cost.seconds));
            json!({ "event": "cost", "job": cost.job, "text": text, "pieces": cost.pieces, "seconds": cost.seconds, "workers": cost.workers })
        });
        let (done, of) = stop.done();
        let due =
            turn.is_some_and(|turn| turn.is_multiple_of(TURNS)) && (done, of) != told.episodes && of > 0;
        let episodes = due.then(|| {
            told.episodes = (done, of);
            json!({ "event": "episodes", "done": done, "of": of, "left": stop.time().and_then(|(_, left)| left) })
        });
        (cost, episodes)
    }

    /// Calls `listener` with each event as JSON text; in some `turn`s also with the number of episodes that are done.
    ///
    /// # Errors
    /// What the listener raises.
    pub(crate) fn tell(&self, py: Python<'_>, listener: &Py<PyAny>, turn: Option<usize>) -> PyResult<()> {
        let (cost, episodes) = self.counted(turn);
        if let Some(cost) = cost {
            // Before all that the job added since.
            lock(&self.queue).push_front(cost);
        }
        if let Some(event) = episodes {
            self.add(event);
        }
        loop {
            // The listener may take long, and the job adds events meanwhile.
            let Some(event) = lock(&self.queue).pop_front() else { return Ok(()) };
            listener.call1(py, (event.to_string(),))?;
        }
    }
}

/// An observer of a training run.
pub(crate) struct OfTraining<'a>(pub(crate) &'a Events);

impl TrainObserver for OfTraining<'_> {
    fn counts(&mut self, stop: &Stop) {
        self.0.count(stop);
    }

    fn note(&mut self, note: &Note) {
        self.0.add(match note {
            Note::Begins { agent, world, picture, steps, seed, run } => json!({
                "event": "begins", "agent": agent, "world": world, "picture": picture, "steps": steps, "seed": seed,
                "folder": run.folder,
            }),
            Note::BeginsAgain { folder } => json!({ "event": "resumes", "folder": folder, "generation": 0 }),
            Note::Resumes { folder, generation } => {
                json!({ "event": "resumes", "folder": folder, "generation": generation })
            }
            Note::Stopped { run } => json!({ "event": "stopped", "folder": run.folder }),
            Note::Finished { run, best, .. } => {
                json!({ "event": "finished", "folder": run.folder, "best": best })
            }
            Note::Cluster { workers } => json!({ "event": "cluster", "workers": workers }),
            Note::Expensive { why } | Note::Unbalanced { why } | Note::SkippedCheckpoint { why } => {
                json!({ "event": "note", "text": crate::words::with_keywords(why) })
            }
            Note::Changed { what } => json!({ "event": "note", "text": format!("changed: {what}") }),
            Note::RenderedPicture { world, why, .. } => {
                json!({ "event": "note", "text": format!("{world}: {why}; the agent sees the rendered picture") })
            }
            _ => return,
        });
    }

    fn event(&mut self, line: &LogLine, steps: u64, steps_left: u64) {
        // A line of numbers and names is always one of JSON.
        let Ok(mut event) = serde_json::to_value(line) else { return };
        event["run_steps"] = steps.into();
        event["run_steps_left"] = steps_left.into();
        self.0.add(event);
    }
}
