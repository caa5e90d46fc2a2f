//! How often memory is allocated while something runs.
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

use densa_alloc::{AllocStats, CountingAllocator, measure};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

/// The system's allocator, which counts what it is asked for.
pub type Counter = CountingAllocator<&'static StatsAlloc<System>>;

/// To be declared as the program's `#[global_allocator]`.
pub const COUNTER: Counter = CountingAllocator::new(&INSTRUMENTED_SYSTEM);

/// Allocations and reallocations of the calling thread while `work` ran. Other threads, such as the one that
/// waits for a test to end, are not counted.
///
/// # Panics
/// When [`COUNTER`] is not the program's allocator.
pub fn count(work: impl FnOnce()) -> usize {
    check_counter();
    of_this_thread(work)
}

/// As [`count`], on all threads of the program. The thread that waits for a test allocates, too, when the test
/// begins: expect 0 only after several tries, and let the test program have one test only.
///
/// # Panics
/// When [`COUNTER`] is not the program's allocator.
pub fn count_on_all_threads(work: impl FnOnce()) -> usize {
    check_counter();
    let region = Region::new(&INSTRUMENTED_SYSTEM);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}

fn of_this_thread(work: impl FnOnce()) -> usize {
    let ((), AllocStats { allocs, reallocs, .. }) = measure(work);
    (allocs + reallocs) as usize
}

fn check_counter() {
    assert!(
        of_this_thread(|| drop(black_box(vec![0_u8; 100]))) > 0,
        "nothing is counted; declare COUNTER as the #[global_allocator] of this program"
    );
}
