//! Every instruction set decides the same, to the bit, over thousands of pictures: drawn roads, golden frames, noise,
//! coloured boxes, and pictures of one colour, with weights from tiny to large.

use crate::common;
use crate::synthetic;

use foveate_agents::registry::{AgentConfig, Init};
use foveate_agents::{AttentionAgent, AttentionAgentConfig};
use foveate_core::{ActContext, Image, ImageBuf, Observation, Policy, Rng, Seed};
use foveate_kernels::Level;

/// Feeds `frames` to one agent per level and compares all that comes out.
#[track_caller]
fn check(params: &[f32], frames: &[&[u8]]) {
    let config = AttentionAgentConfig::default;
    let mut agents: Vec<_> = Level::available()
        .map(|level| {
            let mut agent = AttentionAgent::new(config()).expect("the defaults are valid").with_level(level);
            agent.set_params(params).expect("3667 finite numbers");
            (level, agent.memory(), agent)
        })
        .collect();
    for (t, rgb) in frames.iter().enumerate() {
        let frame = Image::new(96, 96, rgb).expect("96 x 96 pixels");
        let mut portable: Option<(Vec<u32>, Vec<u32>, Vec<u64>)> = None;
        for (level, memory, agent) in &mut agents {
            let decision = agent
                .act(Observation::rgb(frame), memory, &mut ActContext::default())
                .expect("the right size");
            let attention = decision.attention.expect("this agent attends");
            let outcome = (
                attention.selected().expect("it selects").tokens.to_vec(),
                attention.weights().iter().map(|v| v.to_bits()).collect(),
                decision.action.iter().map(|v| v.to_bits()).collect(),
            );
            assert_eq!(&outcome, portable.get_or_insert(outcome.clone()), "{level}, picture {t}");
        }
    }
}

/// Noise, or boxes of one colour on another, or one colour alone.
fn draw(rng: &mut Rng) -> Vec<u8> {
    let mut picture = ImageBuf::black(96, 96);
    match rng.below(4) {
        0 => picture.rgb_mut().fill_with(|| rng.below(256) as u8),
        kind => {
            let boxes = if kind == 1 { 1 } else { 2 + rng.below(12) };
            for i in 0..boxes {
                let colour = [rng.below(256) as u8, rng.below(256) as u8, rng.below(256) as u8];
                let at = |rng: &mut Rng| if i == 0 { (0, 96) } else { (rng.below(96), 1 + rng.below(60)) };
                let ((x, w), (y, h)) = (at(rng), at(rng));
                for y in y..(y + h).min(96) {
                    for x in x..(x + w).min(96) {
                        let start = (y * 96 + x) as usize * 3;
                        picture.rgb_mut()[start..start + 3].copy_from_slice(&colour);
                    }
                }
            }
        }
    }
    picture.rgb().to_vec()
}

#[test]
fn the_same_on_every_level() {
    let config = AttentionAgentConfig::default();
    let mut rng = Seed::root(17).rng();
    let roads = synthetic::frames(200);
    for scale in [0.05, 1.0, 6.0, 200.0] {
        let mut params = config.initial_params(Init::Torch, Seed::root(3));
        for w in &mut params {
            *w *= scale;
        }
        let drawn: Vec<Vec<u8>> = (0..320).map(|_| draw(&mut rng)).collect();
        let frames: Vec<&[u8]> =
            roads.chunks_exact(96 * 96 * 3).chain(drawn.iter().map(Vec::as_slice)).collect();
        check(&params, &frames);
    }
}

#[test]
fn the_same_on_every_level_with_published_weights() {
    let Some(weights) = foveate_toy::needs::data("attention_agent_carracing.npz") else { return };
    let Some(golden) = foveate_toy::needs::data("golden_attention_agent_carracing.npz") else { return };
    let params = common::read_npz(&weights)["params"].f32();
    let golden = common::read_npz(&golden);
    let roads = synthetic::frames(100);
    let frames: Vec<&[u8]> =
        golden["frames"].u8().chunks_exact(96 * 96 * 3).chain(roads.chunks_exact(96 * 96 * 3)).collect();
    check(&params, &frames);
}

/// The digest below was taken on x86-64 and stands for every machine, instruction set and build.
#[test]
fn the_same_on_every_machine() {
    let mut agent = AttentionAgent::new(AttentionAgentConfig::default()).expect("the defaults are valid");
    agent.set_params(&synthetic::params(3667)).expect("3667 finite numbers");
    let mut memory = agent.memory();
    let mut digest = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a
    let mut take = |bits: u64| digest = (digest ^ bits).wrapping_mul(0x0100_0000_01b3);
    for rgb in synthetic::frames(60).chunks_exact(96 * 96 * 3) {
        let frame = Image::new(96, 96, rgb).expect("96 x 96 pixels");
        let decision = agent
            .act(Observation::rgb(frame), &mut memory, &mut ActContext::default())
            .expect("the right size");
        let attention = decision.attention.expect("this agent attends");
        for v in attention.weights() {
            take(u64::from(v.to_bits()));
        }
        for &patch in attention.selected().expect("it selects").tokens {
            take(u64::from(patch));
        }
        for v in decision.action {
            take(v.to_bits());
        }
    }
    assert_eq!(digest, 0x2d96_ffde_2eba_a805, "{digest:#x}");
}
