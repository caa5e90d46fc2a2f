//! Studying on several threads allocates nothing once buffers have their size.
//!
//! A counting allocator stands under this whole program, so there is but one test in it.

use std::alloc::System;
use std::sync::Arc;

use foveate_agents::registry::{self, Init};
use foveate_core::{Demonstration, Piece, Seed, Student};
use foveate_run::parallel_student::ParallelStudent;
use serde_json::Value;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations and reallocations of all threads while `work` ran.
fn count(work: impl FnOnce()) -> usize {
    let region = Region::new(COUNTING);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}

#[test]
fn updates_allocate_nothing() {
    assert!(count(|| drop(std::hint::black_box(vec![0_u8; 100]))) > 0, "the counter counts");
    let student = registry::student("attention-agent", &Value::Null).expect("it exists");
    let params = registry::initial_params("attention-agent", &Value::Null, Init::Torch, Seed::root(1))
        .expect("the defaults are good");
    let demonstration =
        Arc::new(Demonstration { inputs: vec![0.5; 60 * 20], actions: vec![0.25; 60 * 3], steps: 60 });
    let pieces: Vec<Piece> =
        (0..24).map(|i| Piece { demonstration: Arc::clone(&demonstration), steps: i..i + 30 }).collect();
    let mut gradient = vec![0.0; params.len()];
    // The caller's thread alone: which of several makes room when is left to the system.
    let mut alone = ParallelStudent::new(student, 1);
    let mut update = |group: &mut dyn Student| {
        count(|| {
            group.set_params(&params).expect("the right count");
            assert!(group.study_all(&pieces, 10, &mut gradient).expect("fine") > 0.0);
        })
    };
    assert!(update(&mut alone) > 0, "the first update makes room");
    for _ in 0..3 {
        assert_eq!(update(&mut alone), 0);
    }
    let mut group = ParallelStudent::new(registry::student("attention-agent", &Value::Null).expect("it"), 3);
    assert!(update(&mut group) > 0, "the first update begins threads");
    // A thread makes room when it gets its first piece, which may be late on a busy machine; after that, nothing.
    let mut in_fifty = || (0..50).map(|_| update(&mut group)).sum::<usize>();
    assert!((0..100).any(|_| in_fifty() == 0), "every fifty updates allocate");
}
