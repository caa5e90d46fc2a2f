//! The published CarRacing weights: imported, saved, loaded, and run on forty recorded frames.

use foveate_agents::Layout;
use foveate_core::{ActContext, Image, Observation, TensorData, episode_seed};
use foveate_run::import::import;
use foveate_run::npz;
use foveate_run::weights::AgentFile;
use serde_json::json;

const SIDE: usize = 96;

#[test]
fn imported_weights_act_as_published() {
    let Some(weights) = foveate_toy::needs::data("attention_agent_carracing.npz") else { return };
    let Some(golden) = foveate_toy::needs::data("golden_attention_agent_carracing.npz") else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let saved = dir.path().join("published.safetensors");
    let file = import(&weights, "attention-agent", &json!({}), Layout::Sorted).expect("the published file");
    assert_eq!(file.params().len(), 3667);
    file.save(&saved).expect("writable");
    let mut agent = AgentFile::load(&saved).expect("our own file").agent().expect("a whole agent");

    let members = npz::read(&golden).expect("the golden file");
    let array = |name: &str| members.iter().find(|member| member.name == name).expect(name).array.data();
    let (TensorData::U8(frames), TensorData::F64(actions), TensorData::F32(importance), TensorData::I64(top)) =
        (array("frames"), array("action"), array("importance"), array("topk"))
    else {
        panic!("the golden file holds bytes, numbers and indices");
    };
    agent.begin_episode(episode_seed(0, 0));
    let mut steps = 0;
    for (i, frame) in frames.chunks_exact(SIDE * SIDE * 3).enumerate() {
        let image = Image::new(SIDE, SIDE, frame).expect("a whole frame");
        let decision =
            agent.act(Observation::rgb(image), &mut ActContext::default()).expect("the right size");
        for (ours, golden) in decision.action.iter().zip(&actions[3 * i..3 * i + 3]) {
            assert!((ours - golden).abs() < 1e-4, "step {i}: {:?}", decision.action);
        }
        let attention = decision.attention.expect("this agent attends");
        let n = attention.weights().len();
        for (ours, golden) in attention.weights().iter().zip(&importance[n * i..n * (i + 1)]) {
            assert!((ours - golden).abs() <= 1e-4 * golden.abs(), "step {i}: {ours} for {golden}");
        }
        let ours: Vec<i64> =
            attention.selected().expect("it selects").tokens.iter().map(|&p| i64::from(p)).collect();
        assert_eq!(ours, top[10 * i..10 * (i + 1)], "step {i}");
        steps += 1;
    }
    assert_eq!(steps, 40);
}
