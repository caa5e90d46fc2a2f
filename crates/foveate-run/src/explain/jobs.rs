//! Parallel work whose results arrive in order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use foveate_core::EvaluateError;
use foveate_explain::study::{Scheduler, StudyError};

use crate::workers::Stop;

/// The threads that share the work.
pub(crate) struct ThreadScheduler<'a> {
    /// How many, at least 1.
    pub(crate) workers: usize,
    pub(crate) stop: &'a Stop,
}

impl Scheduler for ThreadScheduler<'_> {
    fn run(
        &self,
        jobs: usize,
        work: &(dyn Fn(usize) -> Result<(), StudyError> + Sync),
        each: &mut dyn FnMut(),
    ) -> Result<(), StudyError> {
        let ThreadScheduler { workers, stop } = *self;
        let workers = workers.min(jobs).max(1);
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let (sender, results) = mpsc::channel();
        let mut errors = thread::scope(|scope| {
            for number in 0..workers {
                let (sender, next, failed) = (sender.clone(), &next, &failed);
                let serve = move || {
                    while !stop.asked() && !failed.load(Ordering::SeqCst) {
                        let job = next.fetch_add(1, Ordering::SeqCst);
                        if job >= jobs {
                            break;
                        }
                        let error = work(job).err();
                        failed.fetch_or(error.is_some(), Ordering::SeqCst);
                        // The receiver lives until every sender is gone.
                        let _ = sender.send((job, error));
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
            let mut errors = Vec::new();
            while let Ok((job, error)) = results.recv() {
                errors.extend(error.map(|error| (job, error)));
                stop.one_more();
                each();
            }
            Ok(errors)
        })?;
        errors.sort_by_key(|(job, _)| *job);
        if let Some((_, error)) = errors.into_iter().next() {
            return Err(error);
        }
        if stop.asked() { Err(EvaluateError::Stopped.into()) } else { Ok(()) }
    }

    fn stopped(&self) -> bool {
        self.stop.asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(
        workers: usize,
        stop: &Stop,
        jobs: u64,
        work: fn(u64) -> Result<u64, StudyError>,
        each: &mut dyn FnMut(),
    ) -> Result<Vec<u64>, StudyError> {
        (&ThreadScheduler { workers, stop } as &dyn Scheduler).ordered(0..jobs, work, each)
    }

    #[test]
    fn results_come_in_order_and_the_first_failure_counts() {
        let square = |x: u64| if x == 70 { Err(StudyError::Refused { why: "70".into() }) } else { Ok(x * x) };
        for workers in [0, 1, 2, 7] {
            let mut count = 0;
            let got = ordered(workers, &Stop::default(), 50, square, &mut || count += 1).expect("fine");
            assert_eq!((got, count), ((0..50).map(|x| x * x).collect::<Vec<_>>(), 50));
            let error = ordered(workers, &Stop::default(), 100, square, &mut || {}).expect_err("one fails");
            assert_eq!(error.to_string(), "70");
        }
        let stop = Stop::default();
        stop.ask();
        assert!(ordered(2, &stop, 5, square, &mut || {}).is_err());
    }
}
