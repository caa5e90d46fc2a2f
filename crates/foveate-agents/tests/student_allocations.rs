//! A student allocates nothing once its buffers have their size.

use foveate_agents::registry::{self, Init};
use foveate_core::{Demonstration, Seed};
use foveate_toy::allocations::{COUNTER, Counter, count};
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: Counter = COUNTER;

#[test]
fn nothing_is_allocated_after_the_first_piece() {
    let mut student = registry::model("attention-agent", &Value::Null).expect("it exists");
    let params = registry::initial_params("attention-agent", &Value::Null, Init::Torch, Seed::root(1))
        .expect("the defaults are good");
    let demonstration = Demonstration {
        inputs: vec![0.5; 200 * 20],
        actions: vec![0.25; 200 * 3],
        steps: 200,
        ..Demonstration::default()
    };
    let mut gradient = vec![0.0; params.len()];
    let mut study = |piece, burn_in| {
        count(|| {
            student.set_params(&params).expect("the right count");
            assert!(
                student.student().expect("it is one").study(&demonstration, piece, burn_in, &mut gradient)
                    > 0.0
            );
        })
    };
    assert!(study(0..150, 0) > 0, "the first piece makes room");
    for (piece, burn_in) in [(0..150, 0), (50..200, 50), (10..20, 60), (49..199, 10)] {
        assert_eq!(study(piece.clone(), burn_in), 0, "{piece:?} after {burn_in}");
    }
}
