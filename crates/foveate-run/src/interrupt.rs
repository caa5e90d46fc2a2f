//! Ctrl-C.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use foveate_registry::compiler;

use crate::clock::Wall;
use crate::error::RunError;
use crate::workers::Stop;

/// Signals within this time of the first are the same request: `timeout` and terminals signal a process and its
/// group, so one request arrives twice.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// A flag that Ctrl-C (or SIGTERM) sets. A later second one ends the process immediately. Call it once per process.
///
/// # Errors
/// When the system does not accept a handler.
pub fn stop_on_ctrl_c() -> Result<Stop, RunError> {
    let stop = Stop::default();
    let asked = stop.clone();
    let mut since: Option<Wall> = None;
    ctrlc::set_handler(move || {
        if since.get_or_insert_with(Wall::start).elapsed() > ONE_REQUEST {
            std::process::exit(130); // 128 + SIGINT, as shells say it
        }
        asked.ask();
        compiler::stop();
    })
    .map_err(|error| RunError::BadRequest {
        why: format!("Ctrl-C cannot be watched ({error}); run again"),
    })?;
    Ok(stop)
}

/// Runs `job` on a thread of its own. Until it is done, calls `go_on` on this thread after each `every`; when that returns
/// false, the job's flag is set. For callers whose signals reach only code of theirs, such as an interpreter's.
///
/// # Panics
/// When `job` panics, with its message.
pub fn supervised<T: Send>(
    every: Duration,
    go_on: &mut dyn FnMut() -> bool,
    job: impl FnOnce(&Stop) -> T + Send,
) -> T {
    let stop = Stop::default();
    thread::scope(|scope| {
        // It closes when the job ends, however it ends.
        let (open, closed) = mpsc::channel::<()>();
        let of_job = stop.clone();
        let job = scope.spawn(move || {
            let _open = open;
            job(&of_job)
        });
        while closed.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            if !go_on() {
                stop.ask();
                compiler::stop();
            }
        }
        job.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Runs `job` on this thread; when it takes longer than `limit`, `stop` is set.
pub fn within<T>(limit: Duration, stop: &Stop, job: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (open, closed) = mpsc::channel::<()>();
        scope.spawn(move || {
            if closed.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                stop.ask();
                compiler::stop();
            }
        });
        let result = job();
        drop(open);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_takes_too_long_is_asked_to_stop() {
        let stop = Stop::default();
        assert_eq!(within(Duration::from_mins(1), &stop, || 7), 7);
        assert!(!stop.asked());
        let waits = || {
            while !stop.asked() {
                thread::sleep(Duration::from_millis(1));
            }
            8
        };
        assert_eq!(within(Duration::from_millis(2), &stop, waits), 8);
    }

    #[test]
    fn a_job_is_asked_to_stop_and_its_result_is_kept() {
        const SHORT: Duration = Duration::from_millis(1);
        assert_eq!(supervised(Duration::from_mins(1), &mut || panic!("it is done before"), |_| 7), 7);
        let mut turns = 0;
        let until_third = &mut || {
            turns += 1;
            turns < 3
        };
        // A busy machine may start the job after all three turns.
        let result = supervised(SHORT, until_third, |stop| {
            while !stop.asked() {
                thread::sleep(SHORT);
            }
            9
        });
        assert!(turns >= 3 && result == 9, "{turns} turns, result {result}");
    }
}
