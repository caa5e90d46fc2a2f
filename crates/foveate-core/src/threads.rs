//! Sharing one computation among threads that another crate starts.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs the parts of one computation, in parallel where possible. `foveate-run` implements it with threads.
pub trait Parallel: Debug + Send + Sync {
    /// Calls `work` once with every number from 0 to `parts - 1`, in any order; returns when all calls have
    /// returned.
    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync));
}

/// How many threads may share one computation, and what runs them. Results do not depend on it.
///
/// ```
/// let mut squares = [0; 4];
/// let parts = squares.iter_mut().enumerate();
/// foveate_core::Threads::one().for_each(parts, |(i, square)| *square = i * i);
/// assert_eq!(squares, [0, 1, 4, 9]);
/// ```
#[derive(Debug, Clone)]
pub struct Threads {
    count: usize,
    /// `None` to use the caller's thread only.
    parallel: Option<Arc<dyn Parallel>>,
}

impl Threads {
    /// The caller's thread only.
    pub const fn one() -> Self {
        Threads { count: 1, parallel: None }
    }

    /// Up to `count` threads (at least 1, including the caller's), run by `parallel`.
    pub fn new(count: usize, parallel: Arc<dyn Parallel>) -> Self {
        if count > 1 { Threads { count, parallel: Some(parallel) } } else { Threads::one() }
    }

    /// Number of threads, at least 1.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The same, limited to `count` threads.
    #[must_use]
    pub fn at_most(&self, count: usize) -> Self {
        Threads { count: self.count.min(count.max(1)), parallel: self.parallel.clone() }
    }

    /// Calls `work` once with every part; there should be no more parts than [`count`](Self::count). With one
    /// part or one thread, it does not allocate.
    ///
    /// # Panics
    /// When `work` panics.
    pub fn for_each<P: Send>(&self, parts: impl Iterator<Item = P>, work: impl Fn(P) + Sync) {
        let mut parts = parts.peekable();
        let Some(first) = parts.next() else { return };
        let parallel = self.parallel.as_ref().filter(|_| parts.peek().is_some());
        let Some(parallel) = parallel else {
            work(first);
            return parts.for_each(work);
        };
        let parts: Vec<_> = std::iter::once(first).chain(parts).map(|part| Mutex::new(Some(part))).collect();
        parallel.run(parts.len(), &|number| {
            let part = parts[number].lock().unwrap_or_else(PoisonError::into_inner).take();
            work(part.expect("every number is given once"));
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{Parallel, Threads};

    #[derive(Debug)]
    struct Backwards;

    impl Parallel for Backwards {
        fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
            (0..parts).rev().for_each(work);
        }
    }

    #[test]
    fn every_part_is_worked_on_once() {
        for threads in
            [Threads::one(), Threads::new(1, Arc::new(Backwards)), Threads::new(3, Arc::new(Backwards))]
        {
            for parts in [0, 1, 2, 7] {
                let seen = Mutex::new(vec![]);
                threads.for_each(0..parts, |part| seen.lock().unwrap().push(part));
                let mut seen = seen.into_inner().unwrap();
                let backwards = seen.is_sorted_by(|a, b| a > b);
                assert!(parts < 2 || backwards == (threads.count() > 1), "{threads:?} {seen:?}");
                seen.sort_unstable();
                assert_eq!(seen, (0..parts).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn there_is_at_least_one_thread() {
        for (count, most, want) in [(0, 4, 1), (1, 4, 1), (5, 3, 3), (5, 0, 1)] {
            assert_eq!(Threads::new(count, Arc::new(Backwards)).at_most(most).count(), want);
        }
    }
}
