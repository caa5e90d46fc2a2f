//! Parallel rollouts on all cores.
//!
//! Every worker owns a world and an agent for its whole life. A free worker takes the job with the longest
//! expected length; a generation ends when its last rollout ends. The caller's own thread is the first
//! worker, the others wait for work as long as the [`Workers`] live, and a batch like the previous one
//! allocates nothing. The result of a job depends only on the job: it is the same for any number of workers,
//! in any order.
//!
//! # Remote executors
//!
//! Work and experience are plain values, so an [`Executor`] may send them to other machines as bytes. In this
//! example another thread stands for the machine; the results are bit-identical:
//!
//! ```
//! use foveate_agents::registry::{Init, initial_params, make};
//! use foveate_core::episode::EpisodeRules;
//! use foveate_core::{
//!     AgentSetup, EvaluateError, Executor, Experience, FailedJob, Order, Population, Purpose, Record, RolloutJob, Seed,
//!     Setup, Work,
//! };
//! use foveate_envs::registry::EnvRequest;
//! use foveate_run::workers::{Stop, Workers};
//! use foveate_run::worlds;
//! use serde_json::{Value, from_slice, from_str, to_vec};
//!
//! /// What the other machine runs: from bytes to bytes.
//! fn elsewhere(order: &[u8]) -> Vec<u8> {
//!     let order: Order = from_slice(order).expect("an order");
//!     order.check().expect("an order of this version");
//!     let Setup { world, agent } = order.setup;
//!     let world = worlds::make(world.into()).expect("a world of this name");
//!     let agent = make(&agent.name, &from_str(&agent.config).expect("JSON")).expect("an agent of this name");
//!     let mut experience = Experience::default();
//!     let done = Workers::new(&*world, &*agent, 2, Stop::default()).execute(&order.work, &mut experience);
//!     to_vec(&done.map(|()| experience).map_err(|error| error.failed())).expect("plain values")
//! }
//!
//! struct Remote(Setup);
//!
//! impl Executor for Remote {
//!     fn execute(&mut self, work: &Work, experience: &mut Experience) -> Result<(), EvaluateError> {
//!         let order = to_vec(&Order::new(self.0.clone(), work.clone())).expect("plain values");
//!         let answer = std::thread::spawn(move || elsewhere(&order)).join().expect("the machine is up");
//!         let answer: Result<Experience, Option<FailedJob>> = from_slice(&answer).expect("an answer");
//!         *experience = answer.map_err(|failed| failed.map_or(EvaluateError::Stopped, FailedJob::into_error))?;
//!         experience.check(work).expect("one result for each job");
//!         Ok(())
//!     }
//! }
//!
//! let request = EnvRequest { id: "car-racing".into(), ..EnvRequest::default() };
//! let agent = AgentSetup { name: "attention-agent".into(), config: "{}".into() };
//! let mut remote = Remote(Setup { world: (&request).into(), agent });
//! let (world, agent) = (worlds::make(request)?, make("attention-agent", &Value::Null)?);
//! let mut here = Workers::new(&*world, &*agent, 1, Stop::default());
//!
//! let weights = initial_params("attention-agent", &Value::Null, Init::Torch, Seed::root(1))?;
//! for record in [Record::Returns, Record::Transitions { unroll: 5 }] {
//!     let work = Work {
//!         purpose: Purpose::Training,
//!         weights: Population::of(&weights),
//!         jobs: (0..3).map(|episode| RolloutJob { genome: 0, episode, env_seed: 40 + episode as u64 }).collect(),
//!         rules: EpisodeRules { max_steps: 12, patience: None },
//!         record,
//!         epsilon: 0.0,
//!         draw_actions: false,
//!     };
//!     let (mut ours, mut theirs) = (Experience::default(), Experience::default());
//!     here.execute(&work, &mut ours)?;
//!     remote.execute(&work, &mut theirs)?;
//!     assert_eq!(ours, theirs);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use foveate_core::episode::{Episode, EpisodeRules};
use foveate_core::{
    ActMode, Agent, Env, EpisodeResult, EvaluateError, Executor, Experience, Record, Recording, RolloutJob,
    WORK_VERSION, Work, run_episode, set_weights,
};
use foveate_train::JobQueue;

use crate::clock::Wall;
use crate::error::RunError;
use crate::job_cost::JobCost;
use crate::pool::{Pool, lock, message};

/// A flag that requests an early stop, and a progress counter: clones share both. A signal handler may set
/// the flag; only the rollouts in progress are lost.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Signals>);

#[derive(Debug, Default)]
struct Signals {
    asked: AtomicBool,
    done: AtomicUsize,
    of: AtomicUsize,
    /// Completed pieces of all batches.
    all: AtomicUsize,
    /// What the job costs, with the time since it was said and the share that is done, unless pieces tell.
    cost: Mutex<Option<(JobCost, Wall, Option<f64>)>>,
}

impl Stop {
    /// Requests a stop from everyone who holds a clone.
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
    }

    /// Returns whether a stop was requested.
    pub fn asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Completed jobs and total jobs of the current batch; approximate, for display.
    pub fn done(&self) -> (usize, usize) {
        (self.0.done.load(Ordering::Relaxed), self.0.of.load(Ordering::Relaxed))
    }

    /// Says what the job will do, before it begins.
    pub fn announce(&self, cost: JobCost) {
        *lock(&self.0.cost) = Some((cost, Wall::start(), None));
    }

    /// What the job does, once it is known.
    pub fn cost(&self) -> Option<JobCost> {
        lock(&self.0.cost).as_ref().map(|(cost, ..)| cost.clone())
    }

    /// Completed pieces of what was announced.
    pub fn pieces_done(&self) -> usize {
        self.0.all.load(Ordering::Relaxed)
    }

    /// Sets the share that is done, of a job whose pieces differ.
    pub(crate) fn reached(&self, share: f64) {
        if let Some((_, _, done)) = &mut *lock(&self.0.cost) {
            *done = Some(share);
        }
    }

    /// Seconds since the job's cost was said, and seconds left, once they can be told.
    pub fn time(&self) -> Option<(f64, Option<f64>)> {
        let cost = lock(&self.0.cost);
        let (cost, clock, share) = cost.as_ref()?;
        let elapsed = clock.elapsed().as_secs_f64();
        let share = share.unwrap_or_else(|| self.pieces_done() as f64 / cost.pieces.max(1) as f64);
        Some((elapsed, cost.left(elapsed, share)))
    }

    /// Starts a batch of `jobs` jobs.
    pub(crate) fn begin(&self, jobs: usize) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.of.store(jobs, Ordering::Relaxed);
    }

    /// Counts a completed job.
    pub(crate) fn one_more(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
        self.0.all.fetch_add(1, Ordering::Relaxed);
    }
}

/// The number of workers that this machine can run at once (container limits count).
pub fn default_workers() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Upper limit of workers; a larger number is a typing error.
pub(crate) const MOST_WORKERS: usize = 4096;

/// Checks that `workers`, the user's setting, is a possible number of threads.
///
/// # Errors
/// When it is too large.
pub(crate) fn check_count(workers: usize) -> Result<(), RunError> {
    if workers > MOST_WORKERS {
        let why = format!("workers = {workers}; choose a number from 0 to {MOST_WORKERS}");
        return Err(RunError::BadRequest { why });
    }
    Ok(())
}

/// Threads that run rollouts; see the [module](self).
pub struct Workers {
    /// The caller's own worker; each thread has another.
    worker: Worker,
    /// A batch with few jobs uses fewer workers; threads start when there is work for them.
    pool: Pool<RolloutQueue>,
}

/// A worker's world and agent.
struct Worker {
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
    /// Unchanged copies, for use after a panic has left the others in an unknown state.
    spare: (Box<dyn Env>, Box<dyn Agent>),
}

impl Worker {
    fn new(env: &dyn Env, agent: &dyn Agent) -> Self {
        Worker {
            env: env.boxed_clone(),
            agent: agent.boxed_clone(),
            spare: (env.boxed_clone(), agent.boxed_clone()),
        }
    }
}

/// State shared by all workers. During a rollout no lock is held except that of `batch` for reading.
struct RolloutQueue {
    batch: RwLock<Batch>,
    table: Mutex<JobTable>,
    stop: Stop,
}

/// Rules that end an episode, what is recorded, and whether agents explore.
#[derive(Debug, Clone, Copy)]
struct Ends {
    rules: EpisodeRules,
    record: Record,
    mode: ActMode,
}

/// The jobs of a batch and their inputs.
#[derive(Default)]
struct Batch {
    /// `[n_genomes, n_params]`
    genomes: Vec<f32>,
    params: usize,
    jobs: Vec<RolloutJob>,
    /// The rules of its episodes; `None` before the first batch.
    ends: Option<Ends>,
}

/// The result of a job, with its recording if there is one.
type JobResult = Result<(EpisodeResult, Option<Recording>), EvaluateError>;

/// The remaining jobs, and the results.
#[derive(Default)]
struct JobTable {
    queue: JobQueue,
    /// For a stream of episodes: its world, and the number of episodes taken from it.
    stream: Option<(Box<dyn Env>, usize)>,
    outcomes: Vec<Option<JobResult>>,
}

impl Workers {
    /// Uses at most `count` workers (at least one) with copies of this world and this agent: as many as a
    /// batch has jobs, and fewer if the system refuses threads.
    pub fn new(env: &dyn Env, agent: &dyn Agent, count: usize, stop: Stop) -> Self {
        let shared = RolloutQueue { batch: RwLock::default(), table: Mutex::default(), stop };
        Workers { worker: Worker::new(env, agent), pool: Pool::new("worker", count, shared) }
    }

    /// Number of workers for a batch of many jobs.
    pub fn count(&self) -> usize {
        self.pool.most()
    }

    /// Runs `episodes` episodes in parallel, in the world's own random stream, which starts with `seed`. The
    /// result is the same as that of one world that is reset once with the seed and then without.
    ///
    /// This holds for worlds in which only `reset` uses the stream, so that the length of an episode does not
    /// matter.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn evaluate_stream(
        &mut self,
        genome: &[f32],
        (seed, episodes): (u64, usize),
        rules: EpisodeRules,
        mode: ActMode,
        experience: &mut Experience,
    ) -> Result<(), EvaluateError> {
        let jobs = (0..episodes).map(|episode| RolloutJob { genome: 0, episode, env_seed: seed });
        self.lay_out(std::iter::once(genome), jobs, Ends { rules, record: Record::Returns, mode });
        let mut table = lock(&self.pool.shared().table);
        table.queue.begin(&[]);
        table.stream = Some((self.worker.spare.0.boxed_clone(), 0));
        drop(table);
        self.drive_all(experience)
    }

    /// Runs an episode for each seed in parallel.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn evaluate_each(
        &mut self,
        genome: &[f32],
        seeds: impl IntoIterator<Item = u64>,
        rules: EpisodeRules,
        mode: ActMode,
        experience: &mut Experience,
    ) -> Result<(), EvaluateError> {
        let job = |(episode, env_seed)| RolloutJob { genome: 0, episode, env_seed };
        let jobs = seeds.into_iter().enumerate().map(job);
        self.lay_out(std::iter::once(genome), jobs, Ends { rules, record: Record::Returns, mode });
        self.drive_all(experience)
    }

    /// Copies the batch to where all workers can read it.
    fn lay_out<'a>(
        &mut self,
        genomes: impl Iterator<Item = &'a [f32]>,
        jobs: impl Iterator<Item = RolloutJob>,
        ends: Ends,
    ) {
        let shared = self.pool.shared();
        let mut batch = shared.batch.write().unwrap_or_else(PoisonError::into_inner);
        let batch = &mut *batch;
        batch.genomes.clear();
        for genome in genomes {
            batch.params = genome.len();
            batch.genomes.extend_from_slice(genome);
        }
        batch.jobs.clear();
        batch.jobs.extend(jobs);
        batch.ends = Some(ends);
        shared.stop.begin(batch.jobs.len());
        let mut table = lock(&shared.table);
        table.stream = None;
        table.queue.begin(&batch.jobs);
        table.outcomes.clear();
        table.outcomes.resize_with(batch.jobs.len(), || None);
    }

    /// Runs the batch on all threads.
    fn drive_all(&mut self, experience: &mut Experience) -> Result<(), EvaluateError> {
        let Workers { worker, pool } = self;
        let jobs = lock(&pool.shared().table).outcomes.len();
        pool.start(jobs, || {
            let (env, agent) = &worker.spare;
            let mut worker = Worker::new(&**env, &**agent);
            move |shared: &RolloutQueue| shared.work(&mut worker)
        });
        let died = pool.turn(jobs, |shared| shared.work(worker)).err();

        let shared = pool.shared();
        let mut table = lock(&shared.table);
        table.stream = None;
        if shared.stop.asked() && table.outcomes.iter().any(Option::is_none) {
            return Err(EvaluateError::Stopped);
        }
        let batch = shared.batch.read().unwrap_or_else(PoisonError::into_inner);
        let Experience { version, episodes, recordings } = experience;
        *version = WORK_VERSION;
        episodes.clear();
        recordings.clear();
        // A failed job does not stop the others: the error returned is that of the first failing job,
        // whichever thread ran it.
        for (outcome, &job) in table.outcomes.drain(..).zip(&batch.jobs) {
            let what = || format!("its worker died: {}", died.as_deref().unwrap_or("no one knows why"));
            let (result, recording) = outcome.unwrap_or_else(|| Err(broken(job, 0, what())))?;
            episodes.push(result);
            recordings.extend(recording);
        }
        Ok(())
    }
}

impl Executor for Workers {
    fn execute(&mut self, work: &Work, experience: &mut Experience) -> Result<(), EvaluateError> {
        let genomes = (0..work.weights.len()).map(|i| work.weights.genome(i));
        let ends = Ends { rules: work.rules, record: work.record, mode: work.mode() };
        self.lay_out(genomes, work.jobs.iter().copied(), ends);
        self.drive_all(experience)
    }
}

impl RolloutQueue {
    /// Takes jobs and runs them until none is left.
    fn work(&self, worker: &mut Worker) {
        let batch = self.batch.read().unwrap_or_else(PoisonError::into_inner);
        let Some(Ends { rules, record, mode }) = batch.ends else { return };
        while !self.stop.asked() {
            let Some((index, from_stream)) = lock(&self.table).take(&batch.jobs) else { break };
            let job = batch.jobs[index];
            let streams = from_stream.is_some();
            let mut episode = Episode::new(job, rules).with_mode(mode);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                set_weights(&mut *worker.agent, batch.genome(job.genome), job)?;
                let (env, agent) = (&mut *worker.env, &mut *worker.agent);
                match from_stream {
                    None => run_episode(&mut episode, env, agent, record),
                    Some(mut env) => {
                        episode.resume(agent);
                        Ok((episode.finish::<EvaluateError>(&mut *env, agent, &mut ())?, None))
                    }
                }
            }));
            let outcome = caught.unwrap_or_else(|panic| {
                (worker.env, worker.agent) = (worker.spare.0.boxed_clone(), worker.spare.1.boxed_clone());
                Err(episode.broken(format!("panicked: {}", message(&*panic))))
            });
            let mut table = lock(&self.table);
            if let (Ok((result, _)), false) = (&outcome, streams) {
                table.queue.done(job, result.steps);
            }
            table.outcomes[index] = Some(outcome);
            self.stop.one_more();
        }
    }
}

impl Batch {
    fn genome(&self, index: usize) -> &[f32] {
        &self.genomes[index * self.params..(index + 1) * self.params]
    }
}

impl JobTable {
    /// The next job; for a stream with its world, after the reset.
    fn take(&mut self, jobs: &[RolloutJob]) -> Option<(usize, Option<Box<dyn Env>>)> {
        let Some((mut env, next)) = self.stream.take() else {
            return Some((self.queue.take(jobs)?, None));
        };
        let seed = jobs.get(next)?.env_seed;
        // The caller resets the shared world and takes a copy. After a panic the stream is unusable for all.
        env.reset((next == 0).then_some(seed));
        let copy = env.boxed_clone();
        self.stream = Some((env, next + 1));
        Some((next, Some(copy)))
    }
}

fn broken(job: RolloutJob, step: u64, what: String) -> EvaluateError {
    EvaluateError::Broken { genome: job.genome, episode: job.episode, env_seed: job.env_seed, step, what }
}

#[cfg(test)]
mod tests {
    use foveate_core::{
        ActContext, Decision, DemonstrationPlan, Observation, Policy, PolicyAgent, PolicyError, Population,
        Purpose, Seed, SerialExecutor, TensorShape,
    };

    use super::*;
    use foveate_toy::{ToyWorld, toy_agent};

    fn population(genomes: usize) -> Population {
        let mut population = Population::zeros(genomes, 3);
        for i in 0..genomes {
            population.genome_mut(i).copy_from_slice(&[-0.2 * i as f32, 0.01, 0.1]);
        }
        population
    }

    fn jobs(genomes: usize, episodes: usize) -> Vec<RolloutJob> {
        (0..genomes)
            .flat_map(|genome| {
                (0..episodes).map(move |episode| RolloutJob {
                    genome,
                    episode,
                    env_seed: 100 + episode as u64,
                })
            })
            .collect()
    }

    fn workers(world: &ToyWorld, count: usize) -> Workers {
        Workers::new(world, &toy_agent(0.0), count, Stop::default())
    }

    fn work(population: &Population, jobs: &[RolloutJob]) -> Work {
        let rules = EpisodeRules { max_steps: 1000, patience: Some(20) };
        let (weights, jobs) = (population.clone(), jobs.to_vec());
        Work {
            purpose: Purpose::Training,
            weights,
            jobs,
            rules,
            record: Record::Returns,
            epsilon: 0.0,
            draw_actions: false,
        }
    }

    fn evaluate(
        workers: &mut Workers,
        population: &Population,
        jobs: &[RolloutJob],
    ) -> Result<Vec<EpisodeResult>, EvaluateError> {
        let mut experience = Experience::of_episodes(vec![EpisodeResult::default(); 3]);
        workers.execute(&work(population, jobs), &mut experience).map(|()| experience.episodes)
    }

    #[test]
    fn digits_do_not_depend_on_the_number_of_workers_or_the_order() {
        let (population, mut jobs) = (population(6), jobs(6, 5));
        let expect = evaluate(&mut workers(&ToyWorld::default(), 1), &population, &jobs).expect("fine");
        assert!(expect.iter().any(|r| r.cut) && expect.iter().any(|r| r.truncated), "a varied lot");
        for count in [2, 3, 7, 64] {
            let mut workers = workers(&ToyWorld::default(), count);
            for _ in 0..3 {
                assert_eq!(evaluate(&mut workers, &population, &jobs).expect("fine"), expect);
            }
        }
        jobs.reverse();
        let mut reversed = evaluate(&mut workers(&ToyWorld::default(), 3), &population, &jobs).expect("fine");
        reversed.reverse();
        assert_eq!(reversed, expect);
        assert_eq!(evaluate(&mut workers(&ToyWorld::default(), 3), &population, &[]), Ok(vec![]));
    }

    #[test]
    fn a_stream_is_that_of_one_world() {
        let genome = population(3).genome(2).to_vec();
        // Computed without workers: one world, one agent, one episode after the other.
        let (mut world, mut agent) = (ToyWorld::default(), toy_agent(0.0));
        foveate_core::Agent::set_params(&mut agent, &genome).expect("three numbers");
        let expect: Vec<_> = (0..20)
            .map(|episode| {
                world.reset((episode == 0).then_some(9));
                let job = RolloutJob { genome: 0, episode, env_seed: 9 };
                let mut episode = Episode::new(job, EpisodeRules::WHOLE);
                let agent: &mut dyn Agent = &mut agent;
                episode.resume(agent);
                episode.finish::<EvaluateError>(&mut world, agent, &mut ()).expect("fine")
            })
            .collect();
        for count in [1, 2, 5] {
            let mut workers = workers(&ToyWorld::default(), count);
            let mut experience = Experience::default();
            workers
                .evaluate_stream(&genome, (9, 20), EpisodeRules::WHOLE, ActMode::Greedy, &mut experience)
                .expect("fine");
            assert_eq!(experience.episodes, expect, "{count} workers");
        }
    }

    #[test]
    fn the_first_failing_job_is_named_whoever_ran_it() {
        let (mut population, jobs) = (population(6), jobs(6, 5));
        let world = ToyWorld::panicking(103, 2);
        for count in [1, 2, 5] {
            let mut workers = workers(&world, count);
            let said = evaluate(&mut workers, &population, &jobs).expect_err("must fail").to_string();
            assert_eq!(said, "genome 0, episode 3 (seed 103), step 2: panicked: the toy broke");
            // The workers are still usable.
            let others: Vec<_> = jobs.iter().copied().filter(|job| job.env_seed != 103).collect();
            assert_eq!(evaluate(&mut workers, &population, &others).expect("fine").len(), 24);
        }
        population.genome_mut(4)[0] = f32::NAN;
        let mut workers = workers(&ToyWorld::default(), 2);
        let said = evaluate(&mut workers, &population, &jobs).expect_err("must fail").to_string();
        assert_eq!(said, "genome 4, episode 0 (seed 100), step 1: the agent's action[0] is NaN");
    }

    #[test]
    fn what_is_recorded_does_not_depend_on_the_executor() {
        let demonstrations = DemonstrationPlan { pushes: 5.0, ..DemonstrationPlan::default() };
        for record in
            [Record::Returns, Record::Demonstrations(demonstrations), Record::Transitions { unroll: 7 }]
        {
            let work = Work { record, ..work(&population(3), &jobs(3, 4)) };
            let (mut expect, mut experience) = (Experience::default(), Experience::default());
            let mut serial = SerialExecutor::new(&ToyWorld::default(), &toy_agent(0.0));
            serial.execute(&work, &mut expect).expect("fine");
            expect.check(&work).expect("one for each job");
            for count in [1, 3] {
                workers(&ToyWorld::default(), count).execute(&work, &mut experience).expect("fine");
                assert_eq!(experience, expect, "{record:?}");
            }
            for (result, recording) in expect.episodes.iter().zip(&expect.recordings) {
                let steps = match recording {
                    Recording::Demonstration(demonstration) => demonstration.steps,
                    Recording::Differentiated(episode) => episode.steps,
                    Recording::Transitions(unrolls) => unrolls.iter().map(foveate_core::Unroll::len).sum(),
                };
                assert_eq!(steps as u64, result.steps);
            }
        }
    }

    /// Draws its action when exploring, and otherwise does nothing.
    #[derive(Clone)]
    struct Curious;

    impl Policy for Curious {
        type Memory = [f64; 1];
        fn memory(&self) -> [f64; 1] {
            [0.0]
        }
        fn reset(&self, _: &mut [f64; 1], _: Seed) {}
        fn act<'m>(
            &self,
            _: Observation<'_>,
            memory: &'m mut [f64; 1],
            context: &mut ActContext,
        ) -> Result<Decision<'m>, PolicyError> {
            memory[0] = match context.mode {
                ActMode::Explore { .. } => context.rng.uniform(-1.0, 1.0),
                ActMode::Greedy => 0.0,
            };
            Ok(Decision::new(memory))
        }
        fn tensors(&self) -> Vec<TensorShape> {
            vec![TensorShape { name: "unused".into(), shape: vec![1] }]
        }
        fn params(&self) -> Vec<f32> {
            vec![0.0]
        }
        fn set_params(&mut self, _: &[f32]) -> Result<(), PolicyError> {
            Ok(())
        }
    }

    #[test]
    fn agents_explore_to_learn_and_not_to_be_judged() {
        let agent = PolicyAgent::new(Curious);
        let actions = |purpose: Purpose| {
            let work = Work {
                purpose,
                record: Record::Transitions { unroll: 1000 },
                epsilon: 0.0,
                draw_actions: false,
                ..work(&Population::zeros(1, 1), &jobs(1, 4))
            };
            let (mut expect, mut experience) = (Experience::default(), Experience::default());
            SerialExecutor::new(&ToyWorld::default(), &agent).execute(&work, &mut expect).expect("fine");
            let mut workers = Workers::new(&ToyWorld::default(), &agent, 3, Stop::default());
            workers.execute(&work, &mut experience).expect("fine");
            assert_eq!(experience, expect, "{purpose:?}: whoever runs it");
            expect.recordings
        };
        let judged = actions(Purpose::Evaluation);
        assert_ne!(actions(Purpose::Training), judged);
        for purpose in [Purpose::Validation, Purpose::Finals, Purpose::Report] {
            assert_eq!(actions(purpose), judged, "{purpose:?}");
        }
    }

    #[test]
    fn a_stopped_evaluation_says_so() {
        let mut workers = workers(&ToyWorld::default(), 2);
        workers.pool.shared().stop.ask();
        let error = evaluate(&mut workers, &population(2), &jobs(2, 2));
        assert_eq!(error, Err(EvaluateError::Stopped));
    }
}
