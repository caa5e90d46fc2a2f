//! A step of a Gymnasium world allocates nothing on the thread that takes it.

#[path = "suite/common/mod.rs"]
mod common;

use common::{python, toy};
use foveate_core::{Action, Env, Observation};
use foveate_toy::allocations::{COUNTER, Counter, count};

#[global_allocator]
static ALLOCATOR: Counter = COUNTER;

#[test]
fn steps_allocate_nothing() {
    if !python() {
        return;
    }
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
