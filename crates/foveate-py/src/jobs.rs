//! Long jobs: evaluation, robustness tests, reports, films, training. They run without the interpreter's lock and end on Ctrl-C.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foveate::core::{EnvSpec, TensorShape};
use foveate::jobs::{Calibrate, Evaluate, Explain, Export, Stress, Train, Watch};
use foveate::run::RunError;
use foveate::run::cluster::Cluster;
use foveate::run::explain::{ClaimOfMoments, OwnAgent};
use foveate::run::interrupt::supervised;
use foveate::run::stress::{Progress, plot};
use foveate::run::train::{ResumeRequest, resume_on};
use foveate::run::trust::FileWorld;
use foveate::run::worlds;
use foveate::{EnvRequest, LoadedAgent, Player, Stop, WORLDS, WorldSpec};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::json;

use crate::agent::Agent;
use crate::cluster::PythonCluster;
use crate::errors::{Kind, caught, of_run, raised};
use crate::given::Given;
use crate::policy::{Functions, Network, PythonClaim, PythonPolicy, Raised, StateHooks};
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

/// A network of Python: names and shapes of its tensors, all weights, what puts others in.
type OwnNetwork<'py> = (Vec<(String, Vec<usize>)>, PyReadonlyArray1<'py, f32>, Py<PyAny>);

/// A policy of Python: action, attention, begin of an episode, reading and setting its state, whether its scores are logits, name,
/// its network.
type OwnPolicy<'py> = (
    Py<PyAny>,
    Option<Py<PyAny>>,
    Option<Py<PyAny>>,
    Option<StateHooks>,
    bool,
    String,
    Option<OwnNetwork<'py>>,
);

/// What is claimed of a policy, by name: functions from a list of observations to a list of maps.
type Claims = Vec<(String, Py<PyAny>)>;

/// Who acts.
enum Actor {
    /// An [`Agent`].
    File(Box<Player>),
    /// Functions of Python.
    Own(Box<OwnActor>),
}

/// Functions of Python in a world.
struct OwnActor {
    name: String,
    policy: PythonPolicy,
    world: EnvRequest,
    /// What they raise.
    raised: Raised,
}

impl Actor {
    /// `who` is an [`Agent`], or a tuple of functions, see [`OwnPolicy`].
    fn of(py: Python<'_>, who: &Bound<'_, PyAny>, asked: &WorldSpec) -> PyResult<Self> {
        if let Ok(agent) = who.cast::<Agent>() {
            let LoadedAgent { file, source, world } = agent.get().loaded.clone();
            let world = FileWorld::new(world, &*source).accept(asked).map_err(|error| of_run(py, &error))?;
            return Ok(Actor::File(Box::new(LoadedAgent { file, source, world }.into())));
        }
        let (act, attend, begin, state, logits, name, network): OwnPolicy<'_> =
            who.extract().map_err(|_| PyTypeError::new_err("neither an agent nor functions of a policy"))?;
        let network = network.map(|(tensors, own, set)| {
            let own: Arc<[f32]> = own.as_array().iter().copied().collect();
            let tensors = tensors.into_iter().map(|(name, shape)| TensorShape { name, shape }).collect();
            Network { tensors, loaded: Mutex::new(Arc::clone(&own)), own, set }
        });
        let world = asked.request();
        let spec: EnvSpec =
            caught(py, || py.detach(|| worlds::shape(&world)))?.map_err(|error| of_run(py, &error))?;
        let sensors = WORLDS.get(&spec.id).map_or(&[][..], |world| world.sensors);
        let raised = Raised::default();
        let functions = Functions { act, attend, begin, state, logits, network };
        let policy = PythonPolicy::new(functions, &spec, sensors, Arc::clone(&raised));
        Ok(Actor::Own(Box::new(OwnActor { name, policy, world, raised })))
    }

    fn raised(&self) -> Option<Raised> {
        match self {
            Actor::File(_) => None,
            Actor::Own(own) => Some(Arc::clone(&own.raised)),
        }
    }

    /// The agent in its world, with what is claimed of a function, which may be asked so many `questions` beside playing.
    fn player(self, claims: Claims, questions: Option<usize>) -> Player {
        let OwnActor { name, policy, world, raised } = match self {
            Actor::File(player) => return *player,
            Actor::Own(own) => *own,
        };
        let claim = |(name, function): (String, Py<PyAny>)| {
            let (mapped, raised, of) = (policy.mapped().clone(), Arc::clone(&raised), policy.functions());
            Arc::new(PythonClaim { name, function, mapped, raised, of }) as Arc<dyn ClaimOfMoments + Send>
        };
        let claims = claims.into_iter().map(claim).collect();
        let (has_state, has_attention) = (policy.has_state(), policy.has_attention());
        let own = OwnAgent { has_state, has_attention, questions, claims };
        let mut player = Player::own(name, Box::new(policy), world);
        player.own = own;
        player
    }
}

fn as_text(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| raised(py, Kind::Foveate, error.to_string()))
}

/// Evaluates: the report of `foveate eval --json` as text.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    who: &Bound<'_, PyAny>,
    job: Given<Evaluate>,
    listener: Listener,
) -> PyResult<String> {
    let actor = Actor::of(py, who, &job.0.world)?;
    let (raised, player) = (actor.raised(), actor.player(vec![], None));
    let report = run(py, raised.as_slice(), listener.as_ref(), |stop, events| {
        events.count(stop);
        job.0.run(&player, stop)
    })?;
    as_text(py, &report)
}

/// A robustness test: the table of `foveate stress --json` as text, as Markdown, its plot, and what failed. What a function raised
/// is the exception of the first row that failed.
#[pyfunction]
pub(crate) fn stress(
    py: Python<'_>,
    who: Vec<Bound<'_, PyAny>>,
    job: Given<Stress>,
    listener: Listener,
) -> PyResult<(String, String, String, Option<String>)> {
    let (mut players, mut raised_by) = (vec![], vec![]);
    for who in &who {
        let actor = Actor::of(py, who, &job.0.world)?;
        let (raised, player) = (actor.raised(), actor.player(vec![], None));
        players.push(player);
        raised_by.extend(raised);
    }
    let (table, _) = run(py, &[], listener.as_ref(), |stop, events| {
        events.count(stop);
        job.0.run(&players, stop, &mut |Progress { done, of, agent, condition, .. }| {
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

/// A report in a folder: its results as text.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    who: &Bound<'_, PyAny>,
    claims: Claims,
    questions: Option<usize>,
    job: Given<Explain>,
    listener: Listener,
) -> PyResult<String> {
    let actor = Actor::of(py, who, &job.0.world)?;
    let (raised, player) = (actor.raised(), actor.player(claims, questions));
    let report = run(py, raised.as_slice(), listener.as_ref(), |stop, events| {
        events.count(stop);
        job.0.run(&player, stop, &mut |now| {
            events.add_timed(json!({ "event": "phase", "phase": now.what, "done": now.done }));
        })
    })?;
    as_text(py, &report)
}

/// A comparison of named agents and functions, with the claims of each, in a folder: its results as text, and its table.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    who: Vec<(String, Bound<'_, PyAny>, Claims)>,
    questions: Option<usize>,
    job: Given<Explain>,
    listener: Listener,
) -> PyResult<(String, String)> {
    let (mut players, mut raised_by) = (vec![], vec![]);
    for (name, who, claims) in who {
        let actor = Actor::of(py, &who, &job.0.world)?;
        raised_by.extend(actor.raised());
        let mut player = actor.player(claims, questions);
        player.name = name;
        players.push(player);
    }
    let comparison = run(py, &raised_by, listener.as_ref(), |stop, events| {
        events.count(stop);
        job.0.compare(&players, stop, &mut |now| {
            events.add_timed(json!({ "event": "phase", "phase": now.what, "done": now.done }));
        })
    })?;
    Ok((as_text(py, &comparison)?, comparison.to_string()))
}

/// A calibration: its results as text, and as a table.
#[pyfunction]
pub(crate) fn calibrate(
    py: Python<'_>,
    job: Given<Calibrate>,
    listener: Listener,
) -> PyResult<(String, String)> {
    let done = run(py, &[], listener.as_ref(), |stop, events| {
        events.count(stop);
        job.0.run(stop, &mut |now| {
            events.add_timed(json!({ "event": "phase", "phase": now.what, "done": now.done }));
        })
    })?;
    Ok((as_text(py, &done)?, done.to_string()))
}

/// An agent as a file or a folder for other programs: what `foveate export --json` prints, as text.
#[pyfunction]
pub(crate) fn export(py: Python<'_>, who: &Bound<'_, PyAny>, job: Given<Export>) -> PyResult<String> {
    let player = Actor::of(py, who, &job.0.world)?.player(vec![], None);
    let exported = run(py, &[], None, |stop, _| job.0.run(&player, stop))?;
    as_text(py, &exported)
}

/// A film of an episode in a file: frames, steps, score, whether the world ended it.
#[pyfunction]
pub(crate) fn watch(
    py: Python<'_>,
    who: &Bound<'_, PyAny>,
    job: Given<Watch>,
    listener: Listener,
) -> PyResult<(usize, usize, f64, bool)> {
    let actor = Actor::of(py, who, &job.0.world)?;
    let (raised, player) = (actor.raised(), actor.player(vec![], None));
    let report = run(py, raised.as_slice(), listener.as_ref(), |stop, events| {
        events.count(stop);
        job.0.run(&player, stop, &mut |frames| {
            events.add_timed(json!({ "event": "frame", "done": frames }));
        })
    })?;
    Ok((report.frames, report.steps, report.score, report.ended))
}

/// Trains; returns the folder of the run, and whether it is finished. `cluster` runs the rollouts, see [`PythonCluster`].
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    job: Given<Train>,
    cluster: Option<Py<PyAny>>,
    listener: Listener,
) -> PyResult<(PathBuf, bool)> {
    let result = run(py, &[], listener.as_ref(), |stop, events| {
        job.0.run_on(cluster.map(boxed), &mut OfTraining(events), stop)
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
