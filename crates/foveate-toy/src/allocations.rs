//! How often memory is allocated while something runs.
//!
//! The counter belongs to the whole program and counts the allocations of all threads, so a test program that
//! uses it has one test only:
//!
//! ```
//! use foveate_toy::allocations::{COUNTER, Counter, count};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counter = COUNTER;
//!
//! let mut numbers = Vec::with_capacity(8);
//! assert_eq!(count(|| numbers.extend(0..8)), 0);
//! assert_eq!(count(|| numbers.push(8)), 1);
//! ```

use std::alloc::System;
use std::hint::black_box;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

/// The system's allocator, which counts what it is asked for.
pub type Counter = &'static StatsAlloc<System>;

/// To be declared as the program's `#[global_allocator]`.
pub const COUNTER: Counter = &INSTRUMENTED_SYSTEM;

/// Allocations and reallocations while `work` ran, on all threads.
///
/// # Panics
/// When [`COUNTER`] is not the program's allocator.
pub fn count(work: impl FnOnce()) -> usize {
    let counted = |work: &mut dyn FnMut()| {
        let region = Region::new(COUNTER);
        work();
        let change = region.change();
        change.allocations + change.reallocations
    };
    assert!(
        counted(&mut || drop(black_box(vec![0_u8; 100]))) > 0,
        "nothing is counted; declare COUNTER as the #[global_allocator] of this program"
    );
    let mut work = Some(work);
    counted(&mut || work.take().expect("called once")())
}
