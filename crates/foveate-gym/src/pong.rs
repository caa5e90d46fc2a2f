//! `PongNoFrameskip-v4` in a worker process: Atari's Pong, one frame per step.

use crate::atari::{self, Atari};
use crate::settings::Settings;

/// Name of the world.
pub const NAME: &str = "pong";

/// Frames after which the emulator truncates an episode.
const MAX_FRAMES: u32 = 108_000;

/// Settings of the game. Its observation is the screen, `[210, 160, 3]`; its choices are: nothing, fire,
/// right, left, right and fire, left and fire. `sticky` is the
/// probability that a frame repeats the action before.
pub fn settings(sticky: f64) -> Settings {
    let mut settings = atari::named(NAME, Atari { game: "pong", sticky, all_actions: false });
    settings.args.insert("max_num_frames_per_episode".to_owned(), MAX_FRAMES.into());
    settings
}
