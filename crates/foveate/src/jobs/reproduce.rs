//! Published experiments, run again.

use std::path::{Path, PathBuf};

use foveate_core::EvaluateError;
use foveate_core::hint::Setting;
use foveate_registry::{EXPERIMENTS, PAPERS};
use foveate_run::RunError;
use foveate_run::cluster::Cluster;
use foveate_run::evaluate::SeedRange;
use foveate_run::interrupt::within;
use foveate_run::job_cost::duration;
use foveate_run::progress::TrainObserver;
use foveate_run::reproduce::{
    Arm, Begun, Experiment, ExperimentFolder, Judged, JudgedRow, Limit, Machine, Measured, Row, begun,
    evaluation_key, evaluation_name, find_weights, is_evaluated, run_name,
};
use foveate_run::stress::Tested;
use foveate_run::train::{ResumeRequest, resume_on};
use foveate_run::trust::{WorldOptions, WorldSpec};
use foveate_run::workers::Stop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Evaluate, Train};
use crate::import::{ImportRequest, import};
use crate::{LoadedAgent, Player, World};

/// Repeats a published experiment: runs what is missing in a folder, and compares the result with the published one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "command", derive(clap::Args), group(skip))]
pub struct Reproduce {
    /// The experiment; a paper stands for all of its experiments
    #[cfg_attr(feature = "command", arg(value_name = "PAPER/ITEM"))]
    pub experiment: Option<String>,
    /// The published weights: a file, or a folder with the authors' files [default: the current folder]
    #[cfg_attr(feature = "command", arg(long, value_name = "FILE|FOLDER"))]
    pub weights: Option<PathBuf>,
    /// Run only these arms or conditions, separated by commas
    #[cfg_attr(feature = "command", arg(long, value_name = "NAME", value_delimiter = ','))]
    pub only: Vec<String>,
    /// Seeds of the trainings, separated by commas [default: those of the experiment]
    #[cfg_attr(feature = "command", arg(long, value_name = "SEED", value_delimiter = ','))]
    pub seeds: Vec<u64>,
    /// Episodes of every evaluation [default: those of the experiment]
    #[cfg_attr(feature = "command", arg(long))]
    pub episodes: Option<usize>,
    /// Stop safely after this time, as in 2h or 30min
    #[cfg_attr(feature = "command", arg(long, value_name = "TIME"))]
    pub budget: Option<Limit>,
    /// Threads; 0 for one per core
    #[cfg_attr(feature = "command", arg(long, default_value_t = 0))]
    pub workers: usize,
    /// The folder for everything [default: reproduce/PAPER/ITEM]
    #[cfg_attr(feature = "command", arg(long, value_name = "FOLDER"))]
    pub out: Option<PathBuf>,
    /// Options of the world, such as the folder of its data
    #[cfg_attr(feature = "command", command(flatten))]
    pub options: WorldOptions,
    /// Resume trainings in the folder although their world is Python code that runs with your rights
    #[cfg_attr(feature = "command", arg(long = "trust-world"))]
    pub trust: bool,
}

/// What an experiment needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// Its folder.
    pub folder: PathBuf,
    /// Everything that was asked for, in the order in which it is run.
    pub pieces: Vec<Planned>,
    /// What is left out, with the reason.
    pub left_out: Vec<String>,
    /// Disk space for what is missing, in MB.
    pub megabytes: f64,
}

/// A training or an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Its name.
    pub what: String,
    /// True for a training.
    pub trains: bool,
    /// How far it is.
    pub begun: Begun,
    /// CPU hours of all of it.
    pub cpu_hours: f64,
}

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Reproduced {
    /// What was measured, beside what was published; `None` when it was stopped before its end.
    pub judged: Option<Judged>,
    /// Its folder.
    pub folder: PathBuf,
}

/// Is told what an experiment does. `()` ignores it.
pub trait ReproduceObserver {
    /// An evaluation begins.
    fn evaluates(&mut self, _what: &str) {}
    /// A training begins or is resumed; its progress goes to what this returns.
    fn trains(&mut self, _what: &str) -> Box<dyn TrainObserver + '_> {
        Box::new(())
    }
}

impl ReproduceObserver for () {}

/// Makes the cluster of a training, if there is one.
pub type MakeCluster<'a> = dyn FnMut() -> Result<Option<Box<dyn Cluster>>, RunError> + 'a;

/// Megabytes of a training whose need is not known: weights, checkpoints and log.
const TRAINING_MEGABYTES: f64 = 20.0;
/// Megabytes of an evaluation.
const EVALUATION_MEGABYTES: f64 = 0.1;

impl Plan {
    /// CPU hours of what is missing.
    pub fn cpu_hours(&self) -> f64 {
        let missing = self.pieces.iter().filter(|piece| piece.begun != Begun::Finished);
        missing.map(|piece| piece.cpu_hours).sum()
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        let pieces = self.pieces.iter().map(|piece| {
            let Planned { what, trains, begun, cpu_hours } = piece;
            let done = *begun == Begun::Finished;
            json!({ "what": what, "trains": trains, "done": done, "cpu_hours": cpu_hours })
        });
        json!({
            "id": self.experiment.id,
            "folder": self.folder,
            "pieces": pieces.collect::<Vec<_>>(),
            "left_out": self.left_out,
            "cpu_hours": self.cpu_hours(),
            "megabytes": self.megabytes,
        })
    }

    /// What is there, what must run, and what it costs, in lines.
    pub fn text(&self) -> String {
        let Plan { experiment, folder, pieces, left_out, megabytes } = self;
        let mut text = format!(
            "{}: {} ({}, {})\n",
            experiment.id,
            experiment.title,
            experiment.paper_title(),
            experiment.section
        );
        for (trains, noun) in [(true, "trainings"), (false, "evaluations")] {
            let all: Vec<&Planned> = pieces.iter().filter(|piece| piece.trains == trains).collect();
            let done = all.iter().filter(|piece| piece.begun == Begun::Finished).count();
            if !all.is_empty() {
                text.push_str(&format!("  {done} of {} {noun} are there\n", all.len()));
            }
            for piece in all.iter().filter(|piece| piece.begun == Begun::Stopped) {
                text.push_str(&format!("  to resume: {}\n", piece.what));
            }
        }
        for why in left_out {
            text.push_str(&format!("  left out: {why}\n"));
        }
        let seconds = self.cpu_hours() * 3600.0;
        let cost = if seconds > 0.0 {
            format!("about {} of CPU time, {:.0} MB of disk", duration(seconds), megabytes.max(1.0))
        } else {
            "nothing is missing".into()
        };
        text.push_str(&format!("  {cost}; everything goes to {}", folder.display()));
        text
    }
}

/// What was asked for of an experiment.
struct Work<'a> {
    job: &'a Reproduce,
    experiment: Experiment,
    folder: PathBuf,
}

/// Weights that act: an arm with the seed of its training, `None` for weights that are given.
type Who = (usize, Option<u64>);

impl Reproduce {
    /// One job for each experiment that the name stands for.
    ///
    /// # Errors
    /// When there is no such experiment or paper.
    pub fn each(&self) -> Result<Vec<Reproduce>, RunError> {
        let Some(name) = self.experiment.as_deref() else {
            return Err(RunError::BadRequest { why: "name an experiment, PAPER/ITEM, or a paper".into() });
        };
        if PAPERS.iter().all(|(paper, _)| *paper != name) {
            EXPERIMENTS.find(name).map_err(|error| RunError::BadRequest { why: error.to_string() })?;
            return Ok(vec![self.clone()]);
        }
        let own =
            EXPERIMENTS.iter().filter(|file| file.id.split_once('/').is_some_and(|(paper, _)| paper == name));
        let job = |id: &'static str| {
            let item = id.split_once('/').map_or(id, |(_, item)| item);
            let out = self.out.as_ref().map(|out| out.join(item));
            Reproduce { experiment: Some(id.to_owned()), out, ..self.clone() }
        };
        Ok(own.map(|file| job(file.id)).collect())
    }

    /// All experiments with what was measured for this repository.
    ///
    /// # Errors
    /// When a file is broken.
    pub fn catalogue() -> Result<Vec<Judged>, RunError> {
        EXPERIMENTS.iter().map(Judged::stored).collect()
    }

    /// The list of `all` experiments for people: a line for each, its columns aligned.
    pub fn catalogue_text(all: &[Judged]) -> String {
        const HEAD: [&str; 7] = ["item", "published", "ours", "n", "verdict", "measured", "cost here"];
        let mut text = String::new();
        for (paper, title) in PAPERS {
            let mut rows = vec![HEAD.map(str::to_owned)];
            let own: Vec<&Judged> =
                all.iter().filter(|judged| judged.experiment.paper_name() == *paper).collect();
            for judged in &own {
                let headline = judged.headline();
                let of = |text: &dyn Fn(&JudgedRow) -> String| headline.map_or_else(|| "–".into(), text);
                let ours = headline.and_then(|row| row.ours.as_ref());
                let id = &judged.experiment.id;
                rows.push([
                    id.split_once('/').map_or(&**id, |(_, item)| item).to_owned(),
                    of(&|row| judged.published_text(row)),
                    of(&|row| judged.ours_text(row)),
                    ours.map_or_else(|| "–".into(), |ours| ours.n.to_string()),
                    match (judged.has_run(), judged.experiment.cannot_run()) {
                        (true, _) => judged.verdict.short().to_owned(),
                        (_, Some(_)) => "needs more".into(),
                        _ => "–".into(),
                    },
                    judged.date().unwrap_or("–").to_owned(),
                    duration(judged.experiment.cpu_hours() * 3600.0),
                ]);
            }
            let widths: [usize; 7] =
                std::array::from_fn(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0));
            text.push_str(&format!("{paper}: {title}\n"));
            let titles = std::iter::once("").chain(own.iter().map(|judged| &*judged.experiment.title));
            for (row, title) in rows.iter().zip(titles) {
                let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
                let line = format!("  {}  {title}", cells.collect::<Vec<_>>().join("  "));
                text.push_str(line.trim_end());
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }

    /// The one experiment.
    fn work(&self) -> Result<Work<'_>, RunError> {
        let experiment = Experiment::find(self.experiment.as_deref().unwrap_or_default())?;
        for name in &self.only {
            let arms = experiment.arms.iter().map(|arm| &arm.name);
            let mut all = arms.chain(experiment.conditions.iter().map(|condition| &condition.name));
            if !all.any(|known| known == name) {
                let arms = experiment.arms.iter().map(|arm| &*arm.name);
                let known: Vec<&str> = arms.chain(experiment.conditions.iter().map(|c| &*c.name)).collect();
                let why = format!("{} has no {name:?}; choose from {}", experiment.id, known.join(", "));
                return Err(RunError::BadRequest { why });
            }
        }
        let folder = self.out.clone().unwrap_or_else(|| Path::new("reproduce").join(&experiment.id));
        Ok(Work { job: self, experiment, folder })
    }

    /// What is there and what is missing. Nothing is run.
    ///
    /// # Errors
    /// When there is no such experiment, or it has no such arm or condition.
    pub fn plan(&self) -> Result<Plan, RunError> {
        let work = self.work()?;
        let (who, left_out) = work.who();
        let mut pieces = vec![];
        let mut megabytes = 0.0;
        let Work { experiment, folder, .. } = &work;
        for &(place, seed) in &who {
            let arm = &experiment.arms[place];
            if let Some(seed) = seed {
                let begun = begun(folder, &run_name(arm, seed));
                let cost = if begun == Begun::Finished { None } else { work.training(arm, seed).cost() };
                if begun != Begun::Finished {
                    let known = cost.and_then(|cost| cost.megabytes);
                    megabytes += known.map_or(TRAINING_MEGABYTES, |[_, disk]| disk);
                }
                let cpu_hours = arm.cpu_hours.or_else(|| Some(cost?.cpu_hours[1])).unwrap_or(0.0);
                pieces.push(Planned { what: named(arm, Some(seed)), trains: true, begun, cpu_hours });
            }
            for row in work.rows_of(place) {
                let there = is_evaluated(folder, &evaluation_name(experiment, row, seed));
                let begun = if there { Begun::Finished } else { Begun::No };
                if !there {
                    megabytes += EVALUATION_MEGABYTES;
                }
                let what = format!("{} in {}", named(arm, seed), experiment.conditions[row.condition].name);
                let cpu_hours = work.episodes() as f64 * experiment.evaluation.cpu_seconds / 3600.0;
                pieces.push(Planned { what, trains: false, begun, cpu_hours });
            }
        }
        drop(who);
        let Work { experiment, folder, .. } = work;
        Ok(Plan { experiment, folder, pieces, left_out, megabytes })
    }

    /// Runs what is missing, and writes the table, the figure and the report. A stop, also by the budget, is no error: the same job
    /// continues, and the result is the same.
    ///
    /// # Errors
    /// When the experiment cannot be run yet, published weights are missing, or a training or an evaluation fails.
    pub fn run(&self, observer: &mut dyn ReproduceObserver, stop: &Stop) -> Result<Reproduced, RunError> {
        self.run_on(&mut || Ok(None), observer, stop)
    }

    /// As [`Reproduce::run`], with the rollouts of trainings on clusters.
    ///
    /// # Errors
    /// As [`Reproduce::run`], and when a cluster has no machine.
    pub fn run_on(
        &self,
        clusters: &mut MakeCluster<'_>,
        observer: &mut dyn ReproduceObserver,
        stop: &Stop,
    ) -> Result<Reproduced, RunError> {
        let work = self.work()?;
        let id = &work.experiment.id;
        if let Some(why) = work.experiment.cannot_run() {
            return Err(RunError::BadRequest { why: format!("{id} cannot be run yet: {why}") });
        }
        let (who, left_out) = work.who();
        if who.is_empty() {
            return Err(RunError::BadRequest { why: format!("{id}: {}", left_out.join("; ")) });
        }
        let mut job = || work.run(&who, clusters, observer, stop);
        let judged = match self.budget {
            Some(budget) => within(budget.duration(), stop, job),
            None => job(),
        };
        let judged = match judged {
            Err(RunError::Evaluate(EvaluateError::Stopped)) => None,
            other => other?,
        };
        Ok(Reproduced { judged, folder: work.folder })
    }
}

/// The name of an arm, with the seed of its training.
fn named(arm: &Arm, seed: Option<u64>) -> String {
    seed.map_or_else(|| arm.name.clone(), |seed| format!("{}, seed {seed}", arm.name))
}

impl Work<'_> {
    /// Episodes of every evaluation.
    fn episodes(&self) -> usize {
        self.job.episodes.unwrap_or(self.experiment.evaluation.episodes)
    }

    /// Whether a row was asked for.
    fn asked(&self, row: Row) -> bool {
        let only = &self.job.only;
        let (arm, condition) =
            (&self.experiment.arms[row.arm].name, &self.experiment.conditions[row.condition].name);
        let named = |own: &String, mut all: Box<dyn Iterator<Item = &String> + '_>| {
            let any = all.any(|name| only.contains(name));
            !any || only.contains(own)
        };
        named(arm, Box::new(self.experiment.arms.iter().map(|arm| &arm.name)))
            && named(condition, Box::new(self.experiment.conditions.iter().map(|condition| &condition.name)))
    }

    /// The rows of an arm that were asked for.
    fn rows_of(&self, arm: usize) -> impl Iterator<Item = Row> {
        let runs = move |row: &Row| self.experiment.conditions[row.condition].needs.is_none();
        self.experiment.rows().into_iter().filter(move |row| row.arm == arm && runs(row) && self.asked(*row))
    }

    /// Who acts, in the order in which it is run, and what is left out. Trainings come seed by seed.
    fn who(&self) -> (Vec<Who>, Vec<String>) {
        let arms = &self.experiment.arms;
        let mut wanted: Vec<bool> = (0..arms.len()).map(|arm| self.rows_of(arm).next().is_some()).collect();
        // What an arm learns from must be trained, too; it comes before it.
        for place in (0..arms.len()).rev().filter(|&place| wanted[place]).collect::<Vec<_>>() {
            for name in arms[place].init.iter().chain(&arms[place].teacher) {
                if let Some(other) = arms.iter().position(|arm| arm.name == *name) {
                    wanted[other] = true;
                }
            }
        }
        let (mut given, mut trained, mut left_out) = (vec![], vec![], vec![]);
        for (place, arm) in arms.iter().enumerate().filter(|(place, _)| wanted[*place]) {
            match self.experiment.needs(arm) {
                Some(why) => left_out.push(format!("{}: {why}", arm.name)),
                None if arm.preset.is_some() => trained.push(place),
                None if arm.files.is_empty() || self.weights_of(arm).is_some() => given.push((place, None)),
                None => left_out.push(format!(
                    "{}: its published weights are missing; get {} and name the file or its folder with {}",
                    arm.name,
                    arm.files.first().map_or("", |name| name),
                    Setting::Weights
                )),
            }
        }
        let seeds = if self.job.seeds.is_empty() { &self.experiment.seeds } else { &self.job.seeds };
        let trainings = seeds.iter().flat_map(|&seed| trained.iter().map(move |&place| (place, Some(seed))));
        (given.into_iter().chain(trainings).collect(), left_out)
    }

    /// The file of the arm's published weights.
    fn weights_of(&self, arm: &Arm) -> Option<PathBuf> {
        find_weights(self.job.weights.as_deref().unwrap_or_else(|| Path::new(".")), arm)
    }

    /// The world of a training.
    fn training(&self, arm: &Arm, seed: u64) -> Train {
        let evaluation = &self.experiment.evaluation;
        let runs = self.folder.join("runs");
        let of = |other: &String| {
            let other = self.experiment.arms.iter().find(|arm| arm.name == *other)?;
            Some(runs.join(run_name(other, seed)).display().to_string())
        };
        Train {
            preset: arm.preset.clone(),
            steps: arm.steps,
            init: arm.init.as_ref().and_then(of),
            teacher: arm.teacher.as_ref().and_then(of),
            set: arm.set.clone(),
            seed: Some(seed),
            workers: (self.job.workers > 0).then_some(self.job.workers),
            videos: Some(false),
            name: Some(run_name(arm, seed)),
            world: WorldSpec {
                id: Some(arm.world.as_ref().unwrap_or(&evaluation.world).clone()),
                picture: arm.picture.clone(),
                options: self.options(None),
                ..WorldSpec::default()
            },
            runs,
            ..Train::default()
        }
    }

    /// Options of the world: those of the experiment and of the row, and those of the user.
    fn options(&self, row: Option<Row>) -> WorldOptions {
        let of_row = row.map(|row| &self.experiment.conditions[row.condition].options);
        let all = self.experiment.evaluation.options.iter().chain(of_row.into_iter().flatten());
        all.chain(self.job.options.iter()).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The world of a row.
    fn world(&self, row: Row) -> WorldSpec {
        let Experiment { evaluation, arms, conditions, .. } = &self.experiment;
        let (arm, condition) = (&arms[row.arm], &conditions[row.condition]);
        WorldSpec {
            id: Some(arm.world.as_ref().unwrap_or(&evaluation.world).clone()),
            picture: condition.picture.as_ref().or(evaluation.picture.as_ref()).cloned(),
            variants: condition.variants.clone(),
            shifts: condition.shifts.clone(),
            options: self.options(Some(row)),
            ..WorldSpec::default()
        }
    }

    /// The weights of an arm in the world of a row.
    fn player(&self, (place, seed): Who, row: Row) -> Result<Player, RunError> {
        let arm = &self.experiment.arms[place];
        let world = World::new(self.world(row));
        if let Some(seed) = seed {
            let run = self.folder.join("runs").join(run_name(arm, seed));
            return Ok(LoadedAgent::load(Some(&run), &world)?.into());
        }
        if let Some(name) = &arm.bundled {
            return Ok(LoadedAgent::load(Some(Path::new(name)), &world)?.into());
        }
        let path = self.weights_of(arm).unwrap_or_default();
        let loaded = if path.extension().is_some_and(|ending| ending == "npz") {
            let request = ImportRequest {
                file: path.clone(),
                agent: arm.agent.clone(),
                world: None,
                layout: None,
                scale: None,
                config: None,
            };
            LoadedAgent::of((import(&request)?.file, path.display().to_string()), &world)?
        } else {
            LoadedAgent::load(Some(&path), &world)?
        };
        let (found, wanted) = (loaded.file.params().len(), arm.weights);
        if wanted.is_some_and(|wanted| wanted != found) {
            let why = format!(
                "{}: it holds {found} weights, those of {} are {}; name their file or folder with {}",
                path.display(),
                arm.name,
                wanted.unwrap_or_default(),
                Setting::Weights
            );
            return Err(RunError::BadRequest { why });
        }
        Ok(loaded.into())
    }

    fn run(
        &self,
        who: &[Who],
        clusters: &mut MakeCluster<'_>,
        observer: &mut dyn ReproduceObserver,
        stop: &Stop,
    ) -> Result<Option<Judged>, RunError> {
        let file =
            EXPERIMENTS.find(&self.experiment.id).map_err(|e| RunError::BadRequest { why: e.to_string() })?;
        let folder = ExperimentFolder::open(&self.folder, file.id, file.text)?;
        let mut measured = vec![];
        let mut runs = vec![];
        for &(place, seed) in who {
            let arm = &self.experiment.arms[place];
            if let Some(seed) = seed {
                let run = run_name(arm, seed);
                if !self.train(arm, seed, clusters, observer, stop)? {
                    return Ok(None);
                }
                runs.push(run);
            }
            for row in self.rows_of(place) {
                let what =
                    format!("{} in {}", named(arm, seed), self.experiment.conditions[row.condition].name);
                measured.push(self.evaluate(
                    &folder,
                    (place, seed),
                    row,
                    &mut || observer.evaluates(&what),
                    stop,
                )?);
            }
        }
        let judged = Judged::of(self.experiment.clone(), measured);
        folder.write(&judged, &runs)?;
        Ok(Some(judged))
    }

    /// Trains an arm, unless it is trained; false when it was stopped.
    fn train(
        &self,
        arm: &Arm,
        seed: u64,
        clusters: &mut MakeCluster<'_>,
        observer: &mut dyn ReproduceObserver,
        stop: &Stop,
    ) -> Result<bool, RunError> {
        let job = self.training(arm, seed);
        let run = run_name(arm, seed);
        let begun = begun(&self.folder, &run);
        if begun == Begun::Finished {
            return Ok(true);
        }
        let what = named(arm, Some(seed));
        let mut observer = observer.trains(&what);
        let result = if begun == Begun::Stopped {
            let request = ResumeRequest {
                folder: job.runs.join(&run),
                workers: job.workers,
                videos: Some(false),
                allow_changes: false,
                trust: self.job.trust,
            };
            resume_on(&request, clusters()?, &mut *observer, stop)?
        } else {
            job.run_on(clusters()?, &mut *observer, stop)?
        };
        Ok(result.report.is_some())
    }

    /// The episodes of a row: those that are kept, or new ones.
    fn evaluate(
        &self,
        folder: &ExperimentFolder,
        who: Who,
        row: Row,
        before: &mut dyn FnMut(),
        stop: &Stop,
    ) -> Result<Measured, RunError> {
        let Experiment { arms, conditions, evaluation, .. } = &self.experiment;
        let player = self.player(who, row)?;
        let Tested::File(file) = &player.tested else {
            return Err(RunError::BadRequest { why: format!("{} is no file of weights", player.name) });
        };
        let episodes = self.episodes();
        let seeds = evaluation.first_seed.map(|first| format!("{first}..{}", first + episodes as u64));
        let seeds = seeds.map(|text| text.parse::<SeedRange>()).transpose()?;
        let job = Evaluate {
            episodes,
            seed: evaluation.seed,
            seeds: seeds.clone(),
            workers: self.job.workers,
            ..Evaluate::default()
        };
        let name = evaluation_name(&self.experiment, row, who.1);
        let seeds = seeds.map_or_else(String::new, String::from);
        let key = evaluation_key(file, &player.world, evaluation.seed, &seeds, episodes);
        if let Some(kept) = folder.find(&name, &key) {
            return Ok(kept);
        }
        before();
        let report = job.run(&player, stop)?;
        let labels = crate::loaded::labels_with_options(&player.world, player.source.clone());
        let steps = report.lengths.iter().sum::<u64>() as f64;
        let training = who.1.and_then(|seed| folder.training_seconds(&run_name(&arms[row.arm], seed)));
        let measured = Measured {
            arm: arms[row.arm].name.clone(),
            condition: conditions[row.condition].name.clone(),
            training_seed: who.1,
            weights: file.params().len(),
            sha256: file.sha256(),
            world: format!("{}, picture {}, {}", labels.env, labels.picture, labels.variant),
            seed: if seeds.is_empty() { evaluation.seed.into() } else { seeds.into() },
            reference: report.human_normalised.as_ref().map(|scores| [scores.random, scores.human]),
            returns: report.returns,
            machine: Machine::now(steps / report.steps_per_cpu_second.max(1e-9), training),
        };
        folder.keep(&name, &key, &measured)?;
        Ok(measured)
    }
}
