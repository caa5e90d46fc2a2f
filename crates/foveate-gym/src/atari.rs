//! A game of the Arcade Learning Environment in a worker process, one frame per step.

use crate::settings::{Program, Settings};

/// Name of the world.
pub const NAME: &str = "atari";

const SOURCE: &str = concat!(
    include_str!("worker/paddle.py"),
    include_str!("worker/pong_expert.py"),
    include_str!("worker/breakout_expert.py"),
    include_str!("worker/atari.py")
);

/// Which game, and how it is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Atari {
    /// Name of the game as ale-py writes it, such as `breakout`.
    pub game: &'static str,
    /// Probability that a frame repeats the action of the frame before; drawn from the seed of the episode.
    pub sticky: f64,
    /// True if the choices are all 18 positions of stick and button, or those that the game distinguishes.
    pub all_actions: bool,
}

/// Settings of the game. Its observation is the screen, `[height, width, 3]`; its first choice is to do nothing.
pub fn settings(atari: Atari) -> Settings {
    named(NAME, atari)
}

/// The same for a world of this name.
pub(crate) fn named(name: &'static str, atari: Atari) -> Settings {
    let Atari { game, sticky, all_actions } = atari;
    let mut settings = Settings::new("FoveateAtari-v0");
    settings.program = Some(Program { name, source: SOURCE });
    settings.args = [
        ("game".to_owned(), game.into()),
        ("repeat_action_probability".to_owned(), sticky.into()),
        ("full_action_space".to_owned(), all_actions.into()),
    ]
    .into();
    settings
}
