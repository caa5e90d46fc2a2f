//! The training loop: a [`Course`] driven by [`Workers`], kept in a [`RunFolder`].
//!
//! A run may be stopped at any moment, politely or not; [`resume`] goes on from its newest checkpoint and ends with the
//! same weights, to the bit, as if it had never stopped, with any number of workers before and after.

use std::path::{Path, PathBuf};
use std::time::Duration;

use foveate_agents::registry;
use foveate_core::{Agent, Env, EvaluateError, Evaluator};
use foveate_envs::registry::EnvRequest;
use serde_json::json;

use crate::atomic;
use crate::checkpoint::RunFolder;
use crate::clock::{ProcessCpu, Wall, utc_now};
use crate::config::TrainConfig;
use crate::course::{Course, Event};
use crate::curve;
use crate::error::RunError;
use crate::initial;
use crate::progress::{LogLine, Reporter};
use crate::weights::AgentFile;
use crate::workers::{Stop, Workers, default_workers};

/// Time between checkpoints: what a crash can cost.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// How a call of [`run`] or [`resume`] ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The run's folder.
    pub folder: PathBuf,
    /// The report on the best weights; `None` when the run was stopped before.
    pub report: Option<Event>,
}

/// A new run.
#[derive(Debug, Clone)]
pub struct TrainRequest {
    /// What to do.
    pub config: TrainConfig,
    /// The folder of all runs.
    pub runs: PathBuf,
    /// What to call this one; `None` for the name of the world, numbered if need be.
    pub name: Option<String>,
}

/// Starts a run and trains to its end, or until someone asks to stop.
///
/// # Errors
/// When the configuration cannot be met, the folder cannot be made, or a rollout fails. Whatever was learnt until then
/// is in the folder.
pub fn run(request: &TrainRequest, reporter: &mut Reporter, stop: &Stop) -> Result<Outcome, RunError> {
    let TrainRequest { config, runs, name } = request;
    let parts = Parts::of(config)?;
    let about = json!({
        "program": "foveate",
        "version": env!("CARGO_PKG_VERSION"),
        "started": utc_now(),
        "seed": config.seed,
    });
    let about = format!("{about:#}\n");
    let toml = config.to_toml();
    let folder = match name {
        Some(name) => RunFolder::create_named(runs, name, &toml, &about)?,
        None => RunFolder::create(runs, &config.env.id, &toml, &about)?,
    };
    reporter.note(&format!(
        "training {} on {} (picture {}), {:.1} M steps, seed {}; everything goes to {}\nCtrl-C stops safely, `foveate train --resume {}` goes on",
        config.agent.name,
        config.env.id,
        config.env.picture,
        config.recipe.training_steps() as f64 / 1e6,
        config.seed,
        folder.path().display(),
        folder.path().display(),
    ));
    Run::begin(parts, folder)?.drive(reporter, stop)
}

/// Goes on with a run, exactly. `workers` overrides the number of threads, which the digits do not depend on.
///
/// # Errors
/// When the folder is not that of a run, is broken, or its configuration was changed; or as [`run`].
pub fn resume(
    folder: &Path,
    workers: Option<usize>,
    reporter: &mut Reporter,
    stop: &Stop,
) -> Result<Outcome, RunError> {
    let folder = RunFolder::open(folder)?;
    let mut config = TrainConfig::read(&folder.path().join("config.toml"))?;
    config.workers = workers.unwrap_or(config.workers);
    Run::resume(Parts::of(&config)?, folder, reporter)?.drive(reporter, stop)
}

/// What a run needs from outside.
struct Parts {
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
    course: Course,
    workers: usize,
    title: String,
    checkpoint_every: Duration,
    save: SaveWeights,
}

/// Writes weights, of a generation, to a file.
type SaveWeights = Box<dyn Fn(&Path, &[f32], u64) -> Result<(), RunError>>;

impl Parts {
    fn of(config: &TrainConfig) -> Result<Self, RunError> {
        let TrainConfig { seed, workers, env: env_section, agent: agent_section, recipe, .. } = config;
        let env = crate::worlds::make(env_request(config))?;
        let settings = serde_json::to_value(&agent_section.config)
            .map_err(|error| RunError::BadRequest { why: format!("agent.config: {error}") })?;
        let agent = registry::make(&agent_section.name, &settings)?;
        let name = agent_section.name.clone();
        let fresh = initial::fresh(&recipe.init, &name, &settings)?;
        let (world, seed) = (env_request(config), *seed);
        let save: SaveWeights = Box::new(move |path, weights, generation| {
            AgentFile::new(&name, &settings, weights.to_vec())?
                .made_for(&world)
                .note("source", format!("foveate train, seed {seed}, generation {generation}"))
                .save(path)
        });
        Ok(Parts {
            env,
            course: Course::new(recipe.clone(), seed, fresh)?,
            workers: if *workers == 0 { default_workers() } else { *workers },
            title: format!(
                "{} learns {} (picture {}, seed {seed})",
                agent_section.name, env_section.id, env_section.picture
            ),
            checkpoint_every: CHECKPOINT_EVERY,
            save,
            agent,
        })
    }
}

/// The world that a configuration asks for.
pub fn env_request(config: &TrainConfig) -> EnvRequest {
    let options = config.env.options.iter().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), text)
    });
    EnvRequest {
        id: config.env.id.clone(),
        picture: Some(config.env.picture.clone()),
        variants: config.env.variants.clone(),
        options: options.collect(),
        video: None,
    }
}

/// A run under way.
struct Run {
    parts: Parts,
    folder: RunFolder,
    /// Every event so far, for the curve.
    events: Vec<Event>,
    /// Wall and CPU seconds before this process.
    before: (f64, f64),
}

impl Run {
    fn begin(parts: Parts, folder: RunFolder) -> Result<Self, RunError> {
        folder.save(&parts.course.state())?;
        Ok(Run { parts, folder, events: Vec::new(), before: (0.0, 0.0) })
    }

    fn resume(mut parts: Parts, mut folder: RunFolder, reporter: &mut Reporter) -> Result<Self, RunError> {
        let bad =
            |folder: &RunFolder, why: String| RunError::BadRun { folder: folder.path().to_path_buf(), why };
        let Some((checkpoint, notes)) = folder.latest()? else {
            reporter.note(&format!("{} was stopped before it began: starting", folder.path().display()));
            return Run::begin(parts, folder);
        };
        for note in notes {
            reporter.note(&format!("passing over a broken checkpoint: {note}"));
        }
        if checkpoint.version != env!("CARGO_PKG_VERSION") {
            reporter.note(&format!(
                "the run was begun by version {}, this is {}: it goes on, but may end with other digits",
                checkpoint.version,
                env!("CARGO_PKG_VERSION")
            ));
        }
        parts.course.restore(&checkpoint.state).map_err(|error| {
            bad(&folder, format!("{error}; train anew with `foveate train --config` and its config.toml"))
        })?;
        folder.cut_log(checkpoint.lines)?;
        let mut events = Vec::new();
        let mut before = (0.0, 0.0);
        for (number, text) in folder.read_log()?.iter().enumerate() {
            let line: LogLine = serde_json::from_str(text).map_err(|error| {
                bad(
                    &folder,
                    format!("log.jsonl line {}: {error}; move the file away to go on without it", number + 1),
                )
            })?;
            before = (line.seconds, line.cpu_seconds);
            reporter.before(&line.event);
            events.push(line.event);
        }
        if let Some(Event::Report { summary, .. }) = events.last() {
            reporter.note(&format!(
                "this run is finished: {:.1} ± {:.1} over {} tracks that nothing was chosen on",
                summary.mean, summary.std, summary.n
            ));
        } else {
            reporter.note(&format!(
                "going on with {} from generation {}",
                folder.path().display(),
                parts.course.generation()
            ));
        }
        Ok(Run { parts, folder, events, before })
    }

    fn drive(mut self, reporter: &mut Reporter, stop: &Stop) -> Result<Outcome, RunError> {
        let (wall, cpu) = (Wall::start(), ProcessCpu::start());
        let mut saved_at = Duration::ZERO;
        let Parts { env, agent, workers, .. } = &self.parts;
        let whole = crate::rollout::Rules::WHOLE;
        let mut workers = Workers::new(&**env, &**agent, *workers, whole, stop.clone());
        let mut results = Vec::new();
        while let Some(task) = self.parts.course.task() {
            workers.set_rules(task.rules);
            match workers.evaluate(&task.population, &task.jobs, &mut results) {
                Ok(()) => {}
                Err(EvaluateError::Stopped) => return self.stopped(reporter),
                Err(error) => {
                    self.save_all()?;
                    return Err(error.into());
                }
            }
            let events = self.parts.course.learn(&results)?;
            let mut judged = false;
            for event in events {
                judged |= !matches!(event, Event::Generation { .. });
                let line = LogLine {
                    event,
                    seconds: self.before.0 + wall.elapsed().as_secs_f64(),
                    cpu_seconds: self.before.1 + cpu.elapsed().as_secs_f64(),
                };
                let text = serde_json::to_string(&line)
                    .map_err(|error| RunError::BadRequest { why: format!("log line: {error}") })?;
                self.folder.log(&text)?;
                reporter.event(&line, self.parts.course.steps(), self.parts.course.steps_left());
                self.events.push(line.event);
            }
            let now = wall.elapsed();
            if judged || now.saturating_sub(saved_at) >= self.parts.checkpoint_every {
                saved_at = now;
                self.folder.save(&self.parts.course.state())?;
            }
            if judged {
                self.save_results()?;
            }
            if stop.asked() && !self.parts.course.is_done() {
                return self.stopped(reporter);
            }
        }
        // Also for a run that was done already: whatever a kill left undone is done now.
        self.save_all()?;
        let report = self.events.iter().rev().find(|e| matches!(e, Event::Report { .. })).cloned();
        reporter
            .note(&format!("the best weights are {}", self.folder.path().join("best.safetensors").display()));
        Ok(Outcome { folder: self.folder.path().to_path_buf(), report })
    }

    fn stopped(self, reporter: &mut Reporter) -> Result<Outcome, RunError> {
        self.save_all()?;
        let folder = self.folder.path().to_path_buf();
        reporter.note(&format!("stopped; `foveate train --resume {}` goes on", folder.display()));
        Ok(Outcome { folder, report: None })
    }

    fn save_all(&self) -> Result<(), RunError> {
        self.folder.save(&self.parts.course.state())?;
        self.save_results()
    }

    /// Weights and curve: everything that can be made again from a checkpoint and the log.
    fn save_results(&self) -> Result<(), RunError> {
        let Parts { course, save, title, .. } = &self.parts;
        let path = self.folder.path();
        if let Some((best, generation)) = course.best_weights() {
            save(&path.join("best.safetensors"), &best, generation)?;
        }
        save(&path.join("last.safetensors"), &course.last_weights(), course.generation())?;
        atomic::write(path.join("curve.svg"), curve::svg(title, &self.events))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::{Command, Stdio};
    use std::{fs, thread};

    use super::*;
    use crate::course::FreshWeights;
    use crate::progress::Style;
    use crate::recipe::{Init, Interval, Recipe, Selection, Stage};
    use crate::toy::{ToyWorld, toy_agent};

    fn recipe() -> Recipe {
        let stage = Stage { starts: 2, ..Stage::new("heats", 2500).with("population", 6).with("sigma", 0.3) };
        Recipe {
            algorithm: "rank-es".into(),
            max_steps: 50,
            init: Init::Torch,
            selection: Selection {
                every: Interval::Steps(900),
                tracks: 4,
                finalists: 2,
                final_tracks: 5,
                reevaluate: 1,
                report_tracks: 6,
                evaluation_tracks: 3,
                evaluation_every: Some(2),
            },
            stages: vec![
                stage.clone(),
                Stage { name: "learn".into(), starts: 1, tracks: 2, ..stage.with("averaging", 0.5) },
            ],
        }
    }

    fn save_flat(path: &Path, weights: &[f32], generation: u64) -> Result<(), RunError> {
        atomic::write(path, format!("{generation} {weights:?}"))
    }

    fn parts(world: ToyWorld, workers: usize) -> Parts {
        let fresh: FreshWeights = Box::new(|seed| {
            let mut rng = seed.rng();
            (0..3).map(|_| rng.uniform(-0.5, 0.5) as f32).collect()
        });
        let agent = toy_agent(0.0);
        Parts {
            course: Course::new(recipe(), 4, fresh).expect("fine"),
            workers,
            title: "toy".into(),
            checkpoint_every: Duration::ZERO,
            save: Box::new(save_flat),
            env: Box::new(world),
            agent: Box::new(agent),
        }
    }

    fn silent() -> Reporter {
        Reporter::new(Style::Silent, Box::new(std::io::sink()))
    }

    fn begin(folder: &Path, world: ToyWorld, workers: usize, stop: &Stop) -> Result<Outcome, RunError> {
        let runs = folder.parent().expect("it has one");
        let name = folder.file_name().and_then(|n| n.to_str()).expect("a name");
        let folder = RunFolder::create_named(runs, name, "seed = 4\n", "{}")?;
        Run::begin(parts(world, workers), folder)?.drive(&mut silent(), stop)
    }

    fn go_on(folder: &Path, workers: usize) -> Result<Outcome, RunError> {
        let folder = RunFolder::open(folder)?;
        Run::resume(parts(ToyWorld::default(), workers), folder, &mut silent())?
            .drive(&mut silent(), &Stop::default())
    }

    /// Everything in the folder that must not depend on how the run went: weights, state, and the log without times.
    fn digits(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let open = RunFolder::open(folder).expect("a run");
        let (checkpoint, notes) = open.latest().expect("whole").expect("there is one");
        assert_eq!(notes, [""; 0]);
        let events: Vec<String> = open
            .read_log()
            .expect("readable")
            .iter()
            .map(|line| {
                let line: LogLine = serde_json::from_str(line).expect("a log line");
                serde_json::to_string(&line.event).expect("plain")
            })
            .collect();
        let mut digits = BTreeMap::from([
            ("log".to_owned(), events.join("\n").into_bytes()),
            ("state".to_owned(), format!("{:?} {}", checkpoint.state, checkpoint.lines).into_bytes()),
        ]);
        for name in ["best.safetensors", "last.safetensors", "config.toml", "curve.svg"] {
            digits.insert(name.to_owned(), fs::read(folder.join(name)).expect("it is there"));
        }
        digits
    }

    #[track_caller]
    fn check_same(folder: &Path, expect: &BTreeMap<String, Vec<u8>>, what: &str) {
        let digits = digits(folder);
        for (name, bytes) in expect {
            assert!(digits[name] == *bytes, "{what}: {name} differs");
        }
    }

    #[test]
    fn the_digits_do_not_depend_on_the_workers() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let one = dir.path().join("one");
        let outcome = begin(&one, ToyWorld::default(), 1, &Stop::default()).expect("fine");
        assert!(matches!(outcome.report, Some(Event::Report { .. })));
        for workers in [2, 3] {
            let other = dir.path().join(workers.to_string());
            assert_eq!(
                begin(&other, ToyWorld::default(), workers, &Stop::default()).expect("fine").report,
                outcome.report
            );
            check_same(&other, &digits(&one), "workers");
        }
        // A run that is done is done, and says so again.
        assert_eq!(go_on(&one, 1).expect("fine").report, outcome.report);
    }

    /// The process that [`a_run_killed_at_any_moment_ends_with_the_same_bytes`] kills.
    #[test]
    #[ignore = "part of another test"]
    fn a_child_that_trains() {
        let Ok(folder) = std::env::var("FOVEATE_TEST_RUN") else { return };
        let workers = std::env::var("FOVEATE_TEST_WORKERS").map_or(1, |n| n.parse().expect("a number"));
        let folder = PathBuf::from(folder);
        let outcome = if folder.exists() {
            go_on(&folder, workers)
        } else {
            begin(&folder, ToyWorld::default(), workers, &Stop::default())
        };
        outcome.expect("fine");
    }

    #[test]
    fn a_run_killed_at_any_moment_ends_with_the_same_bytes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let straight = dir.path().join("straight");
        begin(&straight, ToyWorld::default(), 1, &Stop::default()).expect("fine");
        let log_len = |folder: &Path| fs::metadata(folder.join("log.jsonl")).map_or(0, |about| about.len());
        let (expect, whole) = (digits(&straight), log_len(&straight));

        let killed = dir.path().join("killed");
        let mut rng = foveate_core::Seed::root(1).rng();
        let mut kills = 0;
        loop {
            // Killed somewhere in the next fifth of the run, by its own measure: machines differ in speed. A resume
            // first cuts the log back, so the length to wait for is counted from zero.
            let until = log_len(&killed) + (rng.uniform(0.0, 0.2) * whole as f64) as u64;
            let mut child = Command::new(std::env::current_exe().expect("this test"))
                .args(["train::tests::a_child_that_trains", "--exact", "--ignored"])
                .env("FOVEATE_TEST_RUN", &killed)
                .env("FOVEATE_TEST_WORKERS", (1 + kills % 3).to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("this test can run itself");
            while log_len(&killed) <= until && child.try_wait().expect("our child").is_none() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_micros(rng.below(4000)));
            // SIGKILL: no handler, no destructor.
            child.kill().expect("our child");
            if child.wait().expect("our child").success() {
                break;
            }
            kills += 1;
            assert!(kills < 100, "it never ends");
        }
        assert!(kills >= 3, "killed {kills} times only");
        check_same(&killed, &expect, "killed");
    }

    #[test]
    fn a_polite_stop_leaves_a_checkpoint_and_goes_on() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let straight = dir.path().join("straight");
        begin(&straight, ToyWorld::default(), 1, &Stop::default()).expect("fine");
        let stopped = dir.path().join("stopped");
        let stop = Stop::default();
        stop.ask();
        let outcome = begin(&stopped, ToyWorld::default(), 2, &stop).expect("a stop is no error");
        assert_eq!(outcome.report, None);
        go_on(&stopped, 2).expect("fine");
        check_same(&stopped, &digits(&straight), "stopped");
    }

    #[test]
    fn a_failing_rollout_loses_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (straight, failed) = (dir.path().join("straight"), dir.path().join("failed"));
        begin(&straight, ToyWorld::default(), 1, &Stop::default()).expect("fine");
        // The track of the fifth generation.
        let mut course = parts(ToyWorld::default(), 1).course;
        let mut seed = 0;
        for _ in 0..5 {
            let task = course.task().expect("a generation");
            seed = task.jobs[0].env_seed;
            let result = foveate_core::EpisodeResult { steps: 1, ..Default::default() };
            course.learn(&vec![result; task.jobs.len()]).expect("fine");
        }
        let error = begin(&failed, ToyWorld::panicking(seed, 3), 2, &Stop::default()).expect_err("it panics");
        let said = error.to_string();
        assert!(said.contains(&format!("genome 0, episode 0 (seed {seed}), step 3: panicked")), "{said}");
        go_on(&failed, 1).expect("fine");
        check_same(&failed, &digits(&straight), "failed");
    }

    #[test]
    fn the_real_parts_fit_together() {
        let sets = [
            "env.picture=\"fast\"",
            "recipe.max_steps=30",
            "recipe.selection={every=1000,tracks=2,finalists=1,final_tracks=2,report_tracks=3}",
            "recipe.stage=[{name=\"only\",steps=100,population=4,sigma=0.1,learning_rate=1.0}]",
            "workers=2",
        ];
        let config = TrainConfig::load("laptop", None, &sets).expect("right");
        let dir = tempfile::tempdir().expect("a temporary folder");
        let request = TrainRequest { config, runs: dir.path().join("runs"), name: None };
        let outcome = run(&request, &mut silent(), &Stop::default()).expect("fine");
        assert_eq!(outcome.folder, dir.path().join("runs/car-racing"));
        let again = resume(&outcome.folder, Some(1), &mut silent(), &Stop::default()).expect("fine");
        assert_eq!(again, outcome);
        for file in
            ["about.json", "config.toml", "log.jsonl", "curve.svg", "best.safetensors", "last.safetensors"]
        {
            assert!(outcome.folder.join(file).is_file(), "{file}");
        }
    }
}
