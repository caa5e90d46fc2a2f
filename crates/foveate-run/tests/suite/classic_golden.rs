//! Compares the classic picture with forty frames of an independent implementation of Gym 0.15.3's renderer,
//! with the actions between them.

use foveate_core::{Action, Env, TensorData};
use foveate_envs::car_racing::{CarRacing, CarRacingConfig, PictureKind, Seeding};
use foveate_run::npz;

const SIDE: usize = 96;

#[test]
fn forty_frames_of_an_independent_renderer() {
    let Some(file) = foveate_toy::needs::data("golden_attention_agent_carracing.npz") else { return };
    let members = npz::read(&file).unwrap();
    let array = |name: &str| members.iter().find(|member| member.name == name).unwrap().array.data();
    let (TensorData::U8(frames), TensorData::F64(actions)) = (array("frames"), array("action")) else {
        panic!("frames are bytes and actions f64");
    };

    // Found by search: the frames are from the first track of Gymnasium's seed 3, rendered with the old
    // method.
    let mut env = CarRacing::new(CarRacingConfig {
        picture: PictureKind::Classic,
        seeding: Seeding::Gymnasium,
        ..CarRacingConfig::default()
    })
    .unwrap();
    env.reset(Some(3));
    let mut differences = Vec::new();
    for (step, (golden, action)) in
        frames.chunks_exact(SIDE * SIDE * 3).zip(actions.chunks_exact(3)).enumerate()
    {
        let Some(ours) = env.observation().picture() else { panic!("an image") };
        let pixels = golden.chunks_exact(3).zip(ours.rgb().chunks_exact(3)).enumerate();
        for (i, (golden, ours)) in pixels.filter(|(_, (golden, ours))| golden != ours) {
            differences.push(format!(
                "step {step}, column {}, row {}: golden {golden:?}, ours {ours:?}",
                i % SIDE,
                i / SIDE
            ));
        }
        env.step(Action::Continuous(action)).unwrap();
    }
    assert!(differences.is_empty(), "{} pixels differ:\n{}", differences.len(), differences.join("\n"));
}
