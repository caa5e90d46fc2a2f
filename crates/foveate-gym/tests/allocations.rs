//! A step of a Gymnasium world allocates nothing in this process.
//!
//! A counting allocator serves the whole program, so this file has only one test.

mod common;

use std::alloc::System;

use common::{python, toy};
use foveate_core::{Action, Env, Observation};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations and reallocations while `work` ran.
fn count(work: impl FnOnce()) -> usize {
    let region = Region::new(COUNTING);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}

#[test]
fn steps_allocate_nothing() {
    if !python() {
        return;
    }
    assert!(count(|| drop(std::hint::black_box(vec![0_u8; 100]))) > 0, "the counter counts");
    for name in ["Toy", "Picture"] {
        let mut world = toy(name, &[]);
        let action = vec![0.0; world.spec().action.len()];
        world.reset(Some(1));
        // The first step of a worker may allocate its request buffer.
        world.step(Action::Continuous(&action)).expect("a good world");
        let mut steps = 0;
        let allocated = count(|| {
            while steps < 200 {
                let step = world.step(Action::Continuous(&action)).expect("a good world");
                let seen = world.observation();
                assert!(matches!(seen, Observation::Vector(_) | Observation::Image(_)), "{name}");
                steps += 1;
                if step.is_over() {
                    break;
                }
            }
        });
        assert!(steps > 20, "{name}: only {steps} steps");
        assert_eq!(allocated, 0, "{name}: allocations in {steps} steps of the first episode");
    }
}
