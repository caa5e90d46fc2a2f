//! Threads for tests and examples, started for each computation as in `foveate-run`.

use std::sync::Arc;
use std::thread;

use foveate_core::{Parallel, Threads};

#[derive(Debug)]
struct Scoped;

impl Parallel for Scoped {
    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        thread::scope(|scope| {
            for part in 1..parts {
                scope.spawn(move || work(part));
            }
            work(0);
        });
    }
}

/// Up to `count` threads.
pub(crate) fn threads(count: usize) -> Threads {
    Threads::new(count, Arc::new(Scoped))
}
