//! The state machine of a training run: schedules rollouts and processes their results.
//!
//! A [`Training`] is all of training except for running episodes and writing files: request [`Work`], run it
//! with any [`Executor`](foveate_core::Executor), pass the [`Experience`] back, and repeat until there is no
//! work. Its [`Training::state`] after any piece of work suffices to resume with bit-identical results. It
//! works with any [`Learner`], and itself schedules the episodes of validation, finals and report.

mod finals;
mod hard;
mod state;

use foveate_core::episode::EpisodeRules;
use foveate_core::{
    EpisodeResult, Episodes, Experience, Learner, Model, Population, Purpose, Record, RolloutJob, Seed,
    StopRequest, Work,
};

use self::finals::{Finals, standings};
use self::hard::{HardTracks, Track};
use crate::descriptor::LearnerParts;
use crate::error::TrainError;
use crate::event::Event;
use crate::recipe::{Interval, LearnerConfig, Recipe, ReplayJudge, Selection, TrackSeeds, track_seed};
use crate::summary::{Summary, task_means};

/// Makes the initial weights of a start; the same seed gives the same weights.
pub type FreshWeights = Box<dyn Fn(Seed) -> Vec<f32> + Send>;

/// The state of a run.
pub struct Training {
    recipe: Recipe,
    seed: Seed,
    fresh: FreshWeights,
    /// The part of the agent that learns by gradients, if there is one.
    model: Option<Box<dyn Model>>,
    at: Position,
    /// The learner of the current start; at the end that of the last start.
    learner: Box<dyn Learner>,
    /// Its current settings.
    settings: LearnerConfig,
    /// The hard tracks of the current start.
    hard: HardTracks,
    progress: Counts,
    /// `[n_params]`: the initial weights of the current stage; the first stage makes fresh ones.
    base: Vec<f64>,
    /// The start of the current stage with the best validation, if one is complete.
    leader: Option<Weights>,
    /// The best validated weights of the run, best first.
    candidates: Vec<Weights>,
    /// The results of the finalists in the order of their rollouts, see [`standings`].
    finals: Vec<f64>,
    /// What learners look at between updates.
    stop: StopRequest,
    /// Mean length of the last training episodes, and of the last episodes of validation, evaluation or finals; not saved.
    lengths: [Option<u64>; 2],
}

/// The position in the recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// A generation of start `start` of stage `stage` is due.
    Learn { stage: usize, start: usize },
    /// An evaluation of this start is due, and then a validation.
    Evaluate { stage: usize, start: usize },
    /// A validation of this start is due.
    Validate { stage: usize, start: usize },
    /// The next finalist is due.
    Finals,
    /// The report is due.
    Report,
    /// The run is complete.
    Done,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    /// Training steps of the whole run.
    steps: u64,
    /// Training steps of this start.
    start_steps: u64,
    /// Training steps of this start at its last validation.
    validated_at: u64,
    /// Generations of this start at its last validation.
    validated_generation: u64,
    /// Validations of the whole run.
    validations: u64,
    /// Generations of the whole run.
    generation: u64,
    /// Environment steps of validation and report.
    judging_steps: u64,
    /// Completed pieces of work.
    tasks: u64,
}

/// Weights with their validation score.
#[derive(Debug, Clone, PartialEq)]
struct Weights {
    score: f64,
    generation: u64,
    steps: u64,
    values: Vec<f64>,
}

impl Training {
    /// Starts a run. `recipe` has passed its [`Recipe::check`]; stages of imitation need a `model`.
    ///
    /// # Errors
    /// When the fresh weights are not finite, or a model is missing.
    pub fn new(
        recipe: Recipe,
        seed: u64,
        fresh: FreshWeights,
        model: Option<Box<dyn Model>>,
    ) -> Result<Self, TrainError> {
        for stage in 0..recipe.stages.len() {
            // Report the error now and not hours later.
            let learner = settings(&recipe, stage, 0)?.descriptor();
            if learner.learns_from.needs_model() && model.is_none() {
                let (stage, learner) = (recipe.stages[stage].name.clone(), learner.name);
                return Err(TrainError::NoStudent { stage, learner });
            }
        }
        let seed = Seed::root(seed);
        let weights = fresh(start_seed(seed, 0, 0).child("init", 0));
        let base: Vec<f64> = weights.iter().map(|&w| f64::from(w)).collect();
        let settings = settings(&recipe, 0, 0)?;
        let learner = settings.build(LearnerParts {
            weights: base.clone(),
            seed: start_seed(seed, 0, 0),
            model: model.as_deref(),
            fitness: recipe.stages[0].fitness,
        })?;
        Ok(Training {
            recipe,
            seed,
            fresh,
            model,
            at: Position::Learn { stage: 0, start: 0 },
            learner,
            settings,
            hard: HardTracks::default(),
            progress: Counts::default(),
            leader: None,
            candidates: Vec::new(),
            finals: Vec::new(),
            stop: StopRequest::default(),
            lengths: [None; 2],
            base,
        })
    }

    /// Learners look at `asked` between two updates; when it is set, [`Training::receive`] ends with
    /// [`LearnError::Stopped`](foveate_core::LearnError::Stopped) and the state is that before the work.
    pub fn stop_when(&mut self, asked: StopRequest) {
        self.stop = asked;
    }

    /// The next work; `None` when the run is complete. It stays the same until [`Training::receive`] takes
    /// its experience.
    pub fn work(&mut self) -> Option<Work> {
        let Selection { tracks, final_tracks, report_tracks, evaluation_tracks, .. } = self.recipe.selection;
        match self.at {
            Position::Learn { stage, start } => Some(self.generation_work(stage, start)),
            Position::Evaluate { .. } => {
                Some(self.judge(self.learner.weights(), 0..evaluation_tracks, Purpose::Evaluation))
            }
            Position::Validate { .. } => {
                Some(self.judge(self.learner.weights(), 0..tracks, Purpose::Validation))
            }
            Position::Finals => {
                let (finalist, round) = self.standings().next?;
                let tracks = round * final_tracks..(round + 1) * final_tracks;
                Some(self.judge(&self.candidates[finalist].values, tracks, Purpose::Finals))
            }
            Position::Report => Some(self.judge(&self.best()?.values, 0..report_tracks, Purpose::Report)),
            Position::Done => None,
        }
    }

    /// The training rollouts of a generation: the learner's own, then those that measure how hard the tracks
    /// are.
    fn generation_work(&mut self, stage: usize, start: usize) -> Work {
        let tracks = self.tracks(stage, start);
        let seed = self.generation_seed(stage, start);
        let settings = &self.recipe.stages[stage];
        let limit = settings.max_steps.as_ref().map(|s| s.at(self.progress.start_steps, settings.steps));
        let rules = EpisodeRules {
            max_steps: limit.map_or(self.recipe.max_steps, |limit| limit.round() as u64),
            patience: settings.patience.0,
        };
        let separate = settings.track_seeds == TrackSeeds::Separate;
        let seeds = |genome: usize, episode: usize| {
            if separate {
                let track = seed.child("genome", genome as u64).child("track", episode as u64);
                track_seed(track, Purpose::Training)
            } else {
                tracks[episode].seed
            }
        };
        let episodes = Episodes { per_row: settings.tracks, rules, seeds: &seeds };
        let mut work = self.learner.work(&episodes);
        if self.judges_apart(stage) {
            let genome = work.weights.len();
            work.weights.push(self.learner.weights().iter().map(|&weight| weight as f32));
            let judged = tracks.iter().enumerate();
            work.jobs.extend(judged.map(|(episode, track)| RolloutJob {
                genome,
                episode,
                env_seed: track.seed,
            }));
        }
        work
    }

    /// Returns whether the learner's weights run every track once more, to measure how hard it is.
    fn judges_apart(&self, stage: usize) -> bool {
        let replay = &self.recipe.stages[stage].replay;
        replay.as_ref().is_some_and(|replay| replay.judge == ReplayJudge::Mean)
    }

    /// The tracks of the generation that is due, if all genomes run the same ones.
    fn tracks(&self, stage: usize, start: usize) -> Vec<Track> {
        let settings = &self.recipe.stages[stage];
        self.hard.draw(settings.replay.as_ref(), self.generation_seed(stage, start), settings.tracks)
    }

    fn generation_seed(&self, stage: usize, start: usize) -> Seed {
        start_seed(self.seed, stage, start).child("generation", self.learner.generation())
    }

    /// Work that runs one genome on tracks that are not training tracks.
    fn judge(&self, weights: &[f64], tracks: std::ops::Range<usize>, purpose: Purpose) -> Work {
        let jobs = tracks
            .enumerate()
            .map(|(episode, track)| {
                let job = self.seed.child(purpose.label(), track as u64);
                RolloutJob { genome: 0, episode, env_seed: track_seed(job, purpose) }
            })
            .collect();
        let weights = Population::of(&to_f32(weights));
        Work {
            purpose,
            weights,
            jobs,
            rules: self.recipe.whole_episodes(),
            record: Record::Returns,
            epsilon: 0.0,
            draw_actions: self.recipe.selection.draw_actions,
        }
    }

    /// Processes the experience of the last work, and advances.
    ///
    /// # Errors
    /// When the experience does not fit the work or is not finite; the state is then unchanged.
    pub fn receive(&mut self, experience: Experience) -> Result<Vec<Event>, TrainError> {
        let steps: u64 = experience.episodes.iter().map(|r| r.steps).sum();
        let returns: Vec<f64> = experience.episodes.iter().map(|r| r.total).collect();
        let mut events = Vec::new();
        match self.at {
            Position::Learn { stage, start } => {
                events.push(self.learn_generation(stage, start, experience, &returns, steps)?);
            }
            Position::Evaluate { stage, start } => {
                let seeds = self.seeds_driven();
                let summary = self.judged(&experience.episodes, steps)?;
                events.push(Event::Evaluation {
                    generation: self.progress.generation,
                    steps: self.progress.steps,
                    stage: self.recipe.stages[stage].name.clone(),
                    start: start + 1,
                    summary,
                    seeds,
                    returns,
                });
                self.at = Position::Validate { stage, start };
            }
            Position::Validate { stage, start } => {
                let summary = self.judged(&experience.episodes, steps)?;
                self.progress.validated_at = self.progress.start_steps;
                self.progress.validated_generation = self.learner.generation();
                self.progress.validations += 1;
                let best = self.candidates.first().is_none_or(|c| summary.mean > c.score);
                let weights = Weights {
                    score: summary.mean,
                    generation: self.progress.generation,
                    steps: self.progress.steps,
                    values: self.learner.weights().to_vec(),
                };
                events.push(Event::Validation {
                    generation: weights.generation,
                    steps: weights.steps,
                    stage: self.recipe.stages[stage].name.clone(),
                    start: start + 1,
                    summary,
                    best,
                });
                // Inserted behind equal candidates: the earlier ones stay ahead.
                let rank = self.candidates.partition_point(|c| c.score >= weights.score);
                self.candidates.insert(rank, weights.clone());
                self.candidates.truncate(self.recipe.selection.finalists);
                if self.start_is_over(stage) {
                    events.extend(self.end_start(stage, start, weights)?);
                } else {
                    self.at = Position::Learn { stage, start };
                }
            }
            Position::Finals => {
                let Some((finalist, round)) = self.standings().next else {
                    return Err(TrainError::NothingDue);
                };
                let summary = self.judged(&experience.episodes, steps)?;
                self.finals.push(summary.mean);
                let now = self.standings();
                events.push(Event::Final {
                    generation: self.candidates[finalist].generation,
                    round: round + 1,
                    summary,
                    best: now.leader == finalist,
                });
                if now.next.is_none() {
                    self.at = Position::Report;
                }
            }
            Position::Report => {
                let seeds = self.seeds_driven();
                let summary = self.judged(&experience.episodes, steps)?;
                let generation = self.best().map_or(0, |best| best.generation);
                let Counts { steps, judging_steps, .. } = self.progress;
                events.push(Event::Report { generation, steps, judging_steps, summary, seeds, returns });
                self.at = Position::Done;
            }
            Position::Done => return Err(TrainError::NothingDue),
        }
        self.progress.tasks += 1;
        Ok(events)
    }

    /// Processes the results of a generation.
    fn learn_generation(
        &mut self,
        stage: usize,
        start: usize,
        mut experience: Experience,
        returns: &[f64],
        steps: u64,
    ) -> Result<Event, TrainError> {
        let tracks = self.tracks(stage, start);
        let wanted = self.generation_work(stage, start);
        experience.check(&wanted)?;
        let apart = self.judges_apart(stage);
        let settings = &self.recipe.stages[stage];
        if let Some((job, &value)) = returns.iter().enumerate().find(|(_, r)| !r.is_finite()) {
            let RolloutJob { genome, episode, .. } = wanted.jobs[job];
            return Err(TrainError::ReturnNotFinite {
                genome,
                episode,
                generation: self.learner.generation(),
                value,
            });
        }
        let judged = if apart { settings.tracks } else { 0 };
        let (of_rows, of_mean) = returns.split_at(returns.len() - judged);
        // The measuring episodes are recorded as well; the learner does not receive their recordings.
        experience.episodes.truncate(of_rows.len());
        let rows = wanted.weights.len() - usize::from(apart);
        let tasks = task_means(&experience.episodes);
        self.learner.stop_when(&self.stop);
        let told = self.learner.receive(experience)?;
        let measures = self.learner.measures();
        if let Some(replay) = &settings.replay {
            let scores: Vec<f64> = match replay.judge {
                ReplayJudge::Mean => of_mean.to_vec(),
                ReplayJudge::Population => (0..settings.tracks)
                    .map(|t| of_rows.iter().skip(t).step_by(settings.tracks).sum::<f64>() / rows as f64)
                    .collect(),
            };
            self.hard.receive(replay, &tracks, &scores);
        }
        self.lengths[0] = steps.checked_div(returns.len() as u64);
        self.progress.generation += 1;
        self.progress.steps += steps;
        self.progress.start_steps += steps;
        let event = Event::Generation {
            generation: self.progress.generation,
            steps: self.progress.steps,
            stage: settings.name.clone(),
            start: start + 1,
            best: told.best,
            mean: told.mean,
            length: steps as f64 / returns.len() as f64,
            norm: norm(self.learner.centre()),
            sigma: told.sigma,
            replayed: tracks.iter().filter(|track| track.again).count(),
            tasks,
            measures: measures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        };
        let Selection { every, .. } = self.recipe.selection;
        let due = match every {
            Interval::Steps(every) => self.progress.start_steps - self.progress.validated_at >= every,
            Interval::Generations(every) => {
                self.learner.generation() - self.progress.validated_generation >= every
            }
        };
        if due || self.start_is_over(stage) {
            let next = self.progress.validations + 1;
            let evaluated = self.recipe.evaluation_every().is_some_and(|every| next.is_multiple_of(every));
            self.at = if evaluated {
                Position::Evaluate { stage, start }
            } else {
                Position::Validate { stage, start }
            };
        }
        self.follow_schedules(stage, start)?;
        Ok(event)
    }

    /// Passes the settings of this moment to the learner.
    fn follow_schedules(&mut self, stage: usize, start: usize) -> Result<(), TrainError> {
        let due = settings(&self.recipe, stage, self.progress.start_steps)?;
        if due != self.settings {
            let seed = start_seed(self.seed, stage, start);
            let mut learner = self.build(&due, stage, self.learner.centre().to_vec(), seed)?;
            learner.restore_changed(&self.learner.state())?;
            (self.learner, self.settings) = (learner, due);
        }
        Ok(())
    }

    fn build(
        &self,
        settings: &LearnerConfig,
        stage: usize,
        weights: Vec<f64>,
        seed: Seed,
    ) -> Result<Box<dyn Learner>, TrainError> {
        let (model, fitness) = (self.model.as_deref(), self.recipe.stages[stage].fitness);
        Ok(settings.build(LearnerParts { weights, seed, model, fitness })?)
    }

    fn start_is_over(&self, stage: usize) -> bool {
        let settings = &self.recipe.stages[stage];
        self.progress.start_steps >= settings.steps
            || settings.generations.is_some_and(|most| self.learner.generation() >= most)
    }

    fn seeds_driven(&mut self) -> Vec<u64> {
        self.work().map_or_else(Vec::new, |work| work.jobs.iter().map(|job| job.env_seed).collect())
    }

    fn standings(&self) -> Finals {
        standings(self.candidates.len(), 1 + self.recipe.selection.reevaluate, &self.finals)
    }

    fn judged(&mut self, episodes: &[EpisodeResult], steps: u64) -> Result<Summary, TrainError> {
        let returns = episodes.iter().map(|episode| episode.total);
        if let Some((episode, value)) = returns.enumerate().find(|(_, r)| !r.is_finite()) {
            let generation = self.progress.generation;
            return Err(TrainError::ReturnNotFinite { genome: 0, episode, generation, value });
        }
        self.progress.judging_steps += steps;
        self.lengths[1] = steps.checked_div(episodes.len() as u64);
        Ok(Summary::of_episodes(episodes))
    }

    /// A start has used up its steps: continues with the next start, the next stage, or the finals.
    fn end_start(
        &mut self,
        stage: usize,
        start: usize,
        weights: Weights,
    ) -> Result<Option<Event>, TrainError> {
        if self.leader.as_ref().is_none_or(|leader| weights.score > leader.score) {
            self.leader = Some(weights);
        }
        let starts = self.recipe.stages[stage].starts;
        if start + 1 < starts {
            // The initial mean of the stage: fresh weights, or the result of the previous stage.
            self.begin(stage, start + 1)?;
            return Ok(None);
        }
        let Some(leader) = self.leader.take() else { return Ok(None) };
        let event = (starts > 1).then(|| Event::Chosen {
            stage: self.recipe.stages[stage].name.clone(),
            generation: leader.generation,
            mean: leader.score,
        });
        if stage + 1 < self.recipe.stages.len() {
            self.base = leader.values;
            self.begin(stage + 1, 0)?;
        } else {
            self.at = Position::Finals;
        }
        Ok(event)
    }

    fn begin(&mut self, stage: usize, start: usize) -> Result<(), TrainError> {
        let seed = start_seed(self.seed, stage, start);
        (self.progress.start_steps, self.progress.validated_at, self.progress.validated_generation) =
            (0, 0, 0);
        let mean = if stage == 0 {
            (self.fresh)(seed.child("init", 0)).iter().map(|&w| f64::from(w)).collect()
        } else {
            self.base.clone()
        };
        self.settings = settings(&self.recipe, stage, 0)?;
        self.learner = self.build(&self.settings, stage, mean, seed)?;
        self.hard = HardTracks::default();
        self.at = Position::Learn { stage, start };
        Ok(())
    }
}

/// Queries that are valid at any time.
impl Training {
    /// The best weights so far and their generation: the best finalist once there are results, before that
    /// the best validated weights; `None` before the first validation.
    pub fn best_weights(&self) -> Option<(Vec<f32>, u64)> {
        self.best().map(|best| (to_f32(&best.values), best.generation))
    }

    fn best(&self) -> Option<&Weights> {
        self.candidates.get(self.standings().leader)
    }

    /// The weights that a validation would use now.
    pub fn last_weights(&self) -> Vec<f32> {
        to_f32(self.learner.weights())
    }

    /// Generations so far, over all stages and starts.
    pub fn generation(&self) -> u64 {
        self.progress.generation
    }

    /// Pieces of work done so far.
    pub fn tasks(&self) -> u64 {
        self.progress.tasks
    }

    /// Environment steps so far, including validation, evaluation, finals and report.
    pub fn steps(&self) -> u64 {
        self.progress.steps + self.progress.judging_steps
    }

    /// Returns whether the run is complete.
    pub fn is_done(&self) -> bool {
        self.at == Position::Done
    }

    /// Approximate number of steps left. Episodes that are not training are taken to be as long as the last of them, before the
    /// first as long as those of training, and without any as long as they may be.
    pub fn steps_left(&self) -> u64 {
        let Selection {
            tracks, finalists, final_tracks, reevaluate, report_tracks, evaluation_tracks, ..
        } = self.recipe.selection;
        let training = match self.at {
            Position::Done | Position::Report | Position::Finals => 0,
            _ => self.recipe.training_steps().saturating_sub(self.progress.steps),
        };
        let finals = match self.at {
            Position::Done => return 0,
            Position::Report => 0,
            Position::Finals => self.standings().left,
            _ => standings(finalists, 1 + reevaluate, &[]).left,
        };
        let episodes = |validations: u64| {
            let evaluations = self.recipe.evaluation_every().map_or(0, |every| validations / every);
            validations * tracks as u64 + evaluations * evaluation_tracks as u64
        };
        let judged = (finals * final_tracks + report_tracks) as u64
            + episodes(training / self.recipe.interval_steps());
        let so_far = episodes(self.progress.validations) + (self.finals.len() * final_tracks) as u64;
        let [trained, judged_last] = self.lengths;
        let mean_so_far = || self.progress.judging_steps.checked_div(so_far);
        let length = judged_last.or_else(mean_so_far).or(trained).unwrap_or(self.recipe.max_steps);
        training + length.min(self.recipe.max_steps) * judged
    }
}

fn to_f32(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|&w| w as f32).collect()
}

fn norm(weights: &[f64]) -> f64 {
    weights.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The settings of a stage's learner after `done` steps of a start.
fn settings(recipe: &Recipe, stage: usize, done: u64) -> Result<LearnerConfig, TrainError> {
    recipe.stages[stage]
        .learner(&recipe.algorithm, done)
        .map_err(|error| error.in_stage(&recipe.stages[stage].name))
}

fn start_seed(run: Seed, stage: usize, start: usize) -> Seed {
    run.child("stage", stage as u64).child("start", start as u64)
}
