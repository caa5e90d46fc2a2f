//! `PongNoFrameskip-v4` in a worker process: Atari's Pong, one frame per step.

use crate::settings::{Program, Settings};

/// Name of the world.
pub const NAME: &str = "pong";

const PROGRAM: Program = Program {
    name: NAME,
    source: concat!(
        include_str!("worker/paddle.py"),
        include_str!("worker/pong_expert.py"),
        include_str!("worker/pong.py")
    ),
};

/// Settings of the game. Its observation is the screen, `[210, 160, 3]`; its choices are: nothing, fire,
/// right, left, right and fire, left and fire. Actions do not stick.
pub fn settings() -> Settings {
    let mut settings = Settings::new("FoveatePong-v0");
    settings.program = Some(PROGRAM);
    settings
}
