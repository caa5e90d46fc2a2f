//! The course of a run: which rollouts come next, and what their results lead to.
//!
//! A [`Course`] is the whole of training except for the driving and the files: ask it for a [`Task`], have the task's
//! rollouts driven by anyone, give it the results, and so on until there is no task. It is a plain state machine; its
//! [`Course::state`] after any task is enough to go on bit for bit.

use foveate_core::{EpisodeResult, EvolveError, Evolver, Population, RolloutJob, Seed, StateDict, Tensor};
use foveate_evolve::RankEs;
use serde::{Deserialize, Serialize};

use crate::evaluate::Summary;
use crate::recipe::{Purpose, Recipe, Selection, track_seed};
use crate::rollout::Rules;

/// Makes the weights that a start begins with; the same seed gives the same weights.
pub type FreshWeights = Box<dyn Fn(Seed) -> Vec<f32> + Send>;

/// Where a run stands.
pub struct Course {
    recipe: Recipe,
    seed: Seed,
    fresh: FreshWeights,
    at: Position,
    /// The strategy of the start under way; in the end that of the last.
    es: RankEs,
    progress: Counts,
    /// `[n_params]`: the weights that the stage under way began with; the first stage makes fresh ones.
    base: Vec<f64>,
    /// Of the stage under way, the start that validated best, if one is done.
    leader: Option<Weights>,
    /// The best validated weights of the run, best first.
    candidates: Vec<Weights>,
    /// What the finalists reached, in the order of `candidates`.
    finals: Vec<f64>,
}

/// The place in the recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// A generation of start `start` of stage `stage` is due.
    Learn { stage: usize, start: usize },
    /// A validation is due there.
    Validate { stage: usize, start: usize },
    /// The finalist with the next number is due.
    Finals,
    /// The report is due.
    Report,
    /// All is done.
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
    /// Generations of the whole run.
    generation: u64,
    /// Steps driven to validate and to report.
    judging_steps: u64,
    /// Tasks done.
    tasks: u64,
}

/// Weights with what they reached.
#[derive(Debug, Clone, PartialEq)]
struct Weights {
    score: f64,
    generation: u64,
    steps: u64,
    values: Vec<f64>,
}

/// Rollouts to drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The genomes.
    pub population: Population,
    /// What each drives.
    pub jobs: Vec<RolloutJob>,
    /// What ends an episode.
    pub rules: Rules,
}

/// What a task led to: a line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A generation.
    Generation {
        /// Generations of the run so far, all stages and starts together.
        generation: u64,
        /// Training steps of the run so far.
        steps: u64,
        /// The stage's name.
        stage: String,
        /// Which of its starts, from 1.
        start: usize,
        /// Best return of the population.
        best: f64,
        /// Mean return of the population.
        mean: f64,
        /// Mean length of the training rollouts.
        length: f64,
        /// Euclidean length of the mean weights.
        norm: f64,
    },
    /// The mean weights on the validation tracks, whole episodes.
    Validation {
        /// Generations so far.
        generation: u64,
        /// Training steps so far.
        steps: u64,
        /// The stage's name.
        stage: String,
        /// Which of its starts, from 1.
        start: usize,
        /// What the returns come to.
        #[serde(flatten)]
        summary: Summary,
        /// Whether no validation was better so far.
        best: bool,
    },
    /// The start that a stage with several goes on with.
    Chosen {
        /// The stage's name.
        stage: String,
        /// Generation of the chosen weights.
        generation: u64,
        /// What they validated.
        mean: f64,
    },
    /// A finalist on the tracks of the finals.
    Final {
        /// Generation of the weights.
        generation: u64,
        /// What the returns come to.
        #[serde(flatten)]
        summary: Summary,
        /// Whether no finalist was better so far.
        best: bool,
    },
    /// The best weights on tracks that nothing was chosen on.
    Report {
        /// Generation of the weights.
        generation: u64,
        /// Training steps of the run.
        steps: u64,
        /// Steps driven to validate and to report.
        judging_steps: u64,
        /// What the returns come to.
        #[serde(flatten)]
        summary: Summary,
        /// Return of every track.
        returns: Vec<f64>,
    },
}

impl Course {
    /// The beginning of a run. `recipe` has passed its [`Recipe::check`].
    ///
    /// # Errors
    /// When the fresh weights are not finite.
    pub fn new(recipe: Recipe, seed: u64, fresh: FreshWeights) -> Result<Self, EvolveError> {
        let seed = Seed::root(seed);
        let weights = fresh(start_seed(seed, 0, 0).child("init", 0));
        let es = RankEs::new(recipe.stages[0].evolution(), &weights, start_seed(seed, 0, 0))?;
        Ok(Course {
            recipe,
            seed,
            fresh,
            at: Position::Learn { stage: 0, start: 0 },
            es,
            progress: Counts::default(),
            leader: None,
            candidates: Vec::new(),
            finals: Vec::new(),
            base: weights.iter().map(|&w| f64::from(w)).collect(),
        })
    }

    /// What to drive next; `None` when the run is done. The same until [`Course::learn`] takes its results.
    pub fn task(&mut self) -> Option<Task> {
        let Selection { tracks, final_tracks, report_tracks, .. } = self.recipe.selection;
        match self.at {
            Position::Learn { stage, start } => {
                let settings = &self.recipe.stages[stage];
                let generation =
                    start_seed(self.seed, stage, start).child("generation", self.es.generation());
                let seeds: Vec<u64> = (0..settings.tracks)
                    .map(|t| track_seed(generation.child("track", t as u64), Purpose::Training))
                    .collect();
                let jobs = (0..settings.population)
                    .flat_map(|genome| {
                        seeds.iter().enumerate().map(move |(episode, &env_seed)| RolloutJob {
                            genome,
                            episode,
                            env_seed,
                        })
                    })
                    .collect();
                let rules = Rules { max_steps: self.recipe.max_steps, patience: Some(settings.patience) };
                Some(Task { population: self.es.ask().clone(), jobs, rules })
            }
            Position::Validate { .. } => {
                let weights = self.es.average().to_vec();
                Some(self.judge(&weights, tracks, Purpose::Validation))
            }
            Position::Finals => {
                Some(self.judge(&self.candidates[self.finals.len()].values, final_tracks, Purpose::Finals))
            }
            Position::Report => Some(self.judge(&self.best()?.values, report_tracks, Purpose::Report)),
            Position::Done => None,
        }
    }

    /// One genome on tracks that were not trained on.
    fn judge(&self, weights: &[f64], tracks: usize, purpose: Purpose) -> Task {
        let mut population = Population::zeros(1, weights.len());
        for (to, &from) in population.genome_mut(0).iter_mut().zip(weights) {
            *to = from as f32;
        }
        let label = match purpose {
            Purpose::Training => "training",
            Purpose::Validation => "validation",
            Purpose::Finals => "finals",
            Purpose::Report => "report",
        };
        let jobs = (0..tracks)
            .map(|episode| {
                let job = self.seed.child(label, episode as u64);
                RolloutJob { genome: 0, episode, env_seed: track_seed(job, purpose) }
            })
            .collect();
        Task { population, jobs, rules: self.recipe.whole_episodes() }
    }

    /// Takes the results of the last task, `results[i]` of its job `i`, and moves on.
    ///
    /// # Errors
    /// When the results do not fit the task or are not finite; nothing moves then.
    pub fn learn(&mut self, results: &[EpisodeResult]) -> Result<Vec<Event>, EvolveError> {
        let steps: u64 = results.iter().map(|r| r.steps).sum();
        let returns: Vec<f64> = results.iter().map(|r| r.total).collect();
        let mut events = Vec::new();
        match self.at {
            Position::Learn { stage, start } => {
                let settings = &self.recipe.stages[stage];
                if results.len() != settings.population * settings.tracks {
                    let wanted = settings.population * settings.tracks;
                    return Err(EvolveError::FitnessCount { wanted, given: results.len() });
                }
                let fitness: Vec<f64> = returns
                    .chunks(settings.tracks)
                    .map(|of_one| of_one.iter().sum::<f64>() / of_one.len() as f64)
                    .collect();
                let told = self.es.tell(&fitness)?;
                self.progress.generation += 1;
                self.progress.steps += steps;
                self.progress.start_steps += steps;
                events.push(Event::Generation {
                    generation: self.progress.generation,
                    steps: self.progress.steps,
                    stage: settings.name.clone(),
                    start: start + 1,
                    best: told.best,
                    mean: told.mean,
                    length: steps as f64 / results.len() as f64,
                    norm: self.es.norm(),
                });
                let since = self.progress.start_steps - self.progress.validated_at;
                if self.progress.start_steps >= settings.steps || since >= self.recipe.selection.every {
                    self.at = Position::Validate { stage, start };
                }
            }
            Position::Validate { stage, start } => {
                let summary = self.judged(&returns, steps)?;
                self.progress.validated_at = self.progress.start_steps;
                let best = self.candidates.first().is_none_or(|c| summary.mean > c.score);
                let weights = Weights {
                    score: summary.mean,
                    generation: self.progress.generation,
                    steps: self.progress.steps,
                    values: self.es.average().to_vec(),
                };
                events.push(Event::Validation {
                    generation: weights.generation,
                    steps: weights.steps,
                    stage: self.recipe.stages[stage].name.clone(),
                    start: start + 1,
                    summary,
                    best,
                });
                // Behind those that are as good: the earlier ones stay.
                let rank = self.candidates.partition_point(|c| c.score >= weights.score);
                self.candidates.insert(rank, weights.clone());
                self.candidates.truncate(self.recipe.selection.finalists);
                if self.progress.start_steps >= self.recipe.stages[stage].steps {
                    events.extend(self.end_start(stage, start, weights)?);
                } else {
                    self.at = Position::Learn { stage, start };
                }
            }
            Position::Finals => {
                let summary = self.judged(&returns, steps)?;
                let best = self.finals.iter().all(|&f| summary.mean > f);
                events.push(Event::Final {
                    generation: self.candidates[self.finals.len()].generation,
                    summary,
                    best,
                });
                self.finals.push(summary.mean);
                if self.finals.len() == self.candidates.len() {
                    self.at = Position::Report;
                }
            }
            Position::Report => {
                let summary = self.judged(&returns, steps)?;
                let generation = self.best().map_or(0, |best| best.generation);
                let Counts { steps, judging_steps, .. } = self.progress;
                events.push(Event::Report { generation, steps, judging_steps, summary, returns });
                self.at = Position::Done;
            }
            Position::Done => return Err(EvolveError::NothingAsked),
        }
        self.progress.tasks += 1;
        Ok(events)
    }

    fn judged(&mut self, returns: &[f64], steps: u64) -> Result<Summary, EvolveError> {
        if let Some((genome, &value)) = returns.iter().enumerate().find(|(_, r)| !r.is_finite()) {
            return Err(EvolveError::FitnessNotFinite {
                genome,
                generation: self.progress.generation,
                value,
            });
        }
        self.progress.judging_steps += steps;
        Ok(Summary::of(returns))
    }

    /// A start has used its steps: the next start, the next stage, or the finals.
    fn end_start(
        &mut self,
        stage: usize,
        start: usize,
        weights: Weights,
    ) -> Result<Option<Event>, EvolveError> {
        if self.leader.as_ref().is_none_or(|leader| weights.score > leader.score) {
            self.leader = Some(weights);
        }
        let starts = self.recipe.stages[stage].starts;
        (self.progress.start_steps, self.progress.validated_at) = (0, 0);
        if start + 1 < starts {
            // The mean that the stage began with: fresh weights, or what the stage before handed on.
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

    fn begin(&mut self, stage: usize, start: usize) -> Result<(), EvolveError> {
        let seed = start_seed(self.seed, stage, start);
        let mean = if stage == 0 {
            (self.fresh)(seed.child("init", 0)).iter().map(|&w| f64::from(w)).collect()
        } else {
            self.base.clone()
        };
        self.es = RankEs::from_mean(self.recipe.stages[stage].evolution(), mean, seed)?;
        self.at = Position::Learn { stage, start };
        Ok(())
    }
}

/// What can be asked of a course at any time, and how it is saved.
impl Course {
    /// The best weights so far with the generation they are of: of the finalists once there are results, of the
    /// validated ones before; `None` before the first validation.
    pub fn best_weights(&self) -> Option<(Vec<f32>, u64)> {
        self.best().map(|best| (to_f32(&best.values), best.generation))
    }

    fn best(&self) -> Option<&Weights> {
        let mut best = 0;
        for (i, &score) in self.finals.iter().enumerate() {
            if score > self.finals[best] {
                best = i;
            }
        }
        self.candidates.get(best)
    }

    /// The weights that would be validated now.
    pub fn last_weights(&self) -> Vec<f32> {
        to_f32(self.es.average())
    }

    /// Generations so far, all stages and starts together.
    pub fn generation(&self) -> u64 {
        self.progress.generation
    }

    /// Tasks done so far.
    pub fn tasks(&self) -> u64 {
        self.progress.tasks
    }

    /// Steps driven so far, those of judging included.
    pub fn steps(&self) -> u64 {
        self.progress.steps + self.progress.judging_steps
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        self.at == Position::Done
    }

    /// About how many steps are left to drive, if every judging episode took its whole time.
    pub fn steps_left(&self) -> u64 {
        let Selection { every, tracks, finalists, final_tracks, report_tracks } = self.recipe.selection;
        let judged = match self.at {
            Position::Done => return 0,
            Position::Report => return self.recipe.max_steps * report_tracks as u64,
            Position::Finals => (finalists - self.finals.len()) * final_tracks + report_tracks,
            Position::Learn { .. } | Position::Validate { .. } => finalists * final_tracks + report_tracks,
        };
        let training = if self.at == Position::Finals {
            0
        } else {
            self.recipe.training_steps().saturating_sub(self.progress.steps)
        };
        training + self.recipe.max_steps * (judged as u64 + training / every * tracks as u64)
    }

    /// Everything needed to go on bit for bit; see [`Course::restore`].
    pub fn state(&self) -> StateDict {
        let mut state: StateDict =
            self.es.state().into_iter().map(|(name, tensor)| (format!("evolution.{name}"), tensor)).collect();
        let (kind, stage, start) = match self.at {
            Position::Learn { stage, start } => (0, stage, start),
            Position::Validate { stage, start } => (1, stage, start),
            Position::Finals => (2, 0, 0),
            Position::Report => (3, 0, 0),
            Position::Done => (4, 0, 0),
        };
        let Counts { steps, start_steps, validated_at, generation, judging_steps, tasks } = self.progress;
        let counts = vec![steps, start_steps, validated_at, generation, judging_steps, tasks];
        state.insert("course.position".into(), Tensor::U64(vec![kind, stage as u64, start as u64]));
        state.insert("course.counts".into(), Tensor::U64(counts));
        state.insert("course.base".into(), Tensor::F64(self.base.clone()));
        state.insert("course.finals".into(), Tensor::F64(self.finals.clone()));
        let kept = self.candidates.iter().enumerate().map(|(i, c)| (format!("candidate.{i}"), c));
        for (name, kept) in kept.chain(self.leader.iter().map(|leader| ("leader".into(), leader))) {
            state.insert(format!("{name}.weights"), Tensor::F64(kept.values.clone()));
            state.insert(format!("{name}.score"), Tensor::F64(vec![kept.score]));
            state.insert(format!("{name}.at"), Tensor::U64(vec![kept.generation, kept.steps]));
        }
        state
    }

    /// Takes back what [`Course::state`] gave; the recipe, the seed and the fresh weights must be the same as then.
    ///
    /// # Errors
    /// When something is missing, of the wrong size, not finite, or does not fit the recipe; nothing changes then.
    pub fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        let bad = |why: String| EvolveError::BadState { why };
        let n = self.base.len();
        let u64s = |name: &str, wanted: usize| match state.get(name) {
            Some(Tensor::U64(v)) if v.len() == wanted => Ok(v.clone()),
            _ => Err(bad(format!("{name} is not {wanted} integers"))),
        };
        let f64s = |name: &str, wanted: usize| match state.get(name) {
            Some(Tensor::F64(v)) if v.len() == wanted && v.iter().all(|x| x.is_finite()) => Ok(v.clone()),
            _ => Err(bad(format!("{name} is not {wanted} finite numbers"))),
        };
        let weights = |name: &str| -> Result<Weights, EvolveError> {
            let at = u64s(&format!("{name}.at"), 2)?;
            Ok(Weights {
                score: f64s(&format!("{name}.score"), 1)?[0],
                generation: at[0],
                steps: at[1],
                values: f64s(&format!("{name}.weights"), n)?,
            })
        };

        let position = u64s("course.position", 3)?;
        let (stage, start) = (position[1] as usize, position[2] as usize);
        let at = match position[0] {
            0 => Position::Learn { stage, start },
            1 => Position::Validate { stage, start },
            2 => Position::Finals,
            3 => Position::Report,
            4 => Position::Done,
            other => return Err(bad(format!("course.position is {other}"))),
        };
        let learning = matches!(at, Position::Learn { .. } | Position::Validate { .. });
        let (stage, start) = if learning {
            (stage, start)
        } else {
            let last = self.recipe.stages.len() - 1;
            (last, self.recipe.stages[last].starts - 1)
        };
        if self.recipe.stages.get(stage).is_none_or(|settings| start >= settings.starts) {
            return Err(bad(format!("stage {stage}, start {start} is not in the recipe")));
        }
        let base = f64s("course.base", n)?;
        let evolution: StateDict = state
            .iter()
            .filter_map(|(name, tensor)| Some((name.strip_prefix("evolution.")?.to_owned(), tensor.clone())))
            .collect();
        let seed = start_seed(self.seed, stage, start);
        let mut es = RankEs::from_mean(self.recipe.stages[stage].evolution(), base.clone(), seed)?;
        es.restore(&evolution)?;

        let counts = u64s("course.counts", 6)?;
        let mut candidates = Vec::new();
        while state.contains_key(&format!("candidate.{}.at", candidates.len())) {
            candidates.push(weights(&format!("candidate.{}", candidates.len()))?);
        }
        let leader = state.contains_key("leader.at").then(|| weights("leader")).transpose()?;
        let finals = match state.get("course.finals") {
            Some(Tensor::F64(v)) if v.len() <= candidates.len() && v.iter().all(|x| x.is_finite()) => {
                v.clone()
            }
            _ => return Err(bad("course.finals does not fit the candidates".into())),
        };
        let complete = match at {
            Position::Learn { .. } | Position::Validate { .. } => finals.is_empty(),
            Position::Finals => finals.len() < candidates.len(),
            Position::Report | Position::Done => !candidates.is_empty() && finals.len() == candidates.len(),
        };
        if !complete || candidates.len() > self.recipe.selection.finalists {
            return Err(bad("its position and its finalists contradict each other".into()));
        }

        self.progress = Counts {
            steps: counts[0],
            start_steps: counts[1],
            validated_at: counts[2],
            generation: counts[3],
            judging_steps: counts[4],
            tasks: counts[5],
        };
        (self.at, self.es, self.base, self.leader) = (at, es, base, leader);
        (self.candidates, self.finals) = (candidates, finals);
        Ok(())
    }
}

fn to_f32(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|&w| w as f32).collect()
}

fn start_seed(run: Seed, stage: usize, start: usize) -> Seed {
    run.child("stage", stage as u64).child("start", start as u64)
}

#[cfg(test)]
mod tests;
