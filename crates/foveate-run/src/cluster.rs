//! Rollouts on other machines.
//!
//! A run sends [`Work`] to a [`Cluster`] in batches of jobs, and each of its machines has a [`ClusterWorker`] that runs
//! them. What travels is bytes: a setup (world, agent, teacher) once per worker, the weights once per piece of work, batches,
//! and their answers. A batch is a function of these bytes alone. So it may run on any machine, again after a machine is
//! lost, or on two machines at once, of which the first answer counts: the result is the same, to the bit, as that of
//! [`Workers`] on one machine.
//!
//! How bytes reach machines, how lost machines are noticed and replaced, is the cluster's own affair.
//!
//! # What travels
//!
//! Setup, batch and answer are `MessagePack` with names of fields; weights are `rows`, `columns` (both u64) and `rows` ×
//! `columns` f32, all little-endian. Every message is checked as input from outside is. The setup holds the version of the
//! program with the hash of its sources: a worker of another build refuses it, because its results could differ.

use foveate_core::episode::EpisodeRules;
use foveate_core::{
    AgentSetup, EvaluateError, Executor, Experience, FailedJob, Population, Purpose, Record, RolloutJob,
    Setup, Work,
};
use serde::{Deserialize, Serialize};

use crate::VERSION;
use crate::config::TrainConfig;
use crate::error::RunError;
use crate::teacher;
use crate::tensors::TensorFile;
use crate::weights::AgentFile;
use crate::workers::{Stop, Workers};

/// Batches per worker and piece of work. Several, so that a worker whose batches are short takes more of them.
const BATCHES_PER_WORKER: usize = 4;

/// Batches of a piece of work at most, unless there are more workers. Each costs the run's own process half a
/// millisecond: with more of them that process, not the workers, would set the pace.
const MAX_BATCHES: usize = 1024;

/// Other machines that run batches.
///
/// An executor calls [`Cluster::open`] once, then for each piece of work [`Cluster::begin`] and, until all answers are
/// there, [`Cluster::wait`].
pub trait Cluster: Send {
    /// Gives every worker, also those that join later, its setup: see [`ClusterWorker::new`].
    ///
    /// # Errors
    /// A sentence: why no worker can be had, and what to do.
    fn open(&mut self, setup: &[u8]) -> Result<(), String>;

    /// How many workers there are now, at least 1. It decides the size of batches, never a result.
    fn workers(&mut self) -> usize;

    /// Begins a piece of work. What is left of the last one is dropped.
    ///
    /// # Errors
    /// A sentence: why, and what to do.
    fn begin(&mut self, weights: Vec<u8>, batches: Vec<Vec<u8>>) -> Result<(), String>;

    /// Waits for an answer, a fraction of a second at most: the number of its batch and [`ClusterWorker::run`]'s bytes;
    /// `None` when there is none yet. A batch may be answered more than once.
    ///
    /// # Errors
    /// A sentence: why no answer will come, and what to do.
    fn wait(&mut self) -> Result<Option<(usize, Vec<u8>)>, String>;

    /// Drops the piece of work in progress: the run was asked to stop.
    fn cancel(&mut self);
}

/// The parts of a run that a worker needs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterSetup {
    program: String,
    setup: Setup,
    /// The weight file of the world's teacher, if it has one.
    teacher: Option<Vec<u8>>,
}

/// A part of some [`Work`], without its weights.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch {
    purpose: Purpose,
    jobs: Vec<RolloutJob>,
    rules: EpisodeRules,
    record: Record,
    epsilon: f64,
    draw_actions: bool,
}

/// What comes back of a batch. A failed job ends only its own batch.
type Answer = Result<Experience, FailedJob>;

/// The executor of a run on a cluster.
pub(crate) struct ClusterExecutor {
    cluster: Box<dyn Cluster>,
    stop: Stop,
}

impl ClusterExecutor {
    /// Opens `cluster` for runs of `config`.
    ///
    /// # Errors
    /// When the teacher's weights cannot be read, or no worker can be had.
    pub(crate) fn open(
        mut cluster: Box<dyn Cluster>,
        config: &TrainConfig,
        stop: Stop,
    ) -> Result<Self, RunError> {
        let TrainConfig { env, agent, recipe, .. } = config;
        let agent = AgentSetup { name: agent.name.clone(), config: agent.settings()?.to_string() };
        let teacher = recipe.teacher.as_ref().map(teacher::load).transpose()?.map(|file| file.to_bytes());
        let setup = Setup { world: (&env.request()?).into(), agent };
        let setup = ClusterSetup { program: VERSION.into(), setup, teacher };
        cluster.open(&pack(&setup)).map_err(lost)?;
        Ok(ClusterExecutor { cluster, stop })
    }

    pub(crate) fn workers(&mut self) -> usize {
        self.cluster.workers().max(1)
    }
}

impl Executor for ClusterExecutor {
    fn execute(&mut self, work: &Work, experience: &mut Experience) -> Result<(), EvaluateError> {
        self.stop.begin(work.jobs.len());
        let size = batch_size(work.jobs.len(), self.workers());
        let parts: Vec<&[RolloutJob]> = work.jobs.chunks(size).collect();
        let mut answers: Vec<Option<Answer>> = parts.iter().map(|_| None).collect();
        let batches = parts.iter().map(|jobs| pack(&Batch::of(work, jobs))).collect();
        self.cluster.begin(weights_to_bytes(&work.weights), batches).map_err(lost)?;
        let mut missing = parts.len();
        while missing > 0 {
            if self.stop.asked() {
                self.cluster.cancel();
                return Err(EvaluateError::Stopped);
            }
            let Some((index, bytes)) = self.cluster.wait().map_err(lost)? else { continue };
            let Some(answer @ None) = answers.get_mut(index) else { continue };
            *answer = Some(Batch::of(work, parts[index]).answer(&bytes).map_err(lost)?);
            missing -= 1;
            parts[index].iter().for_each(|_| self.stop.one_more());
        }
        *experience = Experience::default();
        for answer in answers.into_iter().flatten() {
            // Batches and their jobs are in the order of the work, so this is the first failed job of all.
            let Experience { episodes, recordings, .. } = answer.map_err(FailedJob::into_error)?;
            experience.episodes.extend(episodes);
            experience.recordings.extend(recordings);
        }
        Ok(())
    }
}

impl Batch {
    fn of(work: &Work, jobs: &[RolloutJob]) -> Self {
        let Work { purpose, rules, record, epsilon, draw_actions, .. } = *work;
        Batch { purpose, jobs: jobs.to_vec(), rules, record, epsilon, draw_actions }
    }

    fn with(self, weights: Population) -> Work {
        let Batch { purpose, jobs, rules, record, epsilon, draw_actions } = self;
        Work { purpose, weights, jobs, rules, record, epsilon, draw_actions }
    }

    /// Reads the answer to this batch.
    fn answer(self, bytes: &[u8]) -> Result<Answer, String> {
        let answer: Answer = unpack("an answer", bytes)?;
        if let Ok(experience) = &answer {
            experience.check(&self.with(Population::zeros(0, 0))).map_err(|error| error.to_string())?;
        }
        Ok(answer)
    }
}

/// Runs batches on a machine of a cluster, one job after the other on the calling thread.
pub struct ClusterWorker(Workers);

impl ClusterWorker {
    /// Builds world and agent of a setup, as [`Cluster::open`] hands it out. **A setup may name a world that runs code of the
    /// user's**: take it only from the run's own machine.
    ///
    /// # Errors
    /// When the bytes are no setup, come from another build, or world or agent cannot be built here.
    pub fn new(setup: &[u8]) -> Result<Self, RunError> {
        let refused = |why: String| RunError::BadRequest { why };
        let ClusterSetup { program, setup, teacher } = unpack("a setup", setup).map_err(refused)?;
        if program != VERSION {
            return Err(refused(format!(
                "the run is one of Foveate {program}, this worker is {VERSION}; install the same build on all machines"
            )));
        }
        let teacher = match teacher {
            Some(bytes) => {
                let file = TensorFile::from_bytes(&bytes).map_err(|error| error.to_string());
                let file =
                    file.and_then(|file| AgentFile::from_tensors(file).map_err(|error| error.to_string()));
                Some(file.map_err(|why| refused(format!("the teacher's weights: {why}")))?)
            }
            None => None,
        };
        let env = teacher::taught(setup.world.into(), teacher.as_ref())?;
        let config = serde_json::from_str(&setup.agent.config)
            .map_err(|error| refused(format!("the agent's settings: {error}")))?;
        let agent = foveate_agents::registry::make(&setup.agent.name, &config)?;
        Ok(ClusterWorker(Workers::new(&*env, &*agent, 1, Stop::default())))
    }

    /// Runs a batch; the answer for [`Cluster::wait`]. A failed job is part of the answer.
    ///
    /// # Errors
    /// When the bytes are no weights or no batch, or do not fit each other.
    pub fn run(&mut self, weights: &[u8], batch: &[u8]) -> Result<Vec<u8>, RunError> {
        let refused = |why: String| RunError::BadRequest { why };
        let batch: Batch = unpack("a batch", batch).map_err(refused)?;
        let work = batch.with(weights_of_bytes(weights).map_err(refused)?);
        work.check().map_err(|error| refused(error.to_string()))?;
        let mut experience = Experience::default();
        let answer: Answer = match self.0.execute(&work, &mut experience) {
            Ok(()) => Ok(experience),
            Err(error) => match error.failed() {
                Some(failed) => Err(failed),
                None => return Err(error.into()),
            },
        };
        Ok(pack(&answer))
    }
}

/// How many jobs a batch has.
fn batch_size(jobs: usize, workers: usize) -> usize {
    let per_worker = (MAX_BATCHES / workers).clamp(1, BATCHES_PER_WORKER);
    jobs.div_ceil(workers * per_worker).max(1)
}

fn lost(what: String) -> EvaluateError {
    EvaluateError::Executor { what }
}

fn pack(value: &impl Serialize) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("plain values with names of fields")
}

fn unpack<T: for<'de> Deserialize<'de>>(what: &str, bytes: &[u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes)
        .map_err(|error| format!("what arrived is not {what} ({error}); use one build on all machines"))
}

fn weights_to_bytes(weights: &Population) -> Vec<u8> {
    let (rows, columns) = (weights.len(), weights.params());
    let mut bytes = Vec::with_capacity(16 + 4 * rows * columns);
    bytes.extend((rows as u64).to_le_bytes());
    bytes.extend((columns as u64).to_le_bytes());
    for row in 0..rows {
        bytes.extend(weights.genome(row).iter().flat_map(|weight| weight.to_le_bytes()));
    }
    bytes
}

fn weights_of_bytes(bytes: &[u8]) -> Result<Population, String> {
    let wrong = || {
        format!(
            "{} bytes of weights are not what their head says; use one build on all machines",
            bytes.len()
        )
    };
    let number = |part: &[u8]| part.try_into().ok().map(u64::from_le_bytes);
    let (head, values) = bytes.split_at_checked(16).ok_or_else(wrong)?;
    let (rows, columns) = head.split_at(8);
    let (Some(rows), Some(columns)) = (number(rows), number(columns)) else { return Err(wrong()) };
    // What there is bounds what is allocated.
    if rows.checked_mul(columns).and_then(|n| n.checked_mul(4)) != Some(values.len() as u64) {
        return Err(wrong());
    }
    let (rows, columns) = (rows as usize, columns as usize);
    let mut weights = Population::zeros(rows, columns);
    for (row, values) in values.chunks_exact((4 * columns).max(1)).enumerate() {
        for (weight, value) in weights.genome_mut(row).iter_mut().zip(values.as_chunks::<4>().0) {
            *weight = f32::from_le_bytes(*value);
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests;
