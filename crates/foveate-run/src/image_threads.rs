//! Threads that divide the work on one large picture.
//!
//! They work on what their caller has borrowed, so they end with the computation; the threads of
//! `pool.rs` live longer and share what they own.

use std::sync::Arc;
use std::thread;

use foveate_core::{Parallel, Threads};

/// Starts threads for each computation and waits for them. The caller's thread runs the first part, and also
/// the parts of threads that the system refuses to start.
#[derive(Debug)]
struct Scoped;

impl Parallel for Scoped {
    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        thread::scope(|scope| {
            for part in 1..parts {
                if thread::Builder::new().spawn_scoped(scope, move || work(part)).is_err() {
                    work(part);
                }
            }
            if parts > 0 {
                work(0);
            }
        });
    }
}

/// Up to `count` threads for [`foveate_core::Agent::set_threads`].
pub fn image_threads(count: usize) -> Threads {
    Threads::new(count, Arc::new(Scoped))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::image_threads;

    #[test]
    fn every_part_is_worked_on_once() {
        for (threads, parts) in [(1, 3), (2, 2), (4, 4), (3, 0)] {
            let seen = Mutex::new(vec![]);
            image_threads(threads).for_each(0..parts, |part| seen.lock().expect("no panic").push(part));
            let mut seen = seen.into_inner().expect("no panic");
            seen.sort_unstable();
            assert_eq!(seen, (0..parts).collect::<Vec<_>>());
        }
    }
}
