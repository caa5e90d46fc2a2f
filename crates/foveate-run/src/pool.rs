//! Threads that sleep between turns of work.
//!
//! Starting a thread takes longer than some turns last, so a [`Pool`] keeps its threads as long as it lives.
//! In a turn, the caller and all threads that wake in time run the same function on what they share, where
//! they take jobs until none is left. The turn ends when the caller's function has returned and that of
//! every thread which has begun: no one waits for a thread that wakes late and would find no job. A turn
//! allocates nothing.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Threads, and the `S` that they and their caller share; see the [module](self).
pub(crate) struct Pool<S> {
    /// What the threads are called, before their number.
    name: &'static str,
    threads: Vec<JoinHandle<()>>,
    /// Maximum number of workers: the threads and the caller.
    most: usize,
    common: Arc<Common<S>>,
}

struct Common<S> {
    shared: S,
    turn: Mutex<Turn>,
    /// Signals that a turn has started, or that the threads must end.
    begin: Condvar,
    /// Signals that the last thread has completed its part of a turn.
    end: Condvar,
}

#[derive(Default)]
struct Turn {
    number: u64,
    /// True if threads may still begin with their part.
    open: bool,
    /// Threads at work.
    busy: usize,
    /// The message of a thread's panic.
    died: Option<String>,
    over: bool,
}

impl<S: Send + Sync + 'static> Pool<S> {
    /// At most `most` workers, the caller included. Threads start with [`Pool::start`].
    pub(crate) fn new(name: &'static str, most: usize, shared: S) -> Self {
        let (turn, begin, end) = (Mutex::default(), Condvar::new(), Condvar::new());
        let common = Arc::new(Common { shared, turn, begin, end });
        Pool { name, threads: Vec::new(), most: most.max(1), common }
    }

    /// What the threads share.
    pub(crate) fn shared(&self) -> &S {
        &self.common.shared
    }

    /// Maximum number of workers, the caller included; smaller after the system has refused a thread.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Number of threads, the caller's not included.
    #[cfg(test)]
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Starts threads until there are enough workers for `jobs` jobs. `part` makes what a new thread runs in
    /// every turn.
    pub(crate) fn start<P>(&mut self, jobs: usize, mut part: impl FnMut() -> P)
    where
        P: FnMut(&S) + Send + 'static,
    {
        while 1 + self.threads.len() < self.most.min(jobs) {
            let (part, common) = (part(), Arc::clone(&self.common));
            // A new thread counts all turns so far as served.
            let served = lock(&common.turn).number;
            let name = format!("{} {}", self.name, 1 + self.threads.len());
            match thread::Builder::new().name(name).spawn(move || common.serve(part, served)) {
                Ok(thread) => self.threads.push(thread),
                // The system refuses further threads.
                Err(_) => self.most = 1 + self.threads.len(),
            }
        }
    }

    /// Runs a turn of `jobs` jobs: `mine` on this thread, and on the others what they were started with. One
    /// job wakes no thread.
    ///
    /// # Errors
    /// The message of a part that panicked. The others were completed, and the threads are still there.
    pub(crate) fn turn(&mut self, jobs: usize, mine: impl FnOnce(&S)) -> Result<(), String> {
        let Common { shared, turn: state, begin, end } = &*self.common;
        if jobs > 1 && !self.threads.is_empty() {
            let mut turn = lock(state);
            turn.number += 1;
            turn.open = true;
            drop(turn);
            begin.notify_all();
        }
        let mine = catch_unwind(AssertUnwindSafe(|| mine(shared)));
        let mut turn = lock(state);
        turn.open = false;
        while turn.busy > 0 {
            turn = end.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        match turn.died.take().or_else(|| mine.err().map(|panic| message(&*panic))) {
            None => Ok(()),
            Some(died) => Err(died),
        }
    }
}

/// Ends the threads.
impl<S> Drop for Pool<S> {
    fn drop(&mut self) {
        lock(&self.common.turn).over = true;
        self.common.begin.notify_all();
        for thread in self.threads.drain(..) {
            // The thread catches its panics; there is nothing left to report.
            let _ = thread.join();
        }
    }
}

impl<S> Common<S> {
    /// The main loop of a thread; `served` is the number of turns before it started.
    fn serve(&self, mut part: impl FnMut(&S), mut served: u64) {
        let mut turn = lock(&self.turn);
        loop {
            while turn.number == served && !turn.over {
                turn = self.begin.wait(turn).unwrap_or_else(PoisonError::into_inner);
            }
            if turn.over {
                return;
            }
            served = turn.number;
            if !turn.open {
                continue;
            }
            turn.busy += 1;
            drop(turn);
            let worked = catch_unwind(AssertUnwindSafe(|| part(&self.shared)));
            turn = lock(&self.turn);
            if let Err(panic) = worked {
                turn.died = Some(message(&*panic));
            }
            turn.busy -= 1;
            if turn.busy == 0 {
                self.end.notify_one();
            }
        }
    }
}

/// Locks in spite of an earlier panic: for data that is consistent whenever it is not locked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".into())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Jobs to take, and how often each was done.
    #[derive(Default)]
    struct Jobs {
        next: AtomicUsize,
        done: Mutex<Vec<usize>>,
    }

    impl Jobs {
        fn begin(&self, jobs: usize) {
            *lock(&self.done) = vec![0; jobs];
            self.next.store(0, Ordering::Relaxed);
        }

        fn work(&self) {
            loop {
                let job = self.next.fetch_add(1, Ordering::Relaxed);
                match lock(&self.done).get_mut(job) {
                    Some(done) => *done += 1,
                    None => return,
                }
            }
        }
    }

    #[test]
    fn every_job_is_done_once_when_a_turn_ends() {
        for most in [0, 1, 2, 5] {
            let mut pool = Pool::new("tester", most, Jobs::default());
            for jobs in [3, 0, 1, 40, 7, 2].repeat(20) {
                pool.shared().begin(jobs);
                pool.start(jobs, || Jobs::work);
                assert_eq!(pool.turn(jobs, Jobs::work), Ok(()));
                assert_eq!(*lock(&pool.shared().done), vec![1; jobs], "{most} workers");
            }
            assert_eq!(1 + pool.threads(), pool.most(), "as many as there was work for");
            let common = Arc::downgrade(&pool.common);
            drop(pool);
            assert_eq!(common.strong_count(), 0, "all threads have ended");
        }
    }

    #[test]
    fn threads_start_with_work_and_work_at_the_same_time() {
        // Each part of a turn waits for the two others.
        let mut pool = Pool::new("tester", 3, Barrier::new(3));
        let part = |barrier: &Barrier| {
            barrier.wait();
        };
        assert_eq!(Arc::strong_count(&pool.common), 1);
        pool.start(2, || part);
        assert_eq!(Arc::strong_count(&pool.common), 2);
        pool.start(100, || part);
        assert_eq!(Arc::strong_count(&pool.common), 3);
        for _ in 0..50 {
            assert_eq!(pool.turn(3, part), Ok(()));
        }
    }

    #[test]
    fn a_panic_ends_neither_the_turn_of_others_nor_the_threads() {
        let mut pool = Pool::new("tester", 2, Barrier::new(2));
        pool.start(2, || {
            |barrier: &Barrier| {
                barrier.wait();
                panic!("a thread broke");
            }
        });
        for _ in 0..3 {
            let said = pool.turn(2, |barrier| {
                barrier.wait();
            });
            assert_eq!(said, Err("a thread broke".into()));
            let said = pool.turn(2, |barrier| {
                barrier.wait();
                panic!("{} broke", "the caller");
            });
            assert_eq!(said, Err("a thread broke".into()), "a thread's message comes first");
            assert_eq!(pool.turn(1, |_| panic!("the caller broke")), Err("the caller broke".into()));
            assert_eq!(pool.turn(1, |_| ()), Ok(()));
        }
    }
}
