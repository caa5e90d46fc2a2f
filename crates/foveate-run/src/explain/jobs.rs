//! Work on all cores whose results come in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;

use foveate_core::EvaluateError;

use crate::RunError;
use crate::workers::Stop;

/// Does every job; result `i` belongs to job `i`, whoever did it. `each` is called on the caller's thread after every
/// job, in no particular order.
///
/// # Errors
/// That of the first job that fails, in the order of the jobs among those done; or that someone asked to stop.
pub(super) fn ordered<J: Send, R: Send>(
    jobs: impl Iterator<Item = J> + Send,
    workers: usize,
    stop: &Stop,
    work: impl Fn(J) -> Result<R, RunError> + Sync,
    each: &mut dyn FnMut(),
) -> Result<Vec<R>, RunError> {
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
                // Those that there are do it all.
                if number > 0 {
                    break;
                }
                return Err(RunError::BadRequest {
                    why: format!("no thread can be started ({error}); end other programs and try again"),
                });
            }
        }
        drop(sender);
        let mut done = Vec::new();
        while let Ok(result) = results.recv() {
            done.push(result);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_the_first_failure_counts() {
        let square =
            |x: u64| if x == 70 { Err(RunError::BadRequest { why: "70".into() }) } else { Ok(x * x) };
        for workers in [0, 1, 2, 7] {
            let mut count = 0;
            let got = ordered(0..50, workers, &Stop::default(), square, &mut || count += 1).expect("fine");
            assert_eq!((got, count), ((0..50).map(|x| x * x).collect::<Vec<_>>(), 50));
            let error =
                ordered(0..100, workers, &Stop::default(), square, &mut || {}).expect_err("one fails");
            assert_eq!(error.to_string(), "70");
        }
        let stop = Stop::default();
        stop.ask();
        assert!(ordered(0..5, 2, &stop, square, &mut || {}).is_err());
    }
}
