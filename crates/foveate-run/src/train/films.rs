//! Records a short video of every evaluation, in parallel with training.

use std::thread::{self, JoinHandle};

use foveate_core::hint::Setting;
use foveate_core::{Agent, Env};
use foveate_train::Event;

use crate::RunError;
use crate::evaluate::Labels;
use crate::folder::FolderHandle;
use crate::watch::{self, WatchRequest};
use crate::workers::Stop;

/// Steps recorded: twelve seconds of CarRacing.
const STEPS: usize = 600;
/// Records every second step at this size: a video costs about as much as 10,000 steps of training.
const EVERY: usize = 2;
const SIZE: (usize, usize) = (480, 270);

/// Records the evaluations of a run into its folder `videos`, one at a time, on a separate thread.
pub(super) struct Films {
    folder: FolderHandle,
    steps: usize,
    under_way: Option<JoinHandle<Result<(), RunError>>>,
}

impl Films {
    /// For the run in the folder `run`, whose episodes are truncated after `max_steps`.
    pub(super) fn new(run: &FolderHandle, max_steps: u64) -> Result<Self, RunError> {
        let folder = run.make_folder("videos")?;
        Ok(Films { folder, steps: STEPS.min(usize::try_from(max_steps).unwrap_or(STEPS)), under_way: None })
    }

    /// Starts the video of an evaluation: `agent`, with the weights that were evaluated, on the first of its
    /// tracks.
    ///
    /// # Errors
    /// When the previous video failed; this function waits for it.
    pub(super) fn begin(
        &mut self,
        event: &Event,
        env: Box<dyn Env>,
        agent: Box<dyn Agent>,
        seed: u64,
    ) -> Result<(), RunError> {
        self.wait()?;
        let Some((name, title)) = name(event) else { return Ok(()) };
        let (folder, steps) = (self.folder.clone(), self.steps);
        let film = move || {
            let out = folder.path().join(&name);
            let request = WatchRequest {
                env: &*env,
                agent: &*agent,
                labels: Labels { env: title, ..Labels::default() },
                seed,
                episode: 0,
                steps: Some(steps),
                every: EVERY,
                size: Some(SIZE),
                out: &out,
                at: None,
                effects: false,
            };
            // Never cut short: the video is the same, however often the run is stopped.
            let file = || folder.create(&name);
            watch::run_into(&request, file, &Stop::default(), &mut |_| {}).map(drop)
        };
        self.under_way = Some(thread::spawn(film));
        Ok(())
    }

    /// Returns whether no video is in progress.
    pub(super) fn is_done(&self) -> bool {
        self.under_way.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until no video is in progress.
    ///
    /// # Errors
    /// When it failed.
    pub(super) fn wait(&mut self) -> Result<(), RunError> {
        match self.under_way.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(RunError::BadRequest {
                why: format!(
                    "the film of the last evaluation panicked; train without films: {}",
                    Setting::Videos.to("off")
                ),
            }),
        }
    }

    /// Removes the videos of evaluations after `generation`, which a run with changes may not reach again.
    pub(super) fn forget_after(&self, generation: u64) -> Result<(), RunError> {
        for entry in self.folder.entries()? {
            let name = entry.name.to_str().unwrap_or_default();
            let number = name.split("generation-").nth(1).and_then(|rest| rest.get(..6));
            let judging = name.starts_with("finals-") || name.starts_with("report-");
            if judging || number.and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n > generation) {
                self.folder.remove(name)?;
            }
        }
        Ok(())
    }
}

/// The file's name and the video's title; `None` for other events.
fn name(event: &Event) -> Option<(String, String)> {
    match event {
        Event::Validation { generation, steps, .. } => Some((
            format!("generation-{generation:06}-steps-{steps:010}.mp4"),
            format!("generation {generation}   {:.2} M steps", *steps as f64 / 1e6),
        )),
        // Later rounds run the same weights on more tracks.
        Event::Final { generation, round: 1, .. } => Some((
            format!("finals-generation-{generation:06}.mp4"),
            format!("finalist: generation {generation}"),
        )),
        Event::Report { generation, .. } => Some((
            format!("report-generation-{generation:06}.mp4"),
            format!("the best: generation {generation}"),
        )),
        // An evaluation is followed by a validation of the same weights, which is recorded.
        Event::Generation { .. }
        | Event::Stagnation { .. }
        | Event::Evaluation { .. }
        | Event::Chosen { .. }
        | Event::Final { .. } => None,
    }
}
