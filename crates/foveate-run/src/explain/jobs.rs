//! Parallel work whose results arrive in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;

use foveate_core::EvaluateError;
use foveate_explain::study::{Scheduler, StudyError};

use crate::workers::Stop;

/// The threads that share the work.
pub(super) struct ThreadScheduler<'a> {
    /// How many, at least 1.
    pub(super) workers: usize,
    pub(super) stop: &'a Stop,
}

impl Scheduler for ThreadScheduler<'_> {
    fn ordered<J: Send, R: Send>(
        &self,
        jobs: impl Iterator<Item = J> + Send,
        work: impl Fn(J) -> Result<R, StudyError> + Sync,
        each: &mut dyn FnMut(),
    ) -> Result<Vec<R>, StudyError> {
        let ThreadScheduler { workers, stop } = *self;
        let workers = workers.min(jobs.size_hint().1.unwrap_or(usize::MAX)).max(1);
        let jobs = Mutex::new(jobs.enumerate());
        let failed = AtomicBool::new(false);
        let (sender, results) = mpsc::channel();
        let mut done = thread::scope(|scope| {
            for number in 0..workers {
                let (sender, jobs, work, failed) = (sender.clone(), &jobs, &work, &failed);
                let serve = move || {
                    while !stop.asked() && !failed.load(Ordering::SeqCst) {
                        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((index, job)) = next else { break };
                        let result = work(job);
                        failed.fetch_or(result.is_err(), Ordering::SeqCst);
                        // The receiver lives until every sender is gone.
                        let _ = sender.send((index, result));
                    }
                };
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, serve) {
                    // If the system refuses further threads, the existing ones do all the work.
                    if number > 0 {
                        break;
                    }
                    return Err(StudyError::Refused {
                        why: format!("no thread can be started ({error}); end other programs and try again"),
                    });
                }
            }
            drop(sender);
            let mut done = Vec::new();
            while let Ok(result) = results.recv() {
                done.push(result);
                stop.one_more();
                each();
            }
            Ok(done)
        })?;
        done.sort_by_key(|(index, _)| *index);
        let mut all = Vec::with_capacity(done.len());
        for (_, result) in done {
            all.push(result?);
        }
        if stop.asked() {
            return Err(EvaluateError::Stopped.into());
        }
        Ok(all)
    }

    fn stopped(&self) -> bool {
        self.stop.asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduler(workers: usize, stop: &Stop) -> ThreadScheduler<'_> {
        ThreadScheduler { workers, stop }
    }

    #[test]
    fn results_come_in_order_and_the_first_failure_counts() {
        let square = |x: u64| if x == 70 { Err(StudyError::Refused { why: "70".into() }) } else { Ok(x * x) };
        for workers in [0, 1, 2, 7] {
            let mut count = 0;
            let got = scheduler(workers, &Stop::default())
                .ordered(0..50, square, &mut || count += 1)
                .expect("fine");
            assert_eq!((got, count), ((0..50).map(|x| x * x).collect::<Vec<_>>(), 50));
            let error = scheduler(workers, &Stop::default())
                .ordered(0..100, square, &mut || {})
                .expect_err("one fails");
            assert_eq!(error.to_string(), "70");
        }
        let stop = Stop::default();
        stop.ask();
        assert!(scheduler(2, &stop).ordered(0..5, square, &mut || {}).is_err());
    }
}
