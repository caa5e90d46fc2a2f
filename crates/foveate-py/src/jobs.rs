//! Long jobs: evaluation, robustness tests, reports, films, training. They run without the interpreter's lock and end on Ctrl-C.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foveate::core::EnvSpec;
use foveate::run::RunError;
use foveate::run::cluster::Cluster;
use foveate::run::evaluate::{Labels, Seeds, run as run_evaluation};
use foveate::run::explain::run as run_report;
use foveate::run::interrupt::supervised;
use foveate::run::stress::{
    Contender, Progress, StressRequest, Tested, conditions, plot, run as run_stress, severities,
};
use foveate::run::train::{ResumeRequest, resume_on};
use foveate::run::trust::{FileWorld, Trust};
use foveate::run::watch::run as run_film;
use foveate::run::workers::Stop;
use foveate::run::worlds;
use foveate::{EnvRequest, Evaluation, Explanation, Film, TrainOptions, WORLDS};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::json;

use crate::agent::{Agent, PythonPolicy, Raised};
use crate::cluster::PythonCluster;
use crate::errors::{Kind, caught, of_run, raised};
use crate::request::WorldArgs;
use crate::tell::{Events, OfTraining};

/// How often Python's signals are looked at.
pub(crate) const EVERY: Duration = Duration::from_millis(50);

/// Who is told what a job says; `None` for nobody.
type Listener = Option<Py<PyAny>>;

/// Runs `job` without the interpreter's lock. A signal's exception, or one of the listener, asks it to stop, and is then raised.
fn run<T: Send>(
    py: Python<'_>,
    of_policy: &[Raised],
    listener: Option<&Py<PyAny>>,
    job: impl FnOnce(&Stop, &Events) -> Result<T, RunError> + Send,
) -> PyResult<T> {
    let mut signal: Option<PyErr> = None;
    let events = Events::default();
    let mut turn = 0;
    let outcome = caught(py, || {
        py.detach(|| {
            let go_on = &mut || {
                turn += 1;
                let checked = Python::attach(|py| {
                    py.check_signals()?;
                    listener.map_or(Ok(()), |listener| events.tell(py, listener, Some(turn)))
                });
                if let Err(error) = checked {
                    signal.get_or_insert(error);
                }
                signal.is_none()
            };
            supervised(EVERY, go_on, |stop| job(stop, &events))
        })
    })?;
    if let Some(error) = of_policy.iter().find_map(take) {
        return Err(error);
    }
    if let (Some(listener), None) = (listener, &signal) {
        events.tell(py, listener, None)?;
    }
    match (outcome, signal) {
        (_, Some(signal)) => Err(signal),
        (Ok(value), None) => Ok(value),
        (Err(error), None) => Err(of_run(py, &error)),
    }
}

/// Takes what a function of Python raised.
fn take(slot: &Raised) -> Option<PyErr> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Who acts, and in which world.
struct Driver {
    name: String,
    tested: Tested,
    labels: Labels,
    world: EnvRequest,
    raised: Option<Raised>,
}

/// A policy of Python: action, attention, begin of an episode, name.
type Functions = (Py<PyAny>, Option<Py<PyAny>>, Option<Py<PyAny>>, String);

/// `who` is an [`Agent`], or a tuple of functions: action, attention or `None`, begin of an episode or `None`, name.
fn driver(py: Python<'_>, who: &Bound<'_, PyAny>, world: WorldArgs) -> PyResult<Driver> {
    let flags = world.flags();
    if let Ok(agent) = who.cast::<Agent>() {
        let loaded = &agent.get().loaded;
        let noted = FileWorld::new(loaded.world.clone(), &*loaded.source);
        let world = foveate::World::new(flags).request(Some(noted)).map_err(|error| of_run(py, &error))?;
        let (source, tested) = (loaded.source.clone(), Tested::File(loaded.file.clone()));
        let labels = foveate::labels(&world, source.clone());
        return Ok(Driver { name: source, tested, labels, world, raised: None });
    }
    let (act, attend, begin, name): Functions =
        who.extract().map_err(|_| PyTypeError::new_err("neither an agent nor functions of a policy"))?;
    let world = flags.request();
    let spec: EnvSpec =
        caught(py, || py.detach(|| worlds::shape(&world)))?.map_err(|error| of_run(py, &error))?;
    let sensors = WORLDS.get(&spec.id).map_or(&[][..], |world| world.sensors);
    let slot = Raised::default();
    let policy = PythonPolicy::new(act, attend, begin, &spec, sensors, Arc::clone(&slot));
    let tested = Tested::Own(Arc::new(Mutex::new(Box::new(policy))));
    let labels = foveate::labels(&world, name.clone());
    Ok(Driver { name, tested, labels, world, raised: Some(slot) })
}

fn as_text(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| raised(py, Kind::Foveate, error.to_string()))
}

/// Evaluates: the report of `foveate eval --json` as text. `seeds` is a stream's seed and the number of episodes, or, with
/// `each`, the first seed and the number of seeds.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    who: &Bound<'_, PyAny>,
    world: WorldArgs,
    seeds: (u64, usize),
    each: bool,
    workers: usize,
    max_steps: Option<u64>,
    draw_actions: bool,
    listener: Listener,
) -> PyResult<String> {
    let Driver { tested, labels, world, raised, .. } = driver(py, who, world)?;
    let (seed, episodes) = seeds;
    let seeds = if each {
        Seeds::Each(seed..seed.saturating_add(episodes as u64))
    } else {
        Seeds::Stream { seed, episodes }
    };
    let report = run(py, raised.as_slice(), listener.as_ref(), |stop, events| {
        events.count(stop);
        let (env, agent) = (worlds::make(world.clone())?, tested.agent()?);
        let how = Evaluation { seeds, workers, max_steps, draw_actions, stop: stop.clone() };
        run_evaluation(&how.request(&*env, &*agent, &world, labels), stop)
    })?;
    as_text(py, &report)
}

/// A robustness test: the table of `foveate stress --json` as text, as Markdown, its plot, and what failed. What a function raised
/// is the exception of the first row that failed.
#[pyfunction]
pub(crate) fn stress(
    py: Python<'_>,
    who: Vec<Bound<'_, PyAny>>,
    world: WorldArgs,
    rows: (String, String, String, Option<u64>),
    seed: u64,
    episodes: usize,
    workers: usize,
    max_steps: Option<u64>,
    listener: Listener,
) -> PyResult<(String, String, String, Option<String>)> {
    let mut drivers = vec![];
    for who in &who {
        drivers.push(driver(py, who, world.clone())?);
    }
    let Some(first) = drivers.first() else {
        return Err(raised(py, Kind::Option, "there is nothing to evaluate; name an agent"));
    };
    let request = first.world.clone();
    if let Some(other) = drivers.iter().find(|driver| driver.world != request) {
        let message = format!("{} and {} act in different worlds; name one for both", first.name, other.name);
        return Err(raised(py, Kind::Option, message));
    }
    let raised_by: Vec<Raised> = drivers.iter().filter_map(|driver| driver.raised.clone()).collect();
    let agents = drivers
        .into_iter()
        .map(|Driver { name, tested, labels, .. }| Contender { name, tested, source: labels.weights })
        .collect();
    let (variants, shifts, levels, at) = rows;
    let (table, _) = run(py, &[], listener.as_ref(), |stop, events| {
        events.count(stop);
        let levels = severities(&levels)?;
        let conditions = conditions(&request, &variants, &shifts, &levels, at)?;
        let world = request.clone();
        let request =
            StressRequest { world, agents, conditions, seed, episodes, workers, max_steps, folder: None };
        run_stress(&request, stop, &mut |Progress { done, of, agent, condition, .. }| {
            // What a function raised is the error of its row, which is over.
            for slot in &raised_by {
                drop(take(slot));
            }
            events.add_timed(
                json!({ "event": "row", "done": done, "of": of, "agent": agent, "row": condition }),
            );
        })
    })
    .map_err(|error| raised_by.iter().find_map(take).unwrap_or(error))?;
    Ok((as_text(py, &table)?, table.markdown(), plot::overview(&table), table.failed()))
}

/// A report in the folder `out`: its results as text.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    who: &Bound<'_, PyAny>,
    world: WorldArgs,
    size: (u64, usize, usize, usize),
    max_steps: Option<usize>,
    workers: usize,
    out: PathBuf,
    listener: Listener,
) -> PyResult<String> {
    let Driver { tested, labels, world, raised, .. } = driver(py, who, world)?;
    let (seed, episodes, decisions, untrained) = size;
    // Of a function there is no untrained one.
    let untrained = if raised.is_some() { 0 } else { untrained };
    let report = run(py, raised.as_slice(), listener.as_ref(), |stop, events| {
        events.count(stop);
        let (env, agent) = (worlds::make(world)?, tested.agent()?);
        let explanation = Explanation { seed, episodes, decisions, untrained, max_steps, workers, out: &out };
        run_report(&explanation.request(&*env, &*agent, labels), stop, &mut |now| {
            events.add_timed(json!({ "event": "phase", "phase": now.what, "done": now.done }));
        })
    })?;
    as_text(py, &report)
}

/// A film of an episode in the file `out`: frames, steps, score, whether the world ended it.
#[pyfunction]
pub(crate) fn watch(
    py: Python<'_>,
    who: &Bound<'_, PyAny>,
    world: WorldArgs,
    episode: (u64, usize),
    steps: Option<usize>,
    size: Option<(usize, usize)>,
    at: Option<usize>,
    effects: bool,
    out: PathBuf,
    listener: Listener,
) -> PyResult<(usize, usize, f64, bool)> {
    let Driver { tested, labels, world, raised, .. } = driver(py, who, world)?;
    let (seed, episode) = episode;
    let report = run(py, raised.as_slice(), listener.as_ref(), |stop, events| {
        events.count(stop);
        let (env, agent) = (worlds::make(world)?, tested.agent()?);
        let film = Film { seed, episode, steps, size, out: &out, at, effects };
        run_film(&film.request(&*env, &*agent, labels), stop, &mut |frames| {
            events.add_timed(json!({ "event": "frame", "done": frames }));
        })
    })?;
    Ok((report.frames, report.steps, report.score, report.ended))
}

/// Trains; returns the folder of the run, and whether it is finished. `cluster` runs the rollouts, see [`PythonCluster`].
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    world: WorldArgs,
    preset: Option<String>,
    config: Option<PathBuf>,
    steps: Option<u64>,
    set: Vec<String>,
    runs: PathBuf,
    name: Option<String>,
    cluster: Option<Py<PyAny>>,
    listener: Listener,
) -> PyResult<(PathBuf, bool)> {
    let options = TrainOptions { world: world.flags(), preset, config, steps, set, runs, name };
    let result = run(py, &[], listener.as_ref(), |stop, events| {
        foveate::train_on(options, cluster.map(boxed), &mut OfTraining(events), stop)
    })?;
    Ok((result.folder, result.report.is_some()))
}

/// Resumes a run; returns what [`train`] does.
#[pyfunction]
pub(crate) fn resume(
    py: Python<'_>,
    folder: PathBuf,
    workers: Option<usize>,
    trust: bool,
    allow_changes: bool,
    cluster: Option<Py<PyAny>>,
    listener: Listener,
) -> PyResult<(PathBuf, bool)> {
    let trust = if trust { Trust::AnyWorld } else { Trust::NativeWorlds };
    let request = ResumeRequest { folder, workers, videos: None, allow_changes, trust };
    let result = run(py, &[], listener.as_ref(), |stop, events| {
        resume_on(&request, cluster.map(boxed), &mut OfTraining(events), stop)
    })?;
    Ok((result.folder, result.report.is_some()))
}

fn boxed(object: Py<PyAny>) -> Box<dyn Cluster> {
    Box::new(PythonCluster::new(object))
}

/// Says how a process that compiles models starts; it calls [`compile_model`].
#[pyfunction]
pub(crate) fn compile_models_with(command: Vec<std::ffi::OsString>) {
    foveate::registry::compiler::start_with(command);
}

/// Compiles the model that another process asked for with these arguments, and ends this process.
#[pyfunction]
pub(crate) fn compile_model(arguments: Vec<std::ffi::OsString>) {
    foveate::registry::compiler::serve(&arguments);
}

/// Runs the command with these arguments; returns its exit code. `clusters` makes the cluster at an address.
#[pyfunction]
pub(crate) fn command(
    py: Python<'_>,
    arguments: Vec<std::ffi::OsString>,
    clusters: Py<PyAny>,
) -> PyResult<u8> {
    let clusters = move |address: &str| {
        Python::attach(|py| match clusters.call1(py, (address,)) {
            Ok(object) => Ok(boxed(object)),
            Err(error) => Err(error.value(py).to_string()),
        })
    };
    caught(py, || py.detach(|| foveate_cli::run(Some(arguments), Some(&clusters))))
}
