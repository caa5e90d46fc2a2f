//! Rollouts over all cores.
//!
//! Every worker owns a world and an agent for life and takes the next job when it is done with one, so that long and
//! short episodes even out; a generation is over when its last rollout is. What a job gives depends on the job alone:
//! any number of workers, in any order, gives the same digits.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use foveate_core::{Agent, Env, EpisodeResult, EvaluateError, Evaluator, Population, RolloutJob};

use crate::rollout::{self, Rules};

/// A flag to ask for an early end: clones share it. Set it from a signal handler; nothing is lost but the rollouts
/// under way.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks everyone who holds a clone to stop soon.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether someone asked.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// As many workers as this machine runs at once (container limits count).
pub fn default_workers() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Threads that drive; see the [module](self).
pub struct Workers {
    seats: Vec<Seat>,
    rules: Rules,
    stop: Stop,
}

/// A worker's world and agent.
struct Seat {
    env: Box<dyn Env>,
    agent: Box<dyn Agent>,
    /// Untouched copies, for after a panic left the others in no one knows what state.
    spare: (Box<dyn Env>, Box<dyn Agent>),
}

/// Drives job number `usize`, counting the steps begun.
type Drive<'a, J> = dyn Fn(&mut Seat, usize, J, &mut u64) -> Result<EpisodeResult, EvaluateError> + Sync + 'a;

impl Workers {
    /// `count` workers (at least one) with copies of this world and this agent.
    pub fn new(env: &dyn Env, agent: &dyn Agent, count: usize, rules: Rules, stop: Stop) -> Self {
        let seats = (0..count.max(1))
            .map(|_| Seat {
                env: env.boxed_clone(),
                agent: agent.boxed_clone(),
                spare: (env.boxed_clone(), agent.boxed_clone()),
            })
            .collect();
        Workers { seats, rules, stop }
    }

    /// How many workers.
    pub fn count(&self) -> usize {
        self.seats.len()
    }

    /// Sets what ends an episode from now on.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Drives `episodes` episodes one after the other in the world's own random stream, which starts with `seed`: the
    /// same as resetting one world with the seed and then without, in parallel.
    ///
    /// That holds for worlds whose stream is used by `reset` alone, so that it does not matter how long anyone drove.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    pub fn evaluate_stream(
        &mut self,
        genome: &[f32],
        seed: u64,
        episodes: usize,
        results: &mut Vec<EpisodeResult>,
    ) -> Result<(), EvaluateError> {
        let name = |episode| RolloutJob { genome: 0, episode, env_seed: seed };
        let source = Mutex::new((self.seats[0].spare.0.boxed_clone(), 0));
        let rules = self.rules;
        self.pool(
            episodes,
            &name,
            // Whoever asks resets the common world and leaves with a copy.
            &|| {
                let mut source = source.lock().ok()?;
                let (env, next) = &mut *source;
                if *next >= episodes {
                    return None;
                }
                env.reset((*next == 0).then_some(seed));
                *next += 1;
                Some((*next - 1, env.boxed_clone()))
            },
            &|seat, episode, mut env, step| {
                let job = name(episode);
                set_params(seat, genome, job)?;
                rollout::drive(&mut *env, &mut *seat.agent, job, rules, step)
            },
            results,
        )
    }

    /// The pool: workers `take` a job and `drive` it, until there is none. `results[i]` belongs to job `i`.
    fn pool<J>(
        &mut self,
        count: usize,
        name: &(dyn Fn(usize) -> RolloutJob + Sync),
        take: &(dyn Fn() -> Option<(usize, J)> + Sync),
        drive: &Drive<'_, J>,
        results: &mut Vec<EpisodeResult>,
    ) -> Result<(), EvaluateError> {
        let stop = &self.stop;
        // Failed jobs do not end the others: the error reported is that of the first job that fails, whoever ran it.
        let work = |seat: &mut Seat| {
            let mut done = Vec::new();
            while !stop.asked() {
                let Some((index, job)) = take() else { break };
                let mut step = 0;
                let caught = catch_unwind(AssertUnwindSafe(|| drive(seat, index, job, &mut step)));
                let outcome = caught.unwrap_or_else(|panic| {
                    (seat.env, seat.agent) = (seat.spare.0.boxed_clone(), seat.spare.1.boxed_clone());
                    Err(broken(name(index), step, format!("panicked: {}", message(&*panic))))
                });
                done.push((index, outcome));
            }
            done
        };

        let mut outcomes: Vec<Option<Result<EpisodeResult, EvaluateError>>> = Vec::new();
        outcomes.resize_with(count, || None);
        let mut died = None;
        if let [seat] = &mut self.seats[..] {
            for (index, outcome) in work(seat) {
                outcomes[index] = Some(outcome);
            }
        } else {
            thread::scope(|scope| {
                let threads: Vec<_> =
                    self.seats.iter_mut().take(count).map(|seat| scope.spawn(|| work(seat))).collect();
                for thread in threads {
                    match thread.join() {
                        Ok(done) => {
                            for (index, outcome) in done {
                                outcomes[index] = Some(outcome);
                            }
                        }
                        Err(panic) => died = Some(message(&*panic)),
                    }
                }
            });
        }

        if stop.asked() && outcomes.iter().any(Option::is_none) {
            return Err(EvaluateError::Stopped);
        }
        results.clear();
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let what = || format!("its worker died: {}", died.as_deref().unwrap_or("no one knows why"));
            results.push(outcome.unwrap_or_else(|| Err(broken(name(index), 0, what())))?);
        }
        Ok(())
    }
}

impl Evaluator for Workers {
    fn evaluate(
        &mut self,
        population: &Population,
        jobs: &[RolloutJob],
        results: &mut Vec<EpisodeResult>,
    ) -> Result<(), EvaluateError> {
        let next = AtomicUsize::new(0);
        let rules = self.rules;
        self.pool(
            jobs.len(),
            &|index| jobs[index],
            &|| {
                let index = next.fetch_add(1, Ordering::Relaxed);
                (index < jobs.len()).then_some((index, ()))
            },
            &|seat, index, (), step| {
                let job = jobs[index];
                set_params(seat, population.genome(job.genome), job)?;
                rollout::run(&mut *seat.env, &mut *seat.agent, job, rules, step)
            },
            results,
        )
    }
}

fn set_params(seat: &mut Seat, genome: &[f32], job: RolloutJob) -> Result<(), EvaluateError> {
    let RolloutJob { genome: index, episode, env_seed } = job;
    seat.agent.set_params(genome).map_err(|source| EvaluateError::Policy {
        genome: index,
        episode,
        env_seed,
        step: 0,
        source,
    })
}

fn broken(job: RolloutJob, step: u64, what: String) -> EvaluateError {
    EvaluateError::Broken { genome: job.genome, episode: job.episode, env_seed: job.env_seed, step, what }
}

/// What a panic said.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{ToyWorld, toy_agent};

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
        let rules = Rules { max_steps: 1000, patience: Some(20) };
        Workers::new(world, &toy_agent(0.0), count, rules, Stop::default())
    }

    fn evaluate(
        workers: &mut Workers,
        population: &Population,
        jobs: &[RolloutJob],
    ) -> Result<Vec<EpisodeResult>, EvaluateError> {
        let mut results = vec![EpisodeResult::default(); 3];
        workers.evaluate(population, jobs, &mut results).map(|()| results)
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
        // By hand: one world, one agent, one after the other.
        let (mut world, mut agent) = (ToyWorld::default(), toy_agent(0.0));
        foveate_core::Agent::set_params(&mut agent, &genome).expect("three numbers");
        let expect: Vec<_> = (0..20)
            .map(|episode| {
                world.reset((episode == 0).then_some(9));
                let job = RolloutJob { genome: 0, episode, env_seed: 9 };
                rollout::drive(&mut world, &mut agent, job, Rules::WHOLE, &mut 0).expect("fine")
            })
            .collect();
        for count in [1, 2, 5] {
            let mut workers = workers(&ToyWorld::default(), count);
            workers.set_rules(Rules::WHOLE);
            let mut results = Vec::new();
            workers.evaluate_stream(&genome, 9, 20, &mut results).expect("fine");
            assert_eq!(results, expect, "{count} workers");
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
            // The workers live on.
            let others: Vec<_> = jobs.iter().copied().filter(|job| job.env_seed != 103).collect();
            assert_eq!(evaluate(&mut workers, &population, &others).expect("fine").len(), 24);
        }
        population.genome_mut(4)[0] = f32::NAN;
        let mut workers = workers(&ToyWorld::default(), 2);
        let said = evaluate(&mut workers, &population, &jobs).expect_err("must fail").to_string();
        assert_eq!(said, "genome 4, episode 0 (seed 100), step 1: the agent's action[0] is NaN");
    }

    #[test]
    fn a_stopped_evaluation_says_so() {
        let mut workers = workers(&ToyWorld::default(), 2);
        workers.stop.ask();
        let error = evaluate(&mut workers, &population(2), &jobs(2, 2));
        assert_eq!(error, Err(EvaluateError::Stopped));
    }
}
