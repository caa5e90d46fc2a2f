//! A run in progress.

use std::time::Duration;

use foveate_core::hint::{Hint, Setting, Task};
use foveate_core::{EvaluateError, Executor, Experience, LearnError, StopRequest, Work};
use foveate_train::{Event, Stagnation, TrainError};

use super::films::Films;
use super::record::{self, RunRecord};
use super::{Parts, TrainResult, changes, run_name, summary};
use crate::checkpoint::{Found, RunFolder};
use crate::clock::{ProcessCpu, Wall};
use crate::cluster::ClusterExecutor;
use crate::curve;
use crate::error::RunError;
use crate::failure::{self, FailedRollout, Failure};
use crate::progress::{LogLine, Note, RunName, TrainObserver};
use crate::tensorboard::EventFile;
use crate::workers::{Stop, Workers};

const BEST: &str = "best.safetensors";

/// A run in progress.
pub(super) struct Run {
    parts: Parts,
    folder: RunFolder,
    /// Every event so far, for the curve.
    events: Vec<Event>,
    /// Tells when nothing changes any more.
    stagnation: Stagnation,
    board: EventFile,
    films: Option<Films>,
    /// Wall and CPU seconds before this process.
    before: (f64, f64),
    /// Wall and CPU seconds at the last line of the log.
    now: (f64, f64),
}

impl Run {
    /// Starts a run in its new folder.
    pub(super) fn begin(parts: Parts, folder: RunFolder) -> Result<Self, RunError> {
        let record = RunRecord::new(parts.config.seed);
        let mut run = Self::furnish(parts, folder, &record, Vec::new())?;
        let state = run.parts.training.state();
        run.folder.save(&state).map_err(|error| run.halted(error))?;
        Ok(run)
    }

    /// Writes all files of a run that follow from its configuration, its record and its log.
    fn furnish(
        parts: Parts,
        folder: RunFolder,
        record: &RunRecord,
        lines: Vec<LogLine>,
    ) -> Result<Self, RunError> {
        let handle = folder.handle();
        let furnish = || {
            record.save(handle)?;
            record::save_tracks(handle, &parts.config)?;
            let board = EventFile::begin_in(handle, record.started(), &lines)?;
            let films = parts.config.videos.then(|| Films::new(handle, parts.config.recipe.max_steps));
            // The summary describes a completed run.
            if !matches!(lines.last(), Some(LogLine { event: Event::Report { .. }, .. })) {
                summary::remove(handle)?;
            }
            Ok((board, films.transpose()?))
        };
        let (board, films) = furnish().map_err(|error| halted(folder.path(), &parts.config.env.id, error))?;
        let before = lines.last().map_or((0.0, 0.0), |line| (line.seconds, line.cpu_seconds));
        let events: Vec<Event> = lines.into_iter().map(|line| line.event).collect();
        let mut stagnation = Stagnation::new(parts.training.last_weights().len());
        for event in &events {
            stagnation.after(event);
        }
        Ok(Run { parts, folder, events, stagnation, board, films, before, now: before })
    }

    /// Restores a run from its newest checkpoint and its log.
    pub(super) fn resume(
        mut parts: Parts,
        mut folder: RunFolder,
        allow_changes: bool,
        observer: &mut dyn TrainObserver,
    ) -> Result<Self, RunError> {
        let path = folder.path().to_path_buf();
        let bad = |why: String| RunError::BadRun { folder: path.clone(), why };
        let Some(Found { checkpoint, log_fits, notes }) = folder.latest()? else {
            observer.note(&Note::BeginsAgain { folder: path });
            return Run::begin(parts, folder);
        };
        for note in notes {
            observer.note(&Note::SkippedCheckpoint { why: note });
        }

        let mut changed = Vec::new();
        if checkpoint.version != crate::VERSION {
            changed.push(format!("version was {} and is {}", checkpoint.version, crate::VERSION));
        }
        changed.extend(changes::between(&checkpoint.config, folder.config()));
        if !log_fits {
            changed.push("log.jsonl is not what the run wrote".into());
        }
        if !changed.is_empty() && !allow_changes {
            let more = changed.len().saturating_sub(6);
            let mut said = changed.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
            if more > 0 {
                said.push_str(&format!(", and {more} more"));
            }
            return Err(bad(format!(
                "not what it was when it was saved: {said}; put that back, or go on with {}, which about.json will say",
                Setting::AllowChanges
            )));
        }
        let state = &checkpoint.state;
        let restored = if changed.is_empty() {
            parts.training.restore(state)
        } else {
            parts.training.restore_changed(state)
        };
        restored.map_err(|error| {
            let config = path.join("config.toml");
            bad(format!(
                "{error}; train anew with {}",
                Hint::from(Task::Train).with(Setting::Config.to(config.display()))
            ))
        })?;
        let mut record = RunRecord::read(folder.handle(), parts.config.seed)?;

        let lines = if log_fits {
            let text = folder.cut_log(&checkpoint)?;
            text.iter()
                .enumerate()
                .map(|(i, line)| {
                    serde_json::from_str(line).map_err(|error| {
                        bad(format!("log.jsonl line {}: {error}; was it written by another version?", i + 1))
                    })
                })
                .collect::<Result<Vec<LogLine>, RunError>>()?
        } else {
            let aside = folder.new_log()?;
            observer.note(&Note::NewLog { old: aside });
            Vec::new()
        };
        for line in &lines {
            observer.past_event(&line.event);
        }
        let generation = parts.training.generation();
        for change in &changed {
            observer.note(&Note::Changed { what: change.clone() });
        }
        record.resumed(generation, parts.workers(), &changed);
        let mut run = Self::furnish(parts, folder, &record, lines)?;
        if let Some(Event::Report { summary, .. }) = run.events.last() {
            observer.note(&Note::AlreadyFinished { summary: *summary });
            if !changed.is_empty() {
                observer.note(&Note::ChangedTooLate { run: run.name() });
            }
        } else {
            observer.note(&Note::Resumes { folder: path, generation });
            run.parts.warn(observer)?;
        }
        if !changed.is_empty() {
            // From here on the changes belong to the run.
            if let Some(films) = &run.films {
                films.forget_after(generation)?;
            }
            let state = run.parts.training.state();
            run.folder.save(&state).map_err(|error| run.halted(error))?;
        }
        Ok(run)
    }

    /// Trains to the end.
    pub(super) fn drive(
        mut self,
        observer: &mut dyn TrainObserver,
        stop: &Stop,
    ) -> Result<TrainResult, RunError> {
        let done = self.train(observer, stop);
        // The video in progress belongs to an evaluation that is in the log.
        let filmed = self.films.as_mut().map_or(Ok(()), Films::wait);
        let done = match (done, filmed) {
            (Ok(done), Ok(())) => self.save_all().map(|()| done),
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
        };
        if !done.map_err(|error| self.halted(error))? {
            observer.note(&Note::Stopped { run: self.name() });
            return Ok(TrainResult { folder: self.folder.path().to_path_buf(), report: None });
        }
        let report = self.events.iter().rev().find(|e| matches!(e, Event::Report { .. })).cloned();
        let folder = self.folder.path().to_path_buf();
        observer.note(&Note::Finished {
            run: self.name(),
            best: folder.join(BEST),
            sees_picture: self.parts.env.spec().observation.picture().is_some(),
        });
        Ok(TrainResult { folder, report })
    }

    /// The run, for notes and errors.
    fn name(&self) -> RunName {
        run_name(self.folder.path(), &self.parts.config.env.id)
    }

    /// Runs one piece of work after the other; returns whether the run is complete.
    fn train(&mut self, observer: &mut dyn TrainObserver, stop: &Stop) -> Result<bool, RunError> {
        let (wall, cpu) = (Wall::start(), ProcessCpu::start());
        let mut saved_at = Duration::ZERO;
        let mut workers = self.executor(observer, stop)?;
        observer.counts(stop);
        let asked = stop.clone();
        self.parts.training.stop_when(StopRequest::new(move || asked.asked()));
        // Whether an evaluation is not saved yet, because its video is in progress.
        let mut judged = false;
        while let Some(work) = self.parts.training.work() {
            let mut experience = Experience::default();
            match workers.execute(&work, &mut experience) {
                Ok(()) => {}
                Err(EvaluateError::Stopped) => return Ok(false),
                Err(error) => return Err(self.failed(&work, error)),
            }
            // The state after the last evaluation is saved before the next evaluation.
            if judged && !work.purpose.trains() {
                self.save_judged()?;
                (judged, saved_at) = (false, wall.elapsed());
            }
            let results = experience.episodes.clone();
            let mut events = match self.parts.training.receive(experience) {
                // As with rollouts, what was begun is begun again when the run is resumed.
                Err(TrainError::Learner(LearnError::Stopped)) => return Ok(false),
                received => received?,
            };
            let stagnation = events.iter().find_map(|event| self.stagnation.after(event));
            events.extend(stagnation);
            for event in events {
                let seconds = self.before.0 + wall.elapsed().as_secs_f64();
                let cpu_seconds = self.before.1 + cpu.elapsed().as_secs_f64();
                self.now = (seconds, cpu_seconds);
                let line = LogLine::of(event, seconds, cpu_seconds).on(&work.jobs, &results);
                let text = serde_json::to_string(&line)
                    .map_err(|error| RunError::BadRequest { why: format!("log line: {error}") })?;
                self.folder.log(&text)?;
                self.board.add(&line)?;
                observer.event(&line, self.parts.training.steps(), self.parts.training.steps_left());
                if !matches!(line.event, Event::Generation { .. } | Event::Stagnation { .. }) {
                    judged = true;
                    self.film(&line.event, &work)?;
                }
                self.events.push(line.event);
            }
            let filming = self.films.as_ref().is_some_and(|films| !films.is_done());
            let now = wall.elapsed();
            if judged && !filming {
                self.save_judged()?;
                (judged, saved_at) = (false, now);
            } else if !judged && now.saturating_sub(saved_at) >= self.parts.checkpoint_every {
                self.save_checkpoint()?;
                saved_at = now;
            }
            if stop.asked() && !self.parts.training.is_done() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What runs the rollouts.
    fn executor(
        &mut self,
        observer: &mut dyn TrainObserver,
        stop: &Stop,
    ) -> Result<Box<dyn Executor>, RunError> {
        let Some(cluster) = self.parts.cluster.take() else {
            let Parts { env, agent, .. } = &self.parts;
            return Ok(Box::new(Workers::new(&**env, &**agent, self.parts.workers(), stop.clone())));
        };
        let mut executor = ClusterExecutor::open(cluster, &self.parts.config, stop.clone())?;
        observer.note(&Note::Cluster { workers: executor.workers() });
        Ok(Box::new(executor))
    }

    /// Starts the video of an evaluation.
    fn film(&mut self, event: &Event, work: &Work) -> Result<(), RunError> {
        let Some(films) = &mut self.films else { return Ok(()) };
        let Parts { env, agent, .. } = &self.parts;
        let mut agent = agent.boxed_clone();
        agent.set_params(work.weights.genome(0))?;
        films.begin(event, env.boxed_clone(), agent, work.jobs.first().map_or(0, |job| job.env_seed))
    }

    /// Handles a failed rollout: saves a replay of it, and a checkpoint of the state before it.
    fn failed(&mut self, work: &Work, error: EvaluateError) -> RunError {
        let Parts { config, env, agent, training, .. } = &self.parts;
        let genome = failure::genome(&error).filter(|&genome| genome < work.weights.len());
        let Some(genome) = genome else { return error.into() };
        // Training belongs to the coming generation, testing to the previous one.
        let generation = training.generation() + u64::from(work.purpose.trains());
        let rollout_of = FailedRollout {
            generation,
            env: (&config.env, &**env),
            agent: (&config.agent, &**agent),
            weights: work.weights.genome(genome),
            purpose: work.purpose,
            rules: work.rules,
            record: work.record,
            epsilon: work.epsilon,
            draw_actions: work.draw_actions,
        };
        let Some(failure) = Failure::record(&rollout_of, &error) else { return error.into() };
        let file = self.folder.path().join("failures").join(failure.file_name());
        let folder = self.folder.handle().make_folder("failures");
        let written = folder
            .and_then(|folder| failure.save(&folder))
            .and_then(|()| self.films.as_mut().map_or(Ok(()), Films::wait))
            .and_then(|()| self.save_all());
        match written {
            Ok(()) => {
                let run = self.name();
                RunError::Failed { purpose: work.purpose, generation, source: Box::new(error), file, run }
            }
            // Both errors are useful, and fit on a line.
            Err(trouble) => {
                RunError::BadRequest { why: format!("generation {generation}: {error}; and {trouble}") }
            }
        }
    }

    /// Saves an evaluation once its video is complete: saved work is not repeated.
    fn save_judged(&mut self) -> Result<(), RunError> {
        self.films.as_mut().map_or(Ok(()), Films::wait)?;
        self.save_all()
    }

    fn save_all(&mut self) -> Result<(), RunError> {
        self.save_checkpoint()?;
        self.save_results()
    }

    fn save_checkpoint(&mut self) -> Result<(), RunError> {
        self.folder.save(&self.parts.training.state())
    }

    /// Saves weights and curve: everything that can be derived from a checkpoint and the log.
    fn save_results(&self) -> Result<(), RunError> {
        let Parts { training, save, title, config, .. } = &self.parts;
        let folder = self.folder.handle();
        let best = training.best_weights().map(|(best, generation)| save(&best, generation)).transpose()?;
        if let Some(best) = &best {
            folder.write(BEST, best)?;
        }
        folder.write("last.safetensors", save(&training.last_weights(), training.generation())?)?;
        folder.write("curve.svg", curve::svg(title, &self.events))?;
        // Written last: if it exists, all other files do.
        match (self.events.last(), best) {
            (Some(event @ Event::Report { .. }), Some(best)) => {
                let workers = self.parts.workers();
                summary::write(folder, config, event, (BEST, &best), (self.now, workers))
            }
            _ => Ok(()),
        }
    }

    fn halted(&self, error: RunError) -> RunError {
        halted(self.folder.path(), &self.parts.config.env.id, error)
    }
}

/// Wraps a write error with the hint to resume later.
fn halted(folder: &std::path::Path, world: &str, error: RunError) -> RunError {
    match error {
        RunError::Io { .. } | RunError::Film { .. } => {
            RunError::Halted { run: run_name(folder, world), source: Box::new(error) }
        }
        other => other,
    }
}
