//! `AntBulletEnv-v0` in a worker process: a four-legged robot simulated by `PyBullet`.

use crate::settings::{Program, Settings};

/// Name of the world.
pub const NAME: &str = "ant";

const PROGRAM: Program = Program { name: NAME, source: include_str!("worker/ant.py") };

/// The reward of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reward {
    /// The sum of all terms, which scores count.
    #[default]
    Evaluation,
    /// `AttentionNeuron`'s training reward: the sum of all terms except the one for being alive, at least 0.
    Training,
}

impl Reward {
    /// All rewards, the default first.
    pub const ALL: [Reward; 2] = [Reward::Evaluation, Reward::Training];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Reward::Evaluation => "evaluation",
            Reward::Training => "training",
        }
    }
}

/// Settings of the world. Its observation has 28 numbers, its action 8 torques from −1 to 1.
pub fn settings(reward: Reward) -> Settings {
    let mut settings = Settings::new("FoveateAnt-v0");
    settings.program = Some(PROGRAM);
    settings.args.insert("reward".into(), reward.name().into());
    settings
}
