//! The published CarRacing weights on forty consecutive frames, against an independent implementation in `NumPy`.

use crate::common;

use foveate_agents::{AttentionAgent, AttentionAgentConfig};
use foveate_core::{ActContext, Image, Observation, Policy};
use foveate_kernels::Level;

/// Fails when any of `got` is further than `tolerance` from `want`.
#[track_caller]
fn close(what: &str, got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= tolerance, "{what}[{i}] is {got}, the reference has {want}");
    }
}

#[test]
fn published_car_racing_weights() {
    let Some(weights) = foveate_toy::needs::data("attention_agent_carracing.npz") else { return };
    let Some(golden) = foveate_toy::needs::data("golden_attention_agent_carracing.npz") else { return };
    let params = common::read_npz(&weights)["params"].f32();
    let golden = common::read_npz(&golden);
    let frames = golden["frames"].u8();
    let [importance, h, c, raw] = ["importance", "h", "c", "raw"].map(|name| golden[name].f32());
    let (top, action) = (golden["topk"].i64(), golden["action"].f64());
    assert_eq!(golden["frames"].shape, [40, 96, 96, 3]);

    for level in Level::available() {
        let mut agent = AttentionAgent::new(AttentionAgentConfig::default())
            .expect("the defaults are valid")
            .with_level(level);
        agent.set_params(&params).expect("3667 finite numbers");
        let mut memory = agent.memory();
        for t in 0..40 {
            let frame = Image::new(96, 96, &frames[t * 27_648..(t + 1) * 27_648]).expect("96 x 96 pixels");
            let decision = agent
                .act(Observation::rgb(frame), &mut memory, &mut ActContext::default())
                .expect("the right size");
            let attention = decision.attention.expect("this agent attends");
            let at = format!("{level}, frame {t}");

            let want = &importance[t * 529..(t + 1) * 529];
            for (i, (got, want)) in attention.weights().iter().zip(want).enumerate() {
                // f32 sums in another order.
                assert!(
                    (got - want).abs() <= 1e-4 * want,
                    "{at}: importance[{i}] is {got}, reference {want}"
                );
            }
            let total: f64 = attention.weights().iter().map(|&v| f64::from(v)).sum();
            assert!((total - 529.0).abs() < 1e-3, "{at}: {total} votes");
            let got: Vec<i64> =
                attention.selected().expect("it selects").tokens.iter().map(|&p| i64::from(p)).collect();
            assert_eq!(got, top[t * 10..(t + 1) * 10], "{at}: the ten most important patches");
            for (got, want) in decision.action.iter().zip(&action[t * 3..]) {
                assert!((got - want).abs() < 1e-4, "{at}: action {got}, reference {want}");
            }
            close(&format!("{at}: h"), memory.h(), &h[t * 16..(t + 1) * 16], 1e-4);
            close(&format!("{at}: c"), memory.c(), &c[t * 16..(t + 1) * 16], 1e-4);
            close(&format!("{at}: raw"), memory.raw(), &raw[t * 3..(t + 1) * 3], 1e-4);
        }
    }
}
