//! What a training run says about itself while it runs: the lines of its log, and notes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use foveate_core::{EpisodeResult, RolloutJob};
use foveate_train::{Event, Summary};
use serde::{Deserialize, Serialize};

pub use foveate_explain::figure::count_steps;

pub use crate::run_name::RunName;
use crate::workers::Stop;

/// A line of the log: an event and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// For a generation: the world's seeds of its tracks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trained_on: Vec<u64>,
    /// For validation, evaluation, finals and report: the result on every track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<Track>,
    /// Seconds of wall time of the run so far, without the time during which it was stopped.
    pub seconds: f64,
    /// Seconds of CPU time, over all threads.
    pub cpu_seconds: f64,
}

/// A track of a validation, an evaluation, the finals or the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// The world's seed.
    pub seed: u64,
    /// Sum of rewards.
    #[serde(rename = "return")]
    pub total: f64,
    /// Steps of the episode.
    pub steps: u64,
}

impl LogLine {
    /// A line without tracks.
    pub fn of(event: Event, seconds: f64, cpu_seconds: f64) -> Self {
        LogLine { event, trained_on: Vec::new(), tracks: Vec::new(), seconds, cpu_seconds }
    }

    /// Adds the tracks of the event.
    #[must_use]
    pub fn on(mut self, jobs: &[RolloutJob], results: &[EpisodeResult]) -> Self {
        match self.event {
            Event::Generation { .. } => {
                // Usually all genomes run the same tracks.
                let mut known = BTreeSet::new();
                let new = jobs.iter().map(|job| job.env_seed).filter(|&seed| known.insert(seed));
                self.trained_on = new.collect();
            }
            Event::Validation { .. }
            | Event::Evaluation { .. }
            | Event::Final { .. }
            | Event::Report { .. } => {
                let track = |(job, result): (&RolloutJob, &EpisodeResult)| Track {
                    seed: job.env_seed,
                    total: result.total,
                    steps: result.steps,
                };
                self.tracks = jobs.iter().zip(results).map(track).collect();
            }
            Event::Stagnation { .. } | Event::Chosen { .. } => {}
        }
        self
    }
}

/// Something that a person should know about a run, beside the events of its log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// The observation of the world has nothing that the agent sees, so the agent gets the rendered picture.
    RenderedPicture {
        /// The world.
        world: String,
        /// What the observation has instead.
        why: String,
        /// The name of the picture.
        picture: String,
    },
    /// The run will take very long.
    Expensive {
        /// Its cost, and what makes it cheaper.
        why: String,
    },
    /// Settings that do not suit this machine.
    Unbalanced {
        /// Which, and what suits it better.
        why: String,
    },
    /// The rollouts run on a cluster.
    Cluster {
        /// How many workers it has for them now.
        workers: usize,
    },
    /// The run begins.
    Begins {
        /// The agent.
        agent: String,
        /// The world.
        world: String,
        /// The picture that the world shows.
        picture: String,
        /// Steps of training.
        steps: u64,
        /// The seed of the run.
        seed: u64,
        /// The run.
        run: RunName,
    },
    /// The run was stopped before its first checkpoint, and begins now.
    BeginsAgain {
        /// Its folder.
        folder: PathBuf,
    },
    /// The run is resumed.
    Resumes {
        /// Its folder.
        folder: PathBuf,
        /// The generation of its checkpoint.
        generation: u64,
    },
    /// A checkpoint was not used.
    SkippedCheckpoint {
        /// What is wrong with it.
        why: String,
    },
    /// The log was not that of the checkpoint, and a new log begins.
    NewLog {
        /// The new name of the old log.
        old: String,
    },
    /// Something was changed since the run was stopped.
    Changed {
        /// What it was and is.
        what: String,
    },
    /// The run to resume is finished.
    AlreadyFinished {
        /// Its report.
        summary: Summary,
    },
    /// A finished run was changed, which has no effect on it.
    ChangedTooLate {
        /// The run.
        run: RunName,
    },
    /// The run was stopped and can be resumed.
    Stopped {
        /// The run.
        run: RunName,
    },
    /// The run is finished.
    Finished {
        /// The run.
        run: RunName,
        /// The file with its best weights.
        best: PathBuf,
        /// True if the agent sees a picture, which a report can explain.
        sees_picture: bool,
    },
}

/// Receives what happens in a training run. Every method does nothing by default, and `()` ignores it all.
pub trait TrainObserver {
    /// The run's world; called before anything else.
    fn world(&mut self, _id: &str) {}

    /// Episodes will be counted by `stop`, see [`Stop::done`].
    fn counts(&mut self, _stop: &Stop) {}

    /// A note for people.
    fn note(&mut self, _note: &Note) {}

    /// An event from before the run was resumed.
    fn past_event(&mut self, _event: &Event) {}

    /// A new line of the log, after `steps` steps of the run, with about `steps_left` to go.
    fn event(&mut self, _line: &LogLine, _steps: u64, _steps_left: u64) {}
}

impl TrainObserver for () {}
